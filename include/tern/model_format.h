/* SPDX-License-Identifier: MIT
 *
 * The .tern file: this header is its specification, tern/matrix_layouts.h the part about the bytes
 * of matrices.  One model in one file, little-endian, which the engine maps and uses without
 * conversion.
 */

/*   0            +--------------------------------------+
 *                | struct tern_file_header   (256 bytes)|
 *   256          +--------------------------------------+ \
 *                | metadata: struct tern_file_config,   |  |
 *                |   then records and strings           |  |
 *                +--------------------------------------+  | XXH3-64 in the header,
 *                | tensor table: n x tern_file_tensor   |  | checked at every open
 *                +--------------------------------------+  |
 *                | tokenizer: struct                    |  |
 *                |   tern_file_tokenizer, then tables   |  |
 *                +--------------------------------------+  |
 *                | data hashes: u64 per 4 MiB of data   |  |
 *   data.offset  +--------------------------------------+ /
 *   (4096-aligned)| data: tensors and scales            |   XXH3-64 per 4 MiB,
 *                |                                      |   checked by `tern verify`
 *   file_bytes   +--------------------------------------+
 *
 * - Sections are in this order, each at the first 64-byte boundary after the previous one (data:
 *   4096, from TERN_FILE_LARGE bytes on 4 MiB), padded with zeros. The file ends with the data.
 * - The tensor table is sorted by layer and role, without duplicates; the tensors of no layer come
 *   last. The data are in the same order, without further gaps: tensors at the next
 *   64-byte boundary, those of 64 KiB and more at the next 4 KiB page; row scales follow their
 *   tensor at the next 64-byte boundary.
 * - header.head_hash = XXH3-64 (seed 0) of bytes [0, data.offset) with the field itself as zero.
 * - data hash i = XXH3-64 (seed 0) of data bytes [i * 4 MiB, min((i + 1) * 4 MiB, data.bytes)).
 * - Reserved fields are zero. An unknown layout, scale kind, role, mixer, activation or splitter is
 *   "not supported", not "corrupt".
 * - Another format version is refused; it changes when old readers, or readers of old files, would
 *   be wrong.
 *
 * Hashes protect against damage, not against malice: every index and size in the file is
 * range-checked before use all the same.
 */
#ifndef TERN_MODEL_FORMAT_H
#define TERN_MODEL_FORMAT_H

#include <assert.h>
#include <stdint.h>

#include "tern/matrix_layouts.h"

#define TERN_FILE_MAGIC "TERN\r\n\x1A\n" /* 8 bytes; damaged by text-mode transfers */
#define TERN_FILE_VERSION 4u /* 1, 2: other bytes in T2, Q8_PLANES, Q6, Q4; 3: one kind of layer */
#define TERN_FILE_ALIGN 64u
#define TERN_FILE_PAGE 4096u
#define TERN_FILE_PAGE_TENSOR 65536u /* tensors of at least this many bytes are page-aligned */
#define TERN_FILE_CHUNK (4u << 20)   /* bytes of data per hash */
#define TERN_FILE_LARGE (64u << 20)  /* data of at least this many bytes begins at a multiple of 4
                                      * MiB, so that huge pages can be used */

/* Absolute limits; a file beyond one of them is refused. */
#define TERN_MAX_LAYERS 1024u
#define TERN_MAX_DIM (1u << 20)
#define TERN_MAX_VOCAB (1u << 21)
#define TERN_MAX_TENSORS (1u << 18)
#define TERN_MAX_EXPERTS 1024u
#define TERN_MAX_EXPERTS_USED 32u
#define TERN_MAX_CONTEXT (1u << 24)
#define TERN_MAX_ROPE_THETA 1e300
#define TERN_MIN_ROPE_FACTOR 0.5f /* factors divide frequencies and are at least this large */
#define TERN_MIN_CAP 1e-3f
#define TERN_MAX_CAP 1e6f
#define TERN_MIN_ROPE_SCALE 1e-3f
#define TERN_MAX_ROPE_SCALE 1e3f
#define TERN_MAX_TOKEN_BYTES 65536u
#define TERN_MAX_FINGERPRINT_IDS 8u
#define TERN_MAX_METADATA_BYTES (16u << 20)
#define TERN_MAX_TOKENIZER_BYTES (256u << 20)

