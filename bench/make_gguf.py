#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Write a GGUF file of random ternary weights with the dimensions of a published model, for
measurements of speed and memory (needs numpy).

usage: make_gguf.py OUT [--size bonsai-4b] [--type q2_0_g128] [--layers N] [--vocab N] [--seed N]

  bonsai-4b     Ternary-Bonsai-4B: qwen3, tied ternary embedding, by default in Q2_0 groups of 128
  falcon-e-3b   Falcon-E-3B: llama, F16 embedding and head, by default I2_S
  llama-8b      Llama3-8B-1.58: llama, F16 embedding and head, by default I2_S

Types: q2_0 (groups of 64), q2_0_g128, tq2_0, tq1_0, i2_s. About 40 % of the weights are zero, as in
trained models. There is no tokenizer: convert with --no-tokenizer. Everything is streamed, memory
stays below 100 MB; the same options give the same bytes."""
import argparse
import struct

import numpy as np

# arch, hidden, layers, heads, kv heads, head dim, ffn, vocabulary, tied, type of projections
SIZES = {
    "bonsai-4b": ("qwen3", 2560, 36, 32, 8, 128, 9728, 151936, True, "q2_0_g128"),
    "falcon-e-3b": ("llama", 2048, 32, 16, 2, 128, 13312, 32768, False, "i2_s"),
    "llama-8b": ("llama", 4096, 32, 32, 8, 128, 14336, 128256, False, "i2_s"),
}
# id in the file, weights of a block, bytes of its codes, is the scale (f16) before the codes
TYPES = {
    "q2_0": (42, 64, 16, True),
    "q2_0_g128": (42, 128, 32, True),
    "tq2_0": (35, 256, 64, False),
    "tq1_0": (34, 256, 52, False),
    "i2_s": (36, 128, 32, None),  # one scale behind all blocks
}
F32, F16 = 0, 1
U32, FLOAT, STRING = 4, 6, 8
PIECE = 1 << 20  # blocks or values made at a time
ALIGNMENT = 32
ZERO_SHARE = 0.4


def text(value):
    data = value.encode()
    return struct.pack("<Q", len(data)) + data


def key(name, kind, value):
    packed = text(value) if kind == STRING else struct.pack("<I" if kind == U32 else "<f", value)
    return text(name) + struct.pack("<I", kind) + packed


def code_bytes(type_name, rng):
    """256 bytes of random codes, from which those of the weights are picked."""
    p = [(1 - ZERO_SHARE) / 2, ZERO_SHARE, (1 - ZERO_SHARE) / 2]
    if type_name == "tq1_0":  # five digits as a fraction of 256
        digits = rng.choice(3, (256, 5), p=p)
        value = digits @ np.array([81, 27, 9, 3, 1])
        return ((value * 256 + 242) // 243).astype(np.uint8)
    return (rng.choice(3, (256, 4), p=p) << np.array([0, 2, 4, 6])).sum(1).astype(np.uint8)


class Ternary:
    """A matrix [rows, cols] whose outputs have about the size of its inputs."""

    def __init__(self, type_name, rows, cols):
        self.id, self.block, self.n_codes, self.scale_first = TYPES[type_name]
        self.type_name, self.shape = type_name, (rows, cols)
        if cols % self.block:
            raise SystemExit(f"{type_name} needs a multiple of {self.block} columns, not {cols}")
        self.n_blocks = rows * cols // self.block
        self.n_bytes = self.n_blocks * (self.n_codes + (self.scale_first is not None) * 2)
        self.n_bytes += 32 * (self.scale_first is None)
        self.scale = (cols * (1 - ZERO_SHARE)) ** -0.5

    def write(self, f, rng, codes):
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


class Floats:
    """A table or, with one row, a vector of ones."""

    def __init__(self, kind, rows, cols):
        self.id, self.is_vector = kind, rows == 1
        self.shape = (cols,) if self.is_vector else (rows, cols)
        self.n_bytes = rows * cols * (4 if kind == F32 else 2)
        self.n = rows * cols

    def write(self, f, rng, _):
        dtype = "<f4" if self.id == F32 else "<f2"
        if self.is_vector:
            f.write(np.ones(self.n, dtype).tobytes())
            return
        for at in range(0, self.n, PIECE):
            values = rng.standard_normal(min(PIECE, self.n - at), np.float32) * 0.02
            f.write(values.astype(dtype).tobytes())


def tensors(size, projection):
    arch, hidden, n_layers, heads, kv_heads, dim, ffn, vocab, tied, _ = size
    if tied:
        yield "token_embd.weight", Ternary(projection, vocab, hidden)
    else:
        yield "token_embd.weight", Floats(F16, vocab, hidden)
        yield "output.weight", Floats(F16, vocab, hidden)
    yield "output_norm.weight", Floats(F32, 1, hidden)
    for i in range(n_layers):
        for name, rows, cols in (("attn_q", heads * dim, hidden),
                                 ("attn_k", kv_heads * dim, hidden),
                                 ("attn_v", kv_heads * dim, hidden),
                                 ("attn_output", hidden, heads * dim), ("ffn_gate", ffn, hidden),
                                 ("ffn_up", ffn, hidden), ("ffn_down", hidden, ffn)):
            yield f"blk.{i}.{name}.weight", Ternary(projection, rows, cols)
        for name in ("attn_norm", "ffn_norm"):
            yield f"blk.{i}.{name}.weight", Floats(F32, 1, hidden)
        if arch == "qwen3":
            for name in ("attn_q_norm", "attn_k_norm"):
                yield f"blk.{i}.{name}.weight", Floats(F32, 1, dim)


def keys(size):
    arch, hidden, n_layers, heads, kv_heads, dim, ffn, vocab, _, _ = size
    yield key("general.architecture", STRING, arch)
    for name, value in (("block_count", n_layers), ("context_length", 4096),
                        ("embedding_length", hidden), ("feed_forward_length", ffn),
                        ("attention.head_count", heads), ("attention.head_count_kv", kv_heads),
                        ("attention.key_length", dim), ("attention.value_length", dim),
                        ("rope.dimension_count", dim), ("vocab_size", vocab)):
        yield key(f"{arch}.{name}", U32, value)
    yield key(f"{arch}.attention.layer_norm_rms_epsilon", FLOAT, 1e-6)
    yield key(f"{arch}.rope.freq_base", FLOAT, 1e6)
    yield key("tokenizer.ggml.model", STRING, "none")


def header(size, rows):
    packed = list(keys(size))
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
    parser.add_argument("--type", choices=TYPES)
    parser.add_argument("--layers", type=int)
    parser.add_argument("--vocab", type=int)
    parser.add_argument("--seed", type=int, default=1)
    args = parser.parse_args()
    size = list(SIZES[args.size])
    size[2], size[7] = args.layers or size[2], args.vocab or size[7]
    projection = args.type or size[9]
    rng = np.random.Generator(np.random.PCG64(args.seed))
    codes = code_bytes(projection, rng)
    rows = list(tensors(size, projection))
    with open(args.out, "wb") as f:
        f.write(header(size, rows))
        for _, tensor in rows:
            tensor.write(f, rng, codes)
            f.write(bytes(-tensor.n_bytes % ALIGNMENT))


if __name__ == "__main__":
    main()
