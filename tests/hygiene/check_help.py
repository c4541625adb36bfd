#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The README and the examples use only commands and flags that the program has.

usage: check_help.py SOURCE_DIR TERN"""
import os
import re
import subprocess
import sys

from common import finish, planted, read

FILES = ("README.md", "bench/README.md", "convert/README.md", "dist/README.md",
         "src/server/README.md", "dist/packaging/EXAMPLES.txt",
         "dist/run-demo.sh")
# An invocation: "tern", "./tern", ".\tern.exe", "build/release/tern", then words.
CALL = re.compile(r"(?:^|[\s`$/\\])tern(?:\.exe)? ([^`\n]*)")


def output(*arguments):
    return subprocess.run([TERN, *arguments], check=True, text=True, stdout=subprocess.PIPE,
                          stderr=subprocess.DEVNULL).stdout


def calls(text):
    """Commands in code: indented or fenced lines and text between backticks."""
    fenced = "\n".join(re.findall(r"^```\w*\n(.*?)^```", text, re.MULTILINE | re.DOTALL))
    spans = "\n".join(re.findall(r"`([^`\n]+)`", re.sub(r"^```.*?^```", "", text,
                                                        flags=re.MULTILINE | re.DOTALL)))
    indented = "\n".join(re.findall(r"^ {2,}(.*)$", text, re.MULTILINE))
    for block in (fenced, spans, indented):
        for line in block.splitlines():
            for words in CALL.findall(line.split("#")[0]):
                yield words.split("   ")[0].split()  # a remark may follow


def check(root):
    found = []
    for path in FILES:
        if not os.path.exists(os.path.join(root, path)):
            continue
        for words in filter(None, calls(read(root, path))):
            command = words[0] if words[0] in COMMANDS else "run"
            if words[0] not in COMMANDS and re.fullmatch(r"[a-z]+", words[0]):
                found.append(f"{path}: 'tern {words[0]}' is not a command")
            if words[0] == "help" and len(words) > 1 and words[1] not in NAMED:
                found.append(f"{path}: 'tern help' has no {words[1]}")
            for flag in re.findall(r"(?:^|\s)(--[a-z][a-z-]*)", " ".join(words)):
                if flag not in FLAGS[command]:
                    found.append(f"{path}: 'tern {command}' has no {flag}")
    return found


TERN = sys.argv[2]
COMMANDS = re.findall(r"^  tern ([a-z]+) ", output("help"), re.MULTILINE)
TOPICS = re.search(r"tern help TOPIC: (.*)", output("help")).group(1).split(", ")
NAMED = COMMANDS + TOPICS + ["COMMAND"]
FLAGS = {name: set(re.findall(r"--[a-z][a-z-]*", output("help", name))) | {"--version", "--help"}
         for name in COMMANDS}
planted({"README.md": "`tern run -p x --no-such` and `tern juggle x`\n\n"
                      "`tern help memory`, `tern help run`, `tern help cooking`\n\n"
                      "```\n$ tern --prompt x --temp 1\ntern info --temp 1\n```\n"
                      "The tern --not-code is a bird.\n"}, check,
        expected=["'tern run' has no --no-such", "'tern juggle' is not a command",
                  "'tern info' has no --temp",
                  "'tern help' has no cooking"],
        clean=["has no --prompt", "help' has no memory", "help' has no run", "run' has no --temp", "not-code"])
finish("help", check(sys.argv[1]))