/* The layer number of tensors that belong to the model. */
#define TERN_NO_LAYER 0xFFFFFFFFu
/* "No such id", for instance a beginning of text that the model does not have. */
#define TERN_NO_ID 0xFFFFFFFFu

struct tern_file_section {
    uint64_t offset; /* from the start of the file */
    uint64_t bytes;  /* without padding */
};

/* A range of a section: text (UTF-8, not NUL-terminated) or records. */
struct tern_file_ref {
    uint32_t offset; /* from the start of the section */
    uint32_t bytes;
};

struct tern_file_header {
    char magic[8];
    uint32_t version;
    uint32_t header_bytes; /* 256 */
    uint64_t file_bytes;   /* size of the whole file, by which a truncated file is recognised */
    uint64_t head_hash;
    struct tern_file_section metadata;
    struct tern_file_section tensors;
    struct tern_file_section tokenizer; /* bytes 0: a model without a tokenizer */
    struct tern_file_section hashes;
    struct tern_file_section data; /* at a multiple of TERN_FILE_PAGE, or see TERN_FILE_LARGE */
    uint8_t reserved[144];
};
static_assert(sizeof(struct tern_file_header) == 256, "file header is 256 bytes");

/* The rounding of inputs of ternary products. */
enum tern_inputs {
    TERN_INPUTS_FLOAT = 0,    /* not at all */
    TERN_INPUTS_I8_TOKEN = 1, /* q = rne(x * 127 / max(|x|_max, 1e-5)), one scale per token */
};

/* How an embedding model pools the states after the final norm. */
enum tern_pooling {
    TERN_POOLING_NONE = 0, /* a generative model */
    TERN_POOLING_MEAN = 1, /* the mean over all positions */
    TERN_POOLING_CLS = 2,  /* the first position */
    TERN_POOLING_LAST = 3, /* the last position */
};

/* The type of the key/value cache for answers, unless the user names another. */
enum tern_file_cache {
    TERN_FILE_CACHE_Q8 = 0,
    TERN_FILE_CACHE_F16 = 1, /* at conversion, q8 moved the distribution of the next token more than
                              * three times as far from that of an f32 cache as f16 did */
};

/* Flags of tern_file_config.flags */
#define TERN_MODEL_TIED_HEAD 1u /* the embedding is also the head; no TERN_ROLE_HEAD tensor */
#define TERN_MODEL_NO_HEAD 2u   /* no head: the result is the state after the final norm */

/* Flags of tern_file_config.expert_flags */
#define TERN_EXPERTS_RENORMALISED 1u /* the weights of the chosen experts are divided by their
                                      * sum */

/* Begins the metadata section; references count from the section's start.  Optional norms, biases
 * and rope factors exist if their tensors do. */
