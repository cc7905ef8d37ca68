/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Layers of a block: differences of grid points, coded without loss. */
#include "codec/layers.h"

#include <math.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/blob_bytes.h"
#include "codec/layer_loops.h"
#include "codec/layer_model.h"

#define FLAG_CODED    1u
#define FLAG_MODELLED 2u
/* How often a grid is tried: as asked, with half the step. */
#define ATTEMPTS 2

size_t
esdm__layer_bound(size_t raw_bytes)
{
    return raw_bytes + ESDM__LAYER_HEAD_BYTES;
}

/* ---- grids -------------------------------------------------------------------------------- */

/* Bits of the mantissa that are stored; 0: an integer. */
static uint32_t
mantissa_bits(int32_t type)
{
    return type == ESDM_TYPE_FLOAT32 ? 23 : type == ESDM_TYPE_FLOAT64 ? 52 : 0;
}

/* Half the distance of two numbers of the type near the largest one, in powers of two so that it is
 * the same when numbers change a little. */
static double
rounding(int32_t type, double largest)
{
    int exponent;
    if (mantissa_bits(type) == 0)
        return 0.5;
    (void) frexp(largest, &exponent);
    return ldexp(1, exponent - 2 - (int) mantissa_bits(type));
}

/* The decimal grid on which floats seem to lie; 0: there is none. */
static double
decimal_step(const esdm_codec_input *input, const void *raw, size_t n)
{
    static const double steps[] = {1, 0.1, 0.01, 0.001, 0.0001};
    if (mantissa_bits(input->type) == 0)
        return 0;
    for (size_t s = 0; s < sizeof steps / sizeof steps[0]; s++) {
        if (esdm__layer_lies_on(input->type, steps[s], raw, n))
            return steps[s];
    }
    return 0;
}

/* The grid of an aim; ESDM__LAYER_VALUES: there is none. */
static esdm__layer_grid
grid_of(const esdm_codec_input *input, const esdm__layer_aim *aim, const void *raw, size_t n,
        int attempt)
{
    const esdm_codec_accuracy *a = aim->accuracy;
    const uint32_t mantissa = mantissa_bits(input->type);
    if (a == NULL) {
        double step = attempt == 0 ? decimal_step(input, raw, n) : 0;
        return (esdm__layer_grid){.kind = step > 0 ? ESDM__LAYER_GRID : ESDM__LAYER_BITS,
                                  .step = step};
    }
    esdm__accuracy_spread spread = esdm__accuracy_spread_of(a, input->type, raw, n, false);
    if (!(spread.low <= spread.high))
        return (esdm__layer_grid){.kind = ESDM__LAYER_VALUES};
    double largest = fmax(fabs(spread.low), fabs(spread.high));
    if (a->relative < (double) INFINITY) {
        double relative = fmin(a->relative, a->absolute / fmax(largest, 0x1p-1000));
        int exponent;
        (void) frexp(relative, &exponent); /* >= 2^(exponent - 1) */
        int dropped = exponent + (int) mantissa - attempt;
        if (mantissa == 0 || dropped < 0)
            return (esdm__layer_grid){.kind = ESDM__LAYER_BITS};
        dropped = dropped < (int) mantissa ? dropped : (int) mantissa;
        return (esdm__layer_grid){.kind = ESDM__LAYER_BITS, .dropped = (uint32_t) dropped};
    }
    double bound = a->absolute;
    double lost = rounding(input->type, largest);
    if (mantissa == 0) /* an odd number of integers */
        bound = floor(bound) + 0.5;
    else if (lost > bound / 4)
        return (esdm__layer_grid){.kind = ESDM__LAYER_BITS};
    else
        bound -= lost;
    return (esdm__layer_grid){.kind = ESDM__LAYER_GRID,
                              .step = 2 * bound * (attempt == 0 ? 1.0 : 0.5) * (1 - 0x1p-30)};
}

/* ---- codes -------------------------------------------------------------------------------- */

static int32_t
type_of_width(uint32_t width)
{
    return width == 1   ? ESDM_TYPE_INT8
           : width == 2 ? ESDM_TYPE_INT16
           : width == 4 ? ESDM_TYPE_INT32
                        : ESDM_TYPE_INT64;
}

