/* SPDX-License-Identifier: MIT
 *
 * Commands that show something and change nothing: /history, /stats, /context, /config, /tokens,
 * /copy.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/base64.h"
#include "base/utf8.h"
#include "chat.h"
#include "output.h"
#include "plat/plat.h"

void tn_chat_cmd_history(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    const size_t n = tern_conversation_n_turns(chat->c);
    const size_t n_forgotten = tern_conversation_n_forgotten(chat->c);
    struct tern_text system = tern_conversation_system(chat->c);
    if (system.bytes)
        tn_chat_say("system: %.*s", (int)system.n, system.bytes);
    for (size_t i = 0; i < n; i++) {
        struct tern_turn turn;
        tern_conversation_get(chat->c, i, &turn);
        if (i == n_forgotten && i > 0)
            tn_chat_say("(the model no longer sees the messages above)");
        if (turn.reasoning.n > 0)
            tn_chat_say("(%.*s)", (int)turn.reasoning.n, turn.reasoning.bytes);
        tn_chat_say("%.*s: %.*s", (int)turn.role.n, turn.role.bytes, (int)turn.content.n,
                    turn.content.bytes ? turn.content.bytes : "");
    }
    if (n == 0)
        tn_chat_say("There are no messages yet.");
}

/* Tokens of the current conversation; 0 if it is empty or cannot be rendered. */
static size_t count_ids(const struct tern_conversation *c, struct tern_ids *ids)
{
    if (tern_conversation_n_turns(c) == 0 || tern_conversation_encode(c, ids, NULL) != TERN_OK)
        ids->n = 0;
    return ids->n;
}

void tn_chat_cmd_stats(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    struct tn_usage usage;
    const struct tern_generate_result *g = &chat->last.generate;
    /* After /clear the cache is still filled, but its contents will be overwritten. */
    size_t n = tern_conversation_n_turns(chat->c);
    uint32_t n_used = n > 0 ? tern_session_n_past(chat->g.session) : 0;
    tn_usage_now(&usage);
    tn_chat_say("%zu messages, %u of %u tokens of context in use, %s of memory, seed %" PRIu64, n,
                n_used, tern_session_n_ctx(chat->g.session),
                tn_size_binary((double)usage.rss_bytes).text, chat->g.seed);
    if (chat->last.n_ids == 0)
        return;
    tn_chat_say("last answer: prompt %u tokens, %u of them from the cache, %.3f s; %u new tokens, "
                "%.3f s, %.1f tok/s; ended by %s",
                g->n_prompt, g->n_prompt - g->n_prompt_evaluated, g->prompt_s, g->n_new,
                g->decode_s, g->decode_s > 0 ? g->n_new / g->decode_s : 0.0,
                tern_stop_text(g->stop));
}

/* Shows the question that is dropped from the context next, with its answer. */
static void say_next(const struct tern_conversation *c)
{
    struct tern_turn turn;
    size_t first = tern_conversation_n_forgotten(c);
    if (first + 2 >= tern_conversation_n_turns(c))
        return; /* the last question is never dropped */
    tern_conversation_get(c, first, &turn);
    size_t n = 0, limit = TN_MIN(turn.content.n, (size_t)60);
    while (n < limit && turn.content.bytes[n] != '\n')
        n++;
    if (n < turn.content.n)
        n = tn_utf8_cut(turn.content.bytes, n);
    tn_chat_say("when it is full, the oldest turn is dropped first: \"%.*s%s\"", (int)n,
                turn.content.bytes ? turn.content.bytes : "", n < turn.content.n ? "..." : "");
}

void tn_chat_cmd_context(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    struct tern_ids ids = {0};
    const uint32_t n_ctx = tern_session_n_ctx(chat->g.session);
    const size_t n = count_ids(chat->c, &ids), n_turns = tern_conversation_n_turns(chat->c);
    const size_t n_forgotten = tern_conversation_n_forgotten(chat->c);
    tn_chat_say("context: %zu of %u tokens (%.0f %%) in %zu messages%s, %u of them computed "
                "already",
                n, n_ctx, 100.0 * (double)n / n_ctx, n_turns - n_forgotten,
                tern_conversation_system(chat->c).bytes ? " and the system message" : "",
                tn_chat_n_computed(chat, &ids));
    if (n_forgotten > 0)
        tn_chat_say("%zu older messages are forgotten", n_forgotten);
    const uint32_t n_room = n_ctx - TN_MIN((uint32_t)n, n_ctx);
    tn_chat_say("room for %u more tokens, of which an answer may take %u", n_room,
                TN_MIN(n_room, tn_generator_max_tokens(&chat->g)));
    say_next(chat->c);
    tern_ids_free(&ids);
}