struct tern_file_config {
    uint32_t flags; /* TERN_MODEL_* */
    uint32_t n_layer;
    uint32_t hidden;
    uint32_t ffn;
    uint32_t n_head;
    uint32_t n_kv_head; /* divides n_head */
    uint32_t head_dim;  /* even */
    uint32_t vocab;     /* rows of embedding and head */
    uint32_t context;   /* positions that the model was trained for */
    uint32_t inputs;    /* enum tern_inputs */
    uint32_t pooling;   /* enum tern_pooling */
    uint32_t bos_id;    /* TERN_NO_ID if none */
    float rms_eps;         /* for all norms except those of single projections (..._IN_NORM) */
    float in_norm_eps;     /* for those; set even if there are none */
    /* Above 0; 1 if the model has none. */
    float embedding_scale; /* h = embedding_scale * embed[id] */
    float residual_scale;  /* h = h + residual_scale * branch, for each branch */
    float logit_scale;     /* logits = head . (logit_scale * final norm of h) */
    /* Fingerprint: XXH3-64 of the little-endian f32 logits of the last of these ids (TERN_MODEL_
     * NO_HEAD: of its state after the final norm), cache f32, positions from 0, inputs rounded as
     * `inputs` says.  Equal on every machine. n 0: none. */
    uint32_t n_fingerprint_ids;
    uint32_t fingerprint_ids[TERN_MAX_FINGERPRINT_IDS];
    uint64_t fingerprint_hash;
    uint64_t n_params;
    struct tern_file_ref layers;          /* (n_layer + n_draft_layer) x struct tern_file_layer */
    struct tern_file_ref stop_ids;        /* u32 each, below vocab; any number of them */
    struct tern_file_ref sources;         /* n x struct tern_file_source */
    struct tern_file_ref family;          /* displayed to users: "bitnet" */
    struct tern_file_ref name;            /* displayed to users */
    struct tern_file_ref template_name;   /* "" if the template is not a known one */
    struct tern_file_ref template_source; /* Jinja text as published; "" if none */
    struct tern_file_ref converter;       /* "tern 0.1.0" */
    uint32_t cache;                       /* enum tern_file_cache */
    /* For layers with TERN_FFN_EXPERTS; all 0 if there are none. */
    uint32_t n_experts;      /* 1 ... TERN_MAX_EXPERTS */
    uint32_t n_experts_used; /* per token, 1 ... TERN_MAX_EXPERTS_USED, at most n_experts */
    uint32_t expert_ffn;     /* rows of an expert's gate and up */
    uint32_t expert_flags;   /* TERN_EXPERTS_* */
    float expert_limit;      /* activation(min(gate, limit)) * clamp(up, -limit, limit); 0: no
                              * limit */
    uint32_t shared_ffn;     /* rows of the shared expert's gate and up; 0: no shared expert */
    uint32_t rotation_block; /* for every rotation, a power of two from 2 on; 0: no rotations */
    struct tern_file_ref rotations; /* n x struct tern_file_rotation, ascending by cols */
    /* Soft caps: x becomes cap * tanh(x / cap); 0: none. */
    float score_cap; /* for the scores of attention, before the softmax */
    float logit_cap; /* for the logits */
    uint32_t norm;   /* enum tern_norm */
    uint32_t order;  /* enum tern_order */
    uint32_t embed_width; /* columns of embedding and head, 1 ... hidden; 0: hidden */
    uint32_t n_draft_layer; /* 1: the file has a draft head (below), else 0 */
    uint8_t reserved[264];
};
static_assert(sizeof(struct tern_file_config) == 512, "model configuration is 512 bytes");

/* R(x) = B^-1/2 * H (s * x), for each B = rotation_block of `cols` values; H is the Walsh-Hadamard
 * matrix, H_ij = (-1)^popcount(i & j), and s the signs.  A matrix with TERN_TENSOR_ROTATED takes
 * R(x) instead of x, after the norm of its input. */
struct tern_file_rotation {
    uint32_t cols; /* a multiple of rotation_block, at most TERN_MAX_DIM */
    uint32_t reserved;
    struct tern_file_ref signs; /* ceil(cols / 8) bytes: value c is negated if bit c & 7 of byte c /
                                 * 8 is set; or 0 bytes: none is negated */
};
static_assert(sizeof(struct tern_file_rotation) == 16, "rotation record is 16 bytes");

/* The function of attn_norm, ffn_norm and the final norm; other norms are RMSNorms. */
enum tern_norm {
    TERN_NORM_RMS = 0,   /* w * x / sqrt(mean(x^2) + rms_eps) */
    TERN_NORM_LAYER = 1, /* the same of x - mean(x); plus a bias if the file has one */
    TERN_NORM_END        /* one more than the last */
};

/* Where a layer has its norms.  attn and ffn are its halves, multiplied by their residual_scale. */
enum tern_order {
    TERN_ORDER_BEFORE = 0,   /* h += attn(attn_norm(h));  h += ffn(ffn_norm(h)) */
    TERN_ORDER_BARE = 1,     /* h += attn(h);  h += ffn(h) */
    TERN_ORDER_AFTER = 2,    /* h = attn_norm(h + attn(h));  h = ffn_norm(h + ffn(h)); there is no
                                final norm */
    TERN_ORDER_PARALLEL = 3, /* h += attn(attn_norm(h)) + ffn(ffn_norm(h)) */
    TERN_ORDER_SHARED = 4,   /* h += attn(x) + ffn(x), x = attn_norm(h) */
    TERN_ORDER_END           /* one more than the last */
};

/* Flags of tern_file_layer.delta_flags */
#define TERN_DELTA_TILED 1u /* value head i has key head i mod n_kv_head */
#define TERN_DELTA_OUT_GROUPED 2u /* with TILED: the columns of delta_out are in the other order,
                                     head i at i mod n_kv_head * (n_head / n_kv_head) +
                                     i / n_kv_head */
