#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Includes go down only: every #include against the table of the layers, OS headers only where the
OS is, third-party headers only in the files that wrap them, no library code that prints, ends the
program or goes round the allocator, and nothing that writes to the environment.   usage: check_layers.py SOURCE_DIR"""
import re
import sys

from common import c_files, code_only, finish, planted, read

ALL = "*"
# layer -> (layers it may include, public headers it may include)
TABLE = {
    "include": (set(), ALL),
    "base": ({"base"}, {"status"}),
    "plat": ({"base", "plat"}, {"status"}),
    "kern": ({"base", "kern"}, {"matrix_layouts"}),
    "par": ({"base", "plat", "par"}, {"status"}),
    "arch": ({"base", "arch"}, {"model_format", "status"}),
    "file": ({"base", "plat", "arch", "file"}, {"model_format", "status"}),
    # The tokenizer's tables are stored ready to use in the file, so text knows their format.
    "text": ({"base", "text"}, {"chat", "tokenizer", "model_format", "status"}),
    "grammar": ({"base", "grammar"}, {"grammar", "tokenizer", "status"}),
    "chat": ({"base", "plat", "text", "grammar", "chat"}, ALL),
    "model": ({"base", "kern", "par", "arch", "file", "model"}, {"model_format", "status"}),
    "engine": ({"base", "plat", "kern", "par", "arch", "file", "text", "grammar", "model",
                "engine"}, ALL),
    "measure": ({"base", "plat", "kern", "par", "arch", "file", "text", "grammar", "model",
                 "engine", "measure"}, ALL),
    "repl": ({"base", "plat", "repl"}, {"status"}),
    "server": ({"base", "plat", "server"}, ALL),
    "hub": ({"base", "plat", "hub"}, {"status", "version"}),
    "app": ({"base", "plat", "repl", "server", "hub", "app"}, ALL),
    "sysinfo": ({"base", "plat", "sysinfo"}, {"sysinfo", "status"}),
    "convert": ({"base", "plat", "arch", "file", "text", "convert"}, ALL),
}
# Single headers of a layer that is otherwise closed.
EXTRA = {("convert", "kern/pack.h"), ("convert", "kern/bit_planes.h"), ("convert", "kern/blocks.h")}

STANDARD = set("""assert ctype errno fenv float inttypes limits math setjmp stdalign stdarg stdatomic
    stdbool stddef stdint stdio stdlib stdnoreturn string time""".split())
# Third-party and instruction-set headers, and where they may be.
PLACES = {
    "hwloc.h": r"sysinfo/topo_hwloc\.c",
    "utf8proc.h": r"src/(text/unicode|repl/grapheme)\.c",
    "jansson.h": r"((convert|sysinfo|src/app|src/chat|src/grammar|src/hub|src/server)/.*|"
                 r"src/base/json_(dump|load|object)\.[ch])",
    "xxhash.h": r"(convert|src/file|src/text|src/chat|src/engine|src/measure)/.*",
    "malloc.h": r"src/base/alloc\.c",
    "signal.h": r"src/(app|plat)/.*",
    "immintrin.h": r"src/kern/x86/.*",
    "tmmintrin.h": r"src/kern/x86/.*",
    "arm_neon.h": r"src/kern/arm/.*",
}
OS_PLACES = r"(src/plat|sysinfo)/.*"

PRINTS = re.compile(r"\b(v?f?printf|puts|fputs|putchar|perror|exit|_exit|_Exit|quick_exit|abort|"
                    r"system|popen)\s*\(")
ALLOCATES = re.compile(r"\b(malloc|calloc|realloc|aligned_alloc|strdup|strndup)\s*\(")
# Another thread may be reading it.
ENVIRONMENT = re.compile(r"\b(setenv|unsetenv|putenv|clearenv|_w?putenv(?:_s)?|"
                         r"SetEnvironmentVariable[AW]?)\s*\(")
INCLUDE = re.compile(r'^\s*#\s*include\s*([<"])([^">]+)[">]', re.MULTILINE)


def layer_of(path):
    parts = path.split("/")
    return parts[1] if parts[0] == "src" else parts[0]


def include_violation(path, kind, target):
    layer = layer_of(path)
    layers, headers = TABLE[layer]
    if kind == "<":
        if target in PLACES:
            return None if re.fullmatch(PLACES[target], path) else "belongs elsewhere"
        if target.removesuffix(".h") in STANDARD or re.fullmatch(OS_PLACES, path):
            return None
        return "is neither C11 nor in a layer that may talk to the OS"
    first = target.split("/")[0]
    if first == "tern":
        name = target.split("/")[1].removesuffix(".h")
        return None if headers == ALL or name in headers else f"is not for layer {layer}"
    if "/" not in target or first in layers or (layer, target) in EXTRA:
        return None
    return f"goes against the order of the layers (from {layer})"


def check(root):
    found = []
    for path in c_files(root):
        if layer_of(path) not in TABLE:
            found.append(f"{path}: unknown layer '{layer_of(path)}'")
            continue
        text = read(root, path)
        for kind, target in INCLUDE.findall(text):
            why = include_violation(path, kind, target)
            if why:
                found.append(f"{path}: include of {target} {why}")
        code = code_only(text)
        found += [f"{path}: {name}() writes to the environment"
                  for name in ENVIRONMENT.findall(code)]
        if layer_of(path) == "app":
            continue
        calls = PRINTS.findall(code)
        if layer_of(path) == "plat":  # where a fault or a signal ends the program
            calls = [name for name in calls if name not in ("_exit", "exit")]
        if path != "src/base/alloc.c":
            calls += ALLOCATES.findall(code)
        found += [f"{path}: library code calls {name}()" for name in calls]
    return found


planted({
    "src/base/a.c": '#include "plat/plat.h"\n',
    "src/model/b.c": '#include "text/bpe.h"\n#include "tern/tokenizer.h"\n#include "kern/kern.h"\n',
    "src/kern/c.c": "#include <unistd.h>\n#include <stdint.h>\n",
    "src/text/d.c": "#include <utf8proc.h>\n",
    "src/text/unicode.c": "#include <utf8proc.h>\n",
    "sysinfo/e.c": "#include <hwloc.h>\n#include <sys/mman.h>\n",
    "src/engine/f.c": 'int main(void) { /* puts("x"); */ exit (1); }\n',
    "src/file/g.c": "void *p(void) { return malloc(4); }\n",
    "convert/h.c": '#include "kern/pack.h"\n#include "kern/kern.h"\n',
    "src/odd/i.c": "\n",
    "src/app/j.c": 'void f(void) { setenv("A", "b", 1); const char *v = getenv("A"); }\n',
    "sysinfo/k.c": 'void f(void) { _putenv_s("A", "b"); /* putenv(x) */ }\n',
}, check,
    expected=["base/a.c: include of plat/plat.h", "b.c: include of text/bpe.h",
              "b.c: include of tern/tokenizer.h", "c.c: include of unistd.h",
              "d.c: include of utf8proc.h", "e.c: include of hwloc.h", "f.c: library code calls exit",
              "g.c: library code calls malloc", "h.c: include of kern/kern.h", "unknown layer 'odd'",
              "j.c: setenv() writes", "k.c: _putenv_s() writes"],
    clean=["b.c: include of kern/kern.h", "stdint.h", "src/text/unicode.c", "sys/mman.h",
           "calls puts", "kern/pack.h", "getenv()", "k.c: putenv"])

finish("layers", check(sys.argv[1]))
