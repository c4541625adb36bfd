/* SPDX-License-Identifier: MIT
 *
 * render_cases FILE: renders chat templates for test_jinja_oracle.py, thousands per process.
 *
 * A line of the file is {"template": Jinja source, "request": in the format of
 * tern_chat_render_json}; without "template" the one of the previous line is used.  A line of
 * output is {"status": exit code, "text": ...} or {"status": exit code, "detail": ...}.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "tern/chat.h"
#include "text_data.h"

/* The last template that was given; NULL: it was refused, with the reason in `refusal`. */
static struct tern_chat_template *template;
static struct tern_error refusal;

static void parse(const json_t *source)
{
    tern_chat_template_free(template);
    refusal = (struct tern_error){TERN_OK, ""};
    tern_chat_template_parse(&template, json_string_value(source), json_string_length(source),
                             &refusal);
}

static void answer(tern_status status, const char *key, const char *text, size_t n)
{
    json_t *line = json_pack("{s:i, s:s%}", "status", tern_status_exit_code(status), key, text, n);
    char *dumped = json_dumps(line, JSON_COMPACT | JSON_ENSURE_ASCII);
    if (!dumped)
        exit(3);
    puts(dumped);
    free(dumped);
    json_decref(line);
}

static void render(const json_t *line, void *arg)
{
    static const struct tern_chat_params plain = {.add_generation_prompt = false};
    const json_t *source = json_object_get(line, "template");
    char *text = NULL, *request;
    size_t n_text = 0;
    (void)arg;
    if (source)
        parse(source);
    if (!template) {
        answer(refusal.status, "detail", refusal.detail, strlen(refusal.detail));
        return;
    }
    struct tern_error err = {TERN_OK, ""};
    request = json_dumps(json_object_get(line, "request"), JSON_COMPACT);
    if (!request)
        exit(3);
    tern_status status = tern_chat_render_json(template, request, strlen(request), &plain, &text,
                                               &n_text, NULL, &err);
    if (status == TERN_OK)
        answer(status, "text", text, n_text);
    else
        answer(status, "detail", err.detail, strlen(err.detail));
    tern_text_free(text);
    free(request);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 2;
    data_json_lines(argv[1], render, NULL);
    tern_chat_template_free(template);
    return 0;
}
