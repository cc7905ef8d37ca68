/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Whether ranks meet: as all pairs of boxes say, and cheaply for very many ranks. */
#include "io/ranks/meeting.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sim_comm.h"

enum { STACK_BYTES = 24 << 10, RANK = 3 };

/* One collective transfer after the other, as every rank does them. */
typedef struct story {
    int transfers;
    uint32_t unlimited;
    /* What a rank transfers; false: nothing. */
    bool (*box_of)(const struct story *story, int rank, int size, int transfer, esdm__box *ret_box);
    uint64_t seed;
    uint8_t *met; /* rank 0's answers */
} story;

static void
transfer_all(esdm_comm *comm, void *user)
{
    story *s = user;
    esdm__tree tree;
    esdm__box box;
    esdm__box hull;
    esdm__territory territory = {0};
    bool has_hull = false;
    assert_int_equal(esdm__tree_make(comm, &tree, NULL), ESDM_OK);
    for (int t = 0; t < s->transfers; t++) {
        uint64_t numbers[ESDM__MEETING_AXES + ESDM__MEETING_AXIS_NUMBERS * RANK];
        bool meets = false;
        bool some = s->box_of(s, comm->rank, comm->size, t, &box);
        esdm__meeting m = {.rank = RANK,
                           .unlimited = s->unlimited,
                           .box = some ? &box : NULL,
                           .hull = has_hull ? &hull : NULL,
                           .territory = &territory};
        esdm__meeting_tell(&m, numbers);
        assert_int_equal(comm->ops->maximum(comm, numbers, esdm__meeting_numbers(RANK), NULL),
                         ESDM_OK);
        assert_int_equal(esdm__meeting_decide(comm, &tree, &m, numbers, &meets, NULL), ESDM_OK);
        if (comm->rank == 0)
            s->met[t] = meets;
        has_hull = has_hull && !meets; /* as a cut does */
        if (some && has_hull)
            esdm__box_hull(&hull, &box);
        else if (some)
            hull = box;
        has_hull |= some;
    }
    esdm__tree_clear(&tree);
}

/* ---- random ones -------------------------------------------------------------------------- */

static uint64_t
hash(uint64_t x)
{
    x = (x ^ x >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ x >> 27) * UINT64_C(0x94d049bb133111eb);
    return x ^ x >> 31;
}

/* Each rank has a part of its own, which it sometimes leaves, and sometimes does nothing. */
static bool
random_box(const story *s, int rank, int size, int transfer, esdm__box *ret_box)
{
    uint64_t x = hash(s->seed * 1000003 + (uint64_t) rank * 1009 + (uint64_t) transfer);
    uint64_t period = 2 + s->seed % 9;
    (void) size;
    if (x % 7 == 0)
        return false;
    uint64_t step = s->seed % 3 == 0 ? 0 : (uint64_t) transfer / period;
    uint64_t lo[RANK] = {step, (uint64_t) (rank / 4) * 10, (uint64_t) (rank % 4) * 10};
    uint64_t n[RANK] = {1, 1 + (x >> 8) % 10, 1 + (x >> 16) % 10};
    if ((x >> 24) % 40 == 0)
        n[1] += 5;
    esdm__box_set(ret_box, RANK, lo, n);
    return true;
}

/* The answers by all pairs, with the same hulls. */
static void
expect_all_pairs(const story *s, int size, uint8_t *expected)
{
    esdm__box *hulls = calloc((size_t) size, sizeof *hulls);
    esdm__box *boxes = calloc((size_t) size, sizeof *boxes);
    bool *has_hull = calloc((size_t) size, sizeof *has_hull);
    bool *has_box = calloc((size_t) size, sizeof *has_box);
    for (int t = 0; t < s->transfers; t++) {
        for (int r = 0; r < size; r++)
            has_box[r] = s->box_of(s, r, size, t, &boxes[r]);
        expected[t] = 0;
        for (int a = 0; a < size; a++)
            for (int b = 0; b < size; b++)
                expected[t] |=
                    a != b && has_box[a] && has_hull[b] && esdm__box_meets(&boxes[a], &hulls[b]);
        for (int r = 0; r < size; r++) {
            has_hull[r] = has_hull[r] && !expected[t];
            if (has_box[r] && has_hull[r])
                esdm__box_hull(&hulls[r], &boxes[r]);
            else if (has_box[r])
                hulls[r] = boxes[r];
            has_hull[r] |= has_box[r];
        }
    }
    free(hulls);
    free(boxes);
    free(has_hull);
    free(has_box);
}

static void
test_meeting__is_found_as_by_all_pairs(void **state)
{
    (void) state;
    enum { TRANSFERS = 24 };
    uint8_t met[TRANSFERS];
    uint8_t expected[TRANSFERS];
    int found = 0;
    for (uint64_t seed = 1; seed <= 120; seed++) {
        int size = 1 + (int) (hash(seed) % 40);
        story s = {.transfers = TRANSFERS,
                   .unlimited = seed % 2 == 0 ? 1 : 0,
                   .box_of = random_box,
                   .seed = seed,
                   .met = met};
        sim_world *w = sim_world_new(size, seed % 4 == 0 ? 6 : 0, 96 << 10);
        sim_run(w, transfer_all, &s);
        sim_world_free(w);
        expect_all_pairs(&s, size, expected);
        for (int t = 0; t < TRANSFERS; t++) {
            assert_int_equal(met[t], expected[t]);
            found += met[t];
        }
    }
    assert_in_range(found, 200, 120 * TRANSFERS - 200);
}

/* ---- very many ranks ---------------------------------------------------------------------- */

