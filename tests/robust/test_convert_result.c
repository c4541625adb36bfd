/* SPDX-License-Identifier: MIT
 *
 * The converter's results for good input (facts, heads, messages, templates), and that no files are
 * left when the user stops it or any allocation fails.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/buf.h"
#include "base/half.h"
#include "convert/hf/template_import.h"
#include "convert/tokens/tok_import.h"
#include "failing_alloc.h"
#include "file/model_file.h"
#include "kern/bit_planes.h"

#define DIR TERN_BUILD_DIR "/test_convert_result"
#include "robust/convert_case.h"

/* ---- accepted input ---- */

static void expect_success(const char *find, const char *replacement)
{
    struct tern_error err;
    model_dir_make(&model, MODEL_BF16);
    model_dir_replace(model.config, sizeof model.config, find, replacement);
    model_dir_write(&model, DIR);
    if (convert(TERN_HEAD_Q8, &err) != TERN_OK)
        fail_msg("%s: %s", replacement, err.detail);
    tn_file_remove(OUT);
    assert_nothing_left();
}

static void test_odd_but_right(void **state)
{
    (void)state;
    expect_success("{", "{\"model_max_length\": 1000000000000000019884624838656,");
    /* the last one counts */
    expect_success("{", "{\"hidden_size\": 7, \"quantization_config\": null,");
    expect_success("\"num_key_value_heads\": 1,",
                   "\"num_key_value_heads\": 1.0, \"head_dim\": 16,");
    expect_success("\"rope_theta\": 10000.0",
                   "\"rope_parameters\": {\"rope_type\": \"default\", \"rope_theta\": 10000}");
    expect_success("\"rope_theta\"", "\"rope_scaling\": null, \"rope_theta\"");
    expect_success("\"rope_theta\"", "\"rope_scaling\": {}, \"rope_theta\"");
    expect_success("\"rope_theta\"",
                   "\"rope_parameters\": {\"rope_theta\": 1e4, \"partial_rotary_factor\": 1.0},"
                   "\"rope_theta\"");
    expect_success("\"tie_word_embeddings\": true,", "");
    expect_success("relu2", "silu");
    expect_success("\"bos_token_id\": 38,", "");
}

/* ---- notes and warnings ---- */

struct messages {
    unsigned n[3]; /* by kind */
    char last[512];
};

static void take_message(void *arg, enum tern_convert_message kind, const char *text)
{
    struct messages *m = arg;
    m->n[kind]++;
    if (kind != TERN_CONVERT_TENSOR)
        snprintf(m->last, sizeof m->last, "%s", text);
}

static void expect_message(enum tern_convert_message kind, const char *text)
{
    struct messages messages = {{0}, ""};
    const struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                               .on_message = take_message, .arg = &messages};
    struct tern_convert_result result;
    struct tern_error err;
    if (tern_convert(&params, &result, &err) != TERN_OK)
        fail_msg("%s: %s", text, err.detail);
    assert_int_equal(messages.n[TERN_CONVERT_TENSOR], 13);
    assert_int_equal(messages.n[TERN_CONVERT_NOTE], kind == TERN_CONVERT_NOTE);
    assert_int_equal(messages.n[TERN_CONVERT_WARNING], kind == TERN_CONVERT_WARNING);
    if (!strstr(messages.last, text))
        fail_msg("\"%s\" is not in \"%s\"", text, messages.last);
    tn_file_remove(OUT);
}

