#!/bin/sh
# SPDX-License-Identifier: MIT
#
# build-release.sh [--sources DIR] [--url BASE] [--out DIR] [TARGET...]: builds the release.
#
# Targets (default: all): linux-x86_64 linux-aarch64 windows-x86_64 macos-arm64 macos-x86_64, and
# deb, a Debian package built against this system's libraries.  Installs the cross tools with apt,
# builds the libraries (build-deps.sh, which takes --sources), then tern, and writes the archives,
# the source archive, an SBOM and SHA256SUMS into DIR (default: build/dist).  With --url, the
# address where the files will be published, also the filled Homebrew and winget files. The same
# commit and sources give the same bytes, at any time and in any folder (macOS: with the same zig).
# Runs on x86-64 Linux.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
. "$here/targets.sh"
cd "$here/.."

out=build/dist url= sources= targets=
while [ $# -gt 0 ]; do
    case $1 in
    --sources | --url | --out)
        [ $# -ge 2 ] || die "$1 needs a value"
        case $1 in
        --sources) sources=$2 ;;
        --url) url=${2%/} ;;
        --out) out=$2 ;;
        esac
        shift 2 ;;
    -h | --help) sed -n '4,15s/^# \{0,1\}//p' "$0"; exit 0 ;;
    -*) die "unknown option $1" ;;
    *) targets="$targets $1"; shift ;;
    esac
done
targets=${targets:-$all_targets deb}
for target in $targets; do
    [ "$target" = deb ] || (set_target "$target")
done
[ "$out" = build/dist ] || [ ! -e "$out" ] || [ -e "$out/SHA256SUMS" ] || rmdir "$out" ||
    die "--out $out: needs a new folder, an empty one, or that of an earlier release"
[ "$(uname -sm)" = "Linux x86_64" ] || die "release builds need Linux on x86-64"

version=$(sed -n 's/.*TERN_VERSION_STRING "\(.*\)"/\1/p' include/tern/version.h)
SOURCE_DATE_EPOCH=${SOURCE_DATE_EPOCH:-$(git log -1 --format=%ct 2>/dev/null || echo 0)}
export SOURCE_DATE_EPOCH TZ=UTC LC_ALL=C
rm -rf "$out"
mkdir -p "$out"
out=$(cd "$out" && pwd)

# build_command TARGET: builds build/release-TARGET/tern[.exe], stripped by the linker.
build_command() {
    say "tern for $1"
    need_target_tools "$1"
    quietly cmake -S . -B "build/release-$1" -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_EXE_LINKER_FLAGS=-Wl,-s \
        -DCMAKE_TOOLCHAIN_FILE="$here/cmake/toolchain-$1.cmake" -DTERN_TESTS=OFF -DTERN_BENCH=OFF
    quietly cmake --build "build/release-$1" --target tern_cmd
}

# fill TEMPLATE: writes it to stdout with @VERSION@, @URL@, @DATE@ and @SHA256:FILE@ replaced.
fill() {
    sed -e "s|@VERSION@|$version|g" -e "s|@URL@|$url|g" \
        -e "s|@DATE@|$(date -u -d "@$SOURCE_DATE_EPOCH" +%Y-%m-%d)|g" "$1" |
        while IFS= read -r line; do
            file=$(printf '%s\n' "$line" | sed -n 's/.*@SHA256:\([^@]*\)@.*/\1/p')
            if [ -n "$file" ]; then
                [ -e "$out/$file" ] || die "$1 names $file, which was not built"
                sum=$(sha256sum "$out/$file" | cut -d ' ' -f 1)
                line=$(printf '%s\n' "$line" | sed "s|@SHA256:[^@]*@|$sum|")
            fi
            printf '%s\n' "$line"
        done
}

# pack TARGET: makes the archive.
pack() {
    name="tern-$version-$1"
    folder="build/pack/$name"
    rm -rf "$folder"
    mkdir -p "$folder"
    case $1 in
    windows-*) cp "build/release-$1/tern.exe" "$folder/" ;;
    *) cp "build/release-$1/tern" "$folder/" ;;
    esac
    cp build/release-linux-x86_64/demo.tern LICENSE "$folder/"
    grep -v '^!\[' README.md >"$folder/README.md" # its picture is in the repository only
    fill dist/packaging/EXAMPLES.txt >"$folder/EXAMPLES.txt"
    third_party "$1" >"$folder/THIRD_PARTY_LICENSES"
    find "$folder" -exec touch -h -d "@$SOURCE_DATE_EPOCH" {} +
    chmod 755 "$folder" "$folder"/tern*
    chmod 644 "$folder"/[A-Z]* "$folder/demo.tern"
    case $1 in
    windows-*)
        (cd build/pack && find "$name" -type f | sort | zip -q -X -D -9 "$out/$name.zip" -@) ;;
    *)
        tar -C build/pack --sort=name --mtime="@$SOURCE_DATE_EPOCH" --owner=0 --group=0 \
            --numeric-owner -cf - "$name" | gzip -n -9 >"$out/$name.tar.gz" ;;
    esac
}

