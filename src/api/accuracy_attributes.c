/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Attributes with which programs state the accuracy of a dataset, and those that tell readers. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/buffer.h"
#include "base/error.h"
#include "esdm/accuracy_attributes.h"
#include "esdm/placement.h"
#include "io/container/accuracy.h"
#include "io/container/container_io.h"
#include "io/read/fetch.h"
#include "io/read/read.h"
#include "model/accuracy.h"
#include "model/container.h"

#define PREFIX       "esdm_"
#define PREFIX_BYTES (sizeof PREFIX - 1)
#define VALUE_BYTES  1024

bool
esdm_accuracy_is_attribute(const char *name)
{
    return name != NULL && strncmp(name, PREFIX, PREFIX_BYTES) == 0 &&
           strcmp(name, ESDM_ACCURACY_STORED_ATTRIBUTE) != 0 &&
           strcmp(name, ESDM_ACCESS_ATTRIBUTE) != 0; /* that is about fragments */
}

uint32_t
esdm_accuracy_attribute_quantity(const char *name)
{
    return esdm_accuracy_is_attribute(name) ? esdm__accuracy_flag(name + PREFIX_BYTES) : 0;
}

/* ---- attributes as texts -------------------------------------------------------------------- */

/* Numbers one after the other. false: that is no text for a quantity. */
static bool
print_numbers(const esdm_attribute *attribute, char *text)
{
    double numbers[ESDM_ACCURACY_EXACT_MAX];
    size_t used = 0;
    if (attribute->count == 0 || attribute->count > ESDM_ACCURACY_EXACT_MAX ||
        esdm_convert(attribute->type, attribute->values, ESDM_TYPE_FLOAT64, numbers,
                     attribute->count, NULL, NULL) != ESDM_OK)
        return false;
    for (uint64_t i = 0; i < attribute->count; i++)
        used += (size_t) snprintf(text + used, VALUE_BYTES - used, "%s%.17g", i > 0 ? " " : "",
                                  numbers[i]);
    for (char *at = text; *at != '\0'; at++)
        *at = *at == ',' ? '.' : *at; /* of the program's locale */
    return true;
}

/* The value of an attribute as text in VALUE_BYTES; false: it has none. */
static bool
print_attribute(const esdm_attribute *attribute, char *text)
{
    const char *from = attribute->values;
    size_t bytes = (size_t) attribute->count;
    if (attribute->type == ESDM_TYPE_STRING) {
        if (attribute->count != 1)
            return false;
        from = *(const char *const *) attribute->values;
        bytes = from != NULL ? strlen(from) : 0;
    } else if (attribute->type != ESDM_TYPE_CHAR) {
        return print_numbers(attribute, text);
    }
    while (bytes > 0 && from[bytes - 1] == '\0')
        bytes--;
    if (bytes == 0 || bytes >= VALUE_BYTES)
        return false;
    memcpy(text, from, bytes);
    text[bytes] = '\0';
    return true;
}

/* ---- what they state ------------------------------------------------------------------------ */

esdm_status
esdm_dataset_accuracy_attributes(esdm_dataset *dataset, esdm_accuracy *accuracy,
                                 const char **ret_last, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    ESDM__NEED(err, accuracy);
    ESDM__NEED(err, ret_last);
    esdm_attributes *list = esdm_dataset_attributes(dataset);
    esdm_attribute attribute;
    char units[VALUE_BYTES];
    bool has_units =
        esdm_attribute_find(list, "units", &attribute, NULL) && print_attribute(&attribute, units);
    uint32_t seen = 0;
    *ret_last = NULL;
    for (size_t i = 0; esdm_attribute_at(list, i, &attribute); i++) {
        char text[VALUE_BYTES];
        const uint32_t quantity = esdm_accuracy_attribute_quantity(attribute.name);
        if (!esdm_accuracy_is_attribute(attribute.name))
            continue;
        *ret_last = attribute.name;
        if (!print_attribute(&attribute, text))
            return esdm__error_set(err, ESDM_EINVAL, "it has no value, or one too long");
        /* Of several names of one quantity (bits and netCDF's NSB) the strictest counts. */
        esdm_accuracy one = {0};
        esdm_accuracy *into = (seen & quantity) != 0 ? &one : accuracy;
        esdm_status st = esdm_accuracy_set(into, attribute.name + PREFIX_BYTES, text,
                                           has_units ? units : NULL, err);
        if (st == ESDM_OK && into == &one)
            st = esdm__accuracy_join(accuracy, &one, err);
        if (st != ESDM_OK)
            return st;
        seen |= quantity;
    }
    return ESDM_OK;
}

