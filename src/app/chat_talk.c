/* SPDX-License-Identifier: MIT
 *
 * Commands that change the messages or repeat one: /system, /clear, /undo, /regen, /continue,
 * /edit, /editor.
 */
#include <string.h>

#include "chat.h"
#include "edit_text.h"
#include "plat/terminal.h"

void tn_chat_cmd_exit(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    chat->leave = true;
}

void tn_chat_cmd_clear(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    if (!tn_chat_may_replace(chat, true))
        return;
    tern_conversation_clear(chat->c);
    tn_buf_fini(&chat->attached);
    chat->last = (struct tern_answer_result){0};
    chat->is_changed = true;
    tn_chat_say("The conversation is empty.");
}

void tn_chat_cmd_system(struct tn_chat_state *chat, const char *argument)
{
    struct tern_error err;
    struct tern_text now = tern_conversation_system(chat->c);
    if (!argument[0]) {
        if (now.bytes)
            tn_chat_say("%.*s", (int)now.n, now.bytes);
        else
            tn_chat_say("There is no system message.");
        return;
    }
    bool removes = strcmp(argument, "\"\"") == 0;
    tern_status status = tern_conversation_set_system(chat->c, removes ? NULL : argument,
                                                      removes ? 0 : strlen(argument), &err);
    if (status != TERN_OK) {
        tn_chat_fail(chat, &err);
        return;
    }
    chat->is_changed = true;
    tn_chat_say(removes ? "The system message is removed." : "The system message is set.");
}

void tn_chat_cmd_undo(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    bool any = tern_conversation_undo(chat->c);
    chat->is_changed = chat->is_changed || any;
    tn_chat_say(any ? "The last question and its answer are forgotten."
                    : "There is nothing to undo.");
}

/* Whether the last message is an answer; reports it if not. */
static bool has_answer(const struct tn_chat_state *chat)
{
    struct tern_turn turn;
    size_t n = tern_conversation_n_turns(chat->c);
    if (n > 0)
        tern_conversation_get(chat->c, n - 1, &turn);
    if (n > 0 && tn_chat_is_role(&turn, "assistant"))
        return true;
    tn_chat_say("There is no answer yet.");
    return false;
}

void tn_chat_cmd_regen(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    if (has_answer(chat))
        (void)tn_chat_answer(chat, tern_conversation_regenerate);
}

void tn_chat_cmd_continue(struct tn_chat_state *chat, const char *argument)
{
    (void)argument;
    if (has_answer(chat))
        (void)tn_chat_answer(chat, tern_conversation_continue);
}

/* Copies the last question to *out; false: there is none. */
static bool last_question(struct tn_buf *out, const struct tern_conversation *c)
{
    for (size_t i = tern_conversation_n_turns(c); i-- > 0;) {
        struct tern_turn turn;
        tern_conversation_get(c, i, &turn);
        if (tn_chat_is_role(&turn, "user"))
            return tn_buf_append(out, turn.content.bytes, turn.content.n);
    }
    return false;
}

void tn_chat_cmd_edit(struct tn_chat_state *chat, const char *argument)
{
    struct tn_buf question = {0};
    if (!last_question(&question, chat->c)) {
        tn_chat_say("There is no question yet.");
    } else if (argument[0]) {
        tn_chat_ask(chat, tern_conversation_replace, argument, strlen(argument));
    } else if (tn_chat_preset(chat, question.data, question.n_bytes)) {
        chat->is_editing = true;
    } else {
        tn_chat_refuse(chat, TERN_USAGE,
                       "lines cannot be edited here; /edit TEXT asks TEXT instead");
    }
    tn_buf_fini(&question);
}

/* The written text is sent by Enter. */
void tn_chat_cmd_editor(struct tn_chat_state *chat, const char *argument)
{
    struct tn_buf text = {0};
    if (!chat->reader.preset) {
        tn_chat_refuse(chat, TERN_USAGE, "/editor needs a terminal on which lines can be edited");
        return;
    }
    tn_buf_append(&text, argument, strlen(argument));
    (void)tn_terminal_set_mode(TN_TERMINAL_PLAIN);
    const bool is_edited = tn_edit_text(&text);
    (void)tn_terminal_set_mode(TN_TERMINAL_BUSY);
    if (is_edited && text.n_bytes == 0)
        tn_chat_say("The text is empty.");
    else if (is_edited && !tn_chat_preset(chat, text.data, text.n_bytes))
        tn_chat_refuse(chat, TERN_MEMORY, "no memory for a message of %zu bytes", text.n_bytes);
    tn_buf_fini(&text);
}

void tn_chat_cmd_think(struct tn_chat_state *chat, const char *argument)
{
    if (argument[0])
        (void)tn_chat_set(chat, "think", argument);
    else
        tn_chat_say_think(chat);
}
