/* SPDX-License-Identifier: MIT
 *
 * The tokenizer keys of GGUF files: what determines splitter, affixes and merges, and refusals.
 * test_tokenizer_golden compares ids of whole vocabularies.
 */
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "convert/tokens/tok_gguf.h"
#include "failing_alloc.h"
#include "tern/model_format.h"
#include "text_data.h"

/* Lists that a test fills and corrupts. */
struct lists {
    struct tn_tok_keys keys;
    char bytes[8192];
    uint32_t token_offsets[400], merge_offsets[32];
    float scores[400];
    int32_t types[400];
    size_t n_bytes;
};

static void add_token(struct lists *l, const char *text, int32_t type, float score)
{
    uint32_t id = l->keys.tokens.n++;
    size_t n = strlen(text);
    memcpy(l->bytes + l->n_bytes, text, n);
    l->n_bytes += n;
    l->types[id] = type;
    l->scores[id] = score;
    l->token_offsets[id + 1] = (uint32_t)l->n_bytes;
}

/* Appends a merge after the last token. */
static void add_merge(struct lists *l, const char *line)
{
    size_t n = strlen(line);
    if (l->keys.merges.n == 0)
        l->merge_offsets[0] = (uint32_t)l->n_bytes;
    memcpy(l->bytes + l->n_bytes, line, n);
    l->n_bytes += n;
    l->merge_offsets[++l->keys.merges.n] = (uint32_t)l->n_bytes;
}

static void begin(struct lists *l, const char *model, const char *pre)
{
    memset(l, 0, sizeof *l);
    l->keys = (struct tn_tok_keys){
        .model = model,
        .pre = pre,
        .tokens = {l->bytes, l->token_offsets, 0},
        .merges = {l->bytes, l->merge_offsets, 0},
        .scores = l->scores,
        .types = l->types,
        .bos_id = TERN_NO_ID,
        .eos_id = TERN_NO_ID,
        .unk_id = TERN_NO_ID,
        .add_bos = -1,
        .add_eos = -1,
        .add_space_prefix = -1,
    };
}

/* The ASCII characters of the byte alphabet, ids from 0 ('!'), then "<s>" 94, "ab" 95, "bc" 96, and
 * two padding tokens: "[PAD97]" and "[PAD98]". */
static void begin_bytes(struct lists *l, const char *pre)
{
    begin(l, "gpt2", pre);
    for (char c = 0x21; c < 0x7F; c++)
        add_token(l, (char[]){c, 0}, 1, 0);
    add_token(l, "<s>", 3, 0);
    add_token(l, "ab", 1, 0);
    add_token(l, "bc", 1, 0);
    add_token(l, "[PAD97]", 4, 0);
    add_token(l, "[PAD98]", 5, 0);
    add_merge(l, "b c");
    add_merge(l, "a b");
    l->keys.bos_id = l->keys.eos_id = 94;
}

/* <unk> 0, <s> 1, <0x00> to <0xFF> from 2, then U+2581 258, a 259, b 260, c 261, and tokens
 * selected by scores. */
static void begin_characters(struct lists *l)
{
    begin(l, "llama", "default");
    add_token(l, "<unk>", 2, 0);
    add_token(l, "<s>", 3, 0);
    for (unsigned i = 0; i < 256; i++) {
        char text[8];
        snprintf(text, sizeof text, "<0x%02X>", i);
        add_token(l, text, 6, 0);
    }
    add_token(l, "\xE2\x96\x81", 1, -10);
    add_token(l, "a", 1, -11);
    add_token(l, "b", 1, -12);
    add_token(l, "c", 1, -13);
    add_token(l, "ab", 1, -2);                 /* 262 */
    add_token(l, "bc", 1, -1);                 /* 263 */
    add_token(l, "\xE2\x96\x81" "a", 1, -3);   /* 264 */
    add_token(l, "\n\n", 4, -1000);            /* 265 */
    l->keys.bos_id = 1;
    l->keys.eos_id = 1;
}

static void check_keys(const struct lists *l, const char *pre, uint32_t vocab,
                       tern_status expected, const char *message)
{
    struct tn_buf section = {0};
    struct tern_error err = {TERN_OK, ""};
    tern_status status = tn_tok_from_keys(&l->keys, pre, vocab, NULL, &section, &err);
    if (status != expected || !strstr(err.detail, message))
        fail_msg("status %d \"%s\", expected %d \"%s\"", status, err.detail, expected, message);
    if (status != TERN_OK)
        assert_null(section.data);
    tn_buf_fini(&section);
}

