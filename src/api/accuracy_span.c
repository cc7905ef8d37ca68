/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Whether a tolerance can have been meant for numbers: it cannot when it is about as large as what
 * they span. */

#include <math.h>

#include "base/error.h"
#include "esdm/accuracy_attributes.h"
#include "model/accuracy.h"
#include "model/container.h"

#define AT_ONCE 512u
/* Numbers that are left out, at most. */
#define MISSING_MOST 8u
/* A span has at least so many tolerances: fewer leave no more than a few values of it. */
#define TOLERANCES_IN_SPAN 16

double
esdm_accuracy_least_span(const esdm_accuracy *accuracy)
{
    double tolerance = (double) INFINITY;
    if (accuracy == NULL || !esdm_accuracy_is_lossy(accuracy))
        return 0;
    if ((accuracy->stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0)
        tolerance = accuracy->absolute_tolerance;
    if ((accuracy->stated & ESDM_ACCURACY_GRADIENT_TOLERANCE) != 0)
        tolerance = fmin(tolerance, accuracy->gradient_tolerance);
    if ((accuracy->stated & ESDM_ACCURACY_VECTOR_TOLERANCE) != 0)
        tolerance = fmin(tolerance, accuracy->vector_tolerance);
    if (!isfinite(tolerance))
        tolerance =
            (accuracy->stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0 ? accuracy->relative_finest : 0;
    return tolerance * TOLERANCES_IN_SPAN;
}

/* Numbers of an attribute as double; how many. */
static uint32_t
numbers_of(const esdm_dataset *dataset, const char *name, double *numbers, uint32_t most)
{
    esdm_attribute attribute;
    if (!esdm_attribute_find(&dataset->attributes, name, &attribute, NULL) ||
        !esdm__accuracy_has_type(attribute.type))
        return 0;
    uint32_t count = attribute.count < most ? (uint32_t) attribute.count : most;
    return esdm_convert(attribute.type, attribute.values, ESDM_TYPE_FLOAT64, numbers, count, NULL,
                        NULL) == ESDM_OK
               ? count
               : 0;
}

static uint32_t
missing_of(const esdm_dataset *dataset, double missing[MISSING_MOST])
{
    uint32_t count = 0;
    if (esdm_convert(dataset->type, esdm_dataset_fill(dataset, NULL), ESDM_TYPE_FLOAT64, missing, 1,
                     NULL, NULL) == ESDM_OK)
        count++;
    count += numbers_of(dataset, "_FillValue", missing + count, 1);
    return count + numbers_of(dataset, "missing_value", missing + count, MISSING_MOST - count);
}

static bool
counts(double number, const double *missing, uint32_t nmissing)
{
    bool is = isfinite(number);
    for (uint32_t i = 0; i < nmissing && is; i++)
        is = number != missing[i];
    return is;
}

double
esdm_dataset_span(const esdm_dataset *dataset, esdm_type type, const void *values, uint64_t count,
                  double *low, double *high)
{
    double missing[MISSING_MOST];
    double numbers[AT_ONCE];
    double scale = 1;
    if (dataset == NULL || values == NULL || low == NULL || high == NULL ||
        !esdm__accuracy_has_type(type) || !esdm__accuracy_has_type(dataset->type))
        return 0;
    const uint32_t nmissing = missing_of(dataset, missing);
    const char *at = values;
    for (uint64_t n; count > 0; count -= n, at += n * esdm_type_size(type)) {
        n = count < AT_ONCE ? count : AT_ONCE;
        if (esdm_convert(type, at, ESDM_TYPE_FLOAT64, numbers, n, NULL, NULL) != ESDM_OK)
            return 0;
        for (uint64_t i = 0; i < n; i++) {
            if (!counts(numbers[i], missing, nmissing))
                continue;
            *low = fmin(*low, numbers[i]);
            *high = fmax(*high, numbers[i]);
        }
    }
    if (numbers_of(dataset, "scale_factor", &scale, 1) == 0)
        scale = 1;
    return *high > *low ? (*high - *low) * fabs(scale) : 0;
}
