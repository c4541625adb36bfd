#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern convert --pack: a model in the small ternary layout gives the bits of the fast one at every
kernel level, for every precision of activations."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import LEVELS, read_bytes, scratch, shared

# Path under reference/ -> precisions of activations; None: the model has no choice.
MODELS = {
    "models/tiny-bitnet-bf16": [None],  # up and down skip rows and columns
    "models/tiny-hf1bit": [None],  # int8 inputs, SiLU
    "gguf/tiny-bonsai/q2_0.gguf": ["16", "8", "f32"],  # a ternary table
    "gguf/tiny-trilm/q2_0.gguf": ["16"],  # scales in f32
    "hybrids/gguf/tiny-maple/q2_0.gguf": ["16", "8"],  # experts
    "hybrids/gguf/tiny-qwen35-ternary/ptq1_0-hadamard.gguf": ["16", "f32"],
}
IDS = "1 17 200 42 5 99 163 7 77"
BONSAI, SMALL_SOURCE = "gguf/tiny-bonsai/q2_0.gguf", "gguf/tiny-bonsai/ptq1_0.gguf"


def source(name):
    return shared("reference", *name.split("/"))


class Small(command.TestCase):
    def convert(self, name, pack, *flags):
        out = scratch(f"{pack}.tern")
        result = self.ok("convert", source(name), "-o", out, "--no-tokenizer", "--pack", pack,
                         *flags)
        return out, result.err

    def logits(self, model, *flags):
        out = scratch("logits.f32")
        self.ok("logits", model, "--ids", IDS, "-o", out, *flags)
        return read_bytes(out)

    def check_bits(self, fast, small, inputs):
        flags = ["--inputs", inputs] if inputs else []
        levels = [level for level in LEVELS
                  if command.tern("logits", fast, "--ids", "1", "-o", scratch("level.f32"), "--cpu",
                                  level).code == 0]
        want = self.logits(fast, *flags)
        for level in levels:
            for batch in ("1", "4", "128"):
                got = self.logits(small, "--cpu", level, "--batch", batch, *flags)
                self.assertEqual(got == want, True, (level, batch))

    def test_same_bits(self):
        for name, forms in MODELS.items():
            fast, small = self.convert(name, "fast")[0], self.convert(name, "small")[0]
            self.assertLess(os.path.getsize(small), os.path.getsize(fast))
            self.ok("verify", small)
            for inputs in forms:
                with self.subTest(source=name, inputs=inputs):
                    self.check_bits(fast, small, inputs)

    def test_info(self):
        """The same model in 13 of 16 bits."""
        infos = []
        for pack in ("fast", "small"):
            path = self.convert(BONSAI, pack)[0]
            infos.append(json.loads(self.ok("info", path, "--json", "--tensors").text))
        fast, small = infos
        self.assertEqual((fast["layout"], small["layout"]), ("t2", "t5"))
        self.assertEqual(small["ternary_bytes"] * 16, fast["ternary_bytes"] * 13)
        self.assertEqual(small["n_params"], fast["n_params"])
        self.assertLess(small["bytes_per_token"], fast["bytes_per_token"])
        for a, b in zip(fast["tensors"], small["tensors"]):
            self.assertEqual((a["name"], a["zeros"]), (b["name"], b["zeros"]))

    def test_default(self):
        out = scratch("default.tern")
        self.ok("convert", source(BONSAI), "-o", out, "--no-tokenizer", "--name", "x")
        fast = self.convert(BONSAI, "fast", "--name", "x")[0]
        self.assertEqual(read_bytes(out) == read_bytes(fast), True)

    def test_auto(self):
        """It reports its choice and the reason; a source of a type below 2 bits stays small."""
        small, note = self.convert(SMALL_SOURCE, "auto")
        self.assertIn("--pack auto takes small: the source is of type PTQ1_0", note)
        self.assertEqual(json.loads(self.ok("info", small, "--json").text)["layout"], "t5")
        measured, note = self.convert(BONSAI, "auto")
        layout = json.loads(self.ok("info", measured, "--json").text)["layout"]
        choice = {"t2": "fast", "t5": "small"}[layout]
        self.assertRegex(note, f"--pack auto takes {choice}: products from memory take [0-9.]+ ")

    def test_unknown(self):
        self.refused(2, "convert", source(BONSAI), "-o", scratch("x.tern"), "--pack", "tiny")


if __name__ == "__main__":
    command.main()
