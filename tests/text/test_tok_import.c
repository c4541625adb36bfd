/* SPDX-License-Identifier: MIT
 *
 * Reading tokenizer.json: anything that is not understood exactly is refused by name, and so is a
 * broken vocabulary.  Each row changes one element of the demo's file.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "failing_alloc.h"
#include "tern/model_format.h"
#include "convert/tokens/tok_import.h"
#include "text_data.h"

static char *demo_text;
static size_t n_demo_text;

static int read_demo(void **state)
{
    (void)state;
    demo_text = data_read(DATA_DEMO_TOKENIZER, &n_demo_text);
    return 0;
}

static int free_demo(void **state)
{
    (void)state;
    free(demo_text);
    return 0;
}

static json_t *demo(void)
{
    json_t *root = json_loadb(demo_text, n_demo_text, 0, NULL);
    assert_non_null(root);
    return root;
}

/* Sets the member at a path such as "model/merges/0" to a JSON value; "" removes it. */
static void change(json_t *root, const char *path, const char *value)
{
    char key[128];
    const char *slash;
    for (; (slash = strchr(path, '/')) != NULL; path = slash + 1) {
        snprintf(key, sizeof key, "%.*s", (int)(slash - path), path);
        root = json_is_array(root) ? json_array_get(root, (size_t)atoi(key))
                                   : json_object_get(root, key);
        assert_non_null(root);
    }
    json_t *item = json_loads(value, JSON_DECODE_ANY, NULL);
    if (json_is_array(root)) {
        assert_non_null(item);
        assert_int_equal(json_array_set_new(root, (size_t)atoi(path), item), 0);
    } else if (*value) {
        assert_non_null(item);
        assert_int_equal(json_object_set_new(root, path, item), 0);
    } else {
        assert_int_equal(json_object_del(root, path), 0);
    }
}

static void check_import(const char *json, size_t n, uint32_t vocab, tern_status expected,
                         const char *message)
{
    struct tn_buf section = {0};
    struct tern_error err = {TERN_OK, ""};
    tern_status status = tn_tok_import(json, n, vocab, &section, &err);
    if (status != expected || !strstr(err.detail, message))
        fail_msg("status %d \"%s\", expected %d \"%s\"", status, err.detail, expected, message);
    if (status != TERN_OK)
        assert_null(section.data);
    tn_buf_fini(&section);
}

static void check_change(const char *path, const char *value, tern_status expected,
                         const char *message)
{
    json_t *root = demo();
    change(root, path, value);
    char *json = json_dumps(root, JSON_COMPACT);
    check_import(json, strlen(json), DATA_DEMO_VOCAB, expected, message);
    free(json);
    json_decref(root);
}

#define SPLIT "pre_tokenizer/pretokenizers/0/"
#define LEVEL "pre_tokenizer/pretokenizers/1/"
#define TEMPLATE "post_processor/processors/1/"

