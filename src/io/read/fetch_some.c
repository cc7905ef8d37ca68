/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/read/fetch_some.h"

#include <stdlib.h>

#define RANGES_MOST 4096u
/* Notes stand in the cache under numbers of layers that no block has. */
#define FIRST_NOTE UINT32_C(0x80000000)
#define NOTES_MOST 64u

uint8_t *
esdm__want_blocks(const esdm__want *want, const esdm__blocks *blocks, uint32_t first, uint32_t last)
{
    if (want->next_row == NULL || last - first < 2)
        return NULL;
    uint8_t *marks = calloc(last - first + 1u, 1);
    if (marks == NULL)
        return NULL;
    uint64_t from;
    uint64_t to;
    while (want->next_row(want->user, &from, &to)) {
        uint32_t until = esdm__blocks_at(blocks, to - 1);
        for (uint32_t k = esdm__blocks_at(blocks, from); k <= until; k++)
            marks[k - first] = 1;
    }
    return marks;
}

void
esdm__some_find(const esdm__want *want, esdm__some *ret_some)
{
    uint64_t from = want->from;
    uint64_t to = want->to;
    *ret_some = (esdm__some){.ranges = malloc(RANGES_MOST * sizeof *ret_some->ranges)};
    if (ret_some->ranges == NULL)
        return;
    if (want->next_row == NULL) {
        ret_some->ranges[ret_some->count++] = (esdm_codec_range){(size_t) from, (size_t) to};
        return;
    }
    bool few = true;
    while (want->next_row(want->user, &from, &to)) { /* to its end: it begins again then */
        few = few && ret_some->count < RANGES_MOST;
        if (few)
            ret_some->ranges[ret_some->count++] = (esdm_codec_range){(size_t) from, (size_t) to};
    }
    if (!few)
        ret_some->count = 0;
}

void
esdm__some_clear(esdm__some *some)
{
    free(some->ranges);
    *some = (esdm__some){0};
}

esdm_codec_range *
esdm__some_of(const esdm__some *some, const esdm__blocks *blocks, uint32_t block, size_t *ret_count)
{
    uint64_t start = esdm__blocks_start(blocks, block);
    uint64_t end = esdm__blocks_start(blocks, block + 1);
    size_t count = 0;
    *ret_count = 0;
    if (some->count == 0)
        return NULL;
    esdm_codec_range *ranges = malloc(some->count * sizeof *ranges);
    if (ranges == NULL)
        return NULL;
    for (size_t i = 0; i < some->count; i++) {
        uint64_t from = some->ranges[i].from > start ? some->ranges[i].from : start;
        uint64_t to = some->ranges[i].to < end ? some->ranges[i].to : end;
        if (from < to)
            ranges[count++] = (esdm_codec_range){(size_t) (from - start), (size_t) (to - start)};
    }
    if (count == 0) {
        free(ranges);
        return NULL;
    }
    *ret_count = count;
    return ranges;
}

bool
esdm__some_is_worth(esdm__cache *cache, const esdm__cache_key *key, size_t block_bytes)
{
    esdm__cache_key note = *key;
    uint64_t all = 0;
    if (!esdm__cache_takes(cache, block_bytes))
        return true;
    for (uint32_t i = 0; i < NOTES_MOST; i++) {
        uint64_t bytes;
        note.layers = FIRST_NOTE + i;
        if (!esdm__cache_get(cache, &note, &bytes, sizeof bytes))
            return true;
        all += bytes;
        if (all >= block_bytes)
            return false;
    }
    return false;
}

void
esdm__some_note(esdm__cache *cache, const esdm__cache_key *key, size_t bytes)
{
    esdm__cache_key note = *key;
    uint64_t told = bytes;
    for (uint32_t i = 0; i < NOTES_MOST; i++) {
        note.layers = FIRST_NOTE + i;
        if (!esdm__cache_has(cache, &note)) {
            esdm__cache_put(cache, &note, &told, sizeof told);
            return;
        }
    }
}
