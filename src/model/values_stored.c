/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file The stored form of values (model/usertype.h). */

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/checked.h"
#include "base/error.h"
#include "model/values.h"

/* Bytes of an element as it lies in memory when that is its stored form, else 0. */
static size_t
plain_bytes(esdm__typeref of)
{
    if (of.user != NULL)
        return of.user->plain ? of.user->memory_bytes : 0;
    return of.type != ESDM_TYPE_STRING ? esdm_type_size(of.type) : 0;
}

/* ---- size ---------------------------------------------------------------------------------- */

static uint64_t
varint_bytes(uint64_t value)
{
    uint64_t bytes = 1;
    for (; value >= 128; value >>= 7)
        bytes++;
    return bytes;
}

static uint64_t
sum(uint64_t a, uint64_t b)
{
    return a > UINT64_MAX - b ? UINT64_MAX : a + b;
}

static uint64_t
stored_bytes_of_one(esdm__typeref of, const char *value)
{
    uint64_t bytes = 0;
    if (of.user == NULL) {
        const char *text;
        memcpy(&text, value, sizeof text);
        bytes = text != NULL ? strlen(text) : 0;
        return varint_bytes(text != NULL ? bytes + 1 : 0) + bytes;
    }
    if (of.user->kind == ESDM_CLASS_VLEN) {
        esdm_vlen vlen;
        memcpy(&vlen, value, sizeof vlen);
        if (vlen.values != NULL)
            bytes = esdm__values_stored_bytes(of.user->base_of, vlen.count, vlen.values);
        return sum(varint_bytes(vlen.count), bytes);
    }
    for (size_t i = 0; i < of.user->step_count; i++) {
        const esdm__step *step = &of.user->steps[i];
        bytes = sum(bytes, step->bytes > 0 ? step->bytes
                                           : esdm__values_stored_bytes(step->of, step->count,
                                                                       value + step->offset));
    }
    return bytes;
}

uint64_t
esdm__values_stored_bytes(esdm__typeref of, uint64_t count, const void *values)
{
    uint64_t bytes = 0;
    const char *at = values;
    if (!esdm__typeref_is_variable(of)) {
        bytes = of.user != NULL ? of.user->stored_bytes : esdm_type_size(of.type);
        return esdm__mul_u64(bytes, count, &bytes) ? bytes : UINT64_MAX;
    }
    for (uint64_t i = 0; i < count; i++, at += esdm__typeref_bytes(of))
        bytes = sum(bytes, stored_bytes_of_one(of, at));
    return bytes;
}

/* ---- fixed size ---------------------------------------------------------------------------- */

static inline void
copy_bytes(void *to, const void *from, size_t bytes)
{
    switch (bytes) { /* constant sizes become single moves */
    case 4:
        memcpy(to, from, 4);
        break;
    case 8:
        memcpy(to, from, 8);
        break;
    default:
        memcpy(to, from, bytes);
        break;
    }
}

static uint8_t *
pack_steps(const esdm__usertype *user, const char *value, uint8_t *to)
{
    for (size_t i = 0; i < user->step_count; i++) {
        const esdm__step *step = &user->steps[i];
        if (step->bytes > 0) {
            copy_bytes(to, value + step->offset, step->bytes);
            to += step->bytes;
        } else {
            size_t bytes = esdm__typeref_bytes(step->of);
            esdm__values_pack(step->of, step->count, value + step->offset, (int64_t) bytes, to);
            to += step->count * step->of.user->stored_bytes;
        }
    }
    return to;
}

void
esdm__values_pack(esdm__typeref of, uint64_t count, const void *values, int64_t step,
                  uint8_t *ret_stored)
{
    const char *at = values;
    size_t plain = plain_bytes(of);
    if (plain > 0 && step == (int64_t) plain) {
        memcpy(ret_stored, values, (size_t) count * plain);
        return;
    }
    for (uint64_t i = 0; i < count; i++, at += step) {
        if (plain > 0) {
            copy_bytes(ret_stored, at, plain);
            ret_stored += plain;
        } else {
            ret_stored = pack_steps(of.user, at, ret_stored);
        }
    }
}

