/* SPDX-License-Identifier: MIT
 *
 * Token ids equal the reference: every golden case and the bulk sweeps of all tokenizers, from
 * tokenizer.json; the cases also from GGUF keys.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "convert/gguf/gguf.h"
#include "convert/tokens/tok_gguf.h"
#include "text/unicode.h"
#include "text_data.h"

#define GOLDEN TERN_SHARED_DIR "/reference/tokenizers/golden/"

struct model {
    const char *name;
    uint32_t vocab;
    const char *pre; /* required value of --pre for the GGUF file */
    bool has_gguf;
    bool adds_bos;
    bool keeps_text; /* every text survives a round-trip: no normaliser, no bytes without a token */
    struct data_tokenizer data;
    struct tern_ids ids;
    size_t n_cases;
};

static int open_model(void **state)
{
    struct model *m = *state;
    char path[512];
    snprintf(path, sizeof path, TERN_TEXT_DATA "/%s.tokenizer.json", m->name);
    data_tokenizer_open(&m->data, path, m->vocab);
    return 0;
}

static int open_gguf(void **state)
{
    struct model *m = *state;
    char path[512];
    struct tn_gguf gguf;
    struct tn_buf section = {0};
    struct tern_error err;
    snprintf(path, sizeof path, TERN_SHARED_DIR "/reference/tokenizers/vocab-%s.gguf", m->name);
    if (tn_gguf_open(&gguf, path, &err) != TERN_OK ||
        tn_tok_from_gguf(&gguf, m->pre, m->vocab, NULL, &section, &err) != TERN_OK)
        fail_msg("%s: %s", path, err.detail);
    tn_gguf_close(&gguf);
    data_tokenizer_open_section(&m->data, path, &section, m->vocab);
    return 0;
}

static int close_model(void **state)
{
    struct model *m = *state;
    data_tokenizer_close(&m->data);
    tern_ids_free(&m->ids);
    return 0;
}

static void encode(struct model *m, const char *text, size_t n, uint32_t flags)
{
    struct tern_error err;
    m->ids.n = 0;
    assert_int_equal(tern_tokenizer_encode(m->data.t, text, n, flags, &m->ids, &err), TERN_OK);
}

/* The text of a case, repeated if requested. */
static char *case_text(const json_t *line, size_t *n_text)
{
    const json_t *text = json_object_get(line, "text"), *repeat = json_object_get(line, "repeat");
    const json_t *unit = text ? text : json_array_get(repeat, 0);
    const json_t *suffix = json_object_get(line, "suffix");
    size_t n_unit = json_string_length(unit), n_suffix = json_string_length(suffix);
    size_t times = text ? 1 : (size_t)json_integer_value(json_array_get(repeat, 1));
    char *out = malloc(n_unit * times + n_suffix + 1);
    assert_non_null(out);
    *n_text = 0;
    for (size_t i = 0; i < times; i++, *n_text += n_unit)
        memcpy(out + *n_text, json_string_value(unit), n_unit);
    if (n_suffix)
        memcpy(out + *n_text, json_string_value(suffix), n_suffix);
    *n_text += n_suffix;
    return out;
}

static void check_ids(const json_t *line, const struct tern_ids *ids)
{
    const char *name = json_string_value(json_object_get(line, "name"));
    const json_t *expected = json_object_get(line, "ids");
    if (expected) {
        if (ids->n != json_array_size(expected))
            fail_msg("%s: %zu ids, expected %zu", name, ids->n, json_array_size(expected));
        for (size_t i = 0; i < ids->n; i++)
            if (ids->ids[i] != (uint32_t)json_integer_value(json_array_get(expected, i)))
                fail_msg("%s: id %zu is %u", name, i, ids->ids[i]);
        return;
    }
    char hex[65];
    struct data_sha256 sha;
    data_sha256_init(&sha);
    data_sha256_add(&sha, ids->ids, ids->n * 4);
    data_sha256_hex(&sha, hex);
    const char *digest = json_string_value(json_object_get(line, "sha256"));
    assert_non_null(digest);
    if (strcmp(hex, digest) != 0)
        fail_msg("%s: %zu ids with another digest", name, ids->n);
}

