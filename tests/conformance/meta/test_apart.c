/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Pages that are not to meet what others have published since. */

#include "meta.h"

static esdm_status
next_one(void *user, const esdm_meta_new_page **ret_page, esdm_error *err)
{
    const esdm_meta_new_page **one = user;
    (void) err;
    *ret_page = *one;
    *one = NULL;
    return ESDM_OK;
}

/* One page of dataset 1 with the box lo..lo+n in its first dimension. */
static esdm_status
append_apart(const fixture *f, uint64_t container, uint64_t lo, uint64_t n, uint64_t seen,
             bool streamed, uint64_t *ret_newer)
{
    const uint64_t box[6] = {lo, 0, 0, n, 1, 1};
    esdm_meta_commit commit = meta_new_commit(ESDM_META_UPDATE);
    esdm_meta_new_page page = meta_page(1, 3, container);
    esdm_meta_committed committed = {0};
    page.box = box;
    page.apart = true;
    const esdm_meta_new_page *one = &page;
    commit.container = container;
    commit.pages = &page;
    commit.npages = streamed ? 0 : 1;
    commit.next_page = streamed ? next_one : NULL;
    commit.next_page_user = &one;
    commit.seen = seen;
    commit.ret_newer = ret_newer;
    return meta()->commit(f->store, &commit, &committed, &place_error);
}

static void
test_commit__pages_apart_do_not_meet_newer_ones(void **state)
{
    fixture *f = *state;
    for (int streamed = 0; streamed < 2; streamed++) {
        const char *name = streamed ? "streamed" : "at hand";
        uint64_t container = meta_create(f->store, name).container;
        uint64_t newer = 0;
        assert_ok(append_apart(f, container, 0, 10, 1, streamed, &newer));  /* snapshot 2 */
        assert_ok(append_apart(f, container, 5, 10, 2, streamed, &newer));  /* knows of it */
        assert_ok(append_apart(f, container, 20, 10, 1, streamed, &newer)); /* apart from both */
        assert_int_equal(newer, 0);
        assert_int_equal(append_apart(f, container, 14, 2, 2, streamed, &newer), ESDM_ECONFLICT);
        assert_int_equal(newer, 4);
        assert_int_equal(meta_record(f, name).snapshot, 4);
        assert_ok(append_apart(f, container, 14, 2, 3, streamed, &newer)); /* snapshot 4 is apart */
        assert_ok(append_apart(f, container, 16, 4, 4, streamed, &newer));
        assert_int_equal(newer, 4);
        assert_int_equal(meta_record(f, name).fragments, 15);
    }
}

const struct CMUnitTest meta_apart_tests[] = {
    WITH_STORE(test_commit__pages_apart_do_not_meet_newer_ones),
};
const size_t meta_apart_count = sizeof meta_apart_tests / sizeof meta_apart_tests[0];
