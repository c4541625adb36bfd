#!/bin/sh
# SPDX-License-Identifier: MIT
#
# zig-cc.sh PYTHON TRIPLE ARGUMENTS...: runs the zig compiler with gcc's names of Arm features. zig
# rejects -march=armv8.2-a+dotprod; the clang inside it accepts separate feature flags.
set -eu
python=$1 triple=$2
shift 2
# Its names of x86 processors have underscores, and its clang needs an explicit flag for 512-bit
# vectors.
for argument; do
    shift
    case $argument in
    -march=armv8*)
        features=${argument#-march=armv8*-a}
        for feature in $(printf '%s' "$features" | tr + ' '); do
            set -- "$@" -Xclang -target-feature -Xclang "+$feature"
        done ;;
    -mavx512f) set -- "$@" -mavx512f -Xclang -target-feature -Xclang +evex512 ;;
    -march=x86-64) set -- "$@" -march=x86_64 ;;
    *) set -- "$@" "$argument" ;;
    esac
done
exec "$python" -m ziglang cc -target "$triple" "$@"
