# SPDX-License-Identifier: MIT
"""What the tests of tern pull share: a hub on this computer and a home for its models."""
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import DEMO, read_bytes, scratch
from hub import Hub

CURL = next((p for p in ("/usr/bin/curl", "/usr/local/bin/curl", "/opt/homebrew/bin/curl")
             if os.path.exists(p)), None)
FOLDER = "tern-tests/fairy-tales"
WEIGHTS = "model.safetensors"
PROXIES = ("http_proxy", "https_proxy", "all_proxy", "HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY")


def demo_files():
    names = sorted(os.listdir(DEMO))
    return {name: read_bytes(os.path.join(DEMO, name)) for name in names}


class Pull(command.TestCase):
    """A hub with the demo model, and a home for the models that it sends."""

    @classmethod
    def setUpClass(cls):
        cls.files = demo_files()
        cls.hub = Hub({FOLDER: dict(cls.files, **{"README.md": b"# Tales", ".gitattributes": b""})})
        cls.addClassCleanup(cls.hub.close)
        cls.expected = command.read_bytes(command.model(DEMO, "--name", "fairy-tales"))

    def setUp(self):
        self.hub.reset()
        self.hub.repositories[FOLDER].update(self.files)
        self.data = scratch("data")
        shutil.rmtree(self.data, ignore_errors=True)
        self.models = os.path.join(self.data, "tern", "models")
        self.downloads = os.path.join(self.data, "tern", "downloads")

    def environment(self, **changes):
        env = command.environment(**dict({"XDG_DATA_HOME": self.data, "HOME": self.data,
                                          "HF_ENDPOINT": self.hub.address}, **changes))
        for name in (*PROXIES, "HF_TOKEN"):
            if name not in changes:
                env.pop(name, None)
        return env

    def pull(self, *arguments, code=0, **changes):
        result = command.tern("pull", *(arguments or (FOLDER,)), env=self.environment(**changes))
        self.assertEqual(result.code, code, result.err)
        return result

    def check_model(self, name="fairy-tales"):
        self.assertEqual(read_bytes(os.path.join(self.models, name + ".tern")), self.expected)

    def failed(self, code, *arguments, **changes):
        """Pulls and fails: one line of error, no model. Returns the line."""
        result = self.pull(*arguments, code=code, **changes)
        errors = [line for line in result.err.splitlines() if line.startswith("tern: error: ")]
        self.assertEqual(len(errors), 1, result.err)
        self.assertEqual(result.out, b"")
        if os.path.isdir(self.models):
            self.assertEqual([f for f in os.listdir(self.models) if f.endswith(".tern")], [])
        return errors[0]

    def act(self, pattern, action, times=None):
        """The hub runs `action` for the first `times` requests of a path that matches the pattern.
        """
        left = [times]

        def act(handler):
            if left[0] is not None:
                left[0] -= 1
                if left[0] < 0:
                    return False
            return action(handler)
        self.hub.actions.append((pattern, act))
