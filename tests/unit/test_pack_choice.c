/* SPDX-License-Identifier: MIT
 *
 * How `tern convert --pack auto` compares a model with the memory of a machine: the file, and the
 * memory of a conversation.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "convert/pack_choice.h"

#define MB ((uint64_t)1000000)

/* Ternary-Bonsai-27B: 64 KiB of keys and values per position with 16 bits, half of that with 8, and
 * 157 MB of states. */
static const struct tern_plan_model model_27b = {
    .n_ctx = 262144,
    .file_bytes = 7210 * MB,
    .base_bytes = 200 * MB,
    .kv_block_bytes = {256 << 17, 256 << 16, 256 << 15},
    .kv = TERN_KV_Q8,
    .checkpoint_bytes = 157 * MB,
};

static bool fits(const struct tern_plan_model *model, uint64_t available)
{
    struct tern_sysinfo machine;
    char why[TN_PACK_REASON_BYTES] = "";
    tern_sysinfo_read_cpu(&machine);
    machine.available_bytes = machine.total_bytes = available;
    machine.limit_bytes = machine.rlimit_as_left_bytes = machine.commit_left_bytes = TERN_UNKNOWN;
    const bool result = tn_pack_fits(why, model, &machine);
    if (!result)
        assert_string_equal(why, "in 2 bits the weights are 7210.0 MB, which do not stay in memory "
                                 "beside a conversation of 4096 tokens");
    return result;
}

/* The reserve is a tenth of the memory here.  Besides the file: 134 MB for 4096 positions, 2 copies
 * of the states, 200 MB of scratch memory including the state, and 3 MiB for the process. */
static void cache_and_states_count(void **state)
{
    (void)state;
    const uint64_t need = 7210 + 134 + 2 * 157 + 200 + 3;
    assert_false(fits(&model_27b, 7210 * MB * 10 / 9 + 50 * MB));
    assert_false(fits(&model_27b, (need - 10) * MB * 10 / 9));
    assert_true(fits(&model_27b, (need + 10) * MB * 10 / 9));
}

/* Running a model does not require 262144 positions at once. */
static void a_context_of_4096_counts(void **state)
{
    (void)state;
    struct tern_plan_model model = model_27b;
    model.n_ctx = 4096;
    assert_true(fits(&model_27b, 9 * 1000 * MB));
    assert_true(fits(&model, 9 * 1000 * MB));
    model.kv_block_bytes[TERN_KV_Q8] *= 10;
    assert_false(fits(&model, 9 * 1000 * MB));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(cache_and_states_count),
        cmocka_unit_test(a_context_of_4096_counts),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
