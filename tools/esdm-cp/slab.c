/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Cuts a dataset into slabs that memory holds. */

#include "esdm-cp/esdm-cp.h"

#include <string.h>

/* What lies within elements is counted as so many bytes when slabs are measured. */
#define TEXT_BYTES 64

static uint64_t
product(const uint64_t *values, uint32_t count)
{
    uint64_t result = 1;
    for (uint32_t i = 0; i < count; i++)
        result *= values[i];
    return result;
}

/* One chunk is more than a slab may hold: cut it along the slowest dimensions. */
static void
shrink(cp_slab *slab, uint64_t most)
{
    for (uint32_t i = 0; i < slab->rank; i++) {
        uint64_t others = 1;
        for (uint32_t j = i + 1; j < slab->rank && others <= most; j++)
            others *= slab->step[j];
        /* The dimensions before this one are 1 by now. */
        slab->step[i] = CLAMP(most / others, 1, slab->step[i]);
        if (others <= most)
            return;
    }
}

/* Grows the slab by whole chunks, fastest dimension first, so that it stays contiguous. */
static void
grow(cp_slab *slab, uint64_t most)
{
    for (uint32_t i = slab->rank; i-- > 0;) {
        uint64_t times = most / product(slab->step, slab->rank);
        if (times > slab->shape[i] / slab->step[i])
            slab->step[i] = slab->shape[i];
        else
            slab->step[i] *= MAX(times, 1);
        if (slab->step[i] < slab->shape[i])
            return;
    }
}

static bool
fits(const cp_slab *slab, uint64_t most)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < slab->rank; i++) {
        if (__builtin_mul_overflow(elements, slab->step[i], &elements) || elements > most)
            return false;
    }
    return true;
}

void
cp_slab_init(cp_slab *slab, const cp_dataset *dataset)
{
    cp_slab_init_of(slab, dataset, CP_SLAB_BYTES);
}

void
cp_slab_init_of(cp_slab *slab, const cp_dataset *dataset, uint64_t bytes)
{
    *slab = (cp_slab){.rank = dataset->rank};
    size_t element = dataset->type->bytes + (dataset->type->varies ? TEXT_BYTES : 0);
    uint64_t most = MAX(bytes / element, 1);
    bool empty = false;
    for (uint32_t i = 0; i < slab->rank; i++) {
        slab->shape[i] = dataset->dimensions[i]->length;
        empty |= slab->shape[i] == 0;
        slab->step[i] = dataset->chunk != NULL ? MIN(dataset->chunk[i], slab->shape[i]) : 1;
        slab->step[i] = MAX(slab->step[i], 1);
    }
    if (empty)
        return;
    if (fits(slab, most))
        grow(slab, most);
    else
        shrink(slab, most);
    slab->most_elements = product(slab->step, slab->rank);
}

/* Moves to the next slab in C order; false at the end. */
static bool
advance(cp_slab *slab)
{
    if (!slab->started) {
        slab->started = true;
        return true;
    }
    for (uint32_t i = slab->rank; i-- > 0;) {
        slab->offset[i] += slab->size[i];
        if (slab->offset[i] < slab->shape[i])
            return true;
        slab->offset[i] = 0;
    }
    return false;
}

bool
cp_slab_next(cp_slab *slab)
{
    if (slab->most_elements == 0 || !advance(slab))
        return false;
    slab->elements = 1;
    for (uint32_t i = 0; i < slab->rank; i++) {
        slab->size[i] = MIN(slab->step[i], slab->shape[i] - slab->offset[i]);
        slab->elements *= slab->size[i];
    }
    return true;
}
