/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/container/accuracy.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "codec/verify.h"
#include "io/container/behind.h"
#include "io/container/rounded.h"
#include "io/encode/choose.h"
#include "model/accuracy.h"
#include "model/convert.h"

/* Scaling rounds: bounds become this much smaller than the quotient. */
#define CAREFUL (1.0 - 0x1p-50)
/* The same of a sum of many. */
#define CAREFUL_SUM (1.0 - 0x1p-30)

/* Errors that are spread evenly over a bound have a root mean square of 1/sqrt(3) of it; a little
 * less, so that chance does not make most blocks miss it. */
#define NOISE_REACH 1.69

/* A rule of the site is about variables of a name, and what is computed from them has the same one:
 * trends, variances. So its tolerance holds for numbers that span so many of it at least, as
 * TOLERANCES_IN_SPAN of api/accuracy_span.c. */
#define RULE_SPANS 16

/* ---- packed numbers ----------------------------------------------------------------------- */

double
esdm__accuracy_number(const esdm_dataset *dataset, const char *name, double otherwise)
{
    esdm_attribute attribute;
    double number = otherwise;
    const esdm_attributes *list = &dataset->attributes;
    if (esdm_attribute_find((esdm_attributes *) (uintptr_t) list, name, &attribute, NULL) &&
        attribute.count == 1 && esdm__accuracy_has_type(attribute.type) &&
        esdm_convert(attribute.type, attribute.values, ESDM_TYPE_FLOAT64, &number, 1, NULL, NULL) ==
            ESDM_OK)
        return number;
    return otherwise;
}

/* ---- quantities --------------------------------------------------------------------------- */

static double
least(double a, double b)
{
    return a < b ? a : b;
}

/* Tolerances as bounds of each point: what of them is in esdm_codec_accuracy, and shares. */
typedef struct bounds {
    double absolute, relative, finest;
    double range, deviation, noise;
    double mean;
    bool lossy;
} bounds;

/* What is stated of differences, vectors and means. A difference of two numbers is off by as much
 * as both of them together; the length of a vector by at most the length of the vector of errors,
 * which is sqrt(n) times their bound. */
static void
derived_bounds(const esdm_accuracy *stated, bounds *b)
{
    double components = 2;
    if ((stated->stated & ESDM_ACCURACY_VECTOR_COMPONENTS) != 0)
        components = stated->vector_components;
    if ((stated->stated & ESDM_ACCURACY_GRADIENT_TOLERANCE) != 0)
        b->absolute = least(b->absolute, stated->gradient_tolerance / 2);
    if ((stated->stated & ESDM_ACCURACY_VECTOR_TOLERANCE) != 0)
        b->absolute = least(b->absolute, stated->vector_tolerance / sqrt(components) * CAREFUL);
    if ((stated->stated & ESDM_ACCURACY_MEAN_TOLERANCE) != 0)
        b->mean = stated->mean_tolerance;
}

/* The strictest of all that is stated. */
static void
compile_bounds(const esdm_accuracy *stated, bounds *b)
{
    double strict = (double) INFINITY; /* relative ones that have no finest */
    *b = (bounds){.absolute = (double) INFINITY,
                  .relative = (double) INFINITY,
                  .range = (double) INFINITY,
                  .deviation = (double) INFINITY,
                  .noise = (double) INFINITY,
                  .mean = (double) INFINITY};
    if ((stated->stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) != 0)
        b->absolute = stated->absolute_tolerance;
    derived_bounds(stated, b);
    if ((stated->stated & ESDM_ACCURACY_SIGNIFICANT_DIGITS) != 0)
        strict = least(strict, pow(10, -(double) stated->significant_digits) * CAREFUL);
    if ((stated->stated & ESDM_ACCURACY_SIGNIFICANT_BITS) != 0)
        strict = least(strict, ldexp(1, -(int) stated->significant_bits));
    if ((stated->stated & ESDM_ACCURACY_RELATIVE_TOLERANCE) != 0)
        b->relative = stated->relative_tolerance;
    if ((stated->stated & ESDM_ACCURACY_RELATIVE_FINEST) != 0 && !(strict < (double) INFINITY))
        b->finest = stated->relative_finest;
    b->relative = least(b->relative, strict);
    if (b->relative == 0 && b->finest > 0) { /* everywhere the finest one */
        b->absolute = least(b->absolute, b->finest);
        b->relative = (double) INFINITY;
        b->finest = 0;
    }
    if ((stated->stated & ESDM_ACCURACY_RANGE_TOLERANCE) != 0)
        b->range = stated->range_tolerance;
    if ((stated->stated & ESDM_ACCURACY_STD_TOLERANCE) != 0)
        b->deviation = stated->std_tolerance;
    if ((stated->stated & ESDM_ACCURACY_PSNR) != 0)
        b->noise = pow(10, -stated->psnr / 20) * CAREFUL;
    double share = least(least(b->range, b->deviation), b->noise);
    b->lossy = b->absolute > 0 && b->relative > 0 && share > 0 && b->mean > 0 &&
               (b->absolute < (double) INFINITY || b->relative < (double) INFINITY ||
                share < (double) INFINITY);
}

