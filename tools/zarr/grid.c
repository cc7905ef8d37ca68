/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The grid of chunks of an array of Zarr. */

#include "zarr/zarr.h"

#include <string.h>

#define SMALL_STEP  (4u << 10)  /* bytes of one index of an unlimited dimension */
#define SMALL_CHUNK (64u << 10) /* of such; those of larger steps have LARGE_CHUNK */
#define LARGE_CHUNK (1u << 20)
#define TEXT_BYTES  64u /* that a text is counted as */

/* Bytes of an element, as far as they can be told. */
static uint64_t
element_bytes(const cp_dataset *d)
{
    return MAX(d->type->bytes, 1) + (d->type->varies ? TEXT_BYTES : 0);
}

/* Bytes of a chunk but for one axis, or UINT64_MAX. */
static uint64_t
bytes_beside(const cp_dataset *d, const uint64_t *chunk, uint32_t axis)
{
    uint64_t bytes = element_bytes(d);
    for (uint32_t i = 0; i < d->rank; i++) {
        if (i != axis && __builtin_mul_overflow(bytes, chunk[i], &bytes))
            return UINT64_MAX;
    }
    return bytes;
}

/* Cuts the slowest axes until the chunk is no larger. */
static void
shrink(const cp_dataset *d, uint64_t *chunk, uint64_t most)
{
    for (uint32_t i = 0; i < d->rank; i++)
        chunk[i] = MIN(chunk[i], MAX(most / bytes_beside(d, chunk, i), 1));
}

void
zarr_chunk(const cp_dataset *d, uint64_t most, uint64_t *ret_chunk)
{
    uint32_t growing = d->rank; /* the first unlimited axis */
    for (uint32_t i = d->rank; i-- > 0;) {
        uint64_t length = MAX(d->dimensions[i]->length, 1);
        bool unlimited = d->dimensions[i]->unlimited;
        if (d->chunk != NULL)
            ret_chunk[i] = unlimited ? MAX(d->chunk[i], 1) : CLAMP(d->chunk[i], 1, length);
        else
            ret_chunk[i] = unlimited ? 1 : length;
        if (unlimited)
            growing = i;
    }
    shrink(d, ret_chunk, d->chunk != NULL ? most : ZARR_CHUNK_USUAL);
    if (d->chunk != NULL || growing == d->rank)
        return;
    uint64_t step = bytes_beside(d, ret_chunk, growing);
    ret_chunk[growing] = MAX((step < SMALL_STEP ? SMALL_CHUNK : LARGE_CHUNK) / step, 1);
}

uint64_t
zarr_chunk_bytes(const cp_dataset *d, const uint64_t *chunk)
{
    uint64_t bytes = d->type->bytes;
    for (uint32_t i = 0; i < d->rank; i++)
        bytes *= chunk[i];
    return bytes;
}

/* "/12", without needless zeros. */
static bool
take_index(const char **key, uint64_t *ret)
{
    const char *at = *key;
    char *end = NULL;
    if (at[0] != '/' || !g_ascii_isdigit(at[1]) || (at[1] == '0' && g_ascii_isdigit(at[2])))
        return false;
    size_t digits = strspn(at + 1, "0123456789");
    if (digits > 19)
        return false;
    *ret = g_ascii_strtoull(at + 1, &end, 10);
    *key = end;
    return true;
}

bool
zarr_chunk_number(const cp_dataset *d, const uint64_t *chunk, const char *key, uint64_t *ret_number)
{
    uint64_t number = 0, index = 0;
    if (*key++ != 'c')
        return false;
    for (uint32_t i = 0; i < d->rank; i++) {
        uint64_t length = d->dimensions[i]->length, along = length / chunk[i];
        along += length % chunk[i] != 0;
        if (!take_index(&key, &index) || index >= along ||
            __builtin_mul_overflow(number, along, &number) ||
            __builtin_add_overflow(number, index, &number))
            return false;
    }
    *ret_number = number;
    return *key == '\0';
}
