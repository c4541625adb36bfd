# SPDX-License-Identifier: MIT
#
# Shell functions shared by the scripts of dist/ (POSIX sh; source it, do not run it).

say() { printf '\n== %s\n' "$*" >&2; }
die() { printf 'error: %s\n' "$*" >&2; exit 1; }

# has COMMAND: does this program exist?
has() { command -v "$1" >/dev/null 2>&1; }

# cpus: number of parallel build jobs.
cpus() { nproc 2>/dev/null || getconf _NPROCESSORS_ONLN 2>/dev/null || echo 2; }

# as_root COMMAND...: runs it as root, with sudo if necessary.
as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"
    elif has sudo; then sudo "$@"
    else die "this needs root: $*"
    fi
}

# missing_packages PACKAGE...: lists those that are not installed.
missing_packages() {
    for package in "$@"; do
        dpkg-query -W -f='${Status}\n' "$package" 2>/dev/null | grep -q 'ok installed' ||
            printf '%s ' "$package"
    done
}

# need_packages PACKAGE...: installs missing packages with apt; without apt, lists them.
need_packages() {
    if ! has apt-get || ! has dpkg-query; then
        say "no apt here; these must be installed (Debian's names): $*"
        return 0
    fi
    missing=$(missing_packages "$@")
    [ -n "$missing" ] || return 0
    say "installing $missing"
    as_root apt-get update -qq
    # shellcheck disable=SC2086
    as_root env DEBIAN_FRONTEND=noninteractive \
        apt-get install -y -qq --no-install-recommends $missing >&2 ||
        die "apt could not install: $missing"
}

# Packages for building tern, and for its tests.
build_packages="gcc libc6-dev cmake ninja-build pkg-config
    libhwloc-dev libutf8proc-dev libjansson-dev libxxhash-dev"
test_packages="$build_packages g++ libcmocka-dev python3 python3-jinja2 python3-numpy clang strace
    curl openssl"

# need_clang_runtime: installs the runtime of -fsanitize=fuzzer.  In Debian it is a separate
# package, whose name contains clang's version.
need_clang_runtime() {
    probe=$(mktemp -d)
    echo 'int LLVMFuzzerTestOneInput(const char *d, unsigned long n) { return d && n ? 0 : 0; }' \
        >"$probe/probe.c"
    links=0
    clang -fsanitize=fuzzer,address,undefined "$probe/probe.c" -o "$probe/probe" \
        >"$probe/log" 2>&1 || links=$?
    rm -rf "$probe"
    [ $links -eq 0 ] || need_packages "libclang-rt-$(clang -dumpversion | cut -d. -f1)-dev"
}

# need_tools MODULES...: exits with the names of missing tools and modules.
need_tools() {
    missing=
    for tool in cmake ninja pkg-config cc; do
        has "$tool" || missing="$missing $tool"
    done
    if has pkg-config; then
        for module in hwloc libutf8proc jansson libxxhash "$@"; do
            pkg-config --exists "$module" || missing="$missing $module"
        done
    fi
    [ -z "$missing" ] || die "missing:$missing
  Fedora:   dnf install gcc cmake ninja-build pkgconf-pkg-config hwloc-devel \\
                utf8proc-devel jansson-devel xxhash-devel libcmocka-devel
  Arch:     pacman -S base-devel cmake ninja hwloc libutf8proc jansson xxhash cmocka
  openSUSE: zypper install gcc cmake ninja pkgconf hwloc-devel \\
                utf8proc-devel libjansson-devel xxhash-devel libcmocka-devel
  macOS:    brew install cmake ninja pkgconf hwloc utf8proc jansson xxhash cmocka"
}

# quietly COMMAND...: shows the output only if it fails.
quietly() {
    log=$(mktemp)
    status=0
    "$@" >"$log" 2>&1 || status=$?
    [ $status -eq 0 ] || tail -n 60 "$log" >&2
    rm -f "$log"
    return $status
}

# logged FILE COMMAND...: runs it, also a function, in a subshell that ends with its first failure;
# FILE has the output, $status the exit code.  Not for conditions: there the shell ignores -e.
logged() {
    set +e
    (file=$1; shift; set -e; "$@" >"$file" 2>&1)
    status=$?
    set -e
}

# build_preset PRESET BUILD_OPTIONS...: configures and builds in build/PRESET.
build_preset() {
    preset=$1; shift
    quietly cmake --preset "$preset" || die "cmake --preset $preset failed"
    quietly cmake --build "build/$preset" "$@" || die "the build of preset $preset failed"
}
