/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "base/axes.h"

uint32_t
esdm__axes_join(uint32_t rank, const uint64_t *shape, size_t n, uint32_t most, size_t *ret_length)
{
    uint32_t axes = 0;
    size_t rest = n;
    for (uint32_t d = rank; d-- > 0 && axes + 1 < most;) {
        if (shape[d] == 0 || rest % shape[d] != 0)
            break;
        if (shape[d] > 1)
            ret_length[axes++] = (size_t) shape[d];
        rest /= (size_t) shape[d];
    }
    if (rest != 1 || axes == 0)
        ret_length[axes++] = rest;
    return axes;
}
