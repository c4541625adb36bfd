/* SPDX-License-Identifier: MIT
 *
 * Measures how long a model takes to load, from disk and from the page cache.
 *
 * Evicting the file from the page cache is a request to the system, which may ignore it.
 */
#include "measure/bench.h"
#include "plat/plat.h"

/* Seconds from opening the file to the first token's logits. */
static tern_status measure_load(double *seconds, const char *path,
                                const struct tern_bench_params *p, struct tern_error *err)
{
    struct tern_engine *engine = NULL;
    struct tern_model *model = NULL;
    struct tern_session *session = NULL;
    struct tern_session_params sp = {
        .n_ctx = 1, .kv = p->kv, .should_stop = p->should_stop, .arg = p->arg};
    const struct tern_engine_params ep = {.inputs = p->inputs};
    uint32_t id = 0;
    uint64_t start = tn_now_ns();
    tern_status status = tern_engine_create(&engine, p->machine, &ep, err);
    if (status == TERN_OK)
        status = tern_model_open(&model, path, err);
    if (status == TERN_OK)
        status = tern_session_create(&session, engine, model, &sp, err);
    if (status == TERN_OK)
        status = tern_session_eval(session, &id, 1, NULL, err);
    *seconds = tn_seconds_since(start);
    tern_session_free(session);
    tern_model_free(model);
    tern_engine_free(engine);
    return status;
}

tern_status tn_bench_loads(struct tern_bench_result *result, const char *path,
                           const struct tern_bench_params *p, struct tern_error *err)
{
    struct tn_file *file;
    tern_status status = tn_file_open_read(&file, path, err);
    if (status != TERN_OK)
        return status;
    tn_file_drop_cache(file, 0, tn_file_size(file));
    tn_file_close(file);
    status = measure_load(&result->load_cold_s, path, p, err);
    return status == TERN_OK ? measure_load(&result->load_warm_s, path, p, err) : status;
}
