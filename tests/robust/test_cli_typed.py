#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""What users type first: a model's name and a text, a GGUF file, a folder, nothing at all."""
import json
import os
import re
import shutil
import struct
import subprocess
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import environment, scratch
from terminal import IS_SANITIZED, Terminal

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

    def test_names_that_are_empty(self):
        # as from "$MODEL" and "$FILE" when the variable is not set
        self.assertIn("the model's name is empty", self.refused(2, "run", "", "Hi"))
        self.assertIn("the source's name is empty", self.refused(2, "convert", ""))
        for flag in ("--model", "--file", "--template", "--prefix-cache", "--schema"):
            with self.subTest(flag=flag):
                error = self.refused(2, "run", command.model(), "Hi", "-n", "1", flag, "")
                self.assertIn(f'{flag} "": must not be empty', error)


class UnknownNames(command.TestCase):
    def test_downloadable_models_are_named(self):
        env = environment(TERN_MODELS="", XDG_DATA_HOME=scratch("none"), LOCALAPPDATA=scratch("none"))
        for name, hint in (("bitnet-2b", "tern pull bitnet-2b fetches it"),
                           ("Bitnet-2B", "tern pull bitnet-2b fetches it"),
                           ("bitnet2b", "tern pull bitnet-2b fetches one of nearly this name"),
                           ("xyzzy", "tern list shows the installed models")):
            with self.subTest(name=name):
                self.assertIn(hint, self.refused(5, "run", name, "Hi", env=env))


    def test_a_name_without_a_command(self):
        here = scratch("named")
        os.makedirs(here)
        shutil.copy(command.model(), os.path.join(here, "mine.tern"))
        nothing = dict(XDG_DATA_HOME=scratch("none"), LOCALAPPDATA=scratch("none"))
        env = environment(TERN_MODELS=here, **nothing)
        for name, hint in (("mine", '"mine" is a model, not a command; try: tern run mine'),
                           ("bitnet-2b", "try: tern pull bitnet-2b, then tern run bitnet-2b"),
                           ("microsoft/bitnet-b1.58-2B-4T-gguf", "tern pull bitnet-2b"),
                           ("mine2", 'unknown command "mine2"')):
            for arguments in ((name,), (name, "Hi")):
                self.assertIn(hint, self.refused(2, *arguments, env=env))


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

    def suggestion(self, result):
        """The last line, which names a command, without the program's name."""
        match = re.fullmatch(r'Try: ("[^"]+"|\S+) (.*)', result.err.splitlines()[-1])
        self.assertIsNotNone(match, result.err)
        if command.NATIVE:
            self.assertEqual(match.group(1).strip('"'), command.TERN)
        return match.group(2)

    def test_convert_names_the_next_command(self):
        here = scratch("converted")
        os.makedirs(here)
        for output, typed in (("mine.tern", "mine"), ("my own.tern", '"my own"'),
                              ("other", "other")):
            result = self.ok("convert", command.DEMO, "-o", output, cwd=here)
            self.assertEqual(self.suggestion(result), f"chat {typed}")
        elsewhere = os.path.join(here, "mine.tern")
        result = self.ok("convert", command.DEMO, "-o", elsewhere, cwd=command.scratch(""))
        self.assertEqual(self.suggestion(result), f"chat {elsewhere}")
        self.assertNotIn("Try:", self.ok("convert", command.DEMO, "-o", elsewhere, "-q").err)
        result = self.ok("convert", command.DEMO, "-o", "bare.tern", "--no-tokenizer", cwd=here)
        self.assertEqual(self.suggestion(result), "bench bare")

    @unittest.skipUnless(ON_A_TERMINAL, "started through PATH")
    def test_convert_names_the_program_as_it_was_started(self):
        here = scratch("started as")
        os.makedirs(here)
        os.symlink(command.TERN, os.path.join(here, "tern"))
        for start, typed in (("./tern", "./tern"), (os.path.join(here, "tern"), f'"{here}/tern"'),
                             ("tern", "tern")):
            done = subprocess.run([start, "convert", command.DEMO, "-o", "mine.tern"], cwd=here,
                                  env=environment(PATH=here), stderr=subprocess.PIPE, check=True)
            self.assertEqual(done.stderr.decode().splitlines()[-1], f"Try: {typed} chat mine")


