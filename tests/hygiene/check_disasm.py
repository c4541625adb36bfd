#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The ternary decode kernels multiply nothing: no vector multiplication or dot product anywhere in
their object files (ternary_<isa>.c: kernels, their tables, helpers, inlined or not), no scalar one
but 64-bit products (addresses), and no call that leaves the file but to memset and memcpy.
Every gemv_{t2,r2,c2}_i8 row of kern_list.h for the architecture must be among them.
usage: check_disasm.py LIBRARY OBJDUMP C_COMPILER x86_64|aarch64 KERN_LIST"""
import os
import re
import subprocess
import sys

from common import MEMBER, finish, planted

KERNEL_FILE = re.compile(r"ternary_\w+\.c\.(o|obj)$")
KERNEL = re.compile(r"tn_gemv_(t2|r2|c2)_i8_\w+")
VECTOR = {
    "x86_64": re.compile(r"v?pmul\w+|v?pmadd\w+|vpdp\w+|vp4dp\w+|v?mul[sp][sdh]|v?dpp[sd]|"
                         r"vf(n?m(add|sub)|c?mul|c?madd)\w*|vpmadd\w+|vgf2p8mul\w+|v?pclmul\w+|tdp\w+|vdpbf\w+"),
    "aarch64": re.compile(r"f?ml[as]l?2?b?t?|f?n?mulx?|f?n?m(add|sub)|[su]ml[as]l2?|[su]mull2?|pmull?2?|"
                          r"sq[r]?d?ml\w+|sqr?dmul\w+|(us|su|[su])dot|(us|[su])mmla|bf\w*(dot|mmla|mlal\w*)"),
}
# Sums and inputs have 32 bits and less; addresses are 64-bit or, on Arm, unsigned widening
# products.
SCALAR = {
    "x86_64": re.compile(r"i?mul[bwlq]?|mulx"),
    "aarch64": re.compile(r"mul|m(add|sub|neg)|s(mull|mulh|maddl|msubl|mnegl)"),
}
ADDRESS = {
    "x86_64": re.compile(r".*%r([a-ds][xip]|bp|\d+)"),
    "aarch64": re.compile(r"x\d+, x\d+, x\d+.*"),
}
VECTOR_OPERAND = re.compile(r"\b[vqdshbz]\d+\b")
CALL = {"x86_64": re.compile(r"call[lq]?"), "aarch64": re.compile(r"blr?")}
# memset, memcpy, their hardened variants, and the probe of large frames on Windows.
LEAVES = {"memset", "memcpy", "__memset_chk", "__memcpy_chk", "__stack_chk_fail",
          "___chkstk_ms"}


def functions(library):
    """(member, function, [(mnemonic, operands)], called symbols) of the decode kernels' files."""
    out = subprocess.run([OBJDUMP, "-dr", "--no-show-raw-insn", library], check=True, text=True,
                         stdout=subprocess.PIPE).stdout
    member, current = "", None
    for line in out.splitlines():
        head = MEMBER.match(line)
        name = re.match(r"[0-9a-f]+ <(\S+)>:$", line)
        code = re.match(r"\s+[0-9a-f]+:\s+(?:(?:rep|repz|lock|bnd|notrack|\{evex\}|\{vex\}) )*"
                        r"([a-z][\w.]*)\s*(.*)", line)
        moved = re.match(r"\s+[0-9a-f]+:\s+(R_\w+|IMAGE_REL_\w+)\s+(\S+)", line)
        if head or name:
            if current and KERNEL_FILE.search(member):
                yield (member,) + current
            current = (name.group(1), [], []) if name else None
            if head:
                member = os.path.basename(head.group(1))
        elif moved and current and current[1]:
            current[2].append((current[1][-1][0], moved.group(2)))
        elif code and current:
            current[1].append((code.group(1), code.group(2).split("#")[0].strip()))
    if current and KERNEL_FILE.search(member):
        yield (member,) + current


