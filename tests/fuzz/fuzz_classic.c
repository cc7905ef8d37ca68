/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Fuzzes the parser of netCDF classic headers, which esdm-ref has. The input is the size of
 * the file (8 bytes) and the header. */

#include <stdlib.h>
#include <string.h>

#include "refer/refer.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    uint64_t file_bytes;
    classic_header header = {0};
    if (size < sizeof file_bytes)
        return 0;
    memcpy(&file_bytes, data, sizeof file_bytes);
    size -= sizeof file_bytes;
    uint8_t *copy = malloc(size); /* that ends where the input ends */
    if (copy == NULL)
        return 0;
    memcpy(copy, data + sizeof file_bytes, size);
    if (classic_parse(copy, size, file_bytes, &header) == CLASSIC_OK) {
        for (size_t i = 0; i < header.nvariables; i++)
            if (header.variables[i].begin > INT64_MAX || header.variables[i].bytes > INT64_MAX)
                abort(); /* what refers to it adds them */
        free(header.variables);
    }
    free(copy);
    return 0;
}
