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


def model(names):
    """The converted model whose reserved tokens have these names."""
    folder = command.scratch("fills" + "-".join(str(ord(c)) for c in names[0][:6]))
    if not os.path.exists(folder):
        shutil.copytree(command.DEMO, folder)
        for file in ("tokenizer.json", "tokenizer_config.json"):
            path = os.path.join(folder, file)
            with open(path, encoding="utf-8") as f:
                text = f.read()
            for i, name in enumerate(names):
                text = text.replace(f"<|reserved_special_token_{i}|>", name)
            with open(path, "w", encoding="utf-8") as f:
                f.write(text)
    return command.model(folder)
