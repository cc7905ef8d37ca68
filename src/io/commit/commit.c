/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Commit: settle writes, flush packs, then one metadata transaction. */
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/commit/commit.h"
#include "io/commit/overlap.h"
#include "io/container/access.h"
#include "io/container/lengths.h"
#include "io/container/rounded.h"
#include "io/session/former.h"
#include "io/session/journaling.h"

typedef esdm__commit_work work;

esdm_status
esdm__commit_begin(work *w, esdm_error *err)
{
    w->io = esdm__io_of(w->container);
    (void) pthread_mutex_lock(&w->io->commit_lock);
    (void) pthread_mutex_lock(&w->io->lock);
    size_t count = w->io->ndirty;
    esdm_dataset **copy = malloc((count + 1) * sizeof *copy);
    if (copy != NULL && count > 0)
        memcpy(copy, w->io->dirty, count * sizeof *copy);
    (void) pthread_mutex_unlock(&w->io->lock);
    if (copy == NULL)
        return esdm__error_nomem(err, count * sizeof *copy, "a commit");
    qsort(copy, count, sizeof(esdm_dataset *), esdm__dataset_by_id);
    w->datasets = copy;
    w->ndatasets = count;
    for (size_t i = 0; i < count; i++)
        (void) pthread_mutex_lock(&esdm__commit_io_of(w, i)->write_lock);
    return ESDM_OK;
}

void
esdm__commit_unlock(work *w)
{
    for (size_t i = w->unlocked ? 0 : w->ndatasets; i > 0; i--) {
        esdm__dataset_io *io = esdm__commit_io_of(w, i - 1);
        (void) pthread_mutex_lock(&io->lock);
        esdm__dataset_trim_index(w->datasets[i - 1], io);
        (void) pthread_mutex_unlock(&io->lock);
        (void) pthread_mutex_unlock(&io->write_lock);
    }
    w->unlocked = true;
}

void
esdm__commit_end(work *w)
{
    esdm__commit_unlock(w);
    (void) pthread_mutex_unlock(&w->io->commit_lock);
    esdm__container_trim_indexes(w->container, SIZE_MAX);
    esdm__commit_clear_pages(w);
    esdm__attribute_index_clear(&w->attributes);
    esdm__extents_clear(&w->extents);
    free(w->document);
    free(w->lengths);
    free(w->datasets);
}

static esdm_status
settle_writes(work *w, esdm_error *err)
{
    for (size_t i = 0; i < w->ndatasets; i++) {
        esdm__dataset_io *io = esdm__commit_io_of(w, i);
        esdm_error why = {0};
        if (io->failure != NULL)
            why = *io->failure;
        if (why.status == ESDM_OK)
            why.status = esdm__failed_status(&io->failed, &why);
        if (why.status == ESDM_OK)
            why.status = esdm__dataset_flush(w->datasets[i], io, &why);
        if (why.status == ESDM_OK)
            why.status = esdm__rounded_check(w->datasets[i], io, &why);
        if (why.status == ESDM_OK)
            continue;
        if (err != NULL)
            *err = why;
        (void) esdm__dataset_prefix(w->datasets[i], why.status, err);
        return esdm__error_prefix(err, why.status, "nothing is committed");
    }
    return ESDM_OK;
}

esdm_status
esdm__commit_settle_writes(work *w, esdm_error *err)
{
    esdm__pack_set *packs = __atomic_load_n(&w->io->packs, __ATOMIC_ACQUIRE);
    if (packs != NULL)
        esdm__commit_drop_lost(w, packs, NULL);
    return settle_writes(w, err);
}

esdm_status
esdm__commit_settle_packs(work *w, esdm_error *err)
{
    esdm__pack_set *packs = __atomic_load_n(&w->io->packs, __ATOMIC_ACQUIRE);
    if (packs == NULL || !esdm__commit_has_changes(w))
        return ESDM_OK;
    bool durable = w->io->session->site->durability == ESDM__DURABLE_SYSTEM;
    esdm_error why = {0};
    why.status = esdm__pack_set_publish(packs, durable, &why);
    if (why.status == ESDM_OK)
        return esdm__pack_set_check(packs, err);
    if (err != NULL)
        *err = why;
    if (!esdm__commit_drop_lost(w, packs, &why))
        return why.status; /* the next commit tries once more */
    esdm_status status = settle_writes(w, err);
    return status != ESDM_OK ? status : why.status;
}

