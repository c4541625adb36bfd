#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern --inputs: the precision of activations for models trained without rounding them."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, read_bytes, scratch, shared

FORMS = ("f32", "16", "8")
IDS = " ".join(str(i * 37 % 200) for i in range(40))


class Inputs(command.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.model = command.model(shared("reference", "models", "tiny-bonsai"), "--no-tokenizer")

    def logits(self, *flags, model=None):
        out = scratch("inputs.f32")
        self.ok("logits", model or self.model, "--ids", IDS, "-o", out, *flags)
        return read_bytes(out)

    def test_a_model_with_rounded_inputs_has_no_choice(self):
        text = scratch("text.txt")
        with open(text, "w", encoding="utf-8") as f:
            f.write("Once upon a time there was a cat.")
        demo = command.model()
        for form in FORMS:
            for call in (("run", demo, "-p", "Hi"), ("logits", demo, "--ids", "1", "--greedy", "1"),
                         ("perplexity", demo, text), ("serve", demo, "--port", "0"),
                         ("bench", demo, "-r", "1", "-n", "1", "-p", "1", "--depths", "0"),
                         ("embed", demo, "--ids", "1 2")):
                with self.subTest(form=form, command=call[0]):
                    result = command.tern(*call, "--inputs", form)
                    self.assertEqual(result.code, 2, result.err)
                    self.assertEqual(result.out, b"")
                    self.assertIn(f"--inputs {form}: ", result.err.splitlines()[-1])
                    self.assertIn("trained with inputs rounded to int8 for each token", result.err)
        self.assertIn("one of auto, ", self.refused(2, "run", demo, "-p", "Hi", "--inputs", "4"))
        self.ok("logits", demo, "--ids", "1", "--greedy", "1", "--inputs", "auto")

    def test_the_bits_depend_on_the_form_only(self):
        seen = {}
        for form in FORMS:
            want = seen[form] = self.logits("--inputs", form)
            for flags in (["--batch", "1"], ["--batch", "7"], ["--threads", "1"],
                          ["--threads", "2"], ["--cpu", "ref"]):
                with self.subTest(form=form, flags=flags):
                    self.assertEqual(self.logits("--inputs", form, *flags), want)
        self.assertEqual(len(set(seen.values())), len(FORMS))
        self.assertEqual(self.logits(), seen["16"])
        for form, most in (("16", 1e-3), ("8", 0.2)):
            largest = max(abs(a - b) for a, b in zip(floats(seen["f32"]), floats(seen[form])))
            self.assertLess(largest, most)

    def test_the_cost_of_8_bits_is_reported(self):
        for form in FORMS:
            result = self.ok("logits", self.model, "--ids", "1", "--greedy", "1", "--inputs", form)
            self.assertEqual("logits move by about 0.1" in result.err, form == "8")

    def test_vectors(self):
        seen = {self.ok("embed", self.model, "--ids", "1 2 3", "--raw", "--inputs", form).out
                for form in FORMS}
        self.assertEqual(len(seen), len(FORMS))

    def test_the_form_is_named(self):
        report = self.ok("bench", self.model, "-r", "1", "-n", "2", "-p", "4", "--depths", "0",
                         "--threads", "1", "--json", "--inputs", "f32").text
        self.assertEqual(json.loads(report)["inputs"], "f32")
        for model, form, words in ((self.model, "16", "16 bits"), (command.model(), "int8", "int8")):
            self.assertEqual(json.loads(self.ok("info", model, "--json").text)["inputs"], form)
            self.assertRegex(self.ok("info", model).text, rf"\ninputs +{words}")

    def test_block_types_take_8_bits_and_their_head_16(self):
        folder = shared("reference", "dense", "gguf", "tiny-qwen2")
        for name in ("q8_0", "q4_k_m", "q4_k_m-fallback"):
            model = command.model(os.path.join(folder, name + ".gguf"), "--no-tokenizer")
            self.assertEqual(json.loads(self.ok("info", model, "--json").text)["inputs"], "8")
            self.assertRegex(self.ok("info", model).text, r"\ninputs +8 bits for each 32 columns")
            seen = {form: self.logits("--inputs", form, model=model) for form in ("auto", *FORMS)}
            self.assertEqual(len(set(seen.values())), 4)
            for form, most in (("auto", 0.2), ("16", 1e-3), ("8", 0.2)):
                largest = max(abs(a - b) for a, b in zip(floats(seen["f32"]), floats(seen[form])))
                self.assertLess(largest, most)
            for flags in (["--batch", "1"], ["--batch", "7"], ["--threads", "1"], ["--cpu", "ref"]):
                self.assertEqual(self.logits(*flags, model=model), seen["auto"])
        self.assertNotIn("logits move", self.ok("logits", model, "--ids", "1", "-o",
                                                scratch("inputs.f32"), "--inputs", "8").err)

    def test_run(self):
        model = command.model(shared("reference", "models", "tiny-trilm"))
        write = ["run", model, "--raw", "-p", "Hello", "--greedy", "-n", "4", "--ignore-eos"]
        for form in FORMS:
            stats = self.ok(*write, "--inputs", form, "--stats=json").err.splitlines()[-1]
            self.assertEqual(json.loads(stats)["inputs"], form)
            self.assertRegex(self.ok(*write, "--inputs", form, "--stats").err,
                             rf"\ninputs +{form}\n")

    def test_saved_keys_and_values_belong_to_a_form(self):
        model = command.model(shared("reference", "models", "tiny-trilm"))
        cache = scratch("prefix")
        write = ["run", model, "--raw", "-p", "Hello there", "--greedy", "-n", "4", "--ignore-eos",
                 "--prefix-cache", cache]
        for form in FORMS:
            self.ok(*write, "--inputs", form)
            self.assertNotIn("anew", self.ok(*write, "--inputs", form).err)
            for other in set(FORMS) - {form}:
                err = self.ok(*write, "--inputs", other).err
                self.assertIn(f"computed with another activation precision ({other} here)", err)
                self.ok(*write, "--inputs", form)


if __name__ == "__main__":
    command.main()
