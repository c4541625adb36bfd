/* SPDX-License-Identifier: MIT
 *
 * tern chat: a conversation.
 *
 * On a terminal there is a prompt on standard error; elsewhere every line of standard input is a
 * turn.  Answers go to standard output.  Lines that begin with a slash are commands; two slashes
 * send one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "app.h"
#include "base/log.h"
#include "base/utf8.h"
#include "conversation.h"
#include "generator.h"
#include "output.h"
#include "plat/plat.h"
#include "prompt.h"

struct chat {
    const struct tn_options *o;
    const struct tern_model *model;
    const struct tern_chat_template *t;
    struct tn_generator g;
    struct tn_conversation c;
    struct tern_ids ids;
    bool on_terminal; /* there is somebody who types */
    bool leave;
    tern_status failed; /* first line that failed, when nobody watches */
};

static void print(const char *text)
{
    (void)tn_write_stream(TN_STDERR, text, strlen(text));
}

static void note_failure(struct chat *chat, tern_status status)
{
    if (chat->failed == TERN_OK && !chat->on_terminal)
        chat->failed = status;
}

/* ---- one answer ---- */

/* Drops the oldest turns until the conversation leaves room for an answer. Three quarters of the
 * context stay filled at most, so that not every turn has to drop and compute everything anew. For
 * a message that cannot fit nothing is forgotten. */
static tern_status fit_context(struct chat *chat, struct tern_error *err)
{
    uint64_t n_ctx = tern_session_n_ctx(chat->g.session);
    uint64_t n_room = TN_MIN(tn_generator_max_tokens(&chat->g), n_ctx / 4);
    size_t n_dropped = 0;
    size_t first = 0;
    tern_status status = tn_conversation_encode(&chat->c, 0, chat->model, chat->t, &chat->ids, err);
    bool is_full = status == TERN_OK && chat->ids.n + n_room > n_ctx;
    while (is_full && status == TERN_OK && chat->ids.n > n_ctx * 3 / 4) {
        size_t next = tn_conversation_next_question(&chat->c, first);
        if (next >= chat->c.n_turns)
            break;
        first = next;
        n_dropped++;
        status = tn_conversation_encode(&chat->c, first, chat->model, chat->t, &chat->ids, err);
    }
    if (status == TERN_OK && chat->ids.n >= n_ctx)
        return tn_fail(err, TERN_LIMIT, "the message is too long: %zu tokens, the context is "
                                        "%" PRIu64,
                       chat->ids.n, n_ctx);
    if (status == TERN_OK && n_dropped > 0) {
        tn_conversation_drop(&chat->c, first);
        tn_note_say("the context of %" PRIu64 " tokens is full: the oldest %zu turn%s forgotten",
                    n_ctx, n_dropped, n_dropped == 1 ? " is" : "s are");
    }
    return status;
}

static void print_ids(const struct chat *chat)
{
    struct tn_buf out = {0};
    tn_buf_append_text(&out, "ids:");
    for (size_t i = 0; i < chat->ids.n; i++)
        tn_buf_printf(&out, " %u", chat->ids.ids[i]);
    tn_buf_append_text(&out, "\n");
    print(tn_buf_text(&out));
    tn_buf_fini(&out);
}

/* Answers the last turn; without success the conversation ends with the question again. */
static tern_status answer(struct chat *chat, struct tern_error *err)
{
    struct tern_generate_result result;
    struct tn_turn *turn;
    tern_status status = fit_context(chat, err);
    if (status == TERN_OK && chat->o->level > 0)
        print_ids(chat);
    if (status == TERN_OK)
        status = tn_conversation_add(&chat->c, "assistant", "", 0, &turn, err);
    if (status == TERN_OK) {
        chat->g.text = &turn->text;
        status = tn_generator_answer(&chat->g, &chat->ids, &result, err);
        chat->g.text = NULL;
        if (status == TERN_OK)
            tn_generator_print_stats(&chat->g, &result);
        if (status == TERN_OK && turn->text.failed)
            status = tn_fail(err, TERN_MEMORY, "no memory to remember the answer");
        if (status != TERN_OK)
            tn_conversation_remove_last(&chat->c, "assistant");
    }
    return status;
}

