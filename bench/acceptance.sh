#!/bin/sh
# SPDX-License-Identifier: MIT
#
# acceptance.sh [SECTION...]: measure the project's goals and print, line by line, the goal, the
# measurement, and whether the goal is met.  It always exits 0.
#
#   build  correct  convert  open  memory  kernels  speed  sequences  server  families
#   stream  hybrids  dense                                                  (default: all)
#
# Needs a release build with benchmarks (cmake --preset release && cmake --build build/release; else
# $TERN names the command) and the reference data in ../shared.  The sections convert, open, memory,
# speed, sequences and server use models with the dimensions of BitNet 2B-4T, which are generated
# first: about 9 GB in $TERN_ACCEPT_DIR (default: build/acceptance).  The sections families, hybrids
# and dense make others, of up to 16 GB each.
# Run it on an idle machine; speeds are printed with the memory stream rate of the same run.
set -u
cd "$(dirname "$0")/.."
root=$PWD
tern="${TERN:-$root/build/release/tern}"
bench_kern="$(dirname "$tern")/bin/bench_kern"
bench_sequences="$(dirname "$tern")/bin/bench_sequences"
shared="${TERN_SHARED_DIR:-$root/../shared}"
demo="$shared/reference/models/demo"
work="${TERN_ACCEPT_DIR:-$root/build/acceptance}"
mkdir -p "$work"
synthetic="$shared/reference/tools/make_synthetic.py"
llama3="$shared/reference/tokenizers/llama3"