double
esdm__accuracy_scale(const esdm_dataset *dataset)
{
    bool is_float = dataset->type == ESDM_TYPE_FLOAT32 || dataset->type == ESDM_TYPE_FLOAT64;
    return is_float ? 1 : fabs(esdm__accuracy_number(dataset, "scale_factor", 1));
}

/* Bounds of unpacked numbers become those of the stored ones. */
static esdm_status
unpack(const esdm_dataset *dataset, const esdm_accuracy *stated, bounds *b, esdm_error *err)
{
    double scale = esdm__accuracy_number(dataset, "scale_factor", 1);
    double offset = esdm__accuracy_number(dataset, "add_offset", 0);
    bool is_float = dataset->type == ESDM_TYPE_FLOAT32 || dataset->type == ESDM_TYPE_FLOAT64;
    if (is_float || (scale == 1 && offset == 0))
        return ESDM_OK;
    if (!isfinite(scale) || scale == 0 || !isfinite(offset))
        return esdm__error_set(err, ESDM_EINVAL,
                               "an accuracy needs a finite 'scale_factor' other than 0 and a "
                               "finite 'add_offset'");
    if (b->relative < (double) INFINITY)
        return esdm__error_set(err, ESDM_EINVAL,
                               "the numbers are packed (attribute 'scale_factor'): state "
                               "absolute_tolerance instead of a relative one, digits or bits");
    if ((stated->stated & (ESDM_ACCURACY_LOSSLESS_UP_TO | ESDM_ACCURACY_LOSSLESS_FROM)) != 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "the numbers are packed (attribute 'scale_factor'): lossless ranges "
                               "cannot be stated of them");
    b->absolute = b->absolute / fabs(scale) * CAREFUL;
    b->mean = b->mean / fabs(scale) * CAREFUL;
    return ESDM_OK;
}

/* What a region states, of a fragment that has other points, too: the mean of those that are in the
 * region is not off by more than each of them. */
static void
state_in_part(esdm_accuracy *region)
{
    if ((region->stated & ESDM_ACCURACY_MEAN_TOLERANCE) == 0)
        return;
    if ((region->stated & ESDM_ACCURACY_ABSOLUTE_TOLERANCE) == 0)
        region->absolute_tolerance = region->mean_tolerance;
    region->absolute_tolerance = least(region->absolute_tolerance, region->mean_tolerance);
    region->stated |= ESDM_ACCURACY_ABSOLUTE_TOLERANCE;
    region->stated &= ~(uint32_t) ESDM_ACCURACY_MEAN_TOLERANCE;
}

static const esdm__whereabouts nowhere = {0};
static const esdm__whereabouts in_all = {.touched = UINT32_MAX, .inside = UINT32_MAX};

