/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What reading a fragment will ask its target for. A wrong guess costs a request, never more. */
#include <stdlib.h>

#include "codec/outline.h"
#include "codec/raw_blocks.h"
#include "io/read/fetch.h"
#include "plugin/registry.h"

/* A fragment whose table of blocks is not known yet is read as a whole when at least one part in so
 * many is wanted. */
#define WHOLE_SHARE 4u

/* Bytes of the payload in which blocks first to last lie. */
typedef struct part {
    esdm__blocks geometry;
    uint64_t offset;
    uint64_t bytes;
    uint32_t first;
    uint32_t last;
    uint32_t layers; /* as in the key of the cache */
} part;

static size_t
one(esdm_range *ret, uint64_t position, uint64_t bytes)
{
    *ret = (esdm_range){position, bytes, NULL};
    return 1;
}

/* Of coded blocks, when the outline or the cache has the head. */
static bool
locate_coded(esdm_session *session, const esdm__fragment *fragment, esdm__cache_key key,
             const esdm__coarse *coarse, uint64_t from, uint64_t to, part *ret)
{
    size_t bytes = fragment->head_bytes;
    uint8_t *head = malloc(bytes);
    esdm__blob_view view;
    key.block = ESDM__HEAD_BLOCK;
    bool known = (fragment->outline != NULL && fragment->outline_bytes == bytes &&
                  esdm__blob_parse(fragment->outline, bytes, esdm__plugin_codec_by_id, &view,
                                   NULL) == ESDM_OK) ||
                 (head != NULL && esdm__cache_get(session->cache, &key, head, bytes) &&
                  esdm__blob_parse(head, bytes, esdm__plugin_codec_by_id, &view, NULL) == ESDM_OK);
    known = known && to <= view.raw_bytes;
    if (known) {
        ret->geometry = view.geometry;
        ret->first = esdm__blocks_at(&view.geometry, from);
        ret->last = esdm__blocks_at(&view.geometry, to - 1);
        if (esdm__coarse_is_asked(coarse))
            esdm__blob_use(&view, coarse->absolute, coarse->share);
        ret->layers = view.use < view.layers ? view.use : 0;
        esdm__blob_range(&view, 0, ret->first, ret->last - ret->first + 1, &ret->offset,
                         &ret->bytes);
        if (view.use > 1) { /* all between the first layer and the last one */
            uint64_t end;
            uint64_t more;
            esdm__blob_range(&view, view.use - 1, ret->first, ret->last - ret->first + 1, &end,
                             &more);
            ret->bytes = end + more - ret->offset;
        }
    }
    free(head);
    return known;
}

static bool
locate_raw(const esdm__fragment *fragment, uint64_t from, uint64_t to, part *ret)
{
    if (to > fragment->raw_bytes || esdm__raw_blocks_init(fragment->raw_bytes, fragment->head_bytes,
                                                          &ret->geometry, NULL) != ESDM_OK)
        return false;
    ret->first = esdm__blocks_at(&ret->geometry, from);
    ret->last = esdm__blocks_at(&ret->geometry, to - 1);
    ret->layers = 0;
    ret->offset = esdm__blocks_start(&ret->geometry, ret->first);
    ret->bytes = esdm__blocks_start(&ret->geometry, ret->last + 1) - ret->offset;
    return true;
}

static bool
is_cached(esdm_session *session, esdm__cache_key key, const part *p)
{
    key.layers = p->layers;
    key.block = p->first;
    if (p->last - p->first >= ESDM__CACHE_BLOCKS || !esdm__cache_has(session->cache, &key))
        return false;
    key.block = p->last;
    return esdm__cache_has(session->cache, &key);
}

bool
esdm__fetch_takes_whole(const esdm__fragment *fragment, const esdm__target *target)
{
    return fragment->stored_bytes > 0 &&
           fragment->stored_bytes - fragment->head_bytes <= target->read_bytes;
}

