/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which numbers keep their bits, and a mask of the values that stand for missing ones. */

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "encode.h"

#define CHUNK       512
#define PROBES      512
#define ZEROS_PART  20     /* one in so many is frequent */
#define EDGE_ROWS   128    /* that edges of zeros are looked for in */
#define EDGES_LEAST 16     /* of them that tell */
#define EDGE_BITS   1.5    /* by which they cost more than other neighbours do */
#define EDGE_STEPS  0x1p52 /* more: no numbers */
#define NEAR        8      /* bounds: what is no further away costs nothing */
#define INT_EXACT   0x1p53 /* integers up to here are doubles */

double
field__bound(const esdm_codec_accuracy *accuracy, double value)
{
    double relative = accuracy->relative < INFINITY ? accuracy->relative * fabs(value) : INFINITY;
    relative = relative > accuracy->finest ? relative : accuracy->finest;
    return accuracy->absolute < relative ? accuracy->absolute : relative;
}

static inline bool
same_four(const uint8_t *a, const uint8_t *b)
{
    uint32_t x, y;
    memcpy(&x, a, sizeof x);
    memcpy(&y, b, sizeof y);
    return x == y;
}

/* Whether the element is one of the patterns that stay as they are. */
static bool
is_exact_pattern(const field__job *job, const uint8_t *element, size_t bytes)
{
    const uint8_t *exact = job->accuracy->exact_values;
    for (uint32_t i = 0; i < job->accuracy->exact_count; i++) {
        if (bytes == 4 ? same_four(exact + i * bytes, element)
                       : memcmp(exact + i * bytes, element, bytes) == 0)
            return true;
    }
    return false;
}

static bool
must_be_exact(const field__job *job, double value)
{
    const esdm_codec_accuracy *a = job->accuracy;
    return value <= a->exact_below || value >= a->exact_above ||
           (!field__is_float(job->kind) && fabs(value) >= INT_EXACT);
}

