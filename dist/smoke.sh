#!/bin/sh
# SPDX-License-Identifier: MIT
#
# smoke.sh COMMAND...: checks that this build of tern (perhaps under an emulator: `smoke.sh wine64
# tern.exe`) converts the demo model, reads its own file, and writes the expected story and greedy
# tokens, which are the same on every machine.  tests/data/story has the expected output.
set -eu
root=$(cd "$(dirname "$0")/.." && pwd)
. "$root/dist/lib.sh"
expected="$root/tests/data/story"
[ $# -gt 0 ] || die "usage: smoke.sh COMMAND..."

# A path with blanks and non-Latin letters, which often fails on Windows.
scratch=$(mktemp -d)
trap 'rm -rf "$scratch"' EXIT
folder="$scratch/два слова ツ"
mkdir "$folder"
model="$folder/demo.tern"
unset TERN_MODEL

"$@" --version >"$scratch/version" || die "$*: --version failed"
grep -q '^tern [0-9]' "$scratch/version" || die "$*: odd version line: $(cat "$scratch/version")"
"$@" convert "$root/dist/demo" -o "$model" 2>"$scratch/log" || {
    cat "$scratch/log" >&2
    die "$*: convert failed"
}
"$@" verify "$model" >"$scratch/log" 2>&1 || { cat "$scratch/log" >&2; die "$*: verify failed"; }

# same NAME ARGUMENTS...: the output must equal the expected file.
same() {
    name=$1; shift
    "$@" >"$scratch/$name" 2>"$scratch/log" || { cat "$scratch/log" >&2; die "$* failed"; }
    cmp "$scratch/$name" "$expected/$name" || {
        head -c 2000 "$scratch/$name" >&2
        die "$*: the output is not $expected/$name"
    }
}
same sampled.txt "$@" run "$model" --raw -p "Once upon a time" --seed 1 -n 128 --ctx 512
same greedy.txt "$@" run "$model" --raw -p "Once upon a time" --greedy -n 64 --ctx 512
same chat.txt "$@" run "$model" --chat -p "Tell me a story about a fox." --greedy -n 200 \
    --ctx 512
echo "smoke: $* writes the expected bytes"
