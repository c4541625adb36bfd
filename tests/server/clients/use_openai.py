# SPDX-License-Identifier: MIT
"""OpenAI's Python library, unmodified. Arguments: address, chat model, embedding model, release."""
import asyncio
import sys

import openai

url, chat_model, embedding_model, release = sys.argv[1:]
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

completion = {"model": chat_model, "prompt": "Once upon", "max_tokens": 5, "temperature": 0}
once = client.completions.create(**completion).choices[0].text
assert once and once == "".join(e.choices[0].text for e in client.completions.create(
    **completion, stream=True))

# The library asks for base64 unless it is told otherwise.
coded = client.embeddings.create(model=embedding_model, input=["a cat", "a dog"])
plain = client.embeddings.create(model=embedding_model, input=["a cat", "a dog"],
                                 encoding_format="float")
for a, b in zip(coded.data, plain.data):
    assert len(a.embedding) == len(b.embedding)
    assert max(abs(x - y) for x, y in zip(a.embedding, b.embedding)) < 1e-7
assert coded.usage.prompt_tokens > 0
assert len(client.embeddings.create(model=embedding_model, input="x",
                                    dimensions=8).data[0].embedding) == 8

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

async def together():
    async with openai.AsyncOpenAI(base_url=url + "/v1", api_key="x") as many:
        return await asyncio.gather(*(many.chat.completions.create(**ask) for _ in range(8)))

assert {a.choices[0].message.content for a in asyncio.run(together())} == {text}
