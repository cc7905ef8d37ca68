/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A commit of several ranks:
 *
 * 1. Every rank turns gathered writes into fragments and makes its packs readable (where ranks
 * store for others, when all have done the former). If one fails, all do, and nothing has happened.
 * When rank 0 finds that their writer may have seemed dead, the others look whether their packs are
 * there.
 * 2. When some rank changed the structure, the structures are compared.
 * 3. The ranks tell each other how many fragments they have, which gives each its order, and
 * between which values these lie (collective_ranges.c), and encode their index pages.
 * 4. The pages go up the tree of ranks, made into fuller ones on the way (page_source.c). When rank
 *    0 has them, it publishes them in a transaction of the metadata store; only of very many the
 *    last ones come while it is open. Where other programs have published, all are sent once
 *    before, for rank 0 to look for records that both have written (collective_overlap.c).
 * 5. All hear of the result and move to the new snapshot, which rank 0 has pinned.
 * 6. Where writers that live may seem dead, each looks whether its packs are still there.
 * 7. All are told what one has lost, and whether one did not hear of the result.
 *
 * What a rank does in steps 4 to 7 does not depend on messages that it may have missed, so that
 * nobody waits for a rank to which one did not get through. It cannot be helped in two cases: a
 * rank misses the head of a batch that is not the last one of its sender (page_stream.c), or both
 * answers of step 7 when another one tells of a failure there.
 */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/container/lengths.h"
#include "io/ranks/collective.h"
#include "io/ranks/page_source.h"
#include "io/ranks/page_stream.h"
#include "io/session/former.h"

/* Index pages that rank 0 holds before it opens the transaction. */
#define GATHERED_BYTES ((size_t) 64 << 20)

/* What rank 0 tells the others: that they shall send their pages once more, or the end. */
enum { COMMAND_AGAIN = 1, COMMAND_END = 2 };

typedef struct news {
    uint64_t command;
    uint64_t doubt; /* esdm__writer_doubt, after the commit */
    esdm_error failure;
    esdm_meta_committed committed;
    uint64_t snapshot;  /* that the handles move to */
    uint64_t lengths[]; /* of unlimited dimensions */
} news;

typedef struct work {
    esdm__commit_work own;
    esdm_comm *comm;
    const char *message;
    esdm__orders orders;
    esdm_dataset *const *all; /* datasets of the container, by id; borrowed */
    esdm_meta_committed committed;
    uint64_t *lengths; /* of unlimited dimensions, from [1] on, and rank 0's doubt; owned */
    uint64_t *bounds;  /* of values, esdm__ranges_tell(); behind them in the same memory */
    news *news;        /* owned */
    size_t news_bytes;
    esdm__page_source *source; /* the pages of this rank and of those below it; owned */
    esdm__merging merging;     /* rank 0 */
    bool must_look;            /* rank 0: at what others have published, before it publishes */
    bool answered;             /* it is known whether the transaction took place */
    bool adopted;              /* this rank has moved to what was committed */
    esdm_error gone;           /* what is lost of this rank's packs, if anything */
    esdm_error unheard;        /* a message that failed, after which the ranks may disagree */
} work;

/* ---- index pages of this rank ------------------------------------------------------------- */

static esdm_status
encode_own(work *g, esdm_error *err)
{
    esdm__commit_work *w = &g->own;
    size_t npages = 0;
    w->sets = calloc(w->ndatasets + 1, sizeof *w->sets);
    if (w->sets == NULL)
        return esdm__error_nomem(err, w->ndatasets * sizeof *w->sets, "a commit");
    for (size_t i = 0; i < w->ndatasets; i++) {
        esdm__dataset_io *io = esdm__commit_io_of(w, i);
        (void) pthread_mutex_lock(&io->lock);
        esdm_status status = esdm__index_encode(io->index, NULL, 0, &w->sets[i], err);
        (void) pthread_mutex_unlock(&io->lock);
        if (status != ESDM_OK)
            return status;
        npages += w->sets[i].npages;
    }
    w->pages = malloc((npages + 1) * sizeof *w->pages);
    if (w->pages == NULL)
        return esdm__error_nomem(err, npages * sizeof *w->pages, "a commit");
    for (size_t i = 0; i < w->ndatasets; i++) {
        for (size_t k = 0; k < w->sets[i].npages; k++) {
            w->pages[w->npages] = w->sets[i].pages[k];
            w->pages[w->npages++].dataset = w->datasets[i]->id;
        }
    }
    return ESDM_OK;
}

