/* SPDX-License-Identifier: MIT
 *
 * Reasoning: what a model thinks before it answers, told from the answer while the text comes; and
 * what chat templates know about it.
 *
 *   START --- <think> ---> INSIDE --- </think> ---> GAP --- a letter ---> ANSWER
 *     '------------------ anything else -----------------------------------^
 *
 * Bytes that may be the beginning of a tag are held back.  White space around the tags belongs to
 * neither part.  Known are <think>, <thinking>, <thought>, <reasoning>, <seed:think>, [THINK] and
 * <|START_THINKING|>.
 */
#ifndef TERN_THINKING_H
#define TERN_THINKING_H

#include "tern/chat.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- answers ---- */

enum tern_part { TERN_PART_ANSWER, TERN_PART_REASONING };

struct tern_thinking;

/* At the start of an answer.  on_part gets n > 0 bytes of text at a time and returns false to stop:
 * it is not called again.  TERN_MEMORY. */
tern_status tern_thinking_create(struct tern_thinking **out,
                                 bool (*on_part)(void *arg, enum tern_part part, const char *text,
                                                 size_t n),
                                 void *arg, struct tern_error *err);
void tern_thinking_free(struct tern_thinking *t);

/* The tag that ends the reasoning, "</think>", when a prompt with these last bytes begins it; NULL:
 * it does not. */
const char *tern_thinking_opened_by(const char *prompt_end, size_t n);
/* The same of a prompt as ids.  TERN_MEMORY. */
tern_status tern_thinking_opened_by_ids(const char **close, const struct tern_tokenizer *tokenizer,
                                        const struct tern_ids *prompt, struct tern_error *err);
/* Begins inside reasoning that `close` ends, a tag that tern_thinking_opened_by gave; NULL: at the
 * start.  Before the first push. */
void tern_thinking_begin_inside(struct tern_thinking *t, const char *close);
/* Continues an answer, which ended inside its reasoning or did not.  After
 * tern_thinking_begin_inside with a tag that tag ends the reasoning, else "</think>". */
void tern_thinking_resume(struct tern_thinking *t, bool was_inside);

/* Takes whole characters.  TERN_INTERRUPTED: on_part wants to stop; TERN_MEMORY. */
tern_status tern_thinking_push(struct tern_thinking *t, const char *text, size_t n,
                               struct tern_error *err);
/* The answer has ended: gives what is held back, of which nothing came.  TERN_INTERRUPTED. */
tern_status tern_thinking_end(struct tern_thinking *t, struct tern_error *err);

/* Has reasoning begun, and not ended? */
bool tern_thinking_is_inside(const struct tern_thinking *t);
/* Bytes of all text so far that stand in front of the answer; SIZE_MAX: none of it has come. */
size_t tern_thinking_answer_at(const struct tern_thinking *t);

/* Around reasoning, for an answer that is put together again. */
#define TERN_THINKING_OPEN "<think>\n"
#define TERN_THINKING_CLOSE "\n</think>\n\n"

/* ---- chat templates ---- */

/* What a template knows, found by rendering conversations with it. */
struct tern_chat_reasoning {
    bool is_known;   /* one of the others, or it treats the reasoning of earlier answers apart */
    bool has_switch; /* the variable "enable_thinking", or "thinking", turns reasoning on and off */
    bool is_opened;  /* the generation prompt begins the reasoning */
};

/* TERN_MEMORY.  A template that refuses those conversations knows nothing. */
tern_status tern_chat_reasoning(struct tern_chat_reasoning *out, const struct tern_chat_template *t,
                                const struct tern_chat_params *params, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
