/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file Fragments that are stored several times. What may be equal is told by a 64-bit hash of
 * their heads, which have lengths and checksums of all blocks: so little is read to find them. Each
 * pair is compared byte by byte before index pages name one of them in place of the other, which is
 * done as when fragments move (upkeep/move.h). Packs of which little is needed any more are emptied
 * by the way; what nothing refers to is removed as any garbage is.
 */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/blob.h"
#include "io/container/container_io.h"
#include "io/packs/equals.h"
#include "io/packs/pack_guard.h"
#include "io/packs/sources.h"
#include "io/read/fetch.h"
#include "io/session/former.h"
#include "io/session/sharers.h"
#include "layout/packs.h"
#include "layout/places.h"
#include "upkeep/dedup_list.h"
#include "upkeep/move.h"
#include "upkeep/upkeep.h"

/* A pack is emptied when at least one in so many of its bytes is not needed any more. */
#define EMPTY_SHARE 5u
/* So many equal fragments may stay at most, when policies want them at different places. */
#define KEPT_MOST 8u

#define NONE ESDM__DEDUP_NONE

typedef esdm__dedup_holder holder;
typedef esdm__dedup_blob blob;
typedef esdm__dedup_load pack_load;
typedef esdm__dedup_origin origin;
typedef esdm__dedup_shape shape;
typedef esdm__dedup_run dedup;

/* ---- what may be equal ------------------------------------------------------------------------
 */

static int
by_size(const void *a, const void *b, void *user)
{
    const dedup *d = user;
    const blob *x = &d->blobs[*(const uint32_t *) a];
    const blob *y = &d->blobs[*(const uint32_t *) b];
    const shape *of_x = esdm__dedup_shape_of(d, x);
    const shape *of_y = esdm__dedup_shape_of(d, y);
    const uint64_t keys[2][4] = {{x->stored_bytes, of_x->raw_bytes, of_x->head_bytes, x->hash},
                                 {y->stored_bytes, of_y->raw_bytes, of_y->head_bytes, y->hash}};
    for (int i = 0; i < 4; i++) {
        if (keys[0][i] != keys[1][i])
            return keys[0][i] < keys[1][i] ? -1 : 1;
    }
    uint32_t places[2] = {esdm__dedup_origin_of(d, x)->places, esdm__dedup_origin_of(d, y)->places};
    if (places[0] != places[1]) /* what has most copies stays */
        return places[0] > places[1] ? -1 : 1;
    return *(const uint32_t *) a < *(const uint32_t *) b ? -1 : 1;
}

static const esdm__pack_name *
pack_of(const dedup *d, const blob *one)
{
    return esdm__dedup_origin_of(d, one)->pack;
}

static uint32_t
head_bytes_of(const dedup *d, const blob *one)
{
    return esdm__dedup_shape_of(d, one)->head_bytes;
}

static bool
same_size(const dedup *d, const blob *x, const blob *y)
{
    return x->stored_bytes == y->stored_bytes && head_bytes_of(d, x) == head_bytes_of(d, y) &&
           esdm__dedup_shape_of(d, x)->raw_bytes == esdm__dedup_shape_of(d, y)->raw_bytes;
}

/* What cannot be read is no fragment that is stored twice. */
static esdm_status
hash_one(void *context, size_t i, esdm_error *err)
{
    dedup *d = context;
    blob *one = &d->blobs[d->order[i]];
    bool alone = (i == 0 || !same_size(d, one, &d->blobs[d->order[i - 1]])) &&
                 (i + 1 == d->nblobs || !same_size(d, one, &d->blobs[d->order[i + 1]]));
    return alone ? ESDM_OK
                 : esdm__stored_hash(d->session, pack_of(d, one), one->position,
                                     head_bytes_of(d, one), &one->hash, &one->hashed, err);
}

/* Those that stay of the ones at hand, which are equal. */
typedef struct kept_ones {
    uint32_t items[KEPT_MOST];
    size_t count;
} kept_ones;

static void
find_kept(dedup *d, uint32_t number, kept_ones *kept)
{
    blob *one = &d->blobs[number];
    const blob *first = kept->count > 0 ? &d->blobs[kept->items[0]] : NULL;
    if (first != NULL && (!one->hashed || !same_size(d, one, first) || one->hash != first->hash))
        kept->count = 0;
    for (size_t k = 0; k < kept->count && one->same == NONE; k++) {
        const origin *from = esdm__dedup_origin_of(d, one);
        if (esdm__dedup_wish_takes(d->session, &from->wish, from->pack,
                                   pack_of(d, &d->blobs[kept->items[k]])))
            one->same = kept->items[k];
    }
    if (one->hashed && one->same == NONE && kept->count < KEPT_MOST)
        kept->items[kept->count++] = number;
}