class Sources(command.TestCase):
    """run, chat and serve accept a GGUF file or a folder, which is converted once."""

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
        [earlier] = self.models()
        name = os.path.basename(earlier)[:-len(".tern")]
        again = self.run_folder().err
        self.assertIn("is converted once into", again)
        self.assertRegex(again, "a conversion of another file of this name takes .* [kM]B; to "
                                f"delete it: tern remove .?{name}")
        self.assertEqual(len(self.models()), 2)
        self.ok("remove", name, env=self.env)
        self.assertNotIn(earlier, self.models())
        self.assertEqual(self.run_folder().err, "")

    def test_files_with_other_endings_belong_to_the_source(self):
        self.run_folder()
        for n, name in enumerate(("merges.txt", os.path.join("1_Pooling", "config.json")), 2):
            path = os.path.join(self.folder, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "w", encoding="utf-8") as f:
                f.write("{}")
            with self.subTest(name=name):
                self.assertIn("is converted once into", self.run_folder().err)
                self.assertEqual(len(self.models()), n)

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

    def test_unsupported_sources(self):
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

    def test_a_large_source_needs_a_confirmation(self):
        """A folder with a sparse weight file, nearly all of which is a tensor that is skipped."""
        folder, data = scratch("large"), scratch("large-data")
        shutil.copytree(command.DEMO, folder)
        path = os.path.join(folder, "model.safetensors")
        content = command.read_bytes(path)
        start = 8 + struct.unpack_from("<Q", content)[0]
        n, n_more = len(content) - start, 1_100_000_000
        tensors = json.loads(content[8:start])
        tensors["model.layers.0.self_attn.rotary_emb.inv_freq"] = {
            "dtype": "F32", "shape": [n_more // 4], "data_offsets": [n, n + n_more]}
        header = json.dumps(tensors).encode()
        with open(path, "wb") as f:
            f.write(struct.pack("<Q", len(header)) + header + content[start:])
            f.truncate(8 + len(header) + n + n_more)
        env = {"XDG_DATA_HOME": data, "HOME": data, "TERM": "dumb"}
        with Terminal("run", folder, "Hi", "-n", "2", env=env) as t:
            t.expect(rb"1\.1 GB, is converted once.*\(y or n\)\? ")
            t.send(b"what\n")
            t.expect(rb"\(y or n\)\? ")
            t.send(b"n\n")
            text, code = t.finish()
        self.assertEqual(code, 2)
        self.assertIn(b"was not converted", text)
        self.assertFalse(os.path.exists(os.path.join(data, "tern", "models")))

    def test_run_with_a_text_answers(self):
        with Terminal("run", command.model(), "Hi", "-n", "4") as t:
            text, code = t.finish()
        self.assertEqual(code, 0)
        self.assertNotIn(b"> ", text)

    def test_no_prompt_is_invented(self):
        """Flags for a single answer, without a text."""
        schema = scratch("schema.json")
        with open(schema, "w", encoding="utf-8") as f:
            f.write("{}")
        for flags in (["--raw"], ["--schema", schema], ["--prefix-cache", scratch("cache")]):
            with Terminal("run", command.model(), *flags) as t:
                text, code = t.finish()
            self.assertEqual(code, 2)
            self.assertIn(b"-p", text)


@unittest.skipUnless(ON_A_TERMINAL, "needs a POSIX terminal")
class Menu(command.TestCase):
    """`tern` alone, without a model."""

    def setUp(self):
        self.folder = scratch(f"menu-{self._testMethodName}")
        os.makedirs(os.path.join(self.folder, "models"))
        shutil.copy(command.TERN, self.folder)

    def add(self, name):
        shutil.copy(command.model(), os.path.join(self.folder, name))

    def tern(self, **changes):
        env = {"HOME": self.folder, "XDG_DATA_HOME": self.folder, "TERN_MODELS": "", "TERM": "dumb",
               "PATH": self.folder, "DISPLAY": "", "WAYLAND_DISPLAY": "", **changes}
        return Terminal(program=[os.path.join(self.folder, "tern")], env=env)

    def test_models_are_numbered(self):
        self.add("demo.tern")
        self.add("models/other.tern")
        for answer, name in ((b"\n", b"demo.tern"), (b"1\n", b"demo.tern"), (b"2\n", b"other.tern"),
                             (b"other\n", b"other.tern")):
            with self.tern() as t:
                shown = t.expect(rb"1  talk to demo, .*2  talk to other.*p  open the page.*\? ")
                self.assertRegex(shown, rb"f  fetch \S+, the best that fits here")
                t.send(b"7\n")
                t.expect(rb"none of them.*\? ")
                t.send(answer)
                t.expect(b"leaves.*> ")
                t.send(b"/config\n")
                t.expect(name + b".*> ")
                t.send(b"/exit\n")
                self.assertEqual(t.finish()[1], 0)

    def test_the_page(self):
        self.add("demo.tern")
        with self.tern() as t:
            t.expect(rb"\? ")
            t.send(b"p\n")
            t.expect(rb"http://127.0.0.1:|port 8080: Address already in use")

    def test_without_the_demo(self):
        with self.tern() as t:
            self.assertNotIn(b"open the page", t.expect(rb"Which one\? "))
            t.send(b"p\n")
            t.expect(rb"none of them.*\? ")
        self.add("models/other.tern")
        with self.tern() as t:
            t.expect(rb"p  open the page in a browser, with other.*\(Enter: other\)\? ")
            t.send(b"p\n")
            t.expect(rb"http://127.0.0.1:|port 8080: Address already in use")

    def test_leaving(self):
        for answer in (b"q\n", b"\x04"):
            with self.tern() as t:
                t.expect(rb"Which one\? ")
                t.send(answer)
                self.assertEqual(t.finish()[1], 0)

    def test_a_named_model_is_used(self):
        self.add("model.tern")
        with self.tern() as t:
            self.assertNotIn(b"no model was named", t.expect(b"leaves.*> "))
        os.remove(os.path.join(self.folder, "model.tern"))
        with self.tern(TERN_MODEL=command.model()) as t:
            self.assertNotIn(b"no model was named", t.expect(b"leaves.*> "))


@unittest.skipUnless(ON_A_TERMINAL, "needs a POSIX terminal")
class Silence(command.TestCase):
    """Anything that takes longer than half a second, or waits for the user, reports it."""
    SLOW = ("--cpu", "ref", "--threads", "1")
    N = 150 if IS_SANITIZED else 500  # tokens of which a fast computer needs over half a second

    def text(self):
        path = scratch("long.txt")
        with open(path, "w", encoding="utf-8") as f:
            f.write("king " * self.N)
        return path

    def ids(self):
        return " ".join(["7"] * self.N)

    def check(self, shown, what):
        """A line with a percentage was shown, and erased by blanks before any other output."""
        self.assertRegex(shown, what + rb": \d+ %, ")
        line = re.search(rb"\r?([^\r\n]*" + what + rb": \d+ %[^\r]*)\r( +)\r", shown)
        self.assertIsNotNone(line, shown)
        self.assertGreaterEqual(len(line.group(2)), len(line.group(1).strip()))

    def test_run(self):
        with Terminal("run", command.model(), "-f", self.text(), "-n", "1", *self.SLOW) as t:
            shown, code = t.finish()
        self.assertEqual(code, 0)
        self.check(shown, b"prompt")

    def test_chat(self):
        with Terminal("chat", command.model(), "-n", "1", *self.SLOW) as t:
            t.expect(b"> ")
            t.send(b"/file " + self.text().encode() + b"\n")
            t.expect(rb"next\s+question.*> ")
            t.send(b"Hello\n")
            self.check(t.expect(rb"\n> $"), b"prompt")

    def test_logits(self):
        with Terminal("logits", command.model(), "--ids", self.ids(), "--greedy", "2",
                      *self.SLOW) as t:
            shown, code = t.finish()
        self.assertEqual(code, 0)
        self.check(shown, b"logits")

    def test_embed(self):
        with Terminal("embed", command.model(), "--ids", self.ids(), *self.SLOW) as t:
            shown, code = t.finish()
        self.assertEqual(code, 0)
        self.check(shown, b"embedding")

    def test_bench(self):
        with Terminal("bench", command.model(), "-r", "1", "--depths", "0", "-p", str(self.N),
                      *self.SLOW) as t:
            shown, code = t.finish()
        self.assertEqual(code, 0)
        self.check(shown, b"measuring")

    def test_quiet_and_redirected(self):
        arguments = ("run", command.model(), "-f", self.text(), "-n", "1", *self.SLOW)
        self.assertEqual(self.ok(*arguments).err, "")
        with Terminal(*arguments, "-q") as t:
            self.assertNotIn(b"prompt: ", t.finish()[0])

    def test_waiting_for_input(self):
        for arguments, what in ((("tokenize", command.model()), b"a text"),
                                (("tokenize", command.model(), "--chat"), b"JSON array"),
                                (("detokenize", command.model()), b"token ids"),
                                (("embed", command.model()), b"a text per line"),
                                (("embed", command.model(), "--json"), b"JSON array"),
                                (("embed", command.model(), "--search", "x"), b"search in")):
            with Terminal(*arguments) as t:
                t.expect(b"waiting for [^;]*" + what + b".*Ctrl-D.*ends it")
                t.send(b"[]\n\x04")
                t.finish()
        self.assertEqual(self.ok("tokenize", command.model(), stdin=b"x").err, "")

    def test_a_saved_conversation_shows_its_last_turn(self):
        path = scratch("saved.json")
        with Terminal("chat", command.model(), "--greedy", "-n", "5", "--session", path) as t:
            for question in (b"Hello", b"And then?"):
                t.expect(b"> ")
                t.send(question + b"\n")
                t.expect(rb"context \d+ of")
            t.expect(b"> ")
            t.send(b"/exit\n")
            t.finish()
        turns = command.read_json(path)["messages"]
        shown = rb"> And then\?\r\n" + re.escape(turns[-1]["content"][:8].encode())
        with Terminal("chat", command.model(), "--session", path) as t:
            before = t.expect(shown)
            self.assertNotIn(b"> Hello", before)
            t.expect(b"leaves.*> ")
            t.send(b"/load " + path.encode() + b"\n")
            t.expect(b"4 messages are loaded.*" + shown)


@unittest.skipUnless(ON_A_TERMINAL, "needs a POSIX terminal")
class ExternalEditor(command.TestCase):
    def setUp(self):
        self.script = scratch("editor.py")
        with open(self.script, "w", encoding="utf-8") as f:
            f.write("import sys, os\n"
                    "flag, path = sys.argv[1:]\n"
                    "assert flag == '--wait' and os.stat(path).st_mode & 0o77 == 0\n"
                    "text = open(path).read()\n"
                    "if text == 'fail': sys.exit(3)\n"
                    "if text == 'long': text *= 5 << 20\n"
                    "open(path, 'w').write(text + ' world\\nsecond line\\n')\n")
        self.folder = scratch(f"tmp-{self._testMethodName}")
        os.makedirs(self.folder)

    def chat(self, editor=None, **changes):
        editor = editor or f"{sys.executable} {self.script} --wait"
        return Terminal("chat", command.model(), "-n", "2", "-q", "--session", scratch("edited.json"),
                        env={"VISUAL": "", "EDITOR": editor, "TMPDIR": self.folder, **changes})

    def test_by_key_and_by_command(self):
        for typed in (b"Hello\x18\x05", b"/editor Hello\n"):
            with self.chat() as t:
                t.expect(b"> ")
                t.send(typed)
                t.expect(b"Hello world.*second line")
                t.send(b"!\n")
                t.expect(rb"!\r\n.*\n> ")
                t.send(b"/exit\n")
                self.assertEqual(t.finish()[1], 0)
                self.assertEqual(t.modes(), t.before)
            self.assertEqual(command.read_json(scratch("edited.json"))["messages"][-2]["content"],
                             "Hello world\nsecond line!")
        self.assertEqual(os.listdir(self.folder), [])

    def test_failures_keep_the_text(self):
        for editor, typed, said in ((None, b"fail", b"exited with an error"),
                                    ("/no/such/editor", b"text", b"set \\$EDITOR")):
            with self.chat(editor) as t:
                t.expect(b"> ")
                t.send(typed + b"\x18\x05")
                t.expect(said + b".*> " + typed)
                t.send(b"\x03")
                t.expect(b"\\^C.*> ")
                t.send(b"/exit\n")
                self.assertEqual(t.finish()[1], 0)
        self.assertEqual(os.listdir(self.folder), [])

    def test_a_text_that_cannot_be_read_stays(self):
        with self.chat() as t:
            t.expect(b"> ")
            t.send(b"long\x18\x05")
            t.expect(rb"more than 16777216 bytes.*the\s+text\s+is\s+kept.*> long")
            t.send(b"\x03")
            t.expect(b"\\^C.*> ")
            t.send(b"/exit\n")
            self.assertEqual(t.finish()[1], 0)
        name, = os.listdir(self.folder)
        self.assertEqual(os.path.getsize(os.path.join(self.folder, name)), (20 << 20) + 19)


class Messages(command.TestCase):
    def test_weights_that_are_not_read(self):
        folder = scratch("pickled")
        shutil.copytree(command.DEMO, folder, ignore=shutil.ignore_patterns("*.safetensors"))
        self.assertIn("holds no model.safetensors", self.refused(5, "convert", folder))
        with open(os.path.join(folder, "pytorch_model.bin"), "wb") as f:
            f.write(b"PK")
        self.assertIn(".bin files", self.refused(5, "convert", folder))

    def test_an_output_in_a_missing_folder(self):
        for arguments in (("convert", command.DEMO), ("logits", command.model(), "--ids", "1")):
            missing = scratch("no such folder")
            error = self.refused(4, *arguments, "-o", os.path.join(missing, "x.f32"))
            self.assertIn(f'there is no folder "{missing}"', error)
            self.assertNotIn(".part", error)

    def test_a_busy_port(self):
        import socket
        with socket.socket() as s:
            s.bind(("127.0.0.1", 0))
            s.listen()
            result = command.tern("serve", command.model(), "--port", str(s.getsockname()[1]))
        self.assertEqual(result.code, 4)
        self.assertIn("--port 0 selects a free one", result.err)

    def test_config_in_words(self):
        lines = self.ok("chat", command.model(), stdin=b"/config\n").err
        self.assertIn("memory that may be used: ", lines)
        self.assertNotIn("_", re.sub(r"(?m)^model .*\n", "", lines))


if __name__ == "__main__":
    command.main()
