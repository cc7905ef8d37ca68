/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What several ranks publish together. */
#include "ranks.h"

static uint64_t
own_row(const rank_state *r)
{
    return (uint64_t) ROWS * (uint64_t) r->rank;
}

static bool
count_fragment(const esdm_fragment_info *info, void *user)
{
    (void) info;
    ++*(uint64_t *) user;
    return true;
}

static void
blocks_of_all_ranks_are_one_snapshot(rank_state *r)
{
    esdm_container *c = create(r, "commit/blocks", ESDM_CREATE_REPLACE);
    esdm_container_info info;
    check(esdm_container_comm(c) == r->comm);
    for (uint64_t t = 0; t < 5; t++)
        put(find(c, "v"), box3(t, own_row(r), 0, 1, ROWS, COLUMNS), (int32_t) t * 100 + r->rank,
            t % 2 == 0);
    check(esdm_container_snapshot(c) == 0);
    check(esdm_container_stat(r->session, "commit/blocks", &info, ERR) == ESDM_ENOENT);
    meet(r);
    ok(esdm_container_commit(c, "first", ERR));
    check(esdm_container_snapshot(c) == 1);
    check(!esdm_container_is_dirty(c));
    ok(esdm_container_commit(c, "nothing to publish", ERR));
    check(esdm_container_snapshot(c) == 1);
    for (uint64_t t = 0; t < 5; t++)
        for (uint64_t rank = 0; rank < (uint64_t) r->size; rank++)
            expect(find(c, "v"), box3(t, rank * ROWS, 0, 1, ROWS, COLUMNS),
                   (int32_t) (t * 100 + rank), false);
    put(find(c, "v"), box3(5, own_row(r), 0, 1, ROWS, COLUMNS), r->rank, false);
    ok(esdm_container_close(c, ERR));
    ok(esdm_container_stat(r->session, "commit/blocks", &info, ERR));
    check(info.snapshot == 2);
    check(info.datasets == 1);
    uint64_t elements = 6 * (uint64_t) r->size * ROWS * COLUMNS;
    check(info.raw_bytes == elements * sizeof(int32_t));
}

/* One rank alone has something to publish, or none has. */
static void
ranks_without_changes_take_part(rank_state *r)
{
    esdm_container *c = create(r, "commit/one", ESDM_CREATE_REPLACE);
    ok(esdm_container_commit(c, NULL, ERR));
    for (int turn = 0; turn < r->size; turn++) {
        if (turn == r->rank)
            put(find(c, "v"), box3((uint64_t) turn, 0, 0, 1, 1, 1), turn, false);
        ok(esdm_container_commit(c, NULL, ERR));
        check(esdm_container_snapshot(c) == (uint64_t) turn + 2);
        expect(find(c, "v"), box3((uint64_t) turn, 0, 0, 1, 1, 1), turn, false);
    }
    ok(esdm_container_close(c, ERR));
}

