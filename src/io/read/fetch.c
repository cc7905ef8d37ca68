/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/fetch.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "io/read/fetch_blocks.h"
#include "io/read/fetch_some.h"

/* Bytes read and verified at a time by direct reads: what was read is still in the CPU's cache. */
#define DIRECT_STEP_BYTES (UINT64_C(256) << 10)
/* Where a read has a price of its own: as many times the bytes that it could have moved instead. */
#define STEP_PRICES 8u
/* Smaller blocks are decoded as a whole: they take some milliseconds. */
#define PARTS_BLOCK_LEAST (UINT64_C(1) << 20)

typedef esdm__block_reader blob;
typedef esdm__block_run block_run;

static esdm_status
read_blocks(blob *b, uint32_t first, uint32_t count, void *out, esdm_error *err)
{
    const block_run run = {.first = first, .count = count, .out = out};
    return esdm__block_runs(b, &run, 1, err);
}

/* ---- wanted blocks ------------------------------------------------------------------------ */

/* Takes wanted blocks out of the cache; clears their marks. */
static void
take_cached(blob *b, uint8_t *marks, uint32_t first, uint32_t last, uint8_t *staging)
{
    esdm__cache_wanted wanted[ESDM__CACHE_BLOCKS_MOST];
    uint64_t base = esdm__blocks_start(&b->geometry, first);
    size_t n = 0;
    if (first == last) {
        uint64_t bytes = esdm__blocks_start(&b->geometry, last + 1) - base;
        b->key.block = first;
        if (*marks != 0 && esdm__cache_get(b->session->cache, &b->key, staging, (size_t) bytes))
            *marks = 0;
        return;
    }
    for (uint32_t k = first; k <= last; k++) {
        if (marks[k - first] != 0) {
            uint64_t from = esdm__blocks_start(&b->geometry, k);
            uint64_t to = esdm__blocks_start(&b->geometry, k + 1);
            b->key.block = k;
            wanted[n++] = (esdm__cache_wanted){
                .key = b->key, .data = staging + (from - base), .bytes = (size_t) (to - from)};
        }
        if (n == ESDM__CACHE_BLOCKS_MOST || (k == last && n > 0)) {
            esdm__cache_get_blocks(b->session->cache, wanted, n);
            while (n > 0) {
                if (wanted[--n].found)
                    marks[wanted[n].key.block - first] = 0;
            }
        }
    }
}

/* Copies that are made before the cache has room for them. */
#define PUT_BYTES ((size_t) 64 << 10)

static void
put_cached(blob *b, uint32_t first, uint32_t count, const uint8_t *data)
{
    esdm__cache_block blocks[ESDM__CACHE_BLOCKS_MOST];
    size_t n = 0;
    size_t bytes = 0;
    uint64_t base = esdm__blocks_start(&b->geometry, first);
    for (uint64_t k = first, from = base, to; k < (uint64_t) first + count; k++, from = to) {
        to = esdm__blocks_start(&b->geometry, (uint32_t) k + 1);
        b->key.block = (uint32_t) k;
        if (count == 1) {
            esdm__cache_put(b->session->cache, &b->key, data, (size_t) (to - from));
            return;
        }
        blocks[n++] = (esdm__cache_block){b->key, data + (from - base), (size_t) (to - from)};
        bytes += (size_t) (to - from);
        if (n == ESDM__CACHE_BLOCKS_MOST || bytes >= PUT_BYTES) {
            esdm__cache_put_blocks(b->session->cache, blocks, n);
            n = 0;
            bytes = 0;
        }
    }
    if (n > 0)
        esdm__cache_put_blocks(b->session->cache, blocks, n);
}

/* Collects the marked blocks, neighbours together. */
static size_t
find_runs(const blob *b, const uint8_t *marks, uint32_t first, uint32_t last, uint8_t *staging,
          block_run *runs)
{
    uint64_t base = esdm__blocks_start(&b->geometry, first);
    size_t nruns = 0;
    for (uint32_t k = first; k <= last; k++) {
        if (marks[k - first] == 0)
            continue;
        uint32_t count = 1;
        while (k + count <= last && marks[k + count - first] != 0)
            count++;
        runs[nruns++] = (block_run){.first = k,
                                    .count = count,
                                    .out = staging + (esdm__blocks_start(&b->geometry, k) - base)};
        k += count - 1;
    }
    return nruns;
}

