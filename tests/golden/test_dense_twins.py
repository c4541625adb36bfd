#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders of dense models, rewritten as GGUF files with the names, row orders and keys of their
architecture, give the same bytes: if an architecture has no reference file, its folder's goldens
(test_families) apply to the file too."""
import json
import os
import random
import re
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import read_bytes, scratch, shared
from twins import Folder, LINEAR, NORMS, common_keys, f32_tensor, permuted

IDS = "1 17 300 42 5 99 260 8 11 380 3 64 200 7 12 19 30 31 32 33 34 35 36 37"
SHORT = "1 17 300 42 5 99 260 8"
OLMO_NORMS = {"post_attention_layernorm": "post_attention_norm",
              "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_norm": "attn_q_norm",
              "self_attn.k_norm": "attn_k_norm"}
BIGCODE = {"attn.c_attn": "attn_qkv", "attn.c_proj": "attn_output", "mlp.c_fc": "ffn_up",
           "mlp.c_proj": "ffn_down", "ln_1": "attn_norm", "ln_2": "ffn_norm"}


def grid_block(kind, d, scales, signs):
    """256 weights d * (2 * scale + 1) * sign, those of index 0 in every grid. 8 scales below 16, 32
    bytes of 8 signs with an even number of negative ones."""
    half, twice, none = struct.pack("<e", d), bytes(17 * s for s in scales), bytes(72)
    words = [s << 28 | sum((signs[4 * j + k] & 127) << 7 * k for k in range(4))
             for j, s in enumerate(scales)]
    if kind == "IQ2_XXS":
        return half + b"".join(struct.pack("<II", 0, w) for w in words)
    if kind == "IQ2_XS":
        return half + struct.pack("<32H", *((s & 127) << 9 for s in signs)) + twice
    if kind == "IQ2_S":
        return half + none[:32] + bytes(signs) + none[:8] + twice
    if kind == "IQ3_XXS":
        return half + none[:64] + struct.pack("<8I", *words)
    return half + none + bytes(signs) + bytes(scales[j] | scales[j + 1] << 4 for j in (0, 2, 4, 6))


def grid_twin(d, scales, signs):
    """The same weights in Q8_0."""
    data = b""
    for j, s in enumerate(scales):
        bits = int.from_bytes(bytes(signs[4 * j:4 * j + 4]), "little")
        data += struct.pack("<e32b", d, *((2 * s + 1) * (1 - 2 * (bits >> k & 1))
                                          for k in range(32)))
    return data


class Dense(Folder):
    def __init__(self, name):
        super().__init__(name, shared("reference", "dense", "models"))

    def floats(self, name):
        dtype, shape, data = self.tensors.get("model." + name) or self.tensors[name]
        if dtype == "F32":
            return list(struct.unpack(f"<{len(data) // 4}f", data)), shape
        return super().floats(name)


def llama_tensors(folder, norms, permutes):
    c = folder.config
    heads = {"attn_q": c["num_attention_heads"], "attn_k": c["num_key_value_heads"]}
    for name, ours in (("embed_tokens", "token_embd"), ("norm", "output_norm")):
        yield f32_tensor(ours + ".weight", *folder.floats(name + ".weight"))
    if "lm_head.weight" in folder.tensors:
        yield f32_tensor("output.weight", *folder.floats("lm_head.weight"))
    for i in range(c["num_hidden_layers"]):
        for theirs, ours in {**norms, **LINEAR}.items():
            values, shape = folder.floats(f"layers.{i}.{theirs}.weight")
            if permutes and ours in heads:
                values = permuted(values, shape, heads[ours])
            yield f32_tensor(f"blk.{i}.{ours}.weight", values, shape)


def fused(tensors):
    """q, k and v of each layer, weights and biases, as sections of attn_qkv."""
    parts = {}
    for name, kind, shape, data in tensors:
        stem = re.sub(r"attn_[qkv]\.", "attn_qkv.", name)
        parts.setdefault(stem, []).append((kind, shape, data))
    for name, rows in parts.items():
        kinds, shapes, data = zip(*rows)
        assert len(set(kinds)) == 1
        yield (name, kinds[0], (sum(s[0] for s in shapes), *shapes[0][1:]), b"".join(data))


def bigcode_tensors(folder):
    for theirs, ours in (("wte.weight", "token_embd.weight"),
                         ("wpe.weight", "position_embd.weight"),
                         ("ln_f.weight", "output_norm.weight"),
                         ("ln_f.bias", "output_norm.bias")):
        yield f32_tensor(ours, *folder.floats("transformer." + theirs))
    for i in range(folder.config["n_layer"]):
        for theirs, ours in BIGCODE.items():
            for end in ("weight", "bias"):
                yield f32_tensor(f"blk.{i}.{ours}.{end}",
                                 *folder.floats(f"transformer.h.{i}.{theirs}.{end}"))


class DenseTwins(command.TestCase):
    def logits(self, source, ids=IDS):
        model, out = scratch("twin.tern"), scratch("twin.f32")
        self.ok("convert", source, "-o", model, "--no-tokenizer", "--head", "f32")
        self.ok("logits", model, "--ids", ids, "-o", out, "--kv", "f32")
        return read_bytes(out)

    def check(self, folder, keys, tensors):
        path = scratch("twin.gguf")
        gguf.write(path, keys, list(tensors))
        self.assertEqual(self.logits(path), self.logits(folder.path))

    def test_smollm3(self):
        folder = Dense("tiny-smollm3")
        self.check(folder, common_keys("smollm3", dict(folder.config, head_dim=12)),
                   llama_tensors(folder, NORMS, True))

    def test_granite(self):
        folder = Dense("tiny-granite")
        c = folder.config
        keys = common_keys("granite", c)
        for key, value in (("attention.scale", "attention_multiplier"),
                           ("embedding_scale", "embedding_multiplier"),
                           ("residual_scale", "residual_multiplier"),
                           ("logit_scale", "logits_scaling")):
            keys.append((f"granite.{key}", gguf.F32, float(c[value])))
        self.check(folder, keys, llama_tensors(folder, NORMS, True))

    def test_olmo2(self):
        folder = Dense("tiny-olmo2")
        self.check(folder, common_keys("olmo2", folder.config),
                   llama_tensors(folder, OLMO_NORMS, False))

    def test_olmo3(self):
        """The architecture of OLMo 2 with windows, and YaRN in the other layers."""
        folder = Dense("tiny-olmo2")
        yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
        folder.config.update(model_type="olmo3", sliding_window=5, rope_scaling=yarn,
                             layer_types=["sliding_attention", "full_attention"])
        keys = common_keys("olmo2", folder.config)
        for name, kind, value in (
                ("attention.sliding_window", gguf.U32, 5), ("rope.scaling.factor", gguf.F32, 8.0),
                ("attention.sliding_window_pattern", (gguf.ARRAY, gguf.BOOL), [True, False]),
                ("rope.scaling.type", gguf.STRING, "yarn"),
                ("rope.scaling.yarn_attn_factor", gguf.F32, 1.2079441541679836),
                ("rope.scaling.original_context_length", gguf.U32, 64)):
            keys.append((f"olmo2.{name}", kind, value))
        folder.path = folder.write(scratch("olmo3"))
        self.check(folder, keys, llama_tensors(folder, OLMO_NORMS, False))

    def test_early_gemma2(self):
        """The first files have no keys of caps and window, which all published models share."""
        usual = {"attn_logit_softcapping": (gguf.F32, 50.0),
                 "final_logit_softcapping": (gguf.F32, 30.0),
                 "attention.sliding_window": (gguf.U32, 4096)}
        keys, tensors = gguf.read(shared("reference", "dense", "gguf", "tiny-gemma2", "q8_0.gguf"))
        early = [k for k in keys if k[0].removeprefix("gemma2.") not in usual]
        self.assertEqual(len(early), len(keys) - 3)
        path, logits = scratch("early.gguf"), []
        for added in ({}, usual, {**usual, "final_logit_softcapping": (gguf.F32, 20.0)}):
            gguf.write(path, early + [("gemma2." + k, *v) for k, v in added.items()], tensors)
            logits.append(self.logits(path))
        self.assertEqual(logits[0], logits[1])
        self.assertNotEqual(logits[0], logits[2])

    def test_gpt_bigcode(self):
        folder = Dense("tiny-gpt-bigcode")
        c = folder.config
        keys = [("general.architecture", gguf.STRING, "starcoder")]
        for key, value in (("block_count", c["n_layer"]), ("context_length", c["n_positions"]),
                           ("embedding_length", c["n_embd"]), ("feed_forward_length", c["n_inner"]),
                           ("attention.head_count", c["n_head"]), ("attention.head_count_kv", 1)):
            keys.append((f"starcoder.{key}", gguf.U32, value))
        keys.append(("starcoder.attention.layer_norm_epsilon", gguf.F32, c["layer_norm_epsilon"]))
        self.check(folder, keys, bigcode_tensors(folder))

    def test_fused_projections(self):
        """As llama.cpp's converter writes them by request: permuted rows, and quantised ones with
        biases."""
        folder = Dense("tiny-smollm3")
        self.check(folder, common_keys("smollm3", dict(folder.config, head_dim=12)),
                   fused(llama_tensors(folder, NORMS, True)))
        source, path = shared("reference", "dense", "gguf", "tiny-qwen2", "q8_0.gguf"), scratch("f")
        keys, tensors = gguf.read(source)
        gguf.write(path, keys, list(fused(tensors)))
        self.assertEqual(self.logits(path, SHORT), self.logits(source, SHORT))

    def mxfp4(self, change=lambda data: data):
        """tiny-qwen2 with random weights in MXFP4, and the same weights in Q5_0."""
        noise, codes = random.Random(5), (0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12)
        keys, tensors = gguf.read(shared("reference", "dense", "gguf", "tiny-qwen2", "q8_0.gguf"))
        ours, twins = [], []
        for name, kind, shape, data in tensors:
            if kind == "Q8_0":
                kind, data, twin = "MXFP4", bytearray(), bytearray()
                for i in range(shape[0] * shape[1] // 32):
                    nibbles = [noise.randrange(16) if i % 5 else 8 * (i % 2) for _ in range(32)]
                    e = noise.choice((104, 113, 114, 119, 122)) if i % 5 else 0
                    q = [codes[n] + 16 for n in nibbles]
                    data += bytes([e] + [nibbles[j] | nibbles[j + 16] << 4 for j in range(16)])
                    twin += struct.pack("<eI", 2.0 ** (e - 128) if i % 5 else 0.0,
                                        sum((q[j] >> 4) << j for j in range(32)))
                    twin += bytes((q[j] & 15) | (q[j + 16] & 15) << 4 for j in range(16))
                twins.append((name, "Q5_0", shape, bytes(twin)))
                ours.append((name, kind, shape, bytes(change(data))))
            else:
                twins.append((name, kind, shape, data))
                ours.append(twins[-1])
        return keys, ours, twins

    def test_mxfp4(self):
        keys, ours, twins = self.mxfp4()
        path, twin = scratch("mxfp4.gguf"), scratch("q5_0.gguf")
        gguf.write(path, keys, ours)
        gguf.write(twin, keys, twins)
        self.assertEqual(self.logits(path, SHORT), self.logits(twin, SHORT))
        for head in ("auto", "f16"):
            for source, out in ((path, "a.tern"), (twin, "b.tern")):
                self.ok("convert", source, "-o", scratch(out), "--no-tokenizer", "--head", head,
                        "--name", "x", "--force")
                self.ok("logits", scratch(out), "--ids", SHORT, "-o", scratch(out + ".f32"))
            self.assertEqual(read_bytes(scratch("a.tern.f32")), read_bytes(scratch("b.tern.f32")))

    def grids(self, kind):
        """tiny-qwen2 with random weights in a type with a grid, and the same weights in Q8_0."""
        noise = random.Random(6)
        even = [b for b in range(256) if bin(b).count("1") % 2 == 0]
        keys, tensors = gguf.read(shared("reference", "dense", "gguf", "tiny-qwen2", "q8_0.gguf"))
        ours, twins = [], []
        for name, old, shape, data in tensors:
            twin = data
            if old == "Q8_0":
                blocks = [(noise.choice((2.0 ** -24, 0.001, 0.004)), noise.choices(range(16), k=8),
                           noise.choices(even, k=32)) for _ in range(shape[0] * shape[1] // 256)]
                data = b"".join(grid_block(kind, *b) for b in blocks)
                twin = b"".join(grid_twin(*b) for b in blocks)
            ours.append((name, kind if old == "Q8_0" else old, shape, data))
            twins.append((name, old, shape, twin))
        return keys, ours, twins

    def test_types_with_a_grid(self):
        path, twin = scratch("grid.gguf"), scratch("grid-q8_0.gguf")
        for kind in ("IQ2_XXS", "IQ2_XS", "IQ2_S", "IQ3_XXS", "IQ3_S"):
            keys, ours, twins = self.grids(kind)
            gguf.write(path, keys, ours)
            gguf.write(twin, keys, twins)
            for source, out in ((path, "a.tern"), (twin, "b.tern")):
                said = self.ok("convert", source, "-o", scratch(out), "--no-tokenizer",
                               "--force").err
                self.assertEqual(f" in {kind}, are stored in a larger format" in said,
                                 source == path)
                self.ok("logits", scratch(out), "--ids", SHORT, "--inputs", "f32", "-o",
                        scratch(out + ".f32"))
            self.assertEqual(read_bytes(scratch("a.tern.f32")), read_bytes(scratch("b.tern.f32")))
            self.ok("verify", scratch("a.tern"))

    def test_files_of_types_with_a_grid(self):
        """Several files give the tensors of one, byte for byte."""
        for kind in ("IQ2_XS", "IQ3_S"):
            keys, tensors, _ = self.grids(kind)
            whole, n = scratch("whole.gguf"), 3
            gguf.write(whole, keys, tensors)
            for i in range(n):
                more = [("split.no", gguf.U16, i), ("split.count", gguf.U16, n),
                        ("split.tensors.count", gguf.I32, len(tensors))]
                gguf.write(scratch(f"grid-0000{i + 1}-of-0000{n}.gguf"),
                           (keys if i == 0 else []) + more, tensors[i::n])
            for source, out in ((whole, "a.tern"), (scratch(f"grid-00001-of-0000{n}.gguf"),
                                                    "b.tern")):
                self.ok("convert", source, "-o", scratch(out), "--no-tokenizer", "--force")
            info = json.loads(self.ok("info", scratch("b.tern"), "--json", "--tensors").text)
            n_bytes = sum(t["bytes"] for t in info["tensors"])
            self.assertGreater(n_bytes, 100000)
            self.assertEqual(*(read_bytes(scratch(out))[-n_bytes:] for out in ("a.tern", "b.tern")))

    def test_bad_scale_of_a_grid(self):
        path = scratch("bad-grid.gguf")
        keys, tensors, _ = self.grids("IQ3_S")
        at = next(i for i, t in enumerate(tensors) if t[0] == "blk.0.attn_q.weight")
        name, kind, shape, data = tensors[at]
        tensors[at] = (name, kind, shape, data[:111] + b"\x7c" + data[112:])
        gguf.write(path, keys, tensors)
        result = command.tern("convert", path, "-o", scratch("bad.tern"), "--no-tokenizer")
        self.assertEqual(result.code, 5, result.err)
        self.assertIn("a scale of block 0 of row 1 is not a finite number", result.err)

    def test_bad_mxfp4(self):
        path, words = scratch("bad.gguf"), "the scale of block 1 of row 0 is not in 2^-24 to 2^15"
        for exponent in (103, 144, 255, 0):
            def put(data, e=exponent):
                data[17:19] = bytes((e, 0x21))
                return data
            keys, tensors, _ = self.mxfp4(put)
            gguf.write(path, keys, tensors)
            result = command.tern("convert", path, "-o", scratch("bad.tern"), "--no-tokenizer")
            self.assertEqual(result.code, 6, result.err)
            self.assertIn(words, result.err)
        data = read_bytes(path)
        with open(path, "wb") as f:
            f.write(data[:-40])
        result = command.tern("convert", path, "-o", scratch("bad.tern"), "--no-tokenizer")
        self.assertEqual(result.code, 5, result.err)
        self.assertIn("the file is truncated", result.err)


if __name__ == "__main__":
    command.main()
