/* SPDX-License-Identifier: MIT
 *
 * Functions shared by the routes of llama.cpp's server.
 *
 * Used by llama_completion.c and llama_tokens.c.
 */
#ifndef TN_LLAMA_H
#define TN_LLAMA_H

#include "server/gen.h"
#include "server/serve.h"

/* {"n_predict":...}: the effective generation settings. */
void tn_llama_append_settings(struct tn_buf *out, const struct tn_gen *gen);

#endif
