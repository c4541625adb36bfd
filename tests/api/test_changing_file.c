/* SPDX-License-Identifier: MIT
 *
 * Another process writes to the model file while it is in use: whatever it writes, at any time,
 * nothing outside of the file and of our memory is read or written, no loop runs forever, and ids
 * stay in range.  Made for the address sanitizer; results are not checked.
 *
 * The file is written through a second mapping whose pages were dirty before the model was opened:
 * such writes do not change the modification time, so tern_model_check_unchanged does not notice
 * them and generation continues.
 */
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stddef.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cmocka.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "base/rng.h"
#include "plat/plat.h"
#include "tern/convert.h"
#include "tern/measure.h"
#include "tern/sysinfo.h"
#include "tern/tern.h"

#define MODEL_PATH TERN_BUILD_DIR "/test_changing_file.tern"

static struct tern_engine *engine;
static unsigned char *shared;   /* writable mapping of the file */
static unsigned char *original; /* the correct bytes */
static size_t n_file;
static unsigned n_generated; /* runs that the check for changes did not stop */

static const struct tern_file_header *header_of(const unsigned char *bytes)
{
    return (const void *)bytes;
}

/* ---- using a model ---- */

static void check_ids(const struct tern_ids *ids, uint32_t n_tokens)
{
    for (size_t i = 0; i < ids->n; i++)
        assert_true(ids->ids[i] < n_tokens);
}

static void encode(const struct tern_tokenizer *t)
{
    static char run[3000]; /* longer than short pieces */
    static const char text[] = "Once upon a time, <|eot_id|> there was a KING's 123 \n\n \xFFx! "
                               "<|begin_of_text|>abcabcabcabcabababababtheththethethethethethethe";
    const struct tern_message message = {"user", 4, text, sizeof text};
    struct tern_ids ids = {0};
    for (size_t i = 0; i < sizeof run; i++)
        run[i] = "thequickbrownfox"[i * i % 16];
    tern_status status =
        tern_tokenizer_encode(t, text, sizeof text, TERN_ENCODE_PARSE_SPECIAL, &ids, NULL);
    assert_int_equal(status, TERN_OK);
    status = tern_tokenizer_encode(t, run, sizeof run, TERN_ENCODE_ADD_SPECIAL, &ids, NULL);
    assert_int_equal(status, TERN_OK);
    const struct tern_chat_params params = {.add_generation_prompt = true};
    status = tern_chat_encode(t, tern_chat_template_find("llama3"), &message, 1, &params, &ids,
                              NULL);
    assert_int_equal(status, TERN_OK);
    check_ids(&ids, tern_tokenizer_n_tokens(t));
    tern_ids_free(&ids);
    (void)tern_tokenizer_find(t, "the", 3);
}

/* Copies and decodes every token's bytes, as a program would. */
static void decode(const struct tern_tokenizer *t)
{
    struct tern_decoder decoder = {.n_held = 0};
    for (uint32_t id = 0; id < tern_tokenizer_n_tokens(t); id++) {
        size_t n;
        const char *bytes = tern_tokenizer_token_bytes(t, id, &n);
        char *copy = tn_alloc(n), *out = tn_alloc(3 * (n + 4));
        assert_true(copy && out);
        if (n)
            memcpy(copy, bytes, n);
        assert_true(tern_decoder_push(&decoder, bytes, n, out) <= 3 * (n + 4));
        tn_free(copy);
        tn_free(out);
        (void)tern_tokenizer_is_special(t, id);
    }
}

static void describe(const struct tern_model *model)
{
    struct tern_model_info info;
    struct tern_tensor_info tensor;
    tern_model_get_info(model, &info);
    assert_true(strlen(info.name) < 256);
    for (uint32_t i = 0; i < tern_model_n_tensors(model); i++)
        tern_model_get_tensor(model, i, &tensor);
    (void)tern_model_is_stop_id(model, 7);
}

static void generate(const struct tern_model *model, float temperature, uint32_t top_k,
                     void (*on_token)(void *arg, uint32_t id))
{
    static const uint32_t prompt[] = {1, 507, 458, 980};
    struct tern_session_params sp = {.n_ctx = 32, .n_batch = 8};
    struct tern_sampler_params p = {.temperature = temperature, .top_k = top_k, .top_p = 1.0f,
                                    .repeat_penalty = 1.1f, .penalty_last = 8};
    struct tern_generate_result result;
    struct tern_session *session;
    const char *stop = "never said";
    assert_int_equal(tern_session_create(&session, engine, model, &sp, NULL), TERN_OK);
    struct tern_generate_params params = {.max_tokens = 4, .ignore_eos = true,
                                          .stop_strings = &stop, .n_stop_strings = 1,
                                          .on_token = on_token};
    const uint32_t vocab = tern_model_config(model)->vocab;
    assert_int_equal(tern_sampler_create(&params.sampler, &p, vocab, NULL), TERN_OK);
    tern_status status = tern_generate(session, prompt, 4, &params, &result, NULL);
    n_generated += status == TERN_OK;
    if (status != TERN_OK && status != TERN_MAPPED_IO && status != TERN_INTERNAL)
        fail_msg("generating: %s", tern_status_text(status));
    tern_sampler_free(params.sampler);
    tern_session_free(session);
}

