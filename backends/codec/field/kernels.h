/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef FIELD_KERNELS_H
#define FIELD_KERNELS_H

/**
 * @file
 * The loops that take the time, compiled once for each instruction set (kernels_*.c) with the same
 * results, and chosen at run time.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "model.h"

#define FIELD__PAD 4 /* elements before and after a row that may be read */

/** Rows that a point is predicted from: steps along the axes, slowest first, the own row apart. */
enum {
    FIELD__N,  /* 0  0 -1 */
    FIELD__NN, /* 0  0 -2 */
    FIELD__Z,  /* 0 -1  0 */
    FIELD__ZN, /* 0 -1 -1 */
    FIELD__ZS, /* 0 -1 +1 */
    FIELD__ZZ, /* 0 -2  0 */
    FIELD__B,  /* -1 0  0 */
    FIELD__BN, /* -1 0 -1 */
    FIELD__BS, /* -1 0 +1 */
    FIELD__BZ, /* -1 -1 0 */
    FIELD__LINES
};

/** Which of the axes y, z, b have a row before this one: its class. */
enum { FIELD__HAS_Y = 1, FIELD__HAS_Z = 2, FIELD__HAS_B = 4, FIELD__CLASSES = 8 };

#define FIELD__TAPS_MAX    32
#define FIELD__WEIGHT_BITS 12

typedef struct field__tap {
    uint8_t line;
    int8_t dx;
} field__tap;

/** Linear prediction from taps in other rows and two before in the own row; the weights' sum is
 *  1 << FIELD__WEIGHT_BITS. */
typedef struct field__weights {
    uint32_t taps;
    field__tap tap[FIELD__TAPS_MAX];
    int32_t weight[FIELD__TAPS_MAX];
    int32_t west, west2;
} field__weights;

/** One row and what it is coded from. Pointers to codes and errors go to element 0 of a row; lines
 *  that the row's class lacks are not used. */
typedef struct field__row {
    size_t nx;
    uint32_t class;
    const field__weights *weights;
    void *codes;                     /* int32_t or int64_t */
    const void *lines[FIELD__LINES]; /* codes */
    void *errors;                    /* uint32_t or uint64_t: sizes of the errors */
    const void *near_errors[3];      /* of the rows N, Z and B */
    const uint8_t *mask;             /* NULL: every point is coded; else 1: is not */
    int64_t *sums;                   /* scratch: nx */
    uint64_t *sizes;                 /* scratch: nx */
} field__row;

#define FIELD__LEVEL_TAPS     28
#define FIELD__LEVEL_CODE_MAX (1 << 29)

/** Points of a row that are coded in one pass of a level (levels.h): first, first + step, …,
 * `count` of them. Rows of codes and of errors are given by their element 0. */
typedef struct field__level_row {
    size_t nx, first, step, count;
    size_t inner, inner_end; /**< points of which all taps exist */
    int32_t *codes;
    uint32_t taps;
    const int32_t *from[FIELD__LEVEL_TAPS]; /**< what predicts the first inner point */
    int32_t weights[FIELD__LEVEL_TAPS];
    int32_t west_weight; /**< of the point coded before */
    size_t reach;        /**< at the row's ends: interpolate so far in the row; 0: between rows */
    const int32_t *above, *below; /**< or NULL */
    uint32_t *errors;             /**< their sizes */
    const uint32_t *north, *before, *parents[2];
    const uint8_t *mask; /**< or NULL */
    uint32_t set;        /**< of models */
    uint32_t width;      /**< odd: what errors are rounded to multiples of */
    int64_t *sums;       /**< scratch, as the others: count */
    uint32_t *near, *larger;
} field__level_row;

#define FIELD__PACK_VALUES 512u
#define FIELD__PACK_BYTES(width)                                                                   \
    (FIELD__PACK_VALUES / 8u * (width)) /* of so many packed values                                \
                                         */

#define FIELD__GROUP_VALUES 64u /* of a group of the coder "groups" */

/** Steps of a relative bound: each power of two has 16 pieces of as many equal steps as it needs.
 */
typedef struct field__pieces {
    double relative;     /* half a step is at most that share of its values */
    uint32_t exponent;   /* biased; of the smallest values */
    uint32_t total;      /* steps of a power of two */
    uint32_t reciprocal; /* of total, times 2^32, rounded up */
    uint32_t steps[16];  /* of each piece */
    uint32_t first[16];  /* the step that a piece begins with */
    float middle[];      /* of each step, from 1 to 2 */
} field__pieces;

