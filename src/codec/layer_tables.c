/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "codec/layer_tables.h"

#include <string.h>

#include "codec/blob_bytes.h"

void
esdm__layer_tables_scale(uint32_t *counts)
{
    uint64_t sum = 0;
    uint32_t used = 0;
    uint32_t largest = 0;
    for (uint32_t s = 0; s < ESDM__LAYER_SYMBOLS; s++)
        sum += counts[s];
    if (sum == 0)
        return;
    for (uint32_t s = 0; s < ESDM__LAYER_SYMBOLS; s++) {
        if (counts[s] > 0) {
            uint64_t scaled =
                (uint64_t) counts[s] * (ESDM__LAYER_TOTAL - ESDM__LAYER_SYMBOLS) / sum;
            counts[s] = (uint32_t) scaled + 1;
        }
        used += counts[s];
        largest = counts[s] > counts[largest] ? s : largest;
    }
    counts[largest] += ESDM__LAYER_TOTAL - used;
}

void
esdm__layer_tables_start(esdm__layer_tables *t)
{
    for (uint32_t c = 0; c < ESDM__LAYER_CONTEXTS; c++) {
        uint32_t at = 0;
        for (uint32_t s = 0; s < ESDM__LAYER_SYMBOLS; s++) {
            t->start[c][s] = at;
            at += t->frequency[c][s];
        }
    }
}

size_t
esdm__layer_tables_write(const esdm__layer_tables *t, uint8_t *out, size_t room)
{
    size_t at = 0;
    for (uint32_t c = 0; c < ESDM__LAYER_CONTEXTS; c++) {
        uint16_t count = 0;
        size_t head = at;
        if (room - at < 2u + 3u * ESDM__LAYER_SYMBOLS)
            return 0;
        at += 2;
        for (uint32_t s = 0; s < ESDM__LAYER_SYMBOLS; s++) {
            if (t->frequency[c][s] == 0)
                continue;
            out[at] = (uint8_t) s;
            put_u16(out + at + 1, (uint16_t) t->frequency[c][s]);
            at += 3;
            count++;
        }
        put_u16(out + head, count);
    }
    return at;
}

bool
esdm__layer_tables_read(const uint8_t *stored, size_t bytes, esdm__layer_tables *t)
{
    size_t at = 0;
    memset(t, 0, sizeof *t);
    for (uint32_t c = 0; c < ESDM__LAYER_CONTEXTS; c++) {
        uint32_t sum = 0;
        if (bytes - at < 2)
            return false;
        uint32_t count = get_u16(stored + at);
        at += 2;
        if (count > ESDM__LAYER_SYMBOLS || bytes - at < 3u * count)
            return false;
        for (uint32_t k = 0; k < count; k++, at += 3) {
            uint32_t symbol = stored[at];
            uint32_t frequency = get_u16(stored + at + 1);
            if (symbol >= ESDM__LAYER_SYMBOLS || t->frequency[c][symbol] > 0 || frequency == 0)
                return false;
            t->frequency[c][symbol] = frequency;
            sum += frequency;
        }
        if (sum != ESDM__LAYER_TOTAL && count > 0)
            return false;
    }
    esdm__layer_tables_start(t);
    return at == bytes;
}
