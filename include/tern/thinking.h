/* SPDX-License-Identifier: MIT
 *
 * Reasoning: separates the text that a model thinks before it answers from the answer, while it
 * streams; and detects how chat templates treat reasoning.
 *
 *   START --- <think> ---> INSIDE --- </think> ---> GAP --- a letter ---> ANSWER
 *     '------------------ anything else -----------------------------------^
 *
 * Bytes that may begin a tag are held back.  White space around the tags belongs to neither part.
 * Known tags are <think>, <thinking>, <thought>, <reasoning>, <seed:think>, [THINK] and
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

/* Create at the start of an answer.  on_part receives n > 0 bytes of text at a time and returns
 * false to stop: it is not called again.  TERN_MEMORY. */
tern_status tern_thinking_create(struct tern_thinking **out,
                                 bool (*on_part)(void *arg, enum tern_part part, const char *text,
                                                 size_t n),
                                 void *arg, struct tern_error *err);
void tern_thinking_free(struct tern_thinking *t);

/* The tag that ends the reasoning, such as "</think>", if a prompt with these last bytes opens it;
 * NULL: it does not. */
const char *tern_thinking_opened_by(const char *prompt_end, size_t n);
/* The same for a prompt as ids.  TERN_MEMORY. */
tern_status tern_thinking_opened_by_ids(const char **close, const struct tern_tokenizer *tokenizer,
                                        const struct tern_ids *prompt, struct tern_error *err);
/* Ends reasoning that a prompt opens: appends `close`, as above, on a separate line
 * with an empty line after it.  TERN_MEMORY. */
tern_status tern_thinking_close_ids(struct tern_ids *prompt, const char *close,
                                    const struct tern_tokenizer *tokenizer,
                                    struct tern_error *err);
/* Begins inside reasoning that `close` ends, a tag returned by tern_thinking_opened_by; NULL:
 * begins at the start.  Call before the first push. */
void tern_thinking_begin_inside(struct tern_thinking *t, const char *close);
/* Continues an answer that ended inside its reasoning, or did not.  The reasoning ends with the tag
 * passed to tern_thinking_begin_inside before, else with "</think>". */
void tern_thinking_resume(struct tern_thinking *t, bool was_inside);

/* Takes whole characters.  TERN_INTERRUPTED: on_part returned false; TERN_MEMORY. */
tern_status tern_thinking_push(struct tern_thinking *t, const char *text, size_t n,
                               struct tern_error *err);
/* Ends the answer: passes on the text held back, in which no tag was completed.
 * TERN_INTERRUPTED. */
tern_status tern_thinking_end(struct tern_thinking *t, struct tern_error *err);

/* Whether reasoning has begun and not ended. */
bool tern_thinking_is_inside(const struct tern_thinking *t);
/* Bytes of all text so far that precede the answer; SIZE_MAX: the answer has not begun. */
size_t tern_thinking_answer_at(const struct tern_thinking *t);

/* Tags around reasoning, for an answer that is put together again. */
#define TERN_THINKING_OPEN "<think>\n"
#define TERN_THINKING_CLOSE "\n</think>\n\n"

/* ---- chat templates ---- */

/* How a template treats reasoning, detected by rendering conversations with it. */
struct tern_chat_reasoning {
    bool is_known;   /* one of the others, or it treats the reasoning of earlier answers
                      * separately */
    bool has_switch; /* the variable "enable_thinking", or "thinking", switches reasoning on and
                      * off */
    bool is_opened;  /* the generation prompt begins the reasoning */
};

/* TERN_MEMORY.  For a template that refuses those conversations all members are false. */
tern_status tern_chat_reasoning(struct tern_chat_reasoning *out, const struct tern_chat_template *t,
                                const struct tern_chat_params *params, struct tern_error *err);

#ifdef __cplusplus
}
#endif
#endif