/* Enough scattered elements for several index pages a rank, and for batches of them. */
static void
many_fragments(rank_state *r)
{
    uint64_t count = by_size(3000, 9000, 50000);
    esdm_container *c = create(r, "commit/many", ESDM_CREATE_REPLACE);
    esdm_group *root = esdm_container_root(c);
    esdm_dimension *place;
    esdm_dataset *sets[3];
    ok(esdm_dimension_create(root, "place", 2 * count * (uint64_t) r->size, &place, ERR));
    for (int i = 0; i < 3; i++) {
        char name[] = {'s', (char) ('0' + i), '\0'};
        ok(esdm_dataset_create(root, name, ESDM_TYPE_INT64, 1, &place, &sets[i], ERR));
    }
    for (uint64_t i = 0; i < count; i++) { /* every other place, so that nothing is gathered */
        uint64_t at = 2 * (i * (uint64_t) r->size + (uint64_t) r->rank);
        int64_t value = (int64_t) at;
        esdm_dataspace space;
        ok(esdm_dataspace_init(&space, 1, &at, (uint64_t[]){1}, ERR));
        ok(esdm_write(sets[0], &space, ESDM_TYPE_INT64, &value, NULL, ERR));
        if (i % 20 == 0 && r->rank != 1)
            ok(esdm_write(sets[2], &space, ESDM_TYPE_INT64, &value, NULL, ERR));
    }
    ok(esdm_container_close(c, ERR));
    meet(r);

    c = open_all(r, "commit/many", ESDM_OPEN_READ);
    uint64_t fragments = 0;
    ok(esdm_dataset_fragments(find(c, "s0"), count_fragment, &fragments, ERR));
    check(fragments == count * (uint64_t) r->size);
    int64_t *all = malloc((size_t) count * (size_t) r->size * 2 * sizeof *all);
    check(all != NULL);
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, NULL, (uint64_t[]){2 * count * (uint64_t) r->size}, ERR));
    ok(esdm_read(find(c, "s0"), &space, ESDM_TYPE_INT64, all, NULL, ERR));
    for (uint64_t i = 0; i < 2 * count * (uint64_t) r->size; i += 2)
        check(all[i] == (int64_t) i);
    ok(esdm_read(find(c, "s2"), &space, ESDM_TYPE_INT64, all, NULL, ERR));
    for (uint64_t i = 0; i < count; i += 20)
        for (uint64_t rank = 0; rank < (uint64_t) r->size; rank++) {
            uint64_t at = 2 * (i * (uint64_t) r->size + rank);
            check((all[at] == (int64_t) at) == (rank != 1));
        }
    free(all);
    ok(esdm_container_close(c, ERR));
}

/* Small pages of many commits become fuller ones, as with one writer: tests/integration has no view
 * of pages, so fragments must stay findable and reading fast; ranks.sh counts them. */
static void
many_commits(rank_state *r)
{
    uint64_t commits = by_size(40, 100, 300);
    esdm_container *c = create(r, "commit/merging", ESDM_CREATE_REPLACE);
    for (uint64_t t = 0; t < commits; t++) {
        put(find(c, "v"), box3(t, own_row(r), 0, 1, ROWS, 1), (int32_t) t, t % 2 == 0);
        ok(esdm_container_commit(c, NULL, ERR));
    }
    expect(find(c, "v"), box3(commits - 1, 0, 0, 1, (uint64_t) r->size * ROWS, 1),
           (int32_t) commits - 1, false);
    expect(find(c, "v"), box3(0, 0, 0, 1, (uint64_t) r->size * ROWS, 1), 0, false);
    ok(esdm_container_close(c, ERR));
}

/* ---- what queries find ---------------------------------------------------------------------- */

typedef struct asking {
    const char *name;
    bool found;
} asking;

static bool
is_match(const esdm_match *match, void *user)
{
    asking *a = user;
    a->found |= strcmp(match->container, a->name) == 0;
    return !a->found;
}

/* Whether a query finds the container; the text has one "%d". */
static bool
finds(const rank_state *r, const char *name, const char *question, int number)
{
    char text[160];
    asking a = {.name = name};
    (void) snprintf(text, sizeof text, question, number, number);
    ok(esdm_find(r->session, text, is_match, &a, ERR));
    return a.found;
}

static esdm_dataset *
define(esdm_container *c, const char *name, uint32_t rank, const char *const *dimensions,
       const char *units)
{
    esdm_dimension *dims[2];
    esdm_dataset *dataset;
    for (uint32_t i = 0; i < rank; i++)
        dims[i] = find_dimension(c, dimensions[i]);
    ok(esdm_dataset_create(esdm_container_root(c), name, ESDM_TYPE_INT32, rank, dims, &dataset,
                           ERR));
    esdm_attributes *attributes = esdm_dataset_attributes(dataset);
    if (units != NULL)
        ok(esdm_attribute_set(attributes, "units", ESDM_TYPE_CHAR, strlen(units), units, ERR));
    if (rank == 1 && strstr(units, "days") != NULL)
        ok(esdm_attribute_set(attributes, "calendar", ESDM_TYPE_CHAR, 6, "noleap", ERR));
    return dataset;
}

static void
put_row(esdm_dataset *dataset, uint64_t at, uint64_t row, uint64_t rows, int32_t value)
{
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, esdm_dataset_rank(dataset), (uint64_t[]){at, row},
                           (uint64_t[]){1, rows}, ERR));
    put(dataset, space, value, false);
}

