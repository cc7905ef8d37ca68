/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Values as XDR has them (RFC 4506), made piece by piece. */

#include "esdm-serve/dap.h"

#include <stdlib.h>
#include <string.h>

#define PIECE_BYTES (256u << 10) /* of values that are read at once */
#define TEXT_BYTES  64u          /* that a text is counted as */

struct dap_data {
    GArray *parts; /* dap_part */
    guint part;
    bool begun;         /* the lengths of the part were put */
    uint64_t done;      /* elements of the part */
    GByteArray *ready;  /* encoded, and not yet given */
    size_t given;       /* of them */
    unsigned char *raw; /* as they are read */
    size_t raw_bytes;
};

dap_data *
dap_data_new(GArray *parts, GString *head)
{
    dap_data *data = g_new0(dap_data, 1);
    data->parts = parts;
    data->ready = g_byte_array_new();
    g_byte_array_append(data->ready, (const guint8 *) head->str, (guint) head->len);
    g_string_free(head, true);
    return data;
}

void
dap_data_free(dap_data *data)
{
    if (data == NULL)
        return;
    g_array_unref(data->parts);
    g_byte_array_unref(data->ready);
    free(data->raw);
    g_free(data);
}

/* ---- what is read at once ----------------------------------------------------------------- */

typedef struct box {
    uint64_t offset[ESDM_MAX_RANK]; /* numbers among what is asked for */
    uint64_t size[ESDM_MAX_RANK];
    uint64_t elements;
} box;

static uint64_t
count_elements(const dap_part *part)
{
    uint64_t elements = 1;
    for (uint32_t i = 0; i < part->variable->rank; i++)
        elements *= part->slices[i].count; /* no more than the dataset has */
    return elements;
}

/* The largest box of whole rows that begins at an element and has at most so many. */
static void
next_box(const dap_part *part, uint64_t first, uint64_t most, box *ret)
{
    uint32_t rank = part->variable->rank, axis = rank;
    uint64_t inner = 1;
    *ret = (box){.elements = 1};
    for (uint32_t i = rank; i-- > 0;) {
        ret->offset[i] = first % part->slices[i].count;
        ret->size[i] = 1;
        first /= part->slices[i].count;
    }
    while (axis > 0) {
        axis--;
        ret->size[axis] = CLAMP(most / inner, 1, part->slices[axis].count - ret->offset[axis]);
        inner *= ret->size[axis];
        if (ret->size[axis] < part->slices[axis].count)
            break;
    }
    ret->elements = inner;
}

/* Characters of a String are one element. */
static esdm_status
read_box(const dap_part *part, const box *b, void *to, esdm_error *err)
{
    const cp_dataset *d = part->variable->dataset;
    uint64_t offset[ESDM_MAX_RANK], size[ESDM_MAX_RANK], stride[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < d->rank; i++) {
        bool inside = i < part->variable->rank;
        offset[i] = inside ? part->slices[i].start + b->offset[i] * part->slices[i].stride : 0;
        size[i] = inside ? b->size[i] : d->dimensions[i]->length;
        stride[i] = inside ? part->slices[i].stride : 1;
    }
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, d->rank, offset, size, err);
    if (status == ESDM_OK)
        status = esdm_dataspace_set_stride(&space, stride, err);
    return status == ESDM_OK ? esdm_read(d->from.dataset, &space, d->type->atomic, to, NULL, err)
                             : status;
}

/* Bytes of an element as it is read. */
static uint64_t
element_bytes(const dap_variable *v)
{
    const cp_dataset *d = v->dataset;
    return d->rank == v->rank ? d->type->bytes : MAX(d->dimensions[d->rank - 1]->length, 1);
}

/* ---- encoding ----------------------------------------------------------------------------- */

static void
put_u32(GByteArray *to, uint32_t value)
{
    guint32 big = GUINT32_TO_BE(value);
    g_byte_array_append(to, (const guint8 *) &big, sizeof big);
}

static void
put_u64(GByteArray *to, uint64_t value)
{
    guint64 big = GUINT64_TO_BE(value);
    g_byte_array_append(to, (const guint8 *) &big, sizeof big);
}

static void
put_padding(GByteArray *to, uint64_t bytes)
{
    static const guint8 zeros[3];
    g_byte_array_append(to, zeros, (guint) ((4 - bytes % 4) % 4));
}

static void
put_text(GByteArray *to, const char *text, size_t bytes)
{
    put_u32(to, (uint32_t) bytes);
    g_byte_array_append(to, (const guint8 *) text, (guint) bytes);
    put_padding(to, bytes);
}

static void
put_real(GByteArray *to, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    put_u64(to, bits);
}

/* What has the value of the fill value may be rounded: its attribute is rounded alike. */
static esdm_status
put_as_real(GByteArray *to, const dap_variable *v, const void *at, esdm_error *err)
{
    esdm_type type = v->taken;
    double real = 0;
    uint64_t back = 0, value;
    memcpy(&value, at, sizeof value);
    esdm_status status = esdm_convert(type, at, ESDM_TYPE_FLOAT64, &real, 1, NULL, err);
    if (status == ESDM_OK)
        status = esdm_convert(ESDM_TYPE_FLOAT64, &real, type, &back, 1, NULL, err);
    if (status != ESDM_OK)
        return status;
    const void *fill = esdm_dataset_fill(v->dataset->from.dataset, NULL);
    if (back != value && memcmp(at, fill, sizeof value) != 0)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "%s has whole numbers that are too large for OPeNDAP, which has them "
                              "as Float64",
                              v->dataset->path);
    put_real(to, real);
    return ESDM_OK;
}

