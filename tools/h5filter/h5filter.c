/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * A filter of HDF5 with ESDM's codecs, loaded by HDF5 from $HDF5_PLUGIN_PATH: chunks are what
 * esdm_chunk_encode() makes. Reading needs no function of
 * HDF5, so that programs with an HDF5 of their own can load it.
 *
 * Parameters: those that nc_def_var_filter() gives are 0 and the names of the codecs as a text
 * ("shuffle+zstd"), 4 characters each, the first in the lowest bits, filled up with NULs. When a
 * dataset is created this becomes { 1, esdm_type, rank, words of the text, text…, shape… }.
 */

#include "h5filter/h5filter.h"

#ifndef _GNU_SOURCE
#define _GNU_SOURCE /* RTLD_DEFAULT */
#endif
#include <H5PLextern.h>
#include <dlfcn.h>
#include <hdf5.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/chunk.h"

enum { FORM_GIVEN = 0, FORM_STORED = 1 };
#define FIXED       4u /* parameters before the text */
#define MOST_WORDS  16u
#define CHAIN_BYTES (4 * MOST_WORDS + 1)
#define MOST_VALUES (FIXED + MOST_WORDS + ESDM_MAX_RANK)

/* What the parameters say. */
typedef struct setting {
    esdm_type type;
    uint32_t rank;
    uint64_t shape[ESDM_MAX_RANK];
    size_t bytes; /* of a chunk */
    char chain[CHAIN_BYTES];
} setting;

static bool
take_text(const unsigned *words, size_t count, char chain[CHAIN_BYTES])
{
    memset(chain, 0, CHAIN_BYTES);
    if (count > MOST_WORDS)
        return false;
    for (size_t i = 0; i < 4 * count; i++)
        chain[i] = (char) (words[i / 4] >> 8 * (i % 4));
    return chain[0] != '\0';
}

static bool
read_setting(size_t count, const unsigned *values, setting *ret)
{
    uint64_t bytes = 0;
    if (count < FIXED || values[0] != FORM_STORED || values[2] > ESDM_MAX_RANK ||
        values[3] > MOST_WORDS || count < FIXED + values[3] + values[2] ||
        !take_text(values + FIXED, values[3], ret->chain))
        return false;
    ret->type = (esdm_type) values[1];
    ret->rank = values[2];
    bytes = esdm_type_size(ret->type);
    for (uint32_t i = 0; i < ret->rank; i++) {
        ret->shape[i] = values[FIXED + values[3] + i];
        if (__builtin_mul_overflow(bytes, ret->shape[i], &bytes) || bytes > UINT32_MAX)
            return false;
    }
    ret->bytes = (size_t) bytes;
    return bytes > 0 && ret->type != ESDM_TYPE_STRING;
}

/* ---- when a dataset is created ------------------------------------------------------------ */

/* Functions of the HDF5 that loaded this one, which need not be visible: then datasets can be read
 * and not created. */
static struct {
    size_t (*type_size)(hid_t);
    H5T_class_t (*type_class)(hid_t);
    H5T_order_t (*type_order)(hid_t);
    H5T_sign_t (*type_sign)(hid_t);
    int (*chunk)(hid_t, int, hsize_t *);
    herr_t (*get_filter)(hid_t, H5Z_filter_t, unsigned *, size_t *, unsigned *, size_t, char *,
                         unsigned *);
    herr_t (*modify_filter)(hid_t, H5Z_filter_t, unsigned, size_t, const unsigned *);
} hdf5;

static bool
find_hdf5(void)
{
    static const struct {
        void *at;
        const char *name;
    } wanted[] = {{&hdf5.type_size, "H5Tget_size"},
                  {&hdf5.type_class, "H5Tget_class"},
                  {&hdf5.type_order, "H5Tget_order"},
                  {&hdf5.type_sign, "H5Tget_sign"},
                  {&hdf5.chunk, "H5Pget_chunk"},
                  {&hdf5.get_filter, "H5Pget_filter_by_id2"},
                  {&hdf5.modify_filter, "H5Pmodify_filter"}};
    for (size_t i = 0; i < sizeof wanted / sizeof wanted[0]; i++) { /* under HDF5's own lock */
        void *symbol = dlsym(RTLD_DEFAULT, wanted[i].name);
        if (symbol == NULL)
            return false;
        memcpy(wanted[i].at, &symbol, sizeof symbol);
    }
    return true;
}

