/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Filters of HDF5 and Zarr, undone one after the other: what all of them are about. */

#include "io/read/foreign.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "io/read/foreign_codecs.h"
#include "plugin/registry.h"

/* ---- checksum, byte order ----------------------------------------------------------------- */

uint32_t
esdm__fletcher32(const uint8_t *data, size_t bytes)
{
    uint32_t sum1 = 0, sum2 = 0;
    size_t words = bytes / 2;
    while (words > 0) {
        size_t n = words > 360 ? 360 : words; /* no sum exceeds 32 bits so far */
        words -= n;
        for (; n > 0; n--, data += 2) {
            sum1 += (uint32_t) data[0] << 8 | data[1];
            sum2 += sum1;
        }
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    if (bytes % 2 != 0) {
        sum1 += (uint32_t) *data << 8;
        sum2 += sum1;
        sum1 = (sum1 & 0xffff) + (sum1 >> 16);
        sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    }
    sum1 = (sum1 & 0xffff) + (sum1 >> 16);
    sum2 = (sum2 & 0xffff) + (sum2 >> 16);
    return sum2 << 16 | sum1;
}

void
esdm__swap_bytes(size_t size, uint8_t *data, size_t elements)
{
    for (size_t i = 0; i < elements && size > 1; i++, data += size) {
        uint16_t v2;
        uint32_t v4;
        uint64_t v8;
        if (size == 4) {
            memcpy(&v4, data, 4);
            v4 = __builtin_bswap32(v4);
            memcpy(data, &v4, 4);
        } else if (size == 8) {
            memcpy(&v8, data, 8);
            v8 = __builtin_bswap64(v8);
            memcpy(data, &v8, 8);
        } else if (size == 2) {
            memcpy(&v2, data, 2);
            v2 = __builtin_bswap16(v2);
            memcpy(data, &v2, 2);
        }
    }
}

/* ---- chains ------------------------------------------------------------------------------- */

typedef enum kind {
    UNKNOWN,
    DEFLATE, /* zlib or gzip */
    SHUFFLE,
    FLETCHER32, /* a checksum behind the bytes */
    ZSTD,
    BLOSC,
    LZ4,      /* of numcodecs: the length, then a block */
    CRC32C,   /* a checksum behind the bytes */
    SUM_HEAD, /* a checksum before the bytes, which is passed over */
    DELTA,
    GRIB,       /* a message, of which numbers are made */
    GRIB_FIELD, /* one of several fields of a message, as a message */
    NOTHING     /* changes nothing when it is undone */
} kind;

typedef struct known {
    const char *name;
    uint32_t id;
    const char *codec;
    kind kind;
} known;

/* Filters by their numbers in HDF5, codecs by their names in Zarr. */
static const known filters_known[] = {
    {"hdf5", 1, "", DEFLATE},
    {"hdf5", 2, "", SHUFFLE},
    {"hdf5", 3, "", FLETCHER32},
    {"hdf5", 32001, "", BLOSC},
    {"hdf5", 32015, "", ZSTD},
    {"zarr", 0, "zlib", DEFLATE},
    {"zarr", 0, "gzip", DEFLATE},
    {"zarr", 0, "zstd", ZSTD},
    {"zarr", 0, "blosc", BLOSC},
    {"zarr", 0, "lz4", LZ4},
    {"zarr", 0, "shuffle", SHUFFLE},
    {"zarr", 0, "crc32c", CRC32C},
    {"zarr", 0, "crc32", SUM_HEAD},
    {"zarr", 0, "adler32", SUM_HEAD},
    {"zarr", 0, "fletcher32", FLETCHER32},
    {"zarr", 0, "delta", DELTA},
    {"grib", 0, "grib", GRIB},
    {"grib", 0, "grib-field", GRIB_FIELD},
    {"zarr", 0, "transpose", NOTHING}, /* of axes: whoever takes elements out does it */
    {"zarr", 0, "bitround", NOTHING},
    {"zarr", 0, "quantize", NOTHING},
};

static kind
kind_of(const esdm__filter *filter)
{
    for (size_t i = 0; i < sizeof filters_known / sizeof *filters_known; i++) {
        const known *k = &filters_known[i];
        if (filter->id == k->id && strcmp(filter->name, k->name) == 0 &&
            (k->id != 0 || strcmp(filter->codec, k->codec) == 0))
            return k->kind;
    }
    return UNKNOWN;
}

bool
esdm__filter_is_known(const esdm__filter *filter)
{
    return kind_of(filter) != UNKNOWN;
}

/* Bytes that filter i was given, of a chunk of raw_bytes; 0: they cannot be known. */
static size_t
bytes_before(const esdm__decoding *decoding, uint32_t mask, uint32_t i, size_t raw_bytes)
{
    size_t bytes = raw_bytes;
    for (uint32_t k = 0; k < i && bytes > 0; k++) {
        kind is = kind_of(&decoding->filters[k]);
        if ((mask >> k & 1u) != 0 || is == SHUFFLE || is == DELTA || is == NOTHING)
            continue;
        if (is != FLETCHER32 && is != CRC32C && is != SUM_HEAD)
            return 0;
        bytes += 4;
    }
    return bytes;
}

/* Bytes that come out, as a stream says itself; 0: it does not. */
static size_t
bytes_told(kind is, const uint8_t *data, size_t bytes)
{
    switch (is) {
    case BLOSC:
        return esdm__blosc_raw_bytes(data, bytes);
    case LZ4:
        return bytes >= 4 ? esdm__little_u32(data) : 0;
    case ZSTD:
        return esdm__zstd_raw_bytes(data, bytes);
    case DEFLATE: /* gzip has it at its end */
        return bytes >= 18 && data[0] == 0x1f && data[1] == 0x8b
                   ? esdm__little_u32(data + bytes - 4)
                   : 0;
    default:
        return bytes;
    }
}

static uint32_t
shuffle_size(const esdm__decoding *decoding, const esdm__filter *filter)
{
    uint32_t size = decoding->element_bytes;
    if (filter->parameter_bytes >= sizeof size)
        memcpy(&size, filter->parameters, sizeof size);
    return size;
}

static esdm_status
check_fletcher(const uint8_t *data, size_t bytes, esdm_error *err)
{
    uint32_t stored = esdm__little_u32(data + bytes - 4);
    uint32_t sum = esdm__fletcher32(data, bytes - 4);
    /* Old versions of HDF5 swapped the bytes of each half. */
    uint32_t other = (sum & 0x00ff00ffu) << 8 | (sum >> 8 & 0x00ff00ffu);
    if (stored == sum || stored == other)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT, "its checksum (fletcher32) is wrong");
}

