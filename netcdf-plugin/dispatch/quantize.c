/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * nc_def_var_quantize(): settings, and writing of rounded values. Reading gives what is stored;
 * netCDF-C rounds once more when it converts, by then in the other type and without knowing the
 * fill value.
 */

#include "storage.h"

#include "calls.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Values are rounded in a copy of at most so many bytes. */
#define COPY_BYTES ((size_t) 16 << 20)

static const char *const attribute_names[] = {
    [NC_QUANTIZE_BITGROOM] = NC_QUANTIZE_BITGROOM_ATT_NAME,
    [NC_QUANTIZE_GRANULARBR] = NC_QUANTIZE_GRANULARBR_ATT_NAME,
    [NC_QUANTIZE_BITROUND] = NC_QUANTIZE_BITROUND_ATT_NAME,
};

static inline bool
is_floating(const esdmnc_var *var)
{
    return var->type == NC_FLOAT || var->type == NC_DOUBLE;
}

/* ---- settings ------------------------------------------------------------------------------- */

/* Mode and digits in one number, to be read while another thread finds them. */
static int64_t
pack(int mode, int digits)
{
    return ((int64_t) digits << 8) + mode;
}

/* As netCDF-4, which has no other record of it: the first attribute that is there counts, whoever
 * wrote it. */
static int64_t
read_attributes(const esdmnc_var *var)
{
    const esdm_attributes *list = esdm_dataset_attributes(var->dataset);
    for (int mode = NC_QUANTIZE_BITGROOM; mode <= NC_QUANTIZE_BITROUND; mode++) {
        esdm_attribute attribute;
        if (!esdm_attribute_find(list, attribute_names[mode], &attribute, NULL))
            continue;
        esdm_error err;
        int32_t digits = 0;
        if (attribute.count == 0 || esdm_convert(attribute.type, attribute.values, ESDM_TYPE_INT32,
                                                 &digits, 1, NULL, &err) != ESDM_OK)
            return 0;
        return pack(mode, digits);
    }
    return 0;
}

static int64_t
settings_of(const esdmnc_file *file, esdmnc_var *var)
{
    int64_t known = atomic_load_explicit(&var->quantize, memory_order_relaxed);
    if (known != ESDMNC_QUANTIZE_UNKNOWN)
        return known;
    known = var->stored && !esdmnc_is_nc3(file) ? read_attributes(var) : 0;
    atomic_store_explicit(&var->quantize, known, memory_order_relaxed);
    return known;
}

bool
esdmnc_quantized(const esdmnc_file *file, esdmnc_var *var)
{
    return is_floating(var) && settings_of(file, var) != 0;
}

bool
esdmnc_may_be_quantized(const esdmnc_var *var)
{
    return is_floating(var) && atomic_load_explicit(&var->quantize, memory_order_relaxed) != 0;
}

/* netCDF-C 4.10.1 mended what older ones do to NaN and with 7 digits of a float. */
static bool
is_mended(const esdmnc_file *file)
{
    int major = 0;
    int minor = 0;
    int patch = 0;
    const esdmnc_library *library = esdmnc_library_get(file->instance);
    if (library == NULL || library->inq_libvers == NULL ||
        sscanf(library->inq_libvers(), "%d.%d.%d", &major, &minor, &patch) < 2)
        return false;
    return major > 4 || (major == 4 && (minor > 10 || (minor == 10 && patch >= 1)));
}

static int
most_digits(const esdmnc_file *file, const esdmnc_var *var, int mode)
{
    bool is_float = var->type == NC_FLOAT;
    if (mode == NC_QUANTIZE_BITROUND)
        return is_float ? NC_QUANTIZE_MAX_FLOAT_NSB : NC_QUANTIZE_MAX_DOUBLE_NSB;
    if (!is_float)
        return NC_QUANTIZE_MAX_DOUBLE_NSD;
    return is_mended(file) ? 6 : 7;
}

int
esdmnc_def_var_quantize(esdmnc_id id, int varid, int mode, int digits)
{
    esdmnc_file *file;
    esdmnc_var *var;
    int rc = esdmnc_find_changeable(id, varid, &file, &var);
    if (rc != NC_NOERR)
        return rc;
    esdmnc_cache_adjust(file, var);
    if (mode < NC_NOQUANTIZE || mode > NC_QUANTIZE_BITROUND)
        return NC_EINVAL;
    if (mode != NC_NOQUANTIZE &&
        (!is_floating(var) || digits <= 0 || digits > most_digits(file, var, mode)))
        return NC_EINVAL;
    atomic_store_explicit(&var->quantize, mode == NC_NOQUANTIZE ? 0 : pack(mode, digits),
                          memory_order_relaxed);
    return NC_NOERR;
}

