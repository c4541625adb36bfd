/* SPDX-License-Identifier: MIT
 *
 * tern chat: a conversation.  On a terminal there is a prompt on standard error; elsewhere every
 * line of standard input is a turn.  Answers go to standard output.  Lines that begin with a slash
 * are commands; two slashes send one.
 */
#include <string.h>

#include "app.h"
#include "base/error.h"
#include "base/utf8.h"
#include "chat.h"
#include "close_off.h"
#include "edit_text.h"
#include "output.h"
#include "plat/external_editor.h"
#include "plat/plat.h"
#include "plat/sandbox.h"
#include "prompt.h"
#include "repl/line_editor.h"

/* ---- lines ---- */

static bool check_message(struct tn_chat_state *chat, const struct tn_buf *line)
{
    size_t bad = tn_utf8_find_invalid(line->data, line->n_bytes);
    if (line->failed)
        tn_chat_refuse(chat, TERN_MEMORY,
                       "no room for a message of more than %zu bytes (limit %zu)", line->n_bytes,
                       TN_MAX_PROMPT_BYTES);
    else if (bad < line->n_bytes)
        tn_chat_refuse(chat, TERN_INPUT, "the message is not UTF-8: byte %zu is 0x%02X", bad,
                       (unsigned char)line->data[bad]);
    return !line->failed && bad == line->n_bytes;
}

/* Trailing blanks are not part of a command. */
static void run_command(struct tn_chat_state *chat, struct tn_buf *line)
{
    while (strchr(" \t\n", line->data[line->n_bytes - 1]))
        line->n_bytes--;
    tn_chat_run_command(chat, tn_buf_text(line));
}

static void handle_line(struct tn_chat_state *chat, struct tn_buf *line)
{
    const bool is_edited = chat->is_editing;
    chat->is_editing = chat->is_given_back = false;
    if (!check_message(chat, line) || tn_prompt_is_blank(line->data, line->n_bytes))
        return;
    bool has_slash = line->data[0] == '/';
    if (has_slash && !(line->n_bytes > 1 && line->data[1] == '/')) {
        run_command(chat, line);
        return;
    }
    tn_chat_ask(chat, is_edited ? tern_conversation_replace : tern_conversation_answer,
                line->data + has_slash, line->n_bytes - has_slash);
}

/* Drops the byte order mark with which some programs begin their output. */
static void drop_mark(struct tn_buf *line)
{
    size_t n = tn_prompt_mark(line->data, line->n_bytes);
    line->n_bytes -= n;
    if (n > 0)
        memmove(line->data, line->data + n, line->n_bytes);
}

/* Ctrl-C at the prompt prints a hint; a second one within this time leaves. */
#define LEAVE_WITHIN_NS 2000000000u

/* hint_ns: time of the last hint, 0: never. */
static void on_interrupt(struct tn_chat_state *chat, uint64_t *hint_ns)
{
    const uint64_t now = tn_now_ns();
    const bool is_second = *hint_ns && now - *hint_ns < LEAVE_WITHIN_NS;
    const bool may_stay = chat->on_terminal && !tn_terminate_requested();
    if (may_stay && (chat->is_editing || chat->is_given_back)) { /* it empties the line */
        if (chat->is_editing)
            tn_chat_say("The question and its answer are unchanged.");
        chat->is_editing = chat->is_given_back = false;
        tn_interrupt_clear();
        return;
    }
    if (may_stay && !is_second) {
        *hint_ns = now;
        tn_interrupt_clear();
        tn_chat_say("(Ctrl-C once more or /exit leaves)");
        return;
    }
    chat->failed = TERN_INTERRUPTED;
    chat->leave = true;
}

/* Opens the line editor on a terminal that supports it, plain lines elsewhere. */
static tern_status open_reader(struct tn_chat_state *chat, struct tern_error *err)
{
    const struct tn_completer completer = {chat, tn_chat_complete};
    tern_status status = TERN_UNSUPPORTED;
    if (chat->on_terminal)
        status = tn_line_editor_open(&chat->reader, &completer, chat->o.history, err);
    if (status == TERN_OK)
        tn_line_editor_use(&chat->reader, tn_edit_text);
    if (status != TERN_UNSUPPORTED)
        return status;
    tn_plain_lines_open(&chat->reader, chat->on_terminal);
    return tn_ok(err);
}

static void talk(struct tn_chat_state *chat)
{
    struct tn_buf line = {0};
    struct tern_error err;
    uint64_t hint_ns = 0;
    bool is_first = true;
    if (chat->on_terminal)
        tn_chat_say("/help lists the commands; " TN_KEY_OF_END " leaves");
    while (!chat->leave) {
        tn_buf_clear(&line);
        enum tn_line kind = chat->reader.read(chat->reader.state, "> ", ". ", &line, &err);
        if (kind == TN_LINE_TEXT) {
            if (is_first)
                drop_mark(&line);
            is_first = false;
            hint_ns = 0;
            handle_line(chat, &line);
            tn_chat_keep_session(chat);
            continue;
        }
        if (kind == TN_LINE_INTERRUPT) {
            on_interrupt(chat, &hint_ns);
            continue;
        }
        if (kind == TN_LINE_FAILED) {
            tn_error_print(&err);
            chat->failed = err.status;
        }
        chat->leave = true;
    }
    tn_buf_fini(&line);
}

