/* SPDX-License-Identifier: MIT
 *
 * The public API on one page: a model file and a prompt, the continuation on standard output.
 * usage: example MODEL.tern PROMPT
 */
#include <stdio.h>
#include <string.h>

#include "tern/tern.h"

static bool print_text(void *arg, const char *text, size_t n_bytes)
{
    return fwrite(text, 1, n_bytes, (FILE *)arg) == n_bytes;
}

static tern_status tell(struct tern_session *session, const struct tern_model *model,
                        const char *prompt, struct tern_error *err)
{
    struct tern_ids ids = {NULL, 0, 0};
    struct tern_sampler_params sampling;
    struct tern_generate_params params;
    struct tern_generate_result result;

    memset(&params, 0, sizeof params);
    params.max_tokens = 40;
    params.on_text = print_text;
    params.arg = stdout;
    tern_sampler_params_default(&sampling);
    sampling.temperature = 0.0f; /* always the most likely token */

    tern_status status =
        tern_sampler_create(&params.sampler, &sampling, tern_model_config(model)->vocab, err);
    if (status == TERN_OK)
        status = tern_tokenizer_encode(tern_model_tokenizer(model), prompt, strlen(prompt),
                                       TERN_ENCODE_ADD_SPECIAL, &ids, err);
    if (status == TERN_OK)
        status = tern_generate(session, ids.ids, ids.n, &params, &result, err);
    tern_ids_free(&ids);
    tern_sampler_free(params.sampler);
    return status;
}

int main(int argc, char **argv)
{
    static struct tern_sysinfo machine; /* 8 kB */
    struct tern_engine *engine = NULL;
    struct tern_model *model = NULL;
    struct tern_session *session = NULL;
    struct tern_error err;
    tern_sysinfo_read(&machine);
    if (argc != 3 || tern_engine_create(&engine, &machine, NULL, &err) != TERN_OK ||
        tern_model_open(&model, argv[1], &err) != TERN_OK ||
        tern_session_create(&session, engine, model, NULL, &err) != TERN_OK ||
        tell(session, model, argv[2], &err) != TERN_OK)
        fprintf(stderr, "%s\n", argc == 3 ? err.detail : "usage: example MODEL.tern PROMPT");
    tern_session_free(session);
    tern_model_free(model);
    tern_engine_free(engine);
    return argc == 3 ? tern_status_exit_code(err.status) : 2;
}