# set_c_library TARGET: sets name, package and version of the statically linked C library; the name
# is empty if the system's library is used.
set_c_library() {
    case $1 in
    linux-x86_64) c_library=glibc c_package=libc6-dev ;;
    linux-aarch64) c_library=glibc c_package=libc6-dev-arm64-cross ;;
    windows-*) c_library=mingw-w64 c_package=mingw-w64-x86-64-dev ;;
    *) c_library=; return 0 ;;
    esac
    c_version=$(dpkg-query -W -f '${Version}' $c_package)
}

# third_party TARGET: writes the licences of the linked libraries.
third_party() {
    prefix="$build_cache/prefix/$1"
    echo "tern contains parts of the following libraries."
    for library in hwloc utf8proc jansson xxhash; do
        library_version=$(sed -n "s/^$library \([^ ]*\) .*/\1/p" "$prefix/sources.txt")
        printf '\n==== %s %s\n\n' "$library" "$library_version"
        cat "$prefix/licences/$library"
    done
    set_c_library "$1"
    [ -n "$c_library" ] || return 0
    printf '\n==== %s, Debian package %s %s\n\n' "$c_library" $c_package "$c_version"
    cat /usr/share/doc/$c_package/copyright
    [ $c_library != glibc ] || { echo; cat /usr/share/common-licenses/LGPL-2.1; }
}

# c_libraries: writes a line for each archive that contains a C library, for the SBOM.
c_libraries() {
    for target in $targets; do
        set_c_library "$target"
        [ -z "$c_library" ] || echo "$target $c_library $c_version"
    done
}

build_deb() {
    say "Debian package"
    need_packages $build_packages dpkg-dev file
    quietly cmake -S . -B build/release-deb -G Ninja -DCMAKE_BUILD_TYPE=Release \
        -DCMAKE_INSTALL_PREFIX=/usr -DTERN_TESTS=OFF -DTERN_BENCH=OFF
    quietly cmake --build build/release-deb --target all demo_model
    # The other libraries are separate packages; xxhash is a header.
    { echo "tern contains parts of the following library."
      printf '\n==== xxhash %s\n\n' "$(dpkg-query -W -f '${Version}' libxxhash-dev)"
      cat /usr/share/doc/libxxhash-dev/copyright
    } >build/release-deb/THIRD_PARTY_LICENSES
    (cd build/release-deb && quietly cpack -G DEB)
    cp build/release-deb/tern_*.deb "$out/"
}

need_packages git zip python3
if [ -n "$sources" ]; then
    sources=$(cd "$sources" && pwd)
    set -- --sources "$sources"
else
    set --
fi
# The demo model has the same bytes on every system; the native command converts it.
case " $targets " in *" linux-x86_64 "*) ;; *) "$here/build-deps.sh" "$@" linux-x86_64 ;; esac
for target in $targets; do
    [ "$target" = deb ] || "$here/build-deps.sh" "$@" "$target"
done
build_command linux-x86_64
quietly cmake --build build/release-linux-x86_64 --target demo_model
for target in $targets; do
    case $target in
    deb) build_deb ;;
    linux-x86_64) pack "$target" ;;
    *) build_command "$target"; pack "$target" ;;
    esac
done

if git rev-parse --verify -q HEAD >/dev/null 2>&1; then
    git archive --format=tar --prefix="tern-$version/" HEAD |
        gzip -n -9 >"$out/tern-$version.tar.gz"
fi
c_libraries >build/c_libraries.txt
python3 dist/make_sbom.py "$version" "$build_cache/prefix/linux-x86_64/sources.txt" \
    build/c_libraries.txt "$out" >"$out/tern-$version.spdx.json.new"
mv "$out/tern-$version.spdx.json.new" "$out/tern-$version.spdx.json"
if [ -n "$url" ]; then
    templates=homebrew/tern.rb
    if [ -e "$out/tern-$version-windows-x86_64.zip" ]; then
        templates="$templates winget/tern.yaml winget/tern.installer.yaml"
        templates="$templates winget/tern.locale.en-US.yaml"
    fi
    for template in $templates; do
        fill "dist/packaging/$template.in" >"$out/$(basename "$template")"
    done
fi
(cd "$out" && sha256sum -- * >SHA256SUMS)
say "release files in $out"
cat "$out/SHA256SUMS"
