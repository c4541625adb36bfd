#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line from the user's side: help, arguments, paths, streams, exit codes."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, environment, read_bytes, scratch

POSIX = NATIVE and os.name == "posix"
COMMANDS = ["run", "chat", "convert", "info", "embed", "pull", "list", "remove", "probe", "verify",
            "bench", "tokenize", "detokenize", "perplexity", "logits", "serve", "version", "help"]


class Help(command.TestCase):
    def test_help_is_on_stdout(self):
        texts = {}
        for arguments in (["--help"], ["help"], ["-h"], ["run", "--help"], ["help", "run"],
                          ["run", "-h", "-p", "x"]):
            result = self.ok(*arguments)
            self.assertEqual(result.err, "")
            texts[tuple(arguments)] = result.text
        self.assertEqual(texts[("run", "--help")], texts[("help", "run")])
        self.assertEqual(texts[("--help",)], texts[("help",)])
        for name in COMMANDS:
            self.assertIn(f"  tern {name} ", texts[("--help",)])
        for flag in ("--prompt", "--file", "--raw", "--system", "--template", "--max-tokens",
                     "--temp", "--top-k", "--top-p", "--min-p", "--repeat-penalty",
                     "--presence-penalty", "--frequency-penalty", "--penalty-last", "--greedy",
                     "--seed", "--stop", "--ignore-eos", "--ctx", "--kv", "--threads", "--cpu",
                     "--stats", "--quiet", "--verbose"):
            self.assertIn(flag, texts[("help", "run")])
        for default in ("0.7", "40", "0.95", "1.1", "0.6", "64"):
            self.assertIn(f"default {default})", texts[("help", "run")])

    def test_the_list_of_commands_fits_one_screen(self):
        lines = self.ok("--help").text.splitlines()
        self.assertLess(len(lines), 24)  # one line is left for the shell's prompt
        self.assertLessEqual(max(map(len, lines)), 80)
        examples = [line.split("   ")[0].split() for line in lines if line.startswith("  tern ")]
        self.assertEqual(sorted(words[1] for words in examples), sorted(COMMANDS))

    def test_all_templates(self):
        text = self.refused(2, "run", "--template", "none", "-p", "x")
        names = text.strip().split("must be one of ")[1]
        self.assertIn("chatml", names)
        self.assertIn(f"chat template: {names}", " ".join(self.ok("help", "run").text.split()))

    def test_every_command_has_help_of_80_columns(self):
        for name in COMMANDS:
            text = self.ok("help", name).text
            self.assertTrue(text.startswith(f"Usage: tern {name}"))
            for line in text.splitlines():
                self.assertLessEqual(len(line), 80)
                self.assertEqual(line, line.rstrip())

    def test_topics(self):
        everything = self.ok("help").text
        names = re.search(r"tern help TOPIC: (.*)", everything).group(1).split(", ")
        self.assertEqual(names, ["exit-codes", "memory", "jsonl", "keys", "environment"])
        for name in names:
            for line in self.ok("help", name).text.splitlines():
                self.assertLessEqual(len(line), 80)
        self.refused(2, "help", "no-such-topic")
        text = self.ok("help", "environment").text
        for name in ["TERN_MODEL", "TERN_MODELS", "TERN_CACHE", "TERN_API_KEY", "NO_COLOR"]:
            self.assertRegex(text, rf"(?m)^  {name} ")

    def test_exit_codes_are_those_of_the_library(self):
        header = read_bytes(os.path.join(command.ROOT, "include", "tern", "status.h")).decode()
        codes = {int(code) for code in re.findall(r"^    X\(\w+, (\d+),", header, re.MULTILINE)}
        shown = re.findall(r"^ +(\d+)  ", self.ok("help", "exit-codes").text, re.MULTILINE)
        self.assertEqual([int(code) for code in shown], sorted(codes))

    def test_tiers_are_those_of_the_plan(self):
        text = self.ok("help", "memory").text
        rows = re.findall(r"^  (?:below )?(\d+).* GiB.*?  (\d+) +(\d+)$", text, re.MULTILINE)
        self.assertEqual([int(row[0]) for row in rows], [4, 4, 8, 12])
        roots = os.path.join(command.ROOT, "tests", "sysinfo", "roots")
        for row, name in zip(rows, ("4-gib-minus", "4-gib-exact", "8-gib-exact", "12-gib-exact")):
            plan = json.loads(self.ok("probe", command.model(), "--json", "--probe-root",
                                      os.path.join(roots, f"tier-{name}")).text)["plan"]
            self.assertEqual((plan["default_new_tokens"], plan["cap_new_tokens"]),
                             (int(row[1]), int(row[2])))

    def test_chat_names_the_key_of_this_system(self):
        key = "Ctrl-Z Enter" if command.TERN.endswith(".exe") else "Ctrl-D"
        self.assertIn(f"{key} leaves", self.ok("help", "chat").text)
        commands = self.ok("chat", command.model(), stdin=b"/help\n").err
        self.assertIn(f"leave; also {key}\n", commands)

    def test_version_is_that_of_the_header(self):
        header = os.path.join(command.ROOT, "include", "tern", "version.h")
        number = command.read_bytes(header).decode().split('VERSION_STRING "')[1].split('"')[0]
        for arguments in (["--version"], ["version"], ["run", "--version"]):
            text = self.ok(*arguments, env=environment(TERN_MODEL="missing")).text
            self.assertTrue(text.startswith(f"tern {number} ("), text)


