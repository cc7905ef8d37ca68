/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What holds when a quantity is stated more than once: the strictest. */

#include "base/error.h"
#include "model/accuracy.h"
#include "model/accuracy_quantities.h"
#include "model/accuracy_units.h"

static double
least(double a, double b)
{
    return a < b ? a : b;
}

static double
most(double a, double b)
{
    return a > b ? a : b;
}

/* All of both are kept. */
static esdm_status
join_exact(esdm_accuracy *into, const esdm_accuracy *other, esdm_error *err)
{
    for (uint32_t i = 0; i < other->exact_count; i++) {
        uint32_t known = 0;
        while (known < into->exact_count && into->exact_values[known] != other->exact_values[i])
            known++;
        if (known < into->exact_count)
            continue;
        if (into->exact_count == ESDM_ACCURACY_EXACT_MAX)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "exact_values: at most %d exact values are possible",
                                   ESDM_ACCURACY_EXACT_MAX);
        into->exact_values[into->exact_count++] = other->exact_values[i];
    }
    return ESDM_OK;
}

/* A quantity that `into` lacks is taken as it is. */
#define JOIN(flag, member, stricter)                                                               \
    do {                                                                                           \
        if ((other->stated & (flag)) != 0)                                                         \
            into->member = (into->stated & (flag)) != 0 ? stricter(into->member, other->member)    \
                                                        : other->member;                           \
    } while (0)

static void
join_vector(esdm_accuracy *into, const esdm_accuracy *other)
{
    JOIN(ESDM_ACCURACY_VECTOR_TOLERANCE, vector_tolerance, least);
    JOIN(ESDM_ACCURACY_VECTOR_COMPONENTS, vector_components, (uint32_t) most);
}

esdm_status
esdm__accuracy_join(esdm_accuracy *into, const esdm_accuracy *other, esdm_error *err)
{
    JOIN(ESDM_ACCURACY_ABSOLUTE_TOLERANCE, absolute_tolerance, least);
    JOIN(ESDM_ACCURACY_RELATIVE_TOLERANCE, relative_tolerance, least);
    JOIN(ESDM_ACCURACY_RELATIVE_FINEST, relative_finest, least);
    JOIN(ESDM_ACCURACY_SIGNIFICANT_DIGITS, significant_digits, (uint32_t) most);
    JOIN(ESDM_ACCURACY_SIGNIFICANT_BITS, significant_bits, (uint32_t) most);
    JOIN(ESDM_ACCURACY_CONSERVE, conserve, least);
    JOIN(ESDM_ACCURACY_RANGE_TOLERANCE, range_tolerance, least);
    JOIN(ESDM_ACCURACY_STD_TOLERANCE, std_tolerance, least);
    JOIN(ESDM_ACCURACY_PSNR, psnr, most);
    JOIN(ESDM_ACCURACY_GRADIENT_TOLERANCE, gradient_tolerance, least);
    JOIN(ESDM_ACCURACY_MEAN_TOLERANCE, mean_tolerance, least);
    join_vector(into, other);
    JOIN(ESDM_ACCURACY_LOSSLESS_UP_TO, lossless_up_to, most);
    JOIN(ESDM_ACCURACY_LOSSLESS_FROM, lossless_from, least);
    if ((other->stated & ESDM_ACCURACY_COMPRESSION_SPEED) != 0)
        into->compression_speed = other->compression_speed;
    if ((other->stated & ESDM_ACCURACY_DECOMPRESSION_SPEED) != 0)
        into->decompression_speed = other->decompression_speed;
    if ((other->stated & ESDM_ACCURACY_MODE) != 0)
        into->mode = other->mode;
    if ((into->stated & ESDM_ACCURACY_EXACT_VALUES) == 0)
        into->exact_count = 0;
    esdm_status st = ESDM_OK;
    if ((other->stated & ESDM_ACCURACY_EXACT_VALUES) != 0)
        st = join_exact(into, other, err);
    if (st == ESDM_OK && (other->stated & ESDM_ACCURACY_REGIONS) != 0)
        st = esdm__regions_join(into, other, err);
    into->stated |= other->stated;
    return st;
}

/* Whether it bounds errors around zero by a relative tolerance alone. */
static bool
has_no_finest(const esdm_accuracy *a)
{
    return (a->stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0 &&
           (a->stated & ESDM_ACCURACY_RELATIVE_FINEST) == 0;
}

esdm_status
esdm__accuracy_join_statement(esdm_accuracy *into, const esdm_accuracy *other, esdm_error *err)
{
    bool strict = has_no_finest(into) || has_no_finest(other);
    bool loosens = has_no_finest(into) && (other->stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0 &&
                   (other->stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) == 0;
    if (loosens)
        return esdm__error_set(
            err, ESDM_EINVAL,
            "relative_finest is stated without relative_tolerance, which another "
            "statement gives without it");
    esdm_status st = esdm__accuracy_join(into, other, err);
    if (strict)
        into->stated &= ~(uint32_t) ESDM_ACCURACY_RELATIVE_FINEST;
    return st;
}

esdm_status
esdm_accuracy_check_text(const char *text, esdm_error *err)
{
    /* So that what only loosens something has something to loosen. */
    esdm_accuracy other = {
        .stated = ESDM_ACCURACY_RELATIVE_TOLERANCE | ESDM_ACCURACY_RELATIVE_FINEST,
        .relative_tolerance = 0.5,
    };
    return esdm_accuracy_parse(&other, text, esdm__units_any, err);
}
