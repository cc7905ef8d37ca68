/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The packaged libxxhash is built for the oldest CPU of its architecture. Its header compiled here
 * for newer ones is three to five times as fast, with the same results (checksum_kernels.h). */
#include "base/checksum.h"

#include <stdatomic.h>

#include "base/checksum_kernels.h"
#include "base/cpu.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

static uint64_t
checksum_baseline(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}

static esdm__checksum_fn
fastest(void)
{
#ifdef ESDM__CHECKSUM_X86
    if (esdm__cpu_has_avx512f())
        return esdm__checksum_avx512;
    if (esdm__cpu_has_avx2())
        return esdm__checksum_avx2;
#endif
    return checksum_baseline;
}

uint64_t
esdm__checksum(const void *data, size_t bytes)
{
    static _Atomic(esdm__checksum_fn) kernel; /* every thread finds the same one */
    esdm__checksum_fn checksum = atomic_load_explicit(&kernel, memory_order_relaxed);
    if (checksum == NULL) {
        checksum = fastest();
        atomic_store_explicit(&kernel, checksum, memory_order_relaxed);
    }
    return checksum(data, bytes);
}

void
esdm__checksum128(const void *data, size_t bytes, uint64_t ret[2])
{
    XXH128_hash_t hash = XXH3_128bits(data, bytes);
    ret[0] = hash.low64;
    ret[1] = hash.high64;
}
