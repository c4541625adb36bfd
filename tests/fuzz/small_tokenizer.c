/* SPDX-License-Identifier: MIT
 *
 * Makes the tokenizer.json of small_tokenizer.h, and the section of a .tern file that the converter
 * derives from it.
 */
#include "small_tokenizer.h"

#include <assert.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "convert/tokens/tok_import.h"

static const char *const merges[][2] = {
    {"a", "a"},  {"t", "h"}, {"th", "e"},  {"aa", "aa"},  {"a", "b"},      {"ab", "c"},
    {"b", "c"},  {"aa", "bc"}, {"\\u0120", "the"}, {"1", "2"}, {"\\u010a", "\\u010a"}, {"c", "c"},
};

static const char *const specials[] = {
    "<|begin_of_text|>", "<|end_of_text|>", "<|eot_id|>",  "<|start_header_id|>",
    "<|end_header_id|>", "<|im_start|>",    "<|im_end|>",  "<|endoftext|>",
    "<|user|>",          "<|assistant|>",   "<|system|>",  "<think>",
};

/* The character of a byte in the byte alphabet. */
static unsigned alphabet_character(unsigned byte)
{
    if ((byte >= 0x21 && byte <= 0x7E) || (byte >= 0xA1 && byte <= 0xAC) || byte >= 0xAE)
        return byte;
    return 0x100 + (byte < 0x21 ? byte : byte == 0xAD ? 67 : byte - 0x7F + 33);
}

void small_tokenizer_json(struct tn_buf *json, bool pairs)
{
    unsigned id = 0;
    tn_buf_append_text(json, "{\"added_tokens\": [");
    for (size_t i = 0; i < TN_COUNT_OF(specials); i++)
        tn_buf_printf(json, "%s{\"id\": %u, \"content\": \"%s\", \"special\": true}", i ? ", " : "",
                      (unsigned)(256 + TN_COUNT_OF(merges) + i), specials[i]);
    tn_buf_append_text(
        json, "], \"normalizer\": null, \"pre_tokenizer\": {\"type\": \"ByteLevel\", "
              "\"add_prefix_space\": false}, \"decoder\": {\"type\": \"ByteLevel\"}, "
              "\"post_processor\": {\"type\": \"TemplateProcessing\", \"single\": "
              "[{\"SpecialToken\": {\"id\": \"b\"}}, {\"Sequence\": {\"id\": \"A\"}}], ");
    tn_buf_printf(json, "\"special_tokens\": {\"b\": {\"ids\": [%u]}}}, ",
                  (unsigned)(256 + TN_COUNT_OF(merges)));
    tn_buf_append_text(json, "\"model\": {\"type\": \"BPE\", \"vocab\": {");
    for (; id < 256; id++)
        tn_buf_printf(json, "\"\\u%04x\": %u, ", alphabet_character(id), id);
    for (size_t i = 0; i < TN_COUNT_OF(merges); i++)
        tn_buf_printf(json, "%s\"%s%s\": %u", i ? ", " : "", merges[i][0], merges[i][1], id++);
    tn_buf_append_text(json, "}, \"merges\": [");
    for (size_t i = 0; i < TN_COUNT_OF(merges); i++)
        tn_buf_printf(json, pairs ? "%s[\"%s\", \"%s\"]" : "%s\"%s %s\"", i ? ", " : "",
                      merges[i][0], merges[i][1]);
    tn_buf_append_text(json, "]}}");
}