/* The bytes of the ids, without those of the post-processor, equal the text. */
static void check_round_trip(const struct model *m, size_t n_added, const char *text, size_t n_text)
{
    size_t at = 0;
    for (size_t i = n_added; i < m->ids.n; i++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(m->data.t, m->ids.ids[i], &n);
        assert_true(n <= n_text - at);
        assert_memory_equal(text + at, bytes, n);
        at += n;
    }
    assert_int_equal(at, n_text);
}

static void check_case(const json_t *line, void *arg)
{
    struct model *m = arg;
    size_t n_text;
    char *text = case_text(line, &n_text);
    bool add_bos = m->adds_bos && json_is_true(json_object_get(line, "add_bos"));
    bool special = json_is_true(json_object_get(line, "special"));
    encode(m, text, n_text,
           (add_bos ? TERN_ENCODE_ADD_SPECIAL : 0) | (special ? TERN_ENCODE_PARSE_SPECIAL : 0));
    check_ids(line, &m->ids);
    assert_true(tern_tokenizer_min_ids(m->data.t, n_text) <= m->ids.n);
    uint32_t n_prefix;
    tn_tokenizer_prefix(m->data.t, &n_prefix);
    if (m->keeps_text)
        check_round_trip(m, add_bos ? n_prefix : 0, text, n_text);
    free(text);
    m->n_cases++;
}

/* No text of that many bytes has fewer ids, even if NFC makes it shorter. */
static void test_min_ids(void **state)
{
    static const char *const units[] = {" ", "\xE2\x84\xAA", "\xE1\x84\x80\xE1\x85\xA1\xE1\x86\xA8",
                                        "\xE2\x96\x81", "\xFF", "a", "=", "\n"};
    enum { TIMES = 3000 };
    struct model *m = *state;
    for (size_t i = 0; i < TN_COUNT_OF(units); i++) {
        const size_t n_unit = strlen(units[i]);
        char *text = malloc(TIMES * n_unit);
        assert_non_null(text);
        for (size_t j = 0; j < TIMES; j++)
            memcpy(text + j * n_unit, units[i], n_unit);
        encode(m, text, TIMES * n_unit, 0);
        assert_true(tern_tokenizer_min_ids(m->data.t, TIMES * n_unit) <= m->ids.n);
        free(text);
    }
    if (strcmp(m->name, "llama3") == 0) /* no token strips white space around it */
        assert_true(tern_tokenizer_min_ids(m->data.t, 1 << 20) > 0);
}

static void test_cases(void **state)
{
    struct model *m = *state;
    char path[512];
    snprintf(path, sizeof path, TERN_TEXT_DATA "/%s.jsonl", m->name);
    m->n_cases = 0;
    data_json_lines(path, check_case, m);
    assert_true(m->n_cases >= 472);
}

/* ---- sweeps ---- */

static void digest_text(struct model *m, struct data_sha256 *sha, const char *text, size_t n)
{
    encode(m, text, n, 0);
    uint32_t count = (uint32_t)m->ids.n;
    data_sha256_add(sha, &count, 4);
    data_sha256_add(sha, m->ids.ids, m->ids.n * 4);
}

static void check_digest(struct data_sha256 *sha, const json_t *entry, const char *key)
{
    char hex[65];
    data_sha256_hex(sha, hex);
    if (strcmp(hex, json_string_value(json_object_get(entry, "sha256"))) != 0)
        fail_msg("sweep %s has another digest", key);
}

/* a{c}b {c}1{c}{c} {c}\n{c} */
static size_t codepoint_text(uint32_t c, char *out)
{
    static const char pattern[] = "a{b {1{{ {\n{";
    size_t n = 0;
    for (const char *p = pattern; *p; p++) {
        if (*p == '{')
            n += tn_utf8_put(c, out + n);
        else
            out[n++] = *p;
    }
    return n;
}