static esdm_status
read_marked(blob *b, const uint8_t *marks, uint32_t first, uint32_t last, bool cache,
            uint8_t *staging, esdm_error *err)
{
    block_run few[16];
    size_t most = (last - first) / 2 + 1;
    block_run *runs = most <= 16 ? few : malloc(most * sizeof *runs);
    if (runs == NULL)
        return esdm__error_nomem(err, most * sizeof *runs, "blocks");
    size_t nruns = find_runs(b, marks, first, last, staging, runs);
    esdm_status status = nruns > 0 ? esdm__block_runs(b, runs, nruns, err) : ESDM_OK;
    for (size_t i = 0; i < nruns && status == ESDM_OK && cache; i++)
        put_cached(b, runs[i].first, runs[i].count, runs[i].out);
    if (runs != few)
        free(runs);
    return status;
}

static uint32_t
count_marks(const uint8_t *marks, uint32_t n)
{
    uint32_t count = 0;
    for (uint32_t i = 0; i < n; i++)
        count += marks[i];
    return count;
}

/* Of one block what is wanted, where its codec can do that and it is worth it: then the mark goes.
 */
static esdm_status
read_some(blob *b, const esdm__some *some, uint32_t block, uint8_t *raw, uint8_t *mark,
          esdm_error *err)
{
    size_t raw_bytes = (size_t) esdm__blob_raw_bytes(&b->view, block, 1);
    size_t count;
    b->key.block = block;
    if (!esdm__blob_has_parts(&b->view, block) ||
        !esdm__some_is_worth(b->session->cache, &b->key, raw_bytes))
        return ESDM_OK;
    esdm_codec_range *wanted = esdm__some_of(some, &b->geometry, block, &count);
    uint64_t offset;
    uint64_t bytes;
    size_t done = 0;
    esdm__blob_range(&b->view, 0, block, 1, &offset, &bytes);
    uint8_t *stored = wanted != NULL ? esdm__block_buffer(b, bytes) : NULL;
    esdm_status status = ESDM_OK;
    if (stored != NULL) {
        esdm__span span;
        esdm_range range = {b->fragment->position + b->fragment->head_bytes + offset, bytes,
                            stored};
        status = esdm__block_ranges(b, &range, 1, err);
        esdm__span_begin(&span, b->session->monitor);
        if (status == ESDM_OK)
            status = esdm__blob_decode_some(&b->view, block, wanted, count, stored, (size_t) bytes,
                                            raw, raw_bytes, &done, err);
        if (esdm__span_is_observed(&span))
            esdm__span_stop(&span, &(esdm__span_facts){.kind = ESDM__SPAN_DECODE,
                                                       .bytes = done,
                                                       .stored_bytes = bytes,
                                                       .pieces = 1,
                                                       .status = status});
        *mark = 0;
    }
    if (status == ESDM_OK && done == raw_bytes)
        put_cached(b, block, 1, raw);
    else if (status == ESDM_OK && done > 0)
        esdm__some_note(b->session->cache, &b->key, done);
    esdm__scratch_free(stored);
    free(wanted);
    return status;
}

/* The same of all that are marked; only large blocks are worth a look, and where each read waits
 * for a network many of them take one together. */
static esdm_status
read_parts(blob *b, const esdm__want *want, uint8_t *marks, uint32_t first, uint32_t last,
           uint8_t *staging, esdm_error *err)
{
    esdm__some some;
    esdm_status status = ESDM_OK;
    uint64_t base = esdm__blocks_start(&b->geometry, first);
    if (b->raw || b->geometry.block_bytes < PARTS_BLOCK_LEAST ||
        (b->target->plugin->concurrency > 0 && count_marks(marks, last - first + 1) > 1))
        return ESDM_OK;
    esdm__some_find(want, &some);
    for (uint32_t k = first; k <= last && status == ESDM_OK && some.count > 0; k++) {
        uint8_t *raw = staging + (esdm__blocks_start(&b->geometry, k) - base);
        if (marks[k - first] != 0)
            status = read_some(b, &some, k, raw, &marks[k - first], err);
    }
    esdm__some_clear(&some);
    return status;
}

