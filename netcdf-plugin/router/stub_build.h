/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_STUB_BUILD_H
#define ESDMNC_STUB_BUILD_H

/** @file Stub files as they are written. Needs libc alone: tools use it, too. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#define ESDMNC_STUB_MAGIC     "CDF\001ESDM"
#define ESDMNC_STUB_MAGIC_LEN 8
/** No stub is longer. */
#define ESDMNC_STUB_MAX 8192

#define ESDMNC_STUB_TAG_ATTRIBUTES 12u
#define ESDMNC_STUB_TYPE_CHAR      2u
#define ESDMNC_STUB_SITE           "esdm_site"

/** What every reader of a stub is told. */
extern const char esdmnc__stub_notice[];

/** Where a stub was made, and for what. */
typedef struct esdmnc__stub_place {
    const char *inode;
    const char *path;
    uint64_t number;  /**< 0: none */
    uint64_t version; /**< of what stands there */
    const char *site; /**< "": none */
} esdmnc__stub_place;

/** A classic file with a stub's attributes. @param version 1 (a stub), 2 or 5: of CDF. @param place
 *  NULL: of bytes that lie nowhere. @return bytes; 0: they do not fit. */
size_t esdmnc__stub_build(int version, const char *container, const esdmnc__stub_place *place,
                          unsigned char *bytes, size_t size);
/** What stands before the text of an attribute of that length. @return bytes; 0: they do not fit.
 */
size_t esdmnc__stub_before_text(const char *name, size_t length, unsigned char *bytes, size_t size);
/** How a stub says which file it is. */
void esdmnc__stub_inode(const struct stat *st, char *text, size_t size);
/** Puts a stub at `path` in one step. @param replace what is there; else EEXIST. @param
 * ret_absolute PATH_MAX bytes: its real path; "" where that is not known. @return 0 or an errno. */
int esdmnc__stub_put(const char *path, bool replace, const char *container, uint64_t number,
                     uint64_t version, const char *site, char *ret_absolute);

#endif
