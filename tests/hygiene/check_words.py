#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Plain English in comments, strings and Markdown: none of WORDS, which read as translated, and a
head at the top of every C file that says what the file decides.  words_allowed.txt lists the lines
that mean such a word literally; a line of it that matches nothing any more is a violation, too.
usage: check_words.py SOURCE_DIR"""
import os
import re
import sys

from common import finish, planted, project_files, read

# Folders and files that follow the rules; the list grows until it equals the whole tree.
FINISHED = ("README.md", "bench/", "convert/", "dist/", "include/", "src/README.md", "src/app/",
            "src/arch/", "src/base/", "src/chat/", "src/engine/", "src/file/", "src/grammar/",
            "src/hub/", "src/kern/", "src/measure/", "src/model/", "src/par/", "src/plat/",
            "src/repl/", "src/server/", "src/text/", "sysinfo/", "tests/")
SOURCE = re.compile(r"\.(c|h|cmake|sh|py|js|mjs|html|md|txt)$")
# Recorded and generated text, and the two files that have to contain the words.
DATA = re.compile(r"dist/demo/|tests/golden/data/|tests/data/story/|"
                  r"tests/.*/(corpus|recordings|data|roots)/|"
                  r"tests/manifest/.*\.txt$|tests/hygiene/(check_words\.py|words_allowed\.txt)$|"
                  r"unicode_tables\.c$")
ALLOWED = "tests/hygiene/words_allowed.txt"

# Pattern -> what to write instead.  A space in a pattern also matches the end of a comment line.
WORDS = {
    r"behind\b": "after, following, beyond, past the end of",
    r"stand(s|ing)?\b": "is, appears, represents, precedes",
    r"that (must|can|may) be(?=\s*([.,;:)\"]|\*/|---|(and|or|but)\b))":
        "required, possible, optional",
    r"in work\b": "in progress, current",
    r"asked for\b": "requested, or name the caller",
    r"(who|whoever)\b": "the caller, the client, the thread",
    r"what is\b(?![^.\n]*\?)": "the noun: the remaining bytes, the cached rows",
    r"(g[ia]ves?|giv(e|ing|en)) up\b": "releases, drops, stops",
    r"lies?\b|lay (in|at|on|apart|beside|between)\b": "is, is stored, are far apart in memory",
    r"as (it is|they are)\b": "unchanged, verbatim",
    r"told\b": "distinguished, detected, inferred from",
    r"(take[ns]?|took|taking) back\b": "rolled back, undone",
    r"(go(es|ing)?|went) on\b": "continues",
    r"of (its|their) own\b": "separate, dedicated",
    r"(\d+|[A-Z][A-Z0-9]*_[A-Z0-9_]+|one|two|three|four|eight)( \w+)? at most(?=\s*([.,;:)\"]|\*/))":
        "at most N",
    r"the (least\b|most of\b)": "the minimum, the maximum of",
    r"begins? alike\b": "shares a prefix",
    r"a talk\b|talks\b": "a conversation",
    r"answers? of (an?|the|that|this|its) form\b": "structured output, JSON output",
    r"places for\b": "slots, connections",
    r"simply\b|just\b|obviously\b": "nothing",
}
GAP = r"(?:[ \t]|\n[ \t]*(?:\*|//|#)?[ \t]*)+"
PATTERNS = [(re.compile(r"(?<![\w/-])(?:" + words.replace(" ", GAP) + r")(?!-\w)", re.IGNORECASE),
             better)
            for words, better in WORDS.items()]

# The head without the line of the licence: lines and characters of text.
HEAD_LINES = 12
HEAD_CHARACTERS = 90


def head_problem(text):
    """What is wrong with the comment that a C file begins with, or None."""
    comment = re.match(r"/\*(.*?)\*/", text, re.DOTALL)
    lines = comment.group(1).splitlines()[1:] if comment else []
    lines = [line.strip(" \t*") for line in lines]
    lines = [line for line in lines if line]
    if len(lines) > HEAD_LINES:
        return f"a head of {len(lines)} lines of text, the limit is {HEAD_LINES}"
    if len(" ".join(lines)) < HEAD_CHARACTERS:
        return f"a head of {len(' '.join(lines))} characters, the minimum is {HEAD_CHARACTERS}"
    return None


def words_of(path, text, allowed, used):
    """Violations of WORDS; lines in `allowed` pass and are added to `used`."""
    lines = text.splitlines()
    for regex, better in PATTERNS:
        for match in regex.finditer(text):
            number = text.count("\n", 0, match.start()) + 1
            entry = (path, lines[number - 1].strip())
            if entry in allowed:
                used.add(entry)
            else:
                found = re.sub(r"\s+(\*|//|#)?\s*", " ", match.group())
                yield f"{path}:{number}: '{found}': write {better}"


def read_allowed(root):
    """Entries 'PATH: LINE' of words_allowed.txt; # begins a comment."""
    if not os.path.exists(os.path.join(root, ALLOWED)):
        return set()
    rows = [row.split(": ", 1) for row in read(root, ALLOWED).splitlines()
            if row.strip() and not row.startswith("#")]
    return {(path, line.strip()) for path, line in rows}


def check(root):
    found, used, allowed = [], set(), read_allowed(root)
    for path in project_files(root):
        if not path.startswith(FINISHED) or not SOURCE.search(path) or DATA.search(path):
            continue
        text = read(root, path)
        found += words_of(path, text, allowed, used)
        problem = head_problem(text) if path.endswith((".c", ".h")) else None
        if problem:
            found.append(f"{path}:1: {problem}")
    found += [f"{ALLOWED}: no such line any more: {path}: {line}"
              for path, line in sorted(allowed - used) if path.startswith(FINISHED)]
    return found


HEAD = ("/* SPDX-License-Identifier: MIT\n *\n * Decides which of the planted violations are found;"
        " called by the check\n * itself, and knows nothing of the real tree.\n */\n")
planted({
    "tests/hygiene/a.c": HEAD + "/* The rest is behind\n * it, all that must\n * be. */\n",
    "tests/hygiene/b.c": HEAD + 'print("4 rows at most");\nfiles that must be mapped\n',
    "tests/hygiene/c.md": "A proxy stands before it.\nWhat is the answer? behind-the-scenes\n",
    "tests/hygiene/d.h": "/* SPDX-License-Identifier: MIT\n *\n * Short.\n */\n",
    "tests/hygiene/e.h": HEAD.replace("*\n", "*\n" + " * A line.\n" * 12, 1),
    ALLOWED: "# literal\ntests/hygiene/c.md: A proxy stands before it.\n"
             "tests/hygiene/c.md: the house stands\n",
    "elsewhere/f.md": "simply behind\n",
}, check,
    expected=["a.c:6: 'behind'", "a.c:7: 'that must be'", "b.c:6: '4 rows at most'",
              "d.h:1: a head of 6 ch",
              "e.h:1: a head of 14 lines", "no such line any more: tests/hygiene/c.md: the house"],
    clean=["b.c:7", "c.md:1", "c.md:2", "a.c:1", "b.c:1", "elsewhere"])
finish("words", check(sys.argv[1]))
