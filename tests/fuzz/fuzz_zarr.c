/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes the parser of Zarr metadata, which esdm-ref has. The input is a document: .zarray
 * or zarr.json. */

#include <stdlib.h>
#include <string.h>

#include "refer/zarr.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* What is made of it must not overflow. */
static void
check(const zarr_array *a)
{
    uint64_t bytes = a->kind == ZARR_BYTES ? a->length : a->element_bytes;
    if (a->rank >= ESDM_MAX_RANK || bytes == 0 || a->nfilters > ZARR_FILTERS_MAX)
        abort();
    uint32_t seen = 0;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->chunk[d] == 0 || a->file[d] < a->chunk[d] || a->file[d] % a->chunk[d] != 0 ||
            __builtin_mul_overflow(bytes, a->chunk[d], &bytes))
            abort();
        seen |= a->ordered ? 1u << a->order[d] : 1u << d;
    }
    if (seen != (a->rank == 0 ? 0 : UINT32_MAX >> (32 - a->rank)))
        abort();
    (void) zarr_chunk_count(a);
}

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    char why[200];
    zarr_array array = {0};
    char *copy = malloc(size); /* that ends where the input ends */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    json_t *metadata = zarr_json(copy, size, why);
    if (metadata != NULL && zarr_array_parse(metadata, &array, why))
        check(&array);
    zarr_array_clear(&array);
    json_decref(metadata);
    free(copy);
    return 0;
}
