/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_LINE_PARTS_H
#define ESDM_API_LINE_PARTS_H

/** @file What the sources of api/lines.h share: lines, what two of them have in common, and the
 * tags that tell it. Names are those of containers. */

#include "api/lines.h"

/** Hexadecimal digits of a uuid by which vectors tell a line, and a NUL. */
#define ESDM__LINE_ID_BYTES 17

/** A line as it was found. Other programs may remove it, keep it under another name, or make
 * another one of its name before it is looked at again: its record is what it was found as. */
typedef struct esdm__line {
    char stored[ESDM__FORMER_NAME_BYTES];
    uint64_t record;              /* 0: there is none */
    char id[ESDM__LINE_ID_BYTES]; /* "": there is none */
} esdm__line;

/** A snapshot that is in a branch and in another line, and who keeps it. */
typedef struct esdm__shared {
    esdm__line holder;
    uint64_t snapshot;
    uint64_t since; /* the branch's own snapshot that was the first to have it */
    bool related;
    bool is_fork;                     /* what they began with, and nothing since */
    bool is_own;                      /* the branch itself keeps it */
    bool is_given;                    /* the other line does, which was merged into the branch */
    char branch[ESDM_BRANCH_MAX + 1]; /* the holder's */
} esdm__shared;

/** Its record is 0 when there is no such container. */
esdm_status esdm__line_find(esdm_session *session, const char *name, esdm__line *ret,
                            esdm_error *err);
/** @param stored as the store calls it. */
void esdm__line_fill(esdm__line *l, const char *stored, uint64_t record, const char *uuid);
/** Whether its name still is that of its record. What was read of it before is whole then. */
esdm_status esdm__line_is_there(esdm_session *session, const esdm__line *l, bool *ret,
                                esdm_error *err);
/** Takes from a line what is noted there of another one of the container whose name nobody has:
 * who takes that name next is another line. */
esdm_status esdm__line_forget_of(esdm_session *session, const esdm__line *l, const char *gone,
                                 esdm_error *err);
/** Of the container that a branch is of. */
void esdm__line_base(const char *name, char ret[ESDM_CONTAINER_NAME_MAX + 1]);
/** Another branch of the same container. */
void esdm__line_beside(const char *name, const char *branch, char ret[ESDM_CONTAINER_NAME_MAX + 1]);
/** The same of a line that was found: of another one of its name it is not told. */
esdm_status esdm__line_fork_of(esdm_session *session, const char *name, const esdm__line *in,
                               uint64_t *ret_fork, esdm_error *err);
/** Whether `name` began with `in`, directly or not. @param ret_fork the newest snapshot that both
 *  had then; 0: it did not. */
esdm_status esdm__line_fork(esdm_session *session, const char *name, const char *in,
                            uint64_t *ret_fork, esdm_error *err);

/** ESDM_ENOENT: the line or its snapshot has gone. */
esdm_status esdm__line_tag_need(esdm_session *session, const esdm__line *on, const char *name,
                                uint64_t snapshot, const char *author, esdm_error *err);
/** Notes what is no use when the line has gone: ESDM_OK then, as the tag would go with it. */
esdm_status esdm__line_tag_set(esdm_session *session, const esdm__line *on, const char *name,
                               uint64_t snapshot, const char *author, esdm_error *err);
/** The same, unless the tag is on that snapshot or a later one. */
esdm_status esdm__line_tag_raise(esdm_session *session, const esdm__line *on, const char *name,
                                 uint64_t snapshot, const char *author, esdm_error *err);
/** Best effort. */
void esdm__line_tag_take(esdm_session *session, const esdm__line *from, const char *name);

/** The newest snapshot of a branch that is in a line which it began with: by merges of the branch,
 *  not of that line. */
esdm_status esdm__line_shared(esdm_session *session, const char *name, const char *in,
                              esdm__shared *ret, esdm_error *err);
/** The same by all merges of both. */
esdm_status esdm__line_newest(esdm_session *session, const char *name, const char *in,
                              esdm__shared *ret, esdm_error *err);
/** The newest snapshot of a line that is in a branch which began with it, as it was merged into the
 *  branch. @param ret snapshot 0: none was. */
esdm_status esdm__line_given(esdm_session *session, const char *name, const char *in,
                             esdm__shared *ret, esdm_error *err);

/** The newest snapshot of a line that tags of it alone say is in another one. @param ret 0: none.
 */
esdm_status esdm__line_noted_in(esdm_session *session, const char *name, const esdm__line *l,
                                const char *in, uint64_t *ret, esdm_error *err);

/** The branch itself keeps what of it is in the other line, unless that is noted of something
 * newer: somebody may have merged it since. */
esdm_status esdm__line_note_own(esdm_session *session, const char *name, const esdm__line *l,
                                const char *in, uint64_t snapshot, esdm_error *err);
/** Somebody else does. @param began snapshot of the branch since which it has that. */
esdm_status esdm__line_note_behind(esdm_session *session, const char *name, const esdm__line *l,
                                   const char *in, const esdm__shared *c, uint64_t began,
                                   esdm_error *err);
/** What a branch has of a line that it began with, unless it has newer things of it. @param since
 *  the branch's first snapshot that has it. */
esdm_status esdm__line_note_given(esdm_session *session, const char *name, const char *in,
                                  uint64_t snapshot, uint64_t since, esdm_error *err);
/** A new branch of a branch has what that was given of `in`, if it began with that. */
esdm_status esdm__line_begin_given(esdm_session *session, const char *parent, const char *name,
                                   const char *in, uint64_t from, esdm_error *err);
/** After the snapshot of `name` came into `to`, as its snapshot `since`, from below: what it was
 *  given of lines above. */
esdm_status esdm__line_carry_up(esdm_session *session, const char *name, uint64_t record,
                                uint64_t snapshot, const char *to, uint64_t since, esdm_error *err);
/** After a snapshot of `between` was merged into `in`, a line above it: what merges of `between`
 * have brought into one of its branches is then in `in` and in that branch. Notes that. */
esdm_status esdm__line_spread_given(esdm_session *session, const char *between, uint64_t snapshot,
                                    const char *name, const char *in, esdm_error *err);
/** Where a branch began, if the program that made it was interrupted before it noted that.
 *  Otherwise nothing is written to the results. */
esdm_status esdm__line_begun(esdm_session *session, const char *name,
                             char ret_parent[ESDM_CONTAINER_NAME_MAX + 1], uint64_t *ret_from,
                             esdm_error *err);
/** Takes what tells what a branch was given by a line. */
void esdm__line_untag_given(esdm_session *session, const esdm__line *in, const char *name);

#endif
