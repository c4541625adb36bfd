/* SPDX-License-Identifier: MIT
 *
 * Reads the JSON of a request, with bounds and with errors that name the member.
 *
 * A null member counts as absent, and unknown members are ignored: clients send more than any
 * server knows.  A value may be read by one thread at a time.
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
#include "base/json_object.h"
#include "tern/tokenizer.h"

/* The reason for refusing a request. */
struct tn_refusal {
    int status;       /* 0: not refused */
    char message[400];
    char param[200];  /* member name; "": none */
    const char *code; /* NULL, or an error code for programs */
};

/* Sets the refusal.  Returns false. */
bool tn_refuse(struct tn_refusal *r, int status, const char *param, const char *format, ...)
    TN_PRINTF(4, 5);

/* The same with 503, for lack of memory. */
bool tn_refuse_memory(struct tn_refusal *r);
/* The same for an error of the library. */
void tn_refuse_error(struct tn_refusal *r, const struct tern_error *err);

/* Upper bound of the memory that the parsed JSON of a text needs. */
size_t tn_json_body_bound(const char *bytes, size_t n);
/* Parses the object in a body; json_decref.  *seed: a "seed" beyond 63 bits, which JSON numbers
 * round.  NULL: refused. */
json_t *tn_json_body_read(const char *bytes, size_t n, struct tn_json_wide *seed,
                          struct tn_refusal *r);

/* Does its "type" equal this word? */
bool tn_json_has_type(const json_t *object, const char *type);
/* Does its "role"? */
bool tn_json_has_role(const json_t *message, const char *role);

/* A deep copy; json_decref.  NULL: refused, out of memory. */
json_t *tn_json_copy(const json_t *value, struct tn_refusal *r);
/* Consumes the reference to `value`; NULL means out of memory.  false: refused. */
bool tn_json_put(json_t *object, const char *key, json_t *value, struct tn_refusal *r);

/* Each leaves *out unchanged if the member is absent.  false: refused. */
bool tn_json_get_bool(const json_t *object, const char *key, bool *out, struct tn_refusal *r);
/* With `n` NULL, a text that contains a NUL is refused. */
bool tn_json_get_text(const json_t *object, const char *key, const char **out, size_t *n,
                      struct tn_refusal *r);
bool tn_json_get_real(const json_t *object, const char *key, double low, double high, float *out,
                      struct tn_refusal *r);
/* Whole numbers, including 5.0. */
#define TN_JSON_NO_LIMIT DBL_MAX /* as `high` */
bool tn_json_get_count(const json_t *object, const char *key, double low, double high,
                       double *out, struct tn_refusal *r);
/* Reads an array of ids below n_vocab, found at `key`; *out must be empty. */
bool tn_json_take_ids(const json_t *list, const char *key, uint32_t n_vocab, struct tern_ids *out,
                      struct tn_refusal *r);
/* Is it a whole number? */
bool tn_json_is_whole(const json_t *value, double *out);

#endif
