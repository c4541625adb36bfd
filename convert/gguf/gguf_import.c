/* SPDX-License-Identifier: MIT
 *
 * Reads the keys that all architectures share: "ARCH.block_count" and so on.  Rows of
 * src/arch/families/ read those that differ.
 */
#include "convert/gguf/gguf_import.h"

#include <float.h>
#include <math.h>
#include <string.h>

#include "base/compiler.h"
#include "base/error.h"
#include "convert/gguf/gguf.h"
#include "convert/gguf/gguf_values.h"
#include "convert/rope_scaling.h"

struct importer {
    struct tn_config_import *out;
    struct tn_source *source;
    const struct tn_gguf_arch *arch;
    struct tn_gguf_values values;
    struct tern_error *err;
};

/* ---- keys ---- */

const char *tn_gguf_text(const struct tn_gguf *gguf, const char *name, size_t *n)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(gguf, name);
    const bool is_text = key && key->type == TN_GGUF_STRING;
    *n = is_text ? (size_t)key->count : 0;
    return is_text ? key->text : NULL;
}

/* An integer in [min, max]; absent: *out is unchanged, or an error if it is required. */
static tern_status get_integer(struct importer *i, uint32_t *out, const char *name, uint32_t min,
                               uint32_t max, bool is_required)
{
    const struct tn_values *v = &i->values.values;
    return v->integer(v, out, name, min, max, is_required);
}

static tern_status get_number(struct importer *i, double *out, const char *name, double min,
                              double max, bool is_required)
{
    const struct tn_values *v = &i->values.values;
    return v->number(v, out, name, min, max, is_required);
}

/* ---- which architecture ---- */

static tern_status fail_architecture(struct importer *i, const char *name)
{
    char known[400] = "";
    size_t n = 0, k = 0;
    for (const struct tn_family *const *f = tn_families; *f; f++)
        for (const struct tn_gguf_arch *arch = (*f)->gguf; arch->name; arch++)
            n++;
    for (const struct tn_family *const *f = tn_families; *f; f++)
        for (const struct tn_gguf_arch *arch = (*f)->gguf; arch->name; arch++)
            tn_list_add(known, sizeof known, k++, n, arch->name);
    return tn_fail(i->err, TERN_UNSUPPORTED,
                   "the architecture \"%.48s\" is not supported; tern has %s", name, known);
}

static tern_status find_architecture(struct importer *i)
{
    size_t n;
    const char *name = tn_gguf_text(i->source->gguf, "general.architecture", &n);
    if (!name)
        return tn_fail(i->err, TERN_INPUT,
                       "key \"general.architecture\" is missing or not a text: tern does not know "
                       "what this file is");
    i->out->family = tn_family_of_gguf(name, &i->arch);
    i->values.arch = name;
    if (!i->out->family)
        return fail_architecture(i, name);
    i->out->fixups = i->out->family->gguf_fixups;
    tn_config_apply_family(i->out);
    return TERN_OK;
}

/* ---- sizes ---- */

static tern_status read_heads(struct importer *i)
{
    struct tern_file_config *c = &i->out->config;
    uint32_t value_length = 0;
    tern_status status = tn_gguf_values_per_layer(&i->values, &c->n_head, "attention.head_count",
                                                  false, TERN_MAX_DIM, true);
    c->n_kv_head = c->n_head;
    if (status == TERN_OK)
        status = tn_gguf_values_per_layer(&i->values, &c->n_kv_head, "attention.head_count_kv",
                                          true, TERN_MAX_DIM, false);
    if (status != TERN_OK)
        return status;
    if (c->n_head % c->n_kv_head)
        return tn_fail(i->err, TERN_INPUT,
                       "attention.head_count_kv %u does not divide attention.head_count %u",
                       c->n_kv_head, c->n_head);
    if (c->hidden % c->n_head == 0)
        c->head_dim = c->hidden / c->n_head;
    status = get_integer(i, &c->head_dim, "attention.key_length", 2, TERN_MAX_DIM, false);
    value_length = c->head_dim;
    if (status == TERN_OK)
        status = get_integer(i, &value_length, "attention.value_length", 2, TERN_MAX_DIM, false);
    if (status != TERN_OK)
        return status;
    if (value_length != c->head_dim)
        return tn_fail(i->err, TERN_UNSUPPORTED,
                       "attention.value_length %u differs from attention.key_length %u",
                       value_length, c->head_dim);
    if (c->head_dim == 0 || c->head_dim % 2 || (uint64_t)c->n_head * c->head_dim > TERN_MAX_DIM)
        return tn_fail(i->err, TERN_INPUT,
                       "%u heads of %u values at a width of %u: a head must have an even number of "
                       "them, all together at most %u",
                       c->n_head, c->head_dim, c->hidden, TERN_MAX_DIM);
    return TERN_OK;
}

