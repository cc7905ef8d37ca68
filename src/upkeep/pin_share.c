/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "upkeep/pin_share.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/buffer.h"
#include "base/checksum.h"
#include "base/error.h"
#include "io/container/dataset_io.h"
#include "io/container/visit.h"
#include "io/packs/pack_set.h"
#include "io/packs/pack_set_inner.h"
#include "io/read/foreign.h"
#include "io/session/held_files.h"
#include "io/write/refer.h"
#include "upkeep/boxes.h"

/* Smaller files are copied: many clones would be many files, for little. */
#define FILE_BYTES_LEAST (UINT64_C(1) << 20)
/* A clone keeps all of a file: of one that is used less than this part, the values are copied. */
#define PART_LEAST 2

/* A file that is referred to. */
typedef struct held {
    uint64_t digest; /* of its description */
    size_t next;     /* of the same slot, from 1; 0: none */
    uint64_t used_bytes;
    bool tried;
    esdm__buffer description; /* as it is referred to now */
    esdm__buffer source;      /* of the clone; empty: there is none */
    char location[ESDM__HELD_BYTES];
} held;

#define SLOTS 4096u

struct esdm__pin_share {
    esdm_container *container;
    held *items; /* owned */
    size_t count;
    size_t slots[SLOTS]; /* from 1 */
    unsigned number;     /* in the names of clones */
    const bool *allowed; /* targets of the dataset that is looked at; borrowed */
};

/* ---- files ---------------------------------------------------------------------------------- */

static bool
is_same(const esdm__source *a, const esdm__buffer *b)
{
    return a != NULL && a->bytes == b->bytes && memcmp(a->data, b->data, b->bytes) == 0;
}

static held *
find(const esdm__pin_share *share, const esdm__source *source)
{
    uint64_t digest = esdm__checksum(source->data, source->bytes);
    for (size_t i = share->slots[digest % SLOTS]; i > 0; i = share->items[i - 1].next) {
        held *h = &share->items[i - 1];
        if (h->digest == digest && is_same(source, &h->description))
            return h;
    }
    return NULL;
}

static held *
enter(esdm__pin_share *share, const esdm__source *source)
{
    held *h = find(share, source);
    if (h != NULL)
        return h;
    if (!esdm__array_grow(&share->items, share->count, sizeof *share->items))
        return NULL;
    uint64_t digest = esdm__checksum(source->data, source->bytes);
    h = &share->items[share->count++];
    *h = (held){.digest = digest, .next = share->slots[digest % SLOTS]};
    share->slots[digest % SLOTS] = share->count;
    esdm__buffer_init(&h->description);
    esdm__buffer_init(&h->source);
    esdm__buffer_put(&h->description, source->data, source->bytes);
    return h->description.failed ? NULL : h;
}

bool
esdm__pin_share_is_clone(const esdm__fragment *fragment)
{
    esdm__foreign foreign;
    return esdm__foreign_get(fragment->elsewhere.source, &foreign, NULL) == ESDM_OK &&
           esdm__held_is(foreign.location);
}

/* Whether it is a file that could be cloned; URLs, dropped values and clones are none. */
static bool
is_file(const esdm__fragment *fragment)
{
    esdm__foreign foreign;
    return fragment->kind == ESDM__KIND_FOREIGN && !fragment->strided &&
           esdm__foreign_get(fragment->elsewhere.source, &foreign, NULL) == ESDM_OK &&
           foreign.location[0] == '/' && !esdm__held_is(foreign.location) &&
           strcmp(foreign.location, ESDM_RECIPE_LOCATION) != 0 && foreign.bytes != UINT64_MAX &&
           foreign.bytes >= FILE_BYTES_LEAST;
}

typedef struct tally {
    esdm__pin_share *share;
    bool nomem;
} tally;

static bool
count_fragment(const esdm__fragment *fragment, void *user)
{
    tally *t = user;
    if (!is_file(fragment))
        return true;
    held *h = enter(t->share, fragment->elsewhere.source);
    if (h != NULL)
        h->used_bytes += fragment->stored_bytes;
    t->nomem = h == NULL;
    return h != NULL;
}

