#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern convert needs the same memory for every model: less than 128 MB (10^6 bytes), here for a
table of 300 MB; and less than 300 MB while it reads a tokenizer.json of 262,144 tokens and twice
as many merges. Linux only."""
import itertools
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
TOKENS, TOKENS_LIMIT = 1 << 18, 300 * 10**6
MATRICES = {"self_attn.q_proj": (HIDDEN, HIDDEN), "self_attn.k_proj": (HIDDEN, HIDDEN),
            "self_attn.v_proj": (HIDDEN, HIDDEN), "self_attn.o_proj": (HIDDEN, HIDDEN),
            "mlp.gate_proj": (FFN, HIDDEN), "mlp.up_proj": (FFN, HIDDEN),
            "mlp.down_proj": (HIDDEN, FFN)}
NORMS = {"input_layernorm": HIDDEN, "post_attention_layernorm": HIDDEN,
         "self_attn.attn_sub_norm": HIDDEN, "mlp.ffn_sub_norm": FFN}


def shapes(vocab):
    yield "model.embed_tokens.weight", (vocab, HIDDEN)
    for name, shape in MATRICES.items():
        yield f"model.layers.0.{name}.weight", shape
    for name, n in NORMS.items():
        yield f"model.layers.0.{name}.weight", (n,)
    yield "model.norm.weight", (HIDDEN,)


def write_model(folder, vocab=VOCAB):
    """bf16 values of the pattern 0.5, -0.25, ..., cut at the end of a tensor."""
    header, end = {}, 0
    for name, shape in shapes(vocab):
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
              "vocab_size": vocab, "max_position_embeddings": 128, "rms_norm_eps": 1e-5,
              "rope_theta": 10000.0, "hidden_act": "relu2", "tie_word_embeddings": True,
              "bos_token_id": 0, "eos_token_id": 1,
              "quantization_config": {"quant_method": "bitnet", "linear_class": "autobitlinear",
                                      "quantization_mode": "online"}}
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)


def write_tokenizer(folder):
    """Words over 16 letters, each made of a word without its last letter and one without its first.
    """
    mark = "\u2581"
    letters = "abcdefghijklmnop"
    words = ("".join(w) for n in range(1, 6) for w in itertools.product(letters, repeat=n))
    tokens = ["<unk>", mark, *itertools.islice(words, TOKENS - 2)]
    merges = [pair for w in tokens[2:] if len(w) > 1
              for pair in {(w[:-1], w[-1]), (w[0], w[1:])}]
    assert len(merges) > 500000
    steps = [{"type": "Replace", "pattern": {"String": mark}, "content": " "}, {"type": "Fuse"}]
    root = {"added_tokens": [],
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": mark},
            "pre_tokenizer": None, "post_processor": None,
            "decoder": {"type": "Sequence", "decoders": steps},
            "model": {"type": "BPE", "unk_token": "<unk>", "fuse_unk": True,
                      "vocab": {word: i for i, word in enumerate(tokens)}, "merges": merges}}
    with open(os.path.join(folder, "tokenizer.json"), "w", encoding="utf-8") as f:
        json.dump(root, f, indent=1)


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

    def test_vocabulary(self):
        folder = scratch("tokens")
        os.mkdir(folder)
        write_model(folder, TOKENS)
        write_tokenizer(folder)
        code, peak = peak_bytes("convert", folder, "-o", scratch("tokens.tern"), "-q")
        self.assertEqual(code, 0)
        self.assertLess(peak, TOKENS_LIMIT)
        print(f"{TOKENS} tokens: {peak / 1e6:.1f} MB")


if __name__ == "__main__":
    command.main()
