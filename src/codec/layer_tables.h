/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_LAYER_TABLES_H
#define ESDM_CODEC_LAYER_TABLES_H

/**
 * @file
 * What codec/layer_model.h stores beside its words: the tables of how often symbols occur in each
 * context, and the loose bits of large differences.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Frequencies of a table add up to this. */
#define ESDM__LAYER_TOTAL_BITS 12u
#define ESDM__LAYER_TOTAL      (1u << ESDM__LAYER_TOTAL_BITS)

/* Symbols: 0 keeps a number, 1 to ESDM__LAYER_DIRECT are left-overs of 0 to ESDM__LAYER_DIRECT - 1,
 * others their size and the bit behind the first one; the rest of the bits is stored loose. */
#define ESDM__LAYER_DIRECT      32u
#define ESDM__LAYER_DIRECT_BITS 5u
#define ESDM__LAYER_SYMBOLS     (1u + ESDM__LAYER_DIRECT + 2u * (64u - ESDM__LAYER_DIRECT_BITS))

#define ESDM__LAYER_ACTIVITIES 10u
#define ESDM__LAYER_MOVES      3u /* of a prediction: not, a little, far */
#define ESDM__LAYER_CONTEXTS   (ESDM__LAYER_ACTIVITIES * ESDM__LAYER_MOVES + 2u)

/** Of symbols, in each context: frequencies that add up to ESDM__LAYER_TOTAL, or to nothing; and
 * the sum of those before. */
typedef struct esdm__layer_tables {
    uint32_t frequency[ESDM__LAYER_CONTEXTS][ESDM__LAYER_SYMBOLS];
    uint32_t start[ESDM__LAYER_CONTEXTS][ESDM__LAYER_SYMBOLS];
} esdm__layer_tables;

/** Counts of one context become frequencies; what occurs has one at least. */
void esdm__layer_tables_scale(uint32_t *counts);
/** Sums of the frequencies. */
void esdm__layer_tables_start(esdm__layer_tables *t);
/** @return bytes; 0: no room. */
size_t esdm__layer_tables_write(const esdm__layer_tables *t, uint8_t *out, size_t room);
/** False: these are none. @param t receives frequencies and sums. */
bool esdm__layer_tables_read(const uint8_t *stored, size_t bytes, esdm__layer_tables *t);

/** Bits that follow each other, lowest first. */
typedef struct esdm__layer_bits {
    uint8_t *data;
    size_t room; /* bytes */
    size_t at;   /* bit */
    bool failed;
} esdm__layer_bits;

/** Room for them and a byte more; else `failed`. */
static inline void
esdm__layer_bits_put(esdm__layer_bits *b, uint64_t value, uint32_t count)
{
    for (uint32_t k = 0; k < count; k += 8) {
        uint32_t more = count - k < 8 ? count - k : 8;
        uint32_t byte = (uint32_t) (value >> k) & ((1u << more) - 1);
        size_t at = b->at >> 3;
        uint32_t shift = b->at & 7;
        if (at + 2 > b->room) {
            b->failed = true;
            return;
        }
        b->data[at] = (uint8_t) ((shift > 0 ? b->data[at] : 0) | byte << shift);
        b->data[at + 1] = (uint8_t) (byte >> (8 - shift));
        b->at += more;
    }
}

/** The next ones; 0 and `failed` where there are none. */
static inline uint64_t
esdm__layer_bits_take(esdm__layer_bits *b, uint32_t count)
{
    uint64_t value = 0;
    for (uint32_t k = 0; k < count; k += 8) {
        uint32_t more = count - k < 8 ? count - k : 8;
        size_t at = b->at >> 3;
        uint32_t shift = b->at & 7;
        if (at >= b->room) {
            b->failed = true;
            return 0;
        }
        uint32_t pair = b->data[at] | (at + 1 < b->room ? (uint32_t) b->data[at + 1] << 8 : 0);
        value |= (uint64_t) (pair >> shift & ((1u << more) - 1)) << k;
        b->at += more;
    }
    return value;
}

#endif
