/* SPDX-License-Identifier: LGPL-3.0-or-later */
/**
 * @file
 * Strided copy. The axes are put into the order of the target's memory and merged where both sides
 * allow; the two innermost are handed to a kernel (dense runs, typed strided loops, tiles for
 * transpositions, or conversion), an odometer counts the others.
 */

/* As in convert.c: what GCC's -O2 leaves out is worth having here. */
#if defined(__GNUC__) && !defined(__clang__) && defined(__OPTIMIZE__)
#pragma GCC optimize("O3")
#endif

#include "model/copy.h"

#include <string.h>

#include "model/convert.h"
#include "model/spread.h"

/* One axis: number of elements and the step on both sides in bytes. */
typedef struct axis {
    uint64_t n;
    int64_t source;
    int64_t target;
} axis;

typedef struct plan {
    const char *source; /* of the first element in the order of the axes */
    char *target;
    size_t source_bytes, target_bytes; /* of one element */
    esdm__converter convert;           /* NULL: copy bits */
    bool keeps;                        /* it leaves some elements of the target as they were */
    esdm__spread_fn spread;            /* of copy_spread() */
    uint64_t out_of_range;
    uint32_t count; /* of axes; slowest first */
    axis axes[ESDM_MAX_RANK + 1];
} plan;

typedef void (*kernel)(plan *p, const axis *outer, const axis *inner, const char *source,
                       char *target);

/* ---- kernels ------------------------------------------------------------------------------- */

/* Elements in memory: no alignment is promised. */
#define UNALIGNED __attribute__((aligned(1), may_alias))
typedef uint8_t bits8 UNALIGNED;
typedef uint16_t bits16 UNALIGNED;
typedef uint32_t bits32 UNALIGNED;
typedef uint64_t bits64 UNALIGNED;

/* Constant trip counts let compilers vectorise without run-time checks. */
#define BLOCK ((uint64_t) 64)
/* A transposition goes by tiles, whose lines stay in the first cache and whose pages stay in the
 * TLB, and within them by squares of SQUARE elements. */
#define TILE(BITS) ((uint64_t) (sizeof(BITS) == 8 ? 32 : 64))
#define SQUARE     4

/* Target line i is source column i. */
#define SQUARE_LOOP(BITS)                                                                          \
    static inline void square_##BITS(const char *source, int64_t source_step, char *target,        \
                                     int64_t target_step)                                          \
    {                                                                                              \
        for (int i = 0; i < SQUARE; i++) {                                                         \
            for (int j = 0; j < SQUARE; j++)                                                       \
                ((BITS *) (target + i * target_step))[j] =                                         \
                    ((const BITS *) (source + j * source_step))[i];                                \
        }                                                                                          \
    }

SQUARE_LOOP(bits8)
SQUARE_LOOP(bits16)
SQUARE_LOOP(bits64)
#if defined(__has_builtin) && __has_builtin(__builtin_shufflevector)
static inline void
square_bits32(const char *source, int64_t source_step, char *target, int64_t target_step)
{
    typedef uint32_t line __attribute__((vector_size(16)));
    typedef line line_any UNALIGNED;
    line a = *(const line_any *) source;
    line b = *(const line_any *) (source + source_step);
    line c = *(const line_any *) (source + 2 * source_step);
    line d = *(const line_any *) (source + 3 * source_step);
    line ab_low = __builtin_shufflevector(a, b, 0, 4, 1, 5);
    line ab_high = __builtin_shufflevector(a, b, 2, 6, 3, 7);
    line cd_low = __builtin_shufflevector(c, d, 0, 4, 1, 5);
    line cd_high = __builtin_shufflevector(c, d, 2, 6, 3, 7);
    *(line_any *) target = __builtin_shufflevector(ab_low, cd_low, 0, 1, 4, 5);
    *(line_any *) (target + target_step) = __builtin_shufflevector(ab_low, cd_low, 2, 3, 6, 7);
    *(line_any *) (target + 2 * target_step) =
        __builtin_shufflevector(ab_high, cd_high, 0, 1, 4, 5);
    *(line_any *) (target + 3 * target_step) =
        __builtin_shufflevector(ab_high, cd_high, 2, 3, 6, 7);
}
#else
SQUARE_LOOP(bits32)
#endif

/* Types as macro arguments cannot stand in parentheses. NOLINTBEGIN(bugprone-macro-parentheses) */

/* splat_*: one value along a dense target. run_*: one axis. copy_*: two axes. tile_*: a part of two
 * axes, the target dense in the inner one and the source in the outer one. transpose_*: all of
 * them. */
