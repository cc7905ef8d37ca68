/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes what undoes filters of HDF5 and Zarr of chunks that containers refer to. The input
 * is the number of filters, which these are, the mask, the bytes of an element, the elements / 8,
 * and the chunk. */

#include <stdlib.h>
#include <string.h>

#include "io/read/foreign.h"

#define HEAD        8
#define FILTERS_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const esdm__filter known[] = {
        {.name = "hdf5", .id = 1, .codec = ""}, {.name = "hdf5", .id = 2, .codec = ""},
        {.name = "hdf5", .id = 3, .codec = ""}, {.name = "hdf5", .id = 32015, .codec = ""},
        {.name = "hdf5", .id = 4, .codec = ""}, {.name = "zarr", .codec = "blosc"},
        {.name = "zarr", .codec = "lz4"},       {.name = "zarr", .codec = "gzip"},
        {.name = "zarr", .codec = "crc32c"},    {.name = "zarr", .codec = "crc32"},
        {.name = "zarr", .codec = "zstd"},      {.name = "zarr", .codec = "shuffle"},
    };
    static const uint32_t sizes[] = {1, 2, 4, 8, 3, 16};
    if (size <= HEAD)
        return 0;
    esdm__decoding decoding = {.nfilters = data[0] % (FILTERS_MAX + 1)};
    decoding.element_bytes = sizes[data[6] % (sizeof sizes / sizeof *sizes)];
    for (uint32_t i = 0; i < decoding.nfilters; i++)
        decoding.filters[i] = known[data[1 + i] % (sizeof known / sizeof *known)];
    size_t raw_bytes = decoding.element_bytes * (8u * data[7] + 1u);
    size -= HEAD;
    uint8_t *stored = malloc(size); /* both end where they may be used */
    uint8_t *raw = malloc(raw_bytes);
    uint8_t *any = NULL;
    size_t any_bytes = 0;
    if (stored != NULL && raw != NULL) {
        memcpy(stored, data + HEAD, size);
        (void) !esdm__filters_undo(&decoding, data[5], stored, size, raw, raw_bytes, NULL);
        memcpy(stored, data + HEAD, size);
        if (size < 4096) /* a length that they tell is allocated */
            (void) !esdm__filters_undo_any(&decoding, stored, size, &any, &any_bytes, NULL);
    }
    free(stored);
    free(raw);
    free(any);
    return 0;
}
