/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_API_BRANCHES_H
#define ESDM_API_BRANCHES_H

/**
 * @file
 * Branches, for the other sources of this folder. A branch is a container with the name
 * NAME@branch:BRANCH, whether it began with NAME or with another branch of it. What they have in
 * common tags of the engine's own tell (api/lines.h).
 */

#include "esdm/branch.h"
#include "io/session/session.h"

#define ESDM__BRANCH_TAG "esdm:branch:"
#define ESDM__MERGED_TAG "esdm:merged"
/** Of what a branch keeps for another one (api/lines.h); io/session/former.c knows it, too. */
#define ESDM__HOLDS_TAG "esdm:holds:"
/** Bytes of the first tag's name, with its NUL. */
#define ESDM__BRANCH_TAG_BYTES (sizeof ESDM__BRANCH_TAG + ESDM_BRANCH_MAX)

/** The name of a branch as a container. @param base the container, or one of its branches.
 *  ESDM_EINVAL. */
esdm_status esdm__branch_full_name(const char *base, const char *branch,
                                   char full[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err);
/** ESDM_ENOENT when `normal` is the name of a branch that does not exist: only
 *  esdm_branch_create() makes one. */
esdm_status esdm__branch_check_name(esdm_session *session, const char *normal, esdm_error *err);
/** ESDM_EINVAL when a name would make a branch of what is none, or another branch of one. */
esdm_status esdm__branch_check_move(const char *from, const char *to, esdm_error *err);
/** After a container was renamed: its branches are renamed as well. */
esdm_status esdm__branches_follow(esdm_session *session, const char *from, const char *to,
                                  esdm_error *err);

/** Whether a record has data of the container with the uuid: one began with the other, and neither
 *  was replaced since. */
esdm_status esdm__branch_shares(esdm_session *session, uint64_t record, const char *uuid,
                                bool *ret_shares, esdm_error *err);

/** No container is called `from`: the branches of that name which `to` has lost follow it, as a
 *  rename was interrupted. @param ret_any whether there were any. */
esdm_status esdm__branches_rejoin(esdm_session *session, const char *from, const char *to,
                                  bool *ret_any, esdm_error *err);

/** Visits the names of all branches of a container until one call fails. All that lies in its
 * folder is looked at. */
esdm_status esdm__branch_names(esdm_session *session, const char *base,
                               esdm_status (*visit)(const char *name, void *user, esdm_error *err),
                               void *user, esdm_error *err);

#endif
