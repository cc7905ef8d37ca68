/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/fetch_blocks.h"

#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "codec/outline.h"
#include "codec/raw_blocks.h"
#include "io/read/fetch.h"
#include "plugin/registry.h"

typedef esdm__block_reader blob;
typedef esdm__block_run block_run;

void
esdm__block_reader_close(blob *b)
{
    free(b->head);
    free(b->whole);
    esdm__room_give(b->room, b->taken);
}

/* For stored or raw bytes. What large blocks take must not stay with each thread, and takes long to
 * decode; fresh pages for others would take longer than that. */
void *
esdm__block_buffer(const blob *b, uint64_t bytes)
{
    return b->geometry.block_bytes > ESDM__SCRATCH_KEPT ? esdm__scratch_new((size_t) bytes)
                                                        : esdm__scratch_new_near((size_t) bytes);
}

/* Before memory is filled with blocks to be decoded: `more` bytes beside these and what codecs
 * take. Uncompressed ones are not counted. */
void
esdm__block_room_take(blob *b, uint32_t first, uint32_t count, uint64_t more)
{
    if (b->raw || b->taken > 0)
        return;
    uint64_t stored = esdm__blob_stored_bytes(&b->view, first, count);
    b->taken = esdm__room_take(b->room, more + stored + esdm__blob_decode_bytes(&b->view));
}

void
esdm__block_room_give(blob *b)
{
    esdm__room_give(b->room, b->taken);
    b->taken = 0;
}

/* All that is stored, of a small blob on a target whose reads have a price. */
static esdm_status
read_whole(blob *b, esdm_error *err)
{
    const esdm__fragment *f = b->fragment;
    b->whole = malloc((size_t) f->stored_bytes);
    if (b->whole == NULL)
        return esdm__error_nomem(err, (size_t) f->stored_bytes, "a fragment");
    esdm_range range = {f->position, f->stored_bytes, b->whole};
    return esdm__session_read(b->session, b->target, f->pack->pack, &range, 1, err);
}

/* Ranges come sorted, as for the target. */
esdm_status
esdm__block_ranges(blob *b, const esdm_range *ranges, size_t n, esdm_error *err)
{
    const esdm__fragment *f = b->fragment;
    esdm_status status = ESDM_OK;
    if (b->whole == NULL && (b->head_known || !esdm__fetch_takes_whole(f, b->target)))
        return esdm__session_read(b->session, b->target, f->pack->pack, ranges, n, err);
    if (b->whole == NULL)
        status = read_whole(b, err);
    for (size_t i = 0; i < n && status == ESDM_OK; i++) {
        uint64_t from = ranges[i].position - f->position;
        if (from > f->stored_bytes || ranges[i].bytes > f->stored_bytes - from)
            return esdm__error_set(err, ESDM_ECORRUPT, "a block lies outside of its fragment");
        memcpy(ranges[i].buffer, b->whole + from, (size_t) ranges[i].bytes);
    }
    return status;
}

/* Whether the index page has the head. One that is not sound is read where it is stored. */
static bool
take_outline(blob *b)
{
    const esdm__fragment *f = b->fragment;
    if (f->outline == NULL || f->outline_bytes != f->head_bytes)
        return false;
    memcpy(b->head, f->outline, f->head_bytes);
    return esdm__blob_parse(b->head, f->head_bytes, esdm__plugin_codec_by_id, &b->view, NULL) ==
           ESDM_OK;
}

