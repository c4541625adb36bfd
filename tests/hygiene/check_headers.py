#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every public header compiles alone, without warnings, as C11 and as C++.
usage: check_headers.py SOURCE_DIR C_COMPILER"""
import os
import subprocess
import sys

from common import c_files, finish, planted

LANGUAGES = (("c", "-std=c11"), ("c++", "-std=c++11"))


def check(root):
    found = []
    for path in c_files(root, ["include"]):
        name = os.path.relpath(path, "include")
        for language, standard in LANGUAGES:
            result = subprocess.run(
                [COMPILER, "-x", language, standard, "-pedantic", "-Wall", "-Wextra", "-Werror",
                 "-fsyntax-only", "-I", os.path.join(root, "include"), "-"],
                input=f'#include "{name}"\n#include "{name}"\nextern int unused;\n', text=True,
                stdout=subprocess.PIPE, stderr=subprocess.STDOUT)
            if result.returncode != 0:
                found.append(f"{path} as {language}:\n{result.stdout}")
    return found


COMPILER = sys.argv[2]
planted({"include/tern/bad_c.h": "typedef undeclared_type thing;\n",
         "include/tern/bad_cxx.h": "struct s;\nint f(struct s *class);\n",
         "include/tern/good.h": "#ifndef G\n#define G\nint g(void);\n#endif\n"}, check,
        expected=["bad_c.h as c:", "bad_cxx.h as c++:"],
        clean=["bad_cxx.h as c:", "good.h"])
finish("headers", check(sys.argv[1]))
