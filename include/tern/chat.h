/* SPDX-License-Identifier: MIT
 *
 * Conversations to prompt text and ids, through chat templates.
 *
 * A template is Jinja source, as published with models (tern_chat_template_parse), or one of a few
 * built-in templates, which have names.  Rendered text comes with a map of the bytes that come from
 * the conversation: special tokens are never made from those, whatever a user writes.
 */
#ifndef TERN_CHAT_H
#define TERN_CHAT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "tern/status.h"
#include "tern/tokenizer.h"

#ifdef __cplusplus
extern "C" {
#endif

struct tern_message {
    const char *role; /* any text; the template decides */
    size_t n_role;
    const char *content;
    size_t n_content;
};

struct tern_chat_template; /* read-only: any number of threads may use one */

/* ---- built-in templates ---- */

/* "bitnet-2b-4t", "llama3", "chatml", "falcon3", "qwen3"; NULL if the name is unknown. */
const struct tern_chat_template *tern_chat_template_find(const char *name);
/* "custom" for a parsed one that does not equal a built-in one. */
const char *tern_chat_template_name(const struct tern_chat_template *t);
/* The built-in template after t, the first for NULL; NULL after the last. */
const struct tern_chat_template *tern_chat_template_next(const struct tern_chat_template *t);
/* The built-in template that equals a published Jinja source, or NULL. */
const struct tern_chat_template *tern_chat_template_recognise(const char *source, size_t n_bytes);
/* The first special token that the template is known to write and the tokenizer lacks: it would be
 * spelled with ordinary tokens, which a model hardly understands.  NULL: none is missing. */
const char *tern_chat_template_missing(const struct tern_chat_template *t,
                                       const struct tern_tokenizer *tokenizer);

/* ---- templates as Jinja source ---- */

/* Parses a template; tern_chat_template_free.  TERN_UNSUPPORTED: a construct that tern does not
 * implement, with its line; TERN_INPUT: not UTF-8; TERN_LIMIT: more than 1 MiB; TERN_MEMORY. */
tern_status tern_chat_template_parse(struct tern_chat_template **out, const char *source,
                                     size_t n_bytes, struct tern_error *err);
void tern_chat_template_free(struct tern_chat_template *t);
/* The Jinja source, null-terminated: of a parsed template verbatim.  Owned by the template. */
const char *tern_chat_template_source(const struct tern_chat_template *t);

/* ---- rendering ---- */

struct tern_date {
    int32_t year;  /* 1 ... 9999; 0: no date */
    uint8_t month; /* 1 ... 12 */
    uint8_t day;   /* 1 ... 31 */
    uint8_t hour, minute, second;
};

/* Parses "YYYY-MM-DD", optionally followed by " HH:MM:SS".  False: not a date. */
bool tern_date_parse(struct tern_date *out, const char *text);

struct tern_chat_params {
    bool add_generation_prompt;
    /* Texts of these tokens; "": the template sees none; NULL: those of the models with which a
     * built-in template was published (tern_chat_encode: BOS of the tokenizer). */
    const char *bos;
    const char *eos;
    /* The result of strftime_now in a template.  Without a date, a template that calls it is
     * refused. */
    struct tern_date date;
    /* Called every few milliseconds while a template runs, on the thread that renders; true ends it
     * with TERN_INTERRUPTED.  NULL: never. */
    bool (*should_stop)(void *arg);
    void *arg;
};

/* Renders a conversation.  *text is new memory (tern_text_free).  *user_map, if not NULL, is new
 * memory of the same length: 1 for bytes that come from a message, 0 for bytes of the template.
 * (Known roles count as the template's, because templates build special tokens from them.)
 * TERN_USAGE if the template cannot express the conversation (its error message in err);
 * TERN_UNSUPPORTED: a filter or method that tern does not implement; TERN_LIMIT: too much work;
 * TERN_INTERRUPTED: params->should_stop. */
tern_status tern_chat_render(const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             const struct tern_chat_params *params, char **text, size_t *n_text,
                             unsigned char **user_map, struct tern_error *err);
void tern_text_free(void *text);

/* Renders, encodes and appends to *out: encodes the whole text at once, with special tokens only
 * where all bytes come from the template, and exactly one BOS at the start if the tokenizer adds
 * one. Errors as tern_chat_render. */
tern_status tern_chat_encode(const struct tern_tokenizer *tokenizer,
                             const struct tern_chat_template *t,
                             const struct tern_message *messages, size_t n_messages,
                             const struct tern_chat_params *params, struct tern_ids *out,
                             struct tern_error *err);

/* The same for a conversation as JSON: an array of messages in OpenAI's format, or an object
 *   {"messages": [...], "tools": [...], "kwargs": {...}, "bos_token", "eos_token",
 *    "now": "YYYY-MM-DD[ HH:MM:SS]", "add_generation_prompt"}
 * of which all except "messages" are optional and override `params`.  Members that are null are
 * absent.  A built-in template renders "role" and "content" only and refuses tools, tool calls and
 * reasoning; a parsed one sees everything.  TERN_USAGE: other JSON. */
tern_status tern_chat_render_json(const struct tern_chat_template *t, const char *json,
                                  size_t n_json, const struct tern_chat_params *params,
                                  char **text, size_t *n_text, unsigned char **user_map,
                                  struct tern_error *err);
tern_status tern_chat_encode_json(const struct tern_tokenizer *tokenizer,
                                  const struct tern_chat_template *t, const char *json,
                                  size_t n_json, const struct tern_chat_params *params,
                                  struct tern_ids *out, struct tern_error *err);
/* The same for a prompt of at most max_ids ids: a rendered text whose length alone proves that it
 * has more is not encoded.  Then TERN_LIMIT, and *n_least is a lower bound of its number of ids;
 * else *n_least is 0. */
tern_status tern_chat_encode_json_within(const struct tern_tokenizer *tokenizer,
                                         const struct tern_chat_template *t, const char *json,
                                         size_t n_json, const struct tern_chat_params *params,
                                         size_t max_ids, size_t *n_least, struct tern_ids *out,
                                         struct tern_error *err);

/* Positions of an encoded conversation at which later ones probably diverge from it. */
struct tern_chat_marks {
    uint32_t n_system; /* the end of the part that does not depend on users' messages */
    uint32_t n_turn;   /* the end of the last message of role "user", before the generation
                        * prompt */
};

/* For tern_generate_params and tern_request.  `ids` is the result of tern_chat_encode_json for the
 * same conversation, an object with "messages".  Renders it twice more; 0 where the template
 * refuses. */
void tern_chat_marks_json(struct tern_chat_marks *out, const struct tern_tokenizer *tokenizer,
                          const struct tern_chat_template *t, const char *json, size_t n_json,
                          const struct tern_chat_params *params, const struct tern_ids *ids);

#ifdef __cplusplus
}
#endif
#endif
