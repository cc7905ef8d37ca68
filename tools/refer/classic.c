/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Headers of netCDF classic files:
 * https://docs.unidata.ucar.edu/nug/current/file_format_specifications.html */

#include "refer/refer.h"

#include <stdlib.h>
#include <string.h>

typedef struct reader {
    const uint8_t *data;
    size_t bytes;
    size_t at;
    unsigned version; /* 1, 2, 5 */
    classic_result result;
} reader;

static uint64_t
take(reader *r, size_t bytes)
{
    uint64_t value = 0;
    if (r->result != CLASSIC_OK)
        return 0;
    if (r->bytes - r->at < bytes) {
        r->result = CLASSIC_SHORT;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | r->data[r->at++];
    return value;
}

static void
wrong(reader *r)
{
    if (r->result == CLASSIC_OK)
        r->result = CLASSIC_WRONG;
}

static uint64_t
count(reader *r)
{
    return take(r, r->version == 5 ? 8 : 4);
}

static void
skip(reader *r, uint64_t bytes)
{
    if (bytes > SIZE_MAX - 3)
        wrong(r);
    bytes = (bytes + 3) & ~(uint64_t) 3;
    if (r->result == CLASSIC_OK && r->bytes - r->at < bytes)
        r->result = CLASSIC_SHORT;
    if (r->result == CLASSIC_OK)
        r->at += (size_t) bytes;
}

static size_t
type_bytes(uint64_t type)
{
    static const uint8_t bytes[] = {0, 1, 1, 2, 4, 4, 8, 1, 2, 4, 8, 8};
    return type < sizeof bytes ? bytes[type] : 0;
}

/* Number of what follows, of which each takes at least `least` bytes. */
static uint64_t
list(reader *r, uint64_t tag, size_t least)
{
    uint64_t is = take(r, 4);
    uint64_t n = count(r);
    if (is != tag && (is != 0 || n != 0))
        wrong(r);
    if (r->result == CLASSIC_OK && n > r->bytes / least)
        r->result = n > UINT32_MAX ? CLASSIC_WRONG : CLASSIC_SHORT;
    return r->result == CLASSIC_OK ? n : 0;
}

static void
skip_attributes(reader *r)
{
    uint64_t n = list(r, 12, 12);
    for (uint64_t i = 0; i < n && r->result == CLASSIC_OK; i++) {
        uint64_t bytes = 0;
        skip(r, count(r));
        size_t each = type_bytes(take(r, 4));
        uint64_t values = count(r);
        if (each == 0 || __builtin_mul_overflow(values, each, &bytes))
            wrong(r);
        skip(r, bytes);
    }
}

static void
variable(reader *r, const uint64_t *lengths, uint64_t ndimensions, classic_variable *v)
{
    uint64_t elements = 1;
    skip(r, count(r));
    uint64_t rank = count(r);
    for (uint64_t i = 0; i < rank && r->result == CLASSIC_OK; i++) {
        uint64_t d = count(r);
        if (r->result != CLASSIC_OK)
            return;
        if (d >= ndimensions || (lengths[d] == 0 && i > 0)) {
            wrong(r);
            return;
        }
        if (lengths[d] == 0)
            v->record = true;
        else if (__builtin_mul_overflow(elements, lengths[d], &elements))
            wrong(r);
    }
    skip_attributes(r);
    size_t each = type_bytes(take(r, 4));
    (void) count(r); /* vsize: computed */
    v->begin = take(r, r->version == 1 ? 4 : 8);
    if (each == 0 || __builtin_mul_overflow(elements, each, &v->bytes) || v->bytes > INT64_MAX ||
        v->begin > INT64_MAX)
        wrong(r);
}

/* With exactly one record variable records are not padded. */
static void
record_length(reader *r, classic_header *h)
{
    size_t n = 0;
    uint64_t only = 0;
    for (size_t i = 0; i < h->nvariables; i++) {
        const classic_variable *v = &h->variables[i];
        if (!v->record)
            continue;
        n++;
        only = v->bytes;
        if (__builtin_add_overflow(h->record_bytes, (v->bytes + 3) & ~(uint64_t) 3,
                                   &h->record_bytes))
            wrong(r);
    }
    if (n == 1)
        h->record_bytes = only;
}

/* A file to which records are being written does not say how many there are. */
static void
streamed(classic_header *h, uint64_t file_bytes)
{
    uint64_t begin = UINT64_MAX;
    for (size_t i = 0; i < h->nvariables; i++) {
        if (h->variables[i].record && h->variables[i].begin < begin)
            begin = h->variables[i].begin;
    }
    h->records =
        h->record_bytes > 0 && begin < file_bytes ? (file_bytes - begin) / h->record_bytes : 0;
}

static uint64_t *
dimensions(reader *r, uint64_t *ret_count)
{
    *ret_count = list(r, 10, 8);
    uint64_t *lengths = calloc((size_t) *ret_count + 1, sizeof *lengths);
    for (uint64_t i = 0; lengths != NULL && i < *ret_count && r->result == CLASSIC_OK; i++) {
        skip(r, count(r));
        lengths[i] = count(r);
    }
    return lengths;
}

classic_result
classic_parse(const uint8_t *data, size_t bytes, uint64_t file_bytes, classic_header *ret_header)
{
    reader r = {.data = data, .bytes = bytes};
    classic_header h = {0};
    uint64_t ndimensions = 0;
    uint64_t magic = take(&r, 3);
    r.version = (unsigned) take(&r, 1);
    if (magic != 0x434446 || (r.version != 1 && r.version != 2 && r.version != 5))
        wrong(&r);
    uint64_t streaming = r.version == 5 ? UINT64_MAX : UINT32_MAX;
    h.records = count(&r);
    uint64_t *lengths = dimensions(&r, &ndimensions);
    skip_attributes(&r);
    h.nvariables = (size_t) list(&r, 11, 24);
    h.variables = calloc(h.nvariables + 1, sizeof *h.variables);
    if (lengths == NULL || h.variables == NULL)
        wrong(&r);
    for (size_t i = 0; i < h.nvariables && r.result == CLASSIC_OK; i++)
        variable(&r, lengths, ndimensions, &h.variables[i]);
    free(lengths);
    if (r.result == CLASSIC_OK)
        record_length(&r, &h);
    if (r.result != CLASSIC_OK) {
        free(h.variables);
        return r.result;
    }
    if (h.records == streaming)
        streamed(&h, file_bytes);
    *ret_header = h;
    return CLASSIC_OK;
}

bool
classic_read(classic_reader read, void *file, uint64_t file_bytes, classic_header *ret_header,
             uint8_t **ret_data, size_t *ret_bytes)
{
    static const size_t steps[] = {(size_t) 128 << 10, (size_t) 4 << 20, (size_t) 64 << 20,
                                   (size_t) 1 << 30};
    for (size_t i = 0; i < sizeof steps / sizeof *steps; i++) {
        size_t n = 0;
        size_t bytes = file_bytes < steps[i] ? (size_t) file_bytes : steps[i];
        uint8_t *data = malloc(bytes + 1);
        classic_result result = CLASSIC_WRONG;
        if (data != NULL && read(file, data, bytes, &n))
            result = classic_parse(data, n, file_bytes, ret_header);
        if (result == CLASSIC_OK && ret_data != NULL) {
            *ret_data = data;
            *ret_bytes = n;
            return true;
        }
        free(data);
        if (result != CLASSIC_SHORT || n < steps[i])
            return result == CLASSIC_OK;
    }
    return false;
}
