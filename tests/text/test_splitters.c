/* SPDX-License-Identifier: MIT
 *
 * Splitters and normalisers of every family, compared with Hugging Face's library
 * (tests/data/splitters, made by make_splitter_goldens.py): ids of texts on vocabularies whose
 * tokens span possible cuts, from tokenizer.json and from GGUF keys; lengths of pieces over all
 * code points and all short strings.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "convert/tokens/tok_gguf.h"
#include "cpu_seconds.h"
#include "tern/model_format.h"
#include "text/normalize.h"
#include "text/pretok.h"
#include "text/unicode.h"
#include "text_data.h"

#define DATA TERN_SOURCE_DIR "/tests/data/splitters/"
#define VOCAB 1000u

static json_t *goldens, *bytes_model, *characters_model;

static int read_data(void **state)
{
    (void)state;
    goldens = data_json(DATA "goldens.json");
    bytes_model = data_json(DATA "bytes.json");
    characters_model = data_json(DATA "characters.json");
    return 0;
}

static int free_data(void **state)
{
    (void)state;
    json_decref(goldens);
    json_decref(bytes_model);
    json_decref(characters_model);
    return 0;
}

/* ---- ids ---- */

static void check_texts(const char *name, const struct data_tokenizer *data, const json_t *golden)
{
    const json_t *texts = json_object_get(goldens, "texts"), *all = json_object_get(golden, "ids");
    struct tern_ids ids = {0};
    assert_true(json_array_size(texts) >= 150);
    assert_int_equal(json_array_size(all), json_array_size(texts));
    for (size_t i = 0; i < json_array_size(texts); i++) {
        const json_t *text = json_array_get(texts, i), *expected = json_array_get(all, i);
        ids.n = 0;
        assert_int_equal(tern_tokenizer_encode(data->t, json_string_value(text),
                                               json_string_length(text), TERN_ENCODE_PARSE_SPECIAL,
                                               &ids, NULL),
                         TERN_OK);
        bool same = ids.n == json_array_size(expected);
        for (size_t k = 0; same && k < ids.n; k++)
            same = ids.ids[k] == (uint32_t)json_integer_value(json_array_get(expected, k));
        if (!same)
            fail_msg("%s: text %zu has other ids: \"%s\"", name, i, json_string_value(text));
    }
    tern_ids_free(&ids);
}

static const char *const ignore_merges[] = {"llama3", "falcon3", "tekken", "minicpm5"};

static void the_ids_from_tokenizer_json_are_the_references(void **state)
{
    (void)state;
    const char *name;
    json_t *golden;
    size_t n = 0;
    json_object_foreach(json_object_get(goldens, "tokenizers"), name, golden) {
        struct data_tokenizer data;
        const bool characters = json_is_null(json_object_get(golden, "gguf"));
        json_t *root = json_deep_copy(json_object_get(golden, "json"));
        json_t *model = json_deep_copy(characters ? characters_model : bytes_model);
        for (size_t i = 0; i < sizeof ignore_merges / sizeof *ignore_merges; i++)
            if (strcmp(name, ignore_merges[i]) == 0)
                json_object_set_new(model, "ignore_merges", json_true());
        json_object_set_new(root, "model", model);
        data_tokenizer_open_json(&data, root, VOCAB);
        check_texts(name, &data, golden);
        data_tokenizer_close(&data);
        json_decref(root);
        n++;
    }
    assert_int_equal(n, 18);
}

/* ---- the same from GGUF keys ---- */

struct texts {
    char bytes[65536];
    uint32_t offsets[2048];
    uint32_t n;
};

static void add_text(struct texts *list, const char *text)
{
    const uint32_t at = list->offsets[list->n];
    const size_t n = strlen(text);
    assert_true(list->n + 2 <= sizeof list->offsets / sizeof *list->offsets);
    assert_true(at + n <= sizeof list->bytes);
    memcpy(list->bytes + at, text, n);
    list->offsets[++list->n] = at + (uint32_t)n;
}

static struct tn_tok_texts view(const struct texts *list)
{
    return (struct tn_tok_texts){list->bytes, list->offsets, list->n};
}

static void list_tokens(struct texts *out, const json_t *model)
{
    const char *by_id[VOCAB] = {0};
    const char *text;
    json_t *id;
    memset(out, 0, sizeof *out);
    json_object_foreach(json_object_get(model, "vocab"), text, id)
        by_id[json_integer_value(id)] = text;
    for (uint32_t i = 0; i < VOCAB && by_id[i]; i++)
        add_text(out, by_id[i]);
}

