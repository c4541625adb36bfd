/* SPDX-License-Identifier: MIT
 *
 * config.json, with each allocation failing once, those of the JSON library too: the error is
 * TERN_MEMORY, and no key is lost.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>
#include <jansson.h>

#include "base/compiler.h"
#include "convert/hf/hf_config.h"
#include "failing_alloc.h"

#define SIZES                                                                                      \
    "\"hidden_size\":32,\"intermediate_size\":64,\"num_hidden_layers\":2,"                         \
    "\"num_attention_heads\":2,\"head_dim\":16,\"vocab_size\":40,"                                 \
    "\"max_position_embeddings\":128,\"rms_norm_eps\":1e-05,"

/* Keys in the file, defaults of the family, a text model in its own object. */
static const char *const configs[] = {
    "{\"model_type\":\"llama\"," SIZES "\"hidden_act\":\"silu\",\"rope_theta\":5e5}",
    "{\"model_type\":\"gpt_neox\"," SIZES "\"layer_norm_eps\":1e-5,\"hidden_act\":\"gelu\","
    "\"use_parallel_residual\":true,\"rotary_emb_base\":10000}",
    "{\"model_type\":\"gemma3\",\"eos_token_id\":[1,2],\"text_config\":{\"model_type\":"
    "\"gemma3_text\"," SIZES "\"num_key_value_heads\":1,\"sliding_window\":8}}",
};

static void no_key_is_lost_for_a_lack_of_memory(void **state)
{
    (void)state;
    for (size_t i = 0; i < TN_COUNT_OF(configs); i++) {
        bool has_failed = true;
        for (size_t n = 0; has_failed; n++) {
            struct tn_config_import import;
            struct tern_error err;
            fail_alloc_once_after(n);
            const tern_status status =
                tn_config_parse(&import, configs[i], strlen(configs[i]), NULL, 0, &err);
            has_failed = fail_alloc_stop();
            if (status != (has_failed ? TERN_MEMORY : TERN_OK))
                fail_msg("config %zu, allocation %zu: status %d, %s", i, n, (int)status,
                         status ? err.detail : "");
            tn_config_import_fini(&import);
        }
    }
}

int main(void)
{
    json_set_alloc_funcs(tn_alloc, tn_free);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(no_key_is_lost_for_a_lack_of_memory),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
