#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern convert needs the same memory for every model: less than 128 MB (10^6 bytes), here for a
table of 300 MB. Linux only."""
import json
import os
import struct
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, scratch

VOCAB, HIDDEN, FFN, HEAD = 1 << 20, 144, 256, 16
LIMIT = 128 * 10**6
MATRICES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN, HIDDEN),
            "self_attn.v_proj": (HIDDEN, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
            "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN),
            "mlp.down_proj": (HIDDEN, FFN)}
NORMS = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN,
         "self_attn.attn_sub_norm": HIDDEN, "mlp.ffn_sub_norm": FFN}


def shapes():
    yield "model.embed_tokens.weight", (VOCAB, HIDDEN)
    for name, shape in MATRICES.items():
        yield f"model.layers.0.{name}.weight", shape
    for name, n in NORMS.items():
        yield f"model.layers.0.{name}.weight", (n,)
    yield "model.norm.weight", (HIDDEN,)


def write_model(folder):
    """bf16 values of the pattern 0.5, -0.25, ..., cut where a tensor ends."""
    header, end = {}, 0
    for name, shape in shapes():
        n_bytes = 2 * shape[0] * (shape[1] if len(shape) > 1 else 1)
        header[name] = {"dtype": "BF16", "shape": shape, "data_offsets": [end, end + n_bytes]}
        end += n_bytes
    pattern = struct.pack("<5H", 0x3F00, 0xBE80, 0x3E00, 0x0000, 0xBF00) * (1 << 18)
    text = json.dumps(header).encode()
    with open(os.path.join(folder, "model.safetensors"), "wb") as f:
        f.write(struct.pack("<Q", len(text)) + text)
        while end > 0:
            end -= f.write(pattern[:end])
    config = {"architectures": ["BitNetForCausalLM"], "model_type": "bitnet",
              "hidden_size": HIDDEN, "intermediate_size": FFN, "num_hidden_layers": 1,
              "num_attention_heads": HIDDEN // HEAD, "num_key_value_heads": HIDDEN // HEAD,
              "vocab_size": VOCAB, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "relu2", "tie_word_embeddings": True,
              "bos_token_id": 0, "eos_token_id": 1,
              "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                      "quantization_mode": "online"}}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)


def peak_bytes(*arguments):
    """Exit code and peak resident memory of one child."""
    argv = command.argv(*arguments)
    child = os.posix_spawn(argv[0], argv, command.environment())
    _, status, usage = os.wait4(child, 0)
    return os.waitstatus_to_exitcode(status), usage.ru_maxrss * 1024


@unittest.skipUnless(NATIVE and sys.platform.startswith("linux"), "needs Linux")
class Memory(command.TestCase):
    def test_peak(self):
        folder = scratch("large")
        os.mkdir(folder)
        write_model(folder)
        for head in ("q8", "bf16"):
            with self.subTest(head=head):
                code, peak = peak_bytes("convert", folder, "-o", scratch("large.tern"), "-q",
                                        "--no-tokenizer", "--head", head)
                self.assertEqual(code, 0)
                self.assertLess(peak, LIMIT)
                print(f"{head}: {peak / 1e6:.1f} MB")


if __name__ == "__main__":
    command.main()