static void test_messages(void **state)
{
    (void)state;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_TENSOR, "");
    model_dir_replace(model.header, sizeof model.header, "{",
                      "{\"model.layers.0.self_attn.rotary_emb.inv_freq\":{\"dtype\":\"F32\","
                      "\"shape\":[0],\"data_offsets\":[0,0]},");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_NOTE, "1 tensors, such as *.rotary_emb.inv_freq");
    model_dir_make(&model, MODEL_BF16);
    model_dir_replace(model.config, sizeof model.config, "online", "offline");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_WARNING, "quantization_mode \"offline\", but the weights are fl");
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.config, sizeof model.config, "\"eos_token_id\": 39,", "");
    model_dir_replace(model.generation, sizeof model.generation, "[39, 7]", "null");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_WARNING, "no end-of-text id");
    model_dir_make(&model, MODEL_BF16);
    model_dir_replace(model.config, sizeof model.config, "\"rope_theta\"",
                      "\"rope_scaling\": {\"type\": \"dynamic\", \"factor\": 2.0,"
                      "\"original_max_position_embeddings\": 32}, \"rope_theta\"");
    model_dir_write(&model, DIR);
    expect_message(TERN_CONVERT_WARNING,
                   "the context is 32: beyond it dynamic rope scaling changes the rotation");
}

/* ---- a source that changes ---- */

/* Writes the same bytes, which only the modification time reveals. */
static bool write_once(void *arg, uint64_t n_done, uint64_t n_total)
{
    (void)n_done, (void)n_total;
    if (!*(bool *)arg) {
        const uint64_t start = tn_now_ns();
        while (tn_seconds_since(start) < 0.02) /* longer than a tick of the file system's clock */
            tn_cpu_relax();
        FILE *f = fopen(DIR "/model.safetensors", "r+b");
        assert_non_null(f);
        const int byte = fgetc(f);
        fseek(f, 0, SEEK_SET);
        fputc(byte, f);
        fclose(f);
    }
    *(bool *)arg = true;
    return true;
}

static void test_source_that_changes(void **state)
{
    (void)state;
    bool is_written = false;
    const struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                               .on_progress = write_once, .arg = &is_written};
    struct tern_convert_result result;
    struct tern_error err;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    assert_int_equal(tern_convert(&params, &result, &err), TERN_INPUT);
    assert_string_equal(err.detail,
                        "model.safetensors changed while it was read; convert again");
    assert_nothing_left();
    assert_int_equal(tern_convert(&params, &result, &err), TERN_OK);
    tn_file_remove(OUT);
}

#if !defined(_WIN32) /* where an open file cannot be removed */
static bool remove_part(void *arg, uint64_t n_done, uint64_t n_total)
{
    (void)arg;
    if (n_done == n_total)
        tn_file_remove(PART);
    return true;
}

static void test_output_that_is_removed(void **state)
{
    (void)state;
    const struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                               .on_progress = remove_part};
    struct tern_convert_result result;
    struct tern_error err;
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    assert_int_equal(tern_convert(&params, &result, &err), TERN_OUTPUT);
    assert_string_equal(err.detail, PART ": was removed while it was written");
    assert_nothing_left();
}
#endif

/* ---- chat templates ---- */

static void expect_template(const char *json, tern_status expected, const char *source)
{
    char *text;
    size_t n;
    struct tern_error err;
    assert_int_equal(tn_template_parse(&text, &n, "file", json, strlen(json), &err), expected);
    if (source)
        assert_string_equal(text, source);
    else
        assert_null(text);
    assert_int_equal(n, source ? strlen(source) : 0);
    tn_free(text);
}

