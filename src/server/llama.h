/* SPDX-License-Identifier: MIT
 *
 * What the routes of llama.cpp's server share.
 */
#ifndef TN_LLAMA_H
#define TN_LLAMA_H

#include "server/gen.h"
#include "server/serve.h"

/* {"n_predict":...}: how an answer is chosen. */
void tn_llama_append_settings(struct tn_buf *out, const struct tn_gen *gen);

#endif
