/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Whether what is stated makes sense together, and what it means for a dataset. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "model/accuracy.h"
#include "model/accuracy_kept.h"
#include "model/accuracy_quantities.h"
#include "model/accuracy_units.h"
#include "model/container.h"
#include "model/undo.h"

/* ---- checks ------------------------------------------------------------------------------- */

static bool
speed_is_right(const esdm_speed *speed)
{
    return speed->unit >= ESDM_SPEED_BYTES && speed->unit <= ESDM_SPEED_SHARED &&
           speed->value > 0 && isfinite(speed->value);
}

/* Whether a member is a value that esdm_accuracy_set() could have stated. */
static bool
is_right(const esdm__quantity *q, const esdm_accuracy *a, bool stored)
{
    const void *member = (const char *) a + q->offset;
    double number = q->kind == ESDM__COUNT ? *(const uint32_t *) member : 0;
    switch (q->kind) {
    case ESDM__COUNT:
        return number >= 1 && number >= q->least && number <= q->most;
    case ESDM__SPEED:
        return speed_is_right(member);
    case ESDM__MODE:
        return a->mode >= ESDM_MODE_SPEED && a->mode <= ESDM_MODE_FAST;
    case ESDM__NUMBERS:
        for (uint32_t i = 0; i < a->exact_count && i < ESDM_ACCURACY_EXACT_MAX; i++)
            if (!isfinite(a->exact_values[i]))
                return false;
        return a->exact_count >= 1 && a->exact_count <= ESDM_ACCURACY_EXACT_MAX;
    case ESDM__DECIBELS:
        return a->psnr > 0 && a->psnr <= ESDM__DECIBELS_MOST;
    case ESDM__REGIONS:
        return a->region_count >= 1 && a->region_count <= ESDM_ACCURACY_REGIONS_MAX;
    case ESDM__NUMBER:
        return isfinite(*(const double *) member);
    case ESDM__SHARE:
    case ESDM__CONSERVE:
        number = *(const double *) member;
        return isfinite(number) && number >= 0 && (number < 1 || stored);
    default:
        return isfinite(*(const double *) member) && *(const double *) member >= 0;
    }
}

esdm_status
esdm__accuracy_check(const esdm_accuracy *a, bool stored, esdm_error *err)
{
    uint32_t known = 0;
    for (size_t i = 0; i < ESDM__QUANTITIES; i++) {
        known |= esdm__quantities[i].flag;
        if ((a->stated & esdm__quantities[i].flag) != 0 &&
            !is_right(&esdm__quantities[i], a, stored))
            return esdm__error_set(err, ESDM_EINVAL, "%s is out of range",
                                   esdm__quantities[i].name);
    }
    if ((a->stated & ~known) != 0)
        return esdm__error_set(err, ESDM_EINVAL, "an accuracy states unknown quantities (%#x)",
                               (unsigned) (a->stated & ~known));
    if ((a->stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0 &&
        (a->stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) == 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "relative_finest is stated without relative_tolerance");
    if ((a->stated & ESDM_ACCURACY_VECTOR_COMPONENTS) != 0 &&
        (a->stated & ESDM_ACCURACY_VECTOR_TOLERANCE) == 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "vector_components is stated without vector_tolerance");
    for (size_t i = 0; (a->stated & ESDM__TOLERANCES) == 0 && i < ESDM__QUANTITIES; i++)
        if ((a->stated & esdm__quantities[i].flag) != 0 &&
            (esdm__quantities[i].kind == ESDM__NUMBER || esdm__quantities[i].kind == ESDM__NUMBERS))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "%s is stated, but nothing that numbers may be off by",
                                   esdm__quantities[i].name);
    if ((a->stated & ESDM_ACCURACY_LOSSLESS_UP_TO) != 0 &&
        (a->stated & ESDM_ACCURACY_LOSSLESS_FROM) != 0 && a->lossless_up_to >= a->lossless_from)
        return esdm__error_set(err, ESDM_EINVAL,
                               "lossless_up_to %g and lossless_from %g leave no number that may "
                               "be off",
                               a->lossless_up_to, a->lossless_from);
    if ((a->stated & ESDM_ACCURACY_REGIONS) != 0)
        return esdm__regions_check(a, stored, err);
    return ESDM_OK;
}

