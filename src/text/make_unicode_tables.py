#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Writes unicode_tables.c: character classes and normalisation as the reference has them.

    make_unicode_tables.py unicode_classes.json > unicode_tables.c

The classes L, N and s come from a list of code point ranges (Unicode 16.0); everything else is
probed from the package `tokenizers` (0.23.3), code point by code point, because its parts follow
different Unicode versions: regular expressions 16.0, its Punctuation about 8, its NFC about 9.
The tables are pinned, so that the Unicode library of a system cannot change token ids.
"""
import json
import sys
import unicodedata

from tokenizers import AddedToken, Regex, Tokenizer, models, normalizers, pre_tokenizers

OTHER, LETTER, NUMBER, SPACE = range(4)
PUNCTUATION, OLD_PUNCTUATION, WORD, MARK, CAPITAL, SMALL, SYMBOL = (4 << i for i in range(7))
TOUCHED = 255
POINTS = [c for c in range(0x110000) if not 0xD800 <= c <= 0xDFFF]
nfc = normalizers.NFC().normalize_str
nfd = normalizers.NFD().normalize_str


def base_classes(path):
    with open(path, encoding="ascii") as f:
        classes = json.load(f)
    table = bytearray(0x110000)
    for name, value in (("L", LETTER), ("N", NUMBER), ("s", SPACE)):
        for first, last in classes[name]:
            for c in range(first, last + 1):
                assert table[c] == OTHER, hex(c)
                table[c] = value
    return table


def blocks_of(points):
    return [points[i:i + 4096] for i in range(0, len(points), 4096)]


def regex_class(pattern):
    """Characters that a regular expression of a normalizer or Split matches."""
    drop = normalizers.Replace(Regex(f"[^{pattern}]"), "")
    return {ord(c) for block in blocks_of(POINTS)
            for c in drop.normalize_str("".join(map(chr, block)))}


def cut_class(pre_tokenizer):
    """Characters that a pre-tokenizer with the behaviour "removed" removes."""
    out = set()
    for block in blocks_of(POINTS):
        pieces = pre_tokenizer.pre_tokenize_str("".join(map(chr, block)))
        kept = {c for piece, _ in pieces for c in piece}
        out |= {c for c in block if chr(c) not in kept}
    return out


def word_class():
    """Characters after which an added token with single_word does not match."""
    tokenizer = Tokenizer(models.BPE({"Y": 0}, []))
    tokenizer.add_tokens([AddedToken("X", single_word=True, normalized=False)])
    out = set()
    for block in blocks_of(POINTS):
        found = tokenizer.encode("".join(f" X{chr(c)}" for c in block))
        starts = {start for id, (start, _) in zip(found.ids, found.offsets) if id}
        out |= {c for i, c in enumerate(block) if 3 * i + 1 not in starts}
    return out


def combining_classes():
    """Combining classes; 0: NFC never changes or composes this starter; TOUCHED: other starters."""
    table = bytearray(0x110000)
    high, low = "\u0301", "\u0334"      # classes 230 and 1
    for c in POINTS:
        known = unicodedata.combining(chr(c))
        pairs = ((high, chr(c)), (chr(c), low), ("\u0345", chr(c)))
        if known and any(nfd(a + b) != a + b for a, b in pairs):
            table[c] = known
    return table


def normalisation():
    classes, decompositions, compositions = combining_classes(), {}, {}
    for c in POINTS:
        if 0xAC00 <= c <= 0xD7A3 or nfd(chr(c)) == chr(c):
            continue
        parts = [int(x, 16) for x in unicodedata.decomposition(chr(c)).split()]
        assert 1 <= len(parts) <= 2 and nfd("".join(map(chr, parts))) == nfd(chr(c)), hex(c)
        decompositions[c] = (parts + [0])[:2]
        if nfc(chr(c)) == chr(c):
            compositions[tuple(parts)] = c
        elif not classes[c]:
            classes[c] = TOUCHED
    seconds = {b for _, b in compositions} | set(range(0x1161, 0x1176)) | set(range(0x11A8, 0x11C3))
    for c in seconds:
        classes[c] = classes[c] or TOUCHED
    return classes, decompositions, compositions


def packed_blocks(table, bits):
    """Blocks of 256 code points, equal ones stored once; -> index, blocks."""
    per_byte, index, blocks, places = 8 // bits, [], [], {}
    for start in range(0, 0x110000, 256):
        block = bytes(sum(table[start + i + k] << (bits * k) for k in range(per_byte))
                      for i in range(0, 256, per_byte))
        if block not in places:
            places[block] = len(blocks)
            blocks.append(block)
        index.append(places[block])
    assert len(blocks) <= 256
    return index, blocks


def print_numbers(type_name, name, numbers, per_line):
    print(f"\nconst {type_name} {name}[{len(numbers)}] = {{")
    for i in range(0, len(numbers), per_line):
        print("    " + " ".join(f"{x}," for x in numbers[i:i + per_line]))
    print("};")


def print_blocks(index, blocks, block_name, name):
    print_numbers("uint8_t", block_name, index, 20)
    print(f"\nconst uint8_t {name}[{len(blocks)}][{len(blocks[0])}] = {{")
    for block in blocks:
        print("    {")
        for i in range(0, len(block), 16):
            print("        " + " ".join(f"0x{b:02X}," for b in block[i:i + 16]))
        print("    },")
    print("};")


def print_count(name, n):
    print(f"\nconst uint32_t {name} = {n};", end="")


def print_triples(name, rows):
    print(f"\nconst struct tn_unicode_pair {name}[] = {{")
    for row in rows:
        print("    {" + ", ".join(f"0x{x:04X}" for x in row) + "},")
    print("};")


def main():
    classes = base_classes(sys.argv[1])
    numeric = cut_class(pre_tokenizers.Sequence([
        pre_tokenizers.Digits(True), pre_tokenizers.Split(Regex(r"\A\p{N}\z"), "removed")]))
    assert numeric == {c for c in POINTS if classes[c] == NUMBER}
    properties = list(classes)
    for bit, members in ((PUNCTUATION, regex_class(r"\p{P}")), (MARK, regex_class(r"\p{M}")),
                         (OLD_PUNCTUATION, cut_class(pre_tokenizers.Punctuation("removed"))),
                         (WORD, word_class()), (CAPITAL, regex_class(r"\p{Lu}\p{Lt}")),
                         (SMALL, regex_class(r"\p{Ll}")), (SYMBOL, regex_class(r"\p{S}"))):
        print(bit, len(members), file=sys.stderr)
        for c in members:
            properties[c] |= bit
    kinds = sorted(set(properties))
    combining, decompositions, compositions = normalisation()

    print("/* SPDX-License-Identifier: MIT")
    print(" *")
    print(" * Generated by make_unicode_tables.py (Unicode 16.0); see unicode.h. */")
    print('#include "text/unicode_tables.h"')
    print_numbers("uint16_t", "tn_unicode_properties", kinds, 16)
    numbers = {kind: i for i, kind in enumerate(kinds)}
    print_blocks(*packed_blocks([numbers[p] for p in properties], 4), "tn_unicode_block",
                 "tn_unicode_kinds")
    print_blocks(*packed_blocks(combining, 8), "tn_unicode_combining_block", "tn_unicode_combining")
    rows = sorted(decompositions)
    print_count("tn_unicode_n_decompositions", len(rows))
    print_triples("tn_unicode_decompositions", [(c, *decompositions[c]) for c in rows])
    print_count("tn_unicode_n_compositions", len(compositions))
    print_numbers("uint16_t", "tn_unicode_compositions",
                  [rows.index(c) for _, c in sorted(compositions.items())], 16)


main()