static void test_unsupported(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *message;
    } rows[] = {
        {"normalizer", "{\"type\": \"NFKC\"}", "normalizer NFKC"},
        {"normalizer", "{\"type\": \"Sequence\", \"normalizers\": [{\"type\": \"NFC\"}, {\"type\": "
                       "\"Lowercase\"}]}",
         "normalizer Lowercase"},
        {"normalizer", "{\"type\": \"Prepend\", \"prepend\": \"x\"}", "texts than a space mark, Prepend"},
        {"normalizer", "{\"type\": \"Prepend\", \"prepend\": \"\u2581\"}", "without Replace"},
        {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"Regex\": \" \"}, \"content\": \"\u2581\"}",
         "texts than a space mark, Replace"},
        {"normalizer", "{\"type\": \"Replace\", \"pattern\": {\"String\": \" \"}, \"content\": \"\u2581\"}",
         "space marks with pre-tokenizer Sequence"},
        {"normalizer", "{}", "normalizer without a type"},
        {"normalizer", "1", "normalizer without a type"},
        {"pre_tokenizer", "null", "without pre_tokenizer"},
        {"pre_tokenizer", "", "without pre_tokenizer"},
        {"pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"_\"}", "replacement \"_\""},
        {"pre_tokenizer",
         "{\"type\": \"Metaspace\", \"replacement\": \"\u2581\", \"prepend_scheme\": \"odd\"}",
         "prepend_scheme odd"},
        {"pre_tokenizer", "{\"type\": \"Metaspace\", \"replacement\": \"\u2581\"}", "decoder ByteLevel"},
        {"pre_tokenizer", "{\"type\": \"Whitespace\"}", "pre-tokenizer Whitespace"},
        {"pre_tokenizer/pretokenizers", "[]", "a sequence of 0 pre-tokenizers"},
        {"pre_tokenizer/pretokenizers/0", "{\"type\": \"Digits\"}",
         "2 pre-tokenizers, beginning with \"Digits\""},
        {"pre_tokenizer/pretokenizers/0", "{\"type\": \"Punctuation\", \"behavior\": \"Isolated\"}",
         "pre-tokenizer \"Punctuation Isolated\""},
        {"pre_tokenizer/pretokenizers/1", "{\"type\": \"Split\"}", "Split without a Regex"},
        {SPLIT "pattern", "{\"Regex\": \"\\\\s+\"}", "pre-tokenizer \"Split \\s+\""},
        {SPLIT "pattern", "{\"String\": \" \"}", "Split without a Regex"},
        {SPLIT "behavior", "\"Removed\"", "behavior Removed"},
        {SPLIT "invert", "true", "invert"},
        {LEVEL "add_prefix_space", "true", "add_prefix_space"},
        {LEVEL "use_regex", "true", "not supported together"},
        {LEVEL "use_regex", "", "not supported together"},
        {"post_processor", "{\"type\": \"BertProcessing\"}", "post-processor BertProcessing"},
        {"post_processor/processors/0", "{\"type\": \"RobertaProcessing\"}", "RobertaProcessing"},
        {"post_processor/processors", "", "without a list of processors"},
        {TEMPLATE "single", "[]", "0 texts"},
        {TEMPLATE "single", "[{\"Sequence\": {\"id\": \"B\"}}]", "unknown item 0"},
        {TEMPLATE "single", "[{\"Sequence\": {\"id\": \"A\"}}, {\"Sequence\": {\"id\": \"A\"}}]",
         "2 texts"},
        {TEMPLATE "special_tokens/<|begin_of_text|>/ids", "[1, 2, 3, 4, 5]", "more than 4 ids"},
        {"decoder", "null", "decoder"},
        {"decoder", "{\"type\": \"Metaspace\"}", "decoder Metaspace"},
        {"model/type", "\"Unigram\"", "model Unigram"},
        {"model/dropout", "0.1", "dropout"},
        {"model/continuing_subword_prefix", "\"##\"", "continuing_subword_prefix"},
        {"model/end_of_word_suffix", "\"</w>\"", "end_of_word_suffix"},
        {"model/byte_fallback", "true", "byte_fallback"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_change(rows[i].path, rows[i].value, TERN_UNSUPPORTED, rows[i].message);
}

static void test_broken(void **state)
{
    (void)state;
    static const struct {
        const char *path, *value, *message;
    } rows[] = {
        {"model/vocab", "", "model.vocab is missing"},
        {"model/vocab", "[]", "model.vocab is missing"},
        {"model/vocab/he", "", "no token has id"},
        {"model/vocab/he", "5", "id 5 is both"},
        {"model/vocab/he", "4096", "token \"he\" has id 4096, the model has 4096"},
        {"model/vocab/he", "-1", "token \"he\" has no valid id"},
        {"model/vocab/he", "1.5", "token \"he\" has no valid id"},
        {"model/vocab/he", "\"7\"", "token \"he\" has no valid id"},
        {"model/vocab/he", "9223372036854775807", "id 9223372036854775807"},
        {"model/merges", "", "merges are missing"},
        {"model/merges", "{}", "merges are missing"},
        {"model/merges/7", "[\"he\", \"nonsense\"]", "merge 7 needs the token \"nonsense\""},
        {"model/merges/7", "[\"q\", \"q\"]", "merge 7 needs the token \"qq\""},
        {"model/merges/7", "[\"q\"]", "merge 7 is not a pair"},
        {"model/merges/7", "[\"h\", \"e\", \"r\"]", "merge 7 is not a pair"},
        {"model/merges/7", "[\"\", \"e\"]", "merge 7 is not a pair"},
        {"model/merges/7", "\"he\"", "merge 7 is not a pair"},
        {"model/merges/7", "\"h e r\"", "merge 7 is not a pair"},
        {"model/merges/7", "5", "merge 7 is not a pair"},
        {"added_tokens/3/id", "4096", "has id 4096, the model has 4096"},
        {"added_tokens/3/id", "5", "has id 5, which the vocabulary uses otherwise"},
        {"added_tokens/3/id", "4084", "has id 4084, which the vocabulary uses otherwise"},
        {"added_tokens/3/content", "", "an added token has no content"},
        {"added_tokens/3/content", "\"\"", "has 0 bytes"},
        {"added_tokens/3/content", "\"<|eot_id|>\"", "are both \"<|eot_id|>\""},
        {"added_tokens/3/content", "\"he\"", "\"he\" has id 4083, which the vocabulary uses"},
        {"added_tokens", "{}", "added_tokens is not a list"},
        {"added_tokens", "[]", "the post-processor adds id 4080"},
        {TEMPLATE "special_tokens/<|begin_of_text|>/ids", "[9999]", "adds id 9999"},
        {TEMPLATE "special_tokens/<|begin_of_text|>/ids", "[-1]", "has a bad id"},
        {TEMPLATE "special_tokens", "{}", "has no ids"},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++)
        check_change(rows[i].path, rows[i].value, TERN_INPUT, rows[i].message);
}

static void test_not_json(void **state)
{
    (void)state;
    char deep[200];
    memset(deep, '[', sizeof deep);
    check_import("", 0, 10, TERN_INPUT, "line 1");
    check_import("{", 1, 10, TERN_INPUT, "line 1");
    check_import("[]", 2, 10, TERN_INPUT, "not a JSON object");
    check_import("{\"a\": 1, \"a\": 2}", 16, 10, TERN_INPUT, "duplicate");
    check_import(deep, sizeof deep, 10, TERN_INPUT, "deeper than 64");
    check_import(demo_text, n_demo_text / 2, DATA_DEMO_VOCAB, TERN_INPUT, "tokenizer.json: line");
    check_import(demo_text, n_demo_text, 4095, TERN_INPUT, "the model has 4095");
    check_import(demo_text, n_demo_text, 4097, TERN_OK, "");
}

/* ---- accepted files ---- */

static uint32_t find(const struct data_tokenizer *data, const char *text)
{
    return tern_tokenizer_find(data->t, text, strlen(text));
}

/* The changed tokenizer gives the same section as the demo's; releases it. */
static void check_same_section(json_t *root)
{
    struct tn_buf a = {0}, b = {0};
    char *json = json_dumps(root, 0);
    assert_int_equal(tn_tok_import(demo_text, n_demo_text, DATA_DEMO_VOCAB, &a, NULL), TERN_OK);
    assert_int_equal(tn_tok_import(json, strlen(json), DATA_DEMO_VOCAB, &b, NULL), TERN_OK);
    assert_int_equal(a.n_bytes, b.n_bytes);
    assert_memory_equal(a.data, b.data, a.n_bytes);
    tn_buf_fini(&a);
    tn_buf_fini(&b);
    free(json);
    json_decref(root);
}

/* Merges as strings with a version line give the section of the merges as pairs. */
static void test_merge_styles(void **state)
{
    (void)state;
    json_t *root = demo(), *lines = json_array(), *pair;
    json_t *model = json_object_get(root, "model"), *merges = json_object_get(model, "merges");
    size_t i;
    json_array_append_new(lines, json_string("#version: 0.2"));
    json_array_foreach(merges, i, pair) {
        assert_int_equal(json_array_size(pair), 2);
        json_array_append_new(lines,
                              json_sprintf("%s %s", json_string_value(json_array_get(pair, 0)),
                                           json_string_value(json_array_get(pair, 1))));
    }
    json_object_set_new(model, "merges", lines);
    check_same_section(root);
}

/* Files saved after training contain batch settings: the section is the same. */
static void test_batch_settings(void **state)
{
    (void)state;
    json_t *root = demo();
    change(root, "truncation", "{\"max_length\": 5, \"strategy\": \"LongestFirst\"}");
    change(root, "padding", "{\"strategy\": {\"Fixed\": 16}, \"pad_id\": 1}");
    check_same_section(root);
}

/* A small vocabulary: the 256 bytes, then the given entries; ids count from 0. */
static json_t *small_tokenizer(const char *const *entries, const char *merges, const char *added)
{
    json_t *root = demo(), *model = json_object_get(root, "model");
    json_t *old = json_object_get(model, "vocab"), *vocab = json_object(), *id;
    const char *text;
    json_object_foreach(old, text, id)
        if (json_integer_value(id) < 256)
            json_object_set(vocab, text, id);
    for (json_int_t next = 256; *entries; entries++, next++)
        json_object_set_new(vocab, *entries, json_integer(next));
    json_object_set_new(model, "vocab", vocab);
    json_object_set_new(model, "merges", json_loads(merges, 0, NULL));
    json_object_set_new(model, "ignore_merges", json_false());
    json_object_set_new(root, "added_tokens", json_loads(added, 0, NULL));
    json_object_set_new(root, "post_processor", json_null());
    return root;
}

static void test_later_rank_wins(void **state)
{
    (void)state;
    static const char *const entries[] = {"ab", "bc", NULL};
    struct data_tokenizer data;
    /* (a, b) occurs before and after (b, c): only the later position counts. */
    json_t *root = small_tokenizer(
        entries, "[[\"a\", \"b\"], [\"b\", \"c\"], [\"a\", \"b\"]]", "[]");
    data_tokenizer_open_json(&data, root, 300);
    uint32_t expected[] = {find(&data, "a"), find(&data, "bc"), find(&data, "ab")};
    assert_int_equal(expected[1], 257);
    data_check_encode(&data, "abc", 0, 2, expected);
    data_check_encode(&data, "ab", 0, 1, expected + 2);
    assert_int_equal(tern_tokenizer_n_tokens(data.t), 258);
    data_tokenizer_close(&data);
    json_decref(root);
}

#define ADDED(id, content, special, normalized)                                                    \
    "{\"id\": " #id ", \"content\": \"" content "\", \"special\": " #special                       \
    ", \"normalized\": " #normalized "}"

/* Leftmost-longest; tokens that are not special always match; those with "normalized" only between
 * the others; a special token that is not parsed covers the tokens inside it. */
static void test_added_tokens(void **state)
{
    (void)state;
    static const char *const entries[] = {"xy", NULL};
    struct data_tokenizer data;
    json_t *root = small_tokenizer(
        entries, "[[\"x\", \"y\"]]",
        "[" ADDED(257, "<s>", true, false) ", " ADDED(258, "<s>+", true, false) ", "
        ADDED(259, "s>", false, false) ", " ADDED(260, "[[", false, true) ", "
        ADDED(261, "[x", false, false) ", " ADDED(262, "\\u00e9 \\u00e9", false, false) "]");
    data_tokenizer_open_json(&data, root, 300);
    uint32_t b[128];
    for (uint32_t c = 0; c < 128; c++) {
        char byte = (char)c;
        b[c] = tern_tokenizer_find(data.t, &byte, 1);
    }
    data_check_encode(&data, "<s>", TERN_ENCODE_PARSE_SPECIAL, 1, (uint32_t[]){257});
    data_check_encode(&data, "<s>+", TERN_ENCODE_PARSE_SPECIAL, 1, (uint32_t[]){258});
    data_check_encode(&data, "<s>", 0, 3, (uint32_t[]){b['<'], b['s'], b['>']});
    data_check_encode(&data, "as>", 0, 2, (uint32_t[]){b['a'], 259});
    data_check_encode(&data, "[[", 0, 1, (uint32_t[]){260});
    data_check_encode(&data, "[[x", 0, 2, (uint32_t[]){b['['], 261});
    data_check_encode(&data, "[[[x", 0, 2, (uint32_t[]){260, 261});
    data_check_encode(&data, "xy[xxy", 0, 3, (uint32_t[]){256, 261, 256});
    data_check_encode(&data, "\xC3\xA9 \xC3\xA9", 0, 1, (uint32_t[]){262});
    assert_int_equal(find(&data, "\xC3\xA9 \xC3\xA9"), 262);
    assert_int_equal(find(&data, "[["), 260);
    assert_int_equal(find(&data, "[[["), TERN_NO_ID);
    assert_int_equal(find(&data, ""), TERN_NO_ID);
    assert_true(tern_tokenizer_is_special(data.t, 258));
    assert_false(tern_tokenizer_is_special(data.t, 259));
    assert_false(tern_tokenizer_is_special(data.t, 263));
    data_tokenizer_close(&data);
    json_decref(root);
}

/* White space that one match has stripped is no match of a token that strips on its left. */
static void test_stripped_token(void **state)
{
    (void)state;
    static const char *const entries[] = {NULL};
    struct data_tokenizer data;
    json_t *root = small_tokenizer(
        entries, "[]",
        "[{\"id\": 256, \"content\": \"\\n\", \"lstrip\": true, \"rstrip\": true},"
        " {\"id\": 257, \"content\": \"\\t\", \"rstrip\": true}]");
    data_tokenizer_open_json(&data, root, 300);
    const uint32_t x = find(&data, "x");
    data_check_encode(&data, "x \n \nx\n", 0, 4, (uint32_t[]){x, 256, x, 256});
    data_check_encode(&data, "\t\n", 0, 1, (uint32_t[]){257});
    data_check_encode(&data, "\t\tx", 0, 3, (uint32_t[]){257, 257, x});
    data_tokenizer_close(&data);
    json_decref(root);
}

/* A special token is never made by merging or by ignore_merges. */
static void test_special_in_vocabulary(void **state)
{
    (void)state;
    static const char *const entries[] = {"ab", NULL};
    struct data_tokenizer data;
    json_t *root =
        small_tokenizer(entries, "[[\"a\", \"b\"]]", "[" ADDED(256, "ab", true, false) "]");
    char *json = json_dumps(root, 0);
    check_import(json, strlen(json), 300, TERN_UNSUPPORTED,
                 "merge 0 with the special token \"ab\"");
    free(json);
    json_decref(root);
    root = small_tokenizer(entries, "[]", "[" ADDED(256, "ab", true, false) "]");
    json_object_set_new(json_object_get(root, "model"), "ignore_merges", json_true());
    data_tokenizer_open_json(&data, root, 300);
    data_check_encode(&data, "ab", 0, 2, (uint32_t[]){find(&data, "a"), find(&data, "b")});
    data_check_encode(&data, "ab", TERN_ENCODE_PARSE_SPECIAL, 1, (uint32_t[]){256});
    data_tokenizer_close(&data);
    json_decref(root);
}

/* The ids that the post-processor puts before and after a text. */
static void test_prefix_and_suffix(void **state)
{
    (void)state;
    static const char *const entries[] = {NULL};
    struct data_tokenizer data;
    struct tern_file_tokenizer head;
    struct tn_buf section = {0};
    json_t *root = small_tokenizer(entries, "[]", "[" ADDED(256, "<s>", true, false) "]");
    json_object_set_new(
        root, "post_processor",
        json_loads("{\"type\": \"TemplateProcessing\", \"single\": [{\"SpecialToken\": {\"id\": "
                   "\"s\"}}, {\"Sequence\": {\"id\": \"A\"}}, {\"SpecialToken\": {\"id\": \"e\"}}],"
                   " \"special_tokens\": {\"s\": {\"ids\": [256, 7]}, \"e\": {\"ids\": [9]}}}",
                   0, NULL));
    char *json = json_dumps(root, 0);
    assert_int_equal(tn_tok_import(json, strlen(json), 300, &section, NULL), TERN_OK);
    memcpy(&head, section.data, sizeof head);
    assert_int_equal(head.n_prefix, 2);
    assert_int_equal(head.prefix_ids[0], 256);
    assert_int_equal(head.n_tokens, 257);
    assert_int_equal(head.n_added, 1);
    assert_int_equal(head.n_merges, 0);
    tn_buf_fini(&section);
    free(json);
    data_tokenizer_open_json(&data, root, 300);
    data_check_encode(&data, "", TERN_ENCODE_ADD_SPECIAL, 3, (uint32_t[]){256, 7, 9});
    data_check_encode(&data, "", 0, 0, (uint32_t[]){0});
    data_tokenizer_close(&data);
    json_decref(root);
}

/* A byte without a token is dropped or becomes the unknown token, as in the reference before
 * merging, so that its neighbours may merge. */
static void test_missing_byte(void **state)
{
    (void)state;
    static const char *const entries[] = {"ab", "?!", NULL};
    for (int with_unk = 0; with_unk < 2; with_unk++) {
        struct data_tokenizer data;
        json_t *root = small_tokenizer(entries, "[[\"a\", \"b\"]]", "[]");
        json_t *model = json_object_get(root, "model"), *vocab = json_object_get(model, "vocab");
        json_t *id = json_incref(json_object_get(vocab, "z"));
        json_object_del(vocab, "z");
        json_object_set_new(vocab, "unreachable", id);
        if (with_unk)
            json_object_set_new(model, "unk_token", json_string("?!"));
        data_tokenizer_open_json(&data, root, 300);
        uint32_t a = find(&data, "a"), b = find(&data, "b");
        if (with_unk)
            data_check_encode(&data, "azzb", 0, 4, (uint32_t[]){a, 257, 257, b});
        else
            data_check_encode(&data, "azzb", 0, 1, (uint32_t[]){256});
        data_check_encode(&data, "zz", 0, with_unk ? 2 : 0, (uint32_t[]){257, 257});
        data_tokenizer_close(&data);
        json_decref(root);
    }
}

/* ---- the published files ---- */

static void test_published(void **state)
{
    (void)state;
    static const struct {
        const char *name;
        uint32_t vocab, n_tokens, kind, splitter, flags;
    } rows[] = {
        {"gpt-neox", 50432, 50277, TERN_TOKENIZER_BYTE_BPE, TERN_SPLIT_GPT2, TERN_TOK_NFC},
        {"falcon", 65024, 65024, TERN_TOKENIZER_BYTE_BPE, TERN_SPLIT_FALCON, 0},
        {"starcoder", 49152, 49152, TERN_TOKENIZER_BYTE_BPE, TERN_SPLIT_STARCODER, 0},
        {"deepseek-coder", 32256, 32022, TERN_TOKENIZER_BYTE_BPE, TERN_SPLIT_DEEPSEEK_CODER, 0},
        {"phi-3", 32064, 32011, TERN_TOKENIZER_CHAR_BPE, TERN_SPLIT_SPACE_RUN,
         TERN_TOK_SPACE_MARKS | TERN_TOK_PREPEND | TERN_TOK_STRIP | TERN_TOK_FUSE_UNK},
    };
    if (data_missing() == 77)
        skip();
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        char path[512];
        struct data_tokenizer data;
        snprintf(path, sizeof path, TERN_TEXT_DATA "/%s.tokenizer.json", rows[i].name);
        data_tokenizer_open(&data, path, rows[i].vocab);
        const struct tern_file_tokenizer *head = data.section;
        assert_int_equal(head->n_tokens, rows[i].n_tokens);
        assert_int_equal(head->kind, rows[i].kind);
        assert_int_equal(head->splitter, rows[i].splitter);
        assert_int_equal(head->flags, rows[i].flags);
        data_tokenizer_close(&data);
    }
}

