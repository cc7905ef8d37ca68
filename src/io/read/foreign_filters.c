/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The filters of HDF5 and netCDF, undone: byte order, Fletcher-32, shuffle, deflate. */

#include "io/read/foreign.h"

#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "plugin/registry.h"

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, ZSTD = 32015 };

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

static bool
is_hdf5(const esdm__filter *filter)
{
    return strcmp(filter->name, "hdf5") == 0;
}

/* Bytes that filter i was given, of a chunk of raw_bytes; 0: they cannot be known. */
static size_t
bytes_before(const esdm__decoding *decoding, uint32_t mask, uint32_t i, size_t raw_bytes)
{
    size_t bytes = raw_bytes;
    for (uint32_t k = 0; k < i; k++) {
        uint32_t id = decoding->filters[k].id;
        if ((mask >> k & 1u) != 0 || id == SHUFFLE)
            continue;
        if (id != FLETCHER32)
            return 0;
        bytes += 4;
    }
    return bytes;
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
    uint32_t stored;
    if (bytes < 4)
        return esdm__error_set(err, ESDM_ECORRUPT, "fletcher32: %zu bytes", bytes);
    memcpy(&stored, data + bytes - 4, 4);
    uint32_t sum = esdm__fletcher32(data, bytes - 4);
    /* Old versions of HDF5 swapped the bytes of each half. */
    uint32_t other = (sum & 0x00ff00ffu) << 8 | (sum >> 8 & 0x00ff00ffu);
    if (stored == sum || stored == other)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT, "its checksum (fletcher32) is wrong");
}

/* The filters that our codecs undo have the same stored form. */
static esdm_status
decode(const char *name, uint32_t element_bytes, const uint8_t *from, size_t from_bytes,
       uint8_t *to, size_t to_bytes, esdm_error *err)
{
    const esdm_plugin *plugin = NULL;
    esdm_codec_input input = {.element_bytes = element_bytes};
    esdm_status status = esdm__plugin_find(ESDM_PLUGIN_CODEC, name, &plugin, err);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, ESDM_ENOTSUP, "the codec '%s' is not installed", name);
    return ((const esdm_codec_plugin *) plugin)
        ->decode(&input, from, from_bytes, to, to_bytes, err);
}

/* What one step works on. `data` moves from one piece of memory to the next. */
typedef struct chain {
    uint8_t *data;
    size_t bytes;
    uint8_t *own; /* owned; where data is when it is neither the caller's */
    uint8_t *raw; /* the caller's: where the last step puts it */
    bool last;
} chain;

static esdm_status
next_room(chain *c, size_t bytes, uint8_t **ret, esdm_error *err)
{
    *ret = c->last ? c->raw : esdm__scratch_new(bytes);
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
undo(chain *c, const esdm__decoding *decoding, uint32_t i, size_t before, esdm_error *err)
{
    const esdm__filter *filter = &decoding->filters[i];
    uint8_t *to = NULL;
    if (!is_hdf5(filter) || (filter->id != DEFLATE && filter->id != SHUFFLE &&
                             filter->id != FLETCHER32 && filter->id != ZSTD))
        return esdm__error_set(err, ESDM_ENOTSUP, "filter %s %u cannot be undone here",
                               filter->name, filter->id);
    if (filter->id == FLETCHER32) {
        esdm_status status = check_fletcher(c->data, c->bytes, err);
        c->bytes -= status == ESDM_OK ? 4 : 0;
        return status;
    }
    size_t bytes = filter->id == SHUFFLE ? c->bytes : before;
    if (bytes == 0 || (filter->id == SHUFFLE && c->last && bytes != before))
        return esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes instead of %zu", c->bytes, before);
    esdm_status status = next_room(c, bytes, &to, err);
    if (status != ESDM_OK)
        return status;
    const char *codec = filter->id == SHUFFLE   ? "shuffle"
                        : filter->id == DEFLATE ? "deflate"
                                                : "zstd";
    uint32_t size =
        filter->id == SHUFFLE ? shuffle_size(decoding, filter) : decoding->element_bytes;
    status = decode(codec, size, c->data, c->bytes, to, bytes, err);
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

esdm_status
esdm__filters_undo(const esdm__decoding *decoding, uint32_t mask, uint8_t *stored,
                   size_t stored_bytes, uint8_t *raw, size_t raw_bytes, esdm_error *err)
{
    chain c = {.data = stored, .bytes = stored_bytes, .raw = raw};
    esdm_status status = ESDM_OK;
    for (uint32_t i = decoding->nfilters; i-- > 0 && status == ESDM_OK;) {
        if ((mask >> i & 1u) != 0)
            continue;
        c.last = is_last(mask, i);
        status = undo(&c, decoding, i, bytes_before(decoding, mask, i, raw_bytes), err);
    }
    if (status == ESDM_OK && c.bytes != raw_bytes)
        status = esdm__error_set(err, ESDM_ECORRUPT, "%zu bytes come out instead of %zu", c.bytes,
                                 raw_bytes);
    if (status == ESDM_OK && c.data != raw)
        memcpy(raw, c.data, raw_bytes);
    esdm__scratch_free(c.own);
    return status;
}
