/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Publishing snapshots. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/meta_checks.h"
#include "store.h"
#include "views.h"

/* Old snapshots are looked for at every so many commits of a container. */
#define PRUNE_EVERY 16

/* What the next snapshot of a record will be. */
typedef struct next_state {
    uint64_t container;
    uint64_t snapshot;
    uint64_t structure;
    uint64_t document_at; /* snapshot that holds the document */
    uint64_t next_page;   /* low half of the number of the first new page */
    uint64_t new_pages;   /* how many were inserted */
    uint64_t time_ns;
    void *lengths; /* owned; encoded */
    size_t lengths_bytes;
    uint64_t raw_bytes; /* changes of the sums, modulo 2^64 */
    uint64_t stored_bytes;
    uint64_t fragments;
} next_state;

/* ---- pages of other writers ----------------------------------------------------------------- */

/* A new page, and whether it meets one that its writer does not know. */
typedef struct meeting {
    const esdm_meta_new_page *page;
    uint64_t seen;
    uint64_t snapshot; /* which is being published */
    bool found;
} meeting;

static bool
look_at_page(const esdm_meta_page *page, void *user)
{
    meeting *m = user;
    m->found = page->added > m->seen && page->added < m->snapshot &&
               page->dataset == m->page->dataset &&
               esdm__boxes_meet(m->page->rank, m->page->box, page->rank, page->box);
    return !m->found;
}

static esdm_status
check_apart(sqlite__link *link, const next_state *next, const esdm_meta_commit *commit,
            const esdm_meta_new_page *page, esdm_error *err)
{
    meeting m = {.page = page, .seen = commit->seen, .snapshot = next->snapshot};
    if (commit->kind != ESDM_META_UPDATE || !page->apart || commit->seen >= next->snapshot - 1)
        return ESDM_OK;
    esdm_status status =
        sqlite__visit_kept_pages(link, next->container, page->dataset, look_at_page, &m, err);
    if (status != ESDM_OK || !m.found)
        return status;
    return esdm__newer_pages_meet(commit, next->snapshot - 1, err);
}

/* ---- parts of a transaction ----------------------------------------------------------------- */

static esdm_status
insert_page(sqlite__link *link, next_state *next, const esdm_meta_commit *commit,
            const esdm_meta_new_page *page, esdm_error *err)
{
    void *box = NULL;
    size_t box_bytes = 0;
    if (next->new_pages >= SQLITE__LOW_MAX - next->next_page)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "record %llu has used up its 2^32 index pages; copy the container",
                               (unsigned long long) next->container);
    uint64_t number = sqlite__key(next->container, next->next_page + next->new_pages);
    esdm_status status = check_apart(link, next, commit, page, err);
    if (status == ESDM_OK)
        status = sqlite__box_encode(page->rank, page->box, &box, &box_bytes, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__run(link, SQLITE__PAGE_INSERT, err, "iiiiiiiiib", next->container,
                         (uint64_t) page->dataset, number, (uint64_t) page->records,
                         (uint64_t) page->level, (uint64_t) page->absolute, next->snapshot,
                         page->raw_bytes, page->stored_bytes, box, box_bytes);
    free(box);
    if (status == ESDM_OK)
        status =
            sqlite__run(link, SQLITE__PAGE_DATA_INSERT, err, "iib", number,
                        (uint64_t) page->dataset, page->bytes > 0 ? page->data : "", page->bytes);
    next->new_pages++;
    next->raw_bytes += page->raw_bytes;
    next->stored_bytes += page->stored_bytes;
    next->fragments += page->records;
    return status;
}

static esdm_status
insert_pages(sqlite__link *link, next_state *next, const esdm_meta_commit *commit, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < commit->npages && status == ESDM_OK; i++)
        status = insert_page(link, next, commit, &commit->pages[i], err);
    while (status == ESDM_OK && commit->next_page != NULL) {
        const esdm_meta_new_page *page = NULL;
        status = commit->next_page(commit->next_page_user, &page, err);
        if (status == ESDM_OK && page == NULL)
            break;
        if (status == ESDM_OK)
            status = insert_page(link, next, commit, page, err);
    }
    return status;
}

