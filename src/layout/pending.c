/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Fragments that are not committed yet: of this writer, and of other ranks. */
#include <stdlib.h>

#include "base/error.h"
#include "layout/index_private.h"
#include "layout/page.h"
#include "layout/source.h"

/* Pending fragments */

static bool
has_role(const esdm__source *source, uint32_t role)
{
    return source != NULL && source->role == role && source->bytes <= ESDM__SOURCE_BYTES_MAX;
}

/* What is wrong with a constant, or with what lies elsewhere; NULL: nothing. */
static const char *
check_kind(const esdm__fragment *fragment)
{
    const esdm__elsewhere *e = &fragment->elsewhere;
    bool foreign = fragment->kind == ESDM__KIND_FOREIGN;
    uint64_t end;
    if (fragment->pack != NULL || fragment->head_bytes != 0)
        return "it is in a pack and elsewhere";
    if (fragment->kind == ESDM__KIND_CONSTANT)
        return fragment->inline_data != NULL && fragment->stored_bytes > 0 &&
                       fragment->stored_bytes <= ESDM__PAGE_INLINE_MAX &&
                       fragment->raw_bytes % fragment->stored_bytes == 0
                   ? NULL
                   : "its one element is missing or too long";
    if (fragment->kind > ESDM__KIND_LINK)
        return "its kind is unknown";
    if (!has_role(e->source, foreign ? ESDM__ROLE_FOREIGN : ESDM__ROLE_LINK) ||
        (e->decoding != NULL &&
         !has_role(e->decoding, foreign ? ESDM__ROLE_DECODING : ESDM__ROLE_MAP)))
        return "what it refers to is missing, of another role or too long";
    return __builtin_add_overflow(fragment->position, fragment->stored_bytes, &end)
               ? "its position or length is out of range"
               : NULL;
}

static esdm_status
check_pending(const esdm__index *index, const esdm__fragment *fragment, esdm_error *err)
{
    const char *what = NULL;
    uint64_t end;
    if (fragment->box.rank != index->rank)
        what = "its rank is not the dataset's";
    else if (esdm__box_is_empty(&fragment->box))
        what = "its box is empty";
    else if (fragment->kind != ESDM__KIND_STORED)
        what = check_kind(fragment);
    else if (fragment->pack == NULL &&
             (fragment->inline_data == NULL || fragment->raw_bytes != fragment->stored_bytes ||
              fragment->head_bytes != 0 || fragment->stored_bytes > ESDM__PAGE_INLINE_MAX))
        what = "inline data is missing, too long or not raw";
    else if (fragment->pack != NULL && fragment->inline_data != NULL)
        what = "it is inline and in a pack";
    else if (fragment->outline_bytes > ESDM__PAGE_OUTLINE_MAX ||
             (fragment->outline_bytes > 0 && (fragment->pack == NULL || fragment->outline == NULL)))
        what = "its outline is missing, too long or not of a pack";
    else if (fragment->pack != NULL &&
             (fragment->pack->target[0] == '\0' || fragment->pack->pack[0] == '\0' ||
              strlen(fragment->pack->target) > ESDM__PAGE_NAME_MAX ||
              strlen(fragment->pack->pack) > ESDM__PAGE_NAME_MAX))
        what = "the name of its target or pack is empty or too long";
    else if (fragment->pack != NULL &&
             (fragment->head_bytes > fragment->stored_bytes ||
              __builtin_add_overflow(fragment->position, fragment->stored_bytes, &end)))
        what = "its position or length is out of range";
    for (uint32_t d = 0; d < index->rank && what == NULL; d++) {
        if (__builtin_add_overflow(fragment->box.lo[d], fragment->box.n[d], &end))
            what = "its box is too large";
        uint64_t stride = fragment->strided ? fragment->stride[d] : 1;
        if (stride == 0 || (fragment->box.n[d] - 1) % stride != 0 ||
            (fragment->box.n[d] == 1 && stride != 1))
            what = "a stride does not fit its box";
    }
    return what == NULL ? ESDM_OK
                        : esdm__error_set(err, ESDM_EINVAL, "fragment cannot be indexed: %s", what);
}

