#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Every reference model, from its Hugging Face folder and from each GGUF file: it converts and
gives the reference's logits and greedy ids at every kernel level that this CPU supports, or is
refused with the reason."""
import glob
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
from command import floats, levels, read_bytes, read_json, scratch, shared


# Path under reference/ -> words of the error, exit code 6.
REFUSED = {
    "gguf/ik-quantized/hf1bit-iq4_nl": "of type IQ5_K",
    "gguf/ik-quantized/hf1bit-q5_k_m": "of type Q6_0: no ternary type, nor a block type",
    "gguf/ik-quantized/hf1bit-iq2_bn_r4": "of type IQ2_BN_R4: IQ2_BN with its rows interleaved",
}
# Inputs that are not rounded to int8: 16 bits leave an error of 1e-3, f32 1e-4, 8 bits about 0.1
# (int8 inputs are exact: 1e-4).
FLOAT = ("tiny-trilm", "tiny-bonsai", "tiny-bitcpm", "tiny-deepgrove", "-ternary")
# Matrices in block types, kept unchanged.
DENSE = ("dense/", "tiny-dense-llama", "ik-quantized/hf1bit-q", "tiny-qwen35/q8_0",
         "tiny-qwen35-ternary/q4_k-q5_k")
# Matrices of floats, whose products round nothing.
FLOATS = ("dense/tiny-qwen2/f16-bf16", "dense/tiny-gpt2/f16", "gguf/tiny-dense-llama/f16",
          "gguf/tiny-dense-llama/bf16", "models/tiny-dense-llama", "models/tiny-qwen35",
          "gguf/tiny-qwen35/f16-mtp")
# States instead of logits.
EMBEDDING = ("tiny-embed-",)


def text_of(ids):
    return " ".join(str(i) for i in ids)


def own_sources():
    """Models of tests/data: a folder, and GGUF files that share its goldens."""
    for path in sorted(glob.glob(os.path.join(command.ROOT, "tests", "data", "models", "*"))):
        name, golden = os.path.basename(path), os.path.join(path, "golden")
        yield f"data/{name}", path, golden
        for file in sorted(glob.glob(os.path.join(path, "*.gguf"))):
            yield f"gguf/{name}/{os.path.basename(file)[:-5]}", file, golden


def hybrid_sources():
    """Models with a gated delta rule."""
    root = shared("reference", "hybrids")
    for folder in ("tiny-qwen35", "tiny-qwen35-ternary"):
        golden = os.path.join(root, "models", folder, "golden")
        yield f"models/{folder}", os.path.join(root, "models", folder), golden
        for path in sorted(glob.glob(os.path.join(root, "gguf", folder, "*.gguf"))):
            own = path[:-5] + ".golden"
            yield (f"gguf/{folder}/{os.path.basename(path)[:-5]}", path,
                   own if os.path.exists(own) else golden)


def sources():
    """(name, path, folder of goldens or None)"""
    yield from own_sources()
    yield from hybrid_sources()
    yield from float_sources()
    models, files = shared("reference", "models"), shared("reference", "gguf")
    for path in sorted(glob.glob(os.path.join(models, "*", "config.json"))):
        folder = os.path.dirname(path)
        name, golden = os.path.basename(folder), os.path.join(folder, "golden")
        if name == "tiny-dense-llama":
            golden = os.path.join(files, name, "bf16.golden")  # of the same weights
        yield f"models/{name}", folder, golden
    for path in sorted(glob.glob(os.path.join(files, "*", "*.gguf"))):
        folder, name = os.path.basename(os.path.dirname(path)), os.path.basename(path)[:-5]
        own = path[:-5] + ".golden"
        golden = own if os.path.exists(own) else os.path.join(models, folder, "golden")
        yield f"gguf/{folder}/{name}", path, golden
    for path in sorted(glob.glob(os.path.join(shared("reference", "dense", "gguf"), "*", "*.gguf"))):
        folder, name = os.path.basename(os.path.dirname(path)), os.path.basename(path)[:-5]
        if name != "lora":
            yield f"dense/{folder}/{name}", path, path[:-5] + ".golden"


def float_sources():
    """Folders of dense models."""
    models = shared("reference", "dense", "models")
    for path in sorted(glob.glob(os.path.join(models, "*", "config.json"))):
        folder = os.path.dirname(path)
        yield f"folder/{os.path.basename(folder)}", folder, os.path.join(folder, "golden")


def is_floats(name):
    return name in FLOATS or name.startswith("folder/")


def is_dense(name):
    return any(part in name for part in DENSE)


def flags_of(name):
    flags = ["--no-tokenizer"] + ([] if is_dense(name) or is_floats(name) else ["--head", "f32"])
    for layout in ("arm", "1x4"):
        if layout in name:
            flags += ["--i2s-layout", layout]
    return flags


class Families(command.TestCase):
    def check_prompt(self, model, level, golden, i, prompt, greedy, inputs):
        """`inputs`: the value of --inputs, or None for a model without a choice."""
        out = scratch("logits.f32")
        # The norm of each head of a gated delta rule amplifies the rounding of 8 bits.
        coarse = 0.6 if "tiny-qwen35" in golden else 0.2
        tolerance = {"16": 1e-3, "8": coarse}.get(inputs, 1e-4)
        flags = ["--greedy", str(len(greedy))] if greedy else []
        flags += ["--inputs", inputs] if inputs else []
        result = self.ok("logits", model, "--ids", text_of(prompt), "-o", out, "--kv", "f32",
                         "--cpu", level, *flags)
        expected = floats(read_bytes(os.path.join(golden, f"logits_{i}.f32")))
        got = floats(read_bytes(out))
        self.assertEqual(len(got), len(expected))
        self.assertLessEqual(max(abs(a - b) for a, b in zip(got, expected)), tolerance)
        if inputs != "8":
            self.assertEqual(result.text.split(), [str(k) for k in greedy])

    def check_source(self, name, path, golden):
        out = scratch("family.tern")
        self.ok("convert", path, "-o", out, *flags_of(name))
        if any(part in name for part in EMBEDDING):
            return
        has_choice = not is_floats(name) and (
            is_dense(name) or any(part in name for part in FLOAT))
        forms = ["16", "f32", "8"] if has_choice else [None]
        ids = read_json(os.path.join(golden, "ids.json"))
        # A file with its folder's goldens must equal the folder.
        shares = name.startswith("gguf/") and not golden.startswith(path[:-5])
        chosen = levels(out)[-1:] if shares else levels(out)
        for k, level in enumerate(chosen):
            for i, prompt in enumerate(ids["prompt_ids"]):
                if command.IS_THINNED and (i + k + 1) % len(chosen):  # each prompt at one level
                    continue
                greedy = ids["greedy"][i] if "greedy" in ids else []
                for inputs in forms:
                    self.check_prompt(out, level, golden, i, prompt, greedy, inputs)

    def test_all(self):
        n_checked = 0
        for name, path, golden in sources():
            with self.subTest(source=name):
                if name in REFUSED:
                    error = self.refused_by_convert(name, path)
                    self.assertIn(REFUSED[name], error)
                else:
                    self.check_source(name, path, golden)
                n_checked += 1
        self.assertGreaterEqual(n_checked, 125)

    def test_bad_gated_delta_rules(self):
        source = shared("reference", "hybrids", "models", "tiny-qwen35-ternary")
        folder = scratch("delta")
        os.makedirs(folder, exist_ok=True)
        with open(os.path.join(folder, "model.safetensors"), "wb") as f:
            f.write(read_bytes(os.path.join(source, "model.safetensors")))
        for key, value, code, words in (
                ("linear_conv_kernel_dim", 0, 5, '"linear_conv_kernel_dim" is 0, allowed are 1'),
                ("linear_conv_kernel_dim", 17, 5, "is 17, allowed are 1 to 16"),
                ("linear_conv_kernel_dim", None, 5, "is missing"),
                ("linear_conv_kernel_dim", 3, 5, "makes it [256, 3]"),
                ("linear_num_key_heads", 3, 5, "3 key heads"),
                ("linear_num_key_heads", 0, 5, "allowed are 1"),
                ("linear_num_value_heads", 2, 5, "shape [256, 256], but"),
                ("linear_num_value_heads", 1 << 20, 5, "all together may have"),
                ("linear_num_value_heads", 32766, 5, "all together may have"),
                ("linear_key_head_dim", 33, 5, "an even number"),
                ("linear_key_head_dim", 1 << 16, 5, "allowed are 2 to 1024"),
                ("linear_value_head_dim", 1 << 16, 5, "allowed are 1 to 1024"),
                ("attn_output_gate", False, 6, "attn_output_gate"),
                ("attention_bias", True, 6, '"attention_bias": true is not supported'),
                ("layer_types", ["linear_attention", "mamba"], 6, '[1] is "mamba"'),
                ("layer_types", ["linear_attention", "sliding_attention"], 6, "has a window")):
            config = read_json(os.path.join(source, "config.json"))
            config["text_config"][key] = value
            with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
                json.dump(config, f)
            with self.subTest(key=key, value=value):
                error = self.refused(code, "convert", folder, "-o", scratch("delta.tern"),
                                     "--no-tokenizer")
                self.assertIn(words, error)

    def test_tables_keep_their_type(self):
        """Embedding and head in a block type keep it next to ternary matrices."""
        found = 0
        for name, path, golden in sources():
            if "-embed-q" not in name or any(part in name for part in EMBEDDING):
                continue
            out, kind = scratch("table.tern"), "q6_k" if "q6_k" in name else "q8_0"
            self.ok("convert", path, "-o", out, *flags_of(name)[:1])
            info = json.loads(self.ok("info", out, "--json", "--tensors").text)
            self.assertIn(kind, (info["head"], info["tensors"][-1]["layout"]))
            ids = read_json(os.path.join(golden, "ids.json"))
            prompt = ids["prompt_ids"][0]
            self.ok("logits", out, "--ids", text_of(prompt), "-o", scratch("table.f32"), "--kv",
                    "f32")
            expected = floats(read_bytes(os.path.join(golden, "logits_0.f32")))
            got = floats(read_bytes(scratch("table.f32")))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(got, expected)), 1e-3)
            found += 1
        self.assertGreaterEqual(found, 6)

    def test_biases_of_qwen2(self):
        """No key states them, so a file without them must not pass for a model without them."""
        data = read_bytes(os.path.join(command.ROOT, "tests", "data", "models",
                                       "tiny-qwen2-ternary", "q2_0.gguf"))
        self.assertEqual(data.count(b"attn_k.bias"), 2)
        with open(scratch("bias.gguf"), "wb") as f:
            f.write(data.replace(b"attn_k.bias", b"attn_k.hide"))
        error = self.refused(5, "convert", scratch("bias.gguf"), "-o", scratch("bias.tern"),
                             "--no-tokenizer")
        self.assertIn('tensor "blk.0.attn_k.bias" is missing', error)

    def test_text_from_gguf(self):
        """Tokenizer and template of a GGUF file: the text of the folder's model."""
        one, other = scratch("folder.tern"), scratch("gguf.tern")
        self.ok("convert", command.DEMO, "-o", one)
        self.ok("convert", shared("reference", "gguf", "demo", "i2_s.gguf"), "-o", other)
        for flags in (["--raw", "-p", "Once upon a time", "--seed", "3"],
                      ["-p", "Tell me a story.", "--greedy"]):
            flags += ["-n", "40", "--kv", "f32"]
            self.assertEqual(self.ok("run", one, *flags).out, self.ok("run", other, *flags).out)

    def test_splitter_by_name(self):
        """--pre names the splitter of a file with an unknown splitter name."""
        data = read_bytes(shared("reference", "gguf", "demo", "i2_s.gguf"))
        good, odd, out = scratch("good.tern"), scratch("odd.gguf"), scratch("odd.tern")
        self.ok("convert", shared("reference", "gguf", "demo", "i2_s.gguf"), "-o", good)
        key = b"tokenizer.ggml.pre" + struct.pack("<IQ", 8, 9)
        self.assertEqual(data.count(key + b"llama-bpe"), 1)
        with open(odd, "wb") as f:
            f.write(data.replace(key + b"llama-bpe", key + b"odd-ranks"))
        self.assertRegex(self.refused(6, "convert", odd, "-o", out), '"odd-ranks".*--pre')
        self.assertIn('--pre "no"', self.refused(2, "convert", odd, "-o", out, "--pre", "no"))
        self.ok("convert", odd, "-o", out, "--pre", "llama-bpe")
        text = "Hello wörld, 1234!".encode()
        self.assertEqual(self.ok("tokenize", out, stdin=text).out,
                         self.ok("tokenize", good, stdin=text).out)

    def test_the_official_template(self):
        """The template in the GGUF file of 2B-4T belongs to another model and is replaced."""
        data = read_bytes(shared("reference", "gguf", "demo", "i2_s.gguf"))
        good = self.ok("convert", shared("reference", "gguf", "demo", "i2_s.gguf"), "-o",
                       scratch("good.tern"))
        self.assertNotIn("BitNet 2B-4T", good.err)
        at = data.index(b"{% set loop_messages")
        with open(scratch("wrong.gguf"), "wb") as f:
            f.write(data[:at] + b"BITNETAssistant: " + data[at + 17:])
        wrong = self.ok("convert", scratch("wrong.gguf"), "-o", scratch("wrong.tern"))
        self.assertIn("not that of BitNet 2B-4T", wrong.err)
        info = self.ok("info", scratch("wrong.tern")).text
        self.assertIn("template      bitnet-2b-4t", info)
        self.assertIn("<|eot_id|>", info)

    def refused_by_convert(self, name, path, code=6):
        """The last line has the reason; notes may precede it."""
        out = scratch("refused.tern")
        result = command.tern("convert", path, "-o", out, *flags_of(name))
        self.assertEqual(result.code, code, result.err)
        self.assertFalse(os.path.exists(out))
        return result.err.splitlines()[-1]

    def test_fourth_value(self):
        """Code 3 is damage in a type with three values, and a non-ternary weight in one with four;
        the bytes are otherwise equal."""
        for name, code, words in (
                ("tiny-bonsai/q2_0.gguf", 6, "holds code 3, twice its scale: the weights are not"),
                ("tiny-bonsai/pq2_0.gguf", 6, "holds code 3, twice its scale: the weights are not"),
                ("tiny-bitnet-512/tq2_0.gguf", 5, "holds code 3, which no ternary weight has"),
                ("tiny-bitnet-512/iq2_bn.gguf", 5, "holds code 3, which no ternary weight has"),
                ("tiny-bitnet-packed/i2_s.gguf", 5, "holds code 3, which no ternary weight has")):
            data = bytearray(read_bytes(shared("reference", "gguf", *name.split("/"))))
            middle = len(data) // 2  # inside the codes in all of these files
            data[middle:middle + 4] = b"\xff" * 4
            with open(scratch("fourth.gguf"), "wb") as f:
                f.write(data)
            self.assertIn(words, self.refused_by_convert(name, scratch("fourth.gguf"), code))

    def test_layouts_of_i2s_are_not_guessed(self):
        """Read in the usual layout, files of the other two give other logits."""
        folder = shared("reference", "gguf", "tiny-bitnet-packed")
        usual = command.model(os.path.join(folder, "i2_s.gguf"), "--no-tokenizer")
        outputs = []
        for i, name in enumerate(("i2_s-arm64-layout", "i2_s-1x4-layout")):
            model = command.model(os.path.join(folder, name + ".gguf"), "--no-tokenizer")
            for path in (usual, model):
                out = scratch("layout.f32")
                self.ok("logits", path, "--ids", "1 2 3", "-o", out)
                outputs.append(read_bytes(out))
        self.assertEqual(outputs[0], outputs[2])
        self.assertEqual(len(set(outputs)), 3)


