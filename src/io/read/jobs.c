/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/jobs.h"

#include <stdlib.h>
#include <string.h>

#include "io/read/locate.h"
#include "layout/places.h"

#define RUN_BYTES     (UINT64_C(1) << 20)
#define RUN_GAP_BYTES (UINT64_C(64) << 10) /* where a site states none ("sieve") */
#define INLINE_RUN    1024u

/* The target that a piece will most likely be asked of; NULL: none, or one that is not there any
 * more. */
static esdm__target *
target_of(esdm_session *session, const esdm__fragment *fragment)
{
    esdm__pack_place place;
    const char *places = fragment->pack != NULL ? fragment->pack->target : "";
    return esdm__places_next(&places, &place) ? esdm__session_target(session, place.target) : NULL;
}

/* The largest hole that one request spans: what is stated, else what the target's requests cost. */
static uint64_t
hole_bytes(esdm_session *session, const esdm__fragment *fragment)
{
    const esdm__site_engine *engine = &session->site->engine;
    const esdm__target *target = engine->sieve_stated ? NULL : target_of(session, fragment);
    uint64_t bytes = target != NULL ? target->read_bytes : 0;
    uint64_t learned = target != NULL ? atomic_load(&target->hole_bytes) : 0;
    bytes = bytes > learned ? bytes : learned;
    bytes = bytes > RUN_GAP_BYTES ? bytes : RUN_GAP_BYTES;
    return engine->sieve_stated ? engine->sieve_bytes : bytes;
}

/* Whether `next` can join a job that spans [begin, end) of a pack. */
static bool
joins(esdm_session *session, const esdm__fragment *last, const esdm__fragment *next, uint64_t begin,
      size_t count)
{
    if ((last->pack == NULL) != (next->pack == NULL) || esdm__kind_is_elsewhere(last->kind) ||
        esdm__kind_is_elsewhere(next->kind))
        return false;
    if (last->pack == NULL)
        return count < INLINE_RUN;
    uint64_t end = last->position + last->stored_bytes;
    if (strcmp(last->pack->pack, next->pack->pack) != 0 ||
        strcmp(last->pack->target, next->pack->target) != 0 ||
        last->stored_bytes > ESDM__SMALL_BLOB_BYTES ||
        next->stored_bytes > ESDM__SMALL_BLOB_BYTES || next->position < end)
        return false;
    uint64_t hole = next->position > end ? hole_bytes(session, last) : 0;
    uint64_t most = hole > RUN_BYTES / 2 ? 2 * hole : RUN_BYTES;
    return next->position - end <= hole && next->position + next->stored_bytes - begin <= most;
}

/* Strided reads leave whole fragments out. */
static bool
is_left_out(const esdm__transfer *t, const esdm__piece *piece)
{
    esdm__location where;
    return t->space->has_stride && !esdm__locate(t->space, t->memory.stride, piece, &where);
}

size_t
esdm__read_jobs_make(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                     const size_t *together, esdm__read_job *jobs)
{
    esdm_session *session = t->dataset->group->container->session;
    size_t njobs = 0;
    for (size_t i = 0; together != NULL && i < npieces; i += *together++)
        if (*together > 0)
            jobs[njobs++] = (esdm__read_job){.first = i, .count = *together};
    if (together != NULL)
        return njobs;
    uint64_t begin = 0;
    for (size_t i = 0; i < npieces; i++) {
        const esdm__fragment *fragment = pieces[i].fragment;
        esdm__read_job *job = njobs > 0 ? &jobs[njobs - 1] : NULL;
        if (is_left_out(t, &pieces[i]))
            continue;
        if (job != NULL && joins(session, pieces[job->first + job->count - 1].fragment, fragment,
                                 begin, job->count)) {
            job->count = i + 1 - job->first; /* with what is left out between */
            continue;
        }
        jobs[njobs++] = (esdm__read_job){.first = i, .count = 1};
        begin = fragment->position;
    }
    return njobs;
}

/* ---- targets that nobody has measured ------------------------------------------------------- */

#define TRIED_MOST (UINT64_C(1) << 20) /* a hole that is read to see what that costs */
#define ROUNDS     16u                 /* fewer are over before anything is learned */
#define WORTH      2                   /* times cheaper a hole has to be than a request */
#define SEEN       2                   /* times larger than the one that was read, at most */

