/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Each part is a read of its own, so that what counts for reads counts here. Parts begin in their
 * order, and none is further ahead of the first one that is not done than the window is wide: that
 * one never waits, so all go on. */

#include "io/read/stream.h"

#include <pthread.h>
#include <stdlib.h>

#include "base/error.h"
#include "base/scratch.h"
#include "io/read/read.h"
#include "io/session/pool.h"
#include "layout/cuts.h"

#define NEAR_BYTES  (UINT64_C(1) << 20)
#define FAR_BYTES   (UINT64_C(16) << 20)
#define LEAST_BYTES (UINT64_C(64) << 10)
/* Parts of a thread that are in memory at once: one that waits for its turn, and one at work. */
#define NEAR_WINDOW 2u
#define FAR_WINDOW  8u
/* Parts that are planned together. */
#define PARTS_MOST UINT64_C(16384)

/* A part that is done, and waits for those before it. */
typedef struct outcome {
    void *result;
    uint64_t out_of_range;
    bool done;
} outcome;

typedef struct streamer {
    esdm_dataset *dataset;
    esdm_session *session;
    const esdm_stream *what;
    esdm_type type;
    size_t element_bytes;
    uint64_t most;   /* elements of a part */
    uint64_t before; /* parts of boxes before this one */
    size_t window;
    const esdm__cuts *cuts;
    outcome *outcomes;    /* one for each part of this box */
    pthread_mutex_t lock; /* guards outcomes and what follows; none is held in calls of functions */
    pthread_cond_t moved;
    size_t next;   /* the first part that is not reduced */
    bool reducing; /* a thread is at it */
    bool ended;
} streamer;

/* ---- the caller's functions ------------------------------------------------------------------ */

/* What a function says is told as it is; one that says nothing is helped out. */
static esdm_status
told(esdm_status status, const char *which, esdm_error *err)
{
    if (status == ESDM_OK)
        return ESDM_OK;
    if (err->message[0] != '\0') {
        err->status = status;
        return status;
    }
    return esdm__error_set(err, status,
                           status == ESDM_ECANCELED ? "the function that %s has ended the read"
                                                    : "the function that %s has failed",
                           which);
}

static esdm_stream_part
part_at(const streamer *s, size_t i, const esdm__box *box, const void *values)
{
    return (esdm_stream_part){.index = s->before + i,
                              .rank = box->rank,
                              .offset = box->lo,
                              .size = box->n,
                              .elements = esdm__box_elements(box),
                              .values = values};
}

/* ---- the order of parts ---------------------------------------------------------------------- */

static void
end(streamer *s)
{
    (void) pthread_mutex_lock(&s->lock);
    s->ended = true;
    (void) pthread_cond_broadcast(&s->moved);
    (void) pthread_mutex_unlock(&s->lock);
}

/* Until part i is in the window. false: the read has ended. */
static bool
wait_for_turn(streamer *s, size_t i)
{
    (void) pthread_mutex_lock(&s->lock);
    while (!s->ended && i - s->next >= s->window)
        (void) pthread_cond_wait(&s->moved, &s->lock);
    bool goes_on = !s->ended;
    (void) pthread_mutex_unlock(&s->lock);
    return goes_on;
}

static esdm_status
reduce_one(streamer *s, size_t i, const outcome *done, esdm_error *err)
{
    esdm__box box;
    if (s->what->reduce == NULL)
        return ESDM_OK;
    esdm__cuts_at(s->cuts, i, &box);
    esdm_stream_part part = part_at(s, i, &box, NULL);
    part.out_of_range = done->out_of_range;
    return told(s->what->reduce(&part, done->result, s->what->user, err), "reduces parts", err);
}

