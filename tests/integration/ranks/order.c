/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Overlapping writes of different ranks, and what ranks see of each other. */
#include "ranks.h"

static uint64_t
own_row(const rank_state *r)
{
    return (uint64_t) ROWS * (uint64_t) r->rank;
}

static esdm_dataspace
everything(const rank_state *r)
{
    return box3(0, 0, 0, 1, (uint64_t) ROWS * (uint64_t) r->size, COLUMNS);
}

/* Checks what an independent reader finds in record 0. */
static void
expect_published(rank_state *r, const char *name, esdm_dataspace space, int32_t value)
{
    meet(r);
    esdm_container *container = open_alone(r, name);
    expect(find(container, "v"), space, value, false);
    ok(esdm_container_close(container, ERR));
    meet(r);
}

/* Between two collective calls the higher rank wins, whoever was faster. */
static void
higher_rank_wins(rank_state *r)
{
    esdm_container *c = create(r, "order/rank", ESDM_CREATE_REPLACE);
    for (int turn = 0; turn < 3; turn++) /* the higher rank has the fewer fragments */
        if (turn >= r->rank % 3)
            put(find(c, "v"), everything(r), r->rank, false);
    ok(esdm_container_close(c, ERR));
    expect_published(r, "order/rank", everything(r), r->size - 1);
}

