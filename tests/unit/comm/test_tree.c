/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The tree of ranks reaches everybody once, is shallow, and stays inside nodes. */
#include "comm/tree.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "support/sim_comm.h"

enum { STACK_BYTES = 96 << 10 };

typedef struct result {
    uint32_t *ranks; /* that rank 0 got, in order */
    size_t count;
    bool failed;
    int failing; /* a rank without memory; -1: none */
    size_t repeats;
} result;

static void
collect_numbers(esdm_comm *comm, void *user)
{
    result *r = user;
    esdm__tree tree;
    esdm__buffer buffer;
    assert_int_equal(esdm__tree_make(comm, &tree, NULL), ESDM_OK);
    esdm__buffer_init(&buffer);
    for (size_t i = 0; i < r->repeats; i++)
        esdm__buffer_put_u32(&buffer, (uint32_t) comm->rank);
    buffer.failed = comm->rank == r->failing;
    assert_int_equal(esdm__tree_collect(comm, &tree, &buffer, NULL, NULL, NULL), ESDM_OK);
    if (comm->rank == 0) {
        r->failed = buffer.failed;
        r->count = buffer.bytes / sizeof *r->ranks;
        r->ranks = malloc(buffer.bytes + 1);
        memcpy(r->ranks, buffer.data, buffer.bytes);
    }
    esdm__buffer_clear(&buffer);
    esdm__tree_clear(&tree);
}

static void
test_tree__rank_0_gets_everything_in_order(void **state)
{
    (void) state;
    static const int sizes[] = {1, 2, 7, 8, 9, 63, 64, 65, 500, 4097};
    static const int nodes[] = {0, 1, 3, 48, 64};
    for (size_t s = 0; s < sizeof sizes / sizeof sizes[0]; s++) {
        for (size_t n = 0; n < sizeof nodes / sizeof nodes[0]; n++) {
            size_t repeats = s % 2 == 0 ? 1 : 300; /* in the head of a message, and behind it */
            result r = {.failing = -1, .repeats = repeats};
            sim_world *w = sim_world_new(sizes[s], nodes[n], STACK_BYTES);
            sim_run(w, collect_numbers, &r);
            assert_false(r.failed);
            assert_int_equal(r.count, (size_t) sizes[s] * repeats);
            for (size_t i = 0; i < r.count; i++)
                assert_int_equal(r.ranks[i], i / repeats);
            free(r.ranks);
            sim_world_free(w);
        }
    }
}

static void
test_tree__a_rank_without_memory_is_heard_of_at_the_root(void **state)
{
    (void) state;
    for (int failing = 0; failing < 70; failing += 23) {
        result r = {.failing = failing, .repeats = 1};
        sim_world *w = sim_world_new(70, 16, STACK_BYTES);
        sim_run(w, collect_numbers, &r);
        assert_true(r.failed);
        free(r.ranks);
        sim_world_free(w);
    }
}

static void
collect_nothing(esdm_comm *comm, void *user)
{
    esdm__tree tree;
    esdm__buffer buffer;
    (void) user;
    assert_int_equal(esdm__tree_make(comm, &tree, NULL), ESDM_OK);
    esdm__buffer_init(&buffer);
    assert_int_equal(esdm__tree_collect(comm, &tree, &buffer, NULL, NULL, NULL), ESDM_OK);
    assert_int_equal(buffer.bytes, 0);
    assert_null(buffer.data);
    esdm__tree_clear(&tree);
}

static void
test_tree__very_many_ranks_are_a_few_messages_deep(void **state)
{
    (void) state;
    for (int node_ranks = 0; node_ranks <= 128; node_ranks += 128) {
        sim_world *w = sim_world_new(sim_many(), node_ranks, 32 << 10);
        sim_run(w, collect_nothing, NULL);
        sim_counts most = sim_most(w);
        print_message("%d ranks, %d a node: %d received by one, %d after each other\n", sim_many(),
                      node_ranks, (int) most.received, (int) most.depth);
        assert_int_equal(most.sent, 1);
        assert_in_range(most.received, 1, 60);
        assert_in_range(most.depth, 1, 120);
        sim_world_free(w);
    }
}

/* ---- what all ranks have, on all ---------------------------------------------------------- */

static void
spread_numbers(esdm_comm *comm, void *user)
{
    int *failing = user;
    esdm__tree tree;
    esdm__buffer buffer;
    esdm_error err = {0};
    size_t count = 0;
    assert_int_equal(esdm__tree_make(comm, &tree, NULL), ESDM_OK);
    esdm__buffer_init(&buffer);
    if (comm->rank % 3 == 0)
        esdm__buffer_put_u32(&buffer, (uint32_t) comm->rank);
    buffer.failed = comm->rank == *failing;
    esdm_status status = esdm__tree_spread(comm, &tree, &buffer, &err);
    assert_int_equal(status, *failing < 0 ? ESDM_OK : ESDM_ENOMEM);
    for (int r = 0; r < comm->size && status == ESDM_OK; r += 3) {
        uint32_t number;
        memcpy(&number, buffer.data + count++ * sizeof number, sizeof number);
        assert_int_equal(number, r);
    }
    assert_true(status != ESDM_OK || buffer.bytes == count * sizeof(uint32_t));
    esdm__buffer_clear(&buffer);
    esdm__tree_clear(&tree);
}

static void
test_tree__spreads_without_a_message_of_each_rank_to_all(void **state)
{
    (void) state;
    for (int size = 1; size <= 2000; size = 3 * size + 1) {
        for (int failing = -1; failing < size && failing < 2; failing++) {
            sim_world *w = sim_world_new(size, 4, STACK_BYTES);
            sim_run(w, spread_numbers, &failing);
            assert_in_range(sim_most(w).collectives, 1, 5); /* as many for all sizes */
            assert_in_range(sim_most(w).received, 0, 60);
            sim_world_free(w);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_tree__rank_0_gets_everything_in_order),
        cmocka_unit_test(test_tree__a_rank_without_memory_is_heard_of_at_the_root),
        cmocka_unit_test(test_tree__spreads_without_a_message_of_each_rank_to_all),
        cmocka_unit_test(test_tree__very_many_ranks_are_a_few_messages_deep),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
