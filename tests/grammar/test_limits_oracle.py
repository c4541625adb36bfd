#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Strings with expressions and formats, numbers with bounds and multiples: a grammar accepts what
Python's own modules accept (re, datetime, ipaddress, uuid, fractions), and every walk through it
is valid. If jsonschema is installed it must agree."""
import datetime
import ipaddress
import json
import random
import re
import urllib.parse
import uuid
from fractions import Fraction

from grammar_cases import run

try:
    import jsonschema
except ImportError:
    jsonschema = None

N_EXPRESSIONS = 400
N_LIMITS = 400


def canonical(text):
    return json.dumps(text, ensure_ascii=False)


def validates(schema, value):
    return jsonschema is None or jsonschema.Draft202012Validator(schema).is_valid(value)


# ---- expressions ----

# In ECMA-262, and the equivalent in Python.
LETTERS = [("a", "a"), ("b", "b"), ("é", "é"), ("😀", "😀"), ('"', '"'), (r"\\", r"\\"),
           (r"\n", r"\n"), (r"\u0001", r"\x01"), (r"\x62", "b"), (r"\u{1F600}", "😀"),
           (r"\uD83D\uDE00", "😀"), (r"\.", r"\."), (r"\/", "/"), (" ", " "), ("日", "日"),
           (r"\cI", r"\t"), ("-", "-"), ("{", r"\{")]
SPACE = r"\t-\r \u00a0\u1680\u2000-\u200a\u2028\u2029\u202f\u205f\u3000\ufeff"
SETS = [(".", r"[^\n\r\u2028\u2029]"), (r"\d", "[0-9]"), (r"\w", "[A-Za-z0-9_]"),
        (r"\s", f"[{SPACE}]"), (r"\D", "[^0-9]"), (r"\W", "[^A-Za-z0-9_]"), (r"\S", f"[^{SPACE}]"),
        ("[ab]", "[ab]"), ("[^a]", "[^a]"), ("[a-c1-3é]", "[a-c1-3é]"), (r"[^\d\n]", r"[^0-9\n]"),
        (r"[\s\S]", r"[\s\S]"), (r"[\]\-x]", r"[\]\-x]"), ("[\u0080-\uffff]", "[\u0080-\uffff]"),
        ("[^]", r"[\s\S]"), ("[日-本]", "[日-本]"), (r"[\w-]", "[A-Za-z0-9_-]")]
CHARACTERS = 'aab"\\\n\u0001é😀日本1_ .-/\t\u2028c{'


def random_atom(rng, depth):
    what = rng.random()
    if what < 0.25 and depth > 0:
        ecma, python = random_expression(rng, depth - 1)
        return rng.choice(["(", "(?:", "(?<name>"]) + ecma + ")", f"(?:{python})"
    return rng.choice(LETTERS if what < 0.7 else SETS)


def random_piece(rng, depth):
    what = rng.random()
    if what < 0.06:
        return "^", r"\A"
    if what < 0.12:
        return "$", r"\Z"
    ecma, python = random_atom(rng, depth)
    if rng.random() < 0.6:
        return ecma, python
    low = rng.randint(0, 3)
    q = rng.choice(["?", f"{{{low}}}", f"{{{low},{low + rng.randint(0, 3)}}}", "??"])
    if not set("*+,") & set(re.sub(r"\[.*?\]", "", ecma)):  # nested quantifiers take too long
        q = rng.choice([q, "*", "+", f"{{{low},}}", "*?"])
    return ecma + q, f"(?:{python}){q}"


def random_expression(rng, depth):
    parts = []
    for _ in range(rng.choice((1, 1, 2, 3))):
        pieces = [random_piece(rng, depth) for _ in range(rng.randint(0 if depth else 1, 4))]
        parts.append(("".join(p[0] for p in pieces), "".join(p[1] for p in pieces)))
    return "|".join(p[0] for p in parts), "|".join(p[1] for p in parts)


def random_pattern(rng):
    ecma, python = random_expression(rng, 2)
    if rng.random() < 0.6:
        ecma, python = f"^(?:{ecma})$", rf"\A(?:{python})\Z"
    return ecma, python


def check_expressions(counts):
    rng = random.Random(20)
    patterns = [random_pattern(rng) for _ in range(N_EXPRESSIONS)]
    texts = [["".join(rng.choices(CHARACTERS, k=rng.randint(0, 7))) for _ in range(25)]
             for _ in patterns]
    answers = run([{"schema": {"type": "string", "pattern": ecma}, "walks": 3, "seed": i,
                    "texts": [canonical(text) for text in texts[i]]}
                   for i, (ecma, _) in enumerate(patterns)])
    for (ecma, python), words, answer in zip(patterns, texts, answers):
        if answer["status"]:
            assert "no text fits" in answer["detail"], (ecma, answer)
            assert not any(re.search(python, word) for word in words), (ecma, python)
            counts["empty"] += 1
            continue
        for word, (_, is_whole, status) in zip(words, answer["results"]):
            expected = re.search(python, word) is not None
            assert status == 0 and is_whole == expected, (ecma, python, word, expected)
            counts["fit" if expected else "unfit"] += 1
        for walk in answer["walks"]:
            if walk is None or len(walk) > 400:
                counts["unfinished"] += 1
                continue
            word = json.loads(walk)
            assert re.search(python, word), (ecma, python, walk)
            assert walk.strip() == canonical(word), walk
            counts["walked"] += 1


def check_spelling():
    """Each character has one spelling, and U+0000 none."""
    any_text = {"type": "string", "pattern": ""}
    good = [canonical(chr(c)) for c in (*range(1, 0x80), 0x80, 0x7FF, 0x800, 0xD7FF, 0xE000,
                                        0xFFFF, 0x10000, 0x10FFFF)]
    bad = ['"\\u0061"', '"\\/"', '"\\u001F"', '"\\u0000"', '"\n"', '"\\u000a"', '"\\ud83d\\ude00"']
    answer, = run([{"schema": any_text, "texts": good + bad, "walks": 0, "seed": 1}])
    assert [r[1] for r in answer["results"]] == [True] * len(good) + [False] * len(bad), answer


# ---- lengths ----

def random_range(rng, limit):
    low, high = sorted((rng.randint(0, limit), rng.randint(0, limit)))
    return rng.choice(({"minLength": low}, {"maxLength": high},
                       {"minLength": low, "maxLength": high}))


def has_length(schema, word):
    return schema.get("minLength", 0) <= len(word) <= schema.get("maxLength", len(word))


def check_lengths(counts):
    """Characters are counted as in Python, whatever their bytes and escapes."""
    rng = random.Random(22)
    cases = [(random_range(rng, rng.choice((3, 12, 60))), None) for _ in range(120)]
    for _ in range(N_EXPRESSIONS // 2):
        ecma, python = random_pattern(rng)
        cases.append((dict(random_range(rng, 7), pattern=ecma), python))
    texts = [["".join(rng.choices(CHARACTERS, k=rng.randint(0, 8))) for _ in range(15)] +
             ["é" * schema.get(word, 0) + "\n" * extra for word in ("minLength", "maxLength")
              for extra in (0, 1)] for schema, _ in cases]
    answers = run([{"schema": dict(schema, type="string"), "walks": 4, "seed": i,
                    "texts": [canonical(text) for text in texts[i]]}
                   for i, (schema, _) in enumerate(cases)])
    for (schema, python), words, answer in zip(cases, texts, answers):
        fits = [has_length(schema, word) and (python is None or re.search(python, word) is not None)
                for word in words]
        if answer["status"]:
            assert "no text fits" in answer["detail"] and not any(fits), (schema, answer)
            counts["empty"] += 1
            continue
        for word, expected, (_, is_whole, status) in zip(words, fits, answer["results"]):
            assert status == 0 and is_whole == expected, (schema, word, expected)
            counts["fit" if expected else "unfit"] += 1
        for walk in answer["walks"]:
            if walk is None:
                counts["unfinished"] += 1
                continue
            word = json.loads(walk)
            assert has_length(schema, word), (schema, walk)
            assert python is None or re.search(python, word), (schema, walk)
            assert python or validates(dict(schema, type="string"), word), (schema, walk)
            counts["walked"] += 1


def check_long():
    """Exact at both ends where counting takes many states, and where a format leaves nothing to
    count."""
    cases = [({"maxLength": 65536}, "x", (0, 65535, 65536), (65537,)),
             ({"minLength": 65536}, "😀", (65536, 65600), (0, 65535)),
             ({"minLength": 7, "maxLength": 5000, "pattern": "^[a-z]+$"}, "z", (7, 5000),
              (6, 5001))]
    for schema, letter, good, bad in cases:
        answer, = run([{"schema": dict(schema, type="string"), "walks": 0, "seed": 1,
                        "texts": [canonical(letter * n) for n in good + bad]}])
        assert [r[1] for r in answer["results"]] == [True] * len(good) + [False] * len(bad), schema
    for schema in ({"format": "uuid", "minLength": 1, "maxLength": 36},
                   {"format": "email", "maxLength": 320}, {"format": "uri", "maxLength": 256},
                   {"format": "hostname", "maxLength": 253}):
        free = {"type": "string", "format": schema["format"]}
        one, other = run([{"schema": s, "walks": 9, "seed": 7, "texts": []}
                          for s in (free, dict(schema, type="string"))])
        assert one == other, (schema, one, other)


# ---- formats ----

# datetime.timedelta ends at 999,999,999 days.
DURATION = re.compile(r"P(?!$)(\dW|(\dY)?(\dM)?(\dD)?(T(?=\d)(\dH)?(\dM)?(\dS)?)?)\Z".replace(
    r"\d", r"\d{1,6}"))
LABEL = re.compile(r"[0-9A-Za-z]([0-9A-Za-z-]{0,61}[0-9A-Za-z])?\Z")


def is_time(text):
    return bool(datetime.time.fromisoformat(re.sub(r"(\.\d{6})\d+", r"\1", text)).tzinfo)


def is_date_time(text):
    return bool(datetime.date.fromisoformat(text[:10])) and text[10] == "T" and is_time(text[11:])


def is_hostname(text):
    return len(text) <= 253 and all(LABEL.match(label) for label in text.split("."))


def is_uri(text):
    parts = urllib.parse.urlsplit(text)
    return parts.scheme in ("http", "https") and is_hostname(parts.hostname) and \
        parts.hostname.split(".")[-1].isalpha() and re.fullmatch(r"[!-~]+", text)


def is_email(text):
    local, _, host = text.partition("@")
    return 0 < len(local) <= 64 and ".." not in f".{local}." and is_hostname(host)


WEB = "http:" + "//"
FORMATS = {
    "date-time": (is_date_time, ["2024-02-29T23:59:59Z", "2000-02-29T00:00:00.5+23:59",
                                 "0001-01-01T00:00:00.123456789-00:00"],
                  ["2023-02-29T00:00:00Z", "1900-02-29T00:00:00Z", "2024-01-01 00:00:00Z",
                   "2024-01-01T24:00:00Z", "2024-01-01T00:00:60Z", "2024-01-01T00:00:00",
                   "2024-13-01T00:00:00Z", "0000-01-01T00:00:00Z"]),
    "date": (datetime.date.fromisoformat, ["2024-02-29", "1999-12-31", "0400-02-29", "9999-01-01"],
             ["2100-02-29", "2024-04-31", "2024-00-01", "24-01-01", "2024-1-1", "20240101"]),
    "time": (is_time, ["00:00:00Z", "23:59:59.999+14:00"], ["00:00Z", "24:00:00Z", "00:00:00"]),
    "duration": (DURATION.match, ["P1D", "PT1H30M", "P3W", "P1Y2M3DT4H5M6S", "PT0S", "P1YT1S"],
                 ["P", "PT", "P1H", "1D", "P1W1D", "P1Y1D", "PT1H1S", "P-1D", "P1000000D"]),
    "uri": (is_uri, [WEB + "a.bc", "https://example.com/a/b.html?q=1&r=(2)", WEB + "a-b.c.de/"],
            ["", "a", "example.com", WEB, WEB + "a", "ftp://a.bc", WEB + "1.2.3.4/", WEB + "a.bc/ x",
             WEB + "xn--a.bc", WEB + "-a.bc", WEB + "a.bc/%", WEB + "A.bc", WEB + "a..bc",
             WEB + "a.bc:80/"]),
    "password": (lambda text: True, ["", "a b", "é\n"], []),
    "binary": (lambda text: True, ["", "a b"], []),
    "email": (is_email, ["a@b.c", "first.last+tag@mail.example.org", "!#$%&'*+/=?^_`{|}~-@x.y",
                         "x" * 64 + "@example.com"],
              ["@b.c", "a@", "a@b", "a..b@c.d", ".a@b.c", "a@-b.c", "a b@c.d", "x" * 65 + "@b.c"]),
    "hostname": (is_hostname, ["localhost", "a.b.c.d", "xn--bcher-kva.example", "x" * 63 + ".org"],
                 ["", "-a", "a-", "a..b", "a.", "x" * 64, "a_b", "é.org"]),
    "ipv4": (ipaddress.IPv4Address, ["0.0.0.0", "255.255.255.255", "192.168.1.10"],
             ["256.0.0.1", "1.2.3", "01.2.3.4", "1.2.3.4.5", "1.2.3.4/8"]),
    "ipv6": (ipaddress.IPv6Address,
             ["::", "::1", "1::", "2001:db8::8a2e:370:7334", "1:2:3:4:5:6:7:8", "1:2:3:4:5:6:7::",
              "fe80::1:2", "1::8", "::2:3:4:5:6:7:8"],
             [":", ":::", "1:2:3:4:5:6:7", "1:2:3:4:5:6:7:8:9", "1::2::3", "12345::", "g::",
              "1:2:3:4:5:6:7:8::", "::1%eth0"]),
    "uuid": (uuid.UUID, ["123e4567-e89b-12d3-a456-426614174000"],
             ["123e4567e89b12d3a456426614174000", "{123e4567-e89b-12d3-a456-426614174000}",
              "123e4567-e89b-12d3-a456-42661417400g"]),
}


def check_formats(counts):
    cases = [{"schema": {"type": ["string", "null"], "format": name}, "walks": 40, "seed": 5,
              "texts": [canonical(text) for text in good + bad] + ["null"]}
             for name, (_, good, bad) in FORMATS.items()]
    for (name, (is_good, good, bad)), answer in zip(FORMATS.items(), run(cases)):
        wanted = [True] * len(good) + [False] * len(bad) + [True]
        got = [r[1] for r in answer["results"]]
        assert got == wanted, (name, list(zip(good + bad, got, wanted)), answer["detail"])
        for walk in answer["walks"]:
            value = json.loads(walk)
            assert value is None or is_good(value), (name, walk)
            counts["walked"] += 1
    named, = run([{"schema": {"type": "string", "format": "e164", "pattern": "^\\+[1-9]\\d{6,14}$"},
                   "walks": 0, "texts": ['"+4912345678"', '"12345678"']}])
    assert [r[1] for r in named["results"]] == [True, False], named
    both, = run([{"schema": {"type": "string", "format": "date", "pattern": "^2024.*1$"},
                  "walks": 10, "seed": 1, "texts": ['"2024-05-31"', '"2024-05-30"', '"2024x1"']}])
    assert [r[1] for r in both["results"]] == [True, False, False], both
    for walk in both["walks"]:
        assert datetime.date.fromisoformat(json.loads(walk)).year == 2024


# ---- numbers ----

def random_limit(rng, is_integer):
    what = rng.random()
    if is_integer or what < 0.4:
        size = rng.choice((10, 1000, 10 ** 9, 10 ** 15 if not is_integer else 2 ** 63 - 1))
        return rng.randint(-size, size)
    if what < 0.9:
        return rng.choice((-1, 1)) * round(rng.random() * 10 ** rng.randint(0, 6),
                                           rng.randint(1, 6))
    return rng.choice((0.1, -0.5, 1e-7, 1e3, 2.5e-16, 0.0, 1 / 3))


def random_limits(rng):
    is_integer = rng.random() < 0.5
    schema = {"type": "integer" if is_integer else "number"}
    low, high = sorted((random_limit(rng, is_integer), random_limit(rng, is_integer)))
    if rng.random() < 0.6:
        schema[rng.choice(("minimum", "exclusiveMinimum"))] = low
    if rng.random() < 0.6:
        schema[rng.choice(("maximum", "exclusiveMaximum"))] = high
    if rng.random() < 0.1:
        schema["minimum"] = low
    if rng.random() < 0.35 or len(schema) == 1:
        schema["multipleOf"] = rng.choice((1, 2, 3, 5, 7, 10, 12, 25, 64, 100, 1000)) \
            if is_integer or rng.random() < 0.5 else rng.choice((0.5, 0.01, 0.25, 1.5, 0.3, 1e-3))
    return schema


def exact(x):
    return Fraction(repr(x))


def is_in(schema, x):
    tests = {"minimum": lambda b: x >= b, "exclusiveMinimum": lambda b: x > b,
             "maximum": lambda b: x <= b, "exclusiveMaximum": lambda b: x < b,
             "multipleOf": lambda b: x % b == 0}
    return all(test(exact(schema[word])) for word, test in tests.items() if word in schema)


def plain(x, n_fraction):
    """A fraction truncated to that many digits after the point."""
    digits = str(int(abs(x) * 10 ** n_fraction)).rjust(n_fraction + 1, "0")
    text = digits[:-n_fraction] + "." + digits[-n_fraction:] if n_fraction else digits
    return ("-" if x < 0 else "") + text


def is_written(schema, text):
    """Is it one of the spellings of numbers within limits?"""
    whole, _, fraction = text.lstrip("-").partition(".")
    is_zero = not (whole + fraction).strip("0")
    if text.startswith("-") and is_zero:
        return False
    if schema["type"] == "integer":
        bounds = [abs(v) for word, v in schema.items() if "imum" in word]
        return not fraction and len(whole) <= max([16] + [len(str(b)) for b in bounds])
    step = str(Fraction(repr(schema["multipleOf"]))) if "multipleOf" in schema else None
    scale = 99 if step is None else next(n for n in range(20) if (Fraction(step) * 10 ** n)
                                         .denominator == 1)
    return len(whole) + len(fraction) <= 15 and len(fraction) <= scale


def number_texts(rng, schema):
    texts = ["0", "-0", "1", "-1", "10", "100", "0.0", "-0.0", "0.5", "7.25"]
    bounds = [exact(v) for word, v in schema.items() if word != "type"]
    for bound in bounds:
        for n in (0, 1, 2, 3, 6, 12):
            near = plain(bound, 0 if schema["type"] == "integer" else n)
            unit = Fraction(1, 10 ** n)
            texts += [near, plain(bound + unit, n), plain(bound - unit, n)]
        texts += [str(int(bound) + d) for d in (-1, 0, 1)] + [str(int(bound * rng.randint(1, 9)))]
    for _ in range(10):
        x = Fraction(rng.randint(-10 ** 9, 10 ** 9), 10 ** rng.randint(0, 9))
        texts.append(plain(x, 0 if schema["type"] == "integer" else rng.randint(0, 6)))
    return sorted(set(texts))


def check_numbers(counts):
    rng = random.Random(21)
    schemas = [random_limits(rng) for _ in range(N_LIMITS)]
    texts = [number_texts(rng, schema) for schema in schemas]
    answers = run([{"schema": schema, "walks": 6, "seed": i, "texts": texts[i]}
                   for i, schema in enumerate(schemas)])
    for schema, words, answer in zip(schemas, texts, answers):
        if answer["status"]:
            assert "no number fits" in answer["detail"], (schema, answer)
            assert not any(is_in(schema, Fraction(word)) and is_written(schema, word)
                           for word in words), schema
            counts["empty"] += 1
            continue
        for word, (_, is_whole, status) in zip(words, answer["results"]):
            expected = is_in(schema, Fraction(word)) and is_written(schema, word)
            assert status == 0 and is_whole == expected, (schema, word, expected)
            counts["fit" if expected else "unfit"] += 1
        for walk in answer["walks"]:
            assert is_in(schema, Fraction(walk.strip())), (schema, walk)
            # Decimals are exact where doubles are not: a validator divides by 0.3.
            doubles = {word: v for word, v in schema.items() if word != "multipleOf"}
            assert validates(doubles, json.loads(walk)), (schema, walk)
            counts["walked"] += 1


def random_enum(rng):
    """Values of several types, with limits of strings and numbers."""
    words = ["".join(rng.choices(CHARACTERS, k=rng.randint(0, 6))) for _ in range(8)]
    numbers = [rng.choice((1, -1)) * rng.choice((rng.randint(0, 40), rng.randint(0, 400) / 8,
                                                 10 ** rng.randint(1, 18), 1e-7 * rng.randint(1, 9),
                                                 1e200)) for _ in range(8)]
    ecma, python = random_pattern(rng)
    schema = dict(random_limits(rng), enum=words + numbers + [None, True, [1], {"a": "b"}])
    del schema["type"]
    if rng.random() < 0.5:
        schema.update(random_range(rng, 6))
    if rng.random() < 0.4:
        schema["pattern"] = ecma
    return schema, python


def check_enums(counts):
    """Of the enumerated values only those within the limits remain."""
    rng = random.Random(23)
    cases = [random_enum(rng) for _ in range(N_LIMITS)]
    texts = [[json.dumps(v, ensure_ascii=False, separators=(",", ":")) for v in schema["enum"]]
             for schema, _ in cases]
    answers = run([{"schema": schema, "walks": 3, "seed": i, "texts": texts[i]}
                   for i, (schema, _) in enumerate(cases)])
    for (schema, python), words, answer in zip(cases, texts, answers):
        if answer["status"]:
            assert "no text fits" in answer["detail"], (schema, answer)
            counts["empty"] += 1
            continue
        for value, word, (_, is_whole, status) in zip(schema["enum"], words, answer["results"]):
            expected = True
            if isinstance(value, str):
                expected = has_length(schema, value) and (
                    "pattern" not in schema or re.search(python, value) is not None)
            elif isinstance(value, (int, float)) and not isinstance(value, bool):
                expected = is_in(schema, exact(value))
            if "\\u00" not in word:  # which may have other spellings
                assert status == 0 and is_whole == expected, (schema, word, expected)
                counts["fit" if expected else "unfit"] += 1
        for walk in answer["walks"]:
            assert json.loads(walk) in schema["enum"], (schema, walk)
            counts["walked"] += 1


def check_fractions():
    """A fraction in "enum" or "const" has the shortest digits that parse to the same number."""
    text = '[1,0.1,{"a \\n":-0.7,"b":[]},{}]'
    cases = [({"enum": [0.1]}, "0.1"), ({"enum": [7, -1.1, "x"]}, "-1.1"),
             ({"enum": [1e-7]}, "1e-07"), ({"enum": [1e300]}, "1e+300"), ({"enum": [1E2]}, "100.0"),
             ({"enum": [0.1 + 0.2]}, "0.30000000000000004"), ({"const": 0.30}, "0.3"),
             ({"enum": [0.1], "multipleOf": 0.1}, "0.1"),
             ({"enum": [0.1, 0.3], "maximum": 0.3}, "0.3"), ({"const": json.loads(text)}, text)]
    answers = run([{"schema": schema, "texts": [text, "0.10000000000000001"], "walks": 0, "seed": 0}
                   for schema, text in cases])
    for (schema, text), answer in zip(cases, answers):
        assert [r[1] for r in answer["results"]] == [True, False], (schema, text, answer)


def check_edges():
    """Small ranges completely, digit by digit, and the limits of 64 bits."""
    cases, wanted = [], []
    for low, high, step in ((-12, 105, 1), (7, 7, 1), (-100, -9, 3), (0, 0, 1), (95, 1010, 5)):
        cases.append({"schema": {"type": "integer", "minimum": low, "maximum": high,
                                 "multipleOf": step},
                      "texts": [str(i) for i in range(-1200, 1201)], "walks": 0, "seed": 0})
        wanted.append([low <= i <= high and i % step == 0 for i in range(-1200, 1201)])
    ends = [-2 ** 63, 2 ** 63 - 1]
    cases.append({"schema": {"type": "integer", "minimum": ends[0], "maximum": ends[1]},
                  "texts": [str(end + d) for end in ends for d in (-1, 0, 1)], "walks": 0,
                  "seed": 0})
    wanted.append([False, True, True, True, True, False])
    for case, want, answer in zip(cases, wanted, run(cases)):
        assert [r[1] for r in answer["results"]] == want, case["schema"]


def main():
    counts = dict.fromkeys(("fit", "unfit", "walked", "empty", "unfinished"), 0)
    check_expressions(counts)
    check_spelling()
    check_lengths(counts)
    check_long()
    check_formats(counts)
    check_numbers(counts)
    check_enums(counts)
    check_fractions()
    check_edges()
    print(counts)
    assert min(counts["fit"], counts["unfit"], counts["walked"]) > 2000, counts
    print("ok")


main()
