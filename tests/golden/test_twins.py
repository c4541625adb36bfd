#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""The same model in another representation gives the same bytes: a folder as a GGUF file, a file in
parts, a rotation as factors, scales inside weights.  The originals have reference goldens
(test_families, test_embed), so these forms are checked against them too."""
import math
import os
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import read_bytes, scratch, shared
from twins import (Case, Folder, IDS, LINEAR, NORMS, common_keys, f32_tensor, gemma_file,
                   permuted, plain_tensors)


class Twins(Case):
    def test_minicpm(self):
        """Three scales, permuted rows, short and long factors."""
        folder = Folder("tiny-bitcpm4")
        c, rope, path = folder.config, folder.config["rope_scaling"], scratch("minicpm.gguf")
        keys = [("minicpm.embedding_scale", gguf.F32, float(c["scale_emb"])),
                ("minicpm.residual_scale", gguf.F32,
                 c["scale_depth"] / c["num_hidden_layers"] ** 0.5),
                ("minicpm.logit_scale", gguf.F32, c["hidden_size"] / c["dim_model_base"]),
                ("minicpm.rope.scaling.type", gguf.STRING, "longrope"),
                ("minicpm.rope.scaling.original_context_length", gguf.U32,
                 rope["original_max_position_embeddings"])]
        n = len(rope["short_factor"])
        rows = list(plain_tensors(folder, NORMS, True))
        rows += [f32_tensor("rope_factors_long.weight", rope["long_factor"], [n]),
                 f32_tensor("rope_factors_short.weight", rope["short_factor"], [n])]
        gguf.write(path, common_keys("minicpm", c) + keys, rows)
        self.check_same(folder.path, path)

    def test_rope_freqs(self):
        """The factors of llama-3's scaling in GGUF's form."""
        folder, path = Folder("tiny-bitcpm-llama"), scratch("freqs.gguf")
        factors = folder.config["rope_scaling"]["short_factor"]
        rows = list(plain_tensors(folder, NORMS, True))
        rows.append(f32_tensor("rope_freqs.weight", factors, [len(factors)]))
        gguf.write(path, common_keys("llama", folder.config), rows)
        self.check_same(folder.path, path)

    def test_scales_that_leave_no_number(self):
        """A product of two valid scales that is not finite."""
        folder, path = Folder("tiny-bitcpm-llama"), scratch("scales.gguf")
        folder.config["rope_scaling"] = None
        name = "blk.0.attn_q.weight"
        for by, scale, made in ((1e4, 3e38, "inf"), (1, 1e-44, "0")):
            rows = [f32_tensor(name, [by * v for v in struct.unpack(f"<{len(data) // 4}f", data)],
                               shape) if row == name else (row, kind, shape, data)
                    for row, kind, shape, data in plain_tensors(folder, NORMS, True)]
            rows.append(f32_tensor("blk.0.attn_q.scale", [scale], [1]))
            gguf.write(path, common_keys("llama", folder.config), rows)
            result = command.tern("convert", path, "-o", scratch("x.tern"), "--no-tokenizer")
            self.assertEqual(result.code, 5)
            self.assertRegex(result.err, rf'"{name}": a scale of \S+ and the scale \S+ beside it '
                                    rf"make {made}\n$")

    def test_rotations_of_gemma(self):
        """Whichever spelling declares it.  test_families.py checks the result of "linear"."""
        def parameters(**full):
            return {"full_attention": dict(full, rope_theta=1e6),
                    "sliding_attention": {"rope_type": "default", "rope_theta": 1e4}}
        folder = Folder("tiny-embed-gemma3")
        old = dict(folder.config)
        for change, words in (
                ({"rope_parameters": {"sliding_attention": {"rope_type": "yarn", "factor": 8.0}}},
                 'type "yarn" is not supported here'),
                ({"rope_scaling": {"rope_type": "linear", "factor": 8.0}}, None),
                ({"partial_rotary_factor": 0.5}, '"partial_rotary_factor" is 0.5'),
                ({"rope_parameters": parameters(rope_type="default")}, None)):
            folder.config = dict(old, **change)
            source = folder.write(scratch("gemma"))
            args = "convert", source, "-o", scratch("gemma.tern"), "--no-tokenizer"
            if words:
                self.assertIn(words, self.refused(6, *args))
            else:
                self.ok(*args)
        folder.config = {k: v for k, v in old.items() if k != "hidden_activation"}
        folder.config["hidden_act"] = "gelu"
        self.ok("convert", folder.write(scratch("gelu")), *args[2:])

    def test_text_model_of_one_that_sees(self):
        """Its configuration is nested and omits defaults, its tensors have a longer prefix, and
        those for pictures are skipped with one note."""
        own = os.path.join(command.ROOT, "tests", "data", "models")
        usual = ("tie_word_embeddings", "rms_norm_eps", "hidden_activation")
        for prefix in ("language_model.model.", "model.language_model."):
            folder = Folder("tiny-gemma3-ternary", own)
            text = {k: v for k, v in folder.config.items()
                    if k not in usual and not k.endswith("_token_id")}
            ids = {k: v for k, v in folder.config.items() if k.endswith("_token_id")}
            folder.config = dict(ids, architectures=["Gemma3ForConditionalGeneration"],
                                 model_type="gemma3", text_config=text, vision_config={})
            folder.tensors = {prefix + name[len("model."):]: t
                              for name, t in folder.tensors.items()}
            for name in ("vision_tower.patch.weight", "multi_modal_projector.norm.weight"):
                folder.tensors[name] = "BF16", [2], gguf.to_bf16([1.0, 2.0])
            source = folder.write(scratch("seeing"))
            self.check_same(folder.path, source, ids="1 17 30 42 5 60 26 8 11 48 3")
            result = self.ok("convert", source, "-o", scratch("seeing.tern"), "--no-tokenizer")
            self.assertIn("only the text model is converted: 2 tensors, such as "
                          "multi_modal_projector.*", result.err)

    def test_biases(self):
        """Biases of q and k are interleaved like the rows of their matrices."""
        folder, path = Folder("tiny-bitcpm-llama"), scratch("biases.gguf")
        folder.config["rope_scaling"], c = None, folder.config
        heads = {"attn_q": c["num_attention_heads"], "attn_k": c["num_key_value_heads"]}
        rows = list(plain_tensors(folder, NORMS, True))
        c["attention_bias"] = True
        for theirs in ("self_attn.q_proj", "self_attn.k_proj", "self_attn.v_proj",
                       "self_attn.o_proj"):
            n = folder.floats(f"layers.0.{theirs}.weight")[1][0]
            values = [(i * 37 % 64 - 32) / 16 for i in range(n)]
            folder.tensors[f"model.layers.0.{theirs}.bias"] = "BF16", [n], gguf.to_bf16(values)
            ours = LINEAR[theirs]
            if ours in heads:
                values = permuted(values, (n, 1), heads[ours])
            rows.append(f32_tensor(f"blk.0.{ours}.bias", values, [n]))
        gguf.write(path, common_keys("llama", c), rows)
        self.check_same(folder.write(scratch("biases")), path)

    def test_llama3_scaling(self):
        """In a folder four numbers, equivalent to a list of factors."""
        folder, c = Folder("tiny-bitcpm-llama"), {}
        c.update(factor=8.0, low_freq_factor=1.0, high_freq_factor=4.0,
                 original_max_position_embeddings=64, rope_type="llama3")
        dim, factors = folder.config["head_dim"], []
        for j in range(dim // 2):
            frequency = folder.config["rope_theta"] ** (-2 * j / dim)
            wave = 2 * math.pi / frequency
            scaled = frequency
            if wave > 64 / 1.0:
                scaled = frequency / 8
            elif wave > 64 / 4.0:
                smooth = (64 / wave - 1.0) / (4.0 - 1.0)
                scaled = (1 - smooth) * frequency / 8 + smooth * frequency
            factors.append(frequency / scaled)
        self.assertEqual((factors[0], factors[-1]), (1, 8))
        self.assertTrue(any(1 < f < 8 for f in factors))
        rope = folder.config["rope_scaling"]
        folder.config["rope_scaling"] = c
        one = folder.write(scratch("llama3"))
        folder.config["rope_scaling"] = dict(rope, short_factor=factors)
        self.check_same(one, folder.write(scratch("factors")))
        folder.config["rope_scaling"] = None
        plain = self.convert(folder.write(scratch("unscaled")), "unscaled")
        self.assertNotEqual(self.logits(plain), self.logits(self.convert(one, "llama3")))

    def test_yarn(self):
        """Frequencies by the formula of transformers; the factor of rotated queries and keys may be
        in the norms before them."""
        folder, path = Folder("tiny-bonsai"), scratch("yarn.gguf")
        c, norms = folder.config, dict(NORMS)
        norms.update({"self_attn.q_norm": "attn_q_norm", "self_attn.k_norm": "attn_k_norm"})
        dim, theta = c["head_dim"], c.pop("rope_parameters")["rope_theta"]
        c["rope_theta"] = theta

        def pair_of(turns):
            return dim * math.log(64 / (turns * 2 * math.pi)) / (2 * math.log(theta))
        first, last = max(math.floor(pair_of(4)), 0), min(math.ceil(pair_of(0.5)), dim - 1)
        slowed = [min(max((j - first) / (last - first), 0), 1) for j in range(dim // 2)]
        factors = [1 / (s / 8 + 1 - s) for s in slowed]
        self.assertEqual((factors[0], factors[-1]), (1, 8))
        self.assertTrue(any(1 < f < 8 for f in factors))

        def scaling(name, kind, value):
            return f"qwen3.rope.scaling.{name}", kind, value
        keys = [scaling("type", gguf.STRING, "yarn"), scaling("factor", gguf.F32, 8.0),
                scaling("original_context_length", gguf.U32, 64),
                scaling("yarn_beta_fast", gguf.F32, 4.0), scaling("yarn_beta_slow", gguf.F32, 0.5)]
        rows = list(plain_tensors(folder, norms, False))
        freqs = f32_tensor("rope_freqs.weight", factors, [len(factors)])

        def written(keys, rows, name):
            gguf.write(path, common_keys("qwen3", c) + keys, rows)
            return self.logits(self.convert(path, name), "--inputs", "f32")

        def multiplied(row, by):
            name, kind, shape, data = row
            if not name.endswith(("attn_q_norm.weight", "attn_k_norm.weight")):
                return row
            return name, kind, shape, gguf.f32([by * v for v in command.floats(data)])
        yarn, magnitude = written(keys, rows, "yarn"), 0.1 * math.log(8) + 1
        norms = [multiplied(row, magnitude) for row in rows]
        expected = written([], [*norms, freqs], "norms")
        self.assertLessEqual(self.distance(command.floats(yarn), command.floats(expected)), 1e-4)
        for other in ([*rows, freqs], norms):
            far = self.distance(command.floats(yarn), command.floats(written([], other, "other")))
            self.assertGreater(far, 1e-3)
        twice = [scaling("attn_factor", gguf.F32, magnitude)]
        self.assertEqual(written(twice, [*rows, freqs], "attn"), yarn)
        c["rope_scaling"] = {"rope_type": "yarn", "factor": 8.0, "beta_fast": 4, "beta_slow": 0.5,
                             "original_max_position_embeddings": 64}
        model = self.convert(folder.write(scratch("yarn")), "yarn")
        self.assertEqual(self.logits(model, "--inputs", "f32"), yarn)
        c["rope_scaling"]["attention_factor"] = 1.0
        plain = self.convert(folder.write(scratch("yarn")), "unmagnified")
        self.assertEqual(self.logits(plain, "--inputs", "f32"),
                         written([], [*rows, freqs], "freqs"))

    def test_a_scale_for_each_row(self):
        """ParetoQ: deepgrove's trits and scales, multiplied out."""
        folder = Folder("tiny-deepgrove")
        products = {}
        for name, (dtype, shape, data) in folder.tensors.items():
            if name.endswith(".scales"):
                continue
            scales = folder.tensors.get(name[:-len("weight")] + "scales")
            if scales:
                trits, row = gguf.of_bf16(data), gguf.of_bf16(scales[2])
                trits = [t * row[k // shape[1]] for k, t in enumerate(trits)]
                data = gguf.to_bf16(trits)
            products[name] = dtype, shape, data
        folder.tensors = products
        path = folder.write(scratch("paretoq"))
        self.check_same(shared("reference", "models", "tiny-deepgrove"), path)
        rows = list(plain_tensors(folder, NORMS, True))
        gguf.write(scratch("paretoq.gguf"), common_keys("llama", folder.config), rows)
        self.check_same(path, scratch("paretoq.gguf"))

    def test_scales_of_other_columns(self):
        """Column shards whose width is not a multiple of 64 are refused by that reason, because the
        weights are ternary."""
        folder = Folder("tiny-deepgrove")  # 192 columns
        for name, (dtype, shape, data) in list(folder.tensors.items()):
            if name.endswith(".scales"):
                del folder.tensors[name]
            elif "o_proj" in name:
                trits = [t / (16 if k % shape[1] < 96 else 32)
                         for k, t in enumerate(gguf.of_bf16(data))]
                folder.tensors[name] = dtype, shape, gguf.to_bf16(trits)
        path = folder.write(scratch("shards"))
        error = self.refused(6, "convert", path, "-o", scratch("x.tern"), "--no-tokenizer")
        self.assertIn('o_proj.weight": its scales change at columns that are not a multiple of 64',
                      error)
        self.assertIn("its scales change at columns", self.ok("info", path, "--json").text)

    def test_activations(self):
        """One scale per matrix implies int8 inputs unless the source says otherwise: a TriLM with
        one shard, which a folder states and a GGUF file does not."""
        folder, path = Folder("tiny-bitcpm-llama"), scratch("shard.gguf")
        folder.config.update(rope_scaling=None, pretraining_model_parallel=1)
        for name, (dtype, shape, data) in folder.tensors.items():
            if "_proj." in name:
                trits = [(v > 0) - (v < 0) for v in gguf.of_bf16(data)]
                folder.tensors[name] = dtype, shape, gguf.to_bf16([t / 16 for t in trits])
        gguf.write(path, common_keys("llama", folder.config),
                   list(plain_tensors(folder, NORMS, True)))
        expected = self.logits(self.convert(folder.write(scratch("shard")), "shard"))
        stated = self.convert(path, "stated", "--activations", "float")
        self.assertEqual(self.logits(stated), expected)
        out = scratch("guessed.tern")
        result = self.ok("convert", path, "-o", out, "--no-tokenizer", "--head", "f32")
        self.assertIn("warning: nothing in the source says how inputs", result.err)
        self.assertIn("needs --activations float", result.err)
        self.assertNotEqual(self.logits(out), expected)
        same = self.convert(path, "int8", "--activations", "int8")
        self.assertEqual(self.logits(same), self.logits(out))
        self.refused(2, "convert", path, "-o", out, "--activations", "int4")

    def test_several_scales_where_one_is_due(self):
        """BitNet's inputs are rounded to int8: another model's groups do not make a BitNet."""
        folder, path = Folder("tiny-bitcpm-llama"), scratch("groups.gguf")
        c, rows = folder.config, list(plain_tensors(folder, NORMS, False))
        for name, n in (("attn", c["num_attention_heads"] * c["head_dim"]),
                        ("ffn", c["intermediate_size"])):
            rows.append(f32_tensor(f"blk.0.{name}_sub_norm.weight", [1.0] * n, [n]))
        stop = ("tokenizer.ggml.eos_token_id", gguf.U32, 2)
        gguf.write(path, [*common_keys("bitnet-b1.58", c), stop], rows)
        error = self.refused(6, "convert", path, "-o", scratch("x.tern"), "--no-tokenizer")
        self.assertIn("has several scales, but this family has one for each whole matrix", error)
        result = command.tern("convert", path, "-o", scratch("x.tern"), "--no-tokenizer",
                              "--activations", "int8")
        self.assertEqual(result.code, 6)
        self.assertIn("leave --activations out", result.err)

    def states(self, path, name):
        model = self.convert(path, name)
        return command.floats(self.ok("embed", model, "--raw", "--ids", IDS, "--pooling",
                                      "mean").out)

    def test_windows_of_gemma(self):
        """Layers with a window of 8 positions and their own rotation."""
        folder, path = Folder("tiny-embed-gemma3"), scratch("gemma.gguf")
        window = ("gemma3.attention.sliding_window", gguf.U32, folder.config["sliding_window"])
        pattern = "gemma3.attention.sliding_window_pattern"
        expected = self.states(folder.path, "gemma")
        for value in ((pattern, gguf.U32, 3), (pattern, (gguf.ARRAY, gguf.BOOL), [1, 1, 0])):
            gemma_file(path, folder, window, value)
            self.assertLessEqual(self.distance(self.states(path, "windows"), expected), 1e-6)
        gemma_file(path, folder, window, (pattern, gguf.U32, 3),
                   ("gemma3.rope.freq_base_swa", gguf.F32, 500.0))
        self.assertGreater(self.distance(self.states(path, "other"), expected), 1e-5)
        gemma_file(path, folder)  # no window, one rotation
        self.assertGreater(self.distance(self.states(path, "none"), expected), 1e-5)

    def test_head_of_an_embedding_model(self):
        """A file with a pooling needs no head: it is skipped with a note."""
        folder, path = Folder("tiny-embed-gemma3"), scratch("headed.gguf")
        gemma_file(path, folder)
        expected = self.states(path, "bare")
        gemma_file(path, folder, has_head=True)
        self.assertEqual(self.states(path, "headed"), expected)
        result = self.ok("convert", path, "-o", scratch("said.tern"), "--no-tokenizer")
        self.assertIn("it is an embedding model: output.weight", result.err)

    def test_wrong_windows(self):
        folder, path = Folder("tiny-embed-gemma3"), scratch("wrong.gguf")
        pattern = "gemma3.attention.sliding_window_pattern"
        window = ("gemma3.attention.sliding_window", gguf.U32, 8)
        for key, words in (((pattern, (gguf.ARRAY, gguf.BOOL), [1, 0]), "3 truth values"),
                           ((pattern, (gguf.ARRAY, gguf.U32), [1, 1, 0]), "3 truth values"),
                           ((pattern, gguf.U32, 0), "allowed are 1 to 1024"),
                           (("gemma3.rope.freq_base_swa", gguf.F32, 0.5), "allowed are 1 to")):
            gemma_file(path, folder, window, key)
            self.assertIn(words, self.refused(5, "convert", path, "-o", scratch("x.tern"),
                                              "--no-tokenizer"))

    @staticmethod
    def distance(a, b):
        assert len(a) == len(b)
        return max(abs(x - y) for x, y in zip(a, b))

    def test_tied_head_beside_the_embeddings(self):
        """A head that config.json ties to the embeddings is skipped, but only if it has the same
        values: otherwise one of the two is wrong."""
        folder = Folder("tiny-bitcpm4")
        self.assertTrue(folder.config["tie_word_embeddings"])
        expected = self.logits(self.convert(folder.path, "tied"))
        dtype, shape, data = folder.tensors["model.embed_tokens.weight"]
        wide = gguf.f32(gguf.of_bf16(data))
        out, (_, cols) = scratch("head.tern"), shape
        for twin in ((dtype, shape, data), ("F32", shape, wide)):
            folder.tensors["lm_head.weight"] = twin
            result = self.ok("convert", folder.write(scratch("twin")), "-o", out,
                             "--no-tokenizer", "--head", "f32")
            self.assertIn("left out, because it holds the numbers of the embeddings: lm_head",
                          result.err)
            self.assertEqual(self.logits(out), expected)
        at = 4 * (300 * cols + 5)
        other = wide[:at] + gguf.f32([8.0]) + wide[at + 4:]
        folder.tensors["lm_head.weight"] = "F32", shape, other
        path = folder.write(scratch("other"))
        error = self.refused(5, "convert", path, "-o", scratch("x.tern"), "--no-tokenizer")
        self.assertIn('"lm_head.weight" is 8 at row 300, column 5, the embedding ', error)
        folder.config["tie_word_embeddings"] = False
        own = self.logits(self.convert(folder.write(scratch("own")), "own"))
        rows = len(IDS.split()), folder.config["vocab_size"]
        for i in range(rows[0]):
            begin = 4 * i * rows[1]
            self.assertNotEqual(own[begin + 1200:begin + 1204], expected[begin + 1200:][:4])
            self.assertEqual(own[begin:begin + 1200], expected[begin:begin + 1200])
        for twin, words in ((("F32", shape[::-1], wide), "config.json makes it [512, 128]"),
                            (("U8", shape, wide[:len(wide) // 4]), 'U8 contradicts config.json')):
            folder.config["tie_word_embeddings"] = True
            folder.tensors["lm_head.weight"] = twin
            path = folder.write(scratch("wrong"))
            self.assertIn(words, self.refused(5, "convert", path, "-o", scratch("x.tern"),
                                              "--no-tokenizer"))

    def test_tied_heads_of_other_names_and_widths(self):
        """GPT-NeoX calls its head embed_out; that of OPT-350m is narrower than the model."""
        for name, head, embed in (
                ("tiny-gpt-neox", "embed_out.weight", "gpt_neox.embed_in.weight"),
                ("tiny-opt-350m", "lm_head.weight", "model.decoder.embed_tokens.weight")):
            folder = Folder(name, shared("reference", "dense", "models"))
            folder.config["tie_word_embeddings"] = True
            folder.tensors.pop(head, None)
            tied = self.convert(folder.write(scratch("tied")), "tied")
            folder.tensors[head] = folder.tensors[embed]
            with self.subTest(name):
                twin = self.convert(folder.write(scratch("twin")), "twin")
                self.assertEqual(self.logits(tied, ids="1 17"), self.logits(twin, ids="1 17"))

    def test_masks_beside_the_weights(self):
        path = shared("reference", "dense", "models", "tiny-gpt2")
        result = self.ok("convert", path, "-o", scratch("masks.tern"), "--no-tokenizer")
        self.assertIn("tensors, such as *.attn.bias", result.err)

    def test_heads_that_belong_to_other_sources(self):
        """output.weight is a head in GGUF files only, lm_head.weight in folders only: elsewhere
        their meaning is unknown."""
        folder, out = Folder("tiny-bitcpm-llama"), scratch("x.tern")
        rows = [row for row in plain_tensors(folder, NORMS, True) if row[0] != "output.weight"]
        embed, = (row for row in rows if row[0] == "token_embd.weight")
        rows.append(("lm_head.weight", *embed[1:]))
        gguf.write(scratch("strange.gguf"), common_keys("llama", folder.config), rows)
        folder.tensors["output.weight"] = folder.tensors["lm_head.weight"]
        for path, name in ((scratch("strange.gguf"), "lm_head.weight"),
                           (folder.write(scratch("strange")), "output.weight")):
            error = self.refused(5, "convert", path, "-o", out, "--no-tokenizer")
            self.assertIn(f'"{name}" is not part of this architecture', error)

    def test_head_beside_packed_embeddings(self):
        """Codes and floats are not compared."""
        folder = Folder("tiny-bitnet-packed")
        self.assertTrue(folder.config["tie_word_embeddings"])
        name = "model.embed_tokens.weight"
        _, (rows, cols), _ = folder.tensors[name]
        folder.tensors[name] = "U8", [rows // 4, cols], bytes(rows // 4 * cols)
        folder.tensors[name + "_scale"] = "BF16", [1], gguf.to_bf16([1.0])
        folder.tensors["lm_head.weight"] = "F32", [rows, cols], bytes(4 * rows * cols)
        path = folder.write(scratch("packed"))
        error = self.refused(5, "convert", path, "-o", scratch("x.tern"), "--no-tokenizer")
        self.assertIn('"lm_head.weight" of type F32 contradicts config.json', error)
        self.assertIn("the embeddings are U8", error)

    def test_padded_vocabulary(self):
        """A model may have more rows than its tokenizer has tokens: those ids are never generated.
        """
        folder = Folder("tiny-bitcpm-llama")
        rows = folder.config["vocab_size"]
        for name in ("model.embed_tokens.weight", "lm_head.weight"):
            dtype, (n, cols), data = folder.tensors[name]
            extra = gguf.to_bf16([8.0] * 64 * cols)
            folder.tensors[name] = dtype, [n + 64, cols], data + extra
        folder.config["vocab_size"] = rows + 64
        path = folder.write(scratch("padded"))
        for name in ("tokenizer.json", "tokenizer_config.json", "generation_config.json"):
            if os.path.exists(os.path.join(folder.path, name)):
                shutil.copy(os.path.join(folder.path, name), path)
        padded, plain = scratch("padded.tern"), scratch("plain.tern")
        self.ok("convert", path, "-o", padded, "--head", "f32")
        self.ok("convert", folder.path, "-o", plain, "--head", "f32")
        long, short = self.logits(padded), self.logits(plain)
        n = len(IDS.split())
        for i in range(n):
            self.assertEqual(long[i * (rows + 64) * 4:][:rows * 4], short[i * rows * 4:][:rows * 4])
        for flags in (["--greedy"], ["--seed", "5", "--temp", "2"]):
            args = ["--raw", "-p", "A", "-n", "30", "--ignore-eos", *flags]
            self.assertEqual(self.ok("run", padded, *args).out, self.ok("run", plain, *args).out)


class Parts(Case):
    """A GGUF file in three parts, as gguf-split writes them."""

    def setUp(self):
        self.folder = Folder("tiny-bitcpm-llama")
        rope = self.folder.config["rope_scaling"]["short_factor"]
        self.rows = list(plain_tensors(self.folder, NORMS, True))
        self.rows.append(f32_tensor("rope_freqs.weight", rope, [len(rope)]))
        self.dir = scratch(self.id())
        os.mkdir(self.dir)
        self.write()

    def part(self, i):
        return os.path.join(self.dir, f"m-{i + 1:05}-of-00003.gguf")

    def write(self):
        for i in range(3):
            rows = self.rows[i * 4:(i + 1) * 4] if i < 2 else self.rows[8:]
            keys = [("split.no", gguf.U16, i), ("split.count", gguf.U16, 3),
                    ("split.tensors.count", gguf.I32, len(self.rows))]
            if i == 0:
                keys += common_keys("llama", self.folder.config)
            gguf.write(self.part(i), keys, rows)

    def refusal(self, i=0):
        out = os.path.join(self.dir, "x.tern")
        error = self.refused(5, "convert", self.part(i), "-o", out, "--no-tokenizer")
        self.assertEqual([n for n in os.listdir(self.dir) if "tern" in n], [])
        return error

    def test_whole(self):
        whole = os.path.join(self.dir, "whole.gguf")
        gguf.write(whole, common_keys("llama", self.folder.config), self.rows)
        self.check_same(whole, self.part(0))
        self.assertIn('"convertible":true', self.ok("info", self.part(0), "--json").text)

    def test_missing(self):
        os.remove(self.part(1))
        self.assertIn("part 2 of 3 is missing", self.refusal())

    def test_swapped(self):
        os.rename(self.part(1), self.part(7))
        os.rename(self.part(2), self.part(1))
        os.rename(self.part(7), self.part(2))
        self.assertIn('"split.no" is 2, expected 1', self.refusal())

    def test_not_the_first(self):
        self.assertIn("give the first part", self.refusal(1))

    def test_renamed(self):
        other = os.path.join(self.dir, "other.gguf")
        os.rename(self.part(0), other)
        out = os.path.join(self.dir, "x.tern")
        self.assertIn("must be called NAME-00001-of-00003.gguf",
                      self.refused(5, "convert", other, "-o", out, "--no-tokenizer"))

    def test_partial_conversion_of_another_file(self):
        self.rows[5], self.rows[0] = self.rows[0], self.rows[5]
        first = read_bytes(self.part(0))
        self.write()
        with open(self.part(0), "wb") as f:
            f.write(first)
        self.assertIn("occurs in", self.refusal())

    def test_tensors_missing(self):
        del self.rows[9]
        first = read_bytes(self.part(0)), read_bytes(self.part(1))
        self.write()
        for i, data in enumerate(first):
            with open(self.part(i), "wb") as f:
                f.write(data)
        self.assertIn("split.tensors.count", self.refusal())


if __name__ == "__main__":
    command.main()
