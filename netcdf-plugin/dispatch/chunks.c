/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Chunk shapes as netCDF-4 reports them. ESDM lays data out by its own rules unless a shape was
 * stated; programs that copy settings (nccopy, NCO) ask for one all the same.
 */

#include "internal.h"

#include <math.h>

#define DEFAULT_CHUNK_BYTES     16777216.0
#define DEFAULT_RECORD_ELEMENTS 4096.0 /* in a chunk of a one-dimensional record variable */

int
esdmnc_chunks_check(const esdmnc_var *var, const size_t *shape)
{
    double bytes = (double) esdm_type_size(var->type);
    for (uint32_t i = 0; i < var->rank; i++)
        bytes *= (double) shape[i];
    if (bytes > (double) UINT32_MAX)
        return NC_EBADCHUNK;
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        if (!axis->unlimited && axis->length > 0 && shape[i] > axis->length)
            return NC_EBADCHUNK;
    }
    return NC_NOERR;
}

static bool
fits_32_bits(const esdmnc_var *var, const size_t *shape)
{
    double bytes = (double) esdm_type_size(var->type);
    for (uint32_t i = 0; i < var->rank; i++)
        bytes *= (double) shape[i];
    return bytes <= (double) UINT32_MAX;
}

/* All dimensions are unlimited: the same length along each. */
static void
default_of_records(const esdmnc_var *var, size_t *shape)
{
    double elements = DEFAULT_CHUNK_BYTES / (double) esdm_type_size(var->type);
    if (var->rank == 1) {
        elements = fmin(elements, DEFAULT_RECORD_ELEMENTS) / (double) esdm_type_size(var->type);
        shape[0] = (size_t) fmax(elements, 1.0);
        return;
    }
    double length = pow(elements, 1.0 / var->rank);
    for (uint32_t i = 0; i < var->rank; i++)
        shape[i] = (size_t) fmax(length, 1.0);
}

void
esdmnc_chunks_default(const esdmnc_var *var, size_t *ret_shape)
{
    uint32_t limited = 0;
    float elements = 1; /* of one record; netCDF-4 counts in float */
    for (uint32_t i = 0; i < var->rank; i++) {
        ret_shape[i] = 1;
        if (!var->axes[i].unlimited) {
            limited++;
            elements *= (float) var->axes[i].length;
        }
    }
    if (limited == 0) {
        default_of_records(var, ret_shape);
        return;
    }
    /* Each limited dimension is cut in the same proportion. */
    double share = DEFAULT_CHUNK_BYTES / (double) (elements * (float) esdm_type_size(var->type));
    double factor = pow(share, 1.0 / (double) limited);
    for (uint32_t i = 0; i < var->rank; i++) {
        if (var->axes[i].unlimited)
            continue;
        double length = (double) var->axes[i].length;
        double wanted = fmin(factor * length - .5, length);
        ret_shape[i] = wanted >= 1.0 ? (size_t) wanted : 1;
    }
    while (!fits_32_bits(var, ret_shape))
        for (uint32_t i = 0; i < var->rank; i++)
            ret_shape[i] = ret_shape[i] > 1 ? ret_shape[i] / 2 : 1;
    /* Make the last chunk along a dimension about as large as the others. */
    for (uint32_t i = 0; i < var->rank; i++) {
        if (var->axes[i].unlimited)
            continue;
        uint64_t length = var->axes[i].length;
        uint64_t chunks = (length + ret_shape[i] - 1) / ret_shape[i];
        if (chunks > 0)
            ret_shape[i] -= (size_t) ((chunks * ret_shape[i] - length) / chunks);
    }
}

void
esdmnc_chunks_get(const esdmnc_var *var, size_t *ret_shape)
{
    const uint64_t *stated = esdm_dataset_chunk(var->dataset);
    if (stated == NULL) {
        esdmnc_chunks_default(var, ret_shape);
        return;
    }
    for (uint32_t i = 0; i < var->rank; i++)
        ret_shape[i] = (size_t) stated[i];
}
