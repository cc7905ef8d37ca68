/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The index of fragments: few pages, what is loaded and dropped, wrong entries. */
#include "layout_support.h"

#include <pthread.h>

static void
add_step(esdm__index *index, uint64_t step)
{
    esdm__fragment f = {.raw_bytes = 4, .stored_bytes = 84, .head_bytes = 80};
    esdm__box_set(&f.box, 1, &step, (const uint64_t[]){1});
    f.pack = esdm__index_pack(index, "scratch", "0123456789abcdef0123456789abcdef-0011223344-1");
    f.position = step * 84;
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
}

static void
test_index__a_commit_per_record_keeps_pages_few(void **state)
{
    (void) state;
    enum { COMMITS = 20000 };
    store s = {0};
    esdm__index *index = esdm__index_new(1);
    double half = 0;
    double start = now_ms();
    size_t most = 0;
    for (uint64_t i = 0; i < COMMITS; i++) {
        add_step(index, i);
        store_commit(&s, index, true);
        size_t live = i % 512 == 511 ? store_live_pages(&s) : 0;
        most = live > most ? live : most;
        if (i == COMMITS / 2)
            half = now_ms() - start;
    }
    double whole = now_ms() - start;
    print_message("commit of one record: %.1f us in the first half of %d, %.1f us in the second; "
                  "at most %zu pages\n",
                  half / (COMMITS / 2) * 1e3, COMMITS, (whole - half) / (COMMITS / 2) * 1e3, most);
    assert_true(most <= COMMITS / ESDM__PAGE_RECORDS + 3 * 32);

    esdm__index *other = store_open(&s, 1);
    esdm__box all;
    esdm__plan plan;
    esdm__box_set(&all, 1, NULL, (const uint64_t[]){COMMITS});
    store_resolve(&s, other, &all, &plan);
    assert_int_equal(plan.npieces, COMMITS);
    assert_true(plan.covered);
    for (uint64_t i = 0; i < COMMITS; i++)
        assert_int_equal(plan.pieces[i].part.lo[0], i);
    esdm__plan_clear(&plan);
    esdm__index_free(other);
    esdm__index_free(index);
    store_clear(&s);
}

static void
test_index__rewriting_one_slab_does_not_collect_records(void **state)
{
    (void) state;
    store s = {0};
    esdm__index *index = esdm__index_new(1);
    for (uint64_t i = 0; i < 3000; i++) {
        add_step(index, 7);
        add_step(index, 7);
        store_commit(&s, index, true);
    }
    uint64_t records = 0;
    for (size_t i = 0; i < s.count; i++)
        records += s.pages[i].removed ? 0 : s.pages[i].entry.records;
    assert_true(records <= 32);
    esdm__index_free(index);
    store_clear(&s);
}

static void
test_index__pages_apart_from_the_request_stay_unloaded(void **state)
{
    (void) state;
    store s = {0};
    esdm__index *index = esdm__index_new(1);
    for (uint64_t i = 0; i < 20 * ESDM__PAGE_RECORDS; i++)
        add_step(index, i);
    store_commit(&s, index, true);
    assert_int_equal(s.count, 20);
    esdm__index_free(index);

    index = store_open(&s, 1);
    esdm__box box;
    uint64_t *missing;
    size_t count;
    esdm__box_set(&box, 1, (const uint64_t[]){5 * ESDM__PAGE_RECORDS - 1}, (const uint64_t[]){2});
    assert_int_equal(esdm__index_missing(index, &box, &missing, &count, NULL), ESDM_OK);
    assert_int_equal(count, 2);
    esdm__plan plan;
    memset(&plan, 0x5a, sizeof plan);
    const esdm__plan untouched = plan;
    esdm_error err;
    assert_int_equal(esdm__index_resolve(index, &box, &plan, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "is not loaded"));
    assert_memory_equal(&plan, &untouched, sizeof plan);
    store_load(&s, index, missing, count);
    free(missing);
    assert_int_equal(esdm__index_missing(index, &box, &missing, &count, NULL), ESDM_OK);
    assert_int_equal(count, 0);
    assert_null(missing);
    assert_int_equal(esdm__index_resolve(index, &box, &plan, &err), ESDM_OK);
    assert_int_equal(plan.npieces, 2);
    esdm__plan_clear(&plan);
    esdm__plan_clear(&plan);
    esdm__index_free(index);
    store_clear(&s);
}

