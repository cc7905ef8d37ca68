/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Weights of the prediction: Lorenzo's, or least squares over sampled rows. */

#include <math.h>
#include <string.h>

#include "fit.h"
#include "predict.h"

uint32_t
field__classes_of(const field__axes *axes)
{
    uint32_t axes_bits = (axes->ny > 1 ? FIELD__HAS_Y : 0) | (axes->nz > 1 ? FIELD__HAS_Z : 0) |
                         (axes->nb > 1 ? FIELD__HAS_B : 0);
    uint32_t classes = 0;
    for (uint32_t c = 0; c < FIELD__CLASSES; c++)
        classes |= (c & ~axes_bits) == 0 ? 1u << c : 0;
    return classes;
}

void
field__weights_init(field__weights *weights, uint32_t class)
{
    static const struct {
        uint8_t needs;
        field__tap tap;
    } taps[] = {
        {FIELD__HAS_Y, {FIELD__N, 0}},   {FIELD__HAS_Y, {FIELD__N, -1}},
        {FIELD__HAS_Y, {FIELD__N, 1}},   {FIELD__HAS_Y, {FIELD__N, 2}},
        {FIELD__HAS_Y, {FIELD__N, -2}},  {FIELD__HAS_Y, {FIELD__NN, 0}},
        {FIELD__HAS_Z, {FIELD__Z, 0}},   {FIELD__HAS_Z, {FIELD__Z, -1}},
        {FIELD__HAS_Z, {FIELD__Z, 1}},   {FIELD__HAS_Z, {FIELD__Z, 2}},
        {FIELD__HAS_Z, {FIELD__ZZ, 0}},  {FIELD__HAS_Z, {FIELD__ZS, 0}},
        {FIELD__HAS_Z, {FIELD__ZN, 0}},  {FIELD__HAS_Z, {FIELD__ZN, -1}},
        {FIELD__HAS_Z, {FIELD__ZN, 1}},  {FIELD__HAS_B, {FIELD__B, 0}},
        {FIELD__HAS_B, {FIELD__B, -1}},  {FIELD__HAS_B, {FIELD__B, 1}},
        {FIELD__HAS_B, {FIELD__BN, 0}},  {FIELD__HAS_B, {FIELD__BS, 0}},
        {FIELD__HAS_B, {FIELD__BZ, 0}},  {FIELD__HAS_Y, {FIELD__NN, 1}},
        {FIELD__HAS_Y, {FIELD__NN, -1}}, {FIELD__HAS_Z, {FIELD__ZS, 1}},
        {FIELD__HAS_Z, {FIELD__ZS, -1}}, {FIELD__HAS_Z, {FIELD__Z, -2}},
    };
    memset(weights, 0, sizeof *weights);
    for (size_t i = 0; i < sizeof taps / sizeof taps[0]; i++) {
        if ((taps[i].needs & class) == taps[i].needs)
            weights->tap[weights->taps++] = taps[i].tap;
    }
    weights->west = 1 << FIELD__WEIGHT_BITS;
}

static void
complete(field__weights *weights)
{
    int32_t sum = weights->west2;
    for (uint32_t t = 0; t < weights->taps; t++)
        sum += weights->weight[t];
    weights->west = (1 << FIELD__WEIGHT_BITS) - sum;
}

static void
set_tap(field__weights *weights, uint8_t line, int8_t dx, int32_t sign)
{
    for (uint32_t t = 0; t < weights->taps; t++) {
        if (weights->tap[t].line == line && weights->tap[t].dx == dx)
            weights->weight[t] = sign * (1 << FIELD__WEIGHT_BITS);
    }
}

void
field__weights_lorenzo(field__weights *weights, uint32_t class)
{
    field__weights_init(weights, class);
    if (class & FIELD__HAS_Y) {
        set_tap(weights, FIELD__N, 0, 1);
        set_tap(weights, FIELD__N, -1, -1);
    }
    if (class & FIELD__HAS_Z) {
        set_tap(weights, FIELD__Z, 0, 1);
        set_tap(weights, FIELD__Z, -1, -1);
    }
    if ((class & (FIELD__HAS_Y | FIELD__HAS_Z)) == (FIELD__HAS_Y | FIELD__HAS_Z)) {
        set_tap(weights, FIELD__ZN, 0, -1);
        set_tap(weights, FIELD__ZN, -1, 1);
    }
    complete(weights);
}

