/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Index pages: records come back, damage is noticed, bytes are as documented. */
#include "layout_support.h"

#include "base/checksum.h"
#include "layout/page.h"

/* A page with its directory entry. */
typedef struct sample {
    uint32_t rank;
    uint64_t box[2 * ESDM_MAX_RANK];
    esdm_meta_page entry;
    uint8_t *data;
    size_t bytes;
    esdm__records records;
    uint32_t *order;
} sample;

static const esdm__pack_name packs[3] = {{"scratch", "aa-1"}, {"scratch", "aa-2"}, {"home", "b"}};

/* Some with copies, some that one node has. */
static const esdm__pack_name special[3] = {
    {"scratch,home", "aa-1"}, {"burst@node7", "aa-2"}, {"home", "b"}};

static void
fill_record(rng *r, bool plain, uint32_t i, esdm__record *item, const uint8_t **data)
{
    static const uint8_t bytes[64] = "some inline data that is the same for everybody";
    *data = NULL;
    item->sequence = plain ? i : rng_below(r, 1u << 30);
    if (!plain && rng_below(r, 3) == 0) {
        *data = bytes;
        item->raw_bytes = item->stored_bytes = rng_below(r, sizeof bytes);
        return;
    }
    item->pack = &packs[plain ? 0 : rng_below(r, 3)];
    item->raw_bytes = plain ? 400 : rng_below(r, UINT64_C(1) << 40);
    item->stored_bytes = plain ? 480 : 80 + rng_below(r, UINT64_C(1) << 40);
    item->position = plain ? i * UINT64_C(480) : rng_below(r, UINT64_C(1) << 60);
    item->head_bytes = 80;
    item->codec_ids[0] = (uint8_t) (plain ? 1 : rng_below(r, 256));
}

static void
make_sample(sample *s, uint64_t seed, uint32_t rank, uint32_t count, bool absolute)
{
    rng r = {seed};
    bool plain = seed % 2 == 0; /* as a program writes it; otherwise at random */
    memset(s, 0, sizeof *s);
    s->rank = rank;
    esdm__records_init(&s->records, rank);
    s->order = malloc(count * sizeof *s->order);
    s->entry = (esdm_meta_page){.page = 3,
                                .dataset = 5,
                                .records = count,
                                .added = 9,
                                .absolute = absolute,
                                .rank = rank,
                                .box = s->box};
    uint64_t hull[2 * ESDM_MAX_RANK];
    for (uint32_t i = 0; i < count; i++) {
        uint64_t bounds[2 * ESDM_MAX_RANK];
        for (uint32_t d = 0; d < rank; d++) {
            bounds[d] = plain ? (d == 0 ? i : 0) : rng_below(&r, UINT64_C(1) << 50);
            bounds[rank + d] = bounds[d] + (plain ? 1 : 1 + rng_below(&r, 100));
        }
        esdm__record item = {0};
        const uint8_t *data;
        fill_record(&r, plain, i, &item, &data);
        uint64_t stride[ESDM_MAX_RANK];
        bool strided = seed % 3 == 0 && i % 2 == 1 && rank > 0 && !plain;
        for (uint32_t d = 0; d < rank && strided; d++) {
            stride[d] = 1 + rng_below(&r, 7);
            bounds[rank + d] = bounds[d] + 1 + stride[d] * (1 + rng_below(&r, 9));
        }
        assert_true(esdm__records_add(&s->records, bounds, strided ? stride : NULL, &item, data));
        s->order[i] = count - 1 - i;
        if (i == 0)
            esdm__bounds_copy(rank, hull, bounds);
        esdm__bounds_grow(rank, hull, bounds);
        s->entry.raw_bytes += item.raw_bytes;
        s->entry.stored_bytes += item.stored_bytes;
    }
    for (uint32_t d = 0; d < rank; d++) {
        s->box[d] = hull[d];
        s->box[rank + d] = hull[rank + d] - hull[d];
    }
    assert_int_equal(
        esdm__page_encode(&s->records, s->order, count, absolute, &s->data, &s->bytes, NULL),
        ESDM_OK);
}

