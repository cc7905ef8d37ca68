/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/ahead.h"

#include <stdlib.h>
#include <string.h>

#include "io/read/fetch.h"
#include "io/read/locate.h"
#include "io/read/read.h"
#include "model/copy.h"

/* Reads that are foreseen: the more of them came as foreseen, the more. */
#define FIRST_DEPTH  2u
#define SECOND_DEPTH 8u
#define DEPTH        64u
/* Steps in a row that are believed after wrong guesses, at most. */
#define DISTRUST_MOST 8u
/* So many right ones in a row, and wrong ones are forgotten. */
#define TRUST_STEPS 16u

/** How a dataset was read last; guarded by its `lock`. */
struct esdm__steps {
    esdm_dataspace last;
    int64_t delta[ESDM_MAX_RANK]; /* from the offset before to the last one */
    uint64_t turn;                /* number of the last read */
    uint64_t asked;               /* turns that were asked for, up to this one */
    unsigned in_row;              /* equal deltas */
    unsigned distrust;            /* so many more are needed */
};

/* ---- pieces ------------------------------------------------------------------------------- */

static esdm__target *
far_target_of(esdm_session *session, const esdm__fragment *fragment)
{
    esdm__sources sources;
    if (fragment->pack == NULL || (fragment->sequence & ESDM__SEQUENCE_PENDING) != 0 ||
        esdm__sources_of(session, fragment->pack, &sources, NULL) != ESDM_OK)
        return NULL;
    return sources.targets[0]->plugin->concurrency > 0 ? sources.targets[0] : NULL;
}

/* The raw bytes between the first and the last element that a piece is to give. */
static bool
raw_bytes_of(const esdm_dataspace *space, const esdm__piece *piece, uint64_t element_bytes,
             uint64_t *ret_from, uint64_t *ret_to)
{
    int64_t memory_stride[ESDM_MAX_RANK];
    esdm__location g;
    esdm__dense_strides(space->rank, space->size, memory_stride);
    if (!esdm__locate(space, memory_stride, piece, &g))
        return false;
    *ret_from = 0;
    *ret_to = piece->fragment->raw_bytes;
    if (element_bytes == 0)
        return true;
    uint64_t last = g.source_first;
    for (uint32_t d = 0; d < g.rank; d++)
        last += (g.count[d] - 1) * (uint64_t) g.source_stride[d];
    *ret_from = g.source_first * element_bytes;
    *ret_to = (last + 1) * element_bytes;
    return true;
}

bool
esdm__ask_for_pieces(const esdm_dataset *dataset, const esdm_dataspace *space,
                     const esdm__piece *pieces, size_t count, uint64_t element_bytes,
                     const void *owner, uint64_t turn)
{
    esdm_session *session = dataset->group->container->session;
    const esdm__fragment *first = pieces[0].fragment;
    const esdm__fragment *last = pieces[count - 1].fragment;
    esdm__target *target = far_target_of(session, first);
    esdm_range ranges[2];
    size_t nranges = 0;
    uint64_t from;
    uint64_t to;
    if (target == NULL)
        return true;
    if (count > 1) {
        ranges[0].position = first->position;
        ranges[0].bytes = last->position + last->stored_bytes - first->position;
        nranges = 1;
    } else if (raw_bytes_of(space, &pieces[0], element_bytes, &from, &to)) {
        nranges = esdm__fetch_ranges(session, first, target, &dataset->coarse, from, to, ranges);
    }
    bool good = true;
    for (size_t i = 0; i < nranges && good; i++) {
        const esdm__ahead_want want = {.target = target,
                                       .pack = first->pack->pack,
                                       .position = ranges[i].position,
                                       .bytes = ranges[i].bytes,
                                       .owner = owner,
                                       .turn = turn};
        good = esdm__ahead_ask(session->ahead, &want);
    }
    return good;
}

/* ---- steps -------------------------------------------------------------------------------- */

static bool
same_shape(const esdm_dataspace *a, const esdm_dataspace *b)
{
    size_t bytes = a->rank * sizeof a->size[0];
    return a->rank == b->rank && a->has_stride == b->has_stride &&
           memcmp(a->size, b->size, bytes) == 0 &&
           (!a->has_stride || memcmp(a->stride, b->stride, bytes) == 0);
}

/* From one offset to the other. @return along how many axes they differ */
static uint32_t
difference(const esdm_dataspace *from, const esdm_dataspace *to, int64_t *ret_delta)
{
    uint32_t axes = 0;
    for (uint32_t d = 0; d < to->rank; d++) {
        ret_delta[d] = (int64_t) (to->offset[d] - from->offset[d]);
        axes += ret_delta[d] != 0;
    }
    return axes;
}

