/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Rounding of floating-point numbers within their bounds, and the balance of their sum. */

#include "bitround.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "round.h"

/* Below the product by more than its rounding: a bound must not come out too large. */
#define CAREFUL (1.0 - 0x1p-50)
/* Elements at a time: what one pass leaves is in the cache for the next. */
#define BATCH 1024u

static limits
limits_of(const esdm_codec_accuracy *a, double part)
{
    bool is_relative = a->relative < (double) INFINITY;
    return (limits){.absolute = a->absolute * part,
                    .relative = is_relative ? a->relative * part * CAREFUL : 0,
                    .finest = is_relative ? a->finest * part : (double) INFINITY,
                    .below = a->exact_below,
                    .above = a->exact_above};
}

static inline double
bound_of(const limits *l, double x)
{
    double relative = l->relative * fabs(x);
    relative = relative > l->finest ? relative : l->finest;
    return relative < l->absolute ? relative : l->absolute;
}

/* The largest power of two whose half is within the bound, as bits of a double. */
static inline uint64_t
step_bits(double bound)
{
    double twice = 2 * bound;
    uint64_t bits;
    memcpy(&bits, &twice, sizeof bits);
    bits &= (uint64_t) EXPONENT_MASK;
    return bits < (uint64_t) STEP_MOST ? bits : (uint64_t) STEP_MOST;
}

