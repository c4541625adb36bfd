#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Installs the client libraries that test_clients.py runs, in the versions of clients/, below
$TERN_CLIENTS_DIR: in CI, and with TERN_CLIENTS=1 (TERN_CLIENTS=all: the large ones too). Without
a network nothing fails: missing libraries are skipped with a message."""
import hashlib
import os
import re
import shutil
import subprocess
import sys

HERE = os.path.join(os.path.dirname(os.path.abspath(__file__)), "clients")
FOLDER = os.environ["TERN_CLIENTS_DIR"]
SETS = {"openai2": ["openai2.txt"], "openai3": ["openai3.txt"], "anthropic": ["anthropic.txt"],
        "node": ["package.json", "package-lock.json"], "litellm": ["litellm.txt"]}
LARGE = {"litellm"}
NO_NETWORK = re.compile(r"retrying|connection|timed? ?out|resolve|unreachable|ENOTFOUND|ECONN|"
                        r"ETIMEDOUT|EAI_AGAIN|proxy|SSL|\b50\d\b", re.IGNORECASE)


def stamp_of(name):
    """The inputs of a complete installation."""
    digest = hashlib.sha256(sys.version.encode())
    for file in SETS[name]:
        with open(os.path.join(HERE, file), "rb") as f:
            digest.update(f.read())
    return digest.hexdigest()


def state(name):
    """"complete", the reason why it is not, or "" if it was not attempted."""
    path = os.path.join(FOLDER, name + ".state")
    if not os.path.exists(path):
        return ""
    with open(path, encoding="utf-8") as f:
        stamp, _, text = f.read().partition("\n")
    return text if stamp == stamp_of(name) else ""


def note(name, text):
    with open(os.path.join(FOLDER, name + ".state"), "w", encoding="utf-8") as f:
        f.write(stamp_of(name) + "\n" + text)


def install(name):
    """The output of a failed installer, or None."""
    target = os.path.join(FOLDER, name)
    shutil.rmtree(target, ignore_errors=True)
    os.makedirs(target)
    if name == "node":
        for file in SETS[name]:
            shutil.copy(os.path.join(HERE, file), target)
        argv = ["npm", "ci", "--ignore-scripts", "--no-audit", "--no-fund"]
    else:
        argv = [sys.executable, "-m", "pip", "install", "-q", "--no-deps", "--only-binary=:all:",
                "--disable-pip-version-check", "--target", target,
                "-r", os.path.join(HERE, SETS[name][0])]
    try:
        done = subprocess.run(argv, cwd=target, stdout=subprocess.PIPE, stderr=subprocess.STDOUT,
                              timeout=600, encoding="utf-8", errors="replace")
    except subprocess.TimeoutExpired:
        return "timed out"
    except FileNotFoundError:
        return f"connection impossible: there is no {argv[0]}"
    return None if done.returncode == 0 else done.stdout


def main():
    wanted = os.environ.get("TERN_CLIENTS", "1" if os.environ.get("CI") == "true" else "")
    os.makedirs(FOLDER, exist_ok=True)
    failed = False
    for name in SETS:
        if not wanted or (name in LARGE and wanted != "all") or state(name) == "complete":
            continue
        output = install(name)
        if output is None:
            note(name, "complete")
        elif NO_NETWORK.search(output):
            note(name, "the package registry cannot be reached")
            print(f"skipped: clients {name}: the package registry cannot be reached")
        else:
            failed = True
            print(f"{name}:\n{output}", file=sys.stderr)
    sys.exit(failed)


if __name__ == "__main__":
    main()