static esdm_status
load_head(blob *b, const esdm__coarse *coarse, esdm_error *err)
{
    size_t bytes = b->fragment->head_bytes;
    b->head = malloc(bytes);
    if (b->head == NULL)
        return esdm__error_nomem(err, bytes, "the head of a fragment");
    b->key.block = ESDM__HEAD_BLOCK;
    bool outlined = take_outline(b);
    b->head_known = outlined || esdm__cache_get(b->session->cache, &b->key, b->head, bytes);
    if (!b->head_known) {
        esdm_range range = {b->fragment->position, bytes, b->head};
        esdm_status status = esdm__block_ranges(b, &range, 1, err);
        if (status != ESDM_OK)
            return status;
    }
    esdm_status status = ESDM_OK;
    if (!outlined)
        status = esdm__blob_parse(b->head, bytes, esdm__plugin_codec_by_id, &b->view, err);
    if (status != ESDM_OK)
        return status;
    if (b->view.raw_bytes != b->fragment->raw_bytes ||
        b->view.payload_bytes != b->fragment->stored_bytes - bytes)
        return esdm__error_set(err, ESDM_ECORRUPT, "the head belongs to another fragment");
    if (bytes <= ESDM__KEPT_TABLE_BYTES && !outlined)
        esdm__cache_put(b->session->cache, &b->key, b->head, bytes);
    b->geometry = b->view.geometry;
    if (esdm__coarse_is_asked(coarse))
        esdm__blob_use(&b->view, coarse->absolute, coarse->share);
    b->key.layers = b->view.use < b->view.layers ? b->view.use : 0;
    return ESDM_OK;
}

esdm_status
esdm__block_reader_open(esdm_session *session, const esdm__fragment *fragment, esdm__target *target,
                        const esdm__coarse *coarse, blob *b, esdm_error *err)
{
    memset(b, 0, offsetof(blob, view)); /* load_head() makes the view; raw ones have none */
    b->session = session;
    b->fragment = fragment;
    b->target = target;
    b->room = target->plugin->concurrency > 0 ? session->decoding_remote : session->decoding;
    b->key = esdm__cache_key_of(fragment->pack->target, fragment->pack->pack, fragment->position);
    b->raw = esdm__fragment_is_raw(fragment);
    if (b->raw)
        return esdm__raw_blocks_init(fragment->raw_bytes, fragment->head_bytes, &b->geometry, err);
    return load_head(b, coarse, err);
}

/* Where each read has a price the table of a large fragment is read as a whole, and kept: whoever
 * wants other blocks later has it. @return whether that is so; *ret_range.bytes: 0 when the cache
 * has it. */
static esdm_status
whole_table(blob *b, bool *ret_whole, esdm_range *ret_range, esdm_error *err)
{
    const esdm__fragment *f = b->fragment;
    *ret_whole = b->whole == NULL && esdm__fetch_keeps_table(f, b->target);
    *ret_range = (esdm_range){f->position, 0, NULL};
    if (!*ret_whole || b->head_known)
        return ESDM_OK;
    if (b->head == NULL)
        b->head = malloc(f->head_bytes);
    if (b->head == NULL)
        return esdm__error_nomem(err, f->head_bytes, "a block table");
    b->key.block = ESDM__HEAD_BLOCK;
    b->head_known = esdm__cache_get(b->session->cache, &b->key, b->head, f->head_bytes);
    if (!b->head_known)
        *ret_range = (esdm_range){f->position, f->head_bytes, b->head};
    return ESDM_OK;
}

/* What was damaged on its way must not stay: blocks tell of it, and the table is read anew. */
static void
keep_table(blob *b)
{
    esdm__blob_view view;
    size_t bytes = b->fragment->head_bytes;
    if (esdm__blob_parse(b->head, bytes, esdm__plugin_codec_by_id, &view, NULL) != ESDM_OK)
        return;
    b->head_known = true;
    b->key.block = ESDM__HEAD_BLOCK;
    esdm__cache_put(b->session->cache, &b->key, b->head, bytes);
}

static esdm_range
range_of_run(const blob *b, const block_run *run)
{
    const esdm__fragment *f = b->fragment;
    uint64_t from = esdm__blocks_start(&b->geometry, run->first);
    uint64_t to = esdm__blocks_start(&b->geometry, run->first + run->count);
    return (esdm_range){f->position + f->head_bytes + from, to - from, run->out};
}

