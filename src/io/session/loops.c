/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/loops.h"

#include <stdlib.h>
#include <string.h>

static uint64_t
stride_of(const esdm_dataspace *space, uint32_t d)
{
    return space->has_stride ? space->stride[d] : 1;
}

/* Room for one more. */
static esdm__loop *
grow(esdm__loops *loops)
{
    uint32_t rank = loops->rank;
    uint64_t *numbers = calloc((size_t) rank * 5 + 1, sizeof *numbers);
    if (numbers == NULL)
        return NULL;
    esdm__loop *loop = &loops->loop[loops->count++];
    *loop = (esdm__loop){
        .offset = numbers,
        .size = numbers + rank,
        .stride = numbers + 2 * (size_t) rank,
        .delta = {(int64_t *) numbers + 3 * (size_t) rank, (int64_t *) numbers + 4 * (size_t) rank},
        .count = {1, 1}};
    return loop;
}

void
esdm__loops_clear(esdm__loops *loops)
{
    for (size_t i = 0; i < loops->count; i++)
        free(loops->loop[i].offset);
    *loops = (esdm__loops){.rank = loops->rank};
}

/* ---- making them --------------------------------------------------------------------------- */

static bool
same_numbers(uint32_t rank, const void *a, const void *b)
{
    return rank == 0 || memcmp(a, b, rank * sizeof(uint64_t)) == 0;
}

/* Whether the selection is one more of the loop. */
static bool
goes_on(const esdm__loops *loops, esdm__loop *loop, const esdm_dataspace *space)
{
    if (loop->count[1] > 1)
        return false;
    for (uint32_t d = 0; d < loops->rank; d++) {
        uint64_t moved = space->offset[d] - loop->offset[d];
        if (space->size[d] != loop->size[d] || stride_of(space, d) != loop->stride[d] ||
            (loop->count[0] > 1 && moved != loop->count[0] * (uint64_t) loop->delta[0][d]))
            return false;
    }
    for (uint32_t d = 0; d < loops->rank && loop->count[0] == 1; d++)
        loop->delta[0][d] = (int64_t) (space->offset[d] - loop->offset[d]);
    loop->count[0]++;
    return true;
}

/* The last loop becomes one more round of the one before, if it is. */
static void
fold(esdm__loops *loops)
{
    if (loops->count < 2)
        return;
    esdm__loop *last = &loops->loop[loops->count - 1];
    esdm__loop *into = last - 1;
    uint32_t rank = loops->rank;
    if (last->count[1] > 1 || last->count[0] != into->count[0] ||
        !same_numbers(rank, last->size, into->size) ||
        !same_numbers(rank, last->stride, into->stride) ||
        !same_numbers(rank, last->delta[0], into->delta[0]))
        return;
    for (uint32_t d = 0; d < rank && into->count[1] > 1; d++) {
        if (last->offset[d] - into->offset[d] != into->count[1] * (uint64_t) into->delta[1][d])
            return;
    }
    for (uint32_t d = 0; d < rank && into->count[1] == 1; d++)
        into->delta[1][d] = (int64_t) (last->offset[d] - into->offset[d]);
    into->count[1]++;
    free(last->offset);
    loops->count--;
}

void
esdm__loops_end(esdm__loops *loops)
{
    fold(loops);
}

void
esdm__loops_add(esdm__loops *loops, const esdm_dataspace *space)
{
    if (loops->cut || space->rank != loops->rank)
        return;
    if (loops->count > 0 && goes_on(loops, &loops->loop[loops->count - 1], space)) {
        loops->reads++;
        return;
    }
    fold(loops);
    esdm__loop *loop = loops->count < ESDM__LOOPS_MOST ? grow(loops) : NULL;
    if (loop == NULL) {
        loops->cut = true;
        return;
    }
    for (uint32_t d = 0; d < loops->rank; d++) {
        loop->offset[d] = space->offset[d];
        loop->size[d] = space->size[d];
        loop->stride[d] = stride_of(space, d);
    }
    loops->reads++;
}

static size_t
bytes_of(const esdm__loops *loops)
{
    return (size_t) loops->rank * 5 * sizeof(uint64_t);
}

bool
esdm__loops_equal(const esdm__loops *a, const esdm__loops *b)
{
    if (a->rank != b->rank || a->count != b->count || a->cut != b->cut)
        return false;
    for (size_t i = 0; i < a->count; i++) {
        if (memcmp(a->loop[i].count, b->loop[i].count, sizeof a->loop[i].count) != 0 ||
            memcmp(a->loop[i].offset, b->loop[i].offset, bytes_of(a)) != 0)
            return false;
    }
    return true;
}

bool
esdm__loops_copy(const esdm__loops *loops, esdm__loops *ret)
{
    *ret = (esdm__loops){.rank = loops->rank};
    for (size_t i = 0; i < loops->count; i++) {
        esdm__loop *loop = grow(ret);
        if (loop == NULL) {
            esdm__loops_clear(ret);
            return false;
        }
        memcpy(loop->offset, loops->loop[i].offset, bytes_of(loops));
        memcpy(loop->count, loops->loop[i].count, sizeof loop->count);
    }
    ret->cut = loops->cut;
    ret->reads = loops->reads;
    return true;
}