/* If all layers have experts, their width may be the only one. */
static const char *ffn_key(struct importer *i)
{
    const struct tn_values *v = &i->values.values;
    return v->has_key(v, "feed_forward_length") || !v->has_key(v, "expert_feed_forward_length")
               ? "feed_forward_length"
               : "expert_feed_forward_length";
}

/* The rows of the embeddings, which a key may confirm. */
static tern_status read_vocab(struct importer *i)
{
    struct tern_file_config *c = &i->out->config;
    const struct tn_source_tensor *embed = tn_source_find(i->source, "token_embd.weight");
    if (!embed || embed->rank != 2 || embed->shape[0] == 0 || embed->shape[0] > TERN_MAX_VOCAB)
        return tn_fail(i->err, TERN_INPUT,
                       "tensor \"token_embd.weight\" is missing, or has not 1 to %u rows",
                       TERN_MAX_VOCAB);
    c->vocab = (uint32_t)embed->shape[0];
    uint32_t vocab = c->vocab;
    tern_status status = get_integer(i, &vocab, "vocab_size", 1, TERN_MAX_VOCAB, false);
    if (status == TERN_OK && vocab != c->vocab)
        status = tn_fail(i->err, TERN_INPUT,
                         "vocab_size is %u, but tensor \"token_embd.weight\" has %u rows", vocab,
                         c->vocab);
    return status;
}

static tern_status read_sizes(struct importer *i)
{
    struct tern_file_config *c = &i->out->config;
    const struct {
        const char *name;
        uint32_t *out;
        uint32_t max;
    } rows[] = {
        {"embedding_length", &c->hidden, TERN_MAX_DIM},
        {"block_count", &c->n_layer, TERN_MAX_LAYERS},
        {"context_length", &c->context, TERN_MAX_CONTEXT},
    };
    tern_status status = TERN_OK;
    for (size_t k = 0; k < TN_COUNT_OF(rows) && status == TERN_OK; k++)
        status = get_integer(i, rows[k].out, rows[k].name, 1, rows[k].max, true);
    if (status == TERN_OK)
        status = get_integer(i, &i->out->n_draft_layers, "nextn_predict_layers", 0,
                             c->n_layer - 1, false);
    if (status != TERN_OK)
        return status;
    c->n_layer -= i->out->n_draft_layers;
    i->values.n_layer = c->n_layer;
    status = tn_gguf_values_per_layer(&i->values, &c->ffn, ffn_key(i), false, TERN_MAX_DIM, true);
    if (status == TERN_OK)
        status = read_vocab(i);
    return status == TERN_OK ? read_heads(i) : status;
}

/* ---- rotation ---- */

/* Reads a vector with one float per pair of a head. */
static tern_status read_factors(struct importer *i, const char *name)
{
    const uint32_t n = i->out->rope_dims / 2;
    struct tn_source_tensor *t = tn_source_find(i->source, name);
    if (!t)
        return tn_fail(i->err, TERN_INPUT, "tensor \"%s\" is missing", name);
    t->was_requested = true;
    if (t->dtype != TN_DTYPE_F32 || t->rank != 1 || t->shape[0] != n)
        return tn_fail(i->err, TERN_INPUT, "tensor \"%s\" is not F32 [%u]", name, n);
    tern_status status = tn_rope_factors_alloc(i->out, i->err);
    if (status == TERN_OK)
        status = tn_source_read(i->source, t, 0, i->out->rope_factors, n * sizeof(float), i->err);
    for (uint32_t j = 0; j < n && status == TERN_OK; j++)
        if (!(i->out->rope_factors[j] >= TERN_MIN_ROPE_FACTOR && i->out->rope_factors[j] <= 1e6f))
            status = tn_fail(i->err, TERN_INPUT, "tensor \"%s\"[%u] is %g, allowed are %g to 1e6",
                             name, j, tn_shown_number((double)i->out->rope_factors[j]),
                             (double)TERN_MIN_ROPE_FACTOR);
    return status;
}

/* Reads a key that changes YaRN in an unknown way: refuses any value but the usual one, *value
 * before the call, and `unset`, which llama.cpp writes for it when it saves a model. */
