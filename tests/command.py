# SPDX-License-Identifier: MIT
"""Runs the tern command in tests (standard library only).

  TERN          path of the command
  TERN_RUNNER   wrapper: "", "wine", "qemu-aarch64 -L /usr/aarch64-linux-gnu"
  TERN_SHARED   reference data; tests that need it are skipped without it, and fail if CI=true"""
import array
import importlib.util
import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
import time
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.abspath(__file__)))
DEMO = os.path.join(ROOT, "dist", "demo")
TERN = os.environ.get("TERN", os.path.join(ROOT, "build", "release", "tern"))
RUNNER = shlex.split(os.environ.get("TERN_RUNNER", ""))
SHARED = os.environ.get("TERN_SHARED", os.path.join(ROOT, "..", "shared"))
NATIVE = not RUNNER
IS_WINE = os.name == "posix" and bool(RUNNER) and "wine" in os.path.basename(RUNNER[0])
CHATTER = re.compile(r"[0-9]{4}|.*:(fixme|err):|qemu-[a-z0-9_-]+: warning: TCG doesn't")
# Kernel levels to try; a processor may lack some. TERN_TEST_LEVELS names others. Sanitizers are
# slow: tests/kern runs every kernel under them, so two levels suffice for the code around the
# kernels.
LEVELS = (os.environ["TERN_TEST_LEVELS"].split() if os.environ.get("TERN_TEST_LEVELS") else
          ["ref", "avx2", "neon"] if os.environ.get("TERN_SANITIZE") else
          ["ref", "ssse3", "avx2", "avxvnni", "avx512", "amx", "neon", "dotprod", "i8mm"])
# TERN_CI_FULL=1 runs long forms of tests. In the short run sanitizers leave out combinations whose
# parts they run in others.
IS_FULL = os.environ.get("TERN_CI_FULL") == "1"
IS_THINNED = bool(os.environ.get("TERN_SANITIZE")) and not IS_FULL
TIMEOUT = float(os.environ.get("TERN_TEST_TIMEOUT", "300"))

_folder = tempfile.TemporaryDirectory(prefix="tern-test-")


def scratch(name):
    """A path in a folder that is removed with the process."""
    return os.path.join(_folder.name, name)


def _free_user_folders():
    """Wine sets the variables of the user's folders itself, whatever the caller's environment says.
    Without its own values it passes those of the caller on, as Windows does."""
    for name in ("LOCALAPPDATA", "USERPROFILE"):
        subprocess.run([*RUNNER, "reg", "delete", r"HKCU\Volatile Environment", "/v", name, "/f"],
                       check=False, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL,
                       stderr=subprocess.DEVNULL)
        os.environ[name] = scratch("user")


def own_path(path):
    """A path that the command printed, as this process writes it: Z:\\tmp is /tmp for wine."""
    return path[2:].replace("\\", "/") if IS_WINE and path.startswith("Z:") else path


def need_package(name):
    """Restarts the script with the first Python that has a package, from PATH or the system's.
    Without one the test is skipped (exit code 77); with CI=true it fails."""
    if importlib.util.find_spec(name):
        return
    folders = [] if os.environ.get("TERN_ANOTHER_PYTHON") else (
        os.environ.get("PATH", "").split(os.pathsep) + ["/usr/bin"])
    for other in dict.fromkeys(os.path.join(folder, "python3") for folder in folders):
        if shutil.which(other) and subprocess.run([other, "-c", f"import {name}"], check=False,
                                                  stderr=subprocess.DEVNULL).returncode == 0:
            sys.stdout.flush()
            os.environ["TERN_ANOTHER_PYTHON"] = other
            os.execv(other, [other, "-B", *sys.argv])
    print(f"skipped: there is no {name} (Debian: python3-{name})")
    sys.exit(1 if os.environ.get("CI") == "true" else 77)


if IS_WINE:
    _free_user_folders()


def environment(**changes):
    env = dict(os.environ, **changes)
    if "TERN_MODEL" not in changes:
        env.pop("TERN_MODEL", None)
    return env


def argv(*args):
    return RUNNER + [TERN] + [os.fspath(a) if not isinstance(a, bytes) else a for a in args]


