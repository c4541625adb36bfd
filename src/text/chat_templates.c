/* SPDX-License-Identifier: MIT
 *
 * The built-in chat templates: each function writes what the published Jinja
 * source writes for messages that hold a role and a content.
 */
#include "text/chat.h"

#include <string.h>

#include "base/error.h"
#include "text/unicode.h"

/* Bytes of a message. */
struct view {
    const char *p;
    size_t n;
};

static struct view role_of(const struct tern_message *m)
{
    return (struct view){m->role, m->n_role};
}

static struct view content_of(const struct tern_message *m)
{
    return (struct view){m->content, m->n_content};
}

static void put_view(struct tn_chat *chat, struct view v)
{
    tn_chat_put_user(chat, v.p, v.n);
}

static bool is_role(const struct tern_message *m, const char *role)
{
    return m->n_role == strlen(role) && memcmp(m->role, role, m->n_role) == 0;
}

static struct view stripped(struct view v)
{
    tn_text_strip(&v.p, &v.n);
    return v;
}

/* Python's str.capitalize with simple case mappings: the first character in title case, the others
 * in lower case; bytes that are not UTF-8 stay. */
static void put_capitalised(struct tn_chat *chat, struct view v)
{
    for (size_t i = 0; i < v.n;) {
        uint32_t c;
        char utf8[4];
        size_t n = tn_utf8_next(v.p + i, v.n - i, &c);
        if (c == TN_NOT_UTF8)
            tn_chat_put_user(chat, v.p + i, n);
        else
            tn_chat_put_user(chat, utf8,
                             tn_utf8_put(i ? tn_char_lower(c) : tn_char_title(c), utf8));
        i += n;
    }
}

/* {% set loop_messages = messages %}{% for message in loop_messages %}{% set content =
 * message['role'] | capitalize + ': '+ message['content'] | trim + '<|eot_id|>' %}{{ content }}
 * {% endfor %}{% if add_generation_prompt %}{{ 'Assistant: ' }}{% endif %} */
static tern_status render_bitnet_2b_4t(struct tn_chat *chat)
{
    for (size_t i = 0; i < chat->n_messages; i++) {
        const struct tern_message *m = &chat->messages[i];
        put_capitalised(chat, role_of(m));
        tn_chat_put(chat, ": ");
        put_view(chat, stripped(content_of(m)));
        tn_chat_put(chat, "<|eot_id|>");
    }
    if (chat->add_generation_prompt)
        tn_chat_put(chat, "Assistant: ");
    return TERN_OK;
}

/* {bos}<|start_header_id|>role<|end_header_id|>\n\ncontent<|eot_id|>... */
static tern_status render_llama3(struct tn_chat *chat)
{
    for (size_t i = 0; i < chat->n_messages; i++) {
        const struct tern_message *m = &chat->messages[i];
        if (i == 0)
            tn_chat_put(chat, chat->bos);
        tn_chat_put(chat, "<|start_header_id|>");
        put_view(chat, role_of(m));
        tn_chat_put(chat, "<|end_header_id|>\n\n");
        put_view(chat, stripped(content_of(m)));
        tn_chat_put(chat, "<|eot_id|>");
    }
    if (chat->add_generation_prompt)
        tn_chat_put(chat, "<|start_header_id|>assistant<|end_header_id|>\n\n");
    return TERN_OK;
}

/* <|im_start|>role\ncontent<|im_end|>\n... */
static void put_chatml_message(struct tn_chat *chat, const struct tern_message *m)
{
    tn_chat_put(chat, "<|im_start|>");
    put_view(chat, role_of(m));
    tn_chat_put(chat, "\n");
    put_view(chat, content_of(m));
    tn_chat_put(chat, "<|im_end|>\n");
}

static tern_status render_chatml(struct tn_chat *chat)
{
    for (size_t i = 0; i < chat->n_messages; i++)
        put_chatml_message(chat, &chat->messages[i]);
    if (chat->add_generation_prompt)
        tn_chat_put(chat, "<|im_start|>assistant\n");
    return TERN_OK;
}

/* <|role|>\ncontent\n; an assistant's content ends in eos, and in LF unless it is the last. Other
 * roles write nothing. The generation prompt is written inside the loop. */
static tern_status render_falcon3(struct tn_chat *chat)
{
    for (size_t i = 0; i < chat->n_messages; i++) {
        const struct tern_message *m = &chat->messages[i];
        bool is_last = i + 1 == chat->n_messages, is_assistant = is_role(m, "assistant");
        if (is_assistant || is_role(m, "system") || is_role(m, "user")) {
            tn_chat_put(chat, is_assistant           ? "<|assistant|>\n"
                              : is_role(m, "system") ? "<|system|>\n"
                                                     : "<|user|>\n");
            put_view(chat, content_of(m));
            tn_chat_put(chat, is_assistant ? chat->eos : "\n");
            if (is_assistant && !is_last)
                tn_chat_put(chat, "\n");
        }
        if (is_last && chat->add_generation_prompt)
            tn_chat_put(chat, "<|assistant|>\n");
    }
    return TERN_OK;
}

/* ---- qwen3 ---- */

static bool starts_with(struct view v, const char *text)
{
    size_t n = strlen(text);
    return v.n >= n && memcmp(v.p, text, n) == 0;
}

static bool ends_with(struct view v, const char *text)
{
    size_t n = strlen(text);
    return v.n >= n && memcmp(v.p + v.n - n, text, n) == 0;
}