static esdm_status
read_with_table(blob *b, const block_run *runs, size_t nruns, const esdm_range *table,
                esdm_range *ranges, esdm_error *err)
{
    size_t n = 0;
    if (table->bytes > 0)
        ranges[n++] = *table;
    for (size_t i = 0; i < nruns; i++)
        ranges[n++] = range_of_run(b, &runs[i]);
    esdm_status status = esdm__block_ranges(b, ranges, n, err);
    if (status == ESDM_OK && table->bytes > 0)
        keep_table(b);
    for (size_t i = 0; i < nruns && status == ESDM_OK; i++)
        status = esdm__raw_blocks_verify(&b->geometry, runs[i].first, runs[i].count,
                                         b->head + ESDM__BLOB_HEADER_BYTES +
                                             (size_t) runs[i].first * ESDM__BLOB_ENTRY_BYTES,
                                         runs[i].out, err);
    return status;
}

static esdm_status
read_with_entries(blob *b, const block_run *runs, size_t nruns, esdm_range *ranges, esdm_error *err)
{
    uint8_t stack[64 * ESDM__BLOB_ENTRY_BYTES];
    const esdm__fragment *f = b->fragment;
    size_t table_bytes = 0;
    for (size_t i = 0; i < nruns; i++)
        table_bytes += (size_t) runs[i].count * ESDM__BLOB_ENTRY_BYTES;
    uint8_t *entries = table_bytes <= sizeof stack ? stack : malloc(table_bytes);
    if (entries == NULL)
        return esdm__error_nomem(err, table_bytes, "a block table");
    uint8_t *at = entries;
    for (size_t i = 0; i < nruns; i++) { /* the table comes before the blocks */
        const block_run *run = &runs[i];
        size_t bytes = (size_t) run->count * ESDM__BLOB_ENTRY_BYTES;
        uint64_t entry = ESDM__BLOB_HEADER_BYTES + (uint64_t) run->first * ESDM__BLOB_ENTRY_BYTES;
        ranges[i] = (esdm_range){f->position + entry, bytes, at};
        ranges[nruns + i] = range_of_run(b, run);
        at += bytes;
    }
    esdm_status status = esdm__block_ranges(b, ranges, 2 * nruns, err);
    for (size_t i = 0; i < nruns && status == ESDM_OK; i++)
        status = esdm__raw_blocks_verify(&b->geometry, runs[i].first, runs[i].count,
                                         ranges[i].buffer, runs[i].out, err);
    if (entries != stack)
        free(entries);
    return status;
}

/* ---- by outline --------------------------------------------------------------------------- */

static uint64_t
bytes_of(const blob *b, const block_run *run)
{
    return esdm__blocks_start(&b->geometry, run->first + run->count) -
           esdm__blocks_start(&b->geometry, run->first);
}

/* The groups around the runs, and where these are not what is wanted, how many bytes they have. */
static size_t
widen(const blob *b, const block_run *runs, size_t nruns, block_run *wide, uint64_t *ret_staged,
      uint64_t *ret_more)
{
    uint64_t wanted = 0;
    uint64_t all = 0;
    size_t n = 0;
    *ret_staged = 0;
    for (size_t i = 0; i < nruns; i++) {
        const block_run *run = &runs[i];
        uint32_t first = run->first;
        uint32_t end = run->first + run->count;
        esdm__outline_widen(&b->geometry, &first, &end);
        wanted += bytes_of(b, run);
        if (n > 0 && first < wide[n - 1].first + wide[n - 1].count) {
            wide[n - 1].count = end - wide[n - 1].first;
            wide[n - 1].out = NULL;
            continue;
        }
        wide[n] = (block_run){.first = first, .count = end - first};
        wide[n++].out = first == run->first && end - first == run->count ? run->out : NULL;
    }
    for (size_t i = 0; i < n; i++) {
        uint64_t bytes = bytes_of(b, &wide[i]);
        all += bytes;
        *ret_staged += wide[i].out == NULL ? bytes : 0;
    }
    *ret_more = all - wanted;
    return n;
}

/* Copies what is wanted out of groups that were staged. */
static void
take_wanted(const blob *b, const block_run *runs, size_t nruns, const block_run *wide)
{
    for (size_t i = 0; i < nruns; i++) {
        while (runs[i].first >= wide->first + wide->count)
            wide++;
        uint64_t from = esdm__blocks_start(&b->geometry, runs[i].first) -
                        esdm__blocks_start(&b->geometry, wide->first);
        if (wide->out != runs[i].out)
            memcpy(runs[i].out, wide->out + from, (size_t) bytes_of(b, &runs[i]));
    }
}

