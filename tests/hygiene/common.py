# SPDX-License-Identifier: MIT
"""Helpers of the hygiene checks.

A check is a function from a folder (or file) to a list of violations.  Each script first shows
that its check detects planted violations, so that a broken check fails, and then runs it on the
tree."""
import os
import re
import subprocess
import sys
import tempfile

# The line with which objdump begins a member: "x.o:  file format", of LLVM "lib.a(x.o): file
# format".
MEMBER = re.compile(r"(?:.*\()?([^\s()]+)\)?:\s+file format")
C_FOLDERS = ("include", "src", "sysinfo", "convert")


def planted(files, check, expected, clean=()):
    """Write `files` (path -> text) into a scratch tree; every string of `expected` must occur in
    what `check` reports there, and none of `clean` may."""
    with tempfile.TemporaryDirectory() as root:
        for path, text in files.items():
            full = os.path.join(root, path)
            os.makedirs(os.path.dirname(full), exist_ok=True)
            with open(full, "w", encoding="utf-8") as f:
                f.write(text)
        found = "\n".join(check(root))
    for word in expected:
        if word not in found:
            sys.exit(f"self-check failed: the planted violation '{word}' was not found in:\n{found}")
    for word in clean:
        if word in found:
            sys.exit(f"self-check failed: '{word}' is not a violation, but was reported:\n{found}")


def finish(name, violations):
    """Print the violations and end with 1 if there are any."""
    for line in violations:
        print(line)
    print(f"{name}: {len(violations)} violations")
    sys.exit(1 if violations else 0)


def c_files(root, folders=C_FOLDERS):
    """Relative paths of the .c and .h files under `folders`, sorted."""
    found = []
    for folder in folders:
        for where, _, names in os.walk(os.path.join(root, folder)):
            found += [os.path.relpath(os.path.join(where, n), root)
                      for n in names if n.endswith((".c", ".h"))]
    return sorted(p.replace(os.sep, "/") for p in found)


def read(root, path):
    with open(os.path.join(root, path), encoding="utf-8") as f:
        return f.read()


def project_files(root):
    """The project's files: git's list if there is one, else everything except build folders."""
    try:
        out = subprocess.run(["git", "-C", root, "ls-files", "-z"], check=True,
                             stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
        listed = [p for p in out.decode().split("\0") if p]
        if listed:
            return sorted(p for p in listed if os.path.isfile(os.path.join(root, p)))
    except (OSError, subprocess.CalledProcessError):
        pass
    found = []
    for where, folders, names in os.walk(root):
        folders[:] = [d for d in folders if d not in (".git", "build", "__pycache__")]
        found += [os.path.relpath(os.path.join(where, n), root) for n in names]
    return sorted(found)


STRIP = re.compile(r'//[^\n]*|/\*.*?\*/|"(?:\\.|[^"\\\n])*"|\'(?:\\.|[^\'\\\n])*\'', re.DOTALL)


def code_only(text):
    """C source without comments and the content of literals; line numbers stay."""
    return STRIP.sub(lambda m: '""' if m.group()[0] in "\"'" else "\n" * m.group().count("\n"), text)
