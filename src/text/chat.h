/* SPDX-License-Identifier: MIT
 *
 * Chat templates, built-in or parsed, and the functions that turn a conversation into text and ids.
 *
 * chat.c implements them; chat_templates.c lists the built-in templates.
 */
#ifndef TN_CHAT_H
#define TN_CHAT_H

#include "base/buf.h"
#include "tern/chat.h"
#include "text/jinja/jinja.h"

struct tern_chat_template {
    const char *name;
    const char *source;  /* Jinja source */
    const char *variant; /* another published source of the same name; NULL: none */
    const char *bos; /* the model family's tokens, used when the tokenizer names none */
    const char *eos;
    const char *answer_end; /* the special token that ends an answer, one of tn_chat_ends */
    /* special tokens that the template writes besides BOS, NULL-terminated if fewer than 4 */
    const char *specials[4];
    uint32_t ends;          /* of a parsed template: tn_chat_find_ends */
    struct tn_jinja *jinja; /* parsed template of a model; NULL: built-in */
    char *owned_source;     /* of a parsed template */
};

/* Special tokens that end turns in published templates.  Those from TN_CHAT_TEXT_ENDS on end a text
 * with any template.  A set of them is a mask: bit i is token i. */
#define TN_CHAT_N_ENDS 11u
#define TN_CHAT_TEXT_ENDS 9u
extern const char *const tn_chat_ends[TN_CHAT_N_ENDS];
/* The ends that the source of a template contains. */
uint32_t tn_chat_find_ends(const char *source, size_t n_bytes);
/* Calls add(arg, id) for every end of the set, and for answer_end (NULL: none), that is a special
 * token of the vocabulary. */
typedef void tn_chat_end_fn(void *arg, uint32_t id);
void tn_chat_visit_ends(uint32_t ends, const char *answer_end,
                        const struct tern_tokenizer *tokenizer, tn_chat_end_fn *add, void *arg);
/* The same for a template: its answer_end, and the ends that its source contains. */
void tn_chat_visit_template_ends(const struct tern_chat_template *t,
                                 const struct tern_tokenizer *tokenizer, tn_chat_end_fn *add,
                                 void *arg);

/* The built-in templates, terminated by one without a name. */
extern const struct tern_chat_template tn_chat_templates[];

/* Renders with the variables of `context`, which was made in `pool`, plus BOS, EOS and
 * add_generation_prompt.  Results and errors as tern_chat_render. */
tern_status tn_chat_render_context(const struct tern_chat_template *t, struct tn_pool *pool,
                                   struct tn_jvalue context, const struct tern_chat_params *params,
                                   char **text, size_t *n_text, unsigned char **user_map,
                                   struct tern_error *err);
/* A string of a conversation as a value.  `is_role`: the name of a known role counts as text of the
 * template. */
struct tn_jvalue tn_chat_value(struct tn_pool *pool, const char *bytes, size_t n, bool is_role);
/* Encodes rendered text, and frees it. */
tern_status tn_chat_encode_text(const struct tern_tokenizer *tokenizer, char *text, size_t n_text,
                                unsigned char *user_map, struct tern_ids *out,
                                struct tern_error *err);
/* Returns params with the tokenizer's BOS if they name none; `room` holds its text. */
#define TN_MAX_BOS_BYTES 64u
struct tern_chat_params tn_chat_with_bos(const struct tern_chat_params *params,
                                         const struct tern_tokenizer *tokenizer,
                                         char room[TN_MAX_BOS_BYTES]);

#endif