static esdm_status
fetch_blocks(blob *b, const esdm__want *want, uint32_t first, uint32_t last, uint8_t *staging,
             esdm_error *err)
{
    uint32_t n = last - first + 1;
    uint8_t few[ESDM__CACHE_BLOCKS];
    uint8_t *owned = esdm__want_blocks(want, &b->geometry, first, last);
    uint8_t *marks = owned;
    if (marks == NULL) {
        if (n > ESDM__CACHE_BLOCKS)
            return read_blocks(b, first, n, staging, err);
        memset(few, 1, n);
        marks = few;
    }
    bool cache = count_marks(marks, n) <= ESDM__CACHE_BLOCKS;
    if (cache)
        take_cached(b, marks, first, last, staging);
    esdm_status status = read_parts(b, want, marks, first, last, staging, err);
    if (status == ESDM_OK)
        status = read_marked(b, marks, first, last, cache, staging, err);
    free(owned);
    return status;
}

/* Bytes [from, to) of a block that the cache has: no copy of all of it. */
static bool
take_part(blob *b, uint32_t block, uint64_t from, uint64_t to, uint8_t *out)
{
    uint64_t start = esdm__blocks_start(&b->geometry, block);
    b->key.block = block;
    return esdm__cache_get_part(b->session->cache, &b->key, (size_t) (from - start), out,
                                (size_t) (to - from));
}

/* The bytes of a blob that a want meets, in memory of the caller; and others around them. */
static esdm_status
fetch_want(blob *b, const esdm__want *want, esdm__fetched *ret, esdm_error *err)
{
    uint32_t first = esdm__blocks_at(&b->geometry, want->from);
    uint32_t last = esdm__blocks_at(&b->geometry, want->to - 1);
    uint64_t from = esdm__blocks_start(&b->geometry, first);
    uint64_t to = esdm__blocks_start(&b->geometry, last + 1);
    uint8_t *staging = esdm__block_buffer(b, to - from);
    if (staging == NULL)
        return esdm__error_nomem(err, (size_t) (to - from), "a fragment");
    *ret = (esdm__fetched){.raw = staging, .from = want->from, .owned = staging};
    if (first == last && take_part(b, first, want->from, want->to, staging))
        return ESDM_OK;
    ret->from = from;
    esdm__block_room_take(b, first, last - first + 1, to - from);
    esdm_status status = fetch_blocks(b, want, first, last, staging, err);
    ret->room = b->room;
    ret->taken = b->taken; /* until the caller has copied what it wants */
    b->taken = 0;
    return status;
}

esdm_status
esdm__fetch(esdm_session *session, const esdm__fragment *fragment, esdm__target *target,
            const esdm__want *want, esdm__fetched *ret_fetched, esdm_error *err)
{
    blob b;
    esdm__fetched fetched = {0};
    esdm_status status = esdm__block_reader_open(session, fragment, target, want->coarse, &b, err);
    if (status == ESDM_OK && want->to > b.geometry.raw_bytes)
        status = esdm__error_set(err, ESDM_ECORRUPT,
                                 "%" PRIu64 " bytes are stored where %" PRIu64 " are needed",
                                 b.geometry.raw_bytes, want->to);
    if (status == ESDM_OK)
        status = fetch_want(&b, want, &fetched, err);
    esdm__block_reader_close(&b);
    if (status == ESDM_OK)
        *ret_fetched = fetched;
    else
        esdm__fetched_clear(&fetched);
    return status;
}

/* ---- direct ------------------------------------------------------------------------------- */

/* Part of one block, through a buffer. */
static esdm_status
fetch_edge(blob *b, uint32_t block, uint64_t from, uint64_t to, uint8_t *out, esdm_error *err)
{
    esdm__want want = {.from = from, .to = to};
    uint64_t start = esdm__blocks_start(&b->geometry, block);
    uint64_t end = esdm__blocks_start(&b->geometry, block + 1);
    if (take_part(b, block, from, to, out))
        return ESDM_OK;
    uint8_t *staging = esdm__block_buffer(b, end - start);
    if (staging == NULL)
        return esdm__error_nomem(err, (size_t) (end - start), "a block");
    esdm__block_room_take(b, block, 1, end - start);
    esdm_status status = fetch_blocks(b, &want, block, block, staging, err);
    if (status == ESDM_OK)
        memcpy(out, staging + (from - start), (size_t) (to - from));
    esdm__scratch_free(staging);
    esdm__block_room_give(b);
    return status;
}

