/* SPDX-License-Identifier: MIT
 *
 * The counters of refused requests for /metrics.
 *
 * on_done of the connections counts by the status of the answer; other callers count refusals that
 * happen after the head was sent.
 */
#ifndef TN_METRICS_H
#define TN_METRICS_H

#include "server/serve.h"

/* Counts a refused request.  `code` as in struct tn_refusal; may be NULL. */
void tn_metrics_count_refusal(struct tn_server *server, int status, const char *code);

#endif
