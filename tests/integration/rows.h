/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef TESTS_INTEGRATION_ROWS_H
#define TESTS_INTEGRATION_ROWS_H

/** @file Rows of the dataset "a": COLUMNS integers that one value tells. COLUMNS is defined before.
 */

#include "testing.h"

static inline void
write_row(esdm_container *container, uint64_t row, int32_t value)
{
    int32_t data[COLUMNS];
    esdm_dataspace space;
    for (int i = 0; i < COLUMNS; i++)
        data[i] = value * 10000 + i;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "a");
    check(dataset != NULL);
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){1, COLUMNS}, ERR));
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
}

static inline void
read_row(esdm_container *container, uint64_t row, int32_t value)
{
    static _Thread_local int32_t data[COLUMNS];
    esdm_dataspace space;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), "a");
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){1, COLUMNS}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    for (int i = 0; i < COLUMNS; i++) {
        if (data[i] != value * 10000 + i)
            die("row %" PRIu64 ", column %d: %d, not of %d", row, i, data[i], value);
    }
}

#endif