esdm_status
esdm_accuracy_check(const esdm_accuracy *accuracy, esdm_error *err)
{
    ESDM__NEED(err, accuracy);
    return esdm__accuracy_check(accuracy, false, err);
}

bool
esdm_accuracy_is_lossy(const esdm_accuracy *a)
{
    if (a == NULL)
        return false;
    bool none = (a->stated & ESDM__TOLERANCES) == 0 ||
                ((a->stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0 && a->absolute_tolerance == 0);
    bool exact = (a->stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0 &&
                 a->relative_tolerance == 0 &&
                 ((a->stated & ESDM_ACCURACY_RELATIVE_FINEST) == 0 || a->relative_finest == 0);
    bool flat = ((a->stated & ESDM_ACCURACY_RANGE_TOLERANCE) != 0 && a->range_tolerance == 0) ||
                ((a->stated & ESDM_ACCURACY_STD_TOLERANCE) != 0 && a->std_tolerance == 0);
    bool derived =
        ((a->stated & ESDM_ACCURACY_GRADIENT_TOLERANCE) != 0 && a->gradient_tolerance == 0) ||
        ((a->stated & ESDM_ACCURACY_VECTOR_TOLERANCE) != 0 && a->vector_tolerance == 0) ||
        ((a->stated & ESDM_ACCURACY_MEAN_TOLERANCE) != 0 && a->mean_tolerance == 0);
    return !none && !exact && !flat && !derived;
}

/* ---- datasets ----------------------------------------------------------------------------- */

bool
esdm__accuracy_has_type(esdm_type type)
{
    return type >= ESDM_TYPE_INT8 && type <= ESDM_TYPE_UINT64 && type != ESDM_TYPE_CHAR;
}

static int
by_value(const void *a, const void *b)
{
    double x = *(const double *) a, y = *(const double *) b;
    return (x > y) - (x < y);
}

/* The same values are the same statement, in whichever order they were told. */
static void
sort_exact(esdm_accuracy *a)
{
    if ((a->stated & ESDM_ACCURACY_EXACT_VALUES) != 0)
        qsort(a->exact_values, a->exact_count, sizeof *a->exact_values, by_value);
}

/* Members that are not stated do not matter. */
bool
esdm__accuracy_equal(const esdm_accuracy *a, const esdm_accuracy *b)
{
    if (a == NULL || b == NULL)
        return a == b;
    bool same = a->stated == b->stated;
    for (size_t i = 0; same && i < ESDM__QUANTITIES; i++) {
        const esdm__quantity *q = &esdm__quantities[i];
        const void *left = (const char *) a + q->offset;
        const void *right = (const char *) b + q->offset;
        if ((a->stated & q->flag) == 0)
            continue;
        if (q->kind == ESDM__COUNT)
            same = *(const uint32_t *) left == *(const uint32_t *) right;
        else if (q->kind == ESDM__MODE)
            same = a->mode == b->mode;
        else if (q->kind == ESDM__SPEED)
            same = ((const esdm_speed *) left)->unit == ((const esdm_speed *) right)->unit &&
                   ((const esdm_speed *) left)->value == ((const esdm_speed *) right)->value;
        else if (q->kind == ESDM__NUMBERS)
            same = a->exact_count == b->exact_count &&
                   memcmp(left, right, a->exact_count * sizeof *a->exact_values) == 0;
        else if (q->kind == ESDM__REGIONS)
            same = esdm__regions_equal(a, b);
        else
            same = *(const double *) left == *(const double *) right;
    }
    return same;
}

esdm_status
esdm__dataset_put_accuracy(esdm_dataset *dataset, const esdm_accuracy *accuracy, bool *ret_changed,
                           esdm_error *err)
{
    bool none = accuracy == NULL || accuracy->stated == 0;
    esdm_accuracy wanted;
    if (!none) {
        wanted = *accuracy;
        sort_exact(&wanted);
    }
    esdm_accuracy before;
    esdm__accuracy_of_kept(dataset->stated->accuracy, &before);
    bool stands = dataset->stated->accuracy != NULL;
    bool same = dataset->stated->units == NULL &&
                esdm__accuracy_equal(none ? NULL : &wanted, stands ? &before : NULL);
    esdm__kept_accuracy *copy = NULL;
    if (!same && esdm__undo_keep_dataset(dataset, err) != ESDM_OK)
        return ESDM_ENOMEM;
    esdm__stated *stated = same ? NULL : esdm__dataset_stated(dataset, err);
    if (!same && stated == NULL)
        return ESDM_ENOMEM;
    if (!same && !none) {
        copy = esdm__accuracy_keep(&wanted);
        if (copy == NULL)
            return esdm__error_nomem(err, sizeof *copy, "an accuracy");
    }
    if (!same) {
        free(stated->accuracy);
        stated->accuracy = copy;
        free(stated->units);
        stated->units = NULL;
    }
    if (ret_changed != NULL)
        *ret_changed = !same;
    return ESDM_OK;
}

/* ---- units that change -------------------------------------------------------------------- */

#define UNITS_BYTES 256

esdm_status
esdm__accuracy_note_units(esdm_dataset *dataset, esdm_error *err)
{
    char units[UNITS_BYTES];
    const esdm__kept_accuracy *accuracy = dataset->stated->accuracy;
    if (accuracy == NULL || (accuracy->stated & ESDM__IN_UNITS) == 0 ||
        dataset->stated->units != NULL)
        return ESDM_OK;
    esdm__attribute_text(dataset, "units", units, sizeof units);
    if (units[0] == '\0') /* they are only now told */
        return ESDM_OK;
    if (esdm__undo_keep_dataset(dataset, err) != ESDM_OK)
        return ESDM_ENOMEM;
    esdm__stated *stated = esdm__dataset_stated(dataset, err);
    if (stated == NULL)
        return ESDM_ENOMEM;
    stated->units = strdup(units);
    return stated->units != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof units, "units");
}

bool
esdm__accuracy_same_units(const char *before, const char *now, bool thresholds)
{
    char why[UNITS_BYTES];
    double factor = 0;
    return now[0] != '\0' &&
           esdm__units_factor(before, now, !thresholds, &factor, why, sizeof why) && factor == 1;
}

const char *
esdm_dataset_accuracy_units(const esdm_dataset *dataset)
{
    char now[UNITS_BYTES];
    if (dataset == NULL || dataset->stated->units == NULL || dataset->stated->accuracy == NULL)
        return NULL;
    esdm__attribute_text(dataset, "units", now, sizeof now);
    bool thresholds = (dataset->stated->accuracy->stated & ESDM__THRESHOLDS) != 0;
    if (esdm__accuracy_same_units(dataset->stated->units, now, thresholds))
        return NULL;
    return dataset->stated->units;
}

bool
esdm_dataset_accuracy(const esdm_dataset *dataset, esdm_accuracy *ret_accuracy)
{
    if (dataset == NULL)
        return false;
    if (dataset->stated->accuracy == NULL)
        return false;
    esdm_accuracy accuracy;
    esdm__accuracy_of_kept(dataset->stated->accuracy, &accuracy);
    if (esdm_dataset_accuracy_units(dataset) != NULL)
        accuracy.stated &= ESDM__LOSES_NOTHING;
    if (accuracy.stated == 0)
        return false;
    *ret_accuracy = accuracy;
    return true;
}
