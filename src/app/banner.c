/* SPDX-License-Identifier: MIT
 *
 * The banner: what runs, and on what.
 */
#include <inttypes.h>
#include <stdio.h>

#include "app.h"
#include "base/alloc.h"
#include "output.h"
#include "plat/plat.h"
#include "tern/sysinfo.h"

#define DOT " \xC2\xB7 "

static void say_machine(const struct tn_options *o, const struct tern_engine *engine,
                        enum tern_kv kv)
{
    struct tern_sysinfo *machine = tn_alloc(sizeof *machine);
    if (!machine)
        return;
    tern_sysinfo_read(machine);
    uint32_t n_threads = tern_engine_n_threads(engine);
    char memory[80] = "RAM unknown";
    if (machine->total_bytes != TERN_UNKNOWN && machine->available_bytes != TERN_UNKNOWN)
        snprintf(memory, sizeof memory, "%s RAM, %s free",
                 tn_size_binary((double)machine->total_bytes).text,
                 tn_size_binary((double)machine->available_bytes).text);
    tn_info_say("machine: %u core%s (of %u), %s" DOT "%s" DOT "%u thread%s" DOT "kv %s" DOT
                "up to %" PRIu64 " new tokens",
                machine->n_allowed, machine->n_allowed == 1 ? "" : "s", machine->n_physical,
                tern_engine_cpu_level(engine), memory, n_threads, n_threads == 1 ? "" : "s",
                tern_kv_text(kv), o->max_tokens);
    tn_free(machine);
}

void tn_banner(const struct tn_options *o, const struct tn_opened *opened,
               const struct tern_session *session, enum tern_kv kv)
{
    if (o->level < 0 || (o->level == 0 && !tn_is_terminal(TN_STDERR)))
        return;
    struct tern_model_info info;
    tern_model_get_info(opened->model, &info);
    const struct tern_file_config *config = tern_model_config(opened->model);
    tn_info_say("tern " TERN_VERSION_STRING DOT "%.100s" DOT "BitNet %s" DOT "2-bit" DOT "%s" DOT
                "context %u",
                info.name, tn_count_text((double)config->n_params).text,
                tn_size_decimal((double)info.file_bytes).text, tern_session_n_ctx(session));
    say_machine(o, opened->engine, kv);
}
