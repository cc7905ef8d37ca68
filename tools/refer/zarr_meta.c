/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The metadata of a Zarr array. */

#include <string.h>

#include "refer/zarr.h"

/* More elements are in no chunk. */
#define CHUNK_BYTES_MAX (UINT64_C(1) << 34)

bool
zarr_parse_lengths(const json_t *list, uint32_t rank, uint64_t least, uint64_t *ret)
{
    if (!json_is_array(list) || json_array_size(list) != rank)
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        const json_t *length = json_array_get(list, d);
        if (!json_is_integer(length) || json_integer_value(length) < (json_int_t) least)
            return false;
        ret[d] = (uint64_t) json_integer_value(length);
    }
    return true;
}

/* Axes and chunks; @param chunks their shape. */
static bool
parse_shape(const json_t *metadata, const json_t *chunks, zarr_array *a, char why[200])
{
    const json_t *shape = json_object_get(metadata, "shape");
    size_t rank = json_array_size(shape);
    if (!json_is_array(shape))
        return zarr_fail(why, "it has no shape");
    if (rank >= ESDM_MAX_RANK)
        return zarr_fail(why, "it has %zu dimensions; ESDM allows %d", rank, ESDM_MAX_RANK - 1);
    a->rank = (uint32_t) rank;
    if (!zarr_parse_lengths(shape, a->rank, 0, a->shape) ||
        !zarr_parse_lengths(chunks, a->rank, 1, a->chunk))
        return zarr_fail(why, "its shape or chunks are no lengths");
    memcpy(a->file, a->chunk, sizeof a->file);
    return true;
}

static bool
check_sizes(const zarr_array *a, char why[200])
{
    uint64_t bytes = a->element_bytes, file = 1;
    if (a->kind == ZARR_BYTES)
        bytes = a->length;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (__builtin_mul_overflow(bytes, a->chunk[d], &bytes) || bytes > CHUNK_BYTES_MAX)
            return zarr_fail(why, "its chunks are larger than %" G_GUINT64_FORMAT " bytes",
                             (guint64) CHUNK_BYTES_MAX);
        if (__builtin_mul_overflow(file, a->file[d] / a->chunk[d], &file) || file > 1u << 26)
            return zarr_fail(why, "its shards have very many chunks");
        if (a->shape[d] > INT64_MAX - a->file[d])
            return zarr_fail(why, "its shape is very large");
    }
    return true;
}

static bool
parse_names(const json_t *names, zarr_array *a, char why[200])
{
    if (names == NULL || json_is_null(names))
        return true;
    if (json_array_size(names) != a->rank)
        return zarr_fail(why, "it has not as many names of dimensions as dimensions");
    for (uint32_t d = 0; d < a->rank; d++)
        a->dimensions[d] = g_strdup(zarr_json_text(json_array_get(names, d)));
    return true;
}

/* ---- version 2 ------------------------------------------------------------------------------ */

static bool
parse2(const json_t *metadata, zarr_array *a, char why[200])
{
    const char *separator = zarr_json_text(json_object_get(metadata, "dimension_separator"));
    a->flat = true;
    a->separator = '.';
    if (separator != NULL && strcmp(separator, "/") == 0)
        a->separator = '/';
    else if (separator != NULL && strcmp(separator, ".") != 0)
        return zarr_fail(why, "it divides indices by '%.20s'", separator);
    return parse_shape(metadata, json_object_get(metadata, "chunks"), a, why) &&
           zarr_parse_type2(json_object_get(metadata, "dtype"), a, why) &&
           zarr_parse_codecs2(metadata, a, why) &&
           zarr_parse_fill(json_object_get(metadata, "fill_value"), a, why);
}

/* ---- version 3 ------------------------------------------------------------------------------ */

static bool
parse_keys(const json_t *encoding, zarr_array *a, char why[200])
{
    const json_t *configuration = json_object_get(encoding, "configuration");
    const char *name =
        zarr_json_text(json_is_object(encoding) ? json_object_get(encoding, "name") : encoding);
    const char *separator = zarr_json_text(json_object_get(configuration, "separator"));
    if (name == NULL || (strcmp(name, "default") != 0 && strcmp(name, "v2") != 0))
        return zarr_fail(why, "its chunks are named in an unknown way");
    a->flat = strcmp(name, "v2") == 0;
    a->separator = a->flat ? '.' : '/';
    if (separator == NULL)
        return true;
    if (strcmp(separator, "/") != 0 && strcmp(separator, ".") != 0)
        return zarr_fail(why, "it divides indices by '%.20s'", separator);
    a->separator = separator[0];
    return true;
}

static bool
parse3(const json_t *metadata, zarr_array *a, char why[200])
{
    const json_t *grid = json_object_get(metadata, "chunk_grid");
    const char *name = zarr_json_text(json_object_get(grid, "name"));
    const json_t *chunks = json_object_get(json_object_get(grid, "configuration"), "chunk_shape");
    if (name == NULL || strcmp(name, "regular") != 0)
        return zarr_fail(why, "its chunks are on no regular grid");
    if (json_array_size(json_object_get(metadata, "storage_transformers")) > 0)
        return zarr_fail(why, "it has storage transformers");
    return parse_shape(metadata, chunks, a, why) &&
           parse_keys(json_object_get(metadata, "chunk_key_encoding"), a, why) &&
           zarr_parse_type3(json_object_get(metadata, "data_type"), a, why) &&
           zarr_parse_codecs3(json_object_get(metadata, "codecs"), a, why) &&
           zarr_parse_fill(json_object_get(metadata, "fill_value"), a, why) &&
           parse_names(json_object_get(metadata, "dimension_names"), a, why);
}

bool
zarr_array_parse(const json_t *metadata, zarr_array *ret, char why[200])
{
    why[0] = '\0';
    ret->format = (int) json_integer_value(json_object_get(metadata, "zarr_format"));
    if (ret->format != 2 && ret->format != 3)
        return zarr_fail(why, "it is of version %d of Zarr; 2 and 3 are known", ret->format);
    return (ret->format == 2 ? parse2(metadata, ret, why) : parse3(metadata, ret, why)) &&
           check_sizes(ret, why);
}

void
zarr_array_clear(zarr_array *array)
{
    for (uint32_t d = 0; d < ESDM_MAX_RANK; d++)
        g_free(array->dimensions[d]);
    g_free(array->fill_text);
    *array = (zarr_array){0};
}

uint64_t
zarr_chunk_count(const zarr_array *array)
{
    uint64_t count = 1;
    for (uint32_t d = 0; d < array->rank; d++) {
        uint64_t along = (array->shape[d] + array->chunk[d] - 1) / array->chunk[d];
        if (__builtin_mul_overflow(count, along, &count))
            return UINT64_MAX;
    }
    return count;
}
