/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/encode/elements.h"

#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/copy.h"

/* ---- forms -------------------------------------------------------------------------------- */

esdm_status
esdm__elements_of(const esdm_dataset *dataset, esdm__elements *ret, esdm_error *err)
{
    esdm__typeref outer = {ESDM_TYPE_NONE, NULL};
    esdm_status status = esdm__type_resolve(dataset->group->container, dataset->type, &outer, err);
    if (status != ESDM_OK)
        return status;
    *ret = (esdm__elements){
        .type = outer.type, .outer = outer, .conversion = dataset->group->container->conversion};
    if (outer.user == NULL) {
        ret->bytes = esdm_type_size(outer.type);
    } else if (outer.user->kind == ESDM_CLASS_ENUM) {
        ret->type = outer.user->base;
        ret->bytes = outer.user->memory_bytes;
    } else {
        ret->type = outer.user->variable ? ESDM__TYPE_BLOB : ESDM__TYPE_BYTES;
        ret->bytes = outer.user->variable ? sizeof(uint8_t *) : (size_t) outer.user->stored_bytes;
    }
    return ESDM_OK;
}

esdm_type
esdm__elements_form(const esdm__elements *e, esdm_type memory_type)
{
    bool is_own = e->outer.user != NULL && memory_type == e->outer.type;
    return is_own && e->outer.user->plain ? e->type : memory_type;
}

size_t
esdm__elements_bytes(const esdm__elements *e, esdm_type form)
{
    if (form == e->type)
        return e->bytes;
    return form == e->outer.type ? esdm__typeref_bytes(e->outer) : esdm_type_size(form);
}

/* ---- copying ------------------------------------------------------------------------------ */