#define TYPED_KERNELS(BITS)                                                                        \
    static void splat_##BITS(uint64_t n, BITS value, BITS *target)                                 \
    {                                                                                              \
        for (; n >= BLOCK; n -= BLOCK, target += BLOCK) {                                          \
            for (uint64_t i = 0; i < BLOCK; i++)                                                   \
                target[i] = value;                                                                 \
        }                                                                                          \
        for (uint64_t i = 0; i < n; i++)                                                           \
            target[i] = value;                                                                     \
    }                                                                                              \
    static inline void run_##BITS(uint64_t n, const char *source, int64_t source_step,             \
                                  char *target, int64_t target_step)                               \
    {                                                                                              \
        if (target_step != (int64_t) sizeof(BITS)) {                                               \
            for (uint64_t i = 0; i < n; i++, source += source_step, target += target_step)         \
                *(BITS *) target = *(const BITS *) source;                                         \
        } else if (source_step != 0) {                                                             \
            BITS *t = (BITS *) target;                                                             \
            for (uint64_t i = 0; i < n; i++, source += source_step)                                \
                t[i] = *(const BITS *) source;                                                     \
        } else {                                                                                   \
            splat_##BITS(n, *(const BITS *) source, (BITS *) target);                              \
        }                                                                                          \
    }                                                                                              \
    static void copy_##BITS(plan *p, const axis *outer, const axis *inner, const char *source,     \
                            char *target)                                                          \
    {                                                                                              \
        (void) p;                                                                                  \
        for (uint64_t i = 0; i < outer->n; i++, source += outer->source, target += outer->target)  \
            run_##BITS(inner->n, source, inner->source, target, inner->target);                    \
    }                                                                                              \
    static void tile_##BITS(uint64_t ni, uint64_t nj, const char *source, int64_t source_step,     \
                            char *target, int64_t target_step)                                     \
    {                                                                                              \
        const int64_t bytes = sizeof(BITS);                                                        \
        uint64_t i = 0;                                                                            \
        for (; i + SQUARE <= ni; i += SQUARE) {                                                    \
            uint64_t j = 0;                                                                        \
            for (; j + SQUARE <= nj; j += SQUARE)                                                  \
                square_##BITS(source + (int64_t) j * source_step, source_step,                     \
                              target + (int64_t) j * bytes, target_step);                          \
            for (int k = 0; j < nj && k < SQUARE; k++)                                             \
                run_##BITS(nj - j, source + (int64_t) j * source_step + k * bytes, source_step,    \
                           target + (int64_t) j * bytes + k * target_step, bytes);                 \
            source += SQUARE * bytes;                                                              \
            target += SQUARE * target_step;                                                        \
        }                                                                                          \
        for (; i < ni; i++, source += bytes, target += target_step)                                \
            run_##BITS(nj, source, source_step, target, bytes);                                    \
    }                                                                                              \
    static void transpose_##BITS(plan *p, const axis *outer, const axis *inner,                    \
                                 const char *source, char *target)                                 \
    {                                                                                              \
        const uint64_t tile = TILE(BITS);                                                          \
        (void) p;                                                                                  \
        for (uint64_t i = 0; i < outer->n; i += tile) {                                            \
            uint64_t ni = outer->n - i < tile ? outer->n - i : tile;                               \
            for (uint64_t j = 0; j < inner->n; j += tile)                                          \
                tile_##BITS(ni, inner->n - j < tile ? inner->n - j : tile,                         \
                            source + (int64_t) i * outer->source + (int64_t) j * inner->source,    \
                            inner->source,                                                         \
                            target + (int64_t) i * outer->target + (int64_t) j * inner->target,    \
                            outer->target);                                                        \
        }                                                                                          \
    }

/* NOLINTEND(bugprone-macro-parentheses) */

/* clang-format off */
TYPED_KERNELS(bits8)
TYPED_KERNELS(bits16)
TYPED_KERNELS(bits32)
TYPED_KERNELS(bits64)
/* clang-format on */

/* The step of the inner axis is one element on both sides. */
static void
copy_dense(plan *p, const axis *outer, const axis *inner, const char *source, char *target)
{
    size_t bytes = (size_t) inner->n * p->source_bytes;
    for (uint64_t i = 0; i < outer->n; i++) {
        memcpy(target, source, bytes);
        source += outer->source;
        target += outer->target;
    }
}

/* The step of the inner axis is one element of the source and two of the target. */
static void
copy_spread(plan *p, const axis *outer, const axis *inner, const char *source, char *target)
{
    for (uint64_t i = 0; i < outer->n; i++, source += outer->source, target += outer->target)
        p->spread(inner->n, source, target);
}

static void
run_bits(size_t element_bytes, uint64_t n, const char *source, int64_t source_step, char *target,
         int64_t target_step)
{
    switch (element_bytes) {
    case 1:
        run_bits8(n, source, source_step, target, target_step);
        break;
    case 2:
        run_bits16(n, source, source_step, target, target_step);
        break;
    case 4:
        run_bits32(n, source, source_step, target, target_step);
        break;
    default:
        run_bits64(n, source, source_step, target, target_step);
        break;
    }
}