/** The coder "lorenzo" (lorenzo.h). */
#define FIELD__TOKENS      72u
#define FIELD__SMALL       16u /* a folded difference below that is its own token */
#define FIELD__LEVELS      40u
#define FIELD__TABLES_MOST 16u
#define FIELD__SUM_BITS    11u
#define FIELD__STATES      32u
#define FIELD__STATE_LEAST 32768u
#define FIELD__WORDS_ROOM  16u /* words that may be read and are not used */

/** Folded differences around those of a row, in the rows before: pointers to element 0, never NULL,
 *  with one element more on both sides. */
typedef struct field__sizes {
    const uint16_t *n, *z, *zn, *zs, *b;
} field__sizes;

/** A token at a level. */
#define FIELD__SYMBOL(level, token) ((level) *FIELD__TOKENS + (token))
#define FIELD__SYMBOLS_OF_ROWS      (FIELD__LEVELS * FIELD__TOKENS)

/** How to append a token to a state; of a token that does not occur: zeros. */
typedef struct field__token_code {
    uint32_t reciprocal;
    uint32_t rest; /**< what is added to the state, frequency from bit 12, shift from bit 24 */
} field__token_code;

/** States and the words that refill them; `word` is NULL when there were too few. */
typedef struct field__states {
    uint32_t state[FIELD__STATES];
    const uint8_t *word, *end;
} field__states;

#define FIELD__FIT_WAITING 16 /* samples of a fit that are added at once */
/** Unknowns of a fit with room to whole vectors. */
#define FIELD__UNKNOWNS_ROOM 40

#define FIELD__CODE_MAX 0x1p50 /* largest code of a map */

typedef struct field__extremes {
    double least, most;
    double smallest; /**< size that is not 0 */
} field__extremes;

