/* SPDX-License-Identifier: MIT
 *
 * The state of a running `tern chat`, and the interface between its files:
 *
 *   cmd_chat.c        start, reading messages, end
 *   chat_answer.c     answers and their display
 *   chat_commands.c   the table of commands, completion, help
 *   chat_talk.c       commands that change the messages
 *   chat_report.c     commands that show something
 *   chat_settings.c   settings: /set, and those in saved conversations
 *   chat_files.c      commands with files: conversations, texts, models
 *   chat_jsonl.c      the same for programs
 */
#ifndef TN_CHAT_APP_H
#define TN_CHAT_APP_H

#include <string.h>

#include "app.h"
#include "base/buf.h"
#include "generator.h"
#include "repl/line_reader.h"
#include "template.h"
#include "tern/conversation.h"

enum tn_think { TN_THINK_ON, TN_THINK_OFF, TN_THINK_HIDE };

/* Identifies a version of a file, to detect changes by other programs; zero: unknown. */
struct tn_file_stamp {
    uint64_t n_bytes, modified_ns;
};

struct tn_chat_state {
    struct tn_options o; /* those of the command line, as changed by /set */
    struct tn_opened opened;
    struct tn_template template;
    struct tn_generator g;
    struct tern_conversation *c;
    struct tn_line_reader reader;
    struct tn_buf attached; /* text of files for the next question */
    enum tn_think think;
    bool hides_stats; /* the line after an answer */
    bool on_terminal; /* a user types on a terminal */
    bool is_editing;  /* the next message replaces the last question */
    bool is_given_back; /* the editor shows a question whose answer was stopped before it began */
    bool has_old_off;   /* the variables are those that older versions saved for "think off" */
    bool keeps_off;     /* "think off" of --session, which this template does not support */
    bool leave;
    bool is_changed;                /* since it was last saved to --session */
    struct tn_file_stamp kept;      /* --session as this process last read or wrote it */
    struct tern_error unsaved;      /* the reason why --session could not be saved; TERN_OK: it is
                                     * saved */
    tern_status failed;             /* the first error, off a terminal */
    struct tern_answer_result last; /* of the last answer; n_ids 0: none */
};

static inline bool tn_chat_is_role(const struct tern_turn *turn, const char *role)
{
    return turn->role.n == strlen(role) && memcmp(turn->role.bytes, role, turn->role.n) == 0;
}

/* Prints the result of a command to standard error, also when quiet. */
void tn_chat_say(const char *format, ...) TN_PRINTF(1, 2);
/* Reports an error; off a terminal it becomes the exit code. */
void tn_chat_fail(struct tn_chat_state *chat, const struct tern_error *err);
/* The same from a format. */
void tn_chat_refuse(struct tn_chat_state *chat, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);

/* ---- chat_answer.c ---- */

typedef tern_status tn_chat_answer_fn(struct tern_conversation *c, struct tern_session *session,
                                      const struct tern_answer_params *params,
                                      struct tern_answer_result *result, struct tern_error *err);
/* Computes the answer only: its text goes to on_part, nothing is printed. */
tern_status
tn_chat_run_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind,
                   bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n),
                   void *arg, struct tern_answer_result *result, struct tern_error *err);
/* Asks the question, with the attached files after it. */
void tn_chat_ask(struct tn_chat_state *chat, tn_chat_answer_fn *kind, const char *text, size_t n);
/* Runs one of the kinds of answers of tern/conversation.h; reports errors.  TERN_INTERRUPTED: it
 * was stopped before its first token. */
tern_status tn_chat_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind);
/* Presets the next message with the input that would send this text.  False: lines cannot be edited
 * here, or out of memory. */
bool tn_chat_preset(struct tn_chat_state *chat, const char *text, size_t n);

/* ---- chat_commands.c ---- */

struct tn_chat_command {
    const char *names;    /* "/exit /quit /bye /q" */
    const char *argument; /* "TEXT"; "": none; "[TEXT]": optional */
    const char *help;
    /* `argument`: the text after the name; "": none. */
    void (*run)(struct tn_chat_state *chat, const char *argument);
    bool takes_file;
    const char *const *choices; /* for the argument, NULL-terminated; NULL: none */
};

