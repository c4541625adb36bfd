# SPDX-License-Identifier: MIT
"""A real Chromium, driven by Selenium, for the tests of the page.

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

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), os.pardir))
import command
from gate import Gate
import serving

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