static uint32_t
width_of(uint64_t largest)
{
    return largest <= INT8_MAX ? 1 : largest <= INT16_MAX ? 2 : largest <= INT32_MAX ? 4 : 8;
}

static esdm_codec_input
input_of_codes(const esdm_codec_input *input, uint32_t width)
{
    esdm_codec_input codes = *input;
    codes.element_bytes = width;
    codes.type = type_of_width(width);
    codes.accuracy = NULL;
    return codes;
}

static void
write_head(uint8_t *out, const esdm__layer_grid *grid, uint32_t width, uint32_t flags)
{
    memset(out, 0, ESDM__LAYER_HEAD_BYTES);
    out[0] = (uint8_t) grid->kind;
    out[1] = (uint8_t) width;
    out[2] = (uint8_t) grid->dropped;
    out[3] = (uint8_t) flags;
    put_f64(out + 8, grid->step);
}

/* Numbers of grid points that are known, owned, and the axes of the block. */
static bool
base_of(const esdm_codec_input *input, const esdm__layer_grid *grid, const void *known, size_t n,
        esdm__layer_base *ret)
{
    int64_t *numbers = esdm__scratch_new(n * sizeof *numbers);
    uint32_t d = input->rank;
    *ret = (esdm__layer_base){.known = numbers, .n = n, .row = 1};
    if (numbers == NULL)
        return false;
    esdm__layer_numbers(input->type, grid, known, n, numbers);
    while (d > 0 && ret->row == 1)
        ret->row = (size_t) input->shape[--d];
    ret->row = ret->row > 1 ? ret->row : n;
    ret->plane = ret->row;
    while (d > 0 && ret->plane == ret->row)
        ret->plane *= (size_t) input->shape[--d];
    ret->keeps = grid->kind == ESDM__LAYER_GRID || grid->dropped > 0;
    return true;
}

static void
base_clear(esdm__layer_base *base)
{
    esdm__scratch_free((void *) (uintptr_t) base->known);
}

/* Codes as bytes behind the head. *ret_bytes 0: they would take as much as the numbers. */
static esdm_status
put_codes(const esdm_codec_input *input, const esdm_codec_plugin *codec,
          const esdm__layer_grid *grid, const void *known, int64_t *codes, size_t n,
          size_t raw_bytes, uint8_t *out, size_t *ret_bytes, esdm_error *err)
{
    esdm__layer_base base;
    size_t modelled = 0;
    if (!base_of(input, grid, known, n, &base))
        return esdm__error_nomem(err, n * sizeof *codes, "a layer of a block");
    modelled = esdm__layer_model_encode(&base, codes, out + ESDM__LAYER_HEAD_BYTES, raw_bytes);
    base_clear(&base);
    if (modelled > 0) {
        write_head(out, grid, 0, FLAG_MODELLED);
        *ret_bytes = ESDM__LAYER_HEAD_BYTES + modelled;
        return ESDM_OK;
    }
    uint32_t width = width_of(esdm__layer_largest(codes, n));
    size_t bytes = n * width;
    size_t encoded = 0;
    *ret_bytes = 0;
    esdm__layer_narrow(codes, n, width); /* in place */
    const esdm_codec_input input_codes = input_of_codes(input, width);
    esdm_status st = codec->encode(&input_codes, codes, bytes, out + ESDM__LAYER_HEAD_BYTES,
                                   raw_bytes, &encoded, err);
    if (st != ESDM_OK)
        return esdm__error_prefix(err, st, "codec '%s'", codec->base.name);
    if (encoded == 0 && bytes >= raw_bytes)
        return ESDM_OK;
    write_head(out, grid, width, encoded > 0 ? FLAG_CODED : 0);
    if (encoded == 0)
        memcpy(out + ESDM__LAYER_HEAD_BYTES, codes, bytes);
    *ret_bytes = ESDM__LAYER_HEAD_BYTES + (encoded > 0 ? encoded : bytes);
    return ESDM_OK;
}

/* ---- encoding ----------------------------------------------------------------------------- */

