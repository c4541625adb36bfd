#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern bench: what its report holds, that levels and thread counts agree, and what it refuses."""
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command

QUICK = ("-p", "4,1", "-n", "3", "-r", "2", "--depths", "5,0")
REPORT = {"model", "kv", "prompt_tokens", "new_tokens", "stream_gb_s", "runs", "load_cold_s",
          "load_warm_s", "peak_rss_bytes", "major_faults", "kernels"}
RUN = {"kernel", "threads", "depth", "prefill_tok_s", "prefill_best_tok_s", "prefill_spread",
       "decode_tok_s", "decode_best_tok_s", "decode_spread", "decode_bytes_per_token",
       "decode_gb_s", "output_hash"}


class Bench(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def report(self, *flags):
        return json.loads(self.ok("bench", self.model, *QUICK, "--json", *flags).text)

    def test_report(self):
        report = self.report("--threads", "1,2", "--kv", "q8")
        self.assertEqual(set(report), REPORT)
        self.assertEqual((report["model"], report["kv"]), ("demo", "q8"))
        self.assertEqual((report["prompt_tokens"], report["new_tokens"]), (4, 3))
        self.assertEqual(set(report["stream_gb_s"]), {"1", "2"})
        self.assertEqual([(r["threads"], r["depth"]) for r in report["runs"]],
                         [(t, d) for t in (1, 2) for d in (4, 1, 5, 0)])
        for run in report["runs"]:
            self.assertEqual(set(run), RUN)
            # Decoding follows the first prompt and the filled caches.
            self.assertEqual(run["prefill_tok_s"] is not None, run["depth"] in (4, 1))
            self.assertEqual(run["decode_tok_s"] is not None, run["depth"] != 1)
            self.assertEqual(run["output_hash"] is not None, run["depth"] != 1)
        for kernel in report["kernels"]:
            self.assertEqual(set(kernel), {"op", "isa", "gb_s", "share"})

    def test_levels_and_threads_generate_the_same(self):
        first = {r["depth"]: r["output_hash"] for r in self.report("--threads", "3")["runs"]}
        for run in self.report("--threads", "1,2", "--cpu", "ref")["runs"]:
            self.assertEqual(run["output_hash"], first[run["depth"]])

    def test_table(self):
        text = self.ok("bench", self.model, *QUICK, "--threads", "1").text
        for line in (r"load +cold \d", r"stream +\d", r"kernel +threads +depth +prefill",
                     r"memory +\d", r"output +the same tokens at every level"):
            self.assertRegex(text, re.compile("^" + line, re.MULTILINE))

    def test_refused_before_anything_is_measured(self):
        for flags in (("-p", "0"), ("-p", "1,2,3,4,5,6,7,8,9"), ("-p", "x"), ("-n", "0"),
                      ("-r", "0"), ("-r", "33"), ("-p", "1024"), ("-p", "1", "--depths", "1024"),
                      ("--depths", ""), ("--threads", "0"), ("--threads", "1,257"),
                      ("--cpu", "sse9"), ("--cpu", ""), ("--cpu", ","),
                      ("--cpu", ",".join(["ref"] * 9))):
            with self.subTest(flags=flags):
                self.refused(2, "bench", self.model, *flags)


if __name__ == "__main__":
    command.main()