static esdm_status
find_equal(dedup *d, esdm_error *err)
{
    d->order = malloc((d->nblobs + 1) * sizeof *d->order);
    if (d->order == NULL)
        return esdm__error_nomem(err, d->nblobs * sizeof *d->order, "fragments");
    for (size_t i = 0; i < d->nblobs; i++)
        d->order[i] = (uint32_t) i;
    qsort_r(d->order, d->nblobs, sizeof *d->order, by_size, d);
    esdm_status status =
        d->nblobs > 0 ? esdm__pool_run(d->session->pool, d->nblobs, hash_one, d, err) : ESDM_OK;
    if (status != ESDM_OK)
        return status;
    qsort_r(d->order, d->nblobs, sizeof *d->order, by_size, d);
    kept_ones kept = {.count = 0};
    for (size_t i = 0; i < d->nblobs; i++) {
        const blob *one = &d->blobs[d->order[i]];
        d->result->head_bytes += one->hashed ? head_bytes_of(d, one) : 0;
        find_kept(d, d->order[i], &kept);
    }
    d->result->table_bytes = esdm__dedup_bytes(d);
    return ESDM_OK;
}

/* ---- packs ----------------------------------------------------------------------------------- */

static int
by_pack(const void *a, const void *b)
{
    const esdm__pack_name *x = ((const pack_load *) a)->pack;
    const esdm__pack_name *y = ((const pack_load *) b)->pack;
    return (x > y) - (x < y);
}

static esdm_status
weigh_packs(dedup *d, esdm_error *err)
{
    free(d->loads);
    d->nloads = 0;
    d->loads = malloc((d->nblobs + 1) * sizeof *d->loads);
    if (d->loads == NULL)
        return esdm__error_nomem(err, d->nblobs * sizeof *d->loads, "packs");
    for (size_t i = 0; i < d->nblobs; i++) {
        const blob *one = &d->blobs[i];
        d->loads[i] = (pack_load){pack_of(d, one), one->stored_bytes,
                                  one->same != NONE ? one->stored_bytes : 0};
    }
    if (d->nblobs > 1)
        qsort(d->loads, d->nblobs, sizeof *d->loads, by_pack);
    for (size_t i = 0; i < d->nblobs; i++) {
        pack_load *last = d->nloads > 0 ? &d->loads[d->nloads - 1] : NULL;
        if (last != NULL && last->pack == d->loads[i].pack) {
            last->bytes += d->loads[i].bytes;
            last->equal_bytes += d->loads[i].equal_bytes;
        } else {
            d->loads[d->nloads++] = d->loads[i];
        }
    }
    return ESDM_OK;
}

/* Whether the fragments that are left in the pack are stored anew, so that the pack can be
 * removed. */
static bool
is_emptied(const dedup *d, const blob *one)
{
    const pack_load key = {.pack = pack_of(d, one)};
    const pack_load *load = bsearch(&key, d->loads, d->nloads, sizeof key, by_pack);
    return load != NULL && load->equal_bytes > 0 && load->equal_bytes >= load->bytes / EMPTY_SHARE;
}

/* Counts what will be freed and moved. A fragment that is named in the place of others stays
 * where it is, and so does its pack. */
static esdm_status
foresee(dedup *d, esdm_error *err)
{
    esdm_dedup_result *r = d->result;
    r->duplicates = r->duplicate_bytes = r->freed_bytes = r->moved_bytes = 0;
    for (size_t i = 0; i < d->nblobs; i++)
        d->blobs[i].kept = false;
    for (size_t i = 0; i < d->nblobs; i++) {
        if (d->blobs[i].same != NONE)
            d->blobs[d->blobs[i].same].kept = true;
    }
    esdm_status status = weigh_packs(d, err);
    for (size_t i = 0; i < d->nblobs && status == ESDM_OK; i++) {
        const blob *one = &d->blobs[i];
        bool equal = one->same != NONE;
        bool emptied = is_emptied(d, one);
        r->duplicates += equal;
        r->duplicate_bytes += equal ? one->stored_bytes : 0;
        r->freed_bytes += equal && emptied ? one->stored_bytes : 0;
        r->moved_bytes += !equal && emptied ? one->stored_bytes : 0;
    }
    return status;
}

/* ---- comparing ------------------------------------------------------------------------------- */