static const struct tern_file_tokenizer *open_keys(struct data_tokenizer *data,
                                                   const struct lists *l, const char *pre,
                                                   const char *used)
{
    struct tn_buf section = {0};
    struct tern_error err = {TERN_OK, ""};
    const char *name;
    if (tn_tok_from_keys(&l->keys, pre, 500, &name, &section, &err) != TERN_OK)
        fail_msg("%s", err.detail);
    if (used)
        assert_string_equal(name, used);
    else
        assert_null(name);
    data_tokenizer_open_section(data, "keys", &section, 500);
    return data->section;
}

static struct lists l;

/* Every known name, and its consequences. */
static void test_splitters(void **state)
{
    (void)state;
    static const struct {
        const char *pre;
        uint32_t splitter, flags, n_prefix;
    } rows[] = {
        {"llama-bpe", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, 1},
        {"falcon3", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, 1},
        {"falcon_e", TERN_SPLIT_LLAMA3, TERN_TOK_IGNORE_MERGES, 1},
        {"qwen2", TERN_SPLIT_QWEN2, TERN_TOK_NFC, 0},
        {"qwen35", TERN_SPLIT_QWEN35, TERN_TOK_NFC, 0},
        {"gpt-2", TERN_SPLIT_GPT2, 0, 0},
        {"gpt-neox", TERN_SPLIT_GPT2, TERN_TOK_NFC, 0},
        {"falcon", TERN_SPLIT_FALCON, 0, 0},
        {"starcoder", TERN_SPLIT_STARCODER, 0, 0},
        {"deepseek-coder", TERN_SPLIT_DEEPSEEK_CODER, 0, 0},
        {"deepseek-llm", TERN_SPLIT_DEEPSEEK_LLM, 0, 0},
        {"deepseek-v3", TERN_SPLIT_DEEPSEEK_V3, 0, 0},
        {"dbrx", TERN_SPLIT_LLAMA3, 0, 0},
        {"exaone", TERN_SPLIT_STARCODER, 0, 0},
        {"gpt-4o", TERN_SPLIT_GPT4O, 0, 0},
        {"mellum", TERN_SPLIT_GPT2, 0, 0},
        {"minicpm5", TERN_SPLIT_MINICPM5, TERN_TOK_IGNORE_MERGES, 0},
        {"refact", TERN_SPLIT_STARCODER, 0, 0},
        {"seed-coder", TERN_SPLIT_SEED_CODER, 0, 0},
        {"smaug-bpe", TERN_SPLIT_LLAMA3, 0, 0},
        {"smollm", TERN_SPLIT_STARCODER, 0, 0},
        {"tekken", TERN_SPLIT_TEKKEN, TERN_TOK_IGNORE_MERGES, 1},
    };
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        struct data_tokenizer data;
        begin_bytes(&l, rows[i].pre);
        const struct tern_file_tokenizer *head = open_keys(&data, &l, NULL, rows[i].pre);
        assert_int_equal(head->splitter, rows[i].splitter);
        assert_int_equal(head->flags, rows[i].flags);
        assert_int_equal(head->n_prefix, rows[i].n_prefix);
        assert_int_equal(head->n_tokens, 97);
        data_tokenizer_close(&data);
    }
}

static void test_bytes(void **state)
{
    (void)state;
    struct data_tokenizer data;
    begin_bytes(&l, "default");
    l.keys.add_bos = l.keys.add_eos = 1;
    open_keys(&data, &l, "gpt-2", "gpt-2");
    data_check_encode(&data, "abc", 0, 2, (uint32_t[]){'a' - 0x21, 96});
    data_check_encode(&data, "ab<s>", TERN_ENCODE_PARSE_SPECIAL, 2, (uint32_t[]){95, 94});
    data_check_encode(&data, "ab", TERN_ENCODE_ADD_SPECIAL, 3, (uint32_t[]){94, 95, 94});
    assert_true(tern_tokenizer_is_special(data.t, 94));
    data_tokenizer_close(&data);
    /* A file without a name. */
    begin_bytes(&l, NULL);
    l.keys.arch = "gptneox";
    assert_int_equal(open_keys(&data, &l, NULL, "gpt-neox")->flags, TERN_TOK_NFC);
    data_tokenizer_close(&data);
    /* The option overrides a wrong name in the file. */
    begin_bytes(&l, "gpt-2");
    assert_int_equal(open_keys(&data, &l, "qwen2", "qwen2")->splitter, TERN_SPLIT_QWEN2);
    data_tokenizer_close(&data);
}

