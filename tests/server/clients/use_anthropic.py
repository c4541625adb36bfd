# SPDX-License-Identifier: MIT
"""Anthropic's Python library, unmodified. Arguments: address, chat model, embedding model,
addresses of a server with a template for tools and of one with a reasoning model."""
import sys
from typing import Literal

import anthropic
import pydantic

url, chat_model, embedding_model, tools_url, thinking_url = sys.argv[1:]
client = anthropic.Anthropic(base_url=url, api_key="x", max_retries=0)
story = [{"role": "user", "content": "Tell me a story."}]
ask = {"model": chat_model, "max_tokens": 20, "messages": story,
       "extra_body": {"temperature": 0}}

whole = client.messages.create(**ask)
[block] = whole.content
assert block.type == "text" and block.text and whole.stop_reason == "max_tokens", whole
with client.messages.stream(**ask) as stream:
    assert "".join(stream.text_stream) == block.text
    final = stream.get_final_message()
assert final.content[0].text == block.text and final.stop_reason == whole.stop_reason
assert final.usage.output_tokens == whole.usage.output_tokens == 20
names = [e.type for e in client.messages.create(**ask, stream=True)]
assert names[:2] == ["message_start", "content_block_start"], names
assert names[-3:] == ["content_block_stop", "message_delta", "message_stop"], names
assert set(names[2:-3]) == {"content_block_delta"}, names

n_tokens = client.messages.count_tokens(model=chat_model, messages=story).input_tokens
assert n_tokens == whole.usage.input_tokens + whole.usage.cache_read_input_tokens
parts = [{"type": "text", "text": "Be brief.", "cache_control": {"type": "ephemeral"}}]
assert client.messages.count_tokens(model=chat_model, messages=story,
                                    system=parts).input_tokens > n_tokens
word = block.text.split()[3]
stopped = client.messages.create(**ask, stop_sequences=[word])
assert (stopped.stop_reason, stopped.stop_sequence) == ("stop_sequence", word)
assert stopped.content[0].text == block.text[:block.text.index(word)]

class Plan(pydantic.BaseModel):
    color: Literal["red", "blue"]
    is_good: bool

plan = client.messages.parse(**dict(ask, max_tokens=100), output_format=Plan)
assert isinstance(plan.parsed_output, Plan), plan

weather = {"name": "weather", "description": "Of a city.", "input_schema": {
    "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"],
    "additionalProperties": False}}
with anthropic.Anthropic(base_url=tools_url, api_key="x", max_retries=0) as caller:
    call = dict(ask, max_tokens=100, tools=[weather], tool_choice={"type": "any"})
    answer = caller.messages.create(**call)
    [use] = answer.content
    assert use.type == "tool_use" and use.input["city"] in ("Rome", "Oslo"), answer
    assert answer.stop_reason == "tool_use"
    named = dict(call, tool_choice={"type": "tool", "name": "weather"})
    with caller.messages.stream(**named) as stream:
        pieces = [e.partial_json for e in stream if e.type == "input_json"]
        [same] = stream.get_final_message().content
    assert len(pieces) > 2 and same.input == use.input and same.id != use.id
    talk = story + [{"role": "assistant", "content": [use.to_dict()]}, {"role": "user", "content": [
        {"type": "tool_result", "tool_use_id": use.id, "content": "sunny"},
        {"type": "text", "text": "And tomorrow?"}]}]
    history = caller.messages.create(**dict(call, messages=talk, max_tokens=5,
                                         tool_choice={"type": "auto"}))
    assert history.usage.output_tokens == 5

with anthropic.Anthropic(base_url=thinking_url, api_key="x", max_retries=0) as thinker:
    think = dict(ask, model="", thinking={"type": "enabled", "budget_tokens": 1024})
    thought = thinker.messages.create(**think)
    assert [b.type for b in thought.content] == ["thinking", "text"], thought
    with thinker.messages.stream(**think) as stream:
        pieces = [e.thinking for e in stream if e.type == "thinking"]
        final = stream.get_final_message()
    assert "".join(pieces) == thought.content[0].thinking and len(pieces) > 2
    assert [b.type for b in final.content] == ["thinking", "text"], final
    assert final.content[1].text == thought.content[1].text
    [block] = thinker.messages.create(**dict(ask, model="")).content
    assert block.type == "text", block
    talk = [story[0], {"role": "assistant", "content": thought.content}, story[0]]
    n_back = thinker.messages.count_tokens(model="", messages=talk, thinking=think["thinking"])
    talk[1]["content"] = thought.content[1:]
    n_plain = thinker.messages.count_tokens(model="", messages=talk, thinking=think["thinking"])
    assert n_back.input_tokens > n_plain.input_tokens

def fails(error, **change):
    try:
        client.messages.create(**dict(ask, **change))
    except error as e:
        assert e.body["type"] == "error", e.body
        return
    raise AssertionError(f"no {error.__name__}: {change}")

fails(anthropic.NotFoundError, model="none")
fails(anthropic.BadRequestError, messages=[])
fails(anthropic.BadRequestError, tools=[weather])
fails(anthropic.BadRequestError, messages=[{"role": "user", "content": "word " * 3000}])
