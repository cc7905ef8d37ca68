/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_JOURNALING_H
#define ESDM_IO_SESSION_JOURNALING_H

/**
 * @file
 * What a session notes on its targets about the catalogue: each change in a journal
 * (journal/journal.h), and now and then a backup of the whole (journal/backup.h). None of it makes
 * a change of the catalogue fail.
 * Threads: locked inside.
 */

#include "io/session/session.h"
#include "journal/commit.h"

/** A commit that is being entered. */
typedef struct esdm__noting {
    esdm_session *session; /* NULL: nothing is noted */
    const esdm_meta_commit *commit;
    const char *uuid;
    esdm_meta_page_source source; /* of the commit, which is asked by way of this */
    void *source_user;
    esdm_meta_container former; /* that has the name which the commit takes; 0: none */
    esdm__journal_entry entry;
} esdm__noting;

/** Before the transaction: takes the place of the commit's page source, if it has one. */
void esdm__noting_begin(esdm__noting *noting, esdm_session *session, esdm_meta_commit *commit,
                        const char *uuid);
/** After it. @param status of the transaction. @param merged_sums checksums of commit->merged. */
void esdm__noting_end(esdm__noting *noting, esdm_status status, const uint64_t *merged_sums,
                      const esdm_meta_committed *committed);

/** The metadata store's container_remove() and container_move(), noted in the journal. All changes
 * of names that are no commits go by way of these. @param seen with `replace`, what `to` must be
 * still, else ESDM_ECONFLICT; NULL: anything. */
esdm_status esdm__named_remove(esdm_session *session, const char *name, uint64_t *ret_container,
                               esdm_error *err);
esdm_status esdm__named_move(esdm_session *session, const char *from, const char *to, bool replace,
                             const char *keep_as, const esdm_meta_seen *seen,
                             uint64_t *ret_replaced, esdm_error *err);

/** The metadata store's clone(), noted in the journal. */
esdm_status esdm__noted_clone(esdm_session *session, const esdm_meta_clone *clone,
                              esdm_meta_committed *ret_made, esdm_error *err);

/** The metadata store's tag_set() and tag_remove(), noted in the journal. @param stored what the
 *  container is called in the store, as far as is known. */
esdm_status esdm__noted_tag(esdm_session *session, const char *stored, uint64_t container,
                            const esdm_meta_tag *tag, bool replace, esdm_error *err);
esdm_status esdm__noted_untag(esdm_session *session, const char *stored, uint64_t container,
                              const char *name, esdm_error *err);
/** Enters what these have done. @param tag with its time; snapshot 0: it is gone. */
void esdm__note_tag(esdm_session *session, const char *stored, uint64_t container,
                    const esdm_meta_tag *tag);

/** Pages of a container whose fragments lie elsewhere. @param sums checksums of the pages as they
 *  were; those that are not `moved` are left out. */
void esdm__note_moved(esdm_session *session, const char *uuid, const esdm_meta_relocation *pages,
                      const uint64_t *sums, size_t npages);

/** At the end of a program: what was noted is stored, the backup made that is due, and the metadata
 *  store settled. */
void esdm__journaling_settle(esdm_session *session);
/** When the session ends: makes the backup that is due, if it changed something. */
void esdm__journaling_end(esdm_session *session);

#endif
