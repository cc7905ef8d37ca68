/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "kernels.h"

#include "base/cpu.h"

static _Thread_local const field__kernels *forced;

const field__kernels *
field__kernels_at(uint32_t i)
{
    const field__kernels *have[3] = {&field__kernels_base, NULL, NULL};
#if defined(__x86_64__)
    uint32_t count = 1;
    if (esdm__cpu_has_avx2())
        have[count++] = &field__kernels_avx2;
    if (esdm__cpu_has_avx512())
        have[count++] = &field__kernels_avx512;
#endif
    return i < sizeof have / sizeof have[0] ? have[i] : NULL;
}

const field__kernels *
field__kernels_best(void)
{
    static const field__kernels *found; /* any thread may set it, all to the same */
    if (forced != NULL)
        return forced;
    const field__kernels *best = __atomic_load_n(&found, __ATOMIC_RELAXED);
    if (best != NULL)
        return best;
    best = &field__kernels_base;
    for (uint32_t i = 1; field__kernels_at(i) != NULL; i++)
        best = field__kernels_at(i);
    __atomic_store_n(&found, best, __ATOMIC_RELAXED);
    return best;
}

void
field__kernels_force(const field__kernels *kernels)
{
    forced = kernels;
}
