# SPDX-License-Identifier: MIT
"""OpenAI's Python library, unmodified. Arguments: address, chat model, embedding model, addresses
of a server with a template for tools and of one with a reasoning model, release."""
import asyncio
import datetime
import enum
import sys
from typing import Annotated, Dict, List, Literal, Optional, Set, Tuple, Union

import openai
import pydantic

url, chat_model, embedding_model, tools_url, thinking_url, release = sys.argv[1:]
assert openai.__version__.startswith(release), openai.__version__
client = openai.OpenAI(base_url=url + "/v1", api_key="x", max_retries=0)
ask = {"model": chat_model, "max_tokens": 20, "seed": 1,
       "messages": [{"role": "user", "content": "Tell me a story."}]}

assert {m.id for m in client.models.list()} == {chat_model, embedding_model}
assert client.models.retrieve(chat_model).id == chat_model

whole = client.chat.completions.create(**ask, logprobs=True, top_logprobs=2)
text = whole.choices[0].message.content
assert text and "".join(t.token for t in whole.choices[0].logprobs.content) == text
events = list(client.chat.completions.create(**ask, stream=True,
                                             stream_options={"include_usage": True}))
assert "".join(e.choices[0].delta.content or "" for e in events if e.choices) == text
assert events[-1].usage.total_tokens == whole.usage.total_tokens
assert len({e.id for e in events}) == 1
with client.chat.completions.stream(**ask) as stream:
    assert "".join(e.delta for e in stream if e.type == "content.delta") == text

three = client.chat.completions.create(**ask, n=3)
assert [c.index for c in three.choices] == [0, 1, 2]
assert three.choices[0].message.content == text != three.choices[1].message.content
word = text.split()[3]
stopped = client.chat.completions.create(**ask, stop=[word, "\x01"]).choices[0]
assert (stopped.message.content, stopped.finish_reason) == (text[:text.index(word)], "stop")
# Fields that have no effect on a local server are accepted.
client.chat.completions.create(**ask, store=False, metadata={"a": "b"}, user="u",
                               service_tier="auto", reasoning_effort="low")

class Color(str, enum.Enum):
    red = "red"
    blue = "blue"

class Step(pydantic.BaseModel):
    title: Literal["a", "b"]
    n: Literal[1, 2]

class Plan(pydantic.BaseModel):
    color: Color
    is_good: bool
    first: Step
    last: Optional[Step]
    words: List[Literal["x", "y"]] = pydantic.Field(max_length=2)

form = dict(ask, response_format=Plan, max_tokens=200)
plan = client.chat.completions.parse(**form).choices[0].message.parsed
assert isinstance(plan, Plan), plan
with client.chat.completions.stream(**form) as stream:
    assert {"content.delta", "content.done"} <= {e.type for e in stream}
    assert stream.get_final_completion().choices[0].message.parsed == plan
try:
    client.chat.completions.parse(**dict(form, max_tokens=3))
except openai.LengthFinishReasonError:
    pass
else:
    raise AssertionError("half an answer was parsed")

class Cat(pydantic.BaseModel):
    kind: Literal["cat"]
    lives: Literal[7, 9]

class Dog(pydantic.BaseModel):
    kind: Literal["dog"]
    good: bool

class Home(pydantic.BaseModel):
    pet: Annotated[Union[Cat, Dog], pydantic.Field(discriminator="kind")]
    rooms: Dict[str, Literal[1, 2]]
    lights: Dict[Literal["hall", "roof"], bool]
    keys: Dict[Annotated[str, pydantic.StringConstraints(pattern="^[a-c]$")], bool]

for seed in range(3):  # a dictionary has any number of members: some answers are truncated
    ask_home = dict(ask, response_format=Home, max_tokens=600, seed=seed, temperature=1)
    try:
        home = client.chat.completions.parse(**ask_home).choices[0].message.parsed
    except openai.LengthFinishReasonError:
        continue
    assert isinstance(home.pet, (Cat, Dog)) and set(home.rooms.values()) <= {1, 2}, home
    break
else:
    raise AssertionError("no answer ended")
class Row(pydantic.BaseModel):
    words: Set[Literal["x", "y"]]
    pair: Tuple[Literal["a", "b"], bool]
    pairs: List[Tuple[Color, Literal[1, 2]]] = pydantic.Field(max_length=2)
    length: datetime.timedelta
    home: pydantic.HttpUrl