esdm_status
esdm__commit_settle(work *w, esdm_error *err)
{
    esdm_status status = esdm__commit_settle_writes(w, err);
    return status == ESDM_OK ? esdm__commit_settle_packs(w, err) : status;
}

/* ---- pages -------------------------------------------------------------------------------- */

esdm_status
esdm__merge_begin(esdm_dataset *dataset, esdm__dataset_io *io, bool hiding, esdm__merge *ret_merge,
                  esdm_error *err)
{
    esdm__merge *m = ret_merge;
    (void) pthread_mutex_lock(&io->lock);
    /* Storing anew is for the sake of what is hidden. */
    bool first = hiding && esdm__io_of(dataset->group->container)->opened.guards_all;
    esdm_status status = ESDM_OK;
    if (first) {
        esdm__index_free_little(io->index);
        m->hidden = true;
        status = esdm__index_hidden_candidates(io->index, &m->pages, &m->count, err);
    }
    if (status == ESDM_OK && (!first || m->count == 0)) {
        if (first)
            free(m->pages);
        m->hidden = false;
        status = esdm__index_merge_candidates(io->index, &m->pages, &m->count, err);
    }
    if (status == ESDM_OK && m->count == 0 && hiding && !first) {
        free(m->pages);
        m->hidden = true;
        status = esdm__index_hidden_candidates(io->index, &m->pages, &m->count, err);
    }
    (void) pthread_mutex_unlock(&io->lock);
    if (status != ESDM_OK || m->count == 0)
        return status;
    m->held = calloc(m->count, sizeof(esdm__page *));
    if (m->held == NULL)
        return esdm__error_nomem(err, m->count * sizeof(esdm__page *), "merged index pages");
    return esdm__dataset_load_pages(dataset, io, m->pages, m->count, m->held, err);
}

bool
esdm__merge_is_ready(const esdm__merge *merge, const esdm__dataset_io *io)
{
    return io->directory_loaded && esdm__index_has_loaded(io->index, merge->pages, merge->count);
}

void
esdm__merge_clear(esdm__merge *merge)
{
    if (merge->held != NULL)
        esdm__dataset_release_pages(merge->held, merge->count);
    free(merge->held);
    free(merge->pages);
    *merge = (esdm__merge){0};
}

static esdm_status
encode_dataset(work *w, size_t i, bool merge, esdm_error *err)
{
    esdm__dataset_io *io = esdm__commit_io_of(w, i);
    esdm__merge m = {0};
    esdm_status status;
    bool again = false;
    do { /* pages whose fragments are stored elsewhere meanwhile have other numbers */
        esdm__merge_clear(&m);
        status = esdm__dataset_load_directory(w->datasets[i], io, err);
        if (status == ESDM_OK && merge)
            status = esdm__merge_begin(w->datasets[i], io, true, &m, err);
        (void) pthread_mutex_lock(&io->lock);
        again = status == ESDM_OK && !esdm__merge_is_ready(&m, io);
        if (status == ESDM_OK && !again)
            status = m.hidden
                         ? esdm__index_encode_hidden(io->index, m.pages, m.count, &w->sets[i], err)
                         : esdm__index_encode(io->index, m.pages, m.count, &w->sets[i], err);
        (void) pthread_mutex_unlock(&io->lock);
    } while (again);
    esdm__merge_clear(&m);
    for (size_t k = 0; k < w->sets[i].npages; k++)
        w->sets[i].pages[k].dataset = w->datasets[i]->id;
    w->npages += w->sets[i].npages;
    w->nmerged += w->sets[i].nmerged;
    return status;
}

void
esdm__commit_clear_pages(work *w)
{
    for (size_t i = 0; w->sets != NULL && i < w->ndatasets; i++)
        esdm__page_set_clear(&w->sets[i]);
    free(w->sets);
    free(w->pages);
    free(w->merged);
    free(w->merged_sums);
    w->sets = NULL;
    w->pages = NULL;
    w->merged = NULL;
    w->merged_sums = NULL;
    w->npages = 0;
    w->nmerged = 0;
}