esdm__records *
esdm__index_need_pending(const esdm__index *index, esdm__pending **place)
{
    if (*place == NULL) {
        *place = calloc(1, sizeof **place);
        if (*place == NULL)
            return NULL;
        esdm__records_init(&(*place)->records, index->rank);
    }
    return &(*place)->records;
}

static bool
add_record(esdm__records *records, const uint64_t *bounds, const uint64_t *stride,
           const esdm__record *item, const esdm__fragment *fragment)
{
    /* Room first: a record that was added stays. */
    bool elsewhere = esdm__kind_is_elsewhere(fragment->kind);
    bool known = fragment->statistics.class != ESDM__CLASS_NONE;
    if (!esdm__records_reserve(records, 1, 0) ||
        (elsewhere && !esdm__records_need_elsewhere(records)) ||
        (known && !esdm__records_need_statistics(records)) ||
        !esdm__records_add(records, bounds, stride, item,
                           item->outline_bytes > 0 ? fragment->outline : fragment->inline_data))
        return false;
    if (elsewhere)
        records->elsewhere[records->count - 1] = fragment->elsewhere;
    if (known)
        records->statistics[records->count - 1] = fragment->statistics;
    return true;
}

esdm_status
esdm__index_add_pending(esdm__index *index, const esdm__fragment *fragment, esdm_error *err)
{
    esdm_status st = check_pending(index, fragment, err);
    if (st != ESDM_OK)
        return st;
    esdm__record item = {
        .sequence = ESDM__SEQUENCE_PENDING | index->next_order,
        .raw_bytes = fragment->raw_bytes,
        .stored_bytes = fragment->stored_bytes,
        .position = fragment->position,
        .pack = fragment->pack,
        .head_bytes = fragment->head_bytes,
        .outline_bytes = (uint16_t) (fragment->pack != NULL ? fragment->outline_bytes : 0),
    };
    item.kind = fragment->kind;
    memcpy(item.codec_ids, fragment->codec_ids, sizeof item.codec_ids);
    uint64_t bounds[2 * ESDM_MAX_RANK];
    esdm__bounds_from_box(bounds, &fragment->box);
    const uint64_t *stride = fragment->strided ? fragment->stride : NULL;
    esdm__records *records = esdm__index_need_pending(index, &index->own);
    if (records == NULL || !add_record(records, bounds, stride, &item, fragment))
        return esdm__error_nomem(err, sizeof item, "the record of a fragment; commit more often");
    index->next_order++;
    return ESDM_OK;
}

esdm_status
esdm__index_move_pack(esdm__index *index, const char *pack, const char *from, const char *to,
                      esdm_error *err)
{
    const esdm__pack_name *old = esdm__index_pack(index, from, pack);
    const esdm__pack_name *new = esdm__index_pack(index, to, pack);
    if (old == NULL || new == NULL)
        return esdm__error_nomem(err, sizeof *new, "the fragment index");
    const esdm__records *pending = esdm__index_pending(index);
    for (uint32_t i = 0; i < pending->count; i++) {
        if (pending->items[i].pack == old)
            pending->items[i].pack = new;
    }
    return ESDM_OK;
}

bool
esdm__index_needs_pack(const esdm__index *index, const char *pack)
{
    const esdm__pack_name *other = NULL; /* neighbours lie in the same one */
    const esdm__records *pending = esdm__index_pending(index);
    for (uint32_t i = 0; i < pending->count; i++) {
        const esdm__pack_name *name = pending->items[i].pack;
        if (name != NULL && name != other && strcmp(name->pack, pack) == 0)
            return true;
        other = name;
    }
    return false;
}

void
esdm__index_renumber(esdm__index *index, const esdm__order_run *runs, size_t nruns, uint32_t next)
{
    const esdm__records *pending = esdm__index_pending(index);
    for (size_t k = 0; k < nruns; k++) {
        uint32_t end = k + 1 < nruns ? runs[k + 1].first : pending->count;
        for (uint32_t i = runs[k].first; i < end; i++)
            pending->items[i].sequence =
                ESDM__SEQUENCE_PENDING | ((uint64_t) runs[k].base + i - runs[k].first);
    }
    index->next_order = next;
}

