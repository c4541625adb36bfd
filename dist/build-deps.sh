#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build-deps.sh [--sources DIR] TARGET...: builds hwloc, utf8proc, jansson, xxHash and cmocka as
# static libraries for each target, from the archives pinned in sources.txt.
#
# Targets: linux-x86_64 linux-aarch64 windows-x86_64 macos-arm64 macos-x86_64. Archives come from
# --sources DIR, from the cache, or from Debian's source packages: a temporary apt configuration
# adds deb-src entries; the system's own configuration is not changed.  The cache is
# $TERN_BUILD_CACHE (default: ~/.cache/tern-build).  Results are written to prefix/TARGET in the
# cache, where the toolchain files in dist/cmake expect them.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/targets.sh"

sources_dir=
while [ $# -gt 0 ]; do
    case $1 in
    --sources)
        [ $# -ge 2 ] || die "--sources needs a folder"
        sources_dir=$(cd "$2" && pwd)
        shift 2 ;;
    -h | --help) sed -n '4,13s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) die "unknown option $1" ;;
    *) break ;;
    esac
done
[ $# -gt 0 ] || die "which target? one of: $all_targets"
archives="$build_cache/sources"
mkdir -p "$archives"

sha256_of() { sha256sum "$1" | cut -d ' ' -f 1; }

# check_archive FILE SHA256: a wrong checksum ends the build.
check_archive() {
    sum=$(sha256_of "$1")
    [ "$sum" = "$2" ] || die "$1 has SHA-256 $sum, but sources.txt pins $2; archive refused"
}

# apt_source SUITE PACKAGE VERSION: downloads the newest source package of that upstream version
# into the current folder.
apt_source() {
    suite=$1 package=$2 upstream=$3
    apt_dir="$build_cache/apt-$suite"
    mkdir -p "$apt_dir/parts" "$apt_dir/lists/partial" "$apt_dir/cache/archives/partial"
    set -- -o Dir::Etc::SourceList=/dev/null -o Dir::Etc::SourceParts="$apt_dir/parts" \
        -o Dir::State::Lists="$apt_dir/lists" -o Dir::Cache="$apt_dir/cache" \
        -o Debug::NoLocking=1 -o APT::Sandbox::User=root
    if [ ! -e "$apt_dir/ready" ]; then
        keyring=/usr/share/keyrings/debian-archive-keyring.gpg
        apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
            sed -n 's/^Debian|Debian|//p' | sort -u | while read -r uri; do
                printf 'Types: deb-src\nURIs: %s\nSuites: %s\nComponents: main\n' "$uri" "$suite"
                [ ! -e $keyring ] || echo "Signed-By: $keyring"
                echo
            done >"$apt_dir/parts/tern.sources"
        [ -s "$apt_dir/parts/tern.sources" ] || return 1
        apt-get -qq "$@" update >&2 || return 1
        : >"$apt_dir/ready"
    fi
    version=$(apt-cache "$@" showsrc "$package" |
        sed -n "s/^Version: \(\([0-9]*:\)\{0,1\}$upstream-.*\)/\1/p" | tail -n 1)
    [ -n "$version" ] || return 1
    apt-get -qq "$@" source --download-only --only-source "$package=$version" >&2
}

# fetch NAME VERSION SUITE ARCHIVE SHA256: puts the archive into the cache; returns 1 if it is not
# available.
fetch() {
    if [ -n "$sources_dir" ]; then
        [ -e "$sources_dir/$4" ] || return 1
        check_archive "$sources_dir/$4" "$5"
        cp "$sources_dir/$4" "$archives/$4"
        return 0
    fi
    if [ -e "$archives/$4" ]; then
        check_archive "$archives/$4" "$5"
        return 0
    fi
    has apt-get || return 1
    download=$(mktemp -d "$build_cache/download.XXXXXX")
    (cd "$download" && apt_source "$3" "$1" "$2") 2>"$download/log" || true
    found=1
    if [ -e "$download/$4" ]; then
        check_archive "$download/$4" "$5"
        mv "$download/$4" "$archives/$4"
        found=0
    fi
    rm -rf "$download"
    return $found
}

# choose_sources: writes the selected lines of sources.txt, one per library, to chosen.txt.
choose_sources() {
    # unique names, because several builds may run
    new="$build_cache/chosen.$$" candidates="$build_cache/candidates.$$"
    trap 'rm -f "$new" "$candidates"' EXIT
    : >"$new"
    for name in hwloc utf8proc jansson xxhash cmocka; do
        grep "^$name " "$here/sources.txt" >"$candidates"
        chosen=
        while read -r n version suite archive sum; do
            if fetch "$n" "$version" "$suite" "$archive" "$sum" </dev/null; then
                chosen="$n $version $suite $archive $sum"
                break
            fi
            say "$n $version ($suite) cannot be had here"
        done <"$candidates"
        [ -n "$chosen" ] ||
            die "no archive of $name; put one of sources.txt into a folder and use --sources"
        echo "$chosen" >>"$new"
    done
    mv "$new" "$build_cache/chosen.txt"
}

# unpack NAME: unpacks its chosen archive into $work/NAME.
unpack() {
    archive=$(sed -n "s/^$1 [^ ]* [^ ]* \([^ ]*\) .*/\1/p" "$build_cache/chosen.txt")
    mkdir "$work/$1"
    tar -xf "$archives/$archive" -C "$work/$1" --strip-components=1
}

version_of() { sed -n "s/^$1 \([^ ]*\) .*/\1/p" "$build_cache/chosen.txt"; }

# pc NAME MODULE CFLAGS LIBS: writes a pkg-config file for a library without one for static linking.
pc() {
    cat >"$prefix/lib/pkgconfig/$2.pc" <<END
prefix=\${pcfiledir}/../..
Name: $1
Description: $1, static
Version: $(version_of "$1")
Cflags: -I\${prefix}/include $3
Libs: $4
END
}

cmake_static() { # SOURCE OPTIONS...
    source=$1; shift
    CFLAGS="$dep_cflags" cmake -S "$source" -B "$source/build-static" -G Ninja \
        -DCMAKE_TOOLCHAIN_FILE="$here/cmake/toolchain-$target.cmake" -DCMAKE_BUILD_TYPE=None \
        -DCMAKE_INSTALL_PREFIX="$prefix" -DCMAKE_INSTALL_LIBDIR=lib \
        -DBUILD_SHARED_LIBS=OFF -DCMAKE_POLICY_VERSION_MINIMUM=3.5 "$@"
    cmake --build "$source/build-static" --target install
}

build_hwloc() {
    unpack hwloc
    (cd "$work/hwloc" && ./configure --host="$configure_host" --prefix="$prefix" \
        --localstatedir=/var \
        CC="$cc" AR="$ar" RANLIB="$ranlib" CFLAGS="$dep_cflags" PKG_CONFIG=false \
        --enable-static --disable-shared --disable-plugins --disable-io --disable-libxml2 \
        --disable-libudev --disable-cairo --disable-opencl --disable-cuda --disable-nvml \
        --disable-rsmi --disable-levelzero --disable-gl --disable-doxygen --disable-readme
    make -C include install
    make -C hwloc -j"$(cpus)" install)
    pc hwloc hwloc "" "-L\${prefix}/lib -lhwloc $hwloc_libs"
}

build_utf8proc() {
    unpack utf8proc
    (cd "$work/utf8proc" && $cc $dep_cflags -DUTF8PROC_STATIC -c utf8proc.c -o utf8proc.o &&
        $ar rcs "$prefix/lib/libutf8proc.a" utf8proc.o && cp utf8proc.h "$prefix/include/")
    pc utf8proc libutf8proc "-DUTF8PROC_STATIC" "-L\${prefix}/lib -lutf8proc"
}

build_jansson() {
    unpack jansson
    cmake_static "$work/jansson" -DJANSSON_BUILD_DOCS=OFF -DJANSSON_EXAMPLES=OFF \
        -DJANSSON_WITHOUT_TESTS=ON
    pc jansson jansson "" "-L\${prefix}/lib -ljansson"
}

build_xxhash() {
    unpack xxhash
    cp "$work/xxhash/xxhash.h" "$prefix/include/"
    pc xxhash libxxhash "" ""
}

build_cmocka() {
    unpack cmocka
    cmake_static "$work/cmocka" -DWITH_STATIC_LIB=ON -DWITH_EXAMPLES=OFF -DUNIT_TESTING=OFF
    # Version 1.1.5 always builds the shared library too; keep only the static one.
    rm -rf "$prefix"/lib/libcmocka* "$prefix"/lib/cmake "$prefix"/bin "$prefix"/cmake
    cp "$(find "$work/cmocka/build-static" -name 'libcmocka-static.a')" "$prefix/lib/libcmocka.a"
    pc cmocka cmocka "-DCMOCKA_STATIC" "-L\${prefix}/lib -lcmocka"
}

# build_target: builds all five libraries into prefix/TARGET, unless they are up to date.
build_target() {
    target=$1
    set_target "$target"
    key=$({
        cat "$build_cache/chosen.txt" "$here/targets.sh" "$here/cmake/toolchain-$target.cmake"
        sed -n '/^cmake_static/,$p' "$here/build-deps.sh"
    } | sha256sum | cut -d ' ' -f 1)
    final="$build_cache/prefix/$target"
    if [ "$(cat "$final/stamp" 2>/dev/null)" = "$key" ]; then
        say "libraries for $target: up to date"
        return 0
    fi
    say "libraries for $target"
    need_target_tools "$target"
    work=$(mktemp -d "$build_cache/work.XXXXXX")
    prefix="$work/prefix"
    mkdir -p "$prefix/lib/pkgconfig" "$prefix/include"
    # No library is used while a token is computed, so optimise for size.
    dep_cflags="-Os $target_cflags -fstack-protector-strong -ffunction-sections -fdata-sections"
    dep_cflags="$dep_cflags -U_FORTIFY_SOURCE -D_FORTIFY_SOURCE=2 -ffile-prefix-map=$work=."
    export SOURCE_DATE_EPOCH=0
    for library in hwloc utf8proc jansson xxhash cmocka; do
        logged "$work/$library.log" "build_$library"
        [ $status -eq 0 ] || {
            tail -n 40 "$work/$library.log" >&2
            die "$library for $target did not build; log and sources: $work"
        }
    done
    cp "$build_cache/chosen.txt" "$prefix/sources.txt"
    collect_licences
    echo "$key" >"$prefix/stamp"
    rm -rf "$prefix"/share "$prefix"/lib/*.la "$final"
    mkdir -p "$build_cache/prefix"
    mv "$prefix" "$final"
    rm -rf "$work"
}

# collect_licences: collects the licence of every library that is linked into the binary.
collect_licences() {
    mkdir -p "$prefix/licences"
    cp "$work/hwloc/COPYING" "$prefix/licences/hwloc"
    cp "$work/utf8proc/LICENSE.md" "$prefix/licences/utf8proc"
    cp "$work/jansson/LICENSE" "$prefix/licences/jansson"
    cp "$work/xxhash/LICENSE" "$prefix/licences/xxhash"
}

choose_sources
for target in "$@"; do build_target "$target"; done
