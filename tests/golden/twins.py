# SPDX-License-Identifier: MIT
"""What the tests of twins share: reading a folder, writing it as a GGUF file, comparing logits."""
import json
import os
import struct
import sys

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), ".."))
import command
import gguf
from command import read_bytes, scratch, shared

IDS = "1 17 300 42 5 99 260 8 11 480 3 64 200 7"
LINEAR = {"self_attn.q_proj": "attn_q", "self_attn.k_proj": "attn_k", "self_attn.v_proj": "attn_v",
          "self_attn.o_proj": "attn_output", "mlp.gate_proj": "ffn_gate", "mlp.up_proj": "ffn_up",
          "mlp.down_proj": "ffn_down"}
GEMMA_NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "post_attention_norm",
               "pre_feedforward_layernorm": "ffn_norm",
               "post_feedforward_layernorm": "post_ffw_norm", "self_attn.q_norm": "attn_q_norm",
               "self_attn.k_norm": "attn_k_norm"}
NORMS = {"input_layernorm": "attn_norm", "post_attention_layernorm": "ffn_norm"}


# ---- reading a folder ----

class Folder:
    def __init__(self, name, root=None):
        self.path = os.path.join(root or shared("reference", "models"), name)
        with open(os.path.join(self.path, "config.json"), encoding="utf-8") as f:
            self.config = json.load(f)
        self.tensors = gguf.read_safetensors(os.path.join(self.path, "model.safetensors"))

    def floats(self, name):
        dtype, shape, data = self.tensors["model." + name if "model." + name in self.tensors
                                          else name]
        if dtype == "F16":
            return list(struct.unpack(f"<{len(data) // 2}e", data)), shape
        assert dtype == "BF16"
        return gguf.of_bf16(data), shape

    def write(self, path):
        os.makedirs(path, exist_ok=True)
        with open(os.path.join(path, "config.json"), "w", encoding="utf-8") as f:
            json.dump(self.config, f)
        gguf.write_safetensors(os.path.join(path, "model.safetensors"), self.tensors)
        return path


def permuted(values, shape, n_heads):
    """Rows of q and k in the order of arch llama's files: j and j + d/2 are adjacent."""
    rows, cols = shape
    dim = rows // n_heads
    order = [h * dim + p * (dim // 2) + j
             for h in range(n_heads) for j in range(dim // 2) for p in range(2)]
    return [values[r * cols + c] for r in order for c in range(cols)]


def f32_tensor(name, values, shape):
    return name, "F32", tuple(shape), gguf.f32(values)


def absmean(values):
    mean = sum(abs(v) for v in values) / len(values)
    return [float(max(-1, min(1, round(v / mean)))) for v in values], mean


# ---- writing GGUF ----

def common_keys(arch, c, context=None):
    def k(name, value, kind=gguf.U32):
        return f"{arch}.{name}", kind, value
    heads = c["num_attention_heads"]
    dim = c.get("head_dim", c["hidden_size"] // heads)
    return [("general.architecture", gguf.STRING, arch),
            k("block_count", c["num_hidden_layers"]),
            k("context_length", context or c["max_position_embeddings"]),
            k("embedding_length", c["hidden_size"]),
            k("feed_forward_length", c["intermediate_size"]), k("attention.head_count", heads),
            k("attention.head_count_kv", c["num_key_value_heads"]), k("attention.key_length", dim),
            k("attention.value_length", dim), k("rope.dimension_count", dim),
            k("attention.layer_norm_rms_epsilon", c["rms_norm_eps"], gguf.F32),
            k("rope.freq_base", float(c["rope_theta"]), gguf.F32)]


def plain_tensors(folder, norms, permutes):
    """Every tensor of a folder of scale * trit, as F32."""
    c = folder.config
    for name, ours in (("embed_tokens", "token_embd"), ("norm", "output_norm")):
        yield f32_tensor(ours + ".weight", *folder.floats(name + ".weight"))
    if "lm_head.weight" in folder.tensors:
        yield f32_tensor("output.weight", *folder.floats("lm_head.weight"))
    for i in range(c["num_hidden_layers"]):
        for theirs, ours in norms.items():
            yield f32_tensor(f"blk.{i}.{ours}.weight",
                             *folder.floats(f"layers.{i}.{theirs}.weight"))
        for theirs, ours in LINEAR.items():
            values, shape = folder.floats(f"layers.{i}.{theirs}.weight")
            heads = {"attn_q": c["num_attention_heads"], "attn_k": c["num_key_value_heads"]}
            if permutes and ours in heads:
                values = permuted(values, shape, heads[ours])
            yield f32_tensor(f"blk.{i}.{ours}.weight", values, shape)


def gemma_file(path, folder, *keys, has_head=False):
    """Norms are stored plus 1, except those of projections; latent weights become trits and a
    scale."""
    c, rows = folder.config, []
    for name in ("token_embd.weight", "output.weight")[:1 + has_head]:
        rows.append(f32_tensor(name, *folder.floats("embed_tokens.weight")))

    def norm(ours, theirs, offset):
        values, shape = folder.floats(theirs)
        rows.append(f32_tensor(ours, [v + offset for v in values], shape))
    norm("output_norm.weight", "norm.weight", 1)
    for i in range(c["num_hidden_layers"]):
        for theirs, ours in GEMMA_NORMS.items():
            norm(f"blk.{i}.{ours}.weight", f"layers.{i}.{theirs}.weight", 1)
        for theirs, ours in LINEAR.items():
            norm(f"blk.{i}.{ours}_norm_in.weight", f"layers.{i}.{theirs}.norm.weight", 0)
            values, shape = folder.floats(f"layers.{i}.{theirs}.weight")
            trits, scale = absmean(values)
            rows.append(f32_tensor(f"blk.{i}.{ours}.weight", trits, shape))
            rows.append(f32_tensor(f"blk.{i}.{ours}.scale", [scale], [1]))
    gguf.write(path, common_keys("gemma3", dict(c, rope_theta=c["rope_theta"])) +
               [("gemma3.pooling_type", gguf.U32, 3),
                ("gemma3.attention.query_pre_attn_scalar", gguf.F32,
                 float(c["query_pre_attn_scalar"])), *keys], rows)


class Case(command.TestCase):
    def convert(self, path, name, *flags):
        out = scratch(name + ".tern")
        self.ok("convert", path, "-o", out, "--no-tokenizer", "--head", "f32", *flags)
        return out

    def logits(self, model, *flags, ids=IDS):
        out = scratch("twin.f32")
        self.ok("logits", model, "--ids", ids, "-o", out, "--kv", "f32", *flags)
        return read_bytes(out)

    def check_same(self, one, other, *flags, ids=IDS):
        self.assertEqual(self.logits(self.convert(one, "one", *flags), ids=ids),
                         self.logits(self.convert(other, "other", *flags), ids=ids))