static inline double
double_of(uint64_t bits)
{
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static const rounder *
fastest(void)
{
#if defined(__x86_64__)
    if (esdm__cpu_has_avx512dq())
        return &bitround__avx512;
    if (esdm__cpu_has_avx2())
        return &bitround__avx2;
#endif
    return &bitround__base;
}

static const rounder *
rounder_here(void)
{
    static _Atomic(const rounder *) found; /* every thread finds the same */
    const rounder *r = atomic_load_explicit(&found, memory_order_relaxed);
    if (r == NULL) {
        r = fastest();
        atomic_store_explicit(&found, r, memory_order_relaxed);
    }
    return r;
}

void
esdm__bitround_floats(const esdm_codec_accuracy *a, double part, size_t bytes, const void *raw,
                      void *out, size_t n)
{
    const rounder *r = rounder_here();
    void (*round_all)(const limits *, const void *, void *, size_t) =
        bytes == 4 ? r->singles : r->doubles;
    limits l = limits_of(a, part);
    size_t many = n - n % LANES;
    round_all(&l, raw, out, many);
    if (many == n)
        return;
    uint64_t in[LANES] = {0};
    uint64_t rounded[LANES];
    memcpy(in, (const char *) raw + many * bytes, (n - many) * bytes);
    round_all(&l, in, rounded, LANES);
    memcpy((char *) out + many * bytes, rounded, (n - many) * bytes);
}

/* ---- listed values ------------------------------------------------------------------------ */

#define DEFINE_KEEP(name, unsigned_type)                                                           \
    static void name(unsigned_type value, const unsigned_type *in, unsigned_type *out, size_t n)   \
    {                                                                                              \
        for (size_t i = 0; i < n; i++)                                                             \
            out[i] = ((in[i] == value) | (out[i] == value)) ? in[i] : out[i];                      \
    }

DEFINE_KEEP(keep_8, uint8_t)
DEFINE_KEEP(keep_16, uint16_t)
DEFINE_KEEP(keep_32, uint32_t)
DEFINE_KEEP(keep_64, uint64_t)

static void
keep_value(const void *value, size_t bytes, void *in, void *out, size_t n)
{
    uint64_t bits = 0;
    memcpy(&bits, value, bytes); /* little-endian */
    if (bytes == 1)
        keep_8((uint8_t) bits, in, out, n);
    else if (bytes == 2)
        keep_16((uint16_t) bits, in, out, n);
    else if (bytes == 4)
        keep_32((uint32_t) bits, in, out, n);
    else
        keep_64(bits, in, out, n);
}

void
esdm__bitround_keep_values(const esdm_codec_accuracy *a, size_t bytes, const void *raw, void *out,
                           size_t n)
{
    uint64_t in[BATCH];
    uint64_t rounded[BATCH];
    for (size_t i = 0; a->exact_count > 0 && i < n; i += BATCH) {
        size_t count = n - i < BATCH ? n - i : BATCH;
        memcpy(in, (const char *) raw + i * bytes, count * bytes);
        memcpy(rounded, (char *) out + i * bytes, count * bytes);
        for (uint32_t k = 0; k < a->exact_count; k++)
            keep_value((const char *) a->exact_values + k * bytes, bytes, in, rounded, count);
        memcpy((char *) out + i * bytes, rounded, count * bytes);
    }
}

/* ---- the sum ------------------------------------------------------------------------------ */

typedef struct balance {
    const esdm_codec_accuracy *a;
    limits l;    /* that numbers were rounded with */
    limits most; /* that they may be off by */
    size_t bytes;
    const char *raw;
    char *out;
    double change; /* of the sum, so far */
} balance;

static double
value_at(const char *data, size_t bytes, size_t i)
{
    float single;
    double value;
    if (bytes == 8) {
        memcpy(&value, data + i * bytes, sizeof value);
        return value;
    }
    memcpy(&single, data + i * bytes, sizeof single);
    return (double) single;
}

/* Whether the element was not rounded because its bits are to be kept. */
static bool
is_exact(const balance *b, size_t i, double x)
{
    if (!isfinite(x) || x <= b->l.below || x >= b->l.above)
        return true;
    for (uint32_t k = 0; k < b->a->exact_count; k++)
        if (memcmp((const char *) b->a->exact_values + k * b->bytes, b->raw + i * b->bytes,
                   b->bytes) == 0)
            return true;
    return false;
}

/* Compensated, so that millions of small errors add up. */
static double
change_of_sum(const balance *b, size_t n)
{
    double sum = 0;
    double rest = 0;
    for (size_t i = 0; i < n; i++) {
        double x = value_at(b->raw, b->bytes, i);
        double y = value_at(b->out, b->bytes, i);
        double error = isfinite(x) ? y - x : 0;
        double next = sum + (error - rest);
        rest = (next - sum) - (error - rest);
        sum = next;
    }
    return sum;
}

/* Moves one number by a step against the change, where its error is at least `share` of a step. */
static void
turn(balance *b, size_t i, double share)
{
    double x = value_at(b->raw, b->bytes, i);
    double y = value_at(b->out, b->bytes, i);
    double error = y - x;
    if (!(error * b->change > 0) || is_exact(b, i, x))
        return;
    double bound = bound_of(&b->most, x);
    double step = double_of(step_bits(bound_of(&b->l, x)));
    double other = error > 0 ? y - step : y + step;
    double gain = fabs(other - y);
    if (fabs(error) < share * step || gain > 2 * fabs(b->change) || !(fabs(other - x) <= bound))
        return;
    char before[8];
    memcpy(before, b->out + i * b->bytes, b->bytes);
    if (b->bytes == 8) {
        memcpy(b->out + i * b->bytes, &other, sizeof other);
    } else {
        float single = (float) other;
        memcpy(b->out + i * b->bytes, &single, sizeof single);
    }
    bool fits = value_at(b->out, b->bytes, i) == other;
    for (uint32_t k = 0; k < b->a->exact_count; k++)
        fits = fits && memcmp((const char *) b->a->exact_values + k * b->bytes,
                              b->out + i * b->bytes, b->bytes) != 0;
    if (fits)
        b->change += other - y;
    else
        memcpy(b->out + i * b->bytes, before, b->bytes);
}

bool
esdm__bitround_balance(const esdm_codec_accuracy *a, double part, size_t bytes, const void *raw,
                       void *out, size_t n)
{
    static const double shares[] = {0.45, 0.35, 0.2, 0.0};
    balance b = {.a = a,
                 .l = limits_of(a, part),
                 .most = limits_of(a, 1),
                 .bytes = bytes,
                 .raw = raw,
                 .out = out};
    b.change = change_of_sum(&b, n);
    for (size_t s = 0; s < sizeof shares / sizeof shares[0]; s++) {
        for (size_t i = 0; i < n && fabs(b.change) > a->sum_bound / 2; i++)
            turn(&b, i, shares[s]);
        b.change = change_of_sum(&b, n); /* exact again */
        if (fabs(b.change) <= a->sum_bound)
            return true;
    }
    return false;
}