/* Notes what became of a part, and reduces those whose turn it is, unless another thread does. */
static esdm_status
deliver(streamer *s, size_t i, const outcome *done, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    (void) pthread_mutex_lock(&s->lock);
    s->outcomes[i] = *done;
    if (s->reducing) {
        (void) pthread_mutex_unlock(&s->lock);
        return ESDM_OK;
    }
    s->reducing = true;
    while (status == ESDM_OK && !s->ended && s->next < s->cuts->count &&
           s->outcomes[s->next].done) {
        size_t at = s->next;
        outcome taken = s->outcomes[at];
        s->outcomes[at].done = false;
        (void) pthread_mutex_unlock(&s->lock);
        status = reduce_one(s, at, &taken, err);
        (void) pthread_mutex_lock(&s->lock);
        s->next++;
        s->ended = s->ended || status != ESDM_OK; /* before another thread may go on reducing */
        (void) pthread_cond_broadcast(&s->moved);
    }
    s->reducing = false;
    (void) pthread_mutex_unlock(&s->lock);
    return status;
}

/* ---- parts ----------------------------------------------------------------------------------- */

static esdm_status
work_on(streamer *s, size_t i, void *buffer, outcome *ret, esdm_error *err)
{
    esdm__box box;
    esdm_dataspace space;
    esdm__cuts_at(s->cuts, i, &box);
    esdm_stream_part part = part_at(s, i, &box, buffer);
    esdm_status status = esdm_dataspace_init(&space, box.rank, box.lo, box.n, err);
    if (status == ESDM_OK)
        status = esdm__io_read(s->dataset, &space, s->type, buffer, &part.out_of_range, err);
    if (status != ESDM_OK)
        return status;
    ret->done = true;
    ret->out_of_range = part.out_of_range;
    return told(s->what->work(&part, s->what->user, &ret->result, err), "works on parts", err);
}

static esdm_status
run_part(void *context, size_t i, esdm_error *err)
{
    streamer *s = context;
    esdm__box box;
    outcome done = {0};
    esdm_error own = {0};
    if (!wait_for_turn(s, i))
        return ESDM_OK; /* another part has the failure */
    esdm__cuts_at(s->cuts, i, &box);
    size_t bytes = (size_t) esdm__box_elements(&box) * s->element_bytes;
    void *buffer = esdm__scratch_new(bytes);
    esdm_status status = buffer != NULL ? work_on(s, i, buffer, &done, &own)
                                        : esdm__error_nomem(&own, bytes, "a part of a read");
    esdm__scratch_free(buffer);
    if (status == ESDM_OK)
        status = deliver(s, i, &done, &own);
    else if (done.result != NULL && s->what->discard != NULL)
        s->what->discard(done.result, s->what->user);
    if (status == ESDM_OK)
        return ESDM_OK;
    end(s);
    if (err != NULL)
        *err = own;
    return status;
}

/* ---- boxes ----------------------------------------------------------------------------------- */

static esdm_status
run_cuts(streamer *s, const esdm__cuts *cuts, esdm_error *err)
{
    s->cuts = cuts;
    s->next = 0;
    s->outcomes = calloc(cuts->count, sizeof *s->outcomes);
    if (s->outcomes == NULL)
        return esdm__error_nomem(err, cuts->count * sizeof *s->outcomes, "the parts of a read");
    esdm_status status = esdm__pool_run(s->session->pool, cuts->count, run_part, s, err);
    for (size_t i = 0; i < cuts->count; i++) {
        if (s->outcomes[i].done && s->outcomes[i].result != NULL && s->what->discard != NULL)
            s->what->discard(s->outcomes[i].result, s->what->user);
    }
    free(s->outcomes);
    s->before += cuts->count;
    return status;
}