int
esdmnc_inq_var_quantize(esdmnc_id id, int varid, int *ret_mode, int *ret_digits)
{
    esdmnc_file *file;
    esdmnc_group *group;
    esdmnc_var *var;
    int rc = esdmnc_find(id, &file, &group);
    if (rc == NC_NOERR && esdmnc_is_nc3(file))
        rc = NC_ENOTNC4;
    if (rc == NC_NOERR)
        rc = esdmnc_find_var(id, varid, &file, &group, &var);
    if (rc != NC_NOERR)
        return rc;
    int64_t settings = settings_of(file, var);
    if (ret_mode != NULL)
        *ret_mode = (int) (settings & 0xff);
    if (ret_digits != NULL)
        *ret_digits = (int) (settings >> 8);
    return NC_NOERR;
}

int
esdmnc_quantize_create(esdmnc_file *file, esdmnc_var *var)
{
    int64_t settings = settings_of(file, var);
    if (settings == 0)
        return NC_NOERR;
    esdm_error err;
    int32_t digits = (int32_t) (settings >> 8);
    const char *name = attribute_names[settings & 0xff];
    esdm_attributes *list = esdm_dataset_attributes(var->dataset);
    if (!esdmnc_is_classic(file) && !esdm_attribute_find(list, name, NULL, NULL))
        atomic_store(&file->indef, true); /* netCDF-4 enters it for the new attribute, and stays */
    esdm_status st = esdm_attribute_set(list, name, ESDM_TYPE_INT32, 1, &digits, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "write attribute", name);
}

/* ---- writing -------------------------------------------------------------------------------- */

/* How netCDF-C cuts a request into the calls that round: BitGroom begins anew in each. */
typedef enum pieces { WHOLE, ROWS, VALUES } pieces;

typedef struct writer {
    esdmnc_var *var;
    esdmnc_quantizer quantizer;
    const esdm_dataspace *space;
    nc_type memory_type;
    size_t memory_bytes; /* of an element in memory */
    size_t bytes;        /* of an element of the variable */
    const char *data;
    pieces pieces;
    char *copy;
    uint64_t out_of_range;
} writer;

/* A part of the request: `count` indices of one axis, whole in the faster ones. */
typedef struct part {
    uint32_t axis;
    uint64_t step;                 /* most for `count` */
    uint64_t inner;                /* elements for one index of the axis */
    uint64_t first[ESDM_MAX_RANK]; /* index within the request */
    uint64_t count;
    uint64_t before; /* elements of the request before it */
} part;

static void
first_part(const writer *w, part *ret)
{
    uint64_t most = COPY_BYTES / w->bytes;
    *ret = (part){.axis = w->space->rank, .step = 1, .inner = 1, .count = 1};
    while (ret->axis > 0 && ret->inner * ret->count <= most) {
        ret->axis--;
        ret->inner *= ret->count;
        ret->count = w->space->size[ret->axis];
    }
    uint64_t room = most / ret->inner; /* at least 1 */
    ret->count = ret->count < room ? ret->count : room;
    ret->step = ret->count;
}

static bool
next_part(const writer *w, part *p)
{
    if (w->space->rank == 0)
        return false;
    const uint64_t *size = w->space->size;
    p->before += p->count * p->inner;
    p->first[p->axis] += p->count;
    uint32_t i = p->axis;
    while (i > 0 && p->first[i] == size[i]) {
        p->first[i] = 0;
        p->first[--i]++;
    }
    uint64_t left = size[p->axis] - p->first[p->axis];
    p->count = left < p->step ? left : p->step;
    return p->first[0] < size[0];
}

/* Elements of the part that follow each other along the last axis. */
static uint64_t
row_length(const writer *w, const part *p)
{
    uint32_t rank = w->space->rank;
    return rank == 0 ? 1 : p->axis == rank - 1 ? p->count : w->space->size[rank - 1];
}

static int
convert(writer *w, const char *from, uint64_t count, char *to)
{
    esdm_error err;
    uint64_t out_of_range = 0;
    if (esdm_convert(w->memory_type, from, w->var->type, to, count, &out_of_range, &err) != ESDM_OK)
        return NC_EBADTYPE;
    w->out_of_range += out_of_range;
    return NC_NOERR;
}

/* Converts one row from scattered memory. */
static int
gather_row(writer *w, const uint64_t *index, uint64_t count, char *to)
{
    const esdm_dataspace *space = w->space;
    int64_t at = 0;
    for (uint32_t i = 0; i < space->rank; i++)
        at += (int64_t) index[i] * space->memory_stride[i];
    const char *from = w->data + at * (int64_t) w->memory_bytes;
    int64_t step = space->memory_stride[space->rank - 1];
    if (step == 1)
        return convert(w, from, count, to);
    int rc = NC_NOERR;
    for (uint64_t i = 0; i < count && rc == NC_NOERR; i++) {
        rc = convert(w, from, 1, to);
        from += step * (int64_t) w->memory_bytes;
        to += w->bytes;
    }
    return rc;
}

