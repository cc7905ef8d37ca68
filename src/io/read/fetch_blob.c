/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Blobs in memory, and read whole. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/scratch.h"
#include "codec/outline.h"
#include "codec/raw_blocks.h"
#include "io/read/fetch.h"
#include "plugin/registry.h"

bool
esdm__fragment_is_raw(const esdm__fragment *fragment)
{
    static const uint8_t none[sizeof fragment->codec_ids] = {0};
    return memcmp(fragment->codec_ids, none, sizeof none) == 0;
}

void
esdm__fetched_clear(esdm__fetched *fetched)
{
    esdm__scratch_free(fetched->owned);
    if (fetched->room != NULL)
        esdm__room_give(fetched->room, fetched->taken);
    *fetched = (esdm__fetched){0};
}

esdm_status
esdm__fetch_decode(esdm_session *session, const esdm__fragment *fragment, const uint8_t *blob_bytes,
                   esdm__fetched *ret_fetched, esdm_error *err)
{
    const uint8_t *payload = blob_bytes + fragment->head_bytes;
    if (esdm__fragment_is_raw(fragment)) {
        if (fragment->stored_bytes - fragment->head_bytes != fragment->raw_bytes)
            return esdm__error_set(err, ESDM_ECORRUPT, "the lengths of the record do not agree");
        esdm__blocks geometry;
        esdm_status status =
            esdm__raw_blocks_init(fragment->raw_bytes, fragment->head_bytes, &geometry, err);
        if (status == ESDM_OK)
            status = esdm__raw_blocks_verify(&geometry, 0, geometry.blocks,
                                             blob_bytes + ESDM__BLOB_HEADER_BYTES, payload, err);
        *ret_fetched = (esdm__fetched){.raw = payload};
        return status;
    }
    esdm__blob_view view;
    esdm_status status =
        esdm__blob_parse(blob_bytes, fragment->head_bytes, esdm__plugin_codec_by_id, &view, err);
    if (status != ESDM_OK)
        return status;
    if (view.raw_bytes != fragment->raw_bytes ||
        view.payload_bytes != fragment->stored_bytes - fragment->head_bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "the head belongs to another fragment");
    uint8_t *raw = esdm__scratch_new((size_t) view.raw_bytes);
    if (raw == NULL)
        return esdm__error_nomem(err, (size_t) view.raw_bytes, "a fragment");
    uint64_t taken =
        esdm__room_take(session->decoding, view.raw_bytes + esdm__blob_decode_bytes(&view));
    esdm__fetched fetched = {.raw = raw, .owned = raw, .room = session->decoding, .taken = taken};
    esdm__span span;
    esdm__span_begin(&span, session->monitor);
    status = esdm__blob_decode(&view, 0, view.blocks, payload, (size_t) view.payload_bytes, raw,
                               (size_t) view.raw_bytes, err);
    if (esdm__span_is_observed(&span))
        esdm__span_stop(&span, &(esdm__span_facts){.kind = ESDM__SPAN_DECODE,
                                                   .bytes = view.raw_bytes,
                                                   .stored_bytes = view.payload_bytes,
                                                   .status = status});
    if (status == ESDM_OK)
        *ret_fetched = fetched;
    else
        esdm__fetched_clear(&fetched);
    return status;
}

/* Whether what the index page has of a sound head is of this one. */
static bool
outline_agrees(const esdm__fragment *fragment, const uint8_t *head)
{
    uint8_t made[ESDM__OUTLINE_MOST];
    if (fragment->outline == NULL)
        return true;
    if (!esdm__outline_is_raw(head)) /* of an equal fragment of another dataset, maybe */
        return fragment->outline_bytes == fragment->head_bytes &&
               esdm__blob_head_equals(fragment->outline, head, fragment->head_bytes);
    if (esdm__outline_bytes(head, fragment->head_bytes, fragment->stored_bytes) !=
        fragment->outline_bytes)
        return false;
    esdm__outline_make(head, fragment->head_bytes, made);
    return memcmp(made, fragment->outline, fragment->outline_bytes) == 0;
}

esdm_status
esdm__fetch_check_head(const esdm__fragment *fragment, const uint8_t *head, esdm_error *err)
{
    esdm__blob_view view;
    esdm_status status =
        esdm__blob_parse(head, fragment->head_bytes, esdm__plugin_codec_by_id, &view, err);
    if (status == ESDM_OK && (view.raw_bytes != fragment->raw_bytes ||
                              view.payload_bytes != fragment->stored_bytes - fragment->head_bytes))
        status = esdm__error_set(err, ESDM_ECORRUPT, "the head belongs to another fragment");
    if (status == ESDM_OK && !outline_agrees(fragment, head))
        status = esdm__error_set(err, ESDM_ECORRUPT, "its outline in the index page differs");
    return status;
}

esdm_status
esdm__fetch_verified(esdm_session *session, const esdm__fragment *fragment, esdm__target *target,
                     uint8_t **ret_blob, esdm_error *err)
{
    esdm__fetched raw = {0};
    uint8_t *data = malloc((size_t) fragment->stored_bytes);
    if (data == NULL)
        return esdm__error_nomem(err, (size_t) fragment->stored_bytes, "a fragment");
    esdm_range range = {fragment->position, fragment->stored_bytes, data};
    esdm_status status = esdm__session_read(session, target, fragment->pack->pack, &range, 1, err);
    if (status == ESDM_OK)
        status = esdm__fetch_check_head(fragment, data, err);
    if (status == ESDM_OK)
        status = esdm__fetch_decode(session, fragment, data, &raw, err);
    esdm__fetched_clear(&raw);
    if (status == ESDM_OK)
        *ret_blob = data;
    else
        free(data);
    return status;
}
