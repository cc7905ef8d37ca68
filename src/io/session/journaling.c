/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/journaling.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/session/backups.h"
#include "journal/journal.h"

/* ---- the journal of a session --------------------------------------------------------------- */

/* Targets in the order in which the journal tries them. */
typedef struct esdm__journal_targets {
    esdm_session *session;
    size_t count;
    size_t order[];
} journal_targets;

/* 0: best; those that nobody else sees, or that end with the process, hold no journal. */
static int
rank_of(const esdm__target *target)
{
    const esdm_data_plugin *plugin = target->plugin;
    if (target->local || (plugin->flags & ESDM_DATA_VOLATILE) != 0)
        return -1;
    if ((plugin->flags & ESDM_DATA_READ_UNSEALED) != 0)
        return 0;
    return plugin->concurrency > 0 ? 2 : 1;
}

static const esdm_data_plugin *
plugin_of(void *user, size_t i)
{
    const journal_targets *targets = user;
    return targets->session->targets[targets->order[i]].plugin;
}

static esdm_status
open_target(void *user, size_t i, esdm__journal_target *ret_target, esdm_error *err)
{
    const journal_targets *targets = user;
    esdm__target *target = &targets->session->targets[targets->order[i]];
    esdm_status status = esdm__target_need(targets->session, target, err);
    if (status == ESDM_OK)
        *ret_target = (esdm__journal_target){
            .plugin = target->plugin, .handle = target->handle, .name = target->name};
    return status;
}

static void
start(esdm_session *session)
{
    journal_targets *targets =
        calloc(1, sizeof *targets + session->ntargets * sizeof targets->order[0]);
    if (targets == NULL)
        return;
    targets->session = session;
    for (int rank = 0; rank <= 2; rank++) {
        for (size_t i = 0; i < session->ntargets; i++) {
            if (rank_of(&session->targets[i]) == rank)
                targets->order[targets->count++] = i;
        }
    }
    const esdm__journal_host host = {.ntargets = targets->count,
                                     .plugin = plugin_of,
                                     .open = open_target,
                                     .user = targets,
                                     .durable = session->site->durability == ESDM__DURABLE_SYSTEM};
    session->journal = targets->count > 0 ? esdm__journal_new(&host) : NULL;
    session->journal_targets = targets;
    if (session->journal == NULL && targets->count > 0) {
        session->journal_targets = NULL; /* another time */
        free(targets);
    }
}

/* NULL: nothing is noted. */
static struct esdm__journal *
journal_of(esdm_session *session)
{
    if (!session->site->journal || session->read_only)
        return NULL;
    (void) pthread_mutex_lock(&session->writer_lock);
    if (session->journal_targets == NULL)
        start(session);
    esdm__journal *journal = session->journal;
    (void) pthread_mutex_unlock(&session->writer_lock);
    return journal;
}

static void
enter(esdm_session *session, esdm__buffer *records)
{
    esdm__journal *journal = journal_of(session);
    if (journal != NULL)
        esdm__journal_enter(journal, records);
    else
        esdm__buffer_clear(records);
    atomic_store(&session->changed, true);
}

/* ---- commits -------------------------------------------------------------------------------- */

/* Many pages of many ranks need not all be in memory. */
static void
enter_part(esdm__noting *n)
{
    esdm__buffer record;
    char id[ESDM__UUID_BYTES];
    esdm__buffer_init(&record);
    if (n->entry.id == 0) {
        esdm__uuid_new(id);
        id[15] = '\0';
        n->entry.id = strtoull(id, NULL, 16) | 1;
    }
    esdm__journal_put_part(&record, esdm__now_ns(), n->uuid, n->entry.id, &n->entry.pages);
    enter(n->session, &record);
    n->entry.pages.bytes = 0;
}

static esdm_status
next_page(void *user, const esdm_meta_new_page **ret_page, esdm_error *err)
{
    esdm__noting *n = user;
    esdm_status status = n->source(n->source_user, ret_page, err);
    if (status == ESDM_OK && *ret_page != NULL) {
        esdm__journal_put_page(&n->entry.pages, *ret_page, 0, 0);
        if (n->entry.pages.bytes >= ESDM__JOURNAL_PART_BYTES)
            enter_part(n);
    }
    return status;
}