# row WHAT GOAL MEASURED VERDICT
row() { printf '%-52s %-16s %-20s %s\n' "$1" "$2" "$3" "$4"; }
# most WHAT LIMIT UNIT VALUE / least ...: met when VALUE is at most / at least LIMIT.
most() { judge "$1" "<= $2 $3" "$4 $3" "$4 <= $2"; }
least() { judge "$1" ">= $2 $3" "$4 $3" "$4 >= $2"; }
judge() { row "$1" "$2" "$3" "$(calc "'met' if $4 else 'NOT MET'")"; }
yes() { # WHAT COMMAND...
    what=$1; shift
    if "$@" >/dev/null 2>"$work/error"; then row "$what" yes yes met
    else row "$what" yes no "NOT MET: $(head -c 100 "$work/error" | head -n 1)"
    fi
}
calc() { python3 -c "print($1)" 2>/dev/null || echo "not measured"; }
# numpy_python ARGUMENT...: the first Python that has numpy; Debian's package serves only its own.
numpy_python() {
    if python3 -c 'import numpy' 2>/dev/null; then python3 "$@"; else /usr/bin/python3 "$@"; fi
}
# field FILE EXPRESSION: a value from a JSON file, d being the whole.
field() { python3 -c "import json; d = json.load(open('$1')); print($2)" 2>/dev/null || echo nan; }
now() { date +%s.%N; }
# seconds COMMAND...: its duration; "nan" if it fails.
seconds() {
    begin=$(now)
    if "$@" >"$work/out" 2>"$work/error"; then calc "round($(now) - $begin, 3)"; else echo nan; fi
}
# best_of N COMMAND...: the shortest time.
best_of() {
    runs=$1; shift
    times=
    for _ in $(seq "$runs"); do times="$times $(seconds "$@"),"; done
    calc "min([$(echo "$times" | sed 's/nan/float(\"nan\")/g')])"
}
# peak_mb COMMAND...: peak resident memory of the process in 10^6 bytes, file mappings counted.
peak_mb() { python3 - "$@" <<'END'
import resource, subprocess, sys
result = subprocess.run(sys.argv[1:], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
peak = resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss * 1024 / 1e6
print(round(peak, 1) if result.returncode == 0 else "nan")
END
}

section_build() {
    folder="$work/build"
    rm -rf "$folder"
    cmake -S . -B "$folder" -G Ninja >/dev/null 2>&1
    most "full build, with tests and benchmarks" 60 s "$(seconds cmake --build "$folder")"
    touch src/model/forward.c
    most "build after a change of one file" 5 s "$(seconds cmake --build "$folder")"
}

# golden_difference MODEL_DIR MODEL: the largest difference to the golden logits, the number of
# equal greedy continuations, and their total.
golden_difference() { python3 - "$tern" "$1" "$2" "$work" <<'END'
import array, json, subprocess, sys
tern, folder, model, work = sys.argv[1:5]
golden = json.load(open(f"{folder}/golden/ids.json"))
worst, same = 0.0, 0
for i, (ids, greedy) in enumerate(zip(golden["prompt_ids"], golden["greedy"])):
    out = subprocess.run([tern, "logits", model, "--ids", " ".join(map(str, ids)), "--kv", "f32",
                          "-o", f"{work}/l.f32", "--greedy", str(len(greedy))], check=True,
                         text=True, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    got, want = array.array("f"), array.array("f")
    got.frombytes(open(f"{work}/l.f32", "rb").read())
    want.frombytes(open(f"{folder}/golden/logits_{i}.f32", "rb").read())
    if len(got) != len(want):
        sys.exit("sizes differ")
    worst = max(worst, max(abs(a - b) for a, b in zip(got, want)))
    same += out.split() == [str(g) for g in greedy]
print(f"{worst:.2e} {same} {len(golden['greedy'])}")
END
}

section_correct() {
    for name in demo tiny-bitnet-bf16 tiny-bitnet-packed; do
        model="$work/$name.tern"
        "$tern" convert "$shared/reference/models/$name" -o "$model" --head bf16 >/dev/null 2>&1
        set -- $(golden_difference "$shared/reference/models/$name" "$model" || echo nan 0 1)
        most "$name: logits against the float64 reference" 1e-4 "" "$1"
        judge "$name: greedy continuations equal" "all" "$2 of $3" "$2 == $3"
    done
    ids=$(seq -s ' ' 1 40)
    "$tern" logits "$work/demo.tern" --ids "$ids" -o "$work/a.f32" >/dev/null 2>&1
    for options in "--cpu ref" "--cpu avx2" "--threads 1" "--threads 2" "--threads 3" \
        "--threads 7" "--batch 1" "--batch 2" "--batch 17" "--batch 64"; do
        # shellcheck disable=SC2086
        "$tern" logits "$work/demo.tern" --ids "$ids" $options -o "$work/b.f32" >/dev/null 2>&1
        yes "same logits with $options" cmp "$work/a.f32" "$work/b.f32"
    done
    "$tern" perplexity "$work/demo.tern" "$demo/golden/perplexity.txt" --ctx 512 --stride 256 \
        --json >"$work/bf16.json" 2>/dev/null
    for head in q8 q6 q4; do
        "$tern" convert dist/demo -o "$work/demo-$head.tern" --head $head >/dev/null 2>&1
        "$tern" perplexity "$work/demo-$head.tern" "$demo/golden/perplexity.txt" --ctx 512 \
            --stride 256 --json >"$work/$head.json" 2>/dev/null
    done
    bf16=$(field "$work/bf16.json" "d['nats_per_token']")
    golden=$(field "$demo/golden/perplexity.json" "d['nats_per_token']")
    most "perplexity against the reference" 0.002 nats "$(calc "round(abs($bf16 - $golden), 6)")"
    p16=$(field "$work/bf16.json" "d['perplexity']")
    for head in q8 q6 q4; do
        p=$(field "$work/$head.json" "d['perplexity']")
        cost=$(calc "round(100 * ($p / $p16 - 1), 4)")
        case $head in
        q8) most "perplexity cost of the q8 head" 0.1 % "$cost" ;;
        *) row "perplexity cost of the $head head" - "$cost %" - ;;
        esac
    done
    head -c 16777216 /dev/zero | tr '\0' a >"$work/long.txt"
    most "tokenize 16 MiB of one letter" 3 s \
        "$(seconds sh -c "'$tern' tokenize '$work/demo.tern' <'$work/long.txt'")"
}

demo_model() { "$tern" convert dist/demo -o "$work/demo-q8.tern" >/dev/null 2>&1; }

