#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/data/splitters: the output of Hugging Face's library `tokenizers` 0.23.3 for the
splitters and normalisers of tern's families, on vocabularies that are trained here.

    pip install tokenizers==0.23.3
    tests/text/make_splitter_goldens.py tests/data/splitters

The vocabularies are trained without a splitter, so that tokens span every possible cut: a wrong
cut changes ids.  `sweeps` are digests of the lengths of pieces (bytes) or of normalised texts,
over all code points and over all short strings of an alphabet; each text counts as u32le(number
of pieces) and u32le(length) per piece, or as u32le(length) and the bytes."""
import hashlib
import itertools
import json
import os
import random
import struct
import sys

from tokenizers import Tokenizer, models, normalizers, pre_tokenizers, trainers

LLAMA3 = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}"
          r"| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+")
QWEN2 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}")
QWEN35 = QWEN2.replace(r"?\p{L}+", r"?[\p{L}\p{M}]+").replace(r"[^\s\p{L}\p{N}]+",
                                                             r"[^\s\p{L}\p{M}\p{N}]+")
SEED_CODER = (r"(?i:'s|'t|'re|'ve|'m|'ll|'d)|[^RN\p{L}\p{N}]?\p{L}+|\p{N}{1}| ?[^\s\p{L}\p{N}RN]+"
              r"|\s*[RN]+|\s+(?!\S)|\s+").replace("RN", "\r\n")
MINICPM5 = LLAMA3.replace(r"\p{N}{1,3}", r"\p{N}+")
WORD_START = r"[^\r\n\p{L}\p{N}]?"
UPPER, LOWER = r"[\p{Lu}\p{Lt}\p{Lm}\p{Lo}\p{M}]", r"[\p{Ll}\p{Lm}\p{Lo}\p{M}]"


def cased_words(tail):
    return f"{WORD_START}{UPPER}*{LOWER}+{tail}|{WORD_START}{UPPER}+{LOWER}*{tail}"


NO_WORDS = r"| ?[^\s\p{L}\p{N}]+[\r\n/]*|\s*[\r\n]+|\s+(?!\S)|\s+"
GPT4O = cased_words("(?i:'s|'t|'re|'ve|'m|'ll|'d)?") + r"|\p{N}{1,3}" + NO_WORDS
TEKKEN = cased_words("") + r"|\p{N}" + NO_WORDS
DEEPSEEK_V3 = (r"""[!"#$%&'()*+,\-./:;<=>?@\[\\\]^_`{|}~][A-Za-z]+"""
               r"|[^RN\p{L}\p{P}\p{S}]?[\p{L}\p{M}]+| ?[\p{P}\p{S}]+[RN]*|\s*[RN]+|\s+(?!\S)|\s+"
               ).replace("RN", "\r\n")
HAN_AND_KANA = "[\u4E00-\u9FA5\u3040-\u309F\u30A0-\u30FF]+"
CASED = (
    "A-Za-z\u00B5\u00C0-\u00D6\u00D8-\u00F6\u00F8-\u01BA\u01BC-\u01BF\u01C4-\u0293\u0295-\u02AF"
    "\u0370-\u0373\u0376\u0377\u037B-\u037D\u037F\u0386\u0388-\u038A\u038C\u038E-\u03A1"
    "\u03A3-\u03F5\u03F7-\u0481\u048A-\u052F\u0531-\u0556\u10A0-\u10C5\u13A0-\u13F5\u13F8-\u13FD"
    "\u1C90-\u1CBA\u1CBD-\u1CBF\u1D00-\u1D2B\u1D6B-\u1D77\u1D79-\u1D9A\u1E00-\u1F15\u1F18-\u1F1D"
    "\u1F20-\u1F45\u1F48-\u1F4D\u1F50-\u1F57\u1F59\u1F5B\u1F5D\u1F5F-\u1F7D\u1F80-\u1FB4"
    "\u1FB6-\u1FBC\u1FBE\u1FC2-\u1FC4\u1FC6-\u1FCC\u1FD0-\u1FD3\u1FD6-\u1FDB\u1FE0-\u1FEC"
    "\u1FF2-\u1FF4\u1FF6-\u1FFC\u2102\u2107\u210A-\u2113\u2115\u2119-\u211D\u2124\u2126\u2128"
    "\u212A-\u212D\u212F-\u2134\u2139\u213C-\u213F\u2145-\u2149\u214E\u2183\u2184\u2C00-\u2C7B"
    "\u2C7E-\u2CE4\u2CEB-\u2CEE\u2CF2\u2CF3\uA640-\uA66D\uA680-\uA69B\uA722-\uA76F\uA771-\uA787"
    "\uA78B-\uA78E\uAB70-\uABBF\uFB00-\uFB06\uFB13-\uFB17\uFF21-\uFF3A\uFF41-\uFF5A"
    "\U00010400-\U0001044F\U000104B0-\U000104D3\U000104D8-\U000104FB\U00010C80-\U00010CB2"
    "\U00010CC0-\U00010CF2\U000118A0-\U000118DF\U0001E900-\U0001E943")
