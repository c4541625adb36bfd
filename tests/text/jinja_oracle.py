# SPDX-License-Identifier: MIT
"""Chat templates rendered by Jinja2, set up as Hugging Face's transformers sets it up, and by tern,
and the comparison of the two.  Without the package jinja2 the tests are run by another Python of
this machine that has it, or skipped; with CI=true they fail."""
import copy
import datetime
import json
import os
import re
import subprocess
import sys
import warnings

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command


command.need_package("jinja2")
import jinja2
import jinja2.ext
import jinja2.sandbox

RENDER = os.environ.get("TERN_RENDER_CASES", "")
# Exit codes of tern: the template refuses, it is too much work, it holds what tern does not have.
USAGE, LIMIT, UNSUPPORTED = 2, 3, 6


class Raised(jinja2.exceptions.TemplateError):
    """raise_exception was called."""


class Generation(jinja2.ext.Extension):
    """{% generation %} ... {% endgeneration %}, which marks answers."""
    tags = {"generation"}

    def parse(self, parser):
        line = next(parser.stream).lineno
        body = parser.parse_statements(["name:endgeneration"], drop_needle=True)
        call = self.call_method("_generation")
        return jinja2.nodes.CallBlock(call, [], [], body).set_lineno(line)

    def _generation(self, caller):
        return caller()


def raise_exception(message):
    raise Raised(message)


def to_json(value, ensure_ascii=False, indent=None, separators=None, sort_keys=False):
    return json.dumps(value, ensure_ascii=ensure_ascii, indent=indent, separators=separators,
                      sort_keys=sort_keys)


def environment():
    made = jinja2.sandbox.ImmutableSandboxedEnvironment(
        trim_blocks=True, lstrip_blocks=True, extensions=[Generation, jinja2.ext.loopcontrols])
    made.filters["tojson"] = to_json
    made.globals["raise_exception"] = raise_exception
    return made


ENVIRONMENT = environment()


def variables(request):
    """What the template sees.  Members of a message that are null are absent."""
    now = datetime.datetime.fromisoformat(request["now"])
    seen = {"strftime_now": now.strftime}
    seen.update(request.get("kwargs") or {})
    for name in ("bos_token", "eos_token"):
        if request.get(name):
            seen[name] = request[name]
    seen["messages"] = [{k: v for k, v in m.items() if v is not None} for m in request["messages"]]
    seen["tools"] = request.get("tools")
    seen["documents"] = request.get("documents")
    seen["add_generation_prompt"] = request["add_generation_prompt"]
    return seen


class Answer:
    """A rendering: its text, or why there is none.  `kind` is "text", "raised" (raise_exception),
    "syntax", or the name of the exception."""

    def __init__(self, kind, text):
        self.kind = kind
        self.text = text

    def __repr__(self):
        return f"{self.kind}: {self.text!r}"


def compiled(source):
    """The template, or the Answer that says what is wrong with it."""
    try:
        with warnings.catch_warnings():  # Python's, about the code that the template becomes
            warnings.simplefilter("ignore")
            return ENVIRONMENT.from_string(source)
    except jinja2.exceptions.TemplateSyntaxError as e:
        return Answer("syntax", str(e))
    except Exception as e:  # what the compiler computes in advance
        return Answer(type(e).__name__, str(e))


def rendered(template, request):
    if isinstance(template, Answer):
        return template
    try:
        # A copy: some filters change a list before they fail.
        return Answer("text", template.render(**variables(copy.deepcopy(request))))
    except Raised as e:
        return Answer("raised", str(e.message))
    except Exception as e:
        return Answer(type(e).__name__, str(e))


def run_tern(cases, folder):
    """Renders (source, request) pairs; sources that follow each other are parsed once."""
    path = os.path.join(folder, "cases.jsonl")
    last = None
    with open(path, "w", encoding="ascii", newline="\n") as f:
        for source, request in cases:
            case = {"request": {k: v for k, v in request.items() if k != "name"}}
            if source != last:
                case["template"] = last = source
            f.write(json.dumps(case) + "\n")
    done = subprocess.run(command.RUNNER + [RENDER, path], stdout=subprocess.PIPE, check=True,
                          timeout=command.TIMEOUT)
    answers = [json.loads(line) for line in done.stdout.splitlines()]
    assert len(answers) == len(cases), f"{len(answers)} answers to {len(cases)} cases"
    return answers


def printable(text):
    """As tern shows the words of others: control characters are question marks."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "?", text)


def same_message(detail, message):
    """Does tern's line give the words of raise_exception?  Long ones lose their middle."""
    detail = re.sub(r"^chat template, line \d+: ", "", detail)
    message = printable(message.split("\0")[0].encode()[:400].decode(errors="ignore"))
    if detail == message:
        return True
    if len(message.encode()) < 160:
        return False
    return any(message.startswith(detail[:at.start()]) and
               message.endswith(detail[at.end():].rstrip("?"))
               for at in re.finditer(r"\.\.\.", detail))


def differs(expected, answer):
    """None when tern's answer is that of Jinja2, else both in words.  Which errors of a template
    are which is not compared, but for those that the template itself raises."""
    if expected.kind == "text":
        same = answer.get("text") == expected.text
    elif expected.kind == "raised":
        same = answer["status"] == USAGE and same_message(answer["detail"], expected.text)
    elif expected.kind in ("RecursionError", "MemoryError"):
        same = answer["status"] == LIMIT
    else:
        same = answer["status"] in (USAGE, UNSUPPORTED)
    return None if same else f"Jinja2 gives {expected!r:.1500}\n    tern gives {answer!r:.1500}"
