/* SPDX-License-Identifier: MIT
 *
 * Every tensor that a model can have, what it is for, its shape and its names in other files,
 * stated only here.  The file checker, the converter, the binding of weights, `verify`, `bench`,
 * `info` and the memory plan walk this list.  No include guard: this file is expanded several
 * times.
 */

/* SLOT(role, scope, kind, rows, cols, need, hf, gguf)
 *
 *   role   TERN_ROLE_..., in the order of its numbers, which is that of the tensor table
 *   scope  MODEL: one in the file;  LAYER: one in each layer;  ATTN: in each layer that mixes by
 *          attention;  DELTA: by a gated delta rule;  GATED: in each layer with a gated
 *          feed-forward;  DENSE: with a gated or a plain one;  EXPERTS: with experts;  DRAFT: the
 *          layer of a draft head, which in folders has separate prefixes (arch/family.h)
 *   kind   TABLE: a row for each token;  MATRIX: a projection
 *          ROW_LIST, COL_LIST: projections that alone may have the layout whose rows or columns can
 *          be skipped
 *          STACK: projections of the same shape, one for each expert, in one tensor
 *          FLOATS: a matrix of floats
 *          NORM, BIAS, FACTORS: vectors in f32
 *   rows, cols   enum tn_dim; vectors have one row
 *   need   REQUIRED;  HEAD: unless the head is tied or the model has none;  WITH_HEAD: optional
 *          with such a head;  SHARED: if the model has a shared expert;  NORM: if the order of the
 *          layers' norms includes it;  NORM_BIAS: optional with a LayerNorm;  WIDTH: if the width
 *          of the embedding differs;  OPTIONAL: in all layers of the scope or in none;  ANY: in any
 *   hf     the name in Hugging Face files, between "model." or "model.layers.N." and ".weight" (a
 *          bias: ".bias").  "A|B" lists spellings, the usual one first.  "/name" has no prefix,
 *          "name." has no suffix, and "*" is the number of the expert; a STACK without "*" is one
 *          tensor [experts][rows][cols], as in GGUF files.  Families list their exceptions.
 *   gguf   the name in GGUF files, after "blk.N." for layers; "" if none */
/* clang-format off */
SLOT(EMBED,          MODEL, TABLE,    VOCAB,   EMBED,    REQUIRED,  "embed_tokens", "token_embd")
SLOT(HEAD,           MODEL, TABLE,    VOCAB,   EMBED,    HEAD,
     "/lm_head|/language_model.lm_head", "output")
SLOT(FINAL_NORM,     MODEL, NORM,     ONE,     HIDDEN,   NORM,      "norm", "output_norm")
SLOT(ATTN_NORM,      LAYER, NORM,     ONE,     HIDDEN,   NORM,      "input_layernorm", "attn_norm")
SLOT(FFN_NORM,       LAYER, NORM,     ONE,     HIDDEN,   NORM,
     "post_attention_layernorm", "ffn_norm")
SLOT(ATTN_SUB_NORM,  ATTN,  NORM,     ONE,     HEADS,    OPTIONAL,
     "self_attn.attn_sub_norm|self_attn.inner_attn_ln", "attn_sub_norm")
SLOT(FFN_SUB_NORM,   GATED, NORM,     ONE,     FFN,      OPTIONAL,
     "mlp.ffn_sub_norm|mlp.ffn_layernorm", "ffn_sub_norm")
SLOT(Q,              ATTN,  MATRIX,   HEADS,   HIDDEN,   REQUIRED,  "self_attn.q_proj", "attn_q")
SLOT(K,              ATTN,  MATRIX,   KV,      HIDDEN,   REQUIRED,  "self_attn.k_proj", "attn_k")
SLOT(V,              ATTN,  MATRIX,   KV,      HIDDEN,   REQUIRED,  "self_attn.v_proj", "attn_v")
SLOT(O,              ATTN,  MATRIX,   HIDDEN,  HEADS,    REQUIRED,
     "self_attn.o_proj", "attn_output")
SLOT(GATE,           GATED, MATRIX,   FFN,     HIDDEN,   REQUIRED,  "mlp.gate_proj", "ffn_gate")
SLOT(UP,             DENSE, ROW_LIST, FFN,     HIDDEN,   REQUIRED,  "mlp.up_proj", "ffn_up")
SLOT(DOWN,           DENSE, COL_LIST, HIDDEN,  FFN,      REQUIRED,  "mlp.down_proj", "ffn_down")
SLOT(Q_NORM,         ATTN,  NORM,     ONE,     HEAD_DIM, OPTIONAL,
     "self_attn.q_norm", "attn_q_norm")