esdm_status
esdm__pin_share_new(esdm_container *container, esdm__pin_share **ret_share, esdm_error *err)
{
    esdm__pin_share *share = calloc(1, sizeof *share);
    tally t = {.share = share};
    esdm_status status = share != NULL ? ESDM_OK : esdm__error_nomem(err, sizeof *share, "files");
    if (share != NULL)
        share->container = container;
    for (size_t i = 0; i < container->datasets.count && status == ESDM_OK; i++) {
        status = esdm__io_visit_fragments(container->datasets.items[i], count_fragment, &t, err);
        if (status == ESDM_OK && t.nomem)
            status = esdm__error_nomem(err, share->count * sizeof *share->items, "files");
    }
    if (status == ESDM_OK)
        *ret_share = share;
    else
        esdm__pin_share_free(share);
    return status;
}

void
esdm__pin_share_free(esdm__pin_share *share)
{
    for (size_t i = 0; share != NULL && i < share->count; i++) {
        esdm__buffer_clear(&share->items[i].description);
        esdm__buffer_clear(&share->items[i].source);
    }
    if (share != NULL)
        free(share->items);
    free(share);
}

void
esdm__pin_share_drop(esdm__pin_share *share)
{
    esdm_session *session = esdm__io_of(share->container)->session;
    for (size_t i = 0; i < share->count; i++) {
        if (share->items[i].source.bytes > 0)
            esdm__held_remove(session, share->items[i].location);
    }
}

/* ---- clones --------------------------------------------------------------------------------- */

/* As that of a pack of this handle, whose writer counts as alive until it is closed. */
static esdm_status
make_name(esdm__pin_share *share, char *name, size_t bytes, esdm_error *err)
{
    esdm__pack_set *packs = NULL;
    esdm_status status = esdm__container_packs(share->container, &packs, err);
    if (status == ESDM_OK)
        status = esdm__pack_set_say_writing(packs, err);
    if (status != ESDM_OK)
        return status;
    const esdm__pack_owner *owner = esdm__pack_set_owner(packs);
    (void) snprintf(name, bytes, "%s-%.16s-f%x", owner->uuid, owner->writer, share->number++);
    return ESDM_OK;
}

/* Clones a file that is what the description says, before and after. *ret_made: it was. */
static esdm_status
clone_file(esdm__pin_share *share, held *h, const esdm__foreign *foreign, bool *ret_made,
           esdm_error *err)
{
    esdm_session *session = esdm__io_of(share->container)->session;
    char name[96];
    esdm__file *file = NULL;
    bool certain = false;
    esdm_error why = {0};
    *ret_made = false;
    /* What cannot be read, or may be another file, is told by those who copy values. */
    if (esdm__file_get(session, foreign, &file, &certain, &why) != ESDM_OK)
        return ESDM_OK;
    esdm_status status = certain ? make_name(share, name, sizeof name, err) : ESDM_OK;
    if (status == ESDM_OK && certain) {
        status = esdm__held_make(session, name, esdm__file_descriptor(file), share->allowed,
                                 h->location, &why);
        *ret_made = status == ESDM_OK;
        if (status != ESDM_OK && status != ESDM_ENOTSUP && err != NULL)
            *err = why;
        status = status == ESDM_ENOTSUP ? ESDM_OK : status;
    }
    if (*ret_made && (esdm__file_check(file, foreign, &certain, NULL) != ESDM_OK || !certain)) {
        esdm__held_remove(session, h->location);
        *ret_made = false;
    }
    esdm__file_put(session, file);
    return status;
}

