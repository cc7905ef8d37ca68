/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file When targets that failed are asked again. */

#include "fake_targets.h"
#include "io/session/pool.h"

static unsigned refused;

static esdm_status
refuse_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position, esdm_error *err)
{
    (void) pack, (void) iov, (void) niov, (void) ret_position;
    refused++;
    return esdm__error_set(err, ESDM_EIO, "the server is gone");
}

/* How many of 20 appends ask the first target and are refused. */
static unsigned
append_20(esdm__pack_set *packs)
{
    refused = 0;
    for (int i = 0; i < 20; i++)
        assert_int_equal(append(packs), ESDM_OK);
    return refused;
}

/* A target that failed is asked again when some time has passed, by one write at a time; the pauses
 * grow, and end when it works. */
static void
test_pack_targets__a_target_that_failed_comes_back(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_PROCESS, 1000);
    session.ntargets = 2;
    plugin.pack_append = refuse_append;
    assert_int_equal(append_20(packs), 1);
    assert_true(atomic_load(&targets[0].full));
    uint64_t pause = atomic_load(&targets[0].pause_ns);
    assert_true(pause >= 1000000000);
    atomic_store(&targets[0].again_ns, 0); /* the pause is over, and it fails again */
    assert_int_equal(append_20(packs), 1);
    assert_int_equal(atomic_load(&targets[0].pause_ns), 2 * pause);
    plugin.pack_append = fake_append;
    assert_int_equal(append_20(packs), 0); /* it works, but nobody asks */
    assert_true(atomic_load(&targets[0].full));
    atomic_store(&targets[0].again_ns, 0);
    (void) append_20(packs);
    assert_false(atomic_load(&targets[0].full));
    plugin.pack_append = refuse_append; /* it gets its turns again */
    assert_int_equal(append_20(packs), 1);
    for (int i = 0; i < 20; i++) { /* not without end */
        atomic_store(&targets[0].again_ns, 0);
        assert_int_equal(append_20(packs), 1);
    }
    assert_true(atomic_load(&targets[0].pause_ns) <= UINT64_C(3600) * 1000000000);
    session.ntargets = 1;
    esdm__pack_set_free(packs);
}

/* What is in memory alone does not tell that the target works. */
static void
test_pack_targets__a_target_that_keeps_bytes_in_memory_works_when_they_are_stored(void **state)
{
    (void) state;
    esdm__pack_set_free(new_packs(0, ESDM__DURABLE_PROCESS, 1000));
    plugin.pack_seal = fake_seal_or_keep;
    plugin.pack_recall = fake_recall;
    plugin.pack_discard = fake_discard;
    owner.moved = note_move;
    session.ntargets = 2;
    esdm__pack_set *packs = esdm__pack_set_new(&owner);
    assert_int_equal(append(packs), ESDM_OK); /* in memory */
    esdm__target_failed(&targets[0]);
    assert_int_equal(esdm__pack_set_publish(packs, false, NULL), ESDM_OK);
    assert_true(atomic_load(&targets[0].full)); /* older than the failure */

    atomic_store(&targets[0].again_ns, 0);
    (void) append_20(packs);
    assert_int_equal(did.created, 3);
    assert_true(atomic_load(&targets[0].full));
    did.fail_seal = true;
    assert_int_equal(esdm__pack_set_publish(packs, false, NULL), ESDM_OK); /* moved */
    assert_true(did.recalled > 0);
    assert_true(atomic_load(&targets[0].full));
    did.fail_seal = false;
    atomic_store(&targets[0].again_ns, 0);
    (void) append_20(packs);
    assert_true(atomic_load(&targets[0].full));
    assert_int_equal(esdm__pack_set_publish(packs, false, NULL), ESDM_OK);
    assert_false(atomic_load(&targets[0].full));
    esdm__pack_set_free(packs);
    session.ntargets = 1;
}

