#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The command line from the user's side: arguments, streams, prompts, exit codes."""
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, environment, read_bytes, scratch, tern

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

    @unittest.skipUnless(POSIX, "POSIX pipes")
    def test_reader_closes_pipe(self):
        process = subprocess.Popen(
            command.argv("run", self.model, "--raw", "-p", "Once", "-n", "900", "--caps", "off",
                         "--ignore-eos"),
            stdout=subprocess.PIPE, stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
        process.stdout.read(1)
        process.stdout.close()
        self.assertEqual(process.stderr.read(), b"")
        self.assertEqual(process.wait(timeout=command.TIMEOUT), 0)
        process.stderr.close()

    @unittest.skipUnless(POSIX, "POSIX shells")
    def test_closed_streams(self):
        run = shlex.join(command.argv("run", self.model, "-p", "Hi", "-n", "2"))
        for redirect, code in (("<&-", 0), (">&-", 4), ("2>&-", 0)):
            with self.subTest(redirect=redirect):
                done = subprocess.run(["sh", "-c", f"{run} {redirect}"], timeout=command.TIMEOUT,
                                      capture_output=True, env=environment())
                self.assertEqual(done.returncode, code, done.stderr)

    @unittest.skipUnless(POSIX, "POSIX pipes")
    def test_standard_input_is_not_touched_with_a_prompt(self):
        reader, writer = os.pipe()
        try:
            done = subprocess.run(command.argv("run", self.model, "-p", "Hi", "-n", "2"),
                                  stdin=reader, capture_output=True, timeout=command.TIMEOUT)
            self.assertEqual(done.returncode, 0)
        finally:
            os.close(reader)
            os.close(writer)


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


class Chat(command.TestCase):
    """Without a terminal: a turn per line."""

    def setUp(self):
        self.model = command.model()

    def chat(self, lines, *flags):
        text = "".join(line + "\n" for line in lines).encode()
        return tern("chat", self.model, "--greedy", *flags, stdin=text)

    def ids_of_turns(self, result):
        return [line.split()[1:] for line in result.err.splitlines() if line.startswith("ids:")]

    def test_no_input(self):
        result = self.ok("chat", self.model)
        self.assertEqual((result.out, result.err), (b"", ""))

    def test_a_turn_per_line(self):
        result = self.chat(["Hello", "", "Tell me a story."], "-n", "16", "--stats=json")
        self.assertEqual(result.code, 0)
        stats = [json.loads(line) for line in result.err.splitlines()]
        self.assertEqual(len(stats), 2)
        alone = self.chat(["Hello"], "-n", "16")
        self.assertTrue(result.out.startswith(alone.out))

    def test_ids_of_the_second_turn_are_those_of_the_whole_conversation(self):
        turns = ["My name is Ada.", "What is my name?", "And yours?"]
        result = self.chat(turns, "-n", "24", "-v", "-s", "Be kind.")
        ids = self.ids_of_turns(result)
        self.assertEqual(len(ids), 3)
        messages = [{"role": "system", "content": "Be kind."}]
        rest = result.text
        for i, turn in enumerate(turns):
            messages.append({"role": "user", "content": turn})
            expected = self.ok("tokenize", self.model, "--chat",
                               stdin=json.dumps(messages).encode()).text.split()
            self.assertEqual(ids[i], expected)
            if i < 2:
                answer = self.answer_before(messages, ids[i + 1], rest)
                rest = rest[len(answer):].lstrip("\n")
                messages.append({"role": "assistant", "content": answer})

    def answer_before(self, messages, next_ids, rest):
        """The answer within the ids of the next turn: stdout up to some newline."""
        for end in [i for i, c in enumerate(rest) if c == "\n"]:
            trial = messages + [{"role": "assistant", "content": rest[:end]}]
            rendered = self.ok("tokenize", self.model, "--chat", "--no-generation-prompt",
                               stdin=json.dumps(trial).encode()).text.split()
            if rendered == next_ids[:len(rendered)]:
                return rest[:end]
        self.fail("the next turn does not hold the answer")

    def test_the_cache_is_used_again(self):
        result = self.chat(["Tell me a story."] * 3, "-n", "60", "--stats")
        reused = [line for line in result.err.splitlines() if "from the cache" in line]
        self.assertEqual(len(reused), 2)

    def test_a_long_conversation_forgets_the_oldest_turns(self):
        result = self.chat(["Tell me a long story, please. " * 6] * 12, "-n", "100", "-v",
                           "--system", "You are a storyteller.", "--ctx", "400")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("forgotten", result.err)
        ids = self.ids_of_turns(result)
        self.assertEqual(len(ids), 12)
        system = ids[0][:12]
        for turn in ids:
            self.assertLess(len(turn), 400)
            self.assertEqual(turn[:12], system)

    def test_a_message_that_is_too_long(self):
        result = self.chat(["word " * 3000, "Hi"], "-n", "4")
        self.assertEqual(result.code, 3)
        self.assertEqual(len(result.err.splitlines()), 1)
        self.assertEqual(result.out, self.chat(["Hi"], "-n", "4").out)
        # Earlier messages stay.
        result = self.chat(["Hi", "word " * 3000, "And?"], "-n", "4", "-v")
        self.assertNotIn("forgotten", result.err)
        expected = self.ids_of_turns(self.chat(["Hi", "And?"], "-n", "4", "-v"))
        self.assertEqual(self.ids_of_turns(result), expected)

    def test_a_line_that_does_not_end(self):
        result = self.chat(["x" * (17 << 20), "Hi"], "-n", "4")
        self.assertEqual(result.code, 3)
        self.assertEqual(len(result.err.splitlines()), 1)
        self.assertIn("16777216", result.err)
        self.assertEqual(result.out, self.chat(["Hi"], "-n", "4").out)
        # Also if only the newline of a continued line had room.
        result = self.chat(['"""' + "x" * ((16 << 20) - 3), "yy"], "-n", "4")
        self.assertEqual(result.code, 3)
        self.assertIn("no room for a message of more than", result.err)

    def test_byte_order_mark(self):
        expected = self.ids_of_turns(self.chat(["Hi", "\ufeffHi"], "-n", "4", "-v"))
        result = self.chat(["\ufeffHi", "\ufeffHi"], "-n", "4", "-v")
        self.assertEqual(self.ids_of_turns(result), expected)
        self.assertNotEqual(expected[1], self.ids_of_turns(self.chat(["Hi"] * 2, "-n", "4",
                                                                     "-v"))[1])

    def test_input_that_cannot_be_read(self):
        with open(scratch("write-only"), "wb") as stdin:
            self.assertIn("standard input", self.refused(5, "chat", self.model, stdin=stdin))

    def test_commands(self):
        result = self.chat(["/help"])
        for name in ("/exit", "/clear", "/system", "/regen", "/undo", "/stats"):
            self.assertIn(name, result.err)
        self.assertEqual(result.out, b"")
        self.assertEqual(self.chat(["/exit", "Hi"]).out, b"")
        self.assertEqual(self.chat(["/q", "Hi"]).out, b"")
        wrong = self.chat(["/nothing such"])
        self.assertIn("/nothing", wrong.err)
        self.assertEqual((wrong.out, wrong.code), (b"", 2))
        self.assertEqual(self.chat(["/nothing", "Hi", "/undo"], "-n", "4").code, 2)

    def test_commands_change_the_conversation(self):
        fresh = self.ids_of_turns(self.chat(["Hi"], "-n", "8", "-v"))[0]
        for lines in (["Hello", "/clear", "Hi"], ["Hello", "/undo", "Hi"],
                      ["Hello", "/reset", "Hi"]):
            result = self.chat(lines, "-n", "8", "-v")
            self.assertEqual(self.ids_of_turns(result)[-1], fresh, lines)
        regenerated = self.ids_of_turns(self.chat(["Hi", "/regen"], "-n", "8", "-v"))
        self.assertEqual(regenerated, [fresh, fresh])
        self.assertRegex(self.chat(["Hi", "/stats"], "-n", "8").err, "2 messages, [1-9][0-9]* of ")
        self.assertIn("0 messages, 0 of ", self.chat(["Hi", "/clear", "/stats"], "-n", "8").err)
        self.assertIn("nothing", self.chat(["/undo"]).err)
        self.assertIn("no answer", self.chat(["/regen"]).err)
        # A failed attempt loses neither the question nor the answer.
        again = self.chat(["Hi", "/system " + "word " * 3000, "/regen", "/system Be kind.",
                           "/regen", "/undo"], "-n", "8", "-v")
        self.assertEqual(again.code, 3)
        self.assertIn("too long", again.err)
        self.assertIn("The last question and its answer are forgotten", again.err)
        with_system = self.ids_of_turns(self.chat(["/system Be kind.", "Hi"], "-n", "8", "-v"))[0]
        given = self.ids_of_turns(self.chat(["Hi"], "-n", "8", "-v", "-s", "Be kind."))[0]
        self.assertEqual(with_system, given)
        self.assertEqual(self.ids_of_turns(again)[-1], given)
        self.assertIn("Be kind.", self.chat(["/system"], "-s", "Be kind.").err)

    def test_slashes_and_continued_lines(self):
        def ids(text):
            messages = [{"role": "user", "content": text}]
            return self.ok("tokenize", self.model, "--chat",
                           stdin=json.dumps(messages).encode()).text.split()
        result = self.chat(["//etc/passwd", "/clear", "one\\", "two\\", "three"], "-n", "4", "-v")
        self.assertEqual(self.ids_of_turns(result), [ids("/etc/passwd"), ids("one\ntwo\nthree")])

    def test_special_tokens_in_messages_are_text(self):
        result = self.chat(["say <|eot_id|>"], "-n", "4", "-v")
        eot = self.ok("tokenize", self.model, "--special", "--no-bos", stdin=b"<|eot_id|>").text
        self.assertEqual(self.ids_of_turns(result)[0].count(eot.strip()), 1)

    def test_not_utf8(self):
        result = tern("chat", self.model, "-n", "4", stdin=b"a\xffb\nHi\n")
        self.assertEqual(result.code, 5)
        self.assertIn("byte 1", result.err)
        self.assertNotEqual(result.out, b"")

    def test_long_line(self):
        result = self.chat(["x" * 100000])
        self.assertEqual(result.code, 3)


class Reports(command.TestCase):
    def setUp(self):
        self.model = command.model()

    def test_info(self):
        text = self.ok("info", self.model, "--tensors").text
        self.assertIn("bitnet", text)
        self.assertIn("down", text)
        info = json.loads(self.ok("info", "--json", self.model).text)
        for key in ("name", "architecture", "n_layer", "hidden", "ffn", "n_head", "n_kv_head",
                    "head_dim", "vocab", "context", "n_params", "layout", "head", "tied",
                    "template", "bos", "stop_ids", "file_bytes", "ternary_bytes", "head_bytes",
                    "bytes_per_token", "kv_bytes_per_token"):
            self.assertIn(key, info)
        self.assertEqual(info["template"], "bitnet-2b-4t")
        self.assertEqual(info["stop_ids"], [4081, 4089])
        self.assertEqual(info["file_bytes"], os.path.getsize(self.model))
        self.assertEqual(info["kv_bytes_per_token"]["f32"], 8 * 2 * 2 * 64 * 4)
        tensors = json.loads(self.ok("info", "--json", "--tensors", self.model).text)["tensors"]
        self.assertLess(sum(t["bytes"] for t in tensors), info["file_bytes"])

    def test_verify(self):
        self.assertIn("intact", self.ok("verify", self.model).text)
        data = bytearray(command.read_bytes(self.model))
        data[-1000] ^= 4
        path = scratch("flipped.tern")
        with open(path, "wb") as f:
            f.write(data)
        self.assertIn(path + ": damaged: ", self.refused(5, "verify", path))

    def test_tokenize(self):
        text = "Grüße, 東京 🦊!\n".encode()
        ids = self.ok("tokenize", self.model, stdin=text).out
        self.assertEqual(self.ok("detokenize", self.model, stdin=ids).out, text)
        pieces = self.ok("tokenize", self.model, "--pieces", stdin=text).text.splitlines()
        self.assertEqual([p.split("\t")[0] for p in pieces], ids.decode().split())
        self.assertEqual(pieces[0], "4080\t<|begin_of_text|>")
        self.assertEqual(self.ok("tokenize", self.model, "--no-bos").out, b"\n")
        with_special = self.ok("detokenize", self.model, "--special", stdin=ids).out
        self.assertEqual(with_special, b"<|begin_of_text|>" + text)

    def test_pieces_show_no_control_characters(self):
        source = scratch("controls")
        shutil.copytree(command.DEMO, source)
        tokenizer = command.read_bytes(os.path.join(source, "tokenizer.json"))
        with open(os.path.join(source, "tokenizer.json"), "wb") as f:
            f.write(tokenizer.replace(b"<|reserved_special_token_0|>", b"\\u009b"))
        pieces = self.ok("tokenize", command.model(source), "--pieces", "--special", "--no-bos",
                         stdin="\u009b".encode())
        self.assertEqual(pieces.out, b"4082\t\\xC2\\x9B\n")

    def test_any_bytes_survive(self):
        data = bytes(range(256)) * 3 + b"\xe2\x82\xf0\x9f\x98\0\xff\n\r\n"
        ids = self.ok("tokenize", self.model, stdin=data).out
        self.assertEqual(self.ok("detokenize", self.model, stdin=ids).out, data)

    def test_a_mark_before_ids(self):
        self.assertEqual(self.ok("detokenize", self.model, stdin=b"\xef\xbb\xbf52").out,
                         self.ok("detokenize", self.model, stdin=b"52").out)

    def test_detokenize_refuses(self):
        for text in (b"1 x 3", b"4096", b"-1", b"99999999999", b"1.5"):
            self.refused(2, "detokenize", self.model, stdin=text)

    def test_tokenize_chat(self):
        messages = [{"role": "user", "content": "Hi"}]
        def chat(value, *flags):
            return tern("tokenize", self.model, "--chat", *flags,
                        stdin=json.dumps(value).encode())
        self.assertEqual(chat(messages, "--text").text, "User: Hi<|eot_id|>Assistant: ")
        self.assertEqual(chat(messages, "--text", "--no-generation-prompt").text,
                         "User: Hi<|eot_id|>")
        self.assertEqual(chat(messages, "--text", "--template", "chatml").text,
                         "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n")
        for bad in ({}, [{"role": "user"}], [{"role": 1, "content": "x"}], [[]], [None],
                    [{"role": "user", "content": None}]):
            self.assertEqual(chat(bad).code, 2, bad)
        # Members that a published template renders and the built-in one does not.
        for member in ({"tool_calls": [{"function": {"name": "f", "arguments": {}}}]},
                       {"reasoning_content": ""}):
            bad = [{"role": "assistant", "content": "", **member}]
            self.assertEqual(chat(bad, "--template", "qwen3").code, 2, bad)
        unused = [{**messages[0], "name": "x", "tool_calls": [], "reasoning_content": None}]
        self.assertEqual(chat(unused).out, chat(messages).out)
        marked = b"\xef\xbb\xbf" + json.dumps(messages).encode()
        self.assertEqual(self.ok("tokenize", self.model, "--chat", stdin=marked).out,
                         chat(messages).out)
        for data in (b"", b"[", b"nonsense", b"[" * 100000):
            self.refused(2, "tokenize", self.model, "--chat", stdin=data)
        for flags in (["--text"], ["--no-generation-prompt"], ["--template", "chatml"],
                      ["--chat", "--special"], ["--chat", "--no-bos"]):
            self.refused(2, "tokenize", self.model, *flags)

    @unittest.skipUnless(command.NATIVE and os.name == "posix", "links")
    def test_writes_through_links(self):
        folder = scratch("links")
        os.mkdir(folder)
        file, link = os.path.join(folder, "there"), os.path.join(folder, "link")
        logits = ("logits", self.model, "--ids", "1 2")
        self.ok(*logits, "-o", file)
        rows = command.read_bytes(file)
        for arguments in (("convert", command.DEMO, "-o", link, "--force"),
                          (*logits, "-o", link, "--force")):
            with open(file, "wb") as f:
                f.write(b"of before")
            if not os.path.islink(link):
                os.symlink("there", link)
            self.ok(*arguments)
            self.assertEqual((os.readlink(link), sorted(os.listdir(folder))),
                             ("there", ["link", "there"]))
            self.assertGreater(os.path.getsize(file), 1000)
        self.assertEqual(command.read_bytes(file), rows)
        os.unlink(file)
        for arguments in (("convert", command.DEMO, "-o", link), (*logits, "-o", link)):
            self.assertIn("broken symbolic link", self.refused(4, *arguments))
        self.assertEqual(os.listdir(folder), ["link"])

    @unittest.skipUnless(command.NATIVE and os.path.exists("/dev/fd/1"), "/dev/fd")
    def test_standard_output_is_never_replaced(self):
        """Also if it is a file: the caller that opened it would continue with the old one."""
        link, path, file = scratch("stdout-link"), scratch("stdout"), scratch("rows.f32")
        logits = ("logits", self.model, "--ids", "1 2")
        self.ok(*logits, "-o", file)
        os.symlink("/dev/fd/1", link)
        # Not /dev/stdout: a command that does replace it would remove it from the whole machine.
        for name in ("/dev/fd/1", link):
            for arguments, code in ((logits, 0), (("convert", command.DEMO), 4)):
                with self.subTest(name=name, command=arguments[0]), open(path, "w+b") as out:
                    done = subprocess.run(command.argv(*arguments, "-o", name), stdout=out,
                                          stderr=subprocess.PIPE, stdin=subprocess.DEVNULL)
                    self.assertEqual(done.returncode, code, done.stderr)
                    out.seek(0)
                    self.assertEqual(out.read(), b"" if code else command.read_bytes(file))
                    self.assertTrue(os.path.samefile(path, out.fileno()))
        self.assertTrue(os.path.islink(link))

    def test_logits(self):
        out = scratch("few.f32")
        self.ok("logits", self.model, "--ids", "1, 2,3", "-o", out)
        self.assertEqual(os.path.getsize(out), 3 * 4096 * 4)
        for arguments in (["--ids", "1 x", "-o", out], ["--ids", "", "-o", out], ["-o", out],
                          ["--ids", "1"], ["--ids", "4096", "-o", out], ["--batch", "0"],
                          ["--ids", "1", "-o", out, "--batch", "513"]):
            self.refused(2, "logits", self.model, *arguments)
        self.refused(3, "logits", self.model, "--ids", "1", "--greedy", "1025")
        self.refused(3, "logits", self.model, "--ids", "1 " * 1025, "-o", out)
        missing = os.path.join(scratch("no such folder"), "x.f32")
        self.refused(4, "logits", self.model, "--ids", "1", "-o", missing)
        self.assertIn("is a directory", self.refused(4, "logits", self.model, "--ids", "1", "-o",
                                                     command.DEMO))
        self.assertEqual(self.ok("logits", self.model, "--ids", "1", "--greedy", "3").out.count(
            b" "), 2)

    def test_perplexity(self):
        path = scratch("text.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("Once upon a time there was a king. " * 20)
        result = self.ok("perplexity", self.model, path, "--ctx", "64", "--json")
        self.assertGreater(json.loads(result.text)["perplexity"], 1)
        self.assertIn("perplexity", self.ok("perplexity", "-m", self.model, path).text)
        self.refused(2, "perplexity")
        self.refused(2, "perplexity", self.model, path, "--ctx", "64", "--stride", "65")
        self.assertIn("at least 2", self.refused(2, "perplexity", self.model, path, "--ctx", "1"))
        self.refused(5, "perplexity", self.model, scratch("missing.txt"))

    def test_perplexity_of_a_binary_file(self):
        def measured(data):
            with open(path, "wb") as f:
                f.write(data)
            return tern("perplexity", self.model, path, "--ctx", "64")
        path = scratch("bytes.txt")
        text = b"Once upon a time there was a king."
        self.assertEqual(measured(b"\xef\xbb\xbf" + text).out, measured(text).out)
        for data, said in ((text + b"\xe9", "byte 34 is 0xE9"),
                           (text.decode().encode("utf-16"), "UTF-16")):
            result = measured(data)
            self.assertEqual((result.code, result.out), (5, b""))
            self.assertIn(said, result.err)
        # The model in place of the text.
        self.assertIn("not UTF-8", self.refused(5, "perplexity", "-m", self.model, self.model))


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
