#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every symbol that libtern.a exports begins with tern_ or tn_.  The library calls no function that
prints, ends the program, starts another one, opens a socket or changes state of the process.
usage: check_symbols.py LIBRARY NM C_COMPILER"""
import os
import re
import subprocess
import sys

from common import finish, planted

OURS = re.compile(r"(tern|tn|TERN|TN)_")
SANITIZER = re.compile(r"__(asan|odr_asan|tsan|ubsan|sanitizer|sancov|start___sancov|stop___sancov)")
FORBIDDEN = set("""printf fprintf vprintf vfprintf puts fputs putchar perror __printf_chk
    __fprintf_chk __vprintf_chk __vfprintf_chk exit _Exit quick_exit system popen fork vfork
    execv execve execvp posix_spawn socket connect bind listen accept getaddrinfo
    setenv unsetenv putenv json_set_alloc_funcs json_set_alloc_funcs2 setlocale""".split())


def check_library(library):
    out = subprocess.run([NM, "-A", "-P", library], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    found = []
    for line in out.splitlines():
        fields = re.match(r".*\[(.*)\]: (\S+) (\w)", line)
        if not fields:
            continue
        member, name, kind = fields.groups()
        name = name.split("@")[0]
        if kind == "U" and name in FORBIDDEN:
            found.append(f"{member}: library code calls {name}")
        elif kind in "TDBRCGSVW" and not OURS.match(name) and not SANITIZER.match(name):
            found.append(f"{member}: exports {name}")
    return found


def check_planted(root):
    obj, library = os.path.join(root, "plant.o"), os.path.join(root, "plant.a")
    subprocess.run([COMPILER, "-c", os.path.join(root, "plant.c"), "-o", obj], check=True)
    subprocess.run(["ar", "rcs", library, obj], check=True)
    return check_library(library)


LIBRARY, NM, COMPILER = sys.argv[1:4]
planted({"plant.c": "void exit(int);\nint naked_name;\nint tern_x; static int local;\n"
                    "int *tn_end(void) { if (naked_name) exit(1); return &local; }\n"},
        check_planted, expected=["exports naked_name", "calls exit"],
        clean=["tern_x", "tn_end", "local"])
finish("symbols", check_library(LIBRARY))
