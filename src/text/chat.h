/* SPDX-License-Identifier: MIT
 *
 * Chat templates, built in or parsed, and the conversation on its way to text.
 */
#ifndef TN_CHAT_H
#define TN_CHAT_H

#include "base/buf.h"
#include "tern/chat.h"
#include "text/jinja/jinja.h"

struct tern_chat_template {
    const char *name;
    const char *source;  /* Jinja, of a built-in template */
    const char *variant; /* another published source of the same name; NULL: none */
    const char *bos; /* the model family's tokens, when the tokenizer does not say */
    const char *eos;
    const char *answer_end; /* the special token that ends an answer */
    const char *specials[4]; /* special tokens that it writes beside BOS, up to the first NULL */
    struct tn_jinja *jinja;  /* of a parsed template; NULL: a built-in one */
};

/* The built-in templates, ended by one without a name (chat_templates.c): the only place that
 * says what there is. */
extern const struct tern_chat_template tn_chat_templates[];

/* Renders with the variables of `context`, made in `pool`, to which BOS, EOS and
 * add_generation_prompt are added; the results are those of tern_chat_render. */
tern_status tn_chat_render_context(const struct tern_chat_template *t, struct tn_pool *pool,
                                   struct tn_jvalue context, const struct tern_chat_params *params,
                                   char **text, size_t *n_text, unsigned char **user_map,
                                   struct tern_error *err);
/* A string of a conversation as a value; `is_role`: a role of a known name counts as text of the
 * template. */
struct tn_jvalue tn_chat_value(struct tn_pool *pool, const char *bytes, size_t n, bool is_role);
/* Encodes rendered text, which it frees. */
tern_status tn_chat_encode_text(const struct tern_tokenizer *tokenizer, char *text, size_t n_text,
                                unsigned char *user_map, struct tern_ids *out,
                                struct tern_error *err);
/* params with BOS of the tokenizer where it names none; `room` holds its text. */
#define TN_MAX_BOS_BYTES 64u
struct tern_chat_params tn_chat_with_bos(const struct tern_chat_params *params,
                                         const struct tern_tokenizer *tokenizer,
                                         char room[TN_MAX_BOS_BYTES]);

#endif
