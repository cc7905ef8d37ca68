/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/layer_loops.h"

#include <math.h>
#include <string.h>

#include "codec/layer_model.h"
#include "codec/layers.h"
#include "esdm/types.h"

/* Multiples of a step that a double tells apart, with room for a difference. */
#define MULTIPLES 0x1p51

/* 0 is kept for numbers that stay as they are. */
static inline int64_t
code_of(int64_t difference)
{
    return difference >= 0 ? difference + 1 : difference;
}

static inline int64_t
difference_of(int64_t code)
{
    return code > 0 ? code - 1 : code;
}

/* Patterns in the order of their numbers. */
static inline int32_t
ordered_32(int32_t bits)
{
    return bits ^ ((bits >> 31) & INT32_MAX);
}

static inline int64_t
ordered_64(int64_t bits)
{
    return bits ^ ((bits >> 63) & INT64_MAX);
}

/* Rounded to a multiple of 2^dropped, by that. */
static inline int64_t
without_bits(int64_t ordered, uint32_t dropped)
{
    int64_t half = dropped > 0 ? INT64_C(1) << (dropped - 1) : 0;
    return (int64_t) ((uint64_t) ordered + (uint64_t) half) >> dropped;
}

/* ---- multiples of a step ------------------------------------------------------------------ */

/* `whole` makes an integer of a double where the type has no others; `finest`: multiples up to this
 * are told apart by the type, with some room. */

static inline float
to_float(double x)
{
    return (float) x;
}

static inline double
to_double(double x)
{
    return x;
}

/* Whole numbers that the type does not have become its last one. */
#define DEFINE_TO(name, number, least, most)                                                       \
    static inline number name(double x)                                                            \
    {                                                                                              \
        return !(x > (double) (least)) ? (least) : !(x < (double) (most)) ? (most) : (number) x;   \
    }

DEFINE_TO(to_int8, int8_t, INT8_MIN, INT8_MAX)
DEFINE_TO(to_int16, int16_t, INT16_MIN, INT16_MAX)
DEFINE_TO(to_int32, int32_t, INT32_MIN, INT32_MAX)
DEFINE_TO(to_int64, int64_t, INT64_MIN, INT64_MAX)
DEFINE_TO(to_uint8, uint8_t, 0, UINT8_MAX)
DEFINE_TO(to_uint16, uint16_t, 0, UINT16_MAX)
DEFINE_TO(to_uint32, uint32_t, 0, UINT32_MAX)
DEFINE_TO(to_uint64, uint64_t, 0, UINT64_MAX)

#define DEFINE_GRID(name, number, to, whole, finest)                                               \
    static bool name##_grid_codes(double step, const void *raw, const void *known, size_t n,       \
                                  int64_t *codes)                                                  \
    {                                                                                              \
        int good = 1;                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number x;                                                                              \
            number y;                                                                              \
            memcpy(&x, (const char *) raw + i * sizeof x, sizeof x);                               \
            memcpy(&y, (const char *) known + i * sizeof y, sizeof y);                             \
            codes[i] = 0;                                                                          \
            if (memcmp(&x, &y, sizeof x) == 0)                                                     \
                continue;                                                                          \
            double wanted = rint((double) x / step);                                               \
            double there = rint((double) y / step);                                                \
            int fits = (fabs(wanted) < MULTIPLES) & (fabs(there) < MULTIPLES);                     \
            good &= fits;                                                                          \
            codes[i] = fits ? code_of((int64_t) (wanted - there)) : 0;                             \
        }                                                                                          \
        return good != 0;                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name##_grid_numbers(double step, const void *known, size_t n, int64_t *numbers)    \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number y;                                                                              \
            memcpy(&y, (const char *) known + i * sizeof y, sizeof y);                             \
            double there = rint((double) y / step);                                                \
            numbers[i] = fabs(there) < MULTIPLES ? (int64_t) there : ESDM__LAYER_NOWHERE;          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static bool name##_lies_on(double step, const void *values, size_t n)                          \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number y;                                                                              \
            memcpy(&y, (const char *) values + i * sizeof y, sizeof y);                            \
            double there = rint((double) y / step);                                                \
            if (fabs(there) < MULTIPLES &&                                                         \
                (to(whole(there * step)) != y || fabs(there) > (finest)))                          \
                return false;                                                                      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static void name##_grid_apply(double step, const int64_t *codes, void *known, size_t n)        \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number y;                                                                              \
            if (codes[i] == 0)                                                                     \
                continue;                                                                          \
            memcpy(&y, (const char *) known + i * sizeof y, sizeof y);                             \
            double there = rint((double) y / step) + (double) difference_of(codes[i]);             \
            y = to(whole(there * step));                                                           \
            memcpy((char *) known + i * sizeof y, &y, sizeof y);                                   \
        }                                                                                          \
    }

