/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file The states of a pack: what each event makes of each, and what can never happen. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "io/packs/pack_state.h"

enum { O = ESDM__PACK_OPEN, E = ESDM__PACK_ENDING, S = ESDM__PACK_SEALED, F = ESDM__PACK_FAILED };
enum { G = ESDM__PACK_GONE };
enum { N = ESDM__PACK_UNUSED, B = ESDM__PACK_OFFERED, D = ESDM__PACK_DOUBTED };
enum { C = ESDM__PACK_COMMITTED, U = ESDM__PACK_UNVERIFIED };

static void
test_pack_state__each_event_has_its_place_in_the_table(void **state)
{
    (void) state;
    static const int next[][5] = {
        /* from OPEN, ENDING, SEALED, FAILED, GONE */
        [ESDM__PACK_ENDS] = {E, E, S, F, G},   [ESDM__PACK_ANSWERED] = {O, O, S, F, G},
        [ESDM__PACK_STORED] = {S, S, S, F, G}, [ESDM__PACK_REFUSED] = {F, F, F, F, G},
        [ESDM__PACK_AGAIN] = {O, E, S, O, G},  [ESDM__PACK_VANISHED] = {G, G, G, G, G},
    };
    for (int event = ESDM__PACK_ENDS; event <= ESDM__PACK_VANISHED; event++) {
        for (int stage = O; stage <= G; stage++)
            assert_int_equal(
                esdm__pack_stage_next((esdm__pack_stage) stage, (esdm__pack_event) event),
                next[event][stage]);
    }
}

static void
test_pack_state__what_commits_do_has_its_place_in_the_table(void **state)
{
    (void) state;
    static const int next[][5] = {
        /* from UNUSED, OFFERED, DOUBTED, COMMITTED, UNVERIFIED */
        [ESDM__COMMIT_OFFERS] = {B, D, D, C, U},
        [ESDM__COMMIT_WITHDRAWS] = {N, N, D, C, U},
        [ESDM__COMMIT_SUCCEEDS] = {C, C, C, C, C},
        [ESDM__COMMIT_UNANSWERED] = {U, U, U, U, U},
    };
    for (int commit = ESDM__COMMIT_OFFERS; commit <= ESDM__COMMIT_UNANSWERED; commit++) {
        for (int use = N; use <= U; use++)
            assert_int_equal(esdm__pack_use_next((esdm__pack_use) use, (esdm__pack_commit) commit),
                             next[commit][use]);
    }
}

/* Whatever a commit did after an answer that never came, the pack stays. */
static void
test_pack_state__what_may_be_in_use_never_becomes_unused(void **state)
{
    (void) state;
    for (unsigned walk = 0; walk < 4096; walk++) {
        esdm__pack_use use = ESDM__PACK_UNUSED;
        int offers = 0;
        for (unsigned step = 0; step < 6; step++) {
            esdm__pack_commit commit = (esdm__pack_commit) (walk >> 2 * step & 3);
            if (commit == ESDM__COMMIT_OFFERS)
                offers++;
            if (commit == ESDM__COMMIT_WITHDRAWS && offers == 1)
                offers = 0; /* that one is known not to have taken place */
            use = esdm__pack_use_next(use, commit);
            if (offers > 1 || commit > ESDM__COMMIT_WITHDRAWS)
                offers = 2;
            assert_int_equal(use != ESDM__PACK_UNUSED, offers > 0);
        }
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_state__each_event_has_its_place_in_the_table),
        cmocka_unit_test(test_pack_state__what_commits_do_has_its_place_in_the_table),
        cmocka_unit_test(test_pack_state__what_may_be_in_use_never_becomes_unused),
    };
    return cmocka_run_group_tests_name("io.pack_state", tests, NULL, NULL);
}
