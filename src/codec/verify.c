/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/verify.h"

#include <float.h>
#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/cpu.h"
#include "codec/verify_kernels.h"
#include "esdm/types.h"

/* Numbers at a time, which are looked at several times. */
#define BATCH 1024u
/* What a sum of squares may be short of by rounding. */
#define NOISE_CAREFUL (1 + 0x1p-20)
/* More than what a difference of floats is off by, relative to itself: 2^-24 by its rounding. */
#define GLANCE_ROUNDING 0x1p-22

bool
esdm__accuracy_applies(int32_t type)
{
    return type >= ESDM_TYPE_INT8 && type <= ESDM_TYPE_UINT64 && type != ESDM_TYPE_CHAR;
}

/* ---- one number, with all care ------------------------------------------------------------ */

static bool
is_listed(const esdm_codec_accuracy *a, size_t bytes, const void *element)
{
    for (uint32_t i = 0; i < a->exact_count; i++)
        if (memcmp((const char *) a->exact_values + i * bytes, element, bytes) == 0)
            return true;
    return false;
}

static bool
is_exact(const esdm_codec_accuracy *a, long double x)
{
    return !isfinite(x) || x <= (long double) a->exact_below || x >= (long double) a->exact_above;
}

static long double
bound_at(const esdm_codec_accuracy *a, long double x)
{
    long double bound = (long double) INFINITY;
    if (a->relative < (double) INFINITY) {
        bound = (long double) a->relative * fabsl(x);
        bound = bound > (long double) a->finest ? bound : (long double) a->finest;
    }
    return bound < (long double) a->absolute ? bound : (long double) a->absolute;
}

/* Where the quick look was not sure: an error that equals its bound, or a violation. Zeros of
 * different sign are equal, unless nothing may change. */
static bool
keeps_bound(const esdm_codec_accuracy *a, long double x, long double y)
{
    long double error = fabsl(y - x);
    long double bound = bound_at(a, x);
    return !is_exact(a, x) && isfinite(y) && bound > 0 && error <= bound;
}

/* ---- many numbers ------------------------------------------------------------------------- */

/* `wide` holds all numbers of the type. What differs from the original must have an error below
 * its bound. An error that is rounded down cannot hide a violation: bounds are numbers of `wide`
 * too, and a comparison that ends in a tie is not let pass. */
