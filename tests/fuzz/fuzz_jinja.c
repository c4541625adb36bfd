/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a chat template and a request, separated by byte 0xFF; without it the request is a
 * short conversation.  The result is UTF-8 of bounded size with a mark for every byte, the ids
 * represent all of it, and no special id covers a user byte; or there is an error.
 */
#include "fuzz/fuzz.h"

#include <assert.h>
#include <stdio.h>
#include <string.h>

#include "base/compiler.h"
#include "base/utf8.h"
#include "small_tokenizer.h"
#include "tern/chat.h"
#include "text/jinja/jinja.h"

static const char plain_request[] =
    "{\"messages\": [{\"role\": \"system\", \"content\": \"Be brief. <|eot_id|>\"},"
    "{\"role\": \"user\", \"content\": \" Hi \\u00e9\\ud83d\\ude00\\n\"},"
    "{\"role\": \"assistant\", \"content\": \"<think>\\nhm\\n</think>\\n\\nYes\","
    "\"tool_calls\": [{\"type\": \"function\", \"id\": \"abcdefghi\", \"function\":"
    "{\"name\": \"f\", \"arguments\": {\"a\": [1, 2.5, null, true, {\"b\": \"\"}]}}}]},"
    "{\"role\": \"tool\", \"content\": \"3\", \"tool_call_id\": \"abcdefghi\"},"
    "{\"role\": \"user\", \"content\": \"So?\"}],"
    "\"tools\": [{\"type\": \"function\", \"function\": {\"name\": \"f\", \"description\": \"d\","
    "\"parameters\": {\"type\": \"object\", \"properties\": {\"a\": {\"type\": \"array\", "
    "\"items\":"
    "{\"type\": \"string\"}, \"description\": \"x\"}}, \"required\": [\"a\"]}}}],"
    "\"kwargs\": {\"n\": 3, \"s\": \"a b\", \"l\": [3, 1, 2], \"d\": {\"k\": 1}}}";

static const struct tern_chat_params params = {.add_generation_prompt = true,
                                               .bos = "<s>",
                                               .eos = "<|eot_id|>",
                                               .date = {2026, 11, 22, 10, 5, 9}};

static void check_text(const struct tern_chat_template *t, const char *request, size_t n_request,
                       const char *text, const unsigned char *map, size_t n_text)
{
    struct tern_ids ids = {0};
    assert(n_text <= TN_JINJA_MAX_OUTPUT && text[n_text] == '\0');
    assert(tn_utf8_find_invalid(text, n_text) == n_text);
    for (size_t i = 0; i < n_text; i++)
        assert(map[i] <= 1);
    if (n_text > 4096)
        return; /* encoding has separate targets */
    if (tern_chat_encode_json(small_tokenizer(), t, request, n_request, &params, &ids, NULL) ==
        TERN_OK)
        small_tokenizer_check_ids(&ids, text, map, n_text);
    tern_ids_free(&ids);
}

static void render(const struct tern_chat_template *t, const char *request, size_t n_request)
{
    struct tern_error err = {TERN_OK, ""};
    char *text;
    unsigned char *map;
    size_t n_text;
    tern_status status =
        tern_chat_render_json(t, request, n_request, &params, &text, &n_text, &map, &err);
    if (status == TERN_OK) {
        check_text(t, request, n_request, text, map, n_text);
    } else {
        assert(status == TERN_USAGE || status == TERN_UNSUPPORTED || status == TERN_LIMIT);
        assert(err.status == status && err.detail[0] && !text && !map);
    }
    tern_text_free(text);
    tern_text_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tern_error err = {TERN_OK, ""};
    struct tern_chat_template *t;
    const char *source = (const char *)data;
    const char *cut = n ? memchr(source, 0xFF, n) : NULL;
    const char *request = cut ? cut + 1 : plain_request;
    size_t n_request = cut ? (size_t)(source + n - request) : sizeof plain_request - 1;
    tern_status status =
        tern_chat_template_parse(&t, source, cut ? (size_t)(cut - source) : n, &err);
    if (status == TERN_OK)
        render(t, request, n_request);
    else
        assert((status == TERN_UNSUPPORTED || status == TERN_LIMIT || status == TERN_INPUT) &&
               err.detail[0] && !t);
    tern_chat_template_free(t);
    return 0;
}

