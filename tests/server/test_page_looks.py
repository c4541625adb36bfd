#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The page in a browser: how it looks at every width, pictures, keyboard, accessibility."""
import os
import shutil
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from browser import AXE, SHOWCASE, Browser
from serving import Server

from selenium.webdriver.common.keys import Keys

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


class Looks(Browser):
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
