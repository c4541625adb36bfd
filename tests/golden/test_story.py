#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Complete answers of the demo model: the same text on every machine, pinned in stories.json. The
argument --write rewrites the file."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command

STORIES = os.path.join(os.path.dirname(os.path.abspath(__file__)), "stories.json")
CASES = [
    ["--raw", "-p", "Once upon a time", "-n", "80", "--seed", "1"],
    ["--raw", "-p", "The king had three daughters", "-n", "64", "--greedy"],
    ["-p", "Tell me a story about a fox.", "--seed", "2"],
    ["-p", "Tell me a story about a witch.", "--seed", "3", "--temp", "1", "--top-k", "0",
     "--top-p", "1", "-n", "64"],
    ["-p", "Who are you?", "--greedy", "--kv", "q8"],
    ["--raw", "-p", "Es war einmal", "-n", "48", "--seed", "18446744073709551615",
     "--min-p", "0.05", "--repeat-penalty", "1.3", "--frequency-penalty", "0.5", "--kv", "f32"],
]


class Story(command.TestCase):
    def test_stories_are_pinned(self):
        with open(STORIES, encoding="utf-8") as f:
            stories = json.load(f)
        self.assertEqual([s["arguments"] for s in stories], CASES)
        for story in stories:
            with self.subTest(arguments=story["arguments"]):
                result = self.ok("run", command.model(), *story["arguments"])
                self.assertEqual(result.text, story["text"])

    def test_chat_stops_by_itself(self):
        for seed in range(8 if command.NATIVE else 2):
            with self.subTest(seed=seed):
                result = self.ok("run", command.model(), "-p", "Tell me a story about a king.",
                                 "-n", "900", "--caps", "off", "--seed", str(seed), "--stats=json")
                stats = json.loads(result.err)
                self.assertEqual(stats["stop"], "eos")
                self.assertLess(stats["new_tokens"], 900)


def write():
    stories = []
    for arguments in CASES:
        result = command.tern("run", command.model(), *arguments)
        assert result.code == 0, result.err
        stories.append({"arguments": arguments, "text": result.text})
    with open(STORIES, "w", encoding="utf-8") as f:
        json.dump(stories, f, indent=1)
        f.write("\n")


if __name__ == "__main__":
    if sys.argv[1:] == ["--write"]:
        write()
    else:
        command.main()