static void
mask_specials(field__job *job)
{
    size_t bytes = field__kind_bytes(job->kind);
    size_t n = job->block->elements;
    const esdm_codec_accuracy *a = job->accuracy;
    bool patterns = a != NULL && a->exact_count > 0;
    bool ranges = a != NULL && (a->exact_below > -INFINITY || a->exact_above < INFINITY ||
                                !field__is_float(job->kind));
    for (size_t first = 0; first < n; first += CHUNK) {
        double values[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        field__kernels_best()->mask_infinite(values, count, job->mask + first);
        for (size_t i = 0; ranges && i < count; i++)
            job->mask[first + i] |= must_be_exact(job, values[i]);
        for (size_t i = 0; patterns && i < count; i++) {
            const uint8_t *element = (const uint8_t *) job->raw + (first + i) * bytes;
            job->mask[first + i] |= is_exact_pattern(job, element, bytes);
        }
    }
}

/* The same and field__survey() at once, of single precision; false where that does not do. */
static bool
split_singles(field__job *job)
{
    const esdm_codec_accuracy *a = job->accuracy;
    uint32_t exact[4] = {UINT32_MAX, UINT32_MAX, UINT32_MAX, UINT32_MAX}; /* NaN: masked anyhow */
    float extremes[3] = {INFINITY, -INFINITY, INFINITY};
    float below = -INFINITY;
    float above = INFINITY;
    size_t n = job->block->elements;
    if (job->kind != FIELD__FLOAT32 || ((uintptr_t) job->raw & 3) != 0 ||
        (a != NULL && a->exact_count > 4))
        return false;
    if (a != NULL) {
        if (a->exact_count > 0)
            memcpy(exact, a->exact_values, a->exact_count * sizeof exact[0]);
        below = (float) a->exact_below;
        above = (float) a->exact_above;
        if ((double) below > a->exact_below)
            below = nextafterf(below, -INFINITY);
        if ((double) above < a->exact_above)
            above = nextafterf(above, INFINITY);
    }
    job->masked =
        field__kernels_best()->split_singles(job->raw, n, exact, below, above, job->mask, extremes);
    job->least = extremes[0];
    job->most = extremes[1];
    job->smallest = extremes[2];
    return true;
}

void
field__survey(field__job *job)
{
    size_t n = job->block->elements;
    field__extremes extremes = {INFINITY, -INFINITY, INFINITY};
    job->masked = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        double values[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        job->masked += field__kernels_best()->survey(values, job->mask + first, count, &extremes);
    }
    job->least = extremes.least;
    job->most = extremes.most;
    job->smallest = extremes.smallest;
}

/* How often a value occurs, and the extremes of all others. */
typedef struct without {
    size_t count;
    double least, most;
} without;

static without
look_without(const field__job *job, double value)
{
    field__extremes extremes = {INFINITY, -INFINITY, INFINITY};
    size_t n = job->block->elements;
    size_t masked = 0;
    for (size_t first = 0; first < n; first += CHUNK) {
        double values[CHUNK];
        uint8_t mask[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        for (size_t i = 0; i < count; i++)
            mask[i] = job->mask[first + i] | (values[i] == value);
        masked += field__kernels_best()->survey(values, mask, count, &extremes);
    }
    return (without){masked - job->masked, extremes.least, extremes.most};
}

static void
mask_value(field__job *job, double value)
{
    size_t n = job->block->elements;
    for (size_t first = 0; first < n; first += CHUNK) {
        double values[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        for (size_t i = 0; i < count; i++)
            job->mask[first + i] |= values[i] == value;
    }
}

/* Whether some points show that the value does not stand apart: others are in its half. */
static bool
is_near_others(const field__job *job, double value)
{
    double middle = job->least / 2 + job->most / 2;
    size_t n = job->block->elements;
    size_t step = n / PROBES + 1;
    for (size_t i = 0; i < n; i += step) {
        double other;
        field__load(job->kind, job->raw, i, 1, &other);
        if (!job->mask[i] && other != value && (other > middle) == (value > middle))
            return true;
    }
    return false;
}

/* A value that repeats and stands apart from the others by more than their range is a fill value,
 * whether it was declared or not. */
static bool
mask_outlier(field__job *job, double value)
{
    if (!(job->least < job->most) || is_near_others(job, value))
        return false;
    without w = look_without(job, value);
    double gap = value > w.most ? value - w.most : w.least - value;
    double near = job->accuracy != NULL && job->accuracy->absolute < INFINITY
                      ? NEAR * job->accuracy->absolute
                      : 0;
    if (w.count < 2 || !(gap > w.most - w.least) || gap < near)
        return false;
    mask_value(job, value);
    field__survey(job);
    job->apart = fmax(job->apart, fabs(value));
    return true;
}

void
field__mask_zeros(field__job *job)
{
    size_t n = job->block->elements;
    size_t zeros = 0;
    if (!field__is_float(job->kind) || job->least > 0 || job->most < 0)
        return;
    for (size_t first = 0; first < n; first += CHUNK) {
        double values[CHUNK];
        size_t count = n - first < CHUNK ? n - first : CHUNK;
        field__load(job->kind, job->raw, first, count, values);
        for (size_t i = 0; i < count; i++)
            zeros += values[i] == 0;
    }
    if (zeros < n / ZEROS_PART)
        return;
    mask_value(job, 0);
    field__survey(job);
}

/* Part of a row in the middle of a block's rows. */
typedef struct strip {
    double values[CHUNK];
    const uint8_t *mask; /* or NULL */
    size_t width;
} strip;

static void
load_strip(const field__job *job, size_t r, strip *ret)
{
    size_t nx = (size_t) job->axes.nx;
    ret->width = nx < CHUNK ? nx : CHUNK;
    size_t first = r * nx + (nx - ret->width) / 2;
    ret->mask = job->mask != NULL ? job->mask + first : NULL;
    field__load(job->kind, job->raw, first, ret->width, ret->values);
}

static inline bool
is_masked(const strip *s, size_t x)
{
    return s->mask != NULL && (s->mask[x] | s->mask[x - 1]) != 0;
}

static size_t
count_edges(const strip *s)
{
    size_t count = 0;
    for (size_t x = 1; x < s->width; x++)
        count += ((s->values[x] == 0) != (s->values[x - 1] == 0)) & !is_masked(s, x);
    return count;
}

/* Whether so many zeros have others beside them that these may tell something. */
static bool
has_edges(const field__job *job, size_t rows)
{
    size_t count = 0;
    if (job->mask != NULL && (job->least > 0 || job->most < 0)) /* of what is not masked */
        return false;
    for (size_t r = 0; r < rows && count < EDGES_LEAST; r += rows / EDGE_ROWS + 1) {
        strip s;
        load_strip(job, r, &s);
        count += count_edges(&s);
    }
    return count >= EDGES_LEAST;
}

bool
field__zeros_have_edges(const field__job *job, double step)
{
    double bits[2] = {0, 0}; /* of the steps between neighbours: no zeros, and one of them */
    size_t count[2] = {0, 0};
    size_t zeros = 0;
    size_t seen = 0;
    size_t rows = job->block->elements / (size_t) job->axes.nx;
    if (!field__is_float(job->kind) || !(step > 0) || !has_edges(job, rows))
        return false;
    for (size_t r = 0; r < rows; r += rows / EDGE_ROWS + 1) {
        double of[CHUNK];
        strip s;
        load_strip(job, r, &s);
        field__kernels_best()->step_bits(s.values, s.width, step, EDGE_STEPS, of);
        seen += s.width;
        for (size_t x = 1; x < s.width; x++) {
            bool zero = s.values[x] == 0;
            bool left = s.values[x - 1] == 0;
            zeros += zero;
            if ((zero && left) || is_masked(&s, x) || !(of[x] >= 0))
                continue;
            bits[zero != left] += of[x];
            count[zero != left]++;
        }
    }
    /* One width for 64 numbers: among many zeros the others make it a large one. */
    if (job->effort == ESDM_EFFORT_FAST && zeros > seen / 2)
        return true;
    return count[1] >= EDGES_LEAST && count[0] > 0 &&
           bits[1] / (double) count[1] > bits[0] / (double) count[0] + EDGE_BITS;
}

esdm_status
field__split(field__job *job, esdm_error *err)
{
    job->mask = malloc(job->block->elements);
    if (job->mask == NULL)
        return esdm__error_nomem(err, job->block->elements, "a mask");
    job->taken->masked = SIZE_MAX;
    job->apart = 0;
    if (!split_singles(job)) {
        mask_specials(job);
        field__survey(job);
    }
    (void) mask_outlier(job, job->most);
    (void) mask_outlier(job, job->least);
    return ESDM_OK;
}