row = client.chat.completions.parse(**dict(ask, response_format=Row, max_tokens=900, stop=None,
                                           temperature=0)).choices[0].message.parsed
assert isinstance(row, Row) and len(row.pair) == 2, row
try:
    class Unique(pydantic.BaseModel):
        words: Set[str]
    client.chat.completions.parse(**dict(ask, response_format=Unique))
except openai.BadRequestError as e:
    assert "uniqueItems" in e.message, e
else:
    raise AssertionError("a set was promised")

class get_weather(pydantic.BaseModel):
    """The weather of a city."""
    city: Literal["Rome", "Oslo"]
    days: Literal[1, 2]

with openai.OpenAI(base_url=tools_url + "/v1", api_key="x", max_retries=0) as caller:
    call = dict(ask, tools=[openai.pydantic_function_tool(get_weather)], tool_choice="required",
                max_tokens=100)
    choice = caller.chat.completions.parse(**call).choices[0]
    [one] = choice.message.tool_calls
    assert isinstance(one.function.parsed_arguments, get_weather), one
    assert choice.finish_reason == "tool_calls" and choice.message.content is None
    with caller.chat.completions.stream(**call) as stream:
        deltas = [e.arguments_delta for e in stream
                  if e.type == "tool_calls.function.arguments.delta"]
        [same] = stream.get_final_completion().choices[0].message.tool_calls
    assert len(deltas) > 2 and "".join(deltas) == one.function.arguments
    assert same.function == one.function and same.id != one.id
    talk = ask["messages"] + [choice.message,
                              {"role": "tool", "tool_call_id": one.id, "content": "sunny"}]
    assert caller.chat.completions.create(**dict(call, messages=talk, tool_choice="auto",
                                                 max_tokens=5)).usage.completion_tokens == 5
    # As agents do that may call tools before their structured answer.
    both = dict(call, tool_choice="auto", response_format=Plan, max_tokens=600, temperature=2,
                top_p=1, extra_body={"top_k": 0})
    plans = calls = 0
    for seed in range(200):
        answer = caller.chat.completions.parse(**dict(both, seed=seed)).choices[0].message
        for one in answer.tool_calls or []:
            assert isinstance(one.function.parsed_arguments, get_weather), answer
        assert answer.tool_calls or isinstance(answer.parsed, Plan), answer
        calls += bool(answer.tool_calls)
        plans += not answer.tool_calls
        if calls and plans:
            break
    assert calls and plans, (calls, plans)

completion = {"model": chat_model, "prompt": "Once upon", "max_tokens": 5, "temperature": 0}
once = client.completions.create(**completion).choices[0].text
assert once and once == "".join(e.choices[0].text for e in client.completions.create(
    **completion, stream=True))

# The library requests base64 by default.
coded = client.embeddings.create(model=embedding_model, input=["a cat", "a dog"])
plain = client.embeddings.create(model=embedding_model, input=["a cat", "a dog"],
                                 encoding_format="float")
for a, b in zip(coded.data, plain.data):
    assert len(a.embedding) == len(b.embedding)
    assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-7
assert coded.usage.prompt_tokens > 0
assert len(client.embeddings.create(model=embedding_model, input="x",
                                    dimensions=8).data[0].embedding) == 8

# A reasoning model: the library has no field for reasoning and passes it through.
thinker = openai.OpenAI(base_url=thinking_url + "/v1", api_key="x", max_retries=0)
think = {"model": "", "max_tokens": 20, "temperature": 0, "messages": ask["messages"]}
thought = thinker.chat.completions.create(**think)
message = thought.choices[0].message
assert message.reasoning_content and message.content and "<" not in message.content, message
assert thought.usage.completion_tokens_details.reasoning_tokens > 5
deltas = [e.choices[0].delta for e in thinker.chat.completions.create(**think, stream=True)]
assert "".join(getattr(d, "reasoning_content", None) or "" for d in deltas) == \
    message.reasoning_content
assert "".join(d.content or "" for d in deltas) == message.content
history = [*ask["messages"], message, ask["messages"][0]]  # the message is sent back unchanged
again = thinker.chat.completions.create(**dict(think, messages=history))
plain = thinker.chat.completions.create(**dict(think, messages=[
    history[0], {"role": "assistant", "content": message.content}, history[2]]))
assert again.usage.prompt_tokens > plain.usage.prompt_tokens
for off in ({"reasoning_effort": "none"},
            {"extra_body": {"chat_template_kwargs": {"enable_thinking": False}}}):
    short = thinker.chat.completions.create(**think, **off)
    assert short.usage.prompt_tokens > thought.usage.prompt_tokens
    assert not hasattr(short.choices[0].message, "reasoning_content")
