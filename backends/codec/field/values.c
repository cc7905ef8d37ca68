/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "values.h"

#include <math.h>
#include <string.h>

#include "esdm/types.h"
#include "field.h"

field__kind
field__kind_of(int32_t type)
{
    switch (type) {
    case ESDM_TYPE_INT8:
        return FIELD__INT8;
    case ESDM_TYPE_INT16:
        return FIELD__INT16;
    case ESDM_TYPE_UINT16:
        return FIELD__UINT16;
    case ESDM_TYPE_INT32:
        return FIELD__INT32;
    case ESDM_TYPE_UINT32:
        return FIELD__UINT32;
    case ESDM_TYPE_INT64:
        return FIELD__INT64;
    case ESDM_TYPE_UINT64:
        return FIELD__UINT64;
    case ESDM_TYPE_FLOAT32:
        return FIELD__FLOAT32;
    case ESDM_TYPE_FLOAT64:
        return FIELD__FLOAT64;
    default:
        return FIELD__UINT8;
    }
}

bool
field__is_number(int32_t type)
{
    return type == ESDM_TYPE_UINT8 || field__kind_of(type) != FIELD__UINT8;
}

size_t
field__kind_bytes(field__kind kind)
{
    static const uint8_t bytes[FIELD__KINDS] = {1, 1, 2, 2, 4, 4, 8, 8, 4, 8};
    return bytes[kind];
}

size_t
field__element_bytes(int32_t type)
{
    return field__kind_bytes(field__kind_of(type));
}

/* Runs `statement` for every element, with `type` the element's C type. */
#define FOR_KIND(kind, statement)                                                                  \
    switch (kind) {                                                                                \
    case FIELD__INT8:                                                                              \
        statement(int8_t);                                                                         \
        break;                                                                                     \
    case FIELD__UINT16:                                                                            \
        statement(uint16_t);                                                                       \
        break;                                                                                     \
    case FIELD__INT16:                                                                             \
        statement(int16_t);                                                                        \
        break;                                                                                     \
    case FIELD__UINT32:                                                                            \
        statement(uint32_t);                                                                       \
        break;                                                                                     \
    case FIELD__INT32:                                                                             \
        statement(int32_t);                                                                        \
        break;                                                                                     \
    case FIELD__UINT64:                                                                            \
        statement(uint64_t);                                                                       \
        break;                                                                                     \
    case FIELD__INT64:                                                                             \
        statement(int64_t);                                                                        \
        break;                                                                                     \
    case FIELD__FLOAT32:                                                                           \
        statement(float);                                                                          \
        break;                                                                                     \
    case FIELD__FLOAT64:                                                                           \
        statement(double);                                                                         \
        break;                                                                                     \
    default:                                                                                       \
        statement(uint8_t);                                                                        \
    }

void
field__load(field__kind kind, const void *raw, size_t first, size_t count, double *to)
{
#define LOAD(type)                                                                                 \
    for (size_t i = 0; i < count; i++) {                                                           \
        type value;                                                                                \
        memcpy(&value, (const uint8_t *) raw + (first + i) * sizeof value, sizeof value);          \
        to[i] = (double) value;                                                                    \
    }
    FOR_KIND(kind, LOAD)
#undef LOAD
}

void
field__store(field__kind kind, const double *from, size_t first, size_t count, void *raw)
{
#define STORE(type)                                                                                \
    for (size_t i = 0; i < count; i++) {                                                           \
        type value = (type) from[i];                                                               \
        memcpy((uint8_t *) raw + (first + i) * sizeof value, &value, sizeof value);                \
    }
    FOR_KIND(kind, STORE)
#undef STORE
}

double
field__rounded(field__kind kind, double value)
{
    static const double least[FIELD__KINDS] = {0, -128, 0, -32768, 0, -2147483648.0, 0, -0x1p53};
    static const double most[FIELD__KINDS] = {255,          127,          65535,  32767,
                                              4294967295.0, 2147483647.0, 0x1p53, 0x1p53};
    return value >= least[kind] && value <= most[kind] ? floor(value + 0.5) : NAN;
}

/* Patterns of floats as integers in the order of the floats: -0 before +0. */
static inline int32_t
ordered32(uint32_t bits)
{
    return (int32_t) (bits ^ ((uint32_t) ((int32_t) bits >> 31) >> 1));
}

static inline int64_t
ordered64(uint64_t bits)
{
    return (int64_t) (bits ^ ((uint64_t) ((int64_t) bits >> 63) >> 1));
}

void
field__load_ordered(field__kind kind, const void *raw, size_t first, size_t count, int64_t *to)
{
#define LOAD(type, convert)                                                                        \
    for (size_t i = 0; i < count; i++) {                                                           \
        type value;                                                                                \
        memcpy(&value, (const uint8_t *) raw + (first + i) * sizeof value, sizeof value);          \
        to[i] = convert(value);                                                                    \
    }
#define LOAD_INTEGER(type) LOAD(type, (int64_t))
    if (kind == FIELD__FLOAT32) {
        LOAD(uint32_t, ordered32)
    } else if (kind == FIELD__FLOAT64) {
        LOAD(uint64_t, ordered64)
    } else {
        FOR_KIND(kind, LOAD_INTEGER)
    }
#undef LOAD_INTEGER
#undef LOAD
}

void
field__store_ordered(field__kind kind, const int64_t *from, size_t first, size_t count, void *raw)
{
#define STORE(type, convert)                                                                       \
    for (size_t i = 0; i < count; i++) {                                                           \
        type value = (type) convert(from[i]);                                                      \
        memcpy((uint8_t *) raw + (first + i) * sizeof value, &value, sizeof value);                \
    }
#define BITS32(value)       ordered32((uint32_t) (value))
#define BITS64(value)       ordered64((uint64_t) (value))
#define STORE_INTEGER(type) STORE(type, )
    if (kind == FIELD__FLOAT32) {
        STORE(uint32_t, BITS32)
    } else if (kind == FIELD__FLOAT64) {
        STORE(uint64_t, BITS64)
    } else {
        FOR_KIND(kind, STORE_INTEGER)
    }
#undef STORE_INTEGER
#undef STORE
}