#define SMALL(c_type)                                                                              \
    for (uint64_t i = 0; i < count; i++)                                                           \
    put_u32(to, (uint32_t) (int32_t) ((const c_type *) raw)[i])

static esdm_status
encode(GByteArray *to, const dap_variable *v, const void *raw, uint64_t count, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t bytes = element_bytes(v);
    switch (v->taken) {
    case ESDM_TYPE_INT8:
        SMALL(int8_t);
        break;
    case ESDM_TYPE_UINT8:
        SMALL(uint8_t);
        break;
    case ESDM_TYPE_INT16:
        SMALL(int16_t);
        break;
    case ESDM_TYPE_UINT16:
        SMALL(uint16_t);
        break;
    case ESDM_TYPE_INT32:
    case ESDM_TYPE_FLOAT32: /* the bits */
        SMALL(int32_t);
        break;
    case ESDM_TYPE_UINT32:
        for (uint64_t i = 0; i < count; i++)
            put_real(to, ((const uint32_t *) raw)[i]);
        break;
    case ESDM_TYPE_FLOAT64:
        for (uint64_t i = 0; i < count; i++)
            put_u64(to, ((const uint64_t *) raw)[i]);
        break;
    case ESDM_TYPE_CHAR:
        for (uint64_t i = 0; i < count; i++) {
            const char *text = (const char *) raw + i * bytes;
            size_t length = (size_t) bytes;
            while (length > 0 && text[length - 1] == '\0')
                length--;
            put_text(to, text, length);
        }
        break;
    case ESDM_TYPE_STRING:
        for (uint64_t i = 0; i < count; i++) {
            const char *text = ((char *const *) raw)[i];
            put_text(to, text != NULL ? text : "", text != NULL ? strlen(text) : 0);
        }
        break;
    default: /* integers of 64 bits */
        for (uint64_t i = 0; i < count && status == ESDM_OK; i++)
            status = put_as_real(to, v, (const char *) raw + i * bytes, err);
        break;
    }
    return status;
}

/* ---- one piece after the other ------------------------------------------------------------ */

/* The length of an array, twice but for Strings. */
static esdm_status
begin_part(dap_data *data, const dap_part *part, esdm_error *err)
{
    uint64_t elements = count_elements(part);
    if (part->variable->rank == 0)
        return ESDM_OK;
    if (elements > INT32_MAX)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "%s: OPeNDAP sends at most %d values of a variable at once",
                              part->variable->dataset->path, INT32_MAX);
    put_u32(data->ready, (uint32_t) elements);
    if (!g_str_equal(part->variable->type, "String"))
        put_u32(data->ready, (uint32_t) elements);
    return ESDM_OK;
}

static esdm_status
make_room(dap_data *data, size_t bytes, esdm_error *err)
{
    if (bytes <= data->raw_bytes)
        return ESDM_OK;
    free(data->raw);
    data->raw = malloc(bytes);
    data->raw_bytes = data->raw != NULL ? bytes : 0;
    return data->raw != NULL ? ESDM_OK
                             : tool_error_set(err, ESDM_ENOMEM, "no memory for %zu bytes", bytes);
}

static esdm_status
put_values(dap_data *data, const dap_part *part, uint64_t elements, esdm_error *err)
{
    const dap_variable *v = part->variable;
    box b;
    uint64_t bytes = element_bytes(v);
    bool texts = v->dataset->type->atomic == ESDM_TYPE_STRING;
    uint64_t counted = bytes + (texts ? TEXT_BYTES : 0);
    next_box(part, data->done, MIN(MAX(PIECE_BYTES / counted, 1), elements - data->done), &b);
    esdm_status status = make_room(data, (size_t) (b.elements * bytes), err);
    if (status != ESDM_OK)
        return status;
    memset(data->raw, 0, texts ? (size_t) (b.elements * bytes) : 0);
    status = read_box(part, &b, data->raw, err);
    if (status == ESDM_OK)
        status = encode(data->ready, v, data->raw, b.elements, err);
    for (uint64_t i = 0; i < b.elements && texts; i++)
        free(((char **) data->raw)[i]);
    data->done += b.elements;
    return status;
}

/* Something more, unless all was put. */
static esdm_status
make_more(dap_data *data, esdm_error *err)
{
    const dap_part *part = &g_array_index(data->parts, dap_part, data->part);
    uint64_t elements = count_elements(part);
    g_byte_array_set_size(data->ready, 0);
    data->given = 0;
    esdm_status status = ESDM_OK;
    if (!data->begun)
        status = begin_part(data, part, err);
    data->begun = true;
    if (status == ESDM_OK && data->done < elements)
        status = put_values(data, part, elements, err);
    if (data->done >= elements) {
        data->part++;
        data->done = 0;
        data->begun = false;
    }
    return status;
}

esdm_status
dap_data_next(dap_data *data, void *buffer, size_t most, size_t *ret_bytes, esdm_error *err)
{
    while (data->given == data->ready->len && data->part < data->parts->len) {
        esdm_status status = make_more(data, err);
        if (status != ESDM_OK)
            return status;
    }
    size_t bytes = MIN(most, data->ready->len - data->given);
    memcpy(buffer, data->ready->data + data->given, bytes);
    data->given += bytes;
    *ret_bytes = bytes;
    return ESDM_OK;
}
