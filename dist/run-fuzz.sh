#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-fuzz.sh [SECONDS]: run every fuzz target with libFuzzer, ASan and UBSan (default: 60 s each).
# Corpora grow in build/fuzz/corpus; an input that breaks something is left in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
. dist/lib.sh
seconds=${1:-60}

need_packages clang
need_clang_runtime
quietly cmake --preset fuzz || die "cmake --preset fuzz failed"
targets=$(ninja -C build/fuzz -t targets all | sed -n 's|^bin/\(fuzz_[a-z0-9_]*\): .*|\1|p' | sort -u)
[ -n "$targets" ] || die "there is no fuzz target"
# shellcheck disable=SC2086
quietly cmake --build build/fuzz --target $targets
failed=
# shellcheck disable=SC2086
for target in $targets; do
    mkdir -p "build/fuzz/corpus/$target"
    dictionary="tests/fuzz/$target.dict"
    [ -f "$dictionary" ] && dictionary="-dict=$dictionary" || dictionary=
    if quietly "build/fuzz/bin/$target" -max_total_time="$seconds" -timeout=25 -rss_limit_mb=2048 \
        -artifact_prefix="build/fuzz/$target-" $dictionary "build/fuzz/corpus/$target"; then
        echo "fuzz: $target: $seconds s, nothing found"
    else
        echo "fuzz: $target: FAILED"
        failed="$failed $target"
    fi
done
[ -z "$failed" ] || die "fuzzing found something in$failed"