/* ---- readers -------------------------------------------------------------------------------- */

/* Of so many fragments of a container heads are read to tell what holds for them. */
#define ASKED_MOST  256u
#define NEARLY      1e-9
#define LESS_BEFORE ", perhaps less accurately before (esdm-stat --accuracy tells)"

/* What holds for all numbers that are stored already, by the statement of now or earlier ones. */
typedef struct stored {
    bool any;                  /* some of them may be off */
    bool known;                /* by how much; else they are too many to ask, or not committed */
    bool told;                 /* something was of them */
    double absolute, relative; /* unpacked; INFINITY: some have no such bound */
} stored;

static bool
is_plain(const esdm__fragment *fragment, void *user)
{
    bool *plain = user;
    *plain = *plain && esdm__fragment_is_raw(fragment);
    return *plain;
}

/* Whether there are numbers that are not committed yet and may be off: nobody knows by how much. */
static bool
is_writing(const esdm_dataset *dataset)
{
    esdm__dataset_io *io = dataset->io;
    if (io == NULL)
        return false;
    (void) pthread_mutex_lock(&io->write_lock);
    bool plain = io->rounded == NULL;
    (void) pthread_mutex_lock(&io->lock);
    esdm__index_pending_visit(io->index, is_plain, &plain);
    (void) pthread_mutex_unlock(&io->lock);
    (void) pthread_mutex_unlock(&io->write_lock);
    return !plain;
}

static stored
stored_of(esdm_dataset *dataset)
{
    esdm_accuracy_report report;
    const esdm_container *container = dataset->group->container;
    if (container->io == NULL)
        return (stored){.known = true};
    if (esdm__io_of(container)->comm != NULL || is_writing(dataset)) /* others may, too */
        return (stored){.any = true};
    if (esdm__io_of(container)->record == 0)
        return (stored){.known = true};
    if (esdm__io_of(container)->fragments > ASKED_MOST ||
        esdm__accuracy_report(dataset, NULL, 0, &report, NULL) != ESDM_OK)
        return (stored){.any = true};
    return (stored){.any = report.lossy_fragments > 0,
                    .known = true,
                    .absolute = report.absolute * esdm__accuracy_scale(dataset),
                    .relative = report.finest > 0 ? (double) INFINITY : report.relative};
}

/* The number of an attribute. */
static bool
told_before(const esdm_dataset *dataset, const char *name, double *ret_value)
{
    esdm_attribute a;
    return esdm_attribute_find(&dataset->attributes, name, &a, NULL) && a.count == 1 &&
           esdm__accuracy_has_type(a.type) &&
           esdm_convert(a.type, a.values, ESDM_TYPE_FLOAT64, ret_value, 1, NULL, NULL) == ESDM_OK;
}

/* A bound that holds for what is stored and what is stated; INFINITY: none does.
 * @param sign  -1 where the larger number (digits) is the stricter one */
static double
bound_of(const esdm_dataset *dataset, const stored *s, const char *name, double stated,
         double of_stored, double sign)
{
    double before = 0;
    if (!s->any)
        return stated;
    if (s->known)
        return of_stored * sign <= stated * sign + fabs(stated) * NEARLY ? stated : of_stored;
    if (!told_before(dataset, name, &before)) /* another kind of bound was, or none yet */
        return s->told ? (double) INFINITY : stated;
    return before * sign > stated * sign ? before : stated;
}

/* What CF and netCDF call so of numbers that are off by at most this share of |x|: at every x at
 * most half a unit of the place of the last explicit bit (NSB) or digit (NSD), and no more places
 * than they have for the type. INFINITY: nothing is known. */
static double
places_of(const esdm_dataset *dataset, bool bits, double relative)
{
    const bool single = dataset->type == ESDM_TYPE_FLOAT32;
    if (bits)
        return fmin(floor(-log2(relative) - 2 + NEARLY), single ? 23 : 52);
    return fmin(floor(-log10(2 * relative) + NEARLY), single ? 7 : 15);
}

/* Of what is stated. */
static double
places_stated(const esdm_dataset *dataset, const esdm_accuracy *a, bool bits)
{
    double relative = 1;
    if ((a->stated & ESDM_ACCURACY_SIGNIFICANT_BITS) != 0)
        relative = ldexp(1, -(int) a->significant_bits);
    if ((a->stated & ESDM_ACCURACY_SIGNIFICANT_DIGITS) != 0)
        relative = fmin(relative, pow(10, -(double) a->significant_digits));
    return fmax(places_of(dataset, bits, relative), 0);
}