EAST_ASIAN = "[\u4E00-\u9FA5\u0800-\u4E00\uAC00-\uD7FF]+"
SIGNS = r"\s?[!-/:-~" "\uFF01-\uFF0F\uFF1A-\uFF5E\u2018-\u201F\u3000-\u3002]+"


def split(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Isolated", "invert": False}


def matches(regex):
    return {"type": "Split", "pattern": {"Regex": regex}, "behavior": "Removed", "invert": True}


def level(regex=False):
    return {"type": "ByteLevel", "add_prefix_space": False, "trim_offsets": True,
            "use_regex": regex}


def digits(alone=True):
    return {"type": "Digits", "individual_digits": alone}


def chain(*steps):
    return {"type": "Sequence", "pretokenizers": list(steps)}


NFC = {"type": "NFC"}
MARK = "\u2581"
MARKS = {"type": "Replace", "pattern": {"String": " "}, "content": MARK}
PREPEND = {"type": "Sequence", "normalizers": [{"type": "Prepend", "prepend": MARK}, MARKS]}
# Gemma's: splits nothing, because the normaliser has removed all spaces.
NO_SPACE = {"type": "Split", "pattern": {"String": " "}, "behavior": "MergedWithPrevious",
            "invert": False}

# name -> normaliser, pre-tokenizer, name in GGUF files
BYTES = {
    "llama3": (None, chain(split(LLAMA3), level()), "llama-bpe"),
    "falcon3": (None, chain(split(LLAMA3), level()), "falcon3"),
    "qwen2": (NFC, chain(split(QWEN2), level()), "qwen2"),
    "qwen35": (NFC, chain(split(QWEN35), level()), "qwen35"),
    "gpt-2": (None, level(True), "gpt-2"),
    "gpt-neox": (NFC, level(True), "gpt-neox"),
    "starcoder": (None, chain(digits(), level(True)), "starcoder"),
    "falcon": (None, chain({"type": "Punctuation", "behavior": "Contiguous"}, level(True),
                           digits(False), split("[0-9][0-9][0-9]")), "falcon"),
    "deepseek-coder": (None, chain(split("[\r\n]"), split(r"\s?\p{L}+"), split(r"\s?\p{P}+"),
                                   split(EAST_ASIAN), digits(), level()), "deepseek-coder"),
    "deepseek-llm": ({"type": "Sequence", "normalizers": []},
                     chain(split("[\r\n]"), split(rf"\s?[{CASED}]+"), split(SIGNS), split(r"\s+$"),
                           split(EAST_ASIAN), digits(), level()), "deepseek-llm"),
    "olmo2": (None, chain(matches(LLAMA3), level()), "dbrx"),
    "gpt-4o": (None, chain(matches(GPT4O), level()), "gpt-4o"),
    "tekken": (None, chain(split(TEKKEN), level()), "tekken"),
    "deepseek-v3": ({"type": "Sequence", "normalizers": []},
                    chain(split(r"\p{N}{1,3}"), split(HAN_AND_KANA), split(DEEPSEEK_V3), level()),
                    "deepseek-v3"),
    "seed-coder": (None, chain(split(SEED_CODER), level()), "seed-coder"),
    "minicpm5": (None, chain(split(r"\p{N}{1,3}"), split(MINICPM5), level()), "minicpm5"),
}
CHARACTERS = {"gemma": (MARKS, NO_SPACE), "minicpm": (PREPEND, None)}
IGNORES_MERGES = ("llama3", "falcon3", "tekken", "minicpm5")

WORDS = """the king and his three daughters don't won't I'll we've she'd they're I'M YOU'RE it's
naïve café Zürich été Ünïcödé ﬁne ǅ ﬀ ŝ’s Привет мир Ελληνικά Ὅμηρος Ώρα Հայերեն ქართული עברית
العربية हिन्दी बांग्ला ไทย 日本語のテキスト カタカナ 中文字符 简体 한국어 가나다 ꭰꮳ 𐐀𐐁 Ａｂｃ ①② Ⅷ ½ ² ٣٤٥
x1 2024 123456 3.14159 1,000 foo_bar.baz(qux)[0] == "x"; // if (a<b) {return;} #include <stdio.h>
https:\x2F/a.b/c?d=e&f=g ... !!! ?! — – “quoted” ‘single’ 「引用」。 、 ！？ （括弧） ： ～ €100 $5 50%
+ = ~ ^ `code` e\u0301 a\u0308 \u0301x n\u0303o 👩‍👩‍👧 🤗 👍🏽 \u200b \u00a0 \u3000 \u2028 \u1680 \ufeff
\u00ad""".split()
SPACES = [" ", " ", " ", "  ", "   ", "\n", "\n\n", " \n", "\t", "\r\n", "", "\u3000", "\u00a0",
          " \t "]
FIXED = [
    "", " ", "  ", "\n", "\r\n", "a", " a", "a ", "  a  ", "a\n", "a \n", "a\n b", "a  \n  b", "1",
    "12", "123", "1234", "a1", "1a", " 1", "  1", "'s", "'S", "x's", "x'\u017f", "'ll", "'LL", "'",
    "''", "don't", "DON'T", "\u3000", "\u3000a", "a\u3000", "\u3000\u3000b", " \u3000。", "语  ",
    "语  文", "语 a", " 语", "语。", "。语", "a。b", " 。", "\t\t{", "}\r\n\r\n", "e\u0301\u0301", "\u0301",
    " \u0301", "\u1e9b\u0323", "\u212b", "\ufb01", "가", "\u1100\u1161\u11a8", "…", "\u2581",
    "a\u2581b", "\u2581 ", " \u2581", "\u2581\u2581", "a  b", "a   b", "\n\n\n", "<s>", "a<s> b",
    "<0x41>", "\u00e9\u4e2d", "\U0001F600 ", "camelCase", "HTTPServer", "ABCdef", "ǅABC", "aǅ",
    "ʰA", "AʰBc", "中A", "A中B", "AB\u0301CD", "\u0301AB", "\u0301\u0301Ab", "don'tKnow", "IT'S",
    "a'\u017fb", "//\n/x", "!/\r\n//a", ".\n\n", "1 234567", "(word)", "#define", "-x", "--x",
    "$5.00", "€a", "\x01a", "\x01\x02 ", "\u0378\u0378a", "ひらがなカナ漢字kana", "۱۲۳۴", "½¼¾x",
]


def corpus(rng, n):
    return ["".join(rng.choice(WORDS) + rng.choice(SPACES) for _ in range(rng.randint(1, 9)))
            for _ in range(n)]


def random_texts(rng, n):
    signs = list(" '.\n\r\t1aSé中。\u3000\u0301\u00a0-_½ΩकA") + ["  ", "'s", "ll", "\r\n", "한"]
    return ["".join(rng.choice(signs) for _ in range(rng.randint(2, 14))) for _ in range(n)]


def train_bytes(texts):
    t = Tokenizer(models.BPE())
    t.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=False)
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=900, initial_alphabet=sorted(pre_tokenizers.ByteLevel.alphabet()),
        show_progress=False))
    return json.loads(t.to_str())["model"]


