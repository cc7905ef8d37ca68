/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Chunk shapes as netCDF-4 reports them. ESDM lays data out by its own rules unless a shape was
 * stated; programs that copy settings (nccopy, NCO) ask for one all the same.
 */

#include "storage.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define DEFAULT_CHUNK_BYTES     16777216.0
#define DEFAULT_RECORD_ELEMENTS 4096.0 /* in a chunk of a one-dimensional record variable */

static bool
fits_32_bits(const esdmnc_var *var, const size_t *shape)
{
    double bytes = (double) var->bytes;
    for (uint32_t i = 0; i < var->rank; i++)
        bytes *= (double) shape[i];
    return bytes <= (double) UINT32_MAX;
}

int
esdmnc_chunks_check(const esdmnc_var *var, const size_t *shape)
{
    if (!fits_32_bits(var, shape))
        return NC_EBADCHUNK;
    for (uint32_t i = 0; i < var->rank; i++) {
        const esdmnc_axis *axis = &var->axes[i];
        if (!axis->unlimited && axis->length > 0 && shape[i] > axis->length)
            return NC_EBADCHUNK;
    }
    return NC_NOERR;
}

/* `file` NULL: as if there were no records. */
static uint64_t
length_of(const esdmnc_file *file, const esdmnc_axis *axis)
{
    if (!axis->unlimited)
        return axis->length;
    uint32_t id = esdm_dimension_id(axis->dimension);
    return file != NULL && id < file->length_count
               ? atomic_load_explicit(&file->lengths[id], memory_order_relaxed)
               : 0;
}

/* What netCDF-4 knows when it has opened a file: the length of coordinate variables alone. */
static uint64_t
first_length(const esdm_dimension *dimension)
{
    const esdm_group *group = esdm_dimension_group(dimension);
    const esdm_dataset *coordinate = esdm_group_dataset_find(group, esdm_dimension_name(dimension));
    bool known = coordinate != NULL && esdm_dataset_rank(coordinate) > 0 &&
                 esdm_dataset_dimension(coordinate, 0) == dimension;
    return known ? esdm_dimension_length(dimension) : 0;
}

int
esdmnc_chunks_room(esdmnc_file *file)
{
    size_t count = esdm_container_dimension_count(file->container);
    if (!file->writable || esdmnc_is_nc3(file) || count <= file->length_count)
        return NC_NOERR;
    _Atomic(uint64_t) *grown = realloc(file->lengths, count * sizeof *grown);
    if (grown == NULL)
        return NC_ENOMEM;
    for (size_t i = file->length_count; i < count; i++) {
        const esdm_dimension *dimension = esdm_container_dimension(file->container, (uint32_t) i);
        atomic_init(&grown[i], first_length(dimension));
    }
    file->lengths = grown;
    file->length_count = count;
    return NC_NOERR;
}

void
esdmnc_chunks_told(esdmnc_file *file, const esdm_dimension *dimension, uint64_t length)
{
    uint32_t id = esdm_dimension_id(dimension);
    if (id < file->length_count)
        atomic_store_explicit(&file->lengths[id], length, memory_order_relaxed);
}

/* All dimensions are unlimited: the same length along each. */
static void
choose_for_records(const esdmnc_var *var, size_t *shape)
{
    double elements = DEFAULT_CHUNK_BYTES / (double) var->bytes;
    if (var->rank == 1) {
        elements = fmin(elements, DEFAULT_RECORD_ELEMENTS) / (double) var->bytes;
        shape[0] = (size_t) elements;
        return;
    }
    double length = pow(elements, 1.0 / var->rank);
    for (uint32_t i = 0; i < var->rank; i++)
        shape[i] = (size_t) fmax(length, 1.0);
}

/* Limited dimensions are cut in the same proportion. */
static void
choose_for_limited(const esdmnc_file *file, const esdmnc_var *var, uint32_t limited, size_t *shape)
{
    float elements = 1; /* of one record; netCDF-4 counts in float */
    for (uint32_t i = 0; i < var->rank; i++)
        if (!var->axes[i].unlimited)
            elements *= (float) var->axes[i].length;
    double share = DEFAULT_CHUNK_BYTES / (double) (elements * (float) var->bytes);
    double factor = pow(share, 1.0 / (double) limited);
    for (uint32_t i = 0; i < var->rank; i++) {
        if (shape[i] != 0)
            continue;
        double length = (double) length_of(file, &var->axes[i]);
        double wanted = fmin(factor * length - .5, length);
        shape[i] = wanted >= 1.0 ? (size_t) wanted : 1;
    }
}

/* netCDF-4's default for what is 0 in the shape; it adapts the other lengths too. `file` NULL: as
 * if there were no records. */
static void
choose(const esdmnc_file *file, const esdmnc_var *var, size_t *shape)
{
    uint32_t limited = 0;
    for (uint32_t i = 0; i < var->rank; i++) {
        limited += !var->axes[i].unlimited;
        if (var->axes[i].unlimited)
            shape[i] = 1;
    }
    if (limited == 0 && var->rank > 0)
        choose_for_records(var, shape);
    choose_for_limited(file, var, limited, shape);
    while (!fits_32_bits(var, shape))
        for (uint32_t i = 0; i < var->rank; i++)
            shape[i] = shape[i] > 1 ? shape[i] / 2 : 1;
    /* Make the last chunk along a dimension about as large as the others. */
    for (uint32_t i = 0; i < var->rank; i++) {
        uint64_t length = length_of(file, &var->axes[i]);
        uint64_t chunks = (length + shape[i] - 1) / shape[i];
        if (chunks > 0)
            shape[i] -= (size_t) ((chunks * shape[i] - length) / chunks);
    }
}

