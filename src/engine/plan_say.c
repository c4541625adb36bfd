/* SPDX-License-Identifier: MIT
 *
 * Writes down why a plan is what it is: reasons, notices, readable sizes.
 *
 * The decisions are made in plan.c and plan_memory.c; these functions only format them.
 */
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

#include "engine/plan.h"

void tn_plan_reason(struct tern_plan *plan, const char *what, uint64_t number, const char *text,
                    const char *bound_by, const char *detail, ...)
{
    if (plan->n_reasons == TERN_PLAN_MAX_REASONS)
        return;
    struct tern_plan_reason *r = &plan->reasons[plan->n_reasons++];
    r->what = what;
    r->is_number = text == NULL;
    r->number = number;
    r->bound_by = bound_by;
    if (text)
        snprintf(r->value, sizeof r->value, "%s", text);
    else
        snprintf(r->value, sizeof r->value, "%" PRIu64, number);
    va_list args;
    va_start(args, detail);
    vsnprintf(r->detail, sizeof r->detail, detail, args);
    va_end(args);
}

void tn_plan_notice(struct tern_plan *plan, const char *format, ...)
{
    if (plan->n_notices == TERN_PLAN_MAX_NOTICES)
        return;
    va_list args;
    va_start(args, format);
    vsnprintf(plan->notices[plan->n_notices++], sizeof plan->notices[0], format, args);
    va_end(args);
}

const char *tn_plan_size_text(struct tn_plan_size *out, uint64_t bytes)
{
    if (bytes == TERN_UNKNOWN)
        snprintf(out->text, sizeof out->text, "unknown");
    else if (bytes >= TN_PLAN_GIB)
        snprintf(out->text, sizeof out->text, "%.1f GiB", (double)bytes / (double)TN_PLAN_GIB);
    else
        snprintf(out->text, sizeof out->text, bytes < 100 * TN_PLAN_MIB ? "%.1f MiB" : "%.0f MiB",
                 (double)bytes / (double)TN_PLAN_MIB);
    return out->text;
}

const char *tn_plan_size_directed(struct tn_plan_size *out, uint64_t bytes, bool up)
{
    uint64_t unit = bytes >= TN_PLAN_GIB ? TN_PLAN_GIB : TN_PLAN_MIB;
    uint64_t per_unit = unit == TN_PLAN_GIB || bytes < 100 * TN_PLAN_MIB ? 10 : 1;
    if (bytes > UINT64_MAX / 16)
        return tn_plan_size_text(out, bytes);
    uint64_t n = (bytes * per_unit + (up ? unit - 1 : 0)) / unit;
    return tn_plan_size_text(out, (n * unit + per_unit - 1) / per_unit);
}
