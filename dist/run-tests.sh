#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-tests.sh [STAGE...]: runs everything that CI runs, from a fresh clone: installs missing
# packages, builds, tests.  Without arguments the stages of CI; TERN_CI_FULL=1 adds the long ones.
#
#   release  demo asan  fuzz  cross      always
#   clang  clients  small  tsan  page  wine  aarch64  levels  packages  fresh
#                                       with TERN_CI_FULL=1, or by name
#
# Each stage runs even if an earlier one failed; the exit code is 1 if any did.  Some tests read
# reference data in ../shared; without it they are skipped, or fail if CI=true.
set -u
cd "$(dirname "$0")/.."
. dist/lib.sh
. dist/targets.sh
export CI="${CI:-}"
fuzz_seconds=${TERN_FUZZ_SECONDS:-5}
results=$(mktemp)
trap 'rm -f "$results"' EXIT

# suite FOLDER CTEST_OPTIONS...: runs ctest there, with $launcher in front of it; keeps its summary
# and the skipped tests for the end.
launcher=
suite() {
    folder=$1; shift
    $launcher ctest --test-dir "$folder" --output-on-failure --timeout 7200 \
        -j "$(cpus)" "$@" 2>&1 | tee "$folder/ctest.log"
    grep 'tests passed' "$folder/ctest.log" >>"$results" || die "ctest in $folder ran no test"
    grep -hE '^skipped: |^\[  SKIPPED \] [a-z_]|\*\*\*Skipped' "$folder/ctest.log" \
        "$folder/Testing/Temporary/LastTest.log" >>"$results" || true
    grep -q '^100% tests passed' "$folder/ctest.log"
}

stage_release() {
    build_preset release
    suite build/release
}

stage_demo() {
    mkdir -p build
    dist/run-demo.sh >build/demo.log 2>&1 || { cat build/demo.log >&2; return 1; }
    dist/smoke.sh build/release/tern
    dist/check-install.sh build/release
}

stage_asan() {
    build_preset asan
    (ASAN_OPTIONS=handle_sigill=1 && export ASAN_OPTIONS && suite build/asan)
}

stage_tsan() {
    build_preset tsan
    suite build/tsan
}

# Client libraries that are too large for every run.
stage_clients() {
    build_preset release
    (TERN_CLIENTS=all && export TERN_CLIENTS && suite build/release -R '^server_clients$')
}

stage_clang() {
    quietly cmake -S . -B build/clang -G Ninja -DCMAKE_C_COMPILER=clang -DCMAKE_C_FLAGS=-Werror
    quietly cmake --build build/clang
    suite build/clang
}

# The release suite with 3 GiB of address space per program, as on a small machine.
stage_small() {
    build_preset release
    (ulimit -v $((3 << 20)) && suite build/release)
}

# The browser page in Chromium, with the accessibility checks of axe.  Its pictures are in
# build/page/pictures; dist/page.png is the one named readme.png.
stage_page() {
    build_preset release
    need_packages chromium chromium-driver fonts-noto-core python3-venv nodejs
    [ -x build/page/bin/python ] || python3 -m venv build/page
    build/page/bin/pip install --quiet selenium==4.36.0
    build/page/bin/pip install --quiet --no-deps axe-playwright-python==0.1.8
    axe=$(build/page/bin/python -c 'import importlib.util as u
print(u.find_spec("axe_playwright_python").submodule_search_locations[0])')
    for test in browser looks; do
        TERN="$PWD/build/release/tern" TERN_BROWSER=1 TERN_AXE="$axe/axe.min.js" \
            TERN_PICTURES="$PWD/build/page/pictures" \
            build/page/bin/python -B "tests/server/test_page_$test.py"
    done
    TERN="$PWD/build/release/tern" build/page/bin/python -B tests/server/test_page_logic.py
}

stage_fuzz() {
    dist/run-fuzz.sh "$fuzz_seconds"
}

# cross_build TARGET BUILD_OPTIONS...: builds the libraries, tern and its tests in build/TARGET. If
# $emulator is set, ctest uses it even where programs could run natively.
emulator=
cross_build() {
    dist/build-deps.sh "$1"
    (need_target_tools "$1")
    quietly cmake -S . -B "build/$1" -G Ninja \
        -DCMAKE_TOOLCHAIN_FILE="$PWD/dist/cmake/toolchain-$1.cmake" \
        ${emulator:+-DCMAKE_CROSSCOMPILING_EMULATOR="$emulator"}
    folder="build/$1"; shift
    quietly cmake --build "$folder" "$@"
}

# The prefix that wine creates is deleted; its debug messages are disabled.  At random addresses a
# program in a few hundred does not start: wine 8 "failed to map the shared user data".
use_wine() {
    need_packages wine64
    WINEPREFIX="$PWD/build/wine"
    WINEDEBUG=-all
    export WINEPREFIX WINEDEBUG
    wine=$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)
    [ -x "$wine" ] || die "wine64 was not found"
    setarch -R true 2>/dev/null && launcher="setarch -R" || say "addresses stay random"
}

