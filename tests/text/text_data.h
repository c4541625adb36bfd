/* SPDX-License-Identifier: MIT
 *
 * Data for the tests of the text layer: whole files, lines of JSON, tokenizers.
 *
 * Most tests skip if the reference data is missing; with CI=true they fail.
 */
#ifndef TEXT_DATA_H
#define TEXT_DATA_H

#include <jansson.h>
#include <stddef.h>
#include <stdint.h>

#include "base/buf.h"
#include "text/tokenizer.h"

/* For the first line of main: the exit code if there is no reference data (77: ctest reports it as
 * skipped; with CI=true the test fails), or 0. */
int data_missing(void);

/* A whole file, NUL-terminated; fails the test if it cannot be read. Release with free. */
char *data_read(const char *path, size_t *n_bytes);

/* Parses a whole file, or fails the test. */
json_t *data_json(const char *path);

/* Calls `each` for every line of a file, parsed. */
void data_json_lines(const char *path, void (*each)(const json_t *line, void *arg), void *arg);

/* A tokenizer imported from a tokenizer.json, with its section. */
struct data_tokenizer {
    void *section; /* 64-byte aligned */
    size_t n_section;
    struct tern_tokenizer *t;
};
void data_tokenizer_open(struct data_tokenizer *data, const char *path, uint32_t vocab);
/* The same from JSON that a test has changed. */
void data_tokenizer_open_json(struct data_tokenizer *data, const json_t *root, uint32_t vocab);
/* The same from a section, which is released. */
void data_tokenizer_open_section(struct data_tokenizer *data, const char *name,
                                 struct tn_buf *section, uint32_t vocab);
void data_tokenizer_close(struct data_tokenizer *data);
/* Fails the test unless the text has these n ids; `flags` as for tern_tokenizer_encode. */
void data_check_encode(const struct data_tokenizer *data, const char *text, uint32_t flags,
                       size_t n, const uint32_t *expected);

/* The tokenizer of the demo model, which every build has: LLaMA-3 splitter, 4096 tokens. */
#define DATA_DEMO_TOKENIZER TERN_SOURCE_DIR "/dist/demo/tokenizer.json"
#define DATA_DEMO_VOCAB 4096u

/* SHA-256. */
struct data_sha256 {
    uint32_t state[8];
    unsigned char block[64];
    uint64_t n_bytes;
};
void data_sha256_init(struct data_sha256 *sha);
void data_sha256_add(struct data_sha256 *sha, const void *bytes, size_t n);
/* Ends the hash and writes it as lower-case hex. */
void data_sha256_hex(struct data_sha256 *sha, char hex[65]);

#endif
