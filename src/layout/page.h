/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_LAYOUT_PAGE_H
#define ESDM_LAYOUT_PAGE_H

/**
 * @file
 * Pages of fragment records: the stored form, and the form in memory.
 *
 * Versions 1 to 5, little-endian:
 *
 *     0  magic "ESDMPAGE"
 *     8  checksum u64: XXH3 of all bytes from 16 on
 *    16  version u16: 5 when there are outlines, else 4 when there are kinds or statistics, else 3
 *        when a pack has several places
 *        or names a node, else 2 when there are strided fragments, else 1
 *    18  flags   u16: bit 0 absolute sequences, bit 1 body is one LZ4 block, bit 2 (from version 3
 *        on) there are strides, bit 3 (from version 4 on) there are kinds, bit 4 (from version 4
 *        on) there are statistics, bit 5 (version 5) there are outlines
 *    20  rank    u32
 *    24  records u32, 1 … ESDM__PAGE_RECORDS
 *    28  body_bytes u32: of the body before LZ4
 *    32  body
 *
 * The body is a list of packs and then columns, each of one number a record:
 *
 *     varint n, then n × { varint length, places; varint length, pack name }; places: the name
 *                   of a target, from version 3 on as layout/places.h has it
 *     with kinds: see below
 *     for each dimension: lower corner, size
 *     sequence      relative: order within the commit; absolute: snapshot << 32 | order
 *     raw_bytes
 *     stored_bytes
 *     pack          0: in none, k: pack k-1
 *     position      minus the end of the previous record of the same pack, or foreign file (modulo
 *                   2^64; first: 0); 0 if the data are in the page
 *     head_bytes
 *     codec ids     as u32
 *     with strides, for each dimension: stride, 1 where dense or where the box has one element
 *     with statistics: see below
 *     with outlines: length of the outline, 0: none
 *     inline data of all inline records, of constants one element, and outlines of the others
 *     (codec/outline.h), in the order of records
 *
 * With kinds (layout/page_sources.c):
 *     varint n, then n × { varint role, varint length, description }: layout/source.h
 *     kind          as esdm__kind. Unknown ones are no error: only who reads them cannot.
 *     when n > 0: description of the source (0: none, k: description k-1), the same of the
 *     decoding, filter mask, kind of check, check
 * Records that lie elsewhere (all kinds from 2 on) have no inline data, and their stored bytes do
 * not count in those of the directory.
 *
 * With statistics (layout/page_statistics.c), of the records that have some:
 *     class         as esdm__number_class; 0: none
 *     valid         number of valid values
 *     rule          which values were missing
 *     then the minima of all, the maxima of all (4 bytes of singles, else 8), the sums of all
 *     (8 bytes, double)
 *
 * A column begins with a byte for its kind: 0 arithmetic (varint first value, svarint step),
 * 1 differences (svarint each, the first one to 0); both modulo 2^64. varint: LEB128; svarint:
 * zigzag. Records are in R-tree order (layout/rtree.h), so the tree is rebuilt without sorting.
 */

#include <stdatomic.h>

#include "base/buffer.h"
#include "layout/index.h"
#include "layout/records.h"
#include "layout/rtree.h"

#define ESDM__PAGE_HEADER_BYTES 32u
/** Largest body. What encode accepts stays below. */
#define ESDM__PAGE_BODY_MAX (32u << 20)
/** Inline data of a page; a longer page is split. One inline fragment is at most that long. */
#define ESDM__PAGE_INLINE_MAX (2u << 20)
/** Longest outline. */
#define ESDM__PAGE_OUTLINE_MAX 16384u
/** Longest name of a target or a pack. */
#define ESDM__PAGE_NAME_MAX 1023u

/** A page in memory. Immutable, apart from the count, once it is shared. */
struct esdm__page {
    atomic_uint references;
    esdm__records records; /* absolute sequences */
    esdm__rtree tree;
    uint32_t npacks;
    esdm__pack_name *packs; /* owned; what the records point to until the page enters an index */
    char *names;            /* owned; texts of `packs` */
    uint32_t nsources;
    esdm__source *sources; /* owned; as `packs` */
    uint8_t *source_data;  /* owned; bytes of `sources` */
    size_t memory_bytes;
    uint64_t checksum; /* in the head of its stored form: what the journal calls it by */
};

/**
 * Encodes records order[0 … count-1] in that order. Deterministic.
 * @param count 1 … ESDM__PAGE_RECORDS. @param absolute whether sequences are stored whole.
 * @param ret_data owned, free().
 */
esdm_status esdm__page_encode(const esdm__records *records, const uint32_t *order, uint32_t count,
                              bool absolute, uint8_t **ret_data, size_t *ret_bytes,
                              esdm_error *err);

/**
 * The page in memory that esdm__page_decode() would make of what was encoded, made of the records
 * themselves. Names and descriptions stay those of the records.
 * @param records of orders: sequences become those of snapshot `entry->added`.
 * @param data the encoded page, of which the checksum is taken.
 * @return owned reference; NULL: out of memory.
 */
esdm__page *esdm__page_of_records(const esdm_meta_page *entry, const esdm__records *records,
                                  const uint32_t *order, const void *data);

/** Frees pack names and descriptions, when no record points to them any more. */
void esdm__page_forget_names(esdm__page *page);

/* Columns (layout/column.c) */

/** Appends `count` numbers. */
void esdm__column_put(esdm__buffer *buffer, const uint64_t *values, uint32_t count);
/** Reads `count` numbers; damage sets cursor->failed. */
void esdm__column_get(esdm__cursor *cursor, uint64_t *ret_values, uint32_t count);

#endif