def train_characters(texts):
    t = Tokenizer(models.BPE(unk_token="<unk>", byte_fallback=True, fuse_unk=True))
    t.normalizer = normalizers.Replace(" ", MARK)
    t.train_from_iterator(texts, trainers.BpeTrainer(
        vocab_size=1000, limit_alphabet=150, show_progress=False,
        special_tokens=["<pad>", "<eos>", "<bos>", "<unk>"] + [f"<0x{b:02X}>" for b in range(256)]))
    return json.loads(t.to_str())["model"]


def tokenizer_json(model, normalizer, pre, decoder, added=()):
    return {"version": "1.0", "truncation": None, "padding": None, "added_tokens": list(added),
            "normalizer": normalizer, "pre_tokenizer": pre, "post_processor": None,
            "decoder": decoder, "model": model}


def added_token(model, content, special):
    return {"id": model["vocab"][content], "content": content, "single_word": False,
            "lstrip": False, "rstrip": False, "normalized": False, "special": special}


MARK_DECODER = [{"type": "Replace", "pattern": {"String": MARK}, "content": " "},
                {"type": "ByteFallback"}, {"type": "Fuse"}]


def make_tokenizers(texts):
    by_bytes, by_characters = train_bytes(texts), train_characters(texts)
    out = {}
    for name, (normalizer, pre, gguf) in BYTES.items():
        ignores = name in IGNORES_MERGES
        out[name] = tokenizer_json({**by_bytes, "ignore_merges": ignores}, normalizer, pre,
                                   level()), gguf
    for name, (normalizer, pre) in CHARACTERS.items():
        steps = list(MARK_DECODER)
        if name == "minicpm":
            steps.append({"type": "Strip", "content": " ", "start": 1, "stop": 0})
        added = [added_token(by_characters, t, True) for t in ("<pad>", "<eos>", "<bos>", "<unk>")]
        if name == "gemma":  # whose files name runs of line endings and of marks
            added += [added_token(by_characters, t, False) for t in ("\n\n", 2 * MARK, 3 * MARK)]
        out[name] = tokenizer_json(by_characters, normalizer, pre,
                                   {"type": "Sequence", "decoders": steps}, added), None
    return by_bytes, by_characters, out


