/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Publishing snapshots. */

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/meta_checks.h"
#include "postgres.h"

/* Bytes of pages that one statement carries, about: more of them make a transaction of several. */
#define BATCH_BYTES (16u << 20)

static esdm_status
check_commit(const esdm_meta_commit *commit, esdm_error *err)
{
    esdm_status status = esdm__check_commit(commit, POSTGRES__CONTAINER_MAX, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < commit->npages; i++) {
        if (commit->pages[i].rank > ESDM_MAX_RANK)
            return esdm__error_set(err, ESDM_EINVAL, "commit: a page of rank %u",
                                   commit->pages[i].rank);
    }
    return ESDM_OK;
}

/* ---- pages of other writers ----------------------------------------------------------------- */

bool
postgres__stands_apart(const esdm_meta_commit *commit)
{
    bool apart = false;
    for (size_t i = 0; i < commit->npages && commit->kind == ESDM_META_UPDATE && !apart; i++)
        apart = commit->pages[i].apart;
    return apart;
}

typedef struct meeting {
    const esdm_meta_commit *commit;
    bool found;
} meeting;

static bool
look_at_page(const esdm_meta_page *page, void *user)
{
    meeting *m = user;
    for (size_t i = 0; i < m->commit->npages && !m->found; i++) {
        const esdm_meta_new_page *ours = &m->commit->pages[i];
        m->found = ours->apart && ours->dataset == page->dataset &&
                   esdm__boxes_meet(ours->rank, ours->box, page->rank, page->box);
    }
    return !m->found;
}

esdm_status
postgres__check_apart(postgres__store *store, const esdm_meta_commit *commit,
                      postgres__failure *ret_failure, esdm_error *err)
{
    meeting m = {.commit = commit};
    postgres__params params = {0};
    PGresult *result = NULL;
    uint64_t head = 0;
    postgres__put_int(&params, commit->container);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__LOCK_HEAD, &params, &result, ret_failure, err);
    if (status == ESDM_OK && PQntuples(result) == 1) /* else publishing tells */
        head = postgres__u64(result, 0, 0);
    PQclear(result);
    result = NULL;
    if (status == ESDM_OK && head > commit->seen) {
        postgres__put_int(&params, commit->seen);
        postgres__array_begin(&params, POSTGRES__INTS);
        for (size_t i = 0; i < commit->npages; i++) {
            if (commit->pages[i].apart &&
                (i == 0 || !commit->pages[i - 1].apart ||
                 commit->pages[i - 1].dataset != commit->pages[i].dataset))
                postgres__array_int(&params, commit->pages[i].dataset);
        }
        postgres__array_end(&params);
        status = postgres__link_run(&store->link, POSTGRES__PAGE_LIST_NEWER, &params, &result,
                                    ret_failure, err);
    }
    postgres__params_clear(&params);
    if (status == ESDM_OK && result != NULL) {
        *ret_failure = POSTGRES__REFUSED;
        status = postgres__visit_pages(result, look_at_page, &m, err);
    }
    PQclear(result);
    if (status != ESDM_OK || !m.found)
        return status;
    return esdm__newer_pages_meet(commit, head, err);
}

/* ---- parameters ----------------------------------------------------------------------------- */

size_t
postgres__batch_size(const esdm_meta_new_page *pages, size_t count)
{
    size_t bytes = 0;
    size_t size = 0;
    while (size < count && (size == 0 || bytes + pages[size].bytes <= BATCH_BYTES))
        bytes += pages[size++].bytes;
    return size;
}

static uint64_t
page_value(const esdm_meta_new_page *page, int column)
{
    const uint64_t values[] = {page->dataset,  page->records,   page->level,
                               page->absolute, page->raw_bytes, page->stored_bytes};
    return values[column];
}

void
postgres__put_pages(postgres__params *params, const esdm_meta_new_page *pages, size_t count)
{
    for (int column = 0; column < 6; column++) {
        postgres__array_begin(params, POSTGRES__INTS);
        for (size_t i = 0; i < count; i++)
            postgres__array_int(params, page_value(&pages[i], column));
        postgres__array_end(params);
    }
    postgres__array_begin(params, POSTGRES__BLOBS);
    for (size_t i = 0; i < count; i++) {
        esdm__buffer box;
        esdm__buffer_init(&box);
        for (uint32_t k = 0; k < 2 * pages[i].rank; k++)
            esdm__buffer_put_u64(&box, pages[i].box[k]);
        params->memory.failed |= box.failed;
        postgres__array_bytes(params, box.data, box.bytes);
        esdm__buffer_clear(&box);
    }
    postgres__array_end(params);
    postgres__array_begin(params, POSTGRES__BLOBS);
    for (size_t i = 0; i < count; i++)
        postgres__array_bytes(params, pages[i].data, pages[i].bytes);
    postgres__array_end(params);
}

void
postgres__put_escaped(postgres__params *params, const char *text)
{
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    postgres__put_text(&buffer, text != NULL ? text : "");
    esdm__buffer_put_u8(&buffer, 0);
    params->memory.failed |= buffer.failed;
    postgres__put_string(params, buffer.failed ? "" : (const char *) buffer.data);
    esdm__buffer_clear(&buffer);
}

/* Number of new pages; sums of raw bytes, stored bytes and fragments. */
static void
put_sums(postgres__params *params, const esdm_meta_commit *commit)
{
    uint64_t sums[4] = {commit->npages};
    for (size_t i = 0; i < commit->npages; i++) {
        sums[1] += commit->pages[i].raw_bytes;
        sums[2] += commit->pages[i].stored_bytes;
        sums[3] += commit->pages[i].records;
    }
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < 4; i++)
        postgres__array_int(params, sums[i]);
    postgres__array_end(params);
}

