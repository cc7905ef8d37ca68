/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_ENCODE_ELEMENTS_H
#define ESDM_IO_ENCODE_ELEMENTS_H

/**
 * @file
 * The forms in which the elements of a dataset lie in memory.
 *
 * The *engine's form* is what is gathered, and the stored form of fixed-size elements: numbers, for
 * enumerations those of the base type; packed bytes (ESDM__TYPE_BYTES) for other types of fixed
 * size; texts; and pointers to the stored form (ESDM__TYPE_BLOB) for what holds texts or arrays.
 * The caller's form is a numeric type, or the dataset's own type. A form is told by its number.
 * Pure functions.
 */

#include "model/box.h"
#include "model/values.h"

enum {
    ESDM__TYPE_BYTES = -1, /* elements of `bytes` bytes each */
    ESDM__TYPE_BLOB = -2   /* `uint8_t *` to a u32 length and so many bytes */
};

typedef struct esdm__elements {
    esdm_type type;      /* the engine's form */
    size_t bytes;        /* of an element in it */
    esdm__typeref outer; /* the dataset's type: the caller's form */
    esdm_conversion conversion;
} esdm__elements;

/** Where the elements of a hyperslab lie, and in which form. Borrows both. */
typedef struct esdm__memory {
    esdm_type form;
    void *data;            /* the element of index (0, …, 0); only read where it is a source */
    const int64_t *stride; /* in elements, one for each axis */
} esdm__memory;

/** ESDM_EINVAL when the dataset's type cannot be completed. */
esdm_status esdm__elements_of(const esdm_dataset *dataset, esdm__elements *ret, esdm_error *err);
/** The form of a caller's memory of that type: the engine's when it is the same. */
esdm_type esdm__elements_form(const esdm__elements *e, esdm_type memory_type);
/** Bytes of an element in that form. */
size_t esdm__elements_bytes(const esdm__elements *e, esdm_type form);
/** Whether elements are stored with a length of their own. */
static inline bool
esdm__elements_vary(const esdm__elements *e)
{
    return e->type == ESDM_TYPE_STRING || e->type == ESDM__TYPE_BLOB;
}
/** Whether it is the form of a caller that has to be encoded as blobs. */
static inline bool
esdm__elements_encode(const esdm__elements *e, esdm_type form)
{
    return e->type == ESDM__TYPE_BLOB && form != ESDM__TYPE_BLOB;
}

/** Copies a hyperslab from one form to another, or within one; not to or from blobs.
 *  @param ret_out_of_range may be NULL; incremented. */
void esdm__elements_copy(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                         const esdm__memory *from, const esdm__memory *to,
                         uint64_t *ret_out_of_range);

/** Takes one element of a hyperslab. */
typedef esdm_status (*esdm__element_fn)(void *user, void *element, esdm_error *err);
/** Visits the elements of a hyperslab in C order until one call fails. */
esdm_status esdm__elements_visit(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                                 const esdm__memory *memory, esdm__element_fn visit, void *user,
                                 esdm_error *err);

/** Appends the stored form of a hyperslab in the caller's form: u32 lengths, then the bytes. */
esdm_status esdm__elements_store(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                                 const esdm__memory *source, esdm__buffer *out, esdm_error *err);
/** The same of `n` dense blobs. */
esdm_status esdm__blobs_store(const uint8_t *const *blobs, uint64_t n, esdm__buffer *out,
                              esdm_error *err);
/** Makes blobs of a hyperslab in the caller's form.
 *  @param ret_blobs room for all; each is owned. Nothing is to be freed after a failure. */
esdm_status esdm__blobs_make(const esdm__elements *e, uint32_t rank, const uint64_t *n,
                             const esdm__memory *source, uint8_t **ret_blobs, esdm_error *err);
/** Bytes of a blob, without its length. */
size_t esdm__blob_bytes(const uint8_t *blob);
/** NULL: out of memory. */
uint8_t *esdm__blob_dup(const uint8_t *blob);
void esdm__blobs_free(uint8_t **blobs, uint64_t n);

#endif
