/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "cf/circle.h"

#include <math.h>
#include <stdlib.h>

#include "base/error.h"

#define BIN_DEGREES (360.0 / ESDM__CIRCLE_BINS)
/* Points that are to look like a grid, and how much wider its last gap may be. */
#define POINTS_LEAST 8
#define GAP_RATIO    1.5

esdm_status
esdm__circle_init(esdm__circle *circle, esdm_error *err)
{
    *circle = (esdm__circle){.low = malloc(2 * ESDM__CIRCLE_BINS * sizeof(double))};
    if (circle->low == NULL)
        return esdm__error_nomem(err, 2 * ESDM__CIRCLE_BINS * sizeof(double), "longitudes");
    circle->high = circle->low + ESDM__CIRCLE_BINS;
    return ESDM_OK;
}

void
esdm__circle_clear(esdm__circle *circle)
{
    free(circle->low);
    *circle = (esdm__circle){0};
}

/* In [0, 360). */
static double
turned(double degrees)
{
    double rest = fmod(degrees, 360);
    if (rest < 0)
        rest += 360;
    return rest < 360 ? rest : 0;
}

static int
bin_of(double turned_degrees)
{
    int bin = (int) (turned_degrees / BIN_DEGREES);
    return bin < ESDM__CIRCLE_BINS ? bin : ESDM__CIRCLE_BINS - 1;
}

static void
widen(esdm__circle *circle, int bin, double low, double high)
{
    uint64_t bit = UINT64_C(1) << (bin % 64);
    bool used = (circle->used[bin / 64] & bit) != 0;
    circle->used[bin / 64] |= bit;
    circle->low[bin] = used ? fmin(circle->low[bin], low) : low;
    circle->high[bin] = used ? fmax(circle->high[bin], high) : high;
}

/* The first bin from `bin` on that has something; ESDM__CIRCLE_BINS: none. */
static int
next_used(const esdm__circle *circle, int bin)
{
    if (bin >= ESDM__CIRCLE_BINS)
        return ESDM__CIRCLE_BINS;
    int word = bin / 64;
    uint64_t bits = circle->used[word] & (UINT64_MAX << (bin % 64));
    while (bits == 0 && ++word < (ESDM__CIRCLE_BINS + 63) / 64)
        bits = circle->used[word];
    return bits == 0 ? ESDM__CIRCLE_BINS : word * 64 + __builtin_ctzll(bits);
}

void
esdm__circle_add(esdm__circle *circle, double west, double east)
{
    if (!isfinite(west) || !isfinite(east))
        return;
    double width = fmin(fabs(east - west), 360);
    double from = turned(west);
    double to = turned(west + width);
    int first = bin_of(from), last = bin_of(to);
    circle->cells |= width > 0;
    if (width < BIN_DEGREES && first == last) {
        widen(circle, first, fmin(from, to), fmax(from, to));
        return;
    }
    widen(circle, first, from, (first + 1) * BIN_DEGREES);
    widen(circle, last, last * BIN_DEGREES, to);
    for (int i = (first + 1) % ESDM__CIRCLE_BINS; i != last; i = (i + 1) % ESDM__CIRCLE_BINS)
        widen(circle, i, i * BIN_DEGREES, (i + 1) * BIN_DEGREES);
}

bool
esdm__circle_range(const esdm__circle *circle, double *ret_west, double *ret_east)
{
    int first = next_used(circle, 0), points = 0;
    if (first == ESDM__CIRCLE_BINS)
        return false;
    double end = circle->high[first]; /* of what came so far, going around from `first` */
    double widest = -1, second = -1, west = 0, width = 0;
    int bin = first;
    for (bool around = false; !around;) {
        bin = next_used(circle, bin + 1);
        around = bin == ESDM__CIRCLE_BINS;
        bin = around ? first : bin;
        double turns = around ? 360 : 0;
        double gap = circle->low[bin] + turns - end;
        points++;
        second = fmax(second, fmin(gap, widest));
        if (gap > widest) {
            widest = gap;
            west = circle->low[bin];
            width = 360 - gap;
        }
        end = circle->high[bin] + turns;
    }
    bool grid = !circle->cells && points >= POINTS_LEAST && widest <= GAP_RATIO * second;
    if (grid || widest <= BIN_DEGREES) {
        *ret_west = -180;
        *ret_east = 180;
        return true;
    }
    *ret_west = west >= 180 ? west - 360 : west;
    *ret_east = *ret_west + width;
    return true;
}