#define DEFINE_LOOK(name, number_type, bits_type, wide, absolute_of)                               \
    static void name(const esdm_codec_accuracy *a, const void *raw, const void *decoded, size_t n, \
                     esdm__look *ret)                                                              \
    {                                                                                              \
        wide relative = a->relative < (double) INFINITY ? (wide) a->relative : 0;                  \
        wide finest = a->relative < (double) INFINITY ? (wide) a->finest : (wide) INFINITY;        \
        wide absolute = (wide) a->absolute;                                                        \
        wide below = (wide) a->exact_below;                                                        \
        wide above = (wide) a->exact_above;                                                        \
        wide largest = 0;                                                                          \
        wide share = 0;                                                                            \
        wide sum = 0;                                                                              \
        size_t exact = 0;                                                                          \
        size_t unsure = 0;                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type before;                                                                    \
            number_type after;                                                                     \
            memcpy(&before, (const char *) raw + i * sizeof before, sizeof before);                \
            memcpy(&after, (const char *) decoded + i * sizeof after, sizeof after);               \
            bits_type x_bits;                                                                      \
            bits_type y_bits;                                                                      \
            memcpy(&x_bits, &before, sizeof x_bits);                                               \
            memcpy(&y_bits, &after, sizeof y_bits);                                                \
            wide x = (wide) before;                                                                \
            wide change = (wide) after - x;                                                        \
            wide error = absolute_of(change);                                                      \
            wide bound = relative * absolute_of(x);                                                \
            bound = bound > finest ? bound : finest;                                               \
            bound = bound < absolute ? bound : absolute;                                           \
            int inside = (x > below) & (x < above) & (x - x == 0);                                 \
            int differs = x_bits != y_bits;                                                        \
            int fits = inside & (error < bound) & (error - error == 0);                            \
            exact += (size_t) !inside;                                                             \
            unsure += (size_t) (differs & !fits);                                                  \
            error = differs & inside ? error : 0;                                                  \
            bound = error > 0 ? bound : 1;                                                         \
            largest = error > largest ? error : largest;                                           \
            share = error > share * bound ? error / bound : share;                                 \
            sum += error > 0 ? change : 0;                                                         \
        }                                                                                          \
        *ret = (esdm__look){(double) largest, (double) share, (double) sum, exact, unsure};        \
    }                                                                                              \
                                                                                                   \
    static bool name##_slowly(const esdm_codec_accuracy *a, const void *raw, const void *decoded,  \
                              size_t n)                                                            \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type before;                                                                    \
            number_type after;                                                                     \
            memcpy(&before, (const char *) raw + i * sizeof before, sizeof before);                \
            memcpy(&after, (const char *) decoded + i * sizeof after, sizeof after);               \
            if (memcmp(&before, &after, sizeof before) != 0 &&                                     \
                !keeps_bound(a, (long double) before, (long double) after))                        \
                return false;                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static double name##_magnitude(const esdm_codec_accuracy *a, const void *raw, size_t n,        \
                                   size_t *ret_points)                                             \
    {                                                                                              \
        wide sum = 0;                                                                              \
        size_t points = 0;                                                                         \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type number;                                                                    \
            memcpy(&number, (const char *) raw + i * sizeof number, sizeof number);                \
            wide x = (wide) number;                                                                \
            int inside = (x > (wide) a->exact_below) & (x < (wide) a->exact_above) & (x - x == 0); \
            if (inside != 0 && !is_listed(a, sizeof number, &number)) {                            \
                sum += absolute_of(x);                                                             \
                points++;                                                                          \
            }                                                                                      \
        }                                                                                          \
        *ret_points = points;                                                                      \
        return (double) sum;                                                                       \
    }                                                                                              \
                                                                                                   \
    /* Sum of squares of errors by `noise`; of how many numbers. What is listed does not change.   \
     */                                                                                            \
    static double name##_squares(const esdm_codec_accuracy *a, const void *raw,                    \
                                 const void *decoded, size_t n, double noise, size_t *ret_count)   \
    {                                                                                              \
        wide sum = 0;                                                                              \
        *ret_count = 0;                                                                            \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type before;                                                                    \
            number_type after;                                                                     \
            memcpy(&before, (const char *) raw + i * sizeof before, sizeof before);                \
            memcpy(&after, (const char *) decoded + i * sizeof after, sizeof after);               \
            wide x = (wide) before;                                                                \
            wide share = ((wide) after - x) / (wide) noise;                                        \
            int inside = (x > (wide) a->exact_below) & (x < (wide) a->exact_above) & (x - x == 0); \
            if (inside != 0 && (share != 0 || !is_listed(a, sizeof before, &before))) {            \
                sum += share * share;                                                              \
                ++*ret_count;                                                                      \
            }                                                                                      \
        }                                                                                          \
        return (double) sum;                                                                       \
    }                                                                                              \
    /* Sums are of differences from the first number: there is less to lose by rounding. */        \
    static esdm__accuracy_spread name##_spread(const esdm_codec_accuracy *a, const void *raw,      \
                                               size_t n, bool wants_deviation)                     \
    {                                                                                              \
        wide low = (wide) INFINITY;                                                                \
        wide high = -(wide) INFINITY;                                                              \
        wide first = 0;                                                                            \
        wide sum = 0;                                                                              \
        wide squares = 0;                                                                          \
        size_t count = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            number_type number;                                                                    \
            bits_type bits;                                                                        \
            int inside;                                                                            \
            memcpy(&number, (const char *) raw + i * sizeof number, sizeof number);                \
            memcpy(&bits, &number, sizeof bits);                                                   \
            wide x = (wide) number;                                                                \
            inside = (x > (wide) a->exact_below) & (x < (wide) a->exact_above) & (x - x == 0);     \
            for (uint32_t k = 0; k < a->exact_count; k++)                                          \
                inside &= ((const bits_type *) a->exact_values)[k] != bits;                        \
            if (inside == 0)                                                                       \
                continue;                                                                          \
            low = x < low ? x : low;                                                               \
            high = x > high ? x : high;                                                            \
            if (!wants_deviation)                                                                  \
                continue;                                                                          \
            first = count == 0 ? x : first;                                                        \
            count++;                                                                               \
            sum += x - first;                                                                      \
            squares += (x - first) * (x - first);                                                  \
        }                                                                                          \
        wide mean = count > 0 ? sum / (wide) count : 0;                                            \
        wide variance = count > 0 ? squares / (wide) count - mean * mean : 0;                      \
        return (esdm__accuracy_spread){(double) low, (double) high,                                \
                                       variance > 0 ? sqrt((double) variance) : 0};                \
    }