/* ---- rank 0: the transaction -------------------------------------------------------------- */

/* A message that failed; what follows goes on as if it had not. */
static esdm_status
note_unheard(work *g, esdm_status sent, const esdm_error *why)
{
    if (sent != ESDM_OK && g->unheard.status == ESDM_OK) {
        g->unheard = *why;
        g->unheard.status = sent;
    }
    return sent;
}

static void
tell(work *g, uint64_t command)
{
    esdm_error why = {0};
    g->news->command = command;
    (void) note_unheard(g, g->comm->ops->broadcast(g->comm, g->news, g->news_bytes, 0, &why), &why);
}

/* One transaction, for which all ranks send their pages, whatever the status. */
static esdm_status
publish(work *g, esdm_status status, esdm_error *err)
{
    const esdm__merging *m = &g->merging;
    esdm__commit_work commit = g->own; /* with the merged pages in place of this rank's */
    commit.pages = m->pages;
    commit.npages = m->npages;
    commit.merged = m->merged;
    commit.merged_sums = m->merged_sums;
    commit.nmerged = m->nmerged;
    esdm__marked_source marked = {.container = g->own.container, .source = g->source};
    esdm__page_source_expect(g->source, g->own.pages, g->own.npages);
    if (status == ESDM_OK)
        status = esdm__page_source_begin(g->source, err);
    if (status == ESDM_OK)
        status = esdm__page_source_gather(g->source, GATHERED_BYTES, err);
    if (status == ESDM_OK)
        status = esdm__commit_publish(&commit, g->message, esdm__page_source_next_marked, &marked,
                                      &g->committed, err);
    esdm__page_source_end(g->source);
    g->own.newer = commit.newer;
    return status;
}

/* Looks at the pages of all ranks, which they send for that, whatever the status. */
static esdm_status
look(work *g, esdm_status status, esdm_error *err)
{
    esdm__marked_source marked = {.container = g->own.container, .source = g->source};
    esdm__page_source_expect(g->source, g->own.pages, g->own.npages);
    if (status == ESDM_OK)
        status = esdm__page_source_begin(g->source, err);
    if (status == ESDM_OK)
        status = esdm__collective_look(&g->own, &marked, err);
    esdm__page_source_end(g->source);
    return status;
}

/* What comes before the last round. @return whether another one follows. */
static bool
goes_on(work *g, esdm_status *status, esdm_error *err)
{
    bool looks = g->must_look;
    g->must_look = false;
    *status = looks ? look(g, *status, err) : publish(g, *status, err);
    if (looks)
        return *status == ESDM_OK;
    if (*status != ESDM_ECONFLICT)
        return false;
    g->must_look = g->own.newer != 0;
    bool stale = !g->must_look && g->merging.nmerged > 0; /* another writer merged first */
    if (stale)
        esdm__merging_clear(&g->merging);
    return g->must_look || stale;
}

/* ---- afterwards --------------------------------------------------------------------------- */

/* Ends the epochs that were committed, of datasets that this rank has written. */
static void
reset_epochs(const esdm__commit_work *w)
{
    for (size_t i = 0; i < w->ndatasets; i++)
        esdm__epochs_clear(esdm__commit_io_of(w, i)->epochs);
}

/* Those of all others, without fragments of this rank. At the end, as write locks are taken in
 * order of id: while those of a commit are held, no other one is. */
static void
reset_other_epochs(esdm__commit_work *w)
{
    esdm__commit_unlock(w);
    for (size_t i = 0; i < w->container->datasets.count; i++) {
        esdm_dataset *dataset = w->container->datasets.items[i];
        esdm__dataset_io *io = esdm__dataset_io_find(dataset);
        if (io == NULL)
            continue;
        /* Another thread may be writing the first one. */
        if (!esdm__commit_holds(w, dataset)) {
            (void) pthread_mutex_lock(&io->write_lock);
            io->epochs->count = 0;
            (void) pthread_mutex_unlock(&io->write_lock);
        }
        esdm__dataset_io_put(dataset);
    }
}

/* Moves to where rank 0 has moved, whose pin is all ranks'. */
static void
move_along(work *g)
{
    esdm__container_io *io = g->own.io;
    esdm_container *container = g->own.container;
    const esdm_session *session = io->session;
    bool was_pinned = io->pinned;
    uint64_t record = io->record;
    io->pinned = false; /* it may have caught up by itself, and pinned that */
    uint64_t left =
        esdm__container_set_position(container, g->committed.container, g->news->snapshot);
    esdm__commit_forget(&g->own);
    esdm__lengths_apply(container, g->own.lengths, g->own.nlengths);
    esdm__lengths_set_published(container, g->own.lengths, g->own.nlengths);
    g->own.lengths = NULL;
    if (was_pinned)
        session->meta->unpin(session->store, record, left);
}

