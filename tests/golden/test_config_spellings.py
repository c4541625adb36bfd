#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""config.json in another spelling gives the same bytes: keys that published files omit because
transformers has a default, null for absent, and the keys that transformers 5 writes."""
import json
import math
import os
import re
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import scratch, shared
from twins import Case, Folder

IDS = "1 17 30 42 5 60 26 8 11 48 3 64 20 7"
DENSE = shared("reference", "dense", "models")
HYBRIDS = shared("reference", "hybrids", "models")


class Spellings(Case):
    def check(self, folder, one, other, without=()):
        """The same logits with the keys `one` as with `other`; returns them."""
        base = {k: v for k, v in folder.config.items() if k not in without}
        results = []
        for keys in (one, other):
            folder.config = {**base, **keys}
            model = self.convert(folder.write(scratch("spelling")), "spelling")
            results.append(self.logits(model, ids=IDS))
        self.assertEqual(*results)
        return results[0]

    def test_default_of_rope_theta(self):
        """LLaMA 2 omits it."""
        for name, root, theta in (("tiny-llama3", DENSE, 1e4), ("tiny-qwen2", DENSE, 1e4),
                                  ("tiny-smollm3", DENSE, 2e6),
                                  ("tiny-bitnet-bf16", None, 5e5)):
            with self.subTest(name=name):
                self.check(Folder(name, root), {"rope_theta": theta}, {}, ["rope_theta"])

    def test_defaults_of_gemma2(self):
        """A cap that is absent has a value, one that is null does not exist."""
        usual = {"query_pre_attn_scalar": 256, "sliding_window": 4096,
                 "attn_logit_softcapping": 50.0, "final_logit_softcapping": 30.0}
        folder = Folder("tiny-gemma2", DENSE)
        capped = self.check(folder, usual, {}, usual)
        for key in ("attn_logit_softcapping", "final_logit_softcapping"):
            bare = self.check(Folder("tiny-gemma2", DENSE), {**usual, key: None},
                              {**usual, key: 0}, usual)
            self.assertNotEqual(capped, bare)

    def test_defaults_of_gemma3(self):
        """The files of models with 4 billion parameters and more state neither rotation."""
        linear = {"factor": 8.0, "rope_type": "linear"}
        both = {"rope_theta": 1000000, "rope_local_base_freq": 10000, "rope_scaling": linear}
        self.check(Folder("tiny-gemma3-text", DENSE), both, {"rope_scaling": linear}, both)

    def test_default_of_the_rotated_share(self):
        """It yields to the share in rope_parameters."""
        def parameters(share):
            return {"rope_parameters": {"rope_type": "default", "rope_theta": 10000,
                                        "partial_rotary_factor": share}}
        without = ["rotary_emb_base", "rotary_pct"]
        whole, quarter = (self.check(Folder("tiny-gpt-neox", DENSE),
                                     {"rotary_emb_base": 10000, "rotary_pct": share},
                                     parameters(share), without) for share in (1.0, 0.25))
        self.assertNotEqual(whole, quarter)
        folder, key = Folder("tiny-qwen3next", HYBRIDS), "partial_rotary_factor"
        quarter = self.check(folder, {key: 0.25}, {}, [key])
        self.assertNotEqual(quarter, self.check(folder, *[{key: 1.0}] * 2))
        for share in (0.5, 0.25):  # a quarter is odd; a half is even, but contradicts the tensors
            rope = {"rope_type": "default", "rope_theta": folder.config["rope_theta"], key: share}
            folder.config.update(head_dim=12, rope_parameters=rope)
            words = self.refused(5, "convert", folder.write(scratch("odd")), "-o",
                                 scratch("odd.tern"), "--no-tokenizer")
            self.assertEqual("which rotates 3 of the 12 values of a head" in words, share == 0.25)
        folder = Folder("tiny-gpt-neox", DENSE)
        folder.config["rotary_pct"] = "0.25"
        self.assertIn('"rotary_pct" is not a number',
                      self.refused(5, "convert", folder.write(scratch("text")), "-o",
                                   scratch("text.tern"), "--no-tokenizer"))

    def test_null_in_yarn(self):
        yarn = {"rope_type": "yarn", "factor": 4.0, "original_max_position_embeddings": 64}
        null = dict(yarn, attention_factor=None, beta_fast=None, mscale=None, mscale_all_dim=None,
                    truncate=True)
        self.check(Folder("tiny-qwen3-dense", DENSE), {"rope_scaling": yarn},
                   {"rope_scaling": null})

    def test_magnitude_of_yarn(self):
        """The quotient of two, unless it is stated."""
        def rope(**more):
            return {"rope_scaling": {"rope_type": "yarn", "factor": 40.0,
                                     "original_max_position_embeddings": 64, **more}}
        def magnitude(mscale):
            return 0.1 * mscale * math.log(40) + 1
        folder = Folder("tiny-qwen3-dense", DENSE)
        both = {"mscale": 0.707, "mscale_all_dim": 0.5}
        scaled = self.check(folder, rope(attention_factor=magnitude(0.707) / magnitude(0.5)),
                            rope(**both))
        usual = self.check(folder, rope(), rope(mscale=0.707, mscale_all_dim=0))
        self.assertNotEqual(scaled, usual)
        self.check(folder, rope(attention_factor=1.5), rope(attention_factor=1.5, **both))

    def test_bounds_of_yarn(self):
        """Rounded to whole pairs, unless "truncate" is false."""
        folder = Folder("tiny-qwen3-dense", DENSE)
        dim, theta = folder.config["head_dim"], folder.config["rope_theta"]
        def rope(fast, slow, truncate):
            def turns(pair):
                return 64 / (2 * math.pi * theta ** (2 * pair / dim))
            return {"rope_scaling": {
                "rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
                "beta_fast": turns(fast), "beta_slow": turns(slow), "truncate": truncate}}
        rounded = self.check(folder, rope(1 + 1e-9, 4 - 1e-9, False), rope(1.5, 3.5, True))
        exact = self.check(folder, rope(1.5, 3.5, False), rope(1.5, 3.5, False))
        self.assertNotEqual(rounded, exact)

    def test_original_context_of_the_file(self):
        """It replaces that of the rotation; the context is the default of both."""
        for rope in ({"rope_type": "yarn", "factor": 8.0},
                     {"rope_type": "llama3", "factor": 8.0, "low_freq_factor": 1.0,
                      "high_freq_factor": 4.0}):
            folder = Folder("tiny-qwen3-dense", DENSE)
            key, context = "original_max_position_embeddings", "max_position_embeddings"
            stated = {"rope_scaling": {**rope, key: 32}}
            expected = self.check(folder, stated,
                                  {"rope_scaling": {**rope, key: 4096}, key: 32})
            folder = Folder("tiny-qwen3-dense", DENSE)
            self.assertNotEqual(expected, self.check(
                folder, {"rope_scaling": {**rope, key: 4096}, context: 4096},
                {"rope_scaling": rope, context: 4096}))

    def test_scaled_rotations_of_gemma3(self):
        """They are those of layers that see all positions."""
        yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64}
        local = {"rope_type": "default", "rope_theta": 10000}
        folder = Folder("tiny-gemma3-text", DENSE)
        theta = folder.config["rope_theta"]
        without = ("rope_theta", "rope_local_base_freq", "rope_scaling")
        scaled = self.check(folder, {"rope_theta": theta, "rope_scaling": yarn},
                            {"rope_parameters": {"full_attention": dict(yarn, rope_theta=theta),
                                                 "sliding_attention": local}}, without)
        folder = Folder("tiny-gemma3-text", DENSE)
        plain = self.check(folder, {"rope_theta": theta}, {"rope_scaling": None}, without)
        self.assertNotEqual(scaled, plain)
        folder.config["layer_types"] = ["sliding_attention"] * folder.config["num_hidden_layers"]
        self.check(folder, {"rope_theta": theta, "rope_scaling": yarn}, {"rope_theta": theta},
                   without)

    def test_gelu(self):
        """By the error function.  Gemma does not read "hidden_act"."""
        for name, key in (("tiny-gemma3-text", "hidden_activation"),
                          ("tiny-gemma2", "hidden_activation"), ("tiny-llama3", "hidden_act")):
            with self.subTest(name=name):
                folder, keys = Folder(name, DENSE), ("hidden_act", "hidden_activation")
                exact = self.check(folder, {key: "gelu"}, {key: "gelu"}, keys)
                tanh = self.check(Folder(name, DENSE), {key: "gelu_pytorch_tanh"},
                                  {"hidden_act": "gelu" if key != "hidden_act" else "gelu_new"},
                                  keys)
                self.assertNotEqual(exact, tanh)
                pairs = zip(command.floats(exact), command.floats(tanh))
                self.assertLess(max(abs(a - b) for a, b in pairs), 0.05)

    def test_chosen_windows(self):
        """Of Qwen2 and 3: of the listed layers, or of all from one on, if it is said that they have
        windows."""
        for name in ("tiny-qwen2", "tiny-qwen3-dense"):
            with self.subTest(name=name):
                def config(first, window=3, used=True):
                    return {"use_sliding_window": used, "sliding_window": window,
                            "max_window_layers": first}
                folder, keys = Folder(name, DENSE), ("layer_types", *config(0))
                n = folder.config["num_hidden_layers"]
                full = self.check(folder, config(0, used=False), config(n), keys)
                self.check(folder, config(0, used=False), config(0, None), keys)
                self.check(folder, config(0, used=False), config(0, 100), keys)
                kinds = ["full_attention"] * (n - 1) + ["sliding_attention"]
                last = self.check(folder, config(n - 1), dict(config(0), layer_types=kinds), keys)
                every = self.check(folder, config(0), config(0), keys)
                self.assertEqual(len({full, last, every}), 3)

    def test_scales_of_gpt2(self):
        """Without the root of the head size, or divided by the number of the layer: as if the
        queries were larger or smaller."""
        def scaled(factors):
            folder = Folder("tiny-gpt2", DENSE)
            n = folder.config["n_embd"]
            for i, factor in enumerate(factors):
                for part in ("weight", "bias"):
                    name = f"h.{i}.attn.c_attn.{part}"
                    dtype, shape, data = folder.tensors[name]
                    values = [v * factor if k % (3 * n) < n else v
                              for k, v in enumerate(command.floats(data))]
                    folder.tensors[name] = dtype, shape, gguf.f32(values)
            return self.logits(self.convert(folder.write(scratch("scaled")), "scaled"), ids=IDS)
        size = Folder("tiny-gpt2", DENSE).config
        self.assertEqual((size["n_embd"] // size["n_head"], size["n_layer"]), (16, 2))
        whole, by_layer = "scale_attn_weights", "scale_attn_by_inverse_layer_idx"
        for keys, factors in (({whole: True, by_layer: False}, (1, 1)), ({whole: False}, (4, 4)),
                              ({by_layer: True}, (1, 0.5)),
                              ({whole: False, by_layer: True}, (4, 2))):
            with self.subTest(keys=keys):
                folder = Folder("tiny-gpt2", DENSE)
                folder.config.update(keys)
                model = self.convert(folder.write(scratch("spelling")), "spelling")
                self.assertEqual(self.logits(model, ids=IDS), scaled(factors))
        folder = Folder("tiny-gpt-bigcode", DENSE)
        usual = self.check(folder, {whole: True}, {}, [whole])
        self.assertNotEqual(usual, self.check(folder, *[{whole: False}] * 2))

    def test_granite4(self):
        """The graph of Granite 3, if no layer is a state or has experts."""
        folder = Folder("tiny-granite", DENSE)
        expected = self.logits(self.convert(folder.path, "granite"), ids=IDS)
        c = dict(folder.config, model_type="granitemoehybrid", position_embedding_type="rope",
                 num_local_experts=0, num_experts_per_tok=0, layer_types=["attention"] * 2,
                 shared_intermediate_size=folder.config["intermediate_size"])
        for i in range(2):
            mlp = f"model.layers.{i}.mlp."
            gate, up, down = (folder.tensors.pop(f"{mlp}{part}_proj.weight")
                              for part in ("gate", "up", "down"))
            shared_mlp = f"model.layers.{i}.shared_mlp."
            folder.tensors[shared_mlp + "output_linear.weight"] = down
            folder.tensors[shared_mlp + "input_linear.weight"] = (
                gate[0], [2 * gate[1][0], gate[1][1]], gate[2] + up[2])
        folder.config = c
        source = folder.write(scratch("granite4"))
        self.assertEqual(self.logits(self.convert(source, "granite4"), ids=IDS), expected)
        for key, value, words in (("num_local_experts", 8, '"num_local_experts" above 0'),
                                  ("layer_types", ["attention", "mamba"],
                                   '"layer_types"[1] is "mamba"'),
                                  ("position_embedding_type", "nope",
                                   'only "position_embedding_type": "rope" is supported')):
            folder.config = dict(c, **{key: value})
            self.assertIn(words, self.refused(6, "convert", folder.write(scratch("granite4")), "-o",
                                              scratch("no.tern"), "--no-tokenizer"))

    def test_dynamic_scaling(self):
        """It has no effect in the original context, to which the model is limited."""
        self.check(Folder("tiny-qwen3-dense", DENSE), {"rope_scaling": None},
                   {"rope_scaling": {"type": "dynamic", "factor": 2.0}})
        info = json.loads(self.ok("info", scratch("spelling.tern"), "--json").text)
        self.assertEqual(info["context"], 40960)

    def test_olmo3(self):
        """Scaling applies to layers without a window, also where it is not listed by kind."""
        yarn = {"rope_type": "yarn", "factor": 8.0, "original_max_position_embeddings": 64,
                "attention_factor": 1.2079441541679836, "beta_fast": 32.0, "beta_slow": 1.0}
        plain = {"rope_type": "default", "rope_theta": 500000}
        folder = Folder("tiny-olmo2", DENSE)
        c = {k: v for k, v in folder.config.items() if not k.startswith("rope_")}
        folder.config = dict(c, model_type="olmo3", sliding_window=5,
                             layer_types=["sliding_attention", "full_attention"])
        by_kind = {"full_attention": dict(yarn, rope_theta=500000), "sliding_attention": plain}
        scaled = self.check(folder, {"rope_theta": 500000, "rope_scaling": yarn},
                            {"rope_parameters": by_kind})
        folder.config = dict(c, model_type="olmo2", rope_parameters=plain)
        self.assertNotEqual(scaled, self.logits(self.convert(folder.write(scratch("plain")),
                                                             "plain"), ids=IDS))

    def test_longrope_of_early_files(self):
        folder = Folder("tiny-phi4-mini", DENSE)
        rope = folder.config["rope_scaling"]
        self.check(folder, {"rope_scaling": dict(rope, type="longrope")},
                   {"rope_scaling": dict(rope, type="su")})

    def test_stretch_of_longrope(self):
        """A factor replaces the quotient of the contexts."""
        folder = Folder("tiny-phi4-mini", DENSE)
        rope = folder.config["rope_scaling"]
        n = folder.config["original_max_position_embeddings"]
        self.check(folder, {"rope_scaling": dict(rope, factor=2.0)},
                   {"rope_scaling": dict(rope, attention_factor=math.sqrt(1 + math.log(2, n)))})

    def test_number_of_experts(self):
        """transformers 5 renamed it."""
        folder = Folder("tiny-qwen3-moe", HYBRIDS)
        n = folder.config["num_experts"]
        self.check(folder, {"num_experts": n}, {"num_local_experts": n}, ["num_experts"])

    def test_layers_without_experts(self):
        """One of them equals a layer whose experts are all the same."""
        folder, mlp = Folder("tiny-qwen3-moe", HYBRIDS), "model.layers.0.mlp."
        self.assertTrue(folder.config["norm_topk_prob"])
        parts = [f"{part}_proj.weight" for part in ("gate", "up", "down")]
        for e in range(folder.config["num_experts"]):
            for part in parts:
                first = folder.tensors[f"{mlp}experts.0.{part}"]
                folder.tensors[f"{mlp}experts.{e}.{part}"] = first
        same = self.logits(self.convert(folder.write(scratch("same")), "same"), ids=IDS)
        for part in parts:
            folder.tensors[mlp + part] = folder.tensors[f"{mlp}experts.0.{part}"]
        folder.tensors = {name: tensor for name, tensor in folder.tensors.items()
                          if not name.startswith((mlp + "experts.", mlp + "gate.weight"))}
        folder.config["intermediate_size"] = folder.config["moe_intermediate_size"]
        dense = self.check(folder, {"mlp_only_layers": [7, 0]}, {"decoder_sparse_step": 2})
        pairs = zip(command.floats(dense), command.floats(same))
        self.assertLess(max(abs(a - b) for a, b in pairs), 1e-4)
        folder.config["mlp_only_layers"] = [0, 1]
        self.assertIn("without any layer of experts is not supported",
                      self.refused(6, "convert", folder.write(scratch("sparse")), "-o",
                                   scratch("sparse.tern"), "--no-tokenizer"))

    def test_tie_inside_and_around(self):
        """Where the configuration of the text model contradicts the one around it, the head in the
        file decides."""
        folder = Folder("tiny-qwen35", HYBRIDS)
        self.nest(folder, False)
        del folder.tensors["lm_head.weight"]
        self.nest(folder, True)

    def test_prefixes_of_models_that_see(self):
        """The text model, with a head or tied, as transformers and other programs name it."""
        own = os.path.join(command.ROOT, "tests", "data", "models")
        for name, root in (("tiny-qwen35", HYBRIDS), ("tiny-qwen35-moe", HYBRIDS),
                           ("tiny-mistral-ternary", own)):
            folder = Folder(name, root)
            ids = "1 17 30 42 5 60 26 8 11 48 3"
            expected = self.logits(self.convert(folder.path, "usual"), ids=ids)
            tensors = folder.tensors
            outer = {k: v for k, v in folder.config.items() if k.endswith("_token_id")}
            if "text_config" not in folder.config:
                folder.config = dict(outer, model_type="seeing", text_config=folder.config)
            for prefix, head in (("language_model.model.", "language_model."),
                                 ("model.language_model.", "")):
                folder.tensors = {
                    head + key if key.startswith("lm_head") else
                    re.sub(r"^(model\.language_model\.|model\.(?!visual))", prefix, key): value
                    for key, value in tensors.items()}
                for twin in (False, True):
                    if twin and head + "lm_head.weight" not in folder.tensors:
                        folder.tensors[head + "lm_head.weight"] = folder.tensors[
                            prefix + "embed_tokens.weight"]
                    with self.subTest(name=name, prefix=prefix, twin=twin):
                        model = self.convert(folder.write(scratch("seeing")), "seeing")
                        self.assertEqual(self.logits(model, ids=ids), expected)

    def nest(self, folder, is_tied):
        text = {k: v for k, v in folder.config["text_config"].items()
                if k != "tie_word_embeddings"}
        around = {k: v for k, v in folder.config.items() if k != "text_config"}
        results = []
        for outer, inner in ((is_tied, is_tied), (True, False), (False, True)):
            folder.config = dict(around, tie_word_embeddings=outer,
                                 text_config=dict(text, tie_word_embeddings=inner))
            model = self.convert(folder.write(scratch("nested")), "nested")
            results.append(self.logits(model, ids=IDS))
        self.assertEqual(results, results[:1] * 3)


if __name__ == "__main__":
    command.main()