/* Times of years from 1000 on, of one variable or of two that have their own, written by the last
 * rank alone. Its values are the largest. */
static esdm_container *
create_series(rank_state *r, const char *name, bool two)
{
    esdm_dimension *dimension;
    esdm_container *c = create(r, name, ESDM_CREATE_REPLACE);
    (void) define(c, "time", 1, (const char *[]){"time"}, "days since 1000-01-01");
    (void) define(c, "x", 1, (const char *[]){"x"}, "degrees_east");
    (void) define(c, "y", 1, (const char *[]){"y"}, "degrees_north");
    (void) define(c, "level", 2, (const char *[]){"time", "y"}, "m");
    (void) define(c, "zone", 2, (const char *[]){"time", "x"}, NULL);
    if (!two)
        return c;
    ok(esdm_dimension_create(esdm_container_root(c), "season", ESDM_UNLIMITED, &dimension, ERR));
    (void) define(c, "season", 1, (const char *[]){"season"}, "days since 5000-01-01");
    (void) define(c, "rain", 2, (const char *[]){"season", "y"}, "m");
    return c;
}

static void
put_series(rank_state *r, esdm_container *c, uint64_t t, bool two)
{
    int32_t value = (int32_t) (1000 * t) + r->rank;
    if (r->rank == r->size - 1) {
        put_row(find(c, "time"), t, 0, 1, (int32_t) (365 * t) + 10);
        for (uint64_t x = 0; x < COLUMNS && t == 20; x++) { /* after many commits */
            put_row(find(c, "x"), x, 0, 1, 100 + (int32_t) x);
            put_row(find(c, "y"), x % ROWS, 0, 1, 40 + (int32_t) x);
        }
        if (two)
            put_row(find(c, "season"), t, 0, 1, (int32_t) (365 * t) + 10);
    }
    put_row(find(c, "level"), t, own_row(r), ROWS, value);
    put_row(find(c, "zone"), t, 0, 1, -value);
    if (two)
        put_row(find(c, "rain"), t, own_row(r), ROWS, value);
}

/* What is found after the commit of record `t`. */
static void
expect_series(const rank_state *r, const char *name, uint64_t t, bool two)
{
    int last = (int) (1000 * t) + r->size - 1;
    check(finds(r, name, "max(level) >= %d", last));
    check(!finds(r, name, "max(level) > %d", last));
    check(finds(r, name, "min(zone) <= %d", -(int) (1000 * t)));
    check(finds(r, name, "time overlaps %04d .. %04d", 1000 + (int) t));
    check(two || !finds(r, name, "time overlaps %04d .. %04d", 1001 + (int) t)); /* between both */
    check(finds(r, name, "length(time) = %d", (int) t + 1));
    check(t < 20 || finds(r, name, "box overlaps 103,0,%d,90", 104));
    if (!two)
        return;
    check(finds(r, name, "max(rain) >= %d", last));
    check(finds(r, name, "time overlaps %04d .. %04d", 5000 + (int) t));
    check(!finds(r, name, "time overlaps %04d .. %04d", 5001 + (int) t));
}

/* A query finds what a commit brings as soon as that is over, though ranges are made anew less
 * often where commits follow each other closely. */
static void
queries_see_every_commit(rank_state *r)
{
    uint64_t commits = by_size(40, 60, 200);
    for (int two = 0; two < 2; two++) {
        const char *name = two ? "commit/ranges1" : "commit/ranges0";
        esdm_container *c = create_series(r, name, two);
        for (uint64_t t = 0; t < commits; t++) {
            put_series(r, c, t, two);
            ok(esdm_container_commit(c, NULL, ERR));
            if (r->rank == 0)
                expect_series(r, name, t, two);
            meet(r);
        }
        ok(esdm_container_close(c, ERR));
        meet(r);
        ok(r->rank == 0 ? esdm_container_remove(r->session, name, ERR) : ESDM_OK);
        meet(r);
    }
}

/* What was hidden is found until the ranges are made anew, at the latest with the end of the
 * handle, whether it is closed or discarded. */
