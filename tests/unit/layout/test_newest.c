/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Newest wins: plans of random and of all orders of writes, compared with a painted array. */

#include "layout_support.h"

#define CELLS_MAX 4096

/*
 * The model: an array painted with the number of the write that touched an element last (from 1, 0:
 * never). Fragments carry that number as their position, so plans can be compared with the array.
 */
typedef struct model {
    uint32_t rank;
    uint64_t size[5];
    uint64_t writes;
    uint32_t cells[CELLS_MAX];
} model;

typedef void (*cell_fn)(uint64_t cell, void *user);

static void
for_cells(const model *m, const esdm__box *box, cell_fn visit, void *user)
{
    uint64_t at[5] = {0};
    for (;;) {
        uint64_t cell = 0;
        for (uint32_t d = 0; d < m->rank; d++)
            cell = cell * m->size[d] + box->lo[d] + at[d];
        visit(cell, user);
        uint32_t d = m->rank;
        while (d > 0 && ++at[d - 1] == box->n[d - 1])
            at[--d] = 0;
        if (d == 0)
            return;
    }
}

static void
paint(uint64_t cell, void *user)
{
    model *m = user;
    m->cells[cell] = (uint32_t) m->writes;
}

/* Every fourth write is inline: its bytes are the number. */
static void
write_box(model *m, esdm__index *index, const esdm__box *box)
{
    m->writes++;
    for_cells(m, box, paint, m);
    esdm__fragment f = {.raw_bytes = 8, .stored_bytes = 8};
    f.box = *box;
    uint64_t number = m->writes;
    if (number % 4 == 0) {
        f.inline_data = (const uint8_t *) &number;
    } else {
        f.pack = esdm__index_pack(index, number % 3 ? "fast" : "slow", number % 5 ? "a-1" : "b-2");
        f.position = number;
        f.stored_bytes = 1;
        f.head_bytes = 1;
        f.codec_ids[0] = (uint8_t) number;
    }
    assert_int_equal(esdm__index_add_pending(index, &f, NULL), ESDM_OK);
}

typedef struct comparison {
    const model *m;
    uint8_t *seen;
    uint64_t number;
    uint64_t covered;
    uint64_t expected;
} comparison;

static void
compare_cell(uint64_t cell, void *user)
{
    comparison *c = user;
    assert_int_equal(c->m->cells[cell], c->number);
    assert_int_equal(c->seen[cell], 0);
    c->seen[cell] = 1;
    c->covered++;
}

static void
count_written(uint64_t cell, void *user)
{
    comparison *c = user;
    c->expected += c->m->cells[cell] != 0;
}

static void
check_order(const esdm__plan *plan)
{
    for (size_t i = 1; i < plan->npieces; i++) {
        const esdm__fragment *a = plan->pieces[i - 1].fragment;
        const esdm__fragment *b = plan->pieces[i].fragment;
        if (b->pack == NULL) {
            assert_null(a->pack);
            continue;
        }
        if (a->pack == NULL)
            continue;
        int order = strcmp(a->pack->target, b->pack->target);
        order = order != 0 ? order : strcmp(a->pack->pack, b->pack->pack);
        assert_true(order < 0 || (a->pack == b->pack && a->position <= b->position));
    }
}

static void
check_plan(const model *m, const esdm__box *request, const esdm__plan *plan)
{
    uint8_t seen[CELLS_MAX] = {0};
    comparison c = {.m = m, .seen = seen};
    for (size_t i = 0; i < plan->npieces; i++) {
        const esdm__piece *p = &plan->pieces[i];
        assert_true(esdm__box_contains(request, &p->part));
        assert_true(esdm__box_contains(&p->fragment->box, &p->part));
        c.number = p->fragment->position;
        if (p->fragment->pack == NULL) {
            assert_int_equal(p->fragment->stored_bytes, 8);
            memcpy(&c.number, p->fragment->inline_data, 8);
        } else {
            assert_int_equal(p->fragment->codec_ids[0], (uint8_t) c.number);
        }
        for_cells(m, &p->part, compare_cell, &c);
    }
    for_cells(m, request, count_written, &c);
    assert_int_equal(c.covered, c.expected);
    assert_int_equal(plan->covered, c.covered == esdm__box_elements(request));
    check_order(plan);
}

