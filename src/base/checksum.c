/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/checksum.h"

#include <xxhash.h>

uint64_t
esdm__checksum(const void *data, size_t bytes)
{
    return XXH3_64bits(data, bytes);
}
