/* SPDX-License-Identifier: MIT
 *
 * Answers of `tern chat`: the answer goes to standard output, the model's reasoning and all
 * messages to standard error.
 */
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#include "base/error.h"
#include "chat.h"
#include "output.h"
#include "plat/plat.h"
#include "progress.h"
#include "repl/flow.h"
#include "repl/message.h"

void tn_chat_say(const char *format, ...)
{
    struct tn_buf line = {0};
    va_list args;
    va_start(args, format);
    tn_buf_vprintf(&line, format, args);
    va_end(args);
    tn_buf_append(&line, "\n", 1);
    if (line.failed)
        tn_error_say(TERN_MEMORY, "no memory for a message");
    else
        tn_message_wrapped(line.data, line.n_bytes);
    tn_buf_fini(&line);
}

void tn_chat_fail(struct tn_chat_state *chat, const struct tern_error *err)
{
    tn_error_print(err);
    if (chat->failed == TERN_OK && !chat->on_terminal)
        chat->failed = err->status;
    if (err->status == TERN_INTERRUPTED && chat->on_terminal && !tn_terminate_requested())
        tn_interrupt_clear(); /* the interrupt has served its purpose */
}

void tn_chat_refuse(struct tn_chat_state *chat, tern_status status, const char *format, ...)
{
    struct tern_error err;
    va_list args;
    va_start(args, format);
    tn_vfail(&err, status, format, args);
    va_end(args);
    tn_chat_fail(chat, &err);
}

/* ---- display ---- */

struct shown {
    struct tn_chat_state *chat;
    bool is_thinking; /* the latest text shown was reasoning */
    bool drops_space; /* it begins a row, which a blank would indent */
    struct tn_flow flow; /* for reasoning, on a terminal */
};

static void write_reasoning(void *arg, const char *text, size_t n)
{
    const char *dim = tn_message_dim(), *plain = tn_message_plain();
    (void)arg;
    (void)tn_write_stream(TN_STDERR, dim, strlen(dim));
    tn_message_text(text, n);
    (void)tn_write_stream(TN_STDERR, plain, strlen(plain));
}

static void end_thinking(struct shown *s, const char *ending)
{
    if (!s->is_thinking)
        return;
    tn_flow_end(&s->flow);
    tn_flow_fini(&s->flow);
    tn_message_text(ending, strlen(ending));
    s->is_thinking = false;
}

static void show_reasoning(struct shown *s, const char *text, size_t n)
{
    static const struct tn_flow_output output = {.text = write_reasoning};
    if (s->chat->think == TN_THINK_HIDE || tn_message_level() < 0)
        return;
    if (!s->is_thinking)
        tn_flow_init(&s->flow, &output, tn_terminal_columns(), false);
    s->is_thinking = true;
    if (tn_is_terminal(TN_STDERR) && !s->chat->o.plain)
        tn_flow_write(&s->flow, text, n);
    else
        write_reasoning(NULL, text, n);
}

static bool show_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    struct shown *s = arg;
    if (part == TERN_PART_REASONING) {
        show_reasoning(s, text, n);
        return true;
    }
    end_thinking(s, "\n\n");
    const bool is_dropped = s->drops_space && n > 0 && text[0] == ' ';
    s->drops_space = s->drops_space && n == 0;
    return tn_out_answer(text + is_dropped, n - is_dropped);
}

