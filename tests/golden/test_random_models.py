#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Random small models of every dense architecture, with random sizes, windows, rope scalings, scales
and caps, against a float64 reference.  TERN_CI_FULL=1 takes 300 of them instead of 32."""
import os
import pathlib
import random
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, read_bytes, scratch, shared

command.need_package("numpy")  # of the reference

ROUNDS = 19 if os.environ.get("TERN_CI_FULL") == "1" else 2
VOCAB = 384
N_IDS = 20


def heads(r):
    """(query heads, key heads)"""
    n_kv = r.choice((1, 2, 3))
    return n_kv * r.choice((1, 2, 3)), n_kv


def scaling(r, theta):
    kind = r.choice((None, "linear", "llama3", "yarn"))
    if kind is None:
        return None
    rope = {"rope_type": kind, "factor": r.choice((2.0, 4.0, 8.5))}
    if kind == "llama3":
        rope.update(low_freq_factor=1.0, high_freq_factor=r.choice((2.0, 4.0)),
                    original_max_position_embeddings=r.choice((32, 256)))
    if kind == "yarn":
        rope.update(original_max_position_embeddings=r.choice((64, 4096)) if theta > 100 else 64)
    return rope


def common(r, head_dims=(8, 12, 16, 24)):
    """Keys of LLaMA's relatives."""
    n_head, n_kv = heads(r)
    theta = r.choice((1e4, 5e5, 1e6))
    return {"num_attention_heads": n_head, "num_key_value_heads": n_kv,
            "head_dim": r.choice(head_dims), "hidden_size": 8 * r.randint(3, 12),
            "intermediate_size": 8 * r.randint(3, 20), "num_hidden_layers": r.randint(1, 4),
            "rope_theta": theta, "vocab_size": VOCAB}


def llama(r):
    c = common(r)
    return dict(c, rope_scaling=scaling(r, c["rope_theta"]), attention_bias=r.random() < 0.3,
                tie_word_embeddings=r.random() < 0.5)


def qwen(r):
    c = common(r)
    return dict(c, rope_scaling=scaling(r, c["rope_theta"]), tie_word_embeddings=r.random() < 0.5)


def gemma(r):
    return dict(common(r), sliding_window=r.randint(2, 12), query_pre_attn_scalar=r.randint(8, 40))


def gemma2(r):
    return dict(gemma(r), attn_logit_softcapping=r.choice((2.0, 4.0, 50.0)),
                final_logit_softcapping=r.choice((3.0, 6.0, 30.0)), max_position_embeddings=8192)


def gemma3(r):
    return dict(gemma(r), num_hidden_layers=r.randint(1, 5),
                sliding_window_pattern=r.choice((2, 3, 6)),
                rope_scaling=r.choice((None, {"rope_type": "linear", "factor": 8.0})))


def phi3(r):
    return dict(common(r), sliding_window=r.choice((None, 5, 12)))


def phi4(r):
    c = common(r, (16, 24))
    n = int(c["head_dim"] * 0.75) // 2
    factors = [round(r.uniform(1, 3), 4) for _ in range(n)]
    return dict(c, rope_scaling={"type": "longrope", "short_factor": factors,
                                 "long_factor": [2 * f for f in factors]})


def smollm3(r):
    n = r.randint(1, 5)
    return dict(common(r), num_hidden_layers=n, layer_types=["full_attention"] * n,
                no_rope_layers=[r.randint(0, 1) for _ in range(n)])


def granite(r):
    return dict(common(r), attention_multiplier=r.choice((0.05, 0.2)),
                embedding_multiplier=r.choice((6.0, 12.0)), logits_scaling=r.choice((2.0, 8.0)),
                residual_multiplier=0.22)


def starcoder2(r):
    c = common(r)
    c.pop("head_dim")
    c["hidden_size"] = c["num_attention_heads"] * r.choice((8, 12, 16))
    return dict(c, sliding_window=r.choice((None, 4, 12)))


def gpt2(r):
    n_head = r.randint(1, 4)
    return {"n_head": n_head, "n_embd": n_head * r.choice((8, 10, 16)), "n_layer": r.randint(1, 3),
            "n_positions": r.choice((20, 64)), "vocab_size": VOCAB}


def bigcode(r):
    return dict(gpt2(r), n_inner=8 * r.randint(2, 16))


def neox(r):
    n_head = r.randint(1, 4)
    return {"num_attention_heads": n_head, "hidden_size": 16 * n_head,
            "intermediate_size": 8 * r.randint(3, 20), "num_hidden_layers": r.randint(1, 3),
            "rotary_pct": r.choice((0.25, 0.5, 1.0)), "use_parallel_residual": r.random() < 0.7,
            "rotary_emb_base": r.choice((10000, 1000)), "vocab_size": VOCAB}


def opt(r):
    n_head = r.randint(1, 4)
    hidden = n_head * r.choice((8, 12, 16))
    return {"num_attention_heads": n_head, "hidden_size": hidden, "ffn_dim": 8 * r.randint(3, 20),
            "num_hidden_layers": r.randint(1, 3), "do_layer_norm_before": r.random() < 0.5,
            "word_embed_proj_dim": r.choice((hidden, hidden // 2)), "vocab_size": VOCAB}


def codegen(r):
    n_head = r.choice((4, 8))
    dim = r.choice((6, 8, 12))
    return {"n_head": n_head, "n_embd": n_head * dim, "n_layer": r.randint(1, 3),
            "rotary_dim": r.choice((2, 4, 6)), "vocab_size": VOCAB}


# Recipe of make_dense_models.py -> its random keys.
RECIPES = {"llama3": llama, "qwen2": qwen, "qwen3": qwen, "gemma2": gemma2, "gemma3": gemma3,
           "phi3": phi3, "phi4": phi4, "smollm3": smollm3, "granite": granite, "olmo2": common,
           "starcoder2": starcoder2, "gpt2": gpt2, "bigcode": bigcode, "neox": neox, "opt": opt,
           "codegen": codegen}


class RandomModels(command.TestCase):
    def check(self, make, reference, recipe, seed):
        r = random.Random(f"{recipe} {seed}")
        changes = RECIPES[recipe](r)
        folder, model, out = scratch("random"), scratch("random.tern"), scratch("random.f32")
        make.build(pathlib.Path(folder), getattr(make, recipe)(1000 + seed, **changes))
        ids = [r.randrange(VOCAB) for _ in range(N_IDS)]
        expected = reference.Model(folder).logits(ids).ravel()
        self.ok("convert", folder, "-o", model, "--no-tokenizer")
        self.ok("logits", model, "--ids", " ".join(map(str, ids)), "-o", out, "--kv", "f32",
                "--inputs", "f32")
        got = floats(read_bytes(out))
        self.assertEqual(len(got), len(expected))
        largest = max(1.0, max(abs(x) for x in expected))
        worst = max(abs(a - b) for a, b in zip(got, expected))
        self.assertLessEqual(worst, 2e-5 * largest, changes)

    def test_all(self):
        sys.path.insert(0, shared("reference", "tools"))
        import dense_reference
        import make_dense_models
        for recipe in RECIPES:
            for seed in range(ROUNDS):
                with self.subTest(recipe=recipe, seed=seed):
                    self.check(make_dense_models, dense_reference, recipe, seed)


if __name__ == "__main__":
    command.main()