/* ---- memory ---- */

static void test_every_allocation_fails(void **state)
{
    (void)state;
    tern_status status = TERN_MEMORY;
    size_t n_failures = 0;
    /* One after the other, later in growing steps: the parser alone makes thousands. */
    for (; status == TERN_MEMORY; n_failures += 1 + n_failures / 16) {
        struct tn_buf section = {0};
        struct tern_error err;
        fail_alloc_after(n_failures);
        status = tn_tok_import(demo_text, n_demo_text, DATA_DEMO_VOCAB, &section, &err);
        fail_alloc_stop();
        if (status != TERN_OK)
            assert_null(section.data);
        tn_buf_fini(&section);
    }
    assert_int_equal(status, TERN_OK);
    assert_true(n_failures > 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_unsupported),
        cmocka_unit_test(test_broken),
        cmocka_unit_test(test_not_json),
        cmocka_unit_test(test_merge_styles),
        cmocka_unit_test(test_batch_settings),
        cmocka_unit_test(test_later_rank_wins),
        cmocka_unit_test(test_missing_byte),
        cmocka_unit_test(test_added_tokens),
        cmocka_unit_test(test_stripped_token),
        cmocka_unit_test(test_special_in_vocabulary),
        cmocka_unit_test(test_prefix_and_suffix),
        cmocka_unit_test(test_published),
        cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, read_demo, free_demo);
}