/* "[58 tokens, 31.2 tok/s, context 210 of 4096]", for a user. */
static void show_line(const struct tn_chat_state *chat, const struct tern_answer_result *r)
{
    char speed[48] = "";
    const struct tern_generate_result *g = &r->generate;
    const uint32_t n_ctx = tern_session_n_ctx(chat->g.session);
    if (chat->hides_stats || tn_message_level() < 0 || !tn_is_terminal(TN_STDERR) ||
        chat->o.stats != TN_STATS_NONE)
        return;
    if (g->n_new > 1 && g->decode_s > 0)
        snprintf(speed, sizeof speed, "%.1f tok/s, ", (double)g->n_new / g->decode_s);
    char line[160];
    const char *dim = tn_message_dim(), *plain = tn_message_plain();
    int n = snprintf(line, sizeof line, "[%u token%s, %scontext %u of %u]", g->n_new,
                     g->n_new == 1 ? "" : "s", speed, TN_MIN(r->n_ids, n_ctx), n_ctx);
    (void)tn_write_stream(TN_STDERR, dim, strlen(dim));
    tn_message_wrapped(line, (size_t)n);
    (void)tn_write_stream(TN_STDERR, plain, strlen(plain));
    (void)tn_write_stream(TN_STDERR, "\n", 1);
}

/* ---- answers ---- */

struct heard {
    const struct tn_generator *g;
    bool (*on_part)(void *arg, enum tern_part part, const char *text, size_t n);
    void *arg;
};

static bool pass_part(void *arg, enum tern_part part, const char *text, size_t n)
{
    const struct heard *h = arg;
    tn_progress_end();
    return h->on_part(h->arg, part, text, n);
}

static void on_ids(void *arg, const uint32_t *ids, size_t n)
{
    tn_progress_update(0, n);
    tn_generator_show_ids(((const struct heard *)arg)->g, ids, n);
}

static bool should_stop(void *arg)
{
    return tn_generator_should_stop(((const struct heard *)arg)->g);
}

/* While the user was typing, another program may have written to the file. */
tern_status tn_chat_run_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind,
                               bool (*on_part)(void *arg, enum tern_part part, const char *text,
                                               size_t n),
                               void *arg, struct tern_answer_result *result, struct tern_error *err)
{
    struct heard heard = {&chat->g, on_part, arg};
    struct tern_answer_params params = {
        .seed = chat->g.seed,
        .on_part = pass_part,
        .on_ids = on_ids,
        .should_stop = should_stop,
        .arg = &heard,
    };
    *result = (struct tern_answer_result){0};
    tern_status status = tern_model_check_unchanged(chat->opened.model, err);
    if (status != TERN_OK)
        return status;
    tn_generator_params(&chat->g, &params.generate);
    tn_generator_begin(&chat->g);
    status = kind(chat->c, chat->g.session, &params, result, err);
    tn_progress_end();
    return status;
}

/* An empty answer looks like a fault, so it is explained. */
static void say_if_empty(const struct tn_chat_state *chat, const struct tern_generate_result *g)
{
    if (chat->on_terminal && g->stop == TERN_STOP_EOS && g->n_new <= 1)
        tn_note_say("the model ended its answer without any text");
}

/* Shows an answer. */
static tern_status show_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind,
                               struct tern_answer_result *result, struct tern_error *err)
{
    struct shown shown = {.chat = chat,
                          .drops_space = kind == tern_conversation_continue &&
                                         tn_is_terminal(TN_STDOUT)};
    tern_status status = tn_chat_run_answer(chat, kind, show_part, &shown, result, err);
    end_thinking(&shown, "\n");
    tn_generator_end(&chat->g, status, &result->generate);
    if (result->n_forgotten > 0)
        tn_note_say("the context of %u tokens is full: the oldest %zu messages are forgotten",
                    tern_session_n_ctx(chat->g.session), result->n_forgotten);
    if (status == TERN_OK) {
        say_if_empty(chat, &result->generate);
        tn_generator_print_stats(&chat->g, &result->generate);
        show_line(chat, result);
    }
    return status;
}

/* Decides whether to continue; true: the error is not an interrupt and must be reported. */
static bool after_answer(struct tn_chat_state *chat, tern_status status)
{
    if (tn_terminate_requested() || !tn_out_is_open())
        chat->leave = true;
    if (tn_interrupt_count() == 0)
        return status != TERN_OK;
    if (!chat->on_terminal) {
        chat->failed = TERN_INTERRUPTED;
        chat->leave = true;
    }
    tn_interrupt_clear();
    return false;
}

