/* SPDX-License-Identifier: MIT
 *
 * Fuzz target: a conversation.  Byte 0xFF ends a message, byte 0xFE a role.
 *
 * For every template the map has the length of the text, the ids represent the whole text, and no
 * special id covers a byte of a message.  The bytes are also parsed as a template.
 */
#include "fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

#include "base/compiler.h"
#include "small_tokenizer.h"
#include "tern/chat.h"

#define MAX_MESSAGES 16

static size_t read_messages(const char *p, const char *end, struct tern_message *messages)
{
    size_t n = 0;
    for (; p < end && n < MAX_MESSAGES; n++) {
        const char *stop = memchr(p, 0xFF, (size_t)(end - p));
        stop = stop ? stop : end;
        const char *role_end = memchr(p, 0xFE, (size_t)(stop - p));
        if (role_end)
            messages[n] = (struct tern_message){p, (size_t)(role_end - p), role_end + 1,
                                                (size_t)(stop - role_end - 1)};
        else
            messages[n] = (struct tern_message){"user", 4, p, (size_t)(stop - p)};
        p = stop + 1;
    }
    return n;
}

static void check_template(const struct tern_chat_template *t,
                           const struct tern_message *messages, size_t n)
{
    struct tern_ids ids = {0};
    struct tern_error err = {TERN_OK, ""};
    char *text;
    unsigned char *map;
    size_t n_text;
    const struct tern_chat_params params = {.add_generation_prompt = n % 2 == 0};
    tern_status status =
        tern_chat_render(t, messages, n, &params, &text, &n_text, &map, &err);
    if (status != tern_chat_encode(small_tokenizer(), t, messages, n, &params, &ids, &err))
        abort();
    if (status == TERN_OK)
        small_tokenizer_check_ids(&ids, text, map, n_text);
    else if (err.detail[0] == '\0' || text)
        abort();
    tern_ids_free(&ids);
    tern_text_free(text);
    tern_text_free(map);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t n)
{
    struct tern_message messages[MAX_MESSAGES];
    size_t n_messages = read_messages((const char *)data, (const char *)data + n, messages);
    tern_chat_template_recognise((const char *)data, n);
    const struct tern_chat_template *t = NULL;
    while ((t = tern_chat_template_next(t)) != NULL)
        check_template(t, messages, n_messages);
    return 0;
}

size_t fuzz_seed(uint32_t i, uint8_t *dst, size_t capacity)
{
    static const char *const seeds[] = {
        ("system\xFE be brief \xFFuser\xFEhi <|eot_id|>\xFF"
         "assistant\xFE<think>\nhm\n</think>\n\nyes<|im_end|>\xFFuser\xFEso"),
        "tool\xFE<tool_response>\xFFuser\xFE<tool_response>x</tool_response>\xFFTOOL\xFE\xC2\xA0y",
        "assistant\xFEx</think>y<think>z</think>w\xFF\xFE\xFF<|eot_i",
        "{%- for m in messages %}\n  {{- '<|im_start|>' + m[\"role\"] }}{# c #}{% endfor %}{{ 'a' }}",
    };
    if (i >= TN_COUNT_OF(seeds) || strlen(seeds[i]) > capacity)
        return 0;
    memcpy(dst, seeds[i], strlen(seeds[i]));
    return strlen(seeds[i]);
}