/* ---- following them ------------------------------------------------------------------------ */

bool
esdm__loops_get(const esdm__loops *loops, const esdm__loops_at *at, esdm_dataspace *ret)
{
    if (at->loop >= loops->count)
        return false;
    const esdm__loop *loop = &loops->loop[at->loop];
    *ret = (esdm_dataspace){.rank = loops->rank};
    for (uint32_t d = 0; d < loops->rank; d++) {
        ret->offset[d] = loop->offset[d] + at->inner * (uint64_t) loop->delta[0][d] +
                         at->outer * (uint64_t) loop->delta[1][d];
        ret->size[d] = loop->size[d];
        ret->stride[d] = loop->stride[d];
        ret->has_stride |= loop->stride[d] != 1;
    }
    return true;
}

void
esdm__loops_next(const esdm__loops *loops, esdm__loops_at *at)
{
    if (at->loop >= loops->count || ++at->inner < loops->loop[at->loop].count[0])
        return;
    at->inner = 0;
    if (++at->outer < loops->loop[at->loop].count[1])
        return;
    at->outer = 0;
    at->loop++;
}

bool
esdm__same_selection(const esdm_dataspace *a, const esdm_dataspace *b)
{
    if (a->rank != b->rank)
        return false;
    for (uint32_t d = 0; d < a->rank; d++) {
        if (a->offset[d] != b->offset[d] || a->size[d] != b->size[d] ||
            (a->size[d] > 1 && stride_of(a, d) != stride_of(b, d)))
            return false;
    }
    return true;
}

/* ---- as JSON ------------------------------------------------------------------------------- */

static json_t *
numbers_json(uint32_t rank, const void *numbers)
{
    json_t *list = json_array();
    for (uint32_t d = 0; d < rank; d++)
        (void) json_array_append_new(list, json_integer(((const json_int_t *) numbers)[d]));
    return list;
}

json_t *
esdm__loops_json(const esdm__loops *loops)
{
    json_t *list = json_array();
    for (size_t i = 0; i < loops->count; i++) {
        const esdm__loop *l = &loops->loop[i];
        (void) json_array_append_new(list,
                                     json_pack("{s:o,s:o,s:o,s:o,s:I,s:o,s:I}", "offset",
                                               numbers_json(loops->rank, l->offset), "size",
                                               numbers_json(loops->rank, l->size), "stride",
                                               numbers_json(loops->rank, l->stride), "delta",
                                               numbers_json(loops->rank, l->delta[0]), "count",
                                               (json_int_t) l->count[0], "outer_delta",
                                               numbers_json(loops->rank, l->delta[1]),
                                               "outer_count", (json_int_t) l->count[1]));
    }
    return list;
}

static bool
parse_numbers(const json_t *loop, const char *key, uint32_t rank, json_int_t least, void *ret)
{
    const json_t *list = json_object_get(loop, key);
    if (!json_is_array(list) || json_array_size(list) != rank)
        return false;
    for (uint32_t d = 0; d < rank; d++) {
        const json_t *one = json_array_get(list, d);
        if (!json_is_integer(one) || json_integer_value(one) < least)
            return false;
        ((json_int_t *) ret)[d] = json_integer_value(one);
    }
    return true;
}

static bool
parse_count(const json_t *loop, const char *key, uint64_t *ret)
{
    json_int_t value = json_integer_value(json_object_get(loop, key));
    *ret = (uint64_t) value;
    return value > 0 && value < INT64_C(1) << 31;
}

static bool
parse_loop(const json_t *json, uint32_t rank, esdm__loop *loop)
{
    return parse_numbers(json, "offset", rank, 0, loop->offset) &&
           parse_numbers(json, "size", rank, 1, loop->size) &&
           parse_numbers(json, "stride", rank, 1, loop->stride) &&
           parse_numbers(json, "delta", rank, INT64_MIN, loop->delta[0]) &&
           parse_numbers(json, "outer_delta", rank, INT64_MIN, loop->delta[1]) &&
           parse_count(json, "count", &loop->count[0]) &&
           parse_count(json, "outer_count", &loop->count[1]);
}

bool
esdm__loops_parse(const json_t *json, uint32_t rank, esdm__loops *ret)
{
    size_t count = json_array_size(json);
    *ret = (esdm__loops){.rank = rank};
    bool good = json_is_array(json) && rank <= ESDM_MAX_RANK && count <= ESDM__LOOPS_MOST;
    for (size_t i = 0; i < count && good; i++) {
        esdm__loop *loop = grow(ret);
        good = loop != NULL && parse_loop(json_array_get(json, i), rank, loop);
        if (good)
            ret->reads += loop->count[0] * loop->count[1];
    }
    if (!good)
        esdm__loops_clear(ret);
    return good;
}
