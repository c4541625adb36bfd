#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-release.sh [DIR]: checks the files in DIR (default: build/dist) before publication:
# SHA256SUMS, content and size of every archive, hardening and imports of every binary, no paths of
# the build machine, and, where the binary can run (natively, in an empty root folder, under qemu or
# wine), --version and the expected story.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/targets.sh"
folder=$(cd "${1:-$here/../build/dist}" && pwd)
version=$(sed -n 's/.*TERN_VERSION_STRING "\(.*\)"/\1/p' "$here/../include/tern/version.h")
max_binary=5000000
max_archive=6000000
system_dlls='KERNEL32|bcrypt|msvcrt|ADVAPI32|USER32|SHELL32|POWRPROF|NTDLL|PSAPI|WS2_32'
system_dlls="$system_dlls|api-ms-win-core-synch-l1-2-0"

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
failures=0
# expect WHAT COMMAND...: prints a line, ok or FAILED.
expect() {
    what=$1; shift
    if "$@" >/dev/null 2>&1; then printf 'ok      %s: %s\n' "$target" "$what"
    else printf 'FAILED  %s: %s\n' "$target" "$what"; failures=$((failures + 1))
    fi
}
lacks() { ! grep -qaE "$1" "$2"; }
contains() { grep -qaE "$1" "$2"; }
at_most() { [ "$(wc -c <"$1")" -le "$2" ]; }

check_elf() { # FILE MACHINE BINUTILS_PREFIX
    readelf -hW "$1" >"$scratch/header"
    readelf -lW "$1" >"$scratch/segments"
    readelf -dW "$1" >"$scratch/dynamic"
    expect "machine $2" contains "Machine:.*$2" "$scratch/header"
    expect "position independent" contains 'Type: *DYN' "$scratch/header"
    expect "needs no dynamic loader" lacks INTERP "$scratch/segments"
    expect "needs no shared library" lacks NEEDED "$scratch/dynamic"
    expect "relocations read-only (RELRO)" contains GNU_RELRO "$scratch/segments"
    expect "bound at start (NOW)" contains 'BIND_NOW|Flags:.*NOW' "$scratch/dynamic"
    expect "stack not executable" contains 'GNU_STACK.* RW ' "$scratch/segments"
    expect "no segment writable and executable" lacks 'LOAD.* RWE ' "$scratch/segments"
    expect "stack protector" contains 'stack smashing detected' "$1"
    expect "fortified (_FORTIFY_SOURCE)" contains 'buffer overflow detected' "$1"
    # The C library's start code has a few too; the functions of tern and hwloc have hundreds.
    pads=$("$3objdump" -d "$1" | grep -cE 'endbr64|paciasp|bti')
    expect "landing pads (CET, BTI: $pads)" test "$pads" -ge 200
}

check_pe() { # FILE
    x86_64-w64-mingw32-objdump -p "$1" >"$scratch/pe"
    for flag in HIGH_ENTROPY_VA DYNAMIC_BASE NX_COMPAT; do
        expect "$flag" contains "$flag" "$scratch/pe"
    done
    expect "has relocations (ASLR works)" contains 'Entry 5 [0-9a-f]*[1-9a-f][0-9a-f]* ' \
        "$scratch/pe"
    expect "no time stamp" \
        contains '^Time/Date[[:space:]]*(00000000|Thu Jan *1 00:00:00 1970)' "$scratch/pe"
    sed -n 's/.*DLL Name: //p' "$scratch/pe" >"$scratch/imports"
    grep -viE "^($system_dlls)\.dll\$" "$scratch/imports" >"$scratch/foreign" || true
    expect "imports only Windows' own libraries" test ! -s "$scratch/foreign"
    expect "stack protector" contains 'stack smashing detected' "$1"
    expect "manifest: UTF-8 and long paths" contains 'longPathAware' "$1"
    # The version resource is UTF-16; dropping its zero bytes makes it readable.
    tr -d '\0' <"$1" >"$scratch/ascii"
    expect "version resource" contains "ProductVersion.{0,4}$version" "$scratch/ascii"
}

check_macho() { # FILE CPU
    llvm-objdump --macho -p "$1" >"$scratch/macho"
    llvm-readobj -h "$1" >"$scratch/header"
    expect "machine $2" contains "CpuType: $2" "$scratch/header"
    expect "position independent" contains PIE "$scratch/header"
    expect "macOS 11.0 or newer" contains 'minos 11.0' "$scratch/macho"
    # arm64 refuses unsigned programs; zig signs no x86-64 programs, which need no signature.
    [ "$2" != Arm64 ] || expect "signature in place" contains LC_CODE_SIGNATURE "$scratch/macho"
    grep -A2 LC_LOAD_DYLIB "$scratch/macho" | sed -n 's/^ *name \([^ ]*\).*/\1/p' |
        grep -v '^/usr/lib/libSystem.B.dylib$' >"$scratch/foreign" || true
    expect "imports only libSystem" test ! -s "$scratch/foreign"
    llvm-nm -u "$1" >"$scratch/undefined" 2>&1 || true
    expect "stack protector" contains __stack_chk_fail "$1"
}

# prints_version COMMAND...: does --version begin with the version of this tree?
prints_version() { "$@" --version | head -n 1 | grep -q "^tern $version"; }
# story COMMAND...: checks --version, the demo model beside the binary, and the expected bytes.
story() {
    expect "--version" prints_version "$@"
    expect "writes the expected story" "$here/smoke.sh" "$@"
}

