#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Interfaces that users, programs and files rely on, pinned line by line in the *.txt beside this
script:

  convert.txt        SHA-256 of the .tern file of each reference model and GGUF file
  logits.txt         SHA-256 of their logits (embedding models: vectors) with f32, f16 and q8 caches
  files.txt          the same of the .tern files in tests/data/tern, which never change
  templates.txt      four digits of the SHA-256 of every conversation's rendering, by template
  ids.txt            SHA-256 of the ids of every conversation and of a text, by model and template
  interface.txt      flags with choices and defaults, exit codes, keys of every JSON output
  server.txt         metrics, keys of answers and types of events, types and codes of errors
  symbols.txt        exported symbols of the library

A changed line affects a user: refactoring and optimising change none.  Commit a rewritten file
with the change that causes it; the commit message says why the line had to change and what users
must do about it:

  manifest.py               compares all (the test `manifest`) and prints the lines that differ
  manifest.py --write       rewrites all files
  manifest.py --write ids   one of them

A .tern file in tests/data/tern is never rewritten: make_files.py beside this script made them,
and adds files for new layouts and sources."""
import concurrent.futures
import glob
import hashlib
import json
import os
import re
import subprocess
import sys
import unittest

HERE = os.path.dirname(os.path.abspath(__file__))
sys.path.insert(0, os.path.join(HERE, ".."))
sys.path.insert(0, os.path.join(HERE, "..", "server"))
import command
import serving
from command import DEMO, ROOT, read_bytes, read_json, scratch, shared, tern

RENDER = os.environ.get("TERN_RENDER_CASES", "")
LIBRARY = os.environ.get("TERN_LIBRARY", "")
NM = os.environ.get("TERN_NM", "nm")
FILES = os.path.join(ROOT, "tests", "data", "tern")
TEXT = "It’s 12,345.6 km — naïve 日本語 🙂 <|eot_id|>\n\n\tEnd.  "
N_IDS = 40


def digest(data):
    return hashlib.sha256(data).hexdigest()


def in_parallel(function, items):
    """[function(item)], two at a time."""
    with concurrent.futures.ThreadPoolExecutor(2) as pool:
        return list(pool.map(function, items))


def ran(*arguments, **keywords):
    result = tern(*arguments, **keywords)
    assert result.code == 0, f"{arguments}: {result.err}"
    return result


# ---- models ----

def sources():
    """(name, path) of every reference model"""
    for path in sorted(glob.glob(os.path.join(shared("reference", "models"), "*", "config.json"))):
        folder = os.path.dirname(path)
        yield f"models/{os.path.basename(folder)}", folder
    for path in sorted(glob.glob(os.path.join(shared("reference", "gguf"), "*", "*.gguf"))):
        yield os.path.relpath(path, shared("reference"))[:-len(".gguf")], path


def flags_of(name, path):
    flags = [] if not os.path.isdir(path) or os.path.exists(
        os.path.join(path, "tokenizer.json")) else ["--no-tokenizer"]
    for layout in ("arm", "1x4"):
        if layout in name:
            flags += ["--i2s-layout", layout]
    return flags


_converted = {}


def convert(source):
    """The path of the .tern file, or the exit code of a failed conversion."""
    name, path = source
    out = scratch(name.replace("/", "-") + ".tern")
    result = tern("convert", path, "-o", out, "-q", *flags_of(name, path))
    if result.code == 5 and "--no-tokenizer" in result.err:
        result = tern("convert", path, "-o", out, "-q", "--no-tokenizer", *flags_of(name, path))
    return out if result.code == 0 else result.code


def models():
    """name -> path, or the exit code; converted once."""
    if not _converted:
        _converted.update(zip((name for name, _ in sources()), in_parallel(convert, sources())))
    return _converted


def make_convert():
    for name, model in models().items():
        yield name, digest(read_bytes(model)) if isinstance(model, str) else f"exit {model}"
    for head in ("q8", "q6", "q4", "f16", "bf16", "f32"):
        path = scratch("head.tern")
        ran("convert", shared("reference", "models", "tiny-bitnet-bf16"), "-o", path, "-q",
            "--head", head)
        yield f"models/tiny-bitnet-bf16 --head {head}", digest(read_bytes(path))


def logits(item):
    """(name, path) -> lines"""
    name, model = item
    info = json.loads(ran("info", model, "--json").text)
    n = min(300 if name.startswith("models/") else N_IDS, info["context"])
    ids = " ".join(str((i * 7919 + 11) % info["vocab"]) for i in range(n))
    if info["head"] == "none":
        return [(f"{name} vectors", digest(ran("embed", model, "--raw", "--ids", ids).out))]
    lines = []
    for kv in ("f32", "f16", "q8"):
        out = scratch(f"{name.replace('/', '-')}.{kv}.f32")
        ran("logits", model, "--ids", ids, "-o", out, "--kv", kv)
        lines.append((f"{name} {kv}", digest(read_bytes(out))))
        os.remove(out)
    return lines


def make_logits():
    found = [(name, model) for name, model in models().items() if isinstance(model, str)]
    for lines in in_parallel(logits, found):
        yield from lines


def make_files():
    for path in sorted(glob.glob(os.path.join(FILES, "*.tern"))):
        name = os.path.basename(path)
        ran("verify", path)
        yield name, digest(read_bytes(path))
        yield from logits((name, path))


# ---- conversations ----

def conversations():
    return read_json(os.path.join(ROOT, "tests", "text", "conversations.json"))


def make_templates():
    """Every template with every conversation, including tools and variables."""
    paths = sorted(glob.glob(os.path.join(ROOT, "tests", "text", "templates", "*.jinja")))
    cases = conversations()
    requests = scratch("render.jsonl")
    with open(requests, "w", encoding="utf-8") as f:
        for path in paths:
            source = {"template": read_bytes(path).decode("utf-8")}
            for case in cases:
                request = {key: value for key, value in case.items() if key != "name"}
                f.write(json.dumps(dict(source, request=request)) + "\n")
                source = {}
    out = subprocess.run([RENDER, requests], check=True, stdout=subprocess.PIPE).stdout
    answers = out.splitlines()
    assert len(answers) == len(paths) * len(cases)
    for i, path in enumerate(paths):
        short = [digest(a)[:4] for a in answers[i * len(cases):(i + 1) * len(cases)]]
        yield os.path.basename(path), " ".join(short)


def conversation_ids(item):
    model, template, case = item
    messages = json.dumps(case["messages"])
    flags = ["--template", template] if template else []
    result = tern("tokenize", model, "--chat", "--date", "2026-11-23", *flags,
                  stdin=messages.encode())
    return result.out if result.code == 0 else f"exit {result.code}".encode()


def make_ids():
    cases = [case for case in conversations() if isinstance(case.get("messages"), list)]
    for name, model in models().items():
        if name.startswith("models/") and isinstance(model, str):
            result = tern("tokenize", model, stdin=TEXT.encode())
            yield f"{name} text", digest(result.out) if result.code == 0 else f"exit {result.code}"
    for template in ("", "bitnet-2b-4t", "llama3", "chatml", "falcon3", "qwen3"):
        found = in_parallel(conversation_ids, [(command.model(), template, c) for c in cases])
        yield f"models/demo {template or 'own template'}", digest(b"\n".join(found))


# ---- the command ----

COMMANDS = ("run", "chat", "convert", "info", "embed", "list", "serve", "probe", "verify", "bench",
            "tokenize", "detokenize", "perplexity", "logits", "pull", "remove", "version")


def flags_of_help(name):
    """(flag with its value, choices and default) of a command"""
    text = ran("help", name).text.split("\nFlags:\n")
    for row in re.findall(r"^ {2,6}((?:-\S, )?--.*(?:\n {20,}.*)*)", text[1] if text[1:] else "",
                          re.MULTILINE):
        words = " ".join(row.split())
        spec = re.match(r"(?:-\w, )?--[a-z0-9-]+(?:\[?=[a-z]+\]?)?(?: [A-Z][A-Z0-9|-]*(?= |$))?",
                        words)
        note = re.search(r"\(((?:[^()]|\([^()]*\))*)\)$", words)
        yield spec.group(0), note.group(1) if note else ""


def keys_of(value, path=""):
    """Paths of all keys below a JSON value; the elements of lists are merged."""
    if isinstance(value, dict):
        found = set()
        for key, member in value.items():
            found |= {f"{path}.{key}".lstrip(".")} | keys_of(member, f"{path}.{key}")
        return found
    if isinstance(value, list):
        return set().union(*(keys_of(member, path + "[]") for member in value))
    return set()


def json_outputs():
    """(name, bytes of JSON lines)"""
    demo, text = command.model(), scratch("text.txt")
    with open(text, "w", encoding="utf-8") as f:
        f.write("The king had three daughters.\n\nA fox came by.\n")
    vectors = models()["models/tiny-embed-qwen3"]
    yield "info", ran("info", demo, "--json", "--tensors").out
    yield "info of a folder", ran("info", DEMO, "--json", "--tensors").out
    yield "info of a GGUF file", ran("info", shared("reference", "gguf", "demo", "i2_s.gguf"),
                                     "--json", "--tensors").out
    yield "list", ran("list", "--json", env=command.environment(
        TERN_MODELS=os.path.dirname(demo))).out
    yield "pull", ran("pull", "--json").out
    yield "probe", ran("probe", demo, "--json").out
    yield "bench", ran("bench", demo, "--json", "-p", "8", "-n", "2", "-r", "1", "--depths", "0",
                       "--threads", "1", "--parallel", "2", "--draft", "2").out
    yield "perplexity", ran("perplexity", demo, text, "--json").out
    yield "embed", ran("embed", vectors, text).out
    yield "embed --search", ran("embed", vectors, text, "--search", "fox", "--json").out
    yield "run --stats=json", ran("run", demo, "--raw", "-p", "The", "-n", "4", "-q",
                                  "--stats=json").err.encode()
    yield "chat --jsonl", ran("chat", demo, "--jsonl", "-n", "4", "-q", "--greedy", stdin=(
        b'{"role":"user","content":"Hi"}\n{"set":{"temp":0.5}}\n{"no":1}\n')).out


# Arguments -> exit code of the program.  Words in braces are paths.
EXITS = (
    ("--version",), ("help",), ("juggle",), ("run", "--no-such-flag"), ("run", "--temp", "9"),
    ("run", "{demo}", "--raw", "-p", ""), ("run", "{none}", "-p", "x"),
    ("run", "{text}", "-p", "x"), ("run", "{demo}", "-p", "x", "--ctx", "8"),
    ("run", "{demo}", "-p", "x", "--ram", "1M"), ("run", "{demo}", "-p", "x", "--kv", "f8"),
    ("run", "{demo}", "-p", "x", "--cpu", "z80"), ("run", "{demo}", "-p", "x", "-n", "1", "-q"),
    ("convert", "{none}"), ("convert", "{demo_folder}", "-o", "{folder}/no/x.tern"),
    ("convert", "{dense}", "-o", "{folder}/x.tern"), ("convert", "{demo}", "-o", "{folder}/x"),
    ("info", "{text}"), ("verify", "{text}"), ("verify", "{demo}"),
    ("logits", "{demo}"), ("logits", "{demo}", "--ids", "999999", "-o", "{folder}/l.f32"),
    ("logits", "{demo}", "--ids", "1", "-o", "{folder}/no/l.f32"),
    ("perplexity", "{demo}", "{none}"), ("perplexity", "{demo}", "{empty}"),
    ("tokenize", "{demo}", "--chat"), ("detokenize", "{demo}"), ("bench", "{demo}", "-n", "0"),
    ("embed", "{demo}", "{none}"), ("serve", "{demo}", "--host", "0.0.0.0"),
    ("pull", "no-such-model"), ("remove", "../x"), ("remove", "no-such-model"), ("ps",),
    ("chat", "{demo}", "--session", "{text}"), ("probe", "--probe-root", "{none}"),
)


def paths_of_exits():
    folder = scratch("exits")
    os.makedirs(folder, exist_ok=True)
    paths = {"demo": command.model(), "demo_folder": DEMO, "folder": folder,
             "dense": shared("reference", "models", "tiny-dense-llama"),
             "none": os.path.join(folder, "none"), "text": os.path.join(folder, "text.txt"),
             "empty": os.path.join(folder, "empty.txt")}
    for name, data in (("text", b"no model\n"), ("empty", b"")):
        with open(paths[name], "wb") as f:
            f.write(data)
    return paths


def make_interface():
    for name in COMMANDS:
        for flag, note in flags_of_help(name):
            yield f"flag {name} {flag}", note or "-"
    paths = paths_of_exits()
    for words in EXITS:
        result = tern(*(word.format(**paths) for word in words), stdin=b"{")
        yield "exit " + " ".join(words), str(result.code)
    for name, data in json_outputs():
        values = [json.loads(line) for line in data.decode().splitlines()] if (
            not data.startswith((b"{\n", b"[\n"))) else [json.loads(data)]
        for key in sorted(set().union(*(keys_of(value, "") for value in values))):
            yield f"json {name}", key


# ---- the server ----

HI = [{"role": "user", "content": "Hi"}]
# Name, path, a request that succeeds.
ANSWERS = (
    ("/v1/chat/completions", {"messages": HI, "max_tokens": 2, "logprobs": True}),
    ("/v1/completions", {"prompt": "The", "max_tokens": 2, "logprobs": 1}),
    ("/v1/responses", {"input": "Hi", "max_output_tokens": 16, "temperature": 0}),
    ("/v1/messages", {"messages": HI, "max_tokens": 2}),
    ("/v1/messages/count_tokens", {"messages": HI}),
    ("/api/chat", {"model": "DEMO", "messages": HI, "stream": False,
                   "options": {"num_predict": 2}}),
    ("/api/generate", {"model": "DEMO", "prompt": "Hi", "stream": False,
                       "options": {"num_predict": 2}}),
    ("/api/show", {"model": "DEMO"}),
    ("/completion", {"prompt": "The", "n_predict": 2, "n_probs": 1}),
    ("/tokenize", {"content": "The king", "with_pieces": True}),
    ("/detokenize", {"tokens": [1, 2]}),
    ("/apply-template", {"messages": HI}),
    ("/v1/responses/input_tokens", {"input": "Hi"}),
    ("/infill", {"input_prefix": "The ", "input_suffix": "."}),
)
GETS = ("/health", "/v1/health", "/v1/models", "/models", "/props", "/slots", "/api/tags",
        "/api/ps", "/api/version")
STREAMS = ANSWERS[0], ANSWERS[2], ANSWERS[3]
CHATS = ("/v1/chat/completions", "/v1/messages", "/api/chat")
TEXTS = ("/v1/completions", "/completion", "/api/generate", "/v1/responses")
# Error -> members that replace those of a request above.
FAULTS = (
    ("unknown model", {"model": "no-such-model"}), ("temperature 9", {"temperature": 9}),
    ("temperature text", {"temperature": "hot"}), ("negative limit", {
        "max_tokens": -7, "n_predict": "x", "max_output_tokens": -7,
        "options": {"num_predict": "x"}}),
    ("wrong stop", {"stop": 7, "stop_sequences": 7}), ("n 99", {"n": 99}),
    ("tools without template", {"tools": [{"type": "function", "name": "f", "input_schema": {},
                                           "function": {"name": "f", "parameters": {}}}]}),
    ("wrong role", {"messages": [{"role": "robot", "content": "Hi"}]}),
    ("no messages", {"messages": [], "input": [], "prompt": None}),
    ("too long", {"messages": [{"role": "user", "content": "king " * 3000}],
                  "prompt": "king " * 3000, "input": "king " * 3000}),
    ("unknown schema", {"response_format": {"type": "json_schema", "json_schema": {
        "name": "a", "schema": {"not": {}}}}}),
    ("unknown text.format", {"text": {"format": {"type": "json_schema", "name": "a",
                                                 "schema": {"not": {}}}}}),
    ("unknown format", {"format": {"not": {}}}),
    ("unknown json_schema", {"json_schema": {"not": {}}}),
)


def error_of(status, data):
    """Status, type and code of an error; never its text."""
    try:
        value = json.loads(data)
    except ValueError:
        return f"{status} {'empty' if not data else 'no JSON'}"
    error = value.get("error") if isinstance(value, dict) else None
    if isinstance(error, dict):
        return " ".join([str(status), *(f"{key}={error[key]}" for key in sorted(error)
                                        if key not in ("message", "n_ctx", "n_prompt_tokens"))])
    return f"{status} {'text' if isinstance(error, str) else 'no error'}"


def answered(server):
    """ANSWERS with the id of the server's model."""
    demo = server.model_ids()[0]
    return [(path, json.loads(json.dumps(body).replace("DEMO", demo))) for path, body in ANSWERS]