# big NAME OPTIONS...: makes and converts a model with real dimensions, once.
big_folder() {
    name=$1; shift
    [ -e "$work/$name/model.safetensors" ] ||
        numpy_python "$synthetic" "$work/$name" --tokenizer "$llama3" "$@" \
            >/dev/null 2>"$work/error" ||
        echo "no model $name: $(tail -n 1 "$work/error")" >&2
}
big_model() {
    name=$1; shift
    [ -e "$work/$name.tern" ] && return
    big_folder "$name" "$@"
    convert_big "$name"
}
convert_big() {
    "$tern" convert "$work/$1" -o "$work/$1.tern" >/dev/null 2>&1
    sync # pending writes would disturb the measurement
}
# big_dense: the weights of `big` with SiLU, which has no zeros: nothing can be skipped.
big_dense() {
    [ -e "$work/big-dense.tern" ] && return
    big_folder big --packed
    mkdir -p "$work/big-dense"
    ln -sf ../big/model.safetensors ../big/tokenizer.json ../big/tokenizer_config.json \
        "$work/big-dense"
    sed 's/"relu2"/"silu"/' "$work/big/config.json" >"$work/big-dense/config.json"
    convert_big big-dense
}

section_convert() {
    big_folder big-bf16
    cat "$work"/big-bf16/* >/dev/null 2>&1
    bytes=$(wc -c <"$work/big-bf16/model.safetensors")
    time=$(seconds taskset -c 0 "$tern" convert "$work/big-bf16" -o "$work/big-bf16.tern")
    least "convert 4.8 GB of bf16 from cache, one core" 300 MB/s \
        "$(calc "round($bytes / 1e6 / $time, 1)")"
    most "convert: peak memory" 128 MB \
        "$(peak_mb "$tern" convert "$work/big-bf16" -o "$work/big-bf16.tern")"
    row "size of the .tern file" - "$(calc "round($(wc -c <"$work/big-bf16.tern") / 1e6)") MB" -
}

section_open() {
    big_model big --packed
    cat "$work/big.tern" >/dev/null
    most "open with 128,256 tokens, warm (tern info)" 0.05 s \
        "$(best_of 5 "$tern" info "$work/big.tern")"
    most "open: anonymous memory (waiting tokenize)" 2 MB "$(waiting_anonymous_mb)"
    most "open to first token, warm" 0.3 s \
        "$(best_of 3 "$tern" run "$work/big.tern" --raw -p Once -n 1 -q)"
}

waiting_anonymous_mb() { python3 - "$tern" "$work/big.tern" <<'END'
import re, subprocess, sys, time
child = subprocess.Popen([sys.argv[1], "tokenize", sys.argv[2]], stdin=subprocess.PIPE,
                         stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
time.sleep(0.5)
status = open(f"/proc/{child.pid}/status").read()
child.communicate(b"")
print(round(int(re.search(r"RssAnon:\s+(\d+)", status).group(1)) / 1024, 2))
END
}

section_memory() {
    demo_model
    big_model big --packed
    python3 bench/memory.py "$tern" "$work/demo-q8.tern" 256 512 768 1024
    python3 bench/memory.py "$tern" "$work/big.tern"
    python3 -c "print(' '.join(str(i * 7919 % 128000) for i in range(4090)))" >"$work/ids.txt"
    "$tern" info "$work/big.tern" --json >"$work/info.json" 2>/dev/null
    per_token=$(field "$work/info.json" "d['kv_bytes_per_token']['q8']")
    for head in q8:1040 q6:958 q4:874; do
        model="$work/big-${head%:*}.tern"
        [ -e "$model" ] || { big_folder big --packed; "$tern" convert "$work/big" -o "$model" \
            --head "${head%:*}" >/dev/null 2>&1; }
        peak=$(peak_mb "$tern" logits "$model" --kv q8 --ids "$(cat "$work/ids.txt")" --greedy 6)
        most "peak memory, ${head%:*} head, q8 cache of 4096 filled" "${head#*:}" MB "$peak"
        most "  beside the file and the cache" 64 MB \
            "$(calc "round($peak - ($(wc -c <"$model") + 4096 * $per_token) / 1e6, 1)")"
    done
}

# share ROW: the lowest share of the peak among the matching lines of bench_kern.
share() {
    grep -E "^$1" "$work/kernels.txt" | sed -nE 's/.* ([0-9]+) % of .*/\1/p' | sort -n | head -n 1
}

