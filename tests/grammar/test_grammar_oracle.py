#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random schemas and texts: a grammar accepts exactly the texts that a validator written here
accepts, and every walk through it is JSON that is valid for the schema."""
import json
import random

from grammar_cases import run

N_SCHEMAS = 120
TYPES = ["object", "array", "string", "number", "integer", "boolean", "null"]
NAMES = ["a", "b", "name", "na", "a b", "q\"uote", "ü", "nested/slash~"]
SCALARS = [None, True, False, 0, 1, -7, 12.5, 0.1, 1e-07, 1e+22, "", "a", "name", "x\ny", "日本", "\"", "\\"]


# ---- schemas ----

def random_schema(rng, depth, defs):
    kind = rng.random()
    if kind < 0.08 and defs:
        return {"$ref": f"#/$defs/{rng.choice(defs)}"}
    if kind < 0.20 and depth > 0:
        return {rng.choice(("anyOf", "oneOf")): [random_schema(rng, depth - 1, defs) for _ in range(rng.randint(1, 3))]}
    if kind < 0.30:
        return {"enum": rng.sample(SCALARS, rng.randint(1, 5))}
    if kind < 0.35:
        return {"const": rng.choice(SCALARS + [[1, "a"], {"k": [None, 0.3]}])}
    types = rng.sample(TYPES if depth > 0 else TYPES[2:], rng.choice((1, 1, 1, 2)))
    schema = {"type": types if len(types) > 1 else types[0], "description": "any"}
    if "object" in types:
        names = rng.sample(NAMES, rng.randint(0, 4))
        schema["properties"] = {name: random_schema(rng, depth - 1, defs) for name in names}
        schema["required"] = [name for name in names if rng.random() < 0.6]
        schema["additionalProperties"] = random_schema(rng, 0, defs) if rng.random() < 0.3 else \
            False
    if "array" in types:
        schema["items"] = random_schema(rng, depth - 1, defs)
        kind = rng.random()
        if kind < 0.3:
            schema["prefixItems"] = [random_schema(rng, depth - 1, defs)
                                     for _ in range(rng.randint(1, 3))]
            if rng.random() < 0.4:
                schema["items"] = False
            return add_limits(rng, schema, 0, len(schema["prefixItems"]))
        if kind < 0.4:
            schema.update(uniqueItems=True, items={"enum": rng.sample(SCALARS, rng.randint(3, 9))})
        if rng.random() < 0.6:
            schema["minItems"] = rng.randint(0, 3)
        if rng.random() < 0.6:
            schema["maxItems"] = schema.get("minItems", 0) + rng.randint(0, 2)
    return schema


def add_limits(rng, schema, low, high):
    """Sometimes adds numbers of items that some array has."""
    if rng.random() < 0.4:
        schema["minItems"] = low = rng.randint(low, high)
    if rng.random() < 0.3:
        schema["maxItems"] = rng.randint(max(low, 1), high + 2)
    return schema


def random_root(rng):
    defs = ["d1", "d2"] if rng.random() < 0.6 else []
    root = random_schema(rng, 3, defs)
    if defs and "$ref" not in root:
        root["$defs"] = {name: random_schema(rng, 2, defs) for name in defs}
    elif defs:
        root = {**root, "$defs": {name: random_schema(rng, 2, []) for name in defs}}
    return root


def alternatives(schema):
    return schema.get("anyOf") or schema["oneOf"]


# ---- values ----

def lengths(schema):
    """The smallest and the largest number of items."""
    n_first = len(schema.get("prefixItems", []))
    high = schema.get("maxItems", 1 << 30)
    high = min(high, n_first) if schema.get("items") is False else high
    return schema.get("minItems", min(n_first, high)), high


def item_schema(schema, i):
    return schema.get("prefixItems", [])[i] if i < len(schema.get("prefixItems", [])) else \
        schema.get("items", True)


class TooDeep(Exception):
    pass


def random_value(rng, schema, root, depth=12):
    """Usually a valid one."""
    if depth == 0:
        raise TooDeep
    if "$ref" in schema:
        return random_value(rng, root["$defs"][schema["$ref"].split("/")[-1]], root, depth - 1)
    if "anyOf" in schema or "oneOf" in schema:
        return random_value(rng, rng.choice(alternatives(schema)), root, depth - 1)
    if "enum" in schema:
        return rng.choice(schema["enum"])
    if "const" in schema:
        return schema["const"]
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    kind = rng.choice(types)
    if kind == "object":
        value = {name: random_value(rng, sub, root, depth - 1)
                 for name, sub in schema["properties"].items()
                 if name in schema["required"] or rng.random() < 0.5}
        if schema["additionalProperties"]:
            for name in rng.sample(NAMES + ["other", ""], 2):
                if name not in schema["properties"]:
                    value[name] = random_value(rng, schema["additionalProperties"], root, depth - 1)
        return value
    if kind == "array":
        low, high = lengths(schema)
        items = [item_schema(schema, i) for i in range(rng.randint(low, min(high, low + 3)))]
        if schema.get("uniqueItems"):
            return rng.sample(schema["items"]["enum"],
                              min(len(items), len(schema["items"]["enum"])))
        return [random_value(rng, sub, root, depth - 1) for sub in items]
    return {"string": lambda: rng.choice(["", "text", "é\u0001\U0001f600", "a\\\"/", "\u2028"]),
            "number": lambda: rng.choice([0, -1, 2.5, 1e20, -0.125, 12345678]),
            "integer": lambda: rng.choice([0, -1, 42, 1234567890123456]),
            "boolean": lambda: rng.random() < 0.5, "null": lambda: None}[kind]()


def mutated(rng, value):
    """The value with a random change."""
    if isinstance(value, dict) and value and rng.random() < 0.8:
        items = list(value.items())
        i, what = rng.randrange(len(items)), rng.random()
        if what < 0.3:
            del items[i]
        elif what < 0.5:
            items.insert(i, (rng.choice(NAMES), rng.choice(SCALARS)))
        elif what < 0.65:
            rng.shuffle(items)
        else:
            items[i] = (items[i][0], mutated(rng, items[i][1]))
        return dict(items)
    if isinstance(value, list) and value and rng.random() < 0.8:
        items = list(value)
        i, what = rng.randrange(len(items)), rng.random()
        if what < 0.3:
            del items[i]
        elif what < 0.6:
            items.insert(i, rng.choice(items))
        else:
            items[i] = mutated(rng, items[i])
        return items
    return rng.choice(SCALARS)


# ---- the oracle ----

def same(a, b):
    """Equality in which True differs from 1."""
    return json.dumps(a) == json.dumps(b)


def fits(value, schema, root):
    """Is the value valid, with its members in the order of the schema?"""
    if schema is True or not schema:
        return True
    if "$ref" in schema:
        target = schema["$ref"].split("/")[-1]
        return fits(value, root if target == "#" else root["$defs"][target], root)
    if "anyOf" in schema or "oneOf" in schema:
        return any(fits(value, sub, root) for sub in alternatives(schema))
    if "enum" in schema:
        return any(same(value, one) for one in schema["enum"])
    if "const" in schema:
        return same(value, schema["const"])
    types = schema["type"] if isinstance(schema["type"], list) else [schema["type"]]
    if isinstance(value, dict):
        named, other = schema.get("properties", {}), schema.get("additionalProperties")
        order = [name for name in named if name in value]
        others = list(value)[len(order):]
        return "object" in types and list(value)[:len(order)] == order and \
            (other is not False or not others) and \
            all(name in value for name in schema["required"]) and \
            all(fits(value[name], named.get(name, other), root) for name in value)
    if isinstance(value, list):
        low, high = lengths(schema)
        return "array" in types and low <= len(value) <= high and \
            (not schema.get("uniqueItems") or len(set(map(json.dumps, value))) == len(value)) and \
            all(fits(one, item_schema(schema, i), root) for i, one in enumerate(value))
    if isinstance(value, bool) or value is None:
        return ("null" if value is None else "boolean") in types
    if isinstance(value, str):
        return "string" in types
    return "number" in types or (isinstance(value, int) and "integer" in types)


def forms(rng, value, is_compact):
    """Texts of a value: compact, as Python writes it, and in lines."""
    yield json.dumps(value, separators=(",", ":"), ensure_ascii=False)
    if not is_compact:
        yield json.dumps(value, ensure_ascii=False)
        yield json.dumps(value, indent=rng.choice((1, 2, 4)), ensure_ascii=False)


def make_case(rng, seed):
    root = random_root(rng)
    texts = []
    is_compact = '"const"' in json.dumps(root)  # containers in it have one spelling
    for _ in range(6):
        try:
            value = random_value(rng, root, root)
        except TooDeep:
            continue
        for one in (value, mutated(rng, value), mutated(rng, mutated(rng, value))):
            texts += list(forms(rng, one, is_compact))
    return {"schema": root, "strict": False, "texts": texts, "walks": 4, "seed": seed}


def check_case(case, answer, counts):
    root = case["schema"]
    if answer["status"]:
        assert "no value fits" in answer["detail"] or "refers to itself" in answer["detail"], \
            (root, answer)
        counts["endless"] += 1
        return
    for text, (n_fit, is_whole, status) in zip(case["texts"], answer["results"]):
        expected = fits(json.loads(text), root, root)
        assert status == 0 and is_whole == expected, (root, text, n_fit, is_whole, expected)
        assert not is_whole or n_fit == len(text.encode())
        counts["fit" if expected else "unfit"] += 1
    for text in answer["walks"]:
        if text is None:
            counts["unfinished"] += 1
            continue
        assert fits(json.loads(text), root, root), (root, text)
        counts["walked"] += 1


def check_random():
    counts = dict.fromkeys(("fit", "unfit", "walked", "endless", "unfinished"), 0)
    rng = random.Random(19)
    cases = [make_case(rng, seed) for seed in range(N_SCHEMAS)]
    for case, answer in zip(cases, run(cases)):
        check_case(case, answer, counts)
    print(counts)
    assert counts["fit"] > 400 and counts["unfit"] > 400, counts
    assert counts["walked"] > 10 * counts["unfinished"] > -1, counts


def check_recursion():
    tree = {"$defs": {"node": {"type": "object", "properties": {
        "value": {"type": "integer"},
        "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
        "required": ["value", "children"], "additionalProperties": False}},
        "$ref": "#/$defs/node"}
    listed = {"type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
              "required": ["next"], "additionalProperties": False}
    good = {"value": 1, "children": [{"value": 2, "children": []}, {"value": 3, "children": []}]}
    deep = {"next": None}
    for _ in range(40):
        deep = {"next": deep}
    too_deep = deep
    for _ in range(40):
        too_deep = {"next": too_deep}
    a, b = run([{"schema": tree, "strict": True, "texts": [json.dumps(good), "{}"], "walks": 20},
                {"schema": listed, "strict": True, "walks": 20,
                 "texts": [json.dumps(deep), json.dumps(too_deep)]}])
    assert a["results"][0][1] and not a["results"][1][1], a
    assert b["results"][0][1] and not b["results"][1][1], b
    for answer, schema in ((a, tree), (b, listed)):
        for text in answer["walks"]:
            assert text is not None
            json.loads(text)


check_random()
check_recursion()
print("ok")