/** The functions of one instruction set. */
typedef struct field__kernels {
    const char *name;
    void (*encode_row32)(const field__row *row, field__sink *sink);
    void (*encode_row64)(const field__row *row, field__sink *sink);
    void (*decode_row32)(const field__row *row, field__source *source);
    void (*decode_row64)(const field__row *row, field__source *source);
    /** Two rows of as many points, of two volumes: what one waits for is time for the other. */
    void (*decode_rows32)(const field__row *a, field__source *source_a, const field__row *b,
                          field__source *source_b);
    /** The codes become those that the decoder will have. */
    void (*encode_level_row)(const field__level_row *row, field__sink *sink);
    void (*decode_level_row)(const field__level_row *row, field__source *source);
    /** As decode_rows32(). */
    void (*decode_level_rows)(const field__level_row *a, field__source *source_a,
                              const field__level_row *b, field__source *source_b);

    /** Of single-precision patterns: the largest size (sign removed); how many equal one. */
    uint32_t (*largest_bits)(const uint32_t *patterns, size_t count);
    size_t (*count_equal)(const uint32_t *patterns, size_t count, uint32_t pattern);
    /** Codes of values, times `step` at most `bound` off; returns how many are not. Their products
     *  with `inverse` must be below 2^31. */
    size_t (*quantise)(const float *values, size_t count, double inverse, double step, double bound,
                       int32_t *codes);
    void (*scale_codes)(const int32_t *codes, size_t count, double step, int64_t origin,
                        float *values);
    /** Patterns as integers in the order of the floats, and back: it is its own inverse. */
    void (*order_patterns)(const uint32_t *patterns, size_t count, int32_t *codes);
    /** Differences of a row to the rows N, Z and ZN given (or NULL) and along itself, folded. */
    void (*difference_row)(const int32_t *q, const int32_t *n, const int32_t *z, const int32_t *zn,
                           size_t nx, uint32_t *out);
    /** The inverse; changes the differences. */
    void (*restore_row)(uint32_t *differences, const int32_t *n, const int32_t *z,
                        const int32_t *zn, size_t nx, int32_t *q);
    /** FIELD__PACK_VALUES values of FIELD__PACK_BYTES(). */
    void (*unpack)(const void *in, uint32_t width, uint32_t *values);
    /** The bits that the largest value of each group needs, and as many planes of bits (groups.h).
     *  Returns the end of what was put. */
    uint8_t *(*pack_groups)(const uint32_t *values, size_t groups, uint8_t *widths, uint8_t *out);
    /** The inverse, of widths up to 32. */
    const uint8_t *(*unpack_groups)(const uint8_t *in, const uint8_t *widths, size_t groups,
                                    uint32_t *values);
    /** Byte k of each value, lowest first, goes to planes[k], or comes from there. */
    void (*split_planes)(const uint32_t *values, size_t count, uint8_t *const planes[4]);
    void (*join_planes)(const uint8_t *const planes[4], size_t count, uint32_t *values);

    /** Of single precision: masks what is not finite, is at most `below` or at least `above`, or is
     *  one of the four `exact` patterns; widens the extremes by the others. Returns how many are
     *  masked. */
    size_t (*split_singles)(const float *values, size_t count, const uint32_t exact[4], float below,
                            float above, uint8_t *mask, float extremes[3]);
    /** As quantise, less `origin`; what is masked is no miss. */
    size_t (*quantise_masked)(const float *values, const uint8_t *mask, size_t count,
                              double inverse, double step, double bound, uint32_t origin,
                              int32_t *codes);
    /** Codes of values, less `origin`; masks zeros with a sign and what is too small for the type,
     *  and returns how many it masked. */
    size_t (*piece_codes)(const field__pieces *pieces, const uint32_t *patterns, size_t count,
                          uint32_t origin, uint8_t *mask, int32_t *codes);
    void (*piece_values)(const field__pieces *pieces, const int32_t *codes, size_t count,
                         uint32_t origin, uint32_t *patterns);
    /** Where the mask says so a value stays, else it becomes the other one. Of 4 bytes. */
    void (*blend)(const uint32_t *others, const uint8_t *mask, size_t count, uint32_t *values);
    /** The other way round: masked ones become the other one, or 0 where that is NULL. */
    void (*fill)(const int32_t *others, const uint8_t *mask, size_t count, int32_t *codes);
    /** How many masked patterns differ from one. */
    size_t (*count_others)(const uint32_t *patterns, const uint8_t *mask, size_t count,
                           uint32_t pattern);
    /** As order_patterns(), less `origin`, and back. */
    void (*order_codes)(const uint32_t *patterns, size_t count, uint32_t origin, int32_t *codes);
    void (*code_patterns)(const int32_t *codes, size_t count, uint32_t origin, uint32_t *patterns);
    /** Widens the extremes by what patterns that are not masked are as ordered integers. */
    void (*order_range)(const uint32_t *patterns, const uint8_t *mask, size_t count,
                        int32_t extremes[2]);
    /** Levels of a row's differences by the sizes around them. */
    void (*find_levels)(const field__sizes *around, size_t nx, uint8_t *levels);
    /** Folded differences as sizes, and how large all are together: their bits or'ed. */
    uint32_t (*find_sizes)(const uint32_t *folded, size_t count, uint16_t *sizes);
    /** The same; masked ones have that of the row before. */
    void (*find_masked_sizes)(const uint32_t *folded, const uint8_t *mask, const uint16_t *north,
                              size_t count, uint16_t *sizes);
    void (*find_tokens)(const uint32_t *folded, size_t count, uint8_t *tokens);
    /** symbols[i] = FIELD__SYMBOL(levels[i], tokens[i]) */
    void (*join_symbols)(const uint8_t *levels, const uint8_t *tokens, size_t count,
                         uint16_t *symbols);
    /** Appends the tokens of a row to the states, the last one first; the words that these become
     *  too large for end at `end`. Returns their start. @param codes of all symbols. Up to
     *  FIELD__WORDS_ROOM words before them are written to. */
    uint8_t *(*encode_tokens)(uint32_t state[FIELD__STATES], const field__token_code *codes,
                              const uint16_t *symbols, size_t count, uint8_t *end);
    /** to[i] = table[levels[i]] */
    void (*look_up)(const uint32_t table[FIELD__LEVELS], const uint8_t *levels, size_t count,
                    uint32_t *to);
    /** Moves values that are not masked to the front, in their order; returns how many. */
    size_t (*leave_out)(uint32_t *values, const uint8_t *mask, size_t count);
    size_t (*leave_out_bytes)(uint8_t *values, const uint8_t *mask, size_t count);
    /** The inverse: masked values become 0. Some behind the last one may be read. */
    void (*put_between)(const uint32_t *kept, const uint8_t *mask, size_t count, uint32_t *to);
    /** As restore_row() of a row where masked points have the codes `filling` (NULL: 0). Changes
     * the differences. */
    void (*restore_masked)(uint32_t *differences, const uint8_t *mask, const int32_t *filling,
                           const int32_t *n, const int32_t *z, const int32_t *zn, size_t nx,
                           int32_t *q);
    /** Tokens of a row. @param slots of all tables. @param tables first slot of each token's. */
    void (*decode_tokens)(field__states *states, const uint32_t *slots, const uint32_t *tables,
                          size_t count, uint8_t *tokens);
    /** What tokens and raw bits from bit `at` on stand for; returns the bit behind them. Up to 7
     *  bytes behind those bits are read. */
    uint64_t (*join_tokens)(const uint8_t *tokens, size_t count, const uint8_t *bits, uint64_t at,
                            uint32_t *folded);
    /** Bits that the raw bits of tokens take. */
    uint64_t (*count_raw)(const uint8_t *tokens, size_t count);

    /** Adds weights[s] * v[s][i] * v[s][j] to matrix[i][j] and weights[s] * v[s][i] * target[s] to
     *  right[i], sample s after sample, in the same order everywhere; rows have
     *  FIELD__UNKNOWNS_ROOM elements, of which those behind the unknowns are 0 in v. Also adds to
     *  some matrix[i][j] with j > i. */
    void (*add_samples)(const double *v, const double *weights, const double *target,
                        size_t samples, size_t unknowns, double *matrix, double *right);
    /** Weights of FIELD__FIT_WAITING samples (fit.h), whose i-th unknowns are at
     *  v[i * FIELD__FIT_WAITING]. */
    void (*weigh_samples)(const double *v, const double *solution, size_t unknowns,
                          const double *target, bool first, double *weights);

    /** Maps of grids (map.h); codes beyond FIELD__CODE_MAX are INT64_MIN. */
    void (*grid_codes)(const double *values, size_t count, double base, double multiplier,
                       double divisor, int64_t *codes);
    void (*grid_values)(const int64_t *codes, size_t count, double base, double multiplier,
                        double divisor, double *values);
    void (*round_single)(double *values, size_t count);
    /** How many that are not masked differ by more than `bound`. */
    size_t (*count_far)(const double *values, const double *again, const uint8_t *mask,
                        size_t count, double bound);
    /** Adds again - values, and |values|, of what is not masked; in the same order everywhere. */
    void (*sum_errors)(const double *values, const double *again, const uint8_t *mask, size_t count,
                       double sums[2]);
    /** The same of what codes, and `origin`, times a step are, rounded to single precision. */
    void (*sum_single_errors)(const float *values, const int32_t *codes, const uint8_t *mask,
                              size_t count, double step, int64_t origin, double sums[2]);
    /** far[i]: 1 where those are too large by more than `bound`, 2 where they are too small, else
     *  0. Returns how many are not 0. */
    size_t (*far_singles)(const float *values, const int32_t *codes, const uint8_t *mask,
                          size_t count, double step, int64_t origin, double bound, uint8_t *far);
    /** Widens the extremes by values that are not masked; returns how many are. */
    size_t (*survey)(const double *values, const uint8_t *mask, size_t count, field__extremes *ret);
    /** bits[i] = field__log2(1 + |values[i] - values[i - 1]| / step) from 1 on; -1 where those are
     *  `most` steps and more, or no number. */
    void (*step_bits)(const double *values, size_t count, double step, double most, double *bits);
    void (*mask_infinite)(const double *values, size_t count, uint8_t *mask);

    /** Codes the sink's symbols backwards into words that end at `end`; returns their start. */
    uint8_t *(*finish)(const field__sink *sink, uint8_t *end);
} field__kernels;

extern const field__kernels field__kernels_base;
#if defined(__x86_64__)
extern const field__kernels field__kernels_avx2;
extern const field__kernels field__kernels_avx512;
#endif

/** The fastest that the CPU has. */
const field__kernels *field__kernels_best(void);
/** All that the CPU has, best last: the i-th, or NULL. For tests. */
const field__kernels *field__kernels_at(uint32_t i);
/** Makes the calling thread use `kernels`; NULL: the best again. For tests. */
void field__kernels_force(const field__kernels *kernels);

#endif
