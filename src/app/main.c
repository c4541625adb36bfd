/* SPDX-License-Identifier: MIT
 *
 * tern: the command.  Parses the command line, runs one command, and exits with its code.  If
 * a signal interrupts the command, tern raises that signal again at the end, so that shells see it.
 */
#include <signal.h>
#include <string.h>

#include "app.h"
#include "args.h"
#include "base/alloc.h"
#include "base/error.h"
#include "help.h"
#include "hints.h"
#include "json_io.h"
#include "known_models.h"
#include "menu.h"
#include "output.h"
#include "plat/plat.h"

static int (*const commands[TN_N_COMMANDS])(const struct tn_options *o) = {
    [TN_CMD_RUN] = tn_cmd_run,
    [TN_CMD_CHAT] = tn_cmd_chat,
    [TN_CMD_CONVERT] = tn_cmd_convert,
    [TN_CMD_INFO] = tn_cmd_info,
    [TN_CMD_EMBED] = tn_cmd_embed,
    [TN_CMD_PULL] = tn_cmd_pull,
    [TN_CMD_LIST] = tn_cmd_list,
    [TN_CMD_REMOVE] = tn_cmd_remove,
    [TN_CMD_SERVE] = tn_cmd_serve,
    [TN_CMD_PROBE] = tn_cmd_probe,
    [TN_CMD_VERIFY] = tn_cmd_verify,
    [TN_CMD_BENCH] = tn_cmd_bench,
    [TN_CMD_TOKENIZE] = tn_cmd_tokenize,
    [TN_CMD_DETOKENIZE] = tn_cmd_detokenize,
    [TN_CMD_PERPLEXITY] = tn_cmd_perplexity,
    [TN_CMD_LOGITS] = tn_cmd_logits,
    [TN_CMD_VERSION] = tn_cmd_version,
    [TN_CMD_HELP] = tn_cmd_help,
};

/* The maximum stack depth of a command: 40 KiB at every CPU level, and 12 KiB for the frame of a
 * signal on a processor with the widest registers. */
#define MIN_STACK_BYTES 53248u

/* With less, a command would end with SIGSEGV. */
static tern_status check_stack(struct tern_error *err)
{
    const uint64_t n_limit = tn_stack_limit_bytes(), n_used = tn_stack_used_bytes();
    if (n_limit >= n_used && n_limit - n_used >= MIN_STACK_BYTES)
        return TERN_OK;
    return tn_fail(err, TERN_MEMORY,
                   "the stack may have %llu bytes, arguments and environment hold %llu of them, "
                   "tern needs %u more; raise the limit: ulimit -s %llu",
                   (unsigned long long)n_limit, (unsigned long long)n_used, MIN_STACK_BYTES,
                   (unsigned long long)((n_used + MIN_STACK_BYTES) / 1024 + 8));
}

/* For a server, being stopped is the normal end. */
static bool ends_by_request;

static int dispatch(int argc, char **argv);

/* Runs words as if they had been typed after the program's name. */
static int run_words(char *program, const char *const *words, int n)
{
    char *argv[TN_MENU_MAX_WORDS + 2] = {program};
    for (int i = 0; i < n; i++)
        argv[i + 1] = (char *)words[i];
    return dispatch(n + 1, argv);
}

/* A fetched model is used in a conversation immediately. */
static int run_menu(char *program)
{
    struct tern_error err;
    struct tn_menu_choice choice;
    const tern_status status = tn_menu_ask(&choice, &err);
    if (status == TERN_INPUT) /* the input ended */
        return 0;
    if (status != TERN_OK)
        return tn_error_print(&err);
    int exit_code = choice.n > 0 ? run_words(program, choice.words, choice.n) : 0;
    if (exit_code == 0 && choice.n > 0 && strcmp(choice.words[0], "pull") == 0)
        exit_code = run_words(program, (const char *[]){"chat", choice.words[1]}, 2);
    tn_free(choice.model);
    return exit_code;
}

static int dispatch(int argc, char **argv)
{
    struct tn_options o;
    struct tern_error err;
    if (tn_args_parse(&o, argc, argv, &err) != TERN_OK) {
        if (o.command == TN_N_COMMANDS)
            tn_model_hint(argv[1], &err);
        return tn_error_print(&err);
    }
    tn_message_set_level((int)o.level);
    tn_out_set_plain(o.plain);
    if (o.help && o.command != TN_CMD_HELP) {
        tn_help_command(o.command);
        return 0;
    }
    if (o.version)
        return tn_cmd_version(&o);
    if (check_stack(&err) != TERN_OK)
        return tn_error_print(&err);
    if (argc == 1 && tn_menu_is_wanted(&o))
        return run_menu(argv[0]);
    ends_by_request = o.command == TN_CMD_SERVE;
    return commands[o.command](&o);
}

/* A window opened by a double click would close before the user could read the error. */
static void hold_window(int n_arguments, int exit_code)
{
    static const char text[] = "Press a key to close this window.\n";
    if (n_arguments > 0 || exit_code == 0 || exit_code == tern_status_exit_code(TERN_INTERRUPTED) ||
        tn_terminate_requested() || !tn_console_is_own())
        return;
    (void)tn_write_stream(TN_STDERR, text, sizeof text - 1);
    tn_console_wait_for_key();
}

int main(int argc, char **argv)
{
    tn_process_init(&argc, &argv);
    tn_interrupt_install();
    tn_json_io_init();
    tn_typed_program_set(argv[0]);
    int exit_code = tn_out_finish(dispatch(argc, argv));
    hold_window(argc - 1, exit_code);
    const int ended_by = tn_terminate_requested();
    if (ended_by && !ends_by_request)
        tn_exit_by_signal(ended_by);
    if (exit_code == 130)
        tn_exit_by_signal(ended_by ? ended_by : SIGINT);
    return exit_code;
}
