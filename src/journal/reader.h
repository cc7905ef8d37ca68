/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_READER_H
#define ESDM_JOURNAL_READER_H

/** @file Records of one pack, in order. One thread. */

#include "esdm/sys/data_target.h"
#include "journal/record.h"

/** An open target. */
typedef struct esdm__journal_target {
    const esdm_data_plugin *plugin;
    void *handle;
    const char *name; /* borrowed */
} esdm__journal_target;

typedef struct esdm__journal_reader {
    const esdm__journal_target *target; /* borrowed */
    const char *pack;                   /* borrowed */
    uint64_t bytes;                     /* of the pack */
    uint64_t position;                  /* of data[0] in the pack */
    uint8_t *data;                      /* owned */
    size_t have;
    size_t capacity;
    size_t at;        /* in `data`: where the next record is looked for */
    uint64_t damaged; /* bytes that belong to no record */
    uint64_t newer;   /* records of a newer ESDM, which were passed by */
} esdm__journal_reader;

/** @param bytes of the pack, as it was listed. */
void esdm__journal_reader_init(esdm__journal_reader *reader, const esdm__journal_target *target,
                               const char *pack, uint64_t bytes);
void esdm__journal_reader_clear(esdm__journal_reader *reader);
/** The next whole record; what is damaged before it is passed by, and counted.
 *  @param ret_position of the record in the pack. @param ret_end set when there are no more. */
esdm_status esdm__journal_read(esdm__journal_reader *reader, esdm__journal_record *ret_record,
                               uint64_t *ret_position, bool *ret_end, esdm_error *err);

#endif
