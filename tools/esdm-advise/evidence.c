/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* What became of numbers: moments, extremes, differences, structure and spectra. */

#include "esdm-advise/propose.h"

#include <complex.h>
#include <math.h>
#include <string.h>

#define PLANES   4u    /* of a block, spread over it */
#define ROWS     128u  /* of a block whose spectra are taken */
#define LEVELS   255.0 /* of grey, for DSSIM */
#define REACH    5     /* of its window of 11 x 11 points */
#define SIGMA    1.5
#define SMALL    1e-8
#define VARIANCE 0.999 /* of a spectrum, that counts */

/* ---- moments and extremes ----------------------------------------------------------------- */

static void
add_moments(propose_evidence *e, const propose_block *b)
{
    const double *both[] = {b->before, b->after};
    for (uint64_t i = 0; i < b->rows * b->row; i++) {
        if (!b->is_data[i])
            continue;
        if (e->count == 0) {
            e->origin = b->before[i];
            e->least[0] = e->least[1] = INFINITY;
            e->most[0] = e->most[1] = -INFINITY;
        }
        e->count++;
        for (int w = 0; w < 2; w++) {
            double x = both[w][i] - e->origin;
            e->sum[w] += x;
            e->squares[w] += x * x;
            e->least[w] = fmin(e->least[w], both[w][i]);
            e->most[w] = fmax(e->most[w], both[w][i]);
        }
        double error = fabs(b->after[i] - b->before[i]);
        e->largest_error = fmax(e->largest_error, error);
        e->error += error * error;
        if (i % b->row == 0 || !b->is_data[i - 1])
            continue;
        e->steps++;
        for (int w = 0; w < 2; w++)
            e->slopes[w] += pow(both[w][i] - both[w][i - 1], 2);
    }
}

double
propose_mean(const propose_evidence *e, int which)
{
    return e->count > 0 ? e->origin + e->sum[which] / e->count : NAN;
}

double
propose_deviation(const propose_evidence *e, int which)
{
    double mean = e->sum[which] / e->count;
    return e->count > 0 ? sqrt(fmax(e->squares[which] / e->count - mean * mean, 0)) : NAN;
}

double
propose_slope_ratio(const propose_evidence *e)
{
    return e->slopes[0] > 0 ? sqrt(e->slopes[1] / e->slopes[0]) : NAN;
}

/* ---- structure ---------------------------------------------------------------------------- */

typedef struct image {
    uint64_t ny, nx;
    const uint8_t *is_data;
    double *weight; /* of points in their window */
    double window[2 * REACH + 1];
    double *room; /* a plane */
} image;

/* The mean of a plane in the window of each point; in place. */
static void
smooth(const image *m, double *plane)
{
    for (int axis = 0; axis < 2; axis++) {
        int64_t length = (int64_t) (axis == 0 ? m->ny : m->nx);
        int64_t step = axis == 0 ? (int64_t) m->nx : 1;
        memcpy(m->room, plane, m->ny * m->nx * sizeof *plane);
        for (uint64_t i = 0; i < m->ny * m->nx; i++) {
            int64_t at = (int64_t) (axis == 0 ? i / m->nx : i % m->nx);
            double sum = 0;
            for (int64_t k = -REACH; k <= REACH; k++)
                if (at + k >= 0 && at + k < length)
                    sum += m->window[k + REACH] * m->room[(int64_t) i + k * step];
            plane[i] = sum;
        }
    }
    for (uint64_t i = 0; i < m->ny * m->nx && m->weight != NULL; i++)
        plane[i] /= m->weight[i] > 0 ? m->weight[i] : 1;
}

static double *
mean_of_product(const image *m, const double *a, const double *b)
{
    double *plane = g_new(double, m->ny * m->nx);
    for (uint64_t i = 0; i < m->ny * m->nx; i++)
        plane[i] = a[i] * (b != NULL ? b[i] : 1);
    smooth(m, plane);
    return plane;
}