class Arguments(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def test_unknown_things_are_named_with_the_nearest_name(self):
        for arguments, named, hint in (
                (["run", self.model, "-p", "Hi", "--foo"], '"--foo"', "tern help run"),
                (["run", "--tmep", "1"], '"--tmep"', "--temp"),
                (["run", "--max-token=3"], '"--max-token"', "--max-tokens"),
                (["--promt", "Hi"], '"--promt"', "--prompt"),
                (["info", "--tensor"], '"--tensor"', "--tensors"),
                (["rnu", "-p", "x"], '"rnu"', "tern run"),
                (["rn", "-p", "x"], '"rn"', "tern run"),
                (["x" * 2000], '"xxx', "tern help"),
                (["tokenise"], '"tokenise"', "tokenize"),
                (["help", "covnert"], '"covnert"', "convert"),
                (["xyzzy"], '"xyzzy"', "tern help"),
                (["-n5"], '"-n5"', "separate the value: -n 5")):
            with self.subTest(arguments=arguments):
                text = self.refused(2, *arguments)
                self.assertIn(named, text)
                self.assertIn(hint, text)

    def test_words_of_other_programs_get_tern_equivalents(self):
        for arguments, named, hint in (
                (["run", "-t", "4", "-p", "x"], '"-t"', "--threads N"),
                (["perplexity", "-t", "4"], '"-t"', "--threads N"),
                (["run", "--temperature", "1"], '"--temperature"', "did you mean --temp?"),
                (["run", "--temperature=1"], '"--temperature"', "did you mean --temp?"),
                (["--n_predict", "5"], '"--n_predict"', "--max-tokens"),
                (["chat", "-c", "512"], '"-c"', "--ctx"),
                (["run", "-cnv"], '"-cnv"', "tern chat"),
                (["run", "-ngl", "99"], '"-ngl"', "CPU only"),
                (["ps"], '"ps"', "tern probe"),
                (["push", "x"], '"push"', "copy it"),
                (["server"], '"server"', "tern serve"),
                (["quantize", "x", "y"], '"quantize"', "tern convert DIR"),
                (["help", "server"], '"server"', "tern serve")):
            with self.subTest(arguments=arguments):
                text = self.refused(2, *arguments)
                self.assertIn(f"unknown {'flag' if named[1] == '-' else 'command'} {named}; ", text)
                self.assertIn(hint, text)
        # If the suggested flag does not exist here either, nothing is suggested.
        self.assertNotIn("--threads", self.refused(2, "info", "-t", "4"))

    def test_hints_name_existing_commands(self):
        source = command.read_bytes(os.path.join(command.ROOT, "src", "app", "hints.c")).decode()
        lists = source.split("} commands[] = {")[1].split("};")[0], source.split(
            "} flags[] = {")[1].split("};")[0]
        for word in re.findall(r'^    \{"([^"]+)",', lists[0], re.MULTILINE):
            self.assertNotIn(word, COMMANDS)
        for name in re.findall(r"tern ([a-z]+) (?:DIR|FILE|-)", source):
            self.assertIn(name, COMMANDS)
        helps = {name: self.ok("help", name).text for name in COMMANDS}
        rows = re.findall(r'^    \{"([^"]+)", (NULL|"[^"]+"), "([^"]+)"', lists[1], re.MULTILINE)
        self.assertGreater(len(rows), 30)
        for name, needs, text in rows:
            for flag in re.findall(r"--[a-z-]+", text):
                self.assertTrue(any(f"{flag} " in t or f"{flag}\n" in t for t in helps.values())
                                or flag == "--version", flag)
            if needs == "NULL":
                self.assertFalse(any(f" {name} " in t for t in helps.values()), name)

    def test_sizes(self):
        def available(size):
            text = self.ok("probe", self.model, "--json", "--ram", size).text
            return json.loads(text)["memory"]["available"]
        for size, n in (("900m", 900 << 20), ("900M", 900 << 20), ("1g", 1 << 30),
                        ("1G", 1 << 30), ("1gb", 1 << 30), ("1GiB", 1 << 30), ("1gib", 1 << 30),
                        ("1 GiB", 1 << 30), ("0.5G", 1 << 29), ("1024Mb", 1 << 30),
                        ("1048576k", 1 << 30), ("1073741824", 1 << 30)):
            with self.subTest(size=size):
                self.assertEqual(available(size), n)
        for size, hint in (("4", "such as 4G"), ("900", "such as 900M"), ("1048575", "the unit")):
            self.assertIn(hint, self.refused(2, "run", self.model, "-p", "x", "--ram", size))
        for size in ("", "0", "-1", "G", "4x", "4GG", "4ib", "4 ", "4  G", "1.5.2G", "0x4G", "4iBs",
                     "1e9", "9999999999T", "nan"):
            with self.subTest(size=size):
                self.assertIn("900M or 1.5G", self.refused(2, "run", self.model, "-p", "x",
                                                           f"--ram={size}"))

    def test_a_flag_of_another_command_is_refused(self):
        self.assertIn("logits", self.refused(2, "run", "--batch", "3", "-p", "x"))
        self.assertIn("run", self.refused(2, "info", self.model, "--temp", "1"))
        self.assertIn("run", self.refused(2, "chat", self.model, "--prompt", "x"))

    def test_values_out_of_range_show_the_range(self):
        for flag, value, shown in (
                ("-n", "abc", "1 to"), ("-n", "0", "1 to"), ("-n", "5x", "1 to"), ("-n", "-3", ""),
                ("-n", " 5", "1 to"), ("-n", "", "1 to"), ("-n", "99999999999999999999", "1 to"),
                ("--temp", "3", "0 to 2"), ("--temp", "nan", "0 to 2"), ("--temp", "inf", "0 to 2"),
                ("--temp", "0x1", "0 to 2"), ("--temp", "0,7", "0 to 2"), ("--temp", "1e", "0 to"),
                ("--temp", "1e999", "0 to 2"),
                ("--top-p", "0", "above 0"), ("--top-p", "1.01", "at most 1"),
                ("--min-p", "-0.1", "0 to 1"), ("--repeat-penalty", "0", "above 0"),
                ("--presence-penalty", "2.5", "-2 to 2"), ("--threads", "-1", "1 to 256"),
                ("--threads", "257", "1 to 256"), ("--seed", "-1", "0 to"),
                ("--seed", "18446744073709551616", "0 to 18446744073709551615"), ("--kv", "f8", "f32, f16, q8"),
                ("--stats=xml", None, "json"), ("--stop", "", "empty"), ("--greedy=1", None, "no"),
                ("--template", "llama9", "chatml"), ("--cpu", "sse9", "ref")):
            arguments = [flag] if value is None else [flag, value]
            with self.subTest(arguments=arguments):
                text = self.refused(2, "run", self.model, "-p", "Hi", *arguments)
                self.assertIn(shown, text)

    def test_flags_given_too_often(self):
        for command_line, flag in ((["run", self.model, "-p", "Hi", "-n", "1"], "--stop"),
                                   (["serve", self.model, "--port", "0"], "--allow-host")):
            many = [word for i in range(33) for word in (flag, f"x{i}")]
            error = self.refused(2, *command_line, *many)
            self.assertIn(f'{flag} "x32": may be given 32 times', error)
        self.ok("run", self.model, "-p", "Hi", "-n", "1", *["--stop", "x"] * 32)

    def test_missing_values(self):
        for arguments in (["-p"], ["-p", "--greedy"], ["-p", "-n", "4"], ["-p", "--temp=1"],
                          ["-p", "--"], ["--model"]):
            with self.subTest(arguments=arguments):
                self.assertIn("needs a value", self.refused(2, "run", self.model, *arguments))

    def test_values_that_look_like_flags(self):
        for arguments in (["-p=--greedy"], ["--prompt=--greedy"], ["-p", "- item"],
                          ["-p", "--no such flag"]):
            with self.subTest(arguments=arguments):
                self.ok("run", self.model, "-n", "2", *arguments)

    def test_flags_may_be_anywhere(self):
        expected = self.ok("run", self.model, "-p", "Hi", "-n", "4", "--greedy").out
        for arguments in (["run", "-p", "Hi", "-n", "4", "--greedy", self.model],
                          ["run", "-n=4", "--greedy", self.model, "--prompt=Hi"],
                          ["run", "--greedy", "-n4x", "-n", "4", "-p", "Hi", self.model][:2]
                          + ["-n", "4", "-p", "Hi", "--", self.model],
                          ["run", "-m", self.model, "-n", "9", "-n", "4", "-p", "x", "-p", "Hi",
                           "--temp", "1", "--greedy"],
                          ["--prompt", "Hi", "-n", "4", "--temp", "0", "--load", self.model],
                          ["-p", "Hi", "-n", "4", "--greedy", "--model=" + self.model]):
            with self.subTest(arguments=arguments):
                self.assertEqual(self.ok(*arguments).out, expected)

    def test_model_by_environment_and_two_models(self):
        env = environment(TERN_MODEL=self.model)
        self.ok("run", "-p", "Hi", "-n", "2", env=env)
        self.assertIn("two models", self.refused(2, "info", self.model, "-m", self.model))
        self.assertIn("two models", self.refused(2, "run", "Hi", "-m", self.model))
        env = environment(TERN_MODEL="missing.tern")
        result = command.tern("info", env=env)
        self.assertEqual(result.code, 5)
        self.assertIn("$TERN_MODEL: missing.tern: ", result.err)
        self.assertNotIn("$", command.tern("info", "absent.tern", env=env).err)

    def test_nothing_is_found_and_the_folders_are_named(self):
        if not POSIX:
            raise unittest.SkipTest("copies the executable")
        os.makedirs(scratch("bin"), exist_ok=True)
        alone = scratch("bin/tern")
        shutil.copy(command.TERN, alone)
        done = subprocess.run([alone, "info"], capture_output=True, env=environment(), timeout=command.TIMEOUT)
        self.assertEqual(done.returncode, 5)
        for place in (b"TERN_MODEL", b"model.tern", b"demo.tern", b"share/tern/demo.tern"):
            self.assertIn(place, done.stderr)

    def test_other_files_than_models_are_no_command(self):
        path = scratch("notes.txt")
        shutil.copy(self.model, path)
        self.assertIn(f"is a file, not a command; try: tern run {path}",
                      self.refused(2, path, "-p", "x"))
        self.assertIn(f'"{command.DEMO}" is a directory, not a command; try: tern run ',
                      self.refused(2, command.DEMO))

    def test_arguments_are_checked_before_loading(self):
        for arguments in (["--temp", "9"], ["--foo"], ["--cpu", "sse9"], ["--template", "x"]):
            self.refused(2, "run", "missing.tern", "-p", "x", *arguments)

    def test_more_context_than_the_model_has(self):
        self.assertIn("1024", self.refused(2, "run", self.model, "-p", "Hi", "--ctx", "1025"))

    @unittest.skipUnless(POSIX, "arguments are bytes on POSIX only")
    def test_arguments_that_are_not_utf8(self):
        done = subprocess.run(command.argv("run", self.model, "-p", b"ab\xffc"),
                              capture_output=True, timeout=command.TIMEOUT)
        self.assertEqual(done.returncode, 2)
        self.assertIn(b"byte 2", done.stderr)

    @unittest.skipUnless(POSIX, "locales")
    def test_locale_changes_nothing(self):
        arguments = ["run", self.model, "-p", "Hi", "-n", "4", "--temp", "0.7", "--seed", "5"]
        expected = self.ok(*arguments).out
        for name in ("tr_TR.UTF-8", "de_DE.UTF-8", "C"):
            self.assertEqual(self.ok(*arguments, env=environment(LC_ALL=name)).out, expected)


class Paths(command.TestCase):
    def test_letters_blanks_and_length(self):
        folder = os.path.join(scratch("\u0434\u0432\u0430 \u0441\u043b\u043e\u0432\u0430 \u6771\u4eac \U0001f98a"),
                              *["a long name, " * 4 + "x"] * 5)
        os.makedirs(folder)
        self.assertGreater(len(folder), 270)  # Windows had a limit of 260
        source = os.path.join(folder, "source")
        shutil.copytree(command.DEMO, source)
        path, prompt = (os.path.join(folder, name) for name in ("\u6a21\u578b.tern", "prompt.txt"))
        with open(prompt, "w", encoding="utf-8") as f:
            f.write("Hi")
        expected = self.ok("run", command.model(), "-p", "Hi", "--greedy", "-n", "8").out
        for _ in range(2):  # the second time the file is replaced
            self.ok("convert", source, "--name", "demo", "-o", path)
            self.assertEqual(read_bytes(path), read_bytes(command.model()))
        self.assertEqual(self.ok("run", path, "-f", prompt, "--greedy", "-n", "8").out, expected)
        self.ok("verify", path)
        self.ok("run", "-p", "Hi", "-n", "1", env=environment(TERN_MODEL=path))
        self.assertIn("\u6a21\u578b.tern.x", self.refused(5, "info", path + ".x"))
        self.assertEqual(sorted(os.listdir(folder)), ["prompt.txt", "source", "\u6a21\u578b.tern"])

    def test_messages_are_cut_between_characters(self):
        for name in ("y", "yy"):  # two-byte letters: one of the cuts would split one
            folder = os.path.join(scratch(name), *["\u0434\u043b\u0438\u043d\u043d\u043e" * 18] * 5)
            os.makedirs(folder)
            path = os.path.join(folder, "m.tern")
            self.ok("convert", command.DEMO, "-o", path)
            self.assertIn("replaced", self.ok("convert", command.DEMO, "-o", path).err)
            self.refused(5, "info", path + ".x")


class Streams(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def test_stdout_holds_the_answer_only(self):
        arguments = ["run", self.model, "-p", "Hi", "--greedy", "-n", "8"]
        plain = self.ok(*arguments)
        self.assertEqual(plain.err, "")
        verbose = self.ok(*arguments, "-v", "--stats")
        self.assertEqual(plain.out, verbose.out)
        self.assertTrue(plain.out.endswith(b"\n"))
        self.assertNotIn("\x1b", verbose.err)
        self.assertIn("machine:", verbose.err)
        self.assertEqual(self.ok(*arguments, "-q").err, "")
        self.assertNotIn(b"\x1b", plain.out)

    @unittest.skipUnless(POSIX, "sockets as standard output")
    def test_output_is_streamed(self):
        """A packet socket keeps the writes apart, however late they are read."""
        import socket
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        with ours, theirs:
            process = subprocess.Popen(
                command.argv("run", self.model, "--raw", "-p", "Once", "-n", "50", "--ignore-eos",
                             "--greedy"), stdout=theirs, stdin=subprocess.DEVNULL)
            theirs.close()
            packets = list(iter(lambda: ours.recv(65536), b""))
        self.assertEqual(process.wait(timeout=command.TIMEOUT), 0)
        whole = self.ok("run", self.model, "--raw", "-p", "Once", "-n", "50", "--ignore-eos",
                        "--greedy").out
        self.assertEqual(b"".join(packets), whole)
        self.assertGreater(len(packets), 25)

    @unittest.skipUnless(os.path.exists("/dev/full") and NATIVE, "needs /dev/full")
    def test_full_disk(self):
        for arguments in (["run", self.model, "-p", "Hi", "-n", "4"], ["--help"], ["version"],
                          ["info", self.model], ["info", self.model, "--json"]):
            with self.subTest(arguments=arguments), open("/dev/full", "wb") as full:
                done = subprocess.run(command.argv(*arguments), stdout=full,
                                      stderr=subprocess.PIPE, stdin=subprocess.DEVNULL,
                                      timeout=command.TIMEOUT)
                self.assertEqual(done.returncode, 4)
                self.assertEqual(done.stderr.count(b"\n"), 1)
                self.assertIn(b"tern: error: ", done.stderr)

    def test_reader_closes_pipe(self):
        process = subprocess.Popen(
            command.argv("run", self.model, "--raw", "-p", "Once", "-n", "900", "--caps", "off",
                         "--ignore-eos"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        process.stdout.read(1)
        process.stdout.close()
        error = process.stderr.read()
        done = subprocess.CompletedProcess((), process.wait(timeout=command.TIMEOUT), b"", error)
        process.stderr.close()
        self.assertEqual((command.Result(done).err, done.returncode), ("", 0))

    @unittest.skipUnless(POSIX, "POSIX shells")
    def test_closed_streams(self):
        run = shlex.join(command.argv("run", self.model, "-p", "Hi", "-n", "2"))
        for redirect, code in (("<&-", 0), (">&-", 4), ("2>&-", 0)):
            with self.subTest(redirect=redirect):
                done = subprocess.run(["sh", "-c", f"{run} {redirect}"], timeout=command.TIMEOUT,
                                      capture_output=True, env=environment())
                self.assertEqual(done.returncode, code, done.stderr)

    def test_standard_input_is_not_touched_with_a_prompt(self):
        reader, writer = os.pipe()
        try:
            done = subprocess.run(command.argv("run", self.model, "-p", "Hi", "-n", "2"),
                                  stdin=reader, capture_output=True, timeout=command.TIMEOUT)
            self.assertEqual(done.returncode, 0)
        finally:
            os.close(reader)
            os.close(writer)


if __name__ == "__main__":
    command.main()
