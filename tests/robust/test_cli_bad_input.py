#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input to the command: each case gives one line, its exit code, and leaves no files."""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, read_bytes, read_json, scratch, shared

POSIX = NATIVE and os.name == "posix"
LFS = (b"version https://git-lfs.github.com/spec/v1\n"
       b"oid sha256:4d7a214614ab2935c943f9e0ff69d22eadbb8f32b1258daaa5e2ca24d17e2393\nsize 12345\n")


class ModelFiles(command.TestCase):
    def setUp(self):
        self.model = command.model()
        self.data = read_bytes(self.model)

    def check(self, data, code=5, commands=("info",)):
        path = scratch("bad.tern")
        with open(path, "wb") as f:
            f.write(data)
        for name in commands:
            arguments = [name, path] + (["-p", "Hi"] if name == "run" else [])
            text = self.refused(code, *arguments)
            self.assertIn("bad.tern", text)
        return text

    def test_no_such_file_and_no_file(self):
        self.refused(5, "run", scratch("missing.tern"), "-p", "Hi")
        os.makedirs(scratch("no model"))
        self.refused(5, "run", scratch("no model"), "-p", "Hi")
        self.refused(5, "logits", command.DEMO, "--ids", "1", "--greedy", "1")
        self.refused(2, "info", "")

    def test_foreign_files(self):
        everywhere = ("run", "info", "verify", "tokenize")
        self.check(b"", commands=everywhere)
        self.check(b"\x89PNG\r\n\x1a\n" + bytes(5000), commands=everywhere)
        self.assertIn("LFS", self.check(LFS, commands=everywhere))
        self.assertIn("tern convert", self.check(b"GGUF" + bytes(5000), commands=("verify",)))
        self.assertIn("GGUF version 0", self.check(b"GGUF" + bytes(5000), code=6))
        page = b"<!DOCTYPE html>\n<html><head><title>Sign in</title></head></html>\n"
        self.assertIn("is an HTML page", self.check(page, commands=everywhere))
        self.assertIn("is a JSON file", self.check(b'{"error": "Unauthorized"}'))
        self.check(bytes(1 << 20))

    def sections(self):
        return struct.unpack_from("<10Q", self.data, 32)

    def test_truncated_at_every_boundary(self):
        sections = self.sections()
        places = {1, 7, 8, 12, 255, 256, 257, len(self.data) - 1}
        for offset, size in zip(sections[::2], sections[1::2]):
            places |= {offset, offset + 1, offset + size - 1, offset + size}
        for n in sorted(p for p in places if 0 < p < len(self.data)):
            with self.subTest(n=n):
                self.check(self.data[:n])

    def test_longer_than_it_should_be(self):
        self.check(self.data + b"\0")

    def test_flipped_bits_before_the_data(self):
        end = self.sections()[8]
        for i in list(range(0, 256, 5)) + list(range(256, end, max(1, end // 60))):
            with self.subTest(byte=i):
                flipped = bytearray(self.data)
                flipped[i] ^= 1 << (i % 8)
                path = scratch("bad.tern")
                with open(path, "wb") as f:
                    f.write(flipped)
                self.assertIn(command.tern("info", path).code, (5, 6))

    def test_other_versions(self):
        version, = struct.unpack_from("<I", self.data, 8)
        for other, word in ((version + 1, "newer"), (version - 1, "convert the model again")):
            changed = bytearray(self.data)
            struct.pack_into("<I", changed, 8, other)
            self.assertIn(word, self.check(bytes(changed), 6))

    def test_without_a_tokenizer(self):
        model = command.model(command.DEMO, "--no-tokenizer")
        for arguments in (["run", model, "-p", "Hi"], ["chat", model], ["tokenize", model],
                          ["detokenize", model], ["perplexity", model, __file__]):
            self.assertIn("--no-tokenizer", self.refused(5, *arguments))
        self.ok("verify", model)
        self.ok("info", model)
        self.ok("logits", model, "--ids", "1 2", "--greedy", "2")


@unittest.skipUnless(POSIX, "truncates a mapped file")
class Mapped(command.TestCase):
    def test_truncated_while_in_use(self):
        path = scratch("shrinks.tern")
        shutil.copyfile(command.model(), path)
        process = subprocess.Popen(
            command.argv("run", path, "--raw", "-p", "Once", "-n", "1000", "--caps", "off",
                         "--ignore-eos", "--cpu", "ref", "--threads", "1"),
            stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdout.read(1)
        os.truncate(path, 4096)
        _, err = process.communicate(timeout=command.TIMEOUT)
        self.assertEqual(process.returncode, 74)
        self.assertEqual(err.count(b"\n"), 1)
        self.assertIn(b"shrinks.tern", err)

    def test_truncated_after_another_was_opened(self):
        path, other = scratch("in-use.tern"), scratch("no-tokenizer.tern")
        shutil.copyfile(command.model(), path)
        self.ok("convert", command.DEMO, "--no-tokenizer", "-o", other)
        process = subprocess.Popen(
            command.argv("chat", path, "-n", "1000", "--caps", "off", "--ignore-eos", "--cpu", "ref",
                         "--threads", "1"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"/model " + os.fsencode(other) + b"\nHello\n")
        process.stdin.flush()
        process.stdout.read(1)
        os.truncate(path, 4096)
        _, err = process.communicate(timeout=command.TIMEOUT)
        self.assertEqual(process.returncode, 74)
        self.assertIn(b"a model file became unreadable", err)

    def test_overwritten_while_in_use(self):
        """Between two messages of a chat, and in the middle of a text that is shown token by token.
        """
        path = scratch("overwritten.tern")
        arguments = (("chat", path, "-n", "4", "--template", "chatml"),
                     ("run", path, "--raw", "-p", "Once", "-n", "100000", "--ignore-eos",
                      "--caps", "off", "--ctx", "1024", "--cpu", "ref", "--threads", "1"))
        for command_line in arguments:
            with self.subTest(command=command_line[0]):
                shutil.copyfile(command.model(), path)
                process = subprocess.Popen(command.argv(*command_line), stdin=subprocess.PIPE,
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                process.stdin.write(b"Hello\n")
                process.stdin.flush()
                os.read(process.stdout.fileno(), 1)
                with open(path, "r+b") as f:  # in place, and not shorter
                    f.write(os.urandom(os.path.getsize(path)))
                _, err = process.communicate(b"Hello\n", timeout=command.TIMEOUT)
                self.assertEqual(process.returncode, 74, err)
                self.assertIn(b"overwritten.tern\" was written to while in use", err)

    def test_replaced_while_in_use(self):
        """A different file with the same name is not the open file."""
        path = scratch("replaced.tern")
        shutil.copyfile(command.model(), path)
        process = subprocess.Popen(
            command.argv("chat", path, "-n", "4", "--template", "chatml"),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        process.stdin.write(b"Hello\n")
        process.stdin.flush()
        os.read(process.stdout.fileno(), 1)
        with open(path + ".new", "wb") as f:
            f.write(b"another")
        os.replace(path + ".new", path)
        _, err = process.communicate(b"Hello\n", timeout=command.TIMEOUT)
        self.assertEqual(process.returncode, 0, err)


class Directories(command.TestCase):
    """Conversions of a small model with a single error."""

    def setUp(self):
        self.source = shared("reference", "models", "tiny-bitnet-bf16")
        self.dir = scratch("dir")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        for name in ("config.json", "generation_config.json", "model.safetensors",
                     "tokenizer.json", "tokenizer_config.json"):
            shutil.copyfile(os.path.join(self.source, name), self.path(name))
        self.out = scratch("converted.tern")
        if os.path.exists(self.out):
            os.unlink(self.out)

    def path(self, name):
        return os.path.join(self.dir, name)

    def write(self, name, data):
        with open(self.path(name), "wb") as f:
            f.write(data)

    def check(self, code, *words):
        text = self.refused(code, "convert", self.dir, "-o", self.out)
        for word in words:
            self.assertIn(word, text)
        self.assertFalse(os.path.exists(self.out))
        self.assertFalse(os.path.exists(self.out + ".part"))

    def config(self, **changes):
        config = read_json(os.path.join(self.source, "config.json"))
        for key, value in changes.items():
            if value is None:
                del config[key]
            else:
                config[key] = value
        self.write("config.json", json.dumps(config).encode())

    def test_intact(self):
        self.ok("convert", self.dir, "-o", self.out)
        self.ok("verify", self.out)

    def test_a_chat_template_that_was_not_copied_is_missed(self):
        missed = "tern: note: the directory holds no chat template"
        self.assertNotIn(missed, self.ok("convert", self.dir, "-o", self.out).err)
        os.unlink(self.path("tokenizer_config.json"))
        self.assertIn(missed, self.ok("convert", self.dir, "-o", self.out).err)
        self.assertRegex(self.refused(2, "chat", self.out), "--template .*tern run --raw")
        without = self.ok("convert", self.dir, "-o", self.out, "--no-tokenizer").err
        self.assertNotIn(missed, without)

    def test_a_chat_template_that_cannot_be_read(self):
        """The flags in the warning help, and without them each command names them."""
        self.write("chat_template.jinja", b"a\n{% include 'x' %}")
        warning = self.ok("convert", self.dir, "-o", self.out).err
        self.assertIn("line 2: the tag \"include\" is not supported", warning)
        self.assertIn("`tern chat` and `tern run` will need --template, or `tern run` --raw",
                      warning)
        for arguments in (["chat", self.out], ["run", self.out, "-p", "Hi", "-n", "1"]):
            self.assertIn("--template", self.refused(6, *arguments))
            self.ok(*arguments, "--template", "bitnet-2b-4t")
        self.ok("run", self.out, "-p", "Hi", "-n", "1", "--raw")

    def test_a_custom_chat_template(self):
        source = b"{% for m in messages %}[{{ m.role }}] {{ m.content }}{{ eos_token }}{% endfor %}"
        self.write("chat_template.jinja", source)
        self.assertNotIn("template", self.ok("convert", self.dir, "-o", self.out).err)
        self.ok("chat", self.out, stdin=b"Hi\n")
        self.ok("run", self.out, "-p", "Hi", "-n", "1")
        chat = b'{"messages": [{"role": "user", "content": "Hi"}], "eos_token": "."}'
        shown = self.ok("tokenize", self.out, "--chat", "--text", stdin=chat).out
        self.assertEqual(shown, b"[user] Hi.")
        path = self.path("chat_template.jinja")
        shown = self.ok("tokenize", self.out, "--chat", "--text", "--template", path,
                        stdin=chat).out
        self.assertEqual(shown, b"[user] Hi.")

    def test_the_ends_of_a_chosen_template(self):
        """--template stops at its end of turn, even if the model names another stop id only."""
        for name in ("config.json", "model.safetensors", "tokenizer.json"):
            shutil.copy(os.path.join(command.DEMO, name), self.path(name))
        shutil.copy(os.path.join(command.DEMO, "tokenizer_config.json"), self.path("template.json"))
        self.write("generation_config.json", b'{"eos_token_id": 4081}')
        if os.path.exists(self.path("tokenizer_config.json")):
            os.unlink(self.path("tokenizer_config.json"))
        self.ok("convert", self.dir, "-o", self.out, "--force")
        self.assertEqual(json.loads(self.ok("info", self.out, "--json").text)["stop_ids"], [4081])
        self.write("t.jinja", read_json(self.path("template.json"))["chat_template"].encode())

        def answer(*flags):
            return self.ok("run", self.out, "-p", "Hi", "-n", "200", "--greedy", "--stats=json",
                           *flags)
        expected = command.tern("run", command.model(), "-p", "Hi", "-n", "200", "--greedy")
        for template in ("bitnet-2b-4t", self.path("t.jinja")):
            with self.subTest(template):
                result = answer("--template", template)
                self.assertEqual(result.out, expected.out)
                self.assertIn('"stop":"eos"', result.err)
        self.assertNotIn('"stop":"eos"', answer("--raw").err)

    def test_the_date_of_a_template(self):
        self.ok("convert", self.dir, "-o", self.out)
        self.write("t.jinja", b"{{ strftime_now('%d %b %Y') }}")
        path = self.path("t.jinja")
        arguments = ["tokenize", self.out, "--chat", "--text", "--template", path]
        shown = self.ok(*arguments, "--date", "2024-02-29", stdin=b"[]").out
        self.assertEqual(shown, b"29 Feb 2024")
        self.assertRegex(self.ok(*arguments, stdin=b"[]").out.decode(), r"^\d\d [A-Z][a-z][a-z] \d{4}$")
        for date in ("2024-02-30", "24-2-2", "2024-13-01", "today", "", "  24-02-29", "+024-02-29",
                     "2024- 2-29", "2024-+2-29"):
            self.assertIn("YYYY-MM-DD", self.refused(2, *arguments, "--date", date))

    def test_directories(self):
        for path in (scratch("no such folder"), os.path.abspath(__file__)):
            self.refused(5, "convert", path, "-o", self.out)
        os.unlink(self.path("config.json"))
        self.check(5, "config.json")
        self.refused(2, "convert")
        self.assertIn("name is empty", self.refused(2, "convert", command.DEMO, "--name", "",
                                                    "-o", self.out))

    @unittest.skipUnless(POSIX, "named pipes")
    def test_named_pipes(self):
        for name in ("config.json", "tokenizer.json", "model.safetensors"):
            with self.subTest(name=name):
                os.unlink(self.path(name))
                os.mkfifo(self.path(name))
                self.check(5, name, "not a regular file")
                os.unlink(self.path(name))
                shutil.copyfile(os.path.join(self.source, name), self.path(name))

    @unittest.skipUnless(POSIX, "symbolic links")
    def test_links_that_lead_nowhere(self):
        """An incomplete download: no optional file is silently omitted."""
        for name in ("config.json", "generation_config.json", "tokenizer.json",
                     "tokenizer_config.json", "chat_template.jinja", "model.safetensors"):
            with self.subTest(name=name):
                if os.path.exists(self.path(name)):
                    os.unlink(self.path(name))
                os.symlink("../../blobs/0123abcd", self.path(name))
                self.check(5, name, "cannot be opened")
                os.unlink(self.path(name))
                if os.path.exists(os.path.join(self.source, name)):
                    shutil.copyfile(os.path.join(self.source, name), self.path(name))

    def test_config_is_no_json(self):
        for data in (b"", b"{", b"[]", b"nonsense", b"\xff\xfe", b"[" * 100000, b'{"a":1}x', LFS):
            with self.subTest(data=data[:20]):
                self.write("config.json", data)
                self.check(5, "config.json")

    def test_config_values(self):
        for key in ("hidden_size", "num_hidden_layers", "num_attention_heads", "vocab_size",
                    "intermediate_size", "max_position_embeddings"):
            for value in (None, 0, -1, 1 << 40, 1.5, "x", 10 ** 30):
                with self.subTest(key=key, value=value):
                    self.config(**{key: value})
                    self.check(5)
        for changes in ({"num_attention_heads": 3}, {"num_key_value_heads": 3},
                        {"hidden_size": 250}, {"rms_norm_eps": -1.0}, {"rope_theta": 0},
                        {"num_key_value_heads": 0}, {"vocab_size": 500}):
            with self.subTest(changes=changes):
                self.config(**changes)
                self.check(5)

    def test_config_of_other_models(self):
        for changes in ({"architectures": ["MambaForCausalLM"], "model_type": "mamba"},
                        {"hidden_act": "mish"},
                        {"rope_scaling": {"rope_type": "ntk-aware", "factor": 8.0}}):
            with self.subTest(changes=changes):
                self.config(**changes)
                self.check(6)

    def test_a_family_that_config_does_not_tell_from_dense_models(self):
        self.config(architectures=["Qwen3ForCausalLM"], quantization_config=None)
        self.check(6, "not trained ternary", "of its scale away from -1, 0 and +1")

    def test_a_rope_scaling_that_lacks_a_number(self):
        self.config(rope_scaling={"rope_type": "llama3", "factor": 8.0})
        self.check(5, "low_freq_factor")

    def test_unused_numbers_that_json_does_not_have_convert(self):
        """As Python's json writes and reads them."""
        self.config(some_length=10 ** 30, some_limits=[float("inf"), -float("inf")],
                    some_dropout=float("nan"))
        self.ok("convert", self.dir, "-o", self.out)

    def safetensors(self):
        data = read_bytes(os.path.join(self.source, "model.safetensors"))
        n = struct.unpack_from("<Q", data)[0]
        return json.loads(data[8:8 + n]), data[8 + n:]

    def write_safetensors(self, header, body):
        text = json.dumps(header).encode()
        self.write("model.safetensors", struct.pack("<Q", len(text)) + text + body)

    def test_safetensors_files(self):
        data = read_bytes(os.path.join(self.source, "model.safetensors"))
        for bad in (b"", data[:4], data[:8], data[:100], data[:-1], data[: len(data) // 2],
                    data + b"\0", LFS, struct.pack("<Q", 1 << 60) + data[8:], bytes(4096)):
            with self.subTest(n=len(bad)):
                self.write("model.safetensors", bad)
                self.check(5)
        os.unlink(self.path("model.safetensors"))
        self.check(5)

    def test_tensors(self):
        name = "model.layers.1.mlp.up_proj.weight"

        def missing(h):
            del h[name]

        def misnamed(h):
            h["model.layers.1.mlp.upp_proj.weight"] = h.pop(name)

        def extra(h):
            h["model.layers.9.mlp.up_proj.weight"] = dict(h[name])

        def shape(h):
            h[name]["shape"] = h[name]["shape"][::-1]

        def short(h):
            h[name]["shape"] = [h[name]["shape"][0], h[name]["shape"][1] - 1]

        def dtype(h):
            h[name]["dtype"] = "I16"

        def unknown_dtype(h):
            h[name]["dtype"] = "Q7"

        def overlap(h):
            start, end = h[name]["data_offsets"]
            h[name]["data_offsets"] = [start - 2, end - 2]

        def outside(h):
            start, end = h[name]["data_offsets"]
            h[name]["data_offsets"] = [start + (1 << 40), end + (1 << 40)]

        def backwards(h):
            h[name]["data_offsets"] = h[name]["data_offsets"][::-1]

        def negative(h):
            h[name]["data_offsets"] = [-2, h[name]["data_offsets"][1]]

        for change in (missing, misnamed, extra, shape, short, dtype, unknown_dtype, overlap,
                       outside, backwards, negative):
            with self.subTest(change=change.__name__):
                header, body = self.safetensors()
                change(header)
                self.write_safetensors(header, body)
                result = command.tern("convert", self.dir, "-o", self.out)
                self.assertIn(result.code, (5, 6), result.err)
                self.assertIn("tensor", result.err)
                if change in (missing, misnamed):
                    self.assertIn(f'"{name}" is missing', result.err)
                self.assertEqual(result.err.count("tern: "), 1)
                self.assertFalse(os.path.exists(self.out))
                self.assertFalse(os.path.exists(self.out + ".part"))

    def test_values_that_are_not_finite(self):
        header, body = self.safetensors()
        for name in ("model.layers.2.mlp.down_proj.weight", "model.norm.weight",
                     "model.embed_tokens.weight"):
            for bits in (0x7FC0, 0x7F80, 0xFF80):
                with self.subTest(name=name, bits=bits):
                    bad = bytearray(body)
                    struct.pack_into("<H", bad, header[name]["data_offsets"][0] + 64, bits)
                    self.write_safetensors(header, bytes(bad))
                    self.check(5, name)

    def test_values_that_were_damaged_later(self):
        header, body = self.safetensors()
        begin, end = header["model.norm.weight"]["data_offsets"]
        norm = b"".join(b"\0\0" + body[i:i + 2] for i in range(begin, end, 2))
        self.ok("convert", self.dir, "-o", self.out)
        with open(self.out, "r+b") as f:
            f.seek(f.read().index(norm))
            f.write(struct.pack("<f", float("nan")) * (len(norm) // 4))
        text = scratch("text.txt")
        with open(text, "wb") as f:
            f.write(b"Once upon a time")
        for arguments in (("perplexity", self.out, text), ("run", self.out, "--raw", "-p", "x"),
                          ("perplexity", self.out, text, "--json")):
            with self.subTest(arguments=arguments):
                self.assertIn("finite", self.refused(1, *arguments))

    def test_a_perplexity_beyond_all_numbers(self):
        header, body = self.safetensors()
        begin, end = header["model.norm.weight"]["data_offsets"]
        large = struct.pack("<H", 0x4880) * ((end - begin) // 2)  # 2^18
        self.write_safetensors(header, body[:begin] + large + body[end:])
        self.ok("convert", self.dir, "-o", self.out)
        text = scratch("text.txt")
        with open(text, "wb") as f:
            f.write(b"Once upon a time")
        result = json.loads(self.ok("perplexity", self.out, text, "--json").text)
        self.assertGreater(result["nats_per_token"], 710)
        self.assertIsNone(result["perplexity"])

    def test_values_that_overflow(self):
        header, body = self.safetensors()
        begin, end = header["model.norm.weight"]["data_offsets"]
        largest = struct.pack("<H", 0x7F7F) * ((end - begin) // 2)
        self.write_safetensors(header, body[:begin] + largest + body[end:])
        self.check(5, "no finite logit")

    def test_tokenizers(self):
        original = read_json(os.path.join(self.source, "tokenizer.json"))

        def changed(change, code):
            tokenizer = json.loads(json.dumps(original))
            change(tokenizer)
            self.write("tokenizer.json", json.dumps(tokenizer).encode())
            with self.subTest(change=change.__name__):
                self.check(code, "tokenizer.json")

        def hole(t):
            del t["model"]["vocab"][next(iter(t["model"]["vocab"]))]

        def twice(t):
            vocab = t["model"]["vocab"]
            keys = list(vocab)
            vocab[keys[10]] = vocab[keys[11]]

        def beyond(t):
            vocab = t["model"]["vocab"]
            vocab[list(vocab)[-1]] = 1 << 20

        def splitter(t):
            t["pre_tokenizer"] = {"type": "Whitespace"}

        def normalizer(t):
            t["normalizer"] = {"type": "Lowercase"}

        def kind(t):
            t["model"]["type"] = "Unigram"

        changed(hole, 5)
        changed(twice, 5)
        changed(beyond, 5)
        changed(splitter, 6)
        changed(normalizer, 6)
        changed(kind, 6)
        for data in (b"", b"{", b"[]", LFS):
            self.write("tokenizer.json", data)
            self.check(5, "tokenizer.json")
        os.unlink(self.path("tokenizer.json"))
        self.check(5, "tokenizer.json")
        self.ok("convert", self.dir, "-o", self.out, "--no-tokenizer")


if __name__ == "__main__":
    command.main()
