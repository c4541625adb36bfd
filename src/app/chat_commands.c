/* SPDX-License-Identifier: MIT
 *
 * The commands of a conversation: their table, look-up by name, help, and completion of names and
 * arguments.
 */
#include <stdio.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "chat.h"
#include "help.h"
#include "known_models.h"
#include "nearest.h"
#include "output.h"
#include "plat/plat.h"

static const struct tn_chat_command commands[] = {
    {"/help /?", "[COMMAND|keys]", "this list, one command of it, or the keys",
     .run = tn_chat_cmd_help},
    {"/exit /quit /bye /q", "", "leave; also " TN_KEY_OF_END, .run = tn_chat_cmd_exit},
    {"/clear /reset /new", "", "forget the conversation, keep the system message",
     .run = tn_chat_cmd_clear},
    {"/system", "[TEXT]", "set the system message, \"\" removes it; alone: show it",
     .run = tn_chat_cmd_system},
    {"/model", "[NAME|FILE]", "continue with another model; alone: list them",
     .run = tn_chat_cmd_model, .takes_file = true},
    {"/regen /retry", "", "another answer to the last question", .run = tn_chat_cmd_regen},
    {"/continue", "", "continue the last answer", .run = tn_chat_cmd_continue},
    {"/undo", "", "forget the last question and its answer", .run = tn_chat_cmd_undo},
    {"/edit", "[TEXT]", "ask the last question again, changed; TEXT: ask that instead",
     .run = tn_chat_cmd_edit},
    {"/editor", "[TEXT]", "write the next message in $EDITOR; also Ctrl-X Ctrl-E",
     .run = tn_chat_cmd_editor},
    {"/file", "FILE", "attach the text of a file to the next question", .run = tn_chat_cmd_file,
     .takes_file = true},
    {"/save", "FILE", "save the conversation", .run = tn_chat_cmd_save, .takes_file = true},
    {"/load", "FILE", "continue a saved conversation", .run = tn_chat_cmd_load,
     .takes_file = true},
    {"/history", "", "all messages", .run = tn_chat_cmd_history},
    {"/context", "", "tokens in use and in the cache; the turn dropped next",
     .run = tn_chat_cmd_context},
    {"/tokens", "[N|TEXT]", "limit of new tokens; with a text: count its tokens",
     .run = tn_chat_cmd_tokens},
    {"/set", "[NAME VALUE]", "change a setting; alone: list them", .run = tn_chat_cmd_set},
    {"/temp", "[T]", "the temperature", .run = tn_chat_cmd_temp},
    {"/think", "[on|off|hide]", "let the model think before it answers; hide: unshown",
     .run = tn_chat_cmd_think, .choices = tn_chat_think_names},
    {"/config", "", "settings and limits of this machine, with reasons",
     .run = tn_chat_cmd_config},
    {"/stats", "", "messages, context, speed, memory", .run = tn_chat_cmd_stats},
    {"/copy", "", "the last answer to the clipboard, through the terminal",
     .run = tn_chat_cmd_copy},
};

/* ---- names ---- */

/* The next name after *names, *n bytes long; NULL after the last. */
static const char *next_name(const char **names, size_t *n)
{
    const char *name = *names;
    *n = strcspn(name, " ");
    *names = name + *n + (name[*n] == ' ');
    return *n > 0 ? name : NULL;
}

static const struct tn_chat_command *find_command(const char *typed, size_t n)
{
    for (size_t i = 0; i < TN_COUNT_OF(commands); i++) {
        size_t n_name;
        const char *names = commands[i].names, *name;
        while ((name = next_name(&names, &n_name)) != NULL)
            if (n_name == n && memcmp(name, typed, n) == 0)
                return &commands[i];
    }
    return NULL;
}

/* Copies a name of the table, which are short. */
static void copy_name(char out[16], const char *name, size_t n)
{
    n = TN_MIN(n, (size_t)15);
    memcpy(out, name, n);
    out[n] = '\0';
}

static void refuse_unknown(struct tn_chat_state *chat, const char *typed, size_t n)
{
    struct tn_nearest nearest;
    char known[16], best[16] = "";
    int n_shown = (int)TN_MIN(n, (size_t)40);
    tn_nearest_init(&nearest, typed + 1, n - 1); /* the slash is the same in all names */
    for (size_t i = 0; i < TN_COUNT_OF(commands); i++) {
        size_t n_name;
        const char *names = commands[i].names, *name;
        while ((name = next_name(&names, &n_name)) != NULL) {
            uint32_t before = nearest.distance;
            copy_name(known, name, n_name);
            tn_nearest_try(&nearest, "", known + 1);
            if (nearest.distance < before)
                copy_name(best, name, n_name);
        }
    }
    if (best[0])
        tn_chat_refuse(chat, TERN_USAGE,
                       "unknown command \"%.*s\"; did you mean %s? // sends a "
                       "slash",
                       n_shown, typed, best);
    else
        tn_chat_refuse(chat, TERN_USAGE,
                       "unknown command \"%.*s\"; /help lists them, // sends a slash", n_shown,
                       typed);
}