def server_errors(server):
    bodies = dict(answered(server))
    for path, body in bodies.items():
        for name, data in (("no JSON", b"{"), ("a list", b"[]"), ("empty", b""),
                           ("nothing in it", b"{}")):
            status, _, out = server.request("POST", path, data)
            yield f"error {path}: {name}", error_of(status, out)
        status, _, out = server.request("DELETE", path)
        yield f"error {path}: DELETE", error_of(status, out)
    for path in CHATS + TEXTS:
        for name, members in FAULTS:
            status, _, out = server.request("POST", path, dict(bodies[path], **members))
            yield f"error {path}: {name}", error_of(status, out)
    for path in ("/v1/no-such", "/api/no-such", "/no-such"):
        yield f"error {path}", error_of(*server.request("GET", path)[::2])
    yield "error /v1/embeddings: no vectors", error_of(*server.request(
        "POST", "/v1/embeddings", {"input": "Hi", "model": server.model_ids()[0]})[::2])


def without_names(key):
    """Keys that name a family or a token."""
    key = re.sub(r"model_info\.\w+\.", "model_info.FAMILY.", key)
    return re.sub(r"(?s)(top_logprobs\[\]\.)(?!id$|token$|logprob$|bytes$).*", r"\1TOKEN", key)


def server_keys(server, vectors):
    demo = server.model_ids()[0]
    for path in GETS:
        status, _, data = server.request("GET", path)
        for key in sorted(keys_of(json.loads(data))):
            yield f"json GET {path} {status}", key
    requests = answered(server) + [
        ("/v1/embeddings", {"input": "Hi", "model": vectors}),
        ("/api/embed", {"input": "Hi", "model": vectors})]
    for path, body in requests:
        status, _, data = server.request("POST", path, dict(body, model=body.get("model", demo)))
        for key in sorted({without_names(key) for key in keys_of(json.loads(data))}):
            yield f"json {path} {status}", key
    for path, body in STREAMS:
        seen = {}
        for block in server.blocks(path, dict(body, model=demo, logprobs=False)):
            data = block.split("data: ", 1)[1]
            event = {} if data == "[DONE]" else json.loads(data)
            name = event.get("type") or event.get("object") or data
            seen.setdefault(name, set()).update(keys_of(event))
        for name, keys in seen.items():
            yield f"event {path} {name}", " ".join(sorted(keys)) or "-"


