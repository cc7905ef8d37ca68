/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/ahead.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

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
    uint64_t recalled;            /* turns of these that only the record foresaw, up to this one */
    esdm__use *use;               /* what earlier runs read; NULL: not known */
};

/* What of an earlier run is asked for at once: of a larger read the pieces go by themselves. */
#define SHARE_OF_ROOM 4u

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
                     const esdm__asker *asker)
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
        nranges =
            esdm__fetch_ranges(session, first, target, &dataset->stated->coarse, from, to, ranges);
    }
    bool good = true;
    for (size_t i = 0; i < nranges && good; i++) {
        const esdm__ahead_want want = {.target = target,
                                       .pack = first->pack->pack,
                                       .position = ranges[i].position,
                                       .bytes = ranges[i].bytes,
                                       .owner = asker->owner,
                                       .turn = asker->turn,
                                       .account = asker->account};
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

/* Whether a loop over steps is likely to begin: the first one, all of it. */
static bool
begins_loop(const esdm_dataset *dataset, const esdm_dataspace *space)
{
    bool larger = false;
    if (space->rank < 2 || space->size[0] != 1 || space->offset[0] != 0)
        return false;
    for (uint32_t d = 1; d < space->rank; d++) {
        if (space->size[d] != esdm_dimension_length(dataset->dimensions[d]))
            return false;
        larger |= space->size[d] > 1;
    }
    return larger;
}

/* The first read of it. Reads may have been asked for before, as an earlier run made them: where
 * this one is another, none of them counts any more. */
static uint64_t
note_first(struct esdm__steps *steps, const esdm_dataset *dataset, const esdm_dataspace *space,
           bool follows, bool *ret_wrong)
{
    *ret_wrong = !follows && steps->asked > 1;
    if (!follows || steps->asked < 1)
        steps->asked = 1;
    if (!follows)
        steps->recalled = 0;
    steps->turn = 1;
    steps->last = *space;
    if (!begins_loop(dataset, space))
        return 0;
    steps->delta[0] = 1; /* as if another one had come before it */
    steps->in_row = 1;
    return FIRST_DEPTH;
}

/* Takes note of the read. @param follows an earlier run, which told of it.
 * @return how many of the next ones are foreseen */
static uint64_t
note(struct esdm__steps *steps, const esdm_dataspace *space, bool follows, bool *ret_wrong)
{
    int64_t delta[ESDM_MAX_RANK] = {0};
    bool same = same_shape(&steps->last, space);
    uint32_t axes = same ? difference(&steps->last, space, delta) : 0;
    bool again = same && axes > 0 && steps->in_row > 0 &&
                 memcmp(delta, steps->delta, space->rank * sizeof delta[0]) == 0;
    *ret_wrong = !again && !follows;
    if (*ret_wrong && steps->asked > steps->turn && steps->recalled <= steps->turn &&
        steps->turn > 1 && steps->distrust < DISTRUST_MOST) /* nothing told of the first one */
        steps->distrust++;
    steps->in_row = again ? steps->in_row + 1 : axes == 1;
    if (steps->in_row >= TRUST_STEPS)
        steps->distrust = 0;
    steps->turn++;
    if (*ret_wrong || steps->asked < steps->turn)
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

/* Whether the selection lies in the dataset. */
static bool
is_inside(const esdm_dataset *dataset, const esdm_dataspace *space)
{
    for (uint32_t d = 0; d < space->rank; d++) {
        uint64_t step = space->has_stride ? space->stride[d] : 1;
        uint64_t length = esdm_dimension_length(dataset->dimensions[d]);
        if (space->offset[d] >= length || space->size[d] == 0 ||
            (space->size[d] - 1) > (length - 1 - space->offset[d]) / step)
            return false;
    }
    return space->rank == dataset->rank;
}

/* The selection so many steps on; false: it leaves the dataset. */
static bool
step_on(const esdm_dataset *dataset, const struct esdm__steps *steps, uint64_t ahead,
        esdm_dataspace *ret)
{
    *ret = steps->last;
    ret->has_memory_stride = false;
    for (uint32_t d = 0; d < ret->rank; d++) {
        __int128 offset = (__int128) ret->offset[d] + (__int128) steps->delta[d] * (int64_t) ahead;
        if (offset < 0 || offset > INT64_MAX)
            return false;
        ret->offset[d] = (uint64_t) offset;
    }
    return is_inside(dataset, ret);
}

/* ---- asking -------------------------------------------------------------------------------- */

static bool
ask_for_space(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space,
              const esdm__asker *asker)
{
    esdm__box hull;
    esdm__plan plan = {0};
    bool too_many = false;
    esdm__box_of_space(&hull, space);
    bool good = esdm__read_plan(dataset, io, &hull, &plan, &too_many, NULL) == ESDM_OK && !too_many;
    uint64_t bytes = esdm__elements_vary(&io->elements) ? 0 : io->elements.bytes;
    for (size_t i = 0; i < plan.npieces && good; i++)
        good = esdm__ask_for_pieces(dataset, space, &plan.pieces[i], 1, bytes, asker);
    esdm__plan_clear(&plan);
    return good;
}

static uint64_t
now_ns(void)
{
    struct timespec t;
    (void) clock_gettime(CLOCK_MONOTONIC, &t);
    return (uint64_t) t.tv_sec * 1000000000u + (uint64_t) t.tv_nsec;
}

/* What an earlier run read so many reads on. */
static bool
recall(const esdm_dataset *dataset, const esdm__dataset_io *io, const esdm__use *use,
       uint64_t ahead, esdm_dataspace *ret)
{
    esdm_session *session = dataset->group->container->session;
    if (!esdm__earlier_foresee(session->earlier, use, ahead, ret) || !is_inside(dataset, ret))
        return false;
    uint64_t most = esdm__ahead_limit(session->ahead) / SHARE_OF_ROOM;
    uint64_t elements = 1; /* no overflow: it lies in the dataset */
    for (uint32_t d = 0; d < ret->rank; d++)
        elements *= ret->size[d];
    return elements <= most / (io->elements.bytes > 0 ? io->elements.bytes : 1);
}

/* Asks for the reads after number `turn` that are foreseen: by the record where the reads follow
 * it, else by the steps. @param ret_recalled left alone, or the last one that steps did not tell.
 * @return the last one that was asked for */
static uint64_t
ask_on(esdm_dataset *dataset, esdm__dataset_io *io, const struct esdm__steps *now, uint64_t depth,
       const esdm__foreseen *record, uint64_t *ret_recalled)
{
    esdm_session *session = dataset->group->container->session;
    uint64_t turn = now->asked;
    uint64_t most = record->depth > depth ? record->depth : depth;
    uint64_t began = record->depth > depth ? now_ns() : 0;
    while (turn < now->turn + most) {
        esdm_dataspace next;
        uint64_t ahead = turn + 1 - now->turn;
        bool recalled = record->follows && recall(dataset, io, now->use, ahead, &next);
        if (!recalled && (record->ends || ahead > depth || !step_on(dataset, now, ahead, &next)))
            break;
        const esdm__asker asker = {.owner = io,
                                   .turn = turn + 1,
                                   .account = ahead > depth ? esdm__earlier_account(now->use)
                                                            : &session->stepped};
        if (!ask_for_space(dataset, io, &next, &asker))
            break;
        turn++;
        if (ahead > depth)
            *ret_recalled = turn;
    }
    if (began > 0)
        esdm__earlier_cost(now->use, now_ns() - began);
    return turn;
}

static esdm__use *
use_of(const esdm_dataset *dataset)
{
    uint64_t lengths[ESDM_MAX_RANK];
    const esdm_container *container = dataset->group->container;
    esdm__earlier *earlier = container->session->earlier;
    if (earlier == NULL || esdm__io_of(container)->comm != NULL ||
        atomic_load(&container->session->serves_others)) /* what they read is not this program's */
        return NULL;
    for (uint32_t d = 0; d < dataset->rank; d++)
        lengths[d] = esdm_dimension_length(dataset->dimensions[d]);
    char *path = esdm__dataset_path(dataset);
    esdm__use *use = path != NULL
                         ? esdm__earlier_use(earlier, container->name, path, dataset->rank, lengths)
                         : NULL;
    free(path);
    return use;
}

/* Of the dataset; with the record's part in it. NULL: no memory. */
static struct esdm__steps *
steps_of(const esdm_dataset *dataset, esdm__dataset_io *io)
{
    (void) pthread_mutex_lock(&io->lock);
    struct esdm__steps *steps = io->steps;
    (void) pthread_mutex_unlock(&io->lock);
    if (steps != NULL)
        return steps;
    struct esdm__steps *fresh = calloc(1, sizeof *fresh);
    if (fresh != NULL)
        fresh->use = use_of(dataset);
    (void) pthread_mutex_lock(&io->lock);
    if (io->steps == NULL) {
        io->steps = fresh;
        fresh = NULL;
    }
    steps = io->steps;
    (void) pthread_mutex_unlock(&io->lock);
    free(fresh);
    return steps;
}

void
esdm__read_note_step(esdm_dataset *dataset, esdm__dataset_io *io, const esdm_dataspace *space)
{
    const esdm_session *session = dataset->group->container->session;
    struct esdm__steps *steps = steps_of(dataset, io);
    esdm__foreseen record = {0};
    bool wrong = false;
    if (steps == NULL)
        return;
    if (steps->use != NULL)
        esdm__earlier_note(session->earlier, steps->use, space, &record);
    (void) pthread_mutex_lock(&io->lock);
    uint64_t depth = steps->turn == 0 ? note_first(steps, dataset, space, record.follows, &wrong)
                                      : note(steps, space, record.follows, &wrong);
    struct esdm__steps now = *steps;
    (void) pthread_mutex_unlock(&io->lock);

    esdm__ahead_drop(session->ahead, io, 0, wrong ? UINT64_MAX : now.turn);
    uint64_t recalled = now.recalled;
    uint64_t turn = ask_on(dataset, io, &now, depth, &record, &recalled);
    (void) pthread_mutex_lock(&io->lock);
    if (steps->turn == now.turn) {
        steps->asked = turn;
        steps->recalled = recalled;
    }
    (void) pthread_mutex_unlock(&io->lock);
}

/* ---- a container that earlier runs read ---------------------------------------------------- */

static esdm_dataset *
dataset_at(const esdm_container *container, const char *path)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash != NULL ? slash + 1 : path;
    for (size_t i = 0; i < container->datasets.count; i++) {
        esdm_dataset *dataset = container->datasets.items[i];
        if (strcmp(dataset->name, name) != 0)
            continue;
        char *own = esdm__dataset_path(dataset);
        bool same = own != NULL && strcmp(own, path) == 0;
        free(own);
        if (same)
            return dataset;
    }
    return NULL;
}

static void
begin_with_io(esdm_dataset *dataset, esdm__dataset_io *io, uint64_t count)
{
    uint64_t began = now_ns();
    if (esdm__dataset_load_directory(dataset, io, NULL) != ESDM_OK)
        return;
    struct esdm__steps *steps = steps_of(dataset, io);
    if (steps == NULL || steps->use == NULL)
        return;
    uint64_t turn = 0;
    esdm_dataspace next;
    while (turn < count && recall(dataset, io, steps->use, turn + 1, &next)) {
        const esdm__asker asker = {
            .owner = io, .turn = turn + 1, .account = esdm__earlier_account(steps->use)};
        if (!ask_for_space(dataset, io, &next, &asker))
            break;
        turn++;
    }
    (void) pthread_mutex_lock(&io->lock);
    if (steps->turn == 0) {
        steps->asked = turn;
        steps->recalled = turn;
    }
    (void) pthread_mutex_unlock(&io->lock);
    esdm__earlier_cost(steps->use, now_ns() - began);
}

static void
begin_dataset(esdm_dataset *dataset, uint64_t count)
{
    esdm__dataset_io *io = NULL;
    if (esdm__dataset_io_get(dataset, &io, NULL) != ESDM_OK)
        return;
    begin_with_io(dataset, io, count);
    esdm__dataset_io_put(dataset);
}

void
esdm__read_as_before(esdm_container *container)
{
    esdm__earlier *earlier = container->session->earlier;
    const char *path = NULL;
    const esdm__use *use;
    if (earlier == NULL || container->provider != NULL || esdm__io_of(container)->comm != NULL)
        return;
    for (size_t i = 0; (use = esdm__earlier_expected(earlier, container->name, i, &path)) != NULL;
         i++) {
        esdm_dataset *dataset = dataset_at(container, path);
        if (dataset != NULL && dataset->rank > 0)
            begin_dataset(dataset, esdm__earlier_at_once(earlier, use));
    }
}
