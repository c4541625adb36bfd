#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Outside the kernel files of an instruction set there is no instruction above the baseline: no
VEX or EVEX encoding, no tile and nothing newer than SSE2 on x86-64, no dot product or matrix
instruction on Arm.  One such instruction in common code would stop the program on old machines.
usage: check_isa.py LIBRARY OBJDUMP C_COMPILER x86_64|aarch64"""
import os
import re
import subprocess
import sys

from common import MEMBER, finish, planted

KERNEL_FILE = re.compile(r"_(ssse3|avx2|avxvnni|avx512|amx|neon|dotprod|i8mm)\.")
ABOVE = {
    "x86_64": re.compile(r"v[a-z]\w+|pshufb|pmaddubsw|pabs[bwd]|palignr|pmul(ld|dq|hrsw)|pmov[sz]x\w+|"
                         r"p(min|max)(sb|sd|uw|ud)|round[sp][sd]|blendv\w+|popcnt|crc32\w*|lzcnt|"
                         r"tzcnt|andn|bextr|pdep|pext|mulx|[sr][ahl][rl]x|rorx|"
                         r"tile\w+|tdp\w+|(ld|st)tilecfg"),
    "aarch64": re.compile(r"[su]dot|usdot|[su]mmla|usmmla|bfdot|bfmmla|ld1rq\w*|ptrue|whilelo"),
}
# tzcnt is written by compilers as "rep bsf", which every x86-64 executes.
BASELINE = {"x86_64": {"tzcnt", "verr", "verw"}, "aarch64": set()}


def check_library(library):
    out = subprocess.run([OBJDUMP, "-d", "--no-show-raw-insn", library], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    found, member, seen = [], "", set()
    for line in out.splitlines():
        head = MEMBER.match(line)
        if head:
            member = head.group(1)
            continue
        code = re.match(r"\s+[0-9a-f]+:\s+(?:(?:rep|repz|lock|bnd|notrack) )?(\w+)", line)
        if not code or KERNEL_FILE.search(member):
            continue
        name = code.group(1)
        is_above = ABOVE[ARCH].fullmatch(name) and name not in BASELINE[ARCH]
        if is_above and (member, name) not in seen:
            seen.add((member, name))
            found.append(f"{member}: {name}")
    return found


PLANT = {"x86_64": 'void tn_f(void) { __asm__ volatile("vpaddd %ymm0, %ymm1, %ymm2\\n\\t'
                   'pshufb %xmm0, %xmm1"); }\n',
         "aarch64": '__asm__(".arch armv8.2-a+dotprod\\n\\tsdot v0.4s, v1.16b, v2.16b");\n'}


def check_planted(root):
    source, library = os.path.join(root, "plant.c"), os.path.join(root, "plant.a")
    objects = []
    for name in ("plain", "kernel_avx2"):
        objects.append(os.path.join(root, f"{name}.c.o"))
        subprocess.run([COMPILER, "-c", source, "-o", objects[-1]], check=True)
    subprocess.run(["ar", "rcs", library] + objects, check=True)
    return check_library(library)


LIBRARY, OBJDUMP, COMPILER, ARCH = sys.argv[1:5]
planted({"plant.c": PLANT[ARCH]}, check_planted,
        expected=["plain.c.o: vpaddd", "plain.c.o: pshufb"] if ARCH == "x86_64" else ["plain.c.o: sdot"],
        clean=["kernel_avx2"])
finish("isa", check_library(LIBRARY))