/* Runs a line that begins with a slash. */
void tn_chat_run_command(struct tn_chat_state *chat, const char *line);
/* The completion callback of the line editor. */
void tn_chat_complete(void *arg, const char *line, size_t cursor, size_t *start, bool *wants_file,
                      void (*add)(void *to, const char *candidate), void *to);
void tn_chat_cmd_help(struct tn_chat_state *chat, const char *argument);

/* ---- chat_talk.c ---- */

void tn_chat_cmd_exit(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_clear(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_system(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_undo(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_regen(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_continue(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_edit(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_editor(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_think(struct tn_chat_state *chat, const char *argument);

/* ---- chat_report.c ---- */

void tn_chat_cmd_history(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_stats(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_context(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_config(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_tokens(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_copy(struct tn_chat_state *chat, const char *argument);

/* ---- chat_settings.c ---- */

void tn_chat_cmd_set(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_temp(struct tn_chat_state *chat, const char *argument);
/* Names such as "temp"; NULL after the last. */
const char *tn_chat_setting_name(size_t i);
/* /set NAME VALUE.  False: refused and reported. */
bool tn_chat_set(struct tn_chat_state *chat, const char *name, const char *value);
/* The same without a message. */
tern_status tn_chat_apply(struct tn_chat_state *chat, const char *name, const char *value,
                          struct tern_error *err);
/* Whether it would succeed; nothing is changed. */
tern_status tn_chat_check(struct tn_chat_state *chat, const char *name, const char *value,
                          struct tern_error *err);
/* Prints one line per setting. */
void tn_chat_say_settings(const struct tn_chat_state *chat);
/* All settings as a JSON object. */
void tn_chat_write_settings(struct tn_buf *out, const struct tn_chat_state *chat);
/* Applies the settings in such an object.  `keep`, not NULL for --session: except those given on
 * that command line; a switch that this model's template does not have is then only a note, and
 * stays in the file. */
tern_status tn_chat_read_settings(struct tn_chat_state *chat, const char *json,
                                  const struct tn_options *keep, struct tern_error *err);
/* Whether it would succeed; nothing is changed. */
tern_status tn_chat_check_settings(struct tn_chat_state *chat, const char *json,
                                   const struct tn_options *keep, struct tern_error *err);
/* Sets it for the current conversation, whether or not the template has the switch; the variables
 * of the conversation stay. */
tern_status tn_chat_set_think(struct tn_chat_state *chat, enum tn_think think,
                              struct tern_error *err);
/* Prints "think on" and so on, and whether the template lacks the switch. */
void tn_chat_say_think(const struct tn_chat_state *chat);
/* The variables that switch thinking off in published templates. */
#define TN_CHAT_THINK_OFF "{\"enable_thinking\":false,\"thinking\":false}"
extern const char *const tn_chat_think_names[]; /* enum tn_think; NULL after the last */

/* ---- chat_files.c ---- */

void tn_chat_cmd_save(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_load(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_file(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_model(struct tn_chat_state *chat, const char *argument);
/* Whether this conversation may be replaced, including its system message unless `keeps_system`.
 * Asks the user on a terminal if --session saves it; true elsewhere. */
bool tn_chat_may_replace(struct tn_chat_state *chat, bool keeps_system);
/* Loads --session FILE if it exists. */
tern_status tn_chat_open_session(struct tn_chat_state *chat, struct tern_error *err);
/* The number of these ids that the session has computed, from the start. */
uint32_t tn_chat_n_computed(const struct tn_chat_state *chat, const struct tern_ids *ids);
/* Saves the conversation if it has changed since it was saved.  chat->unsaved is the error; the
 * next call tries again, and reports only a different error. */
void tn_chat_keep_session(struct tn_chat_state *chat);
/* --session-cache, at the end: writes the computed cache to FILE.cache; reports errors. */
void tn_chat_keep_cache(struct tn_chat_state *chat);

/* ---- chat_jsonl.c ---- */

/* Runs the conversation of --jsonl to its end. */
void tn_chat_jsonl(struct tn_chat_state *chat);

/* ---- plain_lines.c ---- */

/* Reads lines of standard input without a line editor. */
void tn_plain_lines_open(struct tn_line_reader *out, bool on_terminal);

#endif
