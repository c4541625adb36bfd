/* SPDX-License-Identifier: MIT
 *
 * Tokenizer sections from a hostile file: refused with a reason, or used without reading outside of
 * them; opening needs little memory.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "base/rng.h"
#include "failing_alloc.h"
#include "tern/chat.h"
#include "tern/model_format.h"
#include "text_data.h"

static struct data_tokenizer demo;

static int open_demo(void **state)
{
    (void)state;
    data_tokenizer_open(&demo, DATA_DEMO_TOKENIZER, DATA_DEMO_VOCAB);
    return 0;
}

static int close_demo(void **state)
{
    (void)state;
    data_tokenizer_close(&demo);
    return 0;
}

/* A copy of the demo's section to corrupt, followed by an inaccessible page. */
static struct tern_file_tokenizer *copy_section(void)
{
    void *copy = tn_alloc_aligned(demo.n_section, 64);
    assert_non_null(copy);
    memcpy(copy, demo.section, demo.n_section);
    return copy;
}

static void check_refused(struct tern_file_tokenizer *head, size_t n, uint32_t vocab,
                          tern_status expected, const char *message)
{
    struct tern_tokenizer *t;
    struct tern_error err = {TERN_OK, ""};
    assert_int_equal(tn_tokenizer_open(&t, head, n, vocab, &err), expected);
    assert_null(t);
    if (!strstr(err.detail, message))
        fail_msg("\"%s\" does not say \"%s\"", err.detail, message);
    tn_free_aligned(head);
}

/* Corrupts one field of the header. */
#define REFUSE(field, value, expected, message)                                                    \
    do {                                                                                           \
        struct tern_file_tokenizer *head = copy_section();                                         \
        head->field = (value);                                                                     \
        check_refused(head, demo.n_section, DATA_DEMO_VOCAB, expected, message);                   \
    } while (0)

static void test_header(void **state)
{
    (void)state;
    REFUSE(kind, 9, TERN_UNSUPPORTED, "kind 9");
    REFUSE(splitter, 0, TERN_UNSUPPORTED, "splitter 0");
    REFUSE(splitter, 99, TERN_UNSUPPORTED, "splitter 99");
    REFUSE(flags, TERN_TOK_SPACE_MARKS, TERN_UNSUPPORTED, "flags 0x8");
    REFUSE(flags, 512, TERN_UNSUPPORTED, "flags 0x200");
    REFUSE(reserved[0], 1, TERN_UNSUPPORTED, "newer tern");
    REFUSE(reserved[sizeof((struct tern_file_tokenizer *)0)->reserved - 1], 1, TERN_UNSUPPORTED,
           "newer tern");
    REFUSE(unk_id, 4096, TERN_INPUT, "unknown symbol 0 has id 4096");
    REFUSE(added_text.offset, 0xFFFFFFF8u, TERN_INPUT, "added_text");
    REFUSE(n_tokens, 0, TERN_INPUT, "0 tokens");
    REFUSE(n_tokens, 4097, TERN_INPUT, "4097 tokens");
    REFUSE(n_tokens, 4095, TERN_INPUT, "token_offsets");
    REFUSE(n_prefix, 5, TERN_INPUT, "5 and 0 ids");
    REFUSE(prefix_ids[0], 4096, TERN_INPUT, "prefix 0 has id 4096");
    REFUSE(fim_ids[5], 4097, TERN_INPUT, "fim id 5 is 4096, there are 4096 tokens");
    REFUSE(fim_ids[0], UINT32_MAX, TERN_INPUT, "fim id 0 is 4294967294, there are 4096 tokens");
    REFUSE(n_merges, 3823, TERN_INPUT, "merges");
    REFUSE(n_added, 17, TERN_INPUT, "added");
    REFUSE(vocab_slots.bytes, 0, TERN_INPUT, "vocab_slots has 0");
    REFUSE(merge_slots.bytes, 12, TERN_INPUT, "merge_slots has 3");
    REFUSE(byte_ids.offset, 0xFFFFFFF8u, TERN_INPUT, "byte_ids");
    REFUSE(byte_ids.offset, 257, TERN_INPUT, "byte_ids at 257");
    REFUSE(token_bytes.bytes, 5, TERN_INPUT, "tokens end at");
    REFUSE(special_bits.bytes, 511, TERN_INPUT, "special_bits");
    check_refused(copy_section(), 255, DATA_DEMO_VOCAB, TERN_INPUT, "255 bytes");
    check_refused(copy_section(), demo.n_section, 4095, TERN_INPUT, "the model has 4095");
}

static void test_tables(void **state)
{
    (void)state;
    struct tern_file_tokenizer *head = copy_section();
    uint32_t *offsets = (uint32_t *)((char *)head + head->token_offsets.offset);
    offsets[7] = offsets[8] + 1;
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_INPUT, "token 7 has a negative");
    head = copy_section();
    ((uint32_t *)((char *)head + head->byte_ids.offset))[255] = 4096;
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_INPUT, "byte 255 has id 4096");
    head = copy_section();
    struct tern_file_added *added = (void *)((char *)head + head->added.offset);
    added[3].id = 4096;
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_INPUT, "added token 3");
    head = copy_section();
    added = (void *)((char *)head + head->added.offset);
    added[4] = added[3];
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_INPUT, "4 is out of order");
    head = copy_section();
    added = (void *)((char *)head + head->added.offset);
    added[4].flags |= 32;
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_UNSUPPORTED, "flags 0x21");
    head = copy_section();
    added = (void *)((char *)head + head->added.offset);
    added[15].text.offset = head->added_text.bytes;
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_INPUT, "added token 15 has");
    head = copy_section();
    added = (void *)((char *)head + head->added.offset);
    added[0].text.bytes = 0;
    check_refused(head, demo.n_section, DATA_DEMO_VOCAB, TERN_INPUT, "added token 0 has 0 bytes");
}

