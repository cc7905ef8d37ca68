/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_CHECKED_H
#define ESDM_BASE_CHECKED_H

/** @file Overflow-checked arithmetic: false, and *ret untouched, when the result does not fit. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool
esdm__add_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;
    if (__builtin_add_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

static inline bool
esdm__mul_u64(uint64_t a, uint64_t b, uint64_t *ret)
{
    uint64_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

static inline bool
esdm__mul_size(size_t a, size_t b, size_t *ret)
{
    size_t r;
    if (__builtin_mul_overflow(a, b, &r))
        return false;
    *ret = r;
    return true;
}

#endif