run_linux_x86_64() {
    story "$unpacked/tern"
    if [ "$(id -u)" -eq 0 ]; then
        expect "runs in an empty root folder" \
            chroot "$unpacked" /tern run /demo.tern --raw -p Once -n 4
    fi
}

run_linux_aarch64() {
    need_packages qemu-user-static
    story qemu-aarch64-static "$unpacked/tern"
}

run_windows_x86_64() {
    need_packages wine64
    wine=$(command -v wine64 || command -v wine || echo /usr/lib/wine/wine64)
    WINEPREFIX="$scratch/wine" WINEDEBUG=-all
    export WINEPREFIX WINEDEBUG
    story "$wine" "$unpacked/tern.exe"
    # wine's server writes into the scratch folder until it exits.
    "$(dirname "$wine")/wineserver" -k || true
    "$(dirname "$wine")/wineserver" -w || true
}

check_archive() { # FILE
    archive=$1
    name=$(basename "$archive")
    name=${name%.zip}
    name=${name%.tar.gz}
    target=${name#tern-"$version"-}
    program=tern
    case $archive in
    *.zip) program=tern.exe; unzip -q "$archive" -d "$scratch" ;;
    *) tar -xzf "$archive" -C "$scratch" ;;
    esac
    unpacked="$scratch/$name"
    printf '%s\n' EXAMPLES.txt LICENSE README.md THIRD_PARTY_LICENSES demo.tern $program |
        LC_ALL=C sort >"$scratch/wanted"
    (cd "$unpacked" && find . -type f | sed 's|^\./||' | LC_ALL=C sort) >"$scratch/found"
    expect "holds the six files and nothing else" cmp "$scratch/wanted" "$scratch/found"
    expect "binary <= 5 MB ($(wc -c <"$unpacked/$program"))" \
        at_most "$unpacked/$program" $max_binary
    expect "archive <= 6 MB ($(wc -c <"$archive"))" at_most "$archive" $max_archive
    expect "no build path inside" lacks "$build_paths" "$unpacked/$program"
    case $target in
    linux-*) c_licence='GNU LESSER GENERAL PUBLIC LICENSE' ;;
    windows-*) c_licence='License: ZPL-2.1' ;;
    *) c_licence= ;; # the system's C library
    esac
    [ -z "$c_licence" ] ||
        expect "licence of the C library inside" contains "$c_licence" \
            "$unpacked/THIRD_PARTY_LICENSES"
    case $target in
    linux-x86_64) check_elf "$unpacked/tern" X86-64 ""; run_linux_x86_64 ;;
    linux-aarch64) check_elf "$unpacked/tern" AArch64 aarch64-linux-gnu-; run_linux_aarch64 ;;
    windows-x86_64) check_pe "$unpacked/tern.exe"; run_windows_x86_64 ;;
    macos-arm64) check_macho "$unpacked/tern" Arm64 ;;
    macos-x86_64) check_macho "$unpacked/tern" X86-64 ;;
    *) expect "known target" false ;;
    esac
}

check_deb() { # FILE
    target=deb
    dpkg-deb -c "$1" >"$scratch/list"
    for path in usr/bin/tern usr/share/tern/demo.tern usr/include/tern/tern.h \
        usr/share/doc/tern/THIRD_PARTY_LICENSES; do
        expect "holds $path" contains "\./$path\$" "$scratch/list"
    done
    dpkg-deb -f "$1" Depends >"$scratch/depends"
    for library in libc6 libhwloc15 libjansson4 libutf8proc; do
        expect "depends on $library" contains "$library" "$scratch/depends"
    done
    dpkg-deb -x "$1" "$scratch/deb"
    for file in "$scratch/deb/usr/bin/tern" "$scratch"/deb/usr/lib/*/libtern.a; do
        expect "no build path inside $(basename "$file")" lacks "$build_paths" "$file"
    done
    expect "--version" prints_version "$scratch/deb/usr/bin/tern"
    expect "finds its demo model" "$scratch/deb/usr/bin/tern" info
}

need_packages binutils binutils-mingw-w64-x86-64 binutils-aarch64-linux-gnu llvm unzip
# Folders that must not appear in a binary: the tree, the cache, a home, a scratch folder.
tree=$(cd "$here/.." && pwd)
build_paths="$tree/|$build_cache|/home/[a-z]|${TMPDIR:-/tmp}/[A-Za-z]+\."
target=release
expect "SHA256SUMS" sh -c "cd '$folder' && sha256sum --quiet -c SHA256SUMS"
expect "SBOM is JSON" python3 -m json.tool "$folder/tern-$version.spdx.json"
found=0
for archive in "$folder"/tern-"$version"-*; do
    case $archive in
    *.tar.gz | *.zip) check_archive "$archive"; found=$((found + 1)) ;;
    esac
done
for package in "$folder"/tern_*.deb; do
    [ ! -e "$package" ] || { check_deb "$package"; found=$((found + 1)); }
done
target=templates
for filled in "$folder"/tern.rb "$folder"/*.yaml; do
    [ ! -e "$filled" ] || expect "$(basename "$filled") is filled" lacks '@[A-Z]' "$filled"
done
[ $found -gt 0 ] || die "no archive of tern $version in $folder"
echo "$found archives, $failures failures"
[ $failures -eq 0 ]
