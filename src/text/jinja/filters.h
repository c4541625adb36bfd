/* SPDX-License-Identifier: MIT
 *
 * The filters on sequences (filters_list.c), for the table of all filters (filters.c).
 *
 * All take args->self and the arguments in parentheses.
 */
#ifndef TN_JINJA_FILTERS_H
#define TN_JINJA_FILTERS_H

#include "text/jinja/eval.h"

/* For tn_jfilter_select, whose variants are select, reject, selectattr and rejectattr. */
enum { TN_SELECT = 1, TN_BY_ATTRIBUTE = 2 };

tn_jfunction_fn tn_jfilter_dictsort, tn_jfilter_extreme, tn_jfilter_first, tn_jfilter_groupby,
    tn_jfilter_items, tn_jfilter_last, tn_jfilter_list, tn_jfilter_map, tn_jfilter_reverse,
    tn_jfilter_select, tn_jfilter_sort, tn_jfilter_sum, tn_jfilter_unique;

/* The list of item.a.b for all items; `otherwise` (may be NULL) replaces missing attributes. */
struct tn_jvalue tn_jrun_map_attribute(struct tn_jrun *run, struct tn_jvalue items,
                                       struct tn_jvalue attribute,
                                       const struct tn_jvalue *otherwise);

#endif