/* ---- what was stated ------------------------------------------------------------------------ */

static bool
parse_shape(const char *text, uint32_t rank, size_t *ret_shape)
{
    for (uint32_t i = 0; i < rank; i++) {
        char *end;
        ret_shape[i] = strtoul(text, &end, 10);
        if (end == text || ret_shape[i] == 0 || *end != (i + 1 < rank ? ',' : '\0'))
            return false;
        text = end + 1;
    }
    return rank > 0;
}

void
esdmnc_chunks_get(const esdmnc_var *var, size_t *ret_shape)
{
    const uint64_t *stated = esdm_dataset_chunk(var->dataset);
    const char *hint = NULL;
    if (var->shape == NULL && stated == NULL)
        hint = esdm_dataset_hint(var->dataset, ESDMNC_HINT_CHUNKS);
    if (hint != NULL && parse_shape(hint, var->rank, ret_shape))
        return;
    for (uint32_t i = 0; i < var->rank; i++)
        ret_shape[i] = var->shape != NULL ? var->shape[i] : stated != NULL ? (size_t) stated[i] : 0;
    if (var->shape == NULL && stated == NULL)
        choose(NULL, var, ret_shape);
}

static int
remember(esdmnc_var *var, const size_t *shape)
{
    size_t *copy = malloc(var->rank * sizeof *copy);
    if (copy == NULL)
        return NC_ENOMEM;
    memcpy(copy, shape, var->rank * sizeof *copy);
    free(var->shape);
    var->shape = copy;
    return NC_NOERR;
}

int
esdmnc_chunks_set(const esdmnc_file *file, esdmnc_var *var, const size_t *shape)
{
    size_t complete[ESDM_MAX_RANK];
    memcpy(complete, shape, var->rank * sizeof *shape);
    if (complete[0] == 0)
        choose(file, var, complete);
    int rc = remember(var, complete);
    if (rc != NC_NOERR)
        return rc;
    var->shape_stated = true;
    return esdmnc_chunks_apply(file, var);
}

/* Values may have another size when the container is opened again: compounds without the padding at
 * their end that the program gave them. */
static bool
may_shrink(const esdmnc_file *file, const esdmnc_var *var)
{
    esdm_type_info info;
    return var->type > NC_STRING &&
           esdm_type_inquire(file->container, esdm_dataset_type(var->dataset), &info) &&
           info.kind == ESDM_CLASS_COMPOUND;
}

/* Most variables are defined while there are no records, and need no memory for it. */
int
esdmnc_chunks_start(const esdmnc_file *file, esdmnc_var *var)
{
    bool has_records = false;
    bool shrinks = var->rank > 0 && may_shrink(file, var);
    for (uint32_t i = 0; i < var->rank; i++)
        has_records |= var->axes[i].unlimited && length_of(file, &var->axes[i]) > 0;
    if ((!has_records && !shrinks) || esdmnc_is_nc3(file))
        return NC_NOERR;
    size_t now[ESDM_MAX_RANK] = {0};
    size_t later[ESDM_MAX_RANK] = {0};
    choose(file, var, now);
    choose(NULL, var, later);
    if (!shrinks && memcmp(now, later, var->rank * sizeof now[0]) == 0)
        return NC_NOERR;
    char text[ESDM_MAX_RANK * sizeof "18446744073709551615"] = "";
    int length = 0;
    for (uint32_t i = 0; i < var->rank; i++)
        length += sprintf(text + length, "%s%zu", i == 0 ? "" : ",", now[i]);
    return esdmnc_set_hint(file, var, ESDMNC_HINT_CHUNKS, text);
}

int
esdmnc_chunks_apply(const esdmnc_file *file, esdmnc_var *var)
{
    uint64_t shape[ESDM_MAX_RANK];
    bool usable = var->shape_stated && esdmnc_storage_kind(file, var) == NC_CHUNKED;
    for (uint32_t i = 0; usable && i < var->rank; i++) {
        shape[i] = var->shape[i];
        usable = shape[i] > 0;
    }
    esdm_error err;
    if (esdm_dataset_set_chunk(var->dataset, usable ? shape : NULL, &err) != ESDM_OK)
        return esdmnc_error(&err, "set chunks in", file->name);
    return NC_NOERR;
}

int
esdmnc_chunks_create(const esdmnc_file *file, esdmnc_var *var)
{
    if (!var->shape_stated || esdmnc_storage_kind(file, var) != NC_CHUNKED)
        return NC_NOERR;
    uint32_t limited = 0;
    for (uint32_t i = 0; i < var->rank; i++)
        limited += !var->axes[i].unlimited;
    double elements = DEFAULT_CHUNK_BYTES / (double) var->bytes;
    double length = pow(elements, 1.0 / (double) limited);
    for (uint32_t i = 0; i < var->rank; i++)
        if (var->shape[i] == 0)
            var->shape[i] =
                var->axes[i].unlimited ? 1 : (size_t) fmin(length, (double) var->axes[i].length);
    return esdmnc_chunks_apply(file, var);
}
