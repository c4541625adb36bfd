#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""No two files of a folder depend on each other: calls within a folder form a tree, like includes
between folders.  Read from the symbols of the object files, which are more reliable than
includes.

usage: check_circles.py SOURCE_DIR NM C_COMPILER OBJECT_OR_LIBRARY..."""
import os
import re
import subprocess
import sys

from common import c_files, finish, planted

# Intended cycles: files of one folder that reach each other.
KNOWN = [
    # An expression of a template calls macros and filters, which evaluate expressions.
    {f"src/text/jinja/{name}.c" for name in ("call", "eval", "filters", "filters_list",
                                             "statements", "tests")},
]


def read_symbols(paths, sources):
    """Per source file: the symbols that it defines and those that it needs."""
    by_name = {os.path.basename(path): path for path in sources}
    out = subprocess.run([NM, "-A", "-P", *paths], check=True, text=True,
                         stdout=subprocess.PIPE, stderr=subprocess.DEVNULL).stdout
    defined, needed = {}, {}
    for line in out.splitlines():
        # "lib.a[engine.c.o]: name T ..." and ".../engine.c.o: name U"
        fields = re.match(r".*?([^/\[\]]+?\.c)\.(?:o|obj)\]?: (\S+) (\w)", line)
        path = by_name.get(fields.group(1)) if fields else None
        if not path:
            continue
        table = needed if fields.group(3) == "U" else defined if fields.group(3).isupper() else {}
        table.setdefault(path, set()).add(fields.group(2))
    return defined, needed


def edges(defined, needed):
    """file -> {file of the same folder: a symbol that it uses}"""
    home = {}
    for path, names in defined.items():
        for name in names:
            home.setdefault((os.path.dirname(path), name), path)
    graph = {path: {} for path in set(defined) | set(needed)}
    for path, names in needed.items():
        for name in sorted(names):
            other = home.get((os.path.dirname(path), name))
            if other and other != path:
                graph[path].setdefault(other, name)
    return graph


def reachable(graph, start):
    seen, todo = set(), list(graph[start])
    while todo:
        path = todo.pop()
        if path not in seen:
            seen.add(path)
            todo += graph[path]
    return seen


def circles(graph):
    """Groups of files that reach each other."""
    reach = {path: reachable(graph, path) for path in graph}
    groups = {frozenset(b for b in reach[a] if a in reach[b]) for a in graph if a in reach[a]}
    return sorted(groups, key=sorted)


def describe(graph, group):
    parts = [f"{os.path.basename(a)} -> {os.path.basename(b)} ({graph[a][b]})"
             for a in sorted(group) for b in sorted(graph[a]) if b in group]
    return f"{os.path.dirname(min(group))}: circle of {len(group)} files: " + ", ".join(parts)


def check(paths, sources, known):
    graph = edges(*read_symbols(paths, sources))
    found = circles(graph)
    violations = [describe(graph, group) for group in found
                  if not any(group <= entry for entry in known)]
    violations += [f"{', '.join(sorted(entry))}: known as a circle, but there is none any more: "
                   "take it off the list" for entry in known
                   if not any(group <= entry for group in found)]
    return violations


def check_planted(root):
    paths = c_files(root)
    objects = []
    for path in paths:
        objects.append(os.path.join(root, os.path.basename(path) + ".o"))
        subprocess.run([COMPILER, "-c", os.path.join(root, path), "-o", objects[-1]], check=True)
    return check(objects, paths, [{"src/room/e.c", "src/room/f.c"},
                                  {"src/room/g.c", "src/room/h.c"}])


SOURCE_DIR, NM, COMPILER = sys.argv[1:4]
planted({
    "src/room/a.c": "void b(void); void a(void) { b(); }\n",
    "src/room/b.c": "void c(void); void b(void) { c(); }\n",
    "src/room/c.c": "void a(void); void d(void); void c(void) { a(); d(); }\n",
    "src/room/d.c": "void other(void); void d(void) { other(); d(); }\n",
    "src/hall/other.c": "void d(void); void other(void) { d(); }\n",
    "src/room/e.c": "void f(void); void e(void) { f(); }\n",
    "src/room/f.c": "void e(void); void f(void) { e(); }\n",
    "src/room/g.c": "void h(void); void g(void) { h(); }\n",
    "src/room/h.c": "void h(void) { }\n",
}, check_planted,
    expected=["src/room: circle of 3 files: a.c -> b.c (b), b.c -> c.c (c), c.c -> a.c (a)",
              "src/room/g.c, src/room/h.c: known as a circle, but"],
    clean=["d.c", "other.c", "e.c -> f.c", "e.c, "])
finish("circles", check(sys.argv[4:], c_files(SOURCE_DIR), KNOWN))
