#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-install.sh BUILD_DIR: install into a scratch folder, move it, and build the example program
# against it twice: with find_package(tern) and with pkg-config.  Both must run.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/dist/lib.sh"
[ $# -eq 1 ] || die "usage: check-install.sh BUILD_DIR"
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT

quietly cmake --install "$1" --prefix "$scratch/first"
mv "$scratch/first" "$scratch/prefix"
model="$scratch/prefix/share/tern/demo.tern"
[ -e "$model" ] || die "the demo model was not installed; build the target demo_model first"
[ -x "$scratch/prefix/bin/tern" ] || die "the command was not installed"
"$scratch/prefix/bin/tern" info >/dev/null || die "the installed command does not find its demo model"

mkdir "$scratch/project"
cp "$root/tests/api/example.c" "$scratch/project/"
cat >"$scratch/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(example LANGUAGES C)
find_package(tern 0.1 REQUIRED)
add_executable(example example.c)
target_link_libraries(example PRIVATE tern::tern)
END
quietly cmake -S "$scratch/project" -B "$scratch/build" -DCMAKE_PREFIX_PATH="$scratch/prefix"
quietly cmake --build "$scratch/build"
"$scratch/build/example" "$model" "Once upon a time" >"$scratch/one" || die "the example (find_package) failed"

modules=$(dirname "$(find "$scratch/prefix" -name tern.pc)")
# shellcheck disable=SC2046
PKG_CONFIG_PATH="$modules" quietly sh -c \
    "cc '$scratch/project/example.c' -o '$scratch/example' \$(pkg-config --cflags --libs tern)"
"$scratch/example" "$model" "Once upon a time" >"$scratch/two" || die "the example (pkg-config) failed"
cmp "$scratch/one" "$scratch/two"
[ -s "$scratch/one" ] || die "the example printed nothing"
echo "install: find_package and pkg-config work"
