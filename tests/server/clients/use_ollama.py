# SPDX-License-Identifier: MIT
"""Ollama's Python library, unmodified. Arguments: address, chat model, embedding model, addresses
of a server with a template for tools and of one with a reasoning model."""
import sys
from typing import Literal

import ollama
import pydantic

url, chat_model, embedding_model, tools_url, thinking_url = sys.argv[1:]
client = ollama.Client(host=url)
story = [{"role": "user", "content": "Tell me a story."}]
options = {"num_predict": 20, "seed": 1}

names = {m.model for m in client.list().models}
assert names == {chat_model + ":latest", embedding_model + ":latest"}, names
assert {m.name for m in client.ps().models} == names
assert client.show(chat_model).modelinfo["general.architecture"] == "bitnet"
assert client.show(chat_model).capabilities == ["completion"]

whole = client.chat(chat_model, messages=story, options=options)
assert whole.eval_count == 20 and whole.done and whole.total_duration > 0
parts = client.chat(chat_model, messages=story, options=options, stream=True)
assert "".join(p.message.content for p in parts) == whole.message.content
answer = client.generate(chat_model, "Hi", options=options)
assert answer.response and answer.context
assert "".join(p.response for p in client.generate(chat_model, "Hi", options=options,
                                                   stream=True)) == answer.response

raw = client.generate(chat_model, "Once", raw=True, system="x", think=False, images=[], suffix="",
                      context=[], keep_alive="5m", options=options)
assert raw.response and raw.prompt_eval_count < answer.prompt_eval_count
rows = client.chat(chat_model, messages=story, options=options, logprobs=True,
                   top_logprobs=2).logprobs
assert "".join(r.token for r in rows) == whole.message.content
assert all(len(r.top_logprobs) == 2 for r in rows)

class Plan(pydantic.BaseModel):
    color: Literal["red", "blue"]
    is_good: bool

schema = Plan.model_json_schema()
plan = client.chat(chat_model, messages=story, format=schema, options={"seed": 1}).message.content
Plan.model_validate_json(plan)
assert plan == "".join(p.message.content for p in client.chat(
    chat_model, messages=story, format=schema, options={"seed": 1}, stream=True))
assert client.generate(chat_model, "Hi", format="json", options=options).response.lstrip()[0] == "{"

def add(a: int, b: int) -> int:
    """Adds two numbers.

    Args:
      a: one
      b: the other
    """
    return a + b

caller = ollama.Client(host=tools_url)
assert caller.show(chat_model).capabilities == ["completion", "tools"]
talk = story + [{"role": "assistant", "tool_calls": [{"function": {"name": "add", "arguments": {
    "a": 1, "b": 2}}}]}, {"role": "tool", "tool_name": "add", "content": str(add(1, 2))}]
history = caller.chat(chat_model, messages=talk, tools=[add], options=options)
plain = caller.chat(chat_model, messages=story, options=options)
assert history.message.content and history.prompt_eval_count > plain.prompt_eval_count + 20

two = client.embed(embedding_model, ["a cat", "a dog"])
assert len(two.embeddings) == 2 and two.prompt_eval_count > 0
assert client.embed(embedding_model, "a cat").embeddings[0] == two.embeddings[0]
assert len(client.embed(embedding_model, "a cat", truncate=True, dimensions=8).embeddings[0]) == 8
assert client.embed(embedding_model, []).embeddings == []
assert client.embeddings(embedding_model, "a cat").embedding == two.embeddings[0]

def fails(status, call, *args, **keywords):
    try:
        call(*args, **keywords)
    except ollama.ResponseError as e:
        assert e.status_code == status, e
        return
    raise AssertionError(f"no error {status}")

thinker = ollama.Client(host=thinking_url)
[model] = [m.model for m in thinker.list().models]
assert thinker.show(model).capabilities == ["completion", "tools", "thinking"]
greedy = {"num_predict": 20, "temperature": 0}
thought = thinker.chat(model, messages=story, options=greedy, think=True)
assert thought.message.thinking and thought.message.content, thought
assert thinker.chat(model, messages=story, options=greedy).message == thought.message
assert thinker.chat(model, messages=story, options=greedy, think="high").message == thought.message
parts = list(thinker.chat(model, messages=story, options=greedy, think=True, stream=True))
assert "".join(p.message.thinking or "" for p in parts) == thought.message.thinking
assert "".join(p.message.content for p in parts) == thought.message.content
answer = thinker.generate(model, story[0]["content"], options=greedy, think=True)
assert (answer.thinking, answer.response) == (thought.message.thinking, thought.message.content)
short = thinker.chat(model, messages=story, options=greedy, think=False)
assert short.message.thinking is None and short.prompt_eval_count > thought.prompt_eval_count
back = thinker.chat(model, messages=[story[0], thought.message, story[0]], options=greedy)
plain = thinker.chat(model, options=greedy, messages=[
    story[0], {"role": "assistant", "content": thought.message.content}, story[0]])
assert back.prompt_eval_count > plain.prompt_eval_count

fails(404, client.chat, "none", messages=story)
fails(404, client.show, "none")
for call in (client.pull, client.push, client.delete):
    fails(501, call, "x")
fails(400, client.chat, chat_model, messages=story, tools=[add])
fails(400, client.chat, chat_model, messages=story, think=True)
fails(400, client.chat, chat_model, messages=story, think="low")
fails(400, client.chat, chat_model, messages=[dict(story[0], images=[b"\x89PNG\r\n\x1a\n"])])
fails(400, client.generate, chat_model, "Hi", images=[b"\x89PNG\r\n\x1a\n"])
fails(400, client.generate, chat_model, "Hi", suffix="x")
fails(400, client.generate, chat_model, "Hi", format={"type": "object", "minProperties": 1})
fails(400, client.embed, chat_model, "a cat")