/* "threads that decode: 2 (one per physical core)". */
static void say_reason(const struct tern_plan_reason *reason)
{
    static const struct {
        const char *what, *words;
        bool is_bytes;
    } names[] = {
        {"threads_decode", "threads that write answers", false},
        {"threads_prefill", "threads that read prompts", false},
        {"kernel", "kernels", false},
        {"available", "memory that may be used", true},
        {"reserve", "memory that is left free", true},
        {"context", "context in tokens", false},
        {"kv", "type of the cache", false},
        {"default_new_tokens", "new tokens of an answer, unless /tokens says otherwise", false},
        {"cap_new_tokens", "new tokens that are allowed", false},
        {"max_new_tokens", "new tokens that an answer may have now", false},
    };
    const char *words = reason->what;
    struct tn_size_text size = {""};
    for (size_t i = 0; i < TN_COUNT_OF(names); i++)
        if (strcmp(names[i].what, reason->what) == 0) {
            words = names[i].words;
            if (names[i].is_bytes)
                size = tn_size_binary(strtod(reason->value, NULL));
        }
    tn_chat_say("%s: %s (%s)", words, size.text[0] ? size.text : reason->value, reason->detail);
}

void tn_chat_cmd_config(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    struct tern_model_info info;
    const struct tern_plan *plan = &chat->g.planned->plan;
    tern_model_get_info(chat->opened.model, &info);
    tn_chat_say("model %s (%s)\ntemplate %s", info.name, tern_model_path(chat->opened.model),
                tern_chat_template_name(chat->template.t));
    tn_chat_say_settings(chat);
    for (uint32_t i = 0; i < plan->n_reasons; i++)
        say_reason(&plan->reasons[i]);
}

void tn_chat_cmd_tokens(struct tn_chat_state *chat, const char *argument)
{
    struct tern_error err;
    struct tern_ids ids = {0};
    if (!argument[0] || argument[strspn(argument, "0123456789")] == '\0') {
        if (argument[0])
            (void)tn_chat_set(chat, "max-tokens", argument);
        else
            tn_chat_say("an answer may have %u tokens", tn_generator_max_tokens(&chat->g));
        return;
    }
    if (tern_tokenizer_encode(tern_model_tokenizer(chat->opened.model), argument, strlen(argument),
                              0, &ids, &err) != TERN_OK)
        tn_chat_fail(chat, &err);
    else
        tn_chat_say("%zu token%s in %zu bytes", ids.n, ids.n == 1 ? "" : "s", strlen(argument));
    tern_ids_free(&ids);
}

/* ---- the clipboard ---- */

/* The limit of xterm; other terminals accept more. */
#define MAX_COPY_BYTES ((size_t)74994 / 4 * 3)

/* OSC 52: the terminal copies the text to the user's clipboard, even over ssh; terminals without
 * this sequence ignore it. */
void tn_chat_cmd_copy(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    struct tern_turn turn = {0};
    size_t n = tern_conversation_n_turns(chat->c);
    const char *term = getenv("TERM");
    if (n > 0)
        tern_conversation_get(chat->c, n - 1, &turn);
    if (turn.content.n == 0) {
        tn_chat_say("There is no answer yet.");
        return;
    }
    if (!tn_is_terminal(TN_STDERR) || !term || strcmp(term, "dumb") == 0) {
        tn_chat_refuse(chat, TERN_USAGE, "/copy needs a terminal that has a clipboard");
        return;
    }
    if (turn.content.n > MAX_COPY_BYTES) {
        tn_chat_refuse(chat, TERN_LIMIT,
                       "the answer has %zu bytes, terminals take %zu; /save FILE keeps it",
                       turn.content.n, MAX_COPY_BYTES);
        return;
    }
    struct tn_buf out = {0};
    tn_buf_append_text(&out, "\x1B]52;c;");
    tn_base64_append(&out, turn.content.bytes, turn.content.n);
    tn_buf_append_text(&out, "\x07");
    if (!out.failed)
        (void)tn_write_stream(TN_STDERR, out.data, out.n_bytes);
    tn_chat_say(out.failed ? "There is not enough memory for it."
                           : "The answer was sent to the terminal's clipboard.");
    tn_buf_fini(&out);
}
