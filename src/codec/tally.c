/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/tally.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/checksum.h"
#include "base/cpu.h"
#include "codec/tally_checksums.h"
#include "codec/tally_kernels.h"
#include "codec/verify.h"
#include "esdm/types.h"

static const esdm__tallies *
fastest(void)
{
#if defined(__x86_64__)
    if (esdm__cpu_has_avx512())
        return &esdm__tallies_avx512;
    if (esdm__cpu_has_avx2())
        return &esdm__tallies_avx2;
#endif
    return &esdm__tallies_base;
}

static const esdm__tallies *
kernels(void)
{
    static _Atomic(const esdm__tallies *) chosen; /* every thread finds the same one */
    const esdm__tallies *tallies = atomic_load_explicit(&chosen, memory_order_relaxed);
    if (tallies == NULL) {
        tallies = fastest();
        atomic_store_explicit(&chosen, tallies, memory_order_relaxed);
    }
    return tallies;
}

/* Checksums and a tally in one pass; NULL: there is no such loop. */
static esdm__tally_checksums_fn
both_of(int32_t type)
{
#if defined(__x86_64__)
    if (kernels() == &esdm__tallies_base)
        return NULL;
    if (type == ESDM_TYPE_FLOAT32)
        return esdm__tally_checksums_f32;
    if (type == ESDM_TYPE_FLOAT64)
        return esdm__tally_checksums_f64;
#else
    (void) type;
#endif
    return NULL;
}

uint8_t
esdm__class_of(int32_t type)
{
    if (!esdm__accuracy_applies(type))
        return ESDM__CLASS_NONE;
    switch (type) {
    case ESDM_TYPE_FLOAT32:
        return ESDM__CLASS_FLOAT;
    case ESDM_TYPE_FLOAT64:
        return ESDM__CLASS_DOUBLE;
    case ESDM_TYPE_INT8:
    case ESDM_TYPE_INT16:
    case ESDM_TYPE_INT32:
    case ESDM_TYPE_INT64:
        return ESDM__CLASS_SIGNED;
    default:
        return ESDM__CLASS_UNSIGNED;
    }
}

#define TAKE(T, member)                                                                            \
    {                                                                                              \
        T v;                                                                                       \
        memcpy(&v, value, sizeof v);                                                               \
        number.member = v;                                                                         \
        break;                                                                                     \
    }

esdm__number
esdm__number_of(int32_t type, const void *value)
{
    esdm__number number = {.u = 0};
    switch (type) {
    case ESDM_TYPE_INT8:
        TAKE(int8_t, i)
    case ESDM_TYPE_UINT8:
        TAKE(uint8_t, u)
    case ESDM_TYPE_INT16:
        TAKE(int16_t, i)
    case ESDM_TYPE_UINT16:
        TAKE(uint16_t, u)
    case ESDM_TYPE_INT32:
        TAKE(int32_t, i)
    case ESDM_TYPE_UINT32:
        TAKE(uint32_t, u)
    case ESDM_TYPE_INT64:
        TAKE(int64_t, i)
    case ESDM_TYPE_UINT64:
        TAKE(uint64_t, u)
    case ESDM_TYPE_FLOAT32:
        TAKE(float, f)
    case ESDM_TYPE_FLOAT64:
        TAKE(double, f)
    default:
        break;
    }
    return number;
}

/* ---- one number after the other ----------------------------------------------------------- */

static bool
equal(uint8_t class, esdm__number a, esdm__number b)
{
    return class >= ESDM__CLASS_FLOAT ? a.f == b.f : a.u == b.u;
}

static bool
is_missing(const esdm__missing *missing, esdm__number number)
{
    for (uint32_t i = 0; i < missing->count; i++) {
        if (equal(missing->class, number, missing->values[i]))
            return true;
    }
    return missing->class >= ESDM__CLASS_FLOAT && isnan(number.f);
}

static double
as_double(uint8_t class, esdm__number number)
{
    if (class == ESDM__CLASS_SIGNED)
        return (double) number.i;
    return class == ESDM__CLASS_UNSIGNED ? (double) number.u : number.f;
}

/* Infinities, or many values that are missing. */
static void
add_carefully(const esdm__tally *tally, const uint8_t *numbers, size_t n, size_t bytes,
              esdm__statistics *total)
{
    uint8_t class = tally->missing->class;
    for (size_t i = 0; i < n; i++) {
        esdm__number number = esdm__number_of(tally->type, numbers + i * bytes);
        esdm__statistics one = {.class = class};
        if (!is_missing(tally->missing, number)) {
            one.min = one.max = number;
            one.sum = as_double(class, number);
            one.valid = 1;
        }
        esdm__statistics_add(total, &one);
    }
}

/* ---- runs --------------------------------------------------------------------------------- */