static tern_status read_usual(struct importer *i, double *value, const char *name, double unset)
{
    const double usual = *value;
    tern_status status = get_number(i, value, name, -1e6, 1e6, false);
    if (status == TERN_OK && *value != unset && fabs(*value - usual) > 1e-3)
        status = tn_fail(i->err, TERN_UNSUPPORTED, "%s %g is not supported, only %.4g is", name,
                         *value, usual);
    return status;
}

static tern_status read_yarn(struct importer *i, double theta)
{
    struct tn_yarn yarn = {1, i->out->config.context, 32, 1, false};
    tern_status status = get_number(i, &yarn.factor, "rope.scaling.factor", 1, 1e6, true);
    if (status == TERN_OK)
        status = get_number(i, &yarn.original, "rope.scaling.original_context_length", 1,
                            TERN_MAX_CONTEXT, false);
    if (status == TERN_OK)
        status = get_number(i, &yarn.beta_fast, "rope.scaling.yarn_beta_fast", 1e-3, 1e6, false);
    if (status == TERN_OK)
        status = get_number(i, &yarn.beta_slow, "rope.scaling.yarn_beta_slow", 1e-3, 1e6, false);
    const double magnitude = tn_yarn_magnitude(yarn.factor, 1);
    double extends = 1, attention = magnitude, multiplier = 0;
    if (status == TERN_OK)
        status = read_usual(i, &extends, "rope.scaling.yarn_ext_factor", -1);
    if (status == TERN_OK) /* 1 may also be meant, if llama.cpp did not write the file */
        status = read_usual(i, &attention, "rope.scaling.yarn_attn_factor",
                            extends == -1 ? 1 : magnitude);
    if (status == TERN_OK)
        status = read_usual(i, &multiplier, "rope.scaling.yarn_log_multiplier", 0);
    if (status != TERN_OK)
        return status;
    status = tn_magnify_rotations(i->out, magnitude, i->err);
    return status == TERN_OK ? tn_yarn_factors(i->out, &yarn, theta, i->err) : status;
}

static tern_status read_longrope(struct importer *i)
{
    struct tn_source_tensor *beyond = tn_source_find(i->source, "rope_factors_long.weight");
    if (beyond)
        beyond->was_requested = true;
    tern_status status =
        get_integer(i, &i->out->original_context, "rope.scaling.original_context_length", 1,
                    TERN_MAX_CONTEXT, false);
    return status == TERN_OK ? read_factors(i, "rope_factors_short.weight") : status;
}

/* The frequencies of LLaMA 3 in a tensor, if the file has it, divided by `factor`. */
static tern_status read_frequencies(struct importer *i, double factor)
{
    static const char name[] = "rope_freqs.weight";
    if (!tn_source_find(i->source, name))
        return factor != 1 ? tn_linear_factors(i->out, factor, i->err) : TERN_OK;
    tern_status status = read_factors(i, name);
    for (uint32_t j = 0; j < i->out->rope_dims / 2 && status == TERN_OK; j++)
        i->out->rope_factors[j] *= (float)factor;
    return status;
}

/* A factor without a type is linear, as in llama.cpp; 0 and none mean 1.  The second name is that
 * of the first GGUF files. */
static tern_status read_linear(struct importer *i)
{
    static const char new_name[] = "rope.scaling.factor", old_name[] = "rope.scale_linear";
    const struct tn_values *v = &i->values.values;
    const char *name = v->has_key(v, old_name) && !v->has_key(v, new_name) ? old_name : new_name;
    double factor = 1;
    tern_status status = get_number(i, &factor, name, 0, 1e6, false);
    if (status == TERN_OK && factor != 0)
        status = get_number(i, &factor, name, 1, 1e6, false);
    return status == TERN_OK ? read_frequencies(i, factor != 0 ? factor : 1) : status;
}

static tern_status read_scaling(struct importer *i, double theta)
{
    char full[TN_GGUF_NAME_BYTES];
    const struct tn_gguf_key *key = tn_gguf_values_find(&i->values, full, "rope.scaling.type");
    double magnitude = 1;
    if (key && key->type != TN_GGUF_STRING)
        return tn_gguf_fail_type(key, "a text", i->err);
    const char *type = key ? key->text : "none";
    tern_status status = get_number(i, &magnitude, "rope.scaling.attn_factor",
                                    (double)TERN_MIN_ROPE_SCALE, (double)TERN_MAX_ROPE_SCALE,
                                    false);
    if (status == TERN_OK)
        status = tn_magnify_rotations(i->out, magnitude, i->err);
    if (status != TERN_OK)
        return status;
    if (strcmp(type, "longrope") == 0 || tn_source_find(i->source, "rope_factors_short.weight"))
        return read_longrope(i);
    if (strcmp(type, "yarn") == 0)
        return read_yarn(i, theta);
    if (!key || strcmp(type, "linear") == 0)
        return read_linear(i);
    if (strcmp(type, "none") != 0)
        return tn_fail(i->err, TERN_UNSUPPORTED, "key \"%s\" is \"%.40s\", which is not supported",
                       full, type);
    return read_frequencies(i, 1);
}

