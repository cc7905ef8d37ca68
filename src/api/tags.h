/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_TAGS_H
#define ESDM_API_TAGS_H

/** @file Names of snapshots, for the other sources of this folder. */

#include "api/moment.h"
#include "esdm/history.h"
#include "io/session/session.h"

/** A tag that is looked for. */
typedef struct esdm__tagged {
    const char *name;
    uint64_t snapshot; /* 0: there is none */
} esdm__tagged;

bool esdm__tag_is_valid(const char *tag);
/** Looks in the tags of a record. */
esdm_status esdm__tag_find(esdm_session *session, uint64_t record, esdm__tagged *tagged,
                           esdm_error *err);

/** The record and snapshot that a name says. @param ret_stored the name of that record. */
esdm_status esdm__tag_place(esdm_session *session, const char *name,
                            char ret_stored[ESDM__FORMER_NAME_BYTES], uint64_t *ret_record,
                            uint64_t *ret_snapshot, esdm_error *err);
/**
 * Sets a tag at the snapshot that a name says, whatever others commit or replace meanwhile.
 * @param tag its snapshot does not count.
 * @param ret_record where it was tried last, also on failure; likewise `ret_snapshot`; may be NULL.
 */
esdm_status esdm__tag_newest(esdm_session *session, const char *name, const esdm_meta_tag *tag,
                             bool replace, uint64_t *ret_record, uint64_t *ret_snapshot,
                             esdm_error *err);

/** Visits those of a container and of the former ones of its name; esdm_container_tags(). */
esdm_status esdm__tags_visit(esdm_session *session, const char *name, esdm_tag_visitor visit,
                             void *user, esdm_error *err);

#endif