static bool
lies_between(uint8_t class, const esdm__run *run, esdm__number number)
{
    if (class == ESDM__CLASS_SIGNED)
        return run->min.i <= number.i && number.i <= run->max.i;
    if (class == ESDM__CLASS_UNSIGNED)
        return run->min.u <= number.u && number.u <= run->max.u;
    return run->min.f <= number.f && number.f <= run->max.f;
}

/* Whether all of a run counted: no value that is missing lies between minimum and maximum. */
static bool
is_whole(const esdm__missing *missing, const esdm__run *run)
{
    if (missing->class >= ESDM__CLASS_FLOAT && !isfinite(run->sum))
        return false;
    for (uint32_t i = 0; i < missing->count; i++) {
        if (lies_between(missing->class, run, missing->values[i]))
            return false;
    }
    return true;
}

/* @param known what the loop for all numbers has found; NULL: it is run. */
static void
add_run(esdm__tally *tally, const uint8_t *numbers, size_t n, size_t bytes, const esdm__run *known)
{
    const esdm__missing *missing = tally->missing;
    esdm__statistics *total = &tally->statistics;
    esdm__run run;
    /* Where something was missing more is, mostly. */
    if (known != NULL)
        run = *known;
    else if (!tally->masked)
        kernels()->all[tally->type](numbers, n, &run);
    if (tally->masked || !is_whole(missing, &run)) {
        /* Equals none of the numbers that are looked at; integers were whole then. */
        const esdm__number none = {.f = (double) INFINITY};
        esdm__number a = missing->count > 0 ? missing->values[0] : none;
        esdm__number b = missing->count > 1 ? missing->values[1] : a;
        if (missing->count > 2) {
            add_carefully(tally, numbers, n, bytes, total);
            return;
        }
        kernels()->masked[tally->type](numbers, n, a, b, &run);
        if (run.infinite > 0) {
            add_carefully(tally, numbers, n, bytes, total);
            return;
        }
        tally->masked = run.valid < n;
    }
    const esdm__statistics one = {.class = missing->class,
                                  .min = run.min,
                                  .max = run.max,
                                  .sum = run.sum,
                                  .valid = run.valid};
    esdm__statistics_add(total, &one);
}

size_t
esdm__tally_number_bytes(int32_t type)
{
    static const uint8_t sizes[] = {
        [ESDM_TYPE_INT8] = 1,   [ESDM_TYPE_UINT8] = 1,  [ESDM_TYPE_INT16] = 2,
        [ESDM_TYPE_UINT16] = 2, [ESDM_TYPE_INT32] = 4,  [ESDM_TYPE_UINT32] = 4,
        [ESDM_TYPE_INT64] = 8,  [ESDM_TYPE_UINT64] = 8, [ESDM_TYPE_FLOAT32] = 4,
        [ESDM_TYPE_FLOAT64] = 8};
    return sizes[type];
}

void
esdm__tally_add(esdm__tally *tally, const void *numbers, size_t n)
{
    const uint8_t *at = numbers;
    if (tally->missing->class == ESDM__CLASS_NONE)
        return;
    size_t bytes = esdm__tally_number_bytes(tally->type);
    while (n > 0) {
        size_t count = n < ESDM__TALLY_MOST ? n : ESDM__TALLY_MOST;
        add_run(tally, at, count, bytes, NULL);
        at += count * bytes;
        n -= count;
    }
    tally->statistics.rule = tally->missing->rule;
}

/* Blocks of a run. */
#define RUN_BLOCKS ((size_t) 8)

void
esdm__tally_add_blocks(esdm__tally *tally, const void *numbers, size_t blocks,
                       uint64_t *ret_checksums)
{
    const uint8_t *at = numbers;
    const bool counts = tally->missing->class != ESDM__CLASS_NONE;
    const esdm__tally_checksums_fn both = counts ? both_of(tally->type) : NULL;
    size_t bytes = counts ? esdm__tally_number_bytes(tally->type) : 0;
    for (size_t b = 0, count = 0; b < blocks; b += count) {
        count = blocks - b < RUN_BLOCKS ? blocks - b : RUN_BLOCKS;
        size_t run_bytes = count * ESDM__TALLY_BLOCK_BYTES;
        if (both != NULL && !tally->masked) {
            esdm__run run;
            both(at, count, ret_checksums + b, &run);
            add_run(tally, at, run_bytes / bytes, bytes, &run);
        } else {
            for (size_t k = 0; k < count; k++)
                ret_checksums[b + k] =
                    esdm__checksum(at + k * ESDM__TALLY_BLOCK_BYTES, ESDM__TALLY_BLOCK_BYTES);
            if (counts)
                esdm__tally_add(tally, at, run_bytes / bytes);
        }
        at += run_bytes;
    }
    tally->statistics.rule = tally->missing->rule;
}