#define TERN_MAX_DELTA_DIM 1024u
#define TERN_MAX_CONV_TAPS 16u

/* The half of a layer that mixes positions. */
enum tern_mixer {
    TERN_MIXER_ATTENTION = 1, /* causal, softmax(cap(score_scale * q.k)) v, key heads shared */
    TERN_MIXER_GATED_DELTA = 2, /* a matrix for each head, with decay and delta rule; see below */
    TERN_MIXER_END            /* one more than the last */
};

/* The other half of a layer. */
enum tern_ffn {
    TERN_FFN_GATED = 1, /* down(activation(gate(x)) * up(x)) */
    /* The sum of expert e(x) times p_e over the n_experts_used experts with the largest p, the
     * lowest numbers of equal ones; p = softmax(router(x)) over all.  An expert is a gated
     * feed-forward.  A shared expert, if there is one, is added for every token. */
    TERN_FFN_EXPERTS = 2,
    TERN_FFN_PLAIN = 3, /* down(activation(up(x))) */
    TERN_FFN_END        /* one more than the last */
};

enum tern_activation {
    TERN_ACT_RELU2 = 1,     /* max(z, 0)^2 */
    TERN_ACT_SILU = 2,      /* z / (1 + exp(-z)) */
    TERN_ACT_GELU_TANH = 3, /* z / (1 + exp(-2 sqrt(2 / pi) (z + 0.044715 z^3))) */
    TERN_ACT_RELU = 4,      /* max(z, 0) */
    TERN_ACT_GELU_ERF = 5,  /* z / 2 * (1 + erf(z / sqrt(2))) */
};

enum tern_rope {
    TERN_ROPE_HALF = 1, /* pairs (j, j + rope_dims / 2), angle position * theta^(-2j / rope_dims),
                         * divided by factor j if the layer has TERN_ROLE_ROPE_FACTORS */
    TERN_ROPE_NONE = 2, /* no rotation; rope_dims and rope_theta are ignored */
};

/* One layer.  Its order of work (norms and biases that the file does not contain are omitted;
 * enum tern_order has other orders of the norms):
 *
 *   x = attn_norm(h)
 *   q, k, v = Wq q_in_norm(x) + bq, ...;  q, k = q_all_norm(q), k_all_norm(k)
 *   q, k = rope(q_norm(q)), rope(k_norm(k)) per head
 *   a = attn_sub_norm(attention(q, k, v) * sigmoid(Wq_gate x))
 *   h += residual_scale * attn_post_norm(Wo o_in_norm(a) + bo)
 *   x = ffn_norm(h)
 *   g = ffn_sub_norm(activation(Wgate gate_in_norm(x) + bgate) * (Wup up_in_norm(x) + bup))
 *   h += residual_scale * ffn_post_norm(Wdown down_in_norm(g) + bdown)
 *
 * With TERN_FFN_PLAIN g = activation(Wup x + bup).  With TERN_FFN_EXPERTS the last two are
 * h += residual_scale * ffn_post_norm(sum over the chosen e, ascending, of p_e * (Wdown_e g_e),
 * then sigmoid(wshared_router.x) * (Wshared_down g_shared)); p in f32, expert_limit only for chosen
 * experts.
 *
 * The model: h = embedding_scale * embed[id], or embed_in of that; h += positions[position]; the
 * layers; x = logit_scale * final_norm(h), or embed_out of it; logits = cap(head . x + head_bias).
 *
 * TERN_MIXER_GATED_DELTA instead, for n_head value heads of value_dim values; value head i has key
 * head i / (n_head / n_kv_head), or i mod n_kv_head with TERN_DELTA_TILED, of head_dim values; t is
 * the position, u is zero before the first position, where S is zero:
 *
 *   u_t = Wdelta_qkv x;  c = silu(sum of delta_conv[j] * u_(t - conv_taps + 1 + j), j < conv_taps)
 *   q, k, v = c, cut into n_kv_head, n_kv_head and n_head heads
 *   q = q / sqrt(q.q + 1e-6) / sqrt(head_dim),  k = k / sqrt(k.k + 1e-6)
 *   g = exp(delta_decay * log(1 + exp(Wdelta_a x + delta_dt))),  b = sigmoid(Wdelta_b x)
 *   d = b * (v - g * k.S),  S = g * S + k (x) d,  o = q.S             S [head_dim][value_dim]
 *   h += residual_scale * Wdelta_out(delta_norm(o) * silu(Wdelta_z x))
 *
 * A draft head guesses the id after the next one.  It has a layer of attention and a feed-forward
 * without experts, number n_layer, which the model itself does not run.  From x_t, the state after
 * the final norm, and the id that follows position t:
 *
 *   h = Wdraft_fc [draft_embed_norm(embedding_scale * embed[id]); draft_state_norm(x_t)]
 *   the layer, which attends to the draft head's earlier positions
 *   logits = head . draft_norm(h)                              of the id at position t + 2
 *
 * For a further guess, draft_norm(h) replaces x and the guess the id. */