static void
later_write_wins_over_higher_rank(rank_state *r)
{
    esdm_container *c = create(r, "order/later", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    put(v, everything(r), 100 + r->rank, false);
    ok(esdm_container_align(c, ERR));
    if (r->rank == 0)
        put(v, box3(0, 0, 1, 1, 2, 2), 7, false);
    ok(esdm_container_commit(c, NULL, ERR));
    expect(v, box3(0, 0, 1, 1, 2, 2), 7, false);
    expect(v, box3(0, 2, 0, 1, 1, COLUMNS), 100 + r->size - 1, false);
    ok(esdm_container_close(c, ERR));
    expect_published(r, "order/later", box3(0, 0, 1, 1, 2, 2), 7);
}

/* Rank after rank writes the same place, from the highest to the lowest. */
static void
collective_writes_are_ordered(rank_state *r)
{
    esdm_container *c = create(r, "order/collective", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    for (int turn = r->size - 1; turn >= 0; turn--) {
        if (turn == r->rank)
            put(v, box3(0, 0, (uint64_t) (turn % 3), 1, 1, 3), turn, true);
        else
            put_nothing(v);
    }
    ok(esdm_container_close(c, ERR));
    expect_published(r, "order/collective", box3(0, 0, 0, 1, 1, 3), 0);
}

/* Small writes that were gathered do not overtake: rank 0 writes, the last rank overwrites, rank 0
 * goes on beside it. */
static void
gathered_writes_do_not_overtake(rank_state *r)
{
    esdm_container *c = create(r, "order/gathered", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    int last = r->size - 1;
    for (uint64_t x = 0; x < COLUMNS; x++) {
        if (r->rank == 0)
            put(v, box3(0, 0, x, 1, 1, 1), (int32_t) (10 + x), true);
        else
            put_nothing(v);
        if (x != 2)
            continue;
        if (r->rank == last)
            put(v, box3(0, 0, 0, 1, 1, 2), 99, true);
        else
            put_nothing(v);
    }
    ok(esdm_container_commit(c, NULL, ERR));
    expect(v, box3(0, 0, 0, 1, 1, 2), 99, false);
    for (uint64_t x = 2; x < COLUMNS; x++)
        expect(v, box3(0, 0, x, 1, 1, 1), (int32_t) (10 + x), false);
    ok(esdm_container_close(c, ERR));
}

/* Random overlapping collective writes, against a model in memory. */
static void
random_writes_follow_the_calls(rank_state *r)
{
    enum { TURNS = 60 };
    static _Thread_local int32_t model[64 * ROWS][COLUMNS];
    static _Thread_local int32_t found[64 * ROWS][COLUMNS];
    uint64_t random = 42; /* the same on all ranks */
    uint64_t rows = (uint64_t) ROWS * (uint64_t) r->size;
    esdm_container *c = create(r, "order/random", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    memset(model, 0, sizeof model);
    put(v, everything(r), 0, true);
    for (int32_t turn = 1; turn <= TURNS; turn++) {
        for (int rank = 0; rank < r->size; rank++) { /* of overlapping ones the highest rank wins */
            uint64_t y = next_random(&random) % rows;
            uint64_t x = next_random(&random) % COLUMNS;
            uint64_t ny = 1 + next_random(&random) % (rows - y);
            uint64_t nx = 1 + next_random(&random) % (COLUMNS - x);
            bool writes = next_random(&random) % 3 != 0;
            int32_t value = turn * 100 + rank;
            for (uint64_t i = y; i < y + ny && writes; i++)
                for (uint64_t k = x; k < x + nx; k++)
                    model[i][k] = value;
            if (rank == r->rank && writes)
                put(v, box3(0, y, x, 1, ny, nx), value, true);
            else if (rank == r->rank)
                put_nothing(v);
        }
        bool reads = next_random(&random) % 7 == 0;
        bool commits = next_random(&random) % 17 == 0;
        if (commits)
            ok(esdm_container_commit(c, NULL, ERR));
        if (!reads)
            continue;
        esdm_dataspace space = everything(r);
        ok(esdm_read_collective(v, &space, ESDM_TYPE_INT32, found, NULL, ERR));
        for (uint64_t i = 0; i < rows; i++)
            for (uint64_t k = 0; k < COLUMNS; k++)
                if (found[i][k] != model[i][k])
                    die("turn %d: [%" PRIu64 ",%" PRIu64 "] is %d, not %d", turn, i, k, found[i][k],
                        model[i][k]);
    }
    ok(esdm_container_close(c, ERR));
    meet(r);
    c = open_alone(r, "order/random");
    for (uint64_t i = 0; i < rows; i++)
        for (uint64_t k = 0; k < COLUMNS; k++)
            expect(find(c, "v"), box3(0, i, k, 1, 1, 1), model[i][k], false);
    ok(esdm_container_close(c, ERR));
}

/* ---- what ranks see of each other ---------------------------------------------------------- */

static void
collective_read_sees_what_is_not_committed(rank_state *r)
{
    esdm_container *c = create(r, "order/see", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    uint64_t next = (uint64_t) ((r->rank + 1) % r->size);
    for (int32_t turn = 0; turn < 4; turn++) {
        put(v, box3(0, own_row(r), 0, 1, ROWS, COLUMNS), turn * 1000 + r->rank, turn % 2 == 0);
        expect(v, box3(0, next * ROWS, 0, 1, ROWS, COLUMNS), turn * 1000 + (int32_t) next, true);
        expect(v, box3(0, next * ROWS, 0, 1, ROWS, COLUMNS), turn * 1000 + (int32_t) next, false);
        if (turn == 2)
            ok(esdm_container_commit(c, NULL, ERR));
        meet(r); /* independent reads are over */
    }
    check(esdm_container_is_dirty(c));
    esdm_container_discard(c); /* nothing of turn 3 was published */
    meet(r);
    c = open_alone(r, "order/see");
    expect(find(c, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 2000 + r->rank, false);
    ok(esdm_container_close(c, ERR));
}

static void
independent_read_sees_own_writes_and_commits(rank_state *r)
{
    esdm_container *c = create(r, "order/own", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    const int32_t fill = *(const int32_t *) esdm_dataset_fill(v, NULL);
    put(v, box3(0, own_row(r), 0, 1, ROWS, COLUMNS), r->rank, false);
    expect(v, box3(0, own_row(r), 0, 1, ROWS, COLUMNS), r->rank, false);
    uint64_t other = (uint64_t) ((r->rank + 1) % r->size);
    if (r->size > 1)
        expect(v, box3(0, other * ROWS, 0, 1, ROWS, COLUMNS), fill, false);
    meet(r);
    ok(esdm_container_commit(c, "step", ERR));
    expect(v, box3(0, other * ROWS, 0, 1, ROWS, COLUMNS), (int32_t) other, false);
    ok(esdm_container_close(c, ERR));
}

/* ---- lengths of unlimited dimensions ------------------------------------------------------- */

static void
lengths_agree_after_collective_calls(rank_state *r)
{
    esdm_container *c = create(r, "order/lengths", ESDM_CREATE_REPLACE);
    esdm_dataset *v = find(c, "v");
    esdm_dimension *time = find_dimension(c, "time");
    uint64_t size = (uint64_t) r->size;
    uint64_t rank = (uint64_t) r->rank;

    put(v, box3(rank, own_row(r), 0, 1, 1, 1), r->rank, false);
    check(esdm_dimension_length(time) == rank + 1);
    ok(esdm_container_align(c, ERR));
    check(esdm_dimension_length(time) == size);

    put(v, box3(size + rank, own_row(r), 0, 1, 1, 1), r->rank, true);
    check(esdm_dimension_length(time) == 2 * size);

    if (r->rank == r->size - 1)
        ok(esdm_dimension_extend(time, 3 * size, ERR));
    esdm_dataspace space = box3(0, 0, 0, 0, 0, 0);
    int32_t none;
    ok(esdm_read_collective(v, &space, ESDM_TYPE_INT32, &none, NULL, ERR));
    check(esdm_dimension_length(time) == 3 * size);

    if (r->rank == 0)
        put(v, box3(4 * size, 0, 0, 1, 1, 1), 1, false);
    ok(esdm_container_commit(c, NULL, ERR));
    check(esdm_dimension_length(time) == 4 * size + 1);
    ok(esdm_container_close(c, ERR));
    meet(r);
    c = open_alone(r, "order/lengths");
    check(esdm_dimension_length(find_dimension(c, "time")) == 4 * size + 1);
    for (uint64_t i = 0; i < size; i++) {
        expect(find(c, "v"), box3(i, i * ROWS, 0, 1, 1, 1), (int32_t) i, false);
        expect(find(c, "v"), box3(size + i, i * ROWS, 0, 1, 1, 1), (int32_t) i, false);
    }
    ok(esdm_container_close(c, ERR));
}

const named_scenario order_scenarios[] = {
    {"order.higher_rank_wins", higher_rank_wins},
    {"order.later_write_wins_over_higher_rank", later_write_wins_over_higher_rank},
    {"order.collective_writes_are_ordered", collective_writes_are_ordered},
    {"order.gathered_writes_do_not_overtake", gathered_writes_do_not_overtake},
    {"order.random_writes_follow_the_calls", random_writes_follow_the_calls},
    {"order.collective_read_sees_what_is_not_committed",
     collective_read_sees_what_is_not_committed},
    {"order.independent_read_sees_own_writes_and_commits",
     independent_read_sees_own_writes_and_commits},
    {"order.lengths_agree_after_collective_calls", lengths_agree_after_collective_calls},
    {NULL, NULL},
};