static void
test_index__eviction_drops_the_longest_unused_and_spares_plans(void **state)
{
    (void) state;
    store s = {0};
    esdm__index *index = esdm__index_new(1);
    const uint8_t bytes[4] = {1, 2, 3, 4};
    for (uint64_t i = 0; i < 4; i++) { /* inline data ties plans to pages */
        esdm__fragment f = {.raw_bytes = 4, .stored_bytes = 4, .inline_data = bytes};
        esdm__box_set(&f.box, 1, &i, (const uint64_t[]){1});
        assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
        store_commit(&s, index, false);
    }
    size_t each = esdm__index_memory_bytes(index) / 4;
    esdm__plan plans[4];
    static const uint64_t order[4] = {2, 0, 3, 1};
    for (size_t i = 0; i < 4; i++) {
        esdm__box box;
        esdm__box_set(&box, 1, &order[i], (const uint64_t[]){1});
        assert_int_equal(esdm__index_resolve(index, &box, &plans[i], NULL), ESDM_OK);
    }
    esdm__index_evict(index, 0);
    assert_int_equal(esdm__index_memory_bytes(index), 4 * each);
    for (size_t i = 0; i < 4; i++)
        esdm__plan_clear(&plans[i]);
    esdm__index_evict(index, 2 * each);
    assert_int_equal(esdm__index_memory_bytes(index), 2 * each);
    esdm__box all;
    uint64_t *missing;
    size_t count;
    esdm__box_set(&all, 1, NULL, (const uint64_t[]){4});
    assert_int_equal(esdm__index_missing(index, &all, &missing, &count, NULL), ESDM_OK);
    assert_int_equal(count, 2);
    assert_int_equal(missing[0], 1);
    assert_int_equal(missing[1], 3);
    free(missing);
    esdm__index_free(index);
    store_clear(&s);
}

static void
test_index__wrong_fragments_are_refused(void **state)
{
    (void) state;
    esdm__index *index = esdm__index_new(1);
    const esdm__pack_name *pack = esdm__index_pack(index, "t", "p");
    assert_ptr_equal(pack, esdm__index_pack(index, "t", "p"));
    assert_ptr_not_equal(pack, esdm__index_pack(index, "tp", ""));
    esdm__fragment good = {.raw_bytes = 4, .stored_bytes = 4, .pack = pack};
    esdm__box_set(&good.box, 1, NULL, (const uint64_t[]){1});
    esdm_error err;

    esdm__fragment f = good;
    f.box.rank = 2;
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.box.n[0] = 0;
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.box.lo[0] = UINT64_MAX;
    f.box.n[0] = 2;
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.pack = NULL;
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.inline_data = (const uint8_t *) "abcd";
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.head_bytes = 5;
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.position = UINT64_MAX;
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    f = good;
    f.pack = esdm__index_pack(index, "t", "");
    assert_int_equal(esdm__index_add_pending(index, &f, &err), ESDM_EINVAL);
    assert_string_equal(err.message, "fragment cannot be indexed: the name of its target or pack "
                                     "is empty or too long");
    assert_int_equal(esdm__index_pending_count(index), 0);

    esdm__box box;
    esdm__plan plan;
    esdm__box_set(&box, 2, NULL, (const uint64_t[]){1, 1});
    assert_int_equal(esdm__index_resolve(index, &box, &plan, &err), ESDM_EINVAL);
    esdm__box_set(&box, 1, NULL, (const uint64_t[]){0});
    assert_int_equal(esdm__index_resolve(index, &box, &plan, &err), ESDM_OK);
    assert_int_equal(plan.npieces, 0);
    assert_true(plan.covered);
    esdm__index_free(index);
    esdm__index_free(NULL);
}