static esdm_status
check_crc32c(const uint8_t *data, size_t bytes, esdm_error *err)
{
    if (esdm__little_u32(data + bytes - 4) == esdm__crc32c(data, bytes - 4))
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT, "its checksum (crc32c) is wrong");
}

/* The filters that our codecs undo have the same stored form. */
esdm_status
esdm__filter_decode(const char *codec, uint32_t element_bytes, const uint8_t *from,
                    size_t from_bytes, uint8_t *to, size_t to_bytes, esdm_error *err)
{
    const esdm_plugin *plugin = NULL;
    esdm_codec_input input = {.element_bytes = element_bytes};
    esdm_status status = esdm__plugin_find(ESDM_PLUGIN_CODEC, codec, &plugin, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, ESDM_ENOTSUP, "the codec '%s' is not installed", codec);
    return ((const esdm_codec_plugin *) plugin)
        ->decode(&input, from, from_bytes, to, to_bytes, err);
}

/* What one step works on. `data` moves from one piece of memory to the next. */
typedef struct chain {
    uint8_t *data;
    size_t bytes;
    uint8_t *own; /* owned; where data is when it is neither the caller's */
    uint8_t *raw; /* the caller's: where the last step puts it; NULL: nowhere */
    bool last;
} chain;

static esdm_status
next_room(chain *c, size_t bytes, uint8_t **ret, esdm_error *err)
{
    *ret = c->last && c->raw != NULL ? c->raw : esdm__scratch_new(bytes);
    return *ret != NULL ? ESDM_OK : esdm__error_nomem(err, bytes, "a chunk");
}

