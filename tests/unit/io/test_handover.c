/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Blobs that another rank stores: by a thread of this process, or by a process that is
 * stopped and killed. */
#include "io/packs/handover.h"

#include <signal.h>
#include <stdio.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "fake_targets.h"
#include "io/packs/handover_wire.h"
#include "io/packs/taker.h"

/* The packs of the other rank, and what serves them here. */
static struct {
    esdm__pack_set *packs;
    esdm__taker *taker;
    char name[ESDM__HANDOVER_NAME_BYTES];
} other;

static char moved_to[64];
static bool needs_all;

static esdm_status
note_last_move(void *user, const char *pack, const char *from, const char *to, esdm_error *err)
{
    (void) user, (void) pack, (void) from, (void) err;
    snprintf(moved_to, sizeof moved_to, "%s", to);
    return ESDM_OK;
}

static bool
needed(void *user, const char *pack)
{
    (void) user, (void) pack;
    return needs_all;
}

static void
name_other(void)
{
    static int number;
    (void) alarm(120); /* what waits for ever fails */
    snprintf(other.name, sizeof other.name, "esdm-test-%ld-%d", (long) getpid(), number++);
}

static esdm__pack_set *
packs_of_one(void)
{
    esdm__pack_set *packs = new_packs(0, ESDM__DURABLE_PROCESS, 1000);
    if (session.pool == NULL)
        session.pool = esdm__pool_new(1, 0);
    assert_non_null(session.pool);
    return packs;
}

/* A rank that hands over to `other`. */
static esdm__pack_set *
connected(void)
{
    esdm__handover *handover = NULL;
    esdm_error error = {0};
    needs_all = true;
    owner.needed = needed;
    const esdm__handover_to to = {.name = other.name, .rank = 7, .timeout_s = 1};
    esdm__pack_set *packs = packs_of_one();
    if (esdm__handover_new(&to, esdm__pack_set_owner(packs), &handover, &error) != ESDM_OK)
        fail_msg("%s", error.message);
    esdm__pack_set_hand_over(packs, handover);
    owner.needed = NULL;
    return packs;
}

static esdm__pack_set *
connected_here(void)
{
    name_other();
    other.packs = packs_of_one();
    assert_int_equal(esdm__taker_new(other.name, other.packs, &other.taker, NULL), ESDM_OK);
    return connected();
}

static void
end_here(esdm__pack_set *packs)
{
    esdm__taker_free(other.taker);
    esdm__pack_set_free(packs);
    esdm__pack_set_free(other.packs);
}

