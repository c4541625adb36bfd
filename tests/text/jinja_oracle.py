# SPDX-License-Identifier: MIT
"""Chat templates rendered by Jinja2 (configured like Hugging Face's transformers) and by tern, and
their comparison.  Without the package jinja2 the tests are run by another Python of this machine
that has it, or skipped; with CI=true they fail."""
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
# Exit codes of tern: the template refuses, it exceeds a limit, it uses an unsupported construct.
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
    """The template's variables.  Null members of a message are absent."""
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
    """A rendering: its text, or the reason for its failure.  `kind` is "text", "raised"
    (raise_exception), "syntax", or the name of the exception."""

    def __init__(self, kind, text):
        self.kind = kind
        self.text = text

    def __repr__(self):
        return f"{self.kind}: {self.text!r}"


def compiled(source):
    """The template, or an Answer with the error in it."""
    try:
        with warnings.catch_warnings():  # Python's warnings about the generated code
            warnings.simplefilter("ignore")
            return ENVIRONMENT.from_string(source)
    except jinja2.exceptions.TemplateSyntaxError as e:
        return Answer("syntax", str(e))
    except Exception as e:  # constants that the compiler evaluates
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
    """Renders (source, request) pairs; consecutive equal sources are parsed once."""
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
    """As tern prints foreign text: control characters become question marks."""
    return re.sub(r"[\x00-\x1f\x7f-\x9f]", "?", text)


def same_message(detail, message):
    """Does tern's line contain the text of raise_exception?  Long texts lose their middle."""
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
    """None if tern's answer equals Jinja2's, else a description of both.  Kinds of template errors
    are not compared, except those that the template raises itself."""
    if expected.kind == "text":
        same = answer.get("text") == expected.text
    elif expected.kind == "raised":
        same = answer["status"] == USAGE and same_message(answer["detail"], expected.text)
    elif expected.kind in ("RecursionError", "MemoryError"):
        same = answer["status"] == LIMIT
    else:
        same = answer["status"] in (USAGE, UNSUPPORTED)
    return None if same else f"Jinja2 gives {expected!r:.1500}\n    tern gives {answer!r:.1500}"