DEFINE_LOOK(look_f32, float, uint32_t, double, fabs)
DEFINE_LOOK(look_f64, double, uint64_t, double, fabs)
DEFINE_LOOK(look_i8, int8_t, uint8_t, double, fabs)
DEFINE_LOOK(look_i16, int16_t, uint16_t, double, fabs)
DEFINE_LOOK(look_i32, int32_t, uint32_t, double, fabs)
DEFINE_LOOK(look_i64, int64_t, uint64_t, long double, fabsl)
DEFINE_LOOK(look_u8, uint8_t, uint8_t, double, fabs)
DEFINE_LOOK(look_u16, uint16_t, uint16_t, double, fabs)
DEFINE_LOOK(look_u32, uint32_t, uint32_t, double, fabs)
DEFINE_LOOK(look_u64, uint64_t, uint64_t, long double, fabsl)

typedef struct looker {
    size_t bytes;
    void (*look)(const esdm_codec_accuracy *, const void *, const void *, size_t, esdm__look *);
    bool (*slowly)(const esdm_codec_accuracy *, const void *, const void *, size_t);
    double (*magnitude)(const esdm_codec_accuracy *, const void *, size_t, size_t *);
    esdm__accuracy_spread (*spread)(const esdm_codec_accuracy *, const void *, size_t, bool);
    double (*squares)(const esdm_codec_accuracy *, const void *, const void *, size_t, double,
                      size_t *);
} looker;

#define LOOKER(type, name)                                                                         \
    {                                                                                              \
        sizeof(type), name, name##_slowly, name##_magnitude, name##_spread, name##_squares         \
    }
static const looker lookers[] = {
    [ESDM_TYPE_INT8] = LOOKER(int8_t, look_i8),
    [ESDM_TYPE_INT16] = LOOKER(int16_t, look_i16),
    [ESDM_TYPE_INT32] = LOOKER(int32_t, look_i32),
    [ESDM_TYPE_INT64] = LOOKER(int64_t, look_i64),
    [ESDM_TYPE_UINT8] = LOOKER(uint8_t, look_u8),
    [ESDM_TYPE_UINT16] = LOOKER(uint16_t, look_u16),
    [ESDM_TYPE_UINT32] = LOOKER(uint32_t, look_u32),
    [ESDM_TYPE_UINT64] = LOOKER(uint64_t, look_u64),
    [ESDM_TYPE_FLOAT32] = LOOKER(float, look_f32),
    [ESDM_TYPE_FLOAT64] = LOOKER(double, look_f64),
};

static const esdm__looks *
fastest(void)
{
#if defined(__x86_64__)
    if (esdm__cpu_has_avx512dq())
        return &esdm__looks_avx512;
    if (esdm__cpu_has_avx2())
        return &esdm__looks_avx2;
#endif
    return &esdm__looks_base;
}

static const esdm__looks *
looks(void)
{
    static _Atomic(const esdm__looks *) found; /* every thread finds the same */
    const esdm__looks *table = atomic_load_explicit(&found, memory_order_relaxed);
    if (table == NULL) {
        table = fastest();
        atomic_store_explicit(&found, table, memory_order_relaxed);
    }
    return table;
}

