/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "journal/reader.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"

/* Read at once, where there is so much. */
#define WINDOW_BYTES ((size_t) 4 << 20)

void
esdm__journal_reader_init(esdm__journal_reader *reader, const esdm__journal_target *target,
                          const char *pack, uint64_t bytes)
{
    *reader = (esdm__journal_reader){.target = target, .pack = pack, .bytes = bytes};
}

void
esdm__journal_reader_clear(esdm__journal_reader *reader)
{
    free(reader->data);
    reader->data = NULL;
}

static uint64_t
left_in_pack(const esdm__journal_reader *r)
{
    return r->bytes - r->position - r->at;
}

/* Sees to it that `bytes` from `at` on are in memory; there are as many in the pack. */
static esdm_status
ensure(esdm__journal_reader *r, size_t bytes, esdm_error *err)
{
    if (r->have - r->at >= bytes)
        return ESDM_OK;
    if (r->at > 0)
        memmove(r->data, r->data + r->at, r->have - r->at);
    r->position += r->at;
    r->have -= r->at;
    r->at = 0;
    uint64_t left = r->bytes - r->position;
    size_t want = bytes > WINDOW_BYTES ? bytes : WINDOW_BYTES;
    want = left < want ? (size_t) left : want;
    if (want > r->capacity) {
        uint8_t *grown = realloc(r->data, want);
        if (grown == NULL)
            return esdm__error_nomem(err, want, "the journal");
        r->data = grown;
        r->capacity = want;
    }
    const esdm_range range = {
        .position = r->position + r->have, .bytes = want - r->have, .buffer = r->data + r->have};
    esdm_status status = r->target->plugin->pack_read(r->target->handle, r->pack, &range, 1, err);
    if (status == ESDM_OK)
        r->have = want;
    return status;
}

/* Goes on where the next record may begin. */
static void
skip(esdm__journal_reader *r)
{
    const uint8_t *next =
        r->have - r->at > 1 ? memchr(r->data + r->at + 1, 'E', r->have - r->at - 1) : NULL;
    size_t to = next != NULL ? (size_t) (next - r->data) : r->have;
    r->damaged += to - r->at;
    r->at = to;
}

esdm_status
esdm__journal_read(esdm__journal_reader *reader, esdm__journal_record *ret_record,
                   uint64_t *ret_position, bool *ret_end, esdm_error *err)
{
    esdm__journal_reader *r = reader;
    *ret_end = false;
    while (left_in_pack(r) >= ESDM__JOURNAL_HEAD_BYTES) {
        uint64_t bytes = 0;
        esdm_status status = ensure(r, ESDM__JOURNAL_HEAD_BYTES, err);
        if (status != ESDM_OK)
            return status;
        memcpy(&bytes, r->data + r->at + 16, sizeof bytes);
        bool whole = memcmp(r->data + r->at, "ESDMJRNL", 8) == 0 &&
                     bytes >= ESDM__JOURNAL_HEAD_BYTES && bytes <= left_in_pack(r);
        if (whole)
            status = ensure(r, (size_t) bytes, err);
        if (status != ESDM_OK)
            return status;
        esdm__journal_found found =
            whole ? esdm__journal_look(r->data + r->at, (size_t) bytes, ret_record)
                  : ESDM__JOURNAL_DAMAGED;
        if (found == ESDM__JOURNAL_DAMAGED) {
            skip(r);
            continue;
        }
        *ret_position = r->position + r->at;
        r->at += (size_t) bytes;
        if (found == ESDM__JOURNAL_FOUND)
            return ESDM_OK;
        r->newer++;
    }
    r->damaged += left_in_pack(r);
    *ret_end = true;
    return ESDM_OK;
}