/* Sees to it that the file is cloned, if it can be. */
static esdm_status
need_clone(esdm__pin_share *share, held *h, esdm_error *err)
{
    esdm__foreign foreign;
    const esdm__source was = {.role = ESDM__ROLE_FOREIGN,
                              .bytes = (uint32_t) h->description.bytes,
                              .data = h->description.data};
    bool made = false;
    if (h->tried)
        return ESDM_OK;
    h->tried = true;
    esdm_status status = esdm__foreign_get(&was, &foreign, err);
    if (status != ESDM_OK || h->used_bytes < foreign.bytes / PART_LEAST)
        return status;
    status = clone_file(share, h, &foreign, &made, err);
    if (status != ESDM_OK || !made)
        return status;
    foreign.location = h->location;
    foreign.mtime_ns = INT64_MIN;
    foreign.identity = "";
    esdm__foreign_put(&h->source, &foreign);
    return h->source.failed ? esdm__error_nomem(err, sizeof foreign, "a reference") : ESDM_OK;
}

/* ---- datasets ------------------------------------------------------------------------------- */

/* A fragment of a file. */
typedef struct candidate {
    size_t file; /* its number */
    size_t at;   /* in `boxes` */
    size_t decoding;
    uint64_t position, stored_bytes, check;
    uint32_t filter_mask, check_kind;
    esdm__statistics statistics;
} candidate;

typedef struct gathering {
    esdm__pin_share *share;
    uint32_t rank;
    candidate *items; /* owned */
    size_t count;
    uint64_t *boxes; /* owned; lo and n of each */
    size_t nboxes;
    esdm__buffer *decodings; /* owned, each too */
    size_t ndecodings;
    uint64_t foreign; /* fragments that refer to something else than clones */
    bool nomem;
} gathering;

static size_t
decoding_of(gathering *g, const esdm__source *decoding)
{
    for (size_t i = g->ndecodings; i-- > 0;) {
        if (is_same(decoding, &g->decodings[i]))
            return i;
    }
    if (!esdm__array_grow(&g->decodings, g->ndecodings, sizeof *g->decodings)) {
        g->nomem = true;
        return 0;
    }
    esdm__buffer *one = &g->decodings[g->ndecodings];
    esdm__buffer_init(one);
    esdm__buffer_put(one, decoding->data, decoding->bytes);
    g->nomem |= one->failed;
    return g->ndecodings++;
}

static bool
add_box(gathering *g, const esdm__box *box)
{
    for (uint32_t d = 0; d < 2 * box->rank; d++) {
        if (!esdm__array_grow(&g->boxes, g->nboxes, sizeof *g->boxes))
            return false;
        g->boxes[g->nboxes++] = d < box->rank ? box->lo[d] : box->n[d - box->rank];
    }
    return true;
}

static bool
gather(const esdm__fragment *fragment, void *user)
{
    gathering *g = user;
    const esdm__elsewhere *e = &fragment->elsewhere;
    const held *h = is_file(fragment) ? find(g->share, e->source) : NULL;
    g->foreign += fragment->kind == ESDM__KIND_FOREIGN && !esdm__pin_share_is_clone(fragment);
    if (h == NULL || e->decoding == NULL)
        return true;
    candidate one = {.file = (size_t) (h - g->share->items),
                     .at = g->nboxes,
                     .decoding = decoding_of(g, e->decoding),
                     .position = fragment->position,
                     .stored_bytes = fragment->stored_bytes,
                     .check = e->check,
                     .filter_mask = e->filter_mask,
                     .check_kind = e->check_kind,
                     .statistics = fragment->statistics};
    g->nomem |=
        !add_box(g, &fragment->box) || !esdm__array_grow(&g->items, g->count, sizeof *g->items);
    if (!g->nomem)
        g->items[g->count++] = one;
    return !g->nomem;
}

static void
gathering_clear(gathering *g)
{
    for (size_t i = 0; i < g->ndecodings; i++)
        esdm__buffer_clear(&g->decodings[i]);
    free(g->decodings);
    free(g->items);
    free(g->boxes);
}

/* Whether all of it is seen: nothing newer lies over a part of it, not the same place of another
 * file either. */
