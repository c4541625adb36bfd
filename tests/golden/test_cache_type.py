#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The type of the key/value cache: q8, or f16 if the file says so; free memory changes lengths and
never the text."""
import json
import os
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import NATIVE, scratch, shared, tern

STORY = ("--raw", "-p", "The king", "-n", "20", "--greedy")


def spread_keys(source, target, factor):
    """Copies a folder whose attention has norms of queries and keys: one pair of rotated channels
    of each key is multiplied by `factor`, of each query divided by it. In exact arithmetic it is
    the same model."""
    shutil.copytree(source, target, copy_function=shutil.copyfile)
    os.chmod(target, 0o755)
    path = os.path.join(target, "model.safetensors")
    tensors = gguf.read_safetensors(path)
    for name, (dtype, shape, data) in tensors.items():
        if not name.endswith(("q_norm.weight", "k_norm.weight")):
            continue
        assert dtype == "F16", name
        values = list(struct.unpack(f"<{shape[0]}e", data))
        for i in (3, shape[0] // 2 + 3):
            values[i] *= factor if "k_norm" in name else 1 / factor
        tensors[name] = dtype, shape, struct.pack(f"<{shape[0]}e", *values)
    gguf.write_safetensors(path, tensors)
    return target


def cache_of(model):
    return json.loads(tern("info", model, "--json").text)["kv"]


class CacheType(command.TestCase):
    def kv_of_run(self, model, *flags):
        result = self.ok("run", model, *STORY, "--stats=json", *flags)
        return json.loads(result.err.splitlines()[-1])["kv"]

    def test_q8_is_the_default(self):
        model = command.model()
        self.assertEqual(cache_of(model), "q8")
        self.assertEqual(self.kv_of_run(model), "q8")
        self.assertEqual(self.kv_of_run(model, "--kv", "f16"), "f16")
        bench = self.ok("bench", model, "-p", "8", "-n", "2", "-r", "1", "--depths", "0",
                        "--threads", "1", "--json")
        self.assertEqual(json.loads(bench.text)["kv"], "q8")
        probe = json.loads(self.ok("probe", model, "--json").text)
        self.assertEqual(probe["plan"]["kv"], "q8")

    def test_memory_does_not_change_the_text(self):
        model = command.model()
        texts = {}
        for ram in ("8M", "9M", "12M", "20M", "34M", "100M", "1G"):
            result = tern("run", model, *STORY, "--ram", ram)
            if result.code != 3:
                self.assertEqual(result.code, 0, result.err)
                texts[ram] = result.text
        self.assertGreaterEqual(len(texts), 4)
        self.assertEqual(len(set(texts.values())), 1, texts)

    @unittest.skipUnless(NATIVE and sys.platform == "linux", "limits of the address space")
    @unittest.skipIf(os.environ.get("TERN_SANITIZE"), "a sanitizer reserves address space")
    def test_address_space_does_not_change_the_text(self):
        import resource
        texts = []
        for kib in (26000, 30000, 400000):
            def limit(n=kib * 1024):
                resource.setrlimit(resource.RLIMIT_AS, (n, n))
            done = subprocess.run(command.argv("run", command.model(), *STORY),
                                  capture_output=True, preexec_fn=limit, check=False,
                                  env=command.environment())
            if done.returncode == 0:
                texts.append(done.stdout)
        self.assertGreaterEqual(len(texts), 1)
        self.assertEqual(len(set(texts)), 1, texts)

    def test_keys_of_unlike_channels_ask_for_f16(self):
        source = shared("reference", "models", "tiny-bonsai")
        plain, spread = scratch("plain.tern"), scratch("spread.tern")
        self.assertNotIn("f16", self.ok("convert", source, "-o", plain).err)
        self.assertEqual(cache_of(plain), "q8")
        folder = spread_keys(source, scratch("spread"), 50)
        self.assertIn("the cache of this model will be f16: q8 costs it",
                      self.ok("convert", folder, "-o", spread).err)
        self.assertEqual(cache_of(spread), "f16")
        self.ok("verify", spread)
        for ram in ((), ("--ram", "16M"), ("--ram", "64M")):
            self.assertEqual(self.kv_of_run(spread, *ram), "f16")
        self.assertEqual(self.kv_of_run(spread, "--kv", "q8"), "q8")

    def test_old_prefix_cache_is_computed_anew(self):
        model, cache = command.model(), scratch("prefix.kv")
        old = self.ok("run", model, *STORY, "--prefix-cache", cache, "--kv", "f16")
        with open(cache, "rb") as f:
            self.assertEqual(struct.unpack("<I", f.read(16)[12:])[0], 1)  # f16 in the file
        fresh = self.ok("run", model, *STORY)
        again = self.ok("run", model, *STORY, "--prefix-cache", cache)
        self.assertEqual(old.code, 0)
        self.assertEqual(again.out, fresh.out)
        self.assertIn("the prompt is computed again", again.err)
        self.assertIn("of another cache type (q8 here)", again.err)
        third = self.ok("run", model, *STORY, "--prefix-cache", cache)
        self.assertNotIn("computed again", third.err)


if __name__ == "__main__":
    command.main()
