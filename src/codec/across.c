/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/across.h"

#include <math.h>
#include <stdatomic.h>

#include "base/cpu.h"
#include "codec/across_kernels.h"
#include "codec/tally.h"

/* Results side by side that numbers of one result are spread over. */
#define LANES 64u

static const esdm__across_table *
fastest(void)
{
#if defined(__x86_64__)
    if (esdm__cpu_has_avx512())
        return &esdm__across_avx512;
    if (esdm__cpu_has_avx2())
        return &esdm__across_avx2;
#endif
    return &esdm__across_base;
}

static const esdm__across_table *
kernels(void)
{
    static _Atomic(const esdm__across_table *) chosen; /* every thread finds the same one */
    const esdm__across_table *table = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (table == NULL) {
        table = fastest();
        atomic_store_explicit(&chosen, table, memory_order_relaxed);
    }
    return table;
}

void
esdm__across_add(esdm__across_what what, int32_t type, const esdm__missing *missing,
                 const void *numbers, size_t n, const esdm__across *results, size_t at)
{
    const esdm__across from = {
        .value = results->value + at,
        .squares = results->squares != NULL ? results->squares + at : NULL,
        .first = results->first != NULL ? results->first + at : NULL,
        .absent = results->absent + at,
    };
    kernels()->add[what][type](numbers, n, missing->values, missing->count, from);
}

/* Differences to one number, of so many results that vectors are filled with them. */
static void
add_squares(int32_t type, const esdm__missing *missing, const uint8_t *numbers, size_t n,
            const esdm__across *results, size_t at)
{
    double value[LANES] = {0};
    double squares[LANES] = {0};
    double first[LANES];
    uint64_t absent[LANES] = {0};
    const esdm__across lanes = {value, squares, first, absent};
    size_t bytes = esdm__tally_number_bytes(type);
    while (n > 0 && results->first[at] != results->first[at]) { /* the first valid number */
        esdm__across_add(ESDM__ACROSS_SQUARES, type, missing, numbers, 1, results, at);
        numbers += bytes;
        n--;
    }
    for (size_t i = 0; i < LANES; i++)
        first[i] = results->first[at];
    for (; n > 0;) {
        size_t some = n < LANES ? n : LANES;
        esdm__across_add(ESDM__ACROSS_SQUARES, type, missing, numbers, some, &lanes, 0);
        numbers += some * bytes;
        n -= some;
    }
    for (size_t i = 0; i < LANES; i++) {
        results->value[at] += value[i];
        results->squares[at] += squares[i];
        results->absent[at] += absent[i];
    }
}

static double
as_double(uint8_t class, esdm__number x)
{
    return class == ESDM__CLASS_SIGNED     ? (double) x.i
           : class == ESDM__CLASS_UNSIGNED ? (double) x.u
                                           : x.f;
}

void
esdm__across_add_one(esdm__across_what what, int32_t type, const esdm__missing *missing,
                     const void *numbers, size_t n, const esdm__across *results, size_t at)
{
    if (what == ESDM__ACROSS_SQUARES) {
        add_squares(type, missing, numbers, n, results, at);
        return;
    }
    esdm__tally tally = {.type = type, .missing = missing};
    esdm__tally_add(&tally, numbers, n);
    const esdm__statistics *s = &tally.statistics;
    results->absent[at] += n - s->valid;
    if (s->valid == 0)
        return;
    double *value = &results->value[at];
    if (what == ESDM__ACROSS_SUM)
        *value += s->sum;
    else if (what == ESDM__ACROSS_MIN)
        *value = fmin(*value, as_double(s->class, s->min));
    else
        *value = fmax(*value, as_double(s->class, s->max));
}