static void
queries_forget_what_is_hidden(rank_state *r)
{
    uint64_t commits = by_size(60, 100, 300);
    for (int closes = 0; closes < 2; closes++) {
        const char *name = closes ? "commit/hidden1" : "commit/hidden0";
        esdm_container *c = create_series(r, name, false);
        for (uint64_t t = 0; t < commits; t++) {
            bool last = r->rank == r->size - 1;
            put_series(r, c, t, false);
            ok(esdm_container_commit(c, NULL, ERR));
            if (last)
                put_row(find(c, "level"), t, own_row(r), ROWS, 1000000 + (int32_t) t);
            ok(esdm_container_commit(c, NULL, ERR));
            check(r->rank != 0 || finds(r, name, "max(level) >= %d", 1000000 + (int) t));
            meet(r);
            if (last)
                put_row(find(c, "level"), t, own_row(r), ROWS, (int32_t) (1000 * t) + r->rank);
            ok(esdm_container_commit(c, NULL, ERR));
        }
        if (closes)
            ok(esdm_container_close(c, ERR));
        else
            esdm_container_discard(c);
        meet(r);
        if (r->rank == 0)
            expect_series(r, name, commits - 1, false);
        check(finds(r, name, "box overlaps 103,0,%d,90", 104));
        check(!finds(r, name, "box overlaps 110,0,%d,90", 120));
        meet(r);
        ok(r->rank == 0 ? esdm_container_remove(r->session, name, ERR) : ESDM_OK);
        meet(r);
    }
}