static tern_status read_activation(struct importer *i, uint32_t *out)
{
    char full[TN_GGUF_NAME_BYTES];
    const struct tn_gguf_key *key = tn_gguf_values_find(&i->values, full, "hidden_activation");
    *out = i->arch->activation;
    if (!key)
        return TERN_OK;
    const char *name = key->type == TN_GGUF_STRING ? key->text : "";
    if (strcmp(name, "relu2") == 0 || strcmp(name, "relu_sqr") == 0)
        *out = TERN_ACT_RELU2;
    else if (strcmp(name, "silu") == 0)
        *out = TERN_ACT_SILU;
    else if (strcmp(name, "gelu_pytorch_tanh") == 0)
        *out = TERN_ACT_GELU_TANH;
    else
        return tn_fail(i->err, TERN_UNSUPPORTED, "key \"%s\" is \"%.40s\", which is not supported",
                       full, name);
    return TERN_OK;
}

/* ---- layers ---- */

/* Lets the family read its keys, then reads the keys that apply to any architecture. */
static tern_status apply_family(struct importer *i)
{
    struct tn_config_import *out = i->out;
    struct tn_family_spec spec = {.config = &out->config, .layers = out->layers};
    double score_scale = 0;
    tern_status status = out->family->spec ? out->family->spec(&spec, &i->values.values) : TERN_OK;
    if (status == TERN_OK)
        status = get_number(i, &score_scale, "attention.scale", 1e-6, 1e6, false);
    for (uint32_t k = 0; k < out->config.n_layer && score_scale > 0; k++)
        out->layers[k].score_scale = (float)score_scale;
    return status;
}

static tern_status read_layers(struct importer *i)
{
    struct tn_config_import *out = i->out;
    const struct tern_file_config *c = &out->config;
    double theta = 10000;
    uint32_t activation = 0;
    out->rope_dims = c->head_dim;
    tern_status status = read_activation(i, &activation);
    if (status == TERN_OK)
        status = get_number(i, &theta, "rope.freq_base", 1, 1e12, false);
    if (status == TERN_OK)
        status = get_integer(i, &out->rope_dims, "rope.dimension_count", 1, TERN_MAX_DIM, false);
    if (status != TERN_OK)
        return status;
    if (out->rope_dims != c->head_dim && !out->family->rotates_partly)
        return tn_fail(i->err, TERN_UNSUPPORTED, "rope.dimension_count %u is not the %u of a head",
                       out->rope_dims, c->head_dim);
    if (out->rope_dims > c->head_dim || out->rope_dims % 2)
        return tn_fail(i->err, TERN_INPUT,
                       "rope.dimension_count is %u: it must be an even number of the %u values of "
                       "a head",
                       out->rope_dims, c->head_dim);
    status = tn_config_make_layers(out, i->err);
    if (status != TERN_OK)
        return status;
    tn_config_fill_layers(out, activation, theta);
    status = apply_family(i);
    return status == TERN_OK ? read_scaling(i, theta) : status;
}

/* ---- scales of states, pooling ---- */

/* Refuses keys that change the graph: of other architectures, and attention to later tokens. */
static tern_status refuse_others(struct importer *i)
{
    const struct tn_family *f = i->out->family;
    const struct {
        const char *name, *what;
        bool is_read;
    } rows[] = {
        {"attention.sliding_window", "windows", f->has_windows},
        {"attn_logit_softcapping", "caps", f->has_caps},
        {"final_logit_softcapping", "caps", f->has_caps},
        {"expert_count", "experts", i->out->config.n_experts != 0},
        {"expert_shared_count", "shared experts", i->out->config.shared_ffn != 0},
    };
    char full[TN_GGUF_NAME_BYTES];
    const struct tn_gguf_key *causal = tn_gguf_values_find(&i->values, full, "attention.causal");
    tern_status status = TERN_OK;
    if (causal && (causal->type != TN_GGUF_BOOL || causal->value.u == 0))
        return tn_fail(i->err, TERN_UNSUPPORTED, "key \"%s\" is not true: only causal models run",
                       full);
    for (size_t k = 0; k < TN_COUNT_OF(rows) && status == TERN_OK; k++) {
        double value = 0;
        status = rows[k].is_read ? TERN_OK : get_number(i, &value, rows[k].name, 0, 1e9, false);
        if (status == TERN_OK && value != 0)
            status = tn_fail(i->err, TERN_UNSUPPORTED,
                             "%s %g: %s are supported in other architectures only", rows[k].name,
                             value, rows[k].what);
    }
    return status;
}