/* Floating-point numbers with the CPU's widest vectors, the rest and others one by one. */
static void
look(const looker *l, const esdm_codec_accuracy *a, int32_t type, const char *raw,
     const char *decoded, size_t n, esdm__look *ret)
{
    bool is_float = type == ESDM_TYPE_FLOAT32 || type == ESDM_TYPE_FLOAT64;
    size_t many = is_float ? n - n % ESDM__LOOK_LANES : 0;
    esdm__look rest = {0};
    *ret = rest;
    if (many > 0) {
        const esdm__looks *table = looks();
        (type == ESDM_TYPE_FLOAT32 ? table->singles : table->doubles)(a, raw, decoded, many, ret);
    }
    if (many < n)
        l->look(a, raw + many * l->bytes, decoded + many * l->bytes, n - many, &rest);
    ret->largest_error =
        rest.largest_error > ret->largest_error ? rest.largest_error : ret->largest_error;
    ret->largest_share =
        rest.largest_share > ret->largest_share ? rest.largest_share : ret->largest_share;
    ret->sum_change += rest.sum_change;
    ret->exact += rest.exact;
    ret->unsure += rest.unsure;
}

/* A float in whose reach a rounded difference is surely below the bound; below 0: no such way, as
 * bounds differ, or the sum of the changes has one too. */
static float
limit_of_glances(const esdm_codec_accuracy *a, int32_t type)
{
    bool plain = type == ESDM_TYPE_FLOAT32 && !(a->relative < (double) INFINITY) &&
                 !(a->exact_below > -(double) INFINITY) && !(a->exact_above < (double) INFINITY) &&
                 !(a->sum_bound < (double) INFINITY);
    double limit = a->absolute * (1 - GLANCE_ROUNDING);
    if (!plain || !(limit > (double) FLT_MIN && limit < (double) FLT_MAX))
        return -1;
    return nextafterf((float) limit, 0);
}

/* Most runs of numbers hold no error that is above those before: single precision shows it.
 * @return false when they need a look. */
static bool
glance(const looker *l, const esdm_codec_accuracy *a, float limit, double largest, const void *raw,
       const void *decoded, size_t n, esdm__look *ret)
{
    size_t many = n - n % ESDM__GLANCE_LANES;
    esdm__look rest = {0};
    looks()->glance(limit, raw, decoded, many, ret);
    if (ret->unsure > 0 || ret->largest_error * (1 + GLANCE_ROUNDING) > largest)
        return false;
    if (many < n)
        l->look(a, (const char *) raw + many * sizeof(float),
                (const char *) decoded + many * sizeof(float), n - many, &rest);
    ret->largest_error = rest.largest_error; /* that of the others is below what was found */
    ret->sum_change += rest.sum_change;
    ret->exact = rest.exact;
    ret->unsure = rest.unsure;
    return true;
}

/* How often `value` is in both, and in one of them alone. */
#define DEFINE_COUNT(name, bits_type)                                                              \
    static void name(bits_type value, const void *raw, const void *decoded, size_t n,              \
                     size_t *ret_both, size_t *ret_one)                                            \
    {                                                                                              \
        uint32_t before = 0;                                                                       \
        uint32_t one = 0;                                                                          \
        for (size_t i = 0; i < n; i++) {                                                           \
            bits_type x;                                                                           \
            bits_type y;                                                                           \
            memcpy(&x, (const char *) raw + i * sizeof x, sizeof x);                               \
            memcpy(&y, (const char *) decoded + i * sizeof y, sizeof y);                           \
            before += (uint32_t) (x == value);                                                     \
            one += (uint32_t) ((x == value) != (y == value));                                      \
        }                                                                                          \
        *ret_both += before;                                                                       \
        *ret_one += one;                                                                           \
    }

DEFINE_COUNT(count_8, uint8_t)
DEFINE_COUNT(count_16, uint16_t)
DEFINE_COUNT(count_32, uint32_t)
DEFINE_COUNT(count_64, uint64_t)

/* Whether all listed values stayed, and no other number became one. *exact: how many there are. */
static bool
look_for_listed(const esdm_codec_accuracy *a, size_t bytes, const char *raw, const char *decoded,
                size_t n, size_t *exact)
{
    size_t changed = 0;
    for (uint32_t i = 0; i < a->exact_count; i++) {
        uint64_t value = 0;
        memcpy(&value, (const char *) a->exact_values + i * bytes, bytes); /* little-endian */
        if (bytes == 1)
            count_8((uint8_t) value, raw, decoded, n, exact, &changed);
        else if (bytes == 2)
            count_16((uint16_t) value, raw, decoded, n, exact, &changed);
        else if (bytes == 4)
            count_32((uint32_t) value, raw, decoded, n, exact, &changed);
        else
            count_64(value, raw, decoded, n, exact, &changed);
    }
    return changed == 0;
}

