/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/spread.h"

#include "base/cpu.h"

esdm__spread_fn
esdm__spread_of(size_t element_bytes)
{
    /* Not with AVX2: its masked stores are slower than a loop on some CPUs. */
#if defined(__x86_64__)
    if (esdm__cpu_has_avx512f())
        return element_bytes == 4   ? esdm__spread32_avx512
               : element_bytes == 8 ? esdm__spread64_avx512
                                    : NULL;
#else
    (void) element_bytes;
#endif
    return NULL;
}
