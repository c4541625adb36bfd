/* SPDX-License-Identifier: MIT
 *
 * Results for programs: what --json prints.
 *
 * A report is built with jansson's functions, of which some overlook that memory is short and leave
 * a member out.  So failed allocations are noted, and a report that may lack something is not
 * printed.
 */
#ifndef TN_REPORT_H
#define TN_REPORT_H

#include <jansson.h>

#include "tern/status.h"

/* Before the first use of jansson. */
void tn_report_init(void);

/* Prints and releases the report: one line on standard output.  TERN_MEMORY when an allocation has
 * failed; nothing is printed then. */
tern_status tn_report_print(json_t *report, struct tern_error *err);

#endif
