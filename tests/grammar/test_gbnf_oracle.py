#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random grammars, in GBNF and as regular expressions, accept exactly the texts that a matcher
written here accepts, and every walk through them is such a text."""
import random
import re

from grammar_cases import run

N_GRAMMARS = 150
LETTERS = "abé日\""


# ---- nodes: ("text", text), ("set", is_inverse, letters), ("one of", nodes), ("all", nodes),
# ("times", node, low, high or None), ("rule", name) ----

def random_atom(rng, depth, names):
    kind = rng.random()
    if kind < 0.3 or (depth == 0 and kind >= 0.85):
        return "text", "".join(rng.choice(LETTERS) for _ in range(rng.randint(0, 3)))
    if kind < 0.6:
        return "set", rng.random() < 0.3, rng.sample(LETTERS, rng.randint(1, 3))
    if kind < 0.65:
        return "set", True, []
    if kind < 0.85 and names:
        return "rule", rng.choice(names)
    return random_node(rng, max(depth - 1, 0), names)


def random_item(rng, depth, names):
    atom = random_atom(rng, depth, names)
    low = rng.randint(0, 2)
    limits = rng.choice([None] * 5 + [(0, 1), (0, 1), (0, None), (1, None), (low, None),
                                      (low, low), (low, low + rng.randint(1, 2))])
    return ("times", atom, *limits) if limits else atom


def random_node(rng, depth, names):
    return "one of", [("all", [random_item(rng, depth, names) for _ in range(rng.randint(1, 3))])
                      for _ in range(rng.choice((1, 1, 2, 3)))]


def quantifier(rng, low, high):
    short = {(0, 1): "?", (0, None): "*", (1, None): "+"}.get((low, high))
    if short and rng.random() < 0.7:
        return short
    return f"{{{low}}}" if low == high else f"{{{low},{'' if high is None else high}}}"


def as_gbnf(rng, node, outer=False):
    kind = node[0]
    if kind == "text":
        text = node[1].replace('"', '\\"').replace("é", rng.choice(("é", "\\u00e9", "\\xe9")))
        return f'"{text}"'
    if kind == "set":
        if not node[2]:
            return rng.choice((".", "[^]"))
        return f"[{'^' * node[1]}{''.join(node[2])}]"
    if kind == "rule":
        return node[1]
    if kind == "times":
        return as_gbnf(rng, node[1]) + quantifier(rng, *node[2:])
    if kind == "all":
        return " ".join(as_gbnf(rng, n) for n in node[1])
    text = " | ".join(as_gbnf(rng, n) for n in node[1])
    return text if outer else f"({text})"


def as_regex(rng, node, rules):
    kind = node[0]
    if kind == "text":
        return f"(?:{node[1]})"
    if kind == "set":
        return f"[{'^' * node[1]}{''.join(node[2])}]"
    if kind == "rule":
        return as_regex(rng, rules[node[1]], rules)
    if kind == "times":
        return f"(?:{as_regex(rng, node[1], rules)})" + quantifier(rng, *node[2:])
    if kind == "all":
        return "".join(as_regex(rng, n, rules) for n in node[1])
    return "(?:" + "|".join(as_regex(rng, n, rules) for n in node[1]) + ")"


def ends(node, text, starts, rules):
    """The positions at which a match can end that begins at one of `starts`."""
    kind = node[0]
    if kind == "text":
        return {i + len(node[1]) for i in starts if text.startswith(node[1], i)}
    if kind == "set":
        return {i + 1 for i in starts if i < len(text) and (text[i] in node[2]) != node[1]}
    if kind == "rule":
        return ends(rules[node[1]], text, starts, rules)
    if kind == "one of":
        return set().union(*(ends(n, text, starts, rules) for n in node[1]))
    if kind == "all":
        for n in node[1]:
            starts = ends(n, text, starts, rules)
        return starts
    found, at, n = set(), starts, 0
    while at and (node[3] is None or n <= node[3]):
        if n >= node[2]:
            if at <= found:
                break
            found |= at
        at = ends(node[1], text, at, rules)
        n += 1
    return found


def fits(case, text):
    return len(text) in ends(case["root"], text, {0}, case["rules"])


# ---- cases ----

def make_case(rng, seed):
    rules = {}
    for name in ("r1", "long-name", "Root2")[:rng.randint(0, 3)]:
        rules[name] = random_node(rng, 1, sorted(rules))
    root = random_node(rng, 2, sorted(rules))
    lines = [f"{name} ::= {as_gbnf(rng, node, True)}" for name, node in rules.items()]
    lines.insert(rng.randint(0, len(lines)), f"root ::= {as_gbnf(rng, root, True)}")
    texts = ["".join(rng.choice(LETTERS) for _ in range(n)) for n in range(7) for _ in range(6)]
    shared = {"texts": texts, "walks": 4, "seed": seed}
    return {"root": root, "rules": rules, "requests": (
        {"gbnf": "\n".join(lines), **shared}, {"regex": as_regex(rng, root, rules), **shared})}


def check(case, request, answer, counts):
    if answer["status"]:
        assert re.search("more than|too many|limit", answer["detail"]), (request, answer)
        counts["refused"] += 1
        return
    for text, (n_fit, is_whole, status) in zip(request["texts"], answer["results"]):
        expected = fits(case, text)
        assert status == 0 and is_whole == expected, (request, text, n_fit, is_whole, expected)
        counts["fit" if expected else "unfit"] += 1
    for text in answer["walks"]:
        if text is None:
            counts["unfinished"] += 1
            continue
        assert fits(case, text), (request, text)
        counts["walked"] += 1


def main():
    counts = dict.fromkeys(("fit", "unfit", "walked", "refused", "unfinished"), 0)
    rng = random.Random(7)
    cases = [make_case(rng, seed) for seed in range(N_GRAMMARS)]
    for i in range(2):
        for case, answer in zip(cases, run([case["requests"][i] for case in cases])):
            check(case, case["requests"][i], answer, counts)
    print(counts)
    assert counts["fit"] > 1000 and counts["unfit"] > 1000 and counts["walked"] > 700, counts
    assert counts["refused"] < N_GRAMMARS // 10, counts


main()
print("ok")
