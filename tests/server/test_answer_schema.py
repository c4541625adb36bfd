#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Structured output: response_format of OpenAI, format of Ollama."""
import datetime
import json
import os
import statistics
import sys
import threading
import time

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving

CHAT = "/v1/chat/completions"
TEXT = "/v1/completions"
ASK = [{"role": "user", "content": "Tell me about an animal."}]

# Every answer under this schema ends.
ANIMAL = {
    "type": "object",
    "properties": {
        "kind": {"enum": ["cat", "dog", "bird"]},
        "legs": {"type": "integer"},
        "tame": {"type": ["boolean", "null"]},
        "parts": {"type": "array", "items": {"$ref": "#/$defs/part"}, "minItems": 1, "maxItems": 2},
    },
    "required": ["kind", "legs", "tame", "parts"],
    "additionalProperties": False,
    "$defs": {"part": {"anyOf": [{"const": "tail"}, {
        "type": "object", "properties": {"size": {"type": "number"}}, "required": ["size"],
        "additionalProperties": False}]}},
}


def response_format(schema, strict=True):
    return {"type": "json_schema",
            "json_schema": {"name": "animal", "schema": schema, "strict": strict}}


class AnswerSchema(serving.TestCase):
    def chat(self, form, **more):
        body = dict({"messages": ASK, "max_tokens": 200, "response_format": form}, **more)
        return self.post(CHAT, body)["choices"][0]

    def check_animal(self, text):
        value = json.loads(text)
        self.assertEqual(list(value), ["kind", "legs", "tame", "parts"])
        self.assertIn(value["kind"], ("cat", "dog", "bird"))
        self.assertIs(type(value["legs"]), int)
        self.assertIn(value["tame"], (True, False, None))
        self.assertIn(len(value["parts"]), (1, 2))
        for part in value["parts"]:
            self.assertTrue(part == "tail" or list(part) == ["size"], part)

    def test_json_schema(self):
        for more in ({"temperature": 0}, {"seed": 1}, {"seed": 2, "temperature": 1.5, "top_k": 0,
                                                       "top_p": 1}):
            choice = self.chat(response_format(ANIMAL), **more)
            self.assertEqual(choice["finish_reason"], "stop")
            self.check_animal(choice["message"]["content"])
            listed = self.chat(response_format(ANIMAL), logprobs=True, top_logprobs=2, **more)
            self.assertEqual(listed["message"], choice["message"])
            for entry in listed["logprobs"]["content"]:
                self.assertLessEqual(entry["logprob"], 0)
                self.assertEqual(len(entry["top_logprobs"]), 2)
            self.assertEqual("".join(e["token"] for e in listed["logprobs"]["content"]),
                             choice["message"]["content"])

    def test_large_numbers_elsewhere(self):
        """A whole number beyond 64 bits does not affect other numbers of a body."""
        schema = dict(ANIMAL, properties=dict(ANIMAL["properties"], legs={"enum": [2, 4]}))
        choices = [self.chat(response_format(schema), temperature=0, **more)
                   for more in ({}, {"unknown": 2 ** 64})]
        self.check_animal(choices[1]["message"]["content"])
        self.assertEqual(choices[1], choices[0])

    def test_limits(self):
        limits = {"code": {"type": "string", "pattern": r"^[A-Z]{2}-\d{3,5}$"},
                  "born": {"type": "string", "format": "date-time"},
                  "name": {"type": "string", "minLength": 2, "maxLength": 9},
                  "age": {"type": "integer", "minimum": 18, "maximum": 99},
                  "price": {"type": "number", "exclusiveMinimum": 0, "maximum": 20,
                            "multipleOf": 0.25}}
        schema = {"type": "object", "properties": limits, "required": list(limits),
                  "additionalProperties": False}
        for more in ({"temperature": 0}, {"seed": 1}, {"seed": 2, "temperature": 1.5, "top_k": 0}):
            choice = self.chat(response_format(schema), **more)
            self.assertEqual(choice["finish_reason"], "stop")
            value = json.loads(choice["message"]["content"])
            self.assertRegex(value["code"], r"^[A-Z]{2}-\d{3,5}$")
            self.assertTrue(datetime.date.fromisoformat(value["born"][:10]))
            self.assertIn(len(value["name"]), range(2, 10))
            self.assertIn(value["age"], range(18, 100))
            self.assertTrue(0 < value["price"] <= 20 and value["price"] % 0.25 == 0, value)

    def test_stream_and_choices(self):
        events = self.server.events(CHAT, {
            "messages": ASK, "max_tokens": 200, "seed": 3, "n": 2,
            "response_format": response_format(ANIMAL)})
        for i in range(2):
            self.check_animal(serving.choice_text(events, i))
            self.assertEqual(serving.choice_parts(events, i)[-1]["finish_reason"], "stop")

    def test_formats_of_llama(self):
        """llama.cpp's server takes a schema in two more members of chat completions."""
        bad = {"type": "nothing"}
        for name, form in (("json_schema", lambda schema: {"json_schema": schema}),
                           ("response_format.schema", lambda schema: {"response_format": {
                               "type": "json_object", "schema": schema}})):
            body = {"messages": ASK, "max_tokens": 200}
            answer = self.post(CHAT, dict(body, **form(ANIMAL)))
            self.check_animal(answer["choices"][0]["message"]["content"])
            for schema in (bad, "x"):
                error = self.post(CHAT, dict(body, **form(schema)), 400)["error"]
                self.assertEqual(error["param"], name)

    def test_formats_of_vllm(self):
        body = {"messages": ASK, "max_tokens": 200}
        for name, form in (("guided_json", lambda schema: {"guided_json": schema}),
                           ("structured_outputs.json",
                            lambda schema: {"structured_outputs": {"json": schema, "regex": None}})):
            answer = self.post(CHAT, dict(body, **form(ANIMAL)))
            self.check_animal(answer["choices"][0]["message"]["content"])
            for schema in ({"type": "nothing"}, "x"):
                error = self.post(CHAT, dict(body, **form(schema)), 400)["error"]
                self.assertEqual(error["param"], name)
        answer = self.post(CHAT, dict(body, structured_outputs={"json_object": True}))
        self.assertTrue(answer["choices"][0]["message"]["content"].lstrip().startswith("{"))
        for wrong in ({}, "json", {"json_object": False}, {"structural_tag": "{}"}):
            error = self.post(CHAT, dict(body, structured_outputs=wrong), 400)["error"]
            self.assertEqual(error["param"], "structured_outputs")
            self.assertIn('"json"', error["message"])
        none = dict(body, guided_json=None, structured_outputs=None, max_tokens=9, seed=1)
        plain = dict(body, max_tokens=9, seed=1)
        self.assertEqual(self.post(CHAT, none)["choices"], self.post(CHAT, plain)["choices"])

    def test_texts(self):
        """Grammars of llama.cpp, and vLLM's grammars, expressions and choices."""
        pet = 'root ::= pet (", " pet){1,2}\npet ::= "cat" | "dog"'
        pets = "(cat|dog)(, (cat|dog)){1,2}"
        for more, pattern in (
                ({"grammar": pet}, pets), ({"guided_grammar": pet}, pets),
                ({"structured_outputs": {"grammar": pet}}, pets),
                ({"guided_regex": "[A-Z][a-z]{2,9}!"}, "[A-Z][a-z]{2,9}!"),
                ({"structured_outputs": {"regex": "\\d{3}-\\d{4}"}}, r"\d{3}-\d{4}"),
                ({"guided_choice": ['a "b"\\', "cat"]}, r'(a "b"\\|cat)'),
                ({"structured_outputs": {"choice": ["é\n", "dog"]}}, "(é\n|dog)")):
            for sampling in ({"temperature": 0}, {"seed": 3, "temperature": 1.5}):
                body = dict({"messages": ASK, "max_tokens": 60}, **more, **sampling)
                choice = self.post(CHAT, body)["choices"][0]
                self.assertEqual(choice["finish_reason"], "stop", more)
                self.assertRegex(choice["message"]["content"], f"^{pattern}$")
        events = self.server.events(CHAT, {"messages": ASK, "stream": True, "grammar": pet})
        self.assertRegex(serving.choice_text(events), f"^{pets}$")

    def test_continued_texts(self):
        """Formats of /v1/completions are those of chat completions."""
        pet = 'root ::= "cat" | "dog"'
        ask = {"prompt": "The animal is a ", "max_tokens": 200}
        for more in ({"response_format": response_format(ANIMAL)}, {"json_schema": ANIMAL},
                     {"guided_json": ANIMAL}, {"structured_outputs": {"json": ANIMAL}}):
            self.check_animal(self.post(TEXT, dict(ask, **more))["choices"][0]["text"])
        for more in ({"grammar": pet}, {"guided_grammar": pet}, {"guided_regex": "cat|dog"},
                     {"guided_choice": ["cat", "dog"]}, {"structured_outputs": {"grammar": pet}}):
            choice = self.post(TEXT, dict(ask, **more))["choices"][0]
            self.assertIn(choice["text"], ("cat", "dog"))
            self.assertEqual(choice["finish_reason"], "stop")
        echoed = self.post(TEXT, dict(ask, grammar=pet, echo=True, n=2))["choices"]
        for choice in echoed:
            self.assertIn(choice["text"], (ask["prompt"] + "cat", ask["prompt"] + "dog"))
        events = self.server.events(TEXT, dict(ask, grammar=pet, stream=True))
        self.assertIn("".join(e["choices"][0]["text"] for e in events[:-1] if e["choices"]),
                      ("cat", "dog"))
        error = self.post(TEXT, dict(ask, grammar="root ::= x"), 400)["error"]
        self.assertEqual(error["param"], "grammar")
        error = self.post(TEXT, dict(ask, format="json"), 400)["error"]
        self.assertIn("completions have", error["message"])

    def test_refused_texts(self):
        for more, param, word in (
                ({"grammar": "root ::= x"}, "grammar", "line 1, column 10: this rule is not"),
                ({"grammar": 5}, "grammar", "must be a string"),
                ({"guided_regex": "a\\b"}, "guided_regex", "word boundary at character 1"),
                ({"guided_choice": []}, "guided_choice", "not empty"),
                ({"guided_choice": ["a", 5]}, "guided_choice", "entry 1"),
                ({"structured_outputs": {"grammar": "root = 1"}}, "structured_outputs.grammar",
                 "::= is missing"),
                ({"structured_outputs": {"json": ANIMAL, "regex": "a*"}},
                 "structured_outputs.regex", "one format"),
                ({"grammar": 'root ::= "a"', "response_format": response_format(ANIMAL)},
                 "response_format.json_schema.schema", "one format"),
                ({"grammar": 'root ::= "a"', "guided_choice": ["a"]}, "guided_choice",
                 "one format")):
            error = self.post(CHAT, dict({"messages": ASK, "max_tokens": 9}, **more), 400)["error"]
            self.assertEqual(error["param"], param, error)
            self.assertIn(word, error["message"])
        empty = {"messages": ASK, "max_tokens": 9, "seed": 1}
        self.assertEqual(self.post(CHAT, dict(empty, grammar="", guided_regex=""))["choices"],
                         self.post(CHAT, empty)["choices"])

    def test_json_object(self):
        for seed in range(6):
            choice = self.chat({"type": "json_object"}, seed=seed, temperature=1.5)
            self.assertTrue(choice["message"]["content"].lstrip().startswith("{"))
            if choice["finish_reason"] == "stop":
                self.assertIs(type(json.loads(choice["message"]["content"])), dict)
        cut = self.chat({"type": "json_object"}, max_tokens=1)
        self.assertEqual(cut["finish_reason"], "length")

    def test_text_is_free(self):
        free = self.post(CHAT, {"messages": ASK, "max_tokens": 9, "seed": 1})["choices"]
        self.assertEqual(self.chat({"type": "text"}, max_tokens=9, seed=1), free[0])

    def test_neighbours_change_nothing(self):
        asks = [dict(messages=ASK, max_tokens=120, seed=i,
                     **({"response_format": response_format(ANIMAL)} if i % 2 else {}))
                for i in range(6)]
        alone = [self.post(CHAT, ask)["choices"] for ask in asks]
        beside = serving.together(lambda ask: self.post(CHAT, ask)["choices"], asks)
        self.assertEqual(beside, alone)

    def test_refusals_name_the_path(self):
        def nested(inner):
            return {"type": "object", "properties": {"a": {"type": "array", "items": inner}},
                    "required": ["a"], "additionalProperties": False}

        at = "response_format.json_schema.schema"
        items = at + "#/properties/a/items"
        cases = [
            (response_format(nested({"type": "string", "pattern": "a\\b"})), items),
            (response_format(nested({"type": "string", "minLength": -1})), items),
            (response_format(nested({"allOf": []})), items),
            (response_format({"type": "object", "properties": {}}), at),
            (response_format({"$ref": "#/$defs/none"}), at),
            (response_format({"type": "object", "properties": {"a": {"$ref": "#"}},
                              "required": ["a"], "additionalProperties": False}), at),
            (response_format({"type": "nothing"}), at),
            ({"type": "json_schema"}, "response_format.json_schema"),
            ({"type": "json_schema", "json_schema": {"schema": 5}}, "response_format.json_schema"),
            ({"type": "json_schema", "json_schema": {"schema": {}, "strict": 5}}, "strict"),
            ({"type": "grammar"}, "response_format"),
            ("json", "response_format"),
        ]
        for form, param in cases:
            with self.subTest(form=form):
                error = self.post(CHAT, {"messages": ASK, "response_format": form}, 400)["error"]
                self.assertEqual(error["param"], param)
                self.assertEqual(error["type"], "invalid_request_error")
                self.assertIn(param.split("#")[-1], error["message"])
        loose = self.chat(response_format({"type": "object", "properties": {
            "a": {"const": 1}}}, strict=False), temperature=0)
        self.assertIn(loose["message"]["content"].replace(" ", "").replace("\n", ""),
                      ("{}", '{"a":1}'))

    def test_hostile_schemas(self):
        wide = {"enum": [f"{i} " * 400 for i in range(200)]}
        deep = {"$ref": "#/$defs/0", "$defs": {
            str(i): {"type": "array", "items": {"$ref": f"#/$defs/{i + 1}"}, "minItems": 1}
            for i in range(70)}}
        deep["$defs"]["70"] = {"type": "null"}
        for schema in (wide, deep):
            error = self.post(CHAT, {"messages": ASK, "response_format": response_format(schema)},
                              400)["error"]
            self.assertEqual(error["type"], "invalid_request_error")
        large = {"anyOf": [{"const": f"value {i}"} for i in range(40000)]}
        error = self.post(CHAT, {"messages": ASK, "response_format": response_format(large)},
                          413)["error"]
        self.assertRegex(error["message"], r"takes \d+ KiB of memory")
        doubling = {"$ref": "#/$defs/0", "$defs": {
            str(i): {"type": "array", "maxItems": 2, "items": {"$ref": f"#/$defs/{i + 1}"}}
            for i in range(50)}}
        doubling["$defs"]["50"] = {"type": "null"}
        choice = self.chat(response_format(doubling), max_tokens=20)
        self.assertTrue(choice["message"]["content"].lstrip().startswith("["))

    def test_schemas_delay_no_other_request(self):
        slow = {"type": "string", "pattern": "^(?:(?:a?){20}b?){60}$"}
        body = {"messages": ASK, "response_format": response_format(slow)}
        self.assertIn("steps", self.post(CHAT, body, 400)["error"]["message"])
        n, n_done = 4, []
        for _ in range(5):
            threads = [threading.Thread(target=self.post, args=(CHAT, body, 400))
                       for _ in range(n)]
            for thread in threads:
                thread.start()
            time.sleep(0.02)
            self.assertEqual(self.server.get("/health")[0], 200)
            n_done.append(sum(not thread.is_alive() for thread in threads))
            for thread in threads:
                thread.join()
        print(f"of {n} slow schemas, refused before /health was answered: {n_done}")
        self.assertLessEqual(statistics.median(n_done), 1)

    def test_ollama(self):
        options = {"num_predict": 200, "seed": 1}
        for path, ask, read in (
                ("/api/chat", {"messages": ASK}, lambda a: a["message"]["content"]),
                ("/api/generate", {"prompt": "An animal."}, lambda a: a["response"])):
            body = dict({"model": "model0", "stream": False, "options": options}, **ask)
            answer = self.post(path, dict(body, format=ANIMAL))
            self.check_animal(read(answer))
            self.assertEqual(answer["done_reason"], "stop")
            self.assertTrue(read(self.post(path, dict(body, format="json"))).lstrip()
                            .startswith("{"))
            free = read(self.post(path, body))
            self.assertEqual(read(self.post(path, dict(body, format=""))), free)
            error = self.post(path, dict(body, format={"type": "array", "items": {"not": {}}}), 400)
            self.assertIn("#/items", error["error"])


if __name__ == "__main__":
    command.main()
