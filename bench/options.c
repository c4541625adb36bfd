/* SPDX-License-Identifier: MIT
 *
 * Parses the options of bench_kern: which kernels it runs, and whether it prints their rates or
 * collects them for a sweep.
 */
#include "bench/options.h"

#include <stdio.h>
#include <string.h>

#include "bench/report.h"
#include "kern/guard.h"

bool tn_bench_take_options(struct tn_bench_options *o, int argc, char **argv)
{
    *o = (struct tn_bench_options){.filter = ""};
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--only") == 0 && i + 1 < argc)
            o->op = argv[++i];
        else if (strcmp(argv[i], "--level") == 0 && i + 1 < argc)
            o->level = argv[++i];
        else if (strcmp(argv[i], "--memory") == 0)
            tn_bench_report.only_memory = true;
        else if (strcmp(argv[i], "--sweep") == 0)
            o->is_sweep = tn_bench_report.is_sweep = tn_bench_report.only_memory = true;
        else if (argv[i][0] == '-')
            return false;
        else
            o->filter = argv[i];
    }
    return true;
}

bool tn_bench_is_selected(const struct tn_bench_options *o, const struct tn_kernel_row *row)
{
    char name[64];
    snprintf(name, sizeof name, "%s_%s", row->op, row->isa);
    return !(row->needs & ~tn_test_cpu_features()) && strstr(name, o->filter) &&
           (!o->op || strcmp(o->op, row->op) == 0) &&
           (!o->level || strcmp(o->level, row->isa) == 0);
}
