#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Reports of run and chat besides the answer: prompt ids, statistics, the limit that ended the
text."""
import json
import os
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, tern


class Stats(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def story(self, *flags):
        return self.ok("run", self.model, "--raw", "-p", "Once upon a time", "--greedy",
                       "--ignore-eos", *flags)

    def test_verbose_shows_the_ids_of_the_prompt(self):
        messages = json.dumps([{"role": "user", "content": "Hi"}]).encode()
        for arguments, ids in (
                (["-p", "Hi"], self.ok("tokenize", self.model, "--chat", stdin=messages)),
                (["--raw", "-p", "Hi"], self.ok("tokenize", self.model, stdin=b"Hi"))):
            with self.subTest(arguments=arguments):
                shown = self.ok("run", self.model, "-n", "1", "-v", *arguments).err
                self.assertIn("\nids: " + ids.text, shown)
                self.assertNotIn("ids:", self.ok("run", self.model, "-n", "1", *arguments).err)

    def test_the_cache_type_is_named(self):
        for kv in ("f32", "f16", "q8"):
            self.assertRegex(self.story("-n", "4", "--kv", kv, "--stats").err, rf"cache +kv {kv}\n")
            stats = json.loads(self.story("-n", "4", "--kv", kv, "--stats=json").err)
            self.assertEqual(stats["kv"], kv)

    def test_ids_from_the_cache_are_not_counted_as_evaluated(self):
        lines = b"Tell me a story.\nAnd then?\n"
        result = self.ok("chat", self.model, "--greedy", "-n", "40", "-v", "--stats=json",
                         stdin=lines)
        ids = [len(l.split()) - 1 for l in result.err.splitlines() if l.startswith("ids:")]
        stats = [json.loads(l) for l in result.err.splitlines() if l.startswith("{")]
        self.assertEqual(stats[0]["cached_tokens"], 0)
        self.assertEqual(stats[0]["prompt_tokens"], ids[0])
        self.assertGreater(stats[1]["cached_tokens"], ids[0] // 2)
        self.assertEqual(stats[1]["prompt_tokens"] + stats[1]["cached_tokens"], ids[1])

    def test_drafts_change_no_byte(self):
        for flags in (["--greedy"], ["--temp", "1.2", "--seed", "3"]):
            write = ["run", self.model, "--raw", "-p", "The cat saw a dog. The cat saw a", "-n",
                     "120", "--ignore-eos", "--stats=json", *flags]
            want = self.ok(*write, "--draft", "off")
            self.assertEqual(json.loads(want.err)["drafted"], 0)
            self.assertEqual(json.loads(want.err)["tokens_per_step"], 1)
            for draft in ([], ["--draft", "1"], ["--draft", "4"], ["--draft", "7"]):
                with self.subTest(flags=flags, draft=draft):
                    got = self.ok(*write, *draft)
                    self.assertEqual(got.out, want.out)
                    stats = json.loads(got.err)
                    self.assertLessEqual(stats["accepted"], stats["drafted"])
                    self.assertGreaterEqual(stats["tokens_per_step"], 1)
        self.assertRegex(self.story("-n", "20", "--draft", "3", "--stats").err,
                         r"\ndrafts +\d+ tokens drafted, \d+ accepted, [1-4]\.\d\d tokens per step\n")
        for bad in ("8", "0", "x"):
            result = tern("run", self.model, "-p", "Hi", "--draft", bad)
            self.assertEqual(result.code, 2, result.err)

    def test_json_is_alone_on_the_last_line(self):
        for flags in (["-n", "900", "--ram", "2G"], ["-v", "-n", "3"], ["--ctx", "20"],
                      ["--stop", "little"], ["-n", "5000"]):
            with self.subTest(flags=flags):
                lines = self.story("--stats=json", *flags).err.splitlines()
                self.assertIn("stop", json.loads(lines[-1]))
                for line in lines[:-1]:
                    self.assertNotIn("{", line)

    @unittest.skipUnless(os.path.exists("/dev/full") and NATIVE, "needs /dev/full")
    def test_no_statistics_of_a_text_that_could_not_be_written(self):
        with open("/dev/full", "wb") as full:
            done = subprocess.run(command.argv("run", self.model, "-p", "Hi", "--stats=json"),
                                  stdout=full, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                  timeout=command.TIMEOUT)
        self.assertEqual(done.returncode, 4)
        self.assertEqual(done.stderr.count(b"\n"), 1)
        self.assertIn(b"tern: error: ", done.stderr)


class Limits(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def notes(self, *flags, arguments=("run", "--raw", "-p", "Once upon a time")):
        result = self.ok(arguments[0], self.model, *arguments[1:], "--greedy", "--ignore-eos",
                         "--stats=json", *flags)
        *notes, stats = result.err.splitlines()
        return notes, json.loads(stats)

    def test_a_cap_is_reported_once(self):
        notes, stats = self.notes("-n", "600", "--ram", "2G")
        self.assertEqual((stats["stop"], stats["new_tokens"]), ("cap", 512))
        self.assertEqual(len(notes), 1, notes)
        self.assertIn("-n 600 is more than the cap of 512", notes[0])

    def test_a_cap_by_the_context_is_reported_once(self):
        notes, stats = self.notes("-n", "900", "--ctx", "100", "--ram", "9G")
        self.assertEqual(stats["stop"], "context")
        self.assertEqual(notes, ["tern: note: -n 900 is more than the context of 100 leaves after "
                                 "a prompt of 5: at most 95 new tokens"])
        # In a conversation, the answer that reached the limit reports it too.
        shown = tern("chat", self.model, "--greedy", "--ignore-eos", "-n", "900", "--ctx", "100",
                     "--ram", "9G", stdin=b"Hi\n").err.splitlines()
        self.assertEqual(shown[0], "tern: note: -n 900 is more than the context of 100 tokens")
        self.assertRegex(shown[1], "the context of 100 tokens is full")
        self.assertEqual(len(shown), 2)

    def test_unreported_events_are_reported_at_the_end(self):
        notes, stats = self.notes("--ctx", "20", "--ram", "9G")
        self.assertEqual((stats["stop"], len(notes)), ("context", 1))
        self.assertIn("the context of 20 tokens is full", notes[0])

    def test_quiet(self):
        for flags in (["-n", "600", "--ram", "2G"], ["-n", "900", "--ctx", "100"]):
            result = self.ok("run", self.model, "--raw", "-p", "Once", "-q", *flags)
            self.assertEqual(result.err, "")


if __name__ == "__main__":
    command.main()