static void open_keys(struct data_tokenizer *data, const char *name, const struct tn_tok_keys *keys)
{
    struct tn_buf section = {0};
    struct tern_error err = {0};
    if (tn_tok_from_keys(keys, NULL, VOCAB, NULL, &section, &err) != TERN_OK)
        fail_msg("%s: %s", name, err.detail);
    data_tokenizer_open_section(data, name, &section, VOCAB);
}

static struct texts tokens, merges;

static void the_ids_of_byte_vocabularies_from_gguf_are_the_same(void **state)
{
    (void)state;
    const char *name;
    json_t *golden, *pair;
    size_t i;
    list_tokens(&tokens, bytes_model);
    memset(&merges, 0, sizeof merges);
    json_array_foreach(json_object_get(bytes_model, "merges"), i, pair) {
        char line[256];
        snprintf(line, sizeof line, "%s %s", json_string_value(json_array_get(pair, 0)),
                 json_string_value(json_array_get(pair, 1)));
        add_text(&merges, line);
    }
    json_object_foreach(json_object_get(goldens, "tokenizers"), name, golden) {
        const char *pre = json_string_value(json_object_get(golden, "gguf"));
        struct data_tokenizer data;
        const struct tn_tok_keys keys = {
            .model = "gpt2",
            .pre = pre,
            .tokens = view(&tokens),
            .merges = view(&merges),
            .bos_id = TERN_NO_ID,
            .eos_id = TERN_NO_ID,
            .unk_id = TERN_NO_ID,
            .add_bos = 0,
        };
        if (!pre)
            continue;
        open_keys(&data, name, &keys);
        check_texts(name, &data, golden);
        data_tokenizer_close(&data);
    }
}

/* As the converter of the 270M embedding model writes them: the score is the negated rank of the
 * merge, 0 if no merge makes the token, -1000 for added tokens. */
static void the_ids_of_character_vocabularies_from_gguf_are_the_same(void **state)
{
    (void)state;
    static float scores[VOCAB];
    static int32_t types[VOCAB];
    const json_t *vocab = json_object_get(characters_model, "vocab");
    json_t *pair;
    size_t rank;
    list_tokens(&tokens, characters_model);
    for (uint32_t id = 0; id < tokens.n; id++)
        types[id] = id >= 4 && id < 260 ? 6 : 1;
    static const int32_t first[] = {3, 3, 3, 2};
    memcpy(types, first, sizeof first);
    for (uint32_t id = 0; id < 4; id++)
        scores[id] = -1000;
    json_array_foreach(json_object_get(characters_model, "merges"), rank, pair) {
        char text[256];
        snprintf(text, sizeof text, "%s%s", json_string_value(json_array_get(pair, 0)),
                 json_string_value(json_array_get(pair, 1)));
        scores[json_integer_value(json_object_get(vocab, text))] = -(float)rank;
    }
    struct tn_tok_keys keys = {
        .model = "llama",
        .pre = "default",
        .tokens = view(&tokens),
        .scores = scores,
        .types = types,
        .bos_id = 2,
        .eos_id = 1,
        .unk_id = 3,
        .add_bos = 0,
    };
    static const char *const names[] = {"gemma", "minicpm"};
    for (int i = 0; i < 2; i++) {
        struct data_tokenizer data;
        keys.add_space_prefix = i;
        types[json_integer_value(json_object_get(vocab, "\n\n"))] = i == 0 ? 4 : 1;
        open_keys(&data, names[i], &keys);
        check_texts(names[i], &data,
                    json_object_get(json_object_get(goldens, "tokenizers"), names[i]));
        data_tokenizer_close(&data);
    }
}

/* ---- sweeps ---- */

typedef void (*measure_fn)(const void *arg, const char *text, size_t n, struct data_sha256 *sha);

struct lengths {
    uint32_t n;
    uint32_t list[64];
};

static void cut(struct lengths *out, const tn_split_fn *stage, const char *text, size_t n)
{
    if (!*stage) {
        assert_true(out->n < sizeof out->list / sizeof *out->list);
        out->list[out->n++] = (uint32_t)n;
        return;
    }
    for (size_t i = 0; i < n;) {
        const size_t length = (*stage)(text + i, n - i);
        assert_true(length > 0 && length <= n - i);
        cut(out, stage + 1, text + i, length);
        i += length;
    }
}

