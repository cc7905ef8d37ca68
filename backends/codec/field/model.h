/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_MODEL_H
#define FIELD_MODEL_H

/**
 * @file
 * Adaptive models of symbols 0…15: cumulative frequencies of 15 bits that move towards what was
 * seen (as in Giesen, "Interleaved entropy coders", and the AV1 format). Element i of a model is
 * the frequency of all symbols below i; neighbours always differ by at least 1.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define FIELD__SYMBOLS    16
#define FIELD__PROB_BITS  15
#define FIELD__PROB_TOTAL (1 << FIELD__PROB_BITS)

typedef int16_t field__cdf __attribute__((vector_size(32)));

/** Row s: where a model goes when symbol s is seen, and which of its elements rise. */
extern const int16_t field__model_target[FIELD__SYMBOLS][FIELD__SYMBOLS];
extern const int16_t field__model_rising[FIELD__SYMBOLS][FIELD__SYMBOLS];

/** A model follows by 2^-rate of the way: its rate by how many symbols it has seen, and what it has
 * seen with one more. */
#define FIELD__SEEN_MOST 64
extern const uint8_t field__model_rate[FIELD__SEEN_MOST + 1];
extern const uint8_t field__model_next[FIELD__SEEN_MOST + 1];

void field__models_init(field__cdf *cdf, uint8_t *seen, uint32_t count);

#define FIELD__CONTEXTS 256u /* by the size of the errors nearby */
#define FIELD__DETAILS  704u /* by single errors nearby and the fraction of the prediction */
#define FIELD__ESCAPES  64u  /* by bits dropped */
#define FIELD__SETS     4u   /* of contexts and details, for kinds of points */

/** All models of one coder. */
typedef struct field__models {
    field__cdf context[FIELD__SETS * FIELD__CONTEXTS];
    field__cdf detail[FIELD__SETS * FIELD__DETAILS];
    field__cdf escape[FIELD__ESCAPES];
    uint8_t context_seen[FIELD__SETS * FIELD__CONTEXTS];
    uint8_t detail_seen[FIELD__SETS * FIELD__DETAILS];
    uint8_t escape_seen[FIELD__ESCAPES];
} field__models;

/** Encoder's side: symbols in order, coded backwards at the end, and bits stored as they are. */
typedef struct field__sink {
    field__models *models;
    uint32_t *symbols; /* start | frequency << 16 */
    size_t count;
    uint8_t *bits; /* room for what a row needs is made before it */
    size_t bits_bytes;
    uint64_t pending;
    uint32_t pending_bits; /* < 8 between values */
} field__sink;

/** Decoder's side. Reads past an end yield zeros and are noted. */
typedef struct field__source {
    field__models *models;
    uint32_t state[2];
    const uint8_t *words; /* 16 bits each */
    const uint8_t *words_end;
    const uint8_t *bits;
    const uint8_t *bits_end;
    uint64_t pending;
    uint32_t pending_bits;
    bool overrun;
} field__source;

#endif
