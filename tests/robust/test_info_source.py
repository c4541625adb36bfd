#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern info on sources before conversion: GGUF files, safetensors files, directories."""
import glob
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import DEMO, scratch, shared

# Path under reference/ -> family, and words of the reason for refusing it.
FAMILIES = {
    "gguf/tiny-bitnet-packed/i2_s.gguf": ("bitnet", None),
    "gguf/tiny-bitnet-packed/i2_s-arch-bitnet-25.gguf": ("bitnet", None),
    "gguf/tiny-hf1bit/tq2_0.gguf": ("llama", None),
    "gguf/tiny-falcon-e/i2_s.gguf": ("llama", None),
    "gguf/tiny-1bitllm/f16-scales.gguf": ("bitnet", None),
    "gguf/tiny-bonsai/q2_0_g128.gguf": ("qwen3", None),
    "gguf/tiny-embed-gemma3/i2_s-pool-mean.gguf": ("bitnet-embedding", None),
    "gguf/tiny-dense-llama/f16.gguf": ("llama", None),
    "gguf/tiny-dense-llama/q4_0.gguf": ("llama", None),
    "gguf/ik-quantized/hf1bit-iq2_bn_r4.gguf": ("llama", "of type IQ2_BN_R4"),
    "models/tiny-bitnet-bf16": ("bitnet", None),
    "models/tiny-hf1bit": ("llama", None),
    "models/tiny-1bitllm": ("bitnet", None),
    "models/tiny-trilm": ("trilm", None),
    "models/tiny-bonsai": ("qwen3", None),
    "models/tiny-bitcpm4": ("minicpm", None),
    "models/tiny-deepgrove": ("deepgrove", None),
    "models/tiny-embed-qwen3": ("bitnet-embedding", None),
    "models/tiny-rmsnorm-qwen3": ("qwen3", None),
    "models/tiny-dense-llama": ("llama", None),
}


