/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/journaling.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "io/session/backups.h"
#include "io/session/former.h"
#include "journal/journal.h"
#include "journal/whole.h"
#include "site/catalogue.h"

/* ---- the journal of a session --------------------------------------------------------------- */

/* Targets in the order in which the journal tries them. */
typedef struct esdm__journal_targets {
    esdm_session *session;
    size_t count;
    size_t order[];
} journal_targets;

#define RANKS 6

/* 0: best; those that nobody else sees, or that end with the process, hold no journal. What is to
 * be taken away is the last choice: the journal would go with it. */
static int
rank_of(const esdm__target *target)
{
    const esdm_data_plugin *plugin = target->plugin;
    if (target->local || (plugin->flags & ESDM_DATA_VOLATILE) != 0)
        return -1;
    int last = target->retiring ? RANKS / 2 : 0;
    if ((plugin->flags & ESDM_DATA_READ_UNSEALED) != 0)
        return last;
    return last + (plugin->concurrency > 0 ? 2 : 1);
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
    for (int rank = 0; rank < RANKS; rank++) {
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

/* Once for each session: esdm-mkfs --check says it until a backup has what is missing. Not within a
 * transaction. */
static void
tell_lack(esdm_session *session)
{
    char text[32];
    if (session->meta->fact_put == NULL || atomic_exchange(&session->journal_lacks, true))
        return;
    (void) snprintf(text, sizeof text, "%" PRIu64, esdm__now_ns());
    (void) !session->meta->fact_put(session->store, ESDM__FACT_JOURNAL_LACKS, text, NULL);
}

static void
enter(esdm_session *session, esdm__buffer *records, bool wait)
{
    esdm__journal *journal = journal_of(session);
    if (journal != NULL)
        esdm__journal_enter(journal, records, wait);
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
    enter(n->session, &record, false);
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
    if (commit->kind == ESDM_META_REPLACE &&
        session->meta->container_find(session->store, commit->name, &noting->former, NULL) !=
            ESDM_OK)
        noting->former.container = 0;
    if (commit->next_page != NULL) {
        noting->source = commit->next_page;
        noting->source_user = commit->next_page_user;
        commit->next_page = next_page;
        commit->next_page_user = noting;
    }
}

/* `after_ns`: last change of what the record is about, as the catalogue knows it. The clock of this
 * node may be behind that of another one. */
static void
note_name(esdm_session *session, const char *uuid, uint64_t after_ns,
          const esdm__journal_naming *naming)
{
    esdm__buffer out;
    uint64_t time_ns = esdm__now_ns();
    esdm__buffer_init(&out);
    esdm__journal_put_name(&out, time_ns > after_ns ? time_ns : after_ns + 1, uuid, naming);
    enter(session, &out, true);
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
        /* Without one of its parts it would seem whole: then the journal lacks all of it. */
        if (n->entry.id != 0 && esdm__journal_lacks(n->session->journal))
            esdm__buffer_clear(&record);
        else
            enter(n->session, &record, true);
        if (esdm__journal_lacks(n->session->journal))
            tell_lack(n->session);
        if (committed->replaced != 0 && committed->replaced == n->former.container) {
            const esdm__journal_naming now = {.name = n->commit->keep_as, .from = n->commit->name};
            note_name(n->session, n->former.uuid, n->former.modified_ns, &now);
        }
        esdm__backup_later(n->session);
    }
    esdm__buffer_clear(&n->entry.pages);
}

/* ---- names and moves ------------------------------------------------------------------------ */

/* What the store knows of a record. */
typedef struct sought {
    uint64_t container;
    char uuid[ESDM__UUID_BYTES];        /* "": it is gone */
    char name[ESDM__FORMER_NAME_BYTES]; /* "": none */
} sought;

static bool
note_sought(uint64_t container, const char *uuid, const char *name, void *user)
{
    sought *s = user;
    if (container != s->container)
        return true;
    memcpy(s->uuid, uuid, sizeof s->uuid - 1);
    (void) snprintf(s->name, sizeof s->name, "%s", name != NULL ? name : "");
    return false;
}

/* Somebody has changed names between what was looked up and what was done: all records are looked
 * at, which takes its time. false: it is gone, and the journal lacks something. */
static bool
seek(esdm_session *session, uint64_t container, sought *ret)
{
    struct esdm__journal *journal = journal_of(session);
    *ret = (sought){.container = container};
    esdm_status status = session->meta->record_list(session->store, note_sought, ret, NULL);
    if (status == ESDM_OK && ret->uuid[0] != '\0')
        return true;
    if (journal != NULL)
        esdm__journal_lack(journal);
    return false;
}

esdm_status
esdm__named_remove(esdm_session *session, const char *name, uint64_t *ret_container,
                   esdm_error *err)
{
    esdm_meta_container record;
    sought other;
    const esdm__journal_naming gone = {.from = name};
    esdm_status status = session->meta->container_find(session->store, name, &record, err);
    if (status == ESDM_OK)
        status = session->meta->container_remove(session->store, name, ret_container, err);
    if (status != ESDM_OK)
        return status;
    if (*ret_container == record.container)
        note_name(session, record.uuid, record.modified_ns, &gone);
    else if (seek(session, *ret_container, &other))
        note_name(session, other.uuid, record.modified_ns, &gone);
    return ESDM_OK;
}

/* Notes what is true of both after a move, when it is not sure which of them was moved. A step that
 * does not follow what others note counts as one that came before. */
static void
note_either(esdm_session *session, const esdm_meta_container *before,
            const esdm_meta_container *after, const char *from, const char *to)
{
    sought one;
    if (seek(session, before->container, &one)) {
        const esdm__journal_naming now = {.name = one.name[0] != '\0' ? one.name : NULL,
                                          .from = from};
        note_name(session, one.uuid, before->modified_ns, &now);
    }
    if (after != NULL) {
        const esdm__journal_naming now = {.name = to, .from = from};
        note_name(session, after->uuid, after->modified_ns, &now);
    }
}

static void
note_move(esdm_session *session, const esdm_meta_container *record,
          const esdm_meta_container *former, uint64_t replaced, const esdm__journal_naming *naming)
{
    sought other;
    uint64_t after_ns = record->modified_ns;
    esdm__journal_naming whole = *naming;
    if (replaced != 0 && former != NULL && former->container == replaced) {
        whole.replaced = former->uuid;
        after_ns = former->modified_ns > after_ns ? former->modified_ns : after_ns;
    } else if (replaced != 0 && seek(session, replaced, &other)) {
        whole.replaced = other.uuid;
    }
    note_name(session, record->uuid, after_ns, &whole);
}

esdm_status
esdm__named_move(esdm_session *session, const char *from, const char *to, bool replace,
                 const char *keep_as, const esdm_meta_seen *seen, uint64_t *ret_replaced,
                 esdm_error *err)
{
    const esdm_meta_plugin *meta = session->meta;
    esdm_meta_container record, former, after;
    esdm_status status = meta->container_find(session->store, from, &record, err);
    bool had = status == ESDM_OK && replace &&
               meta->container_find(session->store, to, &former, NULL) == ESDM_OK;
    if (status == ESDM_OK && seen != NULL && meta->container_move_seen != NULL)
        status =
            meta->container_move_seen(session->store, from, to, keep_as, seen, ret_replaced, err);
    else if (status == ESDM_OK)
        status =
            meta->container_move(session->store, from, to, replace, keep_as, ret_replaced, err);
    if (status != ESDM_OK || journal_of(session) == NULL) {
        if (status == ESDM_OK)
            atomic_store(&session->changed, true);
        return status;
    }
    const esdm__journal_naming naming = {.name = to, .keep_as = keep_as, .from = from};
    bool found = meta->container_find(session->store, to, &after, NULL) == ESDM_OK;
    if (found && after.container == record.container)
        note_move(session, &record, had ? &former : NULL, *ret_replaced, &naming);
    else
        note_either(session, &record, found ? &after : NULL, from, to);
    return ESDM_OK;
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
        enter(session, &record, true);
    else
        esdm__buffer_clear(&record);
}

/* ---- tags ----------------------------------------------------------------------------------- */

void
esdm__note_tag(esdm_session *session, const char *stored, uint64_t container,
               const esdm_meta_tag *tag)
{
    esdm_meta_container record;
    esdm__buffer out;
    sought other;
    const char *uuid = NULL;
    atomic_store(&session->changed, true);
    if (journal_of(session) == NULL)
        return;
    if (session->meta->container_find(session->store, stored, &record, NULL) == ESDM_OK &&
        record.container == container)
        uuid = record.uuid;
    else if (seek(session, container, &other))
        uuid = other.uuid;
    if (uuid == NULL) /* it was removed at once */
        return;
    esdm__buffer_init(&out);
    esdm__journal_put_tag(&out, uuid, tag);
    enter(session, &out, true);
    if (esdm__journal_lacks(session->journal))
        tell_lack(session);
}

/* ---- clones --------------------------------------------------------------------------------- */

/* With all that the catalogue knows of it now: what others note of it meanwhile counts as older. */
static bool
note_clone(esdm_session *session, const esdm_meta_clone *clone, const esdm_meta_committed *made)
{
    const esdm__catalogue from = {session->meta, session->store};
    esdm__whole whole = {0};
    esdm__buffer record;
    esdm__buffer_init(&record);
    esdm_status status = esdm__whole_load(&from, clone->name, &whole, NULL);
    bool good = status == ESDM_OK && whole.record.container == made->container &&
                esdm__journal_put_clone(&record, &from, &whole, clone, made, NULL) == ESDM_OK;
    esdm__whole_clear(&whole);
    if (good)
        enter(session, &record, true);
    else
        esdm__buffer_clear(&record);
    return good;
}

esdm_status
esdm__noted_clone(esdm_session *session, const esdm_meta_clone *clone,
                  esdm_meta_committed *ret_made, esdm_error *err)
{
    const esdm_meta_plugin *meta = session->meta;
    struct esdm__journal *journal = journal_of(session);
    esdm_meta_container former = {.container = 0};
    if (journal != NULL && clone->replace &&
        meta->container_find(session->store, clone->name, &former, NULL) != ESDM_OK)
        former.container = 0;
    esdm_status status = meta->clone(session->store, clone, ret_made, err);
    if (status != ESDM_OK)
        return status;
    atomic_store(&session->changed, true);
    if (journal != NULL && !note_clone(session, clone, ret_made))
        esdm__journal_lack(journal); /* it was removed, or exchanged, at once */
    if (journal != NULL && esdm__journal_lacks(journal))
        tell_lack(session);
    if (journal != NULL && ret_made->replaced != 0 && ret_made->replaced == former.container) {
        const esdm__journal_naming now = {.name = clone->keep_as, .from = clone->name};
        note_name(session, former.uuid, former.modified_ns, &now);
    }
    esdm__backup_later(session);
    return ESDM_OK;
}

/* ---- the end -------------------------------------------------------------------------------- */

void
esdm__journaling_settle(esdm_session *session)
{
    bool whole = session->journal == NULL || esdm__journal_settle(session->journal);
    if (!whole)
        tell_lack(session);
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
