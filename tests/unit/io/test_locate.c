/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Where points of a selection lie, against a search through all. */
#include "io/read/locate.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

static uint64_t
below(uint64_t *state, uint64_t n)
{
    *state = *state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (*state >> 33) % n;
}

/* A selection, a fragment and a part of it along one axis. */
typedef struct axis_case {
    esdm_dataspace space;
    esdm__fragment fragment;
    esdm__piece piece;
} axis_case;

static void
make_case(uint64_t *random, axis_case *c)
{
    uint64_t offset = below(random, 12);
    uint64_t size = below(random, 10);
    uint64_t step = 1 + below(random, 7);
    memset(c, 0, sizeof *c);
    assert_int_equal(esdm_dataspace_init(&c->space, 1, &offset, &size, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_set_stride(&c->space, &step, NULL), ESDM_OK);
    uint64_t elements = 1 + below(random, 10);
    esdm__fragment *f = &c->fragment;
    f->strided = elements > 1 && below(random, 3) > 0;
    f->stride[0] = f->strided ? 1 + below(random, 7) : 1;
    f->box.rank = 1;
    f->box.lo[0] = below(random, 20);
    f->box.n[0] = (elements - 1) * f->stride[0] + 1;
    c->piece.fragment = f;
    c->piece.part.rank = 1;
    uint64_t skipped = below(random, f->box.n[0]);
    c->piece.part.lo[0] = f->box.lo[0] + skipped;
    c->piece.part.n[0] = 1 + below(random, f->box.n[0] - skipped);
}

/* Index k of the selection is delivered, and from where, exactly when the fragment holds it. */
static void
test_locate__agrees_with_brute_force(void **state)
{
    enum { MEMORY_STEP = 3 };
    uint64_t random = 17;
    const int64_t memory_stride = MEMORY_STEP;
    (void) state;
    for (int round = 0; round < 100000; round++) {
        axis_case c;
        esdm__location at;
        make_case(&random, &c);
        if (!esdm__locate(&c.space, &memory_stride, &c.piece, &at))
            at = (esdm__location){.count = {0}};
        uint64_t delivered = 0;
        const esdm__box *part = &c.piece.part;
        for (uint64_t k = 0; k < c.space.size[0]; k++) {
            uint64_t index = c.space.offset[0] + k * c.space.stride[0];
            uint64_t inside = index - c.fragment.box.lo[0];
            if (index < part->lo[0] || index >= part->lo[0] + part->n[0] ||
                inside % c.fragment.stride[0] != 0)
                continue;
            assert_true(delivered < at.count[0]);
            assert_int_equal(at.target_first + (int64_t) delivered * at.target_stride[0],
                             k * MEMORY_STEP);
            assert_int_equal((int64_t) at.source_first + (int64_t) delivered * at.source_stride[0],
                             inside / c.fragment.stride[0]);
            delivered++;
        }
        assert_int_equal(delivered, at.count[0]);
    }
}

static void
test_locate__huge_indices_do_not_overflow(void **state)
{
    const uint64_t offset = UINT64_C(1) << 61;
    const uint64_t size = 3;
    const uint64_t step = (UINT64_C(1) << 59) - 1;
    const int64_t memory_stride = 1;
    (void) state;
    axis_case c;
    memset(&c, 0, sizeof c);
    assert_int_equal(esdm_dataspace_init(&c.space, 1, &offset, &size, NULL), ESDM_OK);
    assert_int_equal(esdm_dataspace_set_stride(&c.space, &step, NULL), ESDM_OK);
    c.fragment.strided = true;
    c.fragment.stride[0] = step * 2;
    c.fragment.box = (esdm__box){.rank = 1, .lo = {offset}, .n = {step * 2 + 1}};
    c.piece = (esdm__piece){.fragment = &c.fragment, .part = c.fragment.box};
    esdm__location at;
    assert_true(esdm__locate(&c.space, &memory_stride, &c.piece, &at));
    assert_int_equal(at.count[0], 2);
    assert_int_equal(at.target_stride[0], 2);
    assert_int_equal(at.source_stride[0], 1);
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_locate__agrees_with_brute_force),
        cmocka_unit_test(test_locate__huge_indices_do_not_overflow),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