static struct view strip_newlines(struct view v, bool left, bool right)
{
    while (left && v.n > 0 && v.p[0] == '\n') {
        v.p++;
        v.n--;
    }
    while (right && v.n > 0 && v.p[v.n - 1] == '\n')
        v.n--;
    return v;
}

/* Cuts v at the first or last occurrence of `mark`; false when there is none. */
static bool cut(struct view v, const char *mark, bool at_last, struct view *before,
                struct view *after)
{
    size_t n = strlen(mark);
    bool found = false;
    for (size_t i = 0; i + n <= v.n && !(found && !at_last); i++) {
        if (v.p[i] != mark[0] || memcmp(v.p + i, mark, n) != 0)
            continue;
        *before = (struct view){v.p, i};
        *after = (struct view){v.p + i + n, v.n - i - n};
        found = true;
    }
    return found;
}

/* Index of the last user message that is not a tool's response. */
static size_t last_query(const struct tn_chat *chat)
{
    for (size_t i = chat->n_messages; i-- > 0;) {
        struct view content = content_of(&chat->messages[i]);
        if (is_role(&chat->messages[i], "user") &&
            !(starts_with(content, "<tool_response>") && ends_with(content, "</tool_response>")))
            return i;
    }
    return chat->n_messages - 1;
}

/* Thoughts stay only behind the last question. */
static void put_qwen3_assistant(struct tn_chat *chat, size_t i, size_t query)
{
    struct view content = content_of(&chat->messages[i]), thought = {"", 0}, unused;
    struct view before, after;
    if (cut(content, "</think>", false, &before, &unused)) {
        cut(content, "</think>", true, &unused, &after);
        content = strip_newlines(after, true, false);
        thought = strip_newlines(before, false, true);
        cut(thought, "<think>", true, &unused, &thought);
        thought = strip_newlines(thought, true, false);
    }
    tn_chat_put(chat, "<|im_start|>assistant\n");
    if (i > query && (i + 1 == chat->n_messages || thought.n > 0)) {
        tn_chat_put(chat, "<think>\n");
        put_view(chat, strip_newlines(thought, true, true));
        tn_chat_put(chat, "\n</think>\n\n");
        content = strip_newlines(content, true, false);
    }
    put_view(chat, content);
    tn_chat_put(chat, "<|im_end|>\n");
}

/* Neighbouring tool messages share one user turn. */
static void put_qwen3_tool(struct tn_chat *chat, size_t i)
{
    const struct tern_message *m = &chat->messages[i];
    if (i == 0 || !is_role(m - 1, "tool"))
        tn_chat_put(chat, "<|im_start|>user");
    tn_chat_put(chat, "\n<tool_response>\n");
    put_view(chat, content_of(m));
    tn_chat_put(chat, "\n</tool_response>");
    if (i + 1 == chat->n_messages || !is_role(m + 1, "tool"))
        tn_chat_put(chat, "<|im_end|>\n");
}

static tern_status render_qwen3(struct tn_chat *chat)
{
    if (chat->n_messages == 0)
        return tn_fail(chat->err, TERN_USAGE, "list object has no element 0");
    size_t query = last_query(chat);
    for (size_t i = 0; i < chat->n_messages; i++) {
        const struct tern_message *m = &chat->messages[i];
        if (is_role(m, "user") || is_role(m, "system"))
            put_chatml_message(chat, m);
        else if (is_role(m, "assistant"))
            put_qwen3_assistant(chat, i, query);
        else if (is_role(m, "tool"))
            put_qwen3_tool(chat, i);
    }
    if (chat->add_generation_prompt)
        tn_chat_put(chat, "<|im_start|>assistant\n");
    return TERN_OK;
}

const struct tern_chat_template tn_chat_templates[] = {
    {.name = "bitnet-2b-4t",
     .sources = {0x7A0DE6EC23ABABBE,
                 0xB1F6A803E6827671}, /* writes bos_token itself: the ids are the same */
     .bos = "<|begin_of_text|>",
     .eos = "<|end_of_text|>",
     .answer_end = "<|eot_id|>",
     .render = render_bitnet_2b_4t,
     .specials = {"<|eot_id|>"}},
    {.name = "llama3",
     .sources = {0x98DB376B81142D86},
     .bos = "<|begin_of_text|>",
     .eos = "<|eot_id|>",
     .answer_end = "<|eot_id|>",
     .render = render_llama3,
     .specials = {"<|start_header_id|>", "<|end_header_id|>", "<|eot_id|>"}},
    {.name = "chatml",
     .sources = {0x5D024DF2DA48DE7E,
                 0x192AFAB84B7E1CED}, /* gives add_generation_prompt a default first */
     .bos = "",
     .eos = "<|im_end|>",
     .answer_end = "<|im_end|>",
     .render = render_chatml,
     .specials = {"<|im_start|>", "<|im_end|>"}},
    {.name = "falcon3",
     .sources = {0x3DFD0FFBEBE5B855},
     .bos = "",
     .eos = "<|endoftext|>",
     .answer_end = "<|endoftext|>",
     .render = render_falcon3,
     .specials = {"<|endoftext|>"}}, /* <|user|> is text */
    {.name = "qwen3",
     .sources = {0xE78D54FEC2A3F681},
     .bos = "",
     .eos = "<|im_end|>",
     .answer_end = "<|im_end|>",
     .render = render_qwen3,
     .specials = {"<|im_start|>", "<|im_end|>"}},
    {.name = NULL},
};