static void test_characters(void **state)
{
    (void)state;
    struct data_tokenizer data;
    begin_characters(&l);
    const struct tern_file_tokenizer *head = open_keys(&data, &l, NULL, NULL);
    assert_int_equal(head->kind, TERN_TOKENIZER_CHAR_BPE);
    assert_int_equal(head->n_prefix, 1);
    assert_int_equal(head->unk_id, 0);
    /* The better score first: bc before ab before the space. */
    data_check_encode(&data, "abc", 0, 2, (uint32_t[]){264, 263});
    data_check_encode(&data, "ab a", 0, 3, (uint32_t[]){258, 262, 264});
    data_check_encode(&data, "\xC3\xA9\n\n", 0, 4, (uint32_t[]){258, 2 + 0xC3, 2 + 0xA9, 265});
    data_check_encode(&data, "a", TERN_ENCODE_ADD_SPECIAL, 2, (uint32_t[]){1, 264});
    data_check_encode(&data, "abc", TERN_ENCODE_CONTINUE, 2, (uint32_t[]){259, 263});
    data_check_encode(&data, " a", TERN_ENCODE_CONTINUE, 1, (uint32_t[]){264});
    data_tokenizer_close(&data);
    begin_characters(&l);
    l.keys.add_space_prefix = l.keys.add_bos = 0;
    l.keys.add_eos = 1;
    open_keys(&data, &l, NULL, NULL);
    data_check_encode(&data, "abc", TERN_ENCODE_ADD_SPECIAL, 3, (uint32_t[]){259, 263, 1});
    assert_false(tern_tokenizer_adds_space(data.t));
    data_tokenizer_close(&data);
}

/* Runs of spaces among the user's tokens: with marks as in tokenizer.json, or with spaces. */
static void test_runs_of_spaces(void **state)
{
    (void)state;
    static const char *const runs[][2] = {{"\xE2\x96\x81\xE2\x96\x81", "  "},
                                          {"\xE2\x96\x81\xE2\x96\x81\xE2\x96\x81", "   "}};
    for (int spelling = 0; spelling < 2; spelling++) {
        struct data_tokenizer data;
        begin_characters(&l);
        l.keys.add_space_prefix = l.keys.add_bos = 0;
        add_token(&l, runs[0][spelling], 4, -1000); /* 266 */
        add_token(&l, runs[1][spelling], 4, -1000); /* 267 */
        open_keys(&data, &l, NULL, NULL);
        data_check_encode(&data, "b  c", 0, 3, (uint32_t[]){260, 266, 261});
        data_check_encode(&data, "   c", 0, 2, (uint32_t[]){267, 261});
        data_check_encode(&data, " a", 0, 1, (uint32_t[]){264});
        data_tokenizer_close(&data);
        /* The space before a text is no part of them: none is lost or added. */
        l.keys.add_space_prefix = 1;
        open_keys(&data, &l, NULL, NULL);
        data_check_encode(&data, "b  c", 0, 4, (uint32_t[]){258, 260, 266, 261});
        data_check_encode(&data, "b   c", 0, 4, (uint32_t[]){258, 260, 267, 261});
        data_check_encode(&data, " c", 0, 2, (uint32_t[]){266, 261});
        data_tokenizer_close(&data);
    }
}

static void test_refused(void **state)
{
    (void)state;
    begin_bytes(&l, NULL);
    check_keys(&l, NULL, 500, TERN_UNSUPPORTED, "--pre");
    l.keys.arch = "llama";
    check_keys(&l, NULL, 500, TERN_UNSUPPORTED, "default");
    check_keys(&l, "odd", 500, TERN_USAGE, "--pre \"odd\"");
    check_keys(&l, "gpt-2", 96, TERN_INPUT, "the model has 96");
    begin_bytes(&l, "default");
    check_keys(&l, NULL, 500, TERN_UNSUPPORTED, "--pre");
    begin_bytes(&l, "superbpe");
    check_keys(&l, NULL, 500, TERN_UNSUPPORTED, "splitter \"superbpe\"");
    begin_bytes(&l, "gpt-2");
    l.keys.model = "t5";
    check_keys(&l, NULL, 500, TERN_UNSUPPORTED, "model \"t5\"");
    begin_bytes(&l, "gpt-2");
    l.types[5] = 7;
    check_keys(&l, NULL, 500, TERN_INPUT, "id 5 has type 7");
    l.types[5] = 0;
    check_keys(&l, NULL, 500, TERN_INPUT, "id 5 has type 0");
    begin_bytes(&l, "gpt-2");
    l.types[5] = 6;
    check_keys(&l, NULL, 500, TERN_INPUT, "byte token 5 is \"&\"");
    begin_bytes(&l, "gpt-2");
    add_merge(&l, "ab");
    check_keys(&l, NULL, 500, TERN_INPUT, "merge 2 is not a pair");
    begin_bytes(&l, "gpt-2");
    add_merge(&l, "a b c");
    check_keys(&l, NULL, 500, TERN_INPUT, "merge 2 is not a pair");
    begin_bytes(&l, "gpt-2");
    add_merge(&l, " ab");
    check_keys(&l, NULL, 500, TERN_INPUT, "merge 2 is not a pair");
    begin_bytes(&l, "gpt-2");
    add_merge(&l, "x y");
    check_keys(&l, NULL, 500, TERN_INPUT, "needs the token \"xy\"");
    begin_bytes(&l, "gpt-2");
    l.bytes[1] = '!';
    check_keys(&l, NULL, 500, TERN_INPUT, "ids 0 and 1 are both \"!\"");
    begin_bytes(&l, "llama-bpe");
    l.keys.bos_id = TERN_NO_ID;
    check_keys(&l, NULL, 500, TERN_OK, ""); /* a usual key of a splitter is missing */
    l.keys.add_bos = 1;
    check_keys(&l, NULL, 500, TERN_INPUT, "without tokenizer.ggml.bos_token_id");
    l.keys.add_bos = -1;
    l.keys.bos_id = 97; /* padding is not a token */
    check_keys(&l, NULL, 500, TERN_INPUT, "adds id 97, but there are 97 tokens");
    begin_characters(&l);
    l.scores[262] = -(float)INFINITY;
    check_keys(&l, NULL, 500, TERN_INPUT, "id 262 has no finite score");
    l.keys.scores = NULL;
    check_keys(&l, NULL, 500, TERN_INPUT, "scores is missing");
}

