/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "taps.h"

#include <stdbool.h>
#include <string.h>

#define AROUND(plane, needs)                                                                       \
    {needs, plane, 0, 0}, {needs, plane, 0, -1}, {needs, plane, 0, 1}, {needs, plane, -1, 0},      \
    {                                                                                              \
        needs, plane, 1, 0                                                                         \
    }

static const field__level_tap y_taps[] = {
    {0, PLANE_OWN, -1, 0},
    {0, PLANE_OWN, -1, -1},
    {0, PLANE_OWN, -1, 1},
    {HAS_SIDES, PLANE_OWN, 1, 0},
    {HAS_SIDES, PLANE_OWN, 1, -1},
    {HAS_SIDES, PLANE_OWN, 1, 1},
    {HAS_SIDES, PLANE_OWN, -3, 0},
    {HAS_SIDES, PLANE_OWN, 3, 0},
    AROUND(PLANE_BEFORE, HAS_PLANE),
    AROUND(PLANE_AFTER, HAS_AFTER),
    {HAS_AFTER, PLANE_BEFORE3, 0, 0},
    {HAS_AFTER, PLANE_AFTER3, 0, 0},
    AROUND(PLANE_VOLUME, HAS_VOLUME),
};

static const field__level_tap x_taps[] = {
    {0, PLANE_OWN, 0, -1},           {0, PLANE_OWN, 0, 1},
    {0, PLANE_OWN, 0, -3},           {0, PLANE_OWN, 0, 3},
    {HAS_SIDES, PLANE_OWN, -1, 0},   {HAS_SIDES, PLANE_OWN, -1, -1},
    {HAS_SIDES, PLANE_OWN, -1, 1},   {HAS_SIDES, PLANE_OWN, 1, -1},
    {HAS_SIDES, PLANE_OWN, 1, 1},    AROUND(PLANE_BEFORE, HAS_PLANE),
    AROUND(PLANE_AFTER, HAS_AFTER),  {HAS_AFTER, PLANE_BEFORE3, 0, 0},
    {HAS_AFTER, PLANE_AFTER3, 0, 0}, AROUND(PLANE_VOLUME, HAS_VOLUME),
};

void
field__taps_init(field__level_weights *weights, field__pass p, uint32_t class)
{
    const field__level_tap *taps = p == PASS_Y ? y_taps : x_taps;
    size_t count =
        p == PASS_Y ? sizeof y_taps / sizeof y_taps[0] : sizeof x_taps / sizeof x_taps[0];
    memset(weights, 0, sizeof *weights);
    for (size_t i = 0; i < count; i++) {
        if ((taps[i].needs & class) == taps[i].needs)
            weights->tap[weights->taps++] = taps[i];
    }
}

static void
set_weight(field__level_weights *weights, int dy, int dx, int sixteenths)
{
    for (uint32_t t = 0; t < weights->taps; t++) {
        const field__level_tap *tap = &weights->tap[t];
        if (tap->plane == PLANE_OWN && tap->dy == dy && tap->dx == dx)
            weights->weight[t] = sixteenths * (1 << (FIELD__WEIGHT_BITS - 4));
    }
}

/* Cubic interpolation. */
void
field__taps_default(field__level_weights *weights, field__pass p, uint32_t class)
{
    field__taps_init(weights, p, class);
    if (p == PASS_Y && !(class & HAS_SIDES)) {
        set_weight(weights, -1, 0, 16);
        return;
    }
    for (int side = -1; side <= 1; side += 2) {
        bool y = p == PASS_Y;
        set_weight(weights, y ? side : 0, y ? 0 : side, 9);
        set_weight(weights, y ? 3 * side : 0, y ? 0 : 3 * side, -1);
    }
}