static esdm_status
read_blob(dedup *d, const blob *one, uint8_t **ret, esdm_error *err)
{
    esdm__sources sources;
    const shape *of = esdm__dedup_shape_of(d, one);
    esdm__fragment fragment = {.pack = pack_of(d, one),
                               .position = one->position,
                               .stored_bytes = one->stored_bytes,
                               .raw_bytes = of->raw_bytes,
                               .head_bytes = of->head_bytes};
    memcpy(fragment.codec_ids, of->codec_ids, sizeof of->codec_ids);
    esdm_status status = esdm__sources_of(d->session, fragment.pack, &sources, err);
    return status == ESDM_OK
               ? esdm__fetch_verified(d->session, &fragment, sources.targets[0], ret, err)
               : status;
}

/* Byte by byte, but for the number of the dataset. One that differs, or cannot be read, stays. */
static esdm_status
compare_one(void *context, size_t i, esdm_error *err)
{
    dedup *d = context;
    blob *one = &d->blobs[d->order[i]];
    uint8_t *a = NULL, *b = NULL;
    esdm_error why = {0};
    if (one->same == NONE)
        return ESDM_OK;
    esdm_status status = read_blob(d, one, &a, &why);
    if (status == ESDM_OK)
        status = read_blob(d, &d->blobs[one->same], &b, &why);
    uint32_t head = head_bytes_of(d, one);
    if (status != ESDM_OK || !esdm__blob_head_equals(a, b, head) ||
        memcmp(a + head, b + head, one->stored_bytes - head) != 0)
        one->same = NONE;
    free(a);
    free(b);
    if (status == ESDM_ENOMEM && err != NULL)
        *err = why;
    return status == ESDM_ENOMEM ? status : ESDM_OK;
}

/* From here on nobody removes the packs that will be named. A look for garbage that began
 * earlier may still remove packs which no page named at that time. So the fragments are looked
 * at once more, and those that no page names now are left out (strays.c). */
static esdm_status
guard_kept(dedup *d, esdm__pack_guard *guard, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < d->nblobs && status == ESDM_OK; i++) {
        if (d->blobs[i].same == NONE)
            continue;
        const blob *kept = &d->blobs[d->blobs[i].same];
        const origin *from = esdm__dedup_origin_of(d, kept);
        d->holders[from->holder].keeps = true;
        status = esdm__pack_guard_add(guard, from->pack->pack, true, err);
    }
    for (uint32_t i = 0; i < d->nholders && status == ESDM_OK; i++) {
        if (d->holders[i].keeps)
            status = esdm__dedup_list_again(d, i, err);
    }
    for (size_t i = 0; i < d->nblobs && status == ESDM_OK; i++) {
        if (d->blobs[i].same != NONE && !d->blobs[d->blobs[i].same].named)
            d->blobs[i].same = NONE;
    }
    return status;
}

/* ---- naming others --------------------------------------------------------------------------- */

static uint32_t
holder_of(const dedup *d, uint32_t number)
{
    return esdm__dedup_origin_of(d, &d->blobs[number])->holder;
}

static bool
stored_at(void *user, const esdm__fragment *fragment, const esdm__pack_name **ret_pack,
          uint64_t *ret_position)
{
    const dedup *d = user;
    const blob *one = esdm__dedup_blob_of(d, fragment);
    /* The page is newer than the rows that say whose packs are shared: its fragment waits for
     * the next call. */
    if (one == NULL || one->same == NONE || !d->shared[holder_of(d, one->same)])
        return false;
    *ret_pack = pack_of(d, &d->blobs[one->same]);
    *ret_position = d->blobs[one->same].position;
    return true;
}

/* A fragment moves when its pack is emptied, unless other fragments are given its place: these
 * go on naming it. */
static bool
wants_left(void *user, uint32_t dataset, const esdm__fragment *fragment, uint32_t *ret_copies)
{
    const dedup *d = user;
    const blob *one = esdm__dedup_blob_of(d, fragment);
    const char *places = fragment->pack->target;
    esdm__pack_place place;
    (void) dataset;
    if (one == NULL || one->kept || !is_emptied(d, one))
        return false;
    *ret_copies = 0;
    while (esdm__places_next(&places, &place))
        ++*ret_copies;
    return true;
}

typedef struct sharing {
    dedup *dedup;
    uint64_t container;
} sharing;