static void sweep_codepoints(struct model *m, const json_t *sweep)
{
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)sweep, key, entry) {
        struct data_sha256 sha;
        data_sha256_init(&sha);
        uint32_t block = (uint32_t)strtoul(key, NULL, 16);
        for (uint32_t c = block; c < block + 4096; c++) {
            char text[64];
            if (c < 0xD800 || c > 0xDFFF)
                digest_text(m, &sha, text, codepoint_text(c, text));
        }
        check_digest(&sha, entry, key);
    }
}

static void sweep_whitespace(struct model *m, const json_t *sweep)
{
    static const char alphabet[] = " \t\n\ra.1'";
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)sweep, key, entry) {
        struct data_sha256 sha;
        data_sha256_init(&sha);
        size_t n = strtoul(key, NULL, 10), n_texts = 1;
        char text[16];
        text[0] = (char)strtoul(strchr(key, ':') + 1, NULL, 16);
        for (size_t i = 1; i < n; i++)
            n_texts *= 8;
        for (size_t k = 0; k < n_texts; k++) {
            for (size_t i = n - 1, rest = k; i > 0; i--, rest /= 8)
                text[i] = alphabet[rest % 8];
            digest_text(m, &sha, text, n);
        }
        check_digest(&sha, entry, key);
    }
}

static void sweep_vocab(struct model *m, const json_t *sweep)
{
    const char *key;
    json_t *entry;
    json_object_foreach((json_t *)sweep, key, entry) {
        struct data_sha256 sha;
        data_sha256_init(&sha);
        uint32_t first = (uint32_t)strtoul(key, NULL, 10), n_texts = 0;
        for (uint32_t id = first; id < first + 8000; id++) {
            size_t n;
            const char *text = tern_tokenizer_token_bytes(m->data.t, id, &n);
            if (text && tn_utf8_find_invalid(text, n) == n) {
                digest_text(m, &sha, text, n);
                n_texts++;
            }
        }
        assert_int_equal(n_texts, json_integer_value(json_object_get(entry, "texts")));
        check_digest(&sha, entry, key);
    }
}

static void test_sweeps(void **state)
{
    struct model *m = *state;
    char path[512];
    snprintf(path, sizeof path, GOLDEN "%s.bulk.json", m->name);
    json_t *root = data_json(path);
    const json_t *sweeps = json_object_get(root, "sweeps");
    assert_true(json_object_size(json_object_get(sweeps, "codepoints")) >= 272); /* times 4096 */
    assert_true(json_object_size(json_object_get(sweeps, "whitespace")) >= 40);
    sweep_codepoints(m, json_object_get(sweeps, "codepoints"));
    sweep_whitespace(m, json_object_get(sweeps, "whitespace"));
    sweep_vocab(m, json_object_get(sweeps, "vocab"));
    json_decref(root);
}

/* test_tokenizer_golden NAME */
int main(int argc, char **argv)
{
    static struct model models[] = {
        {"llama3", 128256, .keeps_text = true, .adds_bos = true},
        {"gpt-2", 50257, .keeps_text = true, .has_gguf = true},
        {"gpt-neox", 50432, .has_gguf = true, .pre = "gpt-neox"},
        {"falcon", 65024, .has_gguf = true},
        {"starcoder", 49152, .has_gguf = true},
        {"deepseek-coder", 32256, .keeps_text = true, .has_gguf = true},
        {"llama-spm", 32000, .has_gguf = true, .adds_bos = true},
        {"phi-3", 32064, .has_gguf = true, .adds_bos = true},
    };
    if (data_missing())
        return data_missing();
    for (size_t i = 0; argc == 2 && i < sizeof models / sizeof *models; i++) {
        if (strcmp(models[i].name, argv[1]) != 0)
            continue;
        const struct CMUnitTest tests[] = {
            {"test_cases", test_cases, open_model, close_model, &models[i]},
            {"test_min_ids", test_min_ids, open_model, close_model, &models[i]},
            {"test_sweeps", test_sweeps, open_model, close_model, &models[i]},
            {"test_cases/gguf", test_cases, open_gguf, close_model, &models[i]},
        };
        return _cmocka_run_group_tests(argv[1], tests, models[i].has_gguf ? 4 : 3, NULL, NULL);
    }
    return 2;
}
