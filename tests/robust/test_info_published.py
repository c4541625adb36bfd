#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern info recognises the published GGUF files by their description: architecture, dimensions,
names and types of tensors.  The files here have these, zeros as weights, and no tokenizer; they
are sparse."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import scratch


class Model:
    """hidden, layers, heads, kv heads, head dim, ffn, vocabulary"""

    def __init__(self, arch, hidden, layers, heads, kv, dim, ffn, vocab):
        self.arch, self.hidden, self.layers, self.heads = arch, hidden, layers, heads
        self.kv, self.dim, self.ffn, self.vocab = kv, dim, ffn, vocab

    def keys(self, *more):
        sizes = {"block_count": self.layers, "context_length": 4096,
                 "embedding_length": self.hidden, "feed_forward_length": self.ffn,
                 "attention.head_count": self.heads, "attention.head_count_kv": self.kv,
                 "attention.key_length": self.dim, "attention.value_length": self.dim,
                 "rope.dimension_count": self.dim}
        yield "general.architecture", gguf.STRING, self.arch
        for name, value in sizes.items():
            yield f"{self.arch}.{name}", gguf.U32, value
        yield f"{self.arch}.attention.layer_norm_rms_epsilon", gguf.F32, 1e-6
        yield f"{self.arch}.rope.freq_base", gguf.F32, 10000.0
        for name, kind, value in more:
            yield (name if "." in name and name.startswith(("prism", "tokenizer")) else
                   f"{self.arch}.{name}"), kind, value

    def norms(self):
        """name -> length of the norms of a layer"""
        names = {"attn_norm": self.hidden, "ffn_norm": self.hidden}
        if self.arch.startswith("bitnet"):
            names.update(attn_sub_norm=self.hidden, ffn_sub_norm=self.ffn)
        if self.arch in ("qwen3", "gemma3"):
            names.update(attn_q_norm=self.dim, attn_k_norm=self.dim)
        if self.arch == "gemma3":
            names.update(post_attention_norm=self.hidden, post_ffw_norm=self.hidden)
        return names

    def matrices(self):
        """name -> shape"""
        q, kv = self.heads * self.dim, self.kv * self.dim
        return {"attn_q": (q, self.hidden), "attn_k": (kv, self.hidden),
                "attn_v": (kv, self.hidden), "attn_output": (self.hidden, q),
                "ffn_gate": (self.ffn, self.hidden), "ffn_up": (self.ffn, self.hidden),
                "ffn_down": (self.hidden, self.ffn)}

    def tensors(self, weights, embedding, head=None, norm="F32", own_norms=False, factors=False):
        yield "token_embd.weight", embedding, (self.vocab, self.hidden)
        if head:
            yield "output.weight", head, (self.vocab, self.hidden)
        yield "output_norm.weight", norm, (self.hidden,)
        if factors:
            yield "rope_factors_long.weight", "F32", (self.dim // 2,)
            yield "rope_factors_short.weight", "F32", (self.dim // 2,)
        for i in range(self.layers):
            for name, n in self.norms().items():
                yield f"blk.{i}.{name}.weight", norm, (n,)
            for name, shape in self.matrices().items():
                yield f"blk.{i}.{name}.weight", weights, shape
                if own_norms:
                    yield f"blk.{i}.{name}_norm_in.weight", norm, (shape[1],)


BITNET_2B = 2560, 30, 20, 5, 128, 6912, 128256
FALCON_E = {"1B": (2048, 24, 16, 2, 128, 9216, 32768), "3B": (2048, 32, 16, 2, 128, 13312, 32768)}
FALCON3 = {"1B": (2048, 18, 8, 4, 256, 8192, 131072), "3B": (3072, 22, 12, 4, 256, 9216, 131072),
           "7B": (3072, 28, 12, 4, 256, 23040, 131080),
           "10B": (3072, 40, 12, 4, 256, 23040, 131072)}
BONSAI = {"1.7B": (2048, 28, 16, 8, 128, 6144, 151936), "4B": (2560, 36, 32, 8, 128, 9728, 151936),
          "8B": (4096, 36, 32, 8, 128, 12288, 151936)}
TRILM = 3072, 30, 24, 24, 128, 9216, 50432
EMBEDDING = {"qwen3": (1024, 28, 16, 8, 128, 3072, 151936),
             "gemma3": (640, 18, 4, 1, 256, 2048, 262144)}
BITCPM = {"0.5B": ("minicpm", 1024, 24, 16, 2, 64, 4096, 73448),
          "1B": ("llama", 2048, 28, 16, 2, 128, 6144, 73448),
          "3B": ("llama", 2560, 32, 32, 2, 128, 10240, 73448),
          "8B": ("minicpm", 4096, 32, 32, 2, 128, 16384, 73448)}
MINICPM_SCALES = (("embedding_scale", gguf.F32, 12.0), ("residual_scale", gguf.F32, 0.2858),
                  ("logit_scale", gguf.F32, 4.0))
LONGROPE = (("rope.scaling.type", gguf.STRING, "longrope"),
            ("rope.scaling.original_context_length", gguf.U32, 32768))


def published():
    """(name, Model, keys, options of tensors, family, words of the reason or None)"""
    def row(name, model, family, weights, embedding, head=None, keys=(), reason=None, **options):
        return name, model, keys, dict(options, weights=weights, embedding=embedding,
                                       head=head), family, reason
    for arch in ("bitnet-b1.58", "bitnet-25"):
        yield row(arch, Model(arch, *BITNET_2B), "bitnet", "I2_S", "F16")
    for size, dims in FALCON_E.items():
        yield row("Falcon-E-" + size, Model("llama", *dims), "llama", "I2_S", "F16", "F16")
    for size, dims in FALCON3.items():
        yield row("Falcon3-" + size, Model("llama", *dims), "llama", "I2_S", "F16", "F16")
    for arch, dims in EMBEDDING.items():
        yield row("bitnet-embedding-" + arch, Model(arch, *dims), "bitnet-embedding", "I2_S",
                  "F16", norm="F16", own_norms=True, keys=[("pooling_type", gguf.U32, 1)])
    for size, dims in BITCPM.items():
        is_minicpm = dims[0] == "minicpm"
        yield row("BitCPM-CANN-" + size, Model(*dims), "minicpm" if is_minicpm else "llama",
                  "TQ2_0", "Q4_K", None if size == "0.5B" else "Q6_K", factors=True,
                  keys=(MINICPM_SCALES if is_minicpm else ()) + LONGROPE)
    for size, dims in BONSAI.items():
        for kind in ("Q2_0_g128", "Q2_0", "PQ2_0"):
            yield row(f"Ternary-Bonsai-{size}-{kind}", Model("qwen3", *dims), "qwen3", kind, kind)
    small = Model("qwen3", *BONSAI["1.7B"])
    yield row("Ternary-Bonsai-1.7B-F16", small, "qwen3", "F16", "F16")
    yield row("Bonsai-1.7B-Q1_0", small, "qwen3", "Q1_0", "Q1_0", reason="Q1_0")
    for kind in ("TQ1_0", "TQ2_0"):
        yield row("TriLM-3.9B-" + kind, Model("llama", *TRILM), "llama", kind, kind, "Q6_K")
    model = Model("bitnet-b1.58", *BITNET_2B)
    yield row("2B-4T-iq2_bn", model, "bitnet", "IQ2_BN", "Q6_K")
    yield row("2B-4T-iq2_bn_r4", model, "bitnet", "IQ2_BN_R4", "Q6_K", reason="IQ2_BN_R4")
    for kind in ("TL1", "TL2"):
        yield row("2B-4T-" + kind, model, "bitnet", kind, "F16", reason=kind)
    yield row("Bonsai-rotated", Model("qwen3", *BONSAI["8B"]), None, "PTQ1_0", "PTQ1_0",
              reason='key "prism.hadamard.version" is missing',
              keys=[("prism.hadamard.block_size", gguf.U32, 1024)])
    yield row("Ternary-Bonsai-27B", Model("qwen35", *BONSAI["8B"]), None, "Q2_0", "Q2_0",
              reason='key "qwen35.ssm.time_step_rank" is missing')  # of attention here


def put_values(path, keys, tensors):
    """Factors and scales of whole matrices must not be zero; these become ones."""
    at = len(gguf.header(keys, tensors))
    with open(path, "r+b") as f:
        for name, kind, shape in tensors:
            n = gguf.tensor_bytes(kind, shape)
            if kind == "I2_S":
                f.seek(at + n - 32)
                f.write(struct.pack("<f", 1.0))
            if name.startswith("rope_factors"):
                f.seek(at)
                f.write(gguf.f32([1.0] * shape[0]))
            at += n + -n % gguf.ALIGNMENT


class Published(command.TestCase):
    def test_all(self):
        path, n = scratch("published.gguf"), 0
        for name, model, keys, options, family, reason in published():
            with self.subTest(file=name):
                all_keys, tensors = list(model.keys(*keys)), list(model.tensors(**options))
                gguf.write_hollow(path, all_keys, tensors)
                put_values(path, all_keys, tensors)
                found = json.loads(self.ok("info", path, "--json").text)
                self.assertEqual((found["format"], found["family"]), ("gguf", family))
                self.assertEqual(found["convertible"], reason is None, found["reason"])
                if reason:
                    self.assertIn(reason, found["reason"])
                self.assertEqual(len(found["tensors"]), len(tensors))
                self.assertEqual(found["metadata"]["general.architecture"], model.arch)
                n += 1
        self.assertGreaterEqual(n, 32)


if __name__ == "__main__":
    command.main()