/* Points at the edge count where there are no others. */
static double
mean_inside(const image *m, const double *found)
{
    for (uint64_t edge = REACH;; edge = 0) {
        double sum = 0, count = 0;
        for (uint64_t i = 0; i < m->ny * m->nx; i++) {
            uint64_t y = i / m->nx, x = i % m->nx;
            if (!m->is_data[i] || y < edge || y + edge >= m->ny || x < edge || x + edge >= m->nx)
                continue;
            sum += found[i];
            count++;
        }
        if (count > 0 || edge == 0)
            return count > 0 ? sum / count : 1;
    }
}

/* Grey levels of both, from their common range; false: all are the same. */
static bool
to_levels(const image *m, const double *const both[2], double *const levels[2])
{
    double low = INFINITY, high = -INFINITY;
    for (uint64_t i = 0; i < m->ny * m->nx; i++) {
        if (!m->is_data[i])
            continue;
        low = fmin(low, fmin(both[0][i], both[1][i]));
        high = fmax(high, fmax(both[0][i], both[1][i]));
    }
    if (!(high > low))
        return false;
    for (int w = 0; w < 2; w++)
        for (uint64_t i = 0; i < m->ny * m->nx; i++)
            levels[w][i] =
                m->is_data[i] ? rint((both[w][i] - low) / (high - low) * LEVELS) / LEVELS : 0;
    return true;
}

static double
dssim(image *m, const double *const both[2])
{
    uint64_t n = m->ny * m->nx;
    g_autofree double *x = g_new(double, n);
    g_autofree double *y = g_new(double, n);
    g_autofree double *weight = g_new(double, n);
    g_autofree double *room = g_new(double, n);
    m->room = room;
    if (!to_levels(m, both, (double *const[]){x, y}))
        return 1;
    for (uint64_t i = 0; i < n; i++)
        weight[i] = m->is_data[i];
    m->weight = NULL;
    smooth(m, weight);
    m->weight = weight;
    g_autofree double *mx = mean_of_product(m, x, NULL);
    g_autofree double *my = mean_of_product(m, y, NULL);
    g_autofree double *xx = mean_of_product(m, x, x);
    g_autofree double *yy = mean_of_product(m, y, y);
    g_autofree double *xy = mean_of_product(m, x, y);
    for (uint64_t i = 0; i < n; i++) {
        double vx = xx[i] - mx[i] * mx[i], vy = yy[i] - my[i] * my[i];
        double both_vary = xy[i] - mx[i] * my[i];
        x[i] = (2 * mx[i] * my[i] + SMALL) * (2 * both_vary + SMALL) /
               ((mx[i] * mx[i] + my[i] * my[i] + SMALL) * (vx + vy + SMALL));
    }
    return mean_inside(m, x);
}

static void
add_structure(propose_evidence *e, const propose_block *b)
{
    uint64_t planes = b->plane > 1 ? b->rows / b->plane : 0;
    image m = {.ny = b->plane, .nx = b->row};
    double sum = 0;
    for (int k = -REACH; k <= REACH; k++)
        sum += m.window[k + REACH] = exp(-k * k / (2 * SIGMA * SIGMA));
    for (int k = 0; k < 2 * REACH + 1; k++)
        m.window[k] /= sum;
    for (uint64_t k = 0; k < MIN(planes, PLANES); k++) {
        uint64_t first = (2 * k + 1) * planes / (2 * MIN(planes, PLANES)) * b->plane * b->row;
        m.is_data = b->is_data + first;
        if (memchr(m.is_data, 1, m.ny * m.nx) == NULL)
            continue;
        e->similar += dssim(&m, (const double *const[]){b->before + first, b->after + first});
        e->planes++;
    }
}

double
propose_dssim(const propose_evidence *e)
{
    return e->planes > 0 ? e->similar / e->planes : NAN;
}

/* ---- spectra ------------------------------------------------------------------------------ */

/* exp(-2 pi i k / n) of the whole row. */
typedef struct roots {
    double complex *of; /* owned */
    uint64_t n;
} roots;