static esdm_status
insert_snapshot(sqlite__link *link, const next_state *next, const esdm_meta_commit *commit,
                const void *attributes, size_t attributes_bytes, esdm_error *err)
{
    const void *document = commit->document;
    size_t document_bytes = document != NULL ? commit->document_bytes : 0;
    return sqlite__run(link, SQLITE__SNAPSHOT_INSERT, err, "iiiiittbbb",
                       sqlite__key(next->container, next->snapshot), next->snapshot - 1,
                       next->structure, next->document_at, next->time_ns,
                       commit->writer != NULL ? commit->writer : "",
                       commit->message != NULL ? commit->message : "", (const void *) next->lengths,
                       next->lengths_bytes, document, document_bytes, attributes, attributes_bytes);
}

/* ---- new containers ------------------------------------------------------------------------- */

static esdm_status
find_id(sqlite__link *link, const char *name, uint64_t *ret_container, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status = sqlite__prepare(link, SQLITE__CONTAINER_ID, &statement, err, "t", name);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    *ret_container = row ? sqlite__u64(statement, 0) : 0;
    if (row)
        (void) sqlite3_reset(statement);
    return status;
}

/* A record that is sealed is not changed, and keeps its name: `from` until `to`.
 * @param is_commit else its name changes. */
static esdm_status
check_seal(sqlite__link *link, uint64_t container, bool is_commit, const char *from, const char *to,
           esdm_error *err)
{
    bool sealed = false;
    if (!is_commit && esdm__seal_allows_name(from, to))
        return ESDM_OK;
    esdm_status status = sqlite__is_sealed(link, container, &sealed, err);
    if (status != ESDM_OK || !sealed)
        return status;
    return esdm__error_set(err, ESDM_EACCES,
                           "the container is sealed%s%.300s: it is never changed, replaced or "
                           "renamed (esdm-seal --verify tells by whom; esdm-cp makes another one)",
                           from != NULL ? ": " : "", from != NULL ? from : "");
}

esdm_status
sqlite__free_name(sqlite__link *link, const char *name, bool replace, const char *keep_as,
                  uint64_t *ret_replaced, esdm_error *err)
{
    esdm_status status = find_id(link, name, ret_replaced, err);
    if (status != ESDM_OK || *ret_replaced == 0)
        return status;
    if (!replace)
        return esdm__error_set(err, ESDM_EEXIST, "container '%.300s' exists", name);
    status = check_seal(link, *ret_replaced, false, name, keep_as, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__views_named(link, *ret_replaced, name, keep_as, err);
    if (status != ESDM_OK)
        return status;
    if (keep_as != NULL)
        return sqlite__run(link, SQLITE__CONTAINER_RENAME, err, "it", *ret_replaced, keep_as);
    return sqlite__run(link, SQLITE__CONTAINER_UNNAME, err, "i", *ret_replaced);
}

esdm_status
sqlite__last_change(sqlite__link *link, uint64_t container, uint64_t *ret_ns, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__CONTAINER_STATE, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        *ret_ns = sqlite__u64(statement, 5);
        (void) sqlite3_reset(statement);
    }
    return status;
}

/* Enters the container as it will be with the pages that are at hand. */
static esdm_status
insert_container(sqlite__link *link, const esdm_meta_commit *commit, next_state *next,
                 esdm_error *err)
{
    uint64_t raw_bytes = 0;
    uint64_t stored_bytes = 0;
    uint64_t fragments = 0;
    for (size_t i = 0; i < commit->npages; i++) {
        raw_bytes += commit->pages[i].raw_bytes;
        stored_bytes += commit->pages[i].stored_bytes;
        fragments += commit->pages[i].records;
    }
    esdm_status status =
        sqlite__run(link, SQLITE__CONTAINER_INSERT, err, "ttiiiiii", commit->name, commit->uuid,
                    next->next_page + commit->npages, next->time_ns, raw_bytes, stored_bytes,
                    fragments, (uint64_t) commit->datasets);
    if (status != ESDM_OK)
        return status;
    next->raw_bytes -= raw_bytes;
    next->stored_bytes -= stored_bytes;
    next->fragments -= fragments;
    next->container = (uint64_t) sqlite3_last_insert_rowid(link->db);
    if (next->container > SQLITE__CONTAINER_MAX)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "metadata store '%.200s' has used up its 2^31 container numbers",
                               link->label);
    return ESDM_OK;
}

static esdm_status
update_container(sqlite__link *link, const esdm_meta_commit *commit, const next_state *next,
                 esdm_error *err)
{
    const char *types = commit->document != NULL ? "iiiiiiiiii" : "iiiiiiiiin";
    return sqlite__run(link, SQLITE__CONTAINER_UPDATE, err, types, next->container, next->snapshot,
                       next->structure, next->document_at, next->next_page + next->new_pages,
                       next->time_ns, next->raw_bytes, next->stored_bytes, next->fragments,
                       (uint64_t) commit->datasets);
}

