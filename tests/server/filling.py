# SPDX-License-Identifier: MIT
"""The demo model with a vocabulary for fill-in-the-middle: names of reserved tokens are replaced.
The model was not trained for it; its answers are tales."""
import os
import shutil

import command

BOS, REPOSITORY, FILE, PAD = "<|begin_of_text|>", "<|repo_name|>", "<|file_sep|>", "<|fim_pad|>"
PREFIX, SUFFIX, MIDDLE = "<|fim_prefix|>", "<|fim_suffix|>", "<|fim_middle|>"
QWEN = (PREFIX, SUFFIX, MIDDLE, PAD, REPOSITORY, FILE)
DEEPSEEK = ("<｜fim▁begin｜>", "<｜fim▁hole｜>", "<｜fim▁end｜>")
CODESTRAL = ("[SUFFIX]", "[PREFIX]")


RESERVED = [f"<|reserved_special_token_{i}|>" for i in range(6)]


def model(names, source=command.DEMO, tokens=RESERVED):
    """The converted model in which these tokens have other names."""
    folder = command.scratch("fills" + "-".join(str(ord(c)) for c in names[0][:6] + source[-4:]))
    if not os.path.exists(folder):
        shutil.copytree(source, folder)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for token, name in zip(tokens, names):
                text = text.replace(token, name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    return command.model(folder)