/* Finding the pairs of a token with a score takes time proportional to the square of its length. */
static void test_long_token_with_score(void **state)
{
    (void)state;
    char text[1026];
    memset(text, 'a', sizeof text);
    text[1025] = '\0';
    begin_characters(&l);
    add_token(&l, text + 1, 1, -4);
    check_keys(&l, NULL, 500, TERN_OK, "");
    begin_characters(&l);
    add_token(&l, text, 1, -4);
    check_keys(&l, NULL, 500, TERN_UNSUPPORTED, "token 266 with a score has 1025 bytes");
}

/* LLaMA-3's ranks are recognised without the keys. */
static void test_llama3_is_recognised(void **state)
{
    (void)state;
    if (data_missing() == 77)
        skip();
    json_t *root = data_json(TERN_TEXT_DATA "/llama3.tokenizer.json");
    json_t *vocab = json_object_get(json_object_get(root, "model"), "vocab"), *id;
    const char **texts = calloc(128000, sizeof *texts);
    uint32_t *offsets = calloc(128001, sizeof *offsets);
    const char *text;
    assert_true(texts && offsets);
    json_object_foreach(vocab, text, id)
        texts[json_integer_value(id)] = text;
    struct tn_buf bytes = {0};
    for (size_t i = 0; i < 128000; i++) {
        tn_buf_append_text(&bytes, texts[i]);
        offsets[i + 1] = (uint32_t)bytes.n_bytes;
    }
    begin(&l, "gpt2", NULL);
    l.keys.tokens = (struct tn_tok_texts){bytes.data, offsets, 128000};
    l.keys.types = NULL;
    l.keys.add_bos = 0;
    struct tn_buf section = {0};
    struct tern_error err;
    const char *used;
    assert_int_equal(tn_tok_from_keys(&l.keys, NULL, 128256, &used, &section, &err), TERN_OK);
    assert_string_equal(used, "llama-bpe");
    tn_buf_fini(&section);
    bytes.data[offsets[77777]] ^= 1;
    assert_int_equal(tn_tok_from_keys(&l.keys, NULL, 128256, &used, &section, &err),
                     TERN_UNSUPPORTED);
    tn_buf_fini(&bytes);
    free(texts);
    free(offsets);
    json_decref(root);
}

static void test_every_allocation_fails(void **state)
{
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        tern_status status = TERN_MEMORY;
        size_t n_failures = 0;
        if (kind)
            begin_characters(&l);
        else
            begin_bytes(&l, "gpt-2");
        for (; status == TERN_MEMORY; n_failures++) {
            struct tn_buf section = {0};
            struct tern_error err;
            fail_alloc_after(n_failures);
            status = tn_tok_from_keys(&l.keys, NULL, 500, NULL, &section, &err);
            fail_alloc_stop();
            if (status != TERN_OK)
                assert_null(section.data);
            tn_buf_fini(&section);
        }
        assert_int_equal(status, TERN_OK);
        assert_true(n_failures > 5);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_splitters),
        cmocka_unit_test(test_bytes),
        cmocka_unit_test(test_characters),
        cmocka_unit_test(test_runs_of_spaces),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_long_token_with_score),
        cmocka_unit_test(test_llama3_is_recognised),
        cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
