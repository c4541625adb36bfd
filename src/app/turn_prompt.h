/* SPDX-License-Identifier: MIT
 *
 * The prompt of `tern run` with a chat template: a conversation of one turn.  An answer that fits a
 * schema or a grammar begins at once, so a model that reasons first is kept from it.
 */
#ifndef TN_TURN_PROMPT_H
#define TN_TURN_PROMPT_H

#include "base/buf.h"
#include "template.h"

/* Sets *ids, which are none, to those of the turn: --system, the prompt, and the beginning of the
 * answer.  Errors as tern_chat_encode. */
tern_status tn_turn_encode(struct tern_ids *ids, const struct tn_options *o,
                           const struct tern_tokenizer *tokenizer, const struct tn_buf *prompt,
                           const struct tn_template *template, struct tern_error *err);

#endif
