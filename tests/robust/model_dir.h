/* SPDX-License-Identifier: MIT
 *
 * A small Hugging Face folder made in memory, so that tests can corrupt any part of it before it is
 * written.  The default is a BitNet of one layer: hidden 32, ffn 64, 2 heads of 16, 1 key head,
 * vocab 40, no tokenizer.
 */
#ifndef MODEL_DIR_H
#define MODEL_DIR_H

#include <stddef.h>
#include <stdint.h>

struct model_dir {
    char config[4096];
    char generation[1024];
    char header[16384]; /* JSON header of model.safetensors */
    unsigned char data[65536];
    size_t n_data;
    size_t n_header; /* length to write before the header; 0: its real length */
    size_t n_cut;    /* bytes missing at the end of model.safetensors */
};

enum model_form {
    MODEL_BF16,
    MODEL_F16,
    MODEL_F32,
    MODEL_PACKED,
    MODEL_WIDE, /* BF16, 4 heads of 16: heads * head_dim differs from hidden; separate lm_head */
};

/* Always the same weights for the same form. */
void model_dir_make(struct model_dir *m, enum model_form form);

/* Replaces the first occurrence of `find` in a text (config, generation, header); there must be
 * one. */
void model_dir_replace(char *text, size_t capacity, const char *find, const char *replacement);

/* Start of a tensor's data. */
unsigned char *model_dir_tensor(struct model_dir *m, const char *name);

/* Writes config.json, generation_config.json and model.safetensors into an existing folder; removes
 * all other files that tests create there. */
void model_dir_write(const struct model_dir *m, const char *dir);

void write_test_file(const char *dir, const char *name, const void *bytes, size_t n);

#endif
