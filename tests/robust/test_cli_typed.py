#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What people type first: a model's name and a text, a GGUF file, a folder, nothing at all."""
import json
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import environment, scratch
from terminal import Terminal

ON_A_TERMINAL = command.NATIVE and os.name == "posix"


class Positions(command.TestCase):
    def test_the_text_follows_the_model(self):
        flags = ("--greedy", "-n", "8")
        expected = self.ok("run", command.model(), "-p", "Hi", *flags).out
        for arguments in ((command.model(), "Hi", *flags), (*flags, command.model(), "--", "Hi")):
            self.assertEqual(self.ok("run", *arguments).out, expected)
        self.assertEqual(self.ok(command.model(), "Hi", *flags).out, expected)
        notes = scratch("notes.txt")
        with open(notes, "w", encoding="utf-8") as f:
            f.write("notes")
        self.assertEqual(self.ok("run", command.model(), "Hi", "-f", notes, *flags).out,
                         self.ok("run", command.model(), "-p", "Hi", "-f", notes, *flags).out)

    def test_one_text(self):
        error = self.refused(2, "run", command.model(), "Hi", "-p", "Ho")
        self.assertIn('two prompts are given: "Hi" and -p "Ho"', error)
        error = self.refused(2, "run", command.model(), "Hi", "there")
        self.assertIn("in quotes", error)

    def test_the_first_is_always_the_model(self):
        error = self.refused(5, "run", "Tell me a story.", env=environment(TERN_MODEL=command.model()))
        self.assertIn('"Tell me a story."', error)
        self.assertIn('tern run MODEL "TEXT"', error)


class UnknownNames(command.TestCase):
    def test_what_can_be_fetched_is_named(self):
        env = environment(TERN_MODELS="", XDG_DATA_HOME=scratch("none"), LOCALAPPDATA=scratch("none"))
        for name, hint in (("bitnet-2b", "tern pull bitnet-2b fetches it"),
                           ("Bitnet-2B", "tern pull bitnet-2b fetches it"),
                           ("bitnet2b", "tern pull bitnet-2b fetches one of nearly this name"),
                           ("xyzzy", "tern list shows those that are here")):
            with self.subTest(name=name):
                self.assertIn(hint, self.refused(5, "run", name, "Hi", env=env))


class CurrentFolder(command.TestCase):
    def test_run_and_chat_know_its_names(self):
        here = scratch("here")
        os.makedirs(here)
        shutil.copy(command.model(), os.path.join(here, "mine.tern"))
        expected = self.ok("run", command.model(), "-p", "Hi", "--greedy", "-n", "8").out
        self.assertEqual(self.ok("run", "mine", "Hi", "--greedy", "-n", "8", cwd=here).out, expected)
        self.ok("chat", "mine", "-n", "2", cwd=here, stdin=b"Hi\n")
        self.assertIn("did you mean mine?", self.refused(5, "run", "mime", "Hi", cwd=here))
        self.refused(5, "info", "mine", cwd=here)

    def test_convert_names_the_next_command(self):
        here = scratch("converted")
        os.makedirs(here)
        for output, typed in (("mine.tern", "mine"), ("my own.tern", '"my own"'),
                              ("other", "other")):
            result = self.ok("convert", command.DEMO, "-o", output, cwd=here)
            self.assertEqual(result.err.splitlines()[-1], f"Try: tern chat {typed}")
        elsewhere = os.path.join(here, "mine.tern")
        result = self.ok("convert", command.DEMO, "-o", elsewhere, cwd=command.scratch(""))
        self.assertEqual(result.err.splitlines()[-1], f"Try: tern chat {elsewhere}")
        self.assertNotIn("Try:", self.ok("convert", command.DEMO, "-o", elsewhere, "-q").err)
        result = self.ok("convert", command.DEMO, "-o", "bare.tern", "--no-tokenizer", cwd=here)
        self.assertIn("Try: tern bench bare", result.err)