/* A field of 250 x 400 parts: a step of all, every other transfer the same step once more. */
static bool
part_of_field(const story *s, int rank, int size, int transfer, esdm__box *ret_box)
{
    uint64_t lo[RANK] = {(uint64_t) transfer / 2, (uint64_t) (rank / 400) * 10,
                         (uint64_t) (rank % 400) * 10};
    uint64_t n[RANK] = {1, 10, 10};
    (void) s, (void) size;
    esdm__box_set(ret_box, RANK, lo, n);
    return true;
}

/* Blocks whose sizes differ, in another order than the ranks', one element away from each other. */
static bool
scattered_part(const story *s, int rank, int size, int transfer, esdm__box *ret_box)
{
    uint64_t at = (uint64_t) rank * 77773 % (uint64_t) size;
    uint64_t x = hash(at);
    uint64_t lo[RANK] = {0, at / 300 * 20, at % 300 * 20};
    uint64_t n[RANK] = {1, 1 + x % 19, 1 + (x >> 8) % 19};
    (void) s, (void) transfer;
    esdm__box_set(ret_box, RANK, lo, n);
    return true;
}

/* Ranks take turns along a limited axis, and come back to where they were: no two of them ever
 * meet, but what they wrote lies mixed. */
static bool
part_in_turn(const story *s, int rank, int size, int transfer, esdm__box *ret_box)
{
    uint64_t lo[RANK] = {(uint64_t) transfer % 2 * (uint64_t) size + (uint64_t) rank, 0, 0};
    uint64_t n[RANK] = {1, 10, 10};
    (void) s;
    esdm__box_set(ret_box, RANK, lo, n);
    return true;
}

/* Two ranks of all do something. */
static bool
lonely_part(const story *s, int rank, int size, int transfer, esdm__box *ret_box)
{
    uint64_t lo[RANK] = {0, (uint64_t) rank, 0};
    uint64_t n[RANK] = {1, 1, 1};
    (void) s, (void) transfer;
    esdm__box_set(ret_box, RANK, lo, n);
    return rank == 5 || rank == size - 1;
}

static sim_counts
run_many(story *s, uint8_t *met, const char *what)
{
    static sim_world *w; /* for all: its stacks need new pages */
    if (w == NULL)
        w = sim_world_new(sim_many(), 128, STACK_BYTES);
    s->met = met;
    sim_run(w, transfer_all, s);
    sim_counts most = sim_most(w);
    print_message("%d ranks, %s, %d transfers: %.1f ms of CPU on one rank at most, %d messages "
                  "received, %d sent (%d KB), %d deep\n",
                  sim_many(), what, s->transfers, 1e3 * most.cpu_s, (int) most.received,
                  (int) most.sent, (int) (most.sent_bytes >> 10), (int) most.depth);
    return most;
}

static void
test_meeting__of_very_many_ranks_is_told_by_a_few_numbers(void **state)
{
    (void) state;
    uint8_t met[8];
    story s = {.transfers = 8, .unlimited = 1, .box_of = part_of_field};
    sim_counts most = run_many(&s, met, "a field step by step, each twice");
    for (int t = 0; t < 8; t++)
        assert_false(met[t]);
    /* One comparison of territories; all else follows from the numbers. */
    assert_int_equal(most.sent, 1);
    assert_in_range(most.received, 1, 60);
    assert_int_equal(most.collectives, 8 + 1);
    assert_true(most.sent_bytes < 2000); /* neighbours became one box on the way */
    assert_true(most.cpu_s < 1);         /* all pairs: 8 x 16 s */
}

static void
test_meeting__of_very_many_scattered_ranks_is_found_at_rank_0(void **state)
{
    (void) state;
    uint8_t met[3];
    story s = {.transfers = 3, .box_of = scattered_part};
    sim_counts most = run_many(&s, met, "parts without order");
    for (int t = 0; t < 3; t++)
        assert_false(met[t]);
    assert_int_equal(most.collectives, 3 + 1);
    assert_true(most.cpu_s < 2);
}

static void
test_meeting__of_ranks_that_take_turns_compares_territories_rarely(void **state)
{
    (void) state;
    enum { TRANSFERS = 12 };
    uint8_t met[TRANSFERS];
    uint8_t expected[TRANSFERS];
    story s = {.transfers = TRANSFERS, .box_of = part_in_turn, .met = met};
    sim_world *w = sim_world_new(300, 0, 96 << 10);
    sim_run(w, transfer_all, &s);
    expect_all_pairs(&s, 300, expected);
    assert_memory_equal(met, expected, TRANSFERS);
    size_t looks = sim_most(w).collectives - TRANSFERS; /* answers that rank 0 told */
    assert_in_range(looks, 2, TRANSFERS + 1);
    sim_world_free(w);
}

static void
test_meeting__of_two_ranks_among_many_costs_a_message(void **state)
{
    (void) state;
    uint8_t met[4];
    story s = {.transfers = 4, .box_of = lonely_part};
    sim_counts most = run_many(&s, met, "two of them with data");
    for (int t = 0; t < 4; t++)
        assert_false(met[t]);
    assert_int_equal(most.collectives, 4 + 1);
    assert_int_equal(most.sent, 1);
    assert_true(most.sent_bytes < 2000);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_meeting__is_found_as_by_all_pairs),
        cmocka_unit_test(test_meeting__of_very_many_ranks_is_told_by_a_few_numbers),
        cmocka_unit_test(test_meeting__of_very_many_scattered_ranks_is_found_at_rank_0),
        cmocka_unit_test(test_meeting__of_ranks_that_take_turns_compares_territories_rarely),
        cmocka_unit_test(test_meeting__of_two_ranks_among_many_costs_a_message),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
