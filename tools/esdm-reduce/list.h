/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_REDUCE_LIST_H
#define ESDM_REDUCE_LIST_H

/** @file Results as text on standard output: a line for each, made by several threads. */

#include <stdint.h>

/** Results in the order of their indices. */
typedef struct reduce_list {
    const double *values; /* borrowed; NaN is printed as "-" */
    uint64_t count;
    const uint64_t *shape; /* borrowed */
    uint32_t rank;
} reduce_list;

/** Lines "INDEX … VALUE". An error is stdout's, as tool_finish() tells. */
void list_print(const reduce_list *list);

#endif