static esdm_status
encode_pages(work *w, bool merge, esdm_error *err)
{
    esdm__commit_clear_pages(w);
    w->sets = calloc(w->ndatasets + 1, sizeof *w->sets);
    if (w->sets == NULL)
        return esdm__error_nomem(err, w->ndatasets * sizeof *w->sets, "a commit");
    for (size_t i = 0; i < w->ndatasets; i++) {
        esdm_status status = encode_dataset(w, i, merge, err);
        if (status != ESDM_OK)
            return status;
    }
    w->pages = malloc((w->npages + 1) * sizeof *w->pages);
    w->merged = malloc((w->nmerged + 1) * sizeof *w->merged);
    w->merged_sums = malloc((w->nmerged + 1) * sizeof *w->merged_sums);
    if (w->pages == NULL || w->merged == NULL || w->merged_sums == NULL)
        return esdm__error_nomem(err, w->npages * sizeof *w->pages, "a commit");
    size_t page = 0;
    size_t merged = 0;
    for (size_t i = 0; i < w->ndatasets; i++) {
        const esdm__page_set *set = &w->sets[i];
        for (size_t k = 0; k < set->npages; k++)
            w->pages[page++] = set->pages[k];
        for (size_t k = 0; k < set->nmerged; k++) {
            w->merged_sums[merged] = set->merged_sums[k];
            w->merged[merged++] = set->merged[k];
        }
    }
    return ESDM_OK;
}

/* ---- transaction -------------------------------------------------------------------------- */

esdm_status
esdm__commit_describe(work *w, esdm_error *err)
{
    for (size_t i = 0; i < w->ndatasets; i++)
        esdm__access_note(w->datasets[i], esdm__commit_io_of(w, i));
    if (!w->container->structure_dirty && w->io->record != 0)
        return ESDM_OK;
    esdm_status status = esdm__document_write(w->container, &w->document, &w->document_bytes, err);
    if (status == ESDM_OK)
        status = esdm__attribute_index_make(w->container, &w->attributes, err);
    return status;
}

static esdm_meta_commit_kind
kind_of(const esdm__container_io *io)
{
    if (io->record != 0)
        return ESDM_META_UPDATE;
    return io->replace ? ESDM_META_REPLACE : ESDM_META_CREATE;
}

/* The commit that creates a container got no answer: looks whether it took place. Sent again, it
 * would replace the container by itself, and the packs would go with the record that was
 * replaced. */
static esdm_status
settle_doubt(esdm__container_io *io, const char *name, esdm_error *err)
{
    const esdm_session *session = io->session;
    esdm_meta_container found;
    esdm_error why = {0};
    esdm_status status = session->meta->container_find(session->store, name, &found, &why);
    if (status != ESDM_OK && status != ESDM_ENOENT) {
        if (err != NULL)
            *err = why;
        return esdm__error_prefix(err, status, "whether an earlier commit took place is not known");
    }
    if (status == ESDM_OK && strcmp(found.uuid, io->uuid) == 0)
        return esdm__error_set(err, ESDM_EIO,
                               "the earlier commit whose outcome was unknown did take place; open "
                               "the container again and write what came after it");
    io->doubted = false;
    return ESDM_OK;
}