static bool
is_small(const esdm__fragment *f)
{
    return f->pack != NULL && !esdm__kind_is_elsewhere(f->kind) &&
           f->stored_bytes <= ESDM__SMALL_BLOB_BYTES;
}

esdm__target *
esdm__read_jobs_ask(const esdm__transfer *t, const esdm__piece *pieces, esdm__read_job *jobs,
                    size_t njobs, uint64_t *ret_hole)
{
    esdm_session *session = t->dataset->group->container->session;
    size_t threads = esdm__pool_threads(session->pool);
    if (session->ahead != NULL || njobs < ROUNDS * threads)
        return NULL;
    esdm__target *target = target_of(session, pieces[jobs[0].first].fragment);
    if (target == NULL || target->measured || atomic_load(&target->hole_bytes) != 0)
        return NULL;
    for (size_t i = 0; i <= 3 * threads; i++) {
        const esdm__fragment *f = pieces[jobs[i].first].fragment;
        if (!is_small(f) || target_of(session, f) != target)
            return NULL;
    }
    esdm__read_job *one = &jobs[2 * threads];
    const esdm__fragment *last = pieces[one->first + one->count - 1].fragment;
    const esdm__fragment *next = pieces[one[1].first].fragment;
    uint64_t end = last->position + last->stored_bytes;
    if (strcmp(last->pack->pack, next->pack->pack) != 0 || next->position <= end + RUN_GAP_BYTES ||
        next->position - end > TRIED_MOST)
        return NULL;
    *ret_hole = next->position - end;
    one[1].count = one[1].first + one[1].count - one->first;
    one[1].first = one->first;
    return target;
}

void
esdm__read_jobs_learn(const esdm_session *session, esdm__target *target, uint64_t hole,
                      uint64_t round_ns, uint64_t spanned_ns)
{
    uint64_t bytes = 1;
    if (spanned_ns > 0) {
        double request = (double) round_ns / esdm__pool_threads(session->pool);
        double more = spanned_ns > round_ns ? (double) (spanned_ns - round_ns) : 0;
        double seen = (double) hole * SEEN; /* what was tried tells little of much larger ones */
        double most = more > 0 ? (double) hole * request / WORTH / more : seen;
        bytes = (uint64_t) (most < seen ? most : seen) + 1;
    }
    atomic_store(&target->hole_bytes, bytes);
}

static int
by_due(const void *a, const void *b)
{
    const esdm__read_job *x = a;
    const esdm__read_job *y = b;
    if (x->due != y->due)
        return x->due < y->due ? -1 : 1;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* Number of the target that a job will most likely ask; ntargets: none, or one that is not there
 * any more. */
static size_t
target_of_job(esdm_session *session, const esdm__piece *pieces, const esdm__read_job *job)
{
    const esdm__target *target = target_of(session, pieces[job->first].fragment);
    return target != NULL ? (size_t) (target - session->targets) : session->ntargets;
}

/* Stored bytes that a piece asks for, about: it may be a part of a fragment. */
static double
bytes_of(const esdm__piece *piece)
{
    const esdm__box *whole = &piece->fragment->box;
    return (double) piece->fragment->stored_bytes * (double) esdm__box_elements(&piece->part) /
           (double) esdm__box_elements(whole);
}

void
esdm__read_jobs_spread(esdm_session *session, const esdm__piece *pieces, esdm__read_job *jobs,
                       size_t njobs)
{
    size_t ntargets = session->ntargets;
    double *sums = calloc(2 * (ntargets + 1), sizeof *sums); /* of all, of those before */
    if (sums == NULL)
        return;
    double *before = sums + ntargets + 1;
    for (size_t i = 0; i < njobs; i++) {
        double bytes = 0;
        for (size_t k = 0; k < jobs[i].count; k++)
            bytes += bytes_of(&pieces[jobs[i].first + k]);
        jobs[i].due = bytes;
        sums[target_of_job(session, pieces, &jobs[i])] += bytes;
    }
    for (size_t i = 0; i < njobs; i++) {
        size_t t = target_of_job(session, pieces, &jobs[i]);
        double bytes = jobs[i].due;
        jobs[i].due = sums[t] > 0 ? before[t] / sums[t] : 0;
        before[t] += bytes;
    }
    free(sums);
    qsort(jobs, njobs, sizeof *jobs, by_due);
}
