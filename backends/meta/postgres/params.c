/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Values in the server's binary format: big-endian, arrays with a head. */

#include <endian.h>
#include <string.h>

#include "base/ids.h"
#include "link.h"

/* Numbers of built-in types: fixed for ever (catalog/pg_type.dat). */
enum { BOOL = 16, BYTEA = 17, INT8 = 20, TEXT = 25, UUID = 2950 };
enum { BYTEA_ARRAY = 1001, TEXT_ARRAY = 1009, INT8_ARRAY = 1016 };

/* ---- parameters ----------------------------------------------------------------------------- */

void
postgres__params_clear(postgres__params *params)
{
    esdm__buffer_clear(&params->memory);
}

static void
begin(postgres__params *params, Oid type)
{
    params->types[params->count] = type;
    params->offsets[params->count] = params->memory.bytes;
}

static void
end(postgres__params *params)
{
    params->lengths[params->count] = (int) (params->memory.bytes - params->offsets[params->count]);
    params->count++;
}

static void
put_int32(postgres__params *params, uint32_t value)
{
    uint32_t big = htobe32(value);
    esdm__buffer_put(&params->memory, &big, sizeof big);
}

static void
put_int64(postgres__params *params, uint64_t value)
{
    uint64_t big = htobe64(value);
    esdm__buffer_put(&params->memory, &big, sizeof big);
}

void
postgres__put_bool(postgres__params *params, bool value)
{
    begin(params, BOOL);
    esdm__buffer_put_u8(&params->memory, value);
    end(params);
}

void
postgres__put_int(postgres__params *params, uint64_t value)
{
    begin(params, INT8);
    put_int64(params, value);
    end(params);
}

void
postgres__put_string(postgres__params *params, const char *text)
{
    begin(params, TEXT);
    if (text == NULL)
        params->offsets[params->count] = SIZE_MAX;
    else
        esdm__buffer_put(&params->memory, text, strlen(text));
    if (text == NULL)
        params->lengths[params->count++] = 0;
    else
        end(params);
}

static uint8_t
digit(char c)
{
    return (uint8_t) (c <= '9' ? c - '0' : c - 'a' + 10);
}

void
postgres__put_token(postgres__params *params, char *ret_token)
{
    esdm__uuid_new(ret_token);
    begin(params, UUID);
    for (size_t i = 0; i < 32; i += 2)
        esdm__buffer_put_u8(&params->memory,
                            (uint8_t) (digit(ret_token[i]) << 4 | digit(ret_token[i + 1])));
    end(params);
    params->again = params->count + 1;
    postgres__put_bool(params, false);
}

void
postgres__params_repeat(postgres__params *params)
{
    if (params != NULL && params->again > 0 && !params->memory.failed)
        params->memory.data[params->offsets[params->again - 1]] = 1;
}

bool
postgres__params_repeated(const postgres__params *params)
{
    return params->again > 0 && !params->memory.failed &&
           params->memory.data[params->offsets[params->again - 1]] != 0;
}

/* ---- arrays --------------------------------------------------------------------------------- */

void
postgres__array_begin(postgres__params *params, postgres__element type)
{
    static const Oid arrays[] = {INT8_ARRAY, TEXT_ARRAY, BYTEA_ARRAY};
    static const uint32_t elements[] = {INT8, TEXT, BYTEA};
    begin(params, arrays[type]);
    params->array = params->memory.bytes;
    params->elements = 0;
    put_int32(params, 1); /* dimensions */
    put_int32(params, 1); /* may contain NULL */
    put_int32(params, elements[type]);
    put_int32(params, 0); /* elements: set at the end */
    put_int32(params, 1); /* lower bound */
}

void
postgres__array_int(postgres__params *params, uint64_t value)
{
    put_int32(params, sizeof value);
    put_int64(params, value);
    params->elements++;
}

void
postgres__array_bytes(postgres__params *params, const void *data, size_t bytes)
{
    put_int32(params, (uint32_t) bytes);
    if (bytes > 0)
        esdm__buffer_put(&params->memory, data, bytes);
    params->elements++;
}

void
postgres__array_null(postgres__params *params)
{
    put_int32(params, UINT32_MAX);
    params->elements++;
}

void
postgres__array_end(postgres__params *params)
{
    uint32_t big = htobe32(params->elements);
    uint32_t none = 0;
    if (!params->memory.failed) {
        uint8_t *head = params->memory.data + params->array;
        memcpy(head + 12, &big, sizeof big);
        if (params->elements == 0) { /* an empty array has no dimension */
            memcpy(head, &none, sizeof none);
            params->memory.bytes = params->array + 12;
        }
    }
    end(params);
}

/* ---- results -------------------------------------------------------------------------------- */

uint64_t
postgres__u64(const PGresult *result, int row, int column)
{
    uint64_t big = 0;
    if (PQgetisnull(result, row, column) || PQgetlength(result, row, column) != sizeof big)
        return 0;
    memcpy(&big, PQgetvalue(result, row, column), sizeof big);
    return be64toh(big);
}

double
postgres__double(const PGresult *result, int row, int column)
{
    uint64_t bits = postgres__u64(result, row, column);
    double number;
    memcpy(&number, &bits, sizeof number);
    return number;
}

bool
postgres__bool(const PGresult *result, int row, int column)
{
    return !PQgetisnull(result, row, column) && PQgetlength(result, row, column) == 1 &&
           PQgetvalue(result, row, column)[0] != 0;
}

const char *
postgres__text(const PGresult *result, int row, int column)
{
    return PQgetvalue(result, row, column);
}

void
postgres__u64s(const PGresult *result, int row, int column, uint64_t *ret_values, size_t count)
{
    const char *data = PQgetvalue(result, row, column);
    size_t bytes = (size_t) PQgetlength(result, row, column);
    size_t at = 20; /* after the head of an array with one dimension */
    for (size_t i = 0; i < count; i++, at += 12) {
        uint64_t big = 0;
        if (at + 12 <= bytes)
            memcpy(&big, data + at + 4, sizeof big);
        ret_values[i] = be64toh(big);
    }
}
