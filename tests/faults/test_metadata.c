/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Metadata stores that answer late, wrongly or not at all, as servers do: what may be needed stays,
 * and what is lost is told. Stores and targets with faults: tests/support/faulty_{meta,data}.h. */

#include "faulty_site.h"

#include "esdm/upkeep.h"

/* Far more than what lies in index pages. */
enum { ROWS = 40, COLUMNS = 3000 };

/* ---- containers --------------------------------------------------------------------------- */

static esdm_container *
make_container(esdm_session *session, const char *name)
{
    esdm_container *container;
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", 2 * ROWS, &dims[0], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &dims[1], ERR));
    ok(esdm_dataset_create(root, "a", ESDM_TYPE_INT32, 2, dims, &dataset, ERR));
    return container;
}

static int32_t data[ROWS * COLUMNS];

static esdm_dataset *
half(esdm_container *container, int number, esdm_dataspace *space)
{
    ok(esdm_dataspace_init(space, 2, (uint64_t[]){(uint64_t) number * ROWS, 0},
                           (uint64_t[]){ROWS, COLUMNS}, ERR));
    return esdm_group_dataset_find(esdm_container_root(container), "a");
}

/* Half of the rows, at once: it goes to packs. */
static void
write_half(esdm_container *container, int number, int32_t value)
{
    esdm_dataspace space;
    esdm_dataset *dataset = half(container, number, &space);
    for (int i = 0; i < ROWS * COLUMNS; i++)
        data[i] = value * 1000000 + i;
    ok(esdm_write(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
}

/* One row of the second half, smaller than a pack: that stays open. */
static void
write_row(esdm_container *container, int row, int32_t value)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){(uint64_t) (ROWS + row), 0},
                           (uint64_t[]){1, COLUMNS}, ERR));
    for (int i = 0; i < COLUMNS; i++)
        data[i] = value * 1000000 + row * COLUMNS + i;
    ok(esdm_write(esdm_group_dataset_find(esdm_container_root(container), "a"), &space,
                  ESDM_TYPE_INT32, data, NULL, ERR));
}

static void
read_row(esdm_container *container, int row, int32_t value)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){(uint64_t) (ROWS + row), 0},
                           (uint64_t[]){1, COLUMNS}, ERR));
    ok(esdm_read(esdm_group_dataset_find(esdm_container_root(container), "a"), &space,
                 ESDM_TYPE_INT32, data, NULL, ERR));
    for (int i = 0; i < COLUMNS; i++)
        check(data[i] == value * 1000000 + row * COLUMNS + i);
}

static void
read_half(esdm_container *container, int number, int32_t value)
{
    esdm_dataspace space;
    esdm_dataset *dataset = half(container, number, &space);
    ok(esdm_read(dataset, &space, ESDM_TYPE_INT32, data, NULL, ERR));
    for (int i = 0; i < ROWS * COLUMNS; i++)
        check(data[i] == value * 1000000 + i);
}

/* In a session that knows nothing. @param second value of the second half; 0: it has none. */
static void
must_hold(const char *name, int32_t first, int32_t second)
{
    esdm_session *session = open_here();
    esdm_container *container;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
    read_half(container, 0, first);
    if (second != 0)
        read_half(container, 1, second);
    ok(esdm_container_close(container, ERR));
    const char *const names[] = {name};
    const esdm_fsck_options options = {.containers = names, .ncontainers = 1, .data = true};
    esdm_fsck_result result;
    ok(esdm_fsck(session, &options, &result, ERR));
    check(result.problems == 0);
    esdm_session_close(session);
}

static void
remove_container(const char *name)
{
    esdm_session *session = open_here();
    ok(esdm_container_erase(session, name, ERR));
    const esdm_gc_options all = {.any_age = true};
    ok(esdm_gc(session, &all, NULL, ERR));
    esdm_session_close(session);
    check(count_packs("burst") == 0 && count_packs("disk") == 0);
}

/* ---- commits ------------------------------------------------------------------------------ */

/* The server goes away in the middle of the commit, which takes place: at the first one, and at one
 * that follows others. */
static void
test_unknown_outcome(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "unknown");
    write_half(container, 0, 1);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_UNKNOWN);
    fails(esdm_container_close(container, ERR), ESDM_EIO, "unknown");
    must_hold("unknown", 1, 0);

    ok(esdm_container_open(session, "unknown", ESDM_OPEN_WRITE, 0, &container, ERR));
    write_half(container, 0, 2);
    ok(esdm_container_commit(container, NULL, ERR));
    write_half(container, 1, 3);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_UNKNOWN);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "unknown");
    esdm_container_discard(container);
    esdm_session_close(session);
    must_hold("unknown", 2, 3);
    remove_container("unknown");
}