static void
check_packs(work *g, uint64_t record)
{
    g->gone.status = esdm__commit_check(&g->own, record, &g->gone);
}

static void
adopt(work *g)
{
    check_packs(g, g->committed.container);
    esdm__pack_set *packs = __atomic_load_n(&g->own.io->packs, __ATOMIC_ACQUIRE);
    if (packs != NULL)
        esdm__pack_set_committed(packs);
    reset_epochs(&g->own);
    g->adopted = true;
    esdm__commit_clean(&g->own);
    if (g->comm->rank != 0)
        move_along(g);
    if (g->own.container->structure_dirty) {
        g->own.io->structure = g->committed.structure;
        g->own.container->structure_dirty = false;
    }
}

/* The published lengths, on rank 0. */
static void
copy_lengths(const work *g)
{
    esdm__container_io *io = g->own.io;
    const esdm_container *container = g->own.container;
    size_t next = 0;
    size_t at = 0;
    (void) pthread_mutex_lock(&io->lock);
    for (size_t i = 0; i < container->dimensions.count; i++) {
        const esdm_dimension *dimension = container->dimensions.items[i];
        if (!dimension->unlimited)
            continue;
        while (next < io->npublished && io->published[next].dimension < dimension->id)
            next++;
        bool known = next < io->npublished && io->published[next].dimension == dimension->id;
        g->news->lengths[at++] = known ? io->published[next].length : 0;
    }
    (void) pthread_mutex_unlock(&io->lock);
}

/* ---- steps 4 to 7 ------------------------------------------------------------------------- */

/* Rank 0: publishes, moves its handle, which tells the snapshot and the lengths, and tells all. */
static esdm_status
lead(work *g, esdm_status status, esdm_error *err)
{
    if (goes_on(g, &status, err)) {
        tell(g, COMMAND_AGAIN);
        return ESDM_OK;
    }
    g->answered = true;
    if (status == ESDM_OK) {
        esdm__commit_move(&g->own, &g->committed, true);
        copy_lengths(g);
        g->news->committed = g->committed;
        g->news->snapshot = g->own.io->snapshot;
        adopt(g);
        g->news->doubt = esdm__writer_take_doubt(g->own.io);
    } else {
        g->news->failure = *err;
        g->news->failure.status = status;
    }
    tell(g, COMMAND_END);
    return status;
}

/* The other ranks: send their pages and those of the ranks below them, whatever the status. */
static void
pass_pages(work *g, esdm_status status, const esdm_error *err)
{
    esdm_error why = {0};
    esdm_error failure = {0};
    if (status != ESDM_OK) {
        failure = *err;
        (void) esdm__error_prefix(&failure, status, "rank %d cannot make its index pages",
                                  g->comm->rank);
    }
    esdm__page_source_expect(g->source, g->own.pages, g->own.npages);
    if (failure.status == ESDM_OK)
        failure.status = esdm__page_source_begin(g->source, &failure);
    (void) note_unheard(g,
                        esdm__pages_send(g->comm, g->own.io->tree.parent, &failure,
                                         esdm__page_source_next, g->source, &why),
                        &why);
    esdm__page_source_end(g->source);
}

/* The other ranks: send pages and hear what becomes of them. @param status of the pages. */
static esdm_status
follow(work *g, esdm_status status, esdm_error *err)
{
    esdm__commit_work *w = &g->own;
    esdm_error why = {0};
    pass_pages(g, status, err);
    status =
        note_unheard(g, g->comm->ops->broadcast(g->comm, g->news, g->news_bytes, 0, &why), &why);
    if (status != ESDM_OK) {
        g->news->command = COMMAND_END;
        return ESDM_OK; /* what to return is told in the end */
    }
    if (g->news->command == COMMAND_AGAIN)
        return ESDM_OK;
    g->answered = true;
    if (g->news->failure.status != ESDM_OK) {
        *err = g->news->failure;
        return err->status;
    }
    for (size_t i = 0; i < w->nlengths; i++)
        w->lengths[i].length = g->news->lengths[i];
    g->committed = g->news->committed;
    esdm__writer_tell_doubt(g->own.io, g->news->doubt);
    adopt(g);
    return ESDM_OK;
}