/* Blocks from first to before end, so many at a time that they are verified in the CPU's cache. */
static esdm_status
read_steps(blob *b, uint32_t first, uint32_t end, const uint8_t *entries, uint8_t *out,
           esdm_error *err)
{
    uint64_t bytes = STEP_PRICES * b->target->read_bytes;
    bytes = bytes > DIRECT_STEP_BYTES ? bytes : DIRECT_STEP_BYTES;
    uint64_t blocks = bytes / b->geometry.block_bytes; /* at a time */
    uint32_t step = blocks > 1 ? (uint32_t) blocks : 1;
    for (uint32_t k = first; k < end; k += step) {
        uint32_t count = end - k < step ? end - k : step;
        uint8_t *at =
            out + (esdm__blocks_start(&b->geometry, k) - esdm__blocks_start(&b->geometry, first));
        esdm_status status =
            entries == NULL
                ? read_blocks(b, k, count, at, err)
                : esdm__block_listed(b, k, count,
                                     entries + (size_t) (k - first) * ESDM__BLOB_ENTRY_BYTES, at,
                                     err);
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

static esdm_status
fetch_middle(blob *b, uint32_t first, uint32_t end, uint8_t *out, esdm_error *err)
{
    size_t table_bytes = (size_t) (end - first) * ESDM__BLOB_ENTRY_BYTES;
    if (!b->raw || end - first < 2 || b->target->read_bytes > 0)
        return read_steps(b, first, end, NULL, out, err);
    uint8_t *entries = malloc(table_bytes);
    if (entries == NULL)
        return esdm__error_nomem(err, table_bytes, "a block table");
    const esdm_range table = {b->fragment->position + ESDM__BLOB_HEADER_BYTES +
                                  (uint64_t) first * ESDM__BLOB_ENTRY_BYTES,
                              table_bytes, entries};
    esdm_status status = esdm__block_ranges(b, &table, 1, err);
    if (status == ESDM_OK)
        status = read_steps(b, first, end, entries, out, err);
    free(entries);
    return status;
}

static esdm_status
fetch_span(blob *b, uint64_t from, uint64_t to, uint8_t *out, esdm_error *err)
{
    uint32_t first = esdm__blocks_at(&b->geometry, from);
    uint32_t last = esdm__blocks_at(&b->geometry, to - 1);
    uint64_t begin = esdm__blocks_start(&b->geometry, first);
    uint64_t end = esdm__blocks_start(&b->geometry, last + 1);
    if (begin < from) { /* the first block only in part */
        uint64_t stop = esdm__blocks_start(&b->geometry, first + 1);
        stop = stop < to ? stop : to;
        esdm_status status = fetch_edge(b, first, from, stop, out, err);
        if (status != ESDM_OK || stop == to)
            return status;
        first++;
    }
    if (to < end) { /* the last block only in part */
        uint64_t start = esdm__blocks_start(&b->geometry, last);
        esdm_status status = fetch_edge(b, last, start, to, out + (start - from), err);
        if (status != ESDM_OK || first == last)
            return status;
        last--;
    }
    return fetch_middle(b, first, last + 1, out + (esdm__blocks_start(&b->geometry, first) - from),
                        err);
}

esdm_status
esdm__fetch_direct(esdm_session *session, const esdm__fragment *fragment, esdm__target *target,
                   const esdm__coarse *coarse, uint64_t from, uint64_t to, void *data,
                   esdm_error *err)
{
    blob b;
    esdm_status status = esdm__block_reader_open(session, fragment, target, coarse, &b, err);
    if (status == ESDM_OK && to > b.geometry.raw_bytes)
        status = esdm__error_set(err, ESDM_ECORRUPT, "the fragment is shorter than its box");
    if (status == ESDM_OK)
        status = fetch_span(&b, from, to, data, err);
    esdm__block_reader_close(&b);
    return status;
}

esdm_status
esdm__fetch_head(esdm_session *session, const esdm__fragment *fragment, esdm__target *target,
                 const esdm__coarse *coarse, uint8_t **ret_head, esdm__blob_view *ret_view,
                 esdm_error *err)
{
    blob b;
    esdm_status status = esdm__block_reader_open(session, fragment, target, coarse, &b, err);
    if (status == ESDM_OK && !b.raw) {
        *ret_head = b.head;
        *ret_view = b.view;
        b.head = NULL;
    }
    esdm__block_reader_close(&b);
    return status;
}
