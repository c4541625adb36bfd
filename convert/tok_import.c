/* SPDX-License-Identifier: MIT
 *
 * Reading tokenizer.json: the components around the model (here), the model and
 * the added tokens (tok_tables.c).
 */
#include "tok_import.h"

#include <string.h>

#include "base/log.h"
#include "json_scan.h"
#include "tern/model_format.h"
#include "text/pretok.h"
#include "tok_tables.h"

#define FILE_NAME "tokenizer.json"

static bool is_absent(const json_t *value)
{
    return !value || json_is_null(value);
}

static bool is_true_or_absent(const json_t *value)
{
    return !value || json_is_true(value);
}

/* The "type" of a component, "" when it has none. */
static const char *type_of(const json_t *component)
{
    const char *type = json_string_value(json_object_get(component, "type"));
    return type ? type : "";
}

static bool has_type(const json_t *component, const char *type)
{
    return strcmp(type_of(component), type) == 0;
}

static tern_status unsupported(struct tern_error *err, const char *what, const json_t *component)
{
    const char *type = type_of(component);
    return tn_fail(err, TERN_UNSUPPORTED, FILE_NAME ": %s %s is not supported", what,
                   *type ? type : "without a type");
}

/* truncation and padding are not read: batches were last cut to them, and transformers does not
 * apply them to a prompt either. */
static tern_status check_normalizer(const json_t *root, struct tern_error *err)
{
    const json_t *normalizer = json_object_get(root, "normalizer");
    return is_absent(normalizer) ? TERN_OK : unsupported(err, "normalizer", normalizer);
}

static tern_status read_byte_level(const json_t *component, bool use_regex, struct tern_error *err)
{
    if (!json_is_false(json_object_get(component, "add_prefix_space")))
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": pre-tokenizer ByteLevel without add_prefix_space: false is "
                                 "not supported");
    if (is_true_or_absent(json_object_get(component, "use_regex")) != use_regex)
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": pre-tokenizer ByteLevel with use_regex: %s is not supported "
                                 "here",
                       use_regex ? "false" : "true");
    return TERN_OK;
}

static tern_status read_split(const json_t *component, uint32_t *splitter, struct tern_error *err)
{
    const json_t *pattern = json_object_get(component, "pattern");
    const char *regex = json_string_value(json_object_get(pattern, "Regex"));
    const char *behavior = json_string_value(json_object_get(component, "behavior"));
    if (!regex)
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": pre-tokenizer Split without a Regex is not supported");
    if (!behavior || strcmp(behavior, "Isolated") != 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": pre-tokenizer Split with behavior %s is not supported",
                       behavior ? behavior : "(none)");
    const json_t *invert = json_object_get(component, "invert");
    if (invert && !json_is_false(invert))
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": pre-tokenizer Split with invert is not supported");
    *splitter = tn_splitter_recognise(regex);
    if (*splitter == 0)
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": pre-tokenizer pattern \"%.200s\" is not supported", regex);
    return TERN_OK;
}

static tern_status read_pre_tokenizer(const json_t *root, uint32_t *splitter,
                                      struct tern_error *err)
{
    const json_t *pre = json_object_get(root, "pre_tokenizer");
    if (is_absent(pre))
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": a tokenizer without pre_tokenizer is not supported");
    if (has_type(pre, "ByteLevel")) {
        *splitter = TERN_SPLIT_GPT2;
        return read_byte_level(pre, true, err);
    }
    if (!has_type(pre, "Sequence"))
        return unsupported(err, "pre-tokenizer", pre);
    const json_t *list = json_object_get(pre, "pretokenizers");
    static const char *const expected[] = {"Split", "ByteLevel"};
    size_t n = json_array_size(list);
    for (size_t i = 0; i < n; i++)
        if (i >= TN_COUNT_OF(expected) || !has_type(json_array_get(list, i), expected[i]))
            return unsupported(err, "sequence of pre-tokenizers with", json_array_get(list, i));
    if (n != TN_COUNT_OF(expected))
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": a sequence of %zu pre-tokenizers is not supported", n);
    tern_status status = read_split(json_array_get(list, 0), splitter, err);
    return status == TERN_OK ? read_byte_level(json_array_get(list, 1), false, err) : status;
}

/* Appends the ids of one special token of a template. */
static tern_status read_template_token(const json_t *processor, const json_t *token, uint32_t *ids,
                                       uint32_t *n, struct tern_error *err)
{
    const char *name = json_string_value(json_object_get(token, "id"));
    const json_t *known = json_object_get(processor, "special_tokens");
    const json_t *list = json_object_get(name ? json_object_get(known, name) : NULL, "ids");
    if (json_array_size(list) == 0)
        return tn_fail(err, TERN_INPUT, FILE_NAME ": post-processor: special token %s has no ids",
                       name ? name : "(none)");
    for (size_t i = 0; i < json_array_size(list); i++) {
        json_int_t id = json_integer_value(json_array_get(list, i));
        if (!json_is_integer(json_array_get(list, i)) || id < 0 || id >= TERN_MAX_VOCAB)
            return tn_fail(err, TERN_INPUT,
                           FILE_NAME ": post-processor: special token %s has a bad id", name);
        if (*n == 4)
            return tn_fail(err, TERN_UNSUPPORTED,
                           FILE_NAME ": post-processor that adds more than 4 ids on one side is "
                                     "not supported");
        ids[(*n)++] = (uint32_t)id;
    }
    return TERN_OK;
}