/* What holds there. */
static esdm_status
bounds_in(const esdm__accuracy *a, const esdm__whereabouts *where, bounds *ret, esdm_error *err)
{
    esdm_accuracy stated = a->in_force;
    esdm_status status = ESDM_OK;
    uint32_t count = (stated.stated & ESDM_ACCURACY_REGIONS) != 0 ? stated.region_count : 0;
    for (uint32_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm_accuracy region;
        if ((where->touched >> i & 1) == 0)
            continue;
        esdm__region_accuracy(&a->in_force.regions[i], &region);
        if ((where->inside >> i & 1) == 0)
            state_in_part(&region);
        status = esdm__accuracy_join_statement(&stated, &region, err);
    }
    if (status != ESDM_OK)
        return status;
    compile_bounds(&stated, ret);
    /* What is computed of numbers that are stored as negative is not what readers compute. */
    const double share = least(least(ret->range, ret->deviation), ret->noise);
    if (a->limits.natural && share < (double) INFINITY)
        ret->lossy = false;
    return ret->lossy ? unpack(a->dataset, &stated, ret, err) : ESDM_OK;
}

static esdm_status
compile_speed(esdm_session *session, const esdm_speed *speed, const char *name, double *ret_bytes,
              esdm_error *err)
{
    double unit = speed->unit == ESDM_SPEED_BYTES ? 1 : (double) session->site->speeds[speed->unit];
    if (unit == 0 && speed->unit == ESDM_SPEED_SHARED)
        unit = esdm__storage_bandwidth(session);
    if (unit == 0)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "%s: how fast that is is not known here; state it in MiB/s or "
                               "GiB/s, or \"speeds\" in the site configuration",
                               name);
    *ret_bytes = speed->value * unit;
    return ESDM_OK;
}

static esdm_status
compile(const esdm_dataset *dataset, const esdm_accuracy *stated, esdm__accuracy *a,
        esdm_error *err)
{
    esdm_session *session = dataset->group->container->session;
    memset(a, 0, sizeof *a);
    a->stated = true;
    a->dataset = dataset;
    a->in_force = *stated;
    a->codec = (esdm_codec_accuracy){.exact_below = -(double) INFINITY,
                                     .exact_above = (double) INFINITY,
                                     .sum_bound = (double) INFINITY};
    a->conserved =
        (stated->stated & ESDM_ACCURACY_CONSERVE) != 0 ? stated->conserve : (double) INFINITY;
    a->mode = (stated->stated & ESDM_ACCURACY_MODE) != 0 ? stated->mode : ESDM_MODE_BALANCED;
    if ((stated->stated & ESDM_ACCURACY_LOSSLESS_UP_TO) != 0)
        a->codec.exact_below = stated->lossless_up_to;
    if ((stated->stated & ESDM_ACCURACY_LOSSLESS_FROM) != 0)
        a->codec.exact_above = stated->lossless_from;
    esdm__limits_of(dataset, &a->limits);
    esdm_status status = ESDM_OK;
    if ((stated->stated & ESDM_ACCURACY_COMPRESSION_SPEED) != 0)
        status = compile_speed(session, &stated->compression_speed, "compression_speed",
                               &a->compression_speed, err);
    if (status == ESDM_OK && (stated->stated & ESDM_ACCURACY_DECOMPRESSION_SPEED) != 0)
        status = compile_speed(session, &stated->decompression_speed, "decompression_speed",
                               &a->decompression_speed, err);
    if (status == ESDM_OK && (stated->stated & ESDM_ACCURACY_REGIONS) != 0) {
        bounds all; /* that it makes sense in each region, too */
        status = bounds_in(a, &in_all, &all, err);
    }
    if (status == ESDM_OK) {
        bounds b;
        status = bounds_in(a, &nowhere, &b, err);
        a->lossy = b.lossy;
        a->codec.absolute = b.absolute;
        a->codec.relative = b.relative;
        a->codec.finest = b.finest;
        a->range = b.range;
        a->deviation = b.deviation;
        a->noise = b.noise;
        a->mean = b.mean;
    }
    if (status == ESDM_OK)
        status = esdm__accuracy_collect_exact(dataset, stated, a, err);
    return status;
}

