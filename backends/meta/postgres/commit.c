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

/* Whether pages of the commit must not meet those of newer snapshots than `seen`. */
static bool
stands_apart(const esdm_meta_commit *commit)
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

/* Within a transaction: nobody else publishes for this record until its end. */
static esdm_status
check_apart(postgres__store *store, const esdm_meta_commit *commit, postgres__failure *ret_failure,
            esdm_error *err)
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
    if (commit->ret_newer != NULL)
        *commit->ret_newer = head;
    return esdm__error_set(err, ESDM_ECONFLICT,
                           "record %llu: another writer published pages that may meet these",
                           (unsigned long long) commit->container);
}

/* ---- parameters ----------------------------------------------------------------------------- */

/* Number of pages from the first one on that one statement carries. */
static size_t
batch_size(const esdm_meta_new_page *pages, size_t count)
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
    postgres__put_int(params, commit->kind == ESDM_META_CREATE    ? 0
                              : commit->kind == ESDM_META_REPLACE ? 1
                                                                  : 2);
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

static void
read_committed(const PGresult *result, esdm_meta_committed *ret_committed)
{
    uint64_t values[6];
    postgres__u64s(result, 0, 0, values, 6);
    *ret_committed = (esdm_meta_committed){
        .container = values[0],
        .snapshot = values[1],
        .structure = values[2],
        .time_ns = values[3],
        .replaced = values[4],
        .first_page = values[5],
    };
}

/* ---- several statements --------------------------------------------------------------------- */

static esdm_status
add_batch(postgres__store *store, const esdm_meta_committed *so_far,
          const esdm_meta_new_page *pages, size_t first, size_t count,
          postgres__failure *ret_failure, esdm_error *err)
{
    postgres__params params = {0};
    postgres__put_int(&params, so_far->container);
    postgres__put_int(&params, so_far->snapshot);
    postgres__put_int(&params, so_far->first_page + first);
    postgres__put_pages(&params, pages + first, count);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__ADD_PAGES, &params, NULL, ret_failure, err);
    postgres__params_clear(&params);
    return status;
}

/* One attempt at a transaction. What an earlier attempt has done is not done again. */
static esdm_status
publish_batches(postgres__store *store, const esdm_meta_commit *commit, size_t first,
                postgres__params *params, PGresult **ret_result, postgres__failure *ret_failure,
                esdm_error *err)
{
    postgres__link *link = &store->link;
    bool again = postgres__params_repeated(params);
    bool done = false;
    esdm_meta_committed so_far = {0};
    esdm_status status = postgres__connect(store, ret_failure, err);
    if (status == ESDM_OK && again)
        status = postgres__happened(store, params, &done, ret_failure, err);
    if (status == ESDM_OK)
        status = postgres__link_run(link, POSTGRES__BEGIN, NULL, NULL, ret_failure, err);
    if (status == ESDM_OK && !done && stands_apart(commit))
        status = check_apart(store, commit, ret_failure, err);
    if (status == ESDM_OK)
        status = postgres__link_run(link, POSTGRES__PUBLISH, params, ret_result, ret_failure, err);
    if (status == ESDM_OK)
        read_committed(*ret_result, &so_far);
    while (status == ESDM_OK && !done && first < commit->npages) {
        size_t count = batch_size(commit->pages + first, commit->npages - first);
        status = add_batch(store, &so_far, commit->pages, first, count, ret_failure, err);
        first += count;
    }
    if (status == ESDM_OK) {
        status = postgres__link_run(link, POSTGRES__COMMIT, NULL, NULL, ret_failure, err);
        if (status != ESDM_OK && *ret_failure == POSTGRES__LOST)
            postgres__params_repeat(params);
    }
    if (status != ESDM_OK && link->conn != NULL) {
        postgres__failure ignored;
        (void) !postgres__link_run(link, POSTGRES__ROLLBACK, NULL, NULL, &ignored, NULL);
    }
    if (status != ESDM_OK) {
        PQclear(*ret_result);
        *ret_result = NULL;
    }
    return status;
}

static esdm_status
publish_in_parts(postgres__store *store, const esdm_meta_commit *commit, size_t first,
                 postgres__params *params, PGresult **ret_result, esdm_error *err)
{
    postgres__patience patience = {0};
    for (;;) {
        esdm_error why = {0};
        postgres__failure failure = POSTGRES__LOST;
        esdm_status status =
            publish_batches(store, commit, first, params, ret_result, &failure, &why);
        if (status == ESDM_OK)
            return ESDM_OK;
        if (!postgres__try_again(&patience, store->config->patience_ns, failure)) {
            if (err != NULL)
                *err = why;
            return status;
        }
    }
}

/* ---- commit --------------------------------------------------------------------------------- */

/* One statement. *ret_done: false when others have published, and a closer look is needed. */
static esdm_status
publish_whole(postgres__store *store, const esdm_meta_commit *commit, postgres__params *params,
              PGresult **ret_result, bool *ret_done, esdm_error *err)
{
    if (!stands_apart(commit))
        return postgres__run(store, POSTGRES__PUBLISH, params, ret_result, err);
    int count = params->count;
    postgres__put_int(params, commit->seen);
    esdm_status status = postgres__run(store, POSTGRES__PUBLISH_NEXT, params, ret_result, err);
    params->count = count;
    *ret_done = status != ESDM_OK || !PQgetisnull(*ret_result, 0, 0);
    if (!*ret_done) {
        PQclear(*ret_result);
        *ret_result = NULL;
    }
    return status;
}

static esdm_status
commit_pages(void *self, const esdm_meta_commit *commit, esdm_meta_committed *ret_committed,
             esdm_error *err)
{
    postgres__store *store = self;
    postgres__params params = {0};
    PGresult *result = NULL;
    char token[ESDM_META_UUID_BYTES];
    size_t first = batch_size(commit->pages, commit->npages);
    esdm_status status = check_commit(commit, err);
    if (status == ESDM_OK)
        status = postgres__enter_write(store, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__settle_doubts(store, commit->container, commit->name, err);
    if (status == ESDM_OK)
        status = put_commit(&params, commit, first, token, err);
    postgres__pins_sink(store);
    bool whole = first == commit->npages;
    if (status == ESDM_OK && whole)
        status = publish_whole(store, commit, &params, &result, &whole, err);
    if (status == ESDM_OK && !whole)
        status = publish_in_parts(store, commit, first, &params, &result, err);
    if (status == ESDM_OK) {
        read_committed(result, ret_committed);
        postgres__pins_float(store, ret_committed->container, ret_committed->snapshot);
    } else if (postgres__params_repeated(&params)) {
        status = postgres__doubt_commit(store, commit, token, status, err);
    }
    postgres__leave(store);
    postgres__params_clear(&params);
    PQclear(result);
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
