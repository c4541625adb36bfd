/* SPDX-License-Identifier: MIT
 *
 * Reads the generation parameters of all APIs: sampling, lengths, stop strings, biases.
 *
 * Out-of-range values are refused with their name and limits; only counts of tokens are clamped.
 */
#include "server/gen.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/json_object.h"
#include "plat/plat.h"

#define TWO_TO_64 18446744073709551616.0
#define MAX_BIASES 1024u
#define MAX_BIAS_BYTES 256u /* of a text: it is encoded on the loop thread */
#define MAX_MS 1e12 /* longer times are the same */

/* max_tokens of a request, limited by the memory plan; a negative value means the default. */
static uint32_t clamp_tokens(const struct tn_server_model *model, double requested)
{
    if (requested < 0)
        requested = model->default_new_tokens;
    return requested < model->cap_new_tokens ? (uint32_t)requested : model->cap_new_tokens;
}

#define API_OF_OPENAI(conversation_)                                                            \
    {.stops = "stop", .format = "response_format",                                              \
     .json_schema = "response_format.json_schema",                                              \
     .schema = "response_format.json_schema.schema", .conversation = (conversation_)}

const struct tn_gen_api tn_gen_text_api = API_OF_OPENAI("prompt");

void tn_gen_init(struct tn_gen *gen, const struct tn_server_model *model)
{
    static const struct tn_gen_api chat_api = API_OF_OPENAI("messages");
    *gen = (struct tn_gen){.api = &chat_api, .n_choices = 1, .max_tokens = clamp_tokens(model, -1)};
    tern_sampler_params_default(&gen->sampler);
    gen->sampler.seed = tn_random_seed() >> 32;
}

void tn_gen_fini(struct tn_gen *gen)
{
    tn_free(gen->biases);
    gen->biases = NULL;
    tern_grammar_free(gen->grammar);
    gen->grammar = NULL;
}

/* ---- the sampler ---- */

static bool read_seed(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    const json_t *value = tn_json_member(o, "seed");
    double seed = -1;
    if (value && (!tn_json_is_whole(value, &seed) || seed < (double)INT64_MIN ||
                  (seed >= TWO_TO_64 && value != gen->seed.value)))
        return tn_refuse(r, 400, "seed", "\"seed\" must be a whole number from %lld to %llu",
                         (long long)INT64_MIN, (unsigned long long)UINT64_MAX);
    if (seed < 0) /* random, as in other servers */
        return true;
    if (json_is_integer(value))
        gen->sampler.seed = (uint64_t)json_integer_value(value);
    else
        gen->sampler.seed = value == gen->seed.value ? gen->seed.whole : (uint64_t)seed;
    return true;
}

static bool read_top_k(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    double k = gen->sampler.top_k;
    if (!tn_json_get_count(o, "top_k", -1, TERN_MAX_VOCAB, &k, r))
        return false;
    gen->sampler.top_k = k < 0 ? 0 : (uint32_t)k;
    return true;
}

/* Greedy answers are the model's unmodified choice: penalties apply only if the request sets them.
 */
static void drop_default_penalties(struct tn_gen *gen)
{
    gen->sampler.repeat_penalty = 1.0f;
    gen->sampler.presence_penalty = gen->sampler.frequency_penalty = 0.0f;
}

static bool read_penalties(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    struct tern_sampler_params *s = &gen->sampler;
    double last = s->penalty_last;
    if (!tn_json_get_real(o, "repeat_penalty", 0.01, 100, &s->repeat_penalty, r) ||
        !tn_json_get_real(o, "repetition_penalty", 0.01, 100, &s->repeat_penalty, r) ||
        !tn_json_get_real(o, "presence_penalty", -2, 2, &s->presence_penalty, r) ||
        !tn_json_get_real(o, "frequency_penalty", -2, 2, &s->frequency_penalty, r) ||
        !tn_json_get_count(o, "repeat_last_n", -1, 65536, &last, r))
        return false;
    s->penalty_last = last < 0 ? 65536 : (uint32_t)last;
    return true;
}

/* Does the list of names, or the text of letters, have this step of sampling? */
static bool lists_step(const json_t *steps, const char *name, char letter)
{
    return tn_json_list_has(steps, name) ||
           (json_is_string(steps) && strchr(json_string_value(steps), letter));
}

