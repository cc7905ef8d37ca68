/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The packs of a container over targets that fail, forget or end: what is durable, and what is
 * never forgotten. */
#include "fake_targets.h"

static void
assert_fails(esdm__pack_set *packs, bool durable, const char *words)
{
    esdm_error error = {0};
    assert_int_equal(esdm__pack_set_publish(packs, durable, &error), ESDM_EIO);
    assert_non_null(strstr(error.message, words));
}

static void
test_pack_set__a_failed_sync_is_never_forgotten(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_SYSTEM, 1000);
    assert_int_equal(append(packs), ESDM_OK);
    did.fail_sync = true;
    assert_fails(packs, true, "the disk is broken");
    did.fail_sync = false;
    assert_fails(packs, true, "the disk is broken");
    assert_int_equal(append(packs), ESDM_OK); /* not into the same pack */
    assert_int_equal(did.created, 2);
    assert_fails(packs, true, "the disk is broken");
    esdm__pack_set_free(packs);
    assert_int_equal(did.removed, 2);
}

static void
test_pack_set__a_failed_seal_is_never_forgotten(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(0, ESDM__DURABLE_PROCESS, 1000);
    assert_int_equal(append(packs), ESDM_OK);
    did.fail_seal = true;
    assert_fails(packs, false, "the server is gone");
    did.fail_seal = false;
    assert_fails(packs, false, "the server is gone");
    esdm__pack_set_free(packs);

    packs = new_packs(0, ESDM__DURABLE_PROCESS, 12);
    assert_int_equal(append(packs), ESDM_OK);
    did.fail_seal = true;
    assert_int_equal(append(packs), ESDM_EIO); /* the pack is full: it is sealed */
    did.fail_seal = false;
    assert_int_equal(append(packs), ESDM_OK);
    assert_fails(packs, false, "the server is gone"); /* the first blob may be lost */
    esdm__pack_set_free(packs);
}

static void
test_pack_set__what_is_sealed_for_a_read_is_flushed_first(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(0, ESDM__DURABLE_SYSTEM, 1000);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(esdm__pack_set_make_readable(packs, NULL), ESDM_OK);
    assert_int_equal(did.synced, 1);
    assert_int_equal(did.sealed, 1);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    assert_int_equal(did.synced, 1);
    esdm__pack_set_committed(packs);
    esdm__pack_set_free(packs);
    assert_int_equal(did.removed, 0);
}

static void
test_pack_set__packs_are_flushed_once(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_SYSTEM, 12);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    assert_int_equal(did.synced, 1);
    assert_int_equal(did.sealed, 0);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK); /* full: sealed */
    assert_int_equal(did.synced, 2);
    assert_int_equal(did.sealed, 1);
    esdm__pack_set_free(packs);
}

static void
test_pack_set__a_target_may_ask_for_the_end_of_a_pack(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(0, ESDM__DURABLE_PROCESS, 1000);
    plugin.pack_is_full = fake_is_full;
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(did.created, 1);
    did.full = true;
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(did.sealed, 1);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(did.created, 2);
    assert_int_equal(did.sealed, 2);
    esdm__pack_set_free(packs);
}

static void
test_pack_set__a_seal_that_is_durable_needs_no_flush(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(ESDM_DATA_SEAL_DURABLE, ESDM__DURABLE_SYSTEM, 12);
    did.fail_sync = true;
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(append(packs), ESDM_OK); /* full: sealed at once */
    assert_int_equal(did.sealed, 1);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    assert_int_equal(did.sealed, 2);
    assert_int_equal(did.synced, 0);
    esdm__pack_set_free(packs);
}

/* The bytes of a pack on such a target are in memory until it is sealed: that does not wait for the
 * flush of its copy on another target, at the commit. */
