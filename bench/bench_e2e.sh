#!/bin/sh
# SPDX-License-Identifier: MIT
#
# bench_e2e.sh MODEL [TERN_BENCH_OPTIONS...]: measures end to end: opening cold and warm,
# prefill of 1 to 512 tokens, decoding at depths 0 to 4000, peak memory, page faults, and a hash of
# the tokens.  Takes minutes with a large model; run it on an idle machine.
set -eu
tern="${TERN:-$(dirname "$0")/../build/release/tern}"
model=$1; shift
exec "$tern" bench "$model" --prompt 128,1,8,32,512 --depths 0,512,2048,4000 --new 64 \
    --repeat 5 "$@"