/* Converters work on dense runs: what is strided passes through a small buffer. */
static void
convert_run(plan *p, const axis *run, const char *source, char *target)
{
    enum { STEP = 256 };
    uint64_t from[STEP];
    uint64_t to[STEP];
    bool source_dense = run->source == (int64_t) p->source_bytes;
    bool target_dense = run->target == (int64_t) p->target_bytes;

    if (source_dense && target_dense) {
        p->out_of_range += p->convert(source, target, (size_t) run->n);
        return;
    }
    for (uint64_t left = run->n, n; left > 0; left -= n) {
        n = left < STEP ? left : STEP;
        if (!source_dense)
            run_bits(p->source_bytes, n, source, run->source, (char *) from,
                     (int64_t) p->source_bytes);
        if (!target_dense && p->keeps)
            run_bits(p->target_bytes, n, target, run->target, (char *) to,
                     (int64_t) p->target_bytes);
        p->out_of_range += p->convert(source_dense ? (const void *) source : from,
                                      target_dense ? (void *) target : to, (size_t) n);
        if (!target_dense)
            run_bits(p->target_bytes, n, (const char *) to, (int64_t) p->target_bytes, target,
                     run->target);
        source += (int64_t) n * run->source;
        target += (int64_t) n * run->target;
    }
}

static void
convert_2d(plan *p, const axis *outer, const axis *inner, const char *source, char *target)
{
    if (inner->n < 16 && outer->n > inner->n) { /* long runs repay the set-up */
        const axis *swap = outer;
        outer = inner;
        inner = swap;
    }
    for (uint64_t i = 0; i < outer->n; i++) {
        convert_run(p, inner, source, target);
        source += outer->source;
        target += outer->target;
    }
}

/* ---- plan ---------------------------------------------------------------------------------- */

/* Adds an axis so that targets ascend along it and the axes stay ordered, largest step first. */
static void
add_axis(plan *p, uint64_t n, int64_t source_step, int64_t target_step)
{
    if (target_step < 0) {
        p->source += (int64_t) (n - 1) * source_step;
        p->target += (int64_t) (n - 1) * target_step;
        source_step = -source_step;
        target_step = -target_step;
    }
    uint32_t at = p->count++;
    for (; at > 0 && p->axes[at - 1].target < target_step; at--)
        p->axes[at] = p->axes[at - 1];
    p->axes[at] = (axis){n, source_step, target_step};
}

static bool
axes_merge(const axis *slow, const axis *fast)
{
    return (uint64_t) slow->source == (uint64_t) fast->source * fast->n &&
           (uint64_t) slow->target == (uint64_t) fast->target * fast->n;
}

static void
merge_axes(plan *p)
{
    uint32_t kept = 0;
    for (uint32_t i = 1; i < p->count; i++) {
        if (axes_merge(&p->axes[kept], &p->axes[i])) {
            p->axes[i].n *= p->axes[kept].n;
            p->axes[kept] = p->axes[i];
        } else {
            p->axes[++kept] = p->axes[i];
        }
    }
    p->count = kept + 1;
}

/* In a transposition, makes the axis along which the source is dense the second innermost. */
static bool
find_tiles(plan *p)
{
    uint32_t last = p->count - 1;
    if (p->count < 2 || p->axes[last].target != (int64_t) p->target_bytes ||
        p->axes[last].source == 0)
        return false;
    for (uint32_t i = last; i-- > 0;) {
        if (p->axes[i].source == (int64_t) p->source_bytes) {
            axis dense = p->axes[i];
            for (; i + 1 < last; i++)
                p->axes[i] = p->axes[i + 1];
            p->axes[i] = dense;
            return true;
        }
    }
    return false;
}

/* Short dense runs of 2, 4 or 8 bytes become elements of that width. */
static void
widen_elements(plan *p)
{
    while (p->count > 1) {
        const axis *inner = &p->axes[p->count - 1];
        uint64_t bytes = inner->n * p->source_bytes;
        if (inner->n > 8 || (bytes != 2 && bytes != 4 && bytes != 8) ||
            inner->source != (int64_t) p->source_bytes || inner->target != inner->source)
            return;
        p->source_bytes = bytes;
        p->target_bytes = bytes;
        p->count--;
    }
}

static kernel
choose_kernel(plan *p)
{
    if (p->convert != NULL)
        return convert_2d;
    widen_elements(p);
    const axis *inner = &p->axes[p->count - 1];
    int64_t element = (int64_t) p->source_bytes;
    if (inner->source == element && inner->target == element)
        return copy_dense;
    bool spreads = inner->source == element && inner->target == 2 * element;
    p->spread = spreads ? esdm__spread_of(p->source_bytes) : NULL;
    if (p->spread != NULL)
        return copy_spread;
    bool tiles = find_tiles(p);
    switch (element) {
    case 1:
        return tiles ? transpose_bits8 : copy_bits8;
    case 2:
        return tiles ? transpose_bits16 : copy_bits16;
    case 4:
        return tiles ? transpose_bits32 : copy_bits32;
    default:
        return tiles ? transpose_bits64 : copy_bits64;
    }
}

