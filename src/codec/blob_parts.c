/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What is wanted of a large block, by codecs that can decode it in part. */

#include "base/checksum.h"
#include "base/error.h"
#include "codec/blob.h"
#include "codec/blob_bytes.h"
#include "esdm/float_env.h"

static const uint8_t *
entry_of(const esdm__blob_view *view, uint32_t block)
{
    return view->table + (size_t) block * ESDM__BLOB_ENTRY_BYTES;
}

bool
esdm__blob_has_parts(const esdm__blob_view *view, uint32_t block)
{
    return view->chain.count == 1 && view->use == 1 && block < view->blocks &&
           view->chain.codecs[0]->decode_some != NULL &&
           get_u32(entry_of(view, block) + 4) != ESDM__BLOB_FLAG_RAW;
}

esdm_status
esdm__blob_decode_some(const esdm__blob_view *view, uint32_t block, const esdm_codec_range *wanted,
                       size_t count, const void *stored, size_t stored_bytes, void *raw,
                       size_t raw_bytes, size_t *ret_bytes, esdm_error *err)
{
    if (!esdm__blob_has_parts(view, block))
        return esdm__error_set(err, ESDM_EINVAL, "block %u of %u has no parts", block,
                               view->blocks);
    const uint8_t *entry = entry_of(view, block);
    uint64_t shape[ESDM_MAX_RANK];
    esdm_float_env program;
    if (stored_bytes != get_u32(entry) || raw_bytes != esdm__blob_raw_bytes(view, block, 1))
        return esdm__error_set(err, ESDM_EINVAL, "buffers of %zu and %zu bytes do not fit blocks",
                               stored_bytes, raw_bytes);
    if (esdm__checksum(stored, stored_bytes) != get_u64(entry + 8))
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "block %u of %u is damaged: its checksum is wrong", block,
                               view->blocks);
    esdm__blocks_shape(&view->geometry, block, shape);
    const esdm_codec_plugin *codec = view->chain.codecs[0];
    const esdm_codec_input input = {.element_bytes = view->element_bytes,
                                    .type = view->type,
                                    .rank = view->geometry.rank,
                                    .shape = view->geometry.rank > 0 ? shape : NULL};
    esdm_float_env_enter_all(&program);
    esdm_status st = codec->decode_some(&input, stored, stored_bytes, wanted, count, raw, raw_bytes,
                                        ret_bytes, err);
    esdm_float_env_leave_all(&program);
    return st == ESDM_OK ? ESDM_OK
                         : esdm__error_prefix(err, st, "block %u of %u: codec '%s'", block,
                                              view->blocks, codec->base.name);
}
