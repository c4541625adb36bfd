# SPDX-License-Identifier: MIT
#
# Sections of acceptance.sh (which reads this file) that compare whole models with the memory
# stream, the kernels in the cache, and other programs: stream, hybrids, dense.
#
# Other programs are named by the environment, and run on the same GGUF file in turn with tern:
#   TERN_LLAMA_BENCH  llama-bench of mainline llama.cpp
#   TERN_IK_BENCH     llama-bench of ik_llama.cpp
#   TERN_IK_QUANTIZE  its llama-quantize, which makes IQ2_BN of the 27B from Q8_0
# Without them their rows say "not measured".
#
# The 27B is measured on 16 of its 64 layers ($TERN_ACCEPT_LAYERS), the 35B on 10 of 40.

# say_machine: the first rows of each section.
say_machine() {
    "$tern" probe --json >"$work/probe.json" 2>/dev/null
    row "processor" - "$(field "$work/probe.json" "d['cpu']['name']")" -
}

# is_intel: by the name of the processor in probe.json.
is_intel() { field "$work/probe.json" "d['cpu']['name']" | grep -qi intel; }

# share_row WHAT NAME THREADS GOAL: share of the stream, and of each region of a token that reads
# memory.
share_row() {
    least "$1: decode, of the stream" "$4" % "$(
        calc "round($(pick "$2" "$3" decode_bytes_per_token) * \
            $(pick "$2" "$3" decode_best_tok_s) / $(stream "$2" "$3") / 1e7)")"
    row "$1: parts of a token, of the stream" - "$(field "$work/$2.json" "', '.join(
        f'{k} {round(100 * v)} %' for r in d['runs'] if r['threads'] == $3 and r['prefill_tok_s']
        for k, v in r['region_share'].items() if v)")" -
}

section_stream() {
    big_model big-real --packed --density 0.25
    say_machine
    for level in $(levels_of); do
        goal=85
        is_intel && goal=80
        [ "$level" = avx2 ] && goal=72
        bench big-real --threads 1,2 --depths 128 --kv q8 --cpu "$level"
        for threads in 1 2; do
            what="big-real, $level, $threads threads"
            row "$what: memory stream" - "$(stream big-real $threads) GB/s" -
            row "$what: decode" - \
                "$(calc "round($(pick big-real $threads decode_best_tok_s), 1)") tok/s" -
            share_row "$what" big-real $threads $goal
        done
    done
    family_model bonsai-4b
    for inputs in 16 8; do
        bench bonsai-4b --threads 1,2 --depths 128 --inputs $inputs
        for threads in 1 2; do
            share_row "bonsai-4b, inputs $inputs, $threads threads" bonsai-4b $threads 80
        done
        [ $inputs = 16 ] && sixteen=$(pick bonsai-4b 1 decode_best_tok_s)
    done
    least "bonsai-4b: decode with 8 bits by 16, 1 thread" 1 x \
        "$(calc "round($(pick bonsai-4b 1 decode_best_tok_s) / $sixteen, 2)")"
}

# random_model NAME SIZE OPTIONS...: makes the GGUF file, which other programs read, and its model.
random_model() {
    name=$1 size=$2; shift 2
    [ -e "$work/$name.gguf" ] ||
        numpy_python bench/make_gguf.py "$work/$name.gguf" --size "$size" "$@" 2>"$work/error" ||
        { rm -f "$work/$name.gguf"; echo "no $name: $(tail -n 1 "$work/error")" >&2; }
    [ -e "$work/$name.tern" ] ||
        "$tern" convert "$work/$name.gguf" -o "$work/$name.tern" --no-tokenizer >/dev/null 2>&1
    sync
}

