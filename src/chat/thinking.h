/* SPDX-License-Identifier: MIT
 *
 * Telling what a model thinks from what it answers, while the text comes.
 *
 *   START --- <think> ---> THINKING --- </think> ---> GAP --- a letter ---> ANSWERING
 *     '------------------ anything else -------------------------------------^
 *
 * Bytes that may be the beginning of a tag are held back.  White space around the tags belongs to
 * neither part.
 */
#ifndef TN_THINKING_H
#define TN_THINKING_H

#include <stdbool.h>
#include <stddef.h>

#include "base/buf.h"
#include "tern/conversation.h"

enum tn_thinking_state { TN_THINKING_START, TN_THINKING, TN_THINKING_GAP, TN_ANSWERING };

/* Zero-initialise, set `on_part`; tn_thinking_fini frees. */
struct tn_thinking {
    enum tn_thinking_state state;
    const char *close; /* the tag that ends the reasoning */
    struct tn_buf held;
    bool has_reasoning; /* some was given */
    bool is_refused;    /* on_part returned false: it is not called again */
    bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n);
    void *arg;
};

/* Begins inside the reasoning when the prompt, whose last bytes these are, ends by opening it. */
void tn_thinking_start(struct tn_thinking *t, const char *prompt_end, size_t n);
/* Begins behind `reasoning` and `content` of an answer that goes on. */
void tn_thinking_resume(struct tn_thinking *t, bool is_thinking);
/* Takes whole characters. False when on_part wants to stop or there is no memory (held.failed). */
bool tn_thinking_push(struct tn_thinking *t, const char *text, size_t n);
/* Gives what is held back: nothing came of it. */
bool tn_thinking_end(struct tn_thinking *t);
void tn_thinking_fini(struct tn_thinking *t);
/* "<think>\n" and "\n</think>\n\n" around reasoning, for an answer that is put together again. */
const char *tn_thinking_open_text(void);
const char *tn_thinking_close_text(void);

#endif
