#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models whose weights are rotated by Hadamard matrices (prism.hadamard.*): the same bits however a
prompt is split and computed, and refused keys.  test_families.py compares their logits with the
reference's."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import LEVELS, read_bytes, read_json, scratch, shared

FLAGS = ("--no-tokenizer", "--head", "f32")
PREFIX = "prism.hadamard."
I32S, TEXTS = (gguf.ARRAY, gguf.I32), (gguf.ARRAY, gguf.STRING)


def source(kind):
    return shared("reference", "hybrids", "gguf", "tiny-qwen35-ternary", f"{kind}-hadamard.gguf")


def prompts(kind):
    return read_json(os.path.join(source(kind)[:-5] + ".golden", "ids.json"))["prompt_ids"]


class Rotated(command.TestCase):
    def logits(self, model, ids, *flags):
        out = scratch("logits.f32")
        self.ok("logits", model, "--ids", " ".join(str(i) for i in ids), "-o", out, *flags)
        return read_bytes(out)

    def test_same_bits(self):
        """Kernel levels, threads and batches of any size, compared with one row at a time."""
        model, ids = command.model(source("ptq1_0"), *FLAGS), prompts("ptq1_0")[-1]
        for inputs in ("16", "8", "f32"):
            want = self.logits(model, ids, "--inputs", inputs, "--batch", "1", "--cpu", "ref")
            cases = [("--cpu", level) for level in LEVELS
                     if command.tern("logits", model, "--ids", "1", "-o", scratch("level.f32"),
                                     "--cpu", level).code == 0]
            cases += [("--threads", str(n), "--batch", str(batch)) for n in range(1, 5)
                      for batch in (1, 2, 9, 64)]
            for case in cases:
                with self.subTest(inputs=inputs, case=case):
                    got = self.logits(model, ids, "--inputs", inputs, *case)
                    self.assertEqual(got == want, True)

    def test_both_types_hold_the_same(self):
        ids = prompts("pq2_0")[-1]
        outputs = [self.logits(command.model(source(kind), *FLAGS), ids)
                   for kind in ("pq2_0", "ptq1_0")]
        self.assertEqual(outputs[0] == outputs[1], True)

    def test_drafts_change_nothing(self):
        model = command.model(source("pq2_0"))
        texts = {self.ok("run", model, "--raw", "-p", "abcabcabcabcabc", "-n", "40", "--greedy",
                         "--draft", n).text for n in ("off", "3", "7")}
        self.assertEqual(len(texts), 1)

    def test_info(self):
        """All matrices of the two layers except alpha and beta, the embeddings and the head."""
        model = command.model(source("pq2_0"), *FLAGS)
        info = json.loads(self.ok("info", model, "--json").text)
        self.assertEqual((info["rotated"], info["rotation_block"]), (16, 64))
        self.assertIn("rotated       16 matrices, by Hadamard matrices of 64",
                      self.ok("info", model).text)
        self.ok("verify", model)


class Folder(command.TestCase):
    def test_rotated_folders_are_refused(self):
        """hadamard.json is all that tells them from others."""
        folder = scratch("rotated")
        shutil.copytree(shared("reference", "hybrids", "models", "tiny-qwen35-ternary"), folder)
        with open(os.path.join(folder, "hadamard.json"), "w", encoding="utf-8") as f:
            json.dump({"version": 1, "block_size": 64}, f)
        error = self.refused(6, "convert", folder, "-o", scratch("rotated.tern"))
        self.assertIn("holds hadamard.json: its weights are rotated", error)
        info = json.loads(self.ok("info", folder, "--json").text)
        self.assertEqual((info["convertible"], "hadamard.json" in info["reason"]), (False, True))


