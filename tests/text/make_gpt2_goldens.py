#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Makes tests/data/gpt2_files.json: folders with the files of GPT-2's tokenizer, and the ids that
GPT2Tokenizer of transformers gives for some texts.

    pip install transformers==5.23.0
    tests/text/make_gpt2_goldens.py > tests/data/gpt2_files.json"""
import json
import os
import random
import tempfile

from tokenizers import Tokenizer, models, pre_tokenizers, trainers
from transformers import GPT2Tokenizer

WORDS = ("the The and king's we've he'll house houses river rivers 1234 x1 naïve straße Ж日本 ... !? "
         "--")


def added(text, **flags):
    return {"content": text, "lstrip": False, "normalized": True, "rstrip": False,
            "single_word": False, **flags}


def token(text):  # as tokenizer_config.json spells it
    return {"__type": "AddedToken", **added(text)}


def train(n, specials):
    rng = random.Random(n)
    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    trainer = trainers.BpeTrainer(vocab_size=n, special_tokens=specials, show_progress=False,
                                  initial_alphabet=pre_tokenizers.ByteLevel.alphabet())
    words = WORDS.split()
    tokenizer.train_from_iterator((" ".join(rng.choices(words, k=20)) for _ in range(50)), trainer)
    model = json.loads(tokenizer.to_str())["model"]
    return model["vocab"], [" ".join(pair) for pair in model["merges"]]


OPT = ["<s>", "<pad>", "</s>", "<unk>"]
OPT_CONFIG = {"errors": "replace", "unk_token": token("</s>"), "bos_token": token("</s>"),
              "eos_token": token("</s>"), "pad_token": token("<pad>"), "add_prefix_space": False,
              "add_bos_token": True, "tokenizer_class": "GPT2Tokenizer"}
OPT_MAP = {"bos_token": added("</s>"), "eos_token": added("</s>"), "unk_token": added("</s>"),
           "pad_token": added("<pad>")}
CASES = [
    ("as OPT", OPT, {"tokenizer_config.json": OPT_CONFIG, "special_tokens_map.json": OPT_MAP}),
    ("nothing but the vocabulary", ["<|endoftext|>"], {}),
    ("tokens without ids", OPT, {
        "tokenizer_config.json": {"tokenizer_class": "GPT2Tokenizer", "pad_token": "[PAD]",
                                  "add_bos_token": False},
        "special_tokens_map.json": {"eos_token": "</s>", "bos_token": "<s>", "unk_token": "<unk>",
                                    "additional_special_tokens": ["<|im_start|>", "<|im_end|>"]}}),
    ("added_tokens.json", OPT, {
        "tokenizer_config.json": {**OPT_CONFIG, "add_eos_token": True},
        "special_tokens_map.json": {**OPT_MAP, "mask_token": added("<mask>", lstrip=True)},
        "added_tokens.json": {"<extra>": 321, "  ": 320, "<mask>": 322}}),
    ("added_tokens_decoder", ["<|endoftext|>"], {
        "tokenizer_config.json": {
            "tokenizer_class": "GPT2Tokenizer", "bos_token": "<|endoftext|>", "pad_token": None,
            "eos_token": "<end>", "unk_token": "<|endoftext|>", "add_bos_token": True,
            "added_tokens_decoder": {
                "0": added("<|endoftext|>", special=True),
                "320": added("<end>", special=False, normalized=False, rstrip=True),
                "321": added("Zq", special=False, single_word=True),
                "322": added("<left>", special=True, normalized=False, lstrip=True)}},
        "special_tokens_map.json": {"eos_token": "not read"}, "added_tokens.json": {"either": 7}}),
]
TEXTS = ["", " ", "The king's house", "  two  spaces\n\n and\ttabs ", "we've 1234 houses, 日本 naïve!",
         "</s>The</s> </s>  <pad>x<unk>", "<|endoftext|> the<|endoftext|>\nriver rivers river.",
         "a <mask> b<mask> <extra>the  and   <extra>", "<|im_start|>user\nHi<|im_end|>[PAD]",
         "x <left> y <end>  z<end> Zq Zqs, Zq.", "\u0000\u007f é́ ﬀ 😀"]


def main():
    cases = []
    for name, specials, files in CASES:
        vocab, merges = train(320, specials)
        texts = {"vocab.json": json.dumps(vocab, ensure_ascii=False),
                 "merges.txt": "#version: 0.2\n" + "\n".join(merges) + "\n",
                 **{file: json.dumps(value, ensure_ascii=False) for file, value in files.items()}}
        with tempfile.TemporaryDirectory() as folder:
            for file, text in texts.items():
                with open(os.path.join(folder, file), "w", encoding="utf-8") as out:
                    out.write(text)
            tokenizer = GPT2Tokenizer.from_pretrained(folder)
        ids = [[text, tokenizer(text)["input_ids"]] for text in TEXTS]
        cases.append({"name": name, "files": texts, "ids": ids})
    print(json.dumps(cases, ensure_ascii=False, indent=0))


main()
