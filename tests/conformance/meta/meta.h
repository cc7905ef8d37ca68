/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_CONFORMANCE_META_H
#define ESDM_TESTS_CONFORMANCE_META_H

/** @file Shared by the suites of metadata stores. */

#include "conformance/places.h"

typedef struct fixture {
    place place;
    void *store;
} fixture;

const esdm_meta_plugin *meta(void);
int meta_setup(void **state);
int meta_teardown(void **state);
/** A second handle of the same store. */
void *meta_open(const fixture *f, bool read_only);

/** A commit with the defaults of the tests: writer, message, history 1. */
esdm_meta_commit meta_new_commit(esdm_meta_commit_kind kind);
/** Creates a container with a document of one line. @return what was committed. */
esdm_meta_committed meta_create(void *store, const char *name);
/** The same without assertions, for threads and children. */
esdm_status meta_try_create(void *store, const char *name, esdm_meta_committed *ret);
/** Appends one page of `records` records for dataset 1. */
esdm_status meta_append(void *store, uint64_t container, uint32_t records,
                        esdm_meta_committed *ret_committed);
/** Page whose content is made from `seed`. Borrowed: static per thread until the next call. */
esdm_meta_new_page meta_page(uint32_t dataset, uint32_t records, uint64_t seed);

/** Opens a snapshot (0: newest) and frees what it owns; the pin stays. */
esdm_meta_snapshot meta_pin(void *store, const char *name, uint64_t snapshot);
/** Number of pages visible. */
size_t meta_count_pages(void *store, uint64_t container, uint64_t snapshot, uint32_t dataset);
/** Number of snapshots listed; checks their order. */
size_t meta_count_snapshots(void *store, const char *name);
/** Whether the record is listed as garbage without pins. */
bool meta_is_garbage(void *store, uint64_t container);
/** The record of a container that is there. */
esdm_meta_container meta_record(const fixture *f, const char *name);
/** Whether it is so after a while: a server may hear of freed pins a little later. */
bool meta_becomes_garbage(void *store, uint64_t container);
/** Opens, counts and closes the newest snapshot: pages must equal records, see meta_append(). */
uint64_t meta_check_whole(void *store, const char *name);

#define WITH_STORE(test) cmocka_unit_test_setup_teardown(test, meta_setup, meta_teardown)

#define GROUP(name)                                                                                \
    extern const struct CMUnitTest meta_##name##_tests[];                                          \
    extern const size_t meta_##name##_count
GROUP(place);
GROUP(commit);
GROUP(apart);
GROUP(name);
GROUP(snapshot);
GROUP(query);
GROUP(expression);
GROUP(process);
GROUP(migration);
GROUP(fact);
GROUP(extent);
GROUP(sqlite);
GROUP(sqlite_sums);
GROUP(upkeep);
GROUP(clone);
GROUP(tag);
GROUP(view);
#undef GROUP

#endif