static void test_template_places(void **state)
{
    (void)state;
    expect_template("{}", TERN_OK, NULL);
    expect_template("{\"chat_template\": null}", TERN_OK, NULL);
    expect_template("{\"chat_template\": \"a\\nb\"}", TERN_OK, "a\nb");
    expect_template("{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"},"
                    "{\"name\": \"default\", \"template\": \"d\"}]}",
                    TERN_OK, "d");
    expect_template("{\"chat_template\": []}", TERN_OK, NULL);
    expect_template("{\"chat_template\": [{\"name\": \"tool_use\", \"template\": \"t\"}]}",
                    TERN_UNSUPPORTED, NULL);
    expect_template("{\"chat_template\": [{\"name\": \"default\", \"template\": 5}]}",
                    TERN_UNSUPPORTED, NULL);
    expect_template("{\"chat_template\": 5}", TERN_UNSUPPORTED, NULL);
    expect_template("{\"chat_template\": \"a\\u0000b\"}", TERN_INPUT, NULL);
    expect_template("{\"chat_template\": \"a\\u001bb\"}", TERN_INPUT, NULL);
    expect_template("{\"chat_template\"", TERN_INPUT, NULL);
    static const char latin1[] = "caf\xE9";
    char *text;
    size_t n;
    const char *from;
    struct tern_error err;
    write_test_file(DIR, "chat_template.jinja", latin1, strlen(latin1));
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_INPUT);
    assert_non_null(strstr(err.detail, "chat_template.jinja: byte 0xe9 at offset 3"));
    write_test_file(DIR, "chat_template.jinja", "a\r\n\rb\r\n\r", 8);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "a\n\rb\n\r");
    assert_int_equal(n, strlen(text));
    tn_free(text);
    write_test_file(DIR, "chat_template.jinja", "new", 3);
    write_test_file(DIR, "tokenizer_config.json", "{\"chat_template\": \"old\"}", 24);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "new");
    tn_free(text);
    write_test_file(DIR, "chat_template.jinja", "", 0);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_null(text);
    tn_file_remove(DIR "/chat_template.jinja");
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "old");
    tn_free(text);
    write_test_file(DIR, "chat_template.json", "{\"chat_template\": \"of the processor\"}", 37);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "old");
    assert_string_equal(from, "tokenizer_config.json");
    tn_free(text);
    write_test_file(DIR, "tokenizer_config.json", "{}", 2);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_OK);
    assert_string_equal(text, "of the processor");
    assert_string_equal(from, "chat_template.json");
    tn_free(text);
    write_test_file(DIR, "chat_template.json", "{\"chat_template\": 5}", 20);
    assert_int_equal(tn_template_read(&text, &n, &from, DIR, &err), TERN_UNSUPPORTED);
    assert_non_null(strstr(err.detail, "chat_template.json: chat_template has no text"));
}

/* A template's end token stops the model even if generation_config.json lacks it. */
static void test_template_stop_id(void **state)
{
    (void)state;
    char *json;
    size_t n;
    struct tern_error err;
    struct tn_buf section = {0};
    const uint32_t vocab = 4096;
    struct tn_stop_ids stop_ids = {1, {4081}};
    assert_int_equal(tn_file_read_all(&json, &n, TERN_SOURCE_DIR "/dist/demo/tokenizer.json",
                                      1u << 20, &err), TERN_OK);
    assert_int_equal(tn_tok_import(json, n, vocab, &section, &err), TERN_OK);
    tn_free(json);
    struct tn_answer_ends ends = {.known = tern_chat_template_find("bitnet-2b-4t")};
    for (int i = 0; i < 2; i++) { /* one of them is enough */
        assert_int_equal(tn_template_add_stop_ids(&stop_ids, vocab, &ends, section.data,
                                                  section.n_bytes, &err), TERN_OK);
        assert_int_equal(stop_ids.n, 2);
        assert_int_equal(stop_ids.ids[1], 4089);
    }
    ends.known = tern_chat_template_find("chatml");
    assert_int_equal(tn_template_add_stop_ids(&stop_ids, vocab, &ends, section.data,
                                              section.n_bytes, &err), TERN_OK);
    assert_int_equal(stop_ids.n, 2);
    tn_buf_fini(&section);
}

