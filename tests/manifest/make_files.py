#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Adds .tern files to tests/data/tern: one per layout and kind of source, as small as possible.

  make_files.py [NAME...]    makes missing files; existing ones are kept

Released files must open forever and give the same logits (manifest.py, files.txt), so a
committed file is never rewritten, whatever the converter writes today."""
import json
import math
import os
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import ROOT, scratch, shared, tern

FILES = os.path.join(ROOT, "tests", "data", "tern")
HIDDEN, FFN, HEADS, DIM, VOCAB = 128, 256, 2, 64, 40
MATRICES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (DIM, HIDDEN),
            "self_attn.v_proj": (DIM, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
            "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN),
            "mlp.down_proj": (HIDDEN, FFN)}
NORMS = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN,
         "self_attn.attn_sub_norm": HIDDEN, "mlp.ffn_sub_norm": FFN}


def bf16(values):
    """Floats as bf16, truncated."""
    data = gguf.f32(values)
    out = bytearray(len(data) // 2)
    out[0::2], out[1::2] = data[2::4], data[3::4]
    return bytes(out)


def bitnet(name, activation, tied):
    """A folder in the format of BitNet b1.58 with random bf16 weights."""
    folder, rng = scratch(name), random.Random(name)
    os.makedirs(folder)

    def tensor(rows, cols, size):
        values = [rng.gauss(0, size) for _ in range(rows * cols)]
        return "BF16", [rows, cols], bf16(values)

    def norm(n):
        return "BF16", [n], bf16([1 + rng.gauss(0, 0.1) for _ in range(n)])

    tensors = {"model.embed_tokens.weight": tensor(VOCAB, HIDDEN, 1),
               "model.norm.weight": norm(HIDDEN)}
    for key, (rows, cols) in MATRICES.items():
        tensors[f"model.layers.0.{key}.weight"] = tensor(rows, cols, 1 / math.sqrt(cols))
    for key, n in NORMS.items():
        tensors[f"model.layers.0.{key}.weight"] = norm(n)
    if not tied:
        tensors["lm_head.weight"] = tensor(VOCAB, HIDDEN, 0.2)
    gguf.write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
    config = {"architectures": ["BitNetForCausalLM"], "model_type": "bitnet",
              "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": 1,
              "num_attention_heads": HEADS, "num_key_value_heads": 1, "vocab_size": VOCAB,
              "max_position_embeddings": 512, "rms_norm_eps": 1e-5, "rope_theta": 10000.0,
              "hidden_act": activation, "tie_word_embeddings": tied, "bos_token_id": 0,
              "eos_token_id": 1,
              "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                      "quantization_mode": "online"}}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    return folder


def small(head, activation="relu2", tied=True):
    return lambda: (bitnet(f"{head}-{activation}-{tied}", activation, tied), "--head", head,
                    "--no-tokenizer")


def reference(*path, flags=()):
    return lambda: (shared("reference", *path), *flags)


# Name of the file -> source and flags of tern convert.
MAKERS = {
    # R2, C2 and T2 with one scale; each type of head, which is also the embedding
    "bf16-relu2-head-q8": small("q8"), "bf16-relu2-head-q6": small("q6"),
    "bf16-relu2-head-q4": small("q4"), "bf16-relu2-head-f16": small("f16"),
    "bf16-relu2-head-bf16": small("bf16"), "bf16-relu2-head-f32": small("f32"),
    # T2 only; a separate head (Q8)
    "bf16-silu-untied": small("q8", "silu", False),
    # scales for groups of columns (f16), inputs of 16 bits, a ternary head; tokenizer, template
    "folder-bonsai": reference("models", "tiny-bonsai"),
    "q2_0-bonsai": reference("gguf", "tiny-bonsai", "q2_0.gguf", flags=("--no-tokenizer",)),
    # f32 scales of shards
    "folder-trilm": reference("models", "tiny-trilm"),
    # states instead of logits
    "i2_s-embedding": reference("gguf", "tiny-embed-qwen3", "i2_s-pool-mean.gguf",
                                flags=("--no-tokenizer",)),
}


def main():
    os.makedirs(FILES, exist_ok=True)
    for name in sys.argv[1:] or MAKERS:
        path = os.path.join(FILES, name + ".tern")
        if os.path.exists(path):
            continue
        source, *flags = MAKERS[name]()
        result = tern("convert", source, "-o", path, "-q", *flags)
        assert result.code == 0, result.err
        print(f"{path}: {os.path.getsize(path)} bytes")


if __name__ == "__main__":
    main()