static void use(const struct tern_model *model)
{
    describe(model);
    encode(tern_model_tokenizer(model));
    decode(tern_model_tokenizer(model));
    generate(model, 0.0f, 0, NULL);  /* searches the head */
    generate(model, 0.7f, 40, NULL); /* needs more than one best logit */
    generate(model, 0.7f, 0, NULL);  /* computes all rows */
}

static struct tern_model *open_model(void)
{
    struct tern_model *model;
    memcpy(shared, original, n_file);
    assert_int_equal(tern_model_open(&model, MODEL_PATH, NULL), TERN_OK);
    return model;
}

/* ---- the file changed before it is used ---- */

enum pattern { P_ZEROS, P_ONES, P_ONE, P_HALF, P_END, P_ODD, P_RANDOM, P_SHUFFLED, N_PATTERNS };

/* Overwrites a table with malicious words. */
static void spoil(size_t offset, size_t n_bytes, enum pattern pattern)
{
    uint32_t *words = (uint32_t *)(void *)(shared + offset);
    const size_t n = n_bytes / 4;
    struct tn_rng rng;
    tn_rng_seed(&rng, offset);
    for (size_t i = 0; i < n; i++) {
        const uint32_t random = (uint32_t)tn_rng_next(&rng);
        const uint32_t values[N_PATTERNS] = {0, 0xFFFFFFFFu, 1, 0x7FFFFFFFu, (uint32_t)n_bytes,
                                             i % 2 ? (uint32_t)n_bytes : 0, random,
                                             words[random % n]};
        words[i] = values[pattern];
    }
}

static void use_spoilt(size_t offset, size_t n_bytes)
{
    for (enum pattern p = 0; p < N_PATTERNS; p++) {
        struct tern_model *model = open_model();
        spoil(offset, n_bytes, p);
        use(model);
        tern_model_free(model);
    }
}

static void sections_that_are_copied_do_not_matter(void **state)
{
    (void)state;
    const struct tern_file_header *h = header_of(original);
    use_spoilt(0, sizeof *h);
    use_spoilt(h->metadata.offset, h->metadata.bytes);
    use_spoilt(h->tensors.offset, h->tensors.bytes);
    use_spoilt(h->hashes.offset, h->hashes.bytes);
}

static void tokenizer_tables_may_contain_anything(void **state)
{
    (void)state;
    const uint64_t base = header_of(original)->tokenizer.offset;
    const struct tern_file_tokenizer *t = (const void *)(original + base);
    const struct tern_file_ref tables[] = {
        {0, sizeof *t}, t->token_offsets, t->token_bytes, t->vocab_slots, t->merges,
        t->merge_slots, t->byte_ids,      t->added,       t->special_bits};
    for (size_t i = 0; i < TN_COUNT_OF(tables); i++)
        use_spoilt(base + tables[i].offset, tables[i].bytes);
    use_spoilt(base, header_of(original)->tokenizer.bytes);
}

static void tensors_may_contain_anything(void **state)
{
    (void)state;
    const struct tern_file_header *h = header_of(original);
    const struct tern_file_tensor *t = (const void *)(original + h->tensors.offset);
    for (size_t i = 0; i < h->tensors.bytes / sizeof *t; i++)
        if (t[i].scale_bytes)
            use_spoilt(t[i].scale_offset, t[i].scale_bytes);
    use_spoilt(h->data.offset, h->data.bytes);
}

/* ---- divisors of rotation angles ---- */

#define ROPE_SOURCE TERN_SHARED_DIR "/reference/models/tiny-bitcpm-llama"
#define ROPE_PATH TERN_BUILD_DIR "/test_changing_file.rope.tern"

/* The last logits of a new session; false: the change was detected. */
static bool last_logits(float *out, const struct tern_model *model)
{
    static const uint32_t ids[] = {5, 9, 2, 7, 11, 3, 8, 4};
    const struct tern_session_params params = {.n_ctx = 8};
    struct tern_session *session;
    assert_int_equal(tern_session_create(&session, engine, model, &params, NULL), TERN_OK);
    const bool is_done = tern_session_eval(session, ids, 8, NULL, NULL) == TERN_OK;
    if (is_done)
        memcpy(out, tern_session_logits(session), tern_model_config(model)->vocab * sizeof *out);
    tern_session_free(session);
    return is_done;
}

