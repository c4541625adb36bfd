/* SPDX-License-Identifier: MIT
 *
 * Opens and closes the demo model for a test program.
 *
 * Each program converts the model to a separate file, because ctest runs them in parallel.
 */
#include "demo.h"

#include <stdio.h>

#include "plat/plat.h"
#include "tern/convert.h"

bool demo_open(struct demo *demo, const char *path, uint32_t n_threads)
{
    const struct tern_convert_params convert = {.source = TERN_SOURCE_DIR "/dist/demo",
                                                .output = path};
    const struct tern_engine_params params = {.n_threads = n_threads};
    struct tern_convert_result result;
    struct tern_error e;
    *demo = (struct demo){.path = path};
    tern_sysinfo_read(&demo->machine);
    if (tern_convert(&convert, &result, &e) != TERN_OK ||
        tern_engine_create(&demo->engine, &demo->machine, &params, &e) != TERN_OK ||
        tern_model_open(&demo->model, path, &e) != TERN_OK) {
        fprintf(stderr, "%s\n", e.detail);
        return false;
    }
    demo->vocab = tern_model_config(demo->model)->vocab;
    return true;
}

void demo_close(struct demo *demo)
{
    tern_model_free(demo->model);
    tern_engine_free(demo->engine);
    tn_file_remove(demo->path);
}
