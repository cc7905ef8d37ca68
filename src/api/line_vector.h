/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_LINE_VECTOR_H
#define ESDM_API_LINE_VECTOR_H

/**
 * @file
 * What a snapshot has of all lines of its container, as a vector: of each line the newest snapshot
 * that it has, by merges of any line into any other. The snapshot itself is in it, too. A line that
 * was removed and made again is another one, so lines are told by their uuids.
 *
 * Of a line: "esdm:has:UUID", at a snapshot that a merge made, or at the one that a branch began
 * with; the author of that tag is the vector. Until that is noted the author of "esdm:came:UUID"
 * has it (api/lines.h). A snapshot has what all such tags up to it say.
 * Of each line of which the merge brought something newer: "esdm:kept:UUID", at that snapshot. It
 * is there before the commit.
 */

#include "api/line_parts.h"

typedef struct esdm__vector_item {
    char branch[ESDM_BRANCH_MAX + 1]; /* "": the container */
    char id[ESDM__LINE_ID_BYTES];     /* of the line */
    uint64_t snapshot;
} esdm__vector_item;

/** Zero-initialise. */
typedef struct esdm__vector {
    esdm__vector_item *items; /* owned */
    size_t count;
} esdm__vector;

void esdm__vector_clear(esdm__vector *v);
/** The snapshot of a line; 0: none. */
uint64_t esdm__vector_get(const esdm__vector *v, const char *id);
/** Unless it has a newer one. */
esdm_status esdm__vector_raise(esdm__vector *v, const char *branch, const char *id,
                               uint64_t snapshot, esdm_error *err);
esdm_status esdm__vector_join(esdm__vector *v, const esdm__vector *other, esdm_error *err);
/** What both have. @param ret zeroed. */
esdm_status esdm__vector_meet(const esdm__vector *a, const esdm__vector *b, esdm__vector *ret,
                              esdm_error *err);
bool esdm__vector_equal(const esdm__vector *a, const esdm__vector *b);
/** @return owned by the caller; NULL: out of memory. */
char *esdm__vector_text(const esdm__vector *v);
/** Joins what a text has. Text that is none adds nothing. */
esdm_status esdm__vector_parse(esdm__vector *v, const char *text, esdm_error *err);

/** What a snapshot of a line has. @param name of the line as programs say it. @param l its record:
 *  what is told of one that goes meanwhile is not whole (esdm__line_is_there()).
 *  @param ret is joined with it; zeroed at first. */
esdm_status esdm__line_vector(esdm_session *session, const char *name, const esdm__line *l,
                              uint64_t snapshot, esdm__vector *ret, esdm_error *err);
/** The line of that uuid, which may be a former container; record 0: there is none any more.
 *  @param name of any line of the container. @param ret_name as programs say it. */
esdm_status esdm__line_by_id(esdm_session *session, const char *name, const char *branch,
                             const char *id, esdm__line *ret,
                             char ret_name[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err);

/** Whether all snapshots of a line after one of them, up to another one, were made by merges. */
esdm_status esdm__line_only_merged(esdm_session *session, const esdm__line *l, uint64_t after,
                                   uint64_t to, bool *ret, esdm_error *err);

/** Of a new branch: what it began with. @param l of the branch. */
esdm_status esdm__line_begin_vector(esdm_session *session, const char *parent, const esdm__line *l,
                                    uint64_t snapshot, esdm_error *err);
/** Notes what a merge has brought. @param text of the vector. */
esdm_status esdm__line_note_vector(esdm_session *session, const esdm__line *l, const char *uuid,
                                   uint64_t snapshot, const char *text, esdm_error *err);
/** Keeps what a merge is about to bring into a line that has `has`. What has gone is passed by. */
esdm_status esdm__line_keep(esdm_session *session, const char *name, const esdm__vector *has,
                            const esdm__vector *brings, const char *uuid, esdm_error *err);
/** Takes tags of vectors that no line needs any more, an hour after that or later. Best effort. */
void esdm__line_sweep_vectors(esdm_session *session, const char *name);

#endif
