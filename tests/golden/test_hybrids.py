#!/usr/bin/env python3
# SPDX-License-Identifier: MIT
"""Models with experts: the reference's logits and greedy ids at every kernel level, the same bits
however a prompt is split and whatever the thread count, and refusals of damaged sources."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import floats, levels, read_bytes, read_json, scratch, shared

# Source under reference/hybrids -> its goldens.
MODELS = {
    "models/tiny-maple": "models/tiny-maple/golden",
    "gguf/tiny-maple/q2_0.gguf": "models/tiny-maple/golden",
    "gguf/tiny-maple/tq2_0-head-q4_k.gguf": "gguf/tiny-maple/tq2_0-head-q4_k.golden",
    "gguf/tiny-qwen3-moe/q4_k.gguf": "gguf/tiny-qwen3-moe/q4_k.golden",
    "gguf/tiny-qwen35-moe/q8_0.gguf": "gguf/tiny-qwen35-moe/q8_0.golden",
    "gguf/tiny-qwen3next/q8_0.gguf": "gguf/tiny-qwen3next/q8_0.golden",
    "models/tiny-qwen3-moe": "models/tiny-qwen3-moe/golden",
    "models/tiny-qwen35-moe": "models/tiny-qwen35-moe/golden",
    "models/tiny-qwen3next": "models/tiny-qwen3next/golden",
}
# Experts in block types or floats, with or without ternary ones.
DENSE = ("q4_k", "q8_0", "models/tiny-qwen")
MAPLE = "models/tiny-maple"
DRAFTS = "gguf/tiny-qwen35/f16-mtp.gguf"
MAPLE_FILE, EXPERTS = "gguf/tiny-maple/q2_0.gguf", "gguf/tiny-qwen35-moe/q8_0.gguf"
FLAGS = ("--no-tokenizer", "--head", "f32")
N_THREADS = range(1, 5)
BATCHES = (1, 2, 3, 9, 64, 65, 134)


def hybrid(name):
    return shared("reference", "hybrids", *name.split("/"))


def is_dense(name):
    return any(part in name for part in DENSE)


def convert(name):
    """Non-ternary tables keep their type where everything else is ternary."""
    return command.model(hybrid(name), *(FLAGS[:1] if is_dense(name) else FLAGS))


class Hybrids(command.TestCase):
    def logits(self, model, ids, *flags):
        out = scratch("logits.f32")
        result = self.ok("logits", model, "--ids", " ".join(str(i) for i in ids), "-o", out,
                         "--kv", "f32", *flags)
        return read_bytes(out), result.text.split()

    def check_prompt(self, model, level, golden, i, ids):
        greedy = ids["greedy"][i] if "greedy" in ids else []
        expected = floats(read_bytes(os.path.join(golden, f"logits_{i}.f32")))
        flags = ["--greedy", str(len(greedy))] if greedy else []
        for inputs, tolerance in (("f32", 1e-4), ("16", 1e-3)):
            data, chosen = self.logits(model, ids["prompt_ids"][i], "--cpu", level, "--inputs",
                                       inputs, *flags)
            got = floats(data)
            self.assertEqual(len(got), len(expected))
            self.assertLessEqual(max(abs(a - b) for a, b in zip(got, expected)), tolerance)
            self.assertEqual(chosen, [str(k) for k in greedy])

    def test_goldens(self):
        for name, golden in MODELS.items():
            model, golden = convert(name), hybrid(golden)
            ids = read_json(os.path.join(golden, "ids.json"))
            known = levels(model)
            for k, level in enumerate(known):
                for i in range(len(ids["prompt_ids"])):
                    if command.IS_THINNED and (i + k + 1) % len(known):  # each prompt at one level
                        continue
                    with self.subTest(source=name, level=level, prompt=i):
                        self.check_prompt(model, level, golden, i, ids)

    def test_same_bits(self):
        """Batches of any size, threads and kernel levels, compared with one row at a time."""
        for name, golden in MODELS.items():
            model = convert(name)
            ids = read_json(os.path.join(hybrid(golden), "ids.json"))["prompt_ids"][-1]
            for inputs in ("16", "8", "f32"):
                want = self.logits(model, ids, "--inputs", inputs, "--batch", "1", "--cpu", "ref")
                cases = [(level, "2", "128") for level in levels(model)]
                cases += [(None, str(n), str(batch)) for n in N_THREADS for batch in BATCHES
                          if not is_dense(name) and not command.IS_THINNED
                          or n == 1 + BATCHES.index(batch) % 4]
                for level, threads, batch in cases:
                    with self.subTest(source=name, inputs=inputs, level=level, threads=threads,
                                      batch=batch):
                        got = self.logits(model, ids, "--inputs", inputs, "--threads", threads,
                                          "--batch", batch, *(["--cpu", level] if level else []))
                        self.assertEqual(got[0] == want[0], True)

    def test_folder_and_file_agree(self):
        """Experts stored one by one, and stacked."""
        ids = [1, 17, 200, 42]
        outputs = [self.logits(command.model(hybrid(name), *FLAGS), ids)[0]
                   for name in (MAPLE, "gguf/tiny-maple/q2_0.gguf")]
        self.assertEqual(outputs[0] == outputs[1], True)

    def test_fused_and_stacked_folders(self):
        """Experts stored one by one, or as in transformers 5: the same tensors in the file."""
        folder, out = scratch("stacked"), scratch("stacked.tern")
        os.makedirs(folder, exist_ok=True)
        tensors = gguf.read_safetensors(os.path.join(hybrid(MAPLE), "model.safetensors"))
        for layer in range(2):
            stack_experts(tensors, f"model.layers.{layer}.mlp.experts.", 3)
        write_folder(folder, read_json(os.path.join(hybrid(MAPLE), "config.json")), tensors)
        self.ok("convert", folder, "-o", out, *FLAGS)
        ids = [1, 17, 200, 42]
        self.assertEqual(self.logits(out, ids)[0] == self.logits(convert(MAPLE), ids)[0], True)

    def test_no_layer_attends(self):
        """A model without a cache: only states, over several blocks of positions."""
        folder, out = scratch("states"), scratch("states.tern")
        source = hybrid("models/tiny-qwen35-moe")
        os.makedirs(folder, exist_ok=True)
        tensors = gguf.read_safetensors(os.path.join(source, "model.safetensors"))
        config = read_json(os.path.join(source, "config.json"))
        config.update(num_hidden_layers=2, layer_types=config["layer_types"][:2])
        write_folder(folder, config, {name: t for name, t in tensors.items()
                                      if ".layers.2." not in name})
        self.ok("convert", folder, "-o", out, "--no-tokenizer")
        ids = [i * i % 264 for i in range(600)]
        whole, parts = (self.logits(out, ids, "--batch", n)[0] for n in ("512", "100"))
        self.assertEqual(len(whole), 600 * 264 * 4)
        self.assertEqual(whole == parts, True)

    def test_drafts_change_nothing(self):
        for name in (MAPLE, "gguf/tiny-qwen3-moe/q4_k.gguf", DRAFTS, "models/tiny-qwen35"):
            model = command.model(hybrid(name))
            texts = {self.ok("run", model, "--raw", "-p", "abcabcabcabcabc", "-n", "60", "--greedy",
                             "--draft", n).text for n in ("off", "3", "7")}
            self.assertEqual(len(texts), 1)

    def test_bench_measures_a_recurrent_model(self):
        """Also at a depth that no text has filled."""
        model = command.model(hybrid("models/tiny-qwen35-ternary"))
        out = self.ok("bench", model, "--depths", "0,100", "-n", "4", "-r", "1", "--json").text
        runs = json.loads(out)["runs"]
        self.assertTrue(all(run["decode_tok_s"] > 0 for run in runs))
        self.assertIn(100, [run["depth"] for run in runs])

    def test_bytes_read_per_token(self):
        """Two of three experts: the third is in the file, but not read."""
        model = command.model(hybrid(MAPLE))
        result = self.ok("info", model, "--json", "--tensors")
        info = json.loads(result.text)
        self.assertEqual((info["n_experts"], info["n_experts_used"]), (3, 2))
        stacks = [t for t in info["tensors"] if t["stacked"]]
        self.assertEqual(len(stacks), 2 * 3)
        self.assertEqual(sum(t["bytes"] for t in stacks), info["expert_bytes"])
        self.assertLess(info["bytes_per_token"], info["file_bytes"] - info["expert_bytes"] // 3)
        self.assertRegex(self.ok("info", model).text,
                         r"experts +3 in a layer, 2 for each token: .* of the file")
        stats = self.ok("run", model, "--raw", "-p", "abc", "-n", "9", "--greedy", "--ignore-eos",
                        "--draft", "off", "--stats=json").err
        self.assertEqual(json.loads(stats.splitlines()[-1])["experts_per_token"], 2 * 2)


def stack_experts(tensors, prefix, n):
    """Puts [gate; up] of all experts into one tensor, down into another."""
    parts = [[tensors.pop(f"{prefix}{i}.{part}_proj.weight") for part in ("gate", "up", "down")]
             for i in range(n)]
    dtype, (rows, cols), _ = parts[0][0]
    tensors[prefix + "gate_up_proj"] = (dtype, [n, 2 * rows, cols],
                                        b"".join(gate[2] + up[2] for gate, up, _ in parts))
    tensors[prefix + "down_proj"] = (dtype, [n, cols, rows], b"".join(p[2][2] for p in parts))


def write_folder(folder, config, tensors):
    with open(os.path.join(folder, "config.json"), "w", encoding="utf-8") as f:
        json.dump(config, f)
    gguf.write_safetensors(os.path.join(folder, "model.safetensors"), tensors)


def swap_experts(tensors, a, b):
    """All experts tie; a and b change places."""
    changed = []
    for name, kind, shape, data in tensors:
        if "ffn_gate_inp.weight" in name:
            data = bytes(len(data))
        if "_exps" in name:
            size = len(data) // shape[0]
            parts = [data[i:i + size] for i in range(0, len(data), size)]
            parts[a], parts[b] = parts[b], parts[a]
            data = b"".join(parts)
        changed.append((name, kind, shape, data))
    return changed


class Ties(command.TestCase):
    def test_the_first_of_equal_experts_are_chosen(self):
        """Three of six."""
        keys, tensors = gguf.read(hybrid(EXPERTS))
        outputs = []
        for a, b in ((0, 0), (3, 5), (2, 3)):
            gguf.write(scratch("ties.gguf"), keys, swap_experts(tensors, a, b))
            self.ok("convert", scratch("ties.gguf"), "-o", scratch("ties.tern"), "--force", *FLAGS)
            self.ok("logits", scratch("ties.tern"), "--ids", "1 17 200", "-o", scratch("t.f32"))
            outputs.append(read_bytes(scratch("t.f32")))
        self.assertEqual(outputs[1] == outputs[0], True)
        self.assertNotEqual(outputs[2], outputs[0])


def fuse_experts(tensors):
    """[gate rows; up rows] of each expert in one tensor."""
    found = {name: (kind, shape, data) for name, kind, shape, data in tensors}
    fused = []
    for name, (kind, shape, data) in found.items():
        if "ffn_up_exps" in name:
            continue
        if "ffn_gate_exps" in name:
            ups, size = found[name.replace("gate", "up")][2], len(data) // shape[0]
            data = b"".join(data[i:i + size] + ups[i:i + size] for i in range(0, len(data), size))
            name, shape = name.replace("gate", "gate_up"), (shape[0], 2 * shape[1], shape[2])
        fused.append((name, kind, shape, data))
    return fused


def fuse_deltas(tensors, n_heads, n_key, n_value):
    """Rows of q, k, v and z, key head by key head, in one tensor; n_value: of a key head."""
    found = {name: (kind, shape, data) for name, kind, shape, data in tensors}
    fused = []
    for name, (kind, shape, data) in found.items():
        if "attn_gate" in name:
            continue
        if "attn_qkv" in name:
            z, size = found[name.replace("qkv", "gate")][2], len(data) // shape[0]
            data += z
            parts = [(i * n_key, n_key) for i in range(n_heads)], [
                ((n_heads + i) * n_key, n_key) for i in range(n_heads)], [
                (2 * n_heads * n_key + i * n_value, n_value) for i in range(n_heads)], [
                (shape[0] + i * n_value, n_value) for i in range(n_heads)]
            data = b"".join(data[at * size:(at + n) * size]
                            for head in zip(*parts) for at, n in head)
            name, shape = name.replace("attn_qkv", "ssm_in"), (len(data) // size, shape[1])
        fused.append((name, kind, shape, data))
    return fused


def fuse_attention(tensors):
    """Queries with their gates, keys and values of each layer with attention, as llama.cpp's
    converter writes them by request."""
    data = {name: (kind, shape, data) for name, kind, shape, data in tensors}
    fused = []
    for name, kind, shape, rows in tensors:
        stem = name.replace("attn_q.", "attn_{}.")
        if stem == name:
            if ".attn_k." not in name and ".attn_v." not in name:
                fused.append((name, kind, shape, rows))
            continue
        parts = [data[stem.format(part)] for part in "qkv"]
        assert len({kind for kind, _, _ in parts}) == 1
        fused.append((stem.format("qkv"), kind, (sum(s[0] for _, s, _ in parts), shape[1]),
                      b"".join(rows for _, _, rows in parts)))
    return fused


class Forms(command.TestCase):
    """The same GGUF model with fused tensors, or in several files: the same bits."""

    def check(self, name, path):
        outputs = []
        for source in (hybrid(name), path):
            model, out = scratch("form.tern"), scratch("form.f32")
            self.ok("convert", source, "-o", model, "--no-tokenizer", "--force", "-q")
            self.ok("logits", model, "--ids", "1 17 200 42 5", "-o", out, "--force")
            outputs.append(read_bytes(out))
        self.assertEqual(outputs[0] == outputs[1], True)

    def test_fused_experts(self):
        for name in (EXPERTS, MAPLE_FILE, "gguf/tiny-qwen3-moe/q4_k.gguf",
                     "gguf/tiny-qwen3next/q8_0.gguf"):
            keys, tensors = gguf.read(hybrid(name))
            with self.subTest(source=name):
                gguf.write(scratch("fused.gguf"), keys, fuse_experts(tensors))
                self.check(name, scratch("fused.gguf"))

    def test_fused_gated_deltas(self):
        name = "gguf/tiny-qwen3next/q8_0.gguf"
        keys, tensors = gguf.read(hybrid(name))
        gguf.write(scratch("fused.gguf"), keys, fuse_deltas(tensors, 2, 32, 64))
        self.check(name, scratch("fused.gguf"))

    def test_fused_attention(self):
        for name in ("gguf/tiny-qwen35/q8_0.gguf", "gguf/tiny-qwen3next/q8_0.gguf", EXPERTS,
                     DRAFTS, MAPLE_FILE):
            keys, tensors = gguf.read(hybrid(name))
            with self.subTest(source=name):
                gguf.write(scratch("fused.gguf"), keys, fuse_attention(tensors))
                self.check(name, scratch("fused.gguf"))

    def test_several_files(self):
        """Neighbouring tensors are in different files."""
        name, n = EXPERTS, 3
        keys, tensors = gguf.read(hybrid(name))
        for i in range(n):
            more = [("split.no", gguf.U16, i), ("split.count", gguf.U16, n),
                    ("split.tensors.count", gguf.I32, len(tensors))]
            gguf.write(scratch(f"part-0000{i + 1}-of-0000{n}.gguf"), (keys if i == 0 else []) + more,
                       tensors[i::n])
        self.check(name, scratch(f"part-00001-of-0000{n}.gguf"))


class Keys(command.TestCase):
    """GGUF files in which one key, or the data of one tensor, is another."""

    def change(self, name, changes, change_data=None):
        """Arguments that convert the file; None: the key is left out."""
        keys, tensors = gguf.read(hybrid(name))
        arch = next(value for key, _, value in keys if key == "general.architecture")
        changes = {f"{arch}.{key}": value for key, value in changes.items()}
        keys = [key for key in keys if key[0] not in changes]
        keys += [(key, *value) for key, value in changes.items() if value]
        path, out = scratch("keys.gguf"), scratch("keys.tern")
        gguf.write(path, keys, change_data(tensors) if change_data else tensors)
        return ("convert", path, "-o", out, "--force", "-q", *FLAGS)

    def test_refused(self):
        u32, f32, bools = gguf.U32, gguf.F32, (gguf.ARRAY, gguf.BOOL)
        numbers, floats32 = (gguf.ARRAY, gguf.U32), (gguf.ARRAY, gguf.F32)
        for name, key, value, code, words in (
                (EXPERTS, "expert_weights_scale", (f32, 2.5), 6, '"expert_weights_scale" other'),
                (EXPERTS, "expert_gating_func", (u32, 2), 6, "other than 1 (softmax)"),
                (EXPERTS, "expert_group_count", (u32, 4), 6, '"expert_group_count" above 1'),
                (EXPERTS, "expert_shared_count", (u32, 2), 6, '"expert_shared_count" above 1'),
                (MAPLE_FILE, "expert_shared_count", (u32, 1), 6,
                 "shared experts are supported in other architectures only"),
                (EXPERTS, "attention.recurrent_layers", (bools, [True]), 5,
                 'recurrent_layers" is not an array of 3 truth values'),
                (EXPERTS, "attention.recurrent_layers", (bools, [False] * 3), 5,
                 'tensor "blk.0.attn_qkv.weight": shape [256, 64], but the file\'s keys make it'),
                (EXPERTS, "attention.head_count_kv", (numbers, [0, 0, 0]), 5, "is 0 for all"),
                (EXPERTS, "attention.head_count_kv", (numbers, [0, 2]), 5, "nor an array of 3"),
                (EXPERTS, "attention.head_count_kv", (numbers, [1, 0, 2]), 6,
                 'head_count_kv" is 1 for layer 0, but 2 for layer 2'),
                (EXPERTS, "attention.head_count_kv", (numbers, [0, 0, 1 << 31]), 5,
                 "is -2147483648, allowed are 0 to 1048576"),
                (EXPERTS, "attention.head_count", (numbers, [4, 0, 4]), 5,
                 'head_count"[1] is 0, allowed are 1 to'),
                (MAPLE_FILE, "feed_forward_length", (numbers, [64, 32]), 6,
                 'feed_forward_length" is 64 for layer 0, but 32 for layer 1'),
                (DRAFTS, "nextn_predict_layers", (u32, 5), 5, "allowed are 0 to 4"),
                (DRAFTS, "nextn_predict_layers", (f32, 1.0), 5, 'nextn_predict_layers" is'),
                (DRAFTS, "nextn_predict_layers", (u32, 0), 5, 'blk.4'),
                (MAPLE_FILE, "attention.sliding_window_pattern", (gguf.STRING, "4"), 5,
                 "is not an array of 2 truth values"),
                (MAPLE_FILE, "attention.sliding_window_pattern", (u32, 0), 5, "is 0, allowed"),
                (MAPLE_FILE, "swiglu_clamp_exp", (floats32, [7.0]), 5,
                 'swiglu_clamp_exp" has 1 values, layer 1 has none')):
            with self.subTest(key=key, value=value):
                self.assertIn(words, self.refused(code, *self.change(name, {key: value})))

    def test_accepted(self):
        """Other ways to say the same: the same bits."""
        truths, numbers = (gguf.ARRAY, gguf.BOOL), (gguf.ARRAY, gguf.U32)
        for name, changes in (
                (EXPERTS, {"full_attention_interval": None,
                           "attention.recurrent_layers": (truths, [True, True, False])}),
                (EXPERTS, {"attention.head_count_kv": (numbers, [0, 0, 2]),
                           "attention.head_count": (numbers, [4] * 3),
                           "feed_forward_length": (numbers, [64] * 3)}),
                (EXPERTS, {"expert_gating_func": (gguf.U32, 1),
                           "expert_shared_count": (gguf.U32, 1),
                           "expert_weights_scale": (gguf.F32, 1.0)}),
                (MAPLE_FILE, {"attention.sliding_window_pattern": (gguf.U32, 2)})):
            with self.subTest(changes=changes):
                self.ok(*self.change(name, changes))
                got, want = scratch("got.f32"), scratch("want.f32")
                original = command.model(hybrid(name), *FLAGS)
                for model, out in ((scratch("keys.tern"), got), (original, want)):
                    self.ok("logits", model, "--ids", "1 17 200 42", "-o", out, "--kv", "f32")
                self.assertEqual(read_bytes(got) == read_bytes(want), True)

    def test_a_decay_that_grows(self):
        def set_log(tensors):
            return [(name, kind, shape, struct.pack("<f", 0.5) + data[4:])
                    if name == "blk.1.ssm_a" else (name, kind, shape, data)
                    for name, kind, shape, data in tensors]

        error = self.refused(5, *self.change(EXPERTS, {}, set_log))
        self.assertIn('"blk.1.ssm_a": value 0 is 0.5, but a decay, -exp(A_log), is below 0', error)


class Damage(command.TestCase):
    """Folders like tiny-maple with a single error."""

    def refused_with(self, code, words, change_config=None, change_tensors=None):
        folder = scratch("damaged")
        os.makedirs(folder, exist_ok=True)
        config = read_json(os.path.join(hybrid(MAPLE), "config.json"))
        tensors = gguf.read_safetensors(os.path.join(hybrid(MAPLE), "model.safetensors"))
        if change_config:
            config.update(change_config)
        if change_tensors:
            change_tensors(tensors)
        write_folder(folder, config, tensors)
        error = self.refused(code, "convert", folder, "-o", scratch("damaged.tern"),
                             "--no-tokenizer")
        self.assertIn(words, error)

    def test_numbers(self):
        for key, value, code, words in (
                ("num_experts", 0, 5, '"num_experts" is 0, allowed are 1 to 1024'),
                ("num_experts", 1025, 5, '"num_experts" is 1025, allowed are 1 to 1024'),
                ("num_experts", None, 5, '"num_experts" is missing'),
                ("num_experts", 2.5, 5, '"num_experts" is 2.5, not an integer'),
                ("num_experts", 4, 5, '"model.layers.0.mlp.gate.weight": shape [3, 256]'),
                ("num_experts", 2, 5, '"model.layers.0.mlp.gate.weight": shape [3, 256]'),
                ("num_experts_per_tok", 0, 5, "allowed are 1 to 3"),
                ("num_experts_per_tok", 4, 5, "allowed are 1 to 3"),
                ("moe_intermediate_size", 0, 5, "allowed are 1 to"),
                ("moe_intermediate_size", 128, 5, "makes it [128, 256]"),
                ("sliding_window", 0, 5, "allowed are 1 to"),
                ("layer_types", ["sliding_attention", "round"], 6, '"layer_types"[1] is "round"'),
                ("layer_types", ["sliding_attention"], 5, '"layer_types"[1] is missing or not a text'),
                ("first_k_dense_replace", 1, 5, "allowed are 0 to 0"),
                ("num_shared_experts", 1, 5, "allowed are 0 to 0"),
                ("moe_router_enable_expert_bias", True, 6, "is not supported"),
                ("moe_router_enable_expert_bias", 7, 5, "is not true or false"),
                ("nope_on_global_attention", False, 6, "is not supported")):
            with self.subTest(key=key, value=value):
                self.refused_with(code, words, {key: value})

    def test_tensors(self):
        router = "model.layers.1.mlp.gate.weight"

        def set_nan(tensors):
            dtype, shape, data = tensors[router]
            tensors[router] = dtype, shape, struct.pack("<H", 0x7FC0) + data[2:]

        def cut_stack(tensors):
            name = "model.layers.0.mlp.experts.gate_up_proj"
            stack_experts(tensors, "model.layers.0.mlp.experts.", 3)
            dtype, (_, rows, cols), data = tensors[name]
            tensors[name] = dtype, [2, rows, cols], data[:2 * rows * cols * 2]

        for words, change in (
                ('"model.layers.1.mlp.experts.2.up_proj.weight" is missing',
                 lambda t: t.pop("model.layers.1.mlp.experts.2.up_proj.weight")),
                (f'"{router}" is missing', lambda t: t.pop(router)),
                ('"model.layers.0.mlp.experts.gate_up_proj": shape [2, 128, 256], but config.json '
                 'makes it [3, 128, 256]', cut_stack),
                (f'"{router}": the value at row 0, column 0 is not a finite number', set_nan)):
            with self.subTest(words=words):
                self.refused_with(5, words, change_tensors=change)


if __name__ == "__main__":
    command.main()
