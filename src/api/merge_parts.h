/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_MERGE_PARTS_H
#define ESDM_API_MERGE_PARTS_H

/** @file One attempt of a merge, for the sources of it: what both lines have in common
 *  (merge_common.c), what is opened (merge_bases.c), and the commit (merge.c). */

#include "api/branches.h"
#include "api/line_bases.h"

/* One attempt; handles are owned. */
typedef struct esdm__merge_attempt {
    esdm_session *session;
    const char *name;   /* normalised */
    const char *branch; /* checked; NULL: theirs is the container that ours is a branch of */
    char full[ESDM_CONTAINER_NAME_MAX + 1]; /* name of theirs */
    const esdm_merge_options *options;
    uint64_t record;    /* of theirs */
    uint64_t container; /* record of ours */
    esdm__line_way way;
    char fork[ESDM_CONTAINER_NAME_MAX + 1]; /* line of the newest snapshot that both began with */
    uint64_t fork_record;                   /* its own */
    uint64_t forked;                        /* its number; 0: of lines beside each other alone */
    esdm__vector has, brings;               /* what ours and theirs have */
    esdm__line_bases *bases;                /* owned */
    bool unknown;                           /* a snapshot that both have is gone */
    bool compared;                          /* it was not overtaken before that */
    bool more;           /* theirs has changes that ours has not, though all may be equal */
    esdm__common common; /* of both lines, as they were opened */
    esdm__merging m;
    esdm_merge_result result;
} esdm__merge_attempt;

/** Both lines as they were opened. */
void esdm__merge_lines(const esdm__merge_attempt *all, esdm__line *ret_ours,
                       esdm__line *ret_theirs);
/** Whether ours began with theirs. */
bool esdm__merge_is_down(const esdm__merge_attempt *all);
/** The names of the two lines: the one that began with the other, and that one. Of two beside each
 *  other: theirs and ours. */
const char *esdm__merge_below(const esdm__merge_attempt *all);
const char *esdm__merge_above(const esdm__merge_attempt *all);

/** Who has the snapshot that is noted of both lines alone; its record is 0 when there is none.
 *  ESDM_ECONFLICT: it lost its name meanwhile. */
esdm_status esdm__merge_find_holder(const esdm__merge_attempt *all, esdm__line *ret,
                                    esdm_error *err);
/** The newest snapshot of a line. ESDM_ECONFLICT: it is another record now. */
esdm_status esdm__merge_look_at(const esdm__merge_attempt *all, const char *name,
                                esdm_meta_seen *seen, esdm_error *err);
/** What is noted of both lines alone, once merges of others are noted that ended before. */
esdm_status esdm__merge_find_noted(esdm__merge_attempt *all, esdm__common *ret, esdm_error *err);
/** What each of the two has of all lines: `has` and `brings`. Both are open. */
esdm_status esdm__merge_find_vectors(esdm__merge_attempt *all, esdm_error *err);
/** Whether theirs brings anything (`more`): merges of what ours has already are nothing new. */
esdm_status esdm__merge_find_more(esdm__merge_attempt *all, esdm_error *err);

/** Opens both lines and the base. ESDM_ECONFLICT: somebody wrote to one of them meanwhile. */
esdm_status esdm__merge_open(esdm__merge_attempt *all, esdm_error *err);
void esdm__merge_close(esdm__merge_attempt *all);

#endif
