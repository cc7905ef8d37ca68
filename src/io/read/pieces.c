/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Reads the pieces of a plan in parallel: large ones alone, small neighbours in a pack together. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/encode/strings.h"
#include "io/read/ahead.h"
#include "io/read/elsewhere.h"
#include "io/read/fetch.h"
#include "io/read/jobs.h"
#include "io/read/locate.h"
#include "io/read/read.h"
#include "layout/places.h"
#include "model/copy.h"

/* Below, waking the pool may cost more than it saves. */
#define POOL_BYTES (UINT64_C(64) << 10)
/* What is read through memory of its own to spare calls, at most. */
#define BY_ONE_CALL_BYTES (UINT64_C(64) << 20)

typedef struct reader {
    const esdm__transfer *transfer; /* the next two are from it */
    esdm_session *session;
    const esdm__elements *elements;
    const esdm__piece *pieces;
    const esdm__read_job *jobs;
    bool together; /* the pieces of a job are read one by one */
    atomic_uint_fast64_t out_of_range;
    size_t njobs;
    atomic_size_t begun; /* jobs begin in their order */
    atomic_size_t asked; /* bytes of those before this one were asked for, if it was time */
    atomic_uint_fast64_t shortest_ns; /* job of those that are timed */
} reader;

/* ---- one piece ----------------------------------------------------------------------------- */

/* Bytes of an element in the caller's memory. */
static int64_t
bytes_there(const reader *r)
{
    return (int64_t) esdm__elements_bytes(r->elements, r->transfer->memory.form);
}

/* First element in the caller's memory. */
static uint8_t *
target_of(const reader *r, const esdm__location *at)
{
    return (uint8_t *) r->transfer->memory.data + at->target_first * bytes_there(r);
}

/* Copies elements in the engine's form to where a piece goes. */
static void
copy_out(reader *r, const esdm__location *g, const void *source, const int64_t *source_stride)
{
    const esdm__memory from = {r->elements->type, (void *) (uintptr_t) source, source_stride};
    const esdm__memory to = {r->transfer->memory.form, target_of(r, g), g->target_stride};
    uint64_t out_of_range = 0;
    esdm__elements_copy(r->elements, g->rank, g->count, &from, &to, &out_of_range);
    if (out_of_range > 0)
        atomic_fetch_add(&r->out_of_range, out_of_range);
}

/* Gives the caller's element the stored one. What it was is freed: a fill value, or what was there
 * before fragments moved and the read began again. */
static esdm_status
deliver_one(const reader *r, const esdm__strings_view *stored, uint64_t from, uint8_t *to,
            esdm_error *err)
{
    const esdm__elements *e = r->elements;
    esdm__cursor cursor;
    if (e->type == ESDM_TYPE_STRING) {
        char *before;
        char *text = esdm__strings_dup(stored, from);
        if (text == NULL)
            return esdm__error_nomem(err, 0, "a text");
        memcpy(&before, to, sizeof before);
        if (before != esdm__text_null)
            free(before);
        memcpy(to, &text, sizeof text);
        return ESDM_OK;
    }
    esdm__values_clear(e->outer, 1, to);
    esdm__cursor_init(&cursor, stored->raw + stored->offsets[from],
                      (size_t) (stored->offsets[from + 1] - stored->offsets[from]));
    esdm_status status = esdm__values_decode(e->outer, 1, &cursor, to, err);
    if (status != ESDM_OK)
        return status;
    if (esdm__cursor_left(&cursor) > 0)
        return esdm__error_set(err, ESDM_ECORRUPT, "an element has %zu bytes too many",
                               esdm__cursor_left(&cursor));
    return ESDM_OK;
}