tern_status tn_chat_answer(struct tn_chat_state *chat, tn_chat_answer_fn *kind)
{
    struct tern_error err;
    struct tern_answer_result result;
    tern_status status = show_answer(chat, kind, &result, &err);
    if (status == TERN_OK) {
        chat->last = result;
        chat->is_changed = true;
    }
    if (after_answer(chat, status))
        tn_chat_fail(chat, &err);
    return status;
}

/* ---- questions ---- */

/* Whether Enter would send this text. */
static bool is_sent_as(const struct tn_buf *typed, const char *text, size_t n)
{
    struct tn_buf sent = {0};
    bool is_same = tn_message_state(typed->data, typed->n_bytes) == TN_MESSAGE_WHOLE &&
                   tn_message_take(&sent, typed->data, typed->n_bytes);
    const size_t start = sent.n_bytes > 0 && sent.data[0] == '/'; /* // sends one */
    is_same = is_same && sent.n_bytes - start == n && memcmp(sent.data + start, text, n) == 0;
    tn_buf_fini(&sent);
    return is_same;
}

bool tn_chat_preset(struct tn_chat_state *chat, const char *text, size_t n)
{
    struct tn_buf typed = {0};
    if (!chat->reader.preset || n == 0)
        return false;
    if (text[0] == '/')
        tn_buf_append_text(&typed, "/");
    tn_buf_append(&typed, text, n);
    if (!typed.failed && !is_sent_as(&typed, text, n)) {
        tn_buf_clear(&typed);
        tn_buf_append_text(&typed, "\"\"\"\n");
        tn_buf_append(&typed, text, n);
        tn_buf_append_text(&typed, "\n\"\"\"");
    }
    const bool is_good = !typed.failed;
    if (is_good)
        chat->reader.preset(chat->reader.state, typed.data, typed.n_bytes);
    tn_buf_fini(&typed);
    return is_good;
}

/* Restores a question whose answer was stopped before it began; attached texts stay attached. */
static void give_back(struct tn_chat_state *chat, tn_chat_answer_fn *kind, const char *text,
                      size_t n)
{
    if (!chat->on_terminal || chat->leave)
        return;
    chat->is_given_back = tn_chat_preset(chat, text, n);
    chat->is_editing = chat->is_given_back && kind == tern_conversation_replace;
    if (!chat->is_given_back)
        tn_chat_say("The question was not sent.");
    if (chat->attached.n_bytes > 0)
        tn_chat_say("The attached text goes with the next question.");
}

/* Attached texts may be why a question failed, and would make the next one fail, too. */
static void drop_attached(struct tn_chat_state *chat)
{
    if (chat->attached.n_bytes > 0)
        tn_chat_say("The attached text is dropped; /file attaches it again.");
    tn_buf_fini(&chat->attached);
}

void tn_chat_ask(struct tn_chat_state *chat, tn_chat_answer_fn *kind, const char *text, size_t n)
{
    struct tern_error err;
    struct tn_buf question = {0};
    const size_t n_turns = tern_conversation_n_turns(chat->c);
    tn_buf_append(&question, text, n);
    tn_buf_append(&question, tn_buf_bytes(&chat->attached), chat->attached.n_bytes);
    const struct tern_turn turn = {.role = {"user", 4},
                                   .content = {tn_buf_bytes(&question), question.n_bytes}};
    tern_status status = question.failed
                             ? tn_fail(&err, TERN_MEMORY, "no memory for a message of %zu bytes", n)
                             : tern_conversation_add(chat->c, &turn, &err);
    tn_buf_fini(&question);
    if (status != TERN_OK) {
        tn_chat_fail(chat, &err);
        return;
    }
    status = tn_chat_answer(chat, kind);
    if (status == TERN_OK) {
        tn_buf_fini(&chat->attached);
        return;
    }
    tern_conversation_truncate(chat->c, n_turns);
    if (status == TERN_INTERRUPTED)
        give_back(chat, kind, text, n);
    else
        drop_attached(chat);
}