/* ---- seeds ---- */

/* The templates of tests/text with the most features. */
static const char *const files[] = {
    "llama-3.1-tools",
    "qwen3-thinking",
    "mistral-v0.3-tools",
    "command-r-tool-use",
    "minicpm3",
    "hermes-3-tool-use",
    "granite-3.3",
    "functionary-3.2",
    "gpt-oss",
    "smollm3",
    "glm-4.5",
    "gemma-3",
    "jamba-1.5",
    "deepseek-v3",
    "zephyr",
    "bitcpm4-tools",
};

static const char *const lines[] = {
    "{{ messages[::-1][0].content[1:-1:2] ~ s.split(' ', 1)[-1] ~ (n ** 2 // -3 % 4) }}",
    "{% set x | upper | indent(2) %}\n {{ s }}{% endset %}{{ x is string and not x in l }}",
    "{% macro m(a, b=s) %}{{ caller(a) if caller }}{{ varargs }}{{ kwargs }}{% endmacro %}"
    "{% call(y) m(1, 2, 3, c=d) %}{{ y }}{% endcall %}",
    "{% for a, b in d.items() if a %}{{ loop.index }}{{ loop.cycle(1, 2) }}{% continue %}{% else %}"
    "-{% endfor %}{% for i in range(9) -%} {% if i == 3 %}{% break %}{% endif %}{% endfor %}",
    "{{ messages | selectattr('role', 'in', ['user']) | map(attribute='content') | join(', ') }}"
    "{{ l | sort(reverse=true) | unique | list | tojson(indent=2) }}{{ l | sum / (l | length) }}",
    "{% filter replace('a', s) | title %}{% raw %}{{ a }}{% endraw %}{% endfilter %}{# c #}",
    "{{ tools | tojson(sort_keys=true, separators=(',', ':')) }}{{ {'a': (1, [2.5e-7, none])} }}",
    "{% with v = l, w = s %}{% set ns = namespace(q=v) %}{% set ns.q = ns.q + [w] %}{{ ns.q }}"
    "{% endwith %}{% generation %}{{ strftime_now('%d %b %Y') }}{% endgeneration %}",
    "{%- if messages is defined -%} {{ '%s' }} {%- elif tools is none +%}\n{%+ endif %}\n"
    "{{ raise_exception(messages | groupby('role')) }}",
    "{{ messages }}\xFF[{\"role\": \"user\", \"content\": [{\"type\": \"text\", \"text\": "
    "\"x\"}]}]",
    "{{ now }}{{ a }}\xFF{\"messages\": [], \"kwargs\": {\"a\": {\"\": [[[[]]]]}}, "
    "\"now\": \"2024-02-29\", \"bos_token\": \"<|eot_id|>\", \"documents\": [{\"text\": \"\"}]}",
};

static size_t read_file(const char *name, uint8_t *dst, size_t capacity)
{
    char path[1024];
    snprintf(path, sizeof path, TERN_TEMPLATES "/%s.jinja", name);
    FILE *f = fopen(path, "rb");
    size_t n = f ? fread(dst, 1, capacity, f) : 0;
    if (f)
        fclose(f);
    assert(n > 0 && n < capacity);
    return n;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    if (i < TN_COUNT_OF(files))
        return read_file(files[i], dst, capacity);
    i -= (uint32_t)TN_COUNT_OF(files);
    if (i >= TN_COUNT_OF(lines) || strlen(lines[i]) > capacity)
        return 0;
    memcpy(dst, lines[i], strlen(lines[i]));
    return strlen(lines[i]);
}