static bool
reaches(const esdm_codec_input *input, const esdm__layer_aim *aim, const void *raw,
        const void *decoded, size_t n, esdm__accuracy_facts *facts)
{
    const esdm_codec_accuracy *a = aim->accuracy;
    if (a == NULL)
        return memcmp(raw, decoded, n * input->element_bytes) == 0;
    return esdm__accuracy_verify(a, input->type, raw, decoded, n, facts) &&
           (!(aim->noise > 0 && aim->noise < (double) INFINITY) ||
            esdm__accuracy_verify_noise(a, input->type, raw, decoded, n, aim->noise)) &&
           (aim->limits == NULL || esdm__limits_kept(aim->limits, input->type, raw, decoded, n));
}

/* Tries a grid. *ret_bytes 0: it is not reached, or not worth it; `known` is then as it was. */
static esdm_status
try_grid(const esdm_codec_input *input, const esdm_codec_plugin *codec, const esdm__layer_aim *aim,
         const esdm__layer_grid *grid, const void *raw, void *known, size_t raw_bytes,
         int64_t *codes, void *decoded, uint8_t *out, size_t *ret_bytes,
         esdm__accuracy_facts *facts, esdm_error *err)
{
    size_t n = raw_bytes / input->element_bytes;
    esdm__accuracy_facts found = *facts;
    *ret_bytes = 0;
    if (!esdm__layer_codes(input->type, grid, raw, known, n, codes))
        return ESDM_OK;
    memcpy(decoded, known, raw_bytes);
    esdm__layer_apply(input->type, grid, codes, decoded, n);
    if (!reaches(input, aim, raw, decoded, n, &found))
        return ESDM_OK;
    esdm_status st = put_codes(input, codec, grid, known, codes, n, raw_bytes, out, ret_bytes, err);
    if (st == ESDM_OK && *ret_bytes > 0) {
        memcpy(known, decoded, raw_bytes);
        *facts = found;
    }
    return st;
}

static size_t
put_values(const void *raw, void *known, size_t raw_bytes, uint8_t *out)
{
    write_head(out, &(esdm__layer_grid){.kind = ESDM__LAYER_VALUES}, 0, 0);
    memcpy(out + ESDM__LAYER_HEAD_BYTES, raw, raw_bytes);
    memcpy(known, raw, raw_bytes);
    return ESDM__LAYER_HEAD_BYTES + raw_bytes;
}

static size_t
put_same(uint8_t *out)
{
    write_head(out, &(esdm__layer_grid){.kind = ESDM__LAYER_SAME}, 0, 0);
    return ESDM__LAYER_HEAD_BYTES;
}

esdm_status
esdm__layer_encode(const esdm_codec_input *input, const esdm_codec_plugin *codec,
                   const esdm__layer_aim *aim, const void *raw, void *known, size_t raw_bytes,
                   uint8_t *out, size_t *ret_bytes, esdm__accuracy_facts *facts, esdm_error *err)
{
    size_t n = raw_bytes / input->element_bytes;
    /* Numbers that are right already, as of a block that was stored without loss. */
    if (memcmp(raw, known, raw_bytes) == 0) {
        if (aim->accuracy != NULL)
            (void) esdm__accuracy_verify(aim->accuracy, input->type, raw, known, n, facts);
        *ret_bytes = put_same(out);
        return ESDM_OK;
    }
    int64_t *codes = esdm__scratch_new(n * sizeof *codes);
    uint8_t *decoded = esdm__scratch_new(raw_bytes);
    esdm_status st = codes != NULL && decoded != NULL
                         ? ESDM_OK
                         : esdm__error_nomem(err, n * sizeof *codes, "a layer of a block");
    size_t bytes = 0;
    for (int i = 0; i < ATTEMPTS && st == ESDM_OK && bytes == 0; i++) {
        const esdm__layer_grid grid = grid_of(input, aim, raw, n, i);
        if (grid.kind != ESDM__LAYER_VALUES)
            st = try_grid(input, codec, aim, &grid, raw, known, raw_bytes, codes, decoded, out,
                          &bytes, facts, err);
    }
    if (st == ESDM_OK && bytes == 0 && aim->last) {
        bytes = put_values(raw, known, raw_bytes, out);
        if (aim->accuracy != NULL)
            (void) esdm__accuracy_verify(aim->accuracy, input->type, raw, known, n, facts);
    } else if (st == ESDM_OK && bytes == 0) {
        bytes = put_same(out);
    }
    esdm__scratch_free(codes);
    esdm__scratch_free(decoded);
    *ret_bytes = bytes;
    return st;
}

