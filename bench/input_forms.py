#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Measures the cost of rounding the inputs of products for each block type: nats per token of the
demo model, quantised to that type, on a text that it was not trained on (needs numpy).

usage: input_forms.py [--tern PATH] [--reference DIR] [--types ternary,Q8_0,...] [--kilobytes N]

The demo's weights are scale * trit. Its norms are multiplied into them, so that they have many
values, as dense weights do; without rounding the model stays the same. The quantisers, the
tokenizer and the text come from the reference folder. A type whose 8-bit inputs move the result by
less than LIMIT may take them by default."""
import argparse
import gzip
import json
import os
import struct
import subprocess
import sys
import tempfile

import numpy as np

ROOT = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..")
sys.path.insert(0, os.path.join(ROOT, "tests"))
import gguf

LIMIT = 0.001  # nats per token
NAMES = {"self_attn.q_proj": ("attn_q", "input_layernorm"),
         "self_attn.k_proj": ("attn_k", "input_layernorm"),
         "self_attn.v_proj": ("attn_v", "input_layernorm"),
         "self_attn.o_proj": ("attn_output", "self_attn.attn_sub_norm"),
         "mlp.gate_proj": ("ffn_gate", "post_attention_layernorm"),
         "mlp.up_proj": ("ffn_up", "post_attention_layernorm"),
         "mlp.down_proj": ("ffn_down", "mlp.ffn_sub_norm")}
NORMS = {"attn_norm": "input_layernorm", "ffn_norm": "post_attention_layernorm",
         "attn_sub_norm": "self_attn.attn_sub_norm", "ffn_sub_norm": "mlp.ffn_sub_norm"}
# id, weights and bytes of a block
TYPES = {"F32": (0, 1, 4), "F16": (1, 1, 2), "Q8_0": (8, 32, 34), "Q4_0": (2, 32, 18),
         "Q4_1": (3, 32, 20), "Q5_0": (6, 32, 22), "Q5_1": (7, 32, 24), "IQ4_NL": (20, 32, 18),
         "IQ4_XS": (23, 256, 136), "Q2_K": (10, 256, 84), "Q3_K": (11, 256, 110),
         "Q4_K": (12, 256, 144), "Q5_K": (13, 256, 176), "Q6_K": (14, 256, 210)}
BLOCKS = [name for name, (_, block, _) in TYPES.items() if block > 1]


# ---- the model ----

class Demo:
    def __init__(self):
        path = os.path.join(ROOT, "dist", "demo", "model.safetensors")
        self.tensors = {name: np.array(gguf.of_bf16(data), np.float32).reshape(shape)
                        for name, (_, shape, data) in gguf.read_safetensors(path).items()}
        self.n_layer = 1 + max(int(n.split(".")[2]) for n in self.tensors if ".layers." in n)

    def projection(self, layer, name):
        """scale * trit, times the norm of its inputs."""
        prefix = f"model.layers.{layer}."
        latent = self.tensors[prefix + name + ".weight"].astype(np.float64)
        scale = np.abs(latent).mean()
        trits = np.clip(np.round(latent / scale), -1, 1)
        return scale * trits * self.tensors[prefix + NAMES[name][1] + ".weight"]

    def all(self, pack):
        """(GGUF name, type, shape, bytes); pack: weights -> (type, bytes)"""
        half = self.tensors["model.embed_tokens.weight"].astype("<f2")
        yield "token_embd.weight", "F16", half.shape, half.tobytes()
        norm = self.tensors["model.norm.weight"].astype("<f4")
        yield "output_norm.weight", "F32", norm.shape, norm.tobytes()
        for layer in range(self.n_layer):
            for name, source in NORMS.items():
                n = self.tensors[f"model.layers.{layer}.{source}.weight"].size
                yield f"blk.{layer}.{name}.weight", "F32", (n,), np.ones(n, "<f4").tobytes()
            for name, (target, _) in NAMES.items():
                weights = self.projection(layer, name)
                yield f"blk.{layer}.{target}.weight", *pack(weights)


def pack_with_minimum(x, top):
    """Q4_1, Q5_1: d * q + m."""
    low = x.min(1).astype(np.float16)
    d = ((x.max(1) - low) / top).astype(np.float16)
    safe = np.where(d > 0, d, 1).astype(np.float64)
    q = np.clip(np.round((x - low[:, None]) / safe[:, None]), 0, top).astype(np.uint8)
    high = [np.packbits(q >> 4, axis=1, bitorder="little")] if top == 31 else []
    halves = np.stack([d, low], 1).view(np.uint8)
    nibbles = (q[:, :16] & 15) | (q[:, 16:] & 15) << 4
    return np.concatenate([halves, *high, nibbles], 1).tobytes()


def packer(kind, kquants):
    def pack(w):
        if kind in ("Q4_1", "Q5_1"):
            data = pack_with_minimum(w.reshape(-1, 32), 15 if kind == "Q4_1" else 31)
        else:
            data = kquants.pack(kind, w)
        return kind, w.shape, data
    return pack


def keys_of(path):
    """The encoded keys of a GGUF file, and their number."""
    with open(path, "rb") as f:
        data = f.read()
    name, shape, _, place, _ = gguf.read_tensors(data)[0]
    end = place - 8 * len(shape) - 4 - len(name) - 8
    return data[24:end], struct.unpack_from("<Q", data, 16)[0]


def write(path, keys, n_keys, tensors):
    head, at = b"GGUF" + struct.pack("<IQQ", 3, len(tensors), n_keys) + keys, 0
    for name, kind, shape, data in tensors:
        number, block, n_bytes = TYPES[kind]
        assert len(data) == np.prod(shape) // block * n_bytes, name
        head += gguf.text(name) + struct.pack("<I", len(shape))
        head += b"".join(struct.pack("<Q", int(n)) for n in reversed(shape))
        head += struct.pack("<IQ", number, at)
        at += len(data) + -len(data) % 32
    with open(path, "wb") as f:
        f.write(head + bytes(-len(head) % 32))
        for *_, data in tensors:
            f.write(data + bytes(-len(data) % 32))


# ---- the measurement ----

def held_out(reference, n_bytes):
    with gzip.open(os.path.join(reference, "text", "tales.json.gz")) as f:
        tales = json.load(f)["val"]
    return "\n\n".join(p for _, paragraphs in tales for p in paragraphs).encode()[:n_bytes]


def nats(tern, model, text, form):
    done = subprocess.run([tern, "perplexity", model, text, "--json", "--inputs", form],
                          check=True, stdout=subprocess.PIPE)
    return json.loads(done.stdout)["nats_per_token"]


def measure(tern, source, folder, *flags):
    """The cost of inputs in 16 and in 8 bits."""
    model, text = os.path.join(folder, "demo.tern"), os.path.join(folder, "text.txt")
    subprocess.run([tern, "convert", source, "-o", model, "-q", "--force", *flags], check=True)
    return [nats(tern, model, text, form) for form in ("16", "8")]


def report(kind, measured):
    fine, coarse = measured
    default = "8 bits" if abs(coarse - fine) < LIMIT else "16 bits"
    print(f"| {kind} | {fine:.5f} | {coarse:.5f} | {coarse - fine:+.5f} | {default} |",
          flush=True)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--tern", default=os.path.join(ROOT, "build", "release", "tern"))
    parser.add_argument("--reference", default=os.path.join(ROOT, "..", "shared", "reference"))
    parser.add_argument("--types", default="ternary," + ",".join(BLOCKS))
    parser.add_argument("--kilobytes", type=int, default=100)
    arguments = parser.parse_args()
    sys.path.insert(0, os.path.join(arguments.reference, "tools", "gguf"))
    import kquants
    demo = Demo()
    keys = keys_of(os.path.join(arguments.reference, "gguf", "demo", "i2_s.gguf"))
    with tempfile.TemporaryDirectory() as folder:
        with open(os.path.join(folder, "text.txt"), "wb") as f:
            f.write(held_out(arguments.reference, arguments.kilobytes * 1000))
        print("| type | 16 bits | 8 bits | 8 bits move it by | default |")
        print("|---|---|---|---|---|")
        for kind in arguments.types.split(","):
            if kind == "ternary":
                report(kind, measure(arguments.tern, os.path.join(ROOT, "dist", "demo"), folder,
                                     "--activations", "float", "--head", "f16"))
                continue
            source = os.path.join(folder, "demo.gguf")
            write(source, *keys, list(demo.all(packer(kind, kquants))))
            report(kind, measure(arguments.tern, source, folder))


if __name__ == "__main__":
    main()
