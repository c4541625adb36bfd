#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Small random templates over tern's subset of Jinja: expressions, filters, tests, methods, slices,
statements, white space control; and expressions that random ones rarely reach.  Jinja2 and tern
give the same bytes or both refuse.

usage: test_jinja_random.py [--seed N] [--count N]   another range of the same endless sequence"""
import collections
import os
import random
import sys
import tempfile

import jinja_oracle as oracle
from jinja_oracle import command

REQUEST = {
    "messages": [{"role": "system", "content": " Be brief.\n"},
                 {"role": "user", "content": "Hi <b>\u00e9\U0001f600</b> \"you\"", "n": 1},
                 {"role": "assistant", "content": "it's", "n": 2, "tags": ["x", "y"]},
                 {"role": "user", "content": "", "n": 1.5}],
    "kwargs": {"s": "Hello, World", "t": "\u00dfT\u00e9 \u4e2d\n two\tthree ", "e": "", "n": 7,
               "z": 0, "m": -3, "f": 2.5, "yes": True, "no": False, "nil": None,
               "l": [3, 1, 2, 1], "w": ["b", "A", "c", "a"], "x": [[1, 2], [3], []], "empty": [],
               "d": {"b": 1, "a": "x", "C": None, "items": 5}, "o": {}},
    "tools": None, "documents": None, "add_generation_prompt": True,
    "bos_token": "<s>", "eos_token": "</s>", "now": "2024-02-29 13:04:05"}

NAMES = list(REQUEST["kwargs"]) + ["messages", "missing", "bos_token", "tools"]
STRINGS = ["", "a", "b", "x", "Hello", ", ", "\u00e9", " a b ", "<s>", "\n", "it's", "\"", "\\",
           "1", "2.5", "-7", "  ", "a.b", "%", "aXbXc", "\U0001f600!", "role", "content", "user"]
MEMBERS = ["role", "content", "n", "tags", "a", "b", "C", "zz", "0"]


class Maker:
    """Generates random templates; depth bounds their nesting."""

    def __init__(self, seed):
        self.random = random.Random(seed)
        self.loops = 0
        self.n_names = 0

    def pick(self, *items):
        return self.random.choice(items)

    def chance(self, share):
        return self.random.random() < share

    def fresh(self):
        """A new name.  A name that an outer scope sets later is not yet defined for an inner one;
        in Jinja2 that holds even if it is defined outside.  Templates do not rely on it."""
        self.n_names += 1
        return f"v{self.n_names}"

    def old(self):
        """An existing name."""
        return f"v{self.random.randint(1, self.n_names + 1)}"

    # ---- expressions ----

    def string(self):
        text = self.random.choice(STRINGS)
        if self.chance(0.1):
            return self.pick(r"'\x41\u00e9\n\t\\'", r"'a\
b'", r"'\101\q\''", "'a' 'b'", r'"\U0001F600"')
        quote = self.pick("'", '"')
        return quote + text.replace("\\", "\\\\").replace("\n", "\\n").replace(quote, "\\" + quote) \
            + quote

    def number(self):
        return self.pick("0", "1", "2", "3", "-1", "7", "10", "1_000", "2.5", "0.1", "1e3", "-2.0",
                         "1e-7", "1e16", "123456789012", "0.30000000000000004")

    def integer(self):
        return self.pick("0", "1", "2", "3", "-1", "-2", "5", "n", "l | length")

    def literal(self):
        return self.pick(self.string, self.string, self.number, self.number,
                         lambda: self.pick("true", "false", "none", "True", "False", "None"))()

    def leaf(self):
        if self.n_names and self.chance(0.1):
            return self.old()
        return self.random.choice(NAMES) if self.chance(0.6) else self.literal()

    def items(self, depth, most=3):
        return ", ".join(self.expression(depth) for _ in range(self.random.randint(0, most)))

    def container(self, depth):
        kind = self.random.randrange(3)
        if kind == 0:
            return "[" + self.items(depth) + "]"
        if kind == 1:
            return "(" + self.expression(depth) + ", " + self.items(depth) + ")"
        return "{" + ", ".join(self.pick(self.string, self.number)() + ": " + self.expression(depth)
                               for _ in range(self.random.randint(0, 3))) + "}"

    def sequence(self, depth):
        """A value that supports slices: Jinja2 treats other constants specially."""
        return self.pick(lambda: self.random.choice(NAMES), self.string,
                         lambda: "[" + self.items(depth) + "]", lambda: self.pick("l", "w", "t"))()

    def subscript(self, depth):
        kind = self.random.randrange(5)
        base = self.sequence(depth) if kind > 2 else self.primary(depth)
        if kind == 0:
            return base + "." + self.random.choice(MEMBERS[:-1])
        if kind == 1:
            return base + "[" + self.pick(self.string, self.integer)() + "]"
        if kind == 2:
            return base + "." + self.pick("0", "1")
        bounds = [self.integer() if self.chance(0.6) else "" for _ in range(2)]
        step = self.pick("", "", ":", ":1", ":2", ":-1", ":-2", ":none")
        return base + "[" + ":".join(bounds) + step + "]"

    def method(self, depth):
        base = self.primary(depth)
        simple = ["upper()", "lower()", "strip()", "lstrip()", "rstrip()", "title()", "capitalize()",
                  "split()", "rsplit()", "splitlines()", "items()", "keys()", "values()", "isdigit()", "isalpha()", "isalnum()", "isspace()", "isupper()",
                  "islower()", "copy()"]
        one = ["strip", "lstrip", "rstrip", "split", "rsplit", "startswith", "endswith", "find",
               "rfind", "count", "index", "removeprefix", "removesuffix", "get", "join",
               "splitlines"]
        if self.chance(0.5):
            call = base + "." + self.random.choice(simple)
            return "(" + call + "|list)" if call.endswith(("items()", "keys()", "s()")) else call
        if self.chance(0.2):
            return base + ".replace(" + self.string() + ", " + self.string() + \
                self.pick("", ", 1", ", -1", ", 0") + ")"
        if self.chance(0.2):
            return base + "." + self.pick("split", "rsplit") + "(" + self.string() + ", " + \
                self.pick("0", "1", "2", "-1") + ")"
        if self.chance(0.1):
            return base + ".get(" + self.string() + ", " + self.expression(depth) + ")"
        return base + "." + self.random.choice(one) + "(" + self.expression(depth) + ")"

    def filters(self, depth):
        a, s, i = (lambda: self.expression(depth)), self.string, self.integer
        choices = [
            lambda: self.pick("upper", "lower", "title", "capitalize", "trim", "string", "length",
                              "count", "list|list", "first", "last", "abs", "int", "float", "round",
                              "sort", "tojson", "wordcount", "min", "max", "sum", "reverse|list",
                              "unique|list", "items|list", "dictsort"),
            lambda: "default(" + a() + self.pick("", ", true", ", boolean=true", ", false") + ")",
            lambda: "d(" + a() + ")",
            lambda: "join" + self.pick("", "(" + s() + ")", "(" + s() + ", attribute='role')"),
            lambda: "replace(" + s() + ", " + s() + self.pick("", ", 1", ", 0") + ")",
            lambda: "trim(" + s() + ")",
            lambda: "indent" + self.pick("", "(2)", "(2, true)", "(1, first=true, blank=true)",
                                         "('> ')", "(width=3)"),
            lambda: "tojson(" + self.pick("indent=2", "indent=0", "sort_keys=true", "false, 1",
                                          "separators=(',', ':')", "ensure_ascii=false") + ")",
            lambda: "round(" + self.pick("1", "2", "0, 'floor'", "1, 'ceil'", "method='floor'",
                                         "-1") + ")",
            lambda: "int(" + self.pick("5", "default=none", "0, 16", "base=2") + ")",
            lambda: "float(" + self.pick("1.5", "default=none") + ")",
            lambda: "map(" + self.pick("'upper'", "'length'", "'string'", "attribute='role'",
                                       "attribute='zz', default='-'", "attribute=0",
                                       "'replace', 'a', 'b'", "attribute='tags.0'") + ")|list",
            lambda: self.pick("select", "reject") + "(" +
            self.pick("", "'odd'", "'string'", "'gt', 1", "'equalto', 'b'", "'in', [1, 'a']",
                      "'defined'", "'none'") + ")|list",
            lambda: self.pick("selectattr", "rejectattr") + "(" +
            self.pick("'role'", "'role', 'equalto', 'user'", "'n', 'defined'", "'n', 'gt', 1",
                      "'tags'", "'role', 'in', ['user', 'tool']", "'zz', 'undefined'") + ")|list",
            lambda: "sort(" + self.pick("reverse=true", "true", "case_sensitive=true",
                                        "attribute='role'", "false, true",
                                        "attribute='content', reverse=true") + ")",
            lambda: "groupby('role')|map('first')|list",
            lambda: "dictsort(" + self.pick("true", "false, 'value'", "reverse=true",
                                            "by='key'") + ")",
            lambda: self.pick("min", "max") + "(" + self.pick("case_sensitive=true",
                                                              "attribute='content'", "true") + ")",
            lambda: "sum(" + self.pick("attribute='zz'", "start=5", "start=[]") + ")",
            lambda: "unique(true)|list",
            lambda: "list|" + self.lazy() + self.pick(
                "|length", "|first", "|last", "|join", "|sort", "|tojson", "|reverse|list", "|list",
                " == []", "|max", "|default(1, true)|list", "|map('string')|list", " is sequence",
                " is iterable", "|list|length"),
        ]
        return self.random.choice(choices)()

    def lazy(self):
        return self.pick("select", "reject('none')", "map('string')", "reverse", "selectattr('n')",
                         "rejectattr('n')", "map(attribute='role')")

    def test(self, depth):
        return self.pick(
            lambda: self.pick("defined", "undefined", "none", "boolean", "true", "false", "integer",
                              "float", "number", "string", "mapping", "sequence", "iterable", "odd",
                              "even", "lower", "upper", "callable"),
            lambda: self.pick("eq", "ne", "lt", "le", "gt", "ge", "equalto", "in", "sameas",
                              "greaterthan", "lessthan", "==", "!=", "<", ">=")
            + "(" + self.pick(self.literal, self.leaf)() + ")",
            lambda: "divisibleby(" + self.pick("2", "3", "0", "n", "1.5") + ")",
            lambda: self.pick("divisibleby 3", "eq 'a'", "in [1, 2]", "in 'abc'"))()

    def primary(self, depth):
        if depth <= 0 or self.chance(0.5):
            return self.leaf()
        return self.pick(lambda: "(" + self.expression(depth - 1) + ")",
                         lambda: self.container(depth - 1),
                         lambda: self.subscript(depth - 1),
                         lambda: self.method(depth - 1))()

    def expression(self, depth):
        if depth <= 0:
            return self.leaf()
        e = self.expression
        choices = [
            lambda: self.leaf(),
            lambda: self.container(depth - 1),
            lambda: self.subscript(depth - 1),
            lambda: self.subscript(depth - 1),
            lambda: self.method(depth - 1),
            lambda: self.method(depth - 1),
            lambda: self.primary(depth - 1) + self.pick("|", " | ") + self.filters(depth - 1),
            lambda: self.primary(depth - 1) + self.pick("|", " | ") + self.filters(depth - 1),
            lambda: self.primary(depth - 1) + self.pick(" is ", " is not ") + self.test(depth - 1),
            lambda: "not " + e(depth - 1),
            lambda: "-" + self.primary(depth - 1),
            lambda: "+" + self.primary(depth - 1),
            lambda: e(depth - 1) + " " + self.pick("+", "-", "*", "/", "//", "~", "~", "+")
            + " " + e(depth - 1),
            lambda: self.number() + " % " + self.pick("3", "-2", "1.5", "n", "z", "yes"),
            lambda: self.pick("'%s'", "'<%6s|%-4s>'", "'%d%%'", "'%+05d'", "'%.2f'", "'% .1e'",
                              "'%r'", "'%x %#o'", "'%(a)s'", "'%.1s'", "'%c'", "'%-8.3g|'", "'a'",
                              "'%*d'") + " % " + self.pick(
                                  "(1, 2)", "('\u00e9x', 3)", "{'a': 1}", "2", "-7", "2.5", "[1]",
                                  "yes", "'a'", self.leaf()),
            lambda: self.pick("2", "3", "-2", "1.5", "n") + " ** " + self.pick("0", "2", "3", "-1",
                                                                              "2 ** 2"),
            lambda: e(depth - 1) + " " + self.pick("==", "!=", "<", "<=", ">", ">=", "in",
                                                   "not in") + " " + e(depth - 1),
            lambda: self.integer() + " < " + self.integer() + " <= " + self.integer(),
            lambda: e(depth - 1) + self.pick(" and ", " or ") + e(depth - 1),
            lambda: e(depth - 1) + " if " + e(depth - 1) + self.pick("", " else " + e(depth - 1)),
            lambda: "(" + e(depth - 1) + ")",
            lambda: "range(" + self.pick("3", "1, 4", "5, 0, -2", "0", "n") + ")|list",
            lambda: "dict(" + self.pick("", "a=1", "a=" + e(depth - 1) + ", zz='q'") + ")",
            lambda: "strftime_now(" + self.pick("'%Y-%m-%d'", "'%d %b %Y'", "'%A %B %j %H:%M:%S'",
                                                "'%I %p %y %-d %%'", "'%a, %e'") + ")",
        ]
        return self.random.choice(choices)()

    # ---- statements ----

    def data(self):
        return "".join(self.pick("a", "B", " ", "  ", "\n", "\n", "\t", "-", "{", "}", "%", "\u00e9",
                                 "\u00a0", "text", "#", "'", "\r\n", "\r")
                       for _ in range(self.random.randint(0, 5)))

    def tag(self, inside):
        return "{%" + self.pick("", "", "", "-", "-", "+") + self.pick(" ", "", "\n ") + inside + \
            self.pick(" ", "", "\n") + self.pick("", "", "", "-", "-", "+") + "%}"

    def output(self, depth):
        return "{{" + self.pick("", "", "-") + self.pick(" ", "") + self.expression(depth) + \
            self.pick(" ", "") + self.pick("", "", "-") + "}}"

    def comment(self):
        return "{#" + self.pick("", "-", "+") + self.pick(" c ", "", " {{ x }} ", "\n") + \
            self.pick("", "-") + "#}"

    def raw(self):
        return self.tag("raw") + self.pick("{{ x }}", " {% if %} ", "\n\n a", "{# c") + \
            self.tag("endraw")

    def condition(self, depth):
        what = "w|" + self.lazy() if self.chance(0.1) else self.expression(depth)
        text = self.tag("if " + what) + self.body(depth - 1)
        if self.chance(0.3):
            text += self.tag("elif " + self.expression(depth)) + self.body(depth - 1)
        if self.chance(0.5):
            text += self.tag("else") + self.body(depth - 1)
        return text + self.tag("endif")

    def loop(self, depth):
        target = self.pick("i", "i", "s", "a, b", "(a, b)", "n")
        over = self.pick("l", "w", "messages", "x", "d", "d.items()", "d|items", "t", "'abc'",
                         "range(3)", "empty", "missing", "[(1, 2), (3, 4)]", "l[::-1]", "tools or []",
                         "messages|selectattr('n')", "w|map('upper')",
                         self.expression(1)) if "," not in target else \
            self.pick("d.items()", "d|items", "[(1, 2), (3, 4)]", "d|dictsort", "x")
        head = "for " + target + " in " + over
        if self.chance(0.25) and "," not in target:
            head += " if " + self.pick("i", "i != 1", "loop is undefined", "s", self.expression(1))
        self.loops += 1
        text = self.tag(head) + self.body(depth - 1)
        if self.chance(0.2):
            text += self.tag("if " + self.pick("loop.index == 2", "i == 1", self.expression(1))) + \
                self.tag(self.pick("break", "continue")) + self.tag("endif") + self.body(0)
        self.loops -= 1
        if self.chance(0.2):
            text += self.tag("else") + self.body(depth - 1)
        return text + self.tag("endfor")

    def loop_variable(self):
        if not self.loops:
            return self.output(1)
        return "{{ " + self.pick("loop.index", "loop.index0", "loop.first", "loop.last",
                                 "loop.length", "loop.revindex", "loop.revindex0", "loop.depth",
                                 "loop.depth0", "loop.previtem", "loop.nextitem",
                                 "loop.cycle('a', 'b')", "loop.changed(i)", "i", "a", "s",
                                 "loop.nextitem is defined", "loop.zz") + " }}"

    def assignment(self, depth):
        kind = self.random.randrange(5)
        if kind == 0:
            body = self.body(depth - 1)
            return self.tag("set " + self.fresh() + self.pick("", "", " | upper",
                                                              " | trim | length")) + \
                body + self.tag("endset")
        if kind == 1:
            return self.tag("set " + self.fresh() + ", " + self.fresh() + " = " + self.pick("1, 2", "(s, n)", "[1, 2]", "x[0]", "1"))
        if kind == 2:
            return self.tag("set ns = namespace(" + self.pick("", "q=1", "q=n, p=s", "d") + ")") + \
                self.tag("set ns." + self.pick("q", "p") + " = " + self.expression(depth)) + \
                "{{ ns.q }}{{ ns.p }}"
        if kind == 3:
            name = self.random.choice(NAMES)
            return self.tag("set " + name + " = " + name + self.pick("", " ~ 1", "[1:]", " or 1"))
        value = self.expression(depth)
        return self.tag("set " + self.fresh() + " = " + value + self.pick("", "", "", ", 1"))

    def macro(self, depth):
        parameters = self.pick("", "p", "p, q", "p, q=1", "p='x', q=s", "n, i=n")
        outer, self.loops = self.loops, 0
        self.n_names += 1
        name = f"g{self.n_names}"
        text = self.tag("macro " + name + "(" + parameters + ")") + self.body(depth - 1) + \
            self.pick("", "{{ p }}", "{{ q }}", "{{ varargs }}", "{{ kwargs|length }}",
                      "{{ caller() if caller is defined }}", "{{ n }}") + self.tag("endmacro")
        self.loops = outer
        e = self.expression
        call = name + "(" + self.pick("", e(1), e(1) + ", " + e(1), "q=" + e(1), e(1) + ", q=" + e(1),
                                "1, 2, 3", "p=1, r=2") + ")"
        return text + self.pick("{{ " + call + " }}", "{{ " + call + " | upper }}",
                                "{{ " + call + " ~ 1 }}", self.tag("set w1 = " + call) + "{{ w1 }}",
                                self.tag("call " + call) + self.body(0) + self.tag("endcall"),
                                self.tag("call(y) " + call) + "{{ y }}" + self.tag("endcall"))

    def block(self, depth):
        kind = self.random.randrange(3)
        if kind == 0:
            return self.tag("with " + self.pick("", "v = " + self.expression(1),
                                                "v = s, s = n", "i = 1, n = i")) + \
                self.body(depth - 1) + "{{ v }}{{ s }}" + self.tag("endwith")
        if kind == 1:
            return self.tag("filter " + self.pick("upper", "trim", "indent(2)", "replace('a', 'b')",
                                                  "trim | upper", "length")) + \
                self.body(depth - 1) + self.tag("endfilter")
        return self.tag("generation") + self.body(depth - 1) + self.tag("endgeneration")

    def statement(self, depth):
        if depth <= 0:
            return self.pick(self.data, self.loop_variable, lambda: self.output(1))()
        return self.pick(self.data, self.data, lambda: self.output(3), lambda: self.output(2),
                         self.comment, self.raw, lambda: self.condition(depth),
                         lambda: self.condition(depth), lambda: self.loop(depth),
                         lambda: self.loop(depth), self.loop_variable, self.loop_variable,
                         lambda: self.assignment(depth), lambda: self.assignment(depth),
                         lambda: self.macro(depth), lambda: self.block(depth))()

    def body(self, depth):
        return self.data() + "".join(self.statement(depth) + self.data()
                                     for _ in range(self.random.randint(1, 2)))

    def template(self):
        if self.chance(0.5):  # expressions only, several together
            return "|".join("{{ " + self.expression(3) + " }}"
                            for _ in range(self.random.randint(1, 2)))
        return self.body(3) + self.data()


LEAST = "(-9 * 999999999999999999 - 223372036854775817)"  # of 64 bits
EXPRESSIONS = [
    f"'aa'.replace('a', 'b', {LEAST})", f"'aa'|replace('', 'b', {LEAST})",
    f"'a b'.split(' ', {LEAST})", f"'a b'.split(none, {LEAST})", f"'a b'.rsplit('a', {LEAST})",
    f"{LEAST}|round(-18)", "25|round(-1)", "-35|round(-1)", "-26|round(-1)", "14|round(-1)",
    "-4|round(-1)", "5|round(-1)", "15|round(-1)", "123|round(-3)", "500|round(-3)", "-7|round(2)",
    "1.0 // 0.1", "-1.0 // 0.1", "6.0 // 0.6", "7.5 // -2", "-0.0 // 3", "1e300 // 1e-10",
    "'  1  2   3  '.split(none, 1)", "' a b '.split(maxsplit=0)", "'a b  c '.split(none, 1)[1]",
    "'a\0b'|title", "'\u4e2da 1a it\'s'.title()", "'\u4e2da'|title",
    "'x1A'|int(base=16)", "'0x1A'|int(base=16)", "'1__0'|int", "'_1'|int", "'1_0'|int",
    "[none, none]|sort", "[none, 1]|sort", "[1, none]|sort", "[missing, missing]|sort|length",
    "[none, none, {}]|sort", "[{}, {}]|sort(reverse=true)", "[none, none]|min",
    "missing is sameas missing", "none is sameas none", "messages is sameas missing",
    "'1_0.5'|float", "'9223372036854775807'|int", "'-9223372036854775808'|int",
    "'a5b'|replace(5, 'x')", "'a5b'|replace('5', 7)", "'abc'|replace('b', missing)",
    "'abc'|replace('b', none)", "'abc'|replace('b')",
    "[{'k': 'b'}, {'k': 'A', 'v': 1}, {'k': 'a', 'v': 2}]|groupby('k')",
    "[{'k': 'b'}, {'k': 'A', 'v': 1}, {'k': 'a', 'v': 2}]|groupby('k', case_sensitive=true)",
    "[{'k': 'b'}, {'v': 1}]|groupby('k', default='A')", "[{'k': 'b'}, {'v': 1}]|groupby('k')",
    "(messages|groupby('role'))[0].grouper", "(messages|groupby('role'))[0].list|length",
    "[]|groupby('k')", "[[1, 2], [0, 3], [1, 4]]|groupby(0)",
    "'%s-%d'|format('a', 3)", "'%(a)s'|format(a=3)", "'a'|format", "1|format", "'%s'|format(1, 2)",
    "'%s'|format(1, a=2)", "'%%'|format",
    "'{}'.format('a')", "'a{}b{}{{c}}'.format(1, none)", "'{1}{0}{1}'.format('x', true)",
    "'{a}{}{b}'.format(1.5, a='y', b=[1, 'z'])", "''.format()", "'a'.format(1, b=2)", "'{}'.format()",
    "'{2}'.format(1)", "'{a}'.format()", "'{} {0}'.format(1)", "'{0} {}'.format(1)", "'{'.format(1)",
    "'}'.format(1)", "'{}}'.format(1)", "'{{}'.format(1)", "'{\u00e9}'.format(**{})",
    "'\u00e9{}\U0001F600'.format('\u4e2d')", "'{}'.format(missing)", "'{00}'.format(1)",
    "'\u00e9\U0001F600\x7f\n'|tojson(ensure_ascii=true)", "'\u00e9\x7f'|tojson",
    "[s, t, {'\u00e9': 1}]|tojson(true)", "[t]|tojson(ensure_ascii=true, indent=2)",
    "d|attr('a') is defined", "s|attr('upper') is defined", "(s|attr('upper'))()",
]


def is_of_this_python(source, difference):
    """Python 3.13 accepts any argument of splitlines as a truth value; tern requires a number, as
    earlier versions do."""
    return (sys.version_info >= (3, 13) and "splitlines(" in source and
            "must be an integer" in difference)


def compare(seeds):
    """The kinds of Jinja2's answers, and descriptions of the differences."""
    sources = [Maker(seed).template() for seed in seeds]
    with tempfile.TemporaryDirectory() as folder:
        answers = oracle.run_tern([(source, REQUEST) for source in sources], folder)
    kinds, found = collections.Counter(), []
    for seed, source, answer in zip(seeds, sources, answers):
        expected = oracle.rendered(oracle.compiled(source), REQUEST)
        kinds[expected.kind] += 1
        difference = oracle.differs(expected, answer)
        if difference and not is_of_this_python(source, difference):
            found.append(f"seed {seed}: {source!r}\n    {difference}")
    return kinds, found


class Expressions(command.TestCase):
    def test_same_as_jinja2(self):
        sources = ["{{ " + expression + " }}" for expression in EXPRESSIONS]
        with tempfile.TemporaryDirectory() as folder:
            answers = oracle.run_tern([(source, REQUEST) for source in sources], folder)
        for source, answer in zip(sources, answers):
            with self.subTest(source):
                expected = oracle.rendered(oracle.compiled(source), REQUEST)
                self.assertIsNone(oracle.differs(expected, answer))


class RandomTemplates(command.TestCase):
    def test_same_as_jinja2(self):
        kinds, found = compare(range(FIRST, FIRST + COUNT))
        print(f"{COUNT} templates: " + ", ".join(f"{n} {kind}" for kind, n in kinds.most_common()))
        self.assertEqual(len(found), 0, "\n".join(found[:10]))
        self.assertGreater(kinds["text"], COUNT // 4)


if __name__ == "__main__":
    arguments = dict(zip(sys.argv[1::2], sys.argv[2::2]))
    FIRST = int(arguments.get("--seed", 0))
    COUNT = int(arguments.get("--count", 4000))
    del sys.argv[1:]
    command.main()