/* llama.cpp's list of the steps of sampling: omitted ones are off.  Their order has no effect. */
static bool read_steps(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    struct tern_sampler_params *s = &gen->sampler;
    const json_t *steps = tn_json_member(o, "samplers");
    if (!steps)
        return true;
    if (!json_is_array(steps) && !json_is_string(steps))
        return tn_refuse(r, 400, "samplers", "\"samplers\" must be an array of names");
    if (!lists_step(steps, "penalties", 'e'))
        drop_default_penalties(gen);
    gen->fits_gap = lists_step(steps, "infill", 'i');
    if (!lists_step(steps, "top_k", 'k'))
        s->top_k = 0;
    if (!lists_step(steps, "top_p", 'p'))
        s->top_p = 1.0f;
    if (!lists_step(steps, "min_p", 'm'))
        s->min_p = 0.0f;
    if (!lists_step(steps, "temperature", 't'))
        s->temperature = 1.0f;
    return true;
}

/* llama.cpp's limits by lines, for programs that complete code. */
static bool read_line_limits(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    double n_indent = 0, ms = 0, prompt_ms = 0;
    if (!tn_json_get_count(o, "n_indent", 0, UINT32_MAX, &n_indent, r) ||
        !tn_json_get_count(o, "t_max_predict_ms", -1, TN_JSON_NO_LIMIT, &ms, r) ||
        !tn_json_get_count(o, "t_max_prompt_ms", -1, TN_JSON_NO_LIMIT, &prompt_ms, r))
        return false; /* as in llama.cpp, a prompt may take longer */
    gen->n_indent = (uint32_t)n_indent;
    gen->max_predict_ns = ms < 1 ? 0 : (uint64_t)TN_MIN(ms, MAX_MS) * 1000000;
    return true;
}

static bool read_sampler(struct tn_gen *gen, const json_t *o, double max_temperature,
                         struct tn_refusal *r)
{
    struct tern_sampler_params *s = &gen->sampler;
    if (!tn_json_get_real(o, "temperature", 0, max_temperature, &s->temperature, r))
        return false;
    if (s->temperature == 0.0f || gen->is_structured || gen->fills_in)
        drop_default_penalties(gen);
    return tn_json_get_real(o, "top_p", 0, 1, &s->top_p, r) &&
           tn_json_get_real(o, "min_p", 0, 1, &s->min_p, r) && read_top_k(gen, o, r) &&
           read_penalties(gen, o, r) && read_seed(gen, o, r) && read_steps(gen, o, r);
}

/* ---- stop strings ---- */

static bool add_stop(struct tn_gen *gen, const json_t *value, struct tn_refusal *r)
{
    const char *name = gen->api->stops;
    if (!json_is_string(value))
        return tn_refuse(r, 400, name, "\"%s\" must be %san array of strings", name,
                         gen->api->has_stop_list ? "" : "a string or ");
    size_t n = json_string_length(value);
    if (n == 0)
        return true; /* never matches */
    if (strlen(json_string_value(value)) != n)
        return tn_refuse(r, 400, name, "\"%s\" must not contain the character NUL", name);
    if (gen->n_stops == TN_GEN_MAX_STOPS)
        return tn_refuse(r, 400, name, "\"%s\" may have at most %u strings", name,
                         TN_GEN_MAX_STOPS);
    gen->stops[gen->n_stops++] = json_string_value(value);
    return true;
}

static bool read_stops(struct tn_gen *gen, const json_t *o, struct tn_refusal *r)
{
    const json_t *stop = tn_json_member(o, gen->api->stops);
    if (!stop)
        return true;
    if (!json_is_array(stop)) /* NULL is not a string */
        return add_stop(gen, gen->api->has_stop_list ? NULL : stop, r);
    for (size_t i = 0; i < json_array_size(stop); i++)
        if (!add_stop(gen, json_array_get(stop, i), r))
            return false;
    return true;
}

/* ---- logit_bias ---- */

static bool read_id(const char *text, uint32_t n_vocab, uint32_t *id)
{
    uint64_t value = 0;
    for (const char *c = text; *c; c++) {
        if (*c < '0' || *c > '9' || value >= n_vocab)
            return false;
        value = value * 10 + (uint64_t)(*c - '0');
    }
    *id = (uint32_t)value;
    return text[0] && value < n_vocab;
}

static bool hold_biases(struct tn_gen *gen, struct tn_refusal *r)
{
    if (!gen->biases)
        gen->biases = tn_alloc_zeroed(MAX_BIASES, sizeof *gen->biases);
    return gen->biases || tn_refuse_memory(r);
}

