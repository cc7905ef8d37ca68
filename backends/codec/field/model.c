/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model.h"

#include <string.h>

/* Targets: all but the smallest possible frequencies go to the symbol seen. */
#define UP(i)    (int16_t)(FIELD__PROB_TOTAL - FIELD__SYMBOLS + (i))
#define AT(s, i) ((i) > (s) ? UP(i) : (int16_t) (i))
#define TARGET(s)                                                                                  \
    {                                                                                              \
        AT(s, 0), AT(s, 1), AT(s, 2), AT(s, 3), AT(s, 4), AT(s, 5), AT(s, 6), AT(s, 7), AT(s, 8),  \
            AT(s, 9), AT(s, 10), AT(s, 11), AT(s, 12), AT(s, 13), AT(s, 14), AT(s, 15)             \
    }
#define RISES(s, i) ((i) > (s) ? -1 : 0)
#define RISING(s)                                                                                  \
    {                                                                                              \
        RISES(s, 0), RISES(s, 1), RISES(s, 2), RISES(s, 3), RISES(s, 4), RISES(s, 5), RISES(s, 6), \
            RISES(s, 7), RISES(s, 8), RISES(s, 9), RISES(s, 10), RISES(s, 11), RISES(s, 12),       \
            RISES(s, 13), RISES(s, 14), RISES(s, 15)                                               \
    }
#define ROWS(row)                                                                                  \
    {                                                                                              \
        row(0), row(1), row(2), row(3), row(4), row(5), row(6), row(7), row(8), row(9), row(10),   \
            row(11), row(12), row(13), row(14), row(15)                                            \
    }

const int16_t field__model_target[FIELD__SYMBOLS][FIELD__SYMBOLS] __attribute__((aligned(32))) =
    ROWS(TARGET);
const int16_t field__model_rising[FIELD__SYMBOLS][FIELD__SYMBOLS] __attribute__((aligned(32))) =
    ROWS(RISING);

#define TIMES5(x)  x, x, x, x, x
#define TIMES20(x) TIMES5(x), TIMES5(x), TIMES5(x), TIMES5(x)
const uint8_t field__model_rate[FIELD__SEEN_MOST + 1] = {
    2,         2,         3, 3,          3,         4,         4,         TIMES5(4), TIMES5(5),
    TIMES5(5), TIMES5(5), 5, TIMES20(6), TIMES5(6), TIMES5(6), TIMES5(6), 6,         7};
#define FROM8(x) (x) + 1, (x) + 2, (x) + 3, (x) + 4, (x) + 5, (x) + 6, (x) + 7, (x) + 8
const uint8_t field__model_next[FIELD__SEEN_MOST + 1] = {
    FROM8(0), FROM8(8), FROM8(16), FROM8(24), FROM8(32), FROM8(40), FROM8(48), FROM8(56), 64};

void
field__models_init(field__cdf *cdf, uint8_t *seen, uint32_t count)
{
    /* Small symbols are likelier: frequencies fall by a quarter each. */
    int16_t start[FIELD__SYMBOLS];
    uint32_t left = FIELD__PROB_TOTAL - FIELD__SYMBOLS;
    uint32_t below = 0;
    for (uint32_t i = 0; i < FIELD__SYMBOLS; i++) {
        start[i] = (int16_t) (below + i);
        below += left / 4;
        left -= left / 4;
    }
    for (uint32_t i = 0; i < count; i++)
        memcpy(&cdf[i], start, sizeof start);
    memset(seen, 0, count);
}
