/* SPDX-License-Identifier: MIT
 *
 * Detects how a chat template handles reasoning, from what it writes.
 *
 * Renders small conversations with and without the usual variables; the template's source is not
 * read, so any template works.
 */
#include <string.h>

#include "base/error.h"
#include "tern/thinking.h"

#define USER "{\"role\":\"user\",\"content\":\"a\"}"
#define THOUGHT "tern-thought"

struct rendered {
    char *text; /* NULL: the template refuses the conversation */
    size_t n;
};

/* Renders a conversation; a refusal is not an error.  TERN_MEMORY. */
static tern_status render(struct rendered *out, const struct tern_chat_template *t,
                          const char *conversation, const struct tern_chat_params *params,
                          struct tern_error *err)
{
    *out = (struct rendered){0};
    tern_status status = tern_chat_render_json(t, conversation, strlen(conversation), params,
                                               &out->text, &out->n, NULL, err);
    return status == TERN_MEMORY ? status : tn_ok(err);
}

static bool is_other(const struct rendered *a, const struct rendered *b)
{
    return a->text && b->text && (a->n != b->n || memcmp(a->text, b->text, a->n) != 0);
}

/* Does the output depend on the variable that switches reasoning? */
static tern_status find_switch(bool *has_switch, const struct tern_chat_template *t,
                               const struct tern_chat_params *params, struct tern_error *err)
{
    static const char on[] = "{\"messages\":[" USER "],\"kwargs\":{\"enable_thinking\":true,"
                             "\"thinking\":true}}",
                      off[] = "{\"messages\":[" USER "],\"kwargs\":{\"enable_thinking\":false,"
                              "\"thinking\":false}}";
    struct rendered with, without = {0};
    tern_status status = render(&with, t, on, params, err);
    if (status == TERN_OK)
        status = render(&without, t, off, params, err);
    *has_switch = is_other(&with, &without);
    tern_text_free(with.text);
    tern_text_free(without.text);
    return status;
}

static tern_status find_opening(bool *is_opened, const struct tern_chat_template *t,
                                const struct tern_chat_params *params, struct tern_error *err)
{
    struct rendered r;
    tern_status status = render(&r, t, "[" USER "]", params, err);
    *is_opened = r.text && tern_thinking_opened_by(r.text, r.n) != NULL;
    tern_text_free(r.text);
    return status;
}

/* Does the template drop the reasoning of earlier answers? */
static tern_status find_leaving_out(bool *leaves_out, const struct tern_chat_template *t,
                                    const struct tern_chat_params *params, struct tern_error *err)
{
    static const char talk[] = "[" USER ",{\"role\":\"assistant\",\"content\":\"<think>\\n" THOUGHT
                               "\\n</think>\\n\\nb\"}," USER "]";
    struct rendered r;
    tern_status status = render(&r, t, talk, params, err);
    *leaves_out = r.text && !strstr(r.text, THOUGHT);
    tern_text_free(r.text);
    return status;
}

tern_status tern_chat_reasoning(struct tern_chat_reasoning *out, const struct tern_chat_template *t,
                                const struct tern_chat_params *params, struct tern_error *err)
{
    struct tern_chat_params dated = *params;
    bool leaves_out = false;
    *out = (struct tern_chat_reasoning){0};
    if (dated.date.year == 0)
        dated.date = (struct tern_date){.year = 2000, .month = 1, .day = 1};
    dated.add_generation_prompt = true;
    tern_status status = find_switch(&out->has_switch, t, &dated, err);
    if (status == TERN_OK)
        status = find_opening(&out->is_opened, t, &dated, err);
    if (status == TERN_OK)
        status = find_leaving_out(&leaves_out, t, &dated, err);
    out->is_known = out->has_switch || out->is_opened || leaves_out;
    if (status != TERN_OK)
        *out = (struct tern_chat_reasoning){0};
    return status;
}
