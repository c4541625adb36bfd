#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page in a real Chromium, driven by Selenium.

  TERN_BROWSER=1    run it: needs chromium, chromedriver and the Python package selenium, all of
                    which dist/run-tests.sh page installs
  TERN_AXE=FILE     axe.min.js: the accessibility checks
  TERN_PICTURES=DIR keep the pictures that the tests take"""
import contextlib
import json
import os
import shutil
import sys
import time
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from gate import Gate
import serving
from serving import Server

if os.environ.get("TERN_BROWSER") != "1":
    print("skipped: the page in a browser: TERN_BROWSER=1 asks for it")
    sys.exit(0)

from selenium import webdriver
from selenium.common.exceptions import StaleElementReferenceException, WebDriverException
from selenium.webdriver.chrome.service import Service
from selenium.webdriver.common.by import By
from selenium.webdriver.common.keys import Keys

PATIENCE = float(os.environ.get("TERN_PATIENCE", "120"))   # seconds to wait for an expected change
AXE = os.environ.get("TERN_AXE")
PICTURES = os.environ.get("TERN_PICTURES")
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
SHOWCASE = [
    ("user", "How does ternary arithmetic save memory?"),
    ("assistant", """Every weight is **−1**, **0** or **+1**, so two bits hold one:

1. A product becomes an addition, a subtraction, or nothing.
2. Sixteen weights fit where one 32-bit float was.

| weights | bits each | 2 billion of them |
|---|---:|---:|
| float32 | 32 | 8.0 GB |
| ternary | 2 | 0.5 GB |

```c
sum += w > 0 ? x[i] : w < 0 ? -x[i] : 0;
```
"""),
    ("user", "And what does it cost?"),
    ("assistant", "A model must be *trained* that way; see `tern help convert`. Rounding an ordinary "
                  "model afterwards ruins it."),
]
LONG = [
    ("user", "Explain **everything**, please, with https://example.com/" + "a-long-path/" * 12),
    ("assistant", """# Packing five trits into a byte

A trit has three values, so five of them have 3⁵ = 243, which fit into the 256 of a byte. The waste
is small: 1.6 bits per weight instead of log₂ 3 ≈ 1.585.

> The decoder is a multiplication, not a table.

## Steps

- Multiply by three.
  - The carry is the trit.
  - The remainder continues with `value = (uint8_t)(value * 3)`, which never overflows.
- Repeat five times.

| kernel | instructions per weight | registers | remarks |
|---|---:|---:|---|
| reference | 4 | 3 | portable, and the specification |
| AVX2 | 0.25 | 16 | needs_unaligned_loads |

```python
def unpack(byte):
    \"\"\"Yields the five trits of a byte, the most significant one first, as -1, 0 and +1.\"\"\"
    for _ in range(5):
        byte *= 3
        yield (byte >> 8) - 1
        byte &= 255
```