/* Says what went wrong and decides whether to go on. */
static void after_answer(struct chat *chat, tern_status status, const struct tern_error *err)
{
    if (tn_terminate_requested() || !tn_out_is_open())
        chat->leave = true;
    if (tn_interrupt_count() > 0) {
        if (!chat->on_terminal) {
            chat->failed = TERN_INTERRUPTED;
            chat->leave = true;
        }
        tn_interrupt_clear();
        return;
    }
    if (status == TERN_OK)
        return;
    tn_error_print(err);
    note_failure(chat, status);
}

static void ask(struct chat *chat, const char *text, size_t n)
{
    struct tern_error err;
    tern_status status = tn_conversation_add(&chat->c, "user", text, n, NULL, &err);
    if (status == TERN_OK) {
        status = answer(chat, &err);
        if (status != TERN_OK)
            tn_conversation_remove_last(&chat->c, "user");
    }
    after_answer(chat, status, &err);
}

/* ---- commands ---- */

static void cmd_help(struct chat *chat, const char *argument);

static void cmd_exit(struct chat *chat, const char *argument)
{
    (void)argument;
    chat->leave = true;
}

static void cmd_clear(struct chat *chat, const char *argument)
{
    (void)argument;
    tn_conversation_clear(&chat->c);
    print("The conversation is empty.\n");
}

static tern_status check_system(struct chat *chat, struct tern_error *err)
{
    struct tn_conversation trial = {.system = chat->c.system, .has_system = chat->c.has_system};
    struct tern_ids ids = {0};
    tern_status status = tn_conversation_add(&trial, "user", "x", 1, NULL, err);
    if (status == TERN_OK)
        status = tn_conversation_encode(&trial, 0, chat->model, chat->t, &ids, err);
    tern_ids_free(&ids);
    trial.system = (struct tn_buf){0};
    tn_conversation_fini(&trial);
    return status;
}

static void cmd_system(struct chat *chat, const char *argument)
{
    struct tern_error err;
    if (!argument[0]) {
        print(chat->c.has_system ? tn_buf_text(&chat->c.system) : "There is no system message.");
        print("\n");
        return;
    }
    tern_status status =
        tn_conversation_set_system(&chat->c, argument, strlen(argument), &err);
    if (status == TERN_OK)
        status = check_system(chat, &err);
    if (status == TERN_OK)
        return;
    chat->c.has_system = false;
    tn_error_print(&err);
    note_failure(chat, status);
}

static void cmd_undo(struct chat *chat, const char *argument)
{
    (void)argument;
    bool any = tn_conversation_remove_last(&chat->c, "assistant");
    any = tn_conversation_remove_last(&chat->c, "user") || any;
    print(any ? "The last question and its answer are forgotten.\n"
              : "There is nothing to undo.\n");
}

static void cmd_regen(struct chat *chat, const char *argument)
{
    (void)argument;
    struct tern_error err;
    struct tn_turn old;
    if (!tn_conversation_take_last(&chat->c, "assistant", &old)) {
        print("There is no answer yet.\n");
        return;
    }
    tern_status status = answer(chat, &err);
    if (status == TERN_OK)
        tn_buf_fini(&old.text);
    else
        tn_conversation_put_back(&chat->c, &old);
    after_answer(chat, status, &err);
}