static void
test_pack_set__full_packs_are_sealed_where_one_target_keeps_them_in_memory(void **state)
{
    (void) state;
    for (int first = 0; first < 2; first++) {
        esdm__pack_set *packs = new_packs(first ? ESDM_DATA_SEAL_DURABLE : ESDM_DATA_READ_UNSEALED,
                                          ESDM__DURABLE_SYSTEM, 12);
        mirror_plugin.flags = first ? ESDM_DATA_READ_UNSEALED : ESDM_DATA_SEAL_DURABLE;
        session.ntargets = 2;
        for (int i = 0; i < 3; i++)
            append_copied(packs);
        assert_int_equal(did.created, 4);
        assert_int_equal(did.sealed, 1);
        assert_int_equal(did.mirrors_sealed, 1);
        assert_int_equal(did.synced, first ? 0 : 1); /* before it is sealed */
        assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
        esdm__pack_set_free(packs);
    }
    esdm__pack_set *packs = new_packs(ESDM_DATA_SEAL_DURABLE, ESDM__DURABLE_SYSTEM, 12);
    plugin.pack_begin_seal = fake_begin_seal;
    session.ntargets = 2;
    append_copied(packs);
    append_copied(packs);
    assert_int_equal(did.begun, 1);
    esdm__pack_set_free(packs);
}

static void
test_pack_set__what_nobody_refers_to_is_discarded(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(0, ESDM__DURABLE_PROCESS, 12);
    plugin.pack_discard = fake_discard;
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(append(packs), ESDM_OK); /* full: sealed */
    assert_int_equal(append(packs), ESDM_OK);
    esdm__pack_set_free(packs);
    assert_int_equal(did.sealed, 1);
    assert_int_equal(did.removed, 1); /* the sealed one */
    assert_int_equal(did.discarded, 1);

    packs = new_packs(0, ESDM__DURABLE_PROCESS, 1000);
    plugin.pack_discard = fake_discard;
    assert_int_equal(append(packs), ESDM_OK);
    esdm__pack_set_committed(packs);
    esdm__pack_set_free(packs);
    assert_int_equal(did.sealed, 1);
    assert_int_equal(did.removed + did.discarded, 0);
}

static void
test_pack_set__what_replaces_others_is_durable_on_any_site(void **state)
{
    (void) state;
    esdm__pack_set_free(new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_PROCESS, 1000));
    owner.durable = true;
    esdm__pack_set *packs = esdm__pack_set_new(&owner);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    assert_int_equal(did.synced, 1);
    assert_int_equal(append(packs), ESDM_OK);
    did.fail_sync = true;
    assert_fails(packs, true, "the disk is broken");
    esdm__pack_set_free(packs);

    /* A target whose contents go with the process has nothing to promise. */
    esdm__pack_set_free(
        new_packs(ESDM_DATA_READ_UNSEALED | ESDM_DATA_VOLATILE, ESDM__DURABLE_PROCESS, 1000));
    owner.durable = true;
    packs = esdm__pack_set_new(&owner);
    did.fail_sync = true;
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    esdm__pack_set_free(packs);
}

/* The primary's flush fails, its seal does not; then the copy is lost, too. */
static void
test_pack_set__a_failed_sync_counts_when_the_copy_is_lost_later(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_copied_packs();
    did.fail_sync = true;
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK); /* the copy has it */
    did.fail_sync = false;
    assert_int_equal(append(packs), ESDM_OK); /* not into the pack of which a part is lost */
    assert_int_equal(did.created, 3);
    did.fail_mirror_seal = true;
    plugin.flags = 0; /* all packs are sealed, so that they can be read */
    esdm_error error = {0};
    assert_int_equal(esdm__pack_set_publish(packs, true, &error), ESDM_EIO);
    assert_non_null(strstr(error.message, "the disk is broken"));
    esdm__pack_set_free(packs);
}