static void
clear_sample(sample *s)
{
    esdm__records_clear(&s->records);
    free(s->order);
    free(s->data);
}

typedef struct visit {
    const sample *s;
    uint32_t next;
} visit;

static bool
compare_fragment(const esdm__fragment *f, void *user)
{
    visit *v = user;
    const sample *s = v->s;
    uint32_t i = s->order[v->next++];
    esdm__fragment expected;
    esdm__records_fragment(&s->records, i, &expected);
    assert_true(esdm__box_equal(&f->box, &expected.box));
    assert_int_equal(f->sequence,
                     s->entry.absolute ? expected.sequence : UINT64_C(9) << 32 | expected.sequence);
    assert_int_equal(f->raw_bytes, expected.raw_bytes);
    assert_int_equal(f->stored_bytes, expected.stored_bytes);
    assert_int_equal(f->position, expected.position);
    assert_int_equal(f->head_bytes, expected.head_bytes);
    assert_memory_equal(f->codec_ids, expected.codec_ids, 4);
    assert_int_equal(f->strided, expected.strided);
    if (f->strided)
        assert_memory_equal(f->stride, expected.stride, f->box.rank * sizeof *f->stride);
    if (expected.pack == NULL) {
        assert_null(f->pack);
        assert_memory_equal(f->inline_data, expected.inline_data, expected.stored_bytes);
    } else {
        assert_string_equal(f->pack->target, expected.pack->target);
        assert_string_equal(f->pack->pack, expected.pack->pack);
        assert_null(f->inline_data);
    }
    return true;
}

static void
test_page__records_come_back(void **state)
{
    (void) state;
    static const uint32_t counts[] = {1, 2, 3, 15, 16, 17, 100, 4095, 4096};
    for (uint64_t seed = 0; seed < 6; seed++) {
        for (size_t i = 0; i < sizeof counts / sizeof *counts; i++) {
            sample s;
            esdm__page *page;
            esdm_error err = {0};
            make_sample(&s, seed, seed == 5 ? ESDM_MAX_RANK : (uint32_t) seed, counts[i], seed < 3);
            if (esdm__page_decode(&s.entry, s.data, s.bytes, &page, &err) != ESDM_OK)
                fail_msg("%s", err.message);
            visit v = {&s, 0};
            assert_true(esdm__page_visit(page, compare_fragment, &v));
            assert_int_equal(v.next, counts[i]);
            esdm__page_unref(page);
            clear_sample(&s);
        }
    }
    esdm__page_unref(NULL);
}

static void
test_page__steps_of_a_time_series_take_few_bytes(void **state)
{
    (void) state;
    sample s;
    make_sample(&s, 2, 4, 4096, false);
    assert_true(s.bytes < 200);
    clear_sample(&s);
}

static void
test_page__header_bytes_are_as_documented(void **state)
{
    (void) state;
    sample s;
    make_sample(&s, 0, 1, 1, true);
    static const uint8_t expected[] = {
        1, 0,   1,   0,   1,   0,   0,   0,   1,   0, 0,   0,   43,  0,   0, 0, /* header from 16 */
        1, 7,   's', 'c', 'r', 'a', 't', 'c', 'h', 4, 'a', 'a', '-', '1',       /* packs */
        0, 0,   0,   0,   1,   0,                     /* lower corner 0, size 1 */
        0, 0,   0,   0,   144, 3,   0,                /* sequence 0, raw 400 */
        0, 224, 3,   0,   0,   1,   0,   0,   0,   0, /* stored 480, pack 1, position 0 */
        0, 80,  0,   0,   1,   0};                    /* head 80, codec 1 */
    assert_memory_equal(s.data, "ESDMPAGE", 8);
    assert_int_equal(s.bytes, 16 + sizeof expected);
    assert_memory_equal(s.data + 16, expected, sizeof expected);
    clear_sample(&s);
}

