/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/doubles.h"

#include <math.h>
#include <string.h>

#include "esdm/types.h"

/* Numbers of one type: the loops have no branches, so that vectors do them. */
#define CONVERT(name, ctype, member)                                                               \
    static void name(const esdm__missing *missing, const void *numbers, size_t n, double *ret)     \
    {                                                                                              \
        const uint8_t *at = numbers;                                                               \
        for (size_t i = 0; i < n; i++) {                                                           \
            ctype v;                                                                               \
            memcpy(&v, at + i * sizeof v, sizeof v);                                               \
            ret[i] = (double) v;                                                                   \
        }                                                                                          \
        for (uint32_t k = 0; k < missing->count; k++) {                                            \
            const ctype out = (ctype) missing->values[k].member;                                   \
            for (size_t i = 0; i < n; i++) {                                                       \
                ctype v;                                                                           \
                memcpy(&v, at + i * sizeof v, sizeof v);                                           \
                ret[i] = v == out ? (double) NAN : ret[i];                                         \
            }                                                                                      \
        }                                                                                          \
    }

CONVERT(of_int8, int8_t, i)
CONVERT(of_int16, int16_t, i)
CONVERT(of_int32, int32_t, i)
CONVERT(of_int64, int64_t, i)
CONVERT(of_uint8, uint8_t, u)
CONVERT(of_uint16, uint16_t, u)
CONVERT(of_uint32, uint32_t, u)
CONVERT(of_uint64, uint64_t, u)
CONVERT(of_float, float, f)
CONVERT(of_double, double, f)

void
esdm__doubles(int32_t type, const esdm__missing *missing, const void *numbers, size_t n,
              double *ret)
{
    static void (*const of[])(const esdm__missing *, const void *, size_t, double *) = {
        [ESDM_TYPE_INT8] = of_int8,      [ESDM_TYPE_INT16] = of_int16,
        [ESDM_TYPE_INT32] = of_int32,    [ESDM_TYPE_FLOAT32] = of_float,
        [ESDM_TYPE_FLOAT64] = of_double, [ESDM_TYPE_UINT8] = of_uint8,
        [ESDM_TYPE_UINT16] = of_uint16,  [ESDM_TYPE_UINT32] = of_uint32,
        [ESDM_TYPE_INT64] = of_int64,    [ESDM_TYPE_UINT64] = of_uint64};
    of[type](missing, numbers, n, ret);
}