/* The file has the facts of the small files. */
static void test_facts(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_model_file file;
    model_dir_make(&model, MODEL_PACKED);
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_BF16, &err), TERN_OK);
    assert_int_equal(tn_model_file_open(&file, OUT, &err), TERN_OK);
    const struct tern_file_config *c = file.spec.config;
    assert_int_equal(c->n_layer, 1);
    assert_int_equal(c->hidden, 32);
    assert_int_equal(c->ffn, 64);
    assert_int_equal(c->n_head, 2);
    assert_int_equal(c->n_kv_head, 1);
    assert_int_equal(c->head_dim, 16);
    assert_int_equal(c->vocab, 40);
    assert_int_equal(c->context, 128);
    assert_int_equal(c->flags, TERN_MODEL_TIED_HEAD);
    assert_int_equal(c->bos_id, 38);
    assert_int_equal(file.spec.n_stop_ids, 2);
    assert_int_equal(file.spec.stop_ids[0], 39);
    assert_int_equal(file.spec.stop_ids[1], 7);
    assert_int_equal(c->n_fingerprint_ids, 4);
    assert_int_equal(c->fingerprint_ids[3], 39);
    assert_int_equal(c->sources.bytes / sizeof(struct tern_file_source), 3);
    assert_int_equal(c->n_params, 40 * 32 + 4 * 32 + 64 + 3 * 64 * 32 + 2 * 16 * 32 + 2 * 32 * 32);
    const struct tern_file_tensor *q = tn_model_file_tensor(&file, TERN_ROLE_Q, 0);
    assert_true(q->scale == 0.25f);
    tn_model_file_close(&file);
    tn_file_remove(OUT);
}

/* A model may stop at any number of ids. */
static void test_many_stop_ids(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_model_file file;
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.generation, sizeof model.generation, "39, 7",
                      "39,0,1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17,18,19,20,21,22,23,24,25,26");
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_BF16, &err), TERN_OK);
    assert_int_equal(tn_model_file_open(&file, OUT, &err), TERN_OK);
    assert_int_equal(file.spec.n_stop_ids, 28);
    assert_int_equal(file.spec.stop_ids[0], 39);
    assert_int_equal(file.spec.stop_ids[27], 26);
    tn_model_file_close(&file);
    tn_file_remove(OUT);
}

/* A separate head, and more heads than hidden / head_dim. */
static void test_wide_and_untied(void **state)
{
    (void)state;
    struct tern_error err;
    struct tn_model_file file;
    model_dir_make(&model, MODEL_WIDE);
    for (int i = 0; i < 2; i++) {
        model_dir_write(&model, DIR);
        if (convert(TERN_HEAD_BF16, &err) != TERN_OK)
            fail_msg("%s", err.detail);
        assert_int_equal(tn_model_file_open(&file, OUT, &err), TERN_OK);
        assert_int_equal(file.spec.config->flags, 0);
        const struct tern_file_tensor *embed =
            tn_model_file_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
        const struct tern_file_tensor *head =
            tn_model_file_tensor(&file, TERN_ROLE_HEAD, TERN_NO_LAYER);
        assert_memory_equal(tn_model_file_data(&file, embed),
                            model_dir_tensor(&model, "model.embed_tokens.weight"), 40 * 32 * 2);
        assert_memory_equal(tn_model_file_data(&file, head),
                            model_dir_tensor(&model, "lm_head.weight"), 40 * 32 * 2);
        const struct tern_file_tensor *o = tn_model_file_tensor(&file, TERN_ROLE_O, 0);
        assert_int_equal(o->rows, 32);
        assert_int_equal(o->cols, 64);
        tn_model_file_close(&file);
        tn_file_remove(OUT);
        /* Without the key, the tensor decides. */
        if (i == 0)
            model_dir_replace(model.config, sizeof model.config,
                              "\"tie_word_embeddings\": false,", "");
    }
}

/* weight_scale of shape [] is equivalent to [1]. */
static void test_scale_without_dimension(void **state)
{
    (void)state;
    struct tern_error err;
    model_dir_make(&model, MODEL_PACKED);
    model_dir_replace(model.header, sizeof model.header, "[1]", "[]");
    model_dir_write(&model, DIR);
    assert_int_equal(convert(TERN_HEAD_Q8, &err), TERN_OK);
    tn_file_remove(OUT);
    model_dir_replace(model.header, sizeof model.header, "[1]", "[1,1]");
    model_dir_write(&model, DIR);
    expect_failure("scale [1,1]", TERN_INPUT, "shape [1, 1], but config.json makes it [1]");
}

