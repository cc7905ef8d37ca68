/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Writes that fail for a while, as on a disk that is full: what was written before stays, what
 * failed can be written again, and nothing incomplete is committed. */

#include "faulty_site.h"

enum { SETS = 6, ROWS = 1100, COLUMNS = 1000, LARGE_ROWS = 3000 };

static esdm_session *session;
static esdm_container *container;
static esdm_dataset *sets[SETS]; /* rows, columns of double; "large" is the last one, and longer */
static double field[LARGE_ROWS * COLUMNS];

static void
begin(const char *name)
{
    esdm_dimension *rows[2];
    esdm_dimension *columns;
    ok(esdm_container_create(session, name, ESDM_CREATE_REPLACE, &container, ERR));
    esdm_group *root = esdm_container_root(container);
    ok(esdm_dimension_create(root, "row", ROWS, &rows[0], ERR));
    ok(esdm_dimension_create(root, "large_row", LARGE_ROWS, &rows[1], ERR));
    ok(esdm_dimension_create(root, "column", COLUMNS, &columns, ERR));
    for (int i = 0; i < SETS; i++) {
        char set[16];
        bool large = i == SETS - 1;
        snprintf(set, sizeof set, large ? "large" : "s%d", i);
        ok(esdm_dataset_create(root, set, ESDM_TYPE_FLOAT64, 2,
                               (esdm_dimension *[]){rows[large ? 1 : 0], columns}, &sets[i], ERR));
    }
    ok(esdm_container_commit(container, NULL, ERR));
}

static esdm_status
put(esdm_dataset *dataset, uint64_t row, uint64_t rows, double value)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){rows, COLUMNS}, ERR));
    for (size_t i = 0; i < rows * COLUMNS; i++)
        field[i] = value + (double) (i % 2) / 4; /* equal values would take no pack */
    return esdm_write(dataset, &space, ESDM_TYPE_FLOAT64, field, NULL, ERR);
}

static void
expect(const char *set, uint64_t row, uint64_t rows, double value)
{
    esdm_dataspace space;
    esdm_dataset *dataset = esdm_group_dataset_find(esdm_container_root(container), set);
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){row, 0}, (uint64_t[]){rows, COLUMNS}, ERR));
    ok(esdm_read(dataset, &space, ESDM_TYPE_FLOAT64, field, NULL, ERR));
    for (size_t i = 0; i < rows * COLUMNS; i++)
        if (field[i] != value + (double) (i % 2) / 4)
            die("%s, element %zu: %g instead of %g", set, i, field[i], value);
}

/* As other programs see it. */
static void
end(const char *name)
{
    ok(esdm_container_close(container, ERR));
    ok(esdm_container_open(session, name, ESDM_OPEN_READ, 0, &container, ERR));
}

static void
commit_refused(const char *words)
{
    fails(esdm_container_commit(container, NULL, ERR), ESDM_ENOSPC, words);
}