static void cmd_stats(struct chat *chat, const char *argument)
{
    (void)argument;
    char line[160];
    struct tn_usage usage;
    tn_usage_now(&usage);
    /* After /clear the cache is still filled, but nothing of it is in the way. */
    uint32_t n_used = chat->c.n_turns > 0 ? tern_session_n_past(chat->g.session) : 0;
    snprintf(line, sizeof line,
             "%zu messages, %u of %u tokens of context in use, %s of memory, seed %" PRIu64 "\n",
             chat->c.n_turns, n_used,
             tern_session_n_ctx(chat->g.session), tn_size_binary((double)usage.rss_bytes).text,
             chat->g.seed);
    print(line);
}

static const struct {
    const char *name;
    const char *aliases; /* shown in the help */
    void (*run)(struct chat *chat, const char *argument);
    const char *help;
} chat_commands[] = {
    {"/help", "", cmd_help, "this list"},
    {"/exit", "/quit /q", cmd_exit, "leave; also " TN_KEY_OF_END},
    {"/clear", "/reset", cmd_clear, "forget the conversation, keep the system message"},
    {"/system", "", cmd_system, "/system TEXT sets the system message, /system shows it"},
    {"/regen", "", cmd_regen, "another answer to the last question"},
    {"/undo", "", cmd_undo, "forget the last question and its answer"},
    {"/stats", "", cmd_stats, "messages, context, memory"},
};

static void cmd_help(struct chat *chat, const char *argument)
{
    (void)chat, (void)argument;
    char line[120];
    for (size_t i = 0; i < TN_COUNT_OF(chat_commands); i++) {
        snprintf(line, sizeof line, "%-8s %-16s %s\n", chat_commands[i].name,
                 chat_commands[i].aliases, chat_commands[i].help);
        print(line);
    }
    print("A line that ends in \\ continues on the next. // at the start sends one slash.\n");
}

/* Is `name` this command's, or one of its aliases? */
static bool is_command(size_t i, const char *name, size_t n)
{
    if (strlen(chat_commands[i].name) == n && memcmp(chat_commands[i].name, name, n) == 0)
        return true;
    for (const char *a = chat_commands[i].aliases; *a;) {
        size_t n_alias = strcspn(a, " ");
        if (n_alias == n && memcmp(a, name, n) == 0)
            return true;
        a += n_alias + (a[n_alias] == ' ');
    }
    return false;
}

static void run_command(struct chat *chat, struct tn_buf *line)
{
    const char *text = tn_buf_text(line);
    size_t n = strcspn(text, " \t");
    const char *argument = text + n + strspn(text + n, " \t");
    for (size_t i = 0; i < TN_COUNT_OF(chat_commands); i++) {
        if (is_command(i, text, n)) {
            chat_commands[i].run(chat, argument);
            return;
        }
    }
    tn_error_say(TERN_USAGE, "unknown command \"%.*s\"; /help lists them, // sends a slash",
                 (int)TN_MIN(n, (size_t)40), text);
    note_failure(chat, TERN_USAGE);
}

/* ---- lines ---- */

/* Bounds what is kept of a line that never ends. */
static void append_line(void *arg, const char *bytes, size_t n)
{
    struct tn_buf *message = arg;
    if (n > TN_MAX_PROMPT_BYTES - message->n_bytes)
        message->failed = true;
    else
        tn_buf_append(message, bytes, n);
}

enum input { INPUT_LINE, INPUT_END, INPUT_INTERRUPT };

/* A message: one line, and those that it continues on. */
static enum input read_message(struct chat *chat, struct tn_buf *message)
{
    bool interrupted;
    struct tern_error err;
    tn_buf_clear(message);
    if (chat->on_terminal)
        print("> ");
    while (tn_read_line(append_line, message, &interrupted, &err)) {
        if (interrupted)
            return INPUT_INTERRUPT;
        if (message->n_bytes == 0 || message->data[message->n_bytes - 1] != '\\')
            return INPUT_LINE;
        message->data[message->n_bytes - 1] = '\n';
        if (chat->on_terminal)
            print(". ");
    }
    if (err.status != TERN_OK) {
        tn_error_print(&err);
        chat->failed = err.status;
        return INPUT_END;
    }
    return message->n_bytes > 0 ? INPUT_LINE : INPUT_END;
}

