#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-fresh.sh [SUITE...]: checks that the README's two commands work on a fresh Debian.  For each
# suite (default: bookworm trixie, which are Debian 12 and 13) debootstrap creates a minimal system
# in a folder; a clone of HEAD is copied into it (and ../shared if it exists); then dist/run-demo.sh
# and dist/run-tests.sh run there and must succeed.  Prints the time and disk use of each step; the
# output of each suite is kept in build/fresh-SUITE.log.
#
# Packages come from the Debian mirrors and proxy of this machine's apt configuration.
#
# The script's child runs in separate mount and pid namespaces, which end with it, so no mount and
# no process remains.  The new system also has a separate /dev.  So the folder that is deleted at
# the end never contains a mount of this machine.  Needs root (or sudo) and 6 GB.
set -eu
here=$(cd "$(dirname "$0")" && pwd)
. "$here/lib.sh"
project=$(cd "$here/.." && pwd)

# make_dev ROOT: creates a /dev with the few devices that programs expect, without bind mounts.
make_dev() {
    mount -t tmpfs -o mode=755 fresh-dev "$1/dev"
    while read -r name mode major minor; do
        mknod -m "$mode" "$1/dev/$name" c "$major" "$minor"
    done <<END
null 666 1 3
zero 666 1 5
full 666 1 7
random 666 1 8
urandom 666 1 9
tty 666 5 0
END
    mkdir "$1/dev/pts" "$1/dev/shm"
    mount -t devpts -o newinstance,ptmxmode=666,mode=620 fresh-pts "$1/dev/pts"
    mount -t tmpfs -o mode=1777 fresh-shm "$1/dev/shm"
    ln -s pts/ptmx "$1/dev/ptmx"
    ln -s /proc/self/fd "$1/dev/fd"
    ln -s fd/0 "$1/dev/stdin"
    ln -s fd/1 "$1/dev/stdout"
    ln -s fd/2 "$1/dev/stderr"
}

# step ROOT COMMAND...: runs it in the new system with a clean environment; prints time and disk
# use.
step() {
    root=$1; shift
    begin=$(date +%s)
    say "$*"
    status=0
    chroot "$root" env -i HOME=/root PATH=/usr/sbin:/usr/bin:/sbin:/bin LC_ALL=C.UTF-8 \
        ${http_proxy:+http_proxy="$http_proxy"} ${https_proxy:+https_proxy="$https_proxy"} \
        sh -c 'cd /srv/tern && "$@"' sh "$@" </dev/null || status=$?
    printf '%s: exit code %d, %d s, %d MB on disk\n' "$*" $status \
        $(($(date +%s) - begin)) "$(du -sxm "$root" | cut -f 1)" >>"$root/srv/times"
    return $status
}

# The child in its namespaces; ROOT is the new system.
if [ "${1:-}" = --inside ]; then
    root=$2
    make_dev "$root"
    mount -t proc fresh-proc "$root/proc"
    mount -t sysfs -o ro fresh-sys "$root/sys"
    step "$root" dist/run-demo.sh
    step "$root" dist/run-tests.sh
    exit 0
fi

# mirrors LABEL: lists the addresses of this machine's apt configuration with that label.
mirrors() {
    apt-get indextargets --format '$(ORIGIN)|$(LABEL)|$(REPO_URI)' 'Created-By: Packages' |
        sed -n "s/^Debian|$1|//p" | sort -u
}

# configure_apt ROOT SUITE: copies this machine's mirrors and proxy.
configure_apt() {
    mirrors Debian | while read -r uri; do
        echo "deb $uri $2 main"
        echo "deb $uri $2-updates main"
    done >"$scratch/sources.list"
    mirrors Debian-Security | while read -r uri; do echo "deb $uri $2-security main"; done \
        >>"$scratch/sources.list"
    apt-config dump Acquire::http Acquire::https Acquire::Check-Valid-Until Acquire::Check-Date \
        >"$scratch/apt.conf"
    as_root cp "$scratch/sources.list" "$1/etc/apt/sources.list"
    as_root cp "$scratch/apt.conf" "$1/etc/apt/apt.conf.d/90machine"
    as_root cp /etc/resolv.conf /etc/hosts "$1/etc/"
}

# check SUITE: returns 0 if both commands succeed there.
check() {
    root="$scratch/$1"
    begin=$(date +%s)
    as_root debootstrap --variant=minbase "$1" "$root" "$(mirrors Debian | head -n 1)"
    configure_apt "$root" "$1"
    as_root cp -R "$scratch/tern" "$root/srv/tern"
    [ ! -d "$project/../shared" ] || as_root cp -RL "$project/../shared" "$root/srv/shared"
    megabytes=$(as_root du -sxm "$root" | cut -f 1)
    echo "$1: a fresh system: $(($(date +%s) - begin)) s, $megabytes MB" >>"$results"
    status=0
    as_root unshare --mount --pid --fork --kill-child --propagation private \
        sh "$here/check-fresh.sh" --inside "$root" || status=$?
    sed "s/^/$1: /" "$root/srv/times" >>"$results"
    as_root rm -rf --one-file-system "$root"
    return $status
}

case ${1:-} in
-h | --help) sed -n '4,16s/^# \{0,1\}//p' "$0"; exit 0 ;;
-*) die "unknown option $1" ;;
esac
need_packages debootstrap git util-linux
[ -n "$(mirrors Debian)" ] || die "apt of this machine names no Debian mirror"
mkdir -p "$project/build"
scratch=$(mktemp -d "$project/build/fresh.XXXXXX")
results="$scratch/results"
trap 'as_root rm -rf --one-file-system "$scratch"' EXIT
trap 'exit 130' HUP INT TERM
git clone -q "$project" "$scratch/tern"

failed=
for suite in ${*:-bookworm trixie}; do
    say "a fresh $suite"
    log="$project/build/fresh-$suite.log"
    logged "$log" check "$suite"
    if [ $status -eq 0 ]; then
        echo "$suite: ok" >>"$results"
    else
        echo "$suite: FAILED, see build/fresh-$suite.log" >>"$results"
        failed="$failed $suite"
        tail -n 40 "$log" >&2
    fi
done
cat "$results"
[ -z "$failed" ] || die "the README's commands fail on a fresh$failed"
