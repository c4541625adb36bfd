#!/bin/sh
# SPDX-License-Identifier: MIT
#
# zig-cc.sh PYTHON TRIPLE ARGUMENTS...: the zig compiler with gcc's way of naming Arm features.
# zig refuses -march=armv8.2-a+dotprod; the clang inside it takes features one by one.
set -eu
python=$1 triple=$2
shift 2
# Its names of x86 processors have underscores; its clang wants to be told that 512 bits are meant.
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
