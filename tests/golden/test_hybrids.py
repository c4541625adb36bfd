#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models with experts: the reference's logits and greedy ids at every kernel level, the same bits
however a prompt is cut and however many threads compute it, and damage that is refused."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import floats, read_bytes, read_json, scratch, shared

LEVELS = ["ref", "ssse3", "avx2", "avxvnni", "avx512", "neon", "dotprod", "i8mm"]
# Source under reference/hybrids -> its goldens.
MODELS = {
    "models/tiny-maple": "models/tiny-maple/golden",
    "gguf/tiny-maple/q2_0.gguf": "models/tiny-maple/golden",
}
MAPLE = "models/tiny-maple"
FLAGS = ("--no-tokenizer", "--head", "f32")


def hybrid(name):
    return shared("reference", "hybrids", *name.split("/"))


def levels(model):
    """Kernel levels that exist here."""
    out = scratch("level.f32")
    return [level for level in LEVELS
            if command.tern("logits", model, "--ids", "1", "-o", out, "--cpu", level).code == 0]


class Hybrids(command.TestCase):
    def logits(self, model, ids, *flags):
        out = scratch("logits.f32")
        result = self.ok("logits", model, "--ids", " ".join(str(i) for i in ids), "-o", out,
                         "--kv", "f32", *flags)
        return read_bytes(out), result.text.split()

    def check_prompt(self, model, level, golden, i, ids):
        greedy = ids["greedy"][i] if "greedy" in ids else []
        expected = floats(read_bytes(os.path.join(golden, f"logits_{i}.f32")))
        flags = ["--greedy", str(len(greedy))] if greedy else []
        for inputs, tolerance in (("f32", 1e-4), ("16", 1e-3)):
            data, chosen = self.logits(model, ids["prompt_ids"][i], "--cpu", level, "--inputs",
                                       inputs, *flags)
            got = floats(data)
            self.assertEqual(len(got), len(expected))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(got, expected)), tolerance)
            self.assertEqual(chosen, [str(k) for k in greedy])

    def test_goldens(self):
        for name, golden in MODELS.items():
            model, golden = command.model(hybrid(name), *FLAGS), hybrid(golden)
            ids = read_json(os.path.join(golden, "ids.json"))
            for level in levels(model):
                for i in range(len(ids["prompt_ids"])):
                    with self.subTest(source=name, level=level, prompt=i):
                        self.check_prompt(model, level, golden, i, ids)

    def test_same_bits(self):
        """Batches of any size, threads and kernel levels: one row at a time is the yardstick."""
        for name, golden in MODELS.items():
            model = command.model(hybrid(name), *FLAGS)
            ids = read_json(os.path.join(hybrid(golden), "ids.json"))["prompt_ids"][-1]
            for inputs in ("16", "8", "f32"):
                want = self.logits(model, ids, "--inputs", inputs, "--batch", "1", "--cpu", "ref")
                cases = [(level, "2", "128") for level in levels(model)]
                cases += [(None, str(n), str(batch)) for n in range(1, 5)
                          for batch in (1, 2, 3, 9, 64, 65, 134)]
                for level, threads, batch in cases:
                    with self.subTest(source=name, inputs=inputs, level=level, threads=threads,
                                      batch=batch):
                        got = self.logits(model, ids, "--inputs", inputs, "--threads", threads,
                                          "--batch", batch, *(["--cpu", level] if level else []))
                        self.assertEqual(got[0] == want[0], True)

    def test_folder_and_file_agree(self):
        """Experts one by one, and stacked."""
        ids = [1, 17, 200, 42]
        outputs = [self.logits(command.model(hybrid(name), *FLAGS), ids)[0]
                   for name in (MAPLE, "gguf/tiny-maple/q2_0.gguf")]
        self.assertEqual(outputs[0] == outputs[1], True)

    def test_drafts_change_nothing(self):
        model = command.model(hybrid(MAPLE))
        texts = {self.ok("run", model, "--raw", "-p", "abcabcabcabcabc", "-n", "60", "--greedy",
                         "--draft", n).text for n in ("off", "3", "7")}
        self.assertEqual(len(texts), 1)

    def test_what_a_token_reads(self):
        """Two of three experts: the rest is in the file, but not read."""
        info = json.loads(self.ok("info", command.model(hybrid(MAPLE), *FLAGS), "--json").text)
        self.assertLess(info["bytes_per_token"], info["file_bytes"])


class Damage(command.TestCase):
    """Folders like tiny-maple in which one thing is wrong."""

    def refused_with(self, code, words, change_config=None, change_tensors=None):
        folder = scratch("damaged")
        os.makedirs(folder, exist_ok=True)
        config = read_json(os.path.join(hybrid(MAPLE), "config.json"))
        tensors = gguf.read_safetensors(os.path.join(hybrid(MAPLE), "model.safetensors"))
        if change_config:
            config.update(change_config)
        if change_tensors:
            change_tensors(tensors)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            json.dump(config, f)
        gguf.write_safetensors(os.path.join(folder, "model.safetensors"), tensors)
        error = self.refused(code, "convert", folder, "-o", scratch("damaged.tern"),
                             "--no-tokenizer")
        self.assertIn(words, error)

    def test_numbers(self):
        for key, value, code, words in (
                ("num_experts", 0, 5, '"num_experts" is 0, allowed are 1 to 1024'),
                ("num_experts", 1025, 5, '"num_experts" is 1025, allowed are 1 to 1024'),
                ("num_experts", None, 5, '"num_experts" is missing'),
                ("num_experts", 2.5, 5, '"num_experts" is 2.5, not an integer'),
                ("num_experts", 4, 5, '"model.layers.0.mlp.gate.weight": shape [3, 256]'),
                ("num_experts", 2, 5, '"model.layers.0.mlp.gate.weight": shape [3, 256]'),
                ("num_experts_per_tok", 0, 5, "allowed are 1 to 3"),
                ("num_experts_per_tok", 4, 5, "allowed are 1 to 3"),
                ("moe_intermediate_size", 0, 5, "allowed are 1 to"),
                ("moe_intermediate_size", 128, 5, "makes it [128, 256]"),
                ("sliding_window", 0, 5, "allowed are 1 to"),
                ("layer_types", ["sliding_attention", "round"], 6, '"layer_types"[1] is "round"'),
                ("first_k_dense_replace", 1, 5, "allowed are 0 to 0"),
                ("num_shared_experts", 1, 5, "allowed are 0 to 0"),
                ("moe_router_enable_expert_bias", True, 6, "is not supported"),
                ("moe_router_enable_expert_bias", 7, 5, "is not true or false"),
                ("nope_on_global_attention", False, 6, "is not supported")):
            with self.subTest(key=key, value=value):
                self.refused_with(code, words, {key: value})

    def test_tensors(self):
        router = "model.layers.1.mlp.gate.weight"

        def set_nan(tensors):
            dtype, shape, data = tensors[router]
            tensors[router] = dtype, shape, struct.pack("<H", 0x7FC0) + data[2:]

        for words, change in (
                ('"model.layers.1.mlp.experts.2.up_proj.weight" is missing',
                 lambda t: t.pop("model.layers.1.mlp.experts.2.up_proj.weight")),
                (f'"{router}" is missing', lambda t: t.pop(router)),
                (f'"{router}": the value at row 0, column 0 is not a finite number', set_nan)):
            with self.subTest(words=words):
                self.refused_with(5, words, change_tensors=change)


if __name__ == "__main__":
    command.main()
