#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern list, and models that are called by name."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import environment, scratch


class List(command.TestCase):
    @classmethod
    def setUpClass(cls):
        cls.data = scratch("data")
        cls.named = scratch("named")
        own = os.path.join(cls.data, "tern", "models")
        for folder in (cls.named, own):
            os.makedirs(folder)
        cls.files = {"alpha": os.path.join(cls.named, "alpha.tern"),
                     "na\u00efve model": os.path.join(own, "na\u00efve model.tern")}
        for path in cls.files.values():
            shutil.copy(command.model(), path)
        os.mkdir(os.path.join(own, "folder.tern"))
        with open(os.path.join(own, "notes.txt"), "w", encoding="utf-8") as f:
            f.write("no model")
        # the first folder with that name counts
        shutil.copy(command.model(command.DEMO, "--no-tokenizer"), os.path.join(own, "alpha.tern"))

    def environment(self, **changes):
        variables = {"TERN_MODELS": self.named, "XDG_DATA_HOME": self.data,
                     "LOCALAPPDATA": self.data}
        return environment(**dict(variables, **changes))

    def ours(self, rows):
        """Without the models beside the program."""
        folders = tuple(os.path.realpath(f) for f in (self.named, self.data))
        rows = [dict(row, path=os.path.realpath(command.own_path(row["path"]))) for row in rows]
        return [row for row in rows if row["path"].startswith(folders)]

    def test_json(self):
        rows = json.loads(self.ok("list", "--json", env=self.environment()).text)
        rows = self.ours(rows)
        self.assertEqual([row["name"] for row in rows], sorted(self.files))
        for row in rows:
            self.assertTrue(os.path.samefile(row["path"], self.files[row["name"]]))
            self.assertEqual(row["file_bytes"], os.path.getsize(row["path"]))
            info = json.loads(self.ok("info", row["path"], "--json").text)
            for key in ("architecture", "n_params", "context"):
                self.assertEqual(row[key], info[key])

    def test_text(self):
        lines = self.ok("list", env=self.environment()).text.splitlines()
        self.assertRegex(lines[0], r"^name +size +parameters +context +family +file$")
        row = next(line for line in lines if line.startswith("alpha "))
        self.assertRegex(row, r"^alpha +2\.9 MB +7\.4 M +1024 +bitnet +.*alpha\.tern$")

    def test_names_are_models(self):
        env = self.environment()
        for name in self.files:
            for arguments in (["info", name], ["info", "-m", name], ["verify", name],
                              ["run", name, "-p", "Hi", "-n", "2"], ["info", name + ".tern"]):
                with self.subTest(arguments=arguments):
                    self.ok(*arguments, env=env, cwd=self.data)
        self.ok("tokenize", env=self.environment(TERN_MODEL="alpha"), stdin=b"x")
        self.ok("embed", "alpha", env=env, cwd=self.data, stdin=b"x")

    def test_paths_come_first(self):
        """A file or folder with that name in the working directory takes precedence."""
        here = scratch("here")
        os.makedirs(os.path.join(here, "alpha"))
        error = self.refused(5, "run", "alpha", "-p", "x", env=self.environment(), cwd=here)
        self.assertIn("alpha: holds no model.safetensors", error)
        self.refused(5, "info", "./alpha.tern", env=self.environment(), cwd=here)

    def test_unknown_name(self):
        error = self.refused(5, "info", "alphe", env=self.environment(), cwd=self.data)
        self.assertIn("did you mean alpha?", error)
        error = self.refused(5, "info", "quite-another", env=self.environment(), cwd=self.data)
        self.assertIn("tern list", error)
        result = command.tern("info", env=self.environment(TERN_MODEL="alphe"), cwd=self.data)
        self.assertIn("$TERN_MODEL: ", result.err)

    def test_damaged_file(self):
        """It is reported, and does not hide the others."""
        path = os.path.join(self.named, "broken.tern")
        with open(path, "wb") as f:
            f.write(command.read_bytes(command.model())[:5000])
        self.addCleanup(os.remove, path)
        result = self.ok("list", "--json", env=self.environment())
        self.assertIn("broken.tern", result.err)
        self.assertEqual(["alpha", "na\u00efve model"],
                         [row["name"] for row in self.ours(json.loads(result.text))])

    def test_names_that_cannot_be_typed(self):
        if not command.NATIVE or sys.platform in ("win32", "darwin"):
            self.skipTest("names are UTF-8 there")
        for name in (b"bad\xff.tern", b"two\nlines.tern"):
            path = os.path.join(os.fsencode(self.named), name)
            shutil.copy(command.model(), path)
            self.addCleanup(os.remove, path)
        result = self.ok("list", "--json", env=self.environment())
        self.assertEqual(result.err.count("its name is not one line of UTF-8"), 2)
        self.assertEqual(["alpha", "na\u00efve model"],
                         [row["name"] for row in self.ours(json.loads(result.text))])

    def test_a_folder_that_is_not_utf8(self):
        if not command.NATIVE or sys.platform in ("win32", "darwin"):
            self.skipTest("names are UTF-8 there")
        folder = os.path.join(os.fsencode(scratch("folder")), b"bad\xff")
        os.makedirs(folder)
        shutil.copy(command.model(), os.path.join(folder, b"beta.tern"))
        env = self.environment(TERN_MODELS=os.fsdecode(folder))
        rows = json.loads(self.ok("list", "--json", env=env).text)
        self.assertIsNone(next(row for row in rows if row["name"] == "beta")["path"])

    def test_nothing(self):
        empty = scratch("empty")
        os.makedirs(empty)
        env = self.environment(TERN_MODELS=os.path.join(empty, "none"), XDG_DATA_HOME=empty,
                               LOCALAPPDATA=empty)
        rows = json.loads(self.ok("list", "--json", env=env).text)
        self.assertEqual(self.ours(rows), [])
        if not rows:
            result = self.ok("list", env=env)
            self.assertEqual(result.out, b"")
            self.assertIn(os.path.join(empty, "none"), result.err)


if __name__ == "__main__":
    command.main()
