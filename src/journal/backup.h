/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_BACKUP_H
#define ESDM_JOURNAL_BACKUP_H

/**
 * @file
 * Backups of the catalogue: packs on the targets, of records (journal/record.h). The first record
 * says when the backup began and in which form it is: "file" (what the metadata store's backup()
 * gives) or "containers"; the last one that it is whole.
 *
 * A backup makes what the journals have told before it superfluous. Several generations are kept,
 * and of the journals what is younger than the oldest of them: a damaged backup costs nothing.
 */

#include "journal/reader.h"
#include "site/catalogue.h"

/** Generations that are kept. */
#define ESDM__BACKUP_GENERATIONS 3u
/** Packs of journals, and backups that are not whole, are left alone for so long. */
#define ESDM__BACKUP_MARGIN_S 3600u

typedef struct esdm__backup {
    size_t target; /* in the array of targets */
    char name[ESDM__SITE_PACK_NAME];
    uint64_t bytes;
    uint64_t start_ns;    /* when it began, by the clock of who made it */
    uint64_t modified_ns; /* when it was whole, by the clock of the target */
} esdm__backup;

/**
 * Makes a backup on every target, at least on one, and removes what it makes superfluous.
 * @param ret_stored on how many targets it lies; may be NULL.
 */
esdm_status esdm__backup_make(const esdm__catalogue *catalogue, const char *site_id,
                              const esdm__journal_target *targets, size_t ntargets,
                              size_t *ret_stored, esdm_error *err);

/** All backups that lie on the targets, the newest first. @param ret_backups owned, free(). */
esdm_status esdm__backup_list(const esdm__journal_target *targets, size_t ntargets,
                              esdm__backup **ret_backups, size_t *ret_count, esdm_error *err);

/** Reads a backup. */
typedef struct esdm__backup_reader {
    esdm__journal_reader records;
    bool is_file; /* its form */
    char site_id[ESDM__UUID_BYTES];
    uint64_t pieces; /* records between the first and the last one */
    bool ended;      /* the last record was seen, and there were as many as it says */
} esdm__backup_reader;

/** Reads it from the first record to the last. ESDM_ECORRUPT: it is not whole. */
esdm_status esdm__backup_verify(const esdm__backup *backup, const esdm__journal_target *targets,
                                esdm_error *err);
/** @param ret_reader esdm__backup_close(), whatever is returned. */
esdm_status esdm__backup_open(const esdm__backup *backup, const esdm__journal_target *targets,
                              esdm__backup_reader *ret_reader, esdm_error *err);
/** The next record between the first and the last. @param ret_end whether there are no more. */
esdm_status esdm__backup_read(esdm__backup_reader *reader, esdm__journal_record *ret_record,
                              bool *ret_end, esdm_error *err);
void esdm__backup_close(esdm__backup_reader *reader);

#endif