SLOT(K_NORM,         ATTN,  NORM,     ONE,     HEAD_DIM, OPTIONAL,
     "self_attn.k_norm", "attn_k_norm")
SLOT(Q_BIAS,         ATTN,  BIAS,     ONE,     HEADS,    OPTIONAL,  "self_attn.q_proj", "attn_q")
SLOT(K_BIAS,         ATTN,  BIAS,     ONE,     KV,       OPTIONAL,  "self_attn.k_proj", "attn_k")
SLOT(V_BIAS,         ATTN,  BIAS,     ONE,     KV,       OPTIONAL,  "self_attn.v_proj", "attn_v")
SLOT(O_BIAS,         ATTN,  BIAS,     ONE,     HIDDEN,   OPTIONAL,
     "self_attn.o_proj", "attn_output")
SLOT(ATTN_POST_NORM, LAYER, NORM,     ONE,     HIDDEN,   OPTIONAL,  "", "post_attention_norm")
SLOT(FFN_POST_NORM,  LAYER, NORM,     ONE,     HIDDEN,   OPTIONAL,
     "post_feedforward_layernorm", "post_ffw_norm")
SLOT(Q_IN_NORM,      ATTN,  NORM,     ONE,     HIDDEN,   OPTIONAL,
     "self_attn.q_proj.norm|self_attn.q_proj.rms_norm", "attn_q_norm_in")
SLOT(K_IN_NORM,      ATTN,  NORM,     ONE,     HIDDEN,   OPTIONAL,
     "self_attn.k_proj.norm|self_attn.k_proj.rms_norm", "attn_k_norm_in")
SLOT(V_IN_NORM,      ATTN,  NORM,     ONE,     HIDDEN,   OPTIONAL,
     "self_attn.v_proj.norm|self_attn.v_proj.rms_norm", "attn_v_norm_in")
SLOT(O_IN_NORM,      ATTN,  NORM,     ONE,     HEADS,    OPTIONAL,
     "self_attn.o_proj.norm|self_attn.o_proj.rms_norm", "attn_output_norm_in")
SLOT(GATE_IN_NORM,   GATED, NORM,     ONE,     HIDDEN,   OPTIONAL,
     "mlp.gate_proj.norm|mlp.gate_proj.rms_norm", "ffn_gate_norm_in")
SLOT(UP_IN_NORM,     GATED, NORM,     ONE,     HIDDEN,   OPTIONAL,
     "mlp.up_proj.norm|mlp.up_proj.rms_norm", "ffn_up_norm_in")
SLOT(DOWN_IN_NORM,   GATED, NORM,     ONE,     FFN,      OPTIONAL,
     "mlp.down_proj.norm|mlp.down_proj.rms_norm", "ffn_down_norm_in")
SLOT(HEAD_IN_NORM,   MODEL, NORM,     ONE,     EMBED,    WITH_HEAD,
     "/lm_head.norm|/lm_head.rms_norm", "output_norm_in")
SLOT(ROPE_FACTORS,   ATTN,  FACTORS,  ONE,     ROPE,     ANY,       "", "")
SLOT(ROUTER,         EXPERTS, FLOATS, EXPERTS, HIDDEN,   REQUIRED,  "mlp.gate", "ffn_gate_inp")
SLOT(EXPERT_GATE,    EXPERTS, STACK,  EXPERT_FFN, HIDDEN, REQUIRED,
     "mlp.experts.*.gate_proj", "ffn_gate_exps")
SLOT(EXPERT_UP,      EXPERTS, STACK,  EXPERT_FFN, HIDDEN, REQUIRED,
     "mlp.experts.*.up_proj", "ffn_up_exps")
SLOT(EXPERT_DOWN,    EXPERTS, STACK,  HIDDEN,  EXPERT_FFN, REQUIRED,
     "mlp.experts.*.down_proj|mlp.experts.down_proj.", "ffn_down_exps")
SLOT(Q_GATE,         ATTN,  MATRIX,   HEADS,   HIDDEN,   OPTIONAL,  "", "")
SLOT(DELTA_QKV,      DELTA, MATRIX,   CHANNELS, HIDDEN,  REQUIRED,
     "linear_attn.in_proj_qkv", "attn_qkv")
SLOT(DELTA_Z,        DELTA, MATRIX,   VALUES,  HIDDEN,   REQUIRED,
     "linear_attn.in_proj_z", "attn_gate")
