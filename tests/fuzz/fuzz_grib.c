/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes what esdm-ref itself reads of GRIB messages: heads and sections. */

#include <stdlib.h>
#include <string.h>

#include "refer/grib.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    gribs_place place = {0};
    const uint8_t *section = NULL;
    size_t section_bytes = 0;
    unsigned fields = 0;
    if (size < GRIB_HEAD_BYTES)
        return 0;
    uint8_t *copy = malloc(size); /* that ends where the input ends */
    if (copy == NULL)
        return 0;
    memcpy(copy, data, size);
    if (gribs_head(copy, &place) && place.bytes < GRIB_HEAD_BYTES)
        abort();
    if (gribs_grid_section(copy, size, &section, &section_bytes, &fields) &&
        (section < copy || section_bytes > size || section + section_bytes > copy + size ||
         fields == 0))
        abort();
    free(copy);
    return 0;
}