static void spoil_rope_factors(unsigned char *bytes)
{
    const struct tern_file_header *h = header_of(bytes);
    const struct tern_file_tensor *t = (const void *)(bytes + h->tensors.offset);
    unsigned n_spoilt = 0;
    for (size_t i = 0; i < h->tensors.bytes / sizeof *t; i++)
        if (t[i].role == TERN_ROLE_ROPE_FACTORS) {
            memset(bytes + t[i].offset, 0xFF, t[i].bytes); /* NaN */
            n_spoilt++;
        }
    assert_true(n_spoilt > 0);
}

static void rope_factors_are_those_of_the_opening(void **state)
{
    (void)state;
    const struct tern_convert_params convert = {
        .source = ROPE_SOURCE, .output = ROPE_PATH, .no_tokenizer = true, .head = TERN_HEAD_F32};
    struct tern_convert_result result;
    struct tern_model *model;
    float before[1024], after[1024];
    if (tn_path_kind(ROPE_SOURCE) != TN_PATH_DIR)
        skip();
    assert_int_equal(tern_convert(&convert, &result, NULL), TERN_OK);
    int fd = open(ROPE_PATH, O_RDWR);
    const size_t n = (size_t)lseek(fd, 0, SEEK_END);
    unsigned char *bytes = mmap(NULL, n, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    assert_true(bytes != MAP_FAILED);
    for (size_t i = 0; i < n; i += 512) /* make the pages dirty before the model is opened */
        ((volatile unsigned char *)bytes)[i] = bytes[i];
    assert_int_equal(tern_model_open(&model, ROPE_PATH, NULL), TERN_OK);
    assert_true(tern_model_config(model)->vocab <= TN_COUNT_OF(before));
    assert_true(last_logits(before, model));
    spoil_rope_factors(bytes);
    if (last_logits(after, model))
        assert_memory_equal(before, after, tern_model_config(model)->vocab * sizeof *before);
    tern_model_free(model);
    munmap(bytes, n);
    tn_file_remove(ROPE_PATH);
}

/* ---- the file changes during use ---- */

/* Makes every second token as long as all of them together, after the text's memory was allocated.
 */
static void lengthen_tokens(void *arg, uint32_t id)
{
    (void)arg, (void)id;
    const uint64_t base = header_of(original)->tokenizer.offset;
    const struct tern_file_tokenizer *t = (const void *)(original + base);
    uint32_t *offsets = (uint32_t *)(void *)(shared + base + t->token_offsets.offset);
    for (size_t i = 0; i < t->token_offsets.bytes / 4; i++)
        offsets[i] = i % 2 ? t->token_bytes.bytes : 0;
}

static void tokens_grow_between_two_tokens(void **state)
{
    (void)state;
    struct tern_model *model = open_model();
    generate(model, 0.0f, 0, lengthen_tokens);
    tern_model_free(model);
}

static atomic_bool is_over;

static void pause_up_to(struct tn_rng *rng, uint32_t n)
{
    for (uint64_t spin = tn_rng_next(rng) % n; spin > 0; spin--)
        tn_cpu_relax();
}

/* Writes words all over the head of the file and the scales, each for a moment. */
static void write_here_and_there(void *arg)
{
    (void)arg;
    const struct tern_file_header *h = header_of(original);
    const struct tern_file_tensor *t = (const void *)(original + h->tensors.offset);
    const size_t n_tensors = h->tensors.bytes / sizeof *t;
    struct tn_rng rng;
    tn_rng_seed(&rng, 5);
    while (!atomic_load(&is_over)) {
        const struct tern_file_tensor *one = &t[tn_rng_next(&rng) % n_tensors];
        const bool in_scales = one->scale_bytes >= 256 && tn_rng_next(&rng) % 4 == 0;
        const size_t begin = in_scales ? one->scale_offset : 0;
        const size_t n = in_scales ? one->scale_bytes : h->data.offset;
        const size_t at = begin + tn_rng_next(&rng) % (n - 128) / 4 * 4;
        for (size_t i = 0; i < 128; i += 4) {
            const uint32_t value = (uint32_t)tn_rng_next(&rng);
            memcpy(shared + at + i, &value, 4);
        }
        pause_up_to(&rng, 1000);
        memcpy(shared + at, original + at, 128);
        pause_up_to(&rng, 16000); /* so that the file can sometimes be opened */
    }
}

static void a_concurrent_writer_breaks_nothing(void **state)
{
    (void)state;
    struct tern_model *kept = open_model();
    atomic_store(&is_over, false);
    struct tn_thread *writer = tn_thread_start(write_here_and_there, NULL);
    assert_non_null(writer);
    const uint64_t start = tn_now_ns();
    unsigned n_opened = 0;
    while (tn_seconds_since(start) < 3) {
        struct tern_model *model;
        use(kept);
        if (tern_model_open(&model, MODEL_PATH, NULL) == TERN_OK) {
            n_opened++;
            use(model);
        }
        tern_model_free(model);
    }
    atomic_store(&is_over, true);
    tn_thread_join(writer);
    tern_model_free(kept);
    print_message("opened %u times while it changed\n", n_opened);
}

/* ---- detected changes ---- */

/* An ordinary write, which changes the modification time. */
static void write_a_byte(void)
{
    const uint64_t start = tn_now_ns();
    while (tn_seconds_since(start) < 0.02) /* longer than a tick of the file system's clock */
        tn_cpu_relax();
    int fd = open(MODEL_PATH, O_WRONLY);
    assert_int_equal(pwrite(fd, original + n_file - 1, 1, (off_t)n_file - 1), 1);
    close(fd);
}

static bool write_at_the_start(void *arg, uint64_t n_done, uint64_t n_total)
{
    (void)n_done, (void)n_total;
    if (!*(bool *)arg)
        write_a_byte();
    *(bool *)arg = true;
    return true;
}

static bool write_before_kernels(void *arg, const char *what)
{
    (void)arg;
    if (strcmp(what, "kernels") == 0)
        write_a_byte();
    return true;
}

static void verify_bench_and_evaluation_notice_a_write(void **state)
{
    (void)state;
    static struct tern_sysinfo machine;
    static struct tern_bench_result bench;
    struct tern_error err;
    struct tern_verify_result verified;
    struct tern_session_params sp = {.n_ctx = 8};
    struct tern_session *session;
    const uint32_t ids[] = {1, 2};
    bool is_written = false;
    struct tern_model *model = open_model();
    tern_sysinfo_read(&machine);
    assert_int_equal(
        tern_verify(model, &machine, write_at_the_start, &is_written, &verified, &err),
        TERN_MAPPED_IO);
    tern_model_free(model);

    model = open_model();
    assert_int_equal(tern_session_create(&session, engine, model, &sp, NULL), TERN_OK);
    assert_int_equal(tern_session_eval(session, ids, 1, NULL, &err), TERN_OK);
    write_a_byte();
    assert_int_equal(tern_session_eval(session, ids + 1, 1, NULL, &err), TERN_MAPPED_IO);
    assert_non_null(strstr(err.detail, "written to while in use"));
    assert_int_equal(tern_session_n_past(session), 1);
    assert_null(tern_session_logits(session));
    tern_session_free(session);
    tern_model_free(model);

    const struct tern_bench_params p = {.machine = &machine, .prompts = {4}, .n_prompts = 1,
                                        .n_new = 1, .n_repeats = 1, .threads = {1},
                                        .n_threads = 1, .on_progress = write_before_kernels};
    assert_int_equal(tern_bench(MODEL_PATH, &p, &bench, &err), TERN_MAPPED_IO);
}

/* ---- main ---- */

static int setup(void **state)
{
    (void)state;
    struct tern_error e = {TERN_OK, ""};
    static struct tern_sysinfo machine;
    struct tern_convert_result result;
    const struct tern_engine_params params = {.n_threads = 2};
    const struct tern_convert_params convert = {.source = TERN_SOURCE_DIR "/dist/demo",
                                                .output = MODEL_PATH};
    tern_sysinfo_read(&machine);
    if (tern_convert(&convert, &result, &e) != TERN_OK ||
        tern_engine_create(&engine, &machine, &params, &e) != TERN_OK ||
        tn_file_read_all((char **)&original, &n_file, MODEL_PATH, 1u << 30, &e) != TERN_OK) {
        fprintf(stderr, "%s\n", e.detail);
        return 1;
    }
    int fd = open(MODEL_PATH, O_RDWR);
    shared = mmap(NULL, n_file, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    close(fd);
    return shared == MAP_FAILED;
}

static int teardown(void **state)
{
    (void)state;
    tern_engine_free(engine);
    munmap(shared, n_file);
    tn_free(original);
    tn_file_remove(MODEL_PATH);
#if defined(__linux__) /* elsewhere writes through a mapping may be visible at once */
    print_message("%u runs in a changed file\n", n_generated);
    return n_generated == 0;
#else
    return 0;
#endif
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sections_that_are_copied_do_not_matter),
        cmocka_unit_test(tokenizer_tables_may_contain_anything),
        cmocka_unit_test(tensors_may_contain_anything),
        cmocka_unit_test(rope_factors_are_those_of_the_opening),
        cmocka_unit_test(tokens_grow_between_two_tokens),
        cmocka_unit_test(a_concurrent_writer_breaks_nothing),
        cmocka_unit_test(verify_bench_and_evaluation_notice_a_write),
    };
    return cmocka_run_group_tests(tests, setup, teardown);
}
