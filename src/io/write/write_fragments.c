/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Makes fragments of a box in the caller's memory: cut here, and encoded and appended by the pool
 * in rounds (round.h). */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/access.h"
#include "io/container/accuracy.h"
#include "io/container/missing.h"
#include "io/container/rounded.h"
#include "io/session/readers.h"
#include "io/write/region_cutter.h"
#include "io/write/round.h"
#include "io/write/small.h"
#include "io/write/write.h"
#include "model/copy.h"

/* Uncommitted inline data of a dataset; beyond it, and beyond the bound of all datasets of the
 * session, small fragments go to packs too. */
#define PENDING_INLINE_BYTES (UINT64_C(8) << 20)
/* Parts of large chunks, at least. */
#define PART_BYTES (UINT64_C(2) << 20)
/* And of what is encoded. */
#define ENCODED_PART_BYTES (UINT64_C(256) << 10)

typedef esdm__slot slot;
typedef esdm__round round;

static esdm_status
enter_pending(round *r, size_t count, esdm_error *err)
{
    esdm__dataset_io *io = r->io;
    const esdm__pack_name *before = NULL;
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__fragment *fragment = &r->slots[i].fragment;
        if (fragment->inline_data == NULL) {
            fragment->pack = esdm__appended_pack(&r->slots[i].stored, before, io->index);
            before = fragment->pack;
            if (fragment->pack == NULL)
                status = esdm__error_nomem(err, sizeof *fragment, "the fragment index");
        }
        if (status == ESDM_OK)
            status = esdm__index_add_pending(io->index, fragment, err);
    }
    esdm__dataset_trim_index(r->dataset, io);
    (void) pthread_mutex_unlock(&io->lock);
    return status;
}

static bool
has_inline_room(const round *r)
{
    const esdm_session *session = r->dataset->group->container->session;
    (void) pthread_mutex_lock(&r->io->lock);
    uint64_t own = esdm__index_pending_inline_bytes(r->io->index);
    (void) pthread_mutex_unlock(&r->io->lock);
    return own < PENDING_INLINE_BYTES &&
           atomic_load(&session->inlined) < session->index_limit_bytes;
}

static esdm_status
run_round(round *r, size_t count, esdm_error *err)
{
    uint64_t bytes = 0;
    for (size_t i = 0; i < count; i++)
        bytes += esdm__round_part_bytes(r, i);
    atomic_store(&r->behind_bytes, bytes);
    r->inline_room = has_inline_room(r);
    r->equals = esdm__container_equals(r->dataset->group->container);
    r->small = esdm__small_allows(r);
    esdm__pool *pool = r->dataset->group->container->session->pool;
    esdm_status status = esdm__round_choose_codecs(r, count, err);
    if (status == ESDM_OK)
        status = esdm__pool_run(pool, count, esdm__round_store, r, err);
    if (status == ESDM_OK)
        esdm__round_note_sizes(r, count);
    if (status == ESDM_OK && esdm__io_of(r->dataset->group->container)->trial == NULL)
        status = enter_pending(r, count, err);
    for (size_t i = 0; i < count; i++) {
        free(r->slots[i].inline_data);
        free(r->slots[i].outline);
        r->slots[i].inline_data = NULL;
        r->slots[i].outline = NULL;
    }
    return status;
}

/* Adds the stored bytes of elements up. */
typedef struct adder {
    const round *r;
    uint64_t sum;
} adder;

static esdm_status
add_stored_bytes(void *user, void *element, esdm_error *err)
{
    adder *a = user;
    const void *text;
    (void) err;
    a->sum += sizeof(uint32_t);
    esdm_type form = a->r->transfer->memory.form;
    if (esdm__elements_encode(a->r->elements, form)) {
        a->sum += esdm__values_stored_bytes(a->r->elements->outer, 1, element);
        return ESDM_OK;
    }
    memcpy(&text, element, sizeof text);
    if (form == ESDM__TYPE_BLOB)
        a->sum += esdm__blob_bytes(text);
    else
        a->sum += text != NULL ? strlen(text) : 0;
    return ESDM_OK;
}

/* Stored bytes of an element; of those that vary on average, so that fragments of long ones stay
 * small. */
static uint64_t
element_bytes(const round *r)
{
    const esdm__elements *e = r->elements;
    adder a = {.r = r};
    if (!esdm__elements_vary(e))
        return e->bytes;
    (void) esdm__elements_visit(e, r->box->rank, r->box->n, &r->transfer->memory, add_stored_bytes,
                                &a, NULL);
    return a.sum / esdm__box_elements(r->box);
}

/* Whether a large chunk may be several fragments, so that more than one processor stores it: on
 * targets whose requests have a price each more costs more, and mode archive wants large blocks. */
static bool
may_cut_chunks(const round *r)
{
    const esdm_session *session = r->dataset->group->container->session;
    for (size_t i = 0; i < session->ntargets; i++) {
        if (session->targets[i].plugin->concurrency > 0 &&
            (r->io->allowed == NULL || r->io->allowed[i]))
            return false;
    }
    return r->io->block_bytes == 0 && !esdm__elements_vary(r->elements);
}

/* Fragments for all threads, as long as they do not get too small; at most `bytes` each. */
static uint64_t
share_of_thread(const round *r, uint64_t bytes)
{
    uint64_t threads = r->dataset->group->container->session->site->engine.threads;
    uint64_t each = esdm__box_elements(r->box) * r->elements->bytes;
    each = threads > 1 ? (each + threads - 1) / threads : bytes;
    each = each > ENCODED_PART_BYTES ? each : ENCODED_PART_BYTES;
    return each < bytes ? each : bytes;
}