/* q8, q6 and q4 stay within half a step of every weight, bf16 is exact. */
static void test_head_values(void **state)
{
    (void)state;
    static const enum tern_head_type heads[] = {TERN_HEAD_Q8, TERN_HEAD_Q6, TERN_HEAD_Q4,
                                                 TERN_HEAD_F16, TERN_HEAD_BF16};
    struct tern_error err;
    model_dir_make(&model, MODEL_F32);
    model_dir_write(&model, DIR);
    const unsigned char *src = model_dir_tensor(&model, "model.embed_tokens.weight");
    for (size_t h = 0; h < TN_COUNT_OF(heads); h++) {
        struct tn_model_file file;
        assert_int_equal(convert(heads[h], &err), TERN_OK);
        assert_int_equal(tn_model_file_open(&file, OUT, &err), TERN_OK);
        const struct tern_file_tensor *t =
            tn_model_file_tensor(&file, TERN_ROLE_EMBED, TERN_NO_LAYER);
        const struct tn_bit_planes planes =
            tn_bit_planes_view(tn_model_file_data(&file, t), tn_model_file_scales(&file, t), 40, 32,
                               tn_layout_planes(t->layout));
        int8_t q[32];
        const uint16_t *half = tn_model_file_data(&file, t);
        for (size_t i = 0; i < 40 * 32; i++) {
            float w;
            memcpy(&w, src + 4 * i, 4);
            if (planes.n_planes) {
                const int32_t max = tn_bit_planes_max(planes.n_planes);
                const float scale = planes.scales[i / 32];
                tn_unpack_planes_ref(q, &planes, (uint32_t)i / 32);
                assert_true(q[i % 32] >= -max && q[i % 32] <= max);
                const float distance = w - (float)q[i % 32] * scale;
                assert_true(distance <= 0.501f * scale && distance >= -0.501f * scale);
            } else if (heads[h] == TERN_HEAD_F16) {
                assert_int_equal(half[i], tn_f32_to_f16(w));
            } else {
                assert_int_equal(half[i], tn_f32_to_bf16(w));
            }
        }
        tn_model_file_close(&file);
        tn_file_remove(OUT);
    }
}

/* ---- interruption and memory ---- */

struct stopper {
    unsigned n_calls;
    unsigned stop_at;
};

static bool stop_later(void *arg, uint64_t n_done, uint64_t n_total)
{
    struct stopper *s = arg;
    assert_true(n_done <= n_total);
    return ++s->n_calls != s->stop_at;
}

struct progress {
    uint64_t n_last, n_total;
};

static bool note_progress(void *arg, uint64_t n_done, uint64_t n_total)
{
    struct progress *p = arg;
    assert_true(n_done >= p->n_last && n_done <= n_total);
    *p = (struct progress){n_done, n_total};
    return true;
}

/* Matrices are read two to four times, but each byte counts once. */
static void test_progress_counts_the_bytes_that_are_there(void **state)
{
    (void)state;
    static const enum model_form forms[] = {MODEL_PACKED, MODEL_BF16, MODEL_F32};
    for (size_t i = 0; i < sizeof forms / sizeof *forms; i++) {
        struct progress progress = {0, 0};
        struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                             .on_progress = note_progress, .arg = &progress};
        struct tern_convert_result result;
        struct tern_error err;
        model_dir_make(&model, forms[i]);
        model_dir_write(&model, DIR);
        assert_int_equal(tern_convert(&params, &result, &err), TERN_OK);
        assert_int_equal(progress.n_total, result.source_bytes);
        assert_int_equal(progress.n_last, result.source_bytes);
    }
    tn_file_remove(OUT);
}