esdm_status
esdm__commit_publish(work *w, const char *message, esdm_meta_page_source source, void *user,
                     esdm_meta_committed *ret_committed, esdm_error *err)
{
    esdm_session *session = w->io->session;
    char former[ESDM__FORMER_NAME_BYTES];
    esdm__retention keep = esdm__site_retention(session->site, w->container->name);
    esdm_meta_commit commit = {
        .kind = kind_of(w->io),
        .name = w->container->name,
        .uuid = w->io->uuid,
        .container = w->io->record,
        .structure = w->io->structure,
        .document = w->document,
        .document_bytes = w->document_bytes,
        .datasets = (uint32_t) w->container->datasets.count,
        .lengths = w->lengths,
        .nlengths = w->nlengths,
        .pages = w->pages,
        .npages = w->npages,
        .next_page = source,
        .next_page_user = user,
        .merged = w->merged,
        .nmerged = w->nmerged,
        .seen = w->seen,
        .ret_newer = &w->newer,
        .attributes = w->attributes.entries,
        .nattributes = w->attributes.count,
        .extents = w->extents.items,
        .nextents = w->extents.count,
        .all_extents = w->extents.all,
        .writer = esdm__session_writer(session),
        .message = message != NULL ? message : "",
        .durable = session->site->durability == ESDM__DURABLE_SYSTEM,
        .history = keep.age_s > 0 ? UINT32_MAX : keep.count,
        .tag = w->io->commit_tag,
        .follows = w->io->commit_follows,
    };
    esdm_status status = ESDM_OK;
    uint64_t *shares = NULL;
    if (commit.kind == ESDM_META_REPLACE)
        commit.keep_as = esdm__former_name(session, commit.name, false, former);
    if (w->io->doubted)
        status = settle_doubt(w->io, w->container->name, err);
    w->newer = 0;
    if (status == ESDM_OK)
        status = esdm__container_shares(w->container, &shares, &commit.nshares, err);
    if (status != ESDM_OK)
        return status;
    commit.shares = shares;
    esdm__noting noting;
    esdm__noting_begin(&noting, session, &commit, w->io->uuid);
    esdm__span span;
    esdm__span_begin(&span, session->monitor);
    status = session->meta->commit(session->store, &commit, ret_committed, err);
    if (status == ESDM_ENOSPC && source == NULL && esdm__former_relieve(session))
        status = session->meta->commit(session->store, &commit, ret_committed, err);
    esdm__container_observed(w->container, &span, ESDM__SPAN_CATALOG, status);
    esdm__noting_end(&noting, status, w->merged_sums, ret_committed);
    free(shares);
    w->io->doubted = w->io->record == 0 && status != ESDM_OK && !esdm__commit_is_refused(status);
    return status;
}

esdm_status
esdm__commit_check_overlap(work *w, const esdm_meta_new_page *pages, size_t npages, esdm_error *err)
{
    uint64_t seen = 0;
    esdm_status status = esdm__overlap_check(w->container, pages, npages, &seen, err);
    w->overlaps = status == ESDM_ECONFLICT;
    w->seen = seen > w->newer ? seen : w->newer;
    w->newer = 0;
    return status;
}

/* Others may publish between a look at what they did and the transaction: then one looks again. */
static esdm_status
publish_apart(work *w, const char *message, esdm_meta_committed *ret_committed, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    bool apart = esdm__overlap_mark(w->container, w->pages, w->npages);
    w->seen = apart ? esdm__opened_alone_until(w->io) : 0;
    if (apart && w->seen == 0)
        status = esdm__commit_check_overlap(w, w->pages, w->npages, err);
    while (status == ESDM_OK) {
        status = esdm__commit_publish(w, message, NULL, NULL, ret_committed, err);
        if (status != ESDM_ECONFLICT || w->newer == 0)
            return status;
        status = esdm__commit_check_overlap(w, w->pages, w->npages, err);
    }
    return status;
}

/* A merge that another writer did first is no reason to fail: publish without merging. */
static esdm_status
publish_retrying(work *w, const char *message, esdm_meta_committed *ret_committed, esdm_error *err)
{
    esdm_status status = esdm__opened_reserve(w->io, err);
    if (status == ESDM_OK)
        status = publish_apart(w, message, ret_committed, err);
    if (status != ESDM_ECONFLICT || w->nmerged == 0 || w->overlaps)
        return status;
    w->stale = true;
    status = encode_pages(w, false, err);
    return status == ESDM_OK ? publish_apart(w, message, ret_committed, err) : status;
}

bool
esdm__commit_has_changes(const work *w)
{
    if (w->container->structure_dirty || w->io->record == 0 || esdm__lengths_changed(w->container))
        return true;
    if (w->io->commit_always)
        return true;
    for (size_t i = 0; i < w->ndatasets; i++) {
        if (esdm__index_pending_count(esdm__commit_io_of(w, i)->index) > 0)
            return true;
    }
    return false;
}

