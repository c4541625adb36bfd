#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Saved conversations of tern chat: they continue as if there had been no interruption, survive a
process that dies at any time, and are neither used nor overwritten when damaged."""
import json
import os
import random
import shutil
import signal
import stat
import subprocess
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import NATIVE, read_bytes, scratch, tern

STRACE = shutil.which("strace")
LINUX = NATIVE and sys.platform.startswith("linux")


class Sessions(command.TestCase):
    def setUp(self):
        self.model = command.model()
        self.dir = scratch("sessions")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        self.path = os.path.join(self.dir, "talk.json")

    def chat(self, lines, *flags, model=None, **keywords):
        text = "".join(line + "\n" for line in lines).encode()
        return tern("chat", model or self.model, "-n", "16", *flags, stdin=text, **keywords)

    def saved(self):
        with open(self.path, encoding="utf-8") as f:
            return json.load(f)

    def test_a_continued_session_equals_an_unbroken_one(self):
        """The random numbers continue too."""
        flags = ("--seed", "7", "-s", "Be kind.")
        whole = self.chat(["Hello", "/temp 1.1", "Tell me a story.", "And then?", "And then?"],
                          *flags).text
        first = self.chat(["Hello", "/temp 1.1", "Tell me a story.", "/save " + self.path], *flags)
        second = self.chat(["/load " + self.path, "And then?", "And then?"])
        self.assertEqual((first.code, second.code), (0, 0), second.err)
        self.assertEqual(first.text + second.text, whole)
        self.assertIn("4 messages are loaded", second.err)
        # The same with --session, in three parts.
        os.unlink(self.path)
        text = ""
        for lines in (["Hello", "/temp 1.1"], ["Tell me a story.", "And then?"], ["And then?"]):
            result = self.chat(lines, *flags[:2] if not text else (), "-s", "Be kind.", "--session",
                               self.path)
            self.assertEqual((result.code, result.err.count("error")), (0, 0), result.err)
            text += result.text
        self.assertEqual(text, whole)

    def test_penalties_of_greedy_answers(self):
        """Greedy answers ignore penalties that the user did not set, also after loading."""
        question = "Tell me a story about a fox, a bear and a hen in a wood."
        lines = [question, question + " Again."]
        texts = set()
        for flags in ([], ["--repeat-penalty", "1.1", "--presence-penalty", "0.6"]):
            whole = self.chat(lines, "--greedy", *flags).text
            first = self.chat(lines[:1], "--greedy", *flags, "--session", self.path)
            second = self.chat(lines[1:], "--session", self.path)
            self.assertEqual(first.text + second.text, whole)
            texts.add(whole)
            os.unlink(self.path)
        self.assertEqual(len(texts), 2)

    def test_settings_show_the_penalties_in_force(self):
        save = ["/save " + self.path]
        err = self.chat(["/set", "/temp 0", "/set", *save], "--presence-penalty", "0.6").err
        self.assertEqual([line.split()[1] for line in err.splitlines()
                          if line.startswith(("repeat-penalty", "presence-penalty"))],
                         ["1.1", "0.6", "1", "0.6"])
        err = self.chat(["/load " + self.path, "/temp 0.5", "/set"], "--repeat-penalty", "1.5").err
        self.assertRegex(err, r"(?m)^repeat-penalty +1.1 ")

    def test_saved_members(self):
        self.chat(["Hello", "/undo", "One", "Two"], "--session", self.path)
        saved = self.saved()
        self.assertEqual([m["content"] for m in saved["messages"]][::2], ["One", "Two"])
        self.assertEqual(saved["model"]["name"], "demo")
        if NATIVE and os.name == "posix":
            self.assertEqual(stat.S_IMODE(os.stat(self.path).st_mode), 0o600)
        self.assertEqual(os.listdir(self.dir), ["talk.json"])

    def test_flags_override_saved_settings(self):
        self.chat(["Hello"], "--session", self.path, "--temp", "0.5", "--top-k", "9")
        result = self.chat(["/set"], "--session", self.path, "--temp", "0.9")
        self.assertRegex(result.err, r"(?m)^temp +0.9 ")
        self.assertRegex(result.err, r"(?m)^top-k +9 ")

    @unittest.skipUnless(LINUX, "kills a process")
    def test_each_turn_is_kept(self):
        child = subprocess.Popen(command.argv("chat", self.model, "-n", "8", "--session", self.path),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.DEVNULL)
        for n in range(1, 4):
            child.stdin.write(b"Hello\n/clear\n" if n == 3 else b"Hello\n")
            child.stdin.flush()
            wanted = 0 if n == 3 else 2 * n
            for _ in range(600):
                if os.path.exists(self.path) and len(self.saved()["messages"]) == wanted:
                    break
                subprocess.run(["sleep", "0.05"], check=True)
            self.assertEqual(len(self.saved()["messages"]), wanted)
        child.kill()
        child.wait()
        child.stdin.close()
        child.stdout.close()
        self.assertEqual(self.saved()["messages"], [])

    @unittest.skipUnless(LINUX, "two processes, one after the other")
    def test_two_programs_with_one_file(self):
        """The second one does not undo what the first has written."""
        first = subprocess.Popen(command.argv("chat", self.model, "-n", "4", "--session", self.path),
                                 stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                                 stderr=subprocess.PIPE)
        first.stdin.write(b"/stats\n")
        first.stdin.flush()
        first.stderr.readline()  # it has tried to read the missing file
        other = os.path.join(self.dir, "other.json")
        self.chat(["Mine"], "--session", self.path)
        theirs = read_bytes(self.path)
        _, err = first.communicate(f"Hello\n/save {other}\n".encode())
        self.assertEqual(first.returncode, 4, err)
        self.assertIn(b"another program has written it", err)
        self.assertEqual(err.count(b"error"), 1, err)
        self.assertEqual(read_bytes(self.path), theirs)
        # It may continue with a version that it has read.
        result = self.chat(["Hello", "/load " + other, "More"], "--session", self.path)
        self.assertEqual((result.code, len(self.saved()["messages"])), (0, 4), result.err)

    def test_switches_are_kept(self):
        self.chat(["/think hide"], "--session", self.path)
        self.assertIn("think hide", self.chat(["/think"], "--session", self.path).err)

    def test_a_setting_that_the_template_does_not_have(self):
        """/load is all or nothing; --session omits the setting and reports it."""
        template = os.path.join(self.dir, "think.jinja")
        with open(template, "w", encoding="utf-8") as f:
            f.write("{{ messages[-1].content }}{% if enable_thinking is defined and not "
                    "enable_thinking %}quick{% endif %}")
        saved = self.chat(["Good day", "/temp 0", "/think off", "/save " + self.path],
                          "--template", template)
        self.assertEqual(saved.code, 0, saved.err)
        flags = ("--temp", "0.9", "--seed", "3")
        plain = self.chat(["Hello", "And then?", "/set temp"], *flags)
        loaded = self.chat(["Hello", "/load " + self.path, "And then?", "/set temp"], *flags)
        self.assertEqual((loaded.code, loaded.text), (2, plain.text), loaded.err)
        self.assertIn("no switch", loaded.err)
        self.assertIn("temp 0.9", loaded.err)
        session = self.chat(["And then?", "/set temp", "/think"], "--session", self.path)
        self.assertEqual((session.code, session.err.count("note")), (0, 1), session.err)
        self.assertIn("no switch", session.err)
        self.assertIn("temp 0\n", session.err)
        self.assertIn("think on", session.err)
        self.assertEqual(len(self.saved()["messages"]), 4)

    @unittest.skipUnless(LINUX, "signals")
    def test_the_answer_in_progress_is_kept(self):
        """When the window is closed or the system shuts down."""
        self.chat(["Hello"], "--session", self.path)
        child = subprocess.Popen(
            command.argv("chat", self.model, "-n", "1000", "--ignore-eos", "--cpu", "ref",
                         "--threads", "1", "--session", self.path),
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE)
        child.stdin.write(b"Tell me a story.\n")
        child.stdin.flush()
        begin = child.stdout.read(20)
        child.send_signal(signal.SIGTERM)
        _, err = child.communicate()
        self.assertEqual(child.returncode, -signal.SIGTERM)
        self.assertNotIn(b"error", err)
        answer = self.saved()["messages"][3]["content"]
        self.assertTrue(answer.startswith(begin.decode()), (begin, answer))

    def refuse(self, *flags, model=None):
        before = read_bytes(self.path)
        session = self.chat(["Hello", "/save " + self.path], "--session", self.path, *flags,
                            model=model)
        self.assertEqual((session.code, session.out), (5, b""), session.err)
        self.assertEqual(len(session.err.splitlines()), 1, session.err)
        loaded = self.chat(["/load " + self.path], *flags, model=model)
        self.assertEqual((loaded.code, loaded.out), (5, b""), loaded.err)
        self.assertEqual(read_bytes(self.path), before)
        return session.err

    def test_loading_and_saving_changes_nothing(self):
        lines = [{"set": {"temp": 0.5, "max_tokens": 100000, "seed": str(2 ** 64 - 1)}},
                 {"role": "system", "content": "Be kind."},
                 {"tools": [{"type": "function", "function": {"name": "sum"}}]},
                 {"variables": {"enable_thinking": False, "mood": "grim"}},
                 {"set": {"think": "hide"}}, {"role": "user", "name": "Ada", "content": "Hi"},
                 {"role": "assistant", "reasoning_content": "why", "content": None,
                  "tool_calls": [{"id": "a", "type": "function",
                                  "function": {"name": "sum", "arguments": {"b": [0.1]}}}]}]
        template = os.path.join(self.dir, "plain.jinja")
        with open(template, "w", encoding="utf-8") as f:
            f.write("{% for m in messages %}{{ m.content }}{% endfor %}{{ mood }}")
        flags = ("--template", template)
        text = "".join(json.dumps(line) + "\n" for line in lines).encode()
        self.ok("chat", self.model, "-n", "2", "--jsonl", "--session", self.path, *flags,
                stdin=text)
        before = read_bytes(self.path)
        for part in (b'"variables": {"enable_thinking":false,"mood":"grim"}', b'"tools"',
                     b'"system"', b'"name"', b'"reasoning_content"', b'"arguments"', b"100000"):
            self.assertIn(part, before)
        copy = os.path.join(self.dir, "copy.json")
        self.ok("chat", self.model, *flags, stdin=f"/load {self.path}\n/save {copy}\n".encode())
        self.assertEqual(read_bytes(copy), before)
        # A continued session has everything too.
        self.ok("chat", self.model, "--jsonl", "--session", self.path, *flags,
                stdin=b'{"set":{"think":"hide"}}\n')
        self.assertEqual(read_bytes(self.path), before)

    def test_a_missing_folder_is_refused_at_the_start(self):
        path = os.path.join(self.dir, "no", "x.json")
        error = self.refused(4, "chat", self.model, "--session", path, stdin=b"Hello\n")
        self.assertIn("cannot be saved", error)
        self.assertEqual(os.listdir(self.dir), [])

    @unittest.skipUnless(LINUX, "moves a folder that is in use")
    def test_a_save_that_failed_is_tried_again(self):
        away = self.dir + ".away"
        shutil.rmtree(away, ignore_errors=True)
        for comes_back in (True, False):
            shutil.rmtree(self.dir, ignore_errors=True)
            os.mkdir(self.dir)
            child = subprocess.Popen(
                command.argv("chat", self.model, "-n", "8", "--session", self.path),
                stdin=subprocess.PIPE, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE)
            child.stdin.write(b"One\n")
            child.stdin.flush()
            command.wait_for(lambda: os.path.exists(self.path), "not saved")
            time.sleep(0.5)  # until it has checked the file it wrote
            os.rename(self.dir, away)
            child.stdin.write(b"Two\nThree\n")
            child.stdin.flush()
            self.assertIn(b"error", child.stderr.readline())
            if comes_back:
                os.rename(away, self.dir)
            _, err = child.communicate()
            self.assertEqual(child.returncode, 0 if comes_back else 4, err)
            self.assertNotIn(b"error", err)  # reported once
            if comes_back:
                self.assertIn(b"saved now", err)
                self.assertEqual([m["content"] for m in self.saved()["messages"]][::2],
                                 ["One", "Two", "Three"])
            shutil.rmtree(away, ignore_errors=True)

    def test_damage_is_refused_and_kept(self):
        self.chat(["Hello"], "--session", self.path)
        whole = read_bytes(self.path)
        chance = random.Random(1)
        for i in range(20):
            data = bytearray(whole)
            if i % 2:
                data[chance.randrange(len(data))] ^= 1 << chance.randrange(8)
            else:
                del data[chance.randrange(len(data)):]
            with open(self.path, "wb") as f:
                f.write(data)
            self.refuse()
            result = self.chat(["/save " + self.path])
            self.assertEqual(result.code, 4, result.err)
            self.assertEqual(read_bytes(self.path), data)

    def test_another_model_is_refused_with_both_names(self):
        self.chat(["Hello"], "--session", self.path)
        text = self.refuse(model=command.model(command.DEMO, "--name", "other"))
        self.assertIn("demo", text)
        self.assertIn("other", text)

    def test_other_files_are_not_replaced(self):
        with open(self.path, "wb") as f:
            f.write(b"my diary\n")
        self.assertIn("not a saved conversation", self.refuse())
        for path, code in ((self.path, 4), (self.dir, 4), (os.path.join(self.dir, "no", "x"), 4)):
            result = self.chat(["/save " + path])
            self.assertEqual(result.code, code, result.err)
        self.assertEqual(read_bytes(self.path), b"my diary\n")

    @unittest.skipUnless(LINUX, "links")
    def test_links_are_followed(self):
        link = os.path.join(self.dir, "link.json")
        self.chat(["Hello"], "--session", self.path)
        os.symlink(self.path, link)
        self.assertEqual(self.chat(["More"], "--session", link).code, 0)
        self.assertTrue(os.path.islink(link))
        self.assertEqual(len(self.saved()["messages"]), 4)


class Caches(command.TestCase):
    """Keys and values of a conversation, and of a prompt."""

    LINES = ["Tell me a long story. " * 8, "And then?"]

    def setUp(self):
        self.model = command.model()
        self.dir = scratch("caches")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        self.path = os.path.join(self.dir, "talk.json")
        self.cache = self.path + ".cache"

    def chat(self, lines, *flags):
        text = "".join(line + "\n" for line in lines).encode()
        return self.ok("chat", self.model, "-n", "16", "--greedy", "--stats=json", "--session",
                       self.path, *flags, stdin=text)

    def stats(self, result):
        return [json.loads(l) for l in result.err.splitlines() if l.startswith("{")]

    def test_a_conversation_opens_without_prefill(self):
        whole = self.chat([*self.LINES, "More?"])
        os.unlink(self.path)
        self.chat(self.LINES, "--session-cache")
        saved = read_bytes(self.path)
        if NATIVE and os.name == "posix":
            self.assertEqual(stat.S_IMODE(os.stat(self.cache).st_mode), 0o600)
        result = self.chat(["More?"], "--session-cache")
        self.assertNotIn("note", result.err)
        self.assertTrue(whole.text.endswith(result.text))
        now, then = self.stats(result)[0], self.stats(whole)[2]
        self.assertEqual(now["cached_tokens"], then["cached_tokens"])
        self.assertGreater(now["cached_tokens"], 60)

        # Whatever is wrong with the file, the answer is the same.
        cache = read_bytes(self.cache)
        for name, data in (("damaged", cache[:-1]), ("damaged", cache[:200] + bytes([cache[200] ^ 1]) + cache[201:]),
                           ("not saved keys", b"")):
            with open(self.cache, "wb") as f:
                f.write(data)
            with open(self.path, "wb") as f:
                f.write(saved)
            again = self.chat(["More?"], "--session-cache")
            self.assertEqual(again.out, result.out)
            if data:
                self.assertIn(name, again.err)
            self.assertIn("note: the prompt is computed again", again.err)
            self.assertEqual(self.stats(again)[0]["cached_tokens"], 0)
        self.assertIn("cache type", self.chat(["x"], "--session-cache", "--kv", "f16").err)

    def test_flags(self):
        self.assertIn("--session FILE", self.refused(2, "chat", self.model, "--session-cache"))

    def test_other_files_are_not_replaced(self):
        with open(self.cache, "wb") as f:
            f.write(b"my diary\n")
        result = tern("chat", self.model, "-n", "2", "--session", self.path, "--session-cache",
                      stdin=b"Hi\n")
        self.assertEqual(result.code, 4, result.err)
        self.assertEqual(read_bytes(self.cache), b"my diary\n")

    def run_with(self, prompt, *flags):
        result = self.ok("run", self.model, "--raw", "-n", "12", "--greedy", "--stats=json", "-p",
                         prompt, *flags)
        return result, json.loads(result.err.splitlines()[-1])

    def test_prefix_of_a_prompt(self):
        text = "Once upon a time there was a fox who had a goose. " * 12
        flags = ("--prefix-cache", self.cache)
        _, first = self.run_with(text + "And", *flags)
        cache = read_bytes(self.cache)
        plain, cold = self.run_with(text + "But")
        result, warm = self.run_with(text + "But", *flags)
        self.assertEqual(first["cached_tokens"], 0)
        self.assertGreater(warm["cached_tokens"], 100)
        self.assertEqual(warm["cached_tokens"] + warm["prompt_tokens"], cold["prompt_tokens"])
        self.assertEqual(result.out, plain.out)
        self.assertEqual(read_bytes(self.cache), cache)  # most of it was useful
        _, other = self.run_with("Another prompt", *flags)
        self.assertLess(other["cached_tokens"], 3)
        self.assertNotEqual(read_bytes(self.cache), cache)
        self.assertEqual(os.listdir(self.dir), [os.path.basename(self.cache)])
        self.assertIn("directory", self.refused(4, "run", self.model, "-p", "Hi", "-n", "2",
                                                "--prefix-cache", self.dir))
        done = tern("run", self.model, "-p", "Hi", "-n", "2", "--prefix-cache", self.model)
        self.assertEqual(done.code, 4, done.err)
        short = os.path.join(self.dir, "short.cache")
        _, first = self.run_with("a", "--prefix-cache", short)
        self.assertLess(first["prompt_tokens"], 4)
        self.assertTrue(os.path.exists(short))
        self.assertEqual(self.ok("verify", self.model).code, 0)


@unittest.skipUnless(LINUX and STRACE, "needs strace")
class Disk(command.TestCase):
    """The old file or the complete new one, wherever the process is killed or a call fails."""

    def setUp(self):
        self.model = command.model()
        self.dir = scratch("killed")
        shutil.rmtree(self.dir, ignore_errors=True)
        os.mkdir(self.dir)
        self.path = os.path.join(self.dir, "talk.json")
        tern("chat", self.model, "-n", "4", "--greedy", stdin=f"Hi\n/save {self.path}\n".encode())
        self.old = read_bytes(self.path)
        self.lines = f"/load {self.path}\n/clear\n/save {self.path}\n".encode()

    def save(self, *inject):
        env = command.environment(ASAN_OPTIONS="detect_leaks=0", TERN_CACHE="off")
        log = scratch("session.log")
        trace = [STRACE, "-f", "-qq", "-o", log, *inject] if inject else []
        # strace changes the number of a failing call, which the sandbox punishes with the end of
        # the process.
        done = subprocess.run(trace + command.argv("chat", self.model, "--greedy", "--no-sandbox"),
                              input=self.lines, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                              env=env, timeout=command.TIMEOUT, check=False)
        text = ""
        if inject:
            with open(log, encoding="utf-8", errors="replace") as f:
                text = f.read()
        return command.Result(done), text

    def put_old(self):
        for name in os.listdir(self.dir):
            os.unlink(os.path.join(self.dir, name))
        with open(self.path, "wb") as f:
            f.write(self.old)

    def calls_of_save(self):
        """(name, n-th call of that name) for all calls since the opening of the part file."""
        self.put_old()
        _, text = self.save("-e", "trace=file,desc")
        new = read_bytes(self.path)
        counts, calls, is_inside = {}, [], False
        for line in text.splitlines():
            name = line.split(" ", 1)[1].lstrip().split("(")[0]
            counts[name] = counts.get(name, 0) + 1
            is_inside = is_inside or ".part" in line
            if is_inside and name.isidentifier():
                calls.append((name, counts[name]))
            if is_inside and name == "write":  # reports that it is saved
                break
        self.assertGreater(len(calls), 5, text)
        return new, calls

    def test_killed_at_every_call(self):
        new, calls = self.calls_of_save()
        n_old = 0
        for name, when in calls:
            self.put_old()
            self.save("-e", f"trace={name}", "-e", f"inject={name}:signal=KILL:when={when}")
            data = read_bytes(self.path)
            self.assertIn(data, (self.old, new), (name, when))
            n_old += data == self.old
            # The next one cleans up.
            self.assertEqual(self.save()[0].code, 0)
            self.assertEqual(read_bytes(self.path), new)
            self.assertEqual(os.listdir(self.dir), ["talk.json"])
        self.assertGreater(n_old, 3)
        print(f"killed at {len(calls)} calls, {n_old} times before the new file was there")

    def test_calls_that_fail(self):
        new, calls = self.calls_of_save()
        for name, when in calls:
            if name not in ("openat", "pwrite64", "fsync", "rename"):
                continue
            self.put_old()
            result, text = self.save("-e", f"trace={name}", "-e",
                                     f"inject={name}:error=ENOSPC:when={when}")
            self.assertIn("INJECTED", text)
            if read_bytes(self.path) == self.old:
                self.assertEqual(result.code, 4, (name, when, result.err))
                self.assertEqual(len([l for l in result.err.splitlines() if "error" in l]), 1)
            else:  # the folder's fsync comes last
                self.assertEqual(read_bytes(self.path), new, (name, when))
            self.assertEqual(os.listdir(self.dir), ["talk.json"])


if __name__ == "__main__":
    command.main()