/* The first commit of a new container once more would replace what it has published. */
static void
test_unknown_outcome_of_the_first_commit(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "first");
    write_half(container, 0, 1);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_UNKNOWN);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "unknown");
    write_half(container, 1, 2);
    for (int i = 0; i < 2; i++)
        fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "did take place");
    esdm_container_discard(container);
    must_hold("first", 1, 0);

    container = make_container(session, "first"); /* replaces it; at first it does not */
    write_half(container, 0, 3);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_FAIL);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "fail");
    must_hold("first", 1, 0);
    write_half(container, 1, 4);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    must_hold("first", 3, 4);
    remove_container("first");
}

/* A later commit that is refused tells nothing about the one of which nobody knows. */
static void
test_unknown_outcome_then_refused(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "doubt");
    write_half(container, 0, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_half(container, 1, 2);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_UNKNOWN);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "unknown");
    arm_meta(ESDM_FAULTY_COMMIT, 1, 0, ESDM_FAULTY_META_REFUSE);
    write_half(container, 0, 3);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ECONFLICT, "refuse");
    esdm_container_discard(container);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_NONE);
    esdm_session_close(session);
    must_hold("doubt", 1, 2);
    remove_container("doubt");
}

/* What certainly did not take place leaves nothing. */
static void
test_refused_commit(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "refused");
    write_half(container, 0, 1);
    check(count_packs("burst") > 0);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 0, ESDM_FAULTY_META_REFUSE);
    fails(esdm_container_close(container, ERR), ESDM_ECONFLICT, "refuse");
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_NONE);
    check(count_packs("burst") == 0);
    esdm_session_close(session);
}

/* ---- writers that seem dead --------------------------------------------------------------- */

/* The session of a writer is lost while it computes: nothing of it may be removed. */
static void
test_drain_spares_writers_that_seem_dead(void)
{
    esdm_session *session = open_here();
    esdm_session *other = open_here();
    esdm_container *container = make_container(session, "spared");
    esdm_drain_result result;
    write_half(container, 0, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_half(container, 1, 2);
    arm_meta(ESDM_FAULTY_LIVES, 1, 0, ESDM_FAULTY_META_LIE);
    ok(esdm_drain(other, NULL, &result, ERR));
    check(result.fragments > 0 && result.packs > 0); /* what was moved to its last byte */
    check(result.young > 0 && result.packs_left == result.young);
    const esdm_drain_options wait = {.wait = true};
    ok(esdm_drain(other, &wait, &result, ERR)); /* not for those */
    check(result.packs == 0 && result.young > 0);
    esdm_gc_result collected;
    ok(esdm_gc(other, NULL, &collected, ERR));
    check(collected.packs == 0 && collected.young > 0);
    arm_meta(ESDM_FAULTY_LIVES, 1, 1, ESDM_FAULTY_META_NONE);
    arm_meta(ESDM_FAULTY_CHECK, 1, 1, ESDM_FAULTY_META_LIE); /* it learns of it */
    ok(esdm_container_close(container, ERR));
    must_hold("spared", 1, 2);

    /* All is committed, and the writer is dead: what this call moves goes at once. */
    ok(esdm_drain(other, NULL, &result, ERR));
    check(result.packs_left == 0 && count_packs("burst") == 0);
    must_hold("spared", 1, 2);
    esdm_session_close(other);
    esdm_session_close(session);
    remove_container("spared");
}

/* By age, as esdm-gc has it. */
static void
test_drain_frees_what_is_old(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "old");
    esdm_drain_result result;
    write_half(container, 0, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_half(container, 0, 2);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_FAIL);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "fail");
    esdm_container_discard(container); /* nobody knows whether the packs are needed */
    ok(esdm_drain(session, NULL, &result, ERR));
    check(result.packs > 0 && result.young > 0 && count_packs("burst") == (int) result.young);
    const esdm_drain_options all = {.any_age = true};
    ok(esdm_drain(session, &all, &result, ERR));
    check(result.packs > 0 && result.packs_left == 0 && count_packs("burst") == 0);
    esdm_session_close(session);
    must_hold("old", 1, 0);
    remove_container("old");
}

