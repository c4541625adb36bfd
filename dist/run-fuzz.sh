#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-fuzz.sh [SECONDS]: runs every fuzz target with libFuzzer, ASan and UBSan (default: 60 s each;
# fuzz_gguf, the reader of untrusted files, at least 60 s).  Prints the number of inputs.  Corpora
# grow in build/fuzz/corpus; a failing input is left in build/fuzz.
set -eu
cd "$(dirname "$0")/.."
. dist/lib.sh
seconds=${1:-60}

need_packages clang
need_clang_runtime
quietly cmake --preset fuzz || die "cmake --preset fuzz failed"
targets=$(ninja -C build/fuzz -t targets all |
    sed -n 's|^bin/\(fuzz_[a-z0-9_]*\): .*|\1|p' | sort -u)
[ -n "$targets" ] || die "there is no fuzz target"
# shellcheck disable=SC2086
quietly cmake --build build/fuzz --target $targets
failed=
# shellcheck disable=SC2086
for target in $targets; do
    mkdir -p "build/fuzz/corpus/$target"
    dictionary="tests/fuzz/$target.dict"
    [ -f "$dictionary" ] && dictionary="-dict=$dictionary" || dictionary=
    time=$seconds
    [ "$target" != fuzz_gguf ] || [ "$time" -ge 60 ] || time=60
    if "build/fuzz/bin/$target" -max_total_time="$time" -timeout=25 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/$target-" $dictionary \
        "build/fuzz/corpus/$target" >"build/fuzz/$target.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$target.log")
        echo "fuzz: $target: $time s, $runs inputs, nothing found"
    else
        tail -n 60 "build/fuzz/$target.log" >&2
        echo "fuzz: $target: FAILED"
        failed="$failed $target"
    fi
done
[ -z "$failed" ] || die "fuzzing found something in$failed"