/* Where fragments lie. A virtual container has none of its own: it is cut anywhere. */
static esdm_status
plan_box(const streamer *s, const esdm__box *box, esdm__plan *ret_plan, bool *ret_too_many,
         esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    if (s->dataset->group->container->provider != NULL)
        return ESDM_OK;
    esdm_status status = esdm__dataset_io_get(s->dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__dataset_load_directory(s->dataset, io, err);
    if (status == ESDM_OK)
        status = esdm__read_plan(s->dataset, io, box, ret_plan, ret_too_many, err);
    esdm__dataset_io_put(s->dataset);
    return status;
}

static esdm_status
stream_box(streamer *s, const esdm__box *box, esdm_error *err)
{
    esdm__plan plan = {0};
    esdm__cuts cuts = {0};
    bool too_many = esdm__box_elements(box) / s->most > PARTS_MOST;
    uint32_t axis = 0;
    while (axis < box->rank && box->n[axis] == 1)
        axis++;
    esdm_status status = too_many ? ESDM_OK : plan_box(s, box, &plan, &too_many, err);
    if (status == ESDM_OK && too_many && axis < box->rank) {
        esdm__box half = *box;
        half.n[axis] /= 2;
        status = stream_box(s, &half, err);
        half.lo[axis] += half.n[axis];
        half.n[axis] = box->n[axis] - half.n[axis];
        return status == ESDM_OK ? stream_box(s, &half, err) : status;
    }
    if (status == ESDM_OK)
        status = esdm__cuts_make(box, plan.pieces, plan.npieces, s->most, &cuts, err);
    esdm__plan_clear(&plan);
    if (status == ESDM_OK && cuts.count > 0)
        status = run_cuts(s, &cuts, err);
    esdm__cuts_clear(&cuts);
    return status;
}

/* ---- the call -------------------------------------------------------------------------------- */

uint64_t
esdm__part_bytes(const esdm_session *session, const esdm__dataset_io *io, uint64_t most)
{
    uint64_t bytes = esdm__session_is_far(session) ? FAR_BYTES : NEAR_BYTES;
    bytes = bytes < most ? bytes : most;
    bytes = bytes > LEAST_BYTES ? bytes : LEAST_BYTES;
    return bytes > io->block_bytes ? bytes : io->block_bytes;
}

static uint64_t
choose_bytes(const streamer *s, const esdm__dataset_io *io)
{
    return s->what->part_bytes > 0
               ? s->what->part_bytes
               : esdm__part_bytes(s->session, io,
                                  s->session->site->engine.memory_bytes / (4 * s->window));
}

static esdm_status
prepare_of(streamer *s, const esdm__dataset_io *io, esdm_error *err)
{
    if (esdm__elements_vary(&io->elements))
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "elements with texts or arrays of their own are read by "
                               "esdm_read(), not part by part");
    bool far = esdm__session_is_far(s->session);
    s->element_bytes = esdm_type_size(s->type);
    if (s->element_bytes == 0)
        s->element_bytes = esdm__typeref_bytes(io->elements.outer);
    s->window = (size_t) esdm__pool_threads(s->session->pool) * (far ? FAR_WINDOW : NEAR_WINDOW);
    s->most = choose_bytes(s, io) / s->element_bytes;
    s->most = s->most > 0 ? s->most : 1;
    return ESDM_OK;
}

static esdm_status
prepare(streamer *s, esdm_error *err)
{
    esdm__dataset_io *io = NULL;
    esdm_status status = esdm__dataset_io_get(s->dataset, &io, err);
    if (status != ESDM_OK)
        return status;
    status = prepare_of(s, io, err);
    esdm__dataset_io_put(s->dataset);
    return status;
}

esdm_status
esdm__io_read_stream(esdm_dataset *dataset, const esdm__box *box, const esdm_stream *stream,
                     esdm_error *err)
{
    streamer s = {.dataset = dataset,
                  .session = dataset->group->container->session,
                  .what = stream,
                  .type = stream->type != ESDM_TYPE_NONE ? stream->type : dataset->type,
                  .lock = PTHREAD_MUTEX_INITIALIZER,
                  .moved = PTHREAD_COND_INITIALIZER};
    esdm_error why = {0};
    esdm_status status = prepare(&s, &why);
    if (status != ESDM_OK)
        status = esdm__dataset_prefix(dataset, status, &why);
    else if (!esdm__box_is_empty(box))
        status = stream_box(&s, box, &why);
    (void) pthread_mutex_destroy(&s.lock);
    (void) pthread_cond_destroy(&s.moved);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}
