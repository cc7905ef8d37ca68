/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Cuts the pieces of a plan into parts, where that serves processors better. */
#include <stdlib.h>

#include "base/error.h"
#include "io/read/elsewhere.h"
#include "io/read/fetch.h"
#include "io/read/read.h"
#include "io/session/pool.h"

/* Of interleaved strided fragments so much is read at a time by one thread: less than a processor's
 * second cache, with the memory that it goes to. */
#define BAND_BYTES (UINT64_C(512) << 10)
/* Lengths come from storage. */
#define BANDS_MOST UINT64_C(2048)
/* Few large pieces are cut into parts of about so much: threads that come late find work left. */
#define PART_BYTES (UINT64_C(1) << 20)
/* As many pieces for each thread are enough. */
#define PIECES_PER_THREAD 4u
/* Parts of one piece: boxes come from storage. */
#define PARTS_MOST 1024u

/* Whether a piece can be read in parts at little more than the price of the whole. */
static bool
is_cheap_to_cut(esdm_session *session, const esdm__piece *piece)
{
    const esdm__fragment *fragment = piece->fragment;
    const esdm__source_ops *ops = esdm__source_ops_of(fragment->kind);
    if (ops != NULL)
        return ops->is_divisible != NULL && ops->is_divisible(session, fragment, &piece->part);
    if (fragment->pack == NULL || !esdm__fragment_is_raw(fragment))
        return false;
    const esdm__target *target = esdm__session_target(session, fragment->pack->target);
    return target != NULL && target->plugin->concurrency == 0;
}

/* ---- bands -------------------------------------------------------------------------------- */

/* Whether it is worth while, and cheap, to read the pieces in parts. */
static bool
can_cut(const esdm_dataset *dataset, const esdm__piece *pieces, size_t npieces, uint64_t *ret_bytes)
{
    *ret_bytes = 0;
    for (size_t i = 0; i < npieces; i++) {
        if (!is_cheap_to_cut(dataset->group->container->session, &pieces[i]))
            return false;
        *ret_bytes += pieces[i].fragment->raw_bytes;
    }
    return npieces > 1 && *ret_bytes >= 2 * BAND_BYTES;
}

/* The part of a piece that lies in [lo, hi) along an axis. */
static bool
cut_piece(const esdm__piece *piece, uint32_t axis, uint64_t lo, uint64_t hi, esdm__piece *ret)
{
    uint64_t from = piece->part.lo[axis];
    uint64_t to = from + piece->part.n[axis];
    from = from > lo ? from : lo;
    to = to < hi ? to : hi;
    if (from >= to)
        return false;
    *ret = *piece;
    ret->part.lo[axis] = from;
    ret->part.n[axis] = to - from;
    return true;
}

/* Where pieces lie along an axis, all together. */
static void
reach(const esdm__piece *pieces, size_t npieces, uint32_t axis, uint64_t *ret_lo, uint64_t *ret_hi)
{
    *ret_lo = UINT64_MAX;
    *ret_hi = 0;
    for (size_t i = 0; i < npieces; i++) {
        uint64_t lo = pieces[i].part.lo[axis];
        uint64_t hi = lo + pieces[i].part.n[axis];
        *ret_lo = lo < *ret_lo ? lo : *ret_lo;
        *ret_hi = hi > *ret_hi ? hi : *ret_hi;
    }
}

