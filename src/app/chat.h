/* SPDX-License-Identifier: MIT
 *
 * A running `tern chat`: what its parts share.
 *
 *   cmd_chat.c        begins, reads messages, ends
 *   chat_answer.c     answers and what is shown of them
 *   chat_commands.c   the table of commands, completion, help
 *   chat_talk.c       commands that change what was said
 *   chat_report.c     commands that show something
 *   chat_settings.c   what /set changes and a saved conversation keeps
 *   chat_files.c      commands with files: conversations, texts, models
 *   chat_jsonl.c      the same for programs
 */
#ifndef TN_CHAT_APP_H
#define TN_CHAT_APP_H

#include "app.h"
#include "base/buf.h"
#include "generator.h"
#include "repl/line_reader.h"
#include "template.h"
#include "tern/conversation.h"

enum tn_think { TN_THINK_ON, TN_THINK_OFF, TN_THINK_HIDE };

/* Of a file, to see that somebody else has written it; zero: there is none. */
struct tn_file_stamp {
    uint64_t n_bytes, modified_ns;
};

struct tn_chat_state {
    struct tn_options o; /* those of the command line, and what /set made of them */
    struct tn_opened opened;
    struct tn_template template;
    struct tn_generator g;
    struct tern_conversation *c;
    struct tn_line_reader reader;
    struct tn_buf attached; /* text of files for the next question */
    enum tn_think think;
    bool hides_stats; /* the line after an answer */
    bool on_terminal; /* there is somebody who types */
    bool is_editing;  /* the next message takes the place of the last question */
    bool is_given_back; /* the editor shows a question whose answer was stopped before it began */
    bool has_old_off;   /* the variables are those with which older versions saved "think off" */
    bool keeps_off;     /* "think off" of --session, which this template does not have */
    bool leave;
    bool is_changed;                /* since the conversation was saved to --session */
    struct tn_file_stamp kept;      /* --session as this process read or wrote it last */
    struct tern_error unsaved;      /* why --session could not be saved; TERN_OK: it is saved */
    tern_status failed;             /* first line that failed, when nobody watches */
    struct tern_answer_result last; /* of the last answer; n_ids 0: none */
};

/* A line, or more, that a command has been asked for: to standard error, also when quiet. */
void tn_chat_say(const char *format, ...) TN_PRINTF(1, 2);
/* Says what went wrong; off a terminal it becomes the exit code. */
void tn_chat_fail(struct tn_chat_state *chat, const struct tern_error *err);
/* The same from a format. */
void tn_chat_refuse(struct tn_chat_state *chat, tern_status status, const char *format, ...)
    TN_PRINTF(3, 4);

/* ---- chat_answer.c ---- */

typedef tern_status tn_chat_answer_fn(struct tern_conversation *c, struct tern_session *session,
                                      const struct tern_answer_params *params,
                                      struct tern_answer_result *result, struct tern_error *err);
/* The answer alone: its text goes to on_part, nothing is printed. */
tern_status
tn_chat_run_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind,
                   bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n),
                   void *arg, struct tern_answer_result *result, struct tern_error *err);
/* Asks, with the attached files behind the question. */
void tn_chat_ask(struct tn_chat_state *chat, tn_chat_answer_fn *kind, const char *text, size_t n);
/* One of the kinds of answers of tern/conversation.h; says what went wrong. TERN_INTERRUPTED: it
 * was stopped before its first token. */
tern_status tn_chat_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind);
/* The next message begins as what has to be typed to send this text. False: lines cannot be edited
 * here, or there is no memory. */
bool tn_chat_preset(struct tn_chat_state *chat, const char *text, size_t n);

/* ---- chat_commands.c ---- */

struct tn_chat_command {
    const char *names;    /* "/exit /quit /bye /q" */
    const char *argument; /* "TEXT"; "": none; "[TEXT]": may be absent */
    const char *help;
    /* `argument`: the text behind the name; "": there is none. */
    void (*run)(struct tn_chat_state *chat, const char *argument);
    bool takes_file;
    const char *const *choices; /* of the argument, NULL behind the last; NULL: none */
};
extern const struct tn_chat_command tn_chat_commands[];
extern const size_t tn_n_chat_commands;

/* A line that begins with a slash. */
void tn_chat_run_command(struct tn_chat_state *chat, const char *line);
/* The completer of a line editor. */
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
/* "temp" and so on; NULL behind the last. */
const char *tn_chat_setting_name(size_t i);
/* /set NAME VALUE. False: refused, which has been said. */
bool tn_chat_set(struct tn_chat_state *chat, const char *name, const char *value);
/* The same without words. */
tern_status tn_chat_apply(struct tn_chat_state *chat, const char *name, const char *value,
                          struct tern_error *err);
/* Would it? Nothing is changed. */
tern_status tn_chat_check(struct tn_chat_state *chat, const char *name, const char *value,
                          struct tern_error *err);
/* Appends one line per setting. */
void tn_chat_list_settings(struct tn_buf *out, const struct tn_chat_state *chat);
/* All settings as a JSON object. */
void tn_chat_write_settings(struct tn_buf *out, const struct tn_chat_state *chat);
/* Takes over what such an object says. `keep`, not NULL for --session: but for what was given on
 * that command line; a switch that this model's template does not have is a note then, and stays in
 * the file. */
tern_status tn_chat_read_settings(struct tn_chat_state *chat, const char *json,
                                  const struct tn_options *keep, struct tern_error *err);
/* Would it? Nothing is changed. */
tern_status tn_chat_check_settings(struct tn_chat_state *chat, const char *json,
                                   const struct tn_options *keep, struct tern_error *err);
/* Makes it so for the conversation in use, whatever the template knows: the variables of the
 * conversation stay. */
tern_status tn_chat_set_think(struct tn_chat_state *chat, enum tn_think think,
                              struct tern_error *err);
/* "think on", and that the template has no switch where it has none. */
void tn_chat_say_think(const struct tn_chat_state *chat);
/* The variables that switch it off in published templates. */
#define TN_CHAT_THINK_OFF "{\"enable_thinking\":false,\"thinking\":false}"
extern const char *const tn_chat_think_names[]; /* enum tn_think; NULL behind the last */

/* ---- chat_files.c ---- */

void tn_chat_cmd_save(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_load(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_file(struct tn_chat_state *chat, const char *argument);
void tn_chat_cmd_model(struct tn_chat_state *chat, const char *argument);
/* May this conversation be dropped for another, its system message too unless `keeps_system`? On a
 * terminal, where --session keeps it, the user is asked; true elsewhere. */
bool tn_chat_may_replace(struct tn_chat_state *chat, bool keeps_system);
/* Loads --session FILE if it is there. */
tern_status tn_chat_open_session(struct tn_chat_state *chat, struct tern_error *err);
/* Saves it when the conversation has changed since it was saved. chat->unsaved is why it could not
 * be; the next call tries again, and says so only for another reason. */
void tn_chat_keep_session(struct tn_chat_state *chat);
/* --session-cache, at the end: what was computed, into FILE.cache; says what went wrong. */
void tn_chat_keep_cache(struct tn_chat_state *chat);

/* ---- chat_jsonl.c ---- */

/* The conversation of --jsonl, to its end. */
void tn_chat_jsonl(struct tn_chat_state *chat);

/* ---- plain_lines.c ---- */

/* Lines of standard input: where there is no line editor. */
void tn_plain_lines_open(struct tn_line_reader *out, bool on_terminal);

#endif
