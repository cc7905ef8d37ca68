/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/document_put.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "model/names.h"

/* ---- texts --------------------------------------------------------------------------------- */

void
esdm__put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

static void
put_escape(esdm__buffer *out, unsigned char c)
{
    static const char hex[] = "0123456789abcdef";
    char escape[6] = {'\\', 'u', '0', '0', hex[c >> 4], hex[c & 15]};
    switch (c) {
    case '"':
    case '\\':
        escape[1] = (char) c;
        break;
    case '\n':
        escape[1] = 'n';
        break;
    case '\t':
        escape[1] = 't';
        break;
    default:
        esdm__buffer_put(out, escape, 6);
        return;
    }
    esdm__buffer_put(out, escape, 2);
}

void
esdm__put_string(esdm__buffer *out, const char *text, size_t bytes)
{
    size_t start = 0;
    esdm__buffer_put_u8(out, '"');
    for (size_t i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char) text[i];
        if (c >= 0x20 && c != '"' && c != '\\')
            continue;
        esdm__buffer_put(out, text + start, i - start);
        put_escape(out, c);
        start = i + 1;
    }
    esdm__buffer_put(out, text + start, bytes - start);
    esdm__buffer_put_u8(out, '"');
}

void
esdm__put_base64(esdm__buffer *out, const void *data, size_t bytes)
{

    const unsigned char *from = data;
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    esdm__put_text(out, "{\"base64\":\"");
    for (size_t i = 0; i < bytes; i += 3) {
        size_t n = bytes - i < 3 ? bytes - i : 3;
        uint32_t group = (uint32_t) from[i] << 16;
        group |= n > 1 ? (uint32_t) from[i + 1] << 8 : 0;
        group |= n > 2 ? from[i + 2] : 0;
        char text[4] = {digits[group >> 18], digits[group >> 12 & 63],
                        (char) (n > 1 ? digits[group >> 6 & 63] : '='),
                        (char) (n > 2 ? digits[group & 63] : '=')};
        esdm__buffer_put(out, text, 4);
    }
    esdm__put_text(out, "\"}");
}

void
esdm__put_bytes(esdm__buffer *out, const char *text, size_t bytes)
{
    if (esdm__utf8_is_valid(text, bytes)) {
        esdm__put_string(out, text, bytes);
        return;
    }
    esdm__put_base64(out, text, bytes);
}

/* ---- numbers ------------------------------------------------------------------------------- */

void
esdm__put_u64(esdm__buffer *out, uint64_t value)
{
    char digits[20];
    size_t at = sizeof digits;
    do {
        digits[--at] = (char) ('0' + value % 10);
        value /= 10;
    } while (value > 0);
    esdm__buffer_put(out, digits + at, sizeof digits - at);
}

void
esdm__put_large_u64(esdm__buffer *out, uint64_t value)
{
    bool text = value > INT64_MAX;
    if (text)
        esdm__buffer_put_u8(out, '"');
    esdm__put_u64(out, value);
    if (text)
        esdm__buffer_put_u8(out, '"');
}

static void
put_i64(esdm__buffer *out, int64_t value)
{
    if (value < 0)
        esdm__buffer_put_u8(out, '-');
    esdm__put_u64(out, value < 0 ? 0 - (uint64_t) value : (uint64_t) value);
}

/* A number that looks like an integer gets ".0", so that readers keep -0.0 and the kind. */
static void
put_float_text(esdm__buffer *out, const char *text)
{
    esdm__put_text(out, text);
    if (strpbrk(text, ".e") == NULL)
        esdm__put_text(out, ".0");
}

/* The fewest digits that give the value back. The caller has set the "C" locale. */
static void
put_f64(esdm__buffer *out, double value)
{
    char text[32];
    if (!isfinite(value)) {
        uint64_t bits;
        memcpy(&bits, &value, sizeof bits);
        (void) snprintf(text, sizeof text, "\"0x%016" PRIx64 "\"", bits);
        esdm__put_text(out, text);
        return;
    }
    for (int digits = 15; digits <= 17; digits++) {
        (void) snprintf(text, sizeof text, "%.*g", digits, value);
        if (strtod(text, NULL) == value)
            break;
    }
    put_float_text(out, text);
}

static void
put_f32(esdm__buffer *out, float value)
{
    char text[32];
    if (!isfinite(value)) {
        uint32_t bits;
        memcpy(&bits, &value, sizeof bits);
        (void) snprintf(text, sizeof text, "\"0x%08" PRIx32 "\"", bits);
        esdm__put_text(out, text);
        return;
    }
    for (int digits = 6; digits <= 9; digits++) {
        (void) snprintf(text, sizeof text, "%.*g", digits, (double) value);
        if (strtof(text, NULL) == value)
            break;
    }
    put_float_text(out, text);
}

/* ---- values -------------------------------------------------------------------------------- */

void
esdm__put_value(esdm__buffer *out, esdm_type type, const void *value)
{
    switch (type) {
    case ESDM_TYPE_INT8:
        put_i64(out, *(const int8_t *) value);
        break;
    case ESDM_TYPE_INT16:
        put_i64(out, *(const int16_t *) value);
        break;
    case ESDM_TYPE_INT32:
        put_i64(out, *(const int32_t *) value);
        break;
    case ESDM_TYPE_INT64:
        put_i64(out, *(const int64_t *) value);
        break;
    case ESDM_TYPE_UINT8:
        esdm__put_u64(out, *(const uint8_t *) value);
        break;
    case ESDM_TYPE_UINT16:
        esdm__put_u64(out, *(const uint16_t *) value);
        break;
    case ESDM_TYPE_UINT32:
        esdm__put_u64(out, *(const uint32_t *) value);
        break;
    case ESDM_TYPE_UINT64:
        esdm__put_large_u64(out, *(const uint64_t *) value);
        break;
    case ESDM_TYPE_FLOAT32:
        put_f32(out, *(const float *) value);
        break;
    case ESDM_TYPE_FLOAT64:
        put_f64(out, *(const double *) value);
        break;
    case ESDM_TYPE_CHAR:
        esdm__put_bytes(out, value, 1);
        break;
    default: { /* ESDM_TYPE_STRING: there is no other */
        const char *text = *(const char *const *) value;
        if (text == NULL)
            esdm__put_text(out, "null");
        else
            esdm__put_bytes(out, text, strlen(text));
        break;
    }
    }
}
