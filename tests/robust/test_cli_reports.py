#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tern info, verify, tokenize, logits and perplexity report about a model."""
import json
import os
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch, tern


class Reports(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def test_info(self):
        text = self.ok("info", self.model, "--tensors").text
        self.assertIn("bitnet", text)
        self.assertIn("down", text)
        info = json.loads(self.ok("info", "--json", self.model).text)
        for key in ("name", "architecture", "n_layer", "hidden", "ffn", "n_head", "n_kv_head",
                    "head_dim", "vocab", "context", "n_params", "layout", "head", "tied",
                    "template", "bos", "stop_ids", "file_bytes", "ternary_bytes", "head_bytes",
                    "bytes_per_token", "kv_bytes_per_token"):
            self.assertIn(key, info)
        self.assertEqual(info["template"], "bitnet-2b-4t")
        self.assertEqual(info["stop_ids"], [4081, 4089])
        self.assertEqual(info["file_bytes"], os.path.getsize(self.model))
        self.assertEqual(info["kv_bytes_per_token"]["f32"], 8 * 2 * 2 * 64 * 4)
        tensors = json.loads(self.ok("info", "--json", "--tensors", self.model).text)["tensors"]
        self.assertLess(sum(t["bytes"] for t in tensors), info["file_bytes"])
        self.assertRegex(text, r"\nfile +[^:\n]+: ternary [^,\n]+, head ")
        dense = command.model(command.shared("reference", "dense", "models", "tiny-qwen2"))
        self.assertRegex(self.ok("info", dense).text, r"\nfile +[^:\n]+: head ")

    def test_info_names_the_tokens_that_texts_begin_with(self):
        self.assertIn("begins with   4080 <|begin_of_text|>\n", self.ok("info", self.model).text)
        source = scratch("no-prefix")
        shutil.copytree(command.DEMO, source)
        path = os.path.join(source, "tokenizer.json")
        tokenizer = command.read_json(path)
        tokenizer["post_processor"] = None
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)
        model = command.model(source)
        self.assertEqual(self.ok("tokenize", model).out, b"\n")
        self.assertNotIn("begins with", self.ok("info", model).text)

    def test_verify(self):
        self.assertIn("intact", self.ok("verify", self.model).text)
        data = bytearray(command.read_bytes(self.model))
        data[-1000] ^= 4
        path = scratch("flipped.tern")
        with open(path, "wb") as f:
            f.write(data)
        self.assertIn(path + ": damaged: ", self.refused(5, "verify", path))

    def test_tokenize(self):
        text = "Grüße, 東京 🦊!\n".encode()
        ids = self.ok("tokenize", self.model, stdin=text).out
        self.assertEqual(self.ok("detokenize", self.model, stdin=ids).out, text)
        pieces = self.ok("tokenize", self.model, "--pieces", stdin=text).text.splitlines()
        self.assertEqual([p.split("\t")[0] for p in pieces], ids.decode().split())
        self.assertEqual(pieces[0], "4080\t<|begin_of_text|>")
        self.assertEqual(self.ok("tokenize", self.model, "--no-bos").out, b"\n")
        with_special = self.ok("detokenize", self.model, "--special", stdin=ids).out
        self.assertEqual(with_special, b"<|begin_of_text|>" + text)

    def test_pieces_show_no_control_characters(self):
        source = scratch("controls")
        shutil.copytree(command.DEMO, source)
        tokenizer = command.read_bytes(os.path.join(source, "tokenizer.json"))
        with open(os.path.join(source, "tokenizer.json"), "wb") as f:
            f.write(tokenizer.replace(b"<|reserved_special_token_0|>", b"\\u009b"))
        pieces = self.ok("tokenize", command.model(source), "--pieces", "--special", "--no-bos",
                         stdin="\u009b".encode())
        self.assertEqual(pieces.out, b"4082\t\\xC2\\x9B\n")

    def test_any_bytes_survive(self):
        data = bytes(range(256)) * 3 + b"\xe2\x82\xf0\x9f\x98\0\xff\n\r\n"
        ids = self.ok("tokenize", self.model, stdin=data).out
        self.assertEqual(self.ok("detokenize", self.model, stdin=ids).out, data)

    def test_a_mark_before_ids(self):
        self.assertEqual(self.ok("detokenize", self.model, stdin=b"\xef\xbb\xbf52").out,
                         self.ok("detokenize", self.model, stdin=b"52").out)

    def test_detokenize_refuses(self):
        for text in (b"1 x 3", b"4096", b"-1", b"99999999999", b"1.5"):
            self.refused(2, "detokenize", self.model, stdin=text)

    def test_tokenize_chat(self):
        messages = [{"role": "user", "content": "Hi"}]
        def chat(value, *flags):
            return tern("tokenize", self.model, "--chat", *flags,
                        stdin=json.dumps(value).encode())
        self.assertEqual(chat(messages, "--text").text, "User: Hi<|eot_id|>Assistant: ")
        self.assertEqual(chat(messages, "--text", "--no-generation-prompt").text,
                         "User: Hi<|eot_id|>")
        self.assertEqual(chat(messages, "--text", "--template", "chatml").text,
                         "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        for bad in ({}, [{"role": "user"}], [{"role": 1, "content": "x"}], [[]], [None],
                    [{"role": "user", "content": None}]):
            self.assertEqual(chat(bad).code, 2, bad)
        # Members that a published template renders and the built-in one does not.
        for member in ({"tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                       {"reasoning_content": ""}):
            bad = [{"role": "assistant", "content": "", **member}]
            self.assertEqual(chat(bad, "--template", "qwen3").code, 2, bad)
        unused = [{**messages[0], "name": "x", "tool_calls": [], "reasoning_content": None}]
        self.assertEqual(chat(unused).out, chat(messages).out)
        marked = b"\xef\xbb\xbf" + json.dumps(messages).encode()
        self.assertEqual(self.ok("tokenize", self.model, "--chat", stdin=marked).out,
                         chat(messages).out)
        for data in (b"", b"[", b"nonsense", b"[" * 100000):
            self.refused(2, "tokenize", self.model, "--chat", stdin=data)
        for flags in (["--text"], ["--no-generation-prompt"], ["--template", "chatml"],
                      ["--chat", "--special"], ["--chat", "--no-bos"]):
            self.refused(2, "tokenize", self.model, *flags)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "links")
    def test_writes_through_links(self):
        folder = scratch("links")
        os.mkdir(folder)
        file, link = os.path.join(folder, "there"), os.path.join(folder, "link")
        logits = ("logits", self.model, "--ids", "1 2")
        self.ok(*logits, "-o", file)
        rows = command.read_bytes(file)
        for arguments in (("convert", command.DEMO, "-o", link, "--force"),
                          (*logits, "-o", link, "--force")):
            with open(file, "wb") as f:
                f.write(b"of before")
            if not os.path.islink(link):
                os.symlink("there", link)
            self.ok(*arguments)
            self.assertEqual((os.readlink(link), sorted(os.listdir(folder))),
                             ("there", ["link", "there"]))
            self.assertGreater(os.path.getsize(file), 1000)
        self.assertEqual(command.read_bytes(file), rows)
        os.unlink(file)
        for arguments in (("convert", command.DEMO, "-o", link), (*logits, "-o", link)):
            self.assertIn("broken symbolic link", self.refused(4, *arguments))
        self.assertEqual(os.listdir(folder), ["link"])

    @unittest.skipUnless(command.NATIVE and os.path.exists("/dev/fd/1"), "/dev/fd")
    def test_standard_output_is_never_replaced(self):
        """Also if it is a file: the caller that opened it would continue with the old one."""
        link, path, file = scratch("stdout-link"), scratch("stdout"), scratch("rows.f32")
        logits = ("logits", self.model, "--ids", "1 2")
        self.ok(*logits, "-o", file)
        os.symlink("/dev/fd/1", link)
        # Not /dev/stdout: a command that does replace it would remove it from the whole machine.
        for name in ("/dev/fd/1", link):
            for arguments, code in ((logits, 0), (("convert", command.DEMO), 4)):
                with self.subTest(name=name, command=arguments[0]), open(path, "w+b") as out:
                    done = subprocess.run(command.argv(*arguments, "-o", name), stdout=out,
                                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                    self.assertEqual(done.returncode, code, done.stderr)
                    out.seek(0)
                    self.assertEqual(out.read(), b"" if code else command.read_bytes(file))
                    self.assertTrue(os.path.samefile(path, out.fileno()))
        self.assertTrue(os.path.islink(link))

    def test_logits(self):
        out = scratch("few.f32")
        self.ok("logits", self.model, "--ids", "1, 2,3", "-o", out)
        self.assertEqual(os.path.getsize(out), 3 * 4096 * 4)
        for arguments in (["--ids", "1 x", "-o", out], ["--ids", "", "-o", out], ["-o", out],
                          ["--ids", "1"], ["--ids", "4096", "-o", out], ["--batch", "0"],
                          ["--ids", "1", "-o", out, "--batch", "513"]):
            self.refused(2, "logits", self.model, *arguments)
        self.refused(3, "logits", self.model, "--ids", "1", "--greedy", "1025")
        self.refused(3, "logits", self.model, "--ids", "1 " * 1025, "-o", out)
        missing = os.path.join(scratch("no such folder"), "x.f32")
        self.refused(4, "logits", self.model, "--ids", "1", "-o", missing)
        self.assertIn("is a directory", self.refused(4, "logits", self.model, "--ids", "1", "-o",
                                                     command.DEMO))
        self.assertEqual(self.ok("logits", self.model, "--ids", "1", "--greedy", "3").out.count(
            b" "), 2)

    def test_perplexity(self):
        path = scratch("text.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("Once upon a time there was a king. " * 20)
        result = self.ok("perplexity", self.model, path, "--ctx", "64", "--json")
        self.assertGreater(json.loads(result.text)["perplexity"], 1)
        self.assertIn("perplexity", self.ok("perplexity", "-m", self.model, path).text)
        self.refused(2, "perplexity")
        self.assertIn("no text", self.refused(2, "perplexity", self.model))
        self.refused(2, "perplexity", self.model, path, "--ctx", "64", "--stride", "65")
        self.assertIn("at least 2", self.refused(2, "perplexity", self.model, path, "--ctx", "1"))
        self.refused(5, "perplexity", self.model, scratch("missing.txt"))

    def test_perplexity_of_a_binary_file(self):
        def measured(data):
            with open(path, "wb") as f:
                f.write(data)
            return tern("perplexity", self.model, path, "--ctx", "64")
        path = scratch("bytes.txt")
        text = b"Once upon a time there was a king."
        self.assertEqual(measured(b"\xef\xbb\xbf" + text).out, measured(text).out)
        for data, said in ((text + b"\xe9", "byte 34 is 0xE9"),
                           (text.decode().encode("utf-16"), "UTF-16")):
            result = measured(data)
            self.assertEqual((result.code, result.out), (5, b""))
            self.assertIn(said, result.err)
        # The model in place of the text.
        self.assertIn("not UTF-8", self.refused(5, "perplexity", "-m", self.model, self.model))


if __name__ == "__main__":
    command.main()
