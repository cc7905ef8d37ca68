/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/foreign.h"

#include <string.h>
#if defined(__SSE2__)
#include <emmintrin.h>
#endif

#include "base/error.h"
#include "base/scratch.h"
#include "plugin/registry.h"

enum { DEFLATE = 1, SHUFFLE = 2, FLETCHER32 = 3, ZSTD = 32015 };

/* ---- shuffle ------------------------------------------------------------------------------ */

#if defined(__SSE2__)
/* 16 elements of 4 bytes at once. Returns how many elements are done. */
static size_t
unshuffle4(const uint8_t *from, uint8_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *) (from + i));
        __m128i b = _mm_loadu_si128((const __m128i *) (from + n + i));
        __m128i c = _mm_loadu_si128((const __m128i *) (from + 2 * n + i));
        __m128i d = _mm_loadu_si128((const __m128i *) (from + 3 * n + i));
        __m128i ab0 = _mm_unpacklo_epi8(a, b), ab1 = _mm_unpackhi_epi8(a, b);
        __m128i cd0 = _mm_unpacklo_epi8(c, d), cd1 = _mm_unpackhi_epi8(c, d);
        __m128i *out = (__m128i *) (to + 4 * i);
        _mm_storeu_si128(out, _mm_unpacklo_epi16(ab0, cd0));
        _mm_storeu_si128(out + 1, _mm_unpackhi_epi16(ab0, cd0));
        _mm_storeu_si128(out + 2, _mm_unpacklo_epi16(ab1, cd1));
        _mm_storeu_si128(out + 3, _mm_unpackhi_epi16(ab1, cd1));
    }
    return i;
}

static size_t
unshuffle2(const uint8_t *from, uint8_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i a = _mm_loadu_si128((const __m128i *) (from + i));
        __m128i b = _mm_loadu_si128((const __m128i *) (from + n + i));
        __m128i *out = (__m128i *) (to + 2 * i);
        _mm_storeu_si128(out, _mm_unpacklo_epi8(a, b));
        _mm_storeu_si128(out + 1, _mm_unpackhi_epi8(a, b));
    }
    return i;
}

static size_t
unshuffle8(const uint8_t *from, uint8_t *to, size_t n)
{
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        __m128i v[8], w[8];
        for (size_t k = 0; k < 8; k++)
            v[k] = _mm_loadu_si128((const __m128i *) (from + k * n + i));
        for (size_t k = 0; k < 4; k++) { /* bytes 2k and 2k+1 of elements 0-7, 8-15 */
            w[k] = _mm_unpacklo_epi8(v[2 * k], v[2 * k + 1]);
            w[k + 4] = _mm_unpackhi_epi8(v[2 * k], v[2 * k + 1]);
        }
        __m128i *out = (__m128i *) (to + 8 * i);
        for (size_t h = 0; h < 2; h++) {
            const __m128i *p = w + 4 * h;
            __m128i lo0 = _mm_unpacklo_epi16(p[0], p[1]), lo1 = _mm_unpackhi_epi16(p[0], p[1]);
            __m128i hi0 = _mm_unpacklo_epi16(p[2], p[3]), hi1 = _mm_unpackhi_epi16(p[2], p[3]);
            _mm_storeu_si128(out + 4 * h, _mm_unpacklo_epi32(lo0, hi0));
            _mm_storeu_si128(out + 4 * h + 1, _mm_unpackhi_epi32(lo0, hi0));
            _mm_storeu_si128(out + 4 * h + 2, _mm_unpacklo_epi32(lo1, hi1));
            _mm_storeu_si128(out + 4 * h + 3, _mm_unpackhi_epi32(lo1, hi1));
        }
    }
    return i;
}
#endif

void
esdm__unshuffle(size_t size, const uint8_t *from, uint8_t *to, size_t bytes)
{
    size_t n = size > 0 ? bytes / size : 0;
    size_t done = 0;
#if defined(__SSE2__)
    done = size == 2   ? unshuffle2(from, to, n)
           : size == 4 ? unshuffle4(from, to, n)
           : size == 8 ? unshuffle8(from, to, n)
                       : 0;
#endif
    for (size_t k = 0; k < size; k++) {
        for (size_t i = done; i < n; i++)
            to[i * size + k] = from[k * n + i];
    }
    memcpy(to + n * size, from + n * size, bytes - n * size);
}

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

static size_t
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

static esdm_status
decompress(const char *name, const esdm__decoding *decoding, const uint8_t *from, size_t from_bytes,
           uint8_t *to, size_t to_bytes, esdm_error *err)
{
    const esdm_plugin *plugin = NULL;
    esdm_codec_input input = {.element_bytes = decoding->element_bytes};
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
    if (filter->id == SHUFFLE)
        esdm__unshuffle(shuffle_size(decoding, filter), c->data, to, bytes);
    else
        status = decompress(filter->id == DEFLATE ? "deflate" : "zstd", decoding, c->data, c->bytes,
                            to, bytes, err);
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