class Source(command.TestCase):
    def look(self, path):
        return json.loads(self.ok("info", path, "--json").text)

    def test_families(self):
        for name, (family, reason) in FAMILIES.items():
            with self.subTest(source=name):
                found = self.look(shared("reference", *name.split("/")))
                self.assertEqual(found["format"], "gguf" if name.endswith(".gguf") else "folder")
                self.assertEqual(found["family"], family)
                self.assertEqual(found["convertible"], reason is None)
                if reason:
                    self.assertIn(reason, found["reason"])
                else:
                    self.assertIsNone(found["reason"])

    def test_every_reference_file_is_listed(self):
        files = glob.glob(os.path.join(shared("reference", "gguf"), "*", "*.gguf"))
        self.assertGreater(len(files), 60)
        for path in files:
            with self.subTest(path=path):
                found = self.look(path)
                self.assertGreater(len(found["tensors"]), 10)
                self.assertIn("general.architecture", found["metadata"])

    def test_a_vocabulary_alone(self):
        found = self.look(shared("reference", "tokenizers", "vocab-gpt-2.gguf"))
        self.assertEqual(found["tensors"], [])
        self.assertFalse(found["convertible"])
        self.assertEqual(found["metadata"]["tokenizer.ggml.tokens"],
                         {"array": "STRING", "count": 50257})

    def test_tensors_and_metadata(self):
        found = self.look(shared("reference", "gguf", "tiny-bitnet-packed", "i2_s.gguf"))
        rows = {t["name"]: t for t in found["tensors"]}
        self.assertEqual(rows["blk.0.attn_k.weight"],
                         {"name": "blk.0.attn_k.weight", "type": "I2_S", "shape": [128, 256],
                          "bytes": 128 * 256 // 4 + 32})
        self.assertEqual(found["metadata"]["bitnet-b1.58.block_count"], 3)

    def test_demo_directory_and_its_file_of_weights(self):
        found = self.look(DEMO)
        self.assertEqual((found["format"], found["family"], found["convertible"]),
                         ("folder", "bitnet", True))
        self.assertEqual(found["metadata"]["model_type"], "bitnet")
        self.assertIsInstance(found["metadata"]["hidden_size"], int)
        alone = self.look(os.path.join(DEMO, "model.safetensors"))
        self.assertEqual((alone["format"], alone["convertible"]), ("safetensors", False))
        self.assertIn("give the folder", alone["reason"])
        self.assertEqual(alone["tensors"], found["tensors"])

    def test_numbers_are_those_of_the_file(self):
        folder = scratch("numbers")
        os.mkdir(folder)
        shutil.copy(os.path.join(DEMO, "model.safetensors"), folder)
        with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
            f.write('{"hidden_size": 64, "rms_norm_eps": 1e-5, "list": [0.1, 2], "large": %d}'
                    % 10 ** 30)
        lines = [line.split(None, 1) for line in self.ok("info", folder).text.splitlines()]
        for pair in (["hidden_size", "64"], ["rms_norm_eps", "1e-05"], ["list", "[0.1,2]"],
                     ["large", "1e+30"]):
            self.assertIn(pair, lines)

    def test_tokenizer_that_convert_refuses(self):
        """A missing tokenizer is not a reason: convert works without."""
        found = self.look(shared("reference", "gguf", "tiny-bitnet-packed", "i2_s-nopre.gguf"))
        self.assertEqual((found["family"], found["convertible"]), ("bitnet", False))
        self.assertIn("--pre NAME", found["reason"])
        folder = shutil.copytree(DEMO, scratch("unigram"))
        path = os.path.join(folder, "tokenizer.json")
        with open(path, encoding="utf-8") as f:
            tokenizer = json.load(f)
        tokenizer["model"]["type"] = "Unigram"
        with open(path, "w", encoding="utf-8") as f:
            json.dump(tokenizer, f)
        found = self.look(folder)
        self.assertFalse(found["convertible"])
        self.assertIn("Unigram", found["reason"])
        self.assertIn(found["reason"], self.refused(6, "convert", folder, "-o", scratch("x.tern")))
        os.remove(path)
        found = self.look(folder)
        self.assertEqual((found["convertible"], found["has_tokenizer"]), (True, False))
        self.assertIn(f"yes: tern convert {folder} --no-tokenizer\n", self.ok("info", folder).text)
        with_blank = scratch("a folder")
        shutil.copytree(folder, with_blank)
        self.assertIn(f'yes: tern convert "{with_blank}" --no-tokenizer\n',
                      self.ok("info", with_blank).text)

    def test_template_that_convert_refuses(self):
        data = bytearray(command.read_bytes(
            shared("reference", "gguf", "tiny-bitnet-packed", "i2_s.gguf")))
        key = b"tokenizer.chat_template"
        data[data.index(key) + len(key) + 4 + 8 + 5] = 0
        path = scratch("template.gguf")
        with open(path, "wb") as f:
            f.write(data)
        found = self.look(path)
        self.assertFalse(found["convertible"])
        self.assertIn("byte 0x00 at offset 5 of the chat template", found["reason"])
        self.assertIn(found["reason"], self.refused(5, "convert", "-q", path, "-o",
                                                    scratch("x.tern")))

    def test_folder_of_gguf_files(self):
        folder = scratch("repository")
        os.mkdir(folder)
        shutil.copy(shared("reference", "gguf", "tiny-bonsai", "q2_0.gguf"), folder)
        for args in (("info", folder), ("convert", folder, "-o", scratch("x.tern"))):
            self.assertIn("holds GGUF files, such as q2_0.gguf", self.refused(5, *args))

    def test_for_people(self):
        text = self.ok("info", DEMO).text
        self.assertIn("family        bitnet\n", text)
        self.assertIn("converts      yes: tern convert ", text)
        self.assertIn("model.layers.0.mlp.up_proj.weight", text)

    def test_a_long_value_is_cut_between_characters(self):
        folder = shutil.copytree(DEMO, scratch("long"))
        path = os.path.join(folder, "config.json")
        with open(path, encoding="utf-8") as f:
            config = json.load(f)
        for i in range(4):
            config["note" + "x" * i] = "x" * i + "\u20ac" * 60
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f, ensure_ascii=False)
        text = self.ok("info", folder).text  # which is UTF-8
        for i in range(4):
            line, = (l for l in text.splitlines() if l.startswith("note" + "x" * i + " "))
            self.assertRegex(line, '"' + "x" * i + "\u20ac{32,33}[.]{3}$")

    def test_damaged_files(self):
        path = scratch("short.gguf")
        with open(path, "wb") as f:
            f.write(b"GGUF\3\0\0\0")
        self.assertIn("short.gguf: header: 8 bytes at offset 8 reach beyond the end",
                      self.refused(5, "info", path))
        empty = scratch("empty")
        os.mkdir(empty)
        self.assertIn("model.safetensors", self.refused(5, "info", empty))

    def test_models_are_shown_as_before(self):
        self.assertIn("per token", self.ok("info", command.model()).text)


if __name__ == "__main__":
    command.main()