static bool add_bias(struct tn_gen *gen, uint32_t id, const json_t *value, struct tn_refusal *r)
{
    static const char name[] = "logit_bias";
    double x = json_number_value(value);
    if (json_is_false(value)) /* llama.cpp's spelling of "never" */
        x = -HUGE_VAL;
    else if (!json_is_number(value) || !(x >= -100 && x <= 100))
        return tn_refuse(r, 400, name, "\"%s\" must map to numbers from -100 to 100", name);
    if (gen->n_biases == MAX_BIASES)
        return tn_refuse(r, 400, name, "\"%s\" may have at most %u tokens", name, MAX_BIASES);
    gen->biases[gen->n_biases++] = (struct tn_bias){.id = id, .bias = (float)x};
    return true;
}

/* Reads an id in digits, or llama.cpp's text, whose tokens all get the bias. */
static bool add_text_bias(struct tn_gen *gen, const struct tern_model *model, const char *text,
                          const json_t *value, struct tn_refusal *r)
{
    static const char name[] = "logit_bias";
    const uint32_t n_vocab = tern_model_config(model)->vocab;
    const size_t n = strlen(text);
    struct tern_ids ids = {0};
    uint32_t id;
    if (read_id(text, n_vocab, &id))
        return add_bias(gen, id, value, r);
    if (n > MAX_BIAS_BYTES || strspn(text, "-0123456789") == n)
        return tn_refuse(r, 400, name,
                         "\"%s\": \"%.40s\" is neither a token id below %u nor a text of at most "
                         "%u bytes", name, text, n_vocab, MAX_BIAS_BYTES);
    bool is_good = tern_tokenizer_encode(tern_model_tokenizer(model), text, n, 0, &ids, NULL) ==
                       TERN_OK || tn_refuse_memory(r);
    for (size_t i = 0; i < ids.n && is_good; i++)
        is_good = add_bias(gen, ids.ids[i], value, r);
    tern_ids_free(&ids);
    return is_good;
}

/* Reads OpenAI's {"5":1.5}. */
static bool add_bias_object(struct tn_gen *gen, const json_t *map, const struct tern_model *model,
                            struct tn_refusal *r)
{
    json_t *object = (json_t *)map; /* jansson's iterators are not const-correct */
    for (void *i = json_object_iter(object); i; i = json_object_iter_next(object, i))
        if (!add_text_bias(gen, model, json_object_iter_key(i), json_object_iter_value(i), r))
            return false;
    return true;
}

/* Reads llama.cpp's [[5,1.5],["text",1.5]]. */
static bool add_bias_pairs(struct tn_gen *gen, const json_t *pairs, const struct tern_model *model,
                           struct tn_refusal *r)
{
    for (size_t i = 0; i < json_array_size(pairs); i++) {
        const json_t *pair = json_array_get(pairs, i), *id = json_array_get(pair, 0);
        char text[24];
        if (json_array_size(pair) != 2 || !(json_is_integer(id) || json_is_string(id)))
            return tn_refuse(r, 400, "logit_bias",
                             "\"logit_bias\": entry %zu is not a pair [token id or text, number]",
                             i);
        if (json_is_integer(id))
            snprintf(text, sizeof text, "%lld", (long long)json_integer_value(id));
        if (!add_text_bias(gen, model, json_is_string(id) ? json_string_value(id) : text,
                           json_array_get(pair, 1), r))
            return false;
    }
    return true;
}

static bool read_biases(struct tn_gen *gen, const json_t *o, const struct tern_model *model,
                        struct tn_refusal *r)
{
    static const char name[] = "logit_bias";
    const json_t *map = tn_json_member(o, name);
    const size_t n = json_is_array(map) ? json_array_size(map) : json_object_size(map);
    if (!map)
        return true;
    if (!(json_is_object(map) || json_is_array(map)) || n > MAX_BIASES)
        return tn_refuse(r, 400, name, "\"%s\" must be an object of at most %u token ids", name,
                         MAX_BIASES);
    if (!hold_biases(gen, r))
        return false;
    return json_is_array(map) ? add_bias_pairs(gen, map, model, r)
                              : add_bias_object(gen, map, model, r);
}

/* ---- requests ---- */

static bool read_max_tokens(struct tn_gen *gen, const json_t *body,
                            const struct tn_server_model *model, struct tn_refusal *r)
{
    /* the newest name first; the last one is llama.cpp's */
    static const char *const names[] = {"max_completion_tokens", "max_tokens", "n_predict"};
    double requested = -2;
    for (size_t i = 0; i < TN_COUNT_OF(names); i++) {
        double value = -2;
        if (!tn_json_get_count(body, names[i], -1, TN_JSON_NO_LIMIT, &value, r))
            return false;
        requested = requested >= -1 ? requested : value;
    }
    if (requested == -1) /* limited by the plan only */
        requested = TN_JSON_NO_LIMIT;
    gen->max_tokens = clamp_tokens(model, requested);
    return true;
}

