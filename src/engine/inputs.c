/* SPDX-License-Identifier: MIT
 *
 * The precision of activations: names, and which ones a model supports.
 *
 * Part of a model's definition: other inputs give other bits, so the plan never chooses them.
 */
#include <string.h>

#include "base/error.h"
#include "engine/engine.h"

static const char *const texts[] = {
    [TERN_INPUTS_AS_F32] = "f32", [TERN_INPUTS_AS_16] = "16", [TERN_INPUTS_AS_8] = "8"};

const char *tern_engine_inputs(const struct tern_engine *engine, const struct tern_model *model)
{
    const struct tern_model_config *c = &model->public_config;
    const bool has_choice = !c->rounds_inputs && strcmp(c->inputs, "f32") != 0;
    return has_choice && engine->inputs != TERN_INPUTS_AS_MODEL ? texts[engine->inputs]
                                                                : c->inputs;
}

tern_status tn_engine_check_inputs(const struct tern_engine *engine, const struct tern_model *model,
                                   struct tern_error *err)
{
    if (!model->public_config.rounds_inputs || engine->inputs == TERN_INPUTS_AS_MODEL)
        return tn_ok(err);
    return tn_fail(err, TERN_USAGE,
                   "--inputs %s: \"%s\" was trained with inputs rounded to int8 for each token, "
                   "and another precision would change the model; omit --inputs",
                   texts[engine->inputs], model->path);
}
