#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders with vocab.json and merges.txt in place of tokenizer.json, as OPT's: the ids are those of
transformers (tests/text/make_gpt2_goldens.py), and damaged files are refused in one line."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import read_json, scratch, shared

CASES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "data", "gpt2_files.json")


class Gpt2Files(command.TestCase):
    def setUp(self):
        self.cases = read_json(CASES)

    def folder(self, files):
        """tiny-opt with these files in place of its tokenizer; values that are not text become
        JSON."""
        source, folder = shared("reference", "dense", "models", "tiny-opt"), scratch("opt")
        shutil.rmtree(folder, ignore_errors=True)
        os.makedirs(folder)
        for name in ("config.json", "model.safetensors"):
            shutil.copy(os.path.join(source, name), folder)
        for name, value in files.items():
            data = value if isinstance(value, (str, bytes)) else json.dumps(value)
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data if isinstance(data, bytes) else data.encode())
        return folder

    def convert(self, files):
        out = scratch("opt.tern")
        self.ok("convert", self.folder(files), "-o", out, "--force")
        return out

    def ids(self, model, text, *flags):
        return [int(i) for i in
                self.ok("tokenize", model, "--special", *flags, stdin=text.encode()).text.split()]

    def check(self, files, *words, code=5):
        folder = self.folder(files)
        result = command.tern("convert", folder, "-o", scratch("refused.tern"))
        self.assertEqual(result.code, code, result.err)
        self.assertEqual(len(result.err.splitlines()), 1, result.err)
        for word in words:
            self.assertIn(word, result.err)

    def changed(self, **changes):
        """The files of OPT with members of the vocabulary set, or another text of merges."""
        files = dict(self.cases[0]["files"])
        vocab = json.loads(files["vocab.json"])
        files["merges.txt"] = changes.pop("merges", files["merges.txt"])
        vocab.update(changes.pop("vocab", {}))
        return {**files, "vocab.json": vocab}

    def test_ids(self):
        for case in self.cases:
            model = self.convert(case["files"])
            for text, expected in case["ids"]:
                with self.subTest(case["name"], text=text):
                    self.assertEqual(self.ids(model, text), expected)

    def test_opt(self):
        model = self.convert(self.cases[0]["files"])
        self.assertEqual(self.ids(model, "The</s>"), [2, *self.ids(model, "The</s>", "--no-bos")])
        ordinary = self.ok("tokenize", model, "--no-bos", stdin=b"</s>").text.split()
        self.assertNotIn("2", ordinary)
        self.ok("run", model, "-p", "The", "-n", "3", "--greedy", "-q")

    def test_info(self):
        folder = self.folder(self.cases[0]["files"])
        self.assertNotIn("--no-tokenizer", self.ok("info", folder).text)
        os.remove(os.path.join(folder, "merges.txt"))
        self.assertIn("--no-tokenizer", self.ok("info", folder).text)
        error = self.refused(5, "convert", folder, "-o", scratch("refused.tern"))
        self.assertIn("tokenizer.json is missing", error)

    def test_output_is_no_input(self):
        folder = self.folder(self.cases[0]["files"])
        for name in ("vocab.json", "merges.txt", "special_tokens_map.json"):
            error = self.refused(2, "convert", folder, "-o", os.path.join(folder, name), "--force")
            self.assertIn("is a file of the model being converted", error)

    def test_merges(self):
        merges = self.cases[0]["files"]["merges.txt"]
        first = merges.splitlines()[1]
        same = self.convert(self.changed(merges=merges.replace("\n", "\r\n")))
        text, expected = self.cases[0]["ids"][2]
        self.assertEqual(self.ids(same, text), expected)
        self.assertEqual(self.ids(self.convert(self.changed(merges="")), "th"), [2, 87, 75])
        for text, *words in (
                (merges + "q q\n", "merges.txt", "needs the token \"qq\""),
                (merges + "nothing known\n", "merges.txt", "needs the token \"nothing\""),
                (merges + "a b c\n", "merges.txt", f"line {len(merges.splitlines()) + 1} is not"),
                ("#version: 0.2\n\n" + first, "merges.txt: line 2 is not a pair"),
                (" a\n", "merges.txt", "is not a pair"),
                ("</s> a\n", "special token"),
                (merges.encode() + b"\xff a\n", "merges.txt: byte 0xff at offset")):
            with self.subTest(text=text[-20:]):
                self.check(self.changed(merges=text), *words,
                           code=6 if words[0] == "special token" else 5)

    def test_repeated_merge(self):
        """The later rank of a pair holds, as in transformers."""
        merges = "t h\nh e\nt h\n"
        vocab = {"th": 300, "he": 301, "the": 302}
        files = self.cases[0]["files"]
        vocab = {**{k: v for k, v in json.loads(files["vocab.json"]).items()
                    if v < 260 and k not in vocab},
                 **{f"rest{i}": i for i in range(260, 300)}, **vocab}
        model = self.convert({**files, "vocab.json": vocab, "merges.txt": merges})
        self.assertEqual(self.ids(model, "the", "--no-bos"), [vocab["t"], 301])

    def test_vocabulary(self):
        files = self.changed()
        n = len(files["vocab.json"])
        for vocab, *words in (
                ({"new": n + 1}, f"no token has id {n}"), ({"new": 5}, "id 5 is both"),
                ({"new": 384}, "has id 384, the model has 384"),
                ({"new": 2 ** 31 + 1}, f"has id {2 ** 31 + 1}"),
                ({"new": 2 ** 70}, "has no valid id"), ({"new": -1}, "has no valid id"),
                ({"new": 1.5}, "has no valid id"), ({"new": "7"}, "has no valid id")):
            with self.subTest(vocab=vocab):
                self.check(self.changed(vocab=vocab), "vocab.json", *words)
        for text, word in ((b'{"a": 0, "a": 1}', "duplicate"), (b'{"\xff": 0}', "vocab.json"),
                           (b"[]", "not a JSON object"), (b"", "vocab.json")):
            with self.subTest(text=text):
                self.check({**files, "vocab.json": text}, "vocab.json", word)

    def test_special_tokens(self):
        files = self.changed()
        n = len(files["vocab.json"])
        config = json.loads(files["tokenizer_config.json"])
        for name, change, code, word in (
                ("tokenizer_config.json", {"tokenizer_class": "Qwen2Tokenizer"}, 6, "Qwen2Tokeni"),
                ("tokenizer_config.json", {"add_prefix_space": True}, 6, "add_prefix_space"),
                ("tokenizer_config.json", {"added_tokens_decoder": []}, 5, "is not an object"),
                ("tokenizer_config.json", {"added_tokens_decoder": {"x": {"content": "y"}}}, 5,
                 '"x" is not the id'),
                ("tokenizer_config.json", {"added_tokens_decoder": {"9": {"content": "</s>"}}}, 5,
                 "has id 9, which the vocabulary uses otherwise"),
                ("tokenizer_config.json",
                 {"bos_token": "<x>", "add_bos_token": True,
                  "added_tokens_decoder": {str(i): {"content": "<x>"} for i in range(n, 384)}}, 5,
                 'are both "<x>"'),
                ("special_tokens_map.json", {"eos_token": 7}, 5, '"eos_token" is not a token'),
                ("special_tokens_map.json", {"additional_special_tokens": {}}, 5, "is not a list"),
                ("special_tokens_map.json", {"additional_special_tokens": [1]}, 5, "is not a list"),
                ("added_tokens.json", {"<x>": n + 1}, 5, f".json: no token has id {n}"),
                ("added_tokens.json", {"<x>": 2 ** 40}, 5, "the model has 384"),
                ("added_tokens.json", {"<x>": "1"}, 5, '"<x>" is not'),
                ("added_tokens.json", {"": n}, 5, "has 0 bytes")):
            with self.subTest(name, change=change):
                old = config if name == "tokenizer_config.json" else {}
                self.check({**files, name: {**old, **change}}, word, code=code)


if __name__ == "__main__":
    command.main()
