/* SPDX-License-Identifier: MIT
 *
 * Model files with one wrong field and a correct hash of the head, for tests that each is refused
 * with the name of the field.  A file that includes this defines PATH, where it may write.
 */
#ifndef TEST_HOSTILE_IMAGE_H
#define TEST_HOSTILE_IMAGE_H

#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <setjmp.h>
#include <cmocka.h>

#define XXH_INLINE_ALL
#include <stdio.h>
#include <string.h>
#include <xxhash.h>

#include "base/alloc.h"
#include "base/compiler.h"
#include "file/model_file.h"
#include "tiny_model.h"

static const struct tiny_variant full = {TERN_LAYOUT_Q8, true, true, true, true,
                                         0, false, false, 0, false};

static inline struct tiny_image make_image(const struct tiny_variant *variant)
{
    struct tiny_image image;
    struct tern_error err;
    assert_int_equal(tiny_model_image(&image, PATH, variant, &err), TERN_OK);
    return image;
}

static inline struct tiny_image copy_image(const struct tiny_image *image)
{
    struct tiny_image copy = {tn_alloc(image->n), image->n};
    assert_non_null(copy.bytes);
    memcpy(copy.bytes, image->bytes, image->n);
    return copy;
}

static inline struct tern_file_header *header_of(struct tiny_image *image)
{
    return (void *)image->bytes;
}

static inline void fix_hash(struct tiny_image *image)
{
    struct tern_file_header *h = header_of(image);
    h->head_hash = 0;
    if (h->data.offset <= image->n)
        h->head_hash = XXH3_64bits(image->bytes, (size_t)h->data.offset);
}

static inline tern_status check(const struct tiny_image *image, struct tern_error *err)
{
    struct tn_model_file file;
    tern_status status = tn_model_file_check(&file, image->bytes, image->n, "model", err);
    tn_model_file_close(&file);
    return status;
}

struct mutation {
    const char *expected; /* part of the message */
    size_t offset;        /* from the start of the file section */
    uint32_t n_bytes;
    uint64_t value;
};

static unsigned n_mutations;

static inline void mutate(const struct tiny_image *image, size_t base, const struct mutation *m)
{
    struct tern_error err = {TERN_OK, ""};
    struct tiny_image copy = copy_image(image);
    memcpy(copy.bytes + base + m->offset, &m->value, m->n_bytes);
    fix_hash(&copy);
    tern_status status = check(&copy, &err);
    if (status != TERN_INPUT && status != TERN_UNSUPPORTED)
        fail_msg("%s = %llu is accepted", m->expected, (unsigned long long)m->value);
    if (!strstr(err.detail, m->expected))
        fail_msg("%s = %llu: %s", m->expected, (unsigned long long)m->value, err.detail);
    tn_free(copy.bytes);
    n_mutations++;
}

/* Offset of the layer records in the metadata section. */
#define LAYERS sizeof(struct tern_file_config)

#define FIELD(type, member) offsetof(struct type, member), sizeof(((struct type *)0)->member)

#endif