esdm_status
esdm__accuracy_compile(const esdm_dataset *dataset, esdm__accuracy *ret, esdm_error *err)
{
    esdm_accuracy accuracy;
    bool stated = false;
    bool by_rule;
    esdm_status status = esdm__accuracy_find(dataset, &accuracy, &stated, &by_rule, err);
    if (status == ESDM_OK && stated)
        status = compile(dataset, &accuracy, ret, err);
    ret->by_rule = by_rule;
    if (status != ESDM_OK || stated)
        return status;
    ret->stated = false;
    ret->lossy = false;
    return ESDM_OK;
}

esdm_status
esdm__accuracy_accept(const esdm_dataset *dataset, const esdm_accuracy *accuracy, esdm_error *err)
{
    esdm__accuracy compiled;
    if (!esdm__accuracy_has_type(dataset->type))
        return esdm__error_set(err, ESDM_EINVAL,
                               "an accuracy is of numbers, not of elements of type %s",
                               esdm__type_name(dataset->group->container, dataset->type));
    esdm_status status = esdm_accuracy_check(accuracy, err);
    return status == ESDM_OK ? compile(dataset, accuracy, &compiled, err) : status;
}

esdm_status
esdm__accuracy_tolerance(const esdm_dataset *dataset, const char *text, esdm_accuracy *ret_stated,
                         double *ret_stored, esdm_error *err)
{
    char units[128];
    bounds b;
    esdm_accuracy_init(ret_stated);
    esdm_status status = esdm_accuracy_set(ret_stated, "absolute_tolerance", text,
                                           esdm__accuracy_units(dataset, units, sizeof units), err);
    if (status != ESDM_OK)
        return status;
    compile_bounds(ret_stated, &b);
    status = unpack(dataset, ret_stated, &b, err);
    *ret_stored = b.absolute;
    return status;
}

/* What was chosen by what was stated before, while the dataset has no state. */
static void
forget_choice(esdm_dataset *dataset)
{
    esdm__container_io *container_io = esdm__io_of(dataset->group->container);
    (void) pthread_mutex_lock(&container_io->lock);
    esdm__choice *choice = dataset->io_choice;
    if (choice != NULL)
        choice->made = false;
    (void) pthread_mutex_unlock(&container_io->lock);
}

/* Caller holds the write lock. */
static void
choose_anew(esdm__dataset_io *io)
{
    if (io->choice != NULL)
        io->choice->made = false;
    if (io->choice_in_regions != NULL)
        io->choice_in_regions->made = false;
    atomic_store(&io->regions.looked_at, 0);
}

void
esdm__dataset_end_statement(esdm_dataset *dataset)
{
    esdm__dataset_io *io = esdm__dataset_io_find_for_sure(dataset);
    if (io == NULL) {
        forget_choice(dataset);
        return;
    }
    (void) pthread_mutex_lock(&io->write_lock);
    esdm_error failure = {0};
    failure.status = esdm__dataset_flush(dataset, io, &failure);
    if (failure.status != ESDM_OK) /* what is stated from now on may allow other errors */
        esdm__dataset_give_up_unstored(dataset, io, &failure);
    (void) !esdm__rounded_restate(dataset, io, NULL);
    choose_anew(io);
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
}

esdm_status
esdm__io_set_accuracy(esdm_dataset *dataset, const esdm_accuracy *accuracy, bool *ret_changed,
                      esdm_error *err)
{
    esdm__dataset_io *io = esdm__dataset_io_find_for_sure(dataset);
    esdm_status status = ESDM_OK;
    if (io == NULL) {
        forget_choice(dataset);
        return esdm__dataset_put_accuracy(dataset, accuracy, ret_changed, err);
    }
    (void) pthread_mutex_lock(&io->write_lock);
    status = esdm__dataset_flush(dataset, io, err); /* written under the old one */
    if (status == ESDM_OK)
        status = esdm__rounded_restate(dataset, io, err);
    if (status == ESDM_OK)
        status = esdm__dataset_put_accuracy(dataset, accuracy, ret_changed, err);
    if (status == ESDM_OK)
        esdm__dataset_io_size(dataset, io);
    choose_anew(io);
    (void) pthread_mutex_unlock(&io->write_lock);
    esdm__dataset_io_put(dataset);
    return status;
}

