#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-msan.sh: checks that the server never reads uninitialised memory.  Builds tern and its
# libraries with clang's MemorySanitizer in build/msan, and runs the tests of the server and of the
# parsers and their fuzz targets.  The libraries come from the archives that build-deps.sh has
# fetched.
set -eu
cd "$(dirname "$0")/.."
. dist/lib.sh
. dist/targets.sh
tests='^(test_(http|conn|server_text|server_memory|json_load|answers|scheduler)'
tests="$tests|fuzz_(http|schema|jinja|chat)|server_(http|bodies|openai|tools|messages|responses"
tests="$tests|answer_schema|llama|ollama|soak))\$"
programs="tern_cmd test_http test_conn test_server_text test_server_memory test_json_load
    test_answers test_scheduler fuzz_http fuzz_schema fuzz_jinja fuzz_chat"
folder=$PWD/build/msan
prefix=$folder/prefix
flags='-fsanitize=memory -fno-omit-frame-pointer -O1 -g'

need_packages clang cmake ninja-build
# unpack NAME: unpacks its archive from sources.txt into $work/NAME.
unpack() {
    for archive in "$build_cache/sources/$1"_*; do
        [ -e "$archive" ] || die "no archive of $1; run dist/build-deps.sh linux-x86_64 first"
        grep -q " $(basename "$archive") *$(sha256sum "$archive" | cut -d ' ' -f 1)\$" \
            dist/sources.txt || die "$archive is not what sources.txt pins"
    done
    mkdir "$work/$1"
    tar -xf "$archive" -C "$work/$1" --strip-components=1
}
# pc MODULE VERSION LIBS: writes a pkg-config file.
pc() {
    printf 'Name: %s\nDescription: %s\nVersion: %s\nCflags: -I%s\nLibs: -L%s %s\n' "$1" "$1" "$2" \
        "$prefix/include" "$prefix/lib" "$3" >"$prefix/lib/pkgconfig/$1.pc"
}
with_cmake() { # SOURCE OPTIONS...
    source=$1; shift
    cmake -S "$source" -B "$source/b" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_C_FLAGS="$flags" -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
        -DBUILD_SHARED_LIBS=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
    cmake --build "$source/b" --target install
}
build_libraries() {
    mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
    for name in hwloc utf8proc jansson xxhash cmocka; do unpack $name; done
    with_cmake "$work/jansson" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF \
        -DJANSSON_WITHOUT_TESTS=ON
    with_cmake "$work/cmocka" -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF
    rm -rf "$prefix"/lib/libcmocka*
    cp "$(find "$work/cmocka/b" -name libcmocka-static.a)" "$prefix/lib/libcmocka.a"
    # shellcheck disable=SC2086
    (cd "$work/utf8proc" && clang $flags -DUTF8PROC_STATIC -c utf8proc.c &&
        ar rcs "$prefix/lib/libutf8proc.a" utf8proc.o)
    cp "$work/utf8proc/utf8proc.h" "$work/xxhash/xxhash.h" "$prefix/include/"
    (cd "$work/hwloc" && ./configure --prefix="$prefix" CC=clang CFLAGS="$flags" \
        PKG_CONFIG=false --enable-static --disable-shared --disable-plugins --disable-io \
        --disable-libxml2 --disable-libudev --disable-cairo --disable-opencl --disable-cuda \
        --disable-nvml --disable-rsmi --disable-levelzero --disable-gl --disable-doxygen \
        --disable-readme --disable-cpuid && # MSan does not see writes by assembly
        make -C include install && make -C hwloc -j"$(cpus)" install)
    pc hwloc 2.9.0 '-lhwloc -lm'
    pc libutf8proc 2.8.0 -lutf8proc
    pc jansson 2.14 -ljansson
    pc libxxhash 0.8.1 ''
    pc cmocka 1.1.5 -lcmocka
    touch "$prefix/complete"
}

if [ ! -e "$prefix/complete" ]; then
    mkdir -p "$folder"
    work=$(mktemp -d)
    trap 'rm -rf "$work"' EXIT
    logged "$folder/libraries.log" build_libraries
    [ $status -eq 0 ] ||
        { tail -n 30 "$folder/libraries.log" >&2; die "the libraries did not build"; }
fi
# clang 14 does not intercept getentropy, nor the names of fstat and related functions since glibc
# 2.33, and reports their results as uninitialised.
wraps=
for name in stat64 lstat64 fstat64 getentropy; do wraps="$wraps -Wl,--wrap=$name"; done
cat >"$folder/wraps.c" <<'END'
#include <sanitizer/msan_interface.h>
#include <sys/stat.h>
#define WRAP(name, type)                                                                           \
    int __real_##name(type, struct stat *);                                                        \
    int __wrap_##name(type what, struct stat *st)                                                  \
    {                                                                                              \
        int failed = __real_##name(what, st);                                                      \
        if (!failed)                                                                               \
            __msan_unpoison(st, sizeof *st);                                                       \
        return failed;                                                                             \
    }
WRAP(stat64, const char *)
WRAP(lstat64, const char *)
WRAP(fstat64, int)
int __real_getentropy(void *, size_t);
int __wrap_getentropy(void *bytes, size_t n)
{
    int failed = __real_getentropy(bytes, n);
    if (!failed)
        __msan_unpoison(bytes, n);
    return failed;
}
END
# shellcheck disable=SC2086
clang $flags -c "$folder/wraps.c" -o "$folder/wraps.o"
export PKG_CONFIG_LIBDIR="$prefix/lib/pkgconfig"
cmake -S . -B "$folder" -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_BUILD_TYPE=RelWithDebInfo \
    -DCMAKE_C_FLAGS_RELWITHDEBINFO='-O1 -g1' -DTERN_SANITIZE=memory \
    -DCMAKE_EXE_LINKER_FLAGS="$wraps $folder/wraps.o" -DTERN_BENCH=OFF ${TERN_MSAN_CMAKE:-} \
    >"$folder/cmake.log" 2>&1 ||
    { tail -n 30 "$folder/cmake.log" >&2; die "cmake failed"; }
# shellcheck disable=SC2086
cmake --build "$folder" -j"$(cpus)" --target $programs >"$folder/build.log" 2>&1 ||
    { grep -m 20 -E 'error|warning' "$folder/build.log" >&2; die "the build failed"; }
code=0
ctest --test-dir "$folder" --output-on-failure --timeout 3600 -R "$tests" \
    >"$folder/ctest.log" 2>&1 || code=$?
tail -n 30 "$folder/ctest.log"
grep -E 'tests passed' "$folder/ctest.log" || die "no test ran"
exit $code
