/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_LINE_TAGS_H
#define ESDM_API_LINE_TAGS_H

/** @file The tags with which lines of commits tell what they have in common (api/lines.h): their
 *  names, and finding them. Lines are named as their containers. */

#include "api/branches.h"

#define ESDM__PARENT_TAG "esdm:parent:"
#define ESDM__BEHIND_TAG "esdm:behind"
#define ESDM__GIVEN_TAG  "esdm:given:"
#define ESDM__BEGIN_TAG  "esdm:begin:"
#define ESDM__INTO_TAG   "esdm:into:"
#define ESDM__CAME_TAG   "esdm:came:"
#define ESDM__HAS_TAG    "esdm:has:"
#define ESDM__KEPT_TAG   "esdm:kept:"

/** "esdm:holds:BRANCH:IN" is the longest one; no branch has ':' in its name. */
typedef char esdm__tag_name[sizeof ESDM__HOLDS_TAG + 2 * (ESDM_BRANCH_MAX + 1)];

/** "WHAT", or "WHAT:BRANCH" when the line is a branch. */
void esdm__line_tag_in(const char *what, const char *line, esdm__tag_name tag);
/** Of lines that a branch began with. */
void esdm__line_tag_began(const char *line, esdm__tag_name tag);
/** Of who keeps what of a branch is in another line. */
void esdm__line_tag_holds(const char *line, const char *in, esdm__tag_name tag);

/** A tag that is looked for. */
typedef struct esdm__tag_wanted {
    const char *name;
    bool begins; /* it begins with this; the rest of its name goes to `text` */
    uint64_t snapshot;
    char text[ESDM_BRANCH_MAX + 1]; /* else its author */
} esdm__tag_wanted;
/** Of a record. @param w its snapshot is 0 when there is none. */
esdm_status esdm__tag_look(esdm_session *session, uint64_t record, esdm__tag_wanted *w,
                           esdm_error *err);

/** Texts of tags whose names begin alike. */
typedef struct esdm__tag_texts {
    const char *begins;
    struct esdm__tag_pair {
        char *rest;   /* owned; of the tag's name */
        char *author; /* owned */
        uint64_t snapshot;
        uint64_t created_ns;
    } * items; /* owned */
    size_t count;
    bool failed;
} esdm__tag_texts;
/** esdm__tag_texts_clear(), in any case. */
esdm_status esdm__tag_texts_load(esdm_session *session, uint64_t record, const char *begins,
                                 esdm__tag_texts *t, esdm_error *err);
void esdm__tag_texts_clear(esdm__tag_texts *t);

#endif