static void measure_pieces(const void *arg, const char *text, size_t n, struct data_sha256 *sha)
{
    const struct tn_splitter *splitter = arg;
    struct lengths lengths = {0};
    cut(&lengths, splitter->stages, text, n);
    data_sha256_add(sha, &lengths.n, sizeof lengths.n);
    data_sha256_add(sha, lengths.list, lengths.n * sizeof *lengths.list);
}

static void measure_nfc(const void *arg, const char *text, size_t n, struct data_sha256 *sha)
{
    static struct tn_normalize_room room;
    (void)arg;
    assert_true(tn_normalize(&room, TERN_TOK_NFC, &text, &n));
    const uint32_t length = (uint32_t)n;
    data_sha256_add(sha, &length, sizeof length);
    data_sha256_add(sha, text, n);
}

/* a{c}b {c}1{c}{c} {c}\n{c} */
static size_t code_point_text(uint32_t c, char *out)
{
    size_t n = 0;
    for (const char *p = "a{b {1{{ {\n{"; *p; p++) {
        if (*p == '{')
            n += tn_utf8_put(c, out + n);
        else
            out[n++] = *p;
    }
    return n;
}

static void check_digest(const char *name, const char *what, struct data_sha256 *sha,
                         const json_t *expected)
{
    char hex[65];
    data_sha256_hex(sha, hex);
    assert_non_null(json_string_value(expected));
    if (strcmp(hex, json_string_value(expected)) != 0)
        fail_msg("%s: %s have another digest", name, what);
}

/* Surrogates, and numbers of Unicode 17, on which the reference is inconsistent. */
static bool is_left_out(uint32_t c)
{
    return (c >= 0xD800 && c <= 0xDFFF) || (c >= 0x11DE0 && c <= 0x11DE9) ||
           (c >= 0x16FF4 && c <= 0x16FF6);
}

static void sweep_code_points(const char *name, const json_t *sweep, measure_fn measure,
                              const void *arg)
{
    const json_t *planes = json_object_get(sweep, "planes");
    assert_int_equal(json_array_size(planes), 17);
    for (uint32_t plane = 0; plane < 17; plane++) {
        struct data_sha256 sha;
        if (plane > 4 && plane < 14) /* like the fourth: nothing is assigned there */
            continue;
        char what[64], text[64];
        data_sha256_init(&sha);
        for (uint32_t c = plane << 16; c < (plane + 1) << 16; c++)
            if (!is_left_out(c))
                measure(arg, text, code_point_text(c, text), &sha);
        snprintf(what, sizeof what, "texts of plane %u", plane);
        check_digest(name, what, &sha, json_array_get(planes, plane));
    }
}

/* All strings of 1 to 4 characters of the alphabet, the last position varying fastest. */
static void sweep_alphabet(const char *name, const char *key, const json_t *expected,
                           measure_fn measure, const void *arg)
{
    const char *alphabet = json_string_value(json_object_get(goldens, key));
    const char *at[32];
    size_t n_characters = 0;
    struct data_sha256 sha;
    for (const char *p = alphabet; *p; n_characters++) {
        uint32_t c;
        at[n_characters] = p;
        p += tn_utf8_next(p, strlen(p), &c);
        at[n_characters + 1] = p;
    }
    data_sha256_init(&sha);
    for (unsigned length = 1, n_texts = 1; length <= 4; length++) {
        n_texts *= (unsigned)n_characters;
        for (unsigned k = 0; k < n_texts; k++) {
            char text[32];
            size_t n = 0;
            for (unsigned place = length, divisor = n_texts; place > 0; place--) {
                divisor /= (unsigned)n_characters;
                const size_t i = k / divisor % n_characters;
                memcpy(text + n, at[i], (size_t)(at[i + 1] - at[i]));
                n += (size_t)(at[i + 1] - at[i]);
            }
            measure(arg, text, n, &sha);
        }
    }
    check_digest(name, key, &sha, expected);
}

static void sweep_short(const char *name, const json_t *sweep, measure_fn measure, const void *arg)
{
    sweep_alphabet(name, "alphabet", json_object_get(sweep, "short"), measure, arg);
    sweep_alphabet(name, "cased_alphabet", json_object_get(sweep, "cased"), measure, arg);
}

