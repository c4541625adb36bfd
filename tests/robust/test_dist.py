#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Bad input to the release scripts: the error is named, and nothing is built or installed. And a
single meaning of "release": the same flags with the preset, without one, and in archives."""
import hashlib
import json
import os
import shutil
import subprocess
import sys
import tarfile

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch

DIST = os.path.join(command.ROOT, "dist")
TOOLS = ("sh", "dirname", "sed", "grep", "cut", "sha256sum", "mkdir", "cat", "mv", "rm", "cp", "uname",
         "mktemp", "tail", "tar")


def pinned(name):
    """The archives that sources.txt pins for that library, the preferred one first."""
    with open(os.path.join(DIST, "sources.txt"), encoding="utf-8") as f:
        return [line.split()[3] for line in f if line.startswith(name + " ")]


def folder(name):
    path = scratch(name)
    os.makedirs(path, exist_ok=True)
    return path


def machine(name, **programs):
    """A PATH with a few tools of this machine, and `programs`, which are shell scripts."""
    path = folder(name)
    for tool in TOOLS:
        found = shutil.which(tool)
        if found and not os.path.exists(os.path.join(path, tool)):
            os.symlink(found, os.path.join(path, tool))
    for program, text in programs.items():
        script = os.path.join(path, program.replace("_", "-"))
        with open(script, "w", encoding="utf-8") as f:
            f.write("#!/bin/sh\n" + text + "\n")
        os.chmod(script, 0o755)
    return path


class Scripts(command.TestCase):
    def check(self, *arguments, **changes):
        """Runs a script that must fail. Returns its output."""
        env = command.environment(**dict({"TERN_BUILD_CACHE": folder("cache")}, **changes))
        done = subprocess.run(arguments, capture_output=True, env=env, timeout=60,
                              stdin=subprocess.DEVNULL)
        self.assertEqual(done.returncode, 1, done.stderr)
        self.assertEqual(done.stdout, b"")
        return done.stderr.decode()

    def build_deps(self, *arguments):
        return self.check(os.path.join(DIST, "build-deps.sh"), *arguments)

    def test_an_archive_with_the_wrong_checksum(self):
        sources = folder("wrong")
        name = pinned("hwloc")[0]
        with open(os.path.join(sources, name), "wb") as f:
            f.write(b"something else")
        text = self.build_deps("--sources", sources, "linux-x86_64")
        self.assertIn(name, text)
        self.assertIn("archive refused", text)
        self.assertFalse(os.path.exists(os.path.join(folder("cache"), "prefix")))
        self.assertEqual(os.listdir(os.path.join(folder("cache"), "sources")), [])

    def test_archives_that_are_missing(self):
        text = self.build_deps("--sources", folder("empty"), "linux-x86_64")
        self.assertIn("no archive of hwloc", text)
        self.assertIn("--sources", text)

    def test_a_library_that_does_not_build(self):
        """Later steps succeed, but nothing is kept that the next run would find up to date."""
        scripts, sources = scratch("scripts"), folder("broken-sources")
        shutil.copytree(DIST, scripts, ignore=shutil.ignore_patterns("demo", "*.png"))
        for name in ("COPYING", "LICENSE", "LICENSE.md", "xxhash.h"):
            with open(os.path.join(sources, name), "wb"):
                pass
        lines = []
        for library in ("hwloc", "utf8proc", "jansson", "xxhash", "cmocka"):
            archive = os.path.join(sources, library + ".tar")
            with tarfile.open(archive, "w") as tar:
                for name in ("COPYING", "LICENSE", "LICENSE.md", "xxhash.h"):
                    tar.add(os.path.join(sources, name), f"{library}-1/{name}")
            digest = hashlib.sha256(command.read_bytes(archive)).hexdigest()
            lines.append(f"{library} 1 sid {library}.tar {digest}\n")
        with open(os.path.join(scripts, "sources.txt"), "w", encoding="utf-8") as f:
            f.writelines(lines)
        path = machine("broken", gcc="exit 1")
        text = self.check(os.path.join(path, "sh"), os.path.join(scripts, "build-deps.sh"),
                          "--sources", sources, "linux-x86_64", PATH=path,
                          TERN_BUILD_CACHE=folder("broken-cache"))
        self.assertIn("hwloc for linux-x86_64 did not build", text)
        self.assertFalse(os.path.exists(os.path.join(folder("broken-cache"), "prefix")))

    def test_a_folder_that_holds_something_else(self):
        mine = os.path.join(folder("mine"), "thesis.txt")
        with open(mine, "wb"):
            pass
        text = self.check(os.path.join(DIST, "build-release.sh"), "--out", folder("mine"), "deb")
        self.assertIn("--out", text)
        self.assertTrue(os.path.exists(mine))

    def test_targets_and_options_that_do_not_exist(self):
        for script in ("build-deps.sh", "build-release.sh"):
            self.assertIn("--sauces", self.check(os.path.join(DIST, script), "--sauces", "x"))
        text = self.check(os.path.join(DIST, "build-release.sh"), "--out", scratch("out"), "amiga")
        self.assertIn("unknown target amiga", text)
        self.assertIn("linux-aarch64", text)
        self.assertFalse(os.path.exists(scratch("out")))

    def tools(self, target, path):
        steps = f"here='{DIST}'; . '{DIST}/lib.sh'; . '{DIST}/targets.sh'; need_target_tools {target}"
        return self.check(os.path.join(path, "sh"), "-c", steps, PATH=path)

    def test_a_missing_compiler_where_there_is_no_apt(self):
        path = machine("no-apt")
        for target, package, compiler in (
                ("linux-aarch64", "gcc-aarch64-linux-gnu", "aarch64-linux-gnu-gcc"),
                ("windows-x86_64", "gcc-mingw-w64-x86-64-win32", "x86_64-w64-mingw32-gcc-win32")):
            text = self.tools(target, path)
            self.assertIn(package, text)
            self.assertIn(f"no compiler for {target}: {compiler} was not found", text)

    def test_a_package_that_apt_does_not_have(self):
        path = machine("bad-apt", dpkg_query="exit 1", id="echo 0", env='shift; exec "$@"',
                       apt_get='[ "$1" = update ] || { echo "no such package" >&2; exit 100; }')
        text = self.tools("windows-x86_64", path)
        self.assertIn("apt could not install: ", text)
        self.assertIn("gcc", text)


class Flags(command.TestCase):
    def flags(self, name, *arguments):
        """The options with which src/kern/kern.c is compiled, without file names."""
        build = folder(name)
        subprocess.run(["cmake", "-S", command.ROOT, "-B", build, "-G", "Ninja",
                        "-DTERN_TESTS=OFF", "-DTERN_BENCH=OFF", *arguments],
                       check=True, capture_output=True, timeout=command.TIMEOUT)
        with open(os.path.join(build, "compile_commands.json"), encoding="utf-8") as f:
            line, = [c["command"] for c in json.load(f)
                     if c["file"].endswith("src/kern/kern.c")]
        words = line.split()
        return [w for w in words[1:words.index("-o")] if not w.startswith("-I")]

    def test_a_build_without_preset_is_the_release(self):
        plain = self.flags("plain")
        self.assertIn("-O2", plain)
        self.assertNotIn("-DNDEBUG", plain)
        self.assertEqual(plain, self.flags("preset", "--preset", "release"))
        shipped = self.flags("shipped", "-DCMAKE_BUILD_TYPE=Release")
        self.assertEqual(shipped, [w for w in plain if w != "-g1"])


if __name__ == "__main__":
    command.main()
