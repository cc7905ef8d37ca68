/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes what undoes HDF5's filters of chunks that containers refer to. The input is the
 * number of filters, their numbers, the mask, the bytes of an element, the elements / 8, and the
 * chunk. */

#include <stdlib.h>
#include <string.h>

#include "io/read/foreign.h"

#define HEAD        8
#define FILTERS_MAX 4u

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    static const uint32_t ids[] = {1, 2, 3, 32015, 4};
    static const uint32_t sizes[] = {1, 2, 4, 8, 3, 16};
    if (size <= HEAD)
        return 0;
    esdm__decoding decoding = {.nfilters = data[0] % (FILTERS_MAX + 1)};
    decoding.element_bytes = sizes[data[6] % (sizeof sizes / sizeof *sizes)];
    for (uint32_t i = 0; i < decoding.nfilters; i++)
        decoding.filters[i] =
            (esdm__filter){.name = "hdf5", .id = ids[data[1 + i] % 5], .codec = ""};
    size_t raw_bytes = decoding.element_bytes * (8u * data[7] + 1u);
    size -= HEAD;
    uint8_t *stored = malloc(size); /* both end where they may be used */
    uint8_t *raw = malloc(raw_bytes);
    if (stored != NULL && raw != NULL) {
        memcpy(stored, data + HEAD, size);
        (void) !esdm__filters_undo(&decoding, data[5], stored, size, raw, raw_bytes, NULL);
    }
    free(stored);
    free(raw);
    return 0;
}