void
esdm__accuracy_add(esdm__accuracy_facts *to, const esdm__accuracy_facts *from)
{
    to->largest_error =
        from->largest_error > to->largest_error ? from->largest_error : to->largest_error;
    to->largest_share =
        from->largest_share > to->largest_share ? from->largest_share : to->largest_share;
    to->sum_change += from->sum_change;
    to->points += from->points;
    to->exact_points += from->exact_points;
}

bool
esdm__accuracy_verify(const esdm_codec_accuracy *a, int32_t type, const void *raw,
                      const void *decoded, size_t n, esdm__accuracy_facts *facts)
{
    const looker *l = &lookers[type];
    esdm__accuracy_facts sum = {0};
    double rest = 0; /* what the sum of changes loses by rounding */
    float limit = limit_of_glances(a, type);
    for (size_t i = 0; i < n; i += BATCH) {
        size_t count = n - i < BATCH ? n - i : BATCH;
        const char *before = (const char *) raw + i * l->bytes;
        const char *after = (const char *) decoded + i * l->bytes;
        esdm__look b;
        size_t listed = 0;
        if (limit < 0 || !glance(l, a, limit, sum.largest_error, before, after, count, &b))
            look(l, a, type, before, after, count, &b);
        if ((b.unsure > 0 && !l->slowly(a, before, after, count)) ||
            !look_for_listed(a, l->bytes, before, after, count, &listed))
            return false;
        double change = b.sum_change - rest;
        double total = sum.sum_change + change;
        rest = (total - sum.sum_change) - change;
        size_t exact = b.exact + listed < count ? b.exact + listed : count;
        const esdm__accuracy_facts found = {.largest_error = b.largest_error,
                                            .largest_share = b.largest_share,
                                            .points = count - exact,
                                            .exact_points = exact};
        esdm__accuracy_add(&sum, &found);
        sum.sum_change = total;
    }
    if (!(a->relative < (double) INFINITY) && a->absolute > 0)
        sum.largest_share = sum.largest_error / a->absolute;
    if (a->sum_bound < (double) INFINITY && !(fabs(sum.sum_change) <= a->sum_bound))
        return false; /* also when the sum has no number any more */
    esdm__accuracy_add(facts, &sum);
    return true;
}

bool
esdm__accuracy_verify_noise(const esdm_codec_accuracy *a, int32_t type, const void *raw,
                            const void *decoded, size_t n, double noise)
{
    size_t count = 0;
    double sum = lookers[type].squares(a, raw, decoded, n, noise, &count);
    return sum * NOISE_CAREFUL <= (double) count;
}

esdm__accuracy_spread
esdm__accuracy_spread_of(const esdm_codec_accuracy *a, int32_t type, const void *raw, size_t n,
                         bool wants_deviation)
{
    return lookers[type].spread(a, raw, n, wants_deviation);
}

double
esdm__accuracy_bound_below(double bound)
{
    /* 2^(k/8) / 2, rounded down. */
    static const double steps[8] = {0x1p-1,
                                    0x1.172b83c7d517ap-1,
                                    0x1.306fe0a31b715p-1,
                                    0x1.4bfdad5362a27p-1,
                                    0x1.6a09e667f3bccp-1,
                                    0x1.8ace5422aa0dbp-1,
                                    0x1.ae89f995ad3adp-1,
                                    0x1.d5818dcfba487p-1};
    int exponent = 0;
    int k = 7;
    if (!(bound >= DBL_MIN && bound <= DBL_MAX))
        return 0;
    double fraction = frexp(bound, &exponent);
    while (k > 0 && steps[k] > fraction)
        k--;
    return ldexp(steps[k], exponent);
}

double
esdm__accuracy_magnitude(const esdm_codec_accuracy *a, int32_t type, const void *raw, size_t n,
                         size_t *ret_points)
{
    return lookers[type].magnitude(a, raw, n, ret_points);
}