static void
test_index__wrong_directory_entries_are_corrupt(void **state)
{
    (void) state;
    esdm__index *index = esdm__index_new(2);
    const uint64_t box[4] = {0, 0, 1, 1};
    const esdm_meta_page good = {.page = 9, .records = 1, .rank = 2, .box = box};
    esdm_error err;
    esdm_meta_page p = good;
    p.rank = 1;
    assert_int_equal(esdm__index_add_page(index, &p, &err), ESDM_ECORRUPT);
    assert_non_null(strstr(err.message, "page 9"));
    p = good;
    p.records = 0;
    assert_int_equal(esdm__index_add_page(index, &p, &err), ESDM_ECORRUPT);
    p.records = ESDM__PAGE_RECORDS + 1;
    assert_int_equal(esdm__index_add_page(index, &p, &err), ESDM_ECORRUPT);
    p = good;
    p.box = NULL;
    assert_int_equal(esdm__index_add_page(index, &p, &err), ESDM_ECORRUPT);
    const uint64_t empty[4] = {0, 0, 1, 0};
    p.box = empty;
    assert_int_equal(esdm__index_add_page(index, &p, &err), ESDM_ECORRUPT);
    const uint64_t large[4] = {UINT64_MAX, 0, 1, 1};
    p.box = large;
    assert_int_equal(esdm__index_add_page(index, &p, &err), ESDM_ECORRUPT);
    assert_false(esdm__index_page_entry(index, 9, &p));
    assert_int_equal(esdm__index_add_page(index, &good, &err), ESDM_OK);
    assert_int_equal(esdm__index_add_page(index, &good, &err), ESDM_OK);
    assert_true(esdm__index_page_entry(index, 9, &p));
    assert_memory_equal(p.box, box, sizeof box);
    esdm__index_forget_pages(index);
    assert_false(esdm__index_page_entry(index, 9, &p));
    esdm__index_free(index);
}

static void
test_index__large_inline_data_splits_pages(void **state)
{
    (void) state;
    store s = {0};
    esdm__index *index = esdm__index_new(1);
    uint8_t *data = malloc(300000);
    for (size_t i = 0; i < 300000; i++)
        data[i] = (uint8_t) (i * 2654435761u >> 13);
    for (uint64_t i = 0; i < 40; i++) {
        esdm__fragment f = {.raw_bytes = 300000, .stored_bytes = 300000, .inline_data = data};
        esdm__box_set(&f.box, 1, &i, (const uint64_t[]){1});
        data[0] = (uint8_t) i;
        assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
    }
    assert_int_equal(esdm__index_pending_inline_bytes(index), 40 * 300000);
    store_commit(&s, index, true);
    assert_int_equal(esdm__index_pending_inline_bytes(index), 0);
    assert_true(s.count >= 6 && s.count <= 7);
    esdm__box all;
    esdm__plan plan;
    esdm__box_set(&all, 1, NULL, (const uint64_t[]){40});
    store_resolve(&s, index, &all, &plan);
    assert_int_equal(plan.npieces, 40);
    for (size_t i = 0; i < 40; i++) {
        const esdm__fragment *f = plan.pieces[i].fragment;
        assert_int_equal(f->inline_data[0], f->box.lo[0]);
        assert_memory_equal(f->inline_data + 1, data + 1, 299999);
    }
    /* Full by their bytes: nothing to merge again and again. */
    uint64_t *candidates;
    size_t count;
    assert_int_equal(esdm__index_merge_candidates(index, &candidates, &count, NULL), ESDM_OK);
    assert_int_equal(count, 0);
    esdm__plan_clear(&plan);
    esdm__index_free(index);
    store_clear(&s);
    free(data);
}

static void
test_index__encoding_is_deterministic(void **state)
{
    (void) state;
    esdm__page_set sets[2];
    for (int round = 0; round < 2; round++) {
        esdm__index *index = esdm__index_new(3);
        if (round == 1) /* other addresses, other order of interning */
            (void) esdm__index_pack(index, "z", "zz");
        rng r = {42};
        for (uint64_t i = 0; i < 9000; i++) {
            esdm__fragment f = {.raw_bytes = 100 + i % 7, .stored_bytes = 50 + i % 11};
            random_box(&r, 3, (const uint64_t[]){1000, 1000, 1000}, &f.box);
            for (int d = 0; d < 3; d++)
                f.box.n[d] = 1 + f.box.n[d] % 20;
            char name[8];
            (void) snprintf(name, sizeof name, "%u", (unsigned) (i % 5));
            f.pack = esdm__index_pack(index, i % 2 ? "a" : "b", name);
            f.position = i * 60;
            assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
        }
        assert_int_equal(esdm__index_encode(index, NULL, 0, &sets[round], NULL), ESDM_OK);
        esdm__index_free(index);
    }
    assert_int_equal(sets[0].npages, 3);
    assert_int_equal(sets[1].npages, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(sets[0].pages[i].bytes, sets[1].pages[i].bytes);
        assert_memory_equal(sets[0].pages[i].data, sets[1].pages[i].data, sets[0].pages[i].bytes);
    }
    esdm__page_set_clear(&sets[0]);
    esdm__page_set_clear(&sets[1]);
}