/* All that is in force, as one text. */
static esdm_status
tell_all(esdm_dataset *dataset, const esdm_accuracy *accuracy, bool looser, esdm_error *err)
{
    char *text = NULL;
    if (!esdm_session_keeps_accuracy(dataset->group->container->session))
        return ESDM_OK;
    esdm_status st = esdm_accuracy_print(accuracy, &text, err);
    if (st != ESDM_OK)
        return st;
    esdm__buffer told;
    esdm__buffer_init(&told);
    esdm__buffer_put(&told, text, strlen(text));
    if (looser)
        esdm__buffer_put(&told, LESS_BEFORE, strlen(LESS_BEFORE));
    free(text);
    st = told.failed
             ? esdm__error_nomem(err, 1, "an attribute")
             : esdm_attribute_set(esdm_dataset_attributes(dataset), ESDM_ACCURACY_STORED_ATTRIBUTE,
                                  ESDM_TYPE_CHAR, told.bytes, told.data, err);
    esdm__buffer_clear(&told);
    return st;
}

esdm_status
esdm_dataset_tell_accuracy(esdm_dataset *dataset, esdm_error *err)
{
    esdm_accuracy a;
    ESDM__NEED(err, dataset);
    if (!esdm_dataset_accuracy_in_force(dataset, &a))
        return ESDM_OK;
    stored s = esdm_accuracy_is_lossy(&a) ? stored_of(dataset) : (stored){.known = true};
    bool has_finest = (a.stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0;
    const uint32_t places =
        (uint32_t) ESDM_ACCURACY_SIGNIFICANT_DIGITS | ESDM_ACCURACY_SIGNIFICANT_BITS;
    const struct {
        const char *name;
        bool stated, whole;
        double value, of_stored;
    } told[] = {
        {"quantization_maximum_absolute_error", (a.stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0,
         false, a.absolute_tolerance, s.absolute},
        {"quantization_maximum_relative_error",
         (a.stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0 && !has_finest, false,
         a.relative_tolerance, s.relative},
        {"quantization_nsd", (a.stated & places) != 0, true, places_stated(dataset, &a, false),
         places_of(dataset, false, s.relative)},
        {"quantization_nsb", (a.stated & ESDM_ACCURACY_SIGNIFICANT_BITS) != 0, true,
         places_stated(dataset, &a, true), places_of(dataset, true, s.relative)},
    };
    esdm_status st = ESDM_OK;
    bool looser = false;
    s.told = esdm_attribute_find(&dataset->attributes, ESDM_ACCURACY_STORED_ATTRIBUTE, NULL, NULL);
    for (size_t i = 0; i < sizeof told / sizeof told[0]; i++)
        s.told = s.told || esdm_attribute_find(&dataset->attributes, told[i].name, NULL, NULL);
    for (size_t i = 0; i < sizeof told / sizeof told[0] && st == ESDM_OK; i++) {
        const char *name = told[i].name;
        const double bound =
            bound_of(dataset, &s, name, told[i].value, told[i].of_stored, told[i].whole ? -1 : 1);
        const int32_t digits = isfinite(bound) ? (int32_t) bound : 0;
        const bool holds = isfinite(bound) && bound > 0 && told[i].stated;
        looser = looser || (told[i].stated && bound != told[i].value);
        if (holds)
            st = esdm_attribute_set(esdm_dataset_attributes(dataset), name,
                                    told[i].whole ? ESDM_TYPE_INT32 : ESDM_TYPE_FLOAT64, 1,
                                    told[i].whole ? (const void *) &digits : &bound, err);
        else if (s.any && esdm_attribute_find(&dataset->attributes, name, NULL, NULL))
            st = esdm_attribute_remove(esdm_dataset_attributes(dataset), name, err);
    }
    return st == ESDM_OK && esdm_accuracy_is_lossy(&a) ? tell_all(dataset, &a, looser, err) : st;
}

esdm_status
esdm_dataset_remove_accuracy_attributes(esdm_dataset *dataset, esdm_error *err)
{
    ESDM__NEED(err, dataset);
    esdm_attributes *list = esdm_dataset_attributes(dataset);
    esdm_attribute attribute;
    esdm_status st = ESDM_OK;
    for (size_t i = 0; st == ESDM_OK && esdm_attribute_at(list, i, &attribute);) {
        char name[ESDM_NAME_MAX + 1];
        if (!esdm_accuracy_is_attribute(attribute.name)) {
            i++;
            continue;
        }
        (void) snprintf(name, sizeof name, "%s", attribute.name);
        st = esdm_attribute_remove(list, name, err);
    }
    return st;
}
