/* SPDX-License-Identifier: MIT
 *
 * A model from its description: every tensor that the slots of its layers require, and those that
 * the test adds, written by the real writer, with bytes that the test chooses.
 */
#ifndef SLOT_MODEL_H
#define SLOT_MODEL_H

#include "tern/model_format.h"
#include "tern/status.h"

struct slot_model {
    struct tern_file_config config; /* from tn_config_default, with sizes */
    const struct tern_file_layer *layers;
    uint64_t optional; /* bit k: add role k in layers where it is optional */
    uint32_t layout; /* of projections and tables; scales per group have groups of 64 */
    /* data [t->bytes] and scales [t->scale_bytes] are zeroed before. */
    void (*fill)(void *arg, uint8_t *data, uint8_t *scales, const struct tern_file_tensor *t);
    void *arg;
};

tern_status slot_model_write(const char *path, const struct slot_model *model,
                             struct tern_error *err);

#endif
