#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-install.sh BUILD_DIR: installs into a scratch folder, moves it, and builds the example
# program against it with find_package(tern), with pkg-config, and with pkg-config --static.  All
# must run and print the same.  A release build (TERN_STATIC_BINARY) has static libraries and
# supports only pkg-config --static with cc -static, which gives a program without dependencies.
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
"$scratch/prefix/bin/tern" info >/dev/null ||
    die "the installed command does not find its demo model"

mkdir "$scratch/project"
cp "$root/tests/api/example.c" "$scratch/project/"
PKG_CONFIG_PATH=$(dirname "$(find "$scratch/prefix" -name tern.pc)")
export PKG_CONFIG_PATH

# by_pkg_config NAME CC_FLAGS PKG_CONFIG_FLAGS: builds the example as $scratch/NAME and writes its
# output to NAME.txt.
by_pkg_config() {
    quietly sh -c "cc $2 '$scratch/project/example.c' -o '$scratch/$1' \
        \$(pkg-config $3 --cflags --libs tern)" || die "pkg-config $3: the example does not link"
    "$scratch/$1" "$model" "Once upon a time" >"$scratch/$1.txt" ||
        die "pkg-config $3: the example failed"
    [ -s "$scratch/$1.txt" ] || die "pkg-config $3: the example printed nothing"
}

if grep -q '^TERN_STATIC_BINARY:BOOL=ON' "$1/CMakeCache.txt"; then
    PKG_CONFIG_LIBDIR=$(sed -n 's/^pkgcfg_lib_hwloc_hwloc:.*=\(.*\)\/libhwloc.a$/\1/p' \
        "$1/CMakeCache.txt")/pkgconfig
    export PKG_CONFIG_LIBDIR
    by_pkg_config static -static-pie --static
    ! readelf -dW "$scratch/static" | grep -q NEEDED || die "the example needs shared libraries"
    echo "install: a static program by pkg-config --static works"
    exit 0
fi

cat >"$scratch/project/CMakeLists.txt" <<'END'
cmake_minimum_required(VERSION 3.20)
project(example LANGUAGES C)
find_package(tern 0.1 REQUIRED)
add_executable(example example.c)
target_link_libraries(example PRIVATE tern::tern)
END
quietly cmake -S "$scratch/project" -B "$scratch/build" -G Ninja \
    -DCMAKE_PREFIX_PATH="$scratch/prefix"
quietly cmake --build "$scratch/build"
"$scratch/build/example" "$model" "Once upon a time" >"$scratch/one.txt" ||
    die "the example (find_package) failed"

by_pkg_config two "" ""
by_pkg_config three "" --static
cmp "$scratch/one.txt" "$scratch/two.txt"
cmp "$scratch/one.txt" "$scratch/three.txt"
echo "install: find_package, pkg-config and pkg-config --static work"
