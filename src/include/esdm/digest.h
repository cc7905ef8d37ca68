/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_DIGEST_H
#define ESDM_DIGEST_H

/**
 * @file
 * A text that says what a snapshot contains, so that a version of data can be cited, and checked
 * years later. The same groups, dimensions, types, variables, attributes and values give the same
 * digest, wherever and however they are stored: on other targets, in other fragments, with other
 * lossless codecs, in another container, on another site, in a netCDF-4 file and back.
 *
 * What does not count: the order in which things were defined (names count), whether a dimension is
 * unlimited, chunks, codecs and hints, the container's name and history, attributes of ESDM
 * (`esdm_…`) and of the netCDF library (`_NCProperties`), and whether an element was written or
 * reads as the fill value. Numbers count bit by bit: 0.0 and -0.0 differ, and so do types. A NULL
 * text is an empty one.
 *
 * How it is made, to be followed with any SHA-256 (H). A *number* is 8 bytes, little-endian; a
 * *text* is the number of its bytes, and these; a *list* is the number of its items, and these,
 * sorted by the bytes of their names.
 *
 * - The digest is "esdm1:" and H(text "esdm digest 1", H of the root group) in 64 hexadecimal
 *   digits.
 * - H of a group: text "group", list of attributes, list of dimensions (name, number length), list
 *   of types (name, definition), list of variables (name, path of each dimension, H), list of
 *   groups (name, H).
 * - H of a variable: text "variable", text type, number rank, for each axis name and length of its
 *   dimension, list of attributes, H of the values.
 * - An attribute: text name, text type, number of values, text of their stored form. A fill value
 *   that was set counts as the attribute `_FillValue`.
 * - H of the values: of the hashes of all leaves, one after the other. A leaf is the stored form of
 *   so many consecutive elements in C order: 2^20 divided by the bytes of an element, and 4,096 of
 *   elements whose bytes vary (or are more than 2^20: 1). The last leaf has what is left.
 * - The stored form of numbers is little-endian; of texts: a varint (LEB128) of their bytes plus 1,
 *   and these; of user-defined types: their members in order without padding, arrays with a varint
 *   of their length before them, opaque bytes as they are.
 * - A type is the name of an atomic one ("int8" … "float64", "char", "string") or the path of a
 *   user-defined one. Its definition: text "compound" and for each member name, type, number of its
 *   dimensions, and these; "enum" with the base type and for each name a text of the value's bytes;
 *   "opaque" with the number of bytes; "vlen" with the base type.
 */

#include "esdm/container.h"

#ifdef __cplusplus
extern "C" {
#endif

#define ESDM_DIGEST_BYTES 71 /**< room for a digest with its NUL */

/** The global attribute with which readers who ask for it are told the digest. */
#define ESDM_DIGEST_ATTRIBUTE "esdm_snapshot"

/** Flags of esdm_container_digest(). */
enum {
    /** Reads the values, also when the digest of this snapshot was noted before. */
    ESDM_DIGEST_READ = 1
};

/**
 * The digest of what this handle sees, which must not have changes that are not committed. Reads
 * all values the first time (in parts of 32 MiB, by all threads of the session); a digest is noted
 * beside the catalogue, so that asking again for the same snapshot reads nothing.
 * @param flags ESDM_DIGEST_…, or 0.
 * @param ret_text room for ESDM_DIGEST_BYTES.
 * Threads: as esdm_read(). @return ESDM_EINVAL: changes are pending. Else as esdm_read().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_digest(esdm_container *container,
                                                           uint32_t flags, char *ret_text,
                                                           esdm_error *err);
/**
 * Gives a handle that was opened for reading the global attribute ESDM_DIGEST_ATTRIBUTE: digest,
 * and name and snapshot ("esdm1:… esdm://run1.nc@7"). Nothing is stored. Opening `NAME?digest`
 * does this as well (where no container is called so). Threads: as calls that change structure.
 * @return ESDM_EINVAL: the handle is open for writing. Else as esdm_container_digest().
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_container_tell_digest(esdm_container *container,
                                                                esdm_error *err);
/** H of a variable, in the same form ("esdm1:…"): of two that are equal but for their names. Reads
 *  its values. As esdm_container_digest() else. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_dataset_digest(esdm_dataset *dataset, char *ret_text,
                                                         esdm_error *err);

#ifdef __cplusplus
}
#endif

#endif
