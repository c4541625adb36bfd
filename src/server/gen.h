/* SPDX-License-Identifier: MIT
 *
 * What a request says about how to answer: the sampler, lengths, stop strings, the form.  What it
 * does not say is as in `tern run`; temperature 0 is its --greedy, without penalties but those that
 * are asked for.  An answer of a form (answer_schema.h, read before the rest) has no others either:
 * JSON repeats its marks.
 */
#ifndef TN_GEN_H
#define TN_GEN_H

#include "server/json_body.h"
#include "server/server.h"
#include "server/work.h"

#define TN_GEN_MAX_STOPS 16u
#define TN_GEN_MAX_CHOICES 8u
#define TN_GEN_MAX_BIASES 1024u
#define TN_GEN_MAX_TOP 20u

enum tn_form_kind { TN_FORM_TEXT, TN_FORM_OBJECT, TN_FORM_SCHEMA };

/* What a request wants an answer to be. */
struct tn_form {
    enum tn_form_kind kind; /* any text, any JSON object, or what a schema says */
    const json_t *schema;
    uint32_t flags;    /* of tern_grammar_from_schema */
    const char *param; /* where the schema stands in the request */
};

/* Where a request has what OpenAI's chat completions have elsewhere: what errors name. */
struct tn_gen_api {
    const char *stops; /* a member of the body that is read */
    uint32_t max_stops;
    bool has_stop_list; /* one string is none */
    const char *form, *json_schema, *schema;
    const char *conversation;
};

/* Zero-initialise by tn_gen_init; tn_gen_fini frees.  Texts point into the request's JSON. */
struct tn_gen {
    const struct tn_gen_api *api; /* OpenAI's, if nobody sets another one */
    struct tern_sampler_params sampler;
    struct tn_json_wide seed; /* that the request's JSON has rounded */
    uint32_t max_tokens;
    const char *stops[TN_GEN_MAX_STOPS];
    uint32_t n_stops;
    uint32_t n_choices;
    bool has_logprobs;
    uint32_t n_top; /* most likely ids beside each token's own */
    struct tn_bias *biases;
    uint32_t n_biases;
    struct tn_form form;
    struct tern_grammar *grammar; /* what the answer must be; NULL: anything, or not yet made */
    bool has_form; /* a grammar is there, or will be */
    bool ignores_eos;
    bool streams;
    bool includes_usage;
    bool returns_progress; /* of the prompt, in streams */
};

void tn_gen_init(struct tn_gen *gen, const struct tn_server_model *model);
void tn_gen_fini(struct tn_gen *gen);

/* Members of other servers' requests that would change the answer and do not exist here.  false:
 * refused, by name. */
bool tn_gen_refuse_others(const json_t *body, struct tn_refusal *refusal);
/* Members of an OpenAI request that chat and completions share.  false: refused. */
bool tn_gen_read_openai(struct tn_gen *gen, const json_t *body,
                        const struct tn_server_model *model, struct tn_refusal *refusal);
/* "options" of Ollama. */
bool tn_gen_read_options(struct tn_gen *gen, const json_t *options,
                         const struct tn_server_model *model, struct tn_refusal *refusal);
/* Members of llama.cpp's own completion. */
bool tn_gen_read_llama(struct tn_gen *gen, const json_t *body, const struct tn_server_model *model,
                       struct tn_refusal *refusal);


#endif