struct tern_file_layer {
    uint32_t mixer;      /* enum tern_mixer */
    uint32_t ffn;        /* enum tern_ffn */
    uint32_t activation; /* enum tern_activation */
    uint32_t rope;       /* enum tern_rope */
    uint32_t rope_dims;  /* even, 2 ... head_dim: the leading values of each head are rotated */
    uint32_t window;     /* positions that a token sees, including itself; 0: all before it */
    float score_scale;   /* > 0; 1 / sqrt(head_dim) in most models */
    float rope_scale;    /* of cosines and sines, TERN_MIN_ROPE_SCALE ...; 0: 1 */
    double rope_theta;   /* 1 ... TERN_MAX_ROPE_THETA */
    /* Sizes that differ from tern_file_config; 0: the same. */
    uint32_t n_head;
    uint32_t n_kv_head; /* divides the number of heads */
    uint32_t head_dim;  /* even */
    uint32_t ffn_dim;
    /* For TERN_MIXER_GATED_DELTA, else 0.  Its rope, rope_dims, rope_theta, rope_scale, window and
     * score_scale are 0. */
    uint16_t value_dim;  /* 1 ... TERN_MAX_DELTA_DIM, like head_dim */
    uint8_t conv_taps;   /* 1 ... TERN_MAX_CONV_TAPS */
    uint8_t delta_flags; /* TERN_DELTA_* */
    uint8_t is_draft;    /* 1 for layer n_layer, that of the draft head, else 0 */
    uint8_t reserved[3];
};
static_assert(sizeof(struct tern_file_layer) == 64, "layer record is 64 bytes");

/* Provenance: a file from which the model was converted. */
struct tern_file_source {
    struct tern_file_ref name; /* file name without folder */
    uint64_t bytes;
    uint64_t hash;             /* XXH3-64 of the whole file */
};
static_assert(sizeof(struct tern_file_source) == 24, "source record is 24 bytes");

/* The role of a tensor.  Numbers are part of the format; new ones are added at the end.  Shapes and
 * optional roles: src/arch/slots.h. */
