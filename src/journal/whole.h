/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_JOURNAL_WHOLE_H
#define ESDM_JOURNAL_WHOLE_H

/** @file Containers and facts as records of a backup, for metadata stores that have no backup of
 *  their own. */

#include "journal/record.h"
#include "site/catalogue.h"

/** Appends a record of kind ESDM__JOURNAL_WHOLE; pages are loaded from the store.
 *  ESDM_ENOENT: one went away meanwhile. */
esdm_status esdm__journal_put_whole(esdm__buffer *out, const esdm__catalogue *from,
                                    const esdm__whole *whole, esdm_error *err);
/** Reads one back, with its pages; without its attributes. @param ret_whole zeroed. */
esdm_status esdm__journal_take_whole(const esdm__journal_record *record, esdm__whole *ret_whole,
                                     esdm_error *err);

/** A container that began as a clone. Body: its first snapshot, name, whether that was taken from
 *  another one (u8), what that one is called from then on ("": none), and what WHOLE has. */
typedef struct esdm__journal_cloned {
    uint64_t snapshot;
    char *name; /* owned, as what follows */
    bool replaces;
    char *keep_as; /* "": none */
} esdm__journal_cloned;

/** Appends a record of kind ESDM__JOURNAL_CLONE. @param whole what the catalogue has of it now. */
esdm_status esdm__journal_put_clone(esdm__buffer *out, const esdm__catalogue *from,
                                    const esdm__whole *whole, const esdm_meta_clone *clone,
                                    const esdm_meta_committed *made, esdm_error *err);
/** @param ret_clone esdm__journal_cloned_clear(). @param ret_whole may be NULL. */
esdm_status esdm__journal_take_clone(const esdm__journal_record *record,
                                     esdm__journal_cloned *ret_clone, esdm__whole *ret_whole,
                                     esdm_error *err);
void esdm__journal_cloned_clear(esdm__journal_cloned *clone);

/** Adds a copy of a page, and takes its `box` over in every case. false: out of memory. */
bool esdm__whole_copy_page(esdm__whole *whole, const esdm_meta_new_page *entry, uint64_t added,
                           uint64_t removed);

/** Makes the attribute index anew from the newest document. */
esdm_status esdm__whole_index(esdm__whole *whole, esdm_error *err);

#endif