static void handle_line(struct chat *chat, struct tn_buf *line)
{
    size_t bad = tn_utf8_find_invalid(line->data, line->n_bytes);
    if (line->failed || bad < line->n_bytes) {
        if (line->failed)
            tn_error_say(TERN_MEMORY, "no room for a message of more than %zu bytes (limit %zu)",
                         line->n_bytes, TN_MAX_PROMPT_BYTES);
        else
            tn_error_say(TERN_INPUT, "the message is not UTF-8: byte %zu is 0x%02X", bad,
                         (unsigned char)line->data[bad]);
        note_failure(chat, line->failed ? TERN_MEMORY : TERN_INPUT);
        return;
    }
    if (tn_prompt_is_blank(line->data, line->n_bytes))
        return;
    bool has_slash = line->data[0] == '/';
    if (has_slash && !(line->n_bytes > 1 && line->data[1] == '/'))
        run_command(chat, line);
    else
        ask(chat, line->data + has_slash, line->n_bytes - has_slash);
}

/* The byte order mark with which some programs begin what they pipe. */
static void drop_mark(struct tn_buf *line)
{
    size_t n = tn_prompt_mark(line->data, line->n_bytes);
    line->n_bytes -= n;
    if (n > 0)
        memmove(line->data, line->data + n, line->n_bytes);
}

static void talk(struct chat *chat)
{
    struct tn_buf line = {0};
    bool warned = false; /* Ctrl-C was pressed at the prompt just before */
    bool is_first = true;
    while (!chat->leave) {
        enum input input = read_message(chat, &line);
        if (input == INPUT_LINE) {
            if (is_first)
                drop_mark(&line);
            is_first = false;
            warned = false;
            handle_line(chat, &line);
            continue;
        }
        if (chat->on_terminal)
            print("\n");
        if (input == INPUT_INTERRUPT && chat->on_terminal && !warned && !tn_terminate_requested()) {
            warned = true;
            tn_interrupt_clear();
            print("(Ctrl-C once more or /exit leaves)\n");
            continue;
        }
        if (input == INPUT_INTERRUPT)
            chat->failed = TERN_INTERRUPTED;
        chat->leave = true;
    }
    tn_buf_fini(&line);
}

static tern_status start(struct chat *chat, const struct tn_opened *opened, struct tern_error *err)
{
    const struct tn_options *o = chat->o;
    tern_status status = tn_choose_template(&chat->t, o, opened->model, err);
    if (status == TERN_OK && o->system)
        status = tn_conversation_set_system(&chat->c, o->system, strlen(o->system), err);
    if (status == TERN_OK && o->system)
        status = check_system(chat, err);
    if (status == TERN_OK)
        status = tn_generator_init(&chat->g, o, opened, 0, err);
    return status;
}

int tn_cmd_chat(const struct tn_options *o)
{
    struct tern_error err = {0};
    struct tn_opened opened = {0};
    struct chat chat = {.o = o, .on_terminal = tn_is_terminal(TN_STDIN)};
    tern_status status = tn_check_names(o, &err);
    if (status == TERN_OK)
        status = tn_open(&opened, o, o->n_positional ? o->positional[0] : NULL,
                         TN_OPEN_MACHINE | TN_OPEN_TOKENIZER, &err);
    chat.model = opened.model;
    if (status == TERN_OK)
        status = start(&chat, &opened, &err);
    if (status != TERN_OK)
        tn_error_print(&err);
    if (status == TERN_OK) {
        if (chat.on_terminal)
            print("/help lists the commands; " TN_KEY_OF_END " leaves\n");
        talk(&chat);
        status = chat.failed;
    }
    tern_ids_free(&chat.ids);
    tn_conversation_fini(&chat.c);
    tn_generator_fini(&chat.g);
    tn_close(&opened);
    return tern_status_exit_code(status);
}