/* Packs or unpacks: whole runs of the fastest axis where the engine's side is dense along it. */
static void
pack_nd(const esdm__elements *e, uint32_t rank, const uint64_t *n, const esdm__memory *from,
        const esdm__memory *to)
{
    bool packs = to->form == ESDM__TYPE_BYTES;
    const esdm__memory *outer = packs ? from : to;
    const esdm__memory *engine = packs ? to : from;
    const int64_t *outer_stride = outer->stride;
    const int64_t *engine_stride = engine->stride;
    int64_t outer_bytes = (int64_t) esdm__typeref_bytes(e->outer);
    int64_t engine_bytes = (int64_t) e->bytes;
    bool run = rank > 0 && engine_stride[rank - 1] == 1;
    uint32_t walked = run ? rank - 1 : rank;
    uint64_t count = run ? n[rank - 1] : 1;
    int64_t step = run ? outer_stride[rank - 1] * outer_bytes : outer_bytes;
    uint64_t index[ESDM_MAX_RANK] = {0};
    for (;;) {
        int64_t outer_at = 0;
        int64_t engine_at = 0;
        for (uint32_t i = 0; i < walked; i++) {
            outer_at += (int64_t) index[i] * outer_stride[i];
            engine_at += (int64_t) index[i] * engine_stride[i];
        }
        uint8_t *outer_data = (uint8_t *) outer->data + outer_at * outer_bytes;
        uint8_t *engine_data = (uint8_t *) engine->data + engine_at * engine_bytes;
        if (packs)
            esdm__values_pack(e->outer, count, outer_data, step, engine_data);
        else
            esdm__values_unpack(e->outer, count, engine_data, outer_data, step);
        uint32_t axis = walked;
        while (axis > 0 && ++index[axis - 1] == n[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return;
    }
}

void
esdm__elements_copy(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                    const esdm__memory *from, const esdm__memory *to, uint64_t *ret_out_of_range)
{
    for (uint32_t i = 0; i < rank; i++) {
        if (n[i] == 0)
            return;
    }
    if (from->form == to->form && esdm_type_size(from->form) == 0)
        esdm__copy_bytes_nd(rank, n, esdm__elements_bytes(e, from->form), from->data, from->stride,
                            to->data, to->stride);
    else if (from->form == ESDM__TYPE_BYTES || to->form == ESDM__TYPE_BYTES)
        pack_nd(e, rank, n, from, to);
    else
        esdm__copy_by_rules_nd(e->conversion, to->form == e->type, rank, n, from->form, from->data,
                               from->stride, to->form, to->data, to->stride, ret_out_of_range);
}

esdm_status
esdm__elements_visit(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                     const esdm__memory *memory, esdm__element_fn visit, void *user,
                     esdm_error *err)
{
    int64_t element_bytes = (int64_t) esdm__elements_bytes(e, memory->form);
    uint64_t index[ESDM_MAX_RANK] = {0};
    for (;;) {
        int64_t at = 0;
        for (uint32_t i = 0; i < rank; i++)
            at += (int64_t) index[i] * memory->stride[i];
        esdm_status status = visit(user, (uint8_t *) memory->data + at * element_bytes, err);
        if (status != ESDM_OK)
            return status;
        uint32_t axis = rank;
        while (axis > 0 && ++index[axis - 1] == n[axis - 1])
            index[--axis] = 0;
        if (axis == 0)
            return ESDM_OK;
    }
}

/* ---- blobs -------------------------------------------------------------------------------- */

size_t
esdm__blob_bytes(const uint8_t *blob)
{
    uint32_t bytes;
    memcpy(&bytes, blob, sizeof bytes);
    return bytes;
}

/* A blob of these bytes; NULL: out of memory. */
static uint8_t *
blob_of(const uint8_t *data, size_t bytes)
{
    uint32_t length = (uint32_t) bytes;
    uint8_t *blob = malloc(sizeof length + bytes);
    if (blob == NULL)
        return NULL;
    memcpy(blob, &length, sizeof length);
    if (bytes > 0)
        memcpy(blob + sizeof length, data, bytes);
    return blob;
}

uint8_t *
esdm__blob_dup(const uint8_t *blob)
{
    return blob_of(blob + sizeof(uint32_t), esdm__blob_bytes(blob));
}

void
esdm__blobs_free(uint8_t **blobs, uint64_t n)
{
    for (uint64_t i = 0; i < n; i++)
        free(blobs[i]);
}

/* Encodes elements one after the other. */
typedef struct encoder {
    const esdm__elements *e;
    esdm__buffer *out;
    uint8_t **blobs; /* NULL: lengths go to the front of `out` */
    size_t lengths_at;
    uint64_t count; /* elements done */
} encoder;

static esdm_status
encode_element(void *user, void *element, esdm_error *err)
{
    encoder *enc = user;
    size_t before = enc->out->bytes;
    esdm_status status = esdm__values_encode(enc->e->outer, 1, element, enc->out, err);
    if (status != ESDM_OK)
        return status;
    size_t bytes = enc->out->bytes - before;
    if (enc->out->failed)
        return esdm__error_nomem(err, bytes, "elements");
    if (bytes > UINT32_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "an element of %zu bytes is too long", bytes);
    if (enc->blobs == NULL) {
        uint32_t length = (uint32_t) bytes;
        memcpy(enc->out->data + enc->lengths_at + enc->count * sizeof length, &length,
               sizeof length);
    } else {
        uint8_t *blob = blob_of(enc->out->data, bytes);
        if (blob == NULL)
            return esdm__error_nomem(err, bytes, "elements");
        enc->blobs[enc->count] = blob;
        enc->out->bytes = 0;
    }
    enc->count++;
    return ESDM_OK;
}

static uint64_t
elements_in(uint32_t rank, const uint64_t *n)
{
    uint64_t count = 1;
    for (uint32_t i = 0; i < rank; i++)
        count *= n[i];
    return count;
}

esdm_status
esdm__elements_store(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                     const esdm__memory *source, esdm__buffer *out, esdm_error *err)
{
    encoder enc = {.e = e, .out = out, .lengths_at = out->bytes};
    size_t bytes = (size_t) elements_in(rank, n) * sizeof(uint32_t);
    if (esdm__buffer_reserve(out, bytes) == NULL)
        return esdm__error_nomem(err, bytes, "elements");
    out->bytes += bytes;
    return esdm__elements_visit(e, rank, n, source, encode_element, &enc, err);
}

esdm_status
esdm__blobs_store(const uint8_t *const *blobs, uint64_t n, esdm__buffer *out, esdm_error *err)
{
    for (uint64_t i = 0; i < n; i++)
        esdm__buffer_put_u32(out, (uint32_t) esdm__blob_bytes(blobs[i]));
    for (uint64_t i = 0; i < n; i++)
        esdm__buffer_put(out, blobs[i] + sizeof(uint32_t), esdm__blob_bytes(blobs[i]));
    return out->failed ? esdm__error_nomem(err, out->bytes, "elements") : ESDM_OK;
}

esdm_status
esdm__blobs_make(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                 const esdm__memory *source, uint8_t **ret_blobs, esdm_error *err)
{
    esdm__buffer scratch;
    esdm__buffer_init(&scratch);
    encoder enc = {.e = e, .out = &scratch, .blobs = ret_blobs};
    esdm_status status = esdm__elements_visit(e, rank, n, source, encode_element, &enc, err);
    esdm__buffer_clear(&scratch);
    if (status != ESDM_OK)
        esdm__blobs_free(ret_blobs, enc.count);
    return status;
}