# One server for all programs, otherwise each of them boots Windows.  The booting program's output
# is inherited by Windows services, and a reader of it would wait for their end.
boot_wine() {
    mkdir -p "$WINEPREFIX"
    "$(dirname "$wine")/wineserver" -p60 || true
    "$wine" wineboot </dev/null >/dev/null 2>&1 || die "wine does not start"
}

stage_cross() {
    cross_build linux-x86_64 --target tern_cmd demo_model
    dist/smoke.sh build/linux-x86_64/tern
    dist/check-install.sh build/linux-x86_64
    use_wine
    cross_build windows-x86_64 --target tern_cmd
    boot_wine
    $launcher dist/smoke.sh "$wine" build/windows-x86_64/tern.exe
}

stage_wine() {
    use_wine
    cross_build windows-x86_64
    boot_wine
    suite build/windows-x86_64
}

# on_processors QEMU FOLDER CPU=LEVEL...: runs the story and the arithmetic tests on each of qemu's
# processors, whose best kernel level is LEVEL.  Levels below it are left to smaller processors.
# qemu reads the processor's name from QEMU_CPU.
on_processors() {
    qemu=$1 folder=$2; shift 2
    for processor; do
        export QEMU_CPU="${processor%=*}" TERN_TEST_LEVELS="${processor#*=}"
        say "$qemu -cpu $QEMU_CPU, kernel level $TERN_TEST_LEVELS"
        "$qemu" "$folder/tern" --version | grep -qx "cpu level $TERN_TEST_LEVELS" ||
            die "$QEMU_CPU does not have $TERN_TEST_LEVELS as its best level"
        dist/smoke.sh "$qemu" "$folder/tern"
        suite "$folder" -L arithmetic
    done
    unset QEMU_CPU TERN_TEST_LEVELS
}

# The whole suite on the largest processor, the arithmetic tests on smaller ones too.
stage_aarch64() {
    need_packages qemu-user-static
    cross_build linux-aarch64
    (export QEMU_CPU=max; suite build/linux-aarch64)
    on_processors qemu-aarch64-static build/linux-aarch64 cortex-a53=neon cortex-a76=dotprod
}

# From the first 64-bit processors, without SSSE3, to those with AVX2; the story also on qemu's
# largest, which lacks AVX-512.
stage_levels() {
    need_packages qemu-user-static
    emulator=qemu-x86_64-static
    cross_build linux-x86_64
    # qemu 7.2 reads masked-out lanes of a load; for p . v that is up to two registers.
    export TERN_TEST_READ_AHEAD=64
    on_processors $emulator build/linux-x86_64 Opteron_G1=ref Nehalem=ssse3 Haswell=avx2
    QEMU_CPU=max dist/smoke.sh $emulator build/linux-x86_64/tern
}

stage_packages() {
    dist/build-release.sh --url https://example.org/tern
    dist/check-release.sh build/dist
    dist/check-reproducible.sh
}

# Both commands of the README in fresh Debian systems.
stage_fresh() {
    dist/check-fresh.sh
}

# run STAGE: runs it in a subshell and measures its time.
failed=0
run() {
    say "stage $1"
    begin=$(date +%s)
    (set -e; "stage_$1")
    status=$?
    [ $status -eq 0 ] && word=ok || { word=FAILED; failed=1; }
    echo "$1: $word, $(($(date +%s) - begin)) s" >>"$results"
}

need_packages $test_packages
need_tools cmocka
stages="release demo asan fuzz cross"
[ "${TERN_CI_FULL:-0}" != 1 ] || {
    stages="$stages clang clients small tsan page wine aarch64 levels packages fresh"
    fuzz_seconds=${TERN_FUZZ_SECONDS:-600}
}
[ $# -eq 0 ] || stages=$*
for stage in $stages; do run "$stage"; done

say "summary"
cat "$results"
exit $failed
