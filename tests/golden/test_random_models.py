#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random small models of every dense architecture against a float64 reference: sizes, types, ties,
biases, windows, rope scalings, scales and caps by chance; batches and threads of the run, too.  2
of each, with TERN_CI_FULL=1 19 of each.

  TERN_RANDOM_MODEL="RECIPE SEED"   this model alone"""
import os
import pathlib
import random
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, read_bytes, scratch, shared

command.need_package("numpy")  # for the reference

ROUNDS = 19 if command.IS_FULL else 2
MAX_IDS = 60
TOLERANCE = 2e-5  # of the largest logit
GELUS = "gelu", "gelu_new"  # by the error function, and an approximation of it


def vocabulary(r):
    return r.choice((384, r.randint(384, 700)))


def heads(r):
    """(query heads, key heads)"""
    n_kv = r.choice((1, 2, 3))
    return n_kv * r.choice((1, 2, 3)), n_kv


def scaling(r):
    kind = r.choice((None, "linear", "llama3", "yarn"))
    if kind is None:
        return None
    rope = {"rope_type": kind, "factor": r.choice((2.0, 4.0, 8.5, 32.0))}
    if kind == "llama3":
        rope.update(low_freq_factor=1.0, high_freq_factor=r.choice((2.0, 4.0)),
                    original_max_position_embeddings=r.choice((32, 256, 8192)))
    if kind == "yarn":
        rope.update(original_max_position_embeddings=r.choice((64, 4096)))
    return rope


def common(r):
    """Keys of architectures derived from LLaMA."""
    n_head, n_kv = heads(r)
    return {"num_attention_heads": n_head, "num_key_value_heads": n_kv,
            "head_dim": 2 * r.randint(4, 20), "hidden_size": r.randint(24, 130),
            "intermediate_size": r.randint(20, 300), "num_hidden_layers": r.randint(1, 4),
            "rms_norm_eps": r.choice((1e-5, 1e-6)), "rope_theta": r.choice((1e4, 5e5, 1e6)),
            "vocab_size": vocabulary(r)}


def without_head_dim(r):
    """The width is that of all heads, and config.json does not state theirs."""
    c = common(r)
    return dict(c, hidden_size=c["num_attention_heads"] * c.pop("head_dim"))


def any_heads(r):
    return r.choice((common, without_head_dim))(r)


def llama(r):
    return dict(common(r), rope_scaling=scaling(r), attention_bias=r.random() < 0.3,
                tie_word_embeddings=r.random() < 0.5)


def mistral(r):
    return dict(llama(r), model_type="mistral", architectures=["MistralForCausalLM"],
                sliding_window=r.choice((None, r.randint(1, 40))))


def qwen2(r):
    return dict(any_heads(r), rope_scaling=scaling(r), tie_word_embeddings=r.random() < 0.5)


def qwen3(r):
    return dict(common(r), rope_scaling=scaling(r), tie_word_embeddings=r.random() < 0.5)


def gemma(r):
    return dict(common(r), sliding_window=r.randint(1, 40),
                query_pre_attn_scalar=r.randint(8, 64))


def gemma2(r):
    return dict(gemma(r), attn_logit_softcapping=r.choice((2.0, 4.0, 50.0)),
                final_logit_softcapping=r.choice((3.0, 6.0, 30.0)), max_position_embeddings=8192)


def gemma3(r):
    return dict(gemma(r), num_hidden_layers=r.randint(1, 7),
                sliding_window_pattern=r.randint(2, 6),
                rope_local_base_freq=r.choice((1e4, 5e3)),
                rope_scaling=r.choice((None, {"rope_type": "linear", "factor": 8.0})))


def phi3(r):
    return dict(any_heads(r), sliding_window=r.choice((None, r.randint(1, 40))))


def phi4(r):
    c = dict(common(r), head_dim=r.choice((8, 16, 24, 32, 40)))
    n = int(c["head_dim"] * 0.75) // 2
    factors = [round(r.uniform(1, 3), 4) for _ in range(n)]
    return dict(c, rope_scaling={"type": "longrope", "short_factor": factors,
                                 "long_factor": [2 * f for f in factors]})


def smollm3(r):
    n = r.randint(1, 5)
    return dict(common(r), num_hidden_layers=n, layer_types=["full_attention"] * n,
                no_rope_layers=[r.randint(0, 1) for _ in range(n)])


def granite(r):
    return dict(any_heads(r), attention_multiplier=r.uniform(0.02, 0.4),
                embedding_multiplier=r.uniform(1, 12), logits_scaling=r.uniform(1, 8),
                residual_multiplier=r.uniform(0.1, 0.4))


def olmo3(r):
    """Keys of transformers 5, by kind of layer; the reference knows the graph as OLMo 2."""
    c = common(r)
    theta = c["rope_theta"]
    kinds = r.choices(("sliding_attention", "full_attention"), k=c["num_hidden_layers"])
    full = dict(scaling(r) or {"rope_type": "default"}, rope_theta=theta)
    local = {"rope_type": "default", "rope_theta": r.choice((theta, 1e4))}
    return dict(c, layer_types=kinds, sliding_window=r.randint(1, 40), rope_theta=None,
                rope_parameters={"full_attention": full, "sliding_attention": local})


def starcoder2(r):
    c = without_head_dim(r)
    return dict(c, norm_epsilon=c.pop("rms_norm_eps"), hidden_act=r.choice(GELUS),
                sliding_window=r.choice((None, 1, r.randint(1, 40))), use_bias=r.random() < 0.5)


def gpt2(r):
    n_head = r.randint(1, 4)
    return {"n_head": n_head, "n_embd": n_head * 2 * r.randint(4, 20), "n_layer": r.randint(1, 3),
            "n_positions": r.choice((20, 64)), "activation_function": r.choice(GELUS),
            "vocab_size": vocabulary(r)}


def bigcode(r):
    return dict(gpt2(r), n_inner=r.randint(10, 130), multi_query=r.random() < 0.5)


def neox(r):
    n_head = r.randint(1, 4)
    return {"num_attention_heads": n_head, "hidden_size": n_head * 8 * r.randint(1, 5),
            "intermediate_size": r.randint(20, 160), "num_hidden_layers": r.randint(1, 3),
            "rotary_pct": r.choice((0.25, 0.5, 1.0)), "use_parallel_residual": r.random() < 0.7,
            "rotary_emb_base": r.choice((10000, 1000)), "attention_bias": r.random() < 0.5,
            "vocab_size": vocabulary(r)}


def opt(r):
    n_head = r.randint(1, 4)
    hidden = n_head * 2 * r.randint(4, 20)
    return {"num_attention_heads": n_head, "hidden_size": hidden, "ffn_dim": r.randint(20, 160),
            "num_hidden_layers": r.randint(1, 3), "do_layer_norm_before": r.random() < 0.5,
            "word_embed_proj_dim": r.choice((hidden, hidden // 2)),
            "activation_function": r.choice(("relu", *GELUS)), "enable_bias": r.random() < 0.5,
            "vocab_size": vocabulary(r)}


def codegen(r):
    n_head = r.choice((4, 8))
    dim = r.choice((6, 8, 12))
    return {"n_head": n_head, "n_embd": n_head * dim, "n_layer": r.randint(1, 3),
            "rotary_dim": r.choice((2, 4, 6)), "vocab_size": vocabulary(r)}


# Name -> recipe of make_dense_models.py, its random keys.
RECIPES = {"llama": ("llama3", llama), "mistral": ("llama3", mistral), "qwen2": ("qwen2", qwen2),
           "qwen3": ("qwen3", qwen3), "gemma2": ("gemma2", gemma2), "gemma3": ("gemma3", gemma3),
           "phi3": ("phi3", phi3), "phi4": ("phi4", phi4), "smollm3": ("smollm3", smollm3),
           "granite": ("granite", granite), "olmo2": ("olmo2", common),
           "olmo3": ("olmo2", olmo3),
           "starcoder2": ("starcoder2", starcoder2), "gpt2": ("gpt2", gpt2),
           "bigcode": ("bigcode", bigcode), "neox": ("neox", neox), "opt": ("opt", opt),
           "codegen": ("codegen", codegen)}


# Tensors that a model does not have if a key is false.
BIASES = {"use_bias": r"(_proj|c_fc)\.bias$",
          "enable_bias": r"(_proj|fc[12])\.bias$",
          "attention_bias": r"(query_key_value|attention\.dense)\.bias$"}


def without_biases(spec):
    """The recipes of make_dense_models.py write biases whatever these keys say."""
    make, config = spec["make"], spec["config"]

    def build(builder):
        make(builder)
        for key, pattern in BIASES.items():
            if config.get(key) is False:
                builder.t = {name: value for name, value in builder.t.items()
                             if not re.search(pattern, name)}
    return dict(spec, make=build)


class RandomModels(command.TestCase):
    def check(self, make, reference, name, seed):
        r = random.Random(f"{name} {seed}")
        recipe, choose = RECIPES[name]
        changes = choose(r)
        spec = without_biases(getattr(make, recipe)(1000 + seed, **changes))
        spec["dtype"] = r.choice(("BF16", "F16", "F32"))
        folder, model, out = scratch("random"), scratch("random.tern"), scratch("random.f32")
        make.build(pathlib.Path(folder), spec)
        n_ids = r.randint(1, min(MAX_IDS, changes.get("n_positions", MAX_IDS)))
        ids = [r.randrange(changes["vocab_size"]) for _ in range(n_ids)]
        expected = reference.Model(folder).logits(ids).ravel()
        self.ok("convert", folder, "-o", model, "--no-tokenizer", "-q", "--force")
        self.ok("logits", model, "--ids", " ".join(map(str, ids)), "-o", out, "--kv", "f32",
                "--batch", str(r.choice((1, 3, 16, 64))), "--threads", str(r.randint(1, 2)))
        got = floats(read_bytes(out))
        self.assertEqual(len(got), len(expected))
        largest = max(1.0, max(abs(x) for x in expected))
        worst = max(abs(a - b) for a, b in zip(got, expected))
        self.assertLessEqual(worst, TOLERANCE * largest, f"{name} {seed}: {spec['config']}")

    def test_all(self):
        sys.path.insert(0, shared("reference", "tools"))
        import dense_reference
        import make_dense_models
        one = os.environ.get("TERN_RANDOM_MODEL")
        cases = ([(one.split()[0], int(one.split()[1]))] if one else
                 [(name, seed) for name in RECIPES for seed in range(ROUNDS)])
        for name, seed in cases:
            with self.subTest(model=f"{name} {seed}"):
                self.check(make_dense_models, dense_reference, name, seed)


if __name__ == "__main__":
    command.main()