static void
texts_and_scalars(rank_state *r)
{
    esdm_container *c = create(r, "commit/texts", ESDM_CREATE_REPLACE);
    esdm_group *root = esdm_container_root(c);
    esdm_group *group;
    esdm_dimension *y = find_dimension(c, "y");
    esdm_dataset *texts;
    esdm_dataset *scalar;
    ok(esdm_group_create(root, "sub", &group, ERR));
    ok(esdm_dataset_create(group, "texts", ESDM_TYPE_STRING, 1, &y, &texts, ERR));
    ok(esdm_dataset_create(group, "scalar", ESDM_TYPE_FLOAT64, 0, NULL, &scalar, ERR));
    ok(esdm_attribute_set(esdm_dataset_attributes(texts), "note", ESDM_TYPE_CHAR, 3, "abc", ERR));
    char text[32];
    char *one = text;
    snprintf(text, sizeof text, "rank %d", r->rank);
    esdm_dataspace space;
    ok(esdm_dataspace_init(&space, 1, (uint64_t[]){own_row(r)}, (uint64_t[]){1}, ERR));
    ok(esdm_write(texts, &space, ESDM_TYPE_STRING, &one, NULL, ERR));
    double value = 1.5 * r->rank;
    ok(esdm_dataspace_init(&space, 0, NULL, NULL, ERR));
    ok(esdm_write_collective(scalar, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
    ok(esdm_container_commit(c, NULL, ERR));
    ok(esdm_read_collective(scalar, &space, ESDM_TYPE_FLOAT64, &value, NULL, ERR));
    check(value == 1.5 * (r->size - 1));
    for (int rank = 0; rank < r->size; rank++) {
        snprintf(text, sizeof text, "rank %d", rank);
        ok(esdm_dataspace_init(&space, 1, (uint64_t[]){(uint64_t) rank * ROWS}, (uint64_t[]){1},
                               ERR));
        ok(esdm_read(texts, &space, ESDM_TYPE_STRING, &one, NULL, ERR));
        check(strcmp(one, text) == 0);
        free(one);
    }
    ok(esdm_container_close(c, ERR));
}

/* ---- life of a container -------------------------------------------------------------------- */

static void
replacing_keeps_readers_whole(rank_state *r)
{
    esdm_container *c = create(r, "commit/replaced", ESDM_CREATE_REPLACE);
    put(find(c, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 1, false);
    ok(esdm_container_close(c, ERR));
    esdm_container *reader = open_all(r, "commit/replaced", ESDM_OPEN_READ);
    fails(esdm_container_create_collective(r->session, r->comm, "commit/replaced", ESDM_CREATE_NEW,
                                           &c, ERR),
          ESDM_EEXIST, "commit/replaced");
    c = create(r, "commit/replaced", ESDM_CREATE_REPLACE);
    put(find(c, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 2, false);
    ok(esdm_container_close(c, ERR));
    expect(find(reader, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 1, false);
    fails(esdm_container_refresh(reader, ERR), ESDM_ECONFLICT, "was replaced");
    ok(esdm_container_close(reader, ERR));
    c = open_all(r, "commit/replaced", ESDM_OPEN_READ);
    expect(find(c, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 2, false);
    ok(esdm_container_close(c, ERR));
}

static void
readers_follow_commits_together(rank_state *r)
{
    esdm_container *writer = create(r, "commit/follow", ESDM_CREATE_REPLACE);
    put(find(writer, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 1, false);
    ok(esdm_container_commit(writer, NULL, ERR));
    esdm_container *reader = open_all(r, "commit/follow", ESDM_OPEN_READ);
    check(esdm_container_snapshot(reader) == 1);
    put(find(writer, "v"), box3(0, own_row(r), 0, 2, ROWS, COLUMNS), 2, false);
    ok(esdm_container_commit(writer, NULL, ERR));
    expect(find(reader, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 1, true);
    check(esdm_dimension_length(find_dimension(reader, "time")) == 1);
    ok(esdm_container_refresh(reader, ERR));
    check(esdm_container_snapshot(reader) == 2);
    expect(find(reader, "v"), box3(1, 0, 0, 1, (uint64_t) r->size * ROWS, COLUMNS), 2, false);
    fails(esdm_write_collective(find(reader, "v"), NULL, ESDM_TYPE_INT32, NULL, NULL, ERR),
          ESDM_EACCES, "opened for reading");
    ok(esdm_container_close(writer, ERR));
    ok(esdm_container_close(reader, ERR));
}

/* A writer that opens an existing container adds data and structure; another process's commit in
 * between is found. */
static void
writers_extend_what_is_there(rank_state *r)
{
    esdm_dataset *more;
    esdm_container *c = create(r, "commit/extend", ESDM_CREATE_REPLACE);
    put(find(c, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 1, false);
    ok(esdm_container_close(c, ERR));
    c = open_all(r, "commit/extend", ESDM_OPEN_WRITE);
    if (r->rank == 0) {
        esdm_container *alone;
        ok(esdm_container_open(r->session, "commit/extend", ESDM_OPEN_WRITE, 0, &alone, ERR));
        put(find(alone, "v"), box3(7, 0, 0, 1, 1, 1), 77, false);
        ok(esdm_container_close(alone, ERR));
    }
    meet(r);
    esdm_dimension *x = find_dimension(c, "x");
    ok(esdm_dataset_create(esdm_container_root(c), "more", ESDM_TYPE_INT32, 1, &x, &more, ERR));
    put(find(c, "v"), box3(1, own_row(r), 0, 1, ROWS, COLUMNS), 2, false);
    ok(esdm_container_commit(c, NULL, ERR));
    check(esdm_container_snapshot(c) == 3);
    check(esdm_dimension_length(find_dimension(c, "time")) == 8);
    expect(find(c, "v"), box3(7, 0, 0, 1, 1, 1), 77, false);
    expect(find(c, "v"), box3(1, 0, 0, 1, (uint64_t) r->size * ROWS, COLUMNS), 2, false);
    ok(esdm_container_close(c, ERR));

    /* Of two changes of structure the second one loses, on all ranks. */
    c = open_all(r, "commit/extend", ESDM_OPEN_WRITE);
    if (r->rank == 0) {
        esdm_container *alone;
        ok(esdm_container_open(r->session, "commit/extend", ESDM_OPEN_WRITE, 0, &alone, ERR));
        ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(alone)), "a",
                              ESDM_TYPE_CHAR, 1, "x", ERR));
        ok(esdm_container_close(alone, ERR));
    }
    meet(r);
    ok(esdm_attribute_set(esdm_group_attributes(esdm_container_root(c)), "b", ESDM_TYPE_CHAR, 1,
                          "y", ERR));
    put(find(c, "v"), box3(2, own_row(r), 0, 1, ROWS, COLUMNS), 3, false);
    fails(esdm_container_commit(c, NULL, ERR), ESDM_ECONFLICT, "changed its structure first");
    esdm_container_discard(c);
    meet(r);
    c = open_alone(r, "commit/extend");
    check(esdm_container_snapshot(c) == 4);
    check(esdm_group_dataset_find(esdm_container_root(c), "more") != NULL);
    ok(esdm_container_close(c, ERR));
}

static void
several_containers_at_once(rank_state *r)
{
    esdm_container *a = create(r, "commit/a", ESDM_CREATE_REPLACE);
    esdm_container *b = create(r, "commit/b", ESDM_CREATE_REPLACE);
    put(find(a, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 1, true);
    put(find(b, "v"), box3(0, own_row(r), 0, 1, ROWS, COLUMNS), 2, true);
    ok(esdm_container_commit(b, NULL, ERR));
    expect(find(a, "v"), box3(0, 0, 0, 1, (uint64_t) r->size * ROWS, COLUMNS), 1, true);
    ok(esdm_container_close(a, ERR));
    ok(esdm_container_close(b, ERR));
}

/* Another program writes a part of a record that is new to it and to the ranks. */
static void
append_alone(rank_state *r, uint64_t record, int32_t value)
{
    esdm_container *alone;
    meet(r);
    if (r->rank == 0) {
        ok(esdm_container_open(r->session, "commit/append", ESDM_OPEN_WRITE, 0, &alone, ERR));
        put(find(alone, "v"), box3(record, 1, 2, 1, 1, 1), value, false);
        ok(esdm_container_close(alone, ERR));
    }
    meet(r);
}

static void
other_programs_append_too(rank_state *r)
{
    esdm_container *c = create(r, "commit/append", ESDM_CREATE_REPLACE);
    put(find(c, "v"), box3(0, own_row(r), 0, 2, ROWS, COLUMNS), 1, false);
    ok(esdm_container_commit(c, NULL, ERR));
    append_alone(r, 2, 77);
    put(find(c, "v"), box3(3, own_row(r), 0, 1, ROWS, COLUMNS), 3, true);
    ok(esdm_container_commit(c, NULL, ERR)); /* apart */
    expect(find(c, "v"), box3(2, 1, 2, 1, 1, 1), 77, false);
    put(find(c, "v"), box3(4, own_row(r), 0, 1, ROWS, COLUMNS), 4, false);
    append_alone(r, 5, 78);
    ok(esdm_container_commit(c, NULL, ERR));
    put(find(c, "v"), box3(2, own_row(r), 3, 1, ROWS, 1), 5, false);
    ok(esdm_container_commit(c, NULL, ERR)); /* another column of the same record */
    append_alone(r, 6, 79);
    put(find(c, "v"), box3(6, own_row(r), 0, 1, ROWS, COLUMNS), 6, false);
    fails(esdm_container_commit(c, NULL, ERR), ESDM_ECONFLICT, "index 6 of dimension 'time'");
    esdm_container_discard(c);
    meet(r);
    c = open_all(r, "commit/append", ESDM_OPEN_WRITE);
    check(esdm_dimension_length(find_dimension(c, "time")) == 7);
    expect(find(c, "v"), box3(6, 1, 2, 1, 1, 1), 79, false);
    put(find(c, "v"), box3(6, own_row(r), 0, 1, ROWS, COLUMNS), 7, false); /* it was there */
    ok(esdm_container_close(c, ERR));
}

const named_scenario commit_scenarios[] = {
    {"commit.blocks_of_all_ranks_are_one_snapshot", blocks_of_all_ranks_are_one_snapshot},
    {"commit.ranks_without_changes_take_part", ranks_without_changes_take_part},
    {"commit.many_fragments", many_fragments},
    {"commit.many_commits", many_commits},
    {"commit.queries_see_every_commit", queries_see_every_commit},
    {"commit.queries_forget_what_is_hidden", queries_forget_what_is_hidden},
    {"commit.texts_and_scalars", texts_and_scalars},
    {"commit.replacing_keeps_readers_whole", replacing_keeps_readers_whole},
    {"commit.readers_follow_commits_together", readers_follow_commits_together},
    {"commit.writers_extend_what_is_there", writers_extend_what_is_there},
    {"commit.other_programs_append_too", other_programs_append_too},
    {"commit.several_containers_at_once", several_containers_at_once},
    {NULL, NULL},
};
