#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a GGUF file of random weights with the dimensions of a published model, for measurements of
speed and memory (needs numpy).

usage: make_gguf.py OUT [--size NAME] [--type TYPE] [--layers N] [--vocab N] [--seed N]
                    [--draft-head] [--tokenizer]

  bonsai-4b     Ternary-Bonsai-4B: qwen3, tied ternary embedding, Q2_0 in groups of 128
  falcon-e-3b   Falcon-E-3B: llama, F16 embedding and head, I2_S
  llama-8b      Llama3-8B-1.58: llama, F16 embedding and head, I2_S
  bonsai-27b    Ternary-Bonsai-27B: qwen35, ternary embedding and head, Q2_0 in groups of 128
  maple         maple-preview: 256 ternary experts, TQ2_0 with a Q4_K embedding and head
  qwen3-4b      Qwen3-4B, Q4_K_M
  llama-3b      Llama-3.2-3B, Q4_K_M
  qwen35-4b     Qwen3.5-4B: qwen35, Q4_K_M
  qwen35-35b    Qwen3.6-35B-A3B: qwen35moe, Q4_K_M

--draft-head adds that of the Qwen3.5 models, a further layer.

Ternary types: q2_0 (groups of 64), q2_0_g128, tq2_0, tq1_0, i2_s; about 40 % of the weights are
zero, as in trained models. Other types: q8_0, q6_k, q4_k, q4_0, iq2_xxs, iq2_s, iq3_xxs, iq3_s,
and q4_k_m, which is q4_k with the matrices in q6_k that llama.cpp's mix of this name chooses.
Without --tokenizer, which adds one of bytes and " the", convert with --no-tokenizer. Everything is
streamed, memory stays below 100 MB; the same options give the same bytes."""
import argparse
import dataclasses
import struct

import numpy as np


@dataclasses.dataclass
class Size:
    arch: str
    hidden: int
    layers: int
    heads: int
    kv_heads: int
    dim: int  # of an attention head
    ffn: int
    vocab: int
    type: str  # of the projections
    table: str = None  # type of embedding and head; None: that of the projections
    tied: bool = False
    rotary: int = None  # rotated values of a head; None: all
    delta: tuple = None  # key heads, value heads, values of a head of a gated delta rule
    experts: tuple = None  # number, used, rows of one, rows of the shared expert (0: none)
    drafts: int = 0  # layers of a draft head, after the others


SIZES = {
    "bonsai-4b": Size("qwen3", 2560, 36, 32, 8, 128, 9728, 151936, "q2_0_g128", tied=True),
    "falcon-e-3b": Size("llama", 2048, 32, 16, 2, 128, 13312, 32768, "i2_s", "f16"),
    "llama-8b": Size("llama", 4096, 32, 32, 8, 128, 14336, 128256, "i2_s", "f16"),
    "bonsai-27b": Size("qwen35", 5120, 64, 24, 4, 256, 17408, 248320, "q2_0_g128", rotary=64,
                       delta=(16, 48, 128)),
    "maple": Size("maple", 2048, 24, 16, 4, 128, 512, 151936, "tq2_0", "q4_k", rotary=64,
                  experts=(256, 8, 512, 0)),
    "qwen3-4b": Size("qwen3", 2560, 36, 32, 8, 128, 9728, 151936, "q4_k_m", tied=True),
    "llama-3b": Size("llama", 3072, 28, 24, 8, 128, 8192, 128256, "q4_k_m", tied=True),
    "qwen35-4b": Size("qwen35", 2560, 32, 16, 4, 256, 9216, 248320, "q4_k_m", tied=True,
                      rotary=64, delta=(16, 32, 128)),
    "qwen35-35b": Size("qwen35moe", 2048, 40, 16, 2, 256, 512, 248320, "q4_k_m", rotary=64,
                       delta=(16, 32, 128), experts=(256, 8, 512, 512)),
}
INTERVAL = 4  # every fourth layer of a hybrid is attention; of Maple, sees all positions

# Ternary: id in the file, weights of a block, bytes of its codes, is the scale (f16) before them
TERNARY = {
    "q2_0": (42, 64, 16, True),
    "q2_0_g128": (42, 128, 32, True),
    "tq2_0": (35, 256, 64, False),
    "tq1_0": (34, 256, 52, False),
    "i2_s": (36, 128, 32, None),  # one scale after all blocks
}
# Others: id in the file, weights of a block, bytes of a block, the f16 scales in it as (offset,
# factor), and the standard deviation of a weight when d is 1 and all other bytes are random
BLOCKS = {
    "q4_0": (2, 32, 18, ((0, 1.0),), 4.6),
    "q8_0": (8, 32, 34, ((0, 1.0),), 73.9),
    "q4_k": (12, 256, 144, ((0, 1.0), (2, 7.5)), 213.0),
    "q6_k": (14, 256, 210, ((208, 1.0),), 1366.0),
    "iq2_xxs": (16, 256, 66, ((0, 1.0),), 53.5),
    "iq2_s": (22, 256, 82, ((0, 1.0),), 56.4),
    "iq3_xxs": (18, 256, 98, ((0, 1.0),), 142.4),
    "iq3_s": (21, 256, 110, ((0, 1.0),), 140.0),
}
F32, F16 = 0, 1
U32, I32, FLOAT, BOOL, STRING, ARRAY = 4, 5, 6, 7, 8, 9
SCALARS = {U32: "<I", I32: "<i", FLOAT: "<f", BOOL: "<?"}
PIECE = 1 << 20  # blocks or values made at a time
ALIGNMENT = 32
ZERO_SHARE = 0.4


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, value):
    def pack(v):
        return text(v) if kind == STRING else struct.pack(SCALARS[kind], v)

    if isinstance(value, list):
        head = text(name) + struct.pack("<IIQ", ARRAY, kind, len(value))
        return head + b"".join(map(pack, value))
    return text(name) + struct.pack("<I", kind) + pack(value)


def ternary_codes(type_name, rng):
    """256 bytes of random codes, from which the weights' codes are drawn."""
    p = [(1 - ZERO_SHARE) / 2, ZERO_SHARE, (1 - ZERO_SHARE) / 2]
    if type_name == "tq1_0":  # five digits as a fraction of 256
        digits = rng.choice(3, (256, 5), p=p)
        value = digits @ np.array([81, 27, 9, 3, 1])
        return ((value * 256 + 242) // 243).astype(np.uint8)
    return (rng.choice(3, (256, 4), p=p) << np.array([0, 2, 4, 6])).sum(1).astype(np.uint8)


def n_blocks(type_name, block, shape):
    if shape[-1] % block:
        raise SystemExit(f"{type_name} needs a multiple of {block} columns, not {shape[-1]}")
    return int(np.prod(shape)) // block


class Ternary:
    """Matrices [..., rows, cols] whose outputs have about the size of their inputs."""

    def __init__(self, type_name, *shape):
        self.id, self.block, self.n_codes, self.scale_first = TERNARY[type_name]
        self.type_name, self.shape = type_name, shape
        self.n_blocks = n_blocks(type_name, self.block, shape)
        self.n_bytes = self.n_blocks * (self.n_codes + (self.scale_first is not None) * 2)
        self.n_bytes += 32 * (self.scale_first is None)
        self.scale = (shape[-1] * (1 - ZERO_SHARE)) ** -0.5

    def write(self, f, rng):
        codes = ternary_codes(self.type_name, np.random.Generator(np.random.PCG64(1)))
        for at in range(0, self.n_blocks, PIECE):
            n = min(PIECE, self.n_blocks - at)
            data = codes[np.frombuffer(rng.bytes(n * self.n_codes), np.uint8)]
            data = data.reshape(n, self.n_codes)
            if self.scale_first is not None:
                scales = (rng.uniform(0.5, 1.5, n) * self.scale).astype("<f2")
                scales = scales.view(np.uint8).reshape(n, 2)
                data = np.hstack((scales, data) if self.scale_first else (data, scales))
            f.write(data.tobytes())
        if self.scale_first is None:
            f.write(struct.pack("<f", self.scale) + bytes(28))


class Blocks:
    """The same in a block type: random bytes, scales that fit them."""

    def __init__(self, type_name, *shape):
        self.id, block, self.block_bytes, self.scales, self.deviation = BLOCKS[type_name]
        self.shape = shape
        self.n_blocks = n_blocks(type_name, block, shape)
        self.n_bytes = self.n_blocks * self.block_bytes

    def write(self, f, rng):
        d = self.shape[-1] ** -0.5 / self.deviation
        for at in range(0, self.n_blocks, PIECE // 4):
            n = min(PIECE // 4, self.n_blocks - at)
            data = np.frombuffer(rng.bytes(n * self.block_bytes), np.uint8)
            data = data.reshape(n, self.block_bytes).copy()
            for offset, factor in self.scales:
                data[:, offset:offset + 2] = np.frombuffer(np.float16(d * factor).tobytes(),
                                                           np.uint8)
            f.write(data.tobytes())


class Floats:
    """A random matrix, or a tensor filled with a given value."""

    def __init__(self, kind, *shape, value=None):
        self.id, self.shape, self.value = kind, shape, value
        self.n = int(np.prod(shape))
        self.n_bytes = self.n * (4 if kind == F32 else 2)

    def write(self, f, rng):
        dtype = "<f4" if self.id == F32 else "<f2"
        if self.value is not None:
            f.write(np.full(self.n, self.value, dtype).tobytes())
            return
        for at in range(0, self.n, PIECE):
            values = rng.standard_normal(min(PIECE, self.n - at), np.float32) * 0.02
            f.write(values.astype(dtype).tobytes())


def matrix(type_name, *shape):
    if type_name == "f16":
        return Floats(F16, *shape)
    return (Ternary if type_name in TERNARY else Blocks)(type_name, *shape)


def vector(n, value=1.0):
    return Floats(F32, n, value=value)


def has_more_bits(layer, n_layers):
    """The layers whose v and down are q6_k in q4_k_m."""
    eighth = n_layers // 8
    return layer < eighth or layer >= 7 * n_layers // 8 or (layer - eighth) % 3 == 2


def projection_type(size, name, layer):
    if size.type != "q4_k_m":
        return size.type
    is_large = name.startswith(("attn_v", "ffn_down")) and has_more_bits(layer, size.layers)
    return "q6_k" if is_large else "q4_k"


def attention(size):
    gates = 2 if size.delta else 1  # hybrids have a gate beside each query
    yield "attn_q", size.heads * size.dim * gates, size.hidden
    yield "attn_k", size.kv_heads * size.dim, size.hidden
    yield "attn_v", size.kv_heads * size.dim, size.hidden
    yield "attn_output", size.hidden, size.heads * size.dim


def gated_delta(size):
    key_heads, value_heads, dim = size.delta
    yield "attn_qkv", (2 * key_heads + value_heads) * dim, size.hidden
    yield "attn_gate", value_heads * dim, size.hidden
    yield "ssm_beta", value_heads, size.hidden
    yield "ssm_alpha", value_heads, size.hidden
    yield "ssm_out", size.hidden, value_heads * dim


def feed_forward(size, suffix="", rows=None):
    yield "ffn_gate" + suffix, rows or size.ffn, size.hidden
    yield "ffn_up" + suffix, rows or size.ffn, size.hidden
    yield "ffn_down" + suffix, size.hidden, rows or size.ffn


def experts(size):
    n, _, rows, shared_rows = size.experts
    for name, *shape in feed_forward(size, "_exps", rows):
        yield name, n, *shape
    if shared_rows:
        yield from feed_forward(size, "_shexp", shared_rows)


def is_attention(size, layer):
    return size.delta is None or layer % INTERVAL == INTERVAL - 1 or layer >= size.layers


def vectors(size, layer):
    """The tensors of a layer that are not projections."""
    yield "attn_norm.weight", vector(size.hidden)
    yield ("post_attention_norm" if size.delta else "ffn_norm") + ".weight", vector(size.hidden)
    if not is_attention(size, layer):
        key_heads, value_heads, dim = size.delta
        channels = (2 * key_heads + value_heads) * dim
        yield "ssm_conv1d.weight", Floats(F32, channels, 4, value=0.25)
        yield "ssm_a", vector(value_heads, -1.0)
        yield "ssm_dt.bias", vector(value_heads, -2.0)
        yield "ssm_norm.weight", vector(dim)
    elif size.arch != "llama":
        yield "attn_q_norm.weight", vector(size.dim)
        yield "attn_k_norm.weight", vector(size.dim)
    if size.experts:
        yield "ffn_gate_inp.weight", Floats(F32, size.experts[0], size.hidden)
        if size.experts[3]:
            yield "ffn_gate_inp_shexp.weight", vector(size.hidden, 0.01)


def tensors(size):
    table = size.table or ("q6_k" if size.type == "q4_k_m" else size.type)
    yield "token_embd.weight", matrix(table, size.vocab, size.hidden)
    if not size.tied:
        yield "output.weight", matrix(table, size.vocab, size.hidden)
    yield "output_norm.weight", vector(size.hidden)
    for i in range(size.layers + size.drafts):
        mixer = attention(size) if is_attention(size, i) else gated_delta(size)
        ffn = experts(size) if size.experts else feed_forward(size)
        for name, *shape in (*mixer, *ffn):
            yield f"blk.{i}.{name}.weight", matrix(projection_type(size, name, i), *shape)
        for name, tensor in vectors(size, i):
            yield f"blk.{i}.{name}", tensor
    for i in range(size.layers, size.layers + size.drafts):
        fc = matrix(projection_type(size, "eh_proj", i), size.hidden, 2 * size.hidden)
        yield f"blk.{i}.nextn.eh_proj.weight", fc
        for name in ("enorm", "hnorm", "shared_head_norm"):
            yield f"blk.{i}.nextn.{name}.weight", vector(size.hidden)


def tokenizer(size):
    """One id for each byte and for " the"; all others cannot result from text."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]  # as GPT-2 writes bytes
    hidden = [b for b in range(256) if b not in shown]
    tokens = [*map(chr, shown), *(chr(256 + i) for i in range(len(hidden)))]
    tokens += ["\u0120t", "\u0120th", "\u0120the"]
    n, end = len(tokens), "<|endoftext|>"
    tokens += [f"<{i}>" for i in range(n, size.vocab - 1)] + [end]
    yield key("tokenizer.ggml.model", STRING, "gpt2")
    yield key("tokenizer.ggml.pre", STRING, "qwen2")
    yield key("tokenizer.ggml.tokens", STRING, tokens)
    yield key("tokenizer.ggml.token_type", I32, [1] * n + [5] * (size.vocab - 1 - n) + [3])
    yield key("tokenizer.ggml.merges", STRING, ["\u0120 t", "\u0120t h", "\u0120th e"])
    yield key("tokenizer.ggml.eos_token_id", U32, size.vocab - 1)


def keys(size):
    yield key("general.architecture", STRING, size.arch)
    integers = {"block_count": size.layers + size.drafts, "context_length": 4096,
                "embedding_length": size.hidden, "feed_forward_length": size.ffn,
                "attention.head_count": size.heads, "attention.head_count_kv": size.kv_heads,
                "attention.key_length": size.dim, "attention.value_length": size.dim,
                "rope.dimension_count": size.rotary or size.dim, "vocab_size": size.vocab}
    if size.delta:
        key_heads, value_heads, dim = size.delta
        integers |= {"full_attention_interval": INTERVAL, "ssm.conv_kernel": 4,
                     "ssm.state_size": dim, "ssm.group_count": key_heads,
                     "ssm.time_step_rank": value_heads, "ssm.inner_size": value_heads * dim,
                     "rope.dimension_sections": [11, 11, 10, 0]}
    if size.experts:
        n, used, rows, shared_rows = size.experts
        integers |= {"expert_count": n, "expert_used_count": used,
                     "expert_feed_forward_length": rows}
        if shared_rows:
            integers["expert_shared_feed_forward_length"] = shared_rows
    if size.drafts:
        integers["nextn_predict_layers"] = size.drafts
    if size.arch == "maple":
        integers["attention.sliding_window"] = 512
        pattern = [i % INTERVAL != INTERVAL - 1 for i in range(size.layers)]
        yield key("maple.attention.sliding_window_pattern", BOOL, pattern)
        yield key("maple.swiglu_clamp_exp", FLOAT, [7.0] * size.layers)
    for name, value in integers.items():
        yield key(f"{size.arch}.{name}", U32, value)
    yield key(f"{size.arch}.attention.layer_norm_rms_epsilon", FLOAT, 1e-6)
    yield key(f"{size.arch}.rope.freq_base", FLOAT, 1e6)


def header(size, rows, has_tokenizer):
    no_tokenizer = [key("tokenizer.ggml.model", STRING, "none")]
    packed = [*keys(size), *(tokenizer(size) if has_tokenizer else no_tokenizer)]
    head = b"GGUF" + struct.pack("<IQQ", 3, len(rows), len(packed)) + b"".join(packed)
    at = 0
    for name, tensor in rows:
        head += text(name) + struct.pack("<I", len(tensor.shape))
        head += b"".join(struct.pack("<Q", n) for n in reversed(tensor.shape))
        head += struct.pack("<IQ", tensor.id, at)
        at += tensor.n_bytes + -tensor.n_bytes % ALIGNMENT
    return head + bytes(-len(head) % ALIGNMENT)


def main():
    parser = argparse.ArgumentParser(description=__doc__,
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("out")
    parser.add_argument("--size", choices=SIZES, default="bonsai-4b")
    parser.add_argument("--type", choices=[*TERNARY, *BLOCKS, "q4_k_m", "f16"])
    parser.add_argument("--layers", type=int)
    parser.add_argument("--vocab", type=int)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--draft-head", action="store_true")
    parser.add_argument("--tokenizer", action="store_true")
    args = parser.parse_args()
    given = {name: getattr(args, name) for name in ("type", "layers", "vocab")}
    size = dataclasses.replace(SIZES[args.size], drafts=int(args.draft_head),
                               **{k: v for k, v in given.items() if v})
    rng = np.random.Generator(np.random.PCG64(args.seed))
    rows = list(tensors(size))
    with open(args.out, "wb") as f:
        f.write(header(size, rows, args.tokenizer))
        for _, tensor in rows:
            tensor.write(f, rng)
            f.write(bytes(-tensor.n_bytes % ALIGNMENT))


if __name__ == "__main__":
    main()
