#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern run --schema and --grammar: the answer fits, and errors in the file are reported."""
import datetime
import json
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch, tern

ANIMAL = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog"]},
        "name": {"type": "string", "pattern": "^[A-Z][a-z]{2,9}$"},
        "born": {"type": "string", "format": "date"},
        "legs": {"type": "integer", "minimum": 2, "maximum": 8, "multipleOf": 2},
    },
    "required": ["kind", "name", "born", "legs"], "additionalProperties": False,
}


class RunSchema(command.TestCase):
    def setUp(self):
        self.model = command.model()
        self.path = scratch("schema.json")

    def write(self, schema):
        with open(self.path, "w", encoding="utf-8") as f:
            f.write(schema if isinstance(schema, str) else json.dumps(schema))

    def test_answers_fit(self):
        self.write(ANIMAL)
        for flags in (("--greedy",), ("--seed", "3"), ("--seed", "4", "--temp", "1.8", "--top-k", "0"),
                      ("--raw", "--greedy"), ("--greedy", "--draft", "4")):
            done = self.ok("run", self.model, "-p", "Tell me about an animal.", "-n", "200",
                           "--schema", self.path, "--stats=json", *flags)
            animal = json.loads(done.out)
            self.assertEqual(list(animal), list(ANIMAL["properties"]))
            self.assertIn(animal["kind"], ("cat", "dog"))
            self.assertRegex(animal["name"], "^[A-Z][a-z]{2,9}$")
            datetime.date.fromisoformat(animal["born"])
            self.assertIn(animal["legs"], (2, 4, 6, 8))
            self.assertEqual(json.loads(done.err.splitlines()[-1])["stop"], "eos")
        threads = [self.ok("run", self.model, "-p", "Hi", "--seed", "5", "--schema", self.path,
                           "--threads", n).out for n in ("1", "2")]
        self.assertEqual(threads[0], threads[1])

    def test_a_byte_order_mark_is_skipped(self):
        self.write("\ufeff" + json.dumps({"enum": [42]}))
        done = self.ok("run", self.model, "-p", "Hi", "-n", "9", "--schema", self.path)
        self.assertEqual(json.loads(done.out), 42)

    def test_a_model_that_reasons_answers_at_once(self):
        """The template turns reasoning off, or the prompt closes what it opened."""
        self.write({"type": "boolean"})
        end = "{% for m in messages %}{{ m.role }}: {{ m.content }}\n{% endfor %}assistant: "
        closed = "<think>\n\n</think>\n\n"
        prompts = {"switch": "{% if enable_thinking is false %}" + closed + "{% endif %}",
                   "opens": "<think>\n", "closed": closed, "plain": ""}
        n_prompt = {}
        for name, text in prompts.items():
            path = scratch(f"{name}.jinja")
            with open(path, "w", encoding="utf-8") as f:
                f.write(end + text)
            for flags in ((), ("--schema", self.path)):
                done = self.ok("run", self.model, "-s", "Be brief.", "-p", "Hi \"you\"", "-n", "9",
                               "--template", path, "--stats=json", *flags)
                n_prompt[name, bool(flags)] = json.loads(done.err.splitlines()[-1])["prompt_tokens"]
            self.assertIn(json.loads(done.out), (True, False))
        self.assertEqual(n_prompt["switch", False], n_prompt["plain", False])
        self.assertEqual(n_prompt["switch", True], n_prompt["closed", False])
        self.assertGreater(n_prompt["opens", True], n_prompt["opens", False] + 1)
        self.assertEqual(n_prompt["plain", True], n_prompt["plain", False])

    def test_the_plan_counts_it(self):
        """A grammar of 60,000 states, the list of tokens, and the memory of the text."""
        self.write({"type": "string", "maxLength": 60000})
        need = {}
        for flags in ((), ("--schema", self.path)):
            done = tern("run", self.model, "-p", "Hi", "-n", "3", "--ram", "1M", *flags)
            self.assertEqual(done.code, 3, done.err)
            need[flags] = float(re.search(r"needs ([\d.]+) MiB of memory", done.err)[1])
        self.assertGreater(need["--schema", self.path], need[()] + 5)
        enough = f"{need['--schema', self.path] / 0.8:.1f}M"
        self.ok("run", self.model, "-p", "Hi", "-n", "3", "--ram", enough, "--schema", self.path)

    def test_refusals(self):
        for schema, code, words in (
                ("{", 5, ["schema.json", "line 1"]),
                ({"type": "string", "pattern": "(?=a)"}, 6, ["schema.json: #", "character 0"]),
                ({"type": "array", "items": {"type": "integer", "minimum": 2, "maximum": 1}}, 2,
                 ["#/items", "no number fits"]),
                ({"type": "string", "pattern": "(a{1000}){1000}"}, 3, ["2004000 states"])):
            self.write(schema)
            done = tern("run", self.model, "-p", "Hi", "--schema", self.path)
            self.assertEqual((done.code, done.out), (code, b""), done.err)
            for word in words:
                self.assertIn(word, done.err)
        done = tern("run", self.model, "-p", "Hi", "--schema", self.path + ".none")
        self.assertEqual(done.code, 5, done.err)
        self.assertEqual(tern("chat", self.model, "--schema", self.path).code, 2)

    def test_grammars(self):
        path = scratch("pets.gbnf")
        with open(path, "w", encoding="utf-8") as f:
            f.write('\ufeffroot ::= pet (" and " pet)? # pets\r\npet ::= "cat" | "dög"\n')
        for flags in (("--greedy",), ("--seed", "3", "--temp", "1.5"), ("--raw",), ("--draft", "4")):
            done = self.ok("run", self.model, "-p", "Hi", "-n", "30", "--grammar", path,
                           "--stats=json", *flags)
            self.assertRegex(done.out.decode(), "^(cat|dög)( and (cat|dög))?\n$")
            self.assertEqual(json.loads(done.err.splitlines()[-1])["stop"], "eos")
        self.write({"type": "null"})
        both = tern("run", self.model, "-p", "Hi", "--schema", self.path, "--grammar", path)
        self.assertEqual(both.code, 2, both.err)
        self.assertIn("one format", both.err)
        for grammar, code, words in (("root = 1", 2, "pets.gbnf: line 1, column 6"),
                                     ("root ::= root", 3, "the rule root: refers to itself"),
                                     ("root ::= <x>", 6, "tokens")):
            with open(path, "w", encoding="utf-8") as f:
                f.write(grammar)
            done = tern("run", self.model, "-p", "Hi", "--grammar", path)
            self.assertEqual((done.code, done.out), (code, b""), done.err)
            self.assertIn(words, done.err)


if __name__ == "__main__":
    command.main()