/* Runs a command with a file name as users type it, or as a terminal quotes a dropped file. */
static void run_with_file(struct tn_chat_state *chat, const struct tn_chat_command *command,
                          const char *argument)
{
    struct tn_buf inside = {0};
    const size_t n = strlen(argument);
    const bool is_quoted = n > 2 && strchr("\"'", argument[0]) && argument[n - 1] == argument[0];
    tn_buf_append(&inside, argument + is_quoted, n - 2 * is_quoted);
    char *path = inside.failed ? NULL : tn_path_typed(tn_buf_text(&inside));
    if (path)
        command->run(chat, path);
    else
        tn_chat_refuse(chat, TERN_MEMORY, "no memory for a path");
    tn_free(path);
    tn_buf_fini(&inside);
}

void tn_chat_run_command(struct tn_chat_state *chat, const char *line)
{
    size_t n = strcspn(line, " \t\n");
    const char *argument = line + n + strspn(line + n, " \t\n");
    const struct tn_chat_command *command = find_command(line, n);
    if (!command)
        refuse_unknown(chat, line, n);
    else if (*argument && !command->argument[0])
        tn_chat_refuse(chat, TERN_USAGE, "%.*s takes no argument", (int)n, line);
    else if (!*argument && command->argument[0] && command->argument[0] != '[')
        tn_chat_refuse(chat, TERN_USAGE, "%.*s needs a value: %.*s %s", (int)n, line, (int)n, line,
                       command->argument);
    else if (command->takes_file)
        run_with_file(chat, command, argument);
    else
        command->run(chat, argument);
}

/* ---- help ---- */

static void help_with(const struct tn_chat_command *command)
{
    char left[48];
    snprintf(left, sizeof left, "%s %s", command->names, command->argument);
    if (tn_is_terminal(TN_STDERR) && tn_terminal_columns() < 60)
        tn_chat_say("%s\n    %s", left, command->help);
    else
        tn_chat_say("%-26s %s", left, command->help);
}

void tn_chat_cmd_help(struct tn_chat_state *chat, const char *argument)
{
    char name[16] = "/";
    copy_name(name + (argument[0] != '/'), argument, TN_MIN(strlen(argument), (size_t)14));
    const struct tn_chat_command *one = find_command(name, strlen(name));
    if (strcmp(name, "/keys") == 0) {
        const char *keys = tn_help_topic_text("keys");
        tn_message_text(keys, strlen(keys));
        return;
    }
    if (*argument && one) {
        help_with(one);
        return;
    }
    if (*argument) {
        refuse_unknown(chat, name, strlen(name));
        return;
    }
    for (size_t i = 0; i < TN_COUNT_OF(commands); i++)
        help_with(&commands[i]);
    tn_chat_say("A line that ends in \\ continues on the next; from \"\"\" to \"\"\" all lines are "
                "one message.");
    tn_chat_say("// at the start sends one slash. Ctrl-C stops an answer. /help keys: what keys "
                "do.");
}

/* ---- completion ---- */

static void add_names(const char *word, size_t n, void (*add)(void *to, const char *candidate),
                      void *to)
{
    for (size_t i = 0; i < TN_COUNT_OF(commands); i++) {
        size_t n_name;
        const char *names = commands[i].names, *name;
        while ((name = next_name(&names, &n_name)) != NULL) {
            char known[16];
            copy_name(known, name, n_name);
            if (n_name >= n && memcmp(name, word, n) == 0)
                add(to, known);
        }
    }
}

static void add_settings(const char *word, size_t n, void (*add)(void *to, const char *candidate),
                         void *to)
{
    const char *name;
    for (size_t i = 0; (name = tn_chat_setting_name(i)) != NULL; i++)
        if (strncmp(name, word, n) == 0)
            add(to, name);
}

static void add_models(const char *word, size_t n, void (*add)(void *to, const char *candidate),
                       void *to)
{
    struct tn_known_models known;
    if (tn_known_models_read(&known, TN_KNOWN_FOLDERS_AND_CURRENT, NULL) != TERN_OK)
        return;
    for (size_t i = 0; i < known.n; i++)
        if (strncmp(known.rows[i].name, word, n) == 0)
            add(to, known.rows[i].name);
    tn_known_models_fini(&known);
}

void tn_chat_complete(void *arg, const char *line, size_t cursor, size_t *start, bool *wants_file,
                      void (*add)(void *to, const char *candidate), void *to)
{
    (void)arg;
    *start = cursor;
    *wants_file = false;
    if (cursor == 0 || line[0] != '/')
        return;
    size_t n_name = TN_MIN(strcspn(line, " \t"), cursor);
    if (n_name == cursor) {
        *start = 0;
        add_names(line, cursor, add, to);
        return;
    }
    const struct tn_chat_command *command = find_command(line, n_name);
    size_t at = n_name + strspn(line + n_name, " \t");
    if (!command || at > cursor)
        return;
    *start = at;
    *wants_file = command->takes_file;
    if (command->run == tn_chat_cmd_set && !memchr(line + at, ' ', cursor - at))
        add_settings(line + at, cursor - at, add, to);
    if (command->run == tn_chat_cmd_model)
        add_models(line + at, cursor - at, add, to);
    for (const char *const *choice = command->choices; choice && *choice; choice++)
        if (strncmp(*choice, line + at, cursor - at) == 0)
            add(to, *choice);
}
