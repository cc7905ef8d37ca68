/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What an index keeps of its own commit is what another one decodes of the stored pages. */

#include "layout/index_private.h"
#include "layout_support.h"

enum { MANY = 9000, WIDTH = 40 };

static const uint8_t bytes[64] = {1, 2, 3, 4, 5, 6, 7, 8};

/* Fragments of all sorts, by their number. */
static void
make_fragment(esdm__index *index, rng *r, uint64_t i, esdm__fragment *f)
{
    static const char *const packs[] = {"pack-a", "pack-b", "pack-c"};
    *f = (esdm__fragment){.box = {.rank = 2, .lo = {i / WIDTH, i % WIDTH * 8}, .n = {1, 8}},
                          .raw_bytes = 64,
                          .stored_bytes = 64};
    if (i % 11 == 3) { /* once more, over what was there before */
        f->box.lo[0] -= f->box.lo[0] > 0 ? 1 : 0;
    }
    if (i % 5 == 1) {
        f->inline_data = bytes;
    } else if (i % 5 == 2) {
        f->kind = ESDM__KIND_CONSTANT;
        f->inline_data = bytes + i % 8;
        f->stored_bytes = 8;
    } else {
        f->pack = esdm__index_pack(index, i % 2 == 0 ? "disk" : "tape", packs[rng_below(r, 3)]);
        f->position = 64 * i;
        f->head_bytes = 16;
        f->codec_ids[0] = (uint8_t) (i % 3);
    }
    if (i % 7 == 4) {
        f->strided = true;
        f->box.n[1] = 7;
        f->stride[0] = 1;
        f->stride[1] = 3;
    }
    if (i % 3 != 0)
        f->statistics = (esdm__statistics){.min.f = (double) (i % 100) - 50,
                                           .max.f = (double) (i % 100),
                                           .sum = (double) i / 3,
                                           .valid = i % 9,
                                           .rule = (uint32_t) (i % 2),
                                           .class = ESDM__CLASS_FLOAT};
}

static bool
same_text(const char *a, const char *b)
{
    return strcmp(a, b) == 0;
}

static void
assert_same(const esdm__fragment *a, const esdm__fragment *b)
{
    assert_true(esdm__box_equal(&a->box, &b->box));
    assert_int_equal(a->sequence, b->sequence);
    assert_int_equal(a->raw_bytes, b->raw_bytes);
    assert_int_equal(a->stored_bytes, b->stored_bytes);
    assert_int_equal(a->position, b->position);
    assert_int_equal(a->head_bytes, b->head_bytes);
    assert_int_equal(a->kind, b->kind);
    assert_memory_equal(a->codec_ids, b->codec_ids, sizeof a->codec_ids);
    assert_int_equal(a->pack != NULL, b->pack != NULL);
    if (a->pack != NULL)
        assert_true(same_text(a->pack->target, b->pack->target) &&
                    same_text(a->pack->pack, b->pack->pack));
    assert_int_equal(a->inline_data != NULL, b->inline_data != NULL);
    if (a->inline_data != NULL)
        assert_memory_equal(a->inline_data, b->inline_data, (size_t) a->stored_bytes);
    assert_int_equal(a->strided, b->strided);
    for (uint32_t d = 0; a->strided && d < a->box.rank; d++)
        assert_int_equal(a->stride[d], b->stride[d]);
    assert_int_equal(a->statistics.class, b->statistics.class);
    assert_int_equal(a->statistics.valid, b->statistics.valid);
    assert_int_equal(a->statistics.rule, b->statistics.rule);
    assert_memory_equal(&a->statistics.min, &b->statistics.min, sizeof a->statistics.min);
    assert_memory_equal(&a->statistics.max, &b->statistics.max, sizeof a->statistics.max);
    assert_memory_equal(&a->statistics.sum, &b->statistics.sum, sizeof a->statistics.sum);
}

