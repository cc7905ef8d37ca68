/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Codecs of Zarr, as filters that libesdm undoes. */

#include <string.h>

#include "refer/zarr.h"

/* ---- one codec ------------------------------------------------------------------------------ */

static bool
add(zarr_array *a, const char *codec, uint32_t nvalues, const uint32_t *values, char why[200])
{
    if (a->nfilters == ZARR_FILTERS_MAX)
        return zarr_fail(why, "it has more than %u codecs", ZARR_FILTERS_MAX);
    uint32_t i = a->nfilters++;
    for (uint32_t k = 0; k < nvalues; k++)
        a->values[i][k] = values[k];
    a->filters[i] = (esdm_file_filter){.codec = codec, .nvalues = nvalues, .values = a->values[i]};
    return true;
}

static bool
add_shuffle(zarr_array *a, const json_t *configuration, char why[200])
{
    const json_t *size = json_object_get(configuration, "elementsize");
    json_int_t bytes = size != NULL ? json_integer_value(size) : 4;
    if (bytes < 1 || bytes > 65536)
        return zarr_fail(why, "shuffle: elements of %" JSON_INTEGER_FORMAT " bytes", bytes);
    return add(a, "shuffle", 1, &(uint32_t){(uint32_t) bytes}, why);
}

static bool
add_delta(zarr_array *a, const json_t *configuration, char why[200])
{
    const char *from = zarr_json_text(json_object_get(configuration, "dtype"));
    const char *to = zarr_json_text(json_object_get(configuration, "astype"));
    if (a->kind != ZARR_NUMBER || (from != NULL && to != NULL && strcmp(from, to) != 0))
        return zarr_fail(why, "delta: from '%.20s' to '%.20s' cannot be undone",
                         from != NULL ? from : "", to != NULL ? to : "");
    uint32_t is_float = a->type == ESDM_TYPE_FLOAT32 || a->type == ESDM_TYPE_FLOAT64;
    return add(a, "delta", 3, (uint32_t[]){a->element_bytes, is_float, a->big_endian}, why);
}

static bool
add_codec(zarr_array *a, const char *name, const json_t *configuration, char why[200])
{
    static const char *const at_the_end[] = {"zlib",   "gzip",       "zstd",     "lz4",     "blosc",
                                             "crc32c", "fletcher32", "bitround", "quantize"};
    static const char *const at_the_start[] = {"crc32", "adler32"};
    if (g_str_has_prefix(name, "numcodecs."))
        name += strlen("numcodecs.");
    const char *location = zarr_json_text(json_object_get(configuration, "location"));
    bool end = location != NULL && strcmp(location, "end") == 0;
    if (strcmp(name, "shuffle") == 0)
        return add_shuffle(a, configuration, why);
    if (strcmp(name, "delta") == 0)
        return add_delta(a, configuration, why);
    for (size_t i = 0; i < G_N_ELEMENTS(at_the_end); i++) {
        if (strcmp(name, at_the_end[i]) == 0 && (location == NULL || end))
            return add(a, at_the_end[i], 0, NULL, why);
    }
    for (size_t i = 0; i < G_N_ELEMENTS(at_the_start); i++) {
        if (strcmp(name, at_the_start[i]) == 0 && !end)
            return add(a, at_the_start[i], 0, NULL, why);
    }
    return zarr_fail(why, "its codec '%.60s' cannot be undone", name);
}

/* ---- version 2 ------------------------------------------------------------------------------ */

static bool
parse_order(const json_t *metadata, zarr_array *a, char why[200])
{
    const char *order = zarr_json_text(json_object_get(metadata, "order"));
    if (order != NULL && strcmp(order, "C") == 0)
        return true;
    if (order == NULL || strcmp(order, "F") != 0)
        return zarr_fail(why, "its order is neither C nor F");
    a->ordered = a->rank > 1;
    for (uint32_t d = 0; d < a->rank; d++)
        a->order[d] = a->rank - 1 - d;
    return true;
}

bool
zarr_parse_codecs2(const json_t *metadata, zarr_array *a, char why[200])
{
    const json_t *filters = json_object_get(metadata, "filters");
    const json_t *compressor = json_object_get(metadata, "compressor");
    bool texts = false;
    if (filters != NULL && !json_is_null(filters) && !json_is_array(filters))
        return zarr_fail(why, "its filters are no list");
    if (!parse_order(metadata, a, why))
        return false;
    for (size_t i = 0; i < json_array_size(filters); i++) {
        const json_t *filter = json_array_get(filters, i);
        const char *id = zarr_json_text(json_object_get(filter, "id"));
        if (id == NULL)
            return zarr_fail(why, "it has a filter without a name");
        if (i == 0 && a->kind == ZARR_TEXT && strcmp(id, "vlen-utf8") == 0)
            texts = true;
        else if (!add_codec(a, id, filter, why))
            return false;
    }
    if (a->kind == ZARR_TEXT && !texts)
        return zarr_fail(why, "its elements are Python objects other than texts");
    if (compressor == NULL || json_is_null(compressor))
        return true;
    const char *id = zarr_json_text(json_object_get(compressor, "id"));
    return id != NULL ? add_codec(a, id, compressor, why)
                      : zarr_fail(why, "its compressor has no name");
}

/* ---- version 3 ------------------------------------------------------------------------------ */

static const char *
name_of(const json_t *codec)
{
    return zarr_json_text(json_is_object(codec) ? json_object_get(codec, "name") : codec);
}

