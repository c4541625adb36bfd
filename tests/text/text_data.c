/* SPDX-License-Identifier: MIT
 *
 * Reads the reference data of ../shared for the tests of the text layer: files, lines of JSON,
 * tokenizers; and computes SHA-256, to compare long lists of ids with the reference's hash.
 */
#include "text_data.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <setjmp.h>
#include <stdarg.h>
#include <cmocka.h>

#include "base/alloc.h"
#include "convert/tokens/tok_import.h"

int data_missing(void)
{
    const char *ci = getenv("CI");
    FILE *f = fopen(TERN_SHARED_DIR "/reference/tokenizers/README.md", "rb");
    if (f) {
        fclose(f);
        return 0;
    }
    return ci && strcmp(ci, "true") == 0 ? 1 : 77;
}

char *data_read(const char *path, size_t *n_bytes)
{
    FILE *f = fopen(path, "rb");
    if (!f)
        fail_msg("cannot open %s: these tests need the reference data (TERN_SHARED_DIR)", path);
    size_t n = 0, capacity = 1 << 16;
    char *data = malloc(capacity);
    for (;;) {
        assert_non_null(data);
        n += fread(data + n, 1, capacity - 1 - n, f);
        if (n + 1 < capacity)
            break;
        capacity *= 2;
        data = realloc(data, capacity);
    }
    fclose(f);
    data[n] = '\0';
    *n_bytes = n;
    return data;
}

json_t *data_json(const char *path)
{
    size_t n;
    char *text = data_read(path, &n);
    json_error_t error;
    json_t *root = json_loadb(text, n, JSON_ALLOW_NUL, &error);
    if (!root)
        fail_msg("%s: line %d: %s", path, error.line, error.text);
    free(text);
    return root;
}

void data_json_lines(const char *path, void (*each)(const json_t *line, void *arg), void *arg)
{
    size_t n;
    char *text = data_read(path, &n);
    for (char *line = text; line < text + n;) {
        char *end = memchr(line, '\n', (size_t)(text + n - line));
        size_t length = end ? (size_t)(end - line) : (size_t)(text + n - line);
        json_t *root = json_loadb(line, length, JSON_ALLOW_NUL, NULL);
        assert_non_null(root);
        each(root, arg);
        json_decref(root);
        line += length + 1;
    }
    free(text);
}

static void open_text(struct data_tokenizer *data, const char *name, const char *json, size_t n,
                      uint32_t vocab)
{
    struct tn_buf section = {0};
    struct tern_error err;
    if (tn_tok_import(json, n, vocab, &section, &err) != TERN_OK)
        fail_msg("%s: %s", name, err.detail);
    data_tokenizer_open_section(data, name, &section, vocab);
}

void data_tokenizer_open_section(struct data_tokenizer *data, const char *name,
                                 struct tn_buf *section, uint32_t vocab)
{
    struct tern_error err;
    data->section = tn_alloc_aligned(section->n_bytes, 64);
    assert_non_null(data->section);
    memcpy(data->section, section->data, section->n_bytes);
    data->n_section = section->n_bytes;
    tn_buf_fini(section);
    if (tn_tokenizer_open(&data->t, data->section, data->n_section, vocab, &err) != TERN_OK)
        fail_msg("%s: %s", name, err.detail);
}

void data_tokenizer_open(struct data_tokenizer *data, const char *path, uint32_t vocab)
{
    size_t n;
    char *json = data_read(path, &n);
    open_text(data, path, json, n, vocab);
    free(json);
}

void data_tokenizer_open_json(struct data_tokenizer *data, const json_t *root, uint32_t vocab)
{
    char *json = json_dumps(root, JSON_COMPACT);
    assert_non_null(json);
    open_text(data, "changed JSON", json, strlen(json), vocab);
    free(json);
}

void data_tokenizer_close(struct data_tokenizer *data)
{
    tn_tokenizer_close(data->t);
    tn_free_aligned(data->section);
}

void data_check_encode(const struct data_tokenizer *data, const char *text, uint32_t flags,
                       size_t n, const uint32_t *expected)
{
    struct tern_ids ids = {0};
    assert_int_equal(tern_tokenizer_encode(data->t, text, strlen(text), flags, &ids, NULL),
                     TERN_OK);
    if (ids.n != n || (n && memcmp(ids.ids, expected, n * sizeof *expected) != 0)) {
        for (size_t i = 0; i < ids.n; i++)
            print_error("%u ", ids.ids[i]);
        fail_msg("\"%s\" has other ids", text);
    }
    tern_ids_free(&ids);
}

/* ---- SHA-256 (FIPS 180-4) ---- */

static const uint32_t round_constants[64] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2};

static uint32_t rotate(uint32_t x, unsigned n)
{
    return x >> n | x << (32 - n);
}

static void sha256_block(uint32_t state[8], const unsigned char *p)
{
    uint32_t w[64], s[8];
    for (unsigned i = 0; i < 16; i++)
        w[i] = (uint32_t)p[4 * i] << 24 | (uint32_t)p[4 * i + 1] << 16 |
               (uint32_t)p[4 * i + 2] << 8 | p[4 * i + 3];
    for (unsigned i = 16; i < 64; i++)
        w[i] = w[i - 16] + w[i - 7] +
               (rotate(w[i - 15], 7) ^ rotate(w[i - 15], 18) ^ w[i - 15] >> 3) +
               (rotate(w[i - 2], 17) ^ rotate(w[i - 2], 19) ^ w[i - 2] >> 10);
    memcpy(s, state, sizeof s);
    for (unsigned i = 0; i < 64; i++) {
        uint32_t t1 = s[7] + (rotate(s[4], 6) ^ rotate(s[4], 11) ^ rotate(s[4], 25)) +
                      ((s[4] & s[5]) ^ (~s[4] & s[6])) + round_constants[i] + w[i];
        uint32_t t2 = (rotate(s[0], 2) ^ rotate(s[0], 13) ^ rotate(s[0], 22)) +
                      ((s[0] & s[1]) ^ (s[0] & s[2]) ^ (s[1] & s[2]));
        memmove(s + 1, s, 7 * sizeof *s);
        s[4] += t1;
        s[0] = t1 + t2;
    }
    for (unsigned i = 0; i < 8; i++)
        state[i] += s[i];
}

void data_sha256_init(struct data_sha256 *sha)
{
    *sha = (struct data_sha256){{0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a, 0x510e527f,
                                 0x9b05688c, 0x1f83d9ab, 0x5be0cd19},
                                {0},
                                0};
}

void data_sha256_add(struct data_sha256 *sha, const void *bytes, size_t n)
{
    const unsigned char *p = bytes;
    for (size_t i = 0; i < n;) {
        size_t used = sha->n_bytes % 64, take = n - i < 64 - used ? n - i : 64 - used;
        memcpy(sha->block + used, p + i, take);
        sha->n_bytes += take;
        i += take;
        if (sha->n_bytes % 64 == 0)
            sha256_block(sha->state, sha->block);
    }
}

void data_sha256_hex(struct data_sha256 *sha, char hex[65])
{
    uint64_t n_bits = sha->n_bytes * 8;
    unsigned char length[8];
    for (unsigned i = 0; i < 8; i++)
        length[i] = (unsigned char)(n_bits >> (56 - 8 * i));
    data_sha256_add(sha, "\x80", 1);
    while (sha->n_bytes % 64 != 56)
        data_sha256_add(sha, "", 1);
    data_sha256_add(sha, length, 8);
    for (unsigned i = 0; i < 8; i++)
        snprintf(hex + 8 * i, 9, "%08x", (unsigned)sha->state[i]);
}