void small_marked_tokenizer_json(struct tn_buf *json, unsigned style)
{
    static const char *const heads[SMALL_N_MARKED] = {
        "\"normalizer\": {\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
        "\"Prepend\", \"prepend\": \"\\u2581\"}, {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, "
        "\"content\": \"\\u2581\"}]}, \"pre_tokenizer\": null",
        "\"normalizer\": {\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": "
        "\"\\u2581\"}, \"pre_tokenizer\": null",
        "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": "
        "\"\\u2581\", \"prepend_scheme\": \"first\", \"split\": false}",
        "\"normalizer\": null, \"pre_tokenizer\": {\"type\": \"Metaspace\", \"replacement\": "
        "\"\\u2581\", \"prepend_scheme\": \"always\", \"split\": true}",
    };
    static const char *const pieces[] = {"<unk>", "\\u2581", "t", "h", "e", "a", "th", "the",
                                         "\\u2581the", "aa", "aaaa", "\\u2581\\u2581", "\\u00e9",
                                         "<pad>"};
    tn_buf_append_text(json, "{\"added_tokens\": [");
    for (size_t i = 0; i < TN_COUNT_OF(specials); i++)
        tn_buf_printf(json,
                      "%s{\"id\": %u, \"content\": \"%s\", \"special\": %s, \"normalized\": %s, "
                      "\"lstrip\": %s, \"rstrip\": %s, \"single_word\": %s}",
                      i ? ", " : "", (unsigned)(256 + TN_COUNT_OF(pieces) + i), specials[i],
                      i % 4 ? "true" : "false", i % 3 ? "false" : "true", i % 5 ? "false" : "true",
                      i % 2 ? "false" : "true", i % 6 ? "false" : "true");
    tn_buf_printf(json, "], %s, \"decoder\": {\"type\": \"Sequence\", \"decoders\": [{\"type\": "
                        "\"Replace\", \"pattern\": {\"String\": \"\\u2581\"}, \"content\": \" \"}, "
                        "{\"type\": \"ByteFallback\"}, {\"type\": \"Fuse\"}, {\"type\": \"Strip\", "
                        "\"content\": \" \", \"start\": 1, \"stop\": 0}]}, ",
                  heads[style]);
    tn_buf_append_text(json, "\"model\": {\"type\": \"BPE\", \"byte_fallback\": true, \"fuse_unk\": "
                             "true, \"unk_token\": \"<unk>\", \"vocab\": {");
    for (unsigned i = 0; i < 256; i++)
        tn_buf_printf(json, "\"<0x%02X>\": %u, ", i, i);
    for (size_t i = 0; i < TN_COUNT_OF(pieces); i++)
        tn_buf_printf(json, "%s\"%s\": %u", i ? ", " : "", pieces[i], (unsigned)(256 + i));
    tn_buf_append_text(json, "}, \"merges\": [\"t h\", \"th e\", \"\\u2581 the\", \"a a\", \"aa aa\", "
                             "\"\\u2581 \\u2581\"]}}");
}

void *small_tokenizer_section(unsigned kind, size_t *n_bytes)
{
    struct tn_buf json = {0}, section = {0};
    struct tern_error err;
    if (kind == 0)
        small_tokenizer_json(&json, true);
    else
        small_marked_tokenizer_json(&json, kind - 1);
    if (json.failed ||
        tn_tok_import(json.data, json.n_bytes, SMALL_VOCAB, &section, &err) != TERN_OK) {
        fprintf(stderr, "%s\n", err.detail);
        abort();
    }
    void *aligned = tn_alloc_aligned(section.n_bytes, 64);
    if (!aligned)
        abort();
    memcpy(aligned, section.data, section.n_bytes);
    *n_bytes = section.n_bytes;
    tn_buf_fini(&json);
    tn_buf_fini(&section);
    return aligned;
}

const struct tern_tokenizer *small_tokenizer(void)
{
    static struct tern_tokenizer *t;
    if (!t) {
        size_t n;
        const void *section = small_tokenizer_section(0, &n);
        tern_status status = tn_tokenizer_open(&t, section, n, SMALL_VOCAB, NULL);
        assert(status == TERN_OK);
    }
    return t;
}

void small_tokenizer_check_ids(const struct tern_ids *ids, const char *text,
                               const unsigned char *map, size_t n_text)
{
    const struct tern_tokenizer *t = small_tokenizer();
    size_t at = 0, n;
    for (size_t i = 0; i < ids->n; i++) {
        const char *bytes = tern_tokenizer_token_bytes(t, ids->ids[i], &n);
        bool is_there = n <= n_text - at && memcmp(text + at, bytes, n) == 0;
        if (i == 0 && (!is_there || map[0]))
            continue; /* BOS, which the template does not write */
        assert(is_there);
        assert(!tern_tokenizer_is_special(t, ids->ids[i]) || !memchr(map + at, 1, n));
        at += n;
    }
    assert(at == n_text);
}
