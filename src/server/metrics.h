/* SPDX-License-Identifier: MIT
 *
 * What /metrics counts of refusals.
 */
#ifndef TN_METRICS_H
#define TN_METRICS_H

#include "server/serve.h"

/* A request was refused.  `code` as in struct tn_refusal; may be NULL.  on_done of the connections
 * counts what the head of an answer says; others count a refusal that comes after its head. */
void tn_metrics_count_refusal(struct tn_server *server, int status, const char *code);

#endif
