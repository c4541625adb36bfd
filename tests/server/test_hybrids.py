#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models with recurrent state or experts, in the server and in chat: interleaved conversations get
the same answers as separate ones."""
import json
import os
import re
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
import serving
from serving import together

CHAT = "/v1/chat/completions"
MODELS = ("tiny-qwen35-ternary", "tiny-qwen35-moe", "tiny-qwen3next", "tiny-maple")
TEXTS = ("Tell me a tale.", "Who lives in the old mill by the river?", "ab" * 40, "?")
N_TOKENS = 24
N_TURNS = 3
N_LONG = 20  # turns of a long conversation
MAX_OPENING = 20  # ids of the longest text after which an answer begins


def model(name):
    return command.model(command.shared("reference", "hybrids", "models", name))


def turns(text):
    return [f"{text} {turn}" for turn in range(N_TURNS)]


class Hybrids(command.TestCase):
    def ask(self, server, messages):
        """The answer to a conversation, as a message."""
        status, answer = server.post(CHAT, {
            "messages": messages, "max_tokens": N_TOKENS, "temperature": 0, "ignore_eos": True})
        self.assertEqual(status, 200, answer)
        return answer["choices"][0]["message"]

    def talk(self, server, text):
        """The answers of a conversation of several turns."""
        messages = []
        for line in turns(text):
            messages.append({"role": "user", "content": line})
            messages.append(self.ask(server, messages))
        return messages[1::2]

    def test_conversations_that_take_turns(self):
        for name in MODELS:
            with self.subTest(model=name):
                with serving.Server("--parallel", "1", models=[model(name)]) as alone:
                    want = [self.talk(alone, text) for text in TEXTS]
                with serving.Server("--parallel", "4", models=[model(name)]) as server:
                    self.assertEqual(together(lambda text: self.talk(server, text), TEXTS), want)

    def test_a_turn_computes_the_new_messages_only(self):
        """Four conversations that take turns.  Histories lack the reasoning, and of the answers all
        but the beginning, so that each prompt differs from the text where the answer began."""
        for name in MODELS:
            conversations, n_before = [[] for _ in TEXTS], [0] * len(TEXTS)
            with serving.Server("--parallel", "4", models=[model(name)]) as server:
                for turn in range(N_LONG):
                    for k, talk in enumerate(conversations):
                        talk.append({"role": "user", "content": f"Question {turn} of {k}"})
                        _, answer = server.post(CHAT, {
                            "messages": talk, "max_tokens": 50, "temperature": 0,
                            "ignore_eos": True})
                        usage, n = answer["usage"], n_before[k]
                        n_computed = (usage["prompt_tokens"] -
                                      usage["prompt_tokens_details"]["cached_tokens"])
                        n_before[k] = usage["prompt_tokens"]
                        with self.subTest(model=name, turn=turn, conversation=k):
                            self.assertLessEqual(n_computed, n_before[k] - n + MAX_OPENING)
                        content = answer["choices"][0]["message"]["content"] or "So."
                        talk.append({"role": "assistant", "content": content[:10]})

    def test_a_context_of_ids_is_computed_once(self):
        """Two prompts after the same "context" of Ollama's API, with the same system text."""
        def generate(server, **more):
            status, answer = server.post("/api/generate", dict({
                "model": server.model_ids()[0], "stream": False, "system": "Be brief.",
                "options": {"num_predict": N_TOKENS, "temperature": 0}}, **more))
            self.assertEqual(status, 200, answer)
            return answer["context"]

        for name in MODELS:
            with serving.Server("--parallel", "1", models=[model(name)]) as server:
                context = generate(server, prompt=TEXTS[1])
                generate(server, prompt="First?", context=context)
                before = server.metric("cached_tokens_total")
                generate(server, prompt="Second!", context=context)
                n_cached = server.metric("cached_tokens_total") - before
                with self.subTest(model=name):
                    self.assertGreaterEqual(n_cached, len(context))

    def chat(self, name, n_turns, *flags):
        """The results of n_turns lines of a chat."""
        lines = "".join(json.dumps({"role": "user", "content": f"Question {turn}: why?"}) + "\n"
                        for turn in range(n_turns))
        out = command.tern("chat", model(name), "--jsonl", "--greedy", "--ignore-eos", "-n",
                           str(N_TOKENS), *flags, stdin=lines.encode())
        self.assertEqual(out.code, 0, out.err)
        return [r for r in map(json.loads, out.text.splitlines()) if "usage" in r]

    def test_a_long_chat_computes_the_new_messages_only(self):
        for name in MODELS:
            with self.subTest(model=name):
                n_before = 0
                for result in self.chat(name, N_LONG):
                    n_all = result["usage"]["prompt_tokens"]
                    n_computed = n_all - result["usage"]["cached_tokens"]
                    self.assertLessEqual(n_computed, n_all - n_before + MAX_OPENING)
                    n_before = n_all

    def test_a_full_context_forgets_whole_turns(self):
        """And computes the rest of the conversation again, once per time that it forgets."""
        for name in MODELS:
            with self.subTest(model=name):
                results = self.chat(name, N_LONG, "--ctx", "256")
                forgotten = [r["forgotten"] for r in results]
                self.assertGreaterEqual(sum(forgotten), N_LONG)
                self.assertTrue(all(n % 2 == 0 for n in forgotten))
                for before, result in zip(results, results[1:]):
                    usage = result["usage"]
                    self.assertLessEqual(usage["prompt_tokens"] + N_TOKENS, 256)
                    if not result["forgotten"]:
                        self.assertGreaterEqual(usage["cached_tokens"],
                                                before["usage"]["prompt_tokens"] - MAX_OPENING)

    def mapping_flags(self, server, path):
        """The kernel's flags for the mapping of a file, two letters each."""
        with open(f"/proc/{server.process.pid}/smaps", encoding="utf-8", errors="replace") as f:
            text = f.read()
        part = text[text.index(os.path.realpath(path)):]
        return re.search(r"^VmFlags: (.*)$", part, re.MULTILINE).group(1).split()

    @unittest.skipUnless(os.path.exists("/proc/self/smaps") and not command.IS_WINE,
                         "flags of mappings")
    def test_experts_are_paged_where_memory_is_short(self):
        name = model("tiny-maple")
        with serving.Server("--parallel", "1", models=[name]) as plenty:
            want = self.talk(plenty, TEXTS[0])
            self.assertNotIn("rr", self.mapping_flags(plenty, name))
        self.assertNotIn("experts are read", plenty.err)
        # The context is as long as fits, which leaves too little memory for the file.
        with serving.Server("--parallel", "1", "--ram", "10M", models=[name]) as short:
            self.assertEqual(self.talk(short, TEXTS[0]), want)
            self.assertIn("rr", self.mapping_flags(short, name))
        self.assertIn("experts are read from the disk as tokens choose them", short.err)

    def test_completions_are_those_of_run(self):
        for name in MODELS:
            with self.subTest(model=name):
                want = self.ok("run", model(name), "--raw", "-p", TEXTS[1], "-n", str(N_TOKENS),
                               "--greedy", "--ignore-eos").text
                with serving.Server(models=[model(name)]) as server:
                    status, answer = server.post("/v1/completions", {
                        "prompt": TEXTS[1], "max_tokens": N_TOKENS, "temperature": 0,
                        "ignore_eos": True})
                self.assertEqual(status, 200, answer)
                self.assertEqual(answer["choices"][0]["text"].rstrip("\n"), want.rstrip("\n"))

    def test_chat_is_the_conversation_of_the_server(self):
        for name in MODELS:
            with self.subTest(model=name):
                lines = "".join(json.dumps({"role": "user", "content": line}) + "\n"
                                for line in turns(TEXTS[0]))
                chat = command.tern("chat", model(name), "--jsonl", "--greedy", "--ignore-eos",
                                    "-n", str(N_TOKENS), stdin=lines.encode())
                self.assertEqual(chat.code, 0, chat.err)
                replies = [json.loads(line) for line in chat.out.decode().splitlines()]
                said = [reply["content"] for reply in replies if "content" in reply]
                with serving.Server(models=[model(name)]) as server:
                    want = [message["content"] for message in self.talk(server, TEXTS[0])]
                self.assertEqual(said, want)


if __name__ == "__main__":
    command.main()
