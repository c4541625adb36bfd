# SPDX-License-Identifier: MIT
"""Reasoning models: the demo model with tags in place of some tokens of its answer."""
import itertools
import json
import os
import shutil

import command
from serving import template_file

ASK = [{"role": "user", "content": "Tell me a story."}]

# Handles reasoning like Qwen3's template.
SWITCH = """{% if tools %}Tools:{% for t in tools %} {{ t | tojson }}{% endfor %}
Call them as <tool_call>{"name": ..., "arguments": ...}</tool_call>.
{% endif %}{% for m in messages %}{{ m.role }}: {{ m.content }}
{% if m.reasoning_content %}(because {{ m.reasoning_content }})
{% endif %}{% endfor %}assistant: {% if enable_thinking is defined and not enable_thinking %}<think>

</think>

{% endif %}"""
# Its prompts open the reasoning, like those of DeepSeek-R1.
OPENS = """{% for m in messages %}{{ m.role }}: {{ m.content }}
{% endfor %}assistant: <think>
"""
# "<think>\n", reasoning with a two-byte character, "\n</think>\n \n", an answer; the tags and the
# character consist of two tokens each.
TAGS = {0: "<thi", 1: "nk>Ċ", 2: "xÃ", 3: "©y", 8: "Ċ</", 9: "think>", 10: "ĊĠĊ"}
CLOSES = {8: "Ċ</think>", 9: "ĊĠĊ"}


def answer_ids(model, template, conversation, n):
    """The prompt and the first n tokens of the greedy answer, as ids."""
    prompt = command.tern("tokenize", "--chat", model, "--template", template_file(template),
                          stdin=json.dumps(conversation).encode())
    assert prompt.code == 0, prompt.err
    answer = command.tern("logits", model, "--ids", prompt.text.strip(), "--greedy", str(n))
    assert answer.code == 0, answer.err
    return [[int(i) for i in text.split()] for text in (prompt.text, answer.text)]


_made, _numbers = {}, itertools.count()


def thinking_model(template=SWITCH, pieces=None, conversation=None):
    """A model that answers a conversation (`tokenize --chat`) with the demo model's tokens, some of
    them renamed: `pieces` maps their positions to text in the alphabet of byte-level BPE."""
    pieces, conversation = pieces or TAGS, conversation or ASK
    key = json.dumps([template, list(pieces.items()), conversation])
    if key not in _made:
        _made[key] = make_model(command.scratch(f"thinking{next(_numbers)}"), template, pieces,
                                conversation)
    return _made[key]


def make_model(folder, template, pieces, conversation):
    shutil.copytree(command.DEMO, folder)
    prompt, answer = answer_ids(command.model(), template, conversation, 24)
    renamed = {answer[place]: piece for place, piece in pieces.items()}
    assert len(renamed) == len(pieces) and not set(renamed) & set(prompt), \
        f"other places, please: {answer} after {prompt}"
    path = os.path.join(folder, "tokenizer.json")
    tokenizer = command.read_json(path)
    bpe = tokenizer["model"]
    bpe["vocab"] = {piece: i for piece, i in bpe["vocab"].items() if i not in renamed}
    assert not set(renamed.values()) & set(bpe["vocab"]), "there are such pieces"
    bpe["vocab"].update({piece: i for i, piece in renamed.items()})
    bpe["merges"] = [m for m in bpe["merges"] if {*m, "".join(m)} <= set(bpe["vocab"])]
    with open(path, "w", encoding="utf-8") as f:
        json.dump(tokenizer, f)
    done = command.tern("convert", folder, "-o", folder + ".tern")
    assert done.code == 0, done.err
    assert answer_ids(folder + ".tern", template, conversation, 24) == [prompt, answer]
    return folder + ".tern"


def split(text, is_inside=False):
    """(reasoning, answer) of a text with <think>, as the server must separate them."""
    rest = text if is_inside else text.lstrip()
    if not is_inside and not rest.startswith("<think>"):
        return "", text
    reasoning, _, answer = rest.removeprefix("<think>").partition("</think>")
    return reasoning.strip(), answer.lstrip()