static void
append_expecting(esdm__pack_set *packs, esdm_status status, const char *words, esdm__place *place)
{
    esdm_error error = {0};
    assert_int_equal(esdm__pack_set_append(packs, &(esdm__pack_hint){0}, &(esdm_iov){"12345678", 8},
                                           1, place, &error),
                     status);
    if (words != NULL && strstr(error.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, error.message);
}

static void
publish_expecting(esdm__pack_set *packs, esdm_status status, const char *words)
{
    esdm_error error = {0};
    assert_int_equal(esdm__pack_set_publish(packs, false, &error), status);
    if (words != NULL && strstr(error.message, words) == NULL)
        fail_msg("'%s' is not in '%s'", words, error.message);
}

static void
test_handover__the_other_rank_appends_and_ends_packs(void **state)
{
    esdm__place places[3], own;
    (void) state;
    esdm__pack_set *packs = connected_here();
    for (int i = 0; i < 3; i++)
        append_expecting(packs, ESDM_OK, NULL, &places[i]);
    assert_int_equal(did.created, 1);
    assert_int_equal(places[2].position, 16);
    assert_string_equal(esdm__place_target_name(&places[0]), "fake");
    assert_int_equal(esdm__pack_set_append(other.packs, &(esdm__pack_hint){0}, &(esdm_iov){"1", 1},
                                           1, &own, NULL),
                     ESDM_OK);
    assert_string_equal(esdm__place_pack_name(&places[0]), esdm__place_pack_name(&own));
    publish_expecting(packs, ESDM_OK, NULL);
    assert_int_equal(did.sealed, 1);
    esdm__pack_set_committed(packs);
    esdm__pack_set_committed(other.packs);
    publish_expecting(packs, ESDM_OK, NULL);
    end_here(packs);
    assert_int_equal(did.removed, 0); /* it is committed */
}

static void
test_handover__what_is_read_is_sealed(void **state)
{
    bool moved = true;
    esdm__place place;
    (void) state;
    esdm__pack_set *packs = connected_here();
    append_expecting(packs, ESDM_OK, NULL, &place);
    const esdm__pack_name strange = {"fake", "strange"};
    const esdm__pack_name own = {esdm__place_target_name(&place), esdm__place_pack_name(&place)};
    const esdm__pack_name *names[] = {&strange, &own};
    assert_int_equal(esdm__pack_set_make_named_readable(packs, names, 1, &moved, NULL), ESDM_OK);
    assert_int_equal(did.sealed, 0);
    assert_int_equal(esdm__pack_set_make_named_readable(packs, names, 2, &moved, NULL), ESDM_OK);
    assert_int_equal(did.sealed, 1);
    assert_false(moved);
    append_expecting(packs, ESDM_OK, NULL, &place);
    assert_int_equal(esdm__pack_set_make_readable(packs, NULL), ESDM_OK);
    assert_int_equal(did.sealed, 2);
    end_here(packs);
}

static esdm_status
append_nothing(void *pack, const esdm_iov *iov, size_t niov, uint64_t *ret_position,
               esdm_error *err)
{
    (void) pack, (void) iov, (void) niov, (void) ret_position;
    return esdm__error_set(err, ESDM_EIO, "the disk is broken");
}

static void
test_handover__a_disk_that_fails_is_told(void **state)
{
    esdm__place place;
    (void) state;
    esdm__pack_set *packs = connected_here();
    plugin.pack_append = append_nothing;
    append_expecting(packs, ESDM_EIO, "rank 7, which stores for this one", &place);
    append_expecting(packs, ESDM_EIO, "the disk is broken", &place);
    plugin.pack_append = fake_append;
    append_expecting(packs, ESDM_OK, NULL, &place);
    publish_expecting(packs, ESDM_OK, NULL);
    end_here(packs);
}

static void
test_handover__what_is_lost_there_is_lost_here(void **state)
{
    esdm__place place;
    (void) state;
    for (int told_by_other = 0; told_by_other < 2; told_by_other++) {
        esdm__pack_set *packs = connected_here();
        append_expecting(packs, ESDM_OK, NULL, &place);
        assert_false(esdm__pack_set_give_up_lost(packs));
        did.fail_seal = true;
        if (told_by_other != 0) { /* which gives it up before this rank asks */
            publish_expecting(other.packs, ESDM_EIO, "the server is gone");
            assert_true(esdm__pack_set_give_up_lost(other.packs));
        }
        publish_expecting(packs, ESDM_EIO, told_by_other != 0 ? "is lost" : "the server is gone");
        did.fail_seal = false;
        assert_true(esdm__pack_set_give_up_lost(packs));
        assert_true(esdm__pack_set_is_lost(packs, esdm__place_pack_name(&place)));
        needs_all = false; /* it was noted as to be written again */
        append_expecting(packs, ESDM_OK, NULL, &place);
        assert_false(esdm__pack_set_is_lost(packs, esdm__place_pack_name(&place)));
        publish_expecting(packs, ESDM_OK, NULL);
        end_here(packs);
    }
}

/* Both ranks hear of it, the one that stores when it publishes itself. */
static void
test_handover__moves_are_told(void **state)
{
    bool moved = false;
    esdm__place place;
    (void) state;
    /* Two targets, of which the first keeps what it cannot store. */
    name_other();
    other.packs = packs_of_one();
    ((esdm__pack_owner *) (uintptr_t) esdm__pack_set_owner(other.packs))->moved = note_last_move;
    session.ntargets = 2;
    assert_int_equal(esdm__taker_new(other.name, other.packs, &other.taker, NULL), ESDM_OK);
    esdm__pack_set *packs = packs_of_one();
    session.ntargets = 2;
    ((esdm__pack_owner *) (uintptr_t) esdm__pack_set_owner(packs))->moved = note_last_move;
    esdm__handover *handover = NULL;
    const esdm__handover_to to = {.name = other.name, .rank = 7, .timeout_s = 1};
    assert_int_equal(esdm__handover_new(&to, esdm__pack_set_owner(packs), &handover, NULL),
                     ESDM_OK);
    esdm__pack_set_hand_over(packs, handover);
    plugin.pack_recall = fake_recall;
    plugin.pack_discard = fake_discard;
    plugin.pack_seal = fake_seal_or_keep;
    const bool first[2] = {true, true};
    const esdm__pack_hint hint = {.allowed = first};
    assert_int_equal(
        esdm__pack_set_append(packs, &hint, &(esdm_iov){"12345678", 8}, 1, &place, NULL), ESDM_OK);
    assert_string_equal(esdm__place_target_name(&place), "fake");
    did.fail_seal = true;
    moved_to[0] = '\0';
    const esdm__pack_name name = {"fake", esdm__place_pack_name(&place)};
    const esdm__pack_name *names[] = {&name};
    assert_int_equal(esdm__pack_set_make_named_readable(packs, names, 1, &moved, NULL), ESDM_OK);
    assert_true(moved);
    assert_string_equal(moved_to, "other");
    moved_to[0] = '\0';
    publish_expecting(other.packs, ESDM_OK, NULL);
    assert_string_equal(moved_to, "other");
    end_here(packs);
    session.ntargets = 1;
}

/* ---- processes ------------------------------------------------------------------------------ */

/* Another process stores. */
static pid_t
start_other(void)
{
    int ready[2];
    char one;
    name_other();
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void) prctl(PR_SET_PDEATHSIG, SIGKILL);
        esdm__pack_set *packs = packs_of_one();
        if (esdm__taker_new(other.name, packs, &other.taker, NULL) != ESDM_OK ||
            write(ready[1], "", 1) != 1)
            _exit(1);
        (void) alarm(120);
        for (;;)
            (void) pause();
    }
    assert_int_equal(read(ready[0], &one, 1), 1);
    (void) close(ready[0]);
    (void) close(ready[1]);
    return child;
}

