/* SPDX-License-Identifier: MIT
 *
 * Reading the JSON of a request: bounded, and with errors that name the field.
 *
 * A member that is null is absent, and members that nobody asks for are ignored: clients send more
 * than any server knows.  A value may be read by one thread at a time.
 */
#ifndef TN_JSON_BODY_H
#define TN_JSON_BODY_H

#include <float.h>
#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/compiler.h"
#include "base/json_load.h"
#include "tern/tokenizer.h"

/* Why a request is refused. */
struct tn_refusal {
    int status;       /* 0: it is not */
    char message[400];
    char param[200];  /* the field; "" */
    const char *code; /* NULL, or a word for programs */
};

/* Sets the refusal and returns false. */
bool tn_refuse(struct tn_refusal *r, int status, const char *param, const char *format, ...)
    TN_PRINTF(4, 5);

/* The same of an error of the library. */
void tn_refuse_error(struct tn_refusal *r, const struct tern_error *err);

/* Bytes that the JSON of a text takes at most, once it is read. */
size_t tn_json_body_bound(const char *bytes, size_t n);
/* The object that a body holds; json_decref.  *seed becomes a "seed" beyond 63 bits, which the
 * object has rounded.  NULL: refused. */
json_t *tn_json_body_read(const char *bytes, size_t n, struct tn_json_wide *seed,
                          struct tn_refusal *r);

/* A member that is there and not null, or NULL. */
const json_t *tn_json_member(const json_t *object, const char *key);
/* Is its "type" this word? */
bool tn_json_has_type(const json_t *object, const char *type);

/* A deep copy; json_decref.  NULL: refused, there was no memory for all of it. */
json_t *tn_json_copy(const json_t *value, struct tn_refusal *r);
/* Takes the reference to `value`; NULL: there was no memory for it.  false: refused. */
bool tn_json_put(json_t *object, const char *key, json_t *value, struct tn_refusal *r);

/* Each leaves *out alone when the member is absent; false: refused. */
bool tn_json_get_bool(const json_t *object, const char *key, bool *out, struct tn_refusal *r);
/* Without `n` a text that holds a NUL is refused. */
bool tn_json_get_text(const json_t *object, const char *key, const char **out, size_t *n,
                      struct tn_refusal *r);
bool tn_json_get_real(const json_t *object, const char *key, double low, double high, float *out,
                      struct tn_refusal *r);
/* Whole numbers, also written as 5.0. */
#define TN_JSON_NO_LIMIT DBL_MAX /* as `high` */
bool tn_json_get_count(const json_t *object, const char *key, double low, double high,
                       double *out, struct tn_refusal *r);
/* An array of ids below n_vocab, which `key` holds in some way; *out is empty before. */
bool tn_json_take_ids(const json_t *list, const char *key, uint32_t n_vocab, struct tern_ids *out,
                      struct tn_refusal *r);
/* Is it a whole number? */
bool tn_json_is_whole(const json_t *value, double *out);

#endif