static void
test_writes__large_one_is_written_again(void)
{
    begin("large");
    ok(put(sets[0], 0, 3, 1)); /* gathered */
    arm_data(ESDM_FAULTY_APPEND, 3, 1, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    fails(put(sets[SETS - 1], 0, LARGE_ROWS, 2), ESDM_ENOSPC, "/large");
    commit_refused("was not repeated");
    check(strstr(test_error.message, "[0,0] size [3000,1000]") != NULL);
    ok(put(sets[1], 0, 3, 3)); /* others are not concerned */
    ok(put(sets[SETS - 1], 0, 1000, 4));
    commit_refused("[1000,0] size [2000,1000]");
    ok(put(sets[SETS - 1], 900, 2100, 4)); /* in slabs */
    ok(esdm_container_commit(container, NULL, ERR));
    arm_data(ESDM_FAULTY_APPEND, 1, 1, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    fails(put(sets[SETS - 1], 0, 1000, 5), ESDM_ENOSPC, "/large");
    ok(put(sets[SETS - 1], 0, 1000, 5));
    end("large");
    expect("large", 0, 1000, 5);
    expect("large", 1000, 2000, 4);
    expect("s0", 0, 3, 1);
    expect("s1", 0, 3, 3);
    ok(esdm_container_close(container, ERR));
}

/* What a commit cannot store now it stores the next time. */
static void
test_writes__gathered_ones_stay(void)
{
    begin("gathered");
    for (int i = 0; i < SETS; i++)
        for (uint64_t row = 0; row < 20; row++)
            ok(put(sets[i], row, 1, i + 1));
    arm_data(ESDM_FAULTY_APPEND, 3, 1, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    commit_refused("nothing is committed");
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    commit_refused("nothing is committed");
    ok(put(sets[0], 20, 1, 1));
    ok(put(sets[0], 5, 1, 9)); /* over what could not be stored */
    arm_data(ESDM_FAULTY_APPEND, 1, 1, ESDM_FAULTY_NONE, ESDM_OK);
    end("gathered");
    expect("s0", 0, 5, 1);
    expect("s0", 5, 1, 9);
    expect("s0", 6, 15, 1);
    for (int i = 1; i < SETS - 1; i++) {
        char set[16];
        snprintf(set, sizeof set, "s%d", i);
        expect(set, 0, 20, i + 1);
    }
    expect("large", 0, 20, SETS);
    ok(esdm_container_close(container, ERR));
}

/* When memory is full the data of other datasets go first. What that fails for is kept. */
static void
test_writes__other_datasets_are_not_harmed(void)
{
    enum { PLENTY = 500 }; /* rows of 8 KB: below what is gathered of a dataset */
    begin("others");
    arm_data(ESDM_FAULTY_APPEND, 1, 1, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    for (int i = 0; i < SETS - 1; i++)
        for (uint64_t row = 0; row < PLENTY; row++)
            ok(put(sets[i], row, 1, i + 1));
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    esdm_status status = ESDM_OK;
    int set = 0;
    uint64_t row = PLENTY;
    while (status == ESDM_OK && row < ROWS) { /* until nothing more is taken */
        status = put(sets[set], row, 1, set + 1);
        if (status == ESDM_OK && ++set == SETS - 1) {
            set = 0;
            row++;
        }
    }
    check(status == ESDM_ENOSPC);
    char own[32];
    snprintf(own, sizeof own, "dataset '/s%d'", set);
    check(strstr(test_error.message, own) != NULL);
    arm_data(ESDM_FAULTY_APPEND, 1, 1, ESDM_FAULTY_NONE, ESDM_OK);
    commit_refused("was not repeated");
    ok(put(sets[set], row, 1, set + 1));
    end("others");
    for (int i = 0; i < SETS - 1; i++) {
        char name[16];
        snprintf(name, sizeof name, "s%d", i);
        expect(name, 0, row + (i <= set), i + 1);
    }
    ok(esdm_container_close(container, ERR));
}

static void
test_writes__failed_ones_are_given_up(void)
{
    esdm_dataspace space;
    begin("given");
    ok(put(sets[0], 0, 900, 1));
    ok(esdm_container_commit(container, NULL, ERR));
    arm_data(ESDM_FAULTY_APPEND, 1, 0, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    fails(put(sets[0], 0, 900, 2), ESDM_ENOSPC, "/s0");
    ok(esdm_dataspace_init(&space, 2, (uint64_t[]){0, 1}, (uint64_t[]){300, 30}, ERR));
    ok(esdm_dataspace_set_stride(&space, (uint64_t[]){3, 2}, ERR));
    fails(esdm_write(sets[1], &space, ESDM_TYPE_FLOAT64, field, NULL, ERR), ESDM_ENOSPC, "/s1");
    arm_data(ESDM_FAULTY_APPEND, 1, 1, ESDM_FAULTY_NONE, ESDM_OK);
    commit_refused("/s0");
    ok(esdm_write(sets[1], &space, ESDM_TYPE_FLOAT64, field, NULL, ERR)); /* the same selection */
    ok(put(sets[0], 900, 100, 3));
    check(esdm_container_give_up_failed(container) == 1);
    check(esdm_container_give_up_failed(container) == 0);
    end("given");
    expect("s0", 0, 900, 1);
    expect("s0", 900, 100, 3);
    ok(esdm_container_close(container, ERR));
}

/* What a target lost before it was committed is to be written again, and nothing else is. */
static void
test_writes__what_could_not_be_flushed_is_written_again(void)
{
    use_durability_system();
    session = open_here();
    begin("flushed");
    ok(put(sets[0], 0, 900, 1));
    ok(esdm_container_commit(container, NULL, ERR));
    ok(put(sets[0], 0, 300, 2));
    ok(put(sets[SETS - 1], 0, LARGE_ROWS, 3));
    arm_data(ESDM_FAULTY_SYNC, 1, 0, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    commit_refused("was not repeated");
    arm_data(ESDM_FAULTY_SYNC, 1, 1, ESDM_FAULTY_NONE, ESDM_OK);
    ok(put(sets[1], 0, 900, 4)); /* others are not concerned */
    ok(put(sets[0], 0, 300, 5));
    commit_refused("/large");
    ok(put(sets[SETS - 1], 0, LARGE_ROWS, 6));
    ok(esdm_container_commit(container, NULL, ERR));

    ok(put(sets[0], 0, 900, 7));
    arm_data(ESDM_FAULTY_SYNC, 1, 1, ESDM_FAULTY_FAIL, ESDM_ENOSPC);
    commit_refused("was not repeated");
    check(esdm_container_give_up_failed(container) > 0);
    ok(esdm_container_commit(container, NULL, ERR)); /* what lay in other packs */
    ok(put(sets[0], 300, 600, 8));
    end("flushed");
    expect("s0", 300, 600, 8);
    expect("s1", 0, 900, 4);
    expect("large", 0, LARGE_ROWS, 6);
    ok(esdm_container_close(container, ERR));
    esdm_session_close(session);
}

int
main(void)
{
    describe_site();
    use_disk_alone();
    session = open_here();
    test_writes__large_one_is_written_again();
    test_writes__gathered_ones_stay();
    test_writes__other_datasets_are_not_harmed();
    test_writes__failed_ones_are_given_up();
    esdm_session_close(session);
    test_writes__what_could_not_be_flushed_is_written_again();
    return 0;
}