/* @param is_free that the name is, in the state that this follows */
static esdm_status
publish_new(sqlite__link *link, const esdm_meta_commit *commit, bool is_free,
            const void *attributes, size_t attributes_bytes, next_state *next,
            uint64_t *ret_replaced, esdm_error *err)
{
    uint64_t former_ns = 0;
    esdm_status status = ESDM_OK;
    next->time_ns = esdm__now_ns();
    next->snapshot = next->structure = next->document_at = next->next_page = 1;
    if (!is_free)
        status = sqlite__free_name(link, commit->name, commit->kind == ESDM_META_REPLACE,
                                   commit->keep_as, ret_replaced, err);
    if (status == ESDM_OK && *ret_replaced != 0)
        status = sqlite__last_change(link, *ret_replaced, &former_ns, err);
    if (next->time_ns <= former_ns) /* the clock of another node is ahead */
        next->time_ns = former_ns + 1;
    if (status == ESDM_OK)
        status = sqlite__lengths_merge(NULL, 0, commit->lengths, commit->nlengths, &next->lengths,
                                       &next->lengths_bytes, err);
    if (status == ESDM_OK)
        status = insert_container(link, commit, next, err);
    if (status == ESDM_OK)
        status = insert_pages(link, next, commit, err);
    if (status == ESDM_OK && next->new_pages > commit->npages)
        status = update_container(link, commit, next, err);
    if (status == ESDM_OK)
        status = insert_snapshot(link, next, commit, attributes, attributes_bytes, err);
    if (status == ESDM_OK)
        status = sqlite__attributes_changed(link, next->container, true, attributes,
                                            attributes_bytes, err);
    if (status == ESDM_OK)
        status = sqlite__extents_put(link, next->container, commit->extents, commit->nextents,
                                     SQLITE__EXTENTS_FIRST, err);
    return status;
}

/* ---- next snapshots ------------------------------------------------------------------------- */

static esdm_status
conflict(const esdm_meta_commit *commit, const char *why, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECONFLICT, "record %llu: %s",
                           (unsigned long long) commit->container, why);
}

/* Reads the head and fills in what follows it. */
static esdm_status
load_head(sqlite__link *link, const esdm_meta_commit *commit, next_state *next, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    esdm_status status =
        sqlite__prepare(link, SQLITE__CONTAINER_STATE, &statement, err, "i", commit->container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status != ESDM_OK)
        return status;
    if (!row)
        return conflict(commit, "the container was removed or replaced by another writer", err);
    uint64_t now_ns = esdm__now_ns();
    bool named = sqlite__u64(statement, 0) != 0;
    next->container = commit->container;
    next->snapshot = sqlite__u64(statement, 1) + 1;
    next->structure = sqlite__u64(statement, 2);
    next->document_at = sqlite__u64(statement, 3);
    next->next_page = sqlite__u64(statement, 4);
    next->time_ns = sqlite__u64(statement, 5);
    next->time_ns = now_ns > next->time_ns ? now_ns : next->time_ns;
    status = sqlite__lengths_merge(sqlite3_column_blob(statement, 6),
                                   (size_t) sqlite3_column_bytes(statement, 6), commit->lengths,
                                   commit->nlengths, &next->lengths, &next->lengths_bytes, err);
    (void) sqlite3_reset(statement);
    if (status != ESDM_OK)
        return status;
    if (!named)
        return conflict(commit, "the container was removed or replaced by another writer", err);
    if (commit->document != NULL && next->structure != commit->structure)
        return conflict(commit, "another writer changed its structure first", err);
    if (next->snapshot > SQLITE__LOW_MAX)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "record %llu has used up its 2^32 snapshots; copy the container",
                               (unsigned long long) commit->container);
    if (commit->document != NULL) {
        next->structure++;
        next->document_at = next->snapshot;
    }
    return ESDM_OK;
}

