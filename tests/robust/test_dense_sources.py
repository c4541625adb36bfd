#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Folders of ordinary models: the types of their matrices, the messages of convert, and that a
damaged ternary model never passes for an ordinary one."""
import json
import os
import random
import shutil
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import read_bytes, read_json, scratch, shared

IDS = "1 17 300 42 5 99 260 8"
GATE = "model.layers.0.mlp.gate_proj.weight"
DENSE = "this model is not ternary"
DAMAGED = "most weights of a matrix are ternary and some are not: the file is rounded or damaged"


def halves(data):
    return list(struct.unpack(f"<{len(data) // 2}e", data))


def of_halves(values):
    return struct.pack(f"<{len(values)}e", *values)


class Dense(command.TestCase):
    def setUp(self):
        self.folder, self.out = scratch("dense"), scratch("dense.tern")
        os.makedirs(self.folder, exist_ok=True)

    def load(self, *path):
        source = shared("reference", *path)
        shutil.copy(os.path.join(source, "config.json"), self.folder)
        return gguf.read_safetensors(os.path.join(source, "model.safetensors"))

    def write(self, tensors):
        gguf.write_safetensors(os.path.join(self.folder, "model.safetensors"), tensors)

    def convert(self, tensors, *flags):
        """Notes and warnings, and layouts by role."""
        self.write(tensors)
        err = self.ok("convert", self.folder, "-o", self.out, "--no-tokenizer", "--force",
                      *flags).err
        info = json.loads(self.ok("info", self.out, "--json", "--tensors").text)
        return err, {t["name"]: t["layout"] for t in info["tensors"]}

    def refuse(self, tensors, code, *words):
        self.write(tensors)
        out = scratch("refused.tern")
        result = command.tern("convert", self.folder, "-o", out, "--no-tokenizer")
        self.assertEqual(result.code, code, result.err)
        self.assertFalse(os.path.exists(out))
        for word in words:
            self.assertIn(word, result.err.splitlines()[-1])

    def logits(self):
        path = scratch("dense.f32")
        self.ok("logits", self.out, "--ids", IDS, "-o", path, "--kv", "f32")
        return read_bytes(path)

    # ---- types ----

    def test_f32_becomes_the_narrowest_type_that_holds_it(self):
        bf16 = self.load("dense", "models", "tiny-qwen2")
        err, layouts = self.convert(bf16)
        self.assertEqual(err.count(DENSE), 1)
        self.assertIn("the largest in bf16", err)
        self.assertLessEqual({v for k, v in layouts.items() if "norm" not in k and "bias" not in k},
                             {"bf16"})
        expected = self.logits()
        floats = {name: gguf.of_bf16(data) for name, (_, _, data) in bf16.items()}
        wide = {name: ("F32", bf16[name][1], gguf.f32(values)) for name, values in floats.items()}
        self.assertEqual(self.convert(wide)[1], layouts)
        self.assertEqual(self.logits(), expected)
        finer = dict(wide)
        values = list(floats[GATE])
        values[77] = 0.123456789  # in neither 16-bit type
        finer[GATE] = ("F32", bf16[GATE][1], gguf.f32(values))
        layouts = self.convert(finer)[1]
        self.assertEqual(layouts["layers.0.gate"], "f32")
        self.assertEqual(layouts["layers.0.up"], "bf16")
        values[77] = 1 + 2.0 ** -10  # in f16 alone, like the others
        values = [struct.unpack("<e", struct.pack("<e", v))[0] for v in values]
        finer[GATE] = ("F32", bf16[GATE][1], gguf.f32(values))
        self.assertEqual(self.convert(finer)[1]["layers.0.gate"], "f16")

    def test_the_head_can_still_be_rounded(self):
        tensors = self.load("dense", "models", "tiny-phi3")
        self.assertEqual(self.convert(tensors)[1]["head"], "bf16")
        self.assertRegex(self.ok("info", self.out).text, r"\ninputs +f32; products of floats round")
        self.assertEqual(self.convert(tensors, "--head", "q8")[1]["head"], "q8p")

    def test_a_matrix_of_zeros_is_dense_among_dense_ones(self):
        tensors = self.load("dense", "models", "tiny-qwen2")
        dtype, shape, data = tensors[GATE]
        tensors[GATE] = (dtype, shape, bytes(len(data)))
        err, layouts = self.convert(tensors)
        self.assertEqual(layouts["layers.0.gate"], "bf16")
        self.assertNotIn("warning", err)

    def test_weights_quantized_by_mlx(self):
        """Older files have no "quantization_config"."""
        tensors = self.load("dense", "models", "tiny-qwen2")
        rows, cols = tensors[GATE][1]
        packed = dict(tensors)
        packed[GATE] = ("U32", [rows, cols // 8], bytes(rows * cols // 2))
        for part in ("scales", "biases"):
            packed[GATE.replace("weight", part)] = ("BF16", [rows, 1], bytes(2 * rows))
        self.refuse(packed, 6, "of type U32: MLX packs quantized weights so", "a GGUF file")
        path = os.path.join(self.folder, "config.json")
        config = read_json(path)
        config["quantization_config"] = {"group_size": 64, "bits": 4}
        with open(path, "w", encoding="utf-8") as f:
            json.dump(config, f)
        self.refuse(packed, 6, 'quant_method "mlx" is not supported', "a GGUF file")

    # ---- draft heads ----

    HEAD = ("hybrids", "models", "tiny-qwen35")

    def test_a_draft_head_is_kept(self):
        for path, visual in ((("models", "tiny-qwen35"), 1),
                             (("gguf", "tiny-qwen35", "f16-mtp.gguf"), 0)):
            err = self.ok("convert", shared("reference", "hybrids", *path), "-o", self.out,
                          "--no-tokenizer", "--force").err
            self.assertEqual(err.count("the model has a draft head, which --draft uses"), 1)
            self.assertNotIn("left out, because it", err)
            self.assertEqual(err.count("only the text model"), visual)
            info = json.loads(self.ok("info", self.out, "--json", "--tensors").text)
            of_head = [t for t in info["tensors"] if t["name"].startswith("layers.4.")]
            self.assertEqual(len(of_head), 16)
            self.assertEqual(info["n_layer"], 4)
            self.assertEqual(sum(t["bytes"] for t in of_head), info["draft_bytes"])
            self.assertLess(info["bytes_per_token"] + info["draft_bytes"], info["file_bytes"])
            self.assertRegex(self.ok("info", self.out).text, r"\ndraft head +\d+ kB, for --draft\n")

    def test_a_draft_head_with_another_prefix(self):
        tensors = self.load(*self.HEAD)
        layouts = self.convert(tensors)[1]
        for prefix in ("model.mtp.", "model.language_model.mtp."):
            renamed = {name.replace("mtp.", prefix, 1) if name.startswith("mtp.") else name: tensor
                       for name, tensor in tensors.items()}
            self.assertEqual(self.convert(renamed)[1], layouts)

    def test_a_draft_head_that_tern_cannot_use_is_left_out(self):
        clean = self.load(*self.HEAD)
        fc = clean["mtp.fc.weight"]
        for name, why in (("mtp.layers.1.input_layernorm.weight", "it has several layers"),
                          ("mtp.embed_tokens.weight", "it has separate embeddings"),
                          ("mtp.lm_head.weight", "it has separate embeddings or a separate head"),
                          ("mtp.layers.0.mlp.experts.0.up_proj.weight", "its layer has experts")):
            with self.subTest(name=name):
                err, layouts = self.convert({**clean, name: fc})
                self.assertRegex(err, rf"left out, because {why}.*: the draft head \(16 tensors\)")
                self.assertFalse([name for name in layouts if name.startswith("layers.4.")])
        err = self.ok("convert", shared("reference", "hybrids", "models", "tiny-qwen35-moe"), "-o",
                      self.out, "--no-tokenizer", "--force").err
        self.assertNotIn("draft head", err)

    def test_damaged_draft_heads(self):
        clean = self.load(*self.HEAD)
        for name in [name for name in clean if name.startswith("mtp.")]:
            with self.subTest(name=name):
                self.refuse({k: t for k, t in clean.items() if k != name}, 5, name, "is missing")
                dtype, shape, data = clean[name]
                half = [shape[0] // 2] + shape[1:]
                self.refuse({**clean, name: (dtype, half, data[:len(data) // 2])}, 5, name, "shape")
                bad = b"\x80\x7f" + data[2:]
                self.refuse({**clean, name: (dtype, shape, bad)}, 5, name, "is not a finite number")
        self.refuse({**clean, "mtp.layers.0.mlp.bias": clean["mtp.norm.weight"]}, 5,
                    "mtp.layers.0.mlp.bias", "is not part of this architecture")

    def test_values_that_are_no_numbers(self):
        clean = self.load("dense", "models", "tiny-qwen2")
        for name in (GATE, "model.layers.1.self_attn.q_proj.weight", "model.embed_tokens.weight"):
            for bits in (b"\x80\x7f", b"\x80\xff", b"\xc1\x7f"):
                with self.subTest(name=name, bits=bits):
                    dtype, shape, data = clean[name]
                    at = 2 * (shape[1] * 5 + 3)
                    bad = data[:at] + bits + data[at + 2:]
                    self.refuse({**clean, name: (dtype, shape, bad)}, 5, name,
                                "row 5, column 3 is not a finite number")

    # ---- damaged ternary models ----

    def ternary(self):
        return self.load("models", "tiny-bonsai")

    def test_one_weight_is_damaged(self):
        tensors = self.ternary()
        dtype, shape, data = tensors[GATE]
        for count in (1, 100):
            values = halves(data)
            for i in range(count):
                values[211 * i] = 0.3 * max(values)
            with self.subTest(count=count):
                self.refuse({**tensors, GATE: (dtype, shape, of_halves(values))}, 6, DAMAGED, GATE)

    def test_weights_are_rounded(self):
        tensors, noise = self.ternary(), random.Random(3)
        for name, (dtype, shape, data) in tensors.items():
            if "_proj" in name:
                values = halves(data)
                step = max(values) / 50
                values = [v + noise.uniform(-step, step) for v in values]
                tensors[name] = (dtype, shape, of_halves(values))
        self.refuse(tensors, 6, DAMAGED)

    def test_scales_change_within_64_columns(self):
        tensors = self.ternary()
        dtype, shape, data = tensors[GATE]
        values = [v * (1 + 0.25 * (i // 16 % 4)) for i, v in enumerate(halves(data))]
        self.refuse({**tensors, GATE: (dtype, shape, of_halves(values))}, 6, GATE,
                    "its scales change at columns that are not a multiple of 64")

    def test_a_mixture_is_reported(self):
        tensors, noise = self.ternary(), random.Random(4)
        dtype, shape, data = tensors[GATE]
        values = [noise.gauss(0, 0.02) for _ in range(len(data) // 2)]
        err, layouts = self.convert({**tensors, GATE: (dtype, shape, of_halves(values))})
        said = [line for line in err.splitlines() if "if the whole model was trained" in line]
        self.assertEqual(len(said), 1)
        self.assertIn(f'warning: 6 matrices are ternary and 1 are not, such as "{GATE}"', said[0])
        self.assertEqual((layouts["layers.0.gate"], layouts["layers.0.up"]), ("f16", "t2"))

    def test_sources_declared_ternary_must_be_ternary(self):
        """The name of a GGUF file, the key of a scheme, a family."""
        path = scratch("named.gguf")
        data = read_bytes(shared("reference", "gguf", "tiny-dense-llama", "f16.gguf"))
        self.assertEqual(data.count(b"tiny-dense-llama"), 1)
        with open(path, "wb") as f:
            f.write(data.replace(b"tiny-dense-llama", b"tiny-Bonsai-1.0B"))
        result = command.tern("convert", path, "-o", self.out, "--no-tokenizer", "--force")
        self.assertEqual(result.code, 6)
        self.assertIn("this model was not trained ternary", result.err)
        tensors = self.load("dense", "models", "tiny-llama3")
        config = os.path.join(self.folder, "config.json")
        values = command.read_json(config)
        values["pretraining_model_parallel"] = 1  # marks TriLM
        with open(config, "w", encoding="utf-8") as f:
            json.dump(values, f)
        self.refuse(tensors, 6, "this model was not trained ternary")


class Gguf(command.TestCase):
    def test_f32_becomes_the_narrowest_type(self):
        """The tensors of an F16 file as F32 have the same logits. Their values also fit BF16."""
        source = shared("reference", "gguf", "tiny-dense-llama", "f16.gguf")
        data = read_bytes(source)
        tensors = gguf.read_tensors(data)
        name, shape, _, place, _ = tensors[0]
        head = bytearray(data[:place - 8 * len(shape) - 4 - len(name) - 8])
        body = b""
        for name, shape, kind, _, begin in tensors:
            n = shape[0] * (shape[1] if len(shape) == 2 else 1)
            head += gguf.text(name) + struct.pack("<I", len(shape))
            head += b"".join(struct.pack("<Q", d) for d in reversed(shape))
            head += struct.pack("<IQ", 0, len(body))
            self.assertIn(kind, (0, 1))
            body += data[begin:begin + 4 * n] if kind == 0 else gguf.f32(
                halves(data[begin:begin + 2 * n]))
            body += bytes(-len(body) % 32)
        with open(scratch("f32.gguf"), "wb") as f:
            f.write(head + bytes(-len(head) % 32) + body)
        outputs = []
        for path in (source, scratch("f32.gguf")):
            model, out = command.model(path, "--no-tokenizer"), scratch("same.f32")
            self.ok("logits", model, "--ids", "1 17 300 42", "-o", out)
            layouts = {t["layout"] for t in json.loads(
                self.ok("info", model, "--json", "--tensors").text)["tensors"]}
            outputs.append((read_bytes(out), layouts))
        self.assertEqual(outputs[0][0], outputs[1][0])
        self.assertEqual([layouts for _, layouts in outputs], [{"f32", "f16"}, {"f32", "bf16"}])


class Blocks(command.TestCase):
    """Damaged GGUF files in block types."""

    # Type: weights and bytes of a block, offsets of its f16 scales.
    TYPES = {8: (32, 34, (0,)), 2: (32, 18, (0,)), 6: (32, 22, (0,)), 20: (32, 18, (0,)),
             23: (256, 136, (0,)), 10: (256, 84, (80, 82)), 11: (256, 110, (108,)),
             12: (256, 144, (0, 2)), 13: (256, 176, (0, 2)), 14: (256, 210, (208,))}

    def setUp(self):
        self.path, self.out = scratch("damaged.gguf"), scratch("damaged.tern")

    def files(self):
        folder = shared("reference", "dense", "gguf", "tiny-qwen2")
        names = sorted(n for n in os.listdir(folder) if n.endswith(".gguf"))
        self.assertGreaterEqual(len(names), 12)
        return [(name, read_bytes(os.path.join(folder, name))) for name in names]

    def convert(self, data):
        with open(self.path, "wb") as f:
            f.write(data)
        return command.tern("convert", self.path, "-o", self.out, "--no-tokenizer", "--force")

    def test_scales_that_are_no_numbers(self):
        """Each scale of each type, in the last block of a row."""
        seen = set()
        for name, data in self.files():
            for tensor, shape, kind, _, begin in gguf.read_tensors(data):
                if kind not in self.TYPES or kind in seen:
                    continue
                seen.add(kind)
                block, n_bytes, scales = self.TYPES[kind]
                i_block = shape[1] // block - 1
                row = 2 * (i_block + 1)
                for scale in scales:
                    for bits in (b"\x00\x7c", b"\x01\xfe"):
                        at = begin + (row + i_block) * n_bytes + scale
                        result = self.convert(data[:at] + bits + data[at + 2:])
                        self.assertEqual(result.code, 5, (name, tensor, result.err))
                        self.assertRegex(
                            result.err.splitlines()[-1],
                            f'tensor "{tensor}": a scale of block {i_block} of row 2 is not')
        self.assertEqual(seen, set(self.TYPES))

    def test_twins(self):
        """Wrong types, sizes and codes: refused in one line, or a valid model."""
        noise, n_refused = random.Random(7), 0
        for name, data in self.files():
            tensors = gguf.read_tensors(data)
            for case in range(6):
                _, _, _, place, begin = noise.choice(tensors)
                twin = bytearray(data)
                if case < 2:  # another type
                    struct.pack_into("<I", twin, place, noise.choice((0, 1, 30, 39, *self.TYPES)))
                elif case < 4:  # another size or offset
                    twin[place - 8 + 12 * (case - 2)] ^= 1 << noise.randrange(8)
                elif case == 4:
                    del twin[begin + 100:]
                else:
                    at = noise.randrange(begin, len(data) - 64)
                    twin[at:at + 64] = noise.randbytes(64)
                with self.subTest(name=name, case=case):
                    result = self.convert(bytes(twin))
                    self.assertIn(result.code, (0, 5, 6), result.err)
                    n_refused += result.code != 0
                    if result.code:
                        self.assertTrue(result.err.splitlines()[-1].startswith("tern: error: "))
                    else:
                        self.ok("verify", self.out)
        self.assertGreater(n_refused, 20)
class Graphs(command.TestCase):
    """Keys of config.json that change the graph of a dense model."""

    def test_bad_keys(self):
        for name, key, value, code, words in (
                ("gemma2", "attn_logit_softcapping", -1, 5, "is -1, allowed are 0 to 1000000"),
                ("gemma2", "final_logit_softcapping", 1e-9, 5, "is 1e-09, allowed are 0.001"),
                ("gemma2", "final_logit_softcapping", "30", 5, "not a number"),
                ("gemma2", "query_pre_attn_scalar", 0, 5, "is 0, allowed are 0.001"),
                ("gemma2", "sliding_window", 0, 5, "is 0, allowed are 1"),
                ("opt-350m", "word_embed_proj_dim", 65, 5, "is 65, allowed are 1 to 64"),
                ("opt-350m", "word_embed_proj_dim", 16, 5, "makes it [384, 16]"),
                ("opt", "_remove_final_layer_norm", True, 6, "_remove_final_layer_norm"),
                ("opt", "do_layer_norm_before", "yes", 5, "is not true or false"),
                ("opt", "do_layer_norm_before", False, 5, 'final_layer_norm.bias" is not part'),
                ("opt", "max_position_embeddings", 65, 5, "makes it [67, 64]"),
                ("codegen", "rotary_dim", 5, 6, "an odd"),
                ("codegen", "rotary_dim", 8, 5, "is 8, allowed are 2 to 6"),
                ("codegen", "n_head", 6, 6, "not a multiple of 4"),
                ("codegen", "num_key_value_heads", 4, 6, "a key head for several"),
                ("gpt-neox", "num_key_value_heads", 2, 6, "a key head for several"),
                ("gpt-neox", "hidden_act", "tanh", 6, 'hidden_act "tanh"'),
                ("gpt-neox", "use_parallel_residual", 1, 5, "is not true or false"),
                ("gpt2", "scale_attn_weights", 0, 5, "is not true or false"),
                ("gpt2", "n_embd", 0, 5, '"n_embd" is 0, allowed are 1'),
                ("gpt2", "n_positions", 32, 5, "makes it [32, 32]"),
                ("gpt2", "n_inner", 64, 5, "makes it [32, 64]"),
                ("gpt2", "layer_norm_epsilon", -1, 5, '"layer_norm_epsilon" is -1'),
                ("gpt-bigcode", "multi_query", False, 5, "makes it [96, 32]"),
                ("smollm3", "no_rope_layer_interval", 0, 5, "is 0, allowed are 1"),
                ("smollm3", "no_rope_layers", ["x"], 5, "is not a number"),
                ("starcoder2", "norm_epsilon", None, 5, '"norm_epsilon" is missing'),
                ("granite", "residual_multiplier", 0, 5, "is 0, allowed are 1e-06"),
                ("llama3", "mlp_bias", True, 5, 'gate_proj.bias" is missing')):
            source = shared("reference", "dense", "models", f"tiny-{name}")
            config = read_json(os.path.join(source, "config.json"))
            config[key] = value
            folder = scratch("graph")
            os.makedirs(folder, exist_ok=True)
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            with open(os.path.join(folder, "model.safetensors"), "wb") as f:
                f.write(read_bytes(os.path.join(source, "model.safetensors")))
            with self.subTest(name=name, key=key, value=value):
                error = self.refused(code, "convert", folder, "-o", scratch("graph.tern"),
                                     "--no-tokenizer")
                self.assertIn(words, error)


def byte_alphabet():
    """What byte-level vocabularies call the 256 bytes."""
    shown = [*range(33, 127), *range(161, 173), *range(174, 256)]
    hidden = [b for b in range(256) if b not in shown]
    return [chr(256 + hidden.index(b)) if b in hidden else chr(b) for b in range(256)]


NORMAL, CONTROL = 1, 3


class Ends(command.TestCase):
    """A GGUF file names one end of an answer, or the wrong one: the others are found in the template
    and the vocabulary."""

    def stops(self, template, specials, *keys):
        """Texts of the stop ids of a file with these control tokens, whose eos is the first.  The
        model says the last of them, whatever it reads."""
        tokens = byte_alphabet() + [*specials, "<end_of_turn>x"]
        said = len(tokens) - 2
        rng = random.Random(3)

        def matrix(name, *shape, mean=0.0, deviation=0.01):
            n = shape[0] * shape[-1] if len(shape) > 1 else shape[0]
            return (name, "F32", shape, gguf.f32([rng.gauss(mean, deviation) for _ in range(n)]))

        rows = [rng.gauss(i // 32 == said, 0.01) for i in range(32 * len(tokens))]
        tensors = [matrix("token_embd.weight", len(tokens), 32, mean=1, deviation=0.1),
                   ("output.weight", "F32", (len(tokens), 32), gguf.f32(rows)),
                   *[matrix(f"{name}.weight", 32, mean=1) for name in (
                       "output_norm", "blk.0.attn_norm", "blk.0.ffn_norm")]]
        tensors += [matrix(f"blk.0.{name}.weight", 32, 32) for name in (
            "attn_q", "attn_k", "attn_v", "attn_output", "ffn_gate", "ffn_up", "ffn_down")]
        sizes = {"block_count": 1, "context_length": 64, "embedding_length": 32,
                 "feed_forward_length": 32, "attention.head_count": 2}
        strings, integers = (gguf.ARRAY, gguf.STRING), (gguf.ARRAY, gguf.I32)
        path, out = scratch("ends.gguf"), scratch("ends.tern")
        gguf.write(path, [
            ("general.architecture", gguf.STRING, "llama"),
            *[(f"llama.{name}", gguf.U32, value) for name, value in sizes.items()],
            ("llama.attention.layer_norm_rms_epsilon", gguf.F32, 1e-5),
            ("tokenizer.ggml.model", gguf.STRING, "gpt2"),
            ("tokenizer.ggml.pre", gguf.STRING, "gpt-4o"),
            ("tokenizer.ggml.tokens", strings, tokens),
            ("tokenizer.ggml.token_type", integers,
             [NORMAL] * 256 + [CONTROL] * len(specials) + [NORMAL]),
            ("tokenizer.ggml.merges", strings, []),
            ("tokenizer.ggml.eos_token_id", gguf.U32, 256),
            *([("tokenizer.chat_template", gguf.STRING, template)] if template else []),
            *keys], tensors)
        self.ok("convert", path, "-o", out, "--force", "-q")
        info = json.loads(self.ok("info", out, "--json").text)
        return [tokens[i] for i in info["stop_ids"]]

    def test_the_end_of_an_answer(self):
        gemma = "{{ '<start_of_turn>' }}{{ messages[0].content }}{{ '<end_of_turn>\n' }}"
        phi = "{{ '<|user|>' }}{{ messages[0].content }}{{ '<|end|>' }}"
        self.assertEqual(self.stops(gemma, ["<eos>", "<start_of_turn>", "<end_of_turn>"]),
                         ["<eos>", "<end_of_turn>"])
        self.assertEqual(self.stops(phi, ["<|endoftext|>", "<|user|>", "<|end|>"]),
                         ["<|endoftext|>", "<|end|>"])
        # An end of turns that this template does not write, and an end of texts.
        self.assertEqual(self.stops(phi, ["<|end|>", "<|im_end|>", "<|endoftext|>"]),
                         ["<|end|>", "<|endoftext|>"])
        self.assertEqual(self.stops(None, ["<|im_end|>", "<|end|>", "<|end_of_text|>"]),
                         ["<|im_end|>", "<|end_of_text|>"])
        # Text that a user could write is not a control token, whatever it looks like.
        self.assertEqual(self.stops("{{ '<end_of_turn>x' }}", ["<eos>"]), ["<eos>"])
        self.assertEqual(self.stops(None, ["<eos>", "<a>", "<b>"],
                                    ("tokenizer.ggml.eot_token_id", gguf.U32, 257),
                                    ("tokenizer.ggml.eom_token_id", gguf.U32, 258)),
                         ["<eos>", "<a>", "<b>"])

    def test_an_answer_ends_where_its_turn_ends(self):
        template = "{{ messages[0].content }}{{ '<end_of_turn>' }}"
        for specials, reason in ((["<eos>", "<end_of_turn>"], "eos"), (["<eos>", "<a>"], "length")):
            self.stops(template, specials)
            answer = self.ok("run", scratch("ends.tern"), "-p", "Hi", "-n", "4", "--greedy",
                             "--stats=json")
            self.assertEqual(json.loads(answer.err.splitlines()[-1])["stop"], reason)
            self.assertEqual(answer.text.strip(), "")


if __name__ == "__main__":
    command.main()
