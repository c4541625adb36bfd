#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What tern run answers: prompts, the flags of an answer, signals."""
import json
import os
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, environment, scratch

POSIX = NATIVE and os.name == "posix"


class Prompts(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def greedy(self, *flags, **keywords):
        return self.ok("run", self.model, "--greedy", "-n", "8", *flags, **keywords).out

    def prompt_tokens(self, *flags, **keywords):
        result = self.ok("run", self.model, "--greedy", "-n", "1", "--stats=json", *flags,
                         **keywords)
        return json.loads(result.err)["prompt_tokens"]

    def n_tokens(self, text):
        return len(self.ok("tokenize", self.model, stdin=text).text.split())

    def file(self, data):
        path = scratch("prompt.txt")
        with open(path, "wb") as f:
            f.write(data)
        return path

    def test_standard_input(self):
        self.assertEqual(self.greedy(stdin=b"Hi\n"), self.greedy("-p", "Hi"))
        self.assertEqual(self.greedy("-f", "-", stdin=b"Hi"), self.greedy("-p", "Hi"))
        self.assertEqual(self.prompt_tokens("--raw", stdin=b"Hi\n"), self.n_tokens(b"Hi\n"))
        self.assertEqual(self.greedy("--raw", "-f", self.file(b"Hi\n")),
                         self.greedy("--raw", stdin=b"Hi\n"))

    def test_implied_run(self):
        self.assertEqual(self.ok("--greedy", "-n", "8", "-m", self.model, stdin=b"Hi").out,
                         self.greedy("-p", "Hi"))
        self.assertIn("usage", self.refused(2, "-m", self.model))

    def test_prompt_and_file(self):
        path = self.file(b"some notes")
        self.assertEqual(self.prompt_tokens("--raw", "-p", "Sum", "-f", path),
                         self.n_tokens(b"Sum\n\nsome notes"))

    def test_control_tokens_in_raw_prompts(self):
        text = b"<|eot_id|>Once"
        special = self.ok("tokenize", self.model, "--special", stdin=text).text.split()
        self.assertEqual(self.prompt_tokens("--raw", stdin=text), self.n_tokens(text))
        self.assertEqual(self.prompt_tokens("--raw", "--special", stdin=text), len(special))
        self.assertLess(len(special), self.n_tokens(text))
        bos = self.ok("detokenize", self.model, "--special", stdin=special[0].encode())
        bos = bos.text.strip().encode()
        self.assertEqual(self.prompt_tokens("--raw", "--special", stdin=bos + text), len(special))
        self.assertIn("--raw", self.refused(2, "run", self.model, "--special", "-p", "Hi"))

    def test_byte_order_marks(self):
        self.assertEqual(self.greedy("-f", self.file(b"\xef\xbb\xbfHi")), self.greedy("-p", "Hi"))
        template = b"{{ messages[0].content }}"
        marked, plain = (self.prompt_tokens("-p", "Hi", "--template", self.file(mark + template))
                         for mark in (b"\xef\xbb\xbf", b""))
        self.assertEqual(marked, plain)
        for data in ("Hi".encode("utf-16"), b"\xfe\xff\0H\0i"):
            self.assertIn("UTF-16", self.refused(5, "run", self.model, "-f", self.file(data)))

    def test_not_utf8(self):
        for data, offset in ((b"abc\xff", 3), (b"\xc3", 0), (b"a\xed\xa0\x80", 1),
                             (b"ab\xc0\x80", 2), (b"\xf4\x90\x80\x80", 0)):
            text = self.refused(5, "run", self.model, "-f", self.file(data))
            self.assertIn(f"byte {offset}", text)
            self.refused(5, "run", self.model, stdin=data)

    def test_nul_is_text(self):
        self.assertEqual(self.prompt_tokens("--raw", stdin=b"a\0b"), self.n_tokens(b"a\0b"))
        self.assertGreater(self.prompt_tokens("--raw", stdin=b"a\0b"),
                           self.prompt_tokens("--raw", stdin=b"a"))

    def test_empty_prompts(self):
        self.refused(2, "run", self.model, "-p", "")
        self.refused(2, "run", self.model, "-p", " \n")
        self.refused(2, "run", self.model)
        self.refused(2, "run", self.model, "--raw")
        self.refused(2, "run", self.model, "-f", self.file(b""))
        self.assertEqual(self.prompt_tokens("--raw", "-p", ""), 1)

    def test_prompt_files_that_cannot_be_read(self):
        self.refused(5, "run", self.model, "-f", scratch("missing.txt"))
        self.refused(5, "run", self.model, "-f", os.path.dirname(self.model))
        self.refused(5, "run", self.model, "-f", self.file(b"a" * (16 * 1024 * 1024 + 1)))

    def test_a_prompt_longer_than_the_context(self):
        text = b"word " * 200000
        by_file = self.refused(3, "run", self.model, "-f", self.file(text))
        by_pipe = self.refused(3, "run", self.model, stdin=text)
        self.assertEqual(by_file, by_pipe)
        self.assertIn("1024", by_file)
        self.assertIn("--ctx", self.refused(3, "run", self.model, "--ctx", "8", "-p", "a b c d e"))

    def test_control_tokens_are_text(self):
        ids = self.ok("tokenize", self.model, "--no-bos", stdin=b"<|eot_id|>").text.split()
        self.assertGreater(len(ids), 1)
        special = self.ok("tokenize", self.model, "--no-bos", "--special", stdin=b"<|eot_id|>")
        self.assertEqual(len(special.text.split()), 1)


class Generation(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def story(self, *flags):
        return self.ok("run", self.model, "--raw", "-p", "Once upon a time", "-n", "24", *flags)

    def test_seeds(self):
        self.assertEqual(self.story("--seed", "0").out, self.story("--seed", "0").out)
        self.assertNotEqual(self.story("--seed", "0").out, self.story("--seed", "1").out)
        first, second = self.story("--stats=json"), self.story("--stats=json")
        # Not the texts: one story in five ends at once.
        seed = json.loads(first.err)["seed"]
        self.assertNotEqual(seed, json.loads(second.err)["seed"])
        self.assertEqual(self.story("--seed", str(seed)).out, first.out)

    def test_threads_and_levels_give_the_same_text(self):
        expected = self.story("--seed", "3").out
        for flags in (["--threads", "1"], ["--threads", "4"], ["--cpu", "ref"]):
            self.assertEqual(self.story("--seed", "3", *flags).out, expected)

    def test_greedy_is_temperature_zero_without_penalties(self):
        greedy = self.story("--greedy").out
        self.assertEqual(self.story("--temp", "0").out, greedy)
        self.assertEqual(self.story("--temp", "1", "--greedy").out, greedy)
        self.assertEqual(self.story("--greedy", "--repeat-penalty", "1", "--presence-penalty", "0",
                                    "--frequency-penalty", "0").out, greedy)
        self.assertNotEqual(self.story("--greedy", "--repeat-penalty", "9").out, greedy)

    def test_stop_strings(self):
        text = self.story("--greedy").text
        stop = text[20:29]
        result = self.story("--greedy", "--stop", "never there", "--stop", stop, "--stats=json")
        self.assertEqual(json.loads(result.err)["stop"], "stop")
        self.assertEqual(result.text, text[:text.index(stop)] + "\n")

    def test_stats(self):
        stats = json.loads(self.story("--greedy", "--stats=json").err)
        self.assertEqual(stats["new_tokens"], 24)
        self.assertEqual(stats["stop"], "length")
        self.assertEqual(stats["prompt_tokens"], 5)
        for key in ("prompt_s", "decode_s", "load_s", "peak_rss_bytes", "threads",
                    "bytes_per_token"):
            self.assertGreater(stats[key], 0, key)
        text = self.story("--stats", "--seed", "77").err
        for word in ("load", "prompt", "generation", "tok/s", "GB/s", "thread", "memory", "77",
                     "length"):
            self.assertIn(word, text)
        one = json.loads(self.ok("run", self.model, "-p", "Hi", "-n", "1", "--stats=json").err)
        self.assertIsNone(one["bytes_per_token"])

    def test_little_memory_is_a_note_only_where_it_cuts(self):
        arguments = ["run", self.model, "-p", "Hi", "--greedy", "--ram", "2G"]
        self.assertEqual(self.ok(*arguments).err, "")
        self.assertEqual(self.ok(*arguments, "-n", "512").err, "")
        note = self.ok(*arguments, "-n", "513").err
        self.assertRegex(note, r"\Atern: note: -n 513 is more than the cap of 512 .*\n\Z")

    def test_json_statistics_are_the_last_line_alone(self):
        """Notes before and after the text, both streams in one file, and a text without \\n."""
        for flags in (["-n", "900", "--ram", "2G"], ["--ctx", "20"], ["-n", "1"], ["-v", "-n", "3"],
                      ["-n", "3", "--stop", "a"]):
            with self.subTest(flags=flags):
                done = subprocess.run(
                    command.argv("run", self.model, "--raw", "-p", "Once", "--ignore-eos",
                                 "--stats=json", *flags), env=environment(), timeout=command.TIMEOUT,
                    stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
                lines = done.stdout.split(b"\n")
                self.assertEqual(lines[-1], b"")
                self.assertIn("stop", json.loads(lines[-2]))
                self.assertEqual(done.stdout.count(b'{"prompt_tokens"'), 1)

    def test_the_end_of_a_text_is_explained(self):
        result = self.ok("run", self.model, "--raw", "-p", "Once", "--ignore-eos", "--ram", "2G",
                         "-n", "900", "--stats=json")
        self.assertIn("512", result.err)
        self.assertEqual(json.loads(result.err.splitlines()[-1])["stop"], "cap")
        result = self.ok("run", self.model, "--raw", "-p", "Once", "--ignore-eos", "--ram", "2G",
                         "--stats=json")
        self.assertIn("-n", result.err)
        self.assertEqual(json.loads(result.err.splitlines()[-1])["stop"], "length")

    def test_too_little_memory(self):
        self.assertIn("--ctx", self.refused(3, "run", self.model, "-p", "Hi", "--ram", "1M"))

    def test_the_context_ends_a_text(self):
        result = self.ok("run", self.model, "--raw", "-p", "Once", "--ctx", "20", "--ignore-eos",
                         "--stats=json")
        notice, stats = result.err.splitlines()
        self.assertIn("20", notice)
        self.assertEqual(json.loads(stats)["stop"], "context")

    def test_template_and_system(self):
        self.refused(2, "run", self.model, "--raw", "-p", "x", "--system", "y")
        self.assertIn("leave --raw out", self.refused(
            2, "run", self.model, "--raw", "-p", "x", "--template", "llama3"))
        self.ok("run", self.model, "-p", "Hi", "-n", "2", "--system", "Be brief.")

    def test_a_template_of_other_tokens_is_announced_once(self):
        notice = "tern: note: the model has no token <|im_start|>, which the template chatml writes"
        stdin = b'[{"role": "user", "content": "Hi"}]\n'
        for arguments in (["run", self.model, "-n", "2"], ["chat", self.model, "-n", "2"],
                          ["tokenize", self.model, "--chat"]):
            with self.subTest(arguments):
                other = self.ok(*arguments, "--template", "chatml", stdin=stdin).err
                self.assertIn(notice, other)
                self.assertEqual(other.count("no token"), 1)
                for flags in ([], ["--template", "llama3"], ["--template", "chatml", "-q"]):
                    self.assertNotIn("no token", self.ok(*arguments, *flags, stdin=stdin).err)


@unittest.skipUnless(POSIX, "POSIX signals")
class Signals(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def interrupted(self, number, *arguments):
        process = subprocess.Popen(command.argv(*arguments), stdin=subprocess.DEVNULL,
                                   stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        first = process.stdout.read(1)
        process.send_signal(number)
        start = time.monotonic()
        out, err = process.communicate(timeout=command.TIMEOUT)
        return process.returncode, first + out, err, time.monotonic() - start

    def test_a_named_pipe_that_nobody_writes(self):
        import signal
        pipe = scratch("prompt.fifo")
        os.mkfifo(pipe)
        for number in (signal.SIGINT, signal.SIGTERM):
            with self.subTest(number=number):
                process = subprocess.Popen(command.argv("run", self.model, "-f", pipe),
                                           stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                with self.assertRaises(subprocess.TimeoutExpired):
                    process.communicate(timeout=1)
                process.send_signal(number)
                out, _ = process.communicate(timeout=command.TIMEOUT)
                self.assertEqual((process.returncode, out), (-number, b""))
        process = subprocess.Popen(
            command.argv("run", self.model, "-n", "5", "-f", pipe, "--greedy"),
            stdout=subprocess.PIPE)
        with open(pipe, "wb") as f:
            f.write(b"Hello")
        self.assertTrue(process.communicate(timeout=command.TIMEOUT)[0])
        self.assertEqual(process.returncode, 0)

    def test_interrupt_before_the_first_token(self):
        """During opening and during a long prompt nothing is printed."""
        import signal
        for wait in (0, 0.02, 0.1, 0.3, 0.6):
            process = subprocess.Popen(
                command.argv("run", self.model, "--raw", "-p", "Once upon a time " * 240, "-n", "4",
                             "--cpu", "ref", "--threads", "1", "--stats=json"),
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
            command.wait_for_handler(process, signal.SIGINT)
            time.sleep(wait)
            process.send_signal(signal.SIGINT)
            start = time.monotonic()
            out, err = process.communicate(timeout=command.TIMEOUT)
            print(f"ended {1000 * (time.monotonic() - start):.0f} ms later (goal 200)")
            self.assertEqual((process.returncode, out), (-signal.SIGINT, b""), err)

    def test_a_running_template_ends(self):
        import signal
        path = scratch("slow.jinja")
        with open(path, "w", encoding="utf-8") as f:
            f.write("{% set s = '\u00e9' * 4000000 %}{% for i in range(99) %}"
                    "{{ s[3999999 - i] }}{% endfor %}")
        hi = scratch("hi.json")
        with open(hi, "w", encoding="utf-8") as f:
            f.write('[{"role":"user","content":"Hi"}]')
        for number in (signal.SIGINT, signal.SIGTERM):
            for arguments in (("tokenize", self.model, "--chat", "--template", path),
                              ("run", self.model, "-p", "Hi", "--template", path)):
                with self.subTest(number=number, command=arguments[0]), open(hi, "rb") as f:
                    process = subprocess.Popen(command.argv(*arguments), stdin=f,
                                               stdout=subprocess.PIPE, stderr=subprocess.PIPE)
                    command.wait_for_handler(process, number)
                    process.send_signal(number)
                    start = time.monotonic()
                    out, err = process.communicate(timeout=command.TIMEOUT)
                    print(f"ended {1000 * (time.monotonic() - start):.0f} ms later (goal 200)")
                    self.assertEqual((process.returncode, out), (-number, b""), err)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "named pipes")
    def test_a_server_that_is_stopped_before_it_serves(self):
        import signal
        path = scratch("key")
        os.mkfifo(path)
        for number in (signal.SIGINT, signal.SIGTERM):
            process = subprocess.Popen(command.argv("serve", self.model, "--api-key-file", path),
                                       stderr=subprocess.DEVNULL)
            command.wait_for_handler(process, number)
            time.sleep(0.2)
            process.send_signal(number)
            self.assertEqual(process.wait(command.TIMEOUT), -number)

    def test_interrupt_while_generating(self):
        import signal
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            with self.subTest(number=number):
                code, out, err, _ = self.interrupted(
                    number, "run", self.model, "--raw", "-p", "Once", "-n", "1000",
                    "--caps", "off", "--ignore-eos", "--stats=json", "--cpu", "ref", "--threads", "1")
                self.assertEqual(code, -number)
                self.assertTrue(out.endswith(b"\n"))
                out.decode("utf-8")
                stats = json.loads(err)
                self.assertEqual(stats["stop"], "interrupt")
                self.assertLess(stats["new_tokens"], 1000)


if __name__ == "__main__":
    command.main()