/* ---- start and end ---- */

static tern_status set_system(struct tn_chat_state *chat, struct tern_error *err)
{
    const char *text = chat->o.system;
    return text ? tern_conversation_set_system(chat->c, text, strlen(text), err) : TERN_OK;
}

/* The system message is checked before memory is allocated, and overrides that of a saved
 * conversation. */
static tern_status start(struct tn_chat_state *chat, struct tern_error *err)
{
    const struct tn_options *o = &chat->o;
    tern_status status = tn_template_choose(&chat->template, o, chat->opened.model, err);
    if (status == TERN_OK)
        status = tern_conversation_create(&chat->c, err);
    if (status == TERN_OK)
        tern_conversation_set_template(chat->c, tern_model_tokenizer(chat->opened.model),
                                       chat->template.t, &chat->template.params);
    if (status == TERN_OK)
        status = set_system(chat, err);
    if (status == TERN_OK)
        status = tn_generator_init(&chat->g, o, &chat->opened, 0, NULL, err);
    if (status == TERN_OK)
        status = tn_chat_open_session(chat, err);
    if (status == TERN_OK)
        status = set_system(chat, err);
    return status == TERN_OK && !o->jsonl ? open_reader(chat, err) : status;
}

static void finish_chat(struct tn_chat_state *chat)
{
    if (chat->reader.close)
        chat->reader.close(chat->reader.state);
    tn_buf_fini(&chat->attached);
    tern_conversation_free(chat->c);
    tn_template_fini(&chat->template);
    tn_generator_fini(&chat->g);
    tn_close(&chat->opened);
}

/* Reports typed lines that --history could not save; earlier attempts are repeated by this one. */
static void keep_history(struct tn_chat_state *chat)
{
    struct tern_error err;
    if (!chat->reader.save || chat->reader.save(chat->reader.state, &err) == TERN_OK)
        return;
    tn_error_print(&err);
    chat->failed = chat->failed != TERN_OK ? chat->failed : err.status;
}

/* Before a model is loaded and an answer computed: whether the conversation can be saved there.
 * Other files than saved conversations are refused later, with a more specific message. */
static tern_status check_session(const char *path, struct tern_error *err)
{
    struct tern_error why;
    if (tn_path_kind(path) != TN_PATH_ABSENT && tn_path_kind(path) != TN_PATH_FILE)
        return TERN_OK;
    tern_status status = tn_file_try_private(path, &why);
    return status == TERN_OK ? TERN_OK
                             : tn_fail(err, status, "--session %.100s: cannot be saved: %s", path,
                                       why.detail);
}

/* Commands of a conversation may open files; lines of JSON cannot. */
static void close_off(const struct tn_chat_state *chat)
{
    const struct tn_options *o = &chat->o;
    const bool may_write =
        !o->jsonl || o->session || tern_steering_may_save(chat->g.steering);
    tn_close_off(o, (may_write ? TN_SANDBOX_FILES : 0) |
                        (chat->on_terminal ? TN_SANDBOX_TERMINAL : 0), 1);
}

int tn_cmd_chat(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tn_chat_state chat = {.o = *o, .on_terminal = tn_is_terminal(TN_STDIN) && !o->jsonl};
    tern_status status = tn_check_names(o, &err);
    if (status == TERN_OK && o->session_cache && !o->session)
        status = tn_fail(&err, TERN_USAGE, "--session-cache needs --session FILE");
    if (status == TERN_OK && o->session)
        status = check_session(o->session, &err);
    if (status == TERN_OK && chat.on_terminal && !o->no_sandbox && tn_sandbox_exists())
        tn_external_editor_prepare();
    const bool may_ask = chat.on_terminal && tn_is_terminal(TN_STDERR);
    if (status == TERN_OK)
        status = tn_open(&chat.opened, o, tn_first_argument(o),
                         TN_OPEN_MACHINE | TN_OPEN_TOKENIZER | TN_OPEN_CONVERT |
                             (may_ask ? TN_OPEN_ASK : 0),
                         &err);
    if (status == TERN_OK)
        status = start(&chat, &err);
    if (status != TERN_OK) {
        tn_error_print(&err);
    } else {
        close_off(&chat);
        (o->jsonl ? tn_chat_jsonl : talk)(&chat);
        tn_chat_keep_session(&chat);
        tn_chat_keep_cache(&chat);
        keep_history(&chat);
        status = chat.failed != TERN_OK ? chat.failed : chat.unsaved.status;
    }
    finish_chat(&chat);
    tn_external_editor_end();
    return tern_status_exit_code(status);
}