#define TERN_ROLE_LIST(X)                                                                          \
    X(EMBED, 1, "embed")           /* [vocab][embed_width] */                                      \
    X(HEAD, 2, "head")             /* [vocab][embed_width]; absent if tied or missing */         \
    X(FINAL_NORM, 3, "norm")       /* [hidden] */                                                  \
    X(ATTN_NORM, 4, "attn_norm")   /* [hidden], before q, k, v */                                  \
    X(FFN_NORM, 5, "ffn_norm")     /* [hidden], before gate and up */                              \
    X(ATTN_SUB_NORM, 6, "attn_sub_norm") /* [n_head * head_dim], before o; optional */             \
    X(FFN_SUB_NORM, 7, "ffn_sub_norm")   /* [ffn], before down; optional */                        \
    X(Q, 8, "q")                   /* [n_head * head_dim][hidden] */                               \
    X(K, 9, "k")                   /* [n_kv_head * head_dim][hidden] */                            \
    X(V, 10, "v")                  /* [n_kv_head * head_dim][hidden] */                            \
    X(O, 11, "o")                  /* [hidden][n_head * head_dim] */                               \
    X(GATE, 12, "gate")            /* [ffn][hidden] */                                             \
    X(UP, 13, "up")                /* [ffn][hidden] */                                             \
    X(DOWN, 14, "down")            /* [hidden][ffn] */                                             \
    X(Q_NORM, 15, "q_norm")        /* [head_dim], of each query head before its rotation */        \
    X(K_NORM, 16, "k_norm")        /* [head_dim], of each key head */                              \
    X(Q_BIAS, 17, "q_bias")        /* [rows of q]; likewise the next three */                      \
    X(K_BIAS, 18, "k_bias")                                                                        \
    X(V_BIAS, 19, "v_bias")                                                                        \
    X(O_BIAS, 20, "o_bias")                                                                        \
    X(ATTN_POST_NORM, 21, "attn_post_norm") /* [hidden], of the output of o */                     \
    X(FFN_POST_NORM, 22, "ffn_post_norm")   /* [hidden], of the output of down */                  \
    X(Q_IN_NORM, 23, "q_in_norm")  /* [columns of q], for the input of q only; also the next */    \
    X(K_IN_NORM, 24, "k_in_norm")                                                                  \
    X(V_IN_NORM, 25, "v_in_norm")                                                                  \
    X(O_IN_NORM, 26, "o_in_norm")                                                                  \
    X(GATE_IN_NORM, 27, "gate_in_norm")                                                            \
    X(UP_IN_NORM, 28, "up_in_norm")                                                                \
    X(DOWN_IN_NORM, 29, "down_in_norm")                                                            \
    X(HEAD_IN_NORM, 30, "head_in_norm")                                                            \
    X(ROPE_FACTORS, 31, "rope_factors") /* [rope_dims / 2], see TERN_MIN_ROPE_FACTOR */            \
    X(ROUTER, 32, "router")        /* [n_experts][hidden], floats */                               \
    X(EXPERT_GATE, 33, "expert_gate") /* n_experts x [expert_ffn][hidden]; also the next */        \
    X(EXPERT_UP, 34, "expert_up")                                                                  \
    X(EXPERT_DOWN, 35, "expert_down") /* n_experts x [hidden][expert_ffn] */                       \
    X(Q_GATE, 36, "q_gate")        /* [rows of q][hidden], for attention's output; optional */    \
    X(DELTA_QKV, 37, "delta_qkv")  /* [(2 n_kv_head) head_dim + n_head value_dim][hidden] */       \
    X(DELTA_Z, 38, "delta_z")      /* [n_head * value_dim][hidden] */                              \
    X(DELTA_B, 39, "delta_b")      /* [n_head][hidden] */                                          \
    X(DELTA_A, 40, "delta_a")      /* [n_head][hidden] */                                          \
    X(DELTA_OUT, 41, "delta_out")  /* [hidden][n_head * value_dim] */                              \
    X(DELTA_CONV, 42, "delta_conv") /* [rows of delta_qkv][conv_taps], oldest tap first */         \
    X(DELTA_DECAY, 43, "delta_decay") /* [n_head], below 0 */                                      \
    X(DELTA_DT, 44, "delta_dt")    /* [n_head] */                                                  \
    X(DELTA_NORM, 45, "delta_norm") /* [value_dim], for each head of o */                          \
    X(SHARED_ROUTER, 46, "shared_router") /* [1][hidden], floats; if shared_ffn is not 0 */     \
    X(SHARED_GATE, 47, "shared_gate") /* [shared_ffn][hidden] */                                   \
    X(SHARED_UP, 48, "shared_up")  /* [shared_ffn][hidden] */                                      \
    X(SHARED_DOWN, 49, "shared_down") /* [hidden][shared_ffn] */                                   \
    X(ATTN_NORM_BIAS, 50, "attn_norm_bias") /* for TERN_NORM_LAYER; also the next two */           \
    X(FFN_NORM_BIAS, 51, "ffn_norm_bias")                                                          \
    X(FINAL_NORM_BIAS, 52, "norm_bias")                                                            \
    X(GATE_BIAS, 53, "gate_bias")  /* [ffn]; also the next */                                      \
    X(UP_BIAS, 54, "up_bias")                                                                      \
    X(DOWN_BIAS, 55, "down_bias")  /* [hidden] */                                                  \
    X(Q_ALL_NORM, 56, "q_all_norm") /* [rows of q], of all query heads at once */                  \
    X(K_ALL_NORM, 57, "k_all_norm") /* [rows of k] */                                              \
    X(POSITIONS, 58, "positions")  /* [context][hidden], floats */                                 \
    X(HEAD_BIAS, 59, "head_bias")  /* [vocab] */                                                   \
    X(EMBED_IN, 60, "embed_in")    /* [hidden][embed_width]; with embed_width, also the next */    \
    X(EMBED_OUT, 61, "embed_out")  /* [embed_width][hidden] */                                     \
    X(DRAFT_EMBED_NORM, 62, "draft_embed_norm") /* [hidden]; of the draft head, also the next */   \
    X(DRAFT_STATE_NORM, 63, "draft_state_norm") /* [hidden] */                                     \
    X(DRAFT_FC, 64, "draft_fc")    /* [hidden][2 hidden] */                                        \
    X(DRAFT_NORM, 65, "draft_norm") /* [hidden], before the head */