# rate ROW: G multiply-adds/s in the matching line.
rate() { sed -nE "s/^$1 .* ([0-9.]+) G\/s .*/\1/p" "$work/kernels.txt" | head -n 1; }

section_kernels() {
    "$bench_kern" >"$work/kernels.txt" 2>&1
    most "parallel loop that two threads join" 2 us \
        "$(sed -nE 's/^parallel loop, 2 threads: ([0-9.]+) us.*/\1/p' "$work/kernels.txt")"
    best=ref
    ! grep -q "^gemm_t2_i8 *ssse3 " "$work/kernels.txt" || best=ssse3
    for isa in avx2 avxvnni avx512 neon dotprod i8mm; do
        grep -q "^gemm_t2_i8 *$isa " "$work/kernels.txt" || continue
        for layout in t2 r2 c2; do
            least "gemm, $layout, $isa, 64 to 512 tokens" 85 "% of the instruction" \
                "$(share "gemm_${layout}_i8 *$isa .* (64|128|512) tokens")"
        done
        best=$isa
    done
    case $best in avxvnni) best=avx2 ;; dotprod | i8mm) best=neon ;; esac # have no decode kernels
    for op in gemm_t2_i8 gemm_r2_i8 gemm_c2_i8 gemm_t2_x16; do
        grep -q "^$op *amx " "$work/kernels.txt" || continue
        amx=$(rate "$op *amx .* 128 tokens") avx512=$(rate "$op *avx512 .* 128 tokens")
        least "$op, amx beside avx512, 128 tokens" 1.5 x "$(calc "round($amx / $avx512, 2)")"
    done
    for op in attn_qk_q8 attn_pv_q8; do
        least "$op, $best, cache in memory" 80 "% of the stream" "$(share "$op *$best *memory")"
    done
    for op in gemv_t2_i8 gemv_r2_i8 gemv_c2_i8 dot_u5_i16 dot_u4_i16 dot_u2_i16 \
        dot_u1_i16; do
        row "$op, $best, from memory" - "$(share "$op *$best *memory") % of the stream" -
    done
}

section_speed() {
    demo_model
    "$tern" bench "$work/demo-q8.tern" --threads 1 -n 64 -r 5 --json >"$work/demo-bench.json" \
        2>/dev/null
    least "demo model: decode, 1 thread" 1500 tok/s "$(
        field "$work/demo-bench.json" "round(max(r['decode_best_tok_s'] or 0 for r in d['runs']))")"
    peak=$(instruction_peak)
    row "multiply-add instruction, 1 thread" - "$peak G/s" -
    speed_of big-real 60 52 90 --packed --density 0.25
    speed_of big 70 42 70 --packed
    level_of big-real avx2 30 55
    depth_of big-real 1.40
    depth_of big -
    big_dense
    depth_of big-dense 1.25
    for threads in 1 2; do share_of big-dense $threads 70; done
}

# bench NAME OPTIONS...: measures into NAME.json.  Best of 5 after a prompt of 128 tokens.
bench() {
    name=$1; shift
    "$tern" bench "$work/$name.tern" -p 128 -n 64 -r 5 --json "$@" >"$work/$name.json" 2>/dev/null
}
# pick NAME THREADS KEY: a value of the run after the prompt.
pick() {
    field "$work/$1.json" \
        "[r['$3'] for r in d['runs'] if r['threads'] == $2 and r['prefill_tok_s']][0]"
}
stream() { field "$work/$1.json" "round(d['stream_gb_s']['$2'], 1)"; }
# scaled GOAL STREAM_OF_GOAL STREAM: goals in tok/s shrink with the stream rate.
scaled() { calc "round($1 * min(1, $3 / $2), 1)"; }
# instruction_peak [LEVEL]: G multiply-adds/s of a level, else of the best but AMX.
instruction_peak() {
    "$bench_kern" "gemm_t2_i8${1:+_$1}" | grep -v ' amx ' |
        sed -nE 's/.*% of ([0-9]+) G multiply.*/\1/p' | sort -n | tail -n 1
}
# prefill_goal THREADS: the goal at the rate $peak.
prefill_goal() {
    [ "$1" = 1 ] && full=188 || full=375
    calc "$full if $peak >= 510 else round(0.36 * $1 * $peak)"
}
stream_goal() { [ "$1" = 1 ] && echo 40 || echo 62; }