static esdm_status
share_page(void *user, const esdm_meta_page *entry, const esdm__page *page, esdm_error *err)
{
    const sharing *s = user;
    dedup *d = s->dedup;
    esdm_status status = ESDM_OK;
    (void) entry;
    for (uint32_t k = 0; k < page->records.count && status == ESDM_OK; k++) {
        esdm__fragment fragment;
        esdm__records_fragment(&page->records, k, &fragment);
        const blob *at = fragment.pack != NULL ? esdm__dedup_blob_of(d, &fragment) : NULL;
        if (at == NULL || at->same == NONE || d->shared[holder_of(d, at->same)])
            continue;
        uint32_t other = holder_of(d, at->same);
        status = d->session->meta->share(d->session->store, s->container,
                                         d->holders[other].container, err);
        d->shared[other] = status == ESDM_OK;
    }
    return status;
}

/* The rows that say whose packs the container shares come first. */
static esdm_status
share_all(dedup *d, uint32_t number, esdm_error *err)
{
    sharing s = {.dedup = d, .container = d->holders[number].container};
    esdm__page_walk walk = {.container = s.container,
                            .snapshot = ESDM_META_EVERY_SNAPSHOT,
                            .pass_gone = true,
                            .pass_unread = true,
                            .visit = share_page,
                            .user = &s};
    free(d->shared);
    d->shared = calloc(d->nholders, sizeof *d->shared);
    if (d->shared == NULL)
        return esdm__error_nomem(err, d->nholders, "containers");
    return esdm__pages_walk(d->session, &walk, err);
}

static esdm_status
name_others(dedup *d, esdm__mover *mover, uint32_t number, esdm_error *err)
{
    const holder *one = &d->holders[number];
    esdm__moved moved = {0};
    esdm_container *model = NULL; /* for the site's policies */
    esdm_error why = {0};
    if (esdm__io_open(d->session, one->name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &model, &why) !=
        ESDM_OK)
        return ESDM_OK; /* it was removed meanwhile */
    if (esdm__io_of(model)->record != one->container) {
        esdm__container_drop(model); /* or replaced: what is kept of it stays as it is */
        return ESDM_OK;
    }
    const esdm__move_job job = {.session = d->session,
                                .name = one->name,
                                .container = one->container,
                                .uuid = one->uuid,
                                .model = model,
                                .wants = wants_left,
                                .stored_at = stored_at,
                                .user = d};
    esdm_status status = share_all(d, number, err);
    bool gone = status == ESDM_ECONFLICT; /* one of them was removed meanwhile */
    if (status == ESDM_OK)
        status = esdm__mover_run(mover, &job, &moved, NULL, err);
    d->result->pages += moved.pages;
    esdm__container_drop(model);
    return gone ? ESDM_OK : status;
}

static esdm_status
apply(dedup *d, esdm_error *err)
{
    esdm__pack_guard *guard = esdm__pack_guard_new(d->session);
    esdm__mover *mover = esdm__mover_new(d->session);
    esdm_status status = guard != NULL && mover != NULL
                             ? guard_kept(d, guard, err)
                             : esdm__error_nomem(err, sizeof *d, "de-duplication");
    if (status == ESDM_OK)
        status = esdm__pool_run(d->session->pool, d->nblobs, compare_one, d, err);
    if (status == ESDM_OK)
        status = foresee(d, err);
    for (uint32_t i = 0; i < d->nholders && status == ESDM_OK && d->result->duplicates > 0; i++) {
        status = name_others(d, mover, i, err);
        if (status == ESDM_OK && d->options->progress != NULL)
            d->options->progress((double) (i + 1) / (double) d->nholders, d->holders[i].name,
                                 d->options->user);
    }
    esdm__mover_free(mover);
    esdm__pack_guard_free(guard);
    for (size_t i = 0; i < d->nholders && status == ESDM_OK; i++)
        esdm__upkeep_trim(d->session, d->holders[i].container, d->holders[i].uuid,
                          d->holders[i].name);
    return status;
}

/* ---- all ------------------------------------------------------------------------------------- */

esdm_status
esdm__upkeep_dedup(esdm_session *session, const esdm_dedup_options *options,
                   esdm_dedup_result *result, esdm_error *err)
{
    dedup d = {.session = session, .options = options, .result = result};
    *result = (esdm_dedup_result){0};
    d.packs = esdm__packs_new();
    esdm_status status =
        d.packs != NULL ? esdm__dedup_list(&d, err) : esdm__error_nomem(err, sizeof d, "fragments");
    if (status == ESDM_OK)
        status = find_equal(&d, err);
    if (status == ESDM_OK)
        status = foresee(&d, err);
    if (status == ESDM_OK && !options->dry_run && result->duplicates > 0)
        status = apply(&d, err);
    esdm__dedup_clear(&d);
    return status;
}