static void
kill_other(pid_t child)
{
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
}

static void
test_handover__a_rank_whose_other_one_has_ended_stores_by_itself(void **state)
{
    esdm__place handed, own;
    (void) state;
    pid_t child = start_other();
    esdm__pack_set *packs = connected();
    append_expecting(packs, ESDM_OK, NULL, &handed);
    assert_int_equal(did.created, 0);
    kill_other(child);
    append_expecting(packs, ESDM_OK, NULL, &own);
    assert_int_equal(did.created, 1);
    publish_expecting(packs, ESDM_EIO, "rank 7");
    assert_true(esdm__pack_set_give_up_lost(packs));
    assert_true(esdm__pack_set_is_lost(packs, esdm__place_pack_name(&handed)));
    assert_false(esdm__pack_set_is_lost(packs, esdm__place_pack_name(&own)));
    needs_all = false; /* as what was in it is to be written again */
    publish_expecting(packs, ESDM_OK, NULL);
    esdm__pack_set_free(packs);
}

/* At the commit, without another put. */
static void
test_handover__an_end_is_told_by_publishing(void **state)
{
    esdm__place handed;
    (void) state;
    pid_t child = start_other();
    esdm__pack_set *packs = connected();
    append_expecting(packs, ESDM_OK, NULL, &handed);
    kill_other(child);
    publish_expecting(packs, ESDM_EIO, "written again");
    esdm__pack_set_free(packs);
}

static void
test_handover__a_rank_that_is_stuck_is_not_waited_for(void **state)
{
    esdm__place place;
    (void) state;
    pid_t child = start_other();
    esdm__pack_set *packs = connected();
    append_expecting(packs, ESDM_OK, NULL, &place);
    assert_int_equal(kill(child, SIGSTOP), 0);
    assert_int_equal(waitpid(child, NULL, WUNTRACED), child);
    append_expecting(packs, ESDM_ETIMEDOUT, "has not answered for 1 s", &place);
    publish_expecting(packs, ESDM_ETIMEDOUT, "rank 7");
    assert_int_equal(kill(child, SIGCONT), 0);
    append_expecting(packs, ESDM_OK, NULL, &place);
    publish_expecting(packs, ESDM_OK, NULL);
    assert_int_equal(did.created, 0);
    kill_other(child);
    esdm__pack_set_free(packs);
}

static void
test_handover__a_forked_child_asks_for_nothing(void **state)
{
    esdm__place place;
    int ended;
    (void) state;
    esdm__pack_set *packs = connected_here();
    append_expecting(packs, ESDM_OK, NULL, &place);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        bool refused = esdm__pack_set_publish(packs, false, NULL) == ESDM_EINVAL &&
                       append(packs) == ESDM_EINVAL;
        esdm__taker_free(other.taker);
        esdm__pack_set_free(packs);
        esdm__pack_set_free(other.packs);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    append_expecting(packs, ESDM_OK, NULL, &place);
    publish_expecting(packs, ESDM_OK, NULL);
    end_here(packs);
}

static void
test_handover__who_talks_nonsense_loses_the_connection(void **state)
{
    esdm__handover_request requests[4] = {
        {.kind = ESDM__HANDOVER_APPEND, .form = 1},
        {.kind = ESDM__HANDOVER_APPEND, .form = esdm__handover_form(), .targets = 1, .bytes = 99},
        {.kind = ESDM__HANDOVER_APPEND, .form = esdm__handover_form(), .targets = 999},
        {.kind = 77, .form = esdm__handover_form(), .targets = 1}};
    esdm__place place;
    char byte;
    (void) state;
    esdm__pack_set *packs = connected_here();
    for (size_t i = 0; i < 5; i++) {
        int fd = esdm__handover_connect(other.name, 60);
        assert_true(fd >= 0);
        size_t bytes = i < 4 ? sizeof requests[i] : 3;
        assert_true(esdm__handover_send(fd, &requests[i % 4], bytes, NULL, 0, -1));
        assert_true(recv(fd, &byte, 1, 0) <= 0);
        (void) close(fd);
    }
    append_expecting(packs, ESDM_OK, NULL, &place);
    end_here(packs);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_handover__the_other_rank_appends_and_ends_packs),
        cmocka_unit_test(test_handover__what_is_read_is_sealed),
        cmocka_unit_test(test_handover__a_disk_that_fails_is_told),
        cmocka_unit_test(test_handover__what_is_lost_there_is_lost_here),
        cmocka_unit_test(test_handover__moves_are_told),
        cmocka_unit_test(test_handover__a_rank_whose_other_one_has_ended_stores_by_itself),
        cmocka_unit_test(test_handover__an_end_is_told_by_publishing),
        cmocka_unit_test(test_handover__a_rank_that_is_stuck_is_not_waited_for),
        cmocka_unit_test(test_handover__a_forked_child_asks_for_nothing),
        cmocka_unit_test(test_handover__who_talks_nonsense_loses_the_connection),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
