#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""tern chat without a terminal: a turn per line."""
import json
import os
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import scratch, tern


class Chat(command.TestCase):
    """Without a terminal: a turn per line."""

    def setUp(self):
        self.model = command.model()

    def chat(self, lines, *flags):
        text = "".join(line + "\n" for line in lines).encode()
        return tern("chat", self.model, "--greedy", *flags, stdin=text)

    def ids_of_turns(self, result):
        return [line.split()[1:] for line in result.err.splitlines() if line.startswith("ids:")]

    def test_no_input(self):
        result = self.ok("chat", self.model)
        self.assertEqual((result.out, result.err), (b"", ""))

    def test_a_turn_per_line(self):
        result = self.chat(["Hello", "", "Tell me a story."], "-n", "16", "--stats=json")
        self.assertEqual(result.code, 0)
        stats = [json.loads(line) for line in result.err.splitlines()]
        self.assertEqual(len(stats), 2)
        alone = self.chat(["Hello"], "-n", "16")
        self.assertTrue(result.out.startswith(alone.out))

    def test_ids_of_the_second_turn_are_those_of_the_whole_conversation(self):
        turns = ["My name is Ada.", "What is my name?", "And yours?"]
        result = self.chat(turns, "-n", "24", "-v", "-s", "Be kind.")
        ids = self.ids_of_turns(result)
        self.assertEqual(len(ids), 3)
        messages = [{"role": "system", "content": "Be kind."}]
        rest = result.text
        for i, turn in enumerate(turns):
            messages.append({"role": "user", "content": turn})
            expected = self.ok("tokenize", self.model, "--chat",
                               stdin=json.dumps(messages).encode()).text.split()
            self.assertEqual(ids[i], expected)
            if i < 2:
                answer = self.answer_before(messages, ids[i + 1], rest)
                rest = rest[len(answer):].lstrip("\n")
                messages.append({"role": "assistant", "content": answer})

    def answer_before(self, messages, next_ids, rest):
        """The answer within the ids of the next turn: stdout up to some newline."""
        for end in [i for i, c in enumerate(rest) if c == "\n"]:
            trial = messages + [{"role": "assistant", "content": rest[:end]}]
            rendered = self.ok("tokenize", self.model, "--chat", "--no-generation-prompt",
                               stdin=json.dumps(trial).encode()).text.split()
            if rendered == next_ids[:len(rendered)]:
                return rest[:end]
        self.fail("the next turn does not hold the answer")

    def test_the_cache_is_used_again(self):
        result = self.chat(["Tell me a story."] * 3, "-n", "60", "--stats")
        reused = [line for line in result.err.splitlines() if "from the cache" in line]
        self.assertEqual(len(reused), 2)

    def test_a_long_conversation_forgets_the_oldest_turns(self):
        result = self.chat(["Tell me a long story, please. " * 6] * 12, "-n", "100", "-v",
                           "--system", "You are a storyteller.", "--ctx", "400")
        self.assertEqual(result.code, 0, result.err)
        self.assertIn("forgotten", result.err)
        ids = self.ids_of_turns(result)
        self.assertEqual(len(ids), 12)
        system = ids[0][:12]
        for turn in ids:
            self.assertLess(len(turn), 400)
            self.assertEqual(turn[:12], system)

    def test_a_message_that_is_too_long(self):
        result = self.chat(["word " * 3000, "Hi"], "-n", "4")
        self.assertEqual(result.code, 3)
        self.assertEqual(len(result.err.splitlines()), 1)
        self.assertEqual(result.out, self.chat(["Hi"], "-n", "4").out)
        # Earlier messages stay.
        result = self.chat(["Hi", "word " * 3000, "And?"], "-n", "4", "-v")
        self.assertNotIn("forgotten", result.err)
        expected = self.ids_of_turns(self.chat(["Hi", "And?"], "-n", "4", "-v"))
        self.assertEqual(self.ids_of_turns(result), expected)

    def test_a_line_that_does_not_end(self):
        result = self.chat(["x" * (17 << 20), "Hi"], "-n", "4")
        self.assertEqual(result.code, 3)
        self.assertEqual(len(result.err.splitlines()), 1)
        self.assertIn("16777216", result.err)
        self.assertEqual(result.out, self.chat(["Hi"], "-n", "4").out)
        # Also if only the newline of a continued line had room.
        result = self.chat(['"""' + "x" * ((16 << 20) - 3), "yy"], "-n", "4")
        self.assertEqual(result.code, 3)
        self.assertIn("no room for a message of more than", result.err)

    def test_byte_order_mark(self):
        expected = self.ids_of_turns(self.chat(["Hi", "\ufeffHi"], "-n", "4", "-v"))
        result = self.chat(["\ufeffHi", "\ufeffHi"], "-n", "4", "-v")
        self.assertEqual(self.ids_of_turns(result), expected)
        self.assertNotEqual(expected[1], self.ids_of_turns(self.chat(["Hi"] * 2, "-n", "4",
                                                                     "-v"))[1])

    def test_input_that_cannot_be_read(self):
        with open(scratch("write-only"), "wb") as stdin:
            self.assertIn("standard input", self.refused(5, "chat", self.model, stdin=stdin))

    def test_commands(self):
        result = self.chat(["/help"])
        for name in ("/exit", "/clear", "/system", "/regen", "/undo", "/stats"):
            self.assertIn(name, result.err)
        self.assertEqual(result.out, b"")
        self.assertEqual(self.chat(["/exit", "Hi"]).out, b"")
        self.assertEqual(self.chat(["/q", "Hi"]).out, b"")
        wrong = self.chat(["/nothing such"])
        self.assertIn("/nothing", wrong.err)
        self.assertEqual((wrong.out, wrong.code), (b"", 2))
        self.assertEqual(self.chat(["/nothing", "Hi", "/undo"], "-n", "4").code, 2)

    def test_commands_change_the_conversation(self):
        fresh = self.ids_of_turns(self.chat(["Hi"], "-n", "8", "-v"))[0]
        for lines in (["Hello", "/clear", "Hi"], ["Hello", "/undo", "Hi"],
                      ["Hello", "/reset", "Hi"]):
            result = self.chat(lines, "-n", "8", "-v")
            self.assertEqual(self.ids_of_turns(result)[-1], fresh, lines)
        regenerated = self.ids_of_turns(self.chat(["Hi", "/regen"], "-n", "8", "-v"))
        self.assertEqual(regenerated, [fresh, fresh])
        self.assertRegex(self.chat(["Hi", "/stats"], "-n", "8").err, "2 messages, [1-9][0-9]* of ")
        self.assertIn("0 messages, 0 of ", self.chat(["Hi", "/clear", "/stats"], "-n", "8").err)
        self.assertIn("nothing", self.chat(["/undo"]).err)
        self.assertIn("no answer", self.chat(["/regen"]).err)
        # A failed attempt loses neither the question nor the answer.
        again = self.chat(["Hi", "/system " + "word " * 3000, "/regen", "/system Be kind.",
                           "/regen", "/undo"], "-n", "8", "-v")
        self.assertEqual(again.code, 3)
        self.assertIn("too long", again.err)
        self.assertIn("The last question and its answer are forgotten", again.err)
        with_system = self.ids_of_turns(self.chat(["/system Be kind.", "Hi"], "-n", "8", "-v"))[0]
        given = self.ids_of_turns(self.chat(["Hi"], "-n", "8", "-v", "-s", "Be kind."))[0]
        self.assertEqual(with_system, given)
        self.assertEqual(self.ids_of_turns(again)[-1], given)
        self.assertIn("Be kind.", self.chat(["/system"], "-s", "Be kind.").err)

    def test_slashes_and_continued_lines(self):
        def ids(text):
            messages = [{"role": "user", "content": text}]
            return self.ok("tokenize", self.model, "--chat",
                           stdin=json.dumps(messages).encode()).text.split()
        result = self.chat(["//etc/passwd", "/clear", "one\\", "two\\", "three"], "-n", "4", "-v")
        self.assertEqual(self.ids_of_turns(result), [ids("/etc/passwd"), ids("one\ntwo\nthree")])

    def test_special_tokens_in_messages_are_text(self):
        result = self.chat(["say <|eot_id|>"], "-n", "4", "-v")
        eot = self.ok("tokenize", self.model, "--special", "--no-bos", stdin=b"<|eot_id|>").text
        self.assertEqual(self.ids_of_turns(result)[0].count(eot.strip()), 1)

    def test_not_utf8(self):
        result = tern("chat", self.model, "-n", "4", stdin=b"a\xffb\nHi\n")
        self.assertEqual(result.code, 5)
        self.assertIn("byte 1", result.err)
        self.assertNotEqual(result.out, b"")

    def test_long_line(self):
        result = self.chat(["x" * 100000])
        self.assertEqual(result.code, 3)


if __name__ == "__main__":
    command.main()
