/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_SCAN_H
#define ESDM_JOURNAL_SCAN_H

/** @file What lies on the targets of a site: which packs, and which records the journals have. */

#include "journal/reader.h"

/** Where a record of a journal lies. */
typedef struct esdm__journal_ref {
    char uuid[ESDM__UUID_BYTES];
    esdm__journal_kind kind;
    uint64_t time_ns;
    uint64_t snapshot; /* of a commit, or a clone */
    uint64_t part_of;  /* of a part: id of the commit; of a commit with parts likewise, else 0 */
    uint32_t target;
    uint32_t pack; /* in `packs` */
    uint64_t position;
    uint64_t bytes;
} esdm__journal_ref;

typedef struct esdm__scan {
    const esdm__journal_target *targets; /* borrowed */
    size_t ntargets;
    char **packs; /* names of the journals' packs; owned */
    size_t npacks;
    esdm__journal_ref *refs; /* owned; by container, time, snapshot */
    size_t nrefs;
    char **data_packs; /* names of all other packs but backups; owned, sorted */
    size_t ndata_packs;
    uint64_t damaged; /* bytes of journals that are none of a record */
    uint64_t newer;   /* records of a newer ESDM */
    uint64_t unread;  /* packs of journals that could not be read */
} esdm__scan;

/** @param ret_scan esdm__scan_clear(), whatever is returned. */
esdm_status esdm__scan_targets(const esdm__journal_target *targets, size_t ntargets,
                               esdm__scan *ret_scan, esdm_error *err);
void esdm__scan_clear(esdm__scan *scan);
/** Whether there is such a pack on any target. */
bool esdm__scan_has_pack(const esdm__scan *scan, const char *name);
/** Reads a record again. @param ret_data owned, free(): what the record lies in. */
esdm_status esdm__scan_load(const esdm__scan *scan, const esdm__journal_ref *ref,
                            esdm__journal_record *ret_record, uint8_t **ret_data, esdm_error *err);

#endif