static const struct {
    const char *name;
    uint32_t splitter;
} swept[] = {
    {"llama3", TERN_SPLIT_LLAMA3},
    {"qwen2", TERN_SPLIT_QWEN2},
    {"qwen35", TERN_SPLIT_QWEN35},
    {"gpt-2", TERN_SPLIT_GPT2},
    {"gpt-neox", TERN_SPLIT_GPT2},
    {"starcoder", TERN_SPLIT_STARCODER},
    {"falcon", TERN_SPLIT_FALCON},
    {"deepseek-coder", TERN_SPLIT_DEEPSEEK_CODER},
    {"deepseek-llm", TERN_SPLIT_DEEPSEEK_LLM},
    {"deepseek-v3", TERN_SPLIT_DEEPSEEK_V3},
    {"gpt-4o", TERN_SPLIT_GPT4O},
    {"tekken", TERN_SPLIT_TEKKEN},
    {"seed-coder", TERN_SPLIT_SEED_CODER},
    {"minicpm5", TERN_SPLIT_MINICPM5},
};

static void pieces_are_cut_where_the_reference_cuts(void **state)
{
    (void)state;
    for (size_t i = 0; i < sizeof swept / sizeof *swept; i++) {
        const json_t *tokenizers = json_object_get(goldens, "tokenizers");
        const json_t *golden = json_object_get(tokenizers, swept[i].name);
        const json_t *sweep = json_object_get(golden, "pieces");
        const struct tn_splitter *splitter = tn_splitter_find(swept[i].splitter);
        sweep_code_points(swept[i].name, sweep, measure_pieces, splitter);
        sweep_short(swept[i].name, sweep, measure_pieces, splitter);
    }
}

static size_t n_pieces(const tn_split_fn *stage, const char *text, size_t n)
{
    size_t n_all = 0;
    if (!*stage)
        return 1;
    for (size_t i = 0, length; i < n; i += length) {
        length = (*stage)(text + i, n - i);
        n_all += n_pieces(stage + 1, text + i, length);
    }
    return n_all;
}

static double seconds_of(const struct tn_splitter *splitter, const char *unit, size_t n)
{
    static char text[256 << 10];
    for (size_t i = 0; i < n; i++)
        text[i] = unit[i % strlen(unit)];
    const double start = cpu_seconds();
    assert_true(n_pieces(splitter->stages, text, n) > 0);
    return cpu_seconds() - start;
}

/* Units whose runs a quadratic splitter would scan again for each character. */
static void long_runs_take_linear_time(void **state)
{
    (void)state;
    static const char *const units[] = {
        "A", "a", "\xCA\xB0""A", "\xCC\x81""A", "\xE4\xB8\xAD""A", "aA'", "'s", "//\n", "!", "1",
        " ", " \n ", "\xCC\x81", "\x01", "-a", "\xFF"};
    for (size_t i = 0; i < sizeof swept / sizeof *swept; i++) {
        const struct tn_splitter *splitter = tn_splitter_find(swept[i].splitter);
        for (size_t k = 0; k < sizeof units / sizeof *units; k++) {
            const double small = seconds_of(splitter, units[k], 16 << 10);
            double large = seconds_of(splitter, units[k], 256 << 10);
            for (int n = 0; n < 9 && large > 64 * small + 0.25; n++)
                large = seconds_of(splitter, units[k], 256 << 10); /* another program was running */
            if (large > 64 * small + 0.25)
                fail_msg("%s, \"%s\": %.3f s for 16 KiB, %.3f s for 256 KiB", swept[i].name,
                         units[k], small, large);
        }
    }
}

static void texts_are_composed_as_by_the_reference(void **state)
{
    (void)state;
    const json_t *qwen2 = json_object_get(json_object_get(goldens, "tokenizers"), "qwen2");
    const json_t *sweep = json_object_get(qwen2, "normal");
    sweep_code_points("NFC", sweep, measure_nfc, NULL);
    sweep_short("NFC", sweep, measure_nfc, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_ids_from_tokenizer_json_are_the_references),
        cmocka_unit_test(the_ids_of_byte_vocabularies_from_gguf_are_the_same),
        cmocka_unit_test(the_ids_of_character_vocabularies_from_gguf_are_the_same),
        cmocka_unit_test(pieces_are_cut_where_the_reference_cuts),
        cmocka_unit_test(long_runs_take_linear_time),
        cmocka_unit_test(texts_are_composed_as_by_the_reference),
    };
    return cmocka_run_group_tests(tests, read_data, free_data);
}