static void
random_model(model *m, rng *r)
{
    static const uint64_t limits[6][5] = {{1},         {900},        {40, 30},
                                          {12, 10, 9}, {7, 6, 5, 6}, {5, 4, 4, 3, 5}};
    memset(m, 0, sizeof *m);
    m->rank = (uint32_t) rng_below(r, 6);
    for (uint32_t d = 0; d < m->rank; d++)
        m->size[d] = 1 + rng_below(r, limits[m->rank][d]);
}

static void
check_random(const model *m, rng *r, const store *s, esdm__index *index, esdm__plan *ret_plan)
{
    esdm__box request;
    random_box(r, m->rank, m->size, &request);
    if (rng_below(r, 4) == 0)
        esdm__box_set(&request, m->rank, NULL, m->size);
    store_resolve(s, index, &request, ret_plan);
    check_plan(m, &request, ret_plan);
}

/* Whole life of a dataset: writes, reads, commits with merges, reopening, eviction, discarding. */
static void
run_history(rng *r, uint32_t steps)
{
    static model m, committed;
    store s = {0};
    random_model(&m, r);
    committed = m;
    esdm__index *index = esdm__index_new(m.rank);
    uint32_t size = 1 + (uint32_t) rng_below(r, 3);
    for (uint32_t step = 0; step < steps; step++) {
        esdm__box box;
        esdm__plan plan = {0};
        switch (rng_below(r, 12)) {
        default:
            random_box(r, m.rank, m.size, &box);
            for (uint32_t d = 0; d < m.rank && size > 1; d++)
                box.n[d] = 1 + box.n[d] / (size * size);
            write_box(&m, index, &box);
            break;
        case 0:
        case 1:
            check_random(&m, r, &s, index, &plan);
            break;
        case 2:
        case 3:
            store_commit(&s, index, rng_below(r, 3) > 0);
            committed = m;
            break;
        case 4:
            esdm__index_evict(index, rng_below(r, 2) * 2000);
            break;
        case 5: /* a plan outlives the index; uncommitted fragments are lost */
            check_random(&m, r, &s, index, &plan);
            esdm__index_free(index);
            for (size_t i = 0; i < plan.npieces; i++)
                assert_true(plan.pieces[i].fragment->pack == NULL ||
                            plan.pieces[i].fragment->pack->target[0] != 0);
            index = store_open(&s, m.rank);
            m = committed;
            break;
        }
        esdm__plan_clear(&plan);
    }
    esdm__plan plan;
    check_random(&m, r, &s, index, &plan);
    esdm__plan_clear(&plan);
    esdm__index_free(index);
    store_clear(&s);
}

static void
test_newest__wins_in_random_histories(void **state)
{
    (void) state;
    for (uint64_t seed = 1; seed <= 300; seed++) {
        rng r = {seed};
        run_history(&r, 20 + (uint32_t) rng_below(&r, 300));
    }
}

/* All orders of four overlapping boxes, with a commit after each possible number of writes. */
static void
test_newest__wins_in_every_order(void **state)
{
    (void) state;
    static const uint64_t corners[4][4] = {{0, 0, 6, 6}, {3, 3, 6, 6}, {2, 0, 3, 9}, {4, 4, 2, 2}};
    for (uint32_t code = 0; code < 256 * 5; code++) {
        static model m;
        memset(&m, 0, sizeof m);
        m.rank = 2;
        m.size[0] = m.size[1] = 9;
        store s = {0};
        esdm__index *index = esdm__index_new(2);
        for (uint32_t i = 0; i < 4; i++) {
            const uint64_t *c = corners[(code >> (2 * i)) & 3];
            esdm__box box;
            esdm__box_set(&box, 2, c, c + 2);
            write_box(&m, index, &box);
            if (i + 1 == code / 256)
                store_commit(&s, index, true);
        }
        esdm__box all;
        esdm__plan plan;
        esdm__box_set(&all, 2, NULL, m.size);
        store_resolve(&s, index, &all, &plan);
        check_plan(&m, &all, &plan);
        esdm__plan_clear(&plan);
        esdm__index_free(index);
        store_clear(&s);
    }
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_newest__wins_in_random_histories),
        cmocka_unit_test(test_newest__wins_in_every_order),
    };
    return cmocka_run_group_tests_name("layout.newest", tests, NULL, NULL);
}