class Inputs(command.TestCase):
    """A GGUF file of arch llama with one scale per matrix: were inputs rounded to int8?"""

    def convert(self, name, change):
        path, out = scratch(name + ".gguf"), scratch(name + ".tern")
        data = read_bytes(shared("reference", "gguf", "tiny-hf1bit", "tq2_0.gguf"))
        with open(path, "wb") as f:
            f.write(change(data))
        result = self.ok("convert", path, "-o", out, "-q", "--no-tokenizer")
        said = [line for line in result.err.splitlines() if "inputs of products" in line]
        return json.loads(self.ok("info", out, "--json").text)["inputs"], said

    @staticmethod
    def named(data, name):
        assert len(name) == 11 and data.count(b"tiny-hf1bit") == 1
        return data.replace(b"tiny-hf1bit", name)

    def neox(self, data):
        """The first tokens are GPT-NeoX's; the third keeps the header's length aligned."""
        key = b"tokenizer.ggml.tokens" + struct.pack("<II", 9, 8)
        begin = end = data.index(key) + len(key) + 8
        for _ in range(3):
            end += 8 + struct.unpack_from("<Q", data, end)[0]
        head = b"".join(struct.pack("<Q", len(t)) + t for t in (b"<|endoftext|>", b"<|padding|>"))
        n = (end - begin - len(head) - 8) % 32
        third = struct.pack("<Q", n) + b"x" * n
        return self.named(data[:begin] + head + third + data[end:], b"no-evidence")

    def test_the_file_decides(self):
        self.assertEqual(self.convert("one", lambda data: data), ("int8", []))
        for name in (b"Tiny-TriLM1", b"1 Bonsai-1B"):
            self.assertEqual(self.convert("two", lambda data: self.named(data, name)), ("16", []))
        self.assertEqual(self.convert("three", self.neox), ("16", []))

    def test_a_guess_is_a_warning(self):
        inputs, said = self.convert("four", lambda data: self.named(data, b"no-evidence"))
        self.assertEqual((inputs, len(said)), ("int8", 1))
        self.assertRegex(said[0], r"warning: nothing in the source says how inputs .* "
                                  r"--activations float$")


if __name__ == "__main__":
    command.main()
