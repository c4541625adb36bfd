/* SPDX-License-Identifier: MIT
 *
 * What Ollama's routes share.
 */
#ifndef TN_OLLAMA_H
#define TN_OLLAMA_H

#include <stdint.h>

#include "base/buf.h"
#include "server/task.h"

/* Of /api/chat and /api/generate. */
extern const struct tn_task_format tn_ollama_format;

/* "2026-11-22T20:05:00Z", of seconds since 1970. */
void tn_ollama_append_time(struct tn_buf *out, int64_t seconds);

#endif