def make_server():
    models()
    vectors = _converted["models/tiny-embed-qwen3"]
    with serving.Server("--ctx", "512", models=[command.model(), vectors]) as server:
        yield from server_keys(server, server.model_ids()[1])
        yield from server_errors(server)
        metrics = server.request("GET", "/metrics")[2].decode()
    for kind in sorted(set(re.findall(r"^# TYPE (\S+ \S+)", metrics, re.MULTILINE))):
        yield "metric", kind
    for series in sorted({re.sub(r'="[^"]*"', "", line.rsplit(" ", 1)[0])
                          for line in metrics.splitlines() if line and not line.startswith("#")}):
        yield "series", series


# ---- the library ----

def make_symbols():
    out = subprocess.run([NM, "-P", "-g", LIBRARY], check=True, text=True, stdout=subprocess.PIPE,
                         stderr=subprocess.DEVNULL).stdout
    for name in sorted(set(re.findall(r"^(tern_\w+) [TDBR]\b", out, re.MULTILINE))):
        yield name, "exported"


# ---- comparing ----

MAKERS = {"convert": make_convert, "logits": make_logits, "files": make_files,
          "templates": make_templates, "ids": make_ids, "interface": make_interface,
          "server": make_server, "symbols": make_symbols}


def path_of(name):
    return os.path.join(HERE, name + ".txt")


