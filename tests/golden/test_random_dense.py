#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random dense models of every graph against the float64 reference: sizes, types, ties, windows and
rope scalings by chance. 20 models, with TERN_CI_FULL=1 300. Needs numpy.

  TERN_RANDOM_DENSE=SEED   this model alone"""
import json
import os
import pathlib
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, read_bytes, scratch, shared

command.need_package("numpy")
import numpy as np

N_MODELS = 300 if os.environ.get("TERN_CI_FULL") == "1" else 20
TOLERANCE = 1e-4


def of_llama(c, chance):
    c["attention_bias"] = chance.random() < 0.3
    if chance.random() < 0.4:
        c["rope_scaling"] = None
    else:
        c["rope_scaling"] = {"rope_type": "llama3", "factor": chance.choice((8.0, 32.0)),
                             "low_freq_factor": 1.0, "high_freq_factor": 4.0,
                             "original_max_position_embeddings": chance.choice((64, 256, 8192))}


def of_mistral(c, chance):
    c.update(model_type="mistral", architectures=["MistralForCausalLM"], rope_scaling=None,
             sliding_window=chance.choice((None, chance.randint(1, 40))))


def of_qwen(c, chance):
    if chance.random() < 0.4:
        c["rope_scaling"] = {"rope_type": "yarn", "factor": chance.choice((2.0, 4.0)),
                             "original_max_position_embeddings": c["max_position_embeddings"]}


def of_gemma3(c, chance):
    c.update(sliding_window=chance.randint(1, 40), sliding_window_pattern=chance.randint(2, 6),
             query_pre_attn_scalar=chance.randint(8, 64),
             rope_local_base_freq=chance.choice((1e4, 5e3)),
             rope_scaling=chance.choice((None, {"factor": 8.0, "rope_type": "linear"})))


def of_phi3(c, chance):
    c["sliding_window"] = chance.randint(1, 40)


def of_granite(c, chance):
    c.update(attention_multiplier=chance.uniform(0.02, 0.4), logits_scaling=chance.uniform(1, 8),
             embedding_multiplier=chance.uniform(1, 12),
             residual_multiplier=chance.uniform(0.1, 0.4))


# Recipe of make_dense_models.py, what else is random, may the embeddings be the head or not.
GRAPHS = [("llama3", of_llama, True), ("llama3", of_mistral, True), ("qwen2", of_qwen, True),
          ("qwen3", of_qwen, True), ("gemma3", of_gemma3, False), ("phi3", of_phi3, False),
          ("granite", of_granite, False)]


def sizes(chance, has_head_dim):
    n_kv, dim = chance.choice((1, 2, 3)), 2 * chance.randint(4, 20)
    n_head = n_kv * chance.choice((1, 2, 3))
    out = {"num_attention_heads": n_head, "num_key_value_heads": n_kv,
           "hidden_size": chance.randint(24, 130) if has_head_dim else n_head * dim,
           "intermediate_size": chance.randint(20, 300), "vocab_size": chance.randint(384, 700),
           "num_hidden_layers": chance.randint(1, 4), "rms_norm_eps": chance.choice((1e-5, 1e-6)),
           "rope_theta": chance.choice((1e4, 5e5, 1e6))}
    return {**out, "head_dim": dim} if has_head_dim else out


class RandomDense(command.TestCase):
    @classmethod
    def setUpClass(cls):
        sys.path.insert(0, shared("reference", "tools"))
        import dense_reference
        import make_dense_models
        cls.reference, cls.recipes = dense_reference, make_dense_models

    def make(self, folder, seed, chance):
        """A folder with random weights."""
        name, change, may_be_untied = chance.choice(GRAPHS)
        recipe = getattr(self.recipes, name)
        changes = sizes(chance, name in ("llama3", "qwen3", "gemma3") or chance.random() < 0.5)
        if may_be_untied:
            changes["tie_word_embeddings"] = chance.random() < 0.5
        spec = recipe(seed, **changes)
        change(spec["config"], chance)
        folder.mkdir(exist_ok=True)
        (folder / "config.json").write_text(json.dumps(spec["config"]))
        builder = self.recipes.Builder(seed, chance.choice(("BF16", "F16", "F32")), spec["gain"])
        spec["make"](builder)
        self.recipes.save_safetensors(folder / "model.safetensors", builder.t)
        return spec["config"]

    def check(self, seed):
        chance = random.Random(seed)
        folder, model, out = pathlib.Path(scratch("random")), scratch("r.tern"), scratch("r.f32")
        config = self.make(folder, seed, chance)
        ids = [chance.randrange(config["vocab_size"]) for _ in range(chance.randint(1, 60))]
        self.ok("convert", str(folder), "-o", model, "--no-tokenizer", "-q", "--force")
        self.ok("logits", model, "--ids", " ".join(map(str, ids)), "-o", out, "--kv", "f32",
                "--batch", str(chance.choice((1, 3, 16, 64))),
                "--threads", str(chance.randint(1, 2)))
        want = self.reference.Model(folder).logits(ids)
        got = np.array(floats(read_bytes(out))).reshape(want.shape)
        self.assertLessEqual(np.abs(got - want).max() / max(1.0, want.std()), TOLERANCE,
                             f"seed {seed}: {config}")

    def test_all(self):
        one = os.environ.get("TERN_RANDOM_DENSE")
        for seed in [int(one)] if one else range(1, N_MODELS + 1):
            with self.subTest(seed=seed):
                self.check(seed)


if __name__ == "__main__":
    command.main()