static esdm_status
deliver_varying(const reader *r, const esdm__location *g, const esdm__strings_view *stored,
                esdm_error *err)
{
    uint64_t index[ESDM_MAX_RANK] = {0};
    int64_t bytes = bytes_there(r);
    for (;;) {
        uint64_t from = g->source_first;
        int64_t to = 0;
        for (uint32_t i = 0; i < g->rank; i++) {
            from += index[i] * (uint64_t) g->source_stride[i];
            to += (int64_t) index[i] * g->target_stride[i];
        }
        esdm_status status = deliver_one(r, stored, from, target_of(r, g) + to * bytes, err);
        if (status != ESDM_OK)
            return status;
        uint32_t axis = g->rank;
        while (axis > 0 && ++index[axis - 1] == g->count[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return ESDM_OK;
    }
}

/* Copies the selected elements out of raw bytes; raw[0] is raw byte `raw_from` of the fragment. */
static esdm_status
deliver(reader *r, const esdm__piece *piece, const esdm__location *g, const uint8_t *raw,
        uint64_t raw_from, esdm_error *err)
{
    const esdm__elements *e = r->elements;
    if (esdm__elements_vary(e)) {
        esdm__strings_view stored;
        esdm_status status =
            esdm__strings_open(raw, (size_t) piece->fragment->raw_bytes,
                               esdm__fragment_elements(piece->fragment), &stored, err);
        if (status != ESDM_OK)
            return status;
        status = deliver_varying(r, g, &stored, err);
        esdm__strings_close(&stored);
        return status;
    }
    copy_out(r, g, raw + (g->source_first * e->bytes - raw_from), g->source_stride);
    return ESDM_OK;
}

/* ---- wanted rows -------------------------------------------------------------------------- */

/* Walks the selected elements of a piece as dense rows of the fragment. */
typedef struct row_walk {
    const esdm__location *g;
    uint64_t element_bytes;
    uint64_t row_elements; /* extent of a row in the fragment, gaps included */
    uint32_t outer;        /* axes that are walked */
    uint64_t index[ESDM_MAX_RANK];
    bool done;
} row_walk;

static bool
next_row(void *user, uint64_t *ret_from, uint64_t *ret_to)
{
    row_walk *walk = user;
    if (walk->done) {
        walk->done = false; /* all indices are 0 again */
        return false;
    }
    uint64_t at = walk->g->source_first;
    for (uint32_t i = 0; i < walk->outer; i++)
        at += walk->index[i] * (uint64_t) walk->g->source_stride[i];
    *ret_from = at * walk->element_bytes;
    *ret_to = (at + walk->row_elements) * walk->element_bytes;
    uint32_t axis = walk->outer;
    while (axis > 0 && ++walk->index[axis - 1] == walk->g->count[axis - 1])
        walk->index[--axis] = 0;
    walk->done = axis == 0;
    return true;
}

/* Rows are as long as the fastest axes reach while steps stay below a block's worth of bytes. */
static void
walk_init(row_walk *walk, const esdm__location *g, uint64_t element_bytes)
{
    *walk = (row_walk){.g = g, .element_bytes = element_bytes, .row_elements = 1, .outer = g->rank};
    while (walk->outer > 0) {
        uint32_t axis = walk->outer - 1;
        uint64_t step = (uint64_t) g->source_stride[axis];
        if (g->count[axis] > 1 && (step - walk->row_elements) * element_bytes > 2048)
            break;
        walk->row_elements += (g->count[axis] - 1) * step;
        walk->outer = axis;
    }
}

static uint64_t
last_element(const esdm__location *g)
{
    uint64_t at = g->source_first;
    for (uint32_t i = 0; i < g->rank; i++)
        at += (g->count[i] - 1) * (uint64_t) g->source_stride[i];
    return at;
}

/* ---- tasks -------------------------------------------------------------------------------- */

static esdm_status
in_fragment(const esdm__fragment *fragment, esdm_status status, esdm_error *err)
{
    char box[160];
    if (status == ESDM_OK || status == ESDM_ENOMEM)
        return status;
    (void) esdm__box_print(&fragment->box, box, sizeof box);
    if (fragment->pack == NULL) {
        char source[400];
        esdm__source_describe(fragment, source, sizeof source);
        return esdm__error_prefix(err, status, "fragment %s (%s)", box, source);
    }
    return esdm__error_prefix(err, status, "fragment %s in pack '%s' at %" PRIu64 " on target '%s'",
                              box, fragment->pack->pack, fragment->position,
                              fragment->pack->target);
}

static bool
can_go_direct(const reader *r, const esdm__location *g)
{
    return r->transfer->memory.form == r->elements->type && !esdm__elements_vary(r->elements) &&
           esdm__strides_are_dense(g->rank, g->count, g->source_stride) &&
           esdm__strides_are_dense(g->rank, g->count, g->target_stride);
}

/* @param ret nothing when the bytes are in the caller's memory. */
static esdm_status
fetch_from(reader *r, const esdm__fragment *fragment, esdm__target *target, const esdm__location *g,
           esdm__fetched *ret, esdm_error *err)
{
    uint64_t element = r->elements->bytes;
    uint64_t from = g->source_first * element;
    uint64_t to = (last_element(g) + 1) * element;
    const esdm__coarse *coarse = &r->transfer->dataset->stated->coarse;
    /* Where each call waits for a network the parts of edge blocks must not take one each. */
    bool by_one_call =
        target->read_bytes > 0 && to - from < fragment->raw_bytes && to - from <= BY_ONE_CALL_BYTES;
    if (can_go_direct(r, g) && !by_one_call)
        return esdm__fetch_direct(r->session, fragment, target, coarse, from, to, target_of(r, g),
                                  err);

    row_walk walk;
    walk_init(&walk, g, element);
    esdm__want want = {
        .from = from, .to = to, .next_row = next_row, .user = &walk, .coarse = coarse};
    if (esdm__elements_vary(r->elements))
        want = (esdm__want){.from = 0, .to = fragment->raw_bytes};
    return esdm__fetch(r->session, fragment, target, &want, ret, err);
}

/* From the first copy that is sound; the failure of the first one is told when none is. */
static esdm_status
read_large(reader *r, const esdm__piece *piece, const esdm__location *g, esdm_error *err)
{
    esdm__sources sources;
    esdm_error first;
    esdm_error error;
    esdm__fetched fetched = {0};
    first.status = ESDM_OK; /* zeroing all of both takes as long as much of the rest here */
    esdm_status status = esdm__sources_of(r->session, piece->fragment->pack, &sources, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0;; i++) {
        esdm__again again = {0};
        error.os_errno = 0;
        error.message[0] = '\0';
        do {
            status = fetch_from(r, piece->fragment, sources.targets[i], g, &fetched, &error);
        } while (esdm__sources_ask_again(r->session, &sources, i, piece->fragment->pack->pack,
                                         status, &again));
        esdm__sources_note(r->session, &sources, i, status);
        if (status != ESDM_OK && first.status == ESDM_OK) {
            first = error;
            first.status = status;
        }
        if (!esdm__sources_go_on(&sources, i, status))
            break;
    }
    if (status != ESDM_OK) {
        if (err != NULL)
            *err = first;
        return sources.count == 1
                   ? first.status
                   : esdm__error_prefix(err, first.status, "none of its %zu copies can be read",
                                        sources.count);
    }
    if (fetched.raw != NULL)
        status = deliver(r, piece, g, fetched.raw, fetched.from, err);
    esdm__fetched_clear(&fetched);
    return status;
}

/* The record comes from storage: its length must fit its box before elements are looked for. */
static esdm_status
check_length(const reader *r, const esdm__fragment *fragment, esdm_error *err)
{
    uint64_t elements = esdm__fragment_elements(fragment);
    uint64_t size = r->elements->bytes;
    bool vary = esdm__elements_vary(r->elements);
    bool fits = vary ? elements <= fragment->raw_bytes / sizeof(uint32_t)
                     : elements == fragment->raw_bytes / size && fragment->raw_bytes % size == 0;
    if (fragment->kind == ESDM__KIND_CONSTANT)
        fits = fits && !vary && fragment->stored_bytes == size;
    else if (fragment->kind != ESDM__KIND_STORED)
        fits = true;                   /* nothing is stored here */
    if (fits && elements < UINT64_MAX) /* else saturated */
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECORRUPT, "%" PRIu64 " bytes do not fit its box",
                           fragment->raw_bytes);
}

/* ---- what is not stored here --------------------------------------------------------------- */

/* All elements are the one that the record has. */
static void
deliver_constant(reader *r, const esdm__fragment *fragment, const esdm__location *g)
{
    static const int64_t same[ESDM_MAX_RANK];
    copy_out(r, g, fragment->inline_data, same);
}

static void
request_init(const reader *r, const esdm__piece *piece, const esdm__location *g,
             esdm__source_request *ret)
{
    const esdm__fragment *fragment = piece->fragment;
    int64_t dense[ESDM_MAX_RANK];
    uint64_t left = g->source_first;
    *ret = (esdm__source_request){
        .dataset = r->transfer->dataset, .fragment = fragment, .elements = r->elements};
    esdm__dense_strides(g->rank, fragment->box.n, dense);
    for (uint32_t d = 0; d < g->rank; d++) {
        ret->lo[d] = fragment->box.lo[d] + left / (uint64_t) dense[d];
        left %= (uint64_t) dense[d];
        ret->count[d] = g->count[d];
        ret->step[d] = g->count[d] > 1 ? (uint64_t) (g->source_stride[d] / dense[d]) : 1;
    }
}

/* Gives the caller the texts that were read; what was there is freed. */
static void
hand_over_texts(const reader *r, const esdm__location *g, char **texts)
{
    uint64_t index[ESDM_MAX_RANK] = {0};
    for (;; texts++) {
        int64_t to = 0;
        for (uint32_t i = 0; i < g->rank; i++)
            to += (int64_t) index[i] * g->target_stride[i];
        char **target = (char **) (void *) target_of(r, g) + to;
        if (*target != esdm__text_null)
            free(*target);
        *target = *texts != NULL ? *texts : (char *) (uintptr_t) esdm__text_null;
        *texts = NULL;
        uint32_t axis = g->rank;
        while (axis > 0 && ++index[axis - 1] == g->count[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return;
    }
}

static esdm_status
read_source(reader *r, const esdm__piece *piece, const esdm__location *g, esdm_error *err)
{
    const esdm__elements *e = r->elements;
    esdm__source_request request;
    bool texts = e->type == ESDM_TYPE_STRING;
    request_init(r, piece, g, &request);
    if (e->type == ESDM__TYPE_BLOB)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "values of types with texts or arrays inside cannot be read from "
                               "elsewhere; copy them");
    if (!texts && r->transfer->memory.form == e->type) {
        request.target = target_of(r, g);
        memcpy(request.target_stride, g->target_stride, sizeof request.target_stride);
        return esdm__source_read(&request, err);
    }
    uint64_t n = 1;
    for (uint32_t d = 0; d < g->rank; d++)
        n *= g->count[d];
    request.target = calloc((size_t) n, e->bytes);
    if (request.target == NULL)
        return esdm__error_nomem(err, (size_t) n * e->bytes, "a fragment");
    esdm__dense_strides(g->rank, g->count, request.target_stride);
    esdm_status status = esdm__source_read(&request, err);
    if (status == ESDM_OK && texts)
        hand_over_texts(r, g, request.target);
    else if (status == ESDM_OK)
        copy_out(r, g, request.target, request.target_stride);
    for (uint64_t i = 0; texts && i < n; i++)
        free(((char **) request.target)[i]);
    free(request.target);
    return status;
}

static esdm_status
read_piece(reader *r, const esdm__piece *piece, esdm_error *err)
{
    esdm__location g;
    const esdm__fragment *fragment = piece->fragment;
    esdm_status status = check_length(r, fragment, err);
    if (status != ESDM_OK)
        return in_fragment(fragment, status, err);
    if (!esdm__locate(r->transfer->space, r->transfer->memory.stride, piece, &g))
        return ESDM_OK;
    if (fragment->pack != NULL)
        status = read_large(r, piece, &g, err);
    else if (fragment->kind == ESDM__KIND_STORED)
        status = deliver(r, piece, &g, fragment->inline_data, 0, err);
    else if (fragment->kind == ESDM__KIND_CONSTANT)
        deliver_constant(r, fragment, &g);
    else
        status = read_source(r, piece, &g, err);
    return in_fragment(fragment, status, err);
}

static esdm_status
deliver_blob(reader *r, const esdm__piece *piece, const uint8_t *blob, esdm_error *err)
{
    esdm__location g;
    esdm_status status = check_length(r, piece->fragment, err);
    if (status != ESDM_OK)
        return in_fragment(piece->fragment, status, err);
    if (!esdm__locate(r->transfer->space, r->transfer->memory.stride, piece, &g))
        return ESDM_OK;
    esdm__fetched fetched = {0};
    status = esdm__fetch_decode(r->session, piece->fragment, blob, &fetched, err);
    if (status == ESDM_OK)
        status = deliver(r, piece, &g, fetched.raw, 0, err);
    esdm__fetched_clear(&fetched);
    return in_fragment(piece->fragment, status, err);
}

/* Small neighbours in one pack: one range request for all of them. */
static esdm_status
read_run(reader *r, const esdm__read_job *job, esdm_error *err)
{
    const esdm__fragment *first = r->pieces[job->first].fragment;
    const esdm__fragment *last = r->pieces[job->first + job->count - 1].fragment;
    uint64_t begin = first->position;
    uint64_t bytes = last->position + last->stored_bytes - begin;
    esdm__sources sources;
    esdm_status status = esdm__sources_of(r->session, first->pack, &sources, err);
    if (status != ESDM_OK)
        return in_fragment(first, status, err);
    uint8_t *data = malloc((size_t) bytes);
    if (data == NULL)
        return esdm__error_nomem(err, (size_t) bytes, "a range of fragments");
    esdm_range range = {begin, bytes, data};
    status = esdm__session_read(r->session, sources.targets[0], first->pack->pack, &range, 1, err);
    esdm__sources_note(r->session, &sources, 0, status);
    bool one_by_one = status != ESDM_OK && sources.count > 1;
    if (one_by_one)
        status = ESDM_OK;
    else if (status != ESDM_OK)
        status = in_fragment(first, status, err);
    for (size_t i = 0; i < job->count && status == ESDM_OK; i++) {
        const esdm__piece *piece = &r->pieces[job->first + i];
        if (!one_by_one)
            status = deliver_blob(r, piece, data + (piece->fragment->position - begin), err);
        if (one_by_one ||
            esdm__sources_ask_again(r->session, &sources, 0, first->pack->pack, status,
                                    &(esdm__again){0}) ||
            (status == ESDM_ECORRUPT && sources.count > 1))
            status = read_piece(r, piece, err);
    }
    free(data);
    return status;
}

/* Where jobs wait for a network their bytes are asked for ahead, of as many as memory allows. */
static void
ask_ahead(reader *r)
{
    uint64_t bytes = esdm__elements_vary(r->elements) ? 0 : r->elements->bytes;
    size_t i = atomic_load(&r->asked);
    while (i < r->njobs) {
        if (!atomic_compare_exchange_weak(&r->asked, &i, i + 1))
            continue;
        const esdm__read_job *job = &r->jobs[i];
        const esdm__asker asker = {.owner = r, .turn = i};
        if (i >= atomic_load(&r->begun) &&
            !esdm__ask_for_pieces(r->transfer->dataset, r->transfer->space, &r->pieces[job->first],
                                  r->together ? 1 : job->count, bytes, &asker))
            return; /* this one reads for itself */
        i = atomic_load(&r->asked);
    }
}

static esdm_status read_job(reader *r, const esdm__read_job *job, esdm_error *err);

static esdm_status
run_job(void *context, size_t i, esdm_error *err)
{
    reader *r = context;
    if (r->session->ahead == NULL || r->njobs == 1)
        return read_job(r, &r->jobs[i], err);
    size_t begun = atomic_load(&r->begun);
    while (begun <= i && !atomic_compare_exchange_weak(&r->begun, &begun, i + 1))
        continue;
    esdm_status status = read_job(r, &r->jobs[i], err);
    esdm__ahead_drop(r->session->ahead, r, i, i + 1);
    if (status == ESDM_OK)
        ask_ahead(r);
    return status;
}

static esdm_status
read_job(reader *r, const esdm__read_job *job, esdm_error *err)
{
    if (job->count > 1 && !r->together && r->pieces[job->first].fragment->pack != NULL)
        return read_run(r, job, err);
    for (size_t k = 0; k < job->count; k++) {
        esdm_status status = read_piece(r, &r->pieces[job->first + k], err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

static esdm_status
timed_job(void *context, size_t i, esdm_error *err)
{
    reader *r = context;
    uint64_t start = esdm__now_ns();
    esdm_status status = read_job(r, &r->jobs[i], err);
    uint64_t ns = esdm__now_ns() - start;
    uint64_t least = atomic_load(&r->shortest_ns);
    while (ns < least && !atomic_compare_exchange_weak(&r->shortest_ns, &least, ns))
        continue;
    return status;
}

/* One job for each thread. */
static esdm_status
timed_round(reader *r, const esdm__read_job *jobs, uint64_t *ret_ns, esdm_error *err)
{
    uint64_t start = esdm__now_ns();
    r->jobs = jobs;
    esdm_status status =
        esdm__pool_run(r->session->pool, esdm__pool_threads(r->session->pool), timed_job, r, err);
    *ret_ns = esdm__now_ns() - start;
    return status;
}

/* Reads the first jobs to see what requests cost (io/read/jobs.h).
 * @param ret_done pieces that were read. */
static esdm_status
read_and_learn(reader *r, esdm__target *target, uint64_t hole, size_t *ret_done, esdm_error *err)
{
    const esdm__read_job *jobs = r->jobs;
    size_t threads = esdm__pool_threads(r->session->pool);
    uint64_t least = UINT64_MAX;
    uint64_t spanned = 0;
    bool quick = false;
    esdm_status status = ESDM_OK;
    atomic_store(&r->shortest_ns, UINT64_MAX);
    for (unsigned i = 0; i < 2 && status == ESDM_OK && !quick; i++) {
        uint64_t ns;
        status = timed_round(r, jobs + i * threads, &ns, err);
        *ret_done = jobs[(i + 1) * threads].first;
        least = ns < least ? ns : least;
        quick = atomic_load(&r->shortest_ns) < ESDM__QUICK_JOB_NS; /* others were slow by chance */
    }
    if (status == ESDM_OK && !quick) {
        status = timed_round(r, jobs + 2 * threads + 1, &spanned, err);
        *ret_done = jobs[3 * threads + 1].first;
    }
    if (status == ESDM_OK)
        esdm__read_jobs_learn(r->session, target, hole, least, spanned);
    r->jobs = jobs;
    return status;
}

esdm_status
esdm__read_pieces(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                  const size_t *together, esdm_error *err)
{
    esdm__read_job few[16];
    esdm__read_job *jobs = npieces <= 16 ? few : malloc(npieces * sizeof *jobs);
    if (jobs == NULL)
        return esdm__error_nomem(err, npieces * sizeof *jobs, "a read plan");
    reader r = {.transfer = t,
                .session = t->dataset->group->container->session,
                .elements = t->elements,
                .pieces = pieces,
                .jobs = jobs,
                .together = together != NULL};
    esdm_status status = ESDM_OK;
    size_t njobs = esdm__read_jobs_make(t, pieces, npieces, together, jobs);
    uint64_t bytes = esdm_dataspace_elements(t->space) * (uint64_t) bytes_there(&r);
    uint64_t hole;
    esdm__target *unknown = together == NULL && bytes >= POOL_BYTES
                                ? esdm__read_jobs_ask(t, pieces, jobs, njobs, &hole)
                                : NULL;
    if (unknown != NULL) {
        size_t done;
        status = read_and_learn(&r, unknown, hole, &done, err);
        r.pieces = pieces += done;
        npieces -= done;
        njobs = status == ESDM_OK ? esdm__read_jobs_make(t, pieces, npieces, NULL, jobs) : 0;
    }
    r.njobs = njobs;
    if (r.session->ntargets > 1 && njobs > 2)
        esdm__read_jobs_spread(r.session, pieces, jobs, njobs);
    if (r.session->ahead != NULL && njobs > 1)
        ask_ahead(&r);
    if (status != ESDM_OK)
        njobs = 0;
    else if (bytes >= POOL_BYTES || esdm__pool_may_wait(r.session->pool))
        status = esdm__pool_run(r.session->pool, njobs, run_job, &r, err);
    else
        status = esdm__pool_run_short(r.session->pool, njobs, run_job, &r, err);
    esdm__ahead_drop(r.session->ahead, &r, 0, UINT64_MAX);
    if (jobs != few)
        free(jobs);
    esdm__transfer_count(t, atomic_load(&r.out_of_range));
    return status;
}