bool
esdm__fetch_keeps_table(const esdm__fragment *fragment, const esdm__target *target)
{
    return target->read_bytes > 0 && !esdm__fetch_takes_whole(fragment, target) &&
           fragment->head_bytes <= ESDM__KEPT_TABLE_BYTES;
}

bool
esdm__fetch_has_sums(const esdm__fragment *fragment, const esdm__target *target,
                     const esdm__blocks *blocks)
{
    return fragment->outline != NULL && target->read_bytes > 0 &&
           !esdm__fetch_takes_whole(fragment, target) &&
           esdm__outline_fits(blocks, fragment->outline_bytes);
}

/* The groups around the blocks, where they may be read in place of the table. */
static bool
group_range(const esdm__fragment *fragment, const esdm__target *target, const part *p,
            esdm_range *ret)
{
    if (!esdm__fetch_has_sums(fragment, target, &p->geometry))
        return false;
    uint32_t first = p->first;
    uint32_t end = p->last + 1;
    esdm__outline_widen(&p->geometry, &first, &end);
    uint64_t from = esdm__blocks_start(&p->geometry, first);
    uint64_t bytes = esdm__blocks_start(&p->geometry, end) - from;
    *ret = (esdm_range){fragment->position + fragment->head_bytes + from, bytes, NULL};
    return bytes - p->bytes <= target->read_bytes;
}

/* Entries of the table, unless they are known, and blocks: by one request where most of what lies
 * between is wanted. */
static size_t
raw_ranges(esdm_session *session, const esdm__fragment *fragment, const esdm__target *target,
           esdm__cache_key key, const part *p, esdm_range *ret)
{
    uint64_t entries = ESDM__BLOB_HEADER_BYTES + (uint64_t) p->first * ESDM__BLOB_ENTRY_BYTES;
    uint64_t table = ((uint64_t) p->last - p->first + 1) * ESDM__BLOB_ENTRY_BYTES;
    uint64_t blocks = fragment->head_bytes + p->offset;
    bool all = esdm__fetch_keeps_table(fragment, target);
    key.block = ESDM__HEAD_BLOCK;
    if (all && esdm__cache_has(session->cache, &key))
        return one(ret, fragment->position + blocks, p->bytes);
    if (group_range(fragment, target, p, ret))
        return 1;
    if (all) { /* serves the next one too */
        entries = 0;
        table = fragment->head_bytes;
    }
    if (blocks + p->bytes - entries <= 2 * (table + p->bytes))
        return one(ret, fragment->position + entries, blocks + p->bytes - entries);
    ret[0] = (esdm_range){fragment->position + entries, table, NULL};
    ret[1] = (esdm_range){fragment->position + blocks, p->bytes, NULL};
    return 2;
}

size_t
esdm__fetch_ranges(esdm_session *session, const esdm__fragment *fragment,
                   const esdm__target *target, const esdm__coarse *coarse, uint64_t from,
                   uint64_t to, esdm_range *ret)
{
    esdm__cache_key key =
        esdm__cache_key_of(fragment->pack->target, fragment->pack->pack, fragment->position);
    bool raw = esdm__fragment_is_raw(fragment);
    bool small = esdm__fetch_takes_whole(fragment, target);
    part p;
    if (from >= to || fragment->stored_bytes <= fragment->head_bytes)
        return 0;
    bool located = raw ? locate_raw(fragment, from, to, &p)
                       : locate_coded(session, fragment, key, coarse, from, to, &p);
    if (located && is_cached(session, key, &p))
        return 0;
    if (located && !raw)
        return one(ret, fragment->position + fragment->head_bytes + p.offset, p.bytes);
    bool coded = !raw && esdm__coarse_is_asked(coarse); /* all of it would be too much */
    if (small || (!located && !coded && to - from >= fragment->raw_bytes / WHOLE_SHARE))
        return one(ret, fragment->position, fragment->stored_bytes);
    if (!raw)
        return one(ret, fragment->position, fragment->head_bytes);
    return located ? raw_ranges(session, fragment, target, key, &p, ret) : 0;
}