static bool read_stream_options(struct tn_gen *gen, const json_t *body, struct tn_refusal *r)
{
    const json_t *options = tn_json_member(body, "stream_options");
    if (options && !json_is_object(options))
        return tn_refuse(r, 400, "stream_options", "\"stream_options\" must be an object");
    return !options || tn_json_get_bool(options, "include_usage", &gen->includes_usage, r);
}

bool tn_gen_read_openai(struct tn_gen *gen, const json_t *body,
                        const struct tn_server_model *model, struct tn_refusal *r)
{
    double n = 1;
    if (!read_sampler(gen, body, 2, r) ||
        !read_max_tokens(gen, body, model, r) ||
        !read_stops(gen, body, r) ||
        !read_biases(gen, body, model->model, r) ||
        !read_line_limits(gen, body, r) ||
        !tn_json_get_bool(body, "ignore_eos", &gen->ignores_eos, r) ||
        !tn_json_get_bool(body, "stream", &gen->streams, r) ||
        !tn_json_get_bool(body, "return_progress", &gen->returns_progress, r) ||
        !read_stream_options(gen, body, r) ||
        !tn_json_get_count(body, "n_cmpl", 1, TN_GEN_MAX_CHOICES, &n, r) ||
        !tn_json_get_count(body, "n", 1, TN_GEN_MAX_CHOICES, &n, r))
        return false;
    gen->n_choices = (uint32_t)n;
    return true;
}

bool tn_gen_read_options(struct tn_gen *gen, const json_t *options,
                         const struct tn_server_model *model, struct tn_refusal *r)
{
    double requested = -2;
    if (!options)
        return true;
    if (!json_is_object(options))
        return tn_refuse(r, 400, "options", "\"options\" must be an object");
    if (!read_sampler(gen, options, 100, r) ||
        !read_stops(gen, options, r) ||
        !read_line_limits(gen, options, r) ||
        !tn_json_get_bool(options, "ignore_eos", &gen->ignores_eos, r) ||
        !tn_json_get_count(options, "num_predict", -2, TN_JSON_NO_LIMIT, &requested, r) ||
        !tn_json_get_count(options, "n_predict", -2, TN_JSON_NO_LIMIT, &requested, r))
        return false;
    gen->max_tokens = clamp_tokens(model, requested == -1 ? TN_JSON_NO_LIMIT : requested);
    return true;
}

/* With "ignore_eos", llama.cpp never chooses a token that ends the answer. */
static bool ban_end_of_text(struct tn_gen *gen, const struct tern_model *model,
                            struct tn_refusal *r)
{
    const struct tern_model_config *config = tern_model_config(model);
    if (!gen->ignores_eos)
        return true;
    bool is_good = hold_biases(gen, r);
    for (uint32_t i = 0; i < config->n_stop_ids && is_good; i++)
        is_good = add_bias(gen, config->stop_ids[i], json_false(), r);
    return is_good;
}

bool tn_gen_read_llama(struct tn_gen *gen, const json_t *body, const struct tn_server_model *model,
                       struct tn_refusal *r)
{
    double n_top = 0, n = 1;
    bool returns_tokens = false;
    if (!tn_gen_refuse_others(body, "json_schema", r) ||
        !tn_gen_read_options(gen, body, model, r) ||
        (!tn_json_member(body, "n_predict") && !read_max_tokens(gen, body, model, r)) ||
        !read_biases(gen, body, model->model, r) || !ban_end_of_text(gen, model->model, r) ||
        !tn_json_get_bool(body, "stream", &gen->streams, r) ||
        !tn_json_get_bool(body, "return_progress", &gen->returns_progress, r) ||
        !tn_json_get_bool(body, "return_tokens", &returns_tokens, r) ||
        !tn_json_get_count(body, "n_probs", 0, TN_GEN_MAX_TOP, &n_top, r) ||
        !tn_json_get_count(body, "n", 1, TN_GEN_MAX_CHOICES, &n, r) ||
        !tn_json_get_count(body, "n_cmpl", 1, TN_GEN_MAX_CHOICES, &n, r))
        return false;
    gen->n_choices = (uint32_t)n;
    gen->n_top = (uint32_t)n_top;
    gen->has_logprobs = n_top > 0;
    gen->keeps_ids = returns_tokens || gen->streams; /* streams have them anyway, as there */
    return true;
}
