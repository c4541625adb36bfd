/* SPDX-License-Identifier: MIT
 *
 * The banner: the model and the machine in two lines, with the plan's threads, context and limit of
 * new tokens.
 */
#include <stdio.h>

#include "banner.h"
#include "output.h"
#include "plat/plat.h"

#define DOT " \xC2\xB7 "

static void say_machine(const struct tn_planned *planned)
{
    const struct tern_sysinfo *m = planned->machine;
    const struct tern_plan *plan = &planned->plan;
    char memory[80] = "RAM unknown";
    if (m->total_bytes != TERN_UNKNOWN)
        snprintf(memory, sizeof memory, "%s RAM, %s free",
                 tn_size_binary((double)m->total_bytes).text,
                 tn_size_binary((double)plan->available_bytes).text);
    tn_info_say("machine: %u core%s (of %u), %s" DOT "%s" DOT "%u thread%s" DOT "kv %s" DOT
                "up to %u new tokens",
                m->n_allowed, m->n_allowed == 1 ? "" : "s", m->n_physical, plan->cpu_level, memory,
                plan->n_threads_decode, plan->n_threads_decode == 1 ? "" : "s",
                tern_kv_text(plan->kv), plan->max_new_tokens);
}

void tn_banner(const struct tn_options *o, const struct tern_model *model,
               const struct tn_planned *planned)
{
    if (o->level < 0 || (o->level == 0 && !tn_is_terminal(TN_STDERR)))
        return;
    struct tern_model_info info;
    tern_model_get_info(model, &info);
    tn_info_say("tern " TERN_VERSION_STRING DOT "%.100s" DOT "%.40s %s" DOT "%s" DOT "%s" DOT
                "context %u",
                info.name, info.architecture,
                tn_count_text((double)tern_model_config(model)->n_params).text,
                info.n_ternary > 0 ? "ternary" : info.layout,
                tn_size_decimal((double)info.file_bytes).text, planned->plan.n_ctx);
    say_machine(planned);
}