/* The parameters of publish(), with the first `npages` pages. */
static esdm_status
put_commit(postgres__params *params, const esdm_meta_commit *commit, size_t npages,
           char token[ESDM_META_UUID_BYTES], esdm_error *err)
{
    bool changes = commit->document != NULL;
    postgres__put_token(params, token);
    postgres__put_int(params, commit->kind == ESDM_META_CREATE   ? 0
                              : commit->kind == ESDM_META_UPDATE ? 2
                              : commit->keep_as != NULL          ? 0 /* its name is made free */
                                                                 : 1);
    postgres__put_string(params, commit->name);
    postgres__put_string(params, commit->uuid);
    postgres__put_int(params, commit->container);
    postgres__put_int(params, commit->structure);
    postgres__put_string(params, commit->document);
    postgres__put_int(params, commit->datasets);
    postgres__put_lengths(params, commit->lengths, commit->nlengths);
    postgres__array_begin(params, POSTGRES__INTS);
    for (size_t i = 0; i < commit->nmerged; i++)
        postgres__array_int(params, commit->merged[i]);
    postgres__array_end(params);
    put_sums(params, commit);
    postgres__put_escaped(params, commit->writer);
    postgres__put_escaped(params, commit->message);
    postgres__put_int(params, commit->history);
    postgres__put_bool(params, commit->durable);
    postgres__put_bool(params, true);
    postgres__put_pages(params, commit->pages, npages);
    return postgres__put_objects(params, commit->attributes, changes ? commit->nattributes : 0,
                                 err);
}

/* ---- commit --------------------------------------------------------------------------------- */

/* One statement when that will do: all pages fit into it, nothing has the name of a record that is
 * to be kept under another one, and nobody else has published pages that these must not meet. */
static esdm_status
publish(postgres__store *store, const esdm_meta_commit *commit, postgres__transaction *all,
        esdm_error *err)
{
    if (all->first < commit->npages || commit->nshares > 0 || commit->tag != NULL ||
        commit->follows != NULL)
        return postgres__transact(store, all, err);
    esdm_error why = {0};
    bool apart = postgres__stands_apart(commit);
    int count = all->params->count;
    if (apart)
        postgres__put_int(all->params, commit->seen);
    postgres__statement next = all->id == POSTGRES__PUBLISH_UPDATE_EXTENTS
                                   ? POSTGRES__PUBLISH_NEXT_EXTENTS
                                   : POSTGRES__PUBLISH_NEXT;
    esdm_status status =
        postgres__run(store, apart ? next : all->id, all->params, &all->result, &why);
    all->params->count = count;
    bool again = status == ESDM_EEXIST && all->keep_as != NULL;
    if (status == ESDM_OK && apart && PQgetisnull(all->result, 0, 0)) {
        PQclear(all->result);
        all->result = NULL;
        again = true;
    }
    if (again)
        return postgres__transact(store, all, err);
    if (status == ESDM_OK)
        return postgres__check_published(all, err);
    if (err != NULL)
        *err = why;
    return status;
}

static esdm_status
commit_pages(void *self, const esdm_meta_commit *commit, esdm_meta_committed *ret_committed,
             esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    char token[ESDM_META_UUID_BYTES];
    bool update = commit->kind == ESDM_META_UPDATE;
    postgres__transaction all = {
        .id = update ? POSTGRES__PUBLISH_UPDATE : POSTGRES__PUBLISH,
        .params = &params,
        .name = commit->name,
        .keep_as = commit->kind == ESDM_META_REPLACE ? commit->keep_as : NULL,
        .container = commit->container,
        .commit = commit,
        .pages = commit->pages,
        .npages = commit->npages,
        .first = postgres__batch_size(commit->pages, commit->npages),
    };
    esdm_status status = check_commit(commit, err);
    if (status == ESDM_OK)
        status = postgres__enter_commit(store, commit->durable, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__settle_doubts(store, commit->container, commit->name, err);
    if (status == ESDM_OK && (commit->nshares > 0 || commit->tag != NULL))
        status = postgres__check_format(store, err);
    if (status == ESDM_OK)
        status = put_commit(&params, commit, all.first, token, err);
    if (status == ESDM_OK && store->has_extents && (commit->nextents > 0 || commit->all_extents)) {
        postgres__put_extents(&params, commit->extents, commit->nextents);
        postgres__put_bool(&params, commit->all_extents && update);
        all.id = update ? POSTGRES__PUBLISH_UPDATE_EXTENTS : POSTGRES__PUBLISH_EXTENTS;
    }
    postgres__pins_sink(store);
    if (status == ESDM_OK)
        status = publish(store, commit, &all, err);
    if (status == ESDM_OK) {
        postgres__read_committed(all.result, ret_committed);
        ret_committed->replaced = all.kept != 0 ? all.kept : ret_committed->replaced;
        postgres__pins_float(store, ret_committed->container, ret_committed->snapshot);
        postgres__note_commit(store, token);
    } else if (postgres__params_repeated(&params)) {
        status = postgres__doubt_commit(store, commit, token, status, err);
    }
    postgres__leave(store);
    postgres__params_clear(&params);
    PQclear(all.result);
    return status;
}

esdm_status
postgres__commit(void *self, const esdm_meta_commit *commit, esdm_meta_committed *ret_committed,
                 esdm_error *err)
{
    if (commit->next_page == NULL)
        return commit_pages(self, commit, ret_committed, err);
    esdm__page_copies pages = {0};
    esdm_meta_commit whole = *commit;
    esdm_status status = postgres__stream_collect(commit, &pages, err);
    whole.pages = pages.pages;
    whole.npages = pages.count;
    if (status == ESDM_OK)
        status = commit_pages(self, &whole, ret_committed, err);
    esdm__page_copies_clear(&pages);
    return status;
}
