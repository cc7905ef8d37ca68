/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_LINES_H
#define ESDM_API_LINES_H

/**
 * @file
 * What lines of commits have in common: a container, its branches, and branches of these. All
 * branches of a container have names beside each other; which began with which tags of the engine's
 * own tell. A line is called as its container.
 *
 * Of what a branch is about to begin with: "esdm:begin:UUID", of the branch.
 * Of a branch: "esdm:parent:B", the branch that it began with (none: the container itself), at the
 * snapshot that both have in common. "esdm:merged", its newest snapshot that is in the container;
 * "esdm:merged:B", that is in the branch B. "esdm:behind", "esdm:behind:B": what of its line is
 * there is more than its parent began with, and less than it began with itself. The author of that
 * tag is the branch which keeps that snapshot, by "esdm:holds:BRANCH:B", also when it is removed.
 * Of a line that is about to be merged: "esdm:into:UUID", of the merge; the author of that tag is
 * the other line's branch. Of the snapshot that the merge makes, from its transaction on until all
 * of the above is noted: "esdm:came:UUID"; its author is which of both began with the other, the
 * merged line's branch, and what the snapshot has of all lines (api/line_vector.h).
 * Of what it began with, and of what that began with: "esdm:branch:BRANCH", at the newest snapshot
 * that both had in common then. It is kept so. "esdm:given:BRANCH", its newest snapshot that was
 * merged into the branch, also by way of lines between them; the author of that tag is the number
 * of the branch's first snapshot that has it. Of all that two lines have in common the one is taken
 * which the branch has since its newest snapshot.
 */

#include "api/branches.h"
#include "io/session/former.h"

/** A snapshot that is in two lines, and who keeps it. */
typedef struct esdm__common {
    char holder[ESDM__FORMER_NAME_BYTES]; /* as the store calls it */
    uint64_t record;                      /* its own */
    uint64_t snapshot;                    /* 0: there is none that is known */
    bool is_given;                        /* the branch got it from the other line, by a merge */
    bool is_late;                         /* it came into the branch after this began */
    bool related;                         /* the one line began with the other */
} esdm__common;

/**
 * The newest snapshot of a branch that is in a line which it began with, directly or not.
 * @param line name of the branch. @param in name of the other line.
 * @param ret snapshot 0 and `related`: it was kept by a branch between them that is gone.
 */
esdm_status esdm__line_common(esdm_session *session, const char *line, const char *in,
                              esdm__common *ret, esdm_error *err);

/** What a branch began with. @param ret_parent name of the container if no tag tells another one.
 *  @param ret_from the snapshot of both; 0: not known. May be NULL. @param ret_merged the newest
 *  snapshot of the branch that is in its parent; 0: not known. May be NULL. */
esdm_status esdm__line_parent(esdm_session *session, const char *line,
                              char ret_parent[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_from,
                              uint64_t *ret_merged, esdm_error *err);

/**
 * Before a branch is made: its parent keeps the snapshot, by a tag "esdm:begin:UUID" of the record
 * that is to be. Of several programs that make one branch at once one makes the record, and that
 * one alone notes with what it began. Who is interrupted between leaves the tag, which tells the
 * next one (esdm__line_settle()).
 * @param uuid of the branch to be.
 */
esdm_status esdm__line_prepare(esdm_session *session, const char *parent, const char *uuid,
                               uint64_t snapshot, esdm_error *err);
/** No branch was made, or all is noted. Best effort. */
void esdm__line_prepared(esdm_session *session, const char *parent, const char *uuid);
/** Notes with what a branch began, if who made it was interrupted before. */
esdm_status esdm__line_settle(esdm_session *session, const char *line, esdm_error *err);
/** Takes the tags of those who were interrupted before they made a branch, an hour ago or more.
 *  Best effort. */
void esdm__line_sweep(esdm_session *session, const char *parent);

/** Notes with what a new branch began, whose parent keeps the snapshot already. @param record of
 * the branch: nothing is noted of another one of its name. */
esdm_status esdm__line_begin(esdm_session *session, const char *parent, const char *line,
                             uint64_t record, uint64_t snapshot, esdm_error *err);

/** A snapshot of a branch is in another line now, and with it what it has of other branches. The
 *  branch itself is noted last: who was interrupted merges it again, and notes the rest.
 *  @param record of the branch: nothing is noted of another one of its name.
 *  @param since snapshot of the other line that is the first to have it. */
esdm_status esdm__line_merged(esdm_session *session, const char *line, uint64_t record,
                              uint64_t snapshot, const char *in, uint64_t since, esdm_error *err);
/** The other way: a snapshot of a line is in a branch now which began with it. @param line name of
 *  the branch. @param snapshot of `in`, whose record is `record`. @param since snapshot of the
 * branch that is the first to have it. */
esdm_status esdm__line_caught_up(esdm_session *session, const char *line, uint64_t snapshot,
                                 const char *in, uint64_t record, uint64_t since, esdm_error *err);

/** A merge under way, from before its commit until it is noted. */
typedef struct esdm__line_merge {
    char uuid[ESDM__UUID_BYTES];
    char name[ESDM_META_TAG_NAME_MAX + 1]; /* of the tag */
    char *author;                          /* owned */
    esdm_meta_tag tag;                     /* that the commit gives its snapshot */
} esdm__line_merge;

/** Which of two lines began with the other. */
typedef enum esdm__line_way {
    ESDM__LINE_UP,     /* the one that is merged */
    ESDM__LINE_DOWN,   /* the one that it is merged into */
    ESDM__LINE_BESIDE, /* neither: both are branches */
} esdm__line_way;

/** Before a snapshot of `line` is merged into `into`: it is kept until the merge is noted, and who
 *  comes later finds what the commit took with it (`tag`), and notes that if this program ends
 *  before it has. @param has what `into` is going to have, as text (api/line_vector.h).
 *  @param ret free its author. */
esdm_status esdm__line_merge_begin(esdm_session *session, const char *line, uint64_t snapshot,
                                   const char *into, esdm__line_way way, const char *has,
                                   esdm__line_merge *ret, esdm_error *err);
/** All is noted, or nothing was committed. Best effort. */
void esdm__line_merge_end(esdm_session *session, const char *line, const char *into,
                          const esdm__line_merge *merge);
/** Notes what was merged into the line by those who ended between. */
esdm_status esdm__line_merge_settle(esdm_session *session, const char *into, esdm_error *err);
/** Takes the tags of merges of the line that ended before they committed, an hour ago or more. Best
 *  effort. */
void esdm__line_merge_sweep(esdm_session *session, const char *line);

/** A branch was removed, or is no branch any more: the snapshot that it began with is not kept for
 * it any longer. Best effort.
 *  @param record that had the name. */
void esdm__line_gone(esdm_session *session, const char *line, uint64_t record);
/** Takes the tags from a container that was a branch. Best effort. */
void esdm__line_forget(esdm_session *session, const char *name);

#endif
