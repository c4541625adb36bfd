#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Compares predicted with measured memory at filled contexts.
usage: memory.py TERN MODEL [CONTEXT...]      (default 256 512 1024 2048 4096, as far as they go)

Fills every context once with each cache type, and prints what `tern probe` predicts beside the
anonymous memory that the process had at its peak, as rows of acceptance.sh. Needs Linux; nothing
here depends on an idle machine."""
import json
import os
import subprocess
import sys
import tempfile
import time

NEW_TOKENS = 64
MIB = 1 << 20


def model_context(tern, model):
    out = subprocess.run([tern, "info", model, "--json"], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    return json.loads(out)["context"]


def predicted(tern, model, ctx, kv):
    out = subprocess.run([tern, "probe", model, "--json", "--ctx", str(ctx), "--kv", kv, "-q"],
                         check=True, text=True, stdout=subprocess.PIPE).stdout
    return json.loads(out)["plan"]["predicted_anonymous_bytes"]


def anonymous(pid):
    """Bytes; exact, unlike RssAnon of /proc/PID/status, which lags by some pages per CPU."""
    try:
        with open(f"/proc/{pid}/smaps_rollup", encoding="ascii") as f:
            for line in f:
                if line.startswith("Anonymous:"):
                    return int(line.split()[1]) * 1024
    except (OSError, ValueError):
        pass
    return 0


def fill(tern, model, ctx, kv):
    """Peak anonymous bytes of a run that uses every position."""
    n_new = min(NEW_TOKENS, ctx // 2)
    with tempfile.NamedTemporaryFile("w", suffix=".txt") as prompt:
        prompt.write(" the" * (ctx - n_new - 2))
        prompt.flush()
        child = subprocess.Popen(
            [tern, "run", model, "--raw", "-f", prompt.name, "--ctx", str(ctx), "--kv", kv, "-n",
             str(ctx), "--caps", "off", "--ignore-eos", "--seed", "1", "--stats=json", "-q"],
            stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
        peak = 0
        while child.poll() is None:
            begin = time.monotonic()
            peak = max(peak, anonymous(child.pid))
            # Reading it takes time in proportion to the mapped file.
            time.sleep(0.001 + 10 * (time.monotonic() - begin))
        err = child.stderr.read()
    if child.returncode:
        sys.exit(err)
    stats = json.loads(err.splitlines()[-1])
    used = stats["prompt_tokens"] + stats["new_tokens"]
    # The last new token needs no position.
    if not ctx <= used <= ctx + 1:
        sys.exit(f"{used} of {ctx} positions used")
    return peak


def main():
    tern, model, *contexts = sys.argv[1:]
    most = model_context(tern, model)
    contexts = [int(c) for c in contexts] or [256, 512, 1024, 2048, 4096]
    contexts = [c for c in contexts if c <= most]
    name = os.path.splitext(os.path.basename(model))[0]
    for kv in ("f32", "f16", "q8"):
        for ctx in contexts:
            want = predicted(tern, model, ctx, kv)
            got = fill(tern, model, ctx, kv)
            met = abs(want - got) <= max(0.05 * got, 8 * MIB)
            what = f"{name}: anonymous memory, {kv} cache of {ctx} filled"
            print(f"{what:52} {want / MIB:6.1f} MiB       {got / MIB:6.1f} "
                  f"({(got - want) / MIB:+.1f}) MiB   {'met' if met else 'NOT MET'}", flush=True)


if __name__ == "__main__":
    main()
