#!/bin/sh
# SPDX-License-Identifier: MIT
#
# check-reproducible.sh [TARGET...]: builds the committed state twice in different folders, the
# second time with freshly built libraries, and compares every byte of the archives and the package.
set -eu
cd "$(dirname "$0")/.."
. dist/lib.sh
. dist/targets.sh
targets=${*:-linux-x86_64 linux-aarch64 windows-x86_64 deb}

scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
git clone -q . "$scratch/one"
git clone -q . "$scratch/a longer name"
# shellcheck disable=SC2086
"$scratch/one/dist/build-release.sh" $targets >/dev/null
# shellcheck disable=SC2086
TERN_BUILD_CACHE="$scratch/cache" "$scratch/a longer name/dist/build-release.sh" \
    --sources "$build_cache/sources" $targets >/dev/null
diff "$scratch/one/build/dist/SHA256SUMS" "$scratch/a longer name/build/dist/SHA256SUMS" ||
    die "two builds of the same commit differ"
echo "reproducible: $targets"