static esdm_status
read_groups(blob *b, block_run *wide, size_t nwide, uint8_t *staging, esdm_range *ranges,
            esdm_error *err)
{
    for (size_t i = 0; i < nwide; i++) {
        if (wide[i].out == NULL) {
            wide[i].out = staging;
            staging += bytes_of(b, &wide[i]);
        }
        ranges[i] = range_of_run(b, &wide[i]);
    }
    esdm_status status = esdm__block_ranges(b, ranges, nwide, err);
    for (size_t i = 0; i < nwide && status == ESDM_OK; i++)
        status = esdm__outline_verify(&b->geometry, wide[i].first, wide[i].count,
                                      b->fragment->outline, wide[i].out, err);
    return status;
}

/* Groups that are copied from, at most, in what a read costs: a step of direct reads (fetch.c), and
 * what lies around it. Beside what is wanted the memory of large fragments is not taken twice. */
#define STAGED_PRICES 16u

/* Whole groups in place of the table, where that is not more than what a read costs; else
 * *ret_done is false, and nothing happened. */
static esdm_status
read_by_outline(blob *b, const block_run *runs, size_t nruns, esdm_range *ranges, bool *ret_done,
                esdm_error *err)
{
    block_run few[8];
    uint64_t staged = 0;
    uint64_t more = 0;
    *ret_done = false;
    if (b->whole != NULL || !esdm__fetch_has_sums(b->fragment, b->target, &b->geometry))
        return ESDM_OK;
    block_run *wide = nruns <= 8 ? few : malloc(nruns * sizeof *wide);
    if (wide == NULL)
        return esdm__error_nomem(err, nruns * sizeof *wide, "blocks");
    size_t nwide = widen(b, runs, nruns, wide, &staged, &more);
    esdm_status status = ESDM_OK;
    if (more <= b->target->read_bytes && staged <= STAGED_PRICES * b->target->read_bytes) {
        uint8_t *staging = staged > 0 ? esdm__block_buffer(b, staged) : NULL;
        *ret_done = true;
        if (staged > 0 && staging == NULL)
            status = esdm__error_nomem(err, (size_t) staged, "blocks");
        if (status == ESDM_OK)
            status = read_groups(b, wide, nwide, staging, ranges, err);
        if (status == ESDM_OK)
            take_wanted(b, runs, nruns, wide);
        esdm__scratch_free(staging);
    }
    if (wide != few)
        free(wide);
    return status;
}

/* ---- runs --------------------------------------------------------------------------------- */

/* @param ranges room for two of each run. */
static esdm_status
read_raw_runs(blob *b, const block_run *runs, size_t nruns, esdm_range *ranges, esdm_error *err)
{
    bool whole;
    bool done = false;
    esdm_range table;
    esdm_status status = whole_table(b, &whole, &table, err);
    if (status == ESDM_OK && !(whole && table.bytes == 0)) /* no table is there yet */
        status = read_by_outline(b, runs, nruns, ranges, &done, err);
    if (status != ESDM_OK || done)
        return status;
    return whole ? read_with_table(b, runs, nruns, &table, ranges, err)
                 : read_with_entries(b, runs, nruns, ranges, err);
}

/* Raw blocks, neighbours, whose part of the table is there. */
esdm_status
esdm__block_listed(blob *b, uint32_t first, uint32_t count, const uint8_t *entries, uint8_t *out,
                   esdm_error *err)
{
    const esdm__fragment *f = b->fragment;
    uint64_t from = esdm__blocks_start(&b->geometry, first);
    const esdm_range range = {f->position + f->head_bytes + from,
                              esdm__blocks_start(&b->geometry, first + count) - from, out};
    esdm_status status = esdm__block_ranges(b, &range, 1, err);
    return status == ESDM_OK
               ? esdm__raw_blocks_verify(&b->geometry, first, count, entries, out, err)
               : status;
}