/* ---- decoding ----------------------------------------------------------------------------- */

static esdm_status
corrupt(esdm_error *err, const char *what)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "a layer is damaged: %s", what);
}

static esdm_status
get_modelled(const esdm_codec_input *input, const esdm__layer_grid *grid, const uint8_t *from,
             size_t bytes, const void *known, int64_t *codes, size_t n, esdm_error *err)
{
    esdm__layer_base base;
    bool nomem = true;
    bool good = base_of(input, grid, known, n, &base) &&
                esdm__layer_model_decode(&base, from, bytes, codes, &nomem);
    base_clear(&base);
    if (good)
        return ESDM_OK;
    return nomem ? esdm__error_nomem(err, n * sizeof *codes, "a layer of a block")
                 : corrupt(err, "its codes");
}

static esdm_status
get_codes(const esdm_codec_input *input, const esdm_codec_plugin *codec,
          const esdm__layer_grid *grid, const uint8_t *stored, size_t stored_bytes,
          const void *known, int64_t *codes, size_t n, esdm_error *err)
{
    uint32_t width = stored[1];
    size_t bytes = n * width;
    const uint8_t *from = stored + ESDM__LAYER_HEAD_BYTES;
    size_t from_bytes = stored_bytes - ESDM__LAYER_HEAD_BYTES;
    if (stored[3] == FLAG_MODELLED)
        return get_modelled(input, grid, from, from_bytes, known, codes, n, err);
    if (stored[3] == FLAG_CODED) {
        const esdm_codec_input input_codes = input_of_codes(input, width);
        esdm_status st = codec->decode(&input_codes, from, from_bytes, codes, bytes, err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "codec '%s'", codec->base.name);
    } else {
        if (from_bytes != bytes)
            return corrupt(err, "the number of codes");
        memcpy(codes, from, bytes);
    }
    esdm__layer_widen(codes, n, width);
    return ESDM_OK;
}

esdm_status
esdm__layer_decode(const esdm_codec_input *input, const esdm_codec_plugin *codec,
                   const uint8_t *stored, size_t stored_bytes, void *known, size_t raw_bytes,
                   esdm_error *err)
{
    if (stored_bytes < ESDM__LAYER_HEAD_BYTES || get_u32(stored + 4) != 0 ||
        !esdm__layer_has_type(input->type, input->element_bytes))
        return corrupt(err, "its head");
    const esdm__layer_grid grid = {
        .kind = stored[0], .dropped = stored[2], .step = get_f64(stored + 8)};
    size_t n = raw_bytes / input->element_bytes;
    uint32_t width = stored[1];
    if (grid.kind == ESDM__LAYER_SAME)
        return stored_bytes == ESDM__LAYER_HEAD_BYTES ? ESDM_OK : corrupt(err, "its length");
    if (grid.kind == ESDM__LAYER_VALUES) {
        if (stored_bytes - ESDM__LAYER_HEAD_BYTES != raw_bytes)
            return corrupt(err, "its length");
        memcpy(known, stored + ESDM__LAYER_HEAD_BYTES, raw_bytes);
        return ESDM_OK;
    }
    bool grid_fits =
        grid.kind == ESDM__LAYER_GRID
            ? isfinite(grid.step) && grid.step > 0 && grid.dropped == 0
            : grid.kind == ESDM__LAYER_BITS && grid.dropped <= mantissa_bits(input->type);
    bool width_fits = stored[3] == FLAG_MODELLED
                          ? width == 0
                          : width == 1 || width == 2 || width == 4 || width == 8;
    if (!grid_fits || !width_fits || stored[3] > FLAG_MODELLED)
        return corrupt(err, "its head");
    int64_t *codes = esdm__scratch_new(n * sizeof *codes);
    if (codes == NULL)
        return esdm__error_nomem(err, n * sizeof *codes, "a layer of a block");
    esdm_status st = get_codes(input, codec, &grid, stored, stored_bytes, known, codes, n, err);
    if (st == ESDM_OK)
        esdm__layer_apply(input->type, &grid, codes, known, n);
    esdm__scratch_free(codes);
    return st;
}