# speed_of NAME SHARE DECODE_1 DECODE_2 MODEL_OPTIONS...
speed_of() {
    name=$1 share_goal=$2 goal_1=$3 goal_2=$4; shift 4
    big_model "$name" "$@"
    bench "$name" --threads 1,2 --depths 128
    for threads in 1 2; do
        [ $threads = 1 ] && goal=$goal_1 || goal=$goal_2
        rate=$(stream "$name" $threads)
        row "$name: memory stream, $threads threads" - "$rate GB/s" -
        decode=$(pick "$name" $threads decode_best_tok_s)
        least "$name: decode, $threads threads" \
            "$(scaled "$goal" "$(stream_goal $threads)" "$rate")" tok/s \
            "$(calc "round($decode, 1)")"
        share_of "$name" $threads "$share_goal"
        least "$name: prefill of 128 tokens, $threads threads" "$(prefill_goal $threads)" tok/s \
            "$(calc "round($(pick "$name" $threads prefill_best_tok_s), 1)")"
    done
}

# share_of NAME THREADS GOAL: the share of the stream rate, counting only needed bytes.
share_of() {
    least "$1: share of the stream rate, $2 threads" "$3" % "$(
        calc "round($(pick "$1" $2 decode_bytes_per_token) * $(pick "$1" $2 decode_best_tok_s) \
            / $(stream "$1" $2) / 1e7)")"
}

# level_of NAME LEVEL DECODE_1 DECODE_2
level_of() {
    bench "$1" --threads 1,2 --depths 128 --cpu "$2"
    for threads in 1 2; do
        [ $threads = 1 ] && goal=$3 || goal=$4
        least "$1: decode at level $2, $threads threads" \
            "$(scaled "$goal" "$(stream_goal $threads)" "$(stream "$1" $threads)")" tok/s \
            "$(calc "round($(pick "$1" $threads decode_best_tok_s), 1)")"
    done
}

# depth_of NAME RATIO: time of a token after 4000 others, relative to the first; "-": no goal.
depth_of() {
    bench "$1" --threads 1,2 --depths 0,4000 --kv q8
    for threads in 1 2; do
        rates="{r['depth']: r['decode_tok_s'] for r in d['runs'] if r['threads'] == $threads}"
        ratio=$(field "$work/$1.json" "(lambda r: round(r[0] / r[4000], 2))($rates)")
        what="$1: token at depth 4000, q8 cache, $threads threads"
        if [ "$2" = - ]; then row "$what" - "$ratio x that at 0" -
        else most "$what" "$2" "x that at 0" "$ratio"
        fi
    done
}

# ---- sequences and drafts ----

section_sequences() {
    big_model big-real --packed --density 0.25
    "$tern" probe --json >"$work/probe.json" 2>/dev/null
    row "processor" - "$(field "$work/probe.json" "d['cpu']['name']")" -
    for level in $(levels_of); do
        for threads in 1 2; do sequences_of big-real "$level" "$threads"; done
    done
    one=$(shared_mb 1) four=$(shared_mb 4)
    row "peak memory, 1 sequence with a prompt of 2008" - "$one MB" -
    # In addition to the common blocks each has one separate block of 256 positions.
    per_token=$(field "$work/info.json" "d['kv_bytes_per_token']['f16']")
    most "  3 more with the same first 2000 tokens" \
        "$(calc "round(4 * 256 * $per_token / 1e6 + 8)")" MB "$(calc "round($four - $one, 1)")"
}

# shared_mb N: peak memory with N sequences whose prompts share a prefix of 2000 ids.
shared_mb() {
    "$tern" info "$work/big-real.tern" --json >"$work/info.json" 2>/dev/null
    peak_mb "$bench_sequences" "$work/big-real.tern" 2 4 best "$1" 2000
}

