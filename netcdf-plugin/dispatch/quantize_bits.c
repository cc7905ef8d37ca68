/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The loops of netCDF's quantisation. They give the bits that nc4_convert_type() of netCDF-C gives
 * on x86-64, where a shift takes its count modulo the width and a cast of what does not fit gives
 * the lowest integer. So does what nobody wants: with 7 digits BitGroom shifts floats by -2, that
 * is by 30, and Granular BitRound makes -0 of infinity.
 *
 * Zender, Geosci. Model Dev. 9, 3199-3211, 2016 (BitGroom); Kouznetsov, Geosci. Model Dev. 14,
 * 377-389, 2021 (BitRound); Delaunay et al., Geosci. Model Dev. 12, 4099-4113, 2019, equations 7
 * and 8 (digits and bits of a value, for Granular BitRound).
 */

/* These loops repay what GCC's -O2 does not do: vectorise whatever can be. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "quantize.h"

#include <limits.h>
#include <math.h>
#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* A constant trip count lets compilers vectorise without run-time checks and remainders. */
#define BLOCK ((size_t) 64)

#define FLOAT_STORED  23
#define DOUBLE_STORED 52

static const double bits_per_digit = M_LN10 / M_LN2;
static const double digits_per_bit = M_LN2 / M_LN10;

static int
to_int(double value)
{
    return value > INT_MIN - 1.0 && value < INT_MAX + 1.0 ? (int) value : INT_MIN;
}

/* What a shift by `bits` amounts to for a type with `stored` bits in the significand. */
static int
shift_of(int bits, int stored)
{
    return (int) ((unsigned) bits % (stored == FLOAT_STORED ? 32u : 64u));
}

/* Bits at the end of the significand that Granular BitRound does not need for `digits` decimal
 * digits of a value; may be negative. The operations and their order are netCDF-C's. */
static int
granular_zeroed(double value, int digits, int stored)
{
    int exponent = 0;
    double significand = fabs(frexp(value, &exponent));
    if (!isfinite(value))
        exponent = 0;
    double logarithm = log10(significand);
    int integer_digits = to_int(floor(exponent * digits_per_bit + logarithm));
    integer_digits = (int) ((unsigned) integer_digits + 1u);
    int lost = (int) ((unsigned) integer_digits - (unsigned) digits);
    int power = to_int(floor(bits_per_digit * lost));
    int top = to_int(floor(exponent - bits_per_digit * logarithm));
    int difference = (int) ((unsigned) top - (unsigned) power);
    unsigned kept = difference < 0 ? 0u - (unsigned) difference : (unsigned) difference;
    if (significand == 0)
        kept = 0;
    return stored - (unsigned short) (kept - 1);
}

/*
 * Among the numbers of one exponent granular_zeroed() has at most three values, each larger than
 * the one before: up to a few units behind the power of two (where the logarithm rounds to it), up
 * to the power of ten, and from there on.
 */
typedef struct steps {
    uint64_t at[2]; /* first significands of the second and the third value */
    uint8_t shift[3];
} steps;

#define FLOAT_EXPONENTS  256
#define DOUBLE_EXPONENTS 2048

#define VALUE     float
#define BITS      uint32_t
#define STORED    FLOAT_STORED
#define EXPONENTS FLOAT_EXPONENTS
#define NAME(f)   float_##f
#include "quantize_loops.h"
#undef VALUE
#undef BITS
#undef STORED
#undef EXPONENTS
#undef NAME

#define VALUE     double
#define BITS      uint64_t
#define STORED    DOUBLE_STORED
#define EXPONENTS DOUBLE_EXPONENTS
#define NAME(f)   double_##f
#include "quantize_loops.h"
#undef VALUE
#undef BITS
#undef STORED
#undef EXPONENTS
#undef NAME

/* Tables by type and digits, made at first use and never freed. NULL: none, for digits that
 * netCDF does not offer or without memory; then every value is looked at by itself. */
static const steps *
steps_for(nc_type type, int digits)
{
    static _Atomic(steps *) tables[2][NC_QUANTIZE_MAX_DOUBLE_NSD + 1];
    bool is_float = type == NC_FLOAT;
    if (digits < 1 || digits > (is_float ? NC_QUANTIZE_MAX_FLOAT_NSD : NC_QUANTIZE_MAX_DOUBLE_NSD))
        return NULL;
    _Atomic(steps *) *place = &tables[is_float][digits];
    steps *known = atomic_load_explicit(place, memory_order_acquire);
    if (known != NULL)
        return known;
    steps *made = calloc(is_float ? FLOAT_EXPONENTS : DOUBLE_EXPONENTS, sizeof *made);
    if (made == NULL)
        return NULL;
    if (is_float)
        float_make_steps(made, digits);
    else
        double_make_steps(made, digits);
    if (atomic_compare_exchange_strong(place, &known, made))
        return made;
    free(made); /* another thread was faster */
    return known;
}

/* Of BitGroom and BitRound. */
static int
shift_for(const esdmnc_quantizer *q)
{
    int kept = q->digits;
    if (q->mode == NC_QUANTIZE_BITGROOM) /* rounded up, and one for the bit that is not stored */
        kept = to_int(ceil(q->digits * bits_per_digit)) + 1;
    int stored = q->type == NC_FLOAT ? FLOAT_STORED : DOUBLE_STORED;
    return shift_of(stored - (unsigned short) kept, stored);
}

static void
quantize_floats(const esdmnc_quantizer *q, esdmnc_groom groom, void *values, size_t count)
{
    float missing = *(const float *) q->missing;
    if (q->mode == NC_QUANTIZE_BITGROOM)
        float_groom(values, count, shift_for(q), groom, missing, q->keeps_nan);
    else if (q->mode == NC_QUANTIZE_BITROUND)
        float_round(values, count, shift_for(q), missing, q->keeps_nan);
    else
        float_granular(values, count, q->digits, steps_for(q->type, q->digits), missing,
                       q->keeps_nan);
}

static void
quantize_doubles(const esdmnc_quantizer *q, esdmnc_groom groom, void *values, size_t count)
{
    double missing = *(const double *) q->missing;
    if (q->mode == NC_QUANTIZE_BITGROOM)
        double_groom(values, count, shift_for(q), groom, missing, q->keeps_nan);
    else if (q->mode == NC_QUANTIZE_BITROUND)
        double_round(values, count, shift_for(q), missing, q->keeps_nan);
    else
        double_granular(values, count, q->digits, steps_for(q->type, q->digits), missing,
                        q->keeps_nan);
}

void
esdmnc_quantize(const esdmnc_quantizer *quantizer, esdmnc_groom groom, void *values, size_t count)
{
    if (quantizer->mode == NC_NOQUANTIZE)
        return;
    if (quantizer->type == NC_FLOAT)
        quantize_floats(quantizer, groom, values, count);
    else
        quantize_doubles(quantizer, groom, values, count);
}
