/* SPDX-License-Identifier: MIT
 *
 * Refuses members of requests that would change the answer and are not supported.
 *
 * They belong to other servers, or to another API of this one.  Unknown members are ignored, and so
 * is a value that asks for nothing.
 */
#include <string.h>

#include "base/compiler.h"
#include "base/text_match.h"
#include "server/gen.h"

/* ---- output formats ---- */

/* The request for an output format that `name` makes; NULL: none. */
static const json_t *format_of(const json_t *body, const char *name, bool is_inside)
{
    const json_t *value = tn_json_member(body, name);
    if (is_inside)
        value = tn_json_member(value, "format");
    const bool is_text = tn_json_has_type(value, "text");
    return is_text || (json_is_string(value) && json_string_length(value) == 0) ? NULL : value;
}

/* Is it a member of the API whose own one is `own`?  OpenAI's completions have those that
 * llama.cpp and vLLM add, too. */
static bool is_own(const char *name, const char *own)
{
    static const char *const added[] = {"json_schema", "grammar", "guided_json",
                                        "guided_regex", "guided_choice", "guided_grammar",
                                        "structured_outputs"};
    if (strcmp(own, "response_format") == 0 &&
        tn_text_is_one_of(name, added, TN_COUNT_OF(added)))
        return true;
    return strcmp(name, own) == 0 ||
           (strcmp(own, "json_schema") == 0 && strcmp(name, "grammar") == 0);
}

/* Refuses names that other APIs, vLLM and llama.cpp use for an output format. */
static bool refuse_formats(const json_t *body, const char *own, struct tn_refusal *r)
{
    static const struct {
        const char *name;
        bool is_inside; /* in the member "format" of the object */
    } formats[] = {{"response_format", false}, {"text", true},
                   {"output_config", true},    {"output_format", false},
                   {"format", false},          {"json_schema", false},
                   {"grammar", false},         {"guided_json", false},
                   {"guided_regex", false},    {"guided_choice", false},
                   {"guided_grammar", false},  {"structured_outputs", false}};
    for (size_t i = 0; i < TN_COUNT_OF(formats); i++) {
        const char *name = formats[i].name;
        if (!is_own(name, own) && format_of(body, name, formats[i].is_inside))
            return tn_refuse(r, 400, name,
                             "\"%s\" is not supported here: completions have "
                             "\"response_format\", responses have \"text.format\", messages have "
                             "\"output_config.format\", Ollama's routes have \"format\", "
                             "/completion has \"json_schema\" and \"grammar\"", name);
    }
    return true;
}

/* ---- other members ---- */

/* Numbers with a value that has no effect. */
static bool refuse_numbers(const json_t *body, struct tn_refusal *r)
{
    static const struct {
        const char *name;
        double neutral;
    } fields[] = {{"mirostat", 0},       {"dry_multiplier", 0}, {"xtc_probability", 0},
                  {"dynatemp_range", 0}, {"typical_p", 1},      {"tfs_z", 1},
                  {"top_n_sigma", -1},   {"min_tokens", 0}};
    for (size_t i = 0; i < TN_COUNT_OF(fields); i++) {
        const json_t *value = tn_json_member(body, fields[i].name);
        if (value && !(json_is_number(value) && json_number_value(value) == fields[i].neutral))
            return tn_refuse(r, 400, fields[i].name, "\"%s\" is not supported; its value here is "
                                                     "%g", fields[i].name, fields[i].neutral);
    }
    return true;
}

static bool is_nothing(const json_t *value)
{
    return !value || json_is_false(value) ||
           (json_is_number(value) && json_number_value(value) <= 0) ||
           (json_is_string(value) && json_string_length(value) == 0) ||
           (json_is_array(value) && json_array_size(value) == 0) ||
           (json_is_object(value) && json_object_size(value) == 0);
}

/* Members that have an effect unless they are empty, false or 0. */
static bool refuse_members(const json_t *body, struct tn_refusal *r)
{
    static const struct {
        const char *name, *instead;
    } fields[] = {
        {"functions", "; \"tools\" replaced it"}, {"stop_token_ids", ""},
        {"bad_words", ""},                        {"allowed_token_ids", ""},
        {"use_beam_search", ""},                  {"truncate_prompt_tokens", ""},
        {"lora", ""},                             {"mcp_servers", ""},
        {"documents", ""},                        {"logits_processors", ""},
        {"include_stop_str_in_output", ""},       {"post_sampling_probs", ""},
        {"chat_template", "; tern serve --template sets it"}};
    for (size_t i = 0; i < TN_COUNT_OF(fields); i++)
        if (!is_nothing(tn_json_member(body, fields[i].name)))
            return tn_refuse(r, 400, fields[i].name, "\"%s\" is not supported%s", fields[i].name,
                             fields[i].instead);
    if (json_is_false(tn_json_member(body, "skip_special_tokens")))
        return tn_refuse(r, 400, "skip_special_tokens",
                         "\"skip_special_tokens\" must be true: texts have no special tokens");
    return true;
}

/* Requests may name the kinds of output that they accept. */
static bool refuse_modalities(const json_t *body, struct tn_refusal *r)
{
    const json_t *kinds = tn_json_member(body, "modalities");
    for (size_t i = 0; i < json_array_size(kinds); i++) {
        const char *kind = json_string_value(json_array_get(kinds, i));
        if (!kind || strcmp(kind, "text") != 0)
            return tn_refuse(r, 400, "modalities", "\"modalities\": answers are \"text\" only");
    }
    return true;
}

bool tn_gen_refuse_others(const json_t *body, const char *own_format, struct tn_refusal *r)
{
    return refuse_numbers(body, r) && refuse_members(body, r) && refuse_modalities(body, r) &&
           refuse_formats(body, own_format, r);
}

bool tn_gen_refuse_suffix(const json_t *body, struct tn_refusal *r)
{
    return is_nothing(tn_json_member(body, "suffix")) ||
           tn_refuse(r, 400, "suffix", "\"suffix\" is not supported here; /infill, "
                                       "/v1/completions and /api/generate fill in a text");
}
