/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Where values lie in a classic file: libnetcdf's own header tells ("The NetCDF Classic Format
 * Specification", docs.unidata.ucar.edu). Only the addresses are read; all else the model has. */

#include <string.h>
#include <unistd.h>

#include "vfile/inner.h"

#define MOST_HEADER (256u << 20)

typedef struct reader {
    int fd;
    int version;
    uint64_t at;
    bool good;
} reader;

static uint64_t
number(reader *r, size_t bytes)
{
    unsigned char text[8];
    uint64_t value = 0;
    if (!r->good || pread(r->fd, text, bytes, (off_t) r->at) != (ssize_t) bytes) {
        r->good = false;
        return 0;
    }
    for (size_t i = 0; i < bytes; i++)
        value = value << 8 | text[i];
    r->at += bytes;
    return value;
}

/* A length, which CDF-5 has with 64 bits. */
static uint64_t
length(reader *r)
{
    uint64_t value = number(r, r->version == 5 ? 8 : 4);
    r->good &= value <= MOST_HEADER || r->version == 5;
    return value;
}

static void
skip(reader *r, uint64_t bytes)
{
    r->good &= bytes <= MOST_HEADER;
    if (r->good)
        r->at += (bytes + 3) / 4 * 4;
}

static void
skip_attributes(reader *r)
{
    (void) number(r, 4);
    uint64_t count = length(r);
    for (uint64_t i = 0; i < count && r->good; i++) {
        skip(r, length(r));
        esdm_type type = (esdm_type) number(r, 4);
        skip(r, length(r) * esdm_type_size(type));
    }
}

static void
skip_dimensions(reader *r)
{
    (void) number(r, 4);
    uint64_t count = length(r);
    for (uint64_t i = 0; i < count && r->good; i++) {
        skip(r, length(r));
        (void) length(r);
    }
}

/* The address of the values of the next variable. */
static uint64_t
variable(reader *r)
{
    skip(r, length(r));
    uint64_t rank = length(r);
    for (uint64_t i = 0; i < rank && r->good; i++)
        (void) length(r);
    skip_attributes(r);
    (void) number(r, 4);
    (void) length(r);
    return number(r, r->version == 1 ? 4 : 8);
}

static void
add_variable(esdm_vfile *file, const cp_dataset *d, uint64_t address, uint32_t *ret_records)
{
    bool swap = d->type->atomic != ESDM_TYPE_CHAR;
    uint32_t index = vf_dataset_add(file, d, swap);
    vf_dataset *to = &g_array_index(file->datasets, vf_dataset, index);
    vf_region region = {.address = address, .bytes = to->bytes, .dataset = index};
    bool of_records = d->rank > 0 && d->dimensions[0]->unlimited;
    if (of_records)
        to->box[0] = 1;
    for (uint32_t i = 0; i < d->rank; i++)
        region.bytes *= to->box[i];
    if (region.bytes == 0)
        return;
    if (!of_records) {
        g_array_append_val(file->regions, region);
        return;
    }
    vf_records *records = &file->records;
    records->begin = *ret_records == 0 ? address : MIN(records->begin, address);
    records->bytes += (region.bytes + 3) / 4 * 4;
    records->count = to->shape[0];
    g_array_append_val(records->parts, region);
    (*ret_records)++;
}

esdm_status
vf_classic_addresses(esdm_vfile *file, esdm_error *err)
{
    reader r = {.fd = file->fd, .good = true};
    uint32_t of_records = 0;
    uint64_t magic = number(&r, 4);
    r.version = (int) (magic & 0xff);
    (void) length(&r); /* of the record dimension */
    skip_dimensions(&r);
    skip_attributes(&r);
    (void) number(&r, 4);
    uint64_t count = length(&r);
    r.good &= magic >> 8 == 0x434446 && count == file->model->datasets->len;
    for (guint i = 0; i < file->model->datasets->len && r.good; i++)
        add_variable(file, g_ptr_array_index(file->model->datasets, i), variable(&r), &of_records);
    if (!r.good)
        return tool_error_set(err, ESDM_EIO, "%s as a file: its header cannot be read",
                              file->end.name);
    /* A single variable has its records side by side. */
    if (of_records == 1)
        file->records.bytes = g_array_index(file->records.parts, vf_region, 0).bytes;
    return ESDM_OK;
}
