#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command against the reference: logits, greedy ids, perplexity; and the same bytes on every
machine and from every kernel level, thread count and batch."""
import hashlib
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import LEVELS, NATIVE, floats, read_bytes, read_json, scratch, shared

DIGESTS = os.path.join(os.path.dirname(os.path.abspath(__file__)), "digests.json")
TOLERANCE = 1e-4
# More than one prefill batch, not a multiple of any tile; emulators are slow.
N_IDS = 150 if NATIVE else 37
THREADS = ("1", "2", "3", "7") if NATIVE else ("1", "2")


def text_of(ids):
    return " ".join(str(i) for i in ids)


def some_ids(n):
    return text_of((i * 7919 + 11) % 4096 for i in range(n))


def digests():
    """SHA-256 of the demo model's logits, by type of head and of cache."""
    found = {}
    for head in ("bf16", "q8", "q6", "q4"):
        model = command.model(command.DEMO, "--head", head)
        for kv in ("f32", "f16", "q8"):
            out = scratch("pinned.f32")
            result = command.tern("logits", model, "--ids", some_ids(37), "-o", out, "--kv", kv)
            assert result.code == 0, result.err
            found[f"head {head}, cache {kv}"] = hashlib.sha256(read_bytes(out)).hexdigest()
    return found


class Reference(command.TestCase):
    def check_model(self, name, *flags):
        golden = shared("reference", "models", name, "golden")
        model = command.model(shared("reference", "models", name), "--head", "bf16", *flags)
        ids = read_json(os.path.join(golden, "ids.json"))
        for i, prompt in enumerate(ids["prompt_ids"]):
            with self.subTest(model=name, prompt=i):
                self.check_prompt(model, os.path.join(golden, f"logits_{i}.f32"), prompt,
                                  ids["greedy"][i])

    def check_prompt(self, model, logits, prompt, greedy):
        out = scratch("logits.f32")
        result = self.ok("logits", model, "--ids", text_of(prompt), "-o", out, "--kv", "f32",
                         "--greedy", str(len(greedy)))
        expected, got = floats(read_bytes(logits)), floats(read_bytes(out))
        self.assertEqual(len(got), len(expected))
        worst = max(abs(a - b) for a, b in zip(got, expected))
        self.assertLessEqual(worst, TOLERANCE)
        self.assertEqual(result.text.split(), text_of(greedy).split())

    def test_demo(self):
        self.check_model("demo")

    def test_bf16(self):
        self.check_model("tiny-bitnet-bf16")

    def test_packed(self):
        self.check_model("tiny-bitnet-packed")

    def test_perplexity(self):
        if os.environ.get("QEMU_CPU", "max") not in ("max", "Haswell"):
            self.skipTest("long; once for each emulated architecture is enough")
        golden = shared("reference", "models", "demo", "golden")
        expected = read_json(os.path.join(golden, "perplexity.json"))
        model = command.model(command.DEMO, "--head", "bf16")
        result = self.ok("perplexity", model, os.path.join(golden, "perplexity.txt"), "--ctx",
                         str(expected["ctx"]), "--stride", str(expected["stride"]), "--json")
        got = command.json.loads(result.text)
        self.assertEqual(got["tokens"], expected["tokens"])
        self.assertAlmostEqual(got["nats_per_token"], expected["nats_per_token"], delta=0.002)


class Pinned(command.TestCase):
    """The exact bits, the same on every machine and at every kernel level, pinned in digests.json.
    The argument --write rewrites the file."""

    def test_digests(self):
        self.assertEqual(digests(), read_json(DIGESTS))


class SameBits(command.TestCase):
    def setUp(self):
        self.model = command.model()
        self.ids = some_ids(N_IDS)

    def logits(self, name, *flags):
        out = scratch(name)
        result = command.tern("logits", self.model, "--ids", self.ids, "-o", out, *flags)
        if result.code == 6 and "--cpu" in flags:
            return None
        if result.code == 2 and "unknown CPU level" in result.err:
            return None
        self.assertEqual(result.code, 0, result.err)
        return read_bytes(out)

    def check(self, kv, variants):
        reference = self.logits("reference.f32", "--kv", kv)
        self.assertEqual(len(reference), N_IDS * 4096 * 4)
        n_checked = 0
        for flags in variants:
            with self.subTest(kv=kv, flags=flags):
                got = self.logits("variant.f32", "--kv", kv, *flags)
                if got is not None:
                    n_checked += 1
                    self.assertTrue(got == reference, "other logits")
        return n_checked

    def test_cpu_levels(self):
        for kv in ("f32", "f16", "q8"):
            self.assertGreaterEqual(self.check(kv, [("--cpu", level) for level in LEVELS]), 1)

    def test_threads(self):
        self.check("f16", [("--threads", n) for n in THREADS])

    def test_batches(self):
        self.check("f16", [("--batch", n) for n in ("1", "2", "17", "64", "512")])

    def test_few_rows(self):
        """Batches of 2 to 8 use the sparse path of decoding; 9 are a matrix."""
        self.check("q8", [("--batch", str(n)) for n in range(2, 10)])
        self.check("q8", [("--cpu", level, "--batch", "8", "--threads", "2") for level in LEVELS])

    def test_all_at_once(self):
        self.check("q8", [("--cpu", "ref", "--threads", "3", "--batch", "17")])


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        with open(DIGESTS, "w", encoding="utf-8") as f:
            json.dump(digests(), f, indent=1)
            f.write("\n")
    else:
        command.main()
