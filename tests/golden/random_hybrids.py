#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random small hybrids and mixtures of experts, as GGUF files, against the float64 reference: all
shapes of layers, floats, block types and ternary types, any batch and thread count (needs
numpy).

usage: random_hybrids.py [--first SEED] [--count N] [--bits PROGRAM]
  --bits   also runs test_gated_delta, which is PROGRAM, on each: the same bits at every kernel
           level and thread count, any cut, after rollbacks and from files; the precision of
           inputs varies"""
import argparse
import importlib
import os
import pathlib
import random
import subprocess
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, read_bytes, scratch, shared

command.need_package("numpy")
import numpy as np

sys.path.insert(0, shared("reference", "tools", "gguf"))
gguf_io = importlib.import_module("ggufio")
reference = importlib.import_module("hybrid_reference")

TOLERANCE = 1e-4
DEVIATION = 1.6  # of the fixtures' logits, for which the tolerance was chosen
NEAR_TIE = 1e-4  # router logits: float noise may choose another expert
DELTA = ("qwen35", "qwen35moe", "qwen3next")
TERNARY = ("TQ2_0", "Q2_0", "Q2_0_g128", "PQ2_0", "PTQ1_0")
ROTATED = ("attn_qkv", "attn_gate", "ssm_out", "attn_q", "attn_k", "attn_v", "attn_output",
           "ffn_gate", "ffn_up", "ffn_down")


class Shape:
    """Random sizes."""

    def __init__(self, draw):
        self.arch = draw.choice(["qwen35", "qwen35moe", "qwen3next", "qwen3moe", "maple"])
        self.is_delta, self.is_ternary = self.arch in DELTA, self.arch == "maple"
        self.hidden = draw.choice([256, 512] if self.is_ternary else [64, 96, 160, 256])
        self.dim, self.kv_heads = draw.choice([16, 24, 32, 64]), draw.choice([1, 2, 3])
        self.heads = self.kv_heads * draw.choice([1, 2, 3, 5])
        self.key_heads = draw.choice([1, 2, 3, 4])
        self.key_dim = draw.choice([8, 16, 20, 32, 64, 128])
        self.value_heads = self.key_heads * draw.choice([1, 2, 3, 6])
        self.value_dim = draw.choice([12, 16, 24, 32, 64, 128])
        self.taps = draw.choice([1, 2, 3, 4, 5, 8, 16])
        self.layers, self.interval = draw.choice([1, 2, 3, 4]), draw.choice([1, 2, 3, 4, 5])
        self.experts = draw.choice([1, 2, 3, 7, 16] + ([] if self.is_ternary else [33, 64]))
        self.used = min(self.experts, draw.choice([1, 2, 3, 5, 8, 16]))
        self.ffn = 256 if self.is_ternary else draw.choice([32, 64, 96])
        self.shared, self.vocab = draw.choice([32, 64, 96]), draw.choice([40, 264, 300])
        self.is_tied = draw.random() < 0.3
        self.rotated = self.dim // (draw.choice([2, 4]) if self.is_delta or self.is_ternary else 1)
        self.theta, self.window = draw.choice([1e4, 1e6, 1e7]), draw.choice([3, 8, 20])
        self.slides = [draw.random() < 0.6 for _ in range(self.layers)]
        self.limit = draw.choice([2.0, 7.0])
        self.type = draw.choice(["F32", "F16", "BF16", "Q8_0", "mixed"])
        self.block = 0
        if self.is_delta and draw.random() < 0.3:
            self.make_wide(draw)

    def make_wide(self, draw):
        """All inputs of projections get 256 columns: for ternary types and for rotations."""
        self.hidden = self.ffn = self.shared = 256
        self.dim, self.heads, self.kv_heads = 64, 4, draw.choice([1, 2, 4])
        self.rotated = 16
        self.value_heads = draw.choice([2, 4, 8])
        self.value_dim = 256 // self.value_heads
        self.key_heads = draw.choice([n for n in (1, 2, 4, 8) if self.value_heads % n == 0])
        self.type = draw.choice((*TERNARY, "Q8_0", "F32"))
        if self.arch == "qwen35" and draw.random() < 0.6:
            self.block = draw.choice([32, 64, 128, 256])
            self.is_grouped, self.is_table_rotated = draw.random() < 0.5, draw.random() < 0.5
            self.is_tied = self.is_tied and not self.is_table_rotated  # else undefined

    def __str__(self):
        return " ".join(f"{name}={value}" for name, value in vars(self).items())


def keys(s):
    u32, f32 = gguf_io.U32, gguf_io.F32
    found = {
        "block_count": (u32, s.layers), "context_length": (u32, 4096),
        "embedding_length": (u32, s.hidden), "feed_forward_length": (u32, s.ffn),
        "attention.head_count": (u32, s.heads), "attention.head_count_kv": (u32, s.kv_heads),
        "attention.key_length": (u32, s.dim), "attention.value_length": (u32, s.dim),
        "attention.layer_norm_rms_epsilon": (f32, 1e-6), "rope.freq_base": (f32, s.theta),
        "rope.dimension_count": (u32, s.rotated)}
    if s.is_delta:
        found.update({
            "ssm.conv_kernel": (u32, s.taps), "ssm.state_size": (u32, s.key_dim),
            "ssm.group_count": (u32, s.key_heads), "ssm.time_step_rank": (u32, s.value_heads),
            "ssm.inner_size": (u32, s.value_heads * s.value_dim),
            "full_attention_interval": (u32, s.interval)})
    if s.arch != "qwen35":
        found.update({"expert_count": (u32, s.experts), "expert_used_count": (u32, s.used),
                      "expert_feed_forward_length": (u32, s.ffn)})
        if s.is_delta:
            found["expert_shared_feed_forward_length"] = (u32, s.shared)
    if s.is_ternary:
        found.update({
            "attention.sliding_window": (u32, s.window),
            "attention.sliding_window_pattern": ((gguf_io.ARR, gguf_io.BOOL), s.slides),
            "swiglu_clamp_exp": ((gguf_io.ARR, f32), [s.limit] * s.layers)})
    return [("general.architecture", gguf_io.STR, s.arch)] + [
        (f"{s.arch}.{name}", kind, value) for name, (kind, value) in found.items()]


def rotation_keys(s, tensors, draw):
    """prism.hadamard.*; all rotated matrices have 256 columns."""
    text, texts = gguf_io.STR, (gguf_io.ARR, gguf_io.STR)
    integers = (gguf_io.ARR, gguf_io.I32)
    names = [name for name, *_ in tensors
             if name.split(".")[-2] in ROTATED or name == "output.weight"]
    found = {
        "version": (gguf_io.U32, 1), "block_size": (gguf_io.U32, s.block),
        "transform": (text, "normalized-sylvester-walsh-hadamard"),
        "axis": (text, "input-last-dimension"), "sign_mode": (text, "explicit"),
        "sign_widths": (integers, [256]),
        "sign_values": (integers, [draw.choice((-1, 1)) for _ in range(256)]),
        "weight_names": (texts, names), "gdn_v_grouped": (gguf_io.BOOL, s.is_grouped)}
    if s.is_table_rotated:
        found["inverse_weight_names"] = (texts, ["token_embd.weight"])
    return [(f"prism.hadamard.{name}", kind, value) for name, (kind, value) in found.items()]


class Tensors:
    def __init__(self, shape, seed):
        self.s, self.draw = shape, random.Random(seed)
        self.numbers, self.list = np.random.default_rng(seed), []

    def type_of(self, columns):
        """The type of a projection."""
        if self.s.is_ternary:
            return "TQ2_0" if columns % 256 == 0 else "Q8_0" if columns % 32 == 0 else "TQ2_0"
        kind = self.s.type
        if kind == "mixed":
            kind = self.draw.choice(["F16", "BF16", "Q8_0", "F32"])
        if kind in TERNARY:
            return kind if columns % 256 == 0 else "F16"
        return "BF16" if kind == "Q8_0" and columns % 32 else kind

    def matrix(self, name, *shape, gain=1.0, kind=None):
        kind, sigma = kind or self.type_of(shape[-1]), gain / shape[-1] ** 0.5
        if kind in TERNARY:
            scale = float(np.float16(1.2 * sigma)) * self.numbers.choice([0.5, 1, 2], shape[:-1])
            values = self.numbers.integers(-1, 2, shape) * scale[..., None]
        else:
            values = self.numbers.normal(0, sigma, shape).astype(np.float32)
        self.list.append((name + ".weight", kind, values.astype(np.float32)))

    def vector(self, name, shape, low=0.8, high=1.2):
        self.list.append((name, "F32", self.numbers.uniform(low, high, shape).astype(np.float32)))

    def attention(self, p):
        s = self.s
        self.matrix(p + "attn_q", (1 + s.is_delta) * s.heads * s.dim, s.hidden)
        self.matrix(p + "attn_k", s.kv_heads * s.dim, s.hidden)
        self.matrix(p + "attn_v", s.kv_heads * s.dim, s.hidden)
        self.matrix(p + "attn_output", s.hidden, s.heads * s.dim, gain=0.6)
        self.vector(p + "attn_q_norm.weight", s.dim)
        self.vector(p + "attn_k_norm.weight", s.dim)

    def delta(self, p):
        s, values = self.s, self.s.value_heads * self.s.value_dim
        channels = 2 * s.key_heads * s.key_dim + values
        self.matrix(p + "attn_qkv", channels, s.hidden, gain=2.0)
        self.matrix(p + "attn_gate", values, s.hidden)
        if s.arch == "qwen3next":
            self.matrix(p + "ssm_ba", 2 * s.value_heads, s.hidden)
        else:
            self.matrix(p + "ssm_beta", s.value_heads, s.hidden)
            self.matrix(p + "ssm_alpha", s.value_heads, s.hidden, gain=0.6)
        self.vector(p + "ssm_conv1d.weight", (channels, s.taps), -0.9, 0.9)
        self.vector(p + "ssm_dt.bias", s.value_heads, -3, 0.5)
        self.vector(p + "ssm_a", s.value_heads, -4, -0.1)
        self.vector(p + "ssm_norm.weight", s.value_dim)
        self.matrix(p + "ssm_out", s.hidden, values, gain=0.5)

    def feed_forward(self, p, tail, rows, *stack):
        self.matrix(f"{p}ffn_gate{tail}", *stack, rows, self.s.hidden)
        self.matrix(f"{p}ffn_up{tail}", *stack, rows, self.s.hidden)
        self.matrix(f"{p}ffn_down{tail}", *stack, self.s.hidden, rows, gain=0.6)

    def layer(self, i):
        s, p = self.s, f"blk.{i}."
        self.vector(p + "attn_norm.weight", s.hidden)
        self.vector(p + ("post_attention_norm" if s.is_delta else "ffn_norm") + ".weight", s.hidden)
        if s.is_delta and (i + 1) % s.interval:
            self.delta(p)
        else:
            self.attention(p)
        if s.arch == "qwen35":
            self.feed_forward(p, "", s.ffn)
            return
        self.matrix(p + "ffn_gate_inp", s.experts, s.hidden, gain=1.5, kind="F32")
        self.feed_forward(p, "_exps", s.ffn, s.experts)
        if s.is_delta:
            self.vector(p + "ffn_gate_inp_shexp.weight", s.hidden, -0.2, 0.2)
            self.feed_forward(p, "_shexp", s.shared)

    def model(self):
        s, table = self.s, "F32" if self.s.is_ternary else None
        if s.type in TERNARY and not s.is_tied: # tables of ternary files may be in other types
            table = self.draw.choice([None, "F32"])
        self.matrix("token_embd", s.vocab, s.hidden, gain=0.5 * s.hidden ** 0.5, kind=table)
        if not s.is_tied:
            self.matrix("output", s.vocab, s.hidden, gain=1.6, kind=table)
        self.vector("output_norm.weight", s.hidden)
        for i in range(s.layers):
            self.layer(i)
        return self.list


def expected(path, shape, ids):
    """(logits, the smallest lead of a chosen expert over one that is not)"""
    model = reference.Model(path, q2="Q2_0_g128" if shape.type == "Q2_0_g128" else "Q2_0")
    leads, used = [np.inf], shape.used
    linear = model.lin

    def watched(name, x, expert=None):
        y = linear(name, x, expert)
        if name.endswith("ffn_gate_inp") and y.shape[-1] > used:
            ordered = np.sort(y, -1)[:, ::-1]
            leads.append((ordered[:, used - 1] - ordered[:, used]).min())
        return y

    model.lin = watched
    return model.logits(ids), min(leads)


def check_bits(program, source, inputs):
    """A description of the error, or None."""
    done = subprocess.run([program, source, inputs], stdout=subprocess.PIPE,
                          stderr=subprocess.STDOUT, check=False)
    return f"inputs {inputs}: {done.stdout.decode()[-2000:]}" if done.returncode else None


def check(seed, program=None):
    """A description of the error, or None."""
    draw = random.Random(seed)
    shape = Shape(draw)
    while shape.is_ternary and shape.heads * shape.dim % 256 and shape.heads * shape.dim % 32:
        shape = Shape(draw)
    source, model, out = scratch("random.gguf"), scratch("random.tern"), scratch("random.f32")
    tensors = Tensors(shape, seed).model()
    more = rotation_keys(shape, tensors, draw) if shape.block else []
    gguf_io.write(pathlib.Path(source), keys(shape) + more, tensors)
    result = command.tern("convert", source, "-o", model, "--no-tokenizer", "--force", "-q",
                          "--head", "f32")
    if result.code:
        return f"{shape}: {result.err}"
    ids = [draw.randrange(shape.vocab) for _ in range(draw.choice([1, 5, 33, 40, 70, 270]))]
    result = command.tern("logits", model, "--ids", " ".join(map(str, ids)), "-o", out, "--kv",
                          "f32", "--inputs", "f32", "--threads", draw.choice("123"), "--batch",
                          draw.choice(["1", "3", "7", "8", "17", "64", "128"]))
    if result.code:
        return f"{shape}: {result.err}"
    want, lead = expected(source, shape, ids)
    got = np.array(floats(read_bytes(out))).reshape(want.shape)
    error = np.abs(got - want).max() / max(1.0, want.std() / DEVIATION)
    if error > TOLERANCE and lead > NEAR_TIE:
        return f"{shape}: {error:.2e} off"
    problem = program and check_bits(program, source, ("f32", "16", "8")[seed % 3])
    return f"{shape}: {problem}" if problem else None


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--first", type=int, default=0)
    parser.add_argument("--count", type=int, default=20)
    parser.add_argument("--bits", metavar="PROGRAM")
    options = parser.parse_args()
    seeds = range(options.first, options.first + options.count)
    errors = [(seed, check(seed, options.bits)) for seed in seeds]
    errors = [(seed, error) for seed, error in errors if error]
    for seed, error in errors:
        print(f"seed {seed}: {error}")
    print(f"{options.count - len(errors)} of {options.count} models are right")
    sys.exit(1 if errors else 0)


if __name__ == "__main__":
    main()