reply = {"model": "", "input": "Tell me a story.", "max_output_tokens": 20, "temperature": 0}
items = thinker.responses.create(**reply, reasoning={"effort": "low"})
assert [i.type for i in items.output] == ["reasoning", "message"], items
assert items.output[0].content[0].text == message.reasoning_content
assert items.output_text == message.content
assert items.usage.output_tokens_details.reasoning_tokens > 5
with thinker.responses.stream(**reply) as stream:
    events = list(stream)
assert "".join(e.delta for e in events if e.type == "response.reasoning_text.delta") == \
    message.reasoning_content
assert events[-1].response.output_text == message.content
back = thinker.responses.create(**dict(reply, input=[*history[:1], *items.output, history[2]]))
assert back.usage.input_tokens == again.usage.prompt_tokens

# /v1/responses: the same answers as items.
said = dict(model=chat_model, input="Tell me a story.", max_output_tokens=20, temperature=0)
plain = client.chat.completions.create(**dict(ask, temperature=0)).choices[0].message.content
response = client.responses.create(**said)
assert (response.output_text, response.status) == (plain, "incomplete"), response
assert response.incomplete_details.reason == "max_output_tokens"
assert response.usage.output_tokens == 20
events = list(client.responses.create(**said, stream=True))
assert [e.sequence_number for e in events] == list(range(len(events)))
assert (events[0].type, events[-1].type) == ("response.created", "response.incomplete")
assert "".join(e.delta for e in events if e.type == "response.output_text.delta") == plain
assert events[-1].response.output_text == plain
talk = [{"role": "user", "content": [{"type": "input_text", "text": "Hi"}]}, response.output[0],
        {"role": "user", "content": "Go on."}]
longer = client.responses.create(**dict(said, input=talk, instructions="Be brief."))
assert longer.usage.input_tokens > response.usage.input_tokens + 10
formed = client.responses.parse(**dict(said, max_output_tokens=200), text_format=Plan)
assert isinstance(formed.output_parsed, Plan) and formed.status == "completed", formed
with openai.OpenAI(base_url=tools_url + "/v1", api_key="x", max_retries=0) as caller:
    weather = {"type": "function", "name": "weather", "strict": True, "parameters": {
        "type": "object", "properties": {"city": {"enum": ["Rome", "Oslo"]}}, "required": ["city"],
        "additionalProperties": False}}
    call = dict(said, max_output_tokens=100, tools=[weather], tool_choice="required")
    [one] = caller.responses.create(**call).output
    assert (one.type, one.name) == ("function_call", "weather"), one
    with caller.responses.stream(**call) as stream:
        deltas = [e.delta for e in stream if e.type == "response.function_call_arguments.delta"]
        [same] = stream.get_final_response().output
    assert len(deltas) > 2 and "".join(deltas) == same.arguments == one.arguments
    both = caller.responses.parse(**dict(call, tool_choice="auto", max_output_tokens=600, store=False),
                                  text_format=Plan)
    assert both.output[0].type == "function_call" or isinstance(both.output_parsed, Plan), both
    talk = [{"role": "user", "content": "Hi"}, one,
            {"type": "function_call_output", "call_id": one.call_id, "output": "sunny"}]
    assert caller.responses.create(**dict(call, input=talk, tool_choice="auto",
                                          max_output_tokens=5)).usage.output_tokens == 5

def fails(error, **change):
    try:
        client.chat.completions.create(**dict(ask, **change))
    except error as e:
        return e
    raise AssertionError(f"no {error.__name__}: {change}")

fails(openai.NotFoundError, model="none")
fails(openai.BadRequestError, model=embedding_model)
long = fails(openai.BadRequestError, messages=[{"role": "user", "content": "word " * 3000}])
assert long.code == "context_length_exceeded", long

for change in ({"previous_response_id": "resp_1"}, {"tools": [{"type": "web_search"}]},
               {"input": [{"type": "item_reference", "id": "x"}]}):
    try:
        client.responses.create(**dict(said, **change))
    except openai.BadRequestError as e:
        assert e.param == list(change)[0], e
    else:
        raise AssertionError(change)

async def together():
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x") as many:
        return await asyncio.gather(*(many.chat.completions.create(**ask) for _ in range(8)))

assert {a.choices[0].message.content for a in asyncio.run(together())} == {text}
