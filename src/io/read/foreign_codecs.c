/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Filters of Zarr that work on numbers, its checksum, and lengths that zstd tells. */

#include <pthread.h>
#include <string.h>

#include "base/error.h"
#include "io/read/foreign.h"
#include "io/read/foreign_codecs.h"

/* ---- CRC-32C -------------------------------------------------------------------------------- */

/* Eight bytes at a time: table[k] advances a byte by k further ones. */
static uint32_t table[8][256];
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
fill(void)
{
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t c = i;
        for (unsigned k = 0; k < 8; k++)
            c = (c >> 1) ^ ((c & 1) != 0 ? 0x82f63b78u : 0);
        table[0][i] = c;
    }
    for (uint32_t i = 0; i < 256; i++) {
        for (unsigned k = 1; k < 8; k++)
            table[k][i] = table[0][table[k - 1][i] & 255] ^ table[k - 1][i] >> 8;
    }
}

uint32_t
esdm__crc32c(const uint8_t *data, size_t bytes)
{
    uint32_t c = UINT32_MAX;
    (void) pthread_once(&once, fill);
    for (; bytes >= 8; bytes -= 8, data += 8) {
        uint32_t low, high;
        memcpy(&low, data, 4);
        memcpy(&high, data + 4, 4);
        low ^= c;
        c = table[7][low & 255] ^ table[6][low >> 8 & 255] ^ table[5][low >> 16 & 255] ^
            table[4][low >> 24] ^ table[3][high & 255] ^ table[2][high >> 8 & 255] ^
            table[1][high >> 16 & 255] ^ table[0][high >> 24];
    }
    for (; bytes > 0; bytes--)
        c = table[0][(c ^ *data++) & 255] ^ c >> 8;
    return ~c;
}

/* ---- differences ---------------------------------------------------------------------------- */

#define SUM_UP(type)                                                                               \
    do {                                                                                           \
        type sum = 0, value;                                                                       \
        for (size_t i = 0; i < n; i++) {                                                           \
            memcpy(&value, data + i * sizeof value, sizeof value);                                 \
            sum = (type) (sum + value);                                                            \
            memcpy(data + i * sizeof value, &sum, sizeof value);                                   \
        }                                                                                          \
    } while (0)

esdm_status
esdm__delta_undo(const esdm__delta *delta, uint8_t *data, size_t bytes, esdm_error *err)
{
    size_t size = delta->element_bytes;
    if ((size != 1 && size != 2 && size != 4 && size != 8) || bytes % size != 0 ||
        (delta->is_float != 0 && size < 4))
        return esdm__error_set(err, ESDM_ECORRUPT, "delta: %zu bytes of %zu each", bytes, size);
    size_t n = bytes / size;
    if (delta->big_endian != 0)
        esdm__swap_bytes(size, data, n);
    if (delta->is_float != 0 && size == 4)
        SUM_UP(float);
    else if (delta->is_float != 0)
        SUM_UP(double);
    else if (size == 1)
        SUM_UP(uint8_t);
    else if (size == 2)
        SUM_UP(uint16_t);
    else if (size == 4)
        SUM_UP(uint32_t);
    else
        SUM_UP(uint64_t);
    if (delta->big_endian != 0)
        esdm__swap_bytes(size, data, n);
    return ESDM_OK;
}

/* ---- zstd ----------------------------------------------------------------------------------- */

size_t
esdm__zstd_raw_bytes(const uint8_t *data, size_t bytes)
{
    static const uint8_t lengths[] = {0, 2, 4, 8}, names[] = {0, 1, 2, 4};
    if (bytes < 6 || memcmp(data, "\x28\xb5\x2f\xfd", 4) != 0)
        return 0;
    bool single = (data[4] & 0x20) != 0;
    size_t at = 5 + (single ? 0u : 1u) + names[data[4] & 3];
    size_t n = data[4] >> 6 == 0 && single ? 1 : lengths[data[4] >> 6];
    uint64_t value = 0;
    if (n == 0 || at + n > bytes)
        return 0;
    for (size_t i = 0; i < n; i++)
        value |= (uint64_t) data[at + i] << (8 * i);
    return (size_t) (n == 2 ? value + 256 : value);
}