static esdm__layout
layout_of(const round *r, esdm__cut cut)
{
    const esdm_dataset *dataset = r->dataset;
    const esdm__dataset_io *io = r->io;
    esdm__layout layout = {.rank = dataset->rank,
                           .element_bytes = element_bytes(r),
                           .chunk = dataset->stated->chunk,
                           .cut = r->strided == NULL ? cut : ESDM__CUT_CONTIGUOUS,
                           .preferred_bytes = esdm__dataset_io_preferred(io),
                           .minimum_bytes = esdm__dataset_io_minimum(io)};
    if (r->strided != NULL)
        layout.chunk = NULL;
    if (layout.chunk != NULL) {
        esdm__box chunk;
        esdm__box_set(&chunk, dataset->rank, NULL, dataset->stated->chunk);
        /* A chunk that does not fit the memory bound is a hint we cannot follow. */
        uint64_t limit = dataset->group->container->session->fragment_limit_bytes;
        if (esdm__box_elements(&chunk) > limit / layout.element_bytes)
            layout.chunk = NULL;
    }
    if (layout.chunk == NULL && io->encodes && may_cut_chunks(r))
        layout.preferred_bytes = share_of_thread(r, layout.preferred_bytes);
    if (layout.chunk != NULL && may_cut_chunks(r)) {
        layout.parts = dataset->group->container->session->site->engine.threads;
        layout.part_bytes = PART_BYTES;
    }
    return layout;
}

/* Fills in the record of the fragment that a part of the round's box becomes, but for where it
 * is stored. */
static void
prepare(const round *r, slot *s)
{
    const esdm_dataspace *space = r->strided;
    s->fragment.inline_data = NULL;
    s->fragment.outline = NULL;
    s->fragment.outline_bytes = 0;
    s->fragment.pack = NULL;
    s->fragment.position = 0;
    s->fragment.head_bytes = 0;
    s->fragment.strided = false;
    s->fragment.kind = ESDM__KIND_STORED;
    s->fragment.statistics = (esdm__statistics){0};
    memset(s->fragment.codec_ids, 0, sizeof s->fragment.codec_ids);
    esdm__box_copy(&s->fragment.box, &s->part);
    for (uint32_t i = 0; space != NULL && i < space->rank; i++) {
        uint64_t count = s->part.n[i];
        s->fragment.box.lo[i] = space->offset[i] + s->part.lo[i] * space->stride[i];
        s->fragment.box.n[i] = (count - 1) * space->stride[i] + 1;
        s->fragment.stride[i] = count > 1 ? space->stride[i] : 1;
        s->fragment.strided = s->fragment.strided || s->fragment.stride[i] > 1;
    }
    s->where = esdm__accuracy_where(r->accuracy, r->map, &s->fragment.box);
}

static esdm_status
cut_and_store(round *r, const esdm__layout *layout, esdm_error *err)
{
    esdm__region_cutter cutter;
    const esdm__region_map *map = r->strided == NULL ? r->map : NULL;
    const esdm__transfer *content = r->by_content ? r->transfer : NULL;
    esdm_status status = esdm__region_cutter_init(&cutter, layout, r->box, map, content, err);
    bool more = status == ESDM_OK;
    while (more) {
        size_t count = 0;
        while (count < r->batch) {
            more = esdm__region_cutter_next(&cutter, &r->slots[count].part);
            if (!more)
                break;
            prepare(r, &r->slots[count++]);
        }
        status = count > 0 ? run_round(r, count, err) : ESDM_OK;
        more = more && status == ESDM_OK;
    }
    esdm__region_cutter_clear(&cutter);
    return status;
}

esdm_status
esdm__write_fragments(const esdm__transfer *t, const esdm__box *box, bool strided, esdm_error *err)
{
    esdm__accuracy accuracy;
    esdm_status status = esdm__accuracy_compile(t->dataset, &accuracy, err);
    if (status == ESDM_OK && accuracy.lossy && !accuracy.by_rule)
        status = esdm__rounded_note(t->dataset, t->io, err);
    if (status != ESDM_OK)
        return status;
    round r = {.transfer = t,
               .dataset = t->dataset,
               .io = t->io,
               .elements = t->elements,
               .strided = strided ? t->space : NULL,
               .box = box,
               .accuracy = &accuracy,
               .ways = {{.chain = t->io->chain}, {.chain = t->io->chain}}};
    r.map = esdm__accuracy_map(&accuracy, t->io);
    esdm__missing_of(t->dataset, &r.missing);
    esdm__cut cut = ESDM__CUT_CONTIGUOUS;
    status = esdm__access_of(t->dataset, &cut, err);
    if (status != ESDM_OK)
        return status;
    bool for_readers = t->io->for_readers != 0 && !esdm__access_is_stated(t->dataset);
    if (for_readers)
        cut = (esdm__cut) t->io->for_readers;
    esdm__layout layout = layout_of(&r, cut);
    if (for_readers)
        layout.preferred_bytes = esdm__readers_preferred(layout.preferred_bytes, layout.cut);
    r.by_content = esdm__io_of(t->dataset->group->container)->by_content && !strided &&
                   r.map == NULL && esdm__content_can_cut(t, box);
    uint64_t count =
        r.map != NULL || r.by_content ? ESDM__WRITE_BATCH : esdm__cutter_count(&layout, box);
    r.batch = count > ESDM__WRITE_BATCH ? ESDM__WRITE_BATCH : count > 0 ? (size_t) count : 1;
    r.slots = calloc(r.batch + 1, sizeof *r.slots);
    if (r.slots == NULL)
        return esdm__error_nomem(err, r.batch * sizeof *r.slots, "a write");
    status = cut_and_store(&r, &layout, err);
    esdm__transfer_count(t, atomic_load(&r.out_of_range));
    free(r.slots);
    return status;
}