static const uint8_t *
unpack_steps(const esdm__usertype *user, const uint8_t *from, char *value)
{
    for (size_t i = 0; i < user->step_count; i++) {
        const esdm__step *step = &user->steps[i];
        if (step->bytes > 0) {
            copy_bytes(value + step->offset, from, step->bytes);
            from += step->bytes;
        } else {
            size_t bytes = esdm__typeref_bytes(step->of);
            esdm__values_unpack(step->of, step->count, from, value + step->offset, (int64_t) bytes);
            from += step->count * step->of.user->stored_bytes;
        }
    }
    return from;
}

void
esdm__values_unpack(esdm__typeref of, uint64_t count, const uint8_t *stored, void *values,
                    int64_t step)
{
    char *at = values;
    size_t plain = plain_bytes(of);
    if (plain > 0 && step == (int64_t) plain) {
        memcpy(values, stored, (size_t) count * plain);
        return;
    }
    for (uint64_t i = 0; i < count; i++, at += step) {
        if (plain > 0) {
            copy_bytes(at, stored, plain);
            stored += plain;
        } else {
            stored = unpack_steps(of.user, stored, at);
        }
    }
}

/* ---- encoding ------------------------------------------------------------------------------ */

static void
encode_text(const char *value, esdm__buffer *out)
{
    const char *text;
    memcpy(&text, value, sizeof text);
    size_t length = text != NULL ? strlen(text) : 0;
    esdm__buffer_put_varint(out, text != NULL ? (uint64_t) length + 1 : 0);
    esdm__buffer_put(out, text, length);
}

static esdm_status
encode_one(esdm__typeref of, const char *value, esdm__buffer *out, esdm_error *err)
{
    if (of.user == NULL) {
        encode_text(value, out);
        return ESDM_OK;
    }
    if (of.user->kind == ESDM_CLASS_VLEN) {
        esdm_vlen vlen;
        memcpy(&vlen, value, sizeof vlen);
        if (vlen.count > 0 && vlen.values == NULL)
            return esdm__error_set(err, ESDM_EINVAL,
                                   "an array of %zu elements has no memory (NULL)", vlen.count);
        esdm__buffer_put_varint(out, vlen.count);
        return esdm__values_encode(of.user->base_of, vlen.count, vlen.values, out, err);
    }
    esdm_status st = ESDM_OK;
    for (size_t i = 0; i < of.user->step_count && st == ESDM_OK; i++) {
        const esdm__step *step = &of.user->steps[i];
        if (step->bytes > 0)
            esdm__buffer_put(out, value + step->offset, step->bytes);
        else
            st = esdm__values_encode(step->of, step->count, value + step->offset, out, err);
    }
    return st;
}

esdm_status
esdm__values_encode(esdm__typeref of, uint64_t count, const void *values, esdm__buffer *out,
                    esdm_error *err)
{
    const char *at = values;
    size_t step = esdm__typeref_bytes(of);
    if (count == 0)
        return ESDM_OK;
    if (!esdm__typeref_is_variable(of)) {
        uint64_t bytes = esdm__values_stored_bytes(of, count, values);
        uint8_t *to = bytes <= PTRDIFF_MAX ? esdm__buffer_reserve(out, (size_t) bytes) : NULL;
        if (to == NULL) {
            out->failed = true;
            return ESDM_OK;
        }
        esdm__values_pack(of, count, values, (int64_t) step, to);
        out->bytes += (size_t) bytes;
        return ESDM_OK;
    }
    for (uint64_t i = 0; i < count && !out->failed; i++, at += step) {
        esdm_status st = encode_one(of, at, out, err);
        if (st != ESDM_OK)
            return st;
    }
    return ESDM_OK;
}

/* ---- decoding ------------------------------------------------------------------------------ */

static esdm_status
too_short(esdm_error *err)
{
    return esdm__error_set(err, ESDM_ECORRUPT, "stored values end in the middle of an element");
}