static inline double
as_is(double x)
{
    return x;
}

/* ---- patterns ----------------------------------------------------------------------------- */

#define DEFINE_BITS(name, pattern, unsigned_pattern, order)                                        \
    static bool name##_codes(uint32_t dropped, const void *raw, const void *known, size_t n,       \
                             int64_t *codes)                                                       \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            pattern x;                                                                             \
            pattern y;                                                                             \
            memcpy(&x, (const char *) raw + i * sizeof x, sizeof x);                               \
            memcpy(&y, (const char *) known + i * sizeof y, sizeof y);                             \
            x = order(x);                                                                          \
            y = order(y);                                                                          \
            if (dropped == 0)                                                                      \
                codes[i] = (pattern) ((unsigned_pattern) x - (unsigned_pattern) y);                \
            else                                                                                   \
                codes[i] = x == y ? 0                                                              \
                                  : code_of((int64_t) ((uint64_t) without_bits(x, dropped) -       \
                                                       (uint64_t) without_bits(y, dropped)));      \
        }                                                                                          \
        return true;                                                                               \
    }                                                                                              \
                                                                                                   \
    static void name##_numbers(uint32_t dropped, const void *known, size_t n, int64_t *numbers)    \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            pattern y;                                                                             \
            memcpy(&y, (const char *) known + i * sizeof y, sizeof y);                             \
            numbers[i] = without_bits(order(y), dropped);                                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void name##_apply(uint32_t dropped, const int64_t *codes, void *known, size_t n)        \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            pattern y;                                                                             \
            if (codes[i] == 0)                                                                     \
                continue;                                                                          \
            memcpy(&y, (const char *) known + i * sizeof y, sizeof y);                             \
            y = order(y);                                                                          \
            if (dropped == 0)                                                                      \
                y = (pattern) ((unsigned_pattern) y + (unsigned_pattern) codes[i]);                \
            else                                                                                   \
                y = (pattern) (((uint64_t) without_bits(y, dropped) +                              \
                                (uint64_t) difference_of(codes[i]))                                \
                               << dropped);                                                        \
            y = order(y);                                                                          \
            memcpy((char *) known + i * sizeof y, &y, sizeof y);                                   \
        }                                                                                          \
    }

#define AS_IS(x) (x)

DEFINE_GRID(float32, float, to_float, as_is, 0x1p22)
DEFINE_GRID(float64, double, to_double, as_is, 0x1p50)
DEFINE_GRID(int8, int8_t, to_int8, rint, MULTIPLES)
DEFINE_GRID(int16, int16_t, to_int16, rint, MULTIPLES)
DEFINE_GRID(int32, int32_t, to_int32, rint, MULTIPLES)
DEFINE_GRID(int64, int64_t, to_int64, rint, MULTIPLES)
DEFINE_GRID(uint8, uint8_t, to_uint8, rint, MULTIPLES)
DEFINE_GRID(uint16, uint16_t, to_uint16, rint, MULTIPLES)
DEFINE_GRID(uint32, uint32_t, to_uint32, rint, MULTIPLES)
DEFINE_GRID(uint64, uint64_t, to_uint64, rint, MULTIPLES)
DEFINE_BITS(float_bits_32, int32_t, uint32_t, ordered_32)
DEFINE_BITS(float_bits_64, int64_t, uint64_t, ordered_64)
DEFINE_BITS(bits_8, int8_t, uint8_t, AS_IS)
DEFINE_BITS(bits_16, int16_t, uint16_t, AS_IS)
DEFINE_BITS(bits_32, int32_t, uint32_t, AS_IS)
DEFINE_BITS(bits_64, int64_t, uint64_t, AS_IS)

typedef struct loops {
    bool (*grid_codes)(double step, const void *raw, const void *known, size_t n, int64_t *codes);
    void (*grid_apply)(double step, const int64_t *codes, void *known, size_t n);
    bool (*bits_codes)(uint32_t dropped, const void *raw, const void *known, size_t n,
                       int64_t *codes);
    void (*bits_apply)(uint32_t dropped, const int64_t *codes, void *known, size_t n);
    void (*grid_numbers)(double step, const void *known, size_t n, int64_t *numbers);
    void (*bits_numbers)(uint32_t dropped, const void *known, size_t n, int64_t *numbers);
    bool (*lies_on)(double step, const void *values, size_t n);
    uint32_t bytes; /* of a number */
} loops;

#define LOOPS(type, bits, bytes)                                                                   \
    {                                                                                              \
        type##_grid_codes, type##_grid_apply, bits##_codes, bits##_apply, type##_grid_numbers,     \
            bits##_numbers, type##_lies_on, bytes                                                  \
    }

