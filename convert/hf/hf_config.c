/* SPDX-License-Identifier: MIT
 *
 * Reads config.json and generation_config.json.  In published files a key can occur twice (the last
 * one wins), unused keys hold NaN, Infinity and integers beyond 64 bits, and an integer can be
 * written as 500000.0.  So every number is read as a double, and a key that takes an integer checks
 * that it got one.
 */
#include "convert/hf/hf_config.h"

#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/error.h"
#include "base/json_load.h"
#include "convert/hf/config_values.h"
#include "file/wrong_file.h"
#include "plat/plat.h"

#define CONFIG TN_CONFIG_FILE
#define GENERATION TN_GENERATION_FILE
#define JSON_FLAGS (JSON_DECODE_INT_AS_REAL | TN_JSON_NOT_FINITE_AS_TEXT)

tern_status tn_dir_read_text(char **text, size_t *n_text, const char *dir, const char *name,
                             size_t max_bytes, struct tern_error *err)
{
    *text = NULL;
    *n_text = 0;
    char *path = tn_path_join(dir, name);
    if (!path)
        return tn_fail(err, TERN_MEMORY, "%s: no memory to open it", name);
    tern_status status = TERN_OK;
    const enum tn_path_kind kind = tn_path_kind(path);
    if (kind == TN_PATH_OTHER) /* opening a named pipe would wait for a writer */
        status = tn_fail(err, TERN_INPUT, "%s: is not a regular file", path);
    else if (kind != TN_PATH_ABSENT)
        status = tn_file_read_all(text, n_text, path, max_bytes, err);
    tn_free(path);
    const char *wrong = status == TERN_OK && *text ? tn_wrong_file_text(*text, *n_text) : NULL;
    if (wrong) {
        tn_free(*text);
        *text = NULL;
        status = tn_fail(err, TERN_INPUT, "%s: is %s", name, wrong);
    }
    return status;
}

/* ---- sizes ---- */

static tern_status parse_tie(enum tn_tie *out, const json_t *root, struct tern_error *err)
{
    const json_t *tie = json_object_get(root, "tie_word_embeddings");
    *out = json_is_true(tie) ? TN_TIE_YES : json_is_false(tie) ? TN_TIE_NO : TN_TIE_UNSAID;
    if (tn_json_is_absent(tie) || json_is_boolean(tie))
        return TERN_OK;
    return tn_fail(err, TERN_INPUT, CONFIG ": \"tie_word_embeddings\" is not true or false");
}

/* head_dim is hidden / n_head unless the file states it. */
static tern_status parse_heads(struct tern_file_config *c, const struct tn_family *family,
                               const json_t *root, struct tern_error *err)
{
    const char *kv_key = "num_key_value_heads";
    const char *key = tn_family_key(family, "num_attention_heads");
    const json_t *n_kv = json_object_get(root, kv_key);
    const json_t *head_dim = json_object_get(root, "head_dim");
    tern_status status =
        tn_config_integer(&c->n_head, key, json_object_get(root, key), 1, TERN_MAX_DIM, err);
    if (status != TERN_OK)
        return status;
    c->n_kv_head = c->n_head;
    if (!tn_json_is_absent(n_kv))
        status = tn_config_integer(&c->n_kv_head, kv_key, n_kv, 1, TERN_MAX_DIM, err);
    if (status != TERN_OK)
        return status;
    if (c->n_head % c->n_kv_head)
        return tn_fail(err, TERN_INPUT,
                       CONFIG ": \"%s\" %u does not divide \"%s\" %u", kv_key, c->n_kv_head,
                       key, c->n_head);
    if (!tn_json_is_absent(head_dim)) {
        status = tn_config_integer(&c->head_dim, "head_dim", head_dim, 2, TERN_MAX_DIM, err);
        if (status != TERN_OK)
            return status;
    } else if (c->hidden % c->n_head) {
        return tn_fail(err, TERN_INPUT,
                       CONFIG ": \"%s\" %u does not divide \"%s\" %u", key, c->n_head,
                       tn_family_key(family, "hidden_size"), c->hidden);
    } else {
        c->head_dim = c->hidden / c->n_head;
    }
    if (c->head_dim % 2)
        return tn_fail(err, TERN_INPUT, CONFIG ": head_dim is %u, but must be even", c->head_dim);
    if ((uint64_t)c->n_head * c->head_dim > TERN_MAX_DIM)
        return tn_fail(err, TERN_INPUT,
                       CONFIG ": num_attention_heads * head_dim is %u * %u, at most %u is allowed",
                       c->n_head, c->head_dim, TERN_MAX_DIM);
    return TERN_OK;
}