static esdm_type
type_of(hid_t type)
{
    static const esdm_type whole[2][4] = {
        {ESDM_TYPE_UINT8, ESDM_TYPE_UINT16, ESDM_TYPE_UINT32, ESDM_TYPE_UINT64},
        {ESDM_TYPE_INT8, ESDM_TYPE_INT16, ESDM_TYPE_INT32, ESDM_TYPE_INT64}};
    const H5T_order_t own = __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__ ? H5T_ORDER_LE : H5T_ORDER_BE;
    size_t bytes = hdf5.type_size(type);
    unsigned log2 = bytes == 1 ? 0 : bytes == 2 ? 1 : bytes == 4 ? 2 : bytes == 8 ? 3 : 4;
    if (log2 > 3 || (bytes > 1 && hdf5.type_order(type) != own))
        return ESDM_TYPE_NONE;
    if (hdf5.type_class(type) == H5T_INTEGER)
        return whole[hdf5.type_sign(type) != H5T_SGN_NONE][log2];
    if (hdf5.type_class(type) == H5T_FLOAT && log2 >= 2)
        return log2 == 2 ? ESDM_TYPE_FLOAT32 : ESDM_TYPE_FLOAT64;
    return ESDM_TYPE_NONE;
}

static htri_t
can_apply(hid_t plist, hid_t type, hid_t space)
{
    (void) plist;
    (void) space;
    return find_hdf5() && type_of(type) != ESDM_TYPE_NONE;
}

static herr_t
set_local(hid_t plist, hid_t type, hid_t space)
{
    unsigned given[MOST_VALUES] = {0}, values[MOST_VALUES] = {FORM_STORED}, flags = 0;
    size_t count = MOST_VALUES;
    hsize_t chunk[ESDM_MAX_RANK];
    (void) space;
    if (!find_hdf5() ||
        hdf5.get_filter(plist, ESDM_H5FILTER, &flags, &count, given, 0, NULL, NULL) < 0 ||
        count < 2 || count > MOST_VALUES || given[0] > FORM_STORED)
        return -1;
    /* A property list that is used again has what was stored. */
    bool again = given[0] == FORM_STORED;
    size_t words = again ? given[3] : count - 1;
    const unsigned *text = given + (again ? FIXED : 1);
    int rank = hdf5.chunk(plist, ESDM_MAX_RANK, chunk);
    if (words > MOST_WORDS || (again && count < FIXED + words) || rank < 0 || rank > ESDM_MAX_RANK)
        return -1;
    values[1] = (unsigned) type_of(type);
    values[2] = (unsigned) rank;
    values[3] = (unsigned) words;
    memcpy(values + FIXED, text, words * sizeof *values);
    for (int i = 0; i < rank; i++)
        values[FIXED + words + (size_t) i] =
            (unsigned) chunk[i]; /* HDF5 allows no more than 32 bits */
    return hdf5.modify_filter(plist, ESDM_H5FILTER, flags, FIXED + words + (size_t) rank, values);
}

/* ---- chunks ------------------------------------------------------------------------------- */

static void
tell(const char *what, const esdm_error *err)
{
    if (getenv("ESDM_DEBUG") != NULL)
        (void) fprintf(stderr, "esdm: a chunk cannot be %s: %s\n", what, err->message);
}

static bool
encode(const setting *s, const void *raw, size_t bytes, void **ret_bytes, size_t *ret_size)
{
    esdm_error err = {.status = ESDM_OK};
    if (bytes != s->bytes) /* another filter came before */
        return false;
    bool good = esdm_chunk_encode(s->chain, s->type, s->rank, s->shape, raw, ret_bytes, ret_size,
                                  &err) == ESDM_OK;
    if (!good)
        tell("encoded", &err);
    return good;
}

/* HDF5 trusts that a chunk has all its bytes. */
static bool
decode(const setting *s, const void *stored, size_t bytes, void **ret_raw, size_t *ret_size)
{
    esdm_error err = {.status = ESDM_OK};
    if (esdm_chunk_decode(stored, bytes, s->bytes, ret_raw, ret_size, &err) != ESDM_OK) {
        tell("decoded", &err);
        return false;
    }
    if (*ret_size == s->bytes)
        return true;
    free(*ret_raw);
    return false;
}

static size_t
filter(unsigned flags, size_t count, const unsigned values[], size_t bytes, size_t *buffer_bytes,
       void **buffer)
{
    setting s;
    void *made = NULL;
    size_t size = 0;
    bool reverse = (flags & H5Z_FLAG_REVERSE) != 0;
    if (!read_setting(count, values, &s) || !(reverse ? decode(&s, *buffer, bytes, &made, &size)
                                                      : encode(&s, *buffer, bytes, &made, &size)))
        return 0;
    free(*buffer); /* HDF5 takes memory of chunks from malloc(), too */
    *buffer = made;
    *buffer_bytes = size;
    return size;
}

/* ---- what HDF5 asks for ------------------------------------------------------------------- */

static const H5Z_class2_t esdm_filter = {
    .version = H5Z_CLASS_T_VERS,
    .id = ESDM_H5FILTER,
    .encoder_present = 1,
    .decoder_present = 1,
    .name = "esdm",
    .can_apply = can_apply,
    .set_local = set_local,
    .filter = filter,
};

__attribute__((visibility("default"))) H5PL_type_t
H5PLget_plugin_type(void)
{
    return H5PL_TYPE_FILTER;
}

__attribute__((visibility("default"))) const void *
H5PLget_plugin_info(void)
{
    return &esdm_filter;
}