class Sources(command.TestCase):
    """run, chat and serve take a GGUF file or a folder, converted once."""

    def setUp(self):
        self.data = scratch(f"data-{self.id()}")
        self.env = environment(XDG_DATA_HOME=self.data, LOCALAPPDATA=self.data, HOME=self.data)
        self.folder = scratch(f"Good Name-{self._testMethodName}")
        shutil.copytree(command.DEMO, self.folder)

    def models(self):
        found = []
        for path, _, names in os.walk(self.data):
            found += [os.path.join(path, name) for name in names if "threads" not in name]
        return sorted(found)

    def run_folder(self, *flags):
        return command.tern("run", self.folder, "Hi", "--greedy", "-n", "8", *flags, env=self.env)

    def test_once(self):
        expected = self.ok("run", command.model(), "Hi", "--greedy", "-n", "8").out
        first, second = self.run_folder(), self.run_folder()
        self.assertEqual((first.code, first.out, second.code, second.out), (0, expected) * 2)
        self.assertIn("is converted once into", first.err)
        self.assertIn(" bits per weight, ", first.err)
        self.assertEqual(second.err, "")
        [path] = self.models()
        name = os.path.basename(self.folder)
        self.assertRegex(os.path.basename(path), rf"^{name}-[0-9a-f]{{8}}\.tern$")
        self.assertEqual(json.loads(self.ok("info", path, "--json").text)["name"], name)
        listed = self.ok("list", "--json", env=self.env)
        self.assertIn(os.path.basename(path)[:-5], [row["name"] for row in json.loads(listed.text)])

    def test_a_changed_source_is_converted_again(self):
        self.run_folder()
        config = os.path.join(self.folder, "generation_config.json")
        about = command.read_json(config) if os.path.exists(config) else {}
        with open(config, "w", encoding="utf-8") as f:
            json.dump(dict(about, transformers_version="0"), f)
        self.assertIn("is converted once into", self.run_folder().err)
        self.assertEqual(len(self.models()), 2)

    def test_a_moved_source_is_not(self):
        self.run_folder()
        parent = scratch(f"moved-{self._testMethodName}")
        os.makedirs(parent)
        moved = os.path.join(parent, os.path.basename(self.folder))
        os.rename(self.folder, moved)
        self.folder = moved
        self.assertEqual(self.run_folder().err, "")

    def test_gguf(self):
        source = command.shared("reference", "gguf", "demo", "i2_s.gguf")
        for _ in range(2):
            self.ok("run", source, "Hi", "-n", "2", env=self.env)
        self.ok("chat", source, "-n", "2", env=self.env, stdin=b"Hi\n")
        [path] = self.models()
        self.assertRegex(os.path.basename(path), r"^i2_s-[0-9a-f]{8}\.tern$")

    def test_no_convert(self):
        for arguments in (("run", self.folder, "Hi"), ("chat", self.folder),
                          ("serve", self.folder, "--port", "0")):
            error = self.refused(2, *arguments, "--no-convert", env=self.env)
            self.assertIn("tern convert", error)
        self.assertEqual(self.models(), [])
        self.run_folder()
        self.assertEqual(self.run_folder("--no-convert").code, 0)

    def test_what_cannot_be_converted(self):
        os.remove(os.path.join(self.folder, "model.safetensors"))
        self.assertIn("model.safetensors", self.refused(5, "run", self.folder, "Hi", env=self.env))
        self.assertEqual(self.models(), [])


@unittest.skipUnless(ON_A_TERMINAL, "needs a POSIX terminal")
class OnATerminal(command.TestCase):
    def test_run_opens_a_conversation(self):
        for arguments in (("run", command.model()), (command.model(),)):
            with Terminal(*arguments, "-n", "4") as t:
                t.expect(b"/help.*> ")
                t.send(b"/exit\n")
                self.assertEqual(t.finish()[1], 0)

    def test_run_with_a_text_answers(self):
        with Terminal("run", command.model(), "Hi", "-n", "4") as t:
            text, code = t.finish()
        self.assertEqual(code, 0)
        self.assertNotIn(b"> ", text)

    def test_no_prompt_is_invented(self):
        """Flags of a single answer without a text."""
        schema = scratch("schema.json")
        with open(schema, "w", encoding="utf-8") as f:
            f.write("{}")
        for flags in (["--raw"], ["--schema", schema], ["--prefix-cache", scratch("cache")]):
            with Terminal("run", command.model(), *flags) as t:
                text, code = t.finish()
            self.assertEqual(code, 2)
            self.assertIn(b"-p", text)


if __name__ == "__main__":
    command.main()