def digest(parts):
    sha = hashlib.sha256()
    for part in parts:
        sha.update(part)
    return sha.hexdigest()


def is_left_out(c):
    """Surrogates, and numbers of Unicode 17: the library's Digits include them, its expressions use
    version 16."""
    return 0xD800 <= c < 0xE000 or 0x11DE0 <= c <= 0x11DE9 or 0x16FF4 <= c <= 0x16FF6


def code_point_texts(plane):
    for c in range(plane << 16, (plane + 1) << 16):
        if not is_left_out(c):
            yield "a{c}b {c}1{c}{c} {c}\n{c}".replace("{c}", chr(c))


ALPHABET = " \t\n\ra.1'\u00e9\u4e2d\u3000\u0301"
CASED_ALPHABET = " \nAas'/.1\u01c5\u02b0\u4e2d\u0301$\x01"


def short_texts(alphabet):
    for n in range(1, 5):
        for text in itertools.product(alphabet, repeat=n):
            yield "".join(text)


def pieces(t, text):
    if not text:
        return struct.pack("<I", 0)
    lengths = [len(piece) for piece, _ in t.pre_tokenizer.pre_tokenize_str(text)]
    return struct.pack(f"<{len(lengths) + 1}I", len(lengths), *lengths)


def normal(t, text):
    data = t.normalizer.normalize_str(text).encode()
    return struct.pack("<I", len(data)) + data


def sweeps(t, measure):
    return {"planes": [digest(measure(t, x) for x in code_point_texts(p)) for p in range(17)],
            "short": digest(measure(t, x) for x in short_texts(ALPHABET)),
            "cased": digest(measure(t, x) for x in short_texts(CASED_ALPHABET))}


def write(folder, name, value):
    with open(os.path.join(folder, name), "w", encoding="utf-8") as f:
        json.dump(value, f, ensure_ascii=True, separators=(",", ":"))
        f.write("\n")


def main(folder):
    rng = random.Random(17)
    by_bytes, by_characters, tokenizers = make_tokenizers(corpus(rng, 3000))
    texts = FIXED + corpus(rng, 40) + random_texts(rng, 60)
    goldens = {"alphabet": ALPHABET, "cased_alphabet": CASED_ALPHABET, "texts": texts,
               "tokenizers": {}}
    for name, (root, gguf) in tokenizers.items():
        t = Tokenizer.from_str(json.dumps(root))
        golden = {"ids": [t.encode(x, add_special_tokens=False).ids for x in texts], "gguf": gguf}
        if gguf and name not in ("falcon3", "olmo2"):
            golden["pieces"] = sweeps(t, pieces)
        if name == "qwen2":
            golden["normal"] = sweeps(t, normal)
        del root["model"]
        goldens["tokenizers"][name] = {**golden, "json": root}
        print(name, file=sys.stderr)
    write(folder, "bytes.json", by_bytes)
    write(folder, "characters.json", by_characters)
    write(folder, "goldens.json", goldens)


if __name__ == "__main__":
    if len(sys.argv) != 2:
        sys.exit(__doc__)
    main(sys.argv[1])