void
esdm__noting_begin(esdm__noting *noting, esdm_session *session, esdm_meta_commit *commit,
                   const char *uuid)
{
    *noting = (esdm__noting){.commit = commit, .uuid = uuid};
    esdm__buffer_init(&noting->entry.pages);
    if (journal_of(session) == NULL) {
        atomic_store(&session->changed, true);
        return;
    }
    noting->session = session;
    if (commit->next_page != NULL) {
        noting->source = commit->next_page;
        noting->source_user = commit->next_page_user;
        commit->next_page = next_page;
        commit->next_page_user = noting;
    }
}

void
esdm__noting_end(esdm__noting *noting, esdm_status status, const uint64_t *merged_sums,
                 const esdm_meta_committed *committed)
{
    esdm__noting *n = noting;
    if (n->session != NULL && status == ESDM_OK) {
        esdm__buffer record;
        esdm__buffer_init(&record);
        for (size_t i = 0; i < n->commit->npages; i++)
            esdm__journal_put_page(&n->entry.pages, &n->commit->pages[i], 0, 0);
        esdm__journal_put_commit(&record, n->commit, n->uuid, merged_sums, committed, n->entry.id,
                                 &n->entry.pages);
        enter(n->session, &record);
        esdm__backup_later(n->session);
    }
    esdm__buffer_clear(&n->entry.pages);
}

/* ---- names and moves ------------------------------------------------------------------------ */

static void
note_name(esdm_session *session, const esdm_meta_container *record, const char *name,
          const char *keep_as)
{
    esdm__buffer out;
    esdm__buffer_init(&out);
    esdm__journal_put_name(&out, esdm__now_ns(), record->uuid, name, keep_as);
    enter(session, &out);
}

esdm_status
esdm__named_remove(esdm_session *session, const char *name, uint64_t *ret_container,
                   esdm_error *err)
{
    esdm_meta_container record;
    esdm_status status = session->meta->container_find(session->store, name, &record, err);
    if (status == ESDM_OK)
        status = session->meta->container_remove(session->store, name, ret_container, err);
    if (status == ESDM_OK && *ret_container == record.container)
        note_name(session, &record, NULL, NULL);
    return status;
}

esdm_status
esdm__named_move(esdm_session *session, const char *from, const char *to, bool replace,
                 const char *keep_as, uint64_t *ret_replaced, esdm_error *err)
{
    esdm_meta_container record;
    esdm_status status = session->meta->container_find(session->store, from, &record, err);
    if (status == ESDM_OK)
        status = session->meta->container_move(session->store, from, to, replace, keep_as,
                                               ret_replaced, err);
    if (status == ESDM_OK)
        note_name(session, &record, to, keep_as);
    return status;
}

void
esdm__note_moved(esdm_session *session, const char *uuid, const esdm_meta_relocation *pages,
                 const uint64_t *sums, size_t npages)
{
    esdm__buffer record;
    size_t count = 0;
    esdm__buffer_init(&record);
    size_t start_at = esdm__journal_start(&record, ESDM__JOURNAL_MOVED, esdm__now_ns(), uuid);
    for (size_t i = 0; i < npages; i++) {
        if (!pages[i].moved)
            continue;
        esdm__buffer_put_u64(&record, sums[i]);
        esdm__journal_put_blob(&record, pages[i].data, pages[i].bytes);
        count++;
    }
    esdm__journal_finish(&record, start_at);
    if (count > 0)
        enter(session, &record);
    else
        esdm__buffer_clear(&record);
}

/* ---- the end -------------------------------------------------------------------------------- */

void
esdm__journaling_settle(esdm_session *session)
{
    bool whole = session->journal == NULL || esdm__journal_settle(session->journal);
    esdm__backup_end(session, !whole);
    if (session->meta->settle != NULL && atomic_load(&session->changed))
        session->meta->settle(session->store);
}

void
esdm__journaling_end(esdm_session *session)
{
    if (atomic_load(&session->changed))
        esdm__journaling_settle(session);
    esdm__journal_free(session->journal);
    free(session->journal_targets);
    session->journal = NULL;
    session->journal_targets = NULL;
}