static void
test_pack_set__a_later_sync_does_not_make_good_a_failed_one(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_copied_packs();
    esdm_error error = {0};
    did.fail_sync = true;
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    did.fail_sync = false;
    did.fail_mirror_sync = true;
    plugin.flags = 0;
    did.fail_mirror_seal = true;
    assert_int_equal(esdm__pack_set_publish(packs, true, &error), ESDM_EIO);
    assert_int_equal(esdm__pack_set_publish(packs, true, &error), ESDM_EIO);
    esdm__pack_set_free(packs);

    packs = new_copied_packs(); /* the copy alone */
    did.fail_mirror_sync = did.fail_mirror_seal = true;
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    esdm__pack_set_free(packs);
}

static void
test_pack_set__packs_of_a_commit_in_doubt_stay(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_PROCESS, 1000);
    assert_int_equal(append(packs), ESDM_OK);
    esdm__pack_set_offer(packs, true);
    esdm__pack_set_offer(packs, false); /* refused */
    esdm__pack_set_free(packs);
    assert_int_equal(did.removed, 1);

    packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_PROCESS, 12);
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(append(packs), ESDM_OK); /* full: sealed */
    assert_int_equal(append(packs), ESDM_OK);
    esdm__pack_set_offer(packs, true); /* no answer */
    assert_int_equal(append(packs), ESDM_OK);
    assert_int_equal(append(packs), ESDM_OK);
    esdm__pack_set_offer(packs, true);
    esdm__pack_set_offer(packs, false); /* refused: the first commit may have taken place */
    esdm__pack_set_free(packs);
    assert_int_equal(did.created, 3);
    assert_int_equal(did.removed, 1);
}

/* A pack that can be sealed nowhere is not kept in memory for good; one that can, elsewhere, is
 * not removed there. */
static void
test_pack_set__the_end_of_a_pack_whose_target_is_gone(void **state)
{
    (void) state;
    for (int others = 0; others < 2; others++) {
        esdm__pack_set_free(new_packs(0, ESDM__DURABLE_PROCESS, 1000));
        plugin.pack_seal = fake_seal_or_keep;
        plugin.pack_recall = fake_recall;
        plugin.pack_discard = fake_discard;
        owner.moved = note_move;
        session.ntargets = others == 0 ? 1 : 2;
        esdm__pack_set *packs = esdm__pack_set_new(&owner);
        assert_int_equal(append(packs), ESDM_OK);
        esdm__pack_set_offer(packs, true);
        did.fail_seal = true;
        esdm__pack_set_free(packs);
        assert_int_equal(did.discarded, 1);
        assert_int_equal(did.removed, 0);
        assert_int_equal(did.recalled, others == 0 ? 0 : 8);
        assert_int_equal(did.created, others == 0 ? 1 : 2);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_set__what_replaces_others_is_durable_on_any_site),
        cmocka_unit_test(test_pack_set__a_failed_sync_counts_when_the_copy_is_lost_later),
        cmocka_unit_test(test_pack_set__a_later_sync_does_not_make_good_a_failed_one),
        cmocka_unit_test(test_pack_set__packs_of_a_commit_in_doubt_stay),
        cmocka_unit_test(test_pack_set__the_end_of_a_pack_whose_target_is_gone),
        cmocka_unit_test(test_pack_set__a_target_may_ask_for_the_end_of_a_pack),
        cmocka_unit_test(test_pack_set__a_seal_that_is_durable_needs_no_flush),
        cmocka_unit_test(
            test_pack_set__full_packs_are_sealed_where_one_target_keeps_them_in_memory),
        cmocka_unit_test(test_pack_set__what_nobody_refers_to_is_discarded),
        cmocka_unit_test(test_pack_set__a_failed_sync_is_never_forgotten),
        cmocka_unit_test(test_pack_set__a_failed_seal_is_never_forgotten),
        cmocka_unit_test(test_pack_set__what_is_sealed_for_a_read_is_flushed_first),
        cmocka_unit_test(test_pack_set__packs_are_flushed_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