# peer PROGRAM NAME THREADS OPTIONS...: its tok/s on the GGUF file, "nan" without the program or the
# file.
peer() {
    program=$1 name=$2 n=$3; shift 3
    if [ ! -x "$program" ] || [ ! -e "$work/$name.gguf" ]; then echo nan; return; fi
    "$program" -m "$work/$name.gguf" -t "$n" -r 1 -o json "$@" >"$work/peer.json" 2>"$work/error"
    field "$work/peer.json" "round(d[0]['avg_ts'], 2)"
}
# beside WHAT PROGRAM_NAME GOAL OURS THEIRS
beside() {
    case $5 in
    nan) row "$1: by $2" ">= $3 x" "no program" "not measured" ;;
    *) least "$1: by $2, $5 tok/s" "$3" x "$(calc "round($4 / $5, 2)")" ;;
    esac
}

# beside_peers NAME THREADS MAINLINE_DECODE IK_DECODE MAINLINE_PREFILL IK_PREFILL: goals, "-" where
# a program does not have the model.
beside_peers() {
    what="$1, $2 threads"
    decode=$(pick "$1" "$2" decode_best_tok_s) prefill=$(pick "$1" "$2" prefill_best_tok_s)
    [ "$3" = - ] || beside "$what: decode" mainline "$3" "$decode" \
        "$(peer "${TERN_LLAMA_BENCH:-}" "$1" "$2" -p 0 -n 16)"
    [ "$4" = - ] || beside "$what: decode" ik_llama.cpp "$4" "$decode" \
        "$(peer "${TERN_IK_BENCH:-}" "$1" "$2" -p 0 -n 16 -rtr 1)"
    [ "$5" = - ] || beside "$what: prefill of 128" mainline "$5" "$prefill" \
        "$(peer "${TERN_LLAMA_BENCH:-}" "$1" "$2" -p 128 -n 0)"
    [ "$6" = - ] || beside "$what: prefill of 128" ik_llama.cpp "$6" "$prefill" \
        "$(peer "${TERN_IK_BENCH:-}" "$1" "$2" -p 128 -n 0 -rtr 1)"
}

# block_rate TYPE LEVEL: GB/s of a matrix in blocks in the cache, one thread, 8-bit inputs.
block_rate() {
    "$bench_kern" --only gemv_blocks_x8 --level "$2" |
        sed -nE "s/^gemv_blocks_x8 +$2 +$1 +cache .* ([0-9.]+) GB.*/\1/p" | head -n 1
}

# decode_rows NAME THREADS SHARE CACHE LEVEL: share of the minimum of the stream rate and CACHE
# GB/s, the rate of one thread's kernel in the cache.
decode_rows() {
    what="$1, $5, $2 threads"
    rate=$(stream "$1" "$2")
    cache=$4
    row "$what: memory stream, kernel in the cache" - "$rate, ${cache:-nan} GB/s" -
    decode=$(pick "$1" "$2" decode_best_tok_s)
    row "$what: decode" - "$(calc "round($decode, 2)") tok/s" -
    least "$what: decode, share of the possible rate" "$3" % "$(
        calc "round($decode * $(pick "$1" "$2" decode_bytes_per_token) / \
            min($rate, float('${cache:-nan}') * $2) / 1e7)")"
}

# planned_memory NAME: resident memory compared with the prediction of `tern probe`.
planned_memory() {
    planned=$("$tern" probe "$work/$1.tern" --json 2>/dev/null >"$work/plan.json" &&
        field "$work/plan.json" "d['plan']['memory']['total_bytes'] / 1e6")
    peak=$(field "$work/$1.json" "d['peak_rss_bytes'] / 1e6")
    judge "$1: memory at the peak by the plan" "<= 1.02 x" \
        "$(calc "round($peak / $planned, 3)") x" "$(calc "$peak / $planned") <= 1.02"
}

# together NAME GOAL [INPUTS]: the speed of four sequences relative to one.
together() {
    "$bench_sequences" "$work/$1.tern" 2 32 best ${3:-} >"$work/sequences.txt" 2>&1
    ratio=$(awk '$1 == 4 { print $3 }' "$work/sequences.txt")
    least "$1${3:+, inputs $3}, 2 threads: 4 sequences together" "$2" "x one" "${ratio:-nan}"
}