/* Stored axis k is axis order[k] of what it had been, which itself may be transposed. */
static bool
transpose(zarr_array *a, const json_t *configuration, char why[200])
{
    const json_t *order = json_object_get(configuration, "order");
    const char *word = zarr_json_text(order);
    uint32_t now[ESDM_MAX_RANK] = {0}, seen = 0;
    if (word != NULL && strcmp(word, "C") == 0)
        return true;
    for (uint32_t d = 0; d < a->rank && !a->ordered; d++)
        a->order[d] = d;
    for (uint32_t k = 0; k < a->rank; k++) {
        json_int_t axis = word != NULL && strcmp(word, "F") == 0
                              ? (json_int_t) (a->rank - 1 - k)
                              : json_integer_value(json_array_get(order, k));
        if ((word == NULL && json_array_size(order) != a->rank) || axis < 0 ||
            axis >= (json_int_t) a->rank || (seen >> axis & 1u) != 0)
            return zarr_fail(why, "transpose: its order is none of its axes");
        seen |= 1u << axis;
        now[k] = a->order[axis];
    }
    memcpy(a->order, now, sizeof now);
    a->ordered = a->rank > 0;
    return true;
}

static bool
bytes(zarr_array *a, const json_t *configuration, char why[200])
{
    const char *endian = zarr_json_text(json_object_get(configuration, "endian"));
    if (endian != NULL && strcmp(endian, "little") != 0 && strcmp(endian, "big") != 0)
        return zarr_fail(why, "its byte order '%.20s' is unknown", endian);
    if (a->kind == ZARR_TEXT)
        return zarr_fail(why, "texts of any length are no bytes");
    a->big_endian = endian != NULL && strcmp(endian, "big") == 0;
    return true;
}

static bool
parse_index_codecs(const json_t *codecs, zarr_array *a, char why[200])
{
    const json_t *first = json_array_get(codecs, 0);
    const char *last = name_of(json_array_get(codecs, 1));
    const char *name = name_of(first);
    const char *endian =
        zarr_json_text(json_object_get(json_object_get(first, "configuration"), "endian"));
    size_t n = json_array_size(codecs);
    if (n < 1 || n > 2 || name == NULL || strcmp(name, "bytes") != 0 ||
        (endian != NULL && strcmp(endian, "little") != 0) ||
        (n == 2 && (last == NULL || strcmp(last, "crc32c") != 0)))
        return zarr_fail(why, "the index of its shards has other codecs than bytes and crc32c");
    a->index_has_sum = n == 2;
    return true;
}

static bool parse_chain(const json_t *codecs, zarr_array *a, char why[200]);

static bool
shards(const json_t *configuration, zarr_array *a, char why[200])
{
    const char *location = zarr_json_text(json_object_get(configuration, "index_location"));
    if (a->sharded)
        return zarr_fail(why, "it has shards in shards");
    a->sharded = true;
    memcpy(a->file, a->chunk, sizeof a->file);
    if (!zarr_parse_lengths(json_object_get(configuration, "chunk_shape"), a->rank, 1, a->chunk))
        return zarr_fail(why, "the chunks of its shards have no shape");
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->file[d] % a->chunk[d] != 0)
            return zarr_fail(why, "its shards are no multiple of their chunks");
    }
    if (location != NULL && strcmp(location, "start") != 0 && strcmp(location, "end") != 0)
        return zarr_fail(why, "the index of its shards is at '%.20s'", location);
    a->index_at_start = location != NULL && strcmp(location, "start") == 0;
    return parse_index_codecs(json_object_get(configuration, "index_codecs"), a, why) &&
           parse_chain(json_object_get(configuration, "codecs"), a, why);
}

/* @param serial whether the elements have become bytes. */
static bool
parse_one(const json_t *codec, bool *serial, zarr_array *a, char why[200])
{
    const json_t *configuration = json_object_get(codec, "configuration");
    const char *name = name_of(codec);
    if (name == NULL)
        return zarr_fail(why, "it has a codec without a name");
    if (strcmp(name, "transpose") == 0) {
        if (*serial || a->nfilters > 0)
            return zarr_fail(why, "its axes are transposed after other codecs");
        return transpose(a, configuration, why);
    }
    bool texts = strcmp(name, "vlen-utf8") == 0;
    if (!texts && strcmp(name, "bytes") != 0)
        return add_codec(a, name, configuration, why);
    if (*serial || (texts && a->kind != ZARR_TEXT))
        return zarr_fail(why, "its codecs contradict each other");
    *serial = true;
    return texts || bytes(a, configuration, why);
}

static bool
parse_chain(const json_t *codecs, zarr_array *a, char why[200])
{
    bool serial = false;
    size_t n = json_array_size(codecs);
    for (size_t i = 0; i < n; i++) {
        const json_t *codec = json_array_get(codecs, i);
        const char *name = name_of(codec);
        if (name != NULL && strcmp(name, "sharding_indexed") == 0)
            return n == 1 ? shards(json_object_get(codec, "configuration"), a, why)
                          : zarr_fail(why, "it has codecs around its shards");
        if (!parse_one(codec, &serial, a, why))
            return false;
    }
    return serial || zarr_fail(why, "no codec makes bytes of its elements");
}

bool
zarr_parse_codecs3(const json_t *codecs, zarr_array *a, char why[200])
{
    if (!parse_chain(codecs, a, why))
        return false;
    for (uint32_t i = 0; i < a->nfilters; i++) { /* the byte order is stated behind it */
        if (strcmp(a->filters[i].codec, "delta") == 0)
            a->values[i][2] = a->big_endian;
    }
    return true;
}
