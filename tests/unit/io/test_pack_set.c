/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/pack_set.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/error.h"
#include "io/models.h"

/* A target that keeps no data and fails when told to. */
static struct {
    unsigned created;
    unsigned synced;
    unsigned sealed;
    unsigned removed;
    unsigned discarded;
    unsigned mirrors_sealed;
    unsigned begun;
    bool full;
    bool fail_sync;
    bool fail_seal;
    bool fail_mirror_sync;
    bool fail_mirror_seal;
    uint64_t recalled; /* bytes */
} did;

static esdm_status
fake_create(void *target, const char *name, void **ret_pack, esdm_error *err)
{
    (void) target;
    (void) name;
    (void) err;
    did.created++;
    *ret_pack = calloc(1, sizeof(uint64_t));
    return ESDM_OK;
}

static esdm_status
fake_append(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position, esdm_error *err)
{
    uint64_t *length = pack;
    (void) err;
    *ret_position = *length;
    for (size_t i = 0; i < niov; i++)
        *length += iov[i].bytes;
    return ESDM_OK;
}

static esdm_status
fake_sync(void *pack, esdm_error *err)
{
    (void) pack;
    did.synced++;
    return did.fail_sync ? esdm__error_set(err, ESDM_EIO, "the disk is broken") : ESDM_OK;
}

static esdm_status
fake_seal(void *pack, esdm_error *err)
{
    free(pack);
    did.sealed++;
    return did.fail_seal ? esdm__error_set(err, ESDM_EIO, "the server is gone") : ESDM_OK;
}

static esdm_status
fake_remove(void *target, const char *name, esdm_error *err)
{
    (void) target;
    (void) name;
    (void) err;
    did.removed++;
    return ESDM_OK;
}

static bool
fake_is_full(void *pack)
{
    (void) pack;
    return did.full;
}

static esdm_status
fake_discard(void *pack, esdm_error *err)
{
    (void) err;
    free(pack);
    did.discarded++;
    return ESDM_OK;
}

/* One that keeps the handle of what it could not seal. */
static esdm_status
fake_seal_or_keep(void *pack, esdm_error *err)
{
    if (did.fail_seal)
        return esdm__error_set(err, ESDM_EIO, "the server is gone");
    return fake_seal(pack, err);
}

static esdm_status
fake_recall(void *pack, uint64_t position, size_t bytes, void *buffer, esdm_error *err)
{
    (void) pack;
    (void) position;
    (void) err;
    memset(buffer, 0, bytes);
    did.recalled += bytes;
    return ESDM_OK;
}

static void
fake_begin_seal(void *pack)
{
    (void) pack;
    did.begun++;
}

static esdm_status
mirror_sync(void *pack, esdm_error *err)
{
    (void) pack;
    return did.fail_mirror_sync ? esdm__error_set(err, ESDM_EIO, "the other disk is broken")
                                : ESDM_OK;
}

static esdm_status
mirror_seal(void *pack, esdm_error *err)
{
    free(pack);
    did.mirrors_sealed++;
    return did.fail_mirror_seal ? esdm__error_set(err, ESDM_EIO, "the other server is gone")
                                : ESDM_OK;
}

static esdm_data_plugin mirror_plugin = {.flags = ESDM_DATA_READ_UNSEALED,
                                         .pack_create = fake_create,
                                         .pack_append = fake_append,
                                         .pack_sync = mirror_sync,
                                         .pack_seal = mirror_seal,
                                         .pack_remove = fake_remove};
static esdm_data_plugin plugin = {.pack_create = fake_create,
                                  .pack_append = fake_append,
                                  .pack_sync = fake_sync,
                                  .pack_seal = fake_seal,
                                  .pack_remove = fake_remove};
static esdm_data_plugin third_plugin = {.flags = ESDM_DATA_READ_UNSEALED,
                                        .pack_create = fake_create,
                                        .pack_append = fake_append,
                                        .pack_sync = mirror_sync,
                                        .pack_seal = mirror_seal,
                                        .pack_remove = fake_remove};
static esdm__site site;
static esdm__target targets[3] = {
    {.plugin = &plugin, .name = "fake", .place = (char *) "fake", .state = ESDM__TARGET_OPEN},
    {.plugin = &mirror_plugin,
     .name = "other",
     .place = (char *) "other",
     .cost = 1,
     .state = ESDM__TARGET_OPEN},
    {.plugin = &third_plugin,
     .name = "third",
     .place = (char *) "third",
     .state = ESDM__TARGET_OPEN}};
static esdm_session session = {.site = &site, .targets = targets, .ntargets = 1};

static esdm__pack_owner owner = {.session = &session, .uuid = "00112233445566778899aabbccddeeff"};

static esdm__pack_set *
new_packs(uint32_t flags, esdm__durability durability, uint64_t pack_bytes)
{
    memset(&did, 0, sizeof did);
    plugin.flags = flags;
    plugin.pack_is_full = NULL;
    plugin.pack_discard = NULL;
    plugin.pack_recall = NULL;
    plugin.pack_seal = fake_seal;
    plugin.pack_begin_seal = NULL;
    mirror_plugin.flags = ESDM_DATA_READ_UNSEALED;
    session.ntargets = 1;
    for (size_t i = 0; i < 3; i++) {
        atomic_store(&targets[i].full, false);
        atomic_store(&targets[i].again_ns, 0);
        atomic_store(&targets[i].pause_ns, 0);
    }
    plugin.pack_append = fake_append;
    mirror_plugin.pack_append = fake_append;
    owner.durable = false;
    owner.moved = NULL;
    site.durability = durability;
    site.engine.pack_bytes = pack_bytes;
    if (session.models == NULL) {
        session.models = esdm__models_new(3);
        assert_non_null(session.models);
    }
    esdm__pack_set *packs = esdm__pack_set_new(&owner);
    assert_non_null(packs);
    return packs;
}

static void
append_copied(esdm__pack_set *packs)
{
    static const bool allowed[2] = {true, true};
    const esdm__pack_hint hint = {.copies = 2, .allowed = allowed, .cheap = true};
    esdm__place place;
    assert_int_equal(
        esdm__pack_set_append(packs, &hint, &(esdm_iov){"12345678", 8}, 1, &place, NULL), ESDM_OK);
}

/* With a copy of each pack on the other target. */
static esdm__pack_set *
new_copied_packs(void)
{
    esdm__pack_set *packs = new_packs(ESDM_DATA_READ_UNSEALED, ESDM__DURABLE_SYSTEM, 1000);
    session.ntargets = 2;
    append_copied(packs);
    assert_int_equal(did.created, 2);
    return packs;
}

static esdm_status
append(esdm__pack_set *packs)
{
    esdm__place place;
    esdm_error error;
    return esdm__pack_set_append(packs, &(esdm__pack_hint){0}, &(esdm_iov){"12345678", 8}, 1,
                                 &place, &error);
}

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
test_pack_set__a_target_that_failed_comes_back(void **state)
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

/* When it is time to ask several of them, no write waits for more than one. */
static void
test_pack_set__each_target_that_failed_has_a_write_of_its_own(void **state)
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

static esdm_status
note_move(void *user, const char *pack, const char *from, const char *to, esdm_error *err)
{
    (void) user, (void) pack, (void) from, (void) to, (void) err;
    return ESDM_OK;
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
        cmocka_unit_test(test_pack_set__a_target_that_failed_comes_back),
        cmocka_unit_test(test_pack_set__each_target_that_failed_has_a_write_of_its_own),
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