static esdm_status
retire_page(sqlite__link *link, const esdm_meta_commit *commit, uint64_t page, next_state *next,
            esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    uint64_t dataset = 0;
    if (page >> 32 != commit->container)
        return conflict(commit, "a page to merge belongs to another container", err);
    esdm_status status = sqlite__prepare(link, SQLITE__PAGE_DATASET, &statement, err, "i", page);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        dataset = sqlite__u64(statement, 0);
        (void) sqlite3_reset(statement);
        status = sqlite__prepare(link, SQLITE__PAGE_RETIRE, &statement, err, "iiii",
                                 commit->container, dataset, page, next->snapshot);
        row = false;
        if (status == ESDM_OK)
            status = sqlite__step(link, statement, &row, err);
    }
    if (status != ESDM_OK)
        return status;
    if (!row)
        return conflict(commit, "a page to merge is not live any more", err);
    next->raw_bytes -= sqlite__u64(statement, 0);
    next->stored_bytes -= sqlite__u64(statement, 1);
    next->fragments -= sqlite__u64(statement, 2);
    (void) sqlite3_reset(statement);
    return ESDM_OK;
}

/* That nobody has changed what the commit follows from. */
static esdm_status
check_followed(sqlite__link *link, const esdm_meta_commit *commit, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    bool row = false;
    if (commit->follows == NULL)
        return ESDM_OK;
    esdm_status status = sqlite__prepare(link, SQLITE__CONTAINER_STATE, &statement, err, "i",
                                         commit->follows->container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (status != ESDM_OK)
        return status;
    /* The row of the highest record stays when it is forgotten, without a UUID, so that its number
     * does. */
    bool same = row && sqlite__u64(statement, 9) != 0 &&
                sqlite__u64(statement, 1) == commit->follows->snapshot;
    (void) sqlite3_reset(statement);
    return same ? ESDM_OK : esdm__not_followed(commit, err);
}

static esdm_status
publish_update(sqlite__store *store, const esdm_meta_commit *commit, const void *attributes,
               size_t attributes_bytes, next_state *next, esdm_error *err)
{
    sqlite__link *link = &store->writer;
    esdm_status status = check_followed(link, commit, err);
    if (status == ESDM_OK)
        status = load_head(link, commit, next, err);
    if (status == ESDM_OK)
        status = check_seal(link, next->container, true, NULL, NULL, err);
    for (size_t i = 0; i < commit->nmerged && status == ESDM_OK; i++)
        status = retire_page(link, commit, commit->merged[i], next, err);
    if (status == ESDM_OK)
        status = insert_pages(link, next, commit, err);
    if (status == ESDM_OK)
        status = insert_snapshot(link, next, commit, attributes, attributes_bytes, err);
    if (status == ESDM_OK)
        status = update_container(link, commit, next, err);
    if (status == ESDM_OK && commit->document != NULL)
        status = sqlite__attributes_changed(link, next->container, false, attributes,
                                            attributes_bytes, err);
    if (status == ESDM_OK)
        status = sqlite__extents_put(
            link, next->container, commit->extents, commit->nextents,
            commit->all_extents ? SQLITE__EXTENTS_ALL : SQLITE__EXTENTS_SOME, err);
    if (status == ESDM_OK && next->snapshot % PRUNE_EVERY == 0)
        status = sqlite__prune(store, next->container, next->snapshot, commit->history,
                               next->time_ns, err);
    return status;
}

/* ---- commit --------------------------------------------------------------------------------- */

esdm_status
sqlite__commit(void *self, const esdm_meta_commit *commit, esdm_meta_committed *ret_committed,
               esdm_error *err)
{
    sqlite__store *store = self;
    void *attributes = NULL;
    size_t attributes_bytes = 0;
    uint64_t replaced = 0;
    next_state next = {0};
    sqlite__log_state followed;
    esdm_status status = esdm__check_commit(commit, SQLITE__CONTAINER_MAX, err);
    if (status == ESDM_OK && commit->document != NULL)
        status = sqlite__attributes_encode(commit->attributes, commit->nattributes, &attributes,
                                           &attributes_bytes, err);
    if (status == ESDM_OK)
        status = sqlite__begin_write(store, commit->durable, err);
    if (status != ESDM_OK) {
        free(attributes);
        return status;
    }
    sqlite__state_followed(&store->writer, &followed);
    if (commit->kind == ESDM_META_UPDATE)
        status = publish_update(store, commit, attributes, attributes_bytes, &next, err);
    else
        status =
            publish_new(&store->writer, commit, sqlite__absent_at(store, &followed, commit->name),
                        attributes, attributes_bytes, &next, &replaced, err);
    if (status == ESDM_OK)
        status =
            sqlite__share_all(&store->writer, next.container, commit->shares, commit->nshares, err);
    if (status == ESDM_OK)
        status =
            sqlite__tag_committed(&store->writer, next.container, next.snapshot, commit->tag, err);
    status = sqlite__end_write(store, status, err);
    free(attributes);
    free(next.lengths);
    if (status != ESDM_OK)
        return status;
    sqlite__absent_follow(store, &followed, commit->name, commit->keep_as);
    *ret_committed = (esdm_meta_committed){
        .container = next.container,
        .snapshot = next.snapshot,
        .structure = next.structure,
        .time_ns = next.time_ns,
        .replaced = replaced,
        .first_page = sqlite__key(next.container, next.next_page),
    };
    return status;
}

/* ---- names ---------------------------------------------------------------------------------- */

static esdm_status
no_container(const char *name, esdm_error *err)
{
    return esdm__error_set(err, ESDM_ENOENT, "there is no container '%.300s'", name);
}

esdm_status
sqlite__container_remove(void *self, const char *name, uint64_t *ret_container, esdm_error *err)
{
    sqlite__store *store = self;
    uint64_t container = 0;
    esdm_status status = sqlite__begin_write(store, store->flushes, err);
    if (status != ESDM_OK)
        return status;
    status = sqlite__free_name(&store->writer, name, true, NULL, &container, err);
    if (status == ESDM_OK && container == 0)
        status = no_container(name, err);
    status = sqlite__end_write(store, status, err);
    if (status == ESDM_OK)
        *ret_container = container;
    return status;
}

/* That nobody has replaced or changed it since. @param seen NULL: whatever it is now. */
static esdm_status
check_seen(sqlite__link *link, const char *name, const esdm_meta_seen *seen, esdm_error *err)
{
    sqlite3_stmt *statement = NULL;
    uint64_t container = 0;
    bool row = false;
    if (seen == NULL)
        return ESDM_OK;
    esdm_status status = find_id(link, name, &container, err);
    if (status != ESDM_OK || container == 0)
        return status;
    uint64_t snapshot = 0;
    status = sqlite__prepare(link, SQLITE__CONTAINER_STATE, &statement, err, "i", container);
    if (status == ESDM_OK)
        status = sqlite__step(link, statement, &row, err);
    if (row) {
        snapshot = sqlite__u64(statement, 1);
        (void) sqlite3_reset(statement);
    }
    if (status != ESDM_OK || (container == seen->container && snapshot == seen->snapshot))
        return status;
    return esdm__error_set(err, ESDM_ECONFLICT, "container '%.300s' was changed or replaced", name);
}

/* @param seen NULL: whatever the name `to` stands for now. */
static esdm_status
move(sqlite__store *store, const char *from, const char *to, bool replace, const char *keep_as,
     const esdm_meta_seen *seen, uint64_t *ret_replaced, esdm_error *err)
{
    uint64_t container = 0;
    uint64_t replaced = 0;
    esdm_status status = sqlite__begin_write(store, store->flushes, err);
    if (status != ESDM_OK)
        return status;
    status = find_id(&store->writer, from, &container, err);
    if (status == ESDM_OK && container == 0)
        status = no_container(from, err);
    if (status == ESDM_OK)
        status = check_seal(&store->writer, container, false, from, to, err);
    if (status == ESDM_OK)
        status = check_seen(&store->writer, to, seen, err);
    if (status == ESDM_OK && strcmp(from, to) != 0) {
        status = sqlite__free_name(&store->writer, to, replace, keep_as, &replaced, err);
        if (status == ESDM_OK)
            status = sqlite__views_named(&store->writer, container, from, to, err);
        if (status == ESDM_OK)
            status =
                sqlite__run(&store->writer, SQLITE__CONTAINER_RENAME, err, "it", container, to);
    }
    status = sqlite__end_write(store, status, err);
    if (status == ESDM_OK)
        *ret_replaced = replaced;
    return status;
}

esdm_status
sqlite__container_move(void *self, const char *from, const char *to, bool replace,
                       const char *keep_as, uint64_t *ret_replaced, esdm_error *err)
{
    return move(self, from, to, replace, keep_as, NULL, ret_replaced, err);
}

esdm_status
sqlite__container_move_seen(void *self, const char *from, const char *to, const char *keep_as,
                            const esdm_meta_seen *seen, uint64_t *ret_replaced, esdm_error *err)
{
    return move(self, from, to, true, keep_as, seen, ret_replaced, err);
}