# sequences_of NAME LEVEL THREADS: goals depend on the stream rate of a thread.
sequences_of() {
    name=$1 level=$2 threads=$3 what="$2, $3 threads"
    bench "$name" --threads "$threads" --depths 0 --cpu "$level" --draft 4
    rate=$(stream "$name" "$threads")
    row "$what: memory stream" - "$rate GB/s" -
    slow=$(calc "$rate / $threads <= 25")
    case $level:$slow in
    avx2:True) goals="1.5 1.8 2.0" right=1.25 ;;
    avx2:*) goals="1.15 1.25 1.35" right=1.25 ;;
    *:True) goals="1.6 2.5 3.0" right=2.3 ;;
    *) goals="1.5 2.0 2.4" right=$([ "$threads" = 2 ] && echo 2.3 || echo 2.0) ;;
    esac
    "$bench_sequences" "$work/$name.tern" "$threads" 32 "$level" >"$work/sequences.txt" 2>&1
    n=2
    for goal in $goals; do
        ratio=$(awk -v n=$n '$1 == n { print $3 }' "$work/sequences.txt")
        [ $n = 2 ] && of_two=${ratio:-nan}
        least "$what: $n sequences together" "$goal" "x one" "${ratio:-nan}"
        n=$((n * 2))
    done
    least "$what: drafts of 4, all right" "$right" x "$(draft_ratio "$name")"
    bench "$name" --threads "$threads" --depths 0 --cpu "$level" --draft 4 --draft-wrong 2
    wrong=$(calc "1.1 if 2 / $of_two <= 1.3 else 0.98")
    least "$what: drafts of 4, every second wrong" "$wrong" x "$(draft_ratio "$name")"
    least "$what: drafts, text without repetition" 0.98 x "$(no_repetition "$name" "$level" \
        "$threads")"
}

# draft_ratio NAME: in the last benchmark, decoding with drafts relative to decoding without.
draft_ratio() {
    field "$work/$1.json" "round((
        lambda r: [v for k, v in r if k][0] / [v for k, v in r if not k][0])(
        [(x['draft'], x['decode_tok_s']) for x in d['runs'] if x['depth'] == 128]), 2)"
}

