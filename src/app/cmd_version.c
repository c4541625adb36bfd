/* SPDX-License-Identifier: MIT
 *
 * tern version and tern help: print the version with the libraries and the CPU level, and the texts
 * of help.c.
 */
#include <string.h>

#include "app.h"
#include "args.h"
#include "help.h"
#include "hints.h"
#include "output.h"
#include "tern/version.h"
#include "tern_build.h"

#if defined(_WIN32)
#define SYSTEM "windows"
#elif defined(__APPLE__)
#define SYSTEM "macos"
#else
#define SYSTEM "linux"
#endif
#if defined(__x86_64__)
#define MACHINE "x86_64"
#elif defined(__aarch64__)
#define MACHINE "aarch64"
#else
#define MACHINE "unknown"
#endif
#if defined(__clang__)
#define COMPILER "clang " __clang_version__
#else
#define COMPILER "gcc " __VERSION__
#endif

int tn_cmd_version(const struct tn_options *o)
{
    (void)o;
    struct tern_engine_params params = {.n_threads = 1};
    struct tern_engine *engine;
    static struct tern_sysinfo machine;
    tern_sysinfo_read_cpu(&machine);
    bool has_engine = tern_engine_create(&engine, &machine, &params, NULL) == TERN_OK;
    tn_out_text("tern " TERN_VERSION_STRING " (" TERN_BUILD_GIT MACHINE "-" SYSTEM ", " COMPILER
                ")\n");
    tn_out_printf("cpu level %s\n", has_engine ? tern_engine_cpu_level(engine) : "unknown");
    tn_out_text(TERN_BUILD_LIBRARIES "\n");
    tern_engine_free(engine);
    return 0;
}

int tn_cmd_help(const struct tn_options *o)
{
    if (o->n_positional == 0) {
        tn_help_all();
        return 0;
    }
    if (tn_help_topic(o->positional[0]))
        return 0;
    enum tn_command command = tn_command_find(o->positional[0]);
    if (command == TN_N_COMMANDS) {
        const char *nearest = tn_command_nearest(o->positional[0]);
        const char *hint = tn_hint_for_command(o->positional[0]);
        if (hint)
            return tn_error_say(TERN_USAGE, "unknown command \"%s\"; %s", o->positional[0], hint);
        return tn_error_say(TERN_USAGE, "unknown command \"%s\"%s%s%s", o->positional[0],
                            nearest ? "; did you mean tern help " : "; see tern help",
                            nearest ? nearest : "", nearest ? "?" : "");
    }
    tn_help_command(command);
    return 0;
}