static void test_stop_anywhere(void **state)
{
    (void)state;
    static const char before[] = "not a model, but mine";
    model_dir_make(&model, MODEL_BF16);
    model_dir_write(&model, DIR);
    struct stopper stopper = {0, 0};
    struct tern_convert_params params = {.source = DIR, .output = OUT, .no_tokenizer = true,
                                         .force = true, .on_progress = stop_later,
                                         .arg = &stopper};
    struct tern_convert_result result;
    struct tern_error err;
    assert_int_equal(tern_convert(&params, &result, &err), TERN_OK);
    const unsigned n_calls = stopper.n_calls;
    assert_true(n_calls > 20);
    write_test_file(DIR, "out.tern", before, sizeof before);
    for (unsigned i = 1; i <= n_calls; i++) {
        stopper = (struct stopper){0, i};
        assert_int_equal(tern_convert(&params, &result, &err), TERN_INTERRUPTED);
        assert_string_equal(err.detail, "conversion stopped; nothing was written");
        assert_int_equal(tn_path_kind(PART), TN_PATH_ABSENT);
    }
    char *text;
    size_t n;
    assert_int_equal(tn_file_read_all(&text, &n, OUT, 1000, &err), TERN_OK);
    assert_int_equal(n, sizeof before);
    assert_memory_equal(text, before, n);
    tn_free(text);
    tn_file_remove(OUT);
}

/* Fails each allocation in turn, and all later ones if `for_ever`. */
static void run_out_of_memory(bool for_ever, enum model_form form)
{
#if defined(_WIN32)
    skip(); /* Windows paths need memory for UTF-16: without it every file looks absent */
#endif
    model_dir_make(&model, form);
    model_dir_write(&model, DIR);
    for (unsigned i = 0;; i++) {
        struct tern_error err;
        (for_ever ? fail_alloc_after : fail_alloc_once_after)(i);
        const tern_status status = convert(TERN_HEAD_Q8, &err);
        if (!fail_alloc_stop() && status == TERN_OK)
            break;
        if (status == TERN_OK && !for_ever) {
            tn_file_remove(OUT); /* an optional allocation (a hint, a fallback) */
            continue;
        }
        if (status != TERN_MEMORY)
            fail_msg("allocation %u: status %d, \"%s\"", i, status, err.detail);
        if (err.detail[0] == '\0' || tn_path_kind(OUT) != TN_PATH_ABSENT ||
            tn_path_kind(PART) != TN_PATH_ABSENT)
            fail_msg("allocation %u: \"%s\", or a file is left", i, err.detail);
        assert_true(i < 100000);
    }
    tn_file_remove(OUT);
}

static void test_memory_fails_once(void **state)
{
    (void)state;
    run_out_of_memory(false, MODEL_BF16);
}

static void test_memory_fails_for_ever(void **state)
{
    (void)state;
    run_out_of_memory(true, MODEL_PACKED);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup(test_odd_but_right, clean),
        cmocka_unit_test_setup(test_messages, clean),
        cmocka_unit_test_setup(test_source_that_changes, clean),
#if !defined(_WIN32)
        cmocka_unit_test_setup(test_output_that_is_removed, clean),
#endif
        cmocka_unit_test_setup(test_template_places, clean),
        cmocka_unit_test_setup(test_template_stop_id, clean),
        cmocka_unit_test_setup(test_many_stop_ids, clean),
        cmocka_unit_test_setup(test_facts, clean),
        cmocka_unit_test_setup(test_wide_and_untied, clean),
        cmocka_unit_test_setup(test_scale_without_dimension, clean),
        cmocka_unit_test_setup(test_head_values, clean),
        cmocka_unit_test_setup(test_progress_counts_the_bytes_that_are_there, clean),
        cmocka_unit_test_setup(test_stop_anywhere, clean),
        cmocka_unit_test_setup(test_memory_fails_once, clean),
        cmocka_unit_test_setup(test_memory_fails_for_ever, clean),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