static int
gather(writer *w, const part *p)
{
    uint64_t index[ESDM_MAX_RANK];
    uint64_t row = row_length(w, p);
    uint64_t rows = p->count * p->inner / row;
    memcpy(index, p->first, sizeof index);
    for (uint64_t r = 0; r < rows; r++) {
        int rc = gather_row(w, index, row, w->copy + r * row * w->bytes);
        if (rc != NC_NOERR)
            return rc;
        for (uint32_t i = w->space->rank - 1; i-- > p->axis;) {
            uint64_t first = i == p->axis ? p->first[i] : 0;
            uint64_t end = i == p->axis ? first + p->count : w->space->size[i];
            if (++index[i] < end)
                break;
            index[i] = first;
        }
    }
    return NC_NOERR;
}

static void
quantize_part(const writer *w, const part *p)
{
    uint64_t elements = p->count * p->inner;
    uint64_t row = w->pieces == ROWS ? row_length(w, p) : elements;
    uint32_t last = w->space->rank - 1;
    uint64_t before = w->pieces == ROWS ? p->first[last] : p->before;
    esdmnc_groom groom = w->pieces == VALUES ? ESDMNC_GROOM_DOWN
                         : before % 2 == 0   ? ESDMNC_GROOM_EVEN
                                             : ESDMNC_GROOM_ODD;
    for (uint64_t at = 0; at < elements; at += row)
        esdmnc_quantize(&w->quantizer, groom, w->copy + at * w->bytes, row);
}

static esdm_status
store_part(const writer *w, const part *p, esdm_error *err)
{
    const esdm_dataspace *whole = w->space;
    esdm_dataspace space;
    uint64_t offset[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < whole->rank; i++) {
        offset[i] = whole->offset[i] + p->first[i] * (whole->has_stride ? whole->stride[i] : 1);
        size[i] = i < p->axis ? 1 : i == p->axis ? p->count : whole->size[i];
    }
    esdm_status st = esdm_dataspace_init(&space, whole->rank, offset, size, err);
    if (st == ESDM_OK && whole->has_stride)
        st = esdm_dataspace_set_stride(&space, whole->stride, err);
    return st == ESDM_OK ? esdm_write(w->var->dataset, &space, w->var->type, w->copy, NULL, err)
                         : st;
}

static int
write_parts(const esdmnc_file *file, writer *w)
{
    part p;
    first_part(w, &p);
    w->copy = malloc(p.count * p.inner * w->bytes); /* NOLINT: nothing to write ended before */
    if (w->copy == NULL)
        return NC_ENOMEM;
    int rc;
    esdm_error err;
    do {
        rc = w->space->has_memory_stride
                 ? gather(w, &p)
                 : convert(w, w->data + p.before * w->memory_bytes, p.count * p.inner, w->copy);
        if (rc != NC_NOERR)
            break;
        quantize_part(w, &p);
        if (store_part(w, &p, &err) != ESDM_OK)
            rc = esdmnc_error_data(&err, "write", file->name);
    } while (rc == NC_NOERR && next_part(w, &p));
    free(w->copy);
    return rc;
}

int
esdmnc_put_quantized(const esdmnc_file *file, esdmnc_var *var, const esdm_dataspace *space,
                     bool piecewise, nc_type memory_type, const void *data,
                     uint64_t *ret_out_of_range)
{
    int64_t settings = settings_of(file, var);
    uint32_t last = space->rank == 0 ? 0 : space->rank - 1;
    bool rows =
        space->rank == 0 || ((!space->has_stride || space->stride[last] == 1) &&
                             (!space->has_memory_stride || space->memory_stride[last] == 1));
    writer w = {.var = var,
                .space = space,
                .memory_type = memory_type,
                .memory_bytes = esdm_type_size(memory_type),
                .bytes = var->bytes,
                .data = data,
                .pieces = !piecewise || space->rank == 0 ? WHOLE
                          : rows                         ? ROWS
                                                         : VALUES};
    w.quantizer = (esdmnc_quantizer){.type = var->type,
                                     .mode = (int) (settings & 0xff),
                                     .digits = (int) (settings >> 8),
                                     .keeps_nan = is_mended(file),
                                     .missing = esdm_dataset_fill(var->dataset, NULL)};
    int rc = write_parts(file, &w);
    *ret_out_of_range = w.out_of_range;
    return rc;
}