def made(name):
    lines = [f"{item}: {value}" for item, value in MAKERS[name]()]
    assert lines, name
    return lines


def explain(name, line, other):
    """The conversations of a template that differ, if any."""
    if name != "templates" or other is None:
        return ""
    old, new = line.split(": ")[1].split(), other.split(": ")[1].split()
    names = [case["name"] for case in conversations()]
    if len(old) != len(new) or len(old) != len(names):
        return " (the list of conversations changed)"
    return " (" + "; ".join(n for n, a, b in zip(names, old, new) if a != b) + ")"


def differences(name, want, got):
    """Missing and new lines, in the order of the file."""
    missing = [line for line in want if line not in set(got)]
    for line in missing:
        others = [g for g in got if g.split(": ")[0] == line.split(": ")[0] and g not in set(want)]
        yield f"{name}.txt: - {line}{explain(name, line, others[0] if others else None)}"
    for line in got:
        if line not in set(want):
            yield f"{name}.txt: + {line}"


class Manifest(command.TestCase):
    maxDiff = None

    def check(self, name):
        with open(path_of(name), encoding="utf-8") as f:
            want = f.read().splitlines()
        found = list(differences(name, want, made(name)))
        self.assertEqual(found, [], "\n" + "\n".join(found) + (
            "\nIs it wanted? Then manifest.py --write, and say why in the commit."))


for _name in MAKERS:
    setattr(Manifest, f"test_{_name}", lambda self, name=_name: self.check(name))


def write(names):
    for name in names or MAKERS:
        lines = made(name)
        with open(path_of(name), "w", encoding="utf-8") as f:
            f.write("".join(line + "\n" for line in lines))
        print(f"{name}.txt: {len(lines)} lines")


if __name__ == "__main__":
    if sys.argv[1:2] == ["--write"]:
        write(sys.argv[2:])
    else:
        command.main()