class Keys(command.TestCase):
    """The file with changed keys of the rotation; None: the key is removed."""

    def convert(self, changes, change_tensors=None):
        keys, tensors = gguf.read(source("pq2_0"))
        keys = [key for key in keys if key[0] not in {PREFIX + name for name in changes}]
        keys += [(PREFIX + name, *value) for name, value in changes.items() if value]
        path = scratch("changed.gguf")
        gguf.write(path, keys, change_tensors(tensors) if change_tensors else tensors)
        return ("convert", path, "-o", scratch("changed.tern"), *FLAGS)

    def refused_with(self, code, words, changes, change_tensors=None):
        error = self.refused(code, *self.convert(changes, change_tensors))
        self.assertIn(words, error)

    def old(self, name):
        return next(k[2] for k in gguf.read(source("pq2_0"))[0] if k[0] == PREFIX + name)

    def test_the_file_itself(self):
        self.ok(*self.convert({}))

    def test_values(self):
        signs, widths, names = (self.old(n) for n in ("sign_values", "sign_widths", "weight_names"))
        self.assertEqual(widths, [256, 128])
        for name, value, code, words in (
                ("version", (gguf.U32, 2), 6, 'version" is 2, which is not supported; 1 is'),
                ("version", None, 5, 'version" is missing'),
                ("block_size", (gguf.U32, 0), 5, "is 0, must be a power of two"),
                ("block_size", (gguf.U32, 48), 5, "is 48, must be a power of two"),
                ("block_size", (gguf.U32, 1 << 31), 5, "is 2147483648, must be a power of two"),
                ("block_size", (gguf.U32, 256), 5, "is 128, must be a new multiple"),
                ("transform", (gguf.STRING, "walsh"), 6, '"walsh", which is not supported'),
                ("transform", None, 5, 'transform" is missing'),
                ("axis", (gguf.STRING, "output"), 6, '"output", which is not supported'),
                ("sign_mode", (gguf.STRING, "random"), 6, '"random", which is not supported'),
                ("sign_mode", None, 5, 'sign_mode" is missing'),
                ("sign_widths", (I32S, [256]), 5, "sign_widths are 256 together"),
                ("sign_widths", (I32S, [256, 256]), 5, "sign_widths\"[1] is 256, must be a new"),
                ("sign_widths", (I32S, [-256, 640]), 5, "sign_widths\"[0] is -256, must be"),
                ("sign_widths", (I32S, [320, 64]), 5, "has no signs for its 256 columns"),
                ("sign_widths", (I32S, []), 5, "has 0 values"),
                ("sign_widths", (gguf.U32, 1), 5, 'sign_widths" is missing, or of the wrong type'),
                ("sign_values", (I32S, signs[:-1]), 5, "has 383 values"),
                ("sign_values", (I32S, [2] + signs[1:]), 5, "holds 2, allowed are 1 and -1"),
                ("sign_values", (I32S, [0] + signs[1:]), 5, "holds 0, allowed are 1 and -1"),
                ("weight_names", None, 5, 'weight_names" is missing'),
                ("weight_names", (TEXTS, ["blk.0.absent.weight"]), 5, "does not hold"),
                ("weight_names", (TEXTS, ["x" * 100]), 5, "does not hold"),
                ("weight_names", (TEXTS, ["blk.0.ssm_norm.weight"]), 6, "has 1 dimensions"),
                ("weight_names", (TEXTS, ["blk.0.ssm_conv1d.weight"]), 5, "no signs for its 4 col"),
                ("weight_names", (TEXTS, ["token_embd.weight"]), 6, "where it is not supported"),
                ("inverse_weight_names", (TEXTS, names[:1]), 6, "where it is not supported"),
                ("gdn_v_grouped", (gguf.U32, 1), 5, "of the wrong type"),
                ("seed", (gguf.U32, 1), 6, 'key "prism.hadamard.seed" is not known')):
            with self.subTest(name=name, value=str(value)[:40]):
                self.refused_with(code, words, {name: value})

    def test_a_tied_head(self):
        self.refused_with(6, "is rotated and also the head",
                          {"weight_names": (TEXTS, [n for n in self.old("weight_names")
                                                    if n != "output.weight"])},
                          lambda tensors: [t for t in tensors if t[0] != "output.weight"])

    def test_experts(self):
        """Stacked ones have three dimensions, a shared one has two."""
        keys, tensors = gguf.read(shared("reference", "hybrids", "gguf", "tiny-qwen35-moe",
                                         "q8_0.gguf"))
        for name, words in (("ffn_gate_exps", "is rotated and has 3 dimensions; 2 are supported"),
                            ("ffn_gate_shexp", "which is not supported for it"),
                            ("ffn_gate_inp", "which is not supported for it")):
            changes = {"version": (gguf.U32, 1), "block_size": (gguf.U32, 32),
                       "transform": (gguf.STRING, "normalized-sylvester-walsh-hadamard"),
                       "axis": (gguf.STRING, "input-last-dimension"),
                       "sign_mode": (gguf.STRING, "identity"),
                       "weight_names": (TEXTS, [f"blk.1.{name}.weight"])}
            path = scratch("experts.gguf")
            gguf.write(path, keys + [(PREFIX + n, *v) for n, v in changes.items()], tensors)
            with self.subTest(name=name):
                self.assertIn(words, self.refused(6, "convert", path, "-o", scratch("e.tern"),
                                                  "--no-tokenizer"))

    def test_signs_of_one_byte(self):
        """As 8-bit or 32-bit integers: the same model."""
        ids, found = prompts("pq2_0")[1], []
        for kind in (gguf.I8, gguf.I32):
            self.ok(*self.convert({"sign_values": ((gguf.ARRAY, kind), self.old("sign_values"))}))
            self.ok("logits", scratch("changed.tern"), "--ids", " ".join(str(i) for i in ids), "-o",
                    scratch("logits.f32"))
            found.append(read_bytes(scratch("logits.f32")))
        self.assertEqual(found[0] == found[1], True)

    def test_no_signs(self):
        self.ok(*self.convert({"sign_mode": (gguf.STRING, "identity"), "sign_widths": None,
                               "sign_values": None}))
        info = json.loads(self.ok("info", scratch("changed.tern"), "--json").text)
        self.assertEqual(info["rotated"], 16)

    def test_lost_keys(self):
        """A program that quantises again drops them: alpha and beta in floats reveal it."""
        names = ("version", "block_size", "transform", "axis", "sign_mode", "sign_widths",
                 "sign_values", "weight_names", "inverse_weight_names", "gdn_v_grouped")
        error = self.ok(*self.convert(dict.fromkeys(names))).err
        self.assertIn('warning: "blk.0.ssm_alpha.weight" is in floats', error)
        self.assertIn("prism.hadamard.*", error)
        self.assertNotIn("ssm_alpha", self.ok(*self.convert({})).err)


if __name__ == "__main__":
    command.main()
