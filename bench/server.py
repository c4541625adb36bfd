#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares `tern serve` with `tern run` and the scheduler without sockets, in turn.
usage: server.py TERN MODEL [THREADS...]      (default 1 2)

Prints rows of acceptance.sh.  The clients are bench_server, which shares the cores with the server;
rates are medians of rounds in each of which both sides run once."""
import json
import os
import re
import statistics
import subprocess
import sys
import time

ROUNDS = 5
TOKENS = 64
COMMON = 1000  # ids of a system prompt


def row(what, asked, got, is_met=None):
    verdict = "-" if is_met is None else "met" if is_met else "NOT MET"
    print(f"{what:<52} {asked:<16} {got:<20} {verdict}", flush=True)


def output(*argv):
    return subprocess.run(argv, check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.PIPE)


class Bench:
    def __init__(self, tern, model, threads, parallel=8, context=2048):
        self.tern, self.model, self.threads = tern, model, threads
        self.parallel, self.context = parallel, context
        self.tools = os.path.join(os.path.dirname(tern), "bin")
        self.n_asked = 0
        self.what = f"{threads} thread{'s' if threads > 1 else ''}"

    def __enter__(self):
        began = time.monotonic()
        self.server = subprocess.Popen(
            [self.tern, "serve", self.model, "--port", "0", "--threads", str(self.threads),
             "--kv", "f16", "--ctx", str(self.context), "--parallel", str(self.parallel)],
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
        self.port = self.server.stdout.readline().strip().rsplit(":", 1)[1]
        self.start_s = time.monotonic() - began
        return self

    def __exit__(self, *_):
        self.server.terminate()
        self.server.wait()

    def prompts(self, n):
        """Texts that begin in different ways, so that no cache helps."""
        self.n_asked += n
        return [f"{7919 * (self.n_asked - i)} is the number of this text" for i in range(n)]

    def http(self, seed, tokens, *prompts):
        return json.loads(output(os.path.join(self.tools, "bench_server"), self.port, str(tokens),
                                 str(seed), *prompts).stdout)

    def run(self, seed, prompt):
        """(tokens per second after the first, ms until the first) of `tern run`."""
        err = output(self.tern, "run", self.model, "--raw", "-p", prompt, "-n", str(TOKENS),
                     "--ignore-eos", "--seed", str(seed), "--threads", str(self.threads), "--kv",
                     "f16", "--stats=json", "-q").stderr
        stats = json.loads(err.splitlines()[-1])
        return (stats["new_tokens"] - 1) / stats["decode_s"], 1e3 * stats["prompt_s"]

    def scheduler(self, n, n_common=0):
        """(tokens per second of n together, ms until the first token of one more)"""
        out = output(os.path.join(self.tools, "bench_sequences"), self.model, str(self.threads),
                     "32", "best", str(n), str(n_common)).stdout
        return [float(x) for x in re.search(r"([\d.]+) tok/s, .* ([\d.]+) ms", out).groups()]

    def cpu_ns(self):
        folder = f"/proc/{self.server.pid}/task"
        total = 0
        for thread in os.listdir(folder):
            with open(f"{folder}/{thread}/schedstat", encoding="ascii") as f:
                total += int(f.read().split()[0])
        return total


def judge_one(b):
    ratios, rates, later = [], [], []
    for seed in range(ROUNDS):
        prompt = b.prompts(1)[0]
        rate, first_ms = b.run(seed, prompt)
        http = b.http(seed, TOKENS, prompt)
        rates.append((rate, http["tok_s"]))
        ratios.append(http["tok_s"] / rate)
        later.append(http["first_ms"][0] - first_ms)
    run, served = (statistics.median(r) for r in zip(*rates))
    goal = 0.98 if b.threads == 1 else 0.95
    ratio, late = statistics.median(ratios), statistics.median(later)
    row(f"{b.what}, 1 client: decode, of tern run's", f">= {goal}",
        f"{ratio:.3f} ({served:.1f} of {run:.1f})", ratio >= goal)
    row(f"{b.what}: first token later than tern run's", "<= 5 ms", f"{late:.1f} ms", late <= 5)


def judge_many(b, n):
    pairs = [(b.scheduler(n)[0], b.http(7, 32, *b.prompts(n))["tok_s"]) for _ in range(3)]
    ratio = statistics.median(http / core for core, http in pairs)
    core, http = (statistics.median(r) for r in zip(*pairs))
    row(f"{b.what}, {n} clients: sum, of the scheduler's", ">= 0.95",
        f"{ratio:.3f} ({http:.1f} of {core:.1f})", ratio >= 0.95)


def judge_first(b, n_common):
    """The best of three compared with the scheduler's, with 8 new ids after n_common known ones."""
    system = "Once" + " the" * (n_common - 1) if n_common else ""
    if n_common:
        b.http(1, 2, system + " first words of a conversation")
    got, limits, n_new = [], [], 0
    for i in range(3):
        words = f" {i + 3} words of another one" if n_common else b.prompts(1)[0]
        answer = b.http(1, 16, system + words)
        got.append(answer["first_ms"][0])
        n_new = answer["prompt_tokens"] - answer["cached_tokens"]
        token_ms = 1e3 / answer["tok_s"] if n_common else 0
        limits.append(b.scheduler(1, n_common)[1] + token_ms + 5)
    limit, got = min(limits), min(got)
    row(f"{b.what}: first token, {n_new} ids after {n_common} known", f"<= {limit:.1f} ms",
        f"{got:.1f} ms", got <= limit)


