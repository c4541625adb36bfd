# SPDX-License-Identifier: MIT
"""Ollama's Python library, unmodified. Arguments: address, chat model, embedding model."""
import sys

import ollama

url, chat_model, embedding_model = sys.argv[1:]
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

two = client.embed(embedding_model, ["a cat", "a dog"])
assert len(two.embeddings) == 2 and two.prompt_eval_count > 0
assert client.embed(embedding_model, "a cat").embeddings[0] == two.embeddings[0]
assert client.embeddings(embedding_model, "a cat").embedding == two.embeddings[0]

def fails(status, call, *args, **keywords):
    try:
        call(*args, **keywords)
    except ollama.ResponseError as e:
        assert e.status_code == status, e
        return
    raise AssertionError(f"no error {status}")

fails(404, client.chat, "none", messages=story)
fails(501, client.pull, "x")
fails(400, client.embed, chat_model, "a cat")