bool
esdm__commit_is_refused(esdm_status status)
{
    return status == ESDM_ECONFLICT || status == ESDM_EEXIST || status == ESDM_ENOENT ||
           status == ESDM_EACCES || status == ESDM_EINVAL || status == ESDM_ENOTSUP ||
           status == ESDM_ENOSPC;
}

/* The answer of the store may get lost: until it certainly refuses, packs must stay. */
static esdm_status
publish_offered(work *w, const char *message, esdm_meta_committed *ret_committed, esdm_error *err)
{
    esdm__pack_set *packs = __atomic_load_n(&w->io->packs, __ATOMIC_ACQUIRE);
    if (packs != NULL)
        esdm__pack_set_offer(packs, true);
    esdm_status status = publish_retrying(w, message, ret_committed, err);
    if (packs != NULL && esdm__commit_is_refused(status))
        esdm__pack_set_offer(packs, false);
    return status;
}

esdm_status
esdm__commit_check(const work *w, uint64_t record, esdm_error *err)
{
    esdm__pack_set *packs = __atomic_load_n(&w->io->packs, __ATOMIC_ACQUIRE);
    esdm_error why = {0};
    bool lost = false;
    if (packs == NULL || esdm__pack_set_check_committed(packs, record, &lost, &why) == ESDM_OK ||
        !lost)
        return ESDM_OK;
    if (err != NULL)
        *err = why;
    return esdm__error_prefix(err, why.status, "it took place, but");
}

/* What an earlier commit could not be told. */
static esdm_status
check_earlier(const work *w, esdm_error *err)
{
    const esdm__pack_set *packs = __atomic_load_n(&w->io->packs, __ATOMIC_ACQUIRE);
    if (packs == NULL || !esdm__pack_set_is_unanswered(packs))
        return ESDM_OK;
    return esdm__commit_check(w, w->io->record, err);
}

static esdm_status
commit_locked(work *w, const char *message, uint64_t *ret_replaced, esdm_error *err)
{
    esdm_status status = esdm__commit_settle(w, err);
    if (status == ESDM_OK && !esdm__commit_has_changes(w))
        return check_earlier(w, err);
    if (status != ESDM_OK)
        return status;
    if (w->io->session->read_only)
        return esdm__error_set(err, ESDM_EACCES, "the site was opened for reading only");
    status = encode_pages(w, true, err);
    if (status == ESDM_OK)
        status = esdm__commit_describe(w, err);
    if (status == ESDM_OK)
        status = esdm__lengths_collect(w->container, &w->lengths, &w->nlengths, err);
    if (status == ESDM_OK)
        status = esdm__extents_of_commit(
            w->container, &(esdm__written){.datasets = w->datasets, .count = w->ndatasets},
            w->document != NULL, &w->extents, err);
    esdm_meta_committed committed = {0};
    if (status == ESDM_OK)
        status = publish_offered(w, message, &committed, err);
    if (status != ESDM_OK)
        return status;
    uint64_t record, before;
    esdm__container_position(w->container, &record, &before);
    *ret_replaced = committed.replaced;
    status = esdm__commit_check(w, committed.container, err);
    esdm__commit_adopt(w, &committed);
    /* This commit has replaced all extents, and did not know what others had published just
     * before it. */
    if (w->extents.all && committed.snapshot != before + 1)
        (void) !esdm__extents_refresh(w->container, false, NULL);
    return status;
}

esdm_status
esdm__commit_alone(esdm_container *container, const char *message, esdm_error *err)
{
    work w = {.container = container};
    uint64_t replaced = 0;
    esdm_status status = esdm__commit_begin(&w, err);
    esdm_session *session = w.io->session;
    if (status == ESDM_OK)
        status = commit_locked(&w, message, &replaced, err);
    esdm__commit_end(&w);
    if (status != ESDM_OK)
        return esdm__error_prefix(err, status, "commit of container '%s'", container->name);
    if (replaced != 0)
        esdm__session_replaced(session);
    return ESDM_OK;
}