static void
test_page__every_truncation_and_flipped_bit_is_corrupt(void **state)
{
    (void) state;
    for (uint64_t seed = 0; seed < 2; seed++) {
        sample s;
        make_sample(&s, seed, 2, 40, seed == 0);
        esdm__page *page = (esdm__page *) &s;
        for (size_t length = 0; length < s.bytes; length++) {
            uint8_t *cut = malloc(length + (length == 0));
            memcpy(cut, s.data, length);
            assert_int_equal(esdm__page_decode(&s.entry, cut, length, &page, NULL), ESDM_ECORRUPT);
            free(cut);
        }
        for (size_t bit = 0; bit < 8 * s.bytes; bit++) {
            s.data[bit / 8] ^= (uint8_t) (1u << (bit % 8));
            assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, NULL),
                             ESDM_ECORRUPT);
            s.data[bit / 8] ^= (uint8_t) (1u << (bit % 8));
        }
        assert_ptr_equal(page, &s);
        clear_sample(&s);
    }
}

static void
seal(uint8_t *data, size_t bytes)
{
    uint64_t checksum = esdm__checksum(data + 16, bytes - 16);
    memcpy(data + 8, &checksum, sizeof checksum);
}

/* With a right checksum over wrong bytes, nothing may crash, and what decodes must be sound. */
static void
test_page__sealed_nonsense_does_no_harm(void **state)
{
    (void) state;
    rng r = {3};
    size_t accepted = 0;
    for (uint64_t seed = 0; seed < 4; seed++) {
        sample s;
        make_sample(&s, seed, 1 + (uint32_t) seed % 3, 30, seed < 2);
        for (int round = 0; round < 20000; round++) {
            size_t bytes = s.bytes - (rng_below(&r, 4) == 0 ? rng_below(&r, s.bytes - 32) : 0);
            uint8_t *copy = malloc(bytes);
            memcpy(copy, s.data, bytes);
            for (uint64_t n = 1 + rng_below(&r, 3); n > 0; n--)
                copy[16 + rng_below(&r, bytes - 16)] = (uint8_t) rng_below(&r, 256);
            seal(copy, bytes);
            esdm__page *page;
            esdm_status st = esdm__page_decode(&s.entry, copy, bytes, &page, NULL);
            if (st == ESDM_OK) {
                accepted++;
                for (uint32_t i = 0; i < page->records.count; i++) {
                    esdm__fragment f;
                    esdm__records_fragment(&page->records, i, &f);
                    assert_false(esdm__box_is_empty(&f.box));
                    if (f.pack == NULL && f.stored_bytes > 0)
                        assert_true(f.inline_data[f.stored_bytes - 1] <= 255);
                }
                esdm__page_unref(page);
            } else {
                assert_true(st == ESDM_ECORRUPT || st == ESDM_ENOTSUP);
            }
            free(copy);
        }
        clear_sample(&s);
    }
    assert_true(accepted > 0);
}

static void
test_page__differences_from_the_directory_are_corrupt(void **state)
{
    (void) state;
    sample s;
    esdm__page *page;
    esdm_error err;
    make_sample(&s, 1, 2, 20, true);
    esdm_meta_page entry = s.entry;
    entry.records++;
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    assert_non_null(strstr(err.message, "index page 3 of dataset 5 is damaged"));
    entry = s.entry;
    entry.rank = 1;
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    entry = s.entry;
    entry.absolute = false;
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    entry = s.entry;
    entry.raw_bytes++;
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    entry = s.entry;
    s.box[3]--;
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    assert_non_null(strstr(err.message, "box differs"));
    s.box[3]++;
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_OK);
    esdm__page_unref(page);

    s.data[16] = 6;
    seal(s.data, s.bytes);
    assert_int_equal(esdm__page_decode(&entry, s.data, s.bytes, &page, &err), ESDM_ENOTSUP);
    assert_non_null(strstr(err.message, "use a newer ESDM"));
    clear_sample(&s);
}