/* ---- regions ------------------------------------------------------------------------------ */

static bool
has_regions(const esdm__accuracy *a)
{
    return a->lossy && (a->in_force.stated & ESDM_ACCURACY_REGIONS) != 0;
}

const esdm__region_map *
esdm__accuracy_map(const esdm__accuracy *a, esdm__dataset_io *io)
{
    esdm__regions *regions = &io->regions;
    if (!has_regions(a))
        return NULL;
    const bool known = esdm__region_map_is_of(regions->map, &a->in_force);
    if (!known || regions->map->doubt != NULL)
        atomic_store(&regions->doubt, known ? regions->map->doubt : ESDM__REGIONS_NOT_ASKED);
    return known ? regions->map : NULL;
}

esdm__whereabouts
esdm__accuracy_where(const esdm__accuracy *a, const esdm__region_map *map, const esdm__box *box)
{
    if (!has_regions(a))
        return nowhere;
    if (map == NULL)
        return (esdm__whereabouts){.touched = (UINT32_C(1) << a->in_force.region_count) - 1};
    return (esdm__whereabouts){.touched = esdm__region_map_touched(map, box),
                               .inside = esdm__region_map_holds(map, box)};
}

/* ---- values ------------------------------------------------------------------------------- */

/* Whether numbers of that span can be those that a rule with these bounds is about. */
static bool
rule_is_of(const esdm_codec_accuracy *c, double low, double high)
{
    double tolerance = c->absolute < (double) INFINITY ? c->absolute : c->finest;
    return high - low >= tolerance * RULE_SPANS;
}

bool
esdm__accuracy_of_values(const esdm__accuracy *a, const esdm__whereabouts *where, esdm_type type,
                         const void *values, uint64_t count, esdm_codec_accuracy *ret,
                         esdm__block_bounds *ret_blocks)
{
    esdm_codec_accuracy c = a->codec;
    bounds b = {.lossy = a->lossy,
                .range = a->range,
                .deviation = a->deviation,
                .noise = a->noise,
                .mean = a->mean};
    if (a->lossy && where->touched != 0) {
        if (bounds_in(a, where, &b, NULL) != ESDM_OK)
            return false;
        c.absolute = b.absolute;
        c.relative = b.relative;
        c.finest = b.finest;
    }
    bool by_range = b.range < (double) INFINITY;
    bool by_deviation = b.deviation < (double) INFINITY;
    bool by_noise = b.noise < (double) INFINITY;
    double noise = (double) INFINITY;
    if (!b.lossy)
        return false;
    if (a->by_rule && (c.absolute < (double) INFINITY || c.finest > 0)) {
        esdm__accuracy_spread s = esdm__accuracy_spread_of(&c, type, values, (size_t) count, false);
        if (!(s.low <= s.high) || !rule_is_of(&c, s.low, s.high))
            return false;
    }
    if (by_range || by_deviation || by_noise) {
        esdm__accuracy_spread s =
            esdm__accuracy_spread_of(&c, type, values, (size_t) count, by_deviation);
        if (!(s.low < s.high))
            return false;
        /* Of both ends, as the difference of large numbers may be no number. */
        double range =
            by_range ? (s.high * b.range - s.low * b.range) * CAREFUL : (double) INFINITY;
        double deviation =
            by_deviation ? s.deviation * b.deviation * CAREFUL_SUM : (double) INFINITY;
        if (by_range || by_deviation)
            c.absolute = least(c.absolute, esdm__accuracy_bound_below(least(range, deviation)));
        if (by_noise) {
            noise = esdm__accuracy_bound_below((s.high * b.noise - s.low * b.noise) * CAREFUL);
            c.absolute = least(c.absolute, noise * NOISE_REACH);
        }
    }
    if (!(c.absolute > 0))
        return false;
    *ret = c;
    *ret_blocks = (esdm__block_bounds){.noise = noise, .mean = b.mean};
    return true;
}