# no_repetition NAME LEVEL THREADS: a random text with --draft 7 relative to the same without, in
# turn.
no_repetition() { python3 - "$tern" "$work/$1.tern" "$2" "$3" <<'END'
import json, statistics, subprocess, sys
tern, model, level, threads = sys.argv[1:5]
def speed(draft):
    run = subprocess.run(
        [tern, "run", model, "--raw", "-p", "Once", "-n", "64", "--ignore-eos", "--temp", "2",
         "--top-k", "0", "--top-p", "1", "--seed", "1", "--cpu", level, "--threads", threads,
         "--draft", draft, "--stats=json"],
        check=True, text=True, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
    stats = json.loads(run.stderr.splitlines()[-1])
    return stats["new_tokens"] / stats["decode_s"]
pairs = [(speed("off"), speed("7")) for _ in range(5)]
print(round(statistics.median(b / a for a, b in pairs), 3))
END
}

# ---- server ----

section_server() {
    big_model big-real --packed --density 0.25
    "$tern" probe --json >"$work/probe.json" 2>/dev/null
    row "processor" - "$(field "$work/probe.json" "d['cpu']['name']")" -
    python3 bench/server.py "$tern" "$work/big-real.tern"
    python3 bench/security.py "$tern" # S1 to S12; TERN_LONG=1: with what takes minutes
}

# ---- families ----

# passes WHAT PATTERN: runs the tests whose names begin with the pattern.
passes() {
    CI=true yes "$1" ctest --test-dir "$(dirname "$tern")" --no-tests=error -R "^$2"
}

section_families() {
    passes "every reference model and GGUF file: logits, greedy" golden_families
    passes "the same model written in other ways" golden_twins
    passes "embeddings: goldens of ids and texts" golden_embed
    passes "tokenizers: all goldens" test_tokenizer_golden
    passes "tokenizers from GGUF keys" test_tok_gguf
    passes "safetensors and GGUF give equal trits" test_gguf_trits
    passes "hostile GGUF files are refused" test_gguf_hostile
    passes "fuzzed GGUF headers: no finding" fuzz_gguf
    passes "tern info knows the published files" command_info_published
    for type in i2_s tq2_0 q2_0 q2_0_g128 tq1_0; do convert_speed_of $type; done
    family_model bonsai-4b
    for level in $(levels_of bonsai-4b); do
        family_speed bonsai-4b "$level" 75 x16
        family_speed bonsai-4b "$level" 75 x8
    done
    for threads in 1 2; do family_mainline bonsai-4b $threads; done
    for size in falcon-e-3b llama-8b; do
        family_model $size
        family_speed $size best 70 i8
    done
    family_memory bonsai-4b
}

# family_gguf NAME SIZE [TYPE LAYERS]: a GGUF file of random weights.
family_gguf() {
    [ -e "$work/$1.gguf" ] || numpy_python bench/make_gguf.py "$work/$1.gguf" --size "$2" \
        ${3:+--type "$3"} ${4:+--layers "$4"} 2>"$work/error" ||
        { rm -f "$work/$1.gguf"; echo "no model $1: $(tail -n 1 "$work/error")" >&2; }
}
# family_model SIZE: the model of such a file.
family_model() {
    [ -e "$work/$1.tern" ] && return
    family_gguf "$1" "$1"
    "$tern" convert "$work/$1.gguf" -o "$work/$1.tern" --no-tokenizer >/dev/null 2>&1
    rm -f "$work/$1.gguf"
    sync
}

convert_speed_of() {
    case $1 in i2_s) like=falcon-e-3b ;; *) like=bonsai-4b ;; esac
    family_gguf "$1" $like "$1" 10
    cat "$work/$1.gguf" >/dev/null 2>&1
    bytes=$(wc -c <"$work/$1.gguf")
    time=$(best_of 3 taskset -c 0 "$tern" convert "$work/$1.gguf" -o "$work/$1.tern" --no-tokenizer)
    least "convert GGUF, $1, from cache, one core" 300 MB/s "$(calc "round($bytes / 1e6 / $time)")"
    most "convert GGUF, $1: peak memory" 128 MB \
        "$(peak_mb "$tern" convert "$work/$1.gguf" -o "$work/$1.tern" --no-tokenizer)"
    rm -f "$work/$1.tern" "$work/$1.gguf"
}

# The best level, and avx2 if that is another.  Instead of amx, which has kernels only for many
# inputs: avx512.
levels_of() {
    "$tern" probe --json 2>/dev/null >"$work/probe.json"
    best=$(field "$work/probe.json" "d['cpu']['kernel']")
    case $best in amx) best=avx512 ;; esac
    echo "$best"
    case $best in avx512) echo avx2 ;; esac
}

# cache_rate OP LEVEL: GB/s of a kernel whose weights are in the cache, one thread.
cache_rate() {
    "$bench_kern" "$1" | sed -nE "s/^$1 +$2 +cache .*best +([0-9.]+)\).*/\1/p" | head -n 1
}

# family_speed SIZE LEVEL SHARE KIND: decode and prefill. Models whose inputs training did not
# round, in 16 bits (x16) or in 8 (x8), may be as slow as their kernel in the cache; others (i8) are
# compared with the stream only.
family_speed() {
    name=$1 level=$2 share_goal=$3 kind=$4
    case $level in best) level=$(levels_of | head -n 1) ;; esac
    inputs=auto goal=60 cache=inf note=
    case $kind in x8) inputs=8 note=", inputs 8" ;; x16) goal=30 ;; esac
    bench "$name" --threads 1,2 --depths 128 --cpu "$level" --inputs $inputs
    peak=$(instruction_peak "$level")
    case $kind in x*) cache=$(cache_rate gemv_t2_$kind "$level") ;; esac
    "$tern" info "$work/$name.tern" --json >"$work/info.json" 2>/dev/null
    weights=$(field "$work/info.json" "d['ternary_bytes'] * 4")
    projections=$(field "$work/info.json" \
        "d['ternary_bytes'] * 4 - (d['head'] == 't2') * d['hidden'] * d['vocab']")
    for threads in 1 2; do
        what="$name, $level, $threads threads$note"
        rate=$(stream "$name" $threads)
        row "$what: memory stream" - "$rate GB/s" -
        [ "$cache" != inf ] && row "$what: its kernel in the cache" - \
            "$(calc "round($cache * $threads, 1)") GB/s" -
        decode=$(pick "$name" $threads decode_best_tok_s)
        bytes=$(pick "$name" $threads decode_bytes_per_token)
        row "$what: decode" - "$(calc "round($decode, 2)") tok/s" \
            "$(calc "round($decode * $weights / 1e9, 1)") G weights/s"
        least "$what: decode, share of the possible rate" "$share_goal" % \
            "$(calc "round($decode * $bytes / min($rate, float('$cache') * $threads) / 1e7)")"
        prefill=$(pick "$name" $threads prefill_best_tok_s)
        row "$what: prefill of 128" - "$(calc "round($prefill, 1)") tok/s" -
        least "$what: prefill, of the int8 peak" $goal % \
            "$(calc "round($prefill * $projections / ($peak * $threads * 1e7))")"
    done
}

