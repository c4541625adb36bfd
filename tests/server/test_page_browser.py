#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page in a browser: conversations, rendering, tabs, restarts, files, keys."""
import json
import os
import shutil
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from browser import PATIENCE, SHOWCASE, Browser, start_driver
from serving import Server

from selenium.webdriver.common.keys import Keys

HOSTILE = """# <img src=x onerror="window.hit=1">

<script>window.hit=2</script> <svg/onload=window.hit=3> <iframe src="https://example.com"></iframe>

[a](javascript:window.hit=4) [b](JAVASCRIPT:window.hit=5) [c](data:text/html,<script>hit=6</script>)
![pixel](https://example.com/pixel.png) [example.com](https://evil.example/)

```html
</code></pre><script>window.hit=7</script>
```

| <b onclick=hit=8>x</b> | [d](vbscript:x) |
|---|---|
| <style>*{display:none}</style> | </table></main> |
"""


class Conversations(Browser):
    # ---- conversations ----

    def test_send_and_reload(self):
        self.ask("Tell me a story.")
        before = self.texts()
        self.assertEqual(before[0], "Tell me a story.")
        self.assertTrue(before[1].strip())
        self.assertRegex(self.find(".message:last-child .figures").text, r"^\d+ tokens?")
        self.assertRegex(self.find("#used").text, r"^\d+ of 512 tokens$")
        self.write("a draft", end=False)
        self.driver.refresh()
        self.wait_ready()
        self.assertEqual(self.texts(), before)
        self.assertEqual(self.find("#question").get_attribute("value"), "a draft")
        self.assertEqual([b.text for b in self.all(".chat[aria-current]")], ["Tell me a story."])
        foreign = self.js("return performance.getEntriesByType('resource').map(e => e.name)"
                          ".filter(name => !name.startsWith(location.origin + '/'))")
        self.assertEqual(foreign, [])
        self.assertEqual([e for e in self.driver.get_log("browser") if e["level"] == "SEVERE"], [])

    def test_stop(self):
        self.gate.allow(6000)
        self.write("Tell me a story.")
        self.until(lambda: len(self.texts()) == 2 and self.texts()[1].strip(), "the first words")
        self.assertTrue(self.is_writing())
        self.driver.switch_to.active_element.send_keys(Keys.ESCAPE)
        self.wait_answer(2)
        self.assertIn("You stopped", self.find(".message:last-child .note").text)
        kept = self.texts()
        self.assertTrue(kept[1].strip())
        self.server.wait_for_rest(PATIENCE)
        self.gate.allow(None)
        self.driver.refresh()
        self.wait_ready()
        self.assertEqual(self.texts(), kept)
        self.ask("Go on.")
        self.assertEqual(len(self.texts()), 4)

    def test_other_answers_and_other_questions(self):
        self.ask("Tell me a story.")
        first = self.texts()
        self.stub("Another answer.")
        self.driver.switch_to.active_element.send_keys(Keys.ALT, "r")
        self.until(lambda: self.texts()[1:] == ["Another answer."] and not self.is_writing(),
                   "another answer")
        self.assertIn("2 / 2", self.find(".message:last-child .branch").text)
        self.click(".message:last-child [aria-label='Previous version']")
        self.assertEqual(self.texts(), first)
        self.find("#question").send_keys(Keys.ARROW_UP)
        area = self.find(".editor textarea")
        self.assertEqual(area.get_attribute("value"), "Tell me a story.")
        self.stub("A poem.")
        area.clear()
        area.send_keys("Write a poem.", Keys.ENTER)
        self.until(lambda: self.texts() == ["Write a poem.", "A poem."] and not self.is_writing(),
                   "the answer to the edited question")
        self.assertEqual([m["content"] for m in self.js("return asked.messages")], ["Write a poem."])
        self.driver.refresh()
        self.wait_ready()
        self.assertEqual(self.texts(), ["Write a poem.", "A poem."])
        self.click(".message.user [aria-label='Previous version']")
        self.assertEqual(self.texts()[0], first[0])
        self.assertIn(self.texts()[1], (first[1], "Another answer."))

    def test_settings_are_sent_and_kept(self):
        self.click("#adjust")
        self.find("#set-system").send_keys("Be brief.", Keys.TAB)
        temperature = self.all("#fields input")[0]
        self.assertEqual(temperature.get_attribute("placeholder"), "0.7")
        temperature.send_keys("0", Keys.TAB)
        self.find("#set-think").send_keys("off", Keys.TAB)
        self.check_axe("settings")
        self.picture("settings")
        self.click("#settings-close")
        self.stub("Yes: <think> ", "is a tag.", reasoning=["Should ", "I?"])
        self.ask("Really?")
        asked = self.js("return asked")
        self.assertIn("Be brief.", self.find("#system").text)
        self.assertEqual(asked["messages"], [{"role": "system", "content": "Be brief."},
                                             {"role": "user", "content": "Really?"}])
        self.assertEqual((asked["temperature"], asked["reasoning_effort"], asked["stream"]),
                         (0, "none", True))
        self.assertNotIn("top_k", asked)
        self.assertEqual(self.texts()[-1], "Yes: <think> is a tag.")
        think = self.find(".message.assistant .think")
        self.assertIsNone(think.get_attribute("open"))
        self.click(".message.assistant .think summary")
        self.assertIn("Should I?", think.text)
        self.stub("Yes.")
        self.ask("Sure?")
        self.assertEqual(self.js("return asked.messages")[2]["reasoning_content"], "Should I?")
        self.click("#new")
        self.write("Again?", end=False)
        self.stub("No.")
        self.ask("Again?")
        self.assertEqual(self.js("return asked.temperature"), 0)
        self.assertEqual(self.js("return asked.messages"), [{"role": "user", "content": "Again?"}])
        self.click(".message.user [aria-label^='Copy']")
        self.until(lambda: self.all(".message.user [title='Copied'], [title^='Copying']"), "a copy")

    # ---- rendering ----

    def check_harmless(self):
        self.assertIsNone(self.js("return window.hit"))
        made = self.js("return [...document.querySelectorAll('#messages *')]"
                       ".filter(e => /^(img|script|iframe|style|object|form|b)$/i.test(e.localName))"
                       ".length")
        self.assertEqual(made, 0)
        self.assertEqual(self.js("return [...document.querySelectorAll('#messages *')].filter(e =>"
                                 "[...e.attributes].some(a => /^on|^style$/.test(a.name))).length"), 0)
        links = self.js("return [...document.querySelectorAll('#messages a')]"
                        ".map(a => [a.href, a.rel, a.target])")
        self.assertEqual([link[0] for link in links if not link[0].endswith(".com/")],
                         ["https://example.com/pixel.png", "https://evil.example/"])
        for href, rel, target in links:
            self.assertRegex(href, "^https?://")
            self.assertIn("noopener", rel)
            self.assertEqual(target, "_blank")
        text = self.find(".message.assistant .body").text
        for words in ("<script>window.hit=2</script>", "javascript:window.hit=4", "(evil.example)",
                      "</code></pre><script>window.hit=7</script>"):
            self.assertIn(words, text)
        logged = [e for e in self.driver.get_log("browser") if "Content Security" in e["message"]]
        self.assertEqual(logged, [])

    def test_hostile_answers(self):
        self.stub(*(HOSTILE[i:i + 3] for i in range(0, len(HOSTILE), 3)))
        self.ask(HOSTILE)
        self.check_harmless()
        self.driver.refresh()
        self.wait_ready()
        self.check_harmless()
        self.clear()
        self.go()
        self.load([("user", HOSTILE), ("assistant", HOSTILE)])
        self.check_harmless()
        self.check_axe("hostile answers")

    def test_right_to_left(self):
        arabic = "مرحبا بالعالم"
        self.stub(f"{arabic}\n\nleft to right")
        self.ask(arabic)
        directions = self.js("return [...document.querySelectorAll('.message.user .body, .body p')]"
                             ".map(e => getComputedStyle(e).direction)")
        self.assertEqual(directions, ["rtl", "rtl", "ltr"])

    # ---- long conversations ----

    def test_two_hundred_messages(self):
        self.load([("user" if i % 2 == 0 else "assistant", f"Message {i}. " + "Once upon a time. " * 3)
                   for i in range(200)])
        self.assertEqual(len(self.all(".message")), 200)
        self.assertTrue(self.js("const log = document.getElementById('log');"
                                "return log.scrollHeight - log.scrollTop - log.clientHeight < 90"))
        self.ask("And now?")
        texts = self.texts()
        self.assertEqual((len(texts), texts[200]), (202, "And now?"))
        self.assertFalse(self.all(".note.error:not([hidden])"))
        self.assertTrue(self.all(".message.forgotten"), "the context cannot hold all of it")
        self.assertTrue(texts[201].strip())
        self.driver.refresh()
        self.wait_ready()
        self.assertEqual(self.texts(), texts)

    def below_view(self):
        """Pixels of the messages below the visible area."""
        return self.js("const log = document.getElementById('log');"
                       "return log.scrollHeight - log.scrollTop - log.clientHeight")

    def test_the_end_stays_in_view(self):
        self.stub("The answer.")
        self.ask("Tall." + "\n" * 120 + "End.")
        self.until(lambda: self.below_view() < 2, "the end")
        self.assertTrue(self.js("return document.getElementById('to-end').hidden"))
        # Only the log scrolls.
        page, window = self.js("return [document.documentElement.scrollHeight, innerHeight]")
        self.assertLessEqual(page, window)
        self.js("document.getElementById('log').scrollTop = 0")
        self.until(lambda: self.find("#to-end").is_displayed(), "the button")
        self.stub("Another answer.")
        self.js("document.querySelector('[aria-label=\"Another answer\"]').click()")
        self.until(lambda: self.texts()[-1] == "Another answer.", "another answer")
        self.assertGreater(self.below_view(), 500, "the reader stays there")
        self.click("#to-end")
        self.until(lambda: self.below_view() < 2, "the end")

    def test_refused_settings_and_prompts(self):
        self.click("#adjust")
        temperature = self.all("#fields input")[0]
        temperature.send_keys("9", Keys.TAB)
        self.assertIn("must be from 0 to 2", self.find("#fields").text)
        self.assertEqual(temperature.get_attribute("value"), "9")
        self.click("#settings-close")
        self.stub("Yes.")
        self.ask("Really?")
        self.assertNotIn("temperature", self.js("return asked"))
        self.ask("A long question. " * 3000)
        self.assertIn("is too long", self.find(".note.error").text)
        self.assertIn("Edit the message", self.find(".note.error button").text)
        self.click(".note.error button")
        self.find(".editor textarea")

    def test_a_reload_interrupts_an_answer(self):
        self.js("""
            const real = window.fetch;
            window.fetch = async (where, options) => !where.includes("completions")
                ? real(where, options) : new Response(new ReadableStream({start(stream) {
                    const event = {choices: [{index: 0, delta: {content: "Half"}}]};
                    stream.enqueue(new TextEncoder().encode(
                        `data: ${JSON.stringify(event)}\\n\\n`));
                }}));""")
        self.write("Tell me a story.")
        self.until(lambda: self.texts()[-1:] == ["Half"], "half an answer")
        self.driver.refresh()
        self.wait_ready()
        self.assertIn("was interrupted", self.find(".assistant .note").text)
        self.stub(" a story.")
        self.click(".assistant .note button")
        self.until(lambda: self.texts()[-1:] == ["Half a story."] and not self.is_writing(),
                   "the other half")
        asked = self.js("return asked")
        self.assertEqual(asked["messages"][1:], [{"role": "assistant", "content": "Half"}])
        self.assertTrue(asked["continue_final_message"])
        self.assertEqual(self.all(".note button"), [])

    def test_an_answer_that_is_cut_is_continued(self):
        def ask_within(n):
            self.click("#new")
            self.click("#adjust")
            for field, value in zip(self.all("#fields input"), (0, n)):
                field.clear()
                field.send_keys(str(value), Keys.TAB)
            self.click("#settings-close")
            self.ask("Tell me a story.")

        def answer():
            return self.texts()[1]
        ask_within(24)
        whole = answer()
        self.assertIn("cut off here", self.find(".assistant .note").text)
        ask_within(8)
        self.picture("continue")
        for n in (16, 24):
            before = answer()
            self.click(".note button")
            self.until(lambda: len(answer()) > len(before) and not self.is_writing(), "more")
            self.assertRegex(self.find(".message:last-child .figures").text, f"^{n} tokens")
        self.assertEqual(answer(), whole)

    # ---- tabs and restarts ----

    def other_tab(self, path=""):
        self.driver.switch_to.new_window("tab")
        self.go(path)
        return self.driver.current_window_handle

    def test_two_tabs(self):
        self.stub("one")
        self.ask("In both.")
        shared = self.js("return location.hash")
        other = self.other_tab(shared)
        self.assertEqual(self.texts(), ["In both.", "one"])
        self.stub("two")
        self.ask("From the second.")
        self.driver.switch_to.window(self.window)
        self.until(lambda: len(self.texts()) == 4, "the other tab's messages")
        self.driver.switch_to.window(other)
        self.click("#new")
        self.stub("three")
        self.ask("Only in the second.")
        self.driver.switch_to.window(self.window)
        self.until(lambda: len(self.all("#chats li")) == 2, "the other tab's conversation")
        self.stub("four")
        self.ask("From the first.")
        self.driver.switch_to.window(other)
        self.go(shared)
        expected = ["In both.", "one", "From the second.", "two", "From the first.", "four"]
        self.until(lambda: self.texts() == expected, "all messages")
        self.assertEqual(sorted(b.text for b in self.all(".chat")), ["In both.", "Only in the second."])

    def test_both_tabs_write_at_once(self):
        self.stub("one")
        self.ask("Begin.")
        shared = self.js("return location.hash")
        self.gate.allow(0)
        self.write("First tab.")
        self.until(self.is_writing, "an answer")
        other = self.other_tab(shared)
        self.write("Second tab.")
        self.until(self.is_writing, "an answer")
        self.gate.allow(None)
        self.until(lambda: not self.is_writing(), "the end")
        self.driver.switch_to.window(self.window)
        self.until(lambda: not self.is_writing(), "the end")
        self.driver.switch_to.window(other)
        self.go(shared)
        said = self.driver.execute_async_script("""
            const done = arguments[0], opening = indexedDB.open("tern");
            opening.onsuccess = () => {
                const all = opening.result.transaction("chats").objectStore("chats").getAll();
                all.onsuccess = () => done(all.result.flatMap(chat => Object.values(chat.nodes))
                    .map(node => [node.role, node.content, node.error || ""]));
            };""")
        self.assertEqual(sorted(content for role, content, _ in said if role == "user"),
                         ["Begin.", "First tab.", "Second tab."])
        answers = [(content, error) for role, content, error in said if role == "assistant"]
        self.assertEqual(len(answers), 3)
        for content, error in answers:
            self.assertTrue(content.strip())
            self.assertEqual(error, "")

    def test_the_server_restarts_in_the_middle(self):
        self.gate.allow(6000)
        self.write("Tell me a story.")
        self.until(lambda: len(self.texts()) == 2 and self.texts()[1].strip(), "the first words")
        self.server.stop()
        self.gate.target = None
        self.gate.cut()
        self.wait_answer(2)
        self.assertIn("went away", self.find(".note.error").text)
        self.assertTrue(self.texts()[1].strip())
        self.until(lambda: self.find("#banner").is_displayed(), "the banner")
        self.picture("gone")
        self.write("Are you there?")
        self.wait_answer(4)
        self.assertIn("Your message is kept", self.all(".note.error")[-1].text)
        type(self).server = Server(*self.FLAGS)
        self.gate.target = self.server.port
        self.until(lambda: not self.find("#banner").is_displayed(), "the banner's end")
        self.click(".message:last-child .note button")
        self.until(lambda: not self.all(".message:last-child .note.error") and
                   not self.is_writing(), "an answer")
        self.assertEqual(len(self.texts()), 4)
        self.assertTrue(self.texts()[3].strip())
        self.driver.refresh()
        self.wait_ready()
        self.assertEqual(self.texts()[2], "Are you there?")

    def test_a_browser_that_keeps_nothing(self):
        own = self.driver
        self.driver = start_driver(self.downloads, **{
            "profile.default_content_setting_values": {"cookies": 2}})
        try:
            self.go()
            self.assertIn("keeps nothing", self.find("#place").text)
            self.ask("Tell me a story.")
            self.assertTrue(self.texts()[1].strip())
            self.assertEqual(len(self.all("#chats li")), 1)
        finally:
            self.driver.quit()
            self.driver = own

    # ---- files and keys ----

    def test_file_round_trip_with_terminal(self):
        self.load(SHOWCASE)
        self.ask("Thanks.")
        self.click("#export")
        path = os.path.join(self.downloads, "How-does-ternary-arithmetic-save-memory.json")
        self.until(lambda: os.path.exists(path), "the file")
        self.ok("chat", command.model(), "--session", path, stdin=b"Go on.\n")
        self.click("#new")
        self.find("#file").send_keys(path)
        self.wait_answer(8)
        self.assertEqual(self.texts()[6], "Go on.")
        with open(path, "rb") as f:
            damaged = f.read().replace(b"Thanks", b"Thinks")
        with open(path, "wb") as f:
            f.write(damaged)
        self.find("#file").send_keys(path)
        self.until(lambda: "damaged" in self.find("#banner").text, "the message")
        self.assertEqual(len(self.all("#chats li")), 2)
        os.remove(path)

    def test_a_conversation_is_deleted(self):
        self.load(SHOWCASE)
        self.js("document.querySelector('#chats .icon').click()")
        self.click("#ask-delete button[value=keep]")
        self.assertEqual(len(self.all("#chats li")), 1)
        self.js("document.querySelector('#chats .icon').click()")
        self.check_axe("a question")
        self.click("#ask-delete button[value=delete]")
        self.until(lambda: not self.all("#chats li"), "no conversation")
        self.driver.refresh()
        self.wait_ready()
        self.assertEqual(self.all("#chats li"), [])

    def test_a_key(self):
        with Server(env=command.environment(TERN_API_KEY="secret")) as server, \
                self.in_front_of(server):
            self.driver.get(self.url)
            for n_times, key in enumerate(("wrong", "secret"), 1):
                self.until(lambda n=n_times: self.n_questions_for_key() == n, "the question")
                self.check_axe("the key")
                self.find("#key").send_keys(key)
                self.click("#ask-key button")
            self.wait_ready()
            self.ask("Tell me a story.")
            self.assertTrue(self.texts()[1].strip())
            self.assertFalse(self.all(".note.error"))

    def test_models_are_chosen(self):
        folder = command.scratch("no-template")
        shutil.copytree(command.DEMO, folder)
        path = os.path.join(folder, "tokenizer_config.json")
        config = command.read_json(path)
        del config["chat_template"]
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        plain = command.scratch("plain.tern")
        self.ok("convert", folder, "-o", plain)
        with Server(models=[command.model(), plain]) as server, self.in_front_of(server):
            self.go()
            self.assertEqual([o.text for o in self.all("#model option")], ["model0", "plain"])
            self.find("#model").send_keys("plain")
            self.until(lambda: "no chat template" in self.find(".welcome").text, "the other model")
            self.ask("Once upon a time there was a")
            self.assertTrue(self.texts()[1].strip())
            self.assertEqual(self.find(".message.assistant h2").get_attribute("textContent"), "plain")
            self.driver.refresh()
            self.wait_ready()
            self.assertEqual(self.find("#model").get_attribute("value"), "plain")
        self.until(lambda: self.opens(self.js("return location.href")), "the server")
        self.driver.refresh()
        self.wait_ready()   # of a server without that model
        self.click("#export")
        self.until(lambda: "plain" in self.find("#banner").text, "the message")


if __name__ == "__main__":
    command.main()