/* NULL: no numbers. */
static const loops *
loops_of(int32_t type)
{
    static const loops all[] = {
        [ESDM_TYPE_INT8] = LOOPS(int8, bits_8, 1),
        [ESDM_TYPE_INT16] = LOOPS(int16, bits_16, 2),
        [ESDM_TYPE_INT32] = LOOPS(int32, bits_32, 4),
        [ESDM_TYPE_INT64] = LOOPS(int64, bits_64, 8),
        [ESDM_TYPE_UINT8] = LOOPS(uint8, bits_8, 1),
        [ESDM_TYPE_UINT16] = LOOPS(uint16, bits_16, 2),
        [ESDM_TYPE_UINT32] = LOOPS(uint32, bits_32, 4),
        [ESDM_TYPE_UINT64] = LOOPS(uint64, bits_64, 8),
        [ESDM_TYPE_FLOAT32] = LOOPS(float32, float_bits_32, 4),
        [ESDM_TYPE_FLOAT64] = LOOPS(float64, float_bits_64, 8),
    };
    if (type < 0 || (size_t) type >= sizeof all / sizeof all[0] || all[type].grid_codes == NULL)
        return NULL;
    return &all[type];
}

bool
esdm__layer_has_type(int32_t type, uint32_t element_bytes)
{
    const loops *l = loops_of(type);
    return l != NULL && l->bytes == element_bytes;
}

bool
esdm__layer_codes(int32_t type, const esdm__layer_grid *grid, const void *raw, const void *known,
                  size_t n, int64_t *codes)
{
    const loops *l = loops_of(type);
    if (l == NULL)
        return false;
    return grid->kind == ESDM__LAYER_GRID ? l->grid_codes(grid->step, raw, known, n, codes)
                                          : l->bits_codes(grid->dropped, raw, known, n, codes);
}

bool
esdm__layer_lies_on(int32_t type, double step, const void *values, size_t n)
{
    const loops *l = loops_of(type);
    return l != NULL && l->lies_on(step, values, n);
}

void
esdm__layer_numbers(int32_t type, const esdm__layer_grid *grid, const void *known, size_t n,
                    int64_t *numbers)
{
    const loops *l = loops_of(type);
    if (l == NULL)
        return;
    if (grid->kind == ESDM__LAYER_GRID)
        l->grid_numbers(grid->step, known, n, numbers);
    else
        l->bits_numbers(grid->dropped, known, n, numbers);
}

void
esdm__layer_apply(int32_t type, const esdm__layer_grid *grid, const int64_t *codes, void *known,
                  size_t n)
{
    const loops *l = loops_of(type);
    if (l == NULL)
        return;
    if (grid->kind == ESDM__LAYER_GRID)
        l->grid_apply(grid->step, codes, known, n);
    else
        l->bits_apply(grid->dropped, codes, known, n);
}

/* ---- widths ------------------------------------------------------------------------------- */

uint64_t
esdm__layer_largest(const int64_t *codes, size_t n)
{
    uint64_t largest = 0;
    for (size_t i = 0; i < n; i++) {
        uint64_t size = codes[i] < 0 ? -(uint64_t) codes[i] : (uint64_t) codes[i];
        largest = size > largest ? size : largest;
    }
    return largest;
}

#define DEFINE_WIDTH(name, number)                                                                 \
    static void narrow_##name(int64_t *codes, size_t n)                                            \
    {                                                                                              \
        for (size_t i = 0; i < n; i++) {                                                           \
            number code = (number) codes[i];                                                       \
            memcpy((char *) codes + i * sizeof code, &code, sizeof code);                          \
        }                                                                                          \
    }                                                                                              \
                                                                                                   \
    static void widen_##name(int64_t *codes, size_t n)                                             \
    {                                                                                              \
        for (size_t i = n; i-- > 0;) {                                                             \
            number code;                                                                           \
            memcpy(&code, (const char *) codes + i * sizeof code, sizeof code);                    \
            codes[i] = code;                                                                       \
        }                                                                                          \
    }

DEFINE_WIDTH(8, int8_t)
DEFINE_WIDTH(16, int16_t)
DEFINE_WIDTH(32, int32_t)

void
esdm__layer_narrow(int64_t *codes, size_t n, uint32_t width)
{
    if (width == 1)
        narrow_8(codes, n);
    else if (width == 2)
        narrow_16(codes, n);
    else if (width == 4)
        narrow_32(codes, n);
}

void
esdm__layer_widen(int64_t *codes, size_t n, uint32_t width)
{
    if (width == 1)
        widen_8(codes, n);
    else if (width == 2)
        widen_16(codes, n);
    else if (width == 4)
        widen_32(codes, n);
}
