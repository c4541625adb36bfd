/* SPDX-License-Identifier: MIT
 *
 * Declarations shared by Ollama's routes.
 *
 * ollama.c generates, ollama_models.c describes models, embeddings.c has the embedding routes.
 */
#ifndef TN_OLLAMA_H
#define TN_OLLAMA_H

#include <stdint.h>

#include "base/buf.h"
#include "server/task.h"

/* Format of /api/chat and /api/generate. */
extern const struct tn_task_format tn_ollama_format;

/* Formats seconds since 1970: "2026-11-22T20:05:00Z". */
void tn_ollama_append_time(struct tn_buf *out, int64_t seconds);

#endif