/* ---- fitting ------------------------------------------------------------------------------ */

/* Differences to the element before: of the taps into v, of the element itself returned. */
static double
differences(const field__weights *weights, bool wide, const void *codes, size_t x,
            const void *const lines[FIELD__LINES], double v[FIELD__UNKNOWNS])
{
    ptrdiff_t at = (ptrdiff_t) x;
    if (wide) {
        const int64_t *q = codes;
        uint64_t west = (uint64_t) q[at - 1];
        for (uint32_t t = 0; t < weights->taps; t++) {
            const int64_t *line = lines[weights->tap[t].line];
            v[t] = (double) (int64_t) ((uint64_t) line[at + weights->tap[t].dx] - west);
        }
        v[weights->taps] = (double) (int64_t) ((uint64_t) q[at - 2] - west);
        return (double) (int64_t) ((uint64_t) q[at] - west);
    }
    const int32_t *q = codes;
    double west = q[at - 1];
    for (uint32_t t = 0; t < weights->taps; t++)
        v[t] = ((const int32_t *) lines[weights->tap[t].line])[at + weights->tap[t].dx] - west;
    v[weights->taps] = q[at - 2] - west;
    return q[at] - west;
}

static void
sample_rows(field__fit *f, const field__weights *weights, const field__volume *volume,
            uint32_t class, size_t samples)
{
    size_t nx = (size_t) volume->axes.nx;
    size_t step = volume->elements / samples + 1;
    size_t x_step = volume->rows >= 4 * step ? 1 : step;
    size_t row_step = x_step == 1 ? step : 1;
    field__fit_start(f);
    for (size_t row = 0; row < volume->rows; row++) {
        const void *lines[FIELD__LINES];
        if (field__volume_lines(volume, row, lines) != class)
            continue;
        /* Rows of a step are taken at places that do not follow a pattern. */
        if (row_step > 1 && (uint32_t) (row * 2654435761u) >> 8 >= (1u << 24) / row_step)
            continue;
        const void *codes = volume->wide ? (const void *) field__row64(volume, row)
                                         : (const void *) field__row32(volume, row);
        for (size_t x = 0; x < nx; x += x_step) {
            double v[FIELD__UNKNOWNS];
            if (volume->mask != NULL && volume->mask[row * nx + x])
                continue;
            double target = differences(weights, volume->wide, codes, x, lines, v);
            field__fit_add(f, v, target);
        }
    }
}

void
field__weights_fit(field__weights *weights, const field__volume *volume, uint32_t class,
                   size_t samples)
{
    field__weights_init(weights, class);
    field__fit f = {.unknowns = weights->taps + 1}; /* the last: the second element before */
    for (int round = 0; round < 2; round++) {
        sample_rows(&f, weights, volume, class, samples);
        if (!field__fit_solve(&f)) {
            field__weights_lorenzo(weights, class);
            return;
        }
    }
    for (uint32_t t = 0; t < weights->taps; t++)
        weights->weight[t] = field__fit_weight(&f, t);
    weights->west2 = field__fit_weight(&f, weights->taps);
    complete(weights);
}

/* ---- stored form: one number for each weight but the own row's first ----------------------- */

void
field__weights_put(const field__weights *weights, esdm__buffer *out)
{
    for (uint32_t t = 0; t < weights->taps; t++)
        esdm__buffer_put_svarint(out, weights->weight[t]);
    esdm__buffer_put_svarint(out, weights->west2);
}

bool
field__weights_get(field__weights *weights, uint32_t class, esdm__cursor *in)
{
    field__weights_init(weights, class);
    for (uint32_t t = 0; t <= weights->taps; t++) {
        int64_t weight = esdm__cursor_svarint(in);
        if (weight < -FIELD__WEIGHT_MAX || weight > FIELD__WEIGHT_MAX)
            return false;
        if (t < weights->taps)
            weights->weight[t] = (int32_t) weight;
        else
            weights->west2 = (int32_t) weight;
    }
    complete(weights);
    return !in->failed;
}