/* TemplateProcessing: what "single" puts before and behind the text A. */
static tern_status read_template(const json_t *processor, struct tern_file_tokenizer *head,
                                 struct tern_error *err)
{
    const json_t *single = json_object_get(processor, "single");
    size_t n_texts = 0;
    for (size_t i = 0; i < json_array_size(single); i++) {
        const json_t *item = json_array_get(single, i);
        const json_t *token = json_object_get(item, "SpecialToken");
        const char *sequence =
            json_string_value(json_object_get(json_object_get(item, "Sequence"), "id"));
        tern_status status = TERN_OK;
        if (token && n_texts == 0)
            status = read_template_token(processor, token, head->prefix_ids, &head->n_prefix, err);
        else if (token)
            status = read_template_token(processor, token, head->suffix_ids, &head->n_suffix, err);
        else if (sequence && strcmp(sequence, "A") == 0)
            n_texts++;
        else
            return tn_fail(err, TERN_UNSUPPORTED,
                           FILE_NAME ": post-processor template with an unknown item %zu is not "
                                     "supported",
                           i);
        if (status != TERN_OK)
            return status;
    }
    if (n_texts != 1)
        return tn_fail(err, TERN_UNSUPPORTED,
                       FILE_NAME ": post-processor template with %zu texts is not supported",
                       n_texts);
    return TERN_OK;
}

static tern_status read_post_processor(const json_t *root, struct tern_file_tokenizer *head,
                                       struct tern_error *err)
{
    const json_t *post = json_object_get(root, "post_processor");
    if (is_absent(post))
        return TERN_OK;
    const json_t *list = json_object_get(post, "processors");
    bool is_sequence = has_type(post, "Sequence");
    if (is_sequence && !json_is_array(list))
        return unsupported(err, "post-processor without a list of processors,", post);
    size_t n = is_sequence ? json_array_size(list) : 1, n_templates = 0;
    for (size_t i = 0; i < n; i++) {
        const json_t *processor = is_sequence ? json_array_get(list, i) : post;
        if (has_type(processor, "ByteLevel")) /* changes offsets only */
            continue;
        if (!has_type(processor, "TemplateProcessing") || n_templates++ > 0)
            return unsupported(err, "post-processor", processor);
        tern_status status = read_template(processor, head, err);
        if (status != TERN_OK)
            return status;
    }
    return TERN_OK;
}

static tern_status read_components(const json_t *root, struct tern_file_tokenizer *head,
                                   struct tern_error *err)
{
    tern_status status = check_normalizer(root, err);
    if (status == TERN_OK)
        status = read_pre_tokenizer(root, &head->splitter, err);
    if (status == TERN_OK)
        status = read_post_processor(root, head, err);
    const json_t *decoder = json_object_get(root, "decoder");
    if (status == TERN_OK && !has_type(decoder, "ByteLevel"))
        status = unsupported(err, "decoder", decoder);
    return status;
}

/* The model's options that change ids. */
static tern_status read_model_options(const json_t *model, struct tern_file_tokenizer *head,
                                      struct tern_error *err)
{
    if (!has_type(model, "BPE"))
        return unsupported(err, "model", model);
    const json_t *dropout = json_object_get(model, "dropout");
    if (!is_absent(dropout) && json_number_value(dropout) != 0.0)
        return tn_fail(err, TERN_UNSUPPORTED, FILE_NAME ": dropout is not supported");
    static const char *const affixes[] = {"continuing_subword_prefix", "end_of_word_suffix"};
    for (size_t i = 0; i < TN_COUNT_OF(affixes); i++) {
        const json_t *affix = json_object_get(model, affixes[i]);
        if (!is_absent(affix) && json_string_length(affix) > 0)
            return tn_fail(err, TERN_UNSUPPORTED, FILE_NAME ": %s is not supported", affixes[i]);
    }
    if (json_is_true(json_object_get(model, "byte_fallback")))
        return tn_fail(err, TERN_UNSUPPORTED, FILE_NAME ": byte_fallback is not supported");
    /* unk_token and fuse_unk have no effect: all 256 bytes have tokens. */
    if (json_is_true(json_object_get(model, "ignore_merges")))
        head->flags |= TERN_TOK_IGNORE_MERGES;
    return TERN_OK;
}

tern_status tn_tok_import(const char *json, size_t n, uint32_t vocab, struct tn_buf *section,
                          struct tern_error *err)
{
    json_t *root;
    tern_status status = tn_json_load(&root, FILE_NAME, json, n, JSON_REJECT_DUPLICATES, err);
    if (status != TERN_OK)
        return status;
    struct tern_file_tokenizer head = {.kind = TERN_TOKENIZER_BYTE_BPE};
    const json_t *model = json_object_get(root, "model");
    if (!json_is_object(root))
        status = tn_fail(err, TERN_INPUT, FILE_NAME ": not a JSON object");
    if (status == TERN_OK)
        status = read_components(root, &head, err);
    if (status == TERN_OK)
        status = read_model_options(model, &head, err);
    if (status == TERN_OK)
        status = tn_tok_build(&head, json_object_get(model, "vocab"),
                              json_object_get(model, "merges"),
                              json_object_get(root, "added_tokens"), vocab, section, err);
    json_decref(root);
    if (status != TERN_OK)
        tn_buf_fini(section);
    return status;
}