/* If all layers have experts, their width may be the only one. */
static const char *ffn_key(const struct tn_family *family, const json_t *root)
{
    const char *usual = tn_family_key(family, "intermediate_size");
    return json_object_get(root, usual) || !json_object_get(root, "moe_intermediate_size")
               ? usual
               : "moe_intermediate_size";
}

static tern_status parse_sizes(struct tern_file_config *c, const struct tn_family *family,
                               const json_t *root, struct tern_error *err)
{
    const struct {
        const char *usual;
        uint32_t *out;
        uint32_t max;
    } rows[] = {
        {"hidden_size", &c->hidden, TERN_MAX_DIM},
        {ffn_key(family, root), &c->ffn, TERN_MAX_DIM},
        {"num_hidden_layers", &c->n_layer, TERN_MAX_LAYERS},
        {"vocab_size", &c->vocab, TERN_MAX_VOCAB},
        {"max_position_embeddings", &c->context, TERN_MAX_CONTEXT},
    };
    for (size_t i = 0; i < TN_COUNT_OF(rows); i++) {
        const char *key = tn_family_key(family, rows[i].usual);
        const json_t *value = json_object_get(root, key);
        if (rows[i].out == &c->ffn && tn_json_is_absent(value) && family->ffn_factor) {
            c->ffn = TN_MIN(c->hidden * family->ffn_factor, TERN_MAX_DIM);
            continue;
        }
        tern_status status = tn_config_integer(rows[i].out, key, value, 1, rows[i].max, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

/* ---- ids ---- */

static tern_status get_id(uint32_t *out, const char *file, const char *key, const json_t *value,
                          uint32_t vocab, struct tern_error *err)
{
    if (!json_is_number(value))
        return tn_fail(err, TERN_INPUT, "%s: \"%s\" is not an id", file, key);
    const double d = json_number_value(value);
    if (!(d >= 0 && d < vocab) || d != floor(d))
        return tn_fail(err, TERN_INPUT, "%s: \"%s\" is %.15g, the vocabulary has ids 0 to %u",
                       file, key, d, vocab - 1);
    *out = (uint32_t)d;
    return TERN_OK;
}

static tern_status add_stop_id(struct tn_stop_ids *stop_ids, const char *file, const json_t *value,
                               uint32_t vocab, struct tern_error *err)
{
    uint32_t id = TERN_NO_ID;
    tern_status status = get_id(&id, file, "eos_token_id", value, vocab, err);
    if (status == TERN_OK && !tn_stop_ids_add(stop_ids, id))
        status = tn_fail(err, TERN_UNSUPPORTED, "%s: \"eos_token_id\" holds more than %u ids", file,
                         TN_MAX_STOP_IDS);
    return status;
}

/* The value of a key in generation_config.json, else in config.json; NULL if neither has it. */
static const json_t *newest(const json_t *generation, const json_t *root, const char *key,
                            const char **file)
{
    const json_t *value = json_object_get(generation, key);
    *file = GENERATION;
    if (tn_json_is_absent(value)) {
        value = json_object_get(root, key);
        *file = CONFIG;
    }
    return tn_json_is_absent(value) ? NULL : value;
}

/* Every end-of-text id stops the model, not only the first. */
static tern_status parse_ids(struct tn_config_import *out, const json_t *root,
                             const json_t *generation, struct tern_error *err)
{
    struct tern_file_config *c = &out->config;
    const char *file;
    tern_status status = TERN_OK;
    c->bos_id = TERN_NO_ID;
    const json_t *bos = newest(generation, root, "bos_token_id", &file);
    if (bos)
        status = get_id(&c->bos_id, file, "bos_token_id", bos, c->vocab, err);
    const json_t *eos = newest(generation, root, "eos_token_id", &file);
    if (eos && !json_is_array(eos) && status == TERN_OK)
        status = add_stop_id(&out->stop_ids, file, eos, c->vocab, err);
    for (size_t i = 0; i < json_array_size(eos) && status == TERN_OK; i++)
        status = add_stop_id(&out->stop_ids, file, json_array_get(eos, i), c->vocab, err);
    return status;
}

/* ---- whole files ---- */

/* Refuses caps of logits and other keys that change the graph without a tensor. */
static tern_status refuse_extras(const struct tn_family *family, const json_t *root,
                                 struct tern_error *err)
{
    static const char *const numbers[] = {"attn_logit_softcapping", "final_logit_softcapping"};
    const struct {
        const char *key;
        bool is_read;
    } flags[] = {{"use_bidirectional_attention", false},
                 {"use_sliding_window", family->may_have_windows},
                 {"use_parallel_residual", family->has_parallel}};
    for (size_t i = 0; i < TN_COUNT_OF(numbers) && !family->has_caps; i++)
        if (json_is_number(json_object_get(root, numbers[i])))
            return tn_fail(err, TERN_UNSUPPORTED, CONFIG ": \"%s\" is not supported", numbers[i]);
    for (size_t i = 0; i < TN_COUNT_OF(flags); i++)
        if (!flags[i].is_read && json_is_true(json_object_get(root, flags[i].key)))
            return tn_fail(err, TERN_UNSUPPORTED, CONFIG ": \"%s\" is true, which is not supported",
                           flags[i].key);
    if (family->names_positions &&
        strcmp(tn_config_text(root, "position_embedding_type", ""), "rope") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       CONFIG ": only \"position_embedding_type\": \"rope\" is supported");
    if (json_is_false(json_object_get(root, "attn_output_gate")))
        return tn_fail(err, TERN_UNSUPPORTED,
                       CONFIG ": \"attn_output_gate\" is false, which is not supported");
    return TERN_OK;
}

static tern_status parse_eps(float *out, const struct tn_family *family, const json_t *root,
                             struct tern_error *err)
{
    const char *key = tn_family_key(family, "rms_norm_eps");
    double eps = 0;
    tern_status status =
        tn_config_number(&eps, key, json_object_get(root, key), FLT_MIN, 1, err);
    *out = (float)eps;
    return status;
}

static tern_status parse_root(struct tn_config_import *out, const json_t *root,
                              const json_t *generation, struct tern_error *err)
{
    struct tern_file_config *c = &out->config;
    tn_config_default(c);
    if (!json_is_object(root))
        return tn_fail(err, TERN_INPUT, CONFIG ": not a JSON object");
    if (generation && !json_is_object(generation))
        return tn_fail(err, TERN_INPUT, GENERATION ": not a JSON object");
    tern_status status = tn_config_family(out, root, err);
    if (status == TERN_OK)
        status = parse_sizes(c, out->family, root, err);
    if (status == TERN_OK)
        status = parse_heads(c, out->family, root, err);
    if (status == TERN_OK)
        status = tn_config_layers(out, root, err);
    if (status == TERN_OK)
        status = refuse_extras(out->family, root, err);
    if (status == TERN_OK)
        status = parse_eps(&c->rms_eps, out->family, root, err);
    if (status == TERN_OK)
        status = parse_ids(out, root, generation, err);
    return status == TERN_OK ? parse_tie(&out->tie, root, err) : status;
}

tern_status tn_config_parse(struct tn_config_import *out, const char *json, size_t n_json,
                            const char *generation_json, size_t n_generation_json,
                            struct tern_error *err)
{
    memset(out, 0, sizeof *out);
    json_t *root = NULL;
    json_t *generation = NULL;
    tern_status status = tn_json_load(&root, CONFIG, json, n_json, JSON_FLAGS, err);
    if (status == TERN_OK && generation_json)
        status = tn_json_load(&generation, GENERATION, generation_json, n_generation_json,
                              JSON_FLAGS, err);
    if (status == TERN_OK)
        status = tn_config_text_model(&root, err);
    if (status == TERN_OK)
        status = parse_root(out, root, generation, err);
    json_decref(root);
    json_decref(generation);
    if (status != TERN_OK)
        tn_config_import_fini(out);
    return status;
}

/* ---- pooling ---- */

static tern_status parse_pooling(uint32_t *out, const json_t *root, struct tern_error *err)
{
    static const struct {
        const char *key;
        uint32_t pooling;
    } modes[] = {{"pooling_mode_lasttoken", TERN_POOLING_LAST},
                 {"pooling_mode_mean_tokens", TERN_POOLING_MEAN},
                 {"pooling_mode_cls_token", TERN_POOLING_CLS}};
    const char *key;
    json_t *value;
    uint32_t n_modes = 0;
    json_object_foreach((json_t *)root, key, value) {
        n_modes += strncmp(key, "pooling_mode_", 13) == 0 && json_is_true(value);
        for (size_t i = 0; i < TN_COUNT_OF(modes); i++)
            if (strcmp(key, modes[i].key) == 0 && json_is_true(value))
                *out = modes[i].pooling;
    }
    if (n_modes == 1 && *out != TERN_POOLING_NONE)
        return TERN_OK;
    return tn_fail(err, TERN_UNSUPPORTED,
                   TN_POOLING_FILE ": its pooling is not the last token, the mean or the first "
                                   "token alone");
}

tern_status tn_config_read_pooling(struct tn_config_import *import, bool *has_file, const char *dir,
                                   struct tern_error *err)
{
    char *json;
    size_t n_json;
    *has_file = false;
    tern_status status =
        tn_dir_read_text(&json, &n_json, dir, TN_POOLING_FILE, TN_MAX_CONFIG_BYTES, err);
    if (status != TERN_OK || !json) {
        import->config.pooling = TERN_POOLING_LAST;
        return status;
    }
    json_t *root;
    *has_file = true;
    status = tn_json_load(&root, TN_POOLING_FILE, json, n_json, JSON_FLAGS, err);
    if (status == TERN_OK)
        status = parse_pooling(&import->config.pooling, root, err);
    json_decref(root);
    tn_free(json);
    return status;
}

/* ---- files ---- */

tern_status tn_config_read(struct tn_config_import *out, bool *has_generation, const char *dir,
                           struct tern_error *err)
{
    char *json;
    char *generation = NULL;
    size_t n_json;
    size_t n_generation = 0;
    *has_generation = false;
    tern_status status = tn_dir_read_text(&json, &n_json, dir, CONFIG, TN_MAX_CONFIG_BYTES, err);
    if (status == TERN_OK && !json)
        status = tn_fail(err, TERN_INPUT, "%s: " CONFIG " is missing", dir);
    if (status == TERN_OK)
        status = tn_dir_read_text(&generation, &n_generation, dir, GENERATION, TN_MAX_CONFIG_BYTES,
                                  err);
    if (status == TERN_OK)
        status = tn_config_parse(out, json, n_json, generation, n_generation, err);
    *has_generation = generation != NULL;
    tn_free(json);
    tn_free(generation);
    return status;
}