static void
test_pack_targets__so_do_those_of_copies(void **state)
{
    (void) state;
    esdm__pack_set_free(new_copied_packs());
    mirror_plugin.flags = 0;
    mirror_plugin.pack_seal = mirror_seal_or_keep;
    mirror_plugin.pack_recall = fake_recall;
    mirror_plugin.pack_discard = fake_discard_mirror;
    esdm__pack_set *packs = esdm__pack_set_new(&owner);
    append_copied(packs);
    did.fail_mirror_seal = true;
    assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
    assert_int_equal(did.mirrors_discarded, 1);
    assert_true(atomic_load(&targets[1].full));
    for (int works = 0; works < 2; works++) { /* the first of 64 asks it */
        esdm__pack_set_free(packs);
        packs = esdm__pack_set_new(&owner);
        did.fail_mirror_seal = works == 0;
        append_copied(packs);
        assert_true(atomic_load(&targets[1].full));
        assert_int_equal(esdm__pack_set_publish(packs, true, NULL), ESDM_OK);
        assert_int_equal(atomic_load(&targets[1].full), works == 0);
    }
    esdm__pack_set_free(packs);
    session.ntargets = 1;
}

/* When it is time to ask several of them, no write waits for more than one. */
static void
test_pack_targets__each_target_that_failed_has_a_write_of_its_own(void **state)
{
    (void) state;
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_PROCESS, 1000);
    session.ntargets = 3;
    plugin.pack_append = mirror_plugin.pack_append = refuse_append;
    for (size_t i = 0; i < 2; i++)
        esdm__target_failed(&targets[i]);
    assert_int_equal(append_20(packs), 0);
    for (size_t i = 0; i < 2; i++)
        atomic_store(&targets[i].again_ns, 0);
    unsigned all = 0;
    for (int i = 0; i < 20; i++) {
        refused = 0;
        assert_int_equal(append(packs), ESDM_OK);
        assert_true(refused <= 1);
        all += refused;
    }
    assert_int_equal(all, 2);
    assert_int_equal(atomic_load(&targets[0].pause_ns), atomic_load(&targets[1].pause_ns));
    esdm__pack_set_free(packs);
    session.ntargets = 1;
}

static unsigned closed;

static void
count_close(void *target)
{
    (void) target;
    closed++;
}

static esdm_status
fail_before_begun(const esdm_plugin_config *config, const char *name, const esdm_range *ranges,
                  size_t nranges, const esdm_target_opening *opening, esdm_status *ret_read,
                  esdm_error *err)
{
    (void) config, (void) name, (void) ranges, (void) nranges, (void) opening, (void) ret_read;
    return esdm__error_set(err, ESDM_EINVAL, "an option is wrong");
}

/* There is nothing that could be closed. */
static void
test_pack_targets__a_target_that_never_began_is_not_closed(void **state)
{
    (void) state;
    static const esdm_data_plugin far = {.close = count_close, .open_and_read = fail_before_begun};
    esdm__site_target place = {.name = (char *) "far"};
    esdm__site of = {.targets = &place, .ntargets = 1};
    esdm__target target = {.plugin = &far, .name = "far", .place = (char *) "far"};
    esdm_session reads = {.site = &of, .targets = &target, .ntargets = 1};
    esdm__first_read read = {.pack = "pack"};
    esdm_error err = {0};
    reads.pool = esdm__pool_new(1, 0);
    assert_non_null(reads.pool);
    assert_int_equal(pthread_mutex_init(&reads.target_lock, NULL), 0);
    assert_int_equal(pthread_cond_init(&reads.target_tried, NULL), 0);
    assert_int_equal(esdm__target_need_to_read(&reads, &target, &read, &err), ESDM_EINVAL);
    assert_non_null(strstr(err.message, "an option is wrong"));
    assert_int_equal(closed, 0);
    esdm__pool_free(reads.pool);
    (void) pthread_cond_destroy(&reads.target_tried);
    (void) pthread_mutex_destroy(&reads.target_lock);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_pack_targets__a_target_that_failed_comes_back),
        cmocka_unit_test(
            test_pack_targets__a_target_that_keeps_bytes_in_memory_works_when_they_are_stored),
        cmocka_unit_test(test_pack_targets__so_do_those_of_copies),
        cmocka_unit_test(test_pack_targets__a_target_that_never_began_is_not_closed),
        cmocka_unit_test(test_pack_targets__each_target_that_failed_has_a_write_of_its_own),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