static void
move_on(chain *c, uint8_t *data, size_t bytes)
{
    esdm__scratch_free(c->own);
    c->own = data != c->raw ? data : NULL;
    c->data = data;
    c->bytes = bytes;
}

static esdm_status
undo_delta(const chain *c, const esdm__filter *filter, esdm_error *err)
{
    esdm__delta delta;
    if (filter->parameter_bytes != sizeof delta)
        return esdm__error_set(err, ESDM_ECORRUPT, "delta: it does not say of what");
    memcpy(&delta, filter->parameters, sizeof delta);
    return esdm__delta_undo(&delta, c->data, c->bytes, err);
}

/* Filters that leave bytes where they are. */
static esdm_status
undo_in_place(chain *c, kind is, const esdm__filter *filter, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    if (is == NOTHING)
        return ESDM_OK;
    if (is == DELTA)
        return undo_delta(c, filter, err);
    if (c->bytes < 4)
        return esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes, without their checksum", c->bytes);
    if (is == FLETCHER32)
        status = check_fletcher(c->data, c->bytes, err);
    else if (is == CRC32C)
        status = check_crc32c(c->data, c->bytes, err);
    else
        c->data += 4;
    c->bytes -= status == ESDM_OK ? 4 : 0;
    return status;
}

static esdm_status
undo_field(chain *c, const esdm__filter *filter, esdm_error *err)
{
    uint32_t field;
    uint8_t *message = NULL;
    size_t bytes = 0;
    if (filter->parameter_bytes != sizeof field)
        return esdm__error_set(err, ESDM_ECORRUPT, "grib-field: it does not say which");
    memcpy(&field, filter->parameters, sizeof field);
    esdm_status status = esdm__grib_field(c->data, c->bytes, field, &message, &bytes, err);
    if (status == ESDM_OK)
        move_on(c, message, bytes);
    return status;
}

static esdm_status
undo_to(const chain *c, kind is, uint32_t element_bytes, uint8_t *to, size_t bytes, esdm_error *err)
{
    switch (is) {
    case SHUFFLE:
        return esdm__filter_decode("shuffle", element_bytes, c->data, c->bytes, to, bytes, err);
    case DEFLATE:
        return esdm__filter_decode("deflate", element_bytes, c->data, c->bytes, to, bytes, err);
    case BLOSC:
        return esdm__blosc_decode(c->data, c->bytes, to, bytes, err);
    case GRIB:
        return esdm__filter_decode("grib", element_bytes, c->data, c->bytes, to, bytes, err);
    case LZ4:
        if (c->bytes < 4 || esdm__little_u32(c->data) != bytes)
            return esdm__error_set(err, ESDM_ECORRUPT, "lz4: not %zu bytes come out", bytes);
        return esdm__filter_decode("lz4", element_bytes, c->data + 4, c->bytes - 4, to, bytes, err);
    default:
        return esdm__filter_decode("zstd", element_bytes, c->data, c->bytes, to, bytes, err);
    }
}

/* No codec makes more of its bytes than that (zstd's runs are the longest): a larger length that
 * the bytes themselves tell is not allocated. */
#define TOLD_BYTES ((size_t) 64 << 20)
#define TOLD_RATIO 65536u

