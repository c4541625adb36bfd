#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No file over 20 MB, no path of somebody's machine, no address of an unexpected host, a line with
the licence in every source file, and no line of code over 100 columns but for strings of tests,
and no file of C over 600 lines.
usage: check_files.py SOURCE_DIR"""
import os
import re
import sys

from common import finish, planted, project_files

LIMIT_BYTES = 20 * 1000 * 1000
LIMIT_LINES = 600
LIMIT_COLUMNS = 100
SOURCE = (".c", ".h", ".cmake", ".sh", ".py", ".txt", ".md", ".json", ".yml", ".in", "")
# Data from other projects is not rewritten.
DATA = re.compile(r"(dist/demo|tests/data)/|tests/.*/(corpus|recordings|data|roots)/")
LICENSED = re.compile(r"\.(c|h|cmake|sh|py)$")
CODE = re.compile(r"\.(c|h|cmake|sh|py)$|(^|/)CMakeLists\.txt$")

# Joined from pieces so that this file passes its own check.
MACHINE_PATH = re.compile(r"(?<![\w.~}/-])/(?:" + "|".join(
    ("wo" + "rk", "ro" + "ot", "ho" + "me/[a-z]", "Us" + "ers/[a-z]", "tm" + "p/build")) + r")/")
URL = re.compile(r"\bhttps?://([\w.-]+)")
HOSTS = {"github.com", "git-lfs.github.com", "git-lfs", "huggingface.co", "spdx.org",
         "example.com", "example.org", "localhost", "arxiv.org", "www.unicode.org", "unicode.org", "schemas.microsoft.com", "aka.ms",
         "creativecommons.org", "www.w3.org", "opensource.org", "www.debian.org", "cmocka.org",
         "127.0.0.1", "app.example.com", "evil.example", "app.example.com.evil.example"}
# Names and addresses reserved for documents (RFC 2606, RFC 5737), and this computer's.
RESERVED = re.compile(r"(?:^|\.)example$|^192\.0\.2\.\d+$|^127\.\d+\.\d+\.\d+$")
REGISTRY = re.compile(r"\b(?:deb|ftp|security|snapshot|files|registry|repo1?|proxy|static)\."
                      r"(?:debian|pythonhosted|npmjs|maven|golang|crates)\.\w+|\bpypi\.\w+|"
                      r"\bcrates\.io|\bindex\.crates")


def check(root):
    found = []
    for path in project_files(root):
        full = os.path.join(root, path)
        if os.path.getsize(full) > LIMIT_BYTES:
            found.append(f"{path}: {os.path.getsize(full)} bytes, the limit is {LIMIT_BYTES}")
        if not path.endswith(SOURCE) or DATA.search(path):
            continue
        with open(full, encoding="utf-8", errors="replace") as f:
            text = f.read()
        if LICENSED.search(path) and "SPDX-License-Identifier: MIT" not in text[:400]:
            found.append(f"{path}: no SPDX licence line at the top")
        generated = "enerated by" in text[:600]
        is_code = CODE.search(path) and not generated
        is_test = path.startswith("tests/")
        for number, line in enumerate(text.splitlines(), 1):
            if is_code and len(line) > LIMIT_COLUMNS and not (is_test and '"' in line):
                found.append(f"{path}:{number}: {len(line)} columns, the limit is {LIMIT_COLUMNS}")
            hosts = [h for h in URL.findall(line)
                     if h.lower() not in HOSTS and not RESERVED.search(h.lower())]
            if MACHINE_PATH.search(line):
                found.append(f"{path}:{number}: path of one machine: {line.strip()[:80]}")
            if hosts or REGISTRY.search(line):
                found.append(f"{path}:{number}: host name: {line.strip()[:80]}")
        if is_code and path.endswith((".c", ".h")) and text.count("\n") > LIMIT_LINES:
            found.append(f"{path}: {text.count(chr(10))} lines, the limit is {LIMIT_LINES}")
    return found


planted({
    "a.c": "/* SPDX-License-Identifier: MIT */\n// see /wo" + "rk/main\n",
    "b.md": "[x](ht" + "tp://evil.test/a) but https://github.com/x is fine, /proc/self too\n",
    "c.sh": "# SPDX-License-Identifier: MIT\ncurl py" + "pi.org\n",
    "d.h": "int no_licence;\n",
    "f.c": "/* SPDX-License-Identifier: MIT */\n" + "x" * 101 + "\n",
    "tests/g.c": "/* SPDX-License-Identifier: MIT */\n\"" + "x" * 101 + "\"\n",
    "h.sh": "# SPDX-License-Identifier: MIT\n" + "x" * 101 + "\n",
    "i/CMakeLists.txt": "#" * 101 + "\n",
    "j.md": "x" * 101 + "\n",
    "k.c": "/* SPDX-License-Identifier: MIT */\n" + "int x;\n" * 600,
    "e.txt": "a path like src/home/x or ../wo" + "rk/ is fine\n",
}, check, expected=["a.c:2: path of one", "b.md:1: host", "c.sh:2: host", "d.h: no SPDX",
                    "f.c:2: 101 columns", "h.sh:2: 101 columns", "i/CMakeLists.txt:1: 101 columns",
                    "k.c: 601 lines"],
    clean=["e.txt", "a.c: no", "tests/g.c", "j.md"])
finish("files", check(sys.argv[1]))