# family_mainline SIZE THREADS: decode and prefill compared with llama-bench, which has two types
# for such weights.  The programs run in turn, twice; the best counts.
family_mainline() {
    what="$1, $2 threads"
    if [ ! -x "${TERN_LLAMA_BENCH:-}" ]; then
        row "$what: by mainline ggml" "15 x, 1.5 x, 2 x" "no llama-bench" "not measured"
        return
    fi
    ours=0 our_prefill=0 q2_0=0 tq2_0=0 prefill=0
    for _ in 1 2; do
        bench "$1" --threads "$2" --depths 128 -n 32 -r 2
        ours=$(calc "max($ours, $(pick "$1" "$2" decode_best_tok_s))")
        our_prefill=$(calc "max($our_prefill, $(pick "$1" "$2" prefill_best_tok_s))")
        q2_0=$(calc "max($q2_0, $(mainline "$1" q2_0 "$2" -p 0 -n 2))")
        tq2_0=$(calc "max($tq2_0, $(mainline "$1" tq2_0 "$2" -p 0 -n 8))")
        prefill=$(calc "max($prefill, $(mainline "$1" tq2_0 "$2" -p 128 -n 0))")
    done
    least "$what: decode by ggml Q2_0, $q2_0 tok/s" 15 x "$(calc "round($ours / $q2_0, 1)")"
    least "$what: decode by ggml TQ2_0, $tq2_0" 1.5 x "$(calc "round($ours / $tq2_0, 2)")"
    least "$what: prefill by ggml TQ2_0, $prefill" 2 x \
        "$(calc "round($our_prefill / $prefill, 2)")"
}
# mainline SIZE TYPE THREADS OPTIONS...: tok/s of llama-bench.
mainline() {
    file=$1-$2 n=$3
    family_gguf "$file" "$1" "$2"
    shift 3
    "$TERN_LLAMA_BENCH" -m "$work/$file.gguf" -t "$n" -r 1 --no-warmup -o json "$@" \
        >"$work/mainline.json" 2>"$work/error"
    field "$work/mainline.json" "round(d[0]['avg_ts'], 2)"
}

family_memory() {
    ids=$(python3 -c "print(' '.join(str(i * 7919 % 128000) for i in range(1018)))")
    "$tern" info "$work/$1.tern" --json >"$work/info.json" 2>/dev/null
    per_token=$(field "$work/info.json" "d['kv_bytes_per_token']['q8']")
    peak=$(peak_mb "$tern" logits "$work/$1.tern" --kv q8 --ids "$ids" --greedy 6)
    most "$1: memory beside file and q8 cache of 1024" 64 MB \
        "$(calc "round($peak - ($(wc -c <"$work/$1.tern") + 1024 * $per_token) / 1e6, 1)")"
}

. bench/acceptance_models.sh

for program in "$tern" "$bench_kern"; do
    [ -x "$program" ] || { echo "no $program; build the release preset first" >&2; exit 0; }
done
row "what" asked measured verdict
for section in ${*:-build correct convert open memory kernels speed sequences server \
    families stream hybrids dense}; do
    "section_$section"
done
exit 0
