/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_VIRTUAL_VIRTUAL_H
#define ESDM_VIRTUAL_VIRTUAL_H

/**
 * @file
 * Virtual containers: what a query finds, as one container.
 *
 *     ask.c         the text "?a=b&c=d" becomes a question to the catalogue
 *     bundles.c     those of an ensemble that belong together
 *     members.c     the containers that were found: pinned, few of them open at once
 *     survey.c      what the members have: each opened once as a rule, by several threads
 *     survey_axis.c along which dimensions they continue each other, and their order there
 *     coordinates.c the values of a dimension, and the order of members by them
 *     cells.c       that their steps do not stand for the same time, and are of one kind
 *     odd.c         which one does not fit, and how a query leaves it out
 *     tiles.c       those that differ along two dimensions
 *     cross.c       what is along the second one
 *     gaps.c        elements that no member has
 *     filled.c      what is there when they are made
 *     compare.c     that everything else is equal
 *     align.c       a dataset of one member as another one has it
 *     maps.c        how a member's values become those of the whole: times, packing, fill, types
 *     structure.c   the container in memory, made from the first member
 *     stack.c       a new dimension, made of an attribute
 *     merge.c       variables of several containers in one
 *     overlap.c     what several members have
 *     read.c        from a selection to selections of members
 *     remembered.c  what was found out, kept for the next opening
 *     saved.c       queries under a name
 *     hull.c        times, boxes and values of their members, in the index
 *     follow.c      these are widened by what was committed
 *     view.c        places of views
 *
 * No data are stored: the container lives in memory above the engine, and its data are the
 * members'.
 */

#include "io/io.h"
#include "model/container.h"

/** Whether a name is a query: it begins with '?', `esdm://` and slashes before it taken off. */
bool esdm__virtual_is_said(const char *name);
/**
 * Copies a query without what stands before its '?'.
 * @param buffer ESDM_CONTAINER_NAME_MAX + 1 bytes. @return ESDM_EINVAL: too long, or not UTF-8.
 */
esdm_status esdm__virtual_normalise(const char *name, char *buffer, esdm_error *err);

/**
 * Opens what a query finds, for reading: the container itself when it is one, else all of them
 * joined by the values of a coordinate.
 * @param query normalised.
 * @return ESDM_ENOENT: nothing is found; ESDM_EINVAL: the query is wrong, or members disagree (the
 *         message names the first two); ESDM_ENOTSUP names what is not served.
 */
esdm_status esdm__virtual_open(esdm_session *session, const char *query,
                               esdm_container **ret_container, esdm_error *err);
/** esdm__coarse_apply() of what a query, a view or a saved query opened, which nobody else knows
 * yet: members follow as far as they have what the text names. */
esdm_status esdm__virtual_coarse(esdm_container *container, const char *text, esdm_error *err);
/** Opens a place of a view (query/view.h) as a query is opened. ESDM_ENOENT: there is nothing, or a
 *  folder. @param name normalised. @param snapshot ESDM_SNAPSHOT_LATEST, or of the one container
 *  that is there. */
esdm_status esdm__virtual_open_view(esdm_session *session, const char *name, uint64_t snapshot,
                                    esdm_container **ret_container, esdm_error *err);
/** As esdm__virtual_stat(). */
esdm_status esdm__virtual_stat_view(esdm_session *session, const char *name,
                                    esdm_meta_container *ret_record, esdm_error *err);
/** Whether a container is a saved query, which has no data of its own. */
bool esdm__virtual_is_saved(const esdm_container *container);
/** Opens what a saved query stands for. @param definition open; borrowed. */
esdm_status esdm__virtual_open_saved(esdm_container *definition, esdm_container **ret_container,
                                     esdm_error *err);
/** Makes a saved query of an empty container that was just created. @param whole what the query
 *  opened. @param pin the members stay as they are in `whole`. */
esdm_status esdm__virtual_save(esdm_container *whole, const char *query, bool pin,
                               esdm_container *to, esdm_error *err);
/** Enters times, box, levels and values of all members of `whole` into the index, as those of the
 * saved query `name`, which was committed. */
esdm_status esdm__virtual_index(const esdm_container *whole, const char *name, esdm_error *err);
/** Looks at all saved queries, and enters what is not there, or all. Those whose members cannot be
 *  joined are passed by. */
esdm_status esdm__virtual_reindex(esdm_session *session, bool again, esdm_error *err);
/**
 * Widens what the index has of saved queries by the containers that were committed, renamed or
 * brought back since somebody did so (ESDM__EXTENT_FRESH says which). Costs one question when there
 * are none. @return some wait still: the index cannot be written to, or something failed.
 */
bool esdm__virtual_follow(esdm_session *session);
/** After a commit: now and then the same, so that what waits stays little. */
void esdm__virtual_follow_later(esdm_session *session);
/** Visits the members of what a query opened, with their snapshots. */
void esdm__virtual_pinned(const esdm_container *whole,
                          bool (*visit)(const char *member, uint64_t snapshot, void *user),
                          void *user);
/** Visits the containers that a query finds, by name; nothing is opened. @param query normalised.
 */
esdm_status esdm__virtual_found(esdm_session *session, const char *query,
                                bool (*visit)(const char *name, void *user), void *user,
                                esdm_error *err);
/** Return false to stop. */
typedef bool (*esdm__member_visitor)(const char *name, const char *member, bool pinned, void *user);
/** Visits the members of all saved queries. */
esdm_status esdm__virtual_members(esdm_session *session, esdm__member_visitor visit, void *user,
                                  esdm_error *err);
/** Sizes and counts are sums, times the newest; `snapshot` is 0 for more than one member. */
esdm_status esdm__virtual_stat(esdm_session *session, const char *query,
                               esdm_meta_container *ret_record, esdm_error *err);

#endif