# ternary_27b: bonsai-27b in the type that mainline reads, and for ik_llama.cpp bonsai-27b-ik.
ternary_27b() {
    layers=${TERN_ACCEPT_LAYERS:-16}
    random_model bonsai-27b bonsai-27b --layers "$layers" --type tq2_0
    [ -x "${TERN_IK_QUANTIZE:-}" ] && [ ! -e "$work/bonsai-27b-ik.gguf" ] || return 0
    numpy_python bench/make_gguf.py "$work/q8_0.gguf" --size bonsai-27b --layers "$layers" \
        --type q8_0 2>"$work/error" &&
        "$TERN_IK_QUANTIZE" --allow-requantize --output-tensor-type iq2_bn \
            --token-embedding-type iq2_bn "$work/q8_0.gguf" "$work/bonsai-27b-ik.gguf" IQ2_BN 2 \
            >"$work/error" 2>&1 || rm -f "$work/bonsai-27b-ik.gguf"
    rm -f "$work/q8_0.gguf"
}

# prefill_rows NAME THREADS INPUTS GOAL: prompts of 128 and 512 beside ik_llama.cpp.
prefill_rows() {
    for prompt in 128 512; do
        "$tern" bench "$work/$1.tern" -p $prompt -n 1 -r 3 --threads "$2" --depths 128 \
            --inputs "$3" --json >"$work/prompt.json" 2>/dev/null
        ours=$(pick prompt "$2" prefill_best_tok_s)
        beside "$1, inputs $3, $2 threads: prefill of $prompt" ik_llama.cpp "$4" "$ours" \
            "$(peer "${TERN_IK_BENCH:-}" "$1-ik" "$2" -p $prompt -n 0 -rtr 1)"
    done
}

# small_rows NAME LEVEL: the layout of `--pack small` in the cache, where unpacking is followed by
# the product of T2, and from memory.
small_rows() {
    for form in x16 x8; do
        product=$(weights_rate "gemv_t2_$form" "$2") unpack=$(weights_rate unpack_t5 "$2")
        least "small layout in the cache, inputs ${form#x}" 70 "% of T2" \
            "$(calc "round(100 * $unpack / ($unpack + $product))")"
    done
    share=$(calc "round($(pick "$1" 2 decode_bytes_per_token) * $(pick "$1" 2 decode_best_tok_s) / \
        $(stream "$1" 2) / 1e7)")
    fast=$(pick "$1" 2 decode_best_tok_s)
    "$tern" convert "$work/$1.gguf" -o "$work/$1-small.tern" --no-tokenizer --pack small \
        >/dev/null 2>&1
    bench "$1-small" --threads 2 --depths 128
    ratio=$(calc "round($(pick "$1-small" 2 decode_best_tok_s) / $fast, 2)")
    rm -f "$work/$1-small.tern"
    what="small layout from memory, 2 threads (T2: $share % of the stream)"
    if [ "$(calc "$share >= 90")" = True ]; then least "$what" 1.1 "x T2" "$ratio"
    else row "$what" ">= 1.1 x T2" "$ratio x T2" "T2 is not bound by the stream"
    fi
}

# weights_rate OP LEVEL: 10^9 weights per second of a kernel in the cache, one thread.
weights_rate() {
    "$bench_kern" --only "$1" --level "$2" |
        sed -nE "s/^$1 +$2 +cache .* ([0-9.]+) Gw.*/\1/p" | head -n 1
}

