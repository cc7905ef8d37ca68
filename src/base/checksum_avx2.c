/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Compiled with this instruction set switched on (cmake/EsdmBuild.cmake): calls need a check. */
#include "base/checksum_kernels.h"

#ifdef ESDM__CHECKSUM_X86
#define XXH_INLINE_ALL
#define XXH_VECTOR XXH_AVX2
#include <xxhash.h>

uint64_t
esdm__checksum_avx2(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}
#endif