/* Of the whole of one axis, at one place of the other. */
static void
add_row(esdm__index *index, uint64_t place)
{
    esdm__fragment f = {.raw_bytes = 400, .stored_bytes = 480, .head_bytes = 80};
    esdm__box_set(&f.box, 2, (const uint64_t[]){0, place}, (const uint64_t[]){100, 1});
    f.pack = esdm__index_pack(index, "scratch", "0123456789abcdef0123456789abcdef-0011223344-1");
    f.position = place * 480;
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
}

static void
test_index__many_fragments_are_cut_where_halves_share_few(void **state)
{
    (void) state;
    store s = {0};
    store other = {0};
    esdm__box box;
    esdm__index *steps = esdm__index_new(1);
    esdm__index *rows = esdm__index_new(2);
    for (uint64_t i = 0; i < 6000; i++) {
        add_step(steps, i);
        add_row(rows, i);
    }
    for (int round = 0; round < 2; round++) { /* pending, then from pages */
        esdm__box_set(&box, 1, (const uint64_t[]){50}, (const uint64_t[]){5001});
        assert_true(esdm__index_wants_halves(steps, &box));
        esdm__box_set(&box, 1, (const uint64_t[]){50}, (const uint64_t[]){2000});
        assert_false(esdm__index_wants_halves(steps, &box)); /* few */
        esdm__box_set(&box, 2, NULL, (const uint64_t[]){100, 6000});
        assert_false(esdm__index_wants_halves(rows, &box)); /* each would be in both */
        esdm__box_set(&box, 2, (const uint64_t[]){7, 0}, (const uint64_t[]){1, 6000});
        assert_true(esdm__index_wants_halves(rows, &box)); /* along the other axis */
        store_commit(&s, steps, true);
        store_commit(&other, rows, true);
    }
    esdm__index_free(steps);
    esdm__index_free(rows);
    store_clear(&s);
    store_clear(&other);
}

static void
test_index__count_stops_at_its_limit(void **state)
{
    (void) state;
    store s = {0};
    esdm__index *index = esdm__index_new(1);
    for (uint64_t i = 0; i < 3 * ESDM__PAGE_RECORDS; i++)
        add_step(index, i);
    esdm__box box;
    esdm__box_set(&box, 1, (const uint64_t[]){100}, (const uint64_t[]){1000});
    for (int round = 0; round < 2; round++) { /* pending, then from pages */
        assert_int_equal(esdm__index_count(index, &box, 5000), 1000);
        assert_int_equal(esdm__index_count(index, &box, 1000), 1000);
        assert_int_equal(esdm__index_count(index, &box, 10), 10);
        assert_int_equal(esdm__index_count(index, &box, 0), 0);
        esdm__plan plan = {0};
        bool too_many = false;
        assert_int_equal(esdm__index_resolve_most(index, &box, 999, &plan, &too_many, NULL),
                         ESDM_OK);
        assert_true(too_many);
        assert_null(plan.ownership);
        assert_int_equal(esdm__index_resolve_most(index, &box, 1000, &plan, &too_many, NULL),
                         ESDM_OK);
        assert_false(too_many);
        assert_int_equal(plan.npieces, 1000);
        esdm__plan_clear(&plan);
        store_commit(&s, index, true);
    }
    esdm__index_evict(index, 0);
    assert_int_equal(esdm__index_count(index, &box, 50000), 1001); /* as if spread evenly */
    esdm__index_free(index);
    store_clear(&s);
}

/* Plans are used and cleared without the lock, while others evict and load. */
typedef struct shared {
    pthread_mutex_t lock;
    esdm__index *index;
    const store *s;
} shared;