static esdm_status
undo(chain *c, const esdm__decoding *decoding, uint32_t i, size_t before, esdm_error *err)
{
    const esdm__filter *filter = &decoding->filters[i];
    kind is = kind_of(filter);
    uint8_t *to = NULL;
    if (is == UNKNOWN)
        return esdm__error_set(err, ESDM_ENOTSUP, "filter %s %u%s cannot be undone here",
                               filter->name, filter->id, filter->codec);
    if (is == NOTHING || is == DELTA || is == FLETCHER32 || is == CRC32C || is == SUM_HEAD)
        return undo_in_place(c, is, filter, err);
    if (is == GRIB_FIELD)
        return undo_field(c, filter, err);
    size_t bytes = is == SHUFFLE ? c->bytes : before;
    if (bytes == 0)
        bytes = bytes_told(is, c->data, c->bytes);
    if (before == 0 && bytes > TOLD_BYTES && bytes / TOLD_RATIO > c->bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes cannot become %zu", c->bytes, bytes);
    if (bytes == 0 || bytes > ESDM__CHUNK_BYTES_MAX ||
        (is == SHUFFLE && c->last && c->raw != NULL && bytes != before))
        return esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes instead of %zu", c->bytes, before);
    esdm_status status = next_room(c, bytes, &to, err);
    if (status != ESDM_OK)
        return status;
    status =
        undo_to(c, is, is == SHUFFLE ? shuffle_size(decoding, filter) : decoding->element_bytes, to,
                bytes, err);
    if (status == ESDM_OK)
        move_on(c, to, bytes);
    else if (to != c->raw)
        esdm__scratch_free(to);
    return status;
}

/* Whether no filter below i moves bytes to other memory. */
static bool
is_last(uint32_t mask, uint32_t i)
{
    while (i-- > 0) {
        if ((mask >> i & 1u) == 0)
            return false;
    }
    return true;
}

static esdm_status
undo_all(chain *c, const esdm__decoding *decoding, uint32_t mask, size_t raw_bytes, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (uint32_t i = decoding->nfilters; i-- > 0 && status == ESDM_OK;) {
        if ((mask >> i & 1u) != 0)
            continue;
        c->last = is_last(mask, i);
        status = undo(c, decoding, i, bytes_before(decoding, mask, i, raw_bytes), err);
    }
    return status;
}

uint32_t
esdm__filters_part(const esdm__decoding *decoding)
{
    uint32_t field = 0;
    for (uint32_t i = 0; i < decoding->nfilters; i++) {
        const esdm__filter *f = &decoding->filters[i];
        if (kind_of(f) == GRIB_FIELD && f->parameter_bytes == sizeof field)
            memcpy(&field, f->parameters, sizeof field);
    }
    return field;
}

esdm_status
esdm__filters_undo(const esdm__decoding *decoding, uint32_t mask, uint8_t *stored,
                   size_t stored_bytes, uint8_t *raw, size_t raw_bytes, esdm_error *err)
{
    chain c = {.data = stored, .bytes = stored_bytes, .raw = raw};
    esdm_status status = undo_all(&c, decoding, mask, raw_bytes, err);
    if (status == ESDM_OK && c.bytes != raw_bytes)
        status = esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes come out instead of %zu", c.bytes,
                                 raw_bytes);
    if (status == ESDM_OK && c.data != raw)
        memcpy(raw, c.data, raw_bytes);
    esdm__scratch_free(c.own);
    return status;
}

esdm_status
esdm__filters_undo_any(const esdm__decoding *decoding, uint8_t *stored, size_t stored_bytes,
                       uint8_t **ret_raw, size_t *ret_bytes, esdm_error *err)
{
    chain c = {.data = stored, .bytes = stored_bytes};
    uint8_t *raw = NULL;
    esdm_status status = undo_all(&c, decoding, 0, 0, err);
    if (status == ESDM_OK && (raw = malloc(c.bytes + 1)) == NULL)
        status = esdm__error_nomem(err, c.bytes, "a chunk");
    if (status == ESDM_OK) {
        memcpy(raw, c.data, c.bytes);
        *ret_raw = raw;
        *ret_bytes = c.bytes;
    }
    esdm__scratch_free(c.own);
    return status;
}