/* Ranges of a run are as many as there are layers to be read; their bytes follow each other. */
static esdm_status
decode_runs(const blob *b, const block_run *runs, size_t nruns, const uint8_t *stored,
            uint64_t total, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    esdm__span span;
    uint64_t raw = 0;
    esdm__span_begin(&span, b->session->monitor);
    for (size_t i = 0; i < nruns && status == ESDM_OK; i++) {
        uint64_t bytes = esdm__blob_raw_bytes(&b->view, runs[i].first, runs[i].count);
        uint64_t taken = esdm__blob_stored_bytes(&b->view, runs[i].first, runs[i].count);
        status = esdm__blob_decode(&b->view, runs[i].first, runs[i].count, stored, (size_t) taken,
                                   runs[i].out, (size_t) bytes, err);
        raw += bytes;
        stored += taken;
    }
    if (esdm__span_is_observed(&span))
        esdm__span_stop(&span, &(esdm__span_facts){.kind = ESDM__SPAN_DECODE,
                                                   .bytes = raw,
                                                   .stored_bytes = total,
                                                   .pieces = (uint32_t) nruns,
                                                   .status = status});
    return status;
}

static int
compare_positions(const void *a, const void *b)
{
    const esdm_range *x = a;
    const esdm_range *y = b;
    return x->position < y->position ? -1 : x->position > y->position;
}

/* Of layers those that follow each other are one range; targets want ranges in their order. */
static size_t
list_ranges(const blob *b, const block_run *runs, size_t nruns, uint8_t *stored, esdm_range *ranges)
{
    const uint64_t payload = b->fragment->position + b->fragment->head_bytes;
    size_t n = 0;
    for (size_t i = 0; i < nruns; i++) {
        for (uint32_t layer = 0; layer < b->view.use; layer++) {
            uint64_t offset = 0;
            uint64_t bytes = 0;
            esdm__blob_range(&b->view, layer, runs[i].first, runs[i].count, &offset, &bytes);
            esdm_range *last = n > 0 ? &ranges[n - 1] : NULL;
            if (layer > 0 && last->position + last->bytes == payload + offset)
                last->bytes += bytes;
            else
                ranges[n++] = (esdm_range){payload + offset, bytes, stored};
            stored += bytes;
        }
    }
    if (b->view.use > 1 && nruns > 1)
        qsort(ranges, n, sizeof *ranges, compare_positions);
    return n;
}

static esdm_status
read_coded_runs(blob *b, const block_run *runs, size_t nruns, esdm_range *ranges, esdm_error *err)
{
    uint64_t total = 0;
    for (size_t i = 0; i < nruns; i++)
        total += esdm__blob_stored_bytes(&b->view, runs[i].first, runs[i].count);
    uint8_t *stored = esdm__block_buffer(b, total);
    if (stored == NULL)
        return esdm__error_nomem(err, (size_t) total, "encoded blocks");
    bool direct = b->taken == 0; /* into the caller's memory */
    if (direct)
        b->taken = esdm__room_take(b->room, total + esdm__blob_decode_bytes(&b->view));
    size_t n = list_ranges(b, runs, nruns, stored, ranges);
    esdm_status status = esdm__block_ranges(b, ranges, n, err);
    if (status == ESDM_OK)
        status = decode_runs(b, runs, nruns, stored, total, err);
    esdm__scratch_free(stored);
    if (direct)
        esdm__block_room_give(b);
    return status;
}

/* Reads and verifies runs in order, with one call of the target. */
esdm_status
esdm__block_runs(blob *b, const block_run *runs, size_t nruns, esdm_error *err)
{
    esdm_range few[16];
    size_t most = nruns * (b->raw || b->view.use < 2 ? 2 : b->view.use);
    esdm_range *ranges = most <= 16 ? few : malloc(most * sizeof *ranges);
    if (ranges == NULL)
        return esdm__error_nomem(err, most * sizeof *ranges, "ranges");
    esdm_status status = b->raw ? read_raw_runs(b, runs, nruns, ranges, err)
                                : read_coded_runs(b, runs, nruns, ranges, err);
    if (ranges != few)
        free(ranges);
    return status;
}
