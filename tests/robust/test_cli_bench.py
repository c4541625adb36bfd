#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern bench: the content of its report, agreement of levels and thread counts, and refusals."""
import json
import os
import re
import signal
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command

QUICK = ("-p", "4,1", "-n", "3", "-r", "2", "--depths", "5,0")
REPORT = {"model", "kv", "inputs", "prompt_tokens", "new_tokens", "stream_gb_s", "runs", "load_cold_s",
          "load_warm_s", "peak_rss_bytes", "major_faults", "disturbed", "other_load", "kernels"}
REGIONS = ["qkv", "attention", "o", "gate", "up", "down", "head"]
RUN = {"kernel", "threads", "depth", "parallel", "hashes", "draft", "draft_wrong", "tokens_per_step", "prefill_tok_s", "prefill_best_tok_s", "prefill_spread",
       "decode_tok_s", "decode_best_tok_s", "decode_spread", "decode_bytes_per_token",
       "decode_gb_s", "stream_gb_s", "decode_share", "region_share", "output_hash"}


class Bench(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def report(self, *flags):
        return json.loads(self.ok("bench", self.model, *QUICK, "--json", *flags).text)

    def test_report(self):
        report = self.report("--threads", "1,2", "--kv", "q8")
        self.assertEqual(set(report), REPORT)
        self.assertEqual((report["model"], report["kv"], report["inputs"]), ("demo", "q8", "int8"))
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
            if run["decode_share"]:
                self.assertGreater(run["stream_gb_s"], 0)
                self.assertGreater(run["decode_share"], 0)
                self.assertEqual(list(run["region_share"]), REGIONS)
                self.assertTrue(all(s > 0 for s in run["region_share"].values() if s is not None))
                self.assertIsNotNone(run["region_share"]["qkv"])
        # Without the memory that the stream rate is measured on.
        if command.NATIVE:
            self.assertLess(report["peak_rss_bytes"], 256 << 20)
        for kernel in report["kernels"]:
            self.assertEqual(set(kernel), {"op", "isa", "gb_s", "share"})
            self.assertGreater(kernel["gb_s"], 0)
        self.assertLessEqual(report["other_load"] or 0, 1)

    def test_every_operation_of_a_level_is_timed(self):
        levels = [line.split()[0] for line in self.ok("verify", self.model).text.splitlines()
                  if " with kernels of this level" in line]
        kernels = self.report("--threads", "1")["kernels"]
        self.assertEqual(list(dict.fromkeys(k["isa"] for k in kernels)), levels)
        for level in set(levels) & {"avx2", "neon"}:
            ops = {k["op"] for k in kernels if k["isa"] == level}
            self.assertLessEqual({"gemv_t2_i8", "gemm_c2_i8", "rms_norm_f32", "dot_u4_i16",
                                  "attn_qk_f16", "attn_pv_q8", "kv_store_q8", "exp_sum_f32"}, ops)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "POSIX signals")
    def test_interrupted_inside_a_long_prefill(self):
        for arguments in (["-p", "1000", "-n", "1", "-r", "9", "--depths", "1", "--cpu", "ref"],
                          ["-p", "4", "-n", "900", "-r", "9", "--depths", "1", "--cpu", "ref"]):
            with self.subTest(arguments=arguments):
                process = subprocess.Popen(
                    command.argv("bench", self.model, "--threads", "1", *arguments),
                    stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                command.wait_for_handler(process, signal.SIGINT)
                time.sleep(1)  # by now it measures, on most machines
                process.send_signal(signal.SIGINT)
                start = time.monotonic()
                out, err = process.communicate(timeout=command.TIMEOUT)
                print(f"ended {1000 * (time.monotonic() - start):.0f} ms later (goal 200)")
                self.assertEqual((process.returncode, out), (-signal.SIGINT, b""))
                self.assertEqual(err.count(b"\n"), 1)

    @unittest.skipUnless(command.NATIVE and sys.platform.startswith("linux"), "reads /proc/stat")
    def test_a_busy_machine_marks_the_result(self):
        spin = [sys.executable, "-c", "while True: pass"]
        others = [subprocess.Popen(spin) for _ in range(os.cpu_count())]
        try:
            report = self.report("--threads", "1")
            text = self.ok("bench", self.model, *QUICK, "--threads", "1").text
        finally:
            for other in others:
                other.kill()
                other.wait()
        self.assertTrue(report["disturbed"])
        self.assertGreater(report["other_load"], 0.2)
        self.assertRegex(text, r"\ndisturbed   others used \d+ % of the processors")

    def test_levels_and_threads_generate_the_same(self):
        first = {r["depth"]: r["output_hash"] for r in self.report("--threads", "3")["runs"]}
        for run in self.report("--threads", "1,2", "--cpu", "ref")["runs"]:
            self.assertEqual(run["output_hash"], first[run["depth"]])

    def test_drafts_of_the_answer(self):
        for wrong, flags in ((None, ()), (1, ("--draft-wrong", "1")), (2, ("--draft-wrong", "2"))):
            report = self.report("-n", "24", "--threads", "1", "--draft", "4", *flags)
            plain, drafted = report["runs"][:2]
            self.assertEqual((plain["draft"], plain["tokens_per_step"]), (None, None))
            self.assertEqual((drafted["draft"], drafted["draft_wrong"]), (4, wrong))
            self.assertEqual(drafted["output_hash"], plain["output_hash"])
            self.assertEqual(drafted["depth"], plain["depth"])
            self.assertIsNone(drafted["decode_bytes_per_token"])
            # The number of verified drafts depends on times; wrong ones never count.
            self.assertGreaterEqual(drafted["tokens_per_step"], 1)
            self.assertLessEqual(drafted["tokens_per_step"], {None: 5, 1: 1, 2: 2}[wrong])
        self.assertRegex(self.ok("bench", self.model, *QUICK, "--draft", "7").text,
                         r"\n\S+ +\d+ +4 .* 7 drafts, \d\.\d\d ids/step +[0-9a-f]{16}\n")
        for bad in (("--draft", "8"), ("--draft-wrong", "2"), ("--draft", "2", "-n", "1"),
                    ("--draft", "2", "--draft-wrong", "0")):
            self.refused(2, "bench", self.model, *bad)

    def test_sequences_together(self):
        for flags in ((), ("-p", "40,2", "-n", "5", "--kv", "q8")):
            hashes = []
            for threads in ("1", "2"):
                runs = self.report("--threads", threads, "--parallel", "1,3,8", *flags)["runs"]
                together = [r for r in runs if r["parallel"]]
                self.assertEqual([r["parallel"] for r in together], [1, 3, 8])
                self.assertIsNone(runs[0]["hashes"])
                for run in together:
                    self.assertEqual(run["depth"], runs[0]["depth"])
                    self.assertEqual(len(run["hashes"]), run["parallel"])
                    self.assertEqual(run["hashes"], together[-1]["hashes"][:run["parallel"]])
                    self.assertEqual(run["output_hash"], runs[0]["output_hash"])
                    self.assertGreater(run["decode_tok_s"], 0)
                    self.assertIsNone(run["decode_bytes_per_token"])
                hashes.append(together[-1]["hashes"])
            self.assertEqual(hashes[0], hashes[1])
            self.assertGreater(len(set(hashes[0])), 1)
        self.assertRegex(self.ok("bench", self.model, *QUICK, "--parallel", "2").text,
                         r"\n\S+ +\d+ +4 .* 2 together, their sum +[0-9a-f]{16}\n")
        for bad in (("--parallel", "0"), ("--parallel", "17"), ("--parallel", "x"),
                    ("--parallel", "2", "-n", "1"), ("--parallel", "1,1,1,1,1,1,1,1,1")):
            self.refused(2, "bench", self.model, *bad)

    def test_table(self):
        text = self.ok("bench", self.model, *QUICK, "--threads", "1").text
        for line in (r"load +cold \d", r"stream +\d", r"kernel +threads +depth +prefill",
                     r"memory +\d", r"output +the same tokens at every level"):
            self.assertRegex(text, re.compile("^" + line, re.MULTILINE))

    def test_refused_before_anything_is_measured(self):
        for flags in (("-p", "0"), ("-p", "1,2,3,4,5,6,7,8,9"), ("-p", "x"), ("-n", "0"),
                      ("-r", "0"), ("-r", "33"), ("--depths", ""), ("--threads", "0"), ("--threads", "1,257"),
                      ("--cpu", "sse9"), ("--cpu", ""), ("--cpu", ","),
                      ("--cpu", ",".join(["ref"] * 9))):
            with self.subTest(flags=flags):
                self.refused(2, "bench", self.model, *flags)
        for flags in (("-p", "1024"), ("-p", "1", "--depths", "1024")):
            self.assertIn("context 1024", self.refused(3, "bench", self.model, *flags))


class Verify(command.TestCase):
    def test_a_line_per_level(self):
        lines = self.ok("verify", command.model()).text.splitlines()
        source = command.read_bytes(os.path.join(command.ROOT, "src", "kern", "kern.h")).decode()
        n = len(re.findall(r"^    X\(\w+\)", source, re.MULTILINE))
        self.assertEqual(lines[0], f"ref      {n} operations, the reference")
        self.assertIn(": intact: ", lines[-1])
        self.assertIn(f"{len(lines) - 1} kernel level", lines[-1])
        for line in lines[1:-1]:
            self.assertRegex(line, rf"^[a-z0-9]+ +{n} operations equal the reference, \d+ with "
                                   r"kernels of this level$")


if __name__ == "__main__":
    command.main()
