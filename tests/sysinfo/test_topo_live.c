/* SPDX-License-Identifier: MIT
 *
 * The reader of a recording's /sys, used on the running machine, finds the same as hwloc: two
 * independent readers of the same facts.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "sysinfo/topo.h"

static struct tn_topo by_hwloc, by_sysfs;

static const struct tn_topo_pu *find(const struct tn_topo *topo, uint32_t os_index)
{
    for (uint32_t i = 0; i < topo->n_pus; i++)
        if (topo->pus[i].os_index == os_index)
            return &topo->pus[i];
    fail_msg("CPU %u is missing", os_index);
    return NULL;
}

static void both_readers_agree(void **state)
{
    (void)state;
    char text[16];
    if (tn_fact_read("", "/sys/devices/system/cpu/cpu0/topology/core_id", text, sizeof text) < 0)
        skip(); /* a container without /sys */
    assert_true(tn_topo_from_hwloc(&by_hwloc));
    assert_true(tn_topo_from_sysfs(&by_sysfs, ""));
    assert_int_equal(by_sysfs.n_pus, by_hwloc.n_pus);
    assert_int_equal(by_sysfs.n_cores, by_hwloc.n_cores);
    assert_int_equal(by_sysfs.n_packages, by_hwloc.n_packages);
    for (uint32_t i = 0; i < by_hwloc.n_pus; i++) {
        const struct tn_topo_pu *a = &by_hwloc.pus[i], *b = find(&by_sysfs, a->os_index);
        assert_int_equal(a->has_l3, b->has_l3);
        for (uint32_t k = 0; k < i; k++) {
            const struct tn_topo_pu *other = &by_hwloc.pus[k];
            bool together = find(&by_sysfs, other->os_index)->core == b->core;
            assert_int_equal(a->core == other->core, together);
        }
    }
    for (uint32_t i = 0; i < 3; i++)
        assert_int_equal(by_sysfs.cache_bytes[i], by_hwloc.cache_bytes[i]);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_readers_agree),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