static void
run_plan(plan *p)
{
    static const axis once = {1, 0, 0};
    uint64_t index[ESDM_MAX_RANK + 1];
    kernel run = choose_kernel(p);
    const axis *inner = &p->axes[p->count - 1];
    const axis *outer = p->count > 1 ? inner - 1 : &once;
    uint32_t rest = p->count > 2 ? p->count - 2 : 0;
    const char *source = p->source;
    char *target = p->target;

    for (uint32_t i = 0; i < rest; i++)
        index[i] = 0;
    for (;;) {
        run(p, outer, inner, source, target);
        uint32_t i = rest;
        for (; i > 0; i--) {
            const axis *a = &p->axes[i - 1];
            if (++index[i - 1] < a->n) {
                source += a->source;
                target += a->target;
                break;
            }
            index[i - 1] = 0;
            source -= (int64_t) (a->n - 1) * a->source;
            target -= (int64_t) (a->n - 1) * a->target;
        }
        if (i == 0)
            return;
    }
}

void
esdm__copy_nd(uint32_t rank, const uint64_t *n, esdm_type from, const void *source,
              const int64_t *source_stride, esdm_type to, void *target,
              const int64_t *target_stride, uint64_t *ret_out_of_range)
{
    esdm__copy_by_rules_nd(ESDM_CONVERSION_NETCDF4, true, rank, n, from, source, source_stride, to,
                           target, target_stride, ret_out_of_range);
}

void
esdm__copy_by_rules_nd(esdm_conversion rules, bool storing, uint32_t rank, const uint64_t *n,
                       esdm_type from, const void *source, const int64_t *source_stride,
                       esdm_type to, void *target, const int64_t *target_stride,
                       uint64_t *ret_out_of_range)
{
    plan p;
    p.source = source;
    p.target = target;
    p.source_bytes = esdm_type_size(from);
    p.target_bytes = esdm_type_size(to);
    p.convert = from == to ? NULL : esdm__converter_find(rules, storing, from, to);
    p.keeps = !storing && esdm__conversion_keeps(rules, from, to);
    p.out_of_range = 0;
    p.count = 0;

    if (p.source_bytes == 0 || (from != to && p.convert == NULL))
        return; /* the caller asked esdm__type_converts() */
    for (uint32_t i = 0; i < rank; i++) {
        if (n[i] == 0)
            return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (n[i] > 1)
            add_axis(&p, n[i], source_stride[i] * (int64_t) p.source_bytes,
                     target_stride[i] * (int64_t) p.target_bytes);
    }
    if (p.count > 0) {
        merge_axes(&p);
        run_plan(&p);
    } else if (p.convert != NULL) {
        p.out_of_range = p.convert(source, target, 1);
    } else {
        run_bits(p.source_bytes, 1, source, 0, target, 0);
    }
    if (ret_out_of_range != NULL)
        *ret_out_of_range += p.out_of_range;
}

/* The largest unit that the kernels know and that divides the element. */
static size_t
unit_of(size_t element_bytes)
{
    size_t unit = 8;
    while (element_bytes % unit != 0)
        unit /= 2;
    return unit;
}

void
esdm__copy_bytes_nd(uint32_t rank, const uint64_t *n, size_t element_bytes, const void *source,
                    const int64_t *source_stride, void *target, const int64_t *target_stride)
{
    size_t unit = unit_of(element_bytes);
    plan p = {.source = source, .target = target, .source_bytes = unit, .target_bytes = unit};
    for (uint32_t i = 0; i < rank; i++) {
        if (n[i] == 0)
            return;
    }
    for (uint32_t i = 0; i < rank; i++) {
        if (n[i] > 1)
            add_axis(&p, n[i], source_stride[i] * (int64_t) element_bytes,
                     target_stride[i] * (int64_t) element_bytes);
    }
    /* The units of an element are one more axis, the fastest one. */
    if (element_bytes > unit || p.count == 0)
        p.axes[p.count++] = (axis){element_bytes / unit, (int64_t) unit, (int64_t) unit};
    merge_axes(&p);
    run_plan(&p);
}

void
esdm__fill_nd(uint32_t rank, const uint64_t *n, esdm_type type, const void *value, void *target,
              const int64_t *target_stride)
{
    static const int64_t same[ESDM_MAX_RANK];
    esdm__copy_nd(rank, n, type, value, same, type, target, target_stride, NULL);
}