SLOT(DELTA_B,        DELTA, MATRIX,   N_HEAD,  HIDDEN,   REQUIRED,
     "linear_attn.in_proj_b", "ssm_beta")
SLOT(DELTA_A,        DELTA, MATRIX,   N_HEAD,  HIDDEN,   REQUIRED,
     "linear_attn.in_proj_a", "ssm_alpha")
SLOT(DELTA_OUT,      DELTA, MATRIX,   HIDDEN,  VALUES,   REQUIRED,
     "linear_attn.out_proj", "ssm_out")
SLOT(DELTA_CONV,     DELTA, FACTORS,  ONE,     TAPS,     REQUIRED,
     "linear_attn.conv1d", "ssm_conv1d")
SLOT(DELTA_DECAY,    DELTA, FACTORS,  ONE,     N_HEAD,   REQUIRED,
     "linear_attn.A_log.", "ssm_a.")
SLOT(DELTA_DT,       DELTA, BIAS,     ONE,     N_HEAD,   REQUIRED,
     "linear_attn.dt_bias.", "ssm_dt")
SLOT(DELTA_NORM,     DELTA, NORM,     ONE,     VALUE_DIM, REQUIRED,
     "linear_attn.norm", "ssm_norm")
SLOT(SHARED_ROUTER,  EXPERTS, FLOATS, ONE,     HIDDEN,   SHARED,
     "mlp.shared_expert_gate", "ffn_gate_inp_shexp")
SLOT(SHARED_GATE,    EXPERTS, MATRIX, SHARED_FFN, HIDDEN, SHARED,
     "mlp.shared_expert.gate_proj", "ffn_gate_shexp")
SLOT(SHARED_UP,      EXPERTS, MATRIX, SHARED_FFN, HIDDEN, SHARED,
     "mlp.shared_expert.up_proj", "ffn_up_shexp")
SLOT(SHARED_DOWN,    EXPERTS, MATRIX, HIDDEN,  SHARED_FFN, SHARED,
     "mlp.shared_expert.down_proj", "ffn_down_shexp")
SLOT(ATTN_NORM_BIAS, LAYER, BIAS,     ONE,     HIDDEN,   NORM_BIAS, "input_layernorm", "attn_norm")
SLOT(FFN_NORM_BIAS,  LAYER, BIAS,     ONE,     HIDDEN,   NORM_BIAS,
     "post_attention_layernorm", "ffn_norm")
SLOT(FINAL_NORM_BIAS, MODEL, BIAS,    ONE,     HIDDEN,   NORM_BIAS, "norm", "output_norm")
SLOT(GATE_BIAS,      GATED, BIAS,     ONE,     FFN,      OPTIONAL,  "mlp.gate_proj", "ffn_gate")
SLOT(UP_BIAS,        DENSE, BIAS,     ONE,     FFN,      OPTIONAL,  "mlp.up_proj", "ffn_up")
SLOT(DOWN_BIAS,      DENSE, BIAS,     ONE,     HIDDEN,   OPTIONAL,  "mlp.down_proj", "ffn_down")
SLOT(Q_ALL_NORM,     ATTN,  NORM,     ONE,     HEADS,    OPTIONAL,  "", "")
SLOT(K_ALL_NORM,     ATTN,  NORM,     ONE,     KV,       OPTIONAL,  "", "")
SLOT(POSITIONS,      MODEL, FLOATS,   CONTEXT, HIDDEN,   OPTIONAL,  "", "position_embd")
SLOT(HEAD_BIAS,      MODEL, BIAS,     ONE,     VOCAB,    OPTIONAL,  "/lm_head", "output")
SLOT(EMBED_IN,       MODEL, MATRIX,   HIDDEN,  EMBED,    WIDTH,     "", "")
SLOT(EMBED_OUT,      MODEL, MATRIX,   EMBED,   HIDDEN,   WIDTH,     "", "")
SLOT(DRAFT_EMBED_NORM, DRAFT, NORM,   ONE,     HIDDEN,   REQUIRED,
     "pre_fc_norm_embedding", "nextn.enorm")
SLOT(DRAFT_STATE_NORM, DRAFT, NORM,   ONE,     HIDDEN,   REQUIRED,
     "pre_fc_norm_hidden", "nextn.hnorm")
SLOT(DRAFT_FC,       DRAFT, MATRIX,   HIDDEN,  PAIR,     REQUIRED,  "fc", "nextn.eh_proj")
SLOT(DRAFT_NORM,     DRAFT, NORM,     ONE,     HIDDEN,   REQUIRED,
     "norm", "nextn.shared_head_norm")
/* clang-format on */