static esdm_status
is_seen(const held *h, const gathering *g, const esdm__boxes *boxes, const candidate *one,
        const esdm__box *box, bool *ret_seen, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm_status status = esdm__boxes_plan(boxes, box, &plan, err);
    const esdm__fragment *shown = plan.npieces == 1 ? plan.pieces[0].fragment : NULL;
    *ret_seen = status == ESDM_OK && shown != NULL && shown->kind == ESDM__KIND_FOREIGN &&
                shown->position == one->position &&
                is_same(shown->elsewhere.source, &h->description) &&
                is_same(shown->elsewhere.decoding, &g->decodings[one->decoding]) &&
                esdm__box_equal(&plan.pieces[0].part, box) && esdm__box_equal(&shown->box, box);
    esdm__plan_clear(&plan);
    return status;
}

static void
tell(const held *h, const esdm_pin_options *options, uint64_t bytes)
{
    esdm__foreign foreign;
    const esdm__source was = {.role = ESDM__ROLE_FOREIGN,
                              .bytes = (uint32_t) h->description.bytes,
                              .data = h->description.data};
    if (options->file != NULL && esdm__foreign_get(&was, &foreign, NULL) == ESDM_OK)
        options->file(foreign.location, bytes, true, options->user);
}

static esdm_status
refer(esdm__pin_share *share, const gathering *g, const candidate *one, const esdm__boxes *boxes,
      const esdm_pin_options *options, esdm_pin_result *on, esdm_error *err)
{
    held *h = &share->items[one->file];
    esdm__reference reference = {.kind = ESDM__KIND_FOREIGN,
                                 .decoding = g->decodings[one->decoding].data,
                                 .decoding_bytes = g->decodings[one->decoding].bytes,
                                 .position = one->position,
                                 .stored_bytes = one->stored_bytes,
                                 .filter_mask = one->filter_mask,
                                 .check_kind = one->check_kind,
                                 .check = one->check,
                                 .statistics = one->statistics};
    bool seen = false;
    reference.box.rank = g->rank;
    for (uint32_t d = 0; d < g->rank; d++) {
        reference.box.lo[d] = g->boxes[one->at + d];
        reference.box.n[d] = g->boxes[one->at + g->rank + d];
    }
    esdm_status status = is_seen(h, g, boxes, one, &reference.box, &seen, err);
    if (status == ESDM_OK && seen)
        status = need_clone(share, h, err);
    if (status != ESDM_OK || !seen || h->source.bytes == 0)
        return status;
    reference.source = h->source.data;
    reference.source_bytes = h->source.bytes;
    status = esdm__io_refer(boxes->dataset, &reference, 1, err);
    if (status != ESDM_OK)
        return status;
    uint64_t bytes = esdm__box_elements(&reference.box) * boxes->each;
    on->fragments++;
    on->bytes += bytes;
    on->shared_bytes += bytes;
    tell(h, options, bytes);
    return ESDM_OK;
}

esdm_status
esdm__pin_share_dataset(esdm__pin_share *share, esdm_dataset *dataset,
                        const esdm_pin_options *options, esdm_pin_result *ret_on, bool *ret_rest,
                        esdm_error *err)
{
    esdm__boxes boxes;
    bool any = false;
    esdm__dataset_io *io = NULL;
    uint64_t before = ret_on->fragments;
    gathering g = {.share = share, .rank = dataset->rank};
    esdm_status status = esdm__dataset_io_get(dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    share->allowed = io->allowed;
    if (io->copies <= 1) /* a clone is one copy */
        status = esdm__boxes_begin(dataset, &boxes, &any, err);
    if (status == ESDM_OK && any)
        status = esdm__io_visit_fragments(dataset, gather, &g, err);
    if (status == ESDM_OK && g.nomem)
        status = esdm__error_nomem(err, g.count * sizeof *g.items, "fragments");
    for (size_t i = 0; i < g.count && status == ESDM_OK; i++)
        status = refer(share, &g, &g.items[i], &boxes, options, ret_on, err);
    share->allowed = NULL;
    esdm__dataset_io_put(dataset);
    if (status == ESDM_OK && any)
        *ret_rest = ret_on->fragments - before < g.foreign;
    gathering_clear(&g);
    return status;
}