def judge_memory(b):
    """Memory with every sequence filled."""
    words = [f"{'the of and to in is on by'.split()[i]} " for i in range(b.parallel)]
    for word in words:
        b.http(1, 64, word * (b.context - 80))
    with open(f"/proc/{b.server.pid}/smaps_rollup", encoding="ascii") as f:
        kib = next(int(line.split()[1]) for line in f if line.startswith("Anonymous:"))
    b.server.terminate()
    size, unit = re.search(r"memory: up to ([\d.]+) ([MG])iB", b.server.stderr.read()).groups()
    planned = float(size) * (1024 if unit == "G" else 1)
    row(f"{b.what}: anonymous memory, {b.parallel} answers of {b.context}", f"<= {planned:.0f} MiB",
        f"{kib / 1024:.0f} MiB", kib / 1024 <= planned)


def judge_idle(b):
    """CPU time of ten idle seconds, in nanoseconds of all threads."""
    before = b.cpu_ns()
    time.sleep(10)
    share = (b.cpu_ns() - before) / 1e8
    row("idle: CPU", "< 0.1 %", f"{share:.3f} %", share < 0.1)


def judge_size(tern):
    """Size of machine code and data of the server's library."""
    library = os.path.join(os.path.dirname(tern), "src/server/libtern_server.a")
    sizes = [line.split() for line in output("size", library).stdout.splitlines()[1:]]
    kb = sum(int(s[3]) for s in sizes if s[5] != "page_files.c.o") / 1e3
    row("size of the server without its page", "<= 600 kB", f"{kb:.0f} kB", kb <= 600)


def main():
    tern, model, *threads = sys.argv[1:]
    for n in [int(t) for t in threads] or [1, 2]:
        with Bench(tern, model, n) as b:
            b.http(1, 4, "warm")
            judge_one(b)
            for clients in (4, 8):
                judge_many(b, clients)
            judge_first(b, 0)
            judge_first(b, COMMON)
    starts = []
    for _ in range(5):
        with Bench(tern, model, 1) as b:
            starts.append(b.start_s)
    start = statistics.median(starts)
    row("start to listening, warm", "<= 0.2 s", f"{start:.3f} s", start <= 0.2)
    with Bench(tern, model, 2) as b:
        judge_idle(b)
    with Bench(tern, model, 2, parallel=4, context=512) as b:
        judge_memory(b)
    judge_size(tern)


if __name__ == "__main__":
    main()