def check_function(member, function, code, calls):
    found = []
    for name, operands in code:
        is_vector = ARCH == "x86_64" or VECTOR_OPERAND.search(operands)
        is_scalar = SCALAR[ARCH].fullmatch(name) and not ADDRESS[ARCH].fullmatch(operands)
        if is_vector and VECTOR[ARCH].fullmatch(name) or is_scalar:
            found.append(f"{member}: {function}: {name} {operands}")
    for name, symbol in calls:
        symbol = re.sub(r"[-+]0x[0-9a-f]+$", "", symbol)
        if CALL[ARCH].fullmatch(name) and not (symbol in LEAVES or symbol.startswith(".text")):
            found.append(f"{member}: {function}: calls {symbol}")
    return found


def expected_kernels(kern_list):
    """The decode kernels of kern_list.h for this architecture."""
    arch, found = "", set()
    with open(kern_list, encoding="utf-8") as f:
        for line in f:
            if line.startswith(("#if", "#elif")):
                arch = line
            elif line.startswith("#endif"):
                arch = ""
            row = re.match(r"TN_KERN\((gemv_(?:t2|r2|c2)_i8),\s*(\w+)", line)
            if row and (not arch or f"TN_ARCH_{ARCH.upper()}" in arch):
                found.add(f"tn_{row.group(1)}_{row.group(2)}")
    return found


def check_library(library, kern_list):
    found, seen = [], set()
    for member, function, code, calls in functions(library):
        seen.update(KERNEL.findall(function) and [function])
        found += check_function(member, function, code, calls)
    found += [f"{k} is not in a ternary_<isa>.c file"
              for k in sorted(expected_kernels(kern_list) - seen)]
    return found


VECTOR_PLANT = {"x86_64": "pmaddubsw %xmm0, %xmm1", "aarch64": "smlal v0.8h, v1.8b, v2.8b"}
SCALAR_PLANT = {"x86_64": "imul %ecx, %ecx", "aarch64": "mul w9, w9, w9"}
ADDRESS_PLANT = {"x86_64": "imul $640, %rdx, %rcx", "aarch64": "madd x9, x8, x9, x10"}
PLANT = """
extern void other(void);
static __attribute__((noinline)) void helper(void) { __asm__ volatile("%s"); }
void tn_gemv_t2_i8_a(void);
void tn_gemv_t2_i8_a(void) { helper(); __asm__ volatile(""); }
void tn_gemv_r2_i8_a(void);
void tn_gemv_r2_i8_a(void) { __asm__ volatile("%s"); }
void tn_gemv_c2_i8_a(void);
void tn_gemv_c2_i8_a(void) { other(); __asm__ volatile("%s"); }
"""
LIST = "TN_KERN(gemv_t2_i8, a, 0)\nTN_KERN(gemv_r2_i8, a, 0)\nTN_KERN(gemv_r2_i8, missing, 0)\n"


def check_planted(root):
    source = os.path.join(root, "plant.c")
    obj, library = os.path.join(root, "ternary_a.c.o"), os.path.join(root, "plant.a")
    subprocess.run([COMPILER, "-O1", "-c", source, "-o", obj], check=True)
    subprocess.run(["ar", "rcs", library, obj], check=True)
    return check_library(library, os.path.join(root, "kern_list.h"))


LIBRARY, OBJDUMP, COMPILER, ARCH, KERN_LIST = sys.argv[1:6]
SCALAR_NAME, ADDRESS_NAME = SCALAR_PLANT[ARCH].split()[0], ADDRESS_PLANT[ARCH].split()[0]
planted({"plant.c": PLANT % (VECTOR_PLANT[ARCH], SCALAR_PLANT[ARCH], ADDRESS_PLANT[ARCH]),
         "kern_list.h": LIST},
        check_planted,
        [f"helper: {VECTOR_PLANT[ARCH].split()[0]}", f"tn_gemv_r2_i8_a: {SCALAR_NAME}",
         "tn_gemv_c2_i8_a: calls other", "tn_gemv_r2_i8_missing is not in"],
        clean=[f"tn_gemv_c2_i8_a: {ADDRESS_NAME}", "tn_gemv_r2_i8_a is not in"])
finish("multiplication in decode kernels", check_library(LIBRARY, KERN_LIST))
