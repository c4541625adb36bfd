# SPDX-License-Identifier: MIT
#
# Settings of each target for the release scripts (POSIX sh; source it after lib.sh).

all_targets="linux-x86_64 linux-aarch64 windows-x86_64 macos-arm64 macos-x86_64"
build_cache="${TERN_BUILD_CACHE:-${XDG_CACHE_HOME:-$HOME/.cache}/tern-build}"
# Pinned, because the same compiler gives the same bytes.
ziglang_version=0.13.0.post1

# set_target TARGET: sets cc, ar, ranlib, configure_host, target_cflags, hwloc_libs.
set_target() {
    ar=ar ranlib=ranlib target_cflags= hwloc_libs=
    no_unwind="-fno-asynchronous-unwind-tables -fno-unwind-tables"
    case $1 in
    linux-x86_64)
        configure_host=x86_64-linux-gnu cc=gcc
        target_cflags="-march=x86-64 -fPIE $no_unwind" hwloc_libs="-lm -lpthread" ;;
    linux-aarch64)
        configure_host=aarch64-linux-gnu cc=aarch64-linux-gnu-gcc
        ar=aarch64-linux-gnu-ar ranlib=aarch64-linux-gnu-ranlib
        target_cflags="-march=armv8-a -fPIE $no_unwind" hwloc_libs="-lm -lpthread" ;;
    windows-x86_64)
        configure_host=x86_64-w64-mingw32 cc=x86_64-w64-mingw32-gcc-win32
        ar=x86_64-w64-mingw32-ar ranlib=x86_64-w64-mingw32-ranlib
        target_cflags="-march=x86-64" ;;
    macos-arm64 | macos-x86_64)
        case $1 in
        macos-arm64) configure_host=aarch64-apple-darwin ;;
        macos-x86_64) configure_host=x86_64-apple-darwin ;;
        esac
        zig_bin="$build_cache/zig-$ziglang_version/tools/$1"
        cc="$zig_bin/cc" ar="$zig_bin/ar" ranlib="$zig_bin/ranlib" ;;
    *) die "unknown target $1; one of: $all_targets" ;;
    esac
}

# need_target_tools TARGET: installs its cross compiler.
need_target_tools() {
    need_packages gcc libc6-dev make cmake ninja-build pkg-config bzip2 xz-utils
    case $1 in
    linux-x86_64) ;;
    linux-aarch64)
        need_packages gcc-aarch64-linux-gnu g++-aarch64-linux-gnu libc6-dev-arm64-cross ;;
    windows-x86_64) need_packages gcc-mingw-w64-x86-64-win32 g++-mingw-w64-x86-64-win32 ;;
    macos-*) need_zig "$1" ;;
    esac
    set_target "$1"
    has "$cc" || die "no compiler for $1: $cc was not found"
}

# need_zig TARGET: installs the zig compiler from PyPI in a virtual environment, with wrappers that
# look like an ordinary compiler for TARGET.
need_zig() {
    zig_home="$build_cache/zig-$ziglang_version"
    if [ ! -x "$zig_home/bin/python" ] || [ ! -e "$zig_home/ready" ]; then
        need_packages python3 python3-venv
        say "installing ziglang $ziglang_version"
        python3 -m venv "$zig_home"
        "$zig_home/bin/pip" install -q "ziglang==$ziglang_version" ||
            die "pip could not install ziglang==$ziglang_version"
        : >"$zig_home/ready"
    fi
    case $1 in
    macos-arm64) zig_triple=aarch64-macos.11.0 ;;
    macos-x86_64) zig_triple=x86_64-macos.11.0 ;;
    esac
    mkdir -p "$zig_home/tools/$1"
    cp "$here/zig-cc.sh" "$zig_home/tools/"
    printf '#!/bin/sh\nexec "%s" "%s" %s "$@"\n' "$zig_home/tools/zig-cc.sh" \
        "$zig_home/bin/python" "$zig_triple" >"$zig_home/tools/$1/cc"
    for tool in ar ranlib; do
        printf '#!/bin/sh\nexec "%s" -m ziglang %s "$@"\n' "$zig_home/bin/python" $tool \
            >"$zig_home/tools/$1/$tool"
    done
    chmod +x "$zig_home/tools/$1"/*
}