static tern_status read_scales(struct importer *i)
{
    struct tern_file_config *c = &i->out->config;
    double embedding = 1, residual = 1, logits = 1, eps = 0;
    tern_status status =
        get_number(i, &eps,
                   i->out->family->norm == TERN_NORM_LAYER ? "attention.layer_norm_epsilon"
                                                           : "attention.layer_norm_rms_epsilon",
                   (double)FLT_MIN, 1, true);
    if (status == TERN_OK)
        status = get_number(i, &embedding, "embedding_scale", 1e-6, 1e6, false);
    if (status == TERN_OK)
        status = get_number(i, &residual, "residual_scale", 1e-6, 1e6, false);
    if (status == TERN_OK)
        status = get_number(i, &logits, "logit_scale", 1e-6, 1e6, false);
    c->rms_eps = c->in_norm_eps = (float)eps;
    c->embedding_scale = (float)embedding;
    c->residual_scale = (float)residual;
    c->logit_scale = (float)(1 / logits);
    return status;
}

/* An embedding model states its pooling. */
static tern_status read_pooling(struct importer *i)
{
    uint32_t pooling = 0;
    tern_status status = get_integer(i, &pooling, "pooling_type", 0, 4, false);
    if (status != TERN_OK || pooling == 0)
        return status;
    if (pooling > TERN_POOLING_LAST)
        return tn_fail(i->err, TERN_UNSUPPORTED, "pooling_type 4 (ranking) is not supported");
    i->out->config.pooling = pooling;
    i->out->config.flags |= TERN_MODEL_NO_HEAD;
    return TERN_OK;
}

/* ---- ids ---- */

static tern_status read_id(struct importer *i, uint32_t *out, const char *name)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(i->source->gguf, name);
    double d = 0;
    *out = TERN_NO_ID;
    if (!key)
        return TERN_OK;
    if (!tn_gguf_integer(key, &d))
        return tn_gguf_fail_type(key, "an integer", i->err);
    if (d == -1 || d == UINT32_MAX) /* "no id" */
        return TERN_OK;
    const double last = (double)i->out->config.vocab - 1;
    tern_status status = tn_gguf_check_range(&i->values, key, d, 0, last);
    if (status == TERN_OK)
        *out = (uint32_t)d;
    return status;
}

static tern_status read_ids(struct importer *i)
{
    static const char *const stops[] = {"tokenizer.ggml.eos_token_id",
                                        "tokenizer.ggml.eot_token_id",
                                        "tokenizer.ggml.eom_token_id"};
    tern_status status = read_id(i, &i->out->config.bos_id, "tokenizer.ggml.bos_token_id");
    for (size_t k = 0; k < TN_COUNT_OF(stops) && status == TERN_OK; k++) {
        uint32_t id;
        status = read_id(i, &id, stops[k]);
        if (status == TERN_OK && id != TERN_NO_ID)
            (void)tn_stop_ids_add(&i->out->stop_ids, id); /* has room for all */
    }
    return status;
}

/* ---- whether training rounded inputs ---- */

/* No key states it, so the names of published files are the evidence. */
static const struct {
    const char *word; /* in lower case */
    enum tn_inputs_said inputs;
} words_of_names[] = {
    {"trilm", TN_INPUTS_FLOAT}, {"bonsai", TN_INPUTS_FLOAT},  {"bitcpm", TN_INPUTS_FLOAT},
    {"1.58", TN_INPUTS_INT8},   {"1bit", TN_INPUTS_INT8},     {"bitnet", TN_INPUTS_INT8},
    {"falcon-e", TN_INPUTS_INT8},
};

