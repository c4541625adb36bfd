/* SPDX-License-Identifier: MIT
 *
 * The generation parameters of a request: sampler, lengths, stop strings, output format.
 *
 * Defaults are those of `tern run`; temperature 0 equals its --greedy, without penalties unless the
 * request sets them.  Structured output (answer_schema.h, read first) has no default penalties
 * either, because JSON repeats its punctuation.
 */
#ifndef TN_GEN_H
#define TN_GEN_H

#include "server/json_body.h"
#include "server/server.h"
#include "server/work.h"

#define TN_GEN_MAX_STOPS 16u
#define TN_GEN_MAX_CHOICES 8u
#define TN_GEN_MAX_TOP 20u

enum tn_output_kind {
    TN_OUTPUT_TEXT,   /* any text */
    TN_OUTPUT_OBJECT, /* any JSON object */
    TN_OUTPUT_SCHEMA, /* JSON that fits a schema */
    TN_OUTPUT_GBNF,   /* a text of a grammar, which is a string */
    TN_OUTPUT_REGEX,  /* a text that matches an expression, which is a string */
    TN_OUTPUT_CHOICE  /* a text of an array of strings */
};

static inline bool tn_output_is_json(enum tn_output_kind kind)
{
    return kind == TN_OUTPUT_OBJECT || kind == TN_OUTPUT_SCHEMA;
}

/* The requested output. */
struct tn_output {
    enum tn_output_kind kind;
    const json_t *format; /* schema, grammar, expression or array, as the kind says */
    uint32_t flags;       /* of tern_grammar_from_schema */
    const char *param;    /* where the request has the format, for error messages */
};

/* Member names in which APIs differ; error messages use them. */
struct tn_gen_api {
    const char *stops; /* stop strings */
    bool has_stop_list; /* a single string is refused */
    const char *format, *json_schema, *schema;
    const char *conversation; /* or prompt */
};

/* Of routes that continue a text; the default is OpenAI's chat completions. */
extern const struct tn_gen_api tn_gen_text_api;

/* Initialise with tn_gen_init, free with tn_gen_fini.  Texts point into the request's JSON. */
struct tn_gen {
    const struct tn_gen_api *api;
    struct tern_sampler_params sampler;
    struct tn_json_wide seed; /* exact, where the JSON number is rounded */
    uint32_t max_tokens;
    const char *stops[TN_GEN_MAX_STOPS];
    uint32_t n_stops;
    uint32_t n_choices;
    bool has_logprobs;
    bool keeps_ids; /* report the ids of the answer, also without log-probabilities */
    uint32_t n_top; /* most likely ids reported besides each token */
    struct tn_bias *biases;
    uint32_t n_biases;
    struct tn_output output;
    /* compiled output format; NULL: unconstrained, or not yet compiled */
    struct tern_grammar *grammar;
    bool is_structured; /* the answer is constrained by a grammar */
    bool fills_in;    /* the answer fills a gap (infill.h): no default penalties */
    bool fits_gap;    /* llama.cpp's step of sampling "infill" (struct tern_request) */
    bool ignores_eos;
    uint32_t n_indent;       /* a later line with less indentation ends the answer; 0: none does */
    uint64_t max_predict_ns; /* a line that ends after this time ends the answer; 0: no limit */
    bool streams;
    bool includes_usage;
    bool returns_progress; /* report the prompt's progress in streams */
};

void tn_gen_init(struct tn_gen *gen, const struct tn_server_model *model);
void tn_gen_fini(struct tn_gen *gen);

/* Refuses members of other servers' and APIs' requests that would change the answer and are not
 * supported here.  `own_format`: the API's own member for an output format, or "".  false: refused,
 * by name. */
bool tn_gen_refuse_others(const json_t *body, const char *own_format, struct tn_refusal *refusal);
/* Reads the members that OpenAI's chat and completions share.  false: refused. */
bool tn_gen_read_openai(struct tn_gen *gen, const json_t *body,
                        const struct tn_server_model *model, struct tn_refusal *refusal);
/* Refuses a text after the answer, on routes that cannot fill in. */
bool tn_gen_refuse_suffix(const json_t *body, struct tn_refusal *refusal);
/* Reads Ollama's "options". */
bool tn_gen_read_options(struct tn_gen *gen, const json_t *options,
                         const struct tn_server_model *model, struct tn_refusal *refusal);
/* Reads the members of llama.cpp's own completion. */
bool tn_gen_read_llama(struct tn_gen *gen, const json_t *body, const struct tn_server_model *model,
                       struct tn_refusal *refusal);

#endif
