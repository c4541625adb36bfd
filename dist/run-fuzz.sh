#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-fuzz.sh [SECONDS]: runs every fuzz target with libFuzzer, ASan and UBSan (default: 60 s each;
# fuzz_gguf, the reader of untrusted files, at least 60 s, beside the others).  Prints the number of
# inputs.  Corpora grow in build/fuzz/corpus; a failing input is left in build/fuzz.
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

# fuzz TARGET SECONDS
fuzz() {
    mkdir -p "build/fuzz/corpus/$1"
    dictionary="tests/fuzz/$1.dict"
    [ -f "$dictionary" ] && dictionary="-dict=$dictionary" || dictionary=
    # shellcheck disable=SC2086
    if "build/fuzz/bin/$1" -max_total_time="$2" -timeout=25 -rss_limit_mb=2048 \
        -print_final_stats=1 -artifact_prefix="build/fuzz/$1-" $dictionary \
        "build/fuzz/corpus/$1" >"build/fuzz/$1.log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "build/fuzz/$1.log")
        echo "fuzz: $1: $2 s, $runs inputs, nothing found"
    else
        tail -n 60 "build/fuzz/$1.log" >&2
        echo "fuzz: $1: FAILED"
        return 1
    fi
}

failed=
[ "$seconds" -ge 60 ] && longest=$seconds || longest=60
fuzz fuzz_gguf "$longest" &
gguf=$!
for target in $targets; do
    [ "$target" = fuzz_gguf ] || fuzz "$target" "$seconds" || failed="$failed $target"
done
wait $gguf || failed="$failed fuzz_gguf"
[ -z "$failed" ] || die "fuzzing found something in$failed"