/* A commit does not publish what others have removed meanwhile. */
static void
test_writer_learns_that_packs_are_gone(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "gone");
    write_half(container, 0, 1);
    ok(esdm_container_close(container, ERR));
    esdm_drain_result result;
    ok(esdm_drain(session, NULL, &result, ERR));
    check(result.packs_left == 0);

    ok(esdm_container_open(session, "gone", ESDM_OPEN_WRITE, 0, &container, ERR));
    write_half(container, 0, 2);
    remove_packs("burst");
    arm_meta(ESDM_FAULTY_CHECK, 1, 1, ESDM_FAULTY_META_LIE);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "was removed while");
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "was removed while");
    esdm_container_discard(container);
    must_hold("gone", 1, 0);

    /* Noticed by the commit itself: it tells at least. */
    ok(esdm_container_open(session, "gone", ESDM_OPEN_WRITE, 0, &container, ERR));
    write_half(container, 1, 2);
    remove_packs("burst");
    arm_meta(ESDM_FAULTY_CHECK, 2, 1, ESDM_FAULTY_META_LIE);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "it took place, but");
    esdm_container_discard(container);
    esdm_session_close(session);
    remove_container("gone");
}

/* What others move while the writer seems dead: it may go. */
static void
drain_all(esdm_session *session)
{
    esdm_drain_result result;
    arm_meta(ESDM_FAULTY_LIVES, 1, 0, ESDM_FAULTY_META_LIE);
    ok(esdm_drain(session, NULL, &result, ERR));
    arm_meta(ESDM_FAULTY_LIVES, 1, 1, ESDM_FAULTY_META_NONE);
    check(result.packs > 0 && count_packs("burst") == 0);
}

static void
change_structure(esdm_container *container, const char *name)
{
    ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(container)), name,
                          ESDM_TYPE_CHAR, 1, "x", ERR));
}

/* What was committed and moved is no loss: the writer goes on, with other packs. */
static void
test_writer_goes_on_after_a_drain(void)
{
    esdm_session *session = open_here();
    esdm_session *other = open_here();
    esdm_container *container = make_container(session, "goes on");
    write_half(container, 0, 1);
    write_row(container, 0, 2);
    ok(esdm_container_commit(container, NULL, ERR));
    drain_all(other);
    arm_meta(ESDM_FAULTY_CHECK, 1, 1, ESDM_FAULTY_META_LIE);
    change_structure(container, "first");
    ok(esdm_container_commit(container, NULL, ERR));
    write_row(container, 1, 3);
    ok(esdm_container_commit(container, NULL, ERR));
    check(count_packs("burst") > 0);
    drain_all(other); /* noticed after the commit */
    arm_meta(ESDM_FAULTY_CHECK, 2, 1, ESDM_FAULTY_META_LIE);
    change_structure(container, "second");
    ok(esdm_container_commit(container, NULL, ERR));
    write_row(container, 2, 4);
    read_half(container, 0, 1);
    read_row(container, 0, 2);
    read_row(container, 1, 3);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    esdm_session_close(other);
    must_hold("goes on", 1, 0);
    session = open_here();
    ok(esdm_container_open(session, "goes on", ESDM_OPEN_READ, 0, &container, ERR));
    for (int row = 0; row < 3; row++)
        read_row(container, row, row + 2);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
    remove_container("goes on");
}

/* The pack was committed and moved; what was appended after that is lost, and told at every
 * commit. */
static void
test_writer_appends_to_what_is_gone(void)
{
    esdm_session *session = open_here();
    esdm_session *other = open_here();
    esdm_container *container = make_container(session, "appends");
    write_half(container, 0, 1);
    write_row(container, 0, 2);
    ok(esdm_container_commit(container, NULL, ERR));
    drain_all(other);
    write_row(container, 1, 3);
    arm_meta(ESDM_FAULTY_CHECK, 1, 1, ESDM_FAULTY_META_LIE);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "was removed while");
    write_row(container, 2, 4);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "was removed while");
    esdm_container_discard(container);
    esdm_session_close(session);
    esdm_session_close(other);
    must_hold("appends", 1, 0);
    remove_container("appends");
}

/* The store does not answer after the commit, which took packs that are sealed, and goes on later:
 * the next commit tells, also one that has nothing to publish. */
static void
test_check_without_answer(void)
{
    for (int empty = 0; empty < 2; empty++) {
        esdm_session *session = open_here();
        esdm_container *container = make_container(session, "unheard");
        write_half(container, 0, 1);
        ok(esdm_container_commit(container, NULL, ERR));
        write_half(container, 1, 2);
        remove_packs("burst");
        arm_meta(ESDM_FAULTY_CHECK, 2, 1, ESDM_FAULTY_META_FAIL);
        ok(esdm_container_commit(container, NULL, ERR));
        arm_meta(ESDM_FAULTY_CHECK, 1, 1, ESDM_FAULTY_META_LIE);
        if (empty == 0)
            change_structure(container, "later");
        fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "to which it refers");
        ok(esdm_container_close(container, ERR)); /* told */
        esdm_session_close(session);
        remove_container("unheard");

        /* They were there, and moved since. */
        session = open_here();
        esdm_session *other = open_here();
        container = make_container(session, "moved");
        write_half(container, 0, 1);
        arm_meta(ESDM_FAULTY_CHECK, 2, 1, ESDM_FAULTY_META_FAIL);
        ok(esdm_container_commit(container, NULL, ERR));
        drain_all(other);
        arm_meta(ESDM_FAULTY_CHECK, 1, 1, ESDM_FAULTY_META_LIE);
        if (empty == 0)
            change_structure(container, "later");
        ok(esdm_container_close(container, ERR));
        esdm_session_close(session);
        esdm_session_close(other);
        must_hold("moved", 1, 0);
        remove_container("moved");
    }
}

