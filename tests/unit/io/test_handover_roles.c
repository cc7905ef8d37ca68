/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Who stores for whom. */
#include "io/ranks/handover_roles.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>

#include <cmocka.h>

enum { NODES = 3, RANKS = 12 };

/* Nodes of 2, 4 and 6 ranks, in turns as long as they have some. */
static const int here[NODES][6] = {{0, 3}, {1, 4, 6, 8}, {2, 5, 7, 9, 10, 11}};
static const size_t nhere[NODES] = {2, 4, 6};
static const int leaders[NODES] = {0, 1, 2};

static esdm__handover_role
role_of(int rank, uint32_t io, bool known)
{
    size_t node = 0;
    for (size_t i = 0; i < NODES; i++) {
        for (size_t k = 0; k < nhere[i]; k++)
            node = here[i][k] == rank ? i : node;
    }
    const esdm_comm_nodes nodes = {here[node], nhere[node], leaders, NODES};
    const esdm_comm comm = {.rank = rank, .size = RANKS, .nodes = known ? &nodes : NULL};
    return esdm__handover_role_of(&comm, io);
}

/* @return how many store. */
static int
count_storing(uint32_t io, bool known)
{
    int storing = 0;
    for (int rank = 0; rank < RANKS; rank++) {
        const esdm__handover_role role = role_of(rank, io, known);
        const esdm__handover_role other = role_of(role.stores, io, known);
        assert_int_equal(other.stores, role.stores); /* who stores hands nothing over */
        assert_true(role.stores == rank || other.serves);
        storing += role.stores == rank;
    }
    return storing;
}

static void
test_roles__as_many_store_as_are_wanted(void **state)
{
    (void) state;
    for (uint32_t io = 1; io <= RANKS; io++)
        assert_int_equal(count_storing(io, false), io);
    assert_int_equal(count_storing(0, false), RANKS);
    assert_int_equal(count_storing(1000, false), RANKS);
}

static void
test_roles__each_node_has_one(void **state)
{
    (void) state;
    assert_int_equal(count_storing(1, true), NODES);
    assert_int_equal(count_storing(3, true), NODES);
    assert_int_equal(count_storing(6, true), 6);
    for (int rank = 0; rank < RANKS; rank++) {
        size_t node = 0;
        int stores = role_of(rank, 6, true).stores;
        for (size_t i = 0; i < NODES; i++) {
            for (size_t k = 0; k < nhere[i]; k++)
                node = here[i][k] == rank ? i : node;
        }
        bool same = false;
        for (size_t k = 0; k < nhere[node]; k++)
            same |= here[node][k] == stores;
        assert_true(same);
    }
}

static void
test_roles__groups_are_even(void **state)
{
    int of[RANKS] = {0};
    (void) state;
    for (int rank = 0; rank < RANKS; rank++)
        of[role_of(rank, 5, false).stores]++;
    for (int rank = 0; rank < RANKS; rank++)
        assert_true(of[rank] == 0 || of[rank] == 2 || of[rank] == 3);
    assert_false(role_of(0, RANKS, false).serves);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_roles__as_many_store_as_are_wanted),
        cmocka_unit_test(test_roles__each_node_has_one),
        cmocka_unit_test(test_roles__groups_are_even),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