""" + "A last paragraph follows, and it is long enough to be wrapped at every width. " * 6),
]
SIZES = ((320, 640), (400, 800), (1280, 860), (2560, 1300))   # CSS pixels
# The controls and texts that reach past the sides of the window, or past those of the dialog.
OUTSIDE = """
    const root = document.querySelector("dialog[open]") || document.body;
    const right = root === document.body ? innerWidth : root.getBoundingClientRect().right;
    return [...root.querySelectorAll("button, input, select, textarea, p, kbd, summary, label")]
        .filter(e => e.checkVisibility({visibilityProperty: true}) && !e.closest(".unseen, .skip"))
        .filter(e => {
            const box = e.getBoundingClientRect();
            return box.left < 0 || box.right > right + 1;
        }).map(e => e.outerHTML.slice(0, 200));"""

# The words of a table that take more than one line.
BROKEN_WORDS = """
    return [...document.querySelectorAll(".table td, .table th")].flatMap(cell => {
        const text = cell.firstChild, range = document.createRange();
        return [...text.data.matchAll(/[\\w-]+/g)].filter(({0: word, index}) => {
            range.setStart(text, index);
            range.setEnd(text, index + word.length);
            return range.getClientRects().length > 1;
        }).map(([word]) => word);
    });"""


def start_driver(folder, **preferences):
    options = webdriver.ChromeOptions()
    flags = ["--headless=new", "--disable-dev-shm-usage", "--disable-gpu", "--hide-scrollbars",
             "--window-size=1280,860", "--force-device-scale-factor=1", "--lang=en",
             "--force-prefers-reduced-motion"]
    if os.geteuid() == 0:
        flags.append("--no-sandbox")
    for flag in flags:
        options.add_argument(flag)
    options.add_experimental_option("prefs", {"download.default_directory": folder,
                                            **preferences})
    options.set_capability("goog:loggingPrefs", {"browser": "ALL"})
    driver = webdriver.Chrome(options=options, service=Service(shutil.which("chromedriver")))
    driver.set_script_timeout(PATIENCE)
    return driver


class Browser(serving.TestCase):
    FLAGS = ("--ctx", "512")

    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.downloads = command.scratch("downloads")
        os.makedirs(cls.downloads)
        cls.gate = Gate(cls.server.port)
        cls.driver = start_driver(cls.downloads)

    @classmethod
    def tearDownClass(cls):
        cls.driver.quit()
        cls.gate.close()

    def setUp(self):
        self.url = f"http://127.0.0.1:{self.gate.port}/"
        # The gate limits all answers of a connection that has carried a stream.
        self.gate.cut()
        self.window = self.driver.current_window_handle
        self.clear()
        self.go()

    def tearDown(self):
        for handle in self.driver.window_handles:
            if handle != self.window:
                self.driver.switch_to.window(handle)
                self.driver.close()
        self.driver.switch_to.window(self.window)
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": []})
        self.driver.execute_cdp_cmd("Emulation.clearDeviceMetricsOverride", {})

    # ---- helpers ----

    def until(self, true, what):
        """Waits until true() returns a true value, and returns it."""
        end = time.monotonic() + PATIENCE
        while True:
            with contextlib.suppress(StaleElementReferenceException):
                value = true()
                if value:
                    return value
            self.assertLess(time.monotonic(), end, f"{what}: {self.driver.get_log('browser')}")
            time.sleep(0.02)

    def js(self, text, *args):
        return self.driver.execute_script(text, *args)

    def opens(self, url):
        """False if the gate had cut this connection."""
        with contextlib.suppress(WebDriverException):
            self.driver.get(url)
            return True
        return False

    def clear(self):
        self.until(lambda: self.opens(self.url + "page/icon.svg"), "the server")
        self.driver.execute_async_script("""
            const done = arguments[0], request = indexedDB.deleteDatabase("tern");
            localStorage.clear();
            sessionStorage.clear();
            request.onsuccess = request.onerror = request.onblocked = () => done();""")
        self.driver.get_log("browser")

    def go(self, path=""):
        self.driver.get(self.url + path)
        self.wait_ready()

    def wait_ready(self):
        self.until(lambda: self.js("return document.documentElement.dataset.ready"), "the page")

    def find(self, selector):
        return self.until(lambda: self.all(selector), selector)[0]

    def all(self, selector):
        return self.driver.find_elements(By.CSS_SELECTOR, selector)

    def click(self, selector):
        self.js("arguments[0].click()", self.find(selector))

    def write(self, text, end=True):
        field = self.find("#question")
        self.js("arguments[0].value = arguments[1];"
                "arguments[0].dispatchEvent(new Event('input'))", field, text)
        if end:
            field.send_keys(Keys.ENTER)

    def texts(self):
        return self.js("return [...document.querySelectorAll('.message > .body')]"
                       ".map(body => body.textContent)")

    def is_writing(self):
        return bool(self.all("#send.stop"))

    def wait_answer(self, n_messages):
        self.until(lambda: len(self.all(".message")) == n_messages and not self.is_writing(),
                   f"{n_messages} messages")

    def ask(self, text):
        n = len(self.all(".message"))
        self.write(text)
        self.wait_answer(n + 2)

    def saved(self, messages):
        """The path of a saved conversation."""
        _, known = self.server.get("/page.json")
        model = known["models"][0]
        text = ('{"format": "tern conversation", "version": 1,\n"model": ' +
                json.dumps({"name": model["name"], "hash": model["hash"]}) +
                ',\n"settings": {"max-tokens": "40"},\n"forgotten": 0, "answers": 0,\n"messages": ' +
                json.dumps([{"role": role, "content": content} for role, content in messages]) +
                ",\n").encode()
        _, answer = self.server.post("/checksum", text)
        path = command.scratch("import.json")
        with open(path, "wb") as f:
            f.write(text + b'"checksum": "%s"}\n' % answer["checksum"].encode())
        return path

    def load(self, messages):
        self.find("#file").send_keys(self.saved(messages))
        self.wait_answer(len(messages))

    def stub(self, *pieces, reasoning=()):
        """Fakes the next answer with these pieces; the request is stored in window.asked."""
        self.js("""
            const deltas = arguments[0], real = window.fetch;
            window.fetch = async (where, options) => {
                if (!where.includes("completions"))
                    return real(where, options);
                window.fetch = real;
                window.asked = JSON.parse(options.body);
                const events = deltas.map(delta => JSON.stringify(
                    {choices: [{index: 0, delta, finish_reason: null}]}));
                events.push(JSON.stringify(
                    {choices: [{index: 0, delta: {}, finish_reason: "stop"}]}));
                const text = [...events, "[DONE]"].map(event => `data: ${event}\\n\\n`).join("");
                return new Response(text, {headers: {"Content-Type": "text/event-stream"}});
            };""", [{"reasoning_content": piece} for piece in reasoning] +
                [{"content": piece} for piece in pieces])

    def emulate(self, width, height, dark=False):
        self.driver.execute_cdp_cmd("Emulation.setDeviceMetricsOverride", {
            "width": width, "height": height, "deviceScaleFactor": 1, "mobile": width < 700})
        self.driver.execute_cdp_cmd("Emulation.setEmulatedMedia", {"features": [
            {"name": "prefers-color-scheme", "value": "dark" if dark else "light"}]})

    def picture(self, name):
        if PICTURES:
            os.makedirs(PICTURES, exist_ok=True)
            self.driver.save_screenshot(os.path.join(PICTURES, name + ".png"))

    def axe(self):
        """Findings of axe that are serious or worse."""
        with open(AXE, encoding="utf-8") as f:
            self.js(f.read())
        found = self.driver.execute_async_script(
            "const done = arguments[0]; axe.run(document, {resultTypes: ['violations']})"
            ".then(result => done(result.violations), error => done(String(error)))")
        self.assertIsInstance(found, list, found)
        return [(v["id"], v["impact"], [(n["html"][:200], n["failureSummary"]) for n in v["nodes"]])
                for v in found if v["impact"] in ("serious", "critical")]

    def check_axe(self, where):
        if AXE:
            self.assertEqual(self.axe(), [], where)

    @contextlib.contextmanager
    def in_front_of(self, server):
        """Temporarily replaces the server at this address."""
        self.gate.target = server.port
        self.gate.cut()
        try:
            yield
        finally:
            self.gate.target = self.server.port
            self.gate.cut()

    def n_questions_for_key(self):
        dialog = "document.getElementById('ask-key')"
        return self.js(f"return {dialog}.open ? Number({dialog}.dataset.times) : 0")

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

    # ---- appearance ----

    def test_looks(self):
        for name, width, height, dark in (("page", 1200, 800, False), ("dark", 1200, 800, True),
                                          ("phone", 390, 800, False),
                                          ("phone-dark", 390, 800, True)):
            self.emulate(width, height, dark)
            self.clear()
            self.go()
            self.check_axe(name + ", empty")
            self.picture(name + "-empty")
            self.load(SHOWCASE)
            self.js("document.getElementById('log').scrollTop = 0")
            self.check_axe(name)
            self.assertLessEqual(self.js("return document.documentElement.scrollWidth"), width)
            self.picture(name)
            if width < 700:
                self.click("#menu")
                self.until(lambda: self.find("#new").is_displayed(), "the drawer")
                self.check_axe(name + ", drawer")
                self.picture(name + "-drawer")
                self.click("#shade")

    def look(self, state, scrolled=None):
        """Checks the displayed state at every width, and takes its pictures. `scrolled`: a
        selector, and the part of its height to scroll to."""
        for width, height in SIZES:
            for dark in (False, True):
                name = f"{state}-{width}" + ("-dark" if dark else "")
                self.emulate(width, height, dark)
                if scrolled:
                    self.scroll_to(*scrolled)
                self.check_axe(name)
                self.assertEqual(self.js(OUTSIDE), [], name)
                self.picture(name)

    def scroll_to(self, selector, part):
        """Scrolls, and waits for the event and the next frames, which follow the end."""
        self.driver.execute_async_script("""
            const [selector, part, done] = arguments, area = document.querySelector(selector);
            const frame = then => requestAnimationFrame(then);
            frame(() => {
                area.scrollTop = part * (area.scrollHeight - area.clientHeight);
                frame(() => frame(done));
            });""", selector, part)

    def test_every_width(self):
        self.look("start")
        self.load(SHOWCASE)
        self.look("conversation")
        self.look("conversation-top", scrolled=("#log", 0))
        self.load(LONG)
        for part in (0, 0.5, 1):
            self.look(f"long-{part}", scrolled=("#log", part))
        self.emulate(*SIZES[0])
        self.assertEqual(self.js(BROKEN_WORDS), [])
        self.click("#adjust")
        self.assertEqual(self.js("return document.activeElement.id"), "settings-close")
        self.look("settings")
        self.click("#more summary")
        for part in (0.5, 1):
            self.look(f"settings-{part}", scrolled=("#settings form", part))
        self.click("#settings-close")
        self.click("#new")
        self.ask("A long question. " * 3000)
        self.look("error")

    def test_a_cut_answer_at_every_width(self):
        self.click("#adjust")
        self.all("#fields input")[1].send_keys("24", Keys.TAB)
        self.click("#settings-close")
        self.ask("Tell me a story.")
        self.assertIn("cut off here", self.find(".assistant .note").text)
        self.look("cut")

    def test_other_starts_at_every_width(self):
        demo = command.scratch("demo.tern")
        shutil.copy(command.model(), demo)
        vectors = command.model(command.shared("reference", "models", "tiny-embed-qwen3"))
        for name, model in (("demo", demo), ("no-model", vectors)):
            with Server(models=[model]) as server, self.in_front_of(server):
                self.clear()
                self.go()
                self.look(name)
                for part in ("#model", "#composer"):
                    self.assertEqual(self.find(part).is_displayed(), name == "demo", part)

    def test_picture(self):
        """The picture of the README: an answer of the demo model."""
        model = command.scratch("demo.tern")
        shutil.copy(command.model(), model)
        with Server(models=[model]) as server, self.in_front_of(server):
            self.emulate(1200, 720)
            self.clear()
            self.js("localStorage.setItem('tern.last', JSON.stringify({settings: {seed: 4}}))")
            self.go()
            for question in ("Tell me about a fox.", "Who lives in the forest?"):
                self.ask(question)
                self.click("#new")
            self.ask("Tell me a story.")
            self.ask("Tell me another one.")
            self.assertEqual(len(self.all("#chats li")), 3)
            self.picture("readme")

    @unittest.skipUnless(AXE, "TERN_AXE is not set")
    def test_axe_sees(self):
        self.js("document.querySelector('main').append(document.createElement('button'));"
                "document.querySelector('.hint').style.color = '#eee'")
        self.assertEqual(sorted(finding[0] for finding in self.axe()),
                         ["button-name", "color-contrast"])

    def test_by_keyboard(self):
        self.load(SHOWCASE)
        self.js("document.body.focus(); document.activeElement.blur()")
        seen = []
        for _ in range(60):
            self.driver.switch_to.active_element.send_keys(Keys.TAB)
            seen.append(self.js("const e = document.activeElement;"
                                "return e.id || e.getAttribute('aria-label') || e.className"))
        for name in ("new", "model", "export", "adjust", "log", "question", "send",
                     "Edit this answer", "Another answer"):
            self.assertIn(name, seen)
        self.js("document.getElementById('log').focus()")
        self.driver.switch_to.active_element.send_keys("/")
        self.assertEqual(self.js("return document.activeElement.id"), "question")
        self.driver.switch_to.active_element.send_keys(Keys.CONTROL, Keys.SHIFT, "o")
        self.until(lambda: not self.all(".message"), "a new conversation")


if __name__ == "__main__":
    command.main()