/* Pages with copies or node-local packs have version 3, which older readers refuse; strides and
 * places go together. */
static void
test_page__places_of_packs_come_back(void **state)
{
    (void) state;
    for (uint64_t seed = 0; seed < 6; seed++) {
        sample s;
        esdm__page *page = NULL;
        esdm_error err;
        make_sample(&s, seed, 2, 50, true);
        for (uint32_t i = 0; i < s.records.count; i++) {
            esdm__record *item = &s.records.items[i];
            item->pack = item->pack != NULL ? &special[item->pack - packs] : NULL;
        }
        free(s.data);
        assert_int_equal(esdm__page_encode(&s.records, s.order, 50, true, &s.data, &s.bytes, NULL),
                         ESDM_OK);
        assert_int_equal(s.data[16], 3);
        assert_int_equal((s.data[18] & 4) != 0, s.records.strides != NULL);
        assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, &err), ESDM_OK);
        visit v = {.s = &s};
        assert_true(esdm__page_visit(page, compare_fragment, &v));
        esdm__page_unref(page);
        s.data[16] = s.records.strides != NULL ? 2 : 1;
        s.data[18] &= 3;
        seal(s.data, s.bytes);
        assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
        assert_non_null(strstr(err.message, "target"));
        clear_sample(&s);
    }
}

static void
test_page__a_body_larger_than_its_bytes_explain_is_refused(void **state)
{
    (void) state;
    sample s;
    esdm__page *page;
    esdm_error err;
    make_sample(&s, 2, 1, 4096, false);
    assert_true(s.data[18] & 2);
    const uint32_t huge = ESDM__PAGE_BODY_MAX;
    memcpy(s.data + 28, &huge, sizeof huge);
    seal(s.data, s.bytes);
    assert_int_equal(esdm__page_decode(&s.entry, s.data, s.bytes, &page, &err), ESDM_ECORRUPT);
    assert_non_null(strstr(err.message, "its length is wrong"));
    clear_sample(&s);
}

static void
test_page__columns_hold_any_numbers(void **state)
{
    (void) state;
    static const uint64_t columns[][5] = {
        {0, 0, 0, 0, 0}, {5, 5, 5, 5, 5},
        {1, 2, 3, 4, 5}, {UINT64_MAX, 0, UINT64_MAX, 1, UINT64_MAX / 2},
        {9, 7, 5, 3, 1}, {0, UINT64_MAX, UINT64_MAX - 1, 3, 3}};
    for (size_t c = 0; c < sizeof columns / sizeof *columns; c++) {
        for (uint32_t count = 0; count <= 5; count++) {
            esdm__buffer buffer;
            esdm__cursor cursor;
            uint64_t values[5];
            esdm__buffer_init(&buffer);
            esdm__column_put(&buffer, columns[c], count);
            esdm__cursor_init(&cursor, buffer.data, buffer.bytes);
            esdm__column_get(&cursor, values, count);
            assert_false(cursor.failed);
            assert_int_equal(esdm__cursor_left(&cursor), 0);
            assert_memory_equal(values, columns[c], count * sizeof *values);
            esdm__buffer_clear(&buffer);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_page__records_come_back),
        cmocka_unit_test(test_page__steps_of_a_time_series_take_few_bytes),
        cmocka_unit_test(test_page__header_bytes_are_as_documented),
        cmocka_unit_test(test_page__every_truncation_and_flipped_bit_is_corrupt),
        cmocka_unit_test(test_page__sealed_nonsense_does_no_harm),
        cmocka_unit_test(test_page__differences_from_the_directory_are_corrupt),
        cmocka_unit_test(test_page__places_of_packs_come_back),
        cmocka_unit_test(test_page__a_body_larger_than_its_bytes_explain_is_refused),
        cmocka_unit_test(test_page__columns_hold_any_numbers),
    };
    return cmocka_run_group_tests_name("layout.page", tests, NULL, NULL);
}
