#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Keywords of schemas that libraries generate: oneOf, allOf, and members of objects besides the
named ones. Valid and invalid texts, and walks whose values are checked."""
import json

from grammar_cases import run

INT, TEXT = {"type": "integer"}, {"type": "string"}


def closed(required=None, **properties):
    return {"type": "object", "properties": properties, "additionalProperties": False,
            "required": list(properties) if required is None else required}


CAT = closed(kind={"const": "cat"}, lives=INT)
DOG = closed(kind={"const": "dog"}, name=TEXT)
NAMED = {"type": "object", "properties": {"name": TEXT}, "required": ["name"]}
AGED = {"properties": {"age": {"type": "integer", "minimum": 0}}, "required": ["age"]}
TREE = {"allOf": [NAMED, {"$ref": "#/$defs/node"}], "$defs": {"node": {
    "type": "object", "properties": {"next": {"anyOf": [{"$ref": "#"}, {"type": "null"}]}},
    "required": ["next"]}}}
DICT = {"type": "object", "additionalProperties": INT}
PAIR = {"type": "array", "prefixItems": [INT, TEXT]}
AB = {"type": "object", "properties": {"a": TEXT, "ab": TEXT, "ü": TEXT, "q\"": TEXT},
      "required": ["ab"], "additionalProperties": INT}

# schema, valid texts, invalid texts
CASES = [
    ({"oneOf": [CAT, DOG], "discriminator": {"propertyName": "kind", "mapping": {"cat": "#/x"}}},
     ['{"kind":"cat","lives":9}', '{"kind":"dog","name":"Rex"}'],
     ['{"kind":"cat","name":"Rex"}', '{"kind":"cow"}', "{}"]),
    ({"oneOf": [{"$ref": "#/$defs/cat"}, {"type": "null"}], "$defs": {"cat": CAT}},
     ['{"kind":"cat","lives":9}', "null"], ['{"kind":"dog","name":"Rex"}']),
    # annotations
    (dict(TEXT, **{"x-order": 1, "externalDocs": {}, "contentEncoding": "base64"}), ['"a"'], ["1"]),
    ({"type": "array", "items": INT, "uniqueItems": False}, ["[1,1]"], ['["a"]']),
    # tuples
    (PAIR, ['[1,"a"]', '[ 1, "a" ]'], ["[]", "[1]", '["a",1]', '[1,"a",2]', '[1,"a",]']),
    ({"type": "array", "items": [INT, TEXT]}, ['[1,"a"]'], ["[1]", '[1,"a",2]']),
    ({"type": "array", "prefixItems": [INT], "items": TEXT}, ["[1]", '[1,"a"]', '[1,"a","b","c"]'],
     ["[]", '["a"]', "[1,2]", '[1,"a",2]', '[1,"a","b",3]']),
    ({"type": "array", "items": [INT, INT], "additionalItems": TEXT, "maxItems": 4},
     ["[1,2]", '[1,2,"a"]', '[1,2,"a","b"]'], ["[1]", '[1,"a"]', '[1,2,"a","b","c"]', "[1,2,3]"]),
    ({"type": "array", "prefixItems": [INT, TEXT], "minItems": 0, "items": False},
     ["[]", "[1]", '[1,"a"]'], ['["a"]', '[1,"a",1]']),
    ({"type": "array", "prefixItems": [INT, TEXT], "maxItems": 1}, ["[1]"], ["[]", '[1,"a"]']),
    ({"type": "array", "prefixItems": [INT], "items": True, "minItems": 3},
     ['[1,"a",null]', "[1,{},[],2]"], ["[1]", "[1,2]", "[null,1,1]"]),
    ({"type": "array", "items": PAIR}, ["[]", '[[1,"a"],[2,"b"]]'], ['[[1,"a"],[2]]']),
    ({"type": "array", "items": False}, ["[]", "[ ]"], ["[1]"]),
    ({"type": "array", "prefixItems": [{"$ref": "#"}], "minItems": 0}, ["[]", "[[]]", "[[[]]]"],
     ["[[],[]]", "[1]"]),
    ({"allOf": [PAIR, {"maxItems": 1, "description": "x"}]}, ["[1]"], ['[1,"a"]']),
    # items that differ
    ({"type": "array", "items": {"enum": ["a", "ab", 1, 1.0, None]}, "uniqueItems": True},
     ["[]", '["a"]', '["ab","a"]', '[null,1,"a","ab"]', '[ 1, "ab" ]'],
     ['["a","a"]', '["a","b"]', '["a","ab","a"]', "[1,1]", "[1,1.0]", '["a",]']),
    ({"type": "array", "items": {"$ref": "#/$defs/c"}, "uniqueItems": True, "minItems": 2,
      "maxItems": 2, "$defs": {"c": {"enum": ["x", "y", "z"], "type": "string"}}},
     ['["x","y"]', '["z","x"]'], ['["x"]', '["x","x"]', '["x","y","z"]', "[]"]),
    ({"type": "array", "items": {"type": "boolean"}, "uniqueItems": True, "minItems": 1},
     ["[true]", "[false,true]"], ["[]", "[true,true]", "[true,false,true]"]),
    ({"type": "array", "items": {"const": 5}, "uniqueItems": True}, ["[]", "[5]"], ["[5,5]"]),
    ({"type": "array", "items": INT, "uniqueItems": True, "maxItems": 1}, ["[]", "[1]"],
     ["[1,2]"]),
    ({"type": "array", "items": {"enum": [2 ** 53, 2 ** 53 + 1, 5, 5.0]}, "uniqueItems": True},
     ["[9007199254740993,9007199254740992]"], ["[9007199254740993,9007199254740993]", "[5,5]"]),
    # additionalProperties
    (DICT, ["{}", '{"a":1}', '{"a": 1, "b": -2}', '{"\\u0061\\n":1,"":2}'],
     ['{"a":"b"}', '{"a":1,}', '{a:1}', '{"a":1.5}', '{"a":1 "b":2}']),
    ({"type": "object", "additionalProperties": True}, ['{"a":[{}]}', "{}"], ["[]"]),
    ({"type": "object", "properties": {"a": INT}, "additionalProperties": True},
     ['{"a":1,"b":"x"}', '{"b":null}', "{}"], ['{"a":"x"}', '{"b":1,"a":2}']),
    (AB, ['{"ab":"x"}', '{"a":"x","ab":"y","c":1}', '{"ab":"x","abc":1,"":2,"b":3,"üx":4}',
          '{"ab":"","q":1,"q\\"x":2,"ä":3,"\\n":4,"日本":5,"🙂":6}', '{"ab":"","ü":"x"}'],
     ['{"a":"x"}', '{"ab":1}', '{"ab":"x","a":1}', '{"ab":"x","ab":1}', '{"ab":"x","ü":1}',
      '{"ab":"x","q\\"":1}', '{"ab":"x","c":"y"}', '{"ab":"x","\\u0061":1}', '{"c":1,"ab":"x"}']),
    ({"type": "object", "additionalProperties": INT, "required": ["a", "b"]},
     ['{"a":1,"b":2}', '{"a":1,"b":2,"c":3}'], ['{"a":1}', '{"c":3,"a":1,"b":2}', "{}"]),
    ({"type": "array", "items": DICT}, ['[{"a":1},{}]'], ['[{"a":[]}]']),
    # propertyNames
    ({"type": "object", "propertyNames": TEXT, "additionalProperties": INT},
     ['{"a":1}', "{}"], ['{"a":""}']),
    ({"type": "object", "propertyNames": {"pattern": "^[a-z]+$"}, "additionalProperties": INT},
     ['{"ab":1,"c":2}', "{}"], ['{"A":1}', '{"":1}']),
    ({"type": "object", "propertyNames": {"maxLength": 1}}, ['{"a":[],"b":{}}'], ['{"ab":1}']),
    ({"type": "object", "propertyNames": {"type": "string", "enum": ["x", "y"]},
      "additionalProperties": INT, "required": ["x"]},
     ['{"x":1}', '{"x":1,"y":2}'], ['{"y":2}', '{"x":1,"z":2}', '{"x":""}']),
    # patternProperties
    ({"type": "object", "patternProperties": {"^x-": INT}, "additionalProperties": False},
     ["{}", '{"x-a":1,"x-":2}'], ['{"x":1}', '{"x-a":""}', '{"y":1}']),
    ({"patternProperties": {"^x": INT}, "properties": {"a": TEXT}, "required": ["a"]},
     ['{"a":""}', '{"a":"","x":1,"xy":2}'], ['{"x":1}', '{"a":"","b":1}', '{"a":"","x":""}']),
    # allOf
    ({"allOf": [NAMED, AGED]}, ['{"name":"a","age":1}'], ['{"name":"a"}', '{"age":1}', "{}",
                                                         '{"name":"a","age":-1}']),
    ({"allOf": [CAT]}, ['{"kind":"cat","lives":1}'], ["{}"]),
    ({"allOf": [{"$ref": "#/$defs/n"}], "$defs": {"n": {"enum": ["a", "b"]}}, "default": "a"},
     ['"a"', '"b"'], ['"c"']),
    ({"allOf": [closed(a=INT), closed(b=INT)]}, ['{"a":1,"b":2}'],
     ['{"a":1}', '{"b":2}', '{"a":1,"b":2,"c":3}']),
    ({"allOf": [{"$ref": "#/$defs/named"}], "properties": {"age": INT}, "required": ["age"],
      "$defs": {"named": NAMED}}, ['{"name":"","age":1}'], ['{"name":""}']),
    ({"allOf": [{"type": ["string", "number"], "minimum": 1}, {"type": ["integer", "null"]},
                {"minimum": 3, "maximum": 9}, True]}, ["3", "9"], ["2", "10", "3.5", "null", '"a"']),
    ({"type": "integer", "allOf": [{"minimum": 2 ** 53, "maximum": 2 ** 53 + 3},
                                   {"minimum": 2 ** 53 + 1, "maximum": 2 ** 53 + 2}]},
     ["9007199254740993", "9007199254740994"], ["9007199254740992", "9007199254740995"]),
    ({"allOf": [{"properties": {"a": NAMED}}, {"properties": {"a": AGED}}], "required": ["a"],
      "type": "object"}, ['{"a":{"name":"","age":1}}'], ['{"a":{"name":""}}', "{}"]),
    ({"allOf": [{"type": "array", "items": NAMED}, {"items": AGED, "maxItems": 1}]},
     ["[]", '[{"name":"","age":1}]'], ['[{"age":1}]', '[{"name":"","age":1},{"name":"","age":1}]']),
    # as zod writes several patterns of a string
    ({"type": "string", "allOf": [{"pattern": "^a"}, {"pattern": "b$"}, {"pattern": "^a"},
                                  {"pattern": "^.{2,4}$", "maxLength": 3}]},
     ['"ab"', '"axb"'], ['"a"', '"b"', '"axxb"', '"ba"']),
    ({"allOf": [{"pattern": "^[^A-Z]*$", "format": "lowercase"}, {"pattern": "^\\d*[x-z]"}],
      "enum": ["1x", "x1", "X", "a"]}, ['"1x"', '"x1"'], ['"X"', '"a"']),
    ({"type": "string", "allOf": [{"$ref": "#/$defs/short"}, {"pattern": ""}], "pattern": "[5-9]",
      "format": "ipv4", "$defs": {"short": {"pattern": "^[0-9][.]"}}},
     ['"1.0.5.0"'], ['"12.0.5.0"', '"1.0.4.0"', '"1.5"']),
    (TREE, ['{"name":"a","next":null}', '{"name":"a","next":{"name":"b","next":null}}'],
     ['{"name":"a","next":{"next":null}}', '{"next":null}']),
    ({"allOf": [{"$ref": "#"}, {"type": "null"}]}, ["null"], ["1"]),
]
STRICT = [
    (closed(scores=DICT), ['{"scores":{"a":1}}', '{"scores":{}}'], ['{"scores":{"a":""}}']),
    (closed(m={"type": "object", "propertyNames": {"enum": ["a", "b"]},
               "additionalProperties": INT}), ['{"m":{"a":1}}', '{"m":{}}'], ['{"m":{"c":1}}']),
    (closed(pet={"oneOf": [CAT, DOG]}), ['{"pet":{"kind":"dog","name":"Rex"}}'], ['{"pet":null}']),
    ({"allOf": [closed(a=INT), closed(b=INT)]}, ['{"a":1,"b":2}'], ['{"a":1}']),
]


def check(cases, strict):
    answers = run([{"schema": schema, "strict": strict, "texts": good + bad, "walks": 6, "seed": 1}
                   for schema, good, bad in cases])
    for (schema, good, bad), answer in zip(cases, answers):
        assert not answer["status"], (schema, answer)
        for text, (_, is_whole, status) in zip(good + bad, answer["results"]):
            assert status == 0 and is_whole == (text in good), (schema, text, is_whole)
        for text in answer["walks"]:
            if text is not None:
                json.loads(text)


def check_many_names():
    """Thousands of members, long names, and names that are prefixes of others."""
    names = [f"member {i:04}" for i in range(2000)] + ["n" * i for i in range(1, 300)]
    schema = {"type": "object", "properties": {name: TEXT for name in names},
              "additionalProperties": INT}
    texts = [json.dumps({name: 1}) for name in names[::97] + ["n" * 299]] + \
        [json.dumps({name + "x": 1}) for name in names[::97] + ["n" * 299]]
    [answer] = run([{"schema": schema, "strict": False, "texts": texts, "walks": 0}])
    wholes = [is_whole for _, is_whole, _ in answer["results"]]
    assert wholes == [False] * (len(texts) // 2) + [True] * (len(texts) // 2), (answer, wholes)


def check_expensive_merges():
    """Schemas that double, and large schemas in many places, are refused in time."""
    double = {f"a{i}": {"allOf": [{"$ref": f"#/$defs/a{i + 1}"}, {"$ref": f"#/$defs/a{i + 1}"}]}
              for i in range(25)}
    large = {"type": "object", "properties": {f"p{i}": INT for i in range(3000)}}
    many = {"type": "object", "properties": {
        f"m{i}": {"allOf": [{"$ref": "#/$defs/large"}, {"type": "object"}]} for i in range(300)}}
    answers = run([{"schema": {"$ref": "#/$defs/a0", "$defs": dict(double, a25=CAT)},
                    "strict": False, "texts": [], "walks": 0},
                   {"schema": dict(many, **{"$defs": {"large": large}}), "strict": False,
                    "texts": [], "walks": 0}])
    for answer, detail in zip(answers, ('"allOf": the merged schema is too large', "is too large")):
        assert detail in answer["detail"], answer


check(CASES, False)
check(STRICT, True)
check_many_names()
check_expensive_merges()
print("ok")
