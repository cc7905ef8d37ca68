/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Columns of numbers in index pages. */

#include "layout/page.h"

/* Columns of numbers; the format is described in page.h. */

enum column_kind { COLUMN_ARITHMETIC = 0, COLUMN_DIFFERENCES = 1 };

static bool
is_arithmetic(const uint64_t *values, uint32_t count)
{
    for (uint32_t i = 2; i < count; i++) {
        if (values[i] - values[i - 1] != values[1] - values[0])
            return false;
    }
    return true;
}

void
esdm__column_put(esdm__buffer *buffer, const uint64_t *values, uint32_t count)
{
    if (is_arithmetic(values, count)) {
        esdm__buffer_put_u8(buffer, COLUMN_ARITHMETIC);
        esdm__buffer_put_varint(buffer, count > 0 ? values[0] : 0);
        esdm__buffer_put_svarint(buffer, count > 1 ? (int64_t) (values[1] - values[0]) : 0);
        return;
    }
    esdm__buffer_put_u8(buffer, COLUMN_DIFFERENCES);
    uint64_t last = 0;
    for (uint32_t i = 0; i < count; i++) {
        esdm__buffer_put_svarint(buffer, (int64_t) (values[i] - last));
        last = values[i];
    }
}

void
esdm__column_get(esdm__cursor *cursor, uint64_t *ret_values, uint32_t count)
{
    uint8_t kind = esdm__cursor_u8(cursor);
    if (kind == COLUMN_ARITHMETIC) {
        uint64_t value = esdm__cursor_varint(cursor);
        uint64_t step = (uint64_t) esdm__cursor_svarint(cursor);
        for (uint32_t i = 0; i < count; i++, value += step)
            ret_values[i] = value;
    } else if (kind == COLUMN_DIFFERENCES) {
        uint64_t value = 0;
        for (uint32_t i = 0; i < count; i++) {
            value += (uint64_t) esdm__cursor_svarint(cursor);
            ret_values[i] = value;
        }
    } else {
        memset(ret_values, 0, count * sizeof *ret_values);
        cursor->failed = true;
    }
}