static void *
read_and_evict(void *user)
{
    shared *x = user;
    rng r = {(uint64_t) (uintptr_t) &r};
    uint64_t wrong = 0;
    for (int round = 0; round < 300; round++) {
        esdm__box box;
        esdm__plan plan = {0};
        uint64_t lo = rng_below(&r, 180);
        esdm__box_set(&box, 1, &lo, (const uint64_t[]){20});
        (void) pthread_mutex_lock(&x->lock);
        uint64_t *missing = NULL;
        size_t count = 0;
        wrong += esdm__index_missing(x->index, &box, &missing, &count, NULL) != ESDM_OK;
        for (size_t i = 0; i < count; i++) {
            const store_page *p = &x->s->pages[missing[i] - 1];
            esdm__page *loaded = NULL;
            wrong += esdm__page_decode(&p->entry, p->data, p->bytes, &loaded, NULL) != ESDM_OK;
            wrong += esdm__index_insert(x->index, missing[i], loaded, NULL) != ESDM_OK;
        }
        wrong += esdm__index_resolve(x->index, &box, &plan, NULL) != ESDM_OK;
        esdm__index_evict(x->index, 0);
        (void) pthread_mutex_unlock(&x->lock);
        free(missing);
        wrong += plan.npieces != 20;
        for (size_t i = 0; i < plan.npieces; i++)
            wrong += plan.pieces[i].fragment->inline_data[0] != plan.pieces[i].part.lo[0];
        esdm__plan_clear(&plan);
    }
    return (void *) (uintptr_t) wrong;
}

static void
test_index__plans_outlive_eviction_in_other_threads(void **state)
{
    (void) state;
    store s = {0};
    shared x = {.lock = PTHREAD_MUTEX_INITIALIZER, .index = esdm__index_new(1), .s = &s};
    for (uint64_t i = 0; i < 200; i++) {
        const uint8_t byte = (uint8_t) i;
        esdm__fragment f = {.raw_bytes = 1, .stored_bytes = 1, .inline_data = &byte};
        esdm__box_set(&f.box, 1, &i, (const uint64_t[]){1});
        assert_int_equal(esdm__index_add_pending(x.index, &f, NULL), ESDM_OK);
        if (i % 10 == 9)
            store_commit(&s, x.index, false);
    }
    pthread_t threads[4];
    for (int i = 0; i < 4; i++)
        assert_int_equal(pthread_create(&threads[i], NULL, read_and_evict, &x), 0);
    for (int i = 0; i < 4; i++) {
        void *wrong;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
    esdm__index_free(x.index);
    store_clear(&s);
}

/* One fragment has copies of its names, several keep those of the index. */
static void
test_index__names_of_plans_outlive_the_index(void **state)
{
    (void) state;
    for (uint64_t fragments = 1; fragments <= 2; fragments++) {
        esdm__index *index = esdm__index_new(1);
        esdm__box all;
        esdm__plan plan;
        for (uint64_t i = 0; i < fragments; i++) {
            esdm__fragment f = {
                .raw_bytes = 8, .stored_bytes = 72, .position = 100, .head_bytes = 64};
            esdm__box_set(&f.box, 1, (const uint64_t[]){i}, (const uint64_t[]){1});
            f.pack = esdm__index_pack(index, "disk", i == 0 ? "first" : "second");
            assert_non_null(f.pack);
            assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
        }
        esdm__box_set(&all, 1, NULL, &fragments);
        assert_int_equal(esdm__index_resolve(index, &all, &plan, NULL), ESDM_OK);
        esdm__index_free(index);
        assert_int_equal(plan.npieces, fragments);
        for (uint64_t i = 0; i < fragments; i++) {
            assert_string_equal(plan.pieces[i].fragment->pack->target, "disk");
            assert_string_equal(plan.pieces[i].fragment->pack->pack, i == 0 ? "first" : "second");
        }
        esdm__plan_clear(&plan);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_index__a_commit_per_record_keeps_pages_few),
        cmocka_unit_test(test_index__rewriting_one_slab_does_not_collect_records),
        cmocka_unit_test(test_index__pages_apart_from_the_request_stay_unloaded),
        cmocka_unit_test(test_index__eviction_drops_the_longest_unused_and_spares_plans),
        cmocka_unit_test(test_index__wrong_fragments_are_refused),
        cmocka_unit_test(test_index__wrong_directory_entries_are_corrupt),
        cmocka_unit_test(test_index__large_inline_data_splits_pages),
        cmocka_unit_test(test_index__encoding_is_deterministic),
        cmocka_unit_test(test_index__count_stops_at_its_limit),
        cmocka_unit_test(test_index__many_fragments_are_cut_where_halves_share_few),
        cmocka_unit_test(test_index__plans_outlive_eviction_in_other_threads),
        cmocka_unit_test(test_index__names_of_plans_outlive_the_index),
    };
    return cmocka_run_group_tests_name("layout.index", tests, NULL, NULL);
}