/* What one rank has lost, or has not heard, all are told. After the latter the handles are of no
 * more use: one of them may have missed the commit. In a round that is not the last one, a rank
 * that misses the answer goes on like the others, and tells them in the next. */
static esdm_status
conclude(work *g, esdm_error *err)
{
    uint64_t unheard = g->unheard.status != ESDM_OK;
    bool lost = false;
    esdm_error told = unheard != 0 ? g->unheard : g->gone;
    esdm_status status = esdm__comm_agree_twice(g->comm, told.status, &unheard, &lost, &told);
    if (lost)
        (void) note_unheard(g, status, &told);
    if (unheard != 0) {
        status = esdm__error_prefix(
            &told, ESDM_EIO, "the ranks may not know the same of it any more, open it again");
        g->own.io->parted = told;
    }
    if (status != ESDM_OK)
        *err = told;
    return status;
}

/* ---- the call ----------------------------------------------------------------------------- */

/* Memory for what is exchanged later; then the ranks need not agree on that any more. */
static esdm_status
reserve(work *g, esdm_error *err)
{
    esdm__commit_work *w = &g->own;
    size_t count = w->container->dimensions.count;
    g->news_bytes = sizeof *g->news + count * sizeof g->news->lengths[0];
    g->news = calloc(1, g->news_bytes);
    g->lengths =
        calloc(count + 2 + ESDM__RANGES_NUMBERS * w->container->datasets.count, sizeof *g->lengths);
    if (g->news == NULL || g->lengths == NULL)
        return esdm__error_nomem(err, g->news_bytes, "a commit");
    esdm_status status = esdm__lengths_collect(w->container, &w->lengths, &w->nlengths, err);
    if (status == ESDM_OK)
        status = esdm__orders_count(&g->orders, g->all, w->container->datasets.count, w->datasets,
                                    w->ndatasets, err);
    if (status == ESDM_OK)
        status = esdm__page_source_new(g->comm, &w->io->tree, &g->source, err);
    return status;
}

/* Steps 1 and 2. *ret_changed: whether any rank has something to publish; *ret_unanswered: whether
 * one does not know what became of its packs. */
static esdm_status
prepare(work *g, esdm_status status, bool *ret_changed, bool *ret_unanswered, esdm_error *err)
{
    esdm__commit_work *w = &g->own;
    if (status == ESDM_OK)
        status = esdm__commit_settle_writes(w, err);
    if (w->io->hands_over) /* all of it is where it is stored, before packs are ended */
        status = esdm__comm_agree(g->comm, status, err);
    if (status == ESDM_OK)
        status = esdm__commit_settle_packs(w, err);
    const esdm__pack_set *packs = __atomic_load_n(&w->io->packs, __ATOMIC_ACQUIRE);
    if (status == ESDM_OK)
        status = reserve(g, err);
    uint64_t values[4] = {0, status == ESDM_OK && esdm__commit_has_changes(w),
                          w->container->structure_dirty,
                          packs != NULL && esdm__pack_set_is_unanswered(packs)};
    status = esdm__comm_agree_on(g->comm, status, values, 3, err);
    *ret_changed = values[1] != 0;
    *ret_unanswered = values[3] != 0;
    if (status == ESDM_OK && values[2] != 0)
        status = esdm__collective_compare(w->container, err);
    return status;
}

/* Step 3, as far as the ranks have to talk. */
static esdm_status
exchange(work *g, esdm_error *err)
{
    esdm__commit_work *w = &g->own;
    esdm_status status = esdm__writer_check(w, err);
    for (size_t i = 0; i < w->nlengths; i++)
        g->lengths[i + 1] = w->lengths[i].length;
    g->lengths[w->nlengths + 1] =
        status == ESDM_OK ? esdm__writer_take_doubt(g->own.io) : ESDM__WRITER_SEEN;
    g->bounds = g->lengths + w->nlengths + 2;
    esdm__ranges_tell(w, &g->orders, g->bounds);
    status =
        esdm__orders_exchange(&g->orders, g->comm, status, g->lengths,
                              w->nlengths + 1 + ESDM__RANGES_NUMBERS * g->orders.ndatasets, err);
    for (size_t i = 0; i < w->nlengths && status == ESDM_OK; i++)
        w->lengths[i].length = g->lengths[i + 1];
    if (status != ESDM_OK)
        return status;
    esdm__lengths_apply(w->container, w->lengths, w->nlengths);
    return esdm__writer_check_others(w->io, g->lengths[w->nlengths + 1], err);
}

