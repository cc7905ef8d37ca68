/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The density of the logarithms of times (Gaussian kernels, Silverman's width), whose minima part
 * them into classes. */
#include "esdm-explain/esdm-explain.h"

#include <math.h>

#define GRID        512
#define LEAST_SHARE 0.003 /* of the calls: a smaller class belongs to its neighbour */
#define LEAST_CALLS 3
#define VALLEY      0.8 /* a minimum parts two classes when it is that deep below the lower top */
#define PADDING     0.5 /* of the grid beyond the times, in decades */

typedef struct grid {
    double low; /* logarithms, base 10 */
    double step;
    double density[GRID];
} grid;

/* Robust against far classes: the smaller of deviation and quartiles, as Silverman (1986, 3.31),
 * and half of it, as there are several tops. */
static double
width_of(const double *times, gsize n)
{
    double mean = 0;
    double square = 0;
    for (gsize i = 0; i < n; i++)
        mean += log10(times[i]) / (double) n;
    for (gsize i = 0; i < n; i++)
        square += pow(log10(times[i]) - mean, 2) / (double) n;
    double quartiles = (log10(times[n * 3 / 4]) - log10(times[n / 4])) / 1.34;
    double spread = sqrt(square);
    if (quartiles > 0 && quartiles < spread)
        spread = quartiles;
    double width = 0.45 * spread * pow((double) n, -0.2);
    return CLAMP(width, 0.03, 0.15);
}

static void
fill_density(grid *g, const double *times, gsize n, double width)
{
    double counts[GRID] = {0};
    g->low = log10(times[0]) - PADDING;
    g->step = (log10(times[n - 1]) + PADDING - g->low) / (GRID - 1);
    for (gsize i = 0; i < n; i++)
        counts[(int) ((log10(times[i]) - g->low) / g->step + 0.5)]++;
    int reach = (int) ceil(4 * width / g->step);
    for (int i = 0; i < GRID; i++) {
        g->density[i] = 0;
        for (int k = MAX(0, i - reach); k <= MIN(GRID - 1, i + reach); k++) {
            double z = (i - k) * g->step / width;
            g->density[i] += counts[k] * exp(-z * z / 2);
        }
        g->density[i] /= (double) n * width * sqrt(2 * G_PI);
    }
}

static int
top_between(const grid *g, int from, int to)
{
    int top = from;
    for (int i = from; i <= to; i++)
        top = g->density[i] > g->density[top] ? i : top;
    return top;
}

static int
bottom_between(const grid *g, int from, int to)
{
    int bottom = from;
    for (int i = from; i <= to; i++)
        bottom = g->density[i] < g->density[bottom] ? i : bottom;
    return bottom;
}

static double
share_between(const double *times, gsize n, double low, double high)
{
    gsize count = 0;
    for (gsize i = 0; i < n; i++)
        count += times[i] >= low && times[i] < high;
    return (double) count / (double) n;
}

static double
time_at(const grid *g, int i)
{
    return pow(10, g->low + i * g->step);
}

guint
density_classes(const double *times, gsize n, double *ret_cuts, double *ret_peaks, guint most)
{
    grid g;
    int tops[GRID];
    int ntops = 0;
    if (n == 0)
        return 0;
    fill_density(&g, times, n, width_of(times, n));
    for (int i = 1; i + 1 < GRID; i++) {
        if (g.density[i] > g.density[i - 1] && g.density[i] >= g.density[i + 1])
            tops[ntops++] = i;
    }
    double least = MAX(LEAST_SHARE, (double) LEAST_CALLS / (double) n);
    guint classes = 1;
    int last = ntops > 0 ? tops[0] : top_between(&g, 0, GRID - 1);
    int begin = 0;
    ret_peaks[0] = time_at(&g, last);
    for (int t = 1; t < ntops && classes < most; t++) {
        int cut = bottom_between(&g, last, tops[t]);
        double lower = MIN(g.density[last], g.density[tops[t]]);
        bool deep = g.density[cut] < VALLEY * lower;
        bool enough = share_between(times, n, time_at(&g, begin), time_at(&g, cut)) >= least &&
                      share_between(times, n, time_at(&g, cut), INFINITY) >= least;
        if (deep && enough) {
            ret_cuts[classes - 1] = time_at(&g, cut);
            classes++;
            begin = cut;
            last = tops[t];
        } else if (g.density[tops[t]] > g.density[last]) {
            last = tops[t];
        }
        ret_peaks[classes - 1] = time_at(&g, last);
    }
    return classes;
}
