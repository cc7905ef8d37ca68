/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_RECORD_H
#define ESDM_JOURNAL_RECORD_H

/**
 * @file
 * Records of the journal and of backups: what the catalogue of a site holds, as bytes on its
 * targets. Version 1, little-endian:
 *
 *     0  magic "ESDMJRNL"
 *     8  checksum u64: XXH3 of all bytes of the record from 16 on
 *    16  bytes u64: of the whole record
 *    24  version u16, kind u16, u32 that is zero
 *    32  time u64: nanoseconds since 1970, by the writer's clock
 *    40  uuid of the container as 32 hex digits, or zeros
 *    72  body
 *
 * A body is a sequence of varints (LEB128), texts and blobs (varint length, then the bytes). It
 * names nothing by the numbers that a metadata store gives (those change when a catalogue is
 * restored): containers are named by their uuid, pages by the checksum in their head.
 */

#include "base/buffer.h"
#include "base/ids.h"
#include "base/site_packs.h"
#include "esdm/sys/meta_store.h"

#define ESDM__JOURNAL_VERSION    1u
#define ESDM__JOURNAL_HEAD_BYTES 72u

typedef enum esdm__journal_kind {
    ESDM__JOURNAL_COMMIT = 1, /* a commit of one container */
    ESDM__JOURNAL_PART = 2,   /* pages of a commit that follows in the same pack */
    ESDM__JOURNAL_NAME = 3,   /* the container has another name, or none */
    ESDM__JOURNAL_MOVED = 4,  /* pages whose fragments lie elsewhere */
    ESDM__JOURNAL_BEGIN = 5,  /* a backup begins */
    ESDM__JOURNAL_BYTES = 6,  /* of the database, in a backup of form "file" */
    ESDM__JOURNAL_WHOLE = 7,  /* a container, in a backup of form "containers" */
    ESDM__JOURNAL_FACT = 8,   /* likewise */
    ESDM__JOURNAL_END = 9,    /* the backup is whole */
    ESDM__JOURNAL_CLONE = 10, /* a container began as a clone */
    ESDM__JOURNAL_TAG = 11    /* a snapshot has a tag, or the container has one no more */
} esdm__journal_kind;

/** A record as it lies in memory. */
typedef struct esdm__journal_record {
    esdm__journal_kind kind;
    uint64_t time_ns;
    char uuid[ESDM__UUID_BYTES]; /* "": of no container */
    esdm__cursor body;           /* borrowed from what was read */
    size_t bytes;                /* of the whole record */
} esdm__journal_record;

/** Begins a record. @return where, for esdm__journal_finish(). @param uuid NULL: none. */
size_t esdm__journal_start(esdm__buffer *out, esdm__journal_kind kind, uint64_t time_ns,
                           const char *uuid);
/** Fills in length and checksum of the record that began at `start`. */
void esdm__journal_finish(esdm__buffer *out, size_t start);

typedef enum esdm__journal_found {
    ESDM__JOURNAL_FOUND,
    ESDM__JOURNAL_DAMAGED, /* there is none here that is whole: go on at the next byte */
    ESDM__JOURNAL_NEWER    /* of a newer ESDM; `bytes` is set */
} esdm__journal_found;

/** Looks at a record. @param data,bytes what begins with it, and perhaps goes on behind it. */
esdm__journal_found esdm__journal_look(const uint8_t *data, size_t bytes,
                                       esdm__journal_record *ret_record);

/* ---- parts of a body ------------------------------------------------------------------------ */

void esdm__journal_put_text(esdm__buffer *out, const char *text); /* NULL is "" */
void esdm__journal_put_blob(esdm__buffer *out, const void *data, size_t bytes);
/** @return borrowed, not NUL-terminated; NULL and body->failed when it is damaged. */
const uint8_t *esdm__journal_blob(esdm__cursor *body, size_t *ret_bytes);
/** @return owned, free(); NULL and body->failed when it is damaged or memory is short. */
char *esdm__journal_text(esdm__cursor *body);

void esdm__journal_put_lengths(esdm__buffer *out, const esdm_meta_length *lengths, size_t count);
/** @param ret_lengths owned, free(). false: damaged, or no memory. */
bool esdm__journal_lengths(esdm__cursor *body, esdm_meta_length **ret_lengths, size_t *ret_count);

/** A page with the snapshots that see it; those of a commit have 0 for both. */
typedef struct esdm__journal_page {
    esdm_meta_new_page page; /* `box` and `data`: see below */
    uint64_t added;
    uint64_t removed;
} esdm__journal_page;
void esdm__journal_put_page(esdm__buffer *out, const esdm_meta_new_page *page, uint64_t added,
                            uint64_t removed);
/** @param ret_page its `box` is owned (free()), its `data` borrowed. false: damaged, or no memory.
 */
bool esdm__journal_page_take(esdm__cursor *body, esdm__journal_page *ret_page);

/** The checksum in the head of a page: what the journal calls it by. 0: it is no page. */
uint64_t esdm__journal_page_sum(const void *data, size_t bytes);

#endif