esdm_status
esdm__read_bands(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                 esdm_error *err)
{
    const esdm_dataspace *space = t->space;
    uint64_t bytes = 0;
    uint64_t lo = 0;
    uint64_t hi = 0;
    uint32_t axis = 0;
    while (axis + 1 < space->rank && space->size[axis] == 1)
        axis++;
    if (space->rank > 0)
        reach(pieces, npieces, axis, &lo, &hi);
    if (hi - lo < 2 || !can_cut(t->dataset, pieces, npieces, &bytes))
        return esdm__read_pieces(t, pieces, npieces, NULL, err);
    uint64_t nbands = bytes / BAND_BYTES < BANDS_MOST ? bytes / BAND_BYTES : BANDS_MOST;
    nbands = nbands < hi - lo ? nbands : hi - lo;
    uint64_t step = (hi - lo - 1) / nbands + 1;
    esdm__piece *cut = malloc((size_t) nbands * npieces * sizeof *cut);
    size_t *together = malloc((size_t) nbands * sizeof *together);
    size_t ncut = 0;
    size_t band = 0;
    esdm_status status = ESDM_OK;
    if (cut == NULL || together == NULL)
        status = esdm__error_nomem(err, (size_t) nbands * npieces * sizeof *cut, "a read plan");
    for (uint64_t at = lo; at < hi && status == ESDM_OK; at += step, band++) {
        size_t first = ncut;
        for (size_t i = 0; i < npieces; i++)
            ncut += cut_piece(&pieces[i], axis, at, at + step, &cut[ncut]);
        together[band] = ncut - first;
    }
    if (status == ESDM_OK)
        status = esdm__read_pieces(t, cut, ncut, together, err);
    free(cut);
    free(together);
    return status;
}

/* ---- dense pieces ------------------------------------------------------------------------- */

/* Into how many parts a piece is to be cut along its first axis that is longer than one. */
static uint64_t
parts_of(esdm_session *session, const esdm__piece *piece, size_t element_bytes, uint32_t *ret_axis)
{
    const esdm__box *box = &piece->part;
    *ret_axis = 0;
    while (*ret_axis + 1 < box->rank && box->n[*ret_axis] == 1)
        ++*ret_axis;
    uint64_t parts = esdm__box_elements(box) / (PART_BYTES / element_bytes + 1);
    if (box->rank == 0 || parts < 2 || !is_cheap_to_cut(session, piece))
        return 1;
    parts = parts < PARTS_MOST ? parts : PARTS_MOST;
    return parts < box->n[*ret_axis] ? parts : box->n[*ret_axis];
}

/* Cuts a piece into equal parts. Returns how many these are, not more than `parts`. */
static size_t
cut_evenly(const esdm__piece *piece, uint32_t axis, uint64_t parts, esdm__piece *ret)
{
    if (parts < 2) {
        *ret = *piece;
        return 1;
    }
    size_t n = 0;
    uint64_t lo = piece->part.lo[axis];
    uint64_t hi = lo + piece->part.n[axis];
    uint64_t step = (hi - lo - 1) / parts + 1;
    for (uint64_t at = lo; at < hi; at += step)
        n += cut_piece(piece, axis, at, at + step, &ret[n]);
    return n;
}

esdm_status
esdm__read_dense(const esdm__transfer *t, const esdm__piece *pieces, size_t npieces,
                 esdm_error *err)
{
    const esdm__elements *elements = t->elements;
    esdm_session *session = t->dataset->group->container->session;
    unsigned threads = esdm__pool_threads(session->pool);
    bool few = npieces < (size_t) PIECES_PER_THREAD * threads;
    uint64_t nparts = 0;
    uint32_t axis;
    for (size_t i = 0; i < npieces && few && threads > 1 && !esdm__elements_vary(elements); i++)
        nparts += parts_of(session, &pieces[i], elements->bytes, &axis);
    if (nparts <= npieces)
        return esdm__read_pieces(t, pieces, npieces, NULL, err);
    esdm__piece *parts = malloc((size_t) nparts * sizeof *parts);
    if (parts == NULL)
        return esdm__error_nomem(err, (size_t) nparts * sizeof *parts, "a read plan");
    size_t n = 0;
    for (size_t i = 0; i < npieces; i++) {
        /* What the system has in memory may be more by now. */
        uint64_t room = nparts - n - (npieces - i - 1);
        uint64_t count = parts_of(session, &pieces[i], elements->bytes, &axis);
        count = count < room ? count : room;
        n += cut_evenly(&pieces[i], axis, count, &parts[n]);
    }
    esdm_status status = esdm__read_pieces(t, parts, n, NULL, err);
    free(parts);
    return status;
}