enum tern_role {
#define TERN_ROLE_ENUM(name, number, text) TERN_ROLE_##name = number,
    TERN_ROLE_LIST(TERN_ROLE_ENUM)
#undef TERN_ROLE_ENUM
};

/* Flags of tern_file_tensor.flags */
#define TERN_TENSOR_ROTATED 1u /* see struct tern_file_rotation; a row of the embeddings is
                                  s * (B^-1/2 * H row) */

struct tern_file_tensor {
    uint32_t role;  /* enum tern_role */
    uint32_t layer; /* or TERN_NO_LAYER */
    uint32_t layout;
    uint32_t scale_kind;
    uint32_t rows; /* logical; 1 for vectors */
    uint32_t cols;
    uint32_t scale_group;  /* with TERN_SCALE_COL_GROUP..., else 0 */
    float scale;           /* TERN_SCALE_TENSOR: finite and > 0; multiplied */
    uint64_t offset;       /* from the start of the file, in the data section */
    uint64_t bytes;        /* follows from layout, rows and cols */
    uint64_t scale_offset; /* from the start of the file; 0: no scales */
    uint64_t scale_bytes;
    uint64_t n_zero;       /* zero weights of a ternary tensor, for `info` */
    /* Matrices of a stack, one for each of the n_experts, all of this shape; 0: a single matrix.
     * They follow each other at the next multiple of 64 bytes, those of 64 KiB and more at the next
     * 4 KiB page; their scales follow the last matrix at the next multiple of 64 bytes. */
    uint32_t n_stacked;
    uint32_t flags;     /* TERN_TENSOR_* */
    uint64_t reserved[2];
};
static_assert(sizeof(struct tern_file_tensor) == 96, "tensor record is 96 bytes");

/* The unit of a text before merging. */
enum tern_tokenizer_kind {
    TERN_TOKENIZER_BYTE_BPE = 1, /* bytes; a byte without an id is treated as `unk_id` says */
    TERN_TOKENIZER_CHAR_BPE = 2, /* characters; one without an id becomes the ids of its bytes if
                                  * all have one, else what `unk_id` says */
};

/* How a text is split before merging; text/pretok*.c quote the expressions. */
enum tern_splitter {
    TERN_SPLIT_LLAMA3 = 1,
    TERN_SPLIT_GPT2 = 2,
    TERN_SPLIT_QWEN2 = 3,
    TERN_SPLIT_QWEN35 = 4,
    TERN_SPLIT_STARCODER = 5,
    TERN_SPLIT_FALCON = 6, /* 7B and 40B of 2023, not Falcon3 or Falcon-E */
    TERN_SPLIT_DEEPSEEK_CODER = 7,
    TERN_SPLIT_NONE = 8,
    TERN_SPLIT_SPACE = 9,      /* before every space */
    TERN_SPLIT_SPACE_RUN = 10, /* before every space that follows another character: the same ids as
                                * NONE in a vocabulary without a token across such a boundary */
    TERN_SPLIT_DEEPSEEK_LLM = 11,
    TERN_SPLIT_GPT4O = 12,
    TERN_SPLIT_TEKKEN = 13, /* Mistral Nemo and later */
    TERN_SPLIT_DEEPSEEK_V3 = 14,
    TERN_SPLIT_SEED_CODER = 15,
    TERN_SPLIT_MINICPM5 = 16,
};

/* Flags of tern_file_tokenizer.flags.  In a tokenizer with TERN_TOK_SPACE_MARKS, U+2581 in tokens
 * and texts is equivalent to a space, and the tables contain the space. */
#define TERN_TOK_IGNORE_MERGES 1u /* a piece that is in the vocabulary as a whole is one token */
#define TERN_TOK_NFC 2u           /* normalisation form C after the first added tokens */
#define TERN_TOK_FUSE_UNK 4u      /* adjacent unknown symbols become one */
#define TERN_TOK_SPACE_MARKS 8u   /* only with CHAR_BPE, like the following */
#define TERN_TOK_PREPEND 16u      /* the normaliser puts a space before every stretch between added
                                   * tokens */
