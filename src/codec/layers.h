/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_CODEC_LAYERS_H
#define ESDM_CODEC_LAYERS_H

/**
 * @file
 * Layers of a block: what makes numbers that are known roughly more accurate. Pure functions, safe
 * on hostile input.
 *
 * A stored layer of a block, little-endian:
 *
 *     0  kind     u8   of esdm__layer_kind      4  reserved = 0  u32
 *     1  width    u8   bytes of a code, or 0    8  step          f64, of ESDM__LAYER_GRID; else 0
 *     2  dropped  u8   of ESDM__LAYER_BITS     16  codes, or values
 *     3  coding   u8   of codes: 0 none, 1 the codec of the fragment, 2 codec/layer_model.h
 *
 * A code is a difference of numbers of grid points, between the number that is wanted and the one
 * that is known; where grids are coarser than the type, 0 says that the known number stays as it
 * is, bit for bit (all special values do), and differences from 0 on are one more.
 */

#include "codec/limits.h"
#include "codec/verify.h"
#include "esdm/sys/codec.h"

/** What decoding a layer takes at most: of each number, and beside them. */
#define ESDM__LAYER_DECODE_BYTES 26
#define ESDM__LAYER_TABLES_BYTES (UINT64_C(192) << 10)

typedef enum esdm__layer_kind {
    ESDM__LAYER_SAME = 0,  /* numbers stay as they are */
    ESDM__LAYER_GRID = 1,  /* multiples of `step` */
    ESDM__LAYER_BITS = 2,  /* ordered patterns without the last `dropped` bits */
    ESDM__LAYER_VALUES = 3 /* the numbers themselves */
} esdm__layer_kind;

#define ESDM__LAYER_HEAD_BYTES 16u

/** What one layer is to reach. */
typedef struct esdm__layer_aim {
    const esdm_codec_accuracy *accuracy; /* NULL: no loss */
    double noise;                        /* as in codec/blob.h; 0: not asked for */
    const esdm__limits *limits;          /* likewise; NULL: none */
    bool last;                           /* else numbers that cannot be reached stay as they are */
} esdm__layer_aim;

/** Room that a layer of a block takes at most. */
size_t esdm__layer_bound(size_t raw_bytes);
/**
 * Encodes what makes `known` as accurate as is wanted, and makes `known` what a reader will have.
 * @param input of the block: type, shape, effort. @param codec lossless for integers; for codes.
 * @param out room for esdm__layer_bound(). @param facts of what a reader will have are added.
 */
esdm_status esdm__layer_encode(const esdm_codec_input *input, const esdm_codec_plugin *codec,
                               const esdm__layer_aim *aim, const void *raw, void *known,
                               size_t raw_bytes, uint8_t *out, size_t *ret_bytes,
                               esdm__accuracy_facts *facts, esdm_error *err);
/** Makes `known` more accurate. ESDM_ECORRUPT of what makes no sense. */
esdm_status esdm__layer_decode(const esdm_codec_input *input, const esdm_codec_plugin *codec,
                               const uint8_t *stored, size_t stored_bytes, void *known,
                               size_t raw_bytes, esdm_error *err);

#endif
