# SPDX-License-Identifier: MIT
"""litellm, unmodified: both interfaces. Arguments: address, chat model, embedding model."""
import os
import sys

os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"  # do not download the price list
import litellm

url, chat_model, embedding_model = sys.argv[1:]
messages = [{"role": "user", "content": "Tell me a story."}]
places = {"openai/": {"api_base": url + "/v1", "api_key": "x"},
          "ollama/": {"api_base": url}, "ollama_chat/": {"api_base": url}}

for prefix, place in places.items():
    ask = dict(place, model=prefix + chat_model, messages=messages, max_tokens=20, temperature=0)
    text = litellm.completion(**ask).choices[0].message.content
    assert text, prefix
    parts = [e.choices[0].delta.content or "" for e in litellm.completion(**ask, stream=True)]
    assert "".join(parts) == text, prefix
for prefix in ("openai/", "ollama/"):
    answer = litellm.embedding(model=prefix + embedding_model, input=["a cat", "a dog"],
                               **places[prefix])
    assert len(answer.data) == 2, prefix
try:
    litellm.completion(model="openai/none", messages=messages, **places["openai/"])
except litellm.NotFoundError:
    pass
else:
    raise AssertionError("no error for a model that is not there")