section_hybrids() {
    passes "hybrids and experts: goldens" golden_hybrids
    passes "the same bits at every cut, level and thread count" test_gated_delta
    say_machine
    level=$(levels_of | head -n 1)
    rate_t2=$(cache_rate gemv_t2_x16 "$level")
    ternary_27b
    bench bonsai-27b --threads 1,2 --depths 128
    for threads in 1 2; do
        decode_rows bonsai-27b $threads 75 "$rate_t2" "$level"
        beside_peers bonsai-27b $threads 1.8 - - -
        beside "bonsai-27b, $threads threads: decode" ik_llama.cpp 2.5 \
            "$(pick bonsai-27b $threads decode_best_tok_s)" \
            "$(peer "${TERN_IK_BENCH:-}" bonsai-27b-ik $threads -p 0 -n 16 -rtr 1)"
        prefill_rows bonsai-27b $threads 16 1.0
        prefill_rows bonsai-27b $threads 8 1.3
    done
    planned_memory bonsai-27b
    together bonsai-27b 2.0
    together bonsai-27b 2.0 8
    small_rows bonsai-27b "$level"
    random_model maple maple
    bench maple --threads 1,2 --depths 128
    for threads in 1 2; do
        decode_rows maple $threads 65 "$rate_t2" "$level"
        beside_peers maple $threads 1.8 - 1.5 -
    done
    planned_memory maple
    together maple 1.6
}

# dense_prefill NAME THREADS GOAL LEVEL: share of the int8 peak, with 8-bit inputs.
dense_prefill() {
    weights=$(field "$work/info.json" "d['n_params'] - d['hidden'] * d['vocab']")
    least "$1, $4, $2 threads: prefill of 128, of the int8 peak" "$3" % "$(
        calc "round($(pick "$1" "$2" prefill_best_tok_s) * $weights / \
            ($(instruction_peak "$4") * $2 * 1e7))")"
}

# draft_head NAME THREADS LEVEL: decoding with drafts of the model's head, of which every fifth
# position is wrong, relative to decoding without.
draft_head() {
    what="$1, $3, $2 threads: draft head, 4 of 5 positions right"
    bench "$1" --threads "$2" --depths 0 --cpu "$3" --draft 3 --draft-wrong 5
    if [ "$3" = avx512 ]; then least "$what" 1.4 x "$(draft_ratio "$1")"
    else row "$what" - "$(draft_ratio "$1") x" -
    fi
}

section_dense() {
    passes "dense models, folders and GGUF files: goldens" golden_families
    passes "blocks: known answers" test_blocks
    say_machine
    for size in qwen3-4b llama-3b; do
        for type in q4_k_m:Q4_K:60 q6_k:Q6_K:45 q8_0:Q8_0:60; do
            kind=${type%%:*} block=${type#*:} goal=${type##*:}
            name=$size-$kind
            random_model "$name" $size --type "$kind"
            "$tern" info "$work/$name.tern" --json >"$work/info.json" 2>/dev/null
            for level in $(levels_of); do
                bench "$name" --threads 1,2 --depths 128 --inputs 8 --cpu "$level"
                cache=$(block_rate "${block%:*}" "$level")
                for threads in 1 2; do
                    decode_rows "$name" $threads 75 "$cache" "$level"
                    dense_prefill "$name" $threads "$goal" "$level"
                done
            done
            bench "$name" --threads 1,2 --depths 128 --inputs 8
            for threads in 1 2; do beside_peers "$name" $threads 1.3 1.0 1.2 1.0; done
            planned_memory "$name"
            together "$name" 1.8
            rm -f "$work/$name.gguf" "$work/$name.tern"
        done
    done
    random_model qwen35-4b qwen35-4b --draft-head
    for level in $(levels_of); do
        for threads in 1 2; do draft_head qwen35-4b $threads "$level"; done
    done
    rm -f "$work/qwen35-4b.gguf" "$work/qwen35-4b.tern"
    random_model qwen35-35b qwen35-35b --layers 10
    bench qwen35-35b --threads 1,2 --depths 128 --inputs 8
    for threads in 1 2; do
        share_row "qwen35-35b, $threads threads" qwen35-35b $threads 72
        beside_peers qwen35-35b $threads - 1.0 1.2 -
    done
}