void
esdm__index_drop_lost(esdm__index *index, bool (*is_lost)(void *user, const char *pack),
                      void (*dropped)(void *user, const esdm__fragment *fragment, uint32_t number),
                      void *user)
{
    if (index->own == NULL)
        return;
    esdm__records *records = &index->own->records;
    const esdm__pack_name *known = NULL; /* neighbours lie in the same pack */
    bool lost = false;
    uint32_t kept = 0;
    for (uint32_t i = 0; i < records->count; i++) {
        const esdm__pack_name *pack = records->items[i].pack;
        if (pack != NULL && pack != known)
            lost = is_lost(user, pack->pack);
        known = pack != NULL ? pack : known;
        if (pack != NULL && lost) {
            esdm__fragment fragment;
            esdm__records_fragment(records, i, &fragment);
            dropped(user, &fragment, kept);
            continue;
        }
        if (kept < i)
            esdm__records_move(records, i, kept);
        kept++;
    }
    if (kept < records->count)
        esdm__forest_clear(&index->own->forest);
    records->count = kept;
}

size_t
esdm__index_pending_count(const esdm__index *index)
{
    return esdm__index_pending(index)->count;
}

void
esdm__index_pending_visit(const esdm__index *index,
                          bool (*visit)(const esdm__fragment *fragment, void *user), void *user)
{
    esdm__fragment fragment;
    bool more = true;
    const esdm__records *pending = esdm__index_pending(index);
    for (uint32_t i = 0; i < pending->count && more; i++) {
        esdm__records_fragment(pending, i, &fragment);
        more = visit(&fragment, user);
    }
}

bool
esdm__index_pending_statistics(const esdm__index *index, esdm__statistics *total)
{
    const esdm__records *r = esdm__index_pending(index);
    esdm__statistics all = *total;
    if (r->statistics == NULL)
        return r->count == 0;
    for (uint32_t i = 0; i < r->count; i++) {
        const esdm__statistics *one = &r->statistics[i];
        if (one->class != total->class || one->rule != total->rule)
            return false;
        esdm__statistics_add(&all, one);
    }
    *total = all;
    return true;
}

size_t
esdm__index_pending_inline_bytes(const esdm__index *index)
{
    return esdm__index_pending(index)->inline_bytes;
}

static void
free_pending(esdm__pending *pending)
{
    if (pending == NULL)
        return;
    esdm__forest_clear(&pending->forest);
    esdm__records_clear(&pending->records);
    free(pending);
}

void
esdm__index_drop_pending(esdm__index *index)
{
    free_pending(index->own);
    free_pending(index->others);
    index->own = index->others = NULL;
    index->next_order = 0;
}

/* Pending fragments of other writers */

esdm_meta_page
esdm__page_entry(const esdm_meta_new_page *page)
{
    return (esdm_meta_page){
        .dataset = page->dataset,
        .records = page->records,
        .absolute = page->absolute,
        .raw_bytes = page->raw_bytes,
        .stored_bytes = page->stored_bytes,
        .rank = page->rank,
        .box = page->box,
    };
}

esdm_status
esdm__index_add_foreign(esdm__index *index, const esdm_meta_new_page *page, esdm_error *err)
{
    const esdm_meta_page entry = esdm__page_entry(page);
    esdm__page *decoded = NULL;
    if (page->rank != index->rank || page->absolute)
        return esdm__error_set(err, ESDM_EINVAL, "a page of another kind cannot be looked into");
    esdm_status st = esdm__page_decode(&entry, page->data, page->bytes, &decoded, err);
    if (st != ESDM_OK)
        return st;
    const esdm__records *from = &decoded->records;
    esdm__records *to = esdm__index_need_pending(index, &index->others);
    bool ok = to != NULL && esdm__index_intern(index, decoded) &&
              esdm__records_reserve(to, from->count, from->inline_bytes);
    for (uint32_t i = 0; ok && i < from->count; i++) {
        ok = esdm__records_copy(to, from, i, NULL);
        if (ok)
            to->items[to->count - 1].sequence |= ESDM__SEQUENCE_PENDING;
    }
    if (!ok)
        st = esdm__error_nomem(err, decoded->memory_bytes, "index pages of other ranks");
    esdm__page_unref(decoded);
    return st;
}