/* ---- upkeep ------------------------------------------------------------------------------- */

/* Whoever cannot tell which commits are in progress removes nothing. */
static void
test_failed_fence(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "fence");
    write_half(container, 0, 1);
    ok(esdm_container_commit(container, NULL, ERR));
    write_half(container, 1, 2);
    arm_meta(ESDM_FAULTY_COMMIT, 1, 1, ESDM_FAULTY_META_FAIL);
    fails(esdm_container_commit(container, NULL, ERR), ESDM_EIO, "fail");
    esdm_container_discard(container);
    int before = count_packs("burst");
    const esdm_gc_options all = {.any_age = true};
    esdm_gc_result result;
    arm_meta(ESDM_FAULTY_RELOCATE, 1, 0, ESDM_FAULTY_META_FAIL);
    fails(esdm_gc(session, &all, &result, ERR), ESDM_EIO, "commits are in progress");
    check(result.packs == 0 && count_packs("burst") == before);
    arm_meta(ESDM_FAULTY_RELOCATE, 1, 1, ESDM_FAULTY_META_NONE);
    ok(esdm_gc(session, &all, &result, ERR));
    check(result.packs > 0 && count_packs("burst") < before);
    esdm_session_close(session);
    must_hold("fence", 1, 0);
    remove_container("fence");
}

/* On a site that does not ask for it: the old packs go when the new ones are flushed. */
static void
test_what_moves_is_flushed(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "flushed");
    write_half(container, 0, 1);
    ok(esdm_container_close(container, ERR));
    int before = count_packs("burst");
    esdm_drain_result result;
    check(before > 0 && count_data(ESDM_FAULTY_SYNC) == 0);
    arm_data(ESDM_FAULTY_SYNC, 1, 0, ESDM_FAULTY_FAIL, ESDM_EIO);
    fails(esdm_drain(session, NULL, &result, ERR), ESDM_EIO, "sync");
    check(result.packs == 0 && count_packs("burst") == before);
    arm_data(ESDM_FAULTY_SYNC, 1, 1, ESDM_FAULTY_NONE, ESDM_OK);
    uint64_t syncs = count_data(ESDM_FAULTY_SYNC);
    must_hold("flushed", 1, 0);
    ok(esdm_drain(session, NULL, &result, ERR));
    check(count_packs("burst") == 0 && count_data(ESDM_FAULTY_SYNC) > syncs);
    esdm_session_close(session);
    must_hold("flushed", 1, 0);
    remove_container("flushed");
}

static esdm_write_counts
history(esdm_session *session, const char *name)
{
    esdm_container *container;
    esdm_write_counts writes;
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
    ok(esdm_container_write_history(container, &writes, ERR));
    ok(esdm_container_close(container, ERR));
    return writes;
}

/* The counts tell how the program's writes went. */
static void
test_what_moves_is_no_write(void)
{
    esdm_session *session = open_here();
    esdm_container *container = make_container(session, "counts");
    write_half(container, 0, 1);
    ok(esdm_container_close(container, ERR));
    esdm_write_counts before = history(session, "counts");
    esdm_drain_result result;
    ok(esdm_drain(session, NULL, &result, ERR));
    check(before.fragments > 0 && result.fragments == before.fragments);
    esdm_write_counts after = history(session, "counts");
    check(memcmp(&before, &after, sizeof before) == 0);
    esdm_session_close(session);
    remove_container("counts");
}

int
main(void)
{
    describe_site();
    test_what_moves_is_flushed();
    test_what_moves_is_no_write();
    test_unknown_outcome();
    test_unknown_outcome_of_the_first_commit();
    test_unknown_outcome_then_refused();
    test_refused_commit();
    test_drain_spares_writers_that_seem_dead();
    test_drain_frees_what_is_old();
    test_writer_learns_that_packs_are_gone();
    test_writer_goes_on_after_a_drain();
    test_writer_appends_to_what_is_gone();
    test_check_without_answer();
    test_failed_fence();
    return 0;
}
