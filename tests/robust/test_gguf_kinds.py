#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""GGUF files that are no models say what they are; types of tokens are read in both signs,
messages name types of tensors, and ids for fill-in-the-middle are kept."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import scratch, shared

TYPES = "tokenizer.ggml.token_type"
TEXT = "Hello <|end_of_text|> you"


class GgufKinds(command.TestCase):
    def setUp(self):
        self.keys, self.tensors = gguf.read(
            shared("reference", "gguf", "tiny-bitnet-packed", "i2_s.gguf"))
        self.path, self.out = scratch("kind.gguf"), scratch("kind.tern")

    def ids(self, types):
        """Of a text, with types of tokens of this type."""
        keys = [(name, types if name == TYPES else kind, value)
                for name, kind, value in self.keys]
        gguf.write(self.path, keys, self.tensors)
        self.ok("convert", self.path, "-o", self.out, "--force")
        return self.ok("tokenize", self.out, "--special", stdin=TEXT.encode()).text

    def test_what_is_no_model(self):
        rows = [("general.type", "adapter", "LoRA adapter"),
                ("general.type", "imatrix", "importance matrix"),
                ("general.type", "mmproj", "sees pictures"),
                ("general.architecture", "clip", "sees pictures")]
        for name, value, words in rows:
            with self.subTest(value):
                gguf.write(self.path, [(name, gguf.STRING, value)], self.tensors[:2])
                self.assertIn(words, self.refused(6, "convert", self.path, "-o", self.out))

    def test_types_of_tokens(self):
        self.assertEqual(self.ids((gguf.ARRAY, gguf.U32)), self.ids((gguf.ARRAY, gguf.I32)))
        keys = [key if key[0] != TYPES else (TYPES, (gguf.ARRAY, gguf.F32), key[2])
                for key in self.keys]
        gguf.write(self.path, keys, self.tensors)
        error = self.refused(5, "convert", self.path, "-o", self.out, "--force")
        self.assertIn(TYPES + " is an array of F32, expected I32", error)

    def test_no_tokens(self):
        name = "tokenizer.ggml.tokens"
        keys = [key for key in self.keys if not key[0].startswith("tokenizer.ggml.token")]
        more = [(name, (gguf.ARRAY, gguf.STRING), []),
                ("tokenizer.ggml.fim_pre_token_id", gguf.I32, 0)]
        gguf.write(self.path, keys + more, self.tensors)
        error = self.refused(5, "convert", self.path, "-o", self.out, "--force")
        self.assertIn(name + " is empty", error)

    def with_ids(self, **ids):
        """Arguments that convert the file with these ids of the tokenizer."""
        more = [("tokenizer.ggml." + name, gguf.I32, n) for name, n in ids.items()]
        gguf.write(self.path, self.keys + more, self.tensors)
        return "convert", self.path, "-o", self.out, "--force"

    def fim_ids(self, **ids):
        self.ok(*self.with_ids(**ids))
        return json.loads(self.ok("info", self.out, "--json").text)["fim_ids"]

    def test_ids_that_fill_in(self):
        """The file's ids, under their present and former names."""
        self.assertIsNone(self.fim_ids())
        self.assertIsNone(self.fim_ids(fim_pre_token_id=0, fim_suf_token_id=1))
        self.assertIsNone(self.fim_ids(fim_pre_token_id=0, fim_suf_token_id=1,
                                       fim_mid_token_id=-1))
        want = {"prefix": 0, "suffix": 1, "middle": 5}
        for ids in (dict(fim_pre_token_id=0, fim_suf_token_id=1, fim_mid_token_id=5),
                    dict(prefix_token_id=0, suffix_token_id=1, middle_token_id=5),
                    dict(prefix_token_id=7, fim_pre_token_id=0, suffix_token_id=1,
                         fim_mid_token_id=5)):
            found = self.fim_ids(**ids, fim_sep_token_id=9)
            self.assertEqual({name: found[name] for name in want}, want)
            self.assertEqual(found["file"], 9)
        n = len(next(value for name, _, value in self.keys if name == "tokenizer.ggml.tokens"))
        error = self.refused(5, *self.with_ids(fim_pad_token_id=n))
        self.assertIn(f"tokenizer.ggml.fim_pad_token_id is {n}, there are {n} tokens", error)
        for name in ("fim_suf_token_id", "unknown_token_id"):
            error = self.refused(5, *self.with_ids(**{name: -2}))
            self.assertIn(f"tokenizer.ggml.{name} is -2, allowed are 0 to 4294967294", error)

    def test_a_template_is_text(self):
        name = "tokenizer.chat_template"
        keys = [key for key in self.keys if key[0] != name]
        gguf.write(self.path, keys + [(name, (gguf.ARRAY, gguf.STRING), ["a"])], self.tensors)
        self.assertIn(f'key "{name}" is of type ARRAY, expected a text',
                      self.refused(5, "convert", self.path, "-o", self.out, "-q"))

    def test_types_of_tensors(self):
        """One that tern does not decode has its name in the message, or its number."""
        for number, block, n_bytes, words in ((33, 32, 18, "type Q4_0_8_8: no ternary"),
                                              (40, 64, 36, "type NVFP4: no ternary"),
                                              (152, 64, 9, "type number 152: no ternary")):
            with self.subTest(number):
                gguf.TYPES["ODD"] = number, block, n_bytes
                gguf.write(self.path, self.keys, [
                    (name, "ODD", shape, bytes(gguf.tensor_bytes("ODD", shape)))
                    if name == "blk.0.ffn_up.weight" else (name, kind, shape, data)
                    for name, kind, shape, data in self.tensors])
                error = self.refused(6, "convert", self.path, "-o", self.out, "--force")
                self.assertIn(words, error)


if __name__ == "__main__":
    command.main()
