#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every chat template of templates/ and of the reference data, with every conversation of
conversations.json: tern gives the same bytes or the same refusal as Jinja2."""
import collections
import glob
import os
import tempfile
import time

import jinja_oracle as oracle
from jinja_oracle import command

HERE = os.path.dirname(os.path.abspath(__file__))
REFERENCE = os.path.join(command.SHARED, "reference", "tokenizers", "templates")


def conversations():
    return command.read_json(os.path.join(HERE, "conversations.json"))


def own_templates():
    """Name -> source, byte for byte."""
    found = {}
    for path in sorted(glob.glob(os.path.join(HERE, "templates", "*.jinja"))):
        found[os.path.basename(path)] = command.read_bytes(path).decode("utf-8")
    return found


def reference_templates():
    found = {}
    for path in sorted(glob.glob(os.path.join(REFERENCE, "*.json"))):
        found["reference/" + os.path.basename(path)] = command.read_json(path)["template"]
    return found


class Templates(command.TestCase):
    def compare(self, templates):
        requests = conversations()
        self.assertGreaterEqual(len(requests), 24)
        cases = [(source, request) for source in templates.values() for request in requests]
        begin = time.monotonic()
        with tempfile.TemporaryDirectory() as folder:
            answers = iter(oracle.run_tern(cases, folder))
        seconds = time.monotonic() - begin
        kinds = collections.Counter()
        for name, source in templates.items():
            template = oracle.compiled(source)
            self.assertNotIsInstance(template, oracle.Answer, f"{name}: {template}")
            rendered = 0
            for request in requests:
                expected = oracle.rendered(template, request)
                kinds[expected.kind] += 1
                rendered += expected.kind == "text"
                with self.subTest(template=name, conversation=request["name"]):
                    self.assertIsNone(oracle.differs(expected, next(answers)))
            # A template that refuses everything would test nothing; one of them needs documents.
            self.assertGreaterEqual(rendered, 3, name)
        print(f"{len(templates)} templates x {len(requests)} conversations ({seconds:.1f} s): "
              + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))

    def test_published_forms(self):
        templates = own_templates()
        self.assertGreaterEqual(len(templates), 45)
        self.compare(templates)

    def test_reference_templates(self):
        templates = reference_templates()
        if not templates and os.environ.get("CI") != "true":
            self.skipTest("there is no reference data in ../shared")
        self.assertGreaterEqual(len(templates), 14)
        self.compare(templates)

    def test_every_template_is_described(self):
        with open(os.path.join(HERE, "templates", "README.md"), encoding="utf-8") as f:
            rows = [line.split("|")[1].strip() for line in f if line.startswith("| `")]
        self.assertEqual(sorted(r.strip("`") + ".jinja" for r in rows), sorted(own_templates()))

    def test_a_difference_is_detected(self):
        """Tests the comparison: other bytes, another message, text instead of a refusal."""
        text = oracle.Answer("text", "a")
        self.assertIsNone(oracle.differs(text, {"status": 0, "text": "a"}))
        self.assertIn("Jinja2 gives", oracle.differs(text, {"status": 0, "text": "a\n"}))
        self.assertIn("Jinja2 gives", oracle.differs(text, {"status": 6, "detail": "a"}))
        raised = oracle.Answer("raised", "no\n" + "x" * 300)
        for detail, same in (("no?" + "x" * 300, True), ("no?x...x", True), ("no?x...y", False),
                             ("yes", False), ("...no", False)):
            answer = {"status": 2, "detail": "chat template, line 3: " + detail}
            self.assertEqual(oracle.differs(raised, answer) is None, same, detail)
        self.assertIn("tern gives", oracle.differs(oracle.Answer("raised", "a"),
                                                   {"status": 2, "detail": "chat template, line 1: b"}))
        undefined = oracle.Answer("UndefinedError", "x")
        self.assertIsNone(oracle.differs(undefined, {"status": 2, "detail": "y"}))
        self.assertIn("Jinja2", oracle.differs(undefined, {"status": 0, "text": ""}))
        self.assertIn("Jinja2", oracle.differs(undefined, {"status": 3, "detail": "memory"}))


if __name__ == "__main__":
    command.main()