/* Whatever the tables contain, encoding ends and gives ids in range. */
static void use(const struct tern_tokenizer *t)
{
    static const char text[] = "Once upon a time, <|eot_id|> there was a KING's 123 \n\n  \xFFx!"
                               "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa"
                               "aaaaaaaaaaaabcabcabcabcabcababababababababthethethethethethethethethe";
    struct tern_ids ids = {0};
    assert_int_equal(tern_tokenizer_encode(t, text, sizeof text,
                                           TERN_ENCODE_ADD_SPECIAL | TERN_ENCODE_PARSE_SPECIAL,
                                           &ids, NULL),
                     TERN_OK);
    uint32_t n_tokens = tern_tokenizer_n_tokens(t);
    for (size_t i = 0; i < ids.n; i++) {
        size_t n;
        assert_true(ids.ids[i] < n_tokens);
        assert_non_null(tern_tokenizer_token_bytes(t, ids.ids[i], &n));
    }
    tern_tokenizer_find(t, text, 4);
    tern_tokenizer_is_special(t, n_tokens);
    tern_ids_free(&ids);
}

static void test_damaged(void **state)
{
    (void)state;
    struct tn_rng rng;
    size_t n_used = 0;
    tn_rng_seed(&rng, 7);
    for (int round = 0; round < 3000; round++) {
        struct tern_file_tokenizer *head = copy_section();
        unsigned char *bytes = (unsigned char *)head;
        size_t n_changes = 1 + tn_rng_next(&rng) % 4000;
        for (size_t i = 0; i < n_changes; i++) {
            size_t at = 256 + tn_rng_next(&rng) % (demo.n_section - 256);
            /* Merges and slots more often than strings. */
            if (round % 2)
                at = head->merges.offset + at % (head->merges.bytes + head->merge_slots.bytes);
            bytes[at] = (unsigned char)tn_rng_next(&rng);
        }
        struct tern_tokenizer *t;
        struct tern_error err;
        if (tn_tokenizer_open(&t, head, demo.n_section, DATA_DEMO_VOCAB, &err) == TERN_OK) {
            use(t);
            n_used++;
            tn_tokenizer_close(t);
        }
        tn_free_aligned(head);
    }
    assert_true(n_used > 1000);
}

static void test_full_slots(void **state)
{
    (void)state;
    struct tern_file_tokenizer *head = copy_section();
    uint32_t *slots = (uint32_t *)((char *)head + head->merge_slots.offset);
    for (uint32_t i = 0; i < head->merge_slots.bytes / 4; i++)
        slots[i] = 1;
    slots = (uint32_t *)((char *)head + head->vocab_slots.offset);
    for (uint32_t i = 0; i < head->vocab_slots.bytes / 4; i++)
        slots[i] = 1;
    struct tern_tokenizer *t;
    assert_int_equal(tn_tokenizer_open(&t, head, demo.n_section, DATA_DEMO_VOCAB, NULL), TERN_OK);
    use(t);
    tn_tokenizer_close(t);
    tn_free_aligned(head);
}

/* ---- memory ---- */

static void test_open_takes_little(void **state)
{
    (void)state;
    struct tern_tokenizer *t;
    const uint64_t n_before = tn_alloc_taken();
    assert_int_equal(tn_tokenizer_open(&t, demo.section, demo.n_section, DATA_DEMO_VOCAB, NULL),
                     TERN_OK);
    assert_true(tn_alloc_taken() - n_before < 64 << 10); /* independent of the vocabulary */
    tn_tokenizer_close(t);
}

/* Each allocation fails once: the ids are unchanged, and no memory leaks. */
static void test_every_allocation_fails(void **state)
{
    (void)state;
    char text[3000];
    memset(text, 'a', sizeof text);
    memcpy(text, "Once upon a time", 16);
    struct tern_message m = {"user", 4, text, sizeof text};
    const struct tern_chat_params params = {.add_generation_prompt = true};
    const struct tern_chat_template *t = tern_chat_template_find("bitnet-2b-4t");
    tern_status status = TERN_MEMORY;
    size_t n_failures = 0;
    for (; status == TERN_MEMORY; n_failures++) {
        struct tern_ids ids = {0};
        struct tern_error err = {TERN_OK, ""};
        uint32_t before = 77;
        assert_int_equal(tern_tokenizer_encode(demo.t, "a", 1, 0, &ids, NULL), TERN_OK);
        ids.ids[0] = before;
        fail_alloc_after(n_failures);
        status = tern_chat_encode(demo.t, t, &m, 1, &params, &ids, &err);
        fail_alloc_stop();
        assert_int_equal(ids.ids[0], before);
        if (status != TERN_OK) {
            assert_int_equal(err.status, TERN_MEMORY);
            assert_int_equal(ids.n, 1);
        }
        tern_ids_free(&ids);
    }
    assert_int_equal(status, TERN_OK);
    assert_true(n_failures > 5);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_header),
        cmocka_unit_test(test_tables),
        cmocka_unit_test(test_damaged),
        cmocka_unit_test(test_full_slots),
        cmocka_unit_test(test_open_takes_little),
        cmocka_unit_test(test_every_allocation_fails),
    };
    return cmocka_run_group_tests(tests, open_demo, close_demo);
}
