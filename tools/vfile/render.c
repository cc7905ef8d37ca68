/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Bytes of a region: values of a box, read from the container. */

#include <stdlib.h>
#include <string.h>

#include "vfile/inner.h"

/* A part of a region that is a box itself. */
typedef struct part {
    uint64_t offset[ESDM_MAX_RANK]; /* in the dataset */
    uint64_t size[ESDM_MAX_RANK];
    uint64_t elements;
} part;

static void
put_fill(const vf_dataset *d, uint64_t elements, unsigned char *to)
{
    for (uint64_t i = 0; i < elements; i++)
        memcpy(to + i * d->bytes, d->fill, d->bytes);
}

/* What lies behind the end of a dimension is in no dataset, but in the file. */
static esdm_status
read_part(const vf_dataset *d, const part *p, unsigned char *to, esdm_error *err)
{
    uint64_t size[ESDM_MAX_RANK], inside = 1, step = 1;
    int64_t memory[ESDM_MAX_RANK];
    for (uint32_t i = d->rank; i-- > 0;) {
        uint64_t left = p->offset[i] < d->shape[i] ? d->shape[i] - p->offset[i] : 0;
        size[i] = MIN(p->size[i], left);
        inside *= size[i];
        memory[i] = (int64_t) step;
        step *= p->size[i];
    }
    if (inside < p->elements)
        put_fill(d, p->elements, to);
    else if (d->clear)
        memset(to, 0, p->elements * d->bytes);
    if (inside == 0)
        return ESDM_OK;
    esdm_dataspace space;
    esdm_status status = esdm_dataspace_init(&space, d->rank, p->offset, size, err);
    if (status == ESDM_OK && inside < p->elements)
        status = esdm_dataspace_set_memory_stride(&space, memory, err);
    return status == ESDM_OK ? esdm_read(d->dataset, &space, d->type, to, NULL, err) : status;
}

/* Where a box begins in its dataset. */
static void
find_origin(const vf_dataset *d, uint64_t number, uint64_t *ret)
{
    for (uint32_t i = d->rank; i-- > 0;) {
        uint64_t along = d->shape[i] == 0 ? 1 : (d->shape[i] - 1) / d->box[i] + 1;
        ret[i] = number % along * d->box[i];
        number /= along;
    }
}

/* The largest box of whole rows that begins at an element of the region and ends before another. */
static void
next_part(const vf_dataset *d, const uint64_t *origin, uint64_t first, uint64_t end, part *p)
{
    uint64_t inner = 1, index[ESDM_MAX_RANK];
    uint64_t rest = first;
    uint32_t axis = d->rank; /* along which the box is cut; faster ones are whole */
    for (uint32_t i = d->rank; i-- > 0;) {
        index[i] = rest % d->box[i];
        rest /= d->box[i];
    }
    while (axis > 0) {
        uint64_t next = axis < d->rank ? inner * d->box[axis] : 1;
        if (axis < d->rank && (index[axis] != 0 || first + next > end))
            break;
        inner = next;
        axis--;
    }
    p->elements = inner;
    for (uint32_t i = 0; i < d->rank; i++) {
        p->offset[i] = origin[i] + index[i];
        p->size[i] = i <= axis ? 1 : d->box[i];
    }
    if (d->rank == 0)
        return;
    uint64_t many = MIN((end - first) / inner, d->box[axis] - index[axis]);
    p->size[axis] = many;
    p->elements *= many;
}

static void
swap_bytes(size_t bytes, uint64_t elements, unsigned char *at)
{
    for (uint64_t i = 0; i < elements; i++, at += bytes) {
        for (size_t k = 0; k < bytes / 2; k++) {
            unsigned char byte = at[k];
            at[k] = at[bytes - 1 - k];
            at[bytes - 1 - k] = byte;
        }
    }
}

/* Whole elements. */
static esdm_status
render_elements(const vf_dataset *d, uint64_t number, uint64_t first, uint64_t end,
                unsigned char *to, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    uint64_t origin[ESDM_MAX_RANK];
    find_origin(d, number, origin);
    while (first < end && status == ESDM_OK) {
        part p;
        next_part(d, origin, first, end, &p);
        status = read_part(d, &p, to, err);
        if (d->swap && d->bytes > 1)
            swap_bytes(d->bytes, p.elements, to);
        to += p.elements * d->bytes;
        first += p.elements;
    }
    return status;
}

/* A piece of one element. */
static esdm_status
render_piece(const vf_dataset *d, uint64_t number, uint64_t element, size_t from, size_t bytes,
             unsigned char *to, esdm_error *err)
{
    unsigned char small[64], *whole = d->bytes <= sizeof small ? small : malloc(d->bytes);
    if (whole == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "no memory for a value of %zu bytes", d->bytes);
    esdm_status status = render_elements(d, number, element, element + 1, whole, err);
    if (status == ESDM_OK)
        memcpy(to, whole + from, bytes);
    if (whole != small)
        free(whole);
    return status;
}

esdm_status
vf_render_box(const vf_dataset *d, uint64_t number, uint64_t first, size_t bytes,
              unsigned char *buffer, esdm_error *err)
{
    size_t begun = (size_t) (first % d->bytes);
    uint64_t element = first / d->bytes;
    esdm_status status = ESDM_OK;
    if (begun > 0) {
        size_t piece = MIN(bytes, d->bytes - begun);
        status = render_piece(d, number, element, begun, piece, buffer, err);
        buffer += piece;
        bytes -= piece;
        element++;
    }
    uint64_t whole = bytes / d->bytes;
    if (status == ESDM_OK && whole > 0)
        status = render_elements(d, number, element, element + whole, buffer, err);
    size_t rest = (size_t) (bytes - whole * d->bytes);
    if (status == ESDM_OK && rest > 0)
        status = render_piece(d, number, element + whole, 0, rest, buffer + whole * d->bytes, err);
    return status;
}

esdm_status
vf_render(const esdm_vfile *file, const vf_region *region, uint64_t first, size_t bytes,
          unsigned char *buffer, esdm_error *err)
{
    const vf_dataset *d = &g_array_index(file->datasets, vf_dataset, region->dataset);
    return vf_render_box(d, region->number, first, bytes, buffer, err);
}