/* Nothing is to be published, but somebody does not know what became of what was. Rank 0 asks. */
static void
check_earlier(work *g)
{
    esdm_error why = {0};
    if (g->comm->rank == 0)
        check_packs(g, g->own.io->record);
    uint64_t doubt = esdm__writer_take_doubt(g->own.io);
    (void) note_unheard(g, g->comm->ops->broadcast(g->comm, &doubt, sizeof doubt, 0, &why), &why);
    esdm__writer_tell_doubt(g->own.io, doubt);
    if (g->comm->rank != 0)
        check_packs(g, g->own.io->record);
}

/* Step 3, as far as each rank is on its own. */
static esdm_status
make_pages(work *g, esdm_error *err)
{
    esdm_status status = esdm__orders_apply(&g->orders, err);
    if (status == ESDM_OK)
        status = encode_own(g, err);
    if (status == ESDM_OK && g->comm->rank == 0)
        status = esdm__commit_describe(&g->own, err);
    if (status == ESDM_OK && g->comm->rank == 0)
        status = esdm__ranges_enter(&g->own, &g->orders, g->bounds, err);
    if (status == ESDM_OK && g->comm->rank == 0)
        status = g->own.io->record != 0 ? esdm__merging_begin(&g->merging, &g->orders, g->all, err)
                                        : ESDM_OK;
    return status;
}

/* Steps 3 to 7. */
static esdm_status
publish_all(work *g, esdm_error *err)
{
    const esdm_error *parted = &g->own.io->parted;
    esdm_error lost = {0};
    esdm_status concluded;
    esdm_status status = exchange(g, err);
    if (status != ESDM_OK)
        return status;
    esdm_status made = make_pages(g, err); /* a rank that fails says so in place of its pages */
    if (made == ESDM_OK && g->comm->rank == 0)
        made = esdm__opened_reserve(g->own.io, err);
    g->must_look = g->comm->rank == 0 && esdm__collective_must_look(&g->own);
    esdm__pack_set *packs = __atomic_load_n(&g->own.io->packs, __ATOMIC_ACQUIRE);
    if (packs != NULL)
        esdm__pack_set_offer(packs, true);
    do {
        status = g->comm->rank == 0 ? lead(g, made, err) : follow(g, made, err);
        concluded = conclude(g, &lost);
    } while (g->news->command == COMMAND_AGAIN && parted->status == ESDM_OK);
    if (packs != NULL && g->answered && (status == ESDM_OK || esdm__commit_is_refused(status)))
        esdm__pack_set_offer(packs, false);
    if (status == ESDM_OK && g->comm->rank == 0)
        esdm__collective_ranges(g->own.container, g->own.document != NULL);
    if (status != ESDM_OK || concluded == ESDM_OK)
        return status;
    *err = lost;
    return concluded;
}

static esdm_status
commit_locked(work *g, esdm_status status, esdm_error *err)
{
    bool changed = false;
    bool unanswered = false;
    esdm_status together = esdm__collective_check(g->own.container, err);
    if (together != ESDM_OK)
        return together;
    status = prepare(g, status, &changed, &unanswered, err);
    if (status != ESDM_OK)
        return status;
    if (changed)
        return publish_all(g, err);
    if (!unanswered)
        return ESDM_OK;
    check_earlier(g);
    return conclude(g, err);
}

esdm_status
esdm__collective_commit(esdm_container *container, const char *message, esdm_error *err)
{
    work g = {.own = {.container = container},
              .comm = esdm__io_of(container)->comm,
              .message = message,
              .all = (esdm_dataset *const *) container->datasets.items};
    esdm_error mine = {0};
    mine.status = esdm__commit_begin(&g.own, &mine);
    esdm_status status = commit_locked(&g, mine.status, &mine);
    if (g.adopted)
        reset_other_epochs(&g.own);
    esdm__commit_end(&g.own);
    esdm__orders_clear(&g.orders);
    esdm__merging_clear(&g.merging);
    esdm__page_source_free(g.source);
    free(g.lengths);
    free(g.news);
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = mine;
        return esdm__error_prefix(err, status, "commit of container '%s'", container->name);
    }
    if (g.committed.replaced != 0 && g.comm->rank == 0)
        esdm__session_replaced(esdm__io_of(container)->session);
    return ESDM_OK;
}
