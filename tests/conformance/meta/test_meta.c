/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Store and containers that the tests of metadata stores share, and the list of these tests. */
#include "meta.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/ids.h"

#define DOCUMENT "{\"format\": 1, \"groups\": []}"

const esdm_meta_plugin *
meta(void)
{
    return (const esdm_meta_plugin *) place_current;
}

int
meta_setup(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    if (f == NULL)
        return -1;
    place_init(&f->place, place_current_kind);
    assert_ok(meta()->make(&f->place.config, false, NULL, NULL, &place_error));
    f->store = meta_open(f, false);
    *state = f;
    return 0;
}

int
meta_teardown(void **state)
{
    fixture *f = *state;
    meta()->close(f->store);
    assert_ok(meta()->remove(&f->place.config, false, NULL, NULL, &place_error));
    assert_int_equal(place_count_entries(f->place.folder), 0);
    place_clear(&f->place);
    free(f);
    return 0;
}

void *
meta_open(const fixture *f, bool read_only)
{
    void *store = NULL;
    assert_ok(meta()->open(&f->place.config, read_only, &store, &place_error));
    assert_non_null(store);
    return store;
}

esdm_meta_commit
meta_new_commit(esdm_meta_commit_kind kind)
{
    static _Thread_local char uuid[ESDM__UUID_BYTES];
    esdm_meta_commit commit = {.kind = kind, .writer = "tester@host:1", .history = 1};
    if (kind != ESDM_META_UPDATE) {
        esdm__uuid_new(uuid);
        commit.uuid = uuid;
        commit.document = DOCUMENT;
        commit.document_bytes = strlen(DOCUMENT);
        commit.datasets = 1;
    }
    return commit;
}

esdm_status
meta_try_create(void *store, const char *name, esdm_meta_committed *ret)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_CREATE);
    commit.name = name;
    return meta()->commit(store, &commit, ret, &place_error);
}

esdm_meta_committed
meta_create(void *store, const char *name)
{
    esdm_meta_committed committed = {0};
    assert_ok(meta_try_create(store, name, &committed));
    assert_true(committed.container > 0);
    assert_int_equal(committed.snapshot, 1);
    assert_int_equal(committed.structure, 1);
    assert_int_equal(committed.replaced, 0);
    return committed;
}

esdm_meta_new_page
meta_page(uint32_t dataset, uint32_t records, uint64_t seed)
{
    static _Thread_local uint64_t box[6];
    static _Thread_local uint8_t data[100];
    for (size_t i = 0; i < 6; i++)
        box[i] = seed + i;
    for (size_t i = 0; i < sizeof data; i++)
        data[i] = (uint8_t) (seed * 7 + i);
    return (esdm_meta_new_page){.dataset = dataset,
                                .records = records,
                                .raw_bytes = 1000 * (uint64_t) records,
                                .stored_bytes = 10 * (uint64_t) records,
                                .rank = 3,
                                .box = box,
                                .data = data,
                                .bytes = sizeof data};
}

esdm_status
meta_append(void *store, uint64_t container, uint32_t records, esdm_meta_committed *ret_committed)
{
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_new_page page = meta_page(1, records, container);
    commit.container = container;
    commit.pages = &page;
    commit.npages = 1;
    return meta()->commit(store, &commit, ret_committed, &place_error);
}

esdm_meta_snapshot
meta_pin(void *store, const char *name, uint64_t snapshot)
{
    esdm_meta_snapshot loaded = {0};
    assert_ok(meta()->snapshot_open(store, name, snapshot, 0, 0, &loaded, &place_error));
    assert_non_null(loaded.document);
    assert_int_equal(loaded.document[loaded.document_bytes], '\0');
    free(loaded.document);
    free(loaded.lengths);
    loaded.document = NULL;
    loaded.lengths = NULL;
    return loaded;
}

typedef struct page_count {
    size_t pages;
    uint32_t dataset;
} page_count;

static bool
count_page(const esdm_meta_page *page, void *user)
{
    page_count *count = user;
    if (count->dataset != 0 && page->dataset != count->dataset)
        return false;
    count->pages++;
    return true;
}

size_t
meta_count_pages(void *store, uint64_t container, uint64_t snapshot, uint32_t dataset)
{
    page_count count = {.dataset = dataset};
    assert_ok(
        meta()->page_list(store, container, snapshot, dataset, count_page, &count, &place_error));
    return count.pages;
}

typedef struct snapshot_count {
    size_t count;
    uint64_t last;
    uint64_t last_ns;
    bool ordered;
} snapshot_count;

static bool
count_snapshot(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
               const char *message, void *user)
{
    snapshot_count *count = user;
    count->ordered = count->ordered && snapshot > count->last && time_ns >= count->last_ns &&
                     parent < snapshot && writer != NULL && message != NULL;
    count->last = snapshot;
    count->last_ns = time_ns;
    count->count++;
    return true;
}

size_t
meta_count_snapshots(void *store, const char *name)
{
    snapshot_count count = {.ordered = true};
    assert_ok(meta()->snapshot_list(store, name, count_snapshot, &count, &place_error));
    assert_true(count.ordered);
    return count.count;
}

typedef struct wanted_record {
    uint64_t container;
    bool found;
} wanted_record;

static bool
match_record(uint64_t container, const char *uuid, void *user)
{
    wanted_record *wanted = user;
    wanted->found |= container == wanted->container && strlen(uuid) == 32;
    return true;
}

bool
meta_is_garbage(void *store, uint64_t container)
{
    wanted_record wanted = {.container = container};
    assert_ok(meta()->garbage(store, match_record, &wanted, &place_error));
    return wanted.found;
}

bool
meta_becomes_garbage(void *store, uint64_t container)
{
    for (int i = 0; i < 10000; i++) {
        if (meta_is_garbage(store, container))
            return true;
        (void) usleep(10000);
    }
    return false;
}

static bool
sum_page(const esdm_meta_page *page, void *user)
{
    *(uint64_t *) user += page->records;
    return true;
}

uint64_t
meta_check_whole(void *store, const char *name)
{
    esdm_meta_snapshot loaded = {0};
    uint64_t records = 0;
    if (meta()->snapshot_open(store, name, 0, 0, 0, &loaded, &place_error) != ESDM_OK)
        return UINT64_MAX;
    free(loaded.document);
    free(loaded.lengths);
    bool good = meta()->page_list(store, loaded.record.container, loaded.snapshot, 0, sum_page,
                                  &records, &place_error) == ESDM_OK;
    meta()->unpin(store, loaded.record.container, loaded.snapshot);
    /* Snapshot 1 is empty, and each later one added a page of one record. */
    return good && records == loaded.snapshot - 1 ? records : UINT64_MAX;
}

esdm_meta_container
meta_record(const fixture *f, const char *name)
{
    esdm_meta_container record;
    assert_ok(meta()->container_find(f->store, name, &record, &place_error));
    return record;
}

int
main(void)
{
    int failed = 0;
#define RUN(group)                                                                                 \
    failed += place_run_all(ESDM_PLUGIN_META, "meta." #group, meta_##group##_tests,                \
                            meta_##group##_count)
    RUN(place);
    RUN(commit);
    RUN(apart);
    RUN(name);
    RUN(snapshot);
    RUN(query);
    RUN(expression);
    RUN(process);
    RUN(migration);
    RUN(fact);
    RUN(extent);
    RUN(upkeep);
    RUN(clone);
    RUN(tag);
    RUN(view);
    RUN(sqlite);
    RUN(sqlite_sums);
#undef RUN
    return failed;
}