static esdm_status
decode_text(esdm__cursor *cursor, char *value, esdm_error *err)
{
    uint64_t code = esdm__cursor_varint(cursor);
    if (cursor->failed || (code > 0 && code - 1 > esdm__cursor_left(cursor)))
        return too_short(err);
    if (code == 0)
        return ESDM_OK; /* NULL */
    size_t length = (size_t) (code - 1);
    const uint8_t *bytes = esdm__cursor_take(cursor, length);
    if (length > 0 && memchr(bytes, '\0', length) != NULL)
        return esdm__error_set(err, ESDM_ECORRUPT, "a stored text contains NUL");
    char *text = malloc(length + 1);
    if (text == NULL)
        return esdm__error_nomem(err, length + 1, "a text");
    if (length > 0)
        memcpy(text, bytes, length);
    text[length] = '\0';
    memcpy(value, &text, sizeof text);
    return ESDM_OK;
}

/* Fewest stored bytes of an element. */
static uint64_t
least_bytes(esdm__typeref of)
{
    if (of.user != NULL)
        return of.user->stored_bytes;
    return of.type == ESDM_TYPE_STRING ? 1 : esdm_type_size(of.type);
}

static esdm_status
decode_array(esdm__typeref base, esdm__cursor *cursor, char *value, esdm_error *err)
{
    esdm_vlen vlen = {0, NULL};
    uint64_t count = esdm__cursor_varint(cursor);
    size_t bytes;
    if (cursor->failed || count > esdm__cursor_left(cursor) / least_bytes(base))
        return too_short(err);
    if (count == 0)
        return ESDM_OK;
    if (!esdm__mul_size((size_t) count, esdm__typeref_bytes(base), &bytes) || bytes > PTRDIFF_MAX)
        return esdm__error_nomem(err, SIZE_MAX, "an array");
    vlen.values = malloc(bytes);
    if (vlen.values == NULL)
        return esdm__error_nomem(err, bytes, "an array");
    vlen.count = (size_t) count;
    esdm_status st = esdm__values_decode(base, count, cursor, vlen.values, err);
    if (st != ESDM_OK) {
        free(vlen.values);
        return st;
    }
    memcpy(value, &vlen, sizeof vlen);
    return ESDM_OK;
}

/* The element's memory is zero: what was not decoded can be cleared. */
static esdm_status
decode_one(esdm__typeref of, esdm__cursor *cursor, char *value, esdm_error *err)
{
    if (of.user == NULL)
        return decode_text(cursor, value, err);
    if (of.user->kind == ESDM_CLASS_VLEN)
        return decode_array(of.user->base_of, cursor, value, err);
    for (size_t i = 0; i < of.user->step_count; i++) {
        const esdm__step *step = &of.user->steps[i];
        if (step->bytes > 0) {
            const uint8_t *bytes = esdm__cursor_take(cursor, step->bytes);
            if (bytes == NULL)
                return too_short(err);
            memcpy(value + step->offset, bytes, step->bytes);
            continue;
        }
        esdm_status st =
            esdm__values_decode(step->of, step->count, cursor, value + step->offset, err);
        if (st != ESDM_OK)
            return st;
    }
    return ESDM_OK;
}

esdm_status
esdm__values_decode(esdm__typeref of, uint64_t count, esdm__cursor *cursor, void *values,
                    esdm_error *err)
{
    char *at = values;
    size_t step = esdm__typeref_bytes(of);
    if (count == 0)
        return ESDM_OK;
    if (count > esdm__cursor_left(cursor) / least_bytes(of))
        return too_short(err);
    memset(values, 0, (size_t) count * step);
    if (!esdm__typeref_is_variable(of)) {
        const uint8_t *bytes = esdm__cursor_take(cursor, (size_t) (count * least_bytes(of)));
        esdm__values_unpack(of, count, bytes, values, (int64_t) step);
        return ESDM_OK;
    }
    for (uint64_t i = 0; i < count; i++, at += step) {
        esdm_status st = decode_one(of, cursor, at, err);
        if (st != ESDM_OK) {
            esdm__values_clear(of, i + 1, values);
            return st;
        }
    }
    return ESDM_OK;
}