/* All that the pages of an index hold, page by page. */
static void
compare_pages(const store *s, esdm__index *index)
{
    for (size_t i = 0; i < s->count; i++) {
        const store_page *stored = &s->pages[i];
        esdm__page *kept = esdm__index_hold(index, stored->entry.page);
        esdm__page *decoded;
        assert_non_null(kept);
        assert_int_equal(
            esdm__page_decode(&stored->entry, stored->data, stored->bytes, &decoded, NULL),
            ESDM_OK);
        assert_int_equal(kept->records.count, decoded->records.count);
        assert_int_equal(kept->checksum, decoded->checksum);
        assert_int_equal(kept->tree.levels, decoded->tree.levels);
        assert_memory_equal(kept->tree.hulls, decoded->tree.hulls,
                            (size_t) kept->tree.start[kept->tree.levels] * 4 * sizeof(uint64_t));
        for (uint32_t k = 0; k < kept->records.count; k++) {
            esdm__fragment a, b;
            esdm__records_fragment(&kept->records, k, &a);
            esdm__records_fragment(&decoded->records, k, &b);
            assert_same(&a, &b);
        }
        esdm__page_unref(kept);
        esdm__page_unref(decoded);
    }
}

static void
test_committed__kept_pages_are_what_is_decoded(void **state)
{
    (void) state;
    rng r = {7};
    store s = {0};
    esdm__index *index = esdm__index_new(2);
    for (uint64_t commit = 0; commit < 3; commit++) {
        for (uint64_t i = 0; i < (commit == 0 ? MANY : 50); i++) {
            esdm__fragment f;
            make_fragment(index, &r, i * (commit + 1), &f);
            assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
        }
        store_commit(&s, index, false);
        assert_int_equal(esdm__index_pending_count(index), 0);
    }
    assert_true(s.count > 4);
    compare_pages(&s, index);
    esdm__index_free(index);
    store_clear(&s);
}

static uint32_t
records_of(const esdm__page_set *set)
{
    uint32_t count = 0;
    for (size_t i = 0; i < set->npages; i++)
        count += set->pages[i].records;
    return count;
}

/* Steps one after the other hide nothing; one that is written again hides the one before. */
static void
test_committed__hidden_ones_are_left_out_of_rows_too(void **state)
{
    (void) state;
    for (uint64_t again = 0; again < 3; again++) {
        esdm__index *index = esdm__index_new(2);
        esdm__page_set set = {0};
        for (uint64_t i = 0; i < 100 + again; i++) {
            esdm__fragment f = {.box = {.rank = 2, .lo = {i % 100 * 2, 0}, .n = {2, 5}},
                                .raw_bytes = 40,
                                .stored_bytes = 40,
                                .inline_data = bytes};
            assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
        }
        assert_int_equal(esdm__index_encode(index, NULL, 0, &set, NULL), ESDM_OK);
        assert_int_equal(records_of(&set), 100);
        esdm__page_set_clear(&set);
        esdm__index_free(index);
    }
}

static void
test_committed__statistics_of_pending_ones_together(void **state)
{
    (void) state;
    esdm__index *index = esdm__index_new(1);
    esdm__fragment f = {.box = {.rank = 1, .n = {8}},
                        .raw_bytes = 64,
                        .stored_bytes = 64,
                        .inline_data = bytes,
                        .statistics = {.class = ESDM__CLASS_DOUBLE, .rule = 5}};
    for (uint64_t i = 0; i < 4; i++) {
        f.box.lo[0] = 8 * i;
        f.statistics.valid = i == 0 ? 0 : 8;
        f.statistics.min.f = 10 - (double) i;
        f.statistics.max.f = 10 + (double) i;
        f.statistics.sum = i == 0 ? 0 : 80;
        assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
    }
    esdm__statistics total = {.class = ESDM__CLASS_DOUBLE, .rule = 5};
    assert_true(esdm__index_pending_statistics(index, &total));
    assert_int_equal(total.valid, 24);
    assert_true(total.min.f == 7 && total.max.f == 13 && total.sum == 240);
    esdm__statistics other = {.class = ESDM__CLASS_DOUBLE, .rule = 6};
    assert_false(esdm__index_pending_statistics(index, &other));
    assert_int_equal(other.valid, 0);
    f.statistics.class = ESDM__CLASS_NONE;
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
    assert_false(esdm__index_pending_statistics(index, &total));
    assert_int_equal(total.valid, 24);
    esdm__index_free(index);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_committed__kept_pages_are_what_is_decoded),
        cmocka_unit_test(test_committed__hidden_ones_are_left_out_of_rows_too),
        cmocka_unit_test(test_committed__statistics_of_pending_ones_together),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