class Result:
    def __init__(self, done):
        self.code = done.returncode
        self.out = done.stdout
        self.err = done.stderr.decode("utf-8") if done.stderr is not None else ""
        if RUNNER:  # the emulator's messages
            self.err = "".join(line for line in self.err.splitlines(True)
                               if not CHATTER.match(line))

    @property
    def text(self):
        return self.out.decode("utf-8")


def tern(*args, stdin=b"", env=None, cwd=None, timeout=TIMEOUT):
    """Runs the command to its end. Standard input is bytes, or a file object."""
    keywords = {"input": stdin} if isinstance(stdin, bytes) else {"stdin": stdin}
    done = subprocess.run(argv(*args), stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                          env=env or environment(), cwd=cwd, timeout=timeout, **keywords)
    return Result(done)


def wait_for(true, otherwise, seconds=TIMEOUT):
    """Waits until true() returns a true value, and returns it; fails with the text `otherwise`."""
    end = time.monotonic() + seconds
    while not (value := true()):
        assert time.monotonic() < end, otherwise
        time.sleep(0.02)
    return value


def wait_for_handler(process, number):
    """Waits until the child handles the signal (Linux; elsewhere returns at once)."""
    end = time.monotonic() + TIMEOUT
    while os.path.exists(path := f"/proc/{process.pid}/status"):
        with open(path, encoding="ascii", errors="replace") as f:
            caught = re.search(r"^SigCgt:\s*([0-9a-f]+)", f.read(), re.MULTILINE)
        if caught and int(caught.group(1), 16) >> (number - 1) & 1:
            return
        assert process.poll() is None and time.monotonic() < end, "no handler"
        time.sleep(0.01)


def shared(*parts):
    path = os.path.join(SHARED, *parts)
    if not os.path.exists(path):
        if os.environ.get("CI") == "true":
            raise AssertionError(f"{path} is missing")
        raise unittest.SkipTest(f"{path} is missing")
    return path


_models = {}


def model(source=DEMO, *flags):
    """The converted model of a folder, made once per process."""
    key = (source, flags)
    if key not in _models:
        path = scratch(f"model{len(_models)}.tern")
        result = tern("convert", source, "-o", path, *flags)
        assert result.code == 0, result.err
        _models[key] = path
    return _models[key]


_levels = []


def levels(path):
    """Kernel levels that this machine supports, tried with the first model."""
    if not _levels:
        out = scratch("level.f32")
        _levels.extend(level for level in LEVELS if tern("logits", path, "--ids", "1", "-o", out,
                                                         "--cpu", level).code == 0)
        assert _levels, "no kernel level runs"
    return _levels


def read_json(path):
    with open(path, encoding="utf-8") as f:
        return json.load(f)


def read_bytes(path):
    with open(path, "rb") as f:
        return f.read()


def floats(data):
    values = array.array("f", data)
    if sys.byteorder != "little":
        values.byteswap()
    return values


class TestCase(unittest.TestCase):
    """Checks shared by many tests."""

    def ok(self, *args, **keywords):
        """Runs and expects success. Returns the result."""
        result = tern(*args, **keywords)
        self.assertEqual(result.code, 0, f"{args}: {result.err}")
        return result

    def refused(self, code, *args, **keywords):
        """Runs and expects the exit code, nothing on standard output and one line of error."""
        result = tern(*args, **keywords)
        self.assertEqual(result.code, code, f"{args}: {result.err} {result.out!r:.200}")
        self.assertEqual(result.out, b"")
        # On a slow machine progress precedes the error.
        lines = [l for l in result.err.splitlines() if not l.startswith("converting: ")]
        self.assertEqual(len(lines), 1, f"{args}: {result.err}")
        self.assertTrue(lines[0].startswith("tern: error: "), result.err)
        self.assertNotIn("\x1b", result.err)
        return result.err


def main():
    """Runs the program's tests; lists skipped ones with their reason on standard output."""
    result = unittest.main(verbosity=1, exit=False).result
    for test, reason in result.skipped:
        print(f"skipped: {test.id().removeprefix('__main__.')}: {reason}")
    sys.exit(not result.wasSuccessful())
