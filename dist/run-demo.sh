#!/bin/sh
# SPDX-License-Identifier: MIT
#
# run-demo.sh: from a fresh clone to a first story.  Installs missing packages (apt), builds the
# release preset, converts the demo model and runs it twice, as raw text and in chat mode.
set -eu
cd "$(dirname "$0")/.."
. dist/lib.sh

need_packages $build_packages
need_tools
say "building"
# Tests and benchmarks are off; run-tests.sh turns them on again.
[ -e build/release/build.ninja ] ||
    quietly cmake --preset release -DTERN_TESTS=OFF -DTERN_BENCH=OFF || die "cmake failed"
quietly cmake --build build/release --target tern_cmd || die "the build failed"
say "converting the demo model"
build/release/tern convert dist/demo -o build/release/demo.tern

say "raw: a continuation of \"Once upon a time\" at temperature 0.9"
build/release/tern run --raw -p "Once upon a time" --temp 0.9 --seed 1 -n 128 --stats
say "chat: an answer to \"Tell me a story.\" at temperature 0.9"
build/release/tern run --chat -p "Tell me a story." --temp 0.9 --seed 2 --stats

cat <<'END'

These tales are invented. With --greedy or a low temperature the demo model recites the fairy tales
that it was trained on, some of them word for word.

Three commands to try next:
  build/release/tern chat
  build/release/tern run --raw -p "The king had three daughters" --temp 0.9
  build/release/tern info
END
