#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern convert checks its result: untrained weights are recognised by their zeros."""
import json
import os
import random
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import read_bytes, scratch


def bf16(value):
    """The upper two bytes of the float32, which are precise enough."""
    return struct.pack("<f", value)[2:]


def with_weights(name, draw):
    """The demo's folder with every projection replaced by values of draw()."""
    folder = scratch(name)
    shutil.copytree(command.DEMO, folder)
    path = os.path.join(folder, "model.safetensors")
    data = bytearray(read_bytes(path))
    start = 8 + struct.unpack_from("<Q", data)[0]
    pool = b"".join(bf16(draw()) for _ in range(40009))
    for tensor, about in json.loads(data[8:start]).items():
        if not tensor.endswith("_proj.weight"):
            continue
        begin, end = (start + offset for offset in about["data_offsets"])
        data[begin:end] = (pool * ((end - begin) // len(pool) + 1))[:end - begin]
    with open(path, "wb") as f:
        f.write(data)
    return folder


class Names(command.TestCase):
    def test_flags_of_gguf_files(self):
        """Without an effect on folders, so they are refused there."""
        output = os.path.join(scratch("flags"), "a.tern")
        for flag in (["--pre", "gpt2"], ["--i2s-layout", "arm"]):
            error = self.refused(2, "convert", "-q", command.DEMO, "-o", output, *flag)
            self.assertIn(f"{flag[0]} is for GGUF files", error)

    def test_partial_file_is_no_source(self):
        folder = scratch("part")
        os.mkdir(folder)
        source = os.path.join(folder, "a.tern.part")
        shutil.copy(command.shared("reference", "gguf", "tiny-bitnet-packed", "i2_s.gguf"), source)
        data = read_bytes(source)
        error = self.refused(2, "convert", "-q", source, "-o", os.path.join(folder, "a.tern"))
        self.assertIn("a.tern.part is a file of the model being converted", error)
        self.assertEqual((os.listdir(folder), read_bytes(source)), (["a.tern.part"], data))

    def test_the_name_is_that_of_the_link(self):
        """Symbolic links as in the cache of Hugging Face."""
        if os.name == "nt":
            self.skipTest("links need rights there")
        folder = scratch("links")
        os.mkdir(folder)
        os.symlink(command.shared("reference", "gguf", "tiny-bitnet-packed", "i2_s.gguf"),
                   os.path.join(folder, "Good-Name.gguf"))
        os.symlink(command.DEMO, os.path.join(folder, "Folder"))
        for source, output in (("Good-Name.gguf", "Good-Name.tern"), ("Folder/", "Folder.tern")):
            self.ok("convert", source, cwd=folder)
            about = json.loads(self.ok("info", output, "--json", cwd=folder).text)
            self.assertEqual(about["name"], output[:-5])


class ZeroShare(command.TestCase):
    def warnings(self, folder):
        result = self.ok("convert", folder, "-o", scratch("out.tern"))
        return [line for line in result.err.splitlines() if "warning" in line]

    def test_a_trained_model_gets_no_warning(self):
        self.assertEqual(self.warnings(command.DEMO), [])

    def test_gaussian_weights_get_the_number(self):
        random.seed(5)
        lines = self.warnings(with_weights("gaussian", lambda: random.gauss(0, 0.02)))
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"^tern: warning: 3[01]\.\d % of the ternary weights are zero; "
                                   r"trained models have about 36 to 42 %")

    def test_weights_that_are_mostly_zero(self):
        random.seed(6)
        folder = with_weights("sparse", lambda: random.choice((0, 0, 0, 0, 1, -1)))
        lines = self.warnings(folder)
        self.assertEqual(len(lines), 1)
        self.assertRegex(lines[0], r"6\d\.\d % of the ternary weights are zero.*complete")


if __name__ == "__main__":
    command.main()