static enum tn_inputs_said inputs_of_name(const struct tn_gguf *gguf, const char *key)
{
    char name[256];
    size_t n;
    const char *text = tn_gguf_text(gguf, key, &n);
    n = text ? TN_MIN(n, sizeof name - 1) : 0;
    for (size_t k = 0; k < n; k++)
        name[k] = (char)(text[k] >= 'A' && text[k] <= 'Z' ? text[k] - 'A' + 'a' : text[k]);
    name[n] = '\0';
    for (size_t k = 0; k < TN_COUNT_OF(words_of_names); k++)
        if (strstr(name, words_of_names[k].word))
            return words_of_names[k].inputs;
    return TN_INPUTS_UNSAID;
}

/* Copies token i of a vocabulary as a string; "" if it is too long for the token of any scheme. */
static void copy_token(char out[32], const struct tn_gguf_texts *texts, uint32_t i)
{
    const uint32_t begin = texts->offsets[i], n = texts->offsets[i + 1] - begin;
    const bool fits = n < 32 && !memchr(texts->bytes + begin, '\0', n);
    memcpy(out, texts->bytes + begin, fits ? n : 0);
    out[fits ? n : 0] = '\0';
}

/* Finds the scheme for which the vocabulary is evidence; NULL: none. */
static tern_status find_by_vocabulary(const struct tn_scheme **out, const struct importer *i)
{
    const struct tn_gguf_key *key = tn_gguf_find_key(i->source->gguf, "tokenizer.ggml.tokens");
    struct tn_gguf_texts texts;
    char first[32], second[32];
    *out = NULL;
    if (!key || key->type != TN_GGUF_ARRAY || key->element_type != TN_GGUF_STRING ||
        key->count < 2)
        return TERN_OK;
    tern_status status = tn_gguf_load_texts(&texts, i->source->gguf, key, i->err);
    if (status != TERN_OK)
        return status;
    copy_token(first, &texts, 0);
    copy_token(second, &texts, 1);
    *out = tn_scheme_of_vocabulary(first, second);
    tn_gguf_texts_fini(&texts);
    return TERN_OK;
}

static tern_status look_for_inputs(struct importer *i)
{
    static const char *const keys[] = {"general.name", "general.basename",
                                       "general.base_model.0.name"};
    enum tn_inputs_said *said = &i->out->inputs_said, named = TN_INPUTS_UNSAID;
    for (size_t k = 0; k < TN_COUNT_OF(keys) && named == TN_INPUTS_UNSAID; k++)
        named = inputs_of_name(i->source->gguf, keys[k]);
    i->out->says_ternary = i->out->says_ternary || named != TN_INPUTS_UNSAID;
    if (*said == TN_INPUTS_UNSAID)
        *said = named;
    if (*said != TN_INPUTS_UNSAID)
        return TERN_OK;
    const struct tn_scheme *scheme;
    tern_status status = find_by_vocabulary(&scheme, i);
    if (scheme)
        *said = scheme->inputs;
    return status;
}

/* ---- the whole import ---- */

static void recognise(struct importer *i)
{
    struct tn_config_import *out = i->out;
    out->rule = TN_WEIGHTS_FOUND;
    const struct tn_scheme *scheme = tn_scheme_find(&i->values.values);
    if (scheme)
        tn_config_apply_scheme(out, scheme);
    if (!tn_source_find(i->source, "output.weight") && !(out->config.flags & TERN_MODEL_NO_HEAD))
        out->config.flags |= TERN_MODEL_TIED_HEAD;
}

static tern_status import(struct importer *i)
{
    tern_status status = find_architecture(i);
    if (status == TERN_OK)
        status = read_sizes(i);
    if (status == TERN_OK)
        status = read_scales(i);
    if (status == TERN_OK)
        status = read_layers(i);
    if (status == TERN_OK)
        status = refuse_others(i);
    if (status == TERN_OK)
        status = tn_rotation_import(&i->out->rotation, i->source, i->out->layers,
                                    i->out->config.n_layer, i->err);
    if (status == TERN_OK)
        status = read_pooling(i);
    if (status == TERN_OK)
        status = read_ids(i);
    if (status == TERN_OK)
        recognise(i);
    return status == TERN_OK ? look_for_inputs(i) : status;
}

tern_status tn_gguf_import(struct tn_config_import *out, struct tn_source *source,
                           struct tern_error *err)
{
    struct importer i = {.out = out, .source = source, .err = err};
    memset(out, 0, sizeof *out);
    tn_config_default(&out->config);
    tn_gguf_values_init(&i.values, source, err);
    const tern_status status = import(&i);
    tn_gguf_values_fini(&i.values);
    if (status != TERN_OK)
        tn_config_import_fini(out);
    return status;
}