/* The discrete Fourier transform of n numbers `step` apart, by the smallest factors of n (Cooley
 * and Tukey 1965). @param to n numbers. @param room as many. */
static void
transform(const roots *w, const double *from, uint64_t n, double complex *to, double complex *room)
{
    uint64_t p = 2;
    const uint64_t step = w->n / n;
    if (n <= 1) {
        to[0] = from[0];
        return;
    }
    while (p * p <= n && n % p != 0)
        p++;
    p = p * p > n ? n : p;
    uint64_t m = n / p;
    for (uint64_t r = 0; r < p; r++)
        transform(w, from + r * step, m, room + r * m, to + r * m);
    for (uint64_t k = 0; k < n; k++) {
        to[k] = 0;
        for (uint64_t r = 0; r < p; r++)
            to[k] += w->of[r * k % n * step] * room[r * m + k % m];
    }
}

/* Points that are no data are as the mean of the row is. */
static void
add_row(propose_evidence *e, const propose_block *b, uint64_t r, const roots *w, double *row,
        double complex *to)
{
    const double *both[] = {b->before + r * b->row, b->after + r * b->row};
    const uint8_t *is_data = b->is_data + r * b->row;
    double mean = 0, count = 0;
    for (uint64_t i = 0; i < b->row; i++) {
        mean += is_data[i] ? both[0][i] : 0;
        count += is_data[i];
    }
    for (int which = 0; which < 2 && count > 0; which++) {
        for (uint64_t i = 0; i < b->row; i++)
            row[i] = is_data[i] ? both[which][i] - mean / count : 0;
        transform(w, row, b->row, to, to + b->row);
        for (uint64_t k = 1; k <= e->waves; k++)
            e->power[which][k - 1] += creal(to[k]) * creal(to[k]) + cimag(to[k]) * cimag(to[k]);
    }
}

/* @return whether n has no large factor: else a row takes n * n steps. */
static bool
is_smooth(uint64_t n)
{
    for (uint64_t p = 2; p <= 64; p++)
        while (n % p == 0)
            n /= p;
    return n <= 256;
}

static void
add_spectra(propose_evidence *e, const propose_block *b)
{
    if (e->row == 0 && b->row >= 4 && b->row <= 1 << 16) {
        e->row = b->row;
        e->waves = MIN(b->row / 2, PROPOSE_WAVES);
    }
    if (b->row != e->row || !is_smooth(b->row))
        return;
    g_autofree double *row = g_new(double, b->row);
    g_autofree double complex *to = g_new(double complex, 2 * b->row);
    g_autofree double complex *of = g_new(double complex, b->row);
    const roots w = {of, b->row};
    for (uint64_t k = 0; k < b->row; k++)
        of[k] = cexp(-2 * M_PI * I * (double) k / (double) b->row);
    uint64_t rows = MIN(b->rows, ROWS);
    for (uint64_t k = 0; k < rows; k++)
        add_row(e, b, k * b->rows / rows, &w, row, to);
}

static int
by_power(const void *a, const void *b)
{
    return tool_by_number(b, a);
}

double
propose_spectral_change(const propose_evidence *e)
{
    double order[PROPOSE_WAVES], total = 0, sum = 0, least = 0, change = NAN;
    memcpy(order, e->power[0], sizeof order);
    qsort(order, e->waves, sizeof *order, by_power);
    for (uint64_t k = 0; k < e->waves; k++)
        total += order[k];
    for (uint64_t k = 0; k < e->waves && sum < VARIANCE * total; k++) {
        sum += order[k];
        least = order[k];
    }
    for (uint64_t k = 0; k < e->waves && least > 0; k++)
        if (e->power[0][k] >= least)
            change = fmax(change, fabs(e->power[1][k] - e->power[0][k]) / e->power[0][k]);
    return change;
}

void
propose_evidence_add(propose_evidence *e, const propose_block *block)
{
    add_moments(e, block);
    add_structure(e, block);
    add_spectra(e, block);
}