#define TERN_TOK_META 32u         /* the marks are made before splitting, not by the normaliser */
#define TERN_TOK_META_FIRST 64u   /* META: a space before the text, unless it begins with one */
#define TERN_TOK_META_ALWAYS 128u /* META: before every stretch, unless it begins with one */
#define TERN_TOK_STRIP 256u       /* decoding drops one space from the start of a text */

/* Begins the tokenizer section; references count from the section's start and are 8-byte aligned. A
 * lookup needs only the mapping: both hash tables have 2^k slots, open addressing with linear
 * probing of at most TERN_MAX_PROBES slots, value + 1 in a slot, 0 = empty. */
#define TERN_MAX_PROBES 1024u
struct tern_file_tokenizer {
    uint32_t kind;
    uint32_t splitter;
    uint32_t flags;
    uint32_t n_tokens;       /* ids 0 .. n_tokens-1 all exist; at most config.vocab */
    uint32_t n_added;
    uint32_t n_prefix;       /* ids that the post-processor puts before a text (BOS) */
    uint32_t n_suffix;       /* and after it (EOS) */
    uint32_t n_merges;
    uint32_t prefix_ids[4];
    uint32_t suffix_ids[4];
    struct tern_file_ref token_offsets; /* u32 [n_tokens + 1], into token_bytes, ascending */
    struct tern_file_ref token_bytes;   /* the text of each token: decoded from the byte alphabet;
                                         * byte tokens are one byte */
    struct tern_file_ref vocab_slots;   /* u32 [2^k]: id + 1, from slot XXH3-64(bytes) & (2^k - 1);
                                           model.vocab only, without added and byte tokens */
    struct tern_file_ref merges;        /* struct tern_file_merge [n_merges] in order of rank, 0
                                           merges first */
    struct tern_file_ref merge_slots;   /* u32 [2^k]: rank + 1, from the top k bits of (left << 32 |
                                         * right) * 0x9E3779B97F4A7C15; only the later rank of a
                                         * pair that occurs twice */
    struct tern_file_ref byte_ids;      /* u32 [256]: the id of each single byte, or TERN_NO_ID;
                                           CHAR_BPE: of the byte tokens */
    struct tern_file_ref added;         /* struct tern_file_added [n_added], ascending by text */
    struct tern_file_ref special_bits;  /* u8 [ceil(n_tokens / 8)]: id i is special if bit i & 7 of
                                         * byte i / 8 is set */
    struct tern_file_ref added_text;    /* texts of the added tokens */
    uint32_t unk_id;         /* replaces a symbol without an id; TERN_NO_ID: the symbol is
                              * dropped */
    uint32_t fim_ids[6];     /* id + 1 of the tokens for fill-in-the-middle: prefix, suffix, middle,
                              * pad, repository, file; 0: the one with a known name, if any */
    uint8_t reserved[92];
};
static_assert(sizeof(struct tern_file_tokenizer) == 256, "tokenizer header is 256 bytes");

/* left, right -> merged; the index in the table is the rank. */
struct tern_file_merge {
    uint32_t left;
    uint32_t right;
    uint32_t merged;
};
static_assert(sizeof(struct tern_file_merge) == 12, "merge record is 12 bytes");

/* Flags of tern_file_added.flags, as in tokenizer.json. */
#define TERN_ADDED_SPECIAL 1u      /* only templates produce it, never a user's text */
#define TERN_ADDED_LSTRIP 2u       /* takes the preceding white space */
#define TERN_ADDED_RSTRIP 4u       /* takes the following white space */
#define TERN_ADDED_SINGLE_WORD 8u  /* not next to a letter, digit or similar (\w) */
#define TERN_ADDED_NORMALIZED 16u  /* matched in the normalised text, after those without */

/* The maximum length of an added token's text. */
#define TERN_MAX_ADDED_BYTES 512u

/* An added token. */
struct tern_file_added {
    uint32_t id;
    uint32_t flags;
    struct tern_file_ref text; /* in added_text: the text to match, normalised if so flagged */
};
static_assert(sizeof(struct tern_file_added) == 16, "added-token record is 16 bytes");

#endif