/* Whether the selections follow each other without a gap, or nearly: a loop's first two steps. */
static bool
are_neighbours(const esdm_dataspace *space, const int64_t *delta)
{
    for (uint32_t d = 0; d < space->rank; d++) {
        uint64_t step = space->has_stride ? space->stride[d] : 1;
        uint64_t extent = (space->size[d] - 1) * step + 1;
        uint64_t moved = delta[d] < 0 ? 0 - (uint64_t) delta[d] : (uint64_t) delta[d];
        if (moved > extent + step)
            return false;
    }
    return true;
}

/* Takes note of the read. @return how many of the next ones are foreseen */
static uint64_t
note(struct esdm__steps *steps, const esdm_dataspace *space, bool *ret_wrong)
{
    int64_t delta[ESDM_MAX_RANK] = {0};
    bool same = same_shape(&steps->last, space);
    uint32_t axes = same ? difference(&steps->last, space, delta) : 0;
    bool again = same && axes > 0 && steps->in_row > 0 &&
                 memcmp(delta, steps->delta, space->rank * sizeof delta[0]) == 0;
    *ret_wrong = !again;
    if (!again && steps->asked > steps->turn && steps->distrust < DISTRUST_MOST)
        steps->distrust++;
    steps->in_row = again ? steps->in_row + 1 : axes == 1;
    if (steps->in_row >= TRUST_STEPS)
        steps->distrust = 0;
    steps->turn++;
    if (!again || steps->asked < steps->turn)
        steps->asked = steps->turn;
    steps->last = *space;
    memcpy(steps->delta, delta, sizeof delta);
    if (steps->in_row <= steps->distrust)
        return 0;
    unsigned right = steps->in_row - steps->distrust;
    if (right == 1 && !again)
        return are_neighbours(space, delta) ? FIRST_DEPTH : 0;
    return right <= 2 ? SECOND_DEPTH : DEPTH;
}

/* The selection so many steps on; false: it leaves the dataset. */
static bool
foresee(const esdm_dataset *dataset, const struct esdm__steps *steps, uint64_t ahead,
        esdm_dataspace *ret)
{
    *ret = steps->last;
    ret->has_memory_stride = false;
    for (uint32_t d = 0; d < ret->rank; d++) {
        __int128 offset = (__int128) ret->offset[d] + (__int128) steps->delta[d] * (int64_t) ahead;
        uint64_t step = ret->has_stride ? ret->stride[d] : 1;
        __int128 end = offset + (__int128) (ret->size[d] - 1) * step + 1;
        if (offset < 0 || end > esdm_dimension_length(dataset->dimensions[d]))
            return false;
        ret->offset[d] = (uint64_t) offset;
    }
    return true;
}

static bool
ask_for_space(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
              uint64_t turn)
{
    esdm__box hull;
    esdm__plan plan = {0};
    bool too_many = false;
    esdm__box_of_space(&hull, space);
    bool good = esdm__read_plan(dataset, io, &hull, &plan, &too_many, NULL) == ESDM_OK && !too_many;
    uint64_t bytes = esdm__elements_vary(&io->elements) ? 0 : io->elements.bytes;
    for (size_t i = 0; i < plan.npieces && good; i++)
        good = esdm__ask_for_pieces(dataset, space, &plan.pieces[i], 1, bytes, io, turn);
    esdm__plan_clear(&plan);
    return good;
}

void
esdm__read_note_step(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space)
{
    esdm__ahead *ahead = dataset->group->container->session->ahead;
    struct esdm__steps now;
    bool wrong = false;
    (void) pthread_mutex_lock(&io->lock);
    if (io->steps == NULL)
        io->steps = calloc(1, sizeof *io->steps);
    if (io->steps == NULL) {
        (void) pthread_mutex_unlock(&io->lock);
        return;
    }
    uint64_t depth = note(io->steps, space, &wrong);
    now = *io->steps;
    (void) pthread_mutex_unlock(&io->lock);

    esdm__ahead_drop(ahead, io, 0, wrong ? UINT64_MAX : now.turn);
    uint64_t turn = now.asked;
    esdm_dataspace next;
    while (turn < now.turn + depth && foresee(dataset, &now, turn + 1 - now.turn, &next) &&
           ask_for_space(dataset, io, &next, turn + 1))
        turn++;
    (void) pthread_mutex_lock(&io->lock);
    if (io->steps->turn == now.turn)
        io->steps->asked = turn;
    (void) pthread_mutex_unlock(&io->lock);
}
