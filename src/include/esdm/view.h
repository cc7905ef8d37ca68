/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_VIEW_H
#define ESDM_VIEW_H

/**
 * @file
 * Views: containers browsed by what they are, whatever they are called. A view is a template of
 * attributes, "{mip_era=CMIP6}/{activity_id}/…", that the site configuration states ("views"), or
 * that every site has (cmip6, cmip7, cordex). "cmip6:/CMIP6/CMIP" is a place in it; a place with
 * all levels opens as a name does, several containers there as one (esdm/virtual.h). Where an
 * attribute is missing the place is called "_missing_", where its text is empty "_empty_"; what
 * would mean something in a path is written "%2F", and what is long is cut and ends in "%~" and a
 * hash. A container is in a view when it has the attribute of the first level, and the values that
 * the template states; its own (global) attributes count.
 */

#include "esdm/session.h"

#ifdef __cplusplus
extern "C" {
#endif

/** A view of the site; borrowed during the call. */
typedef struct esdm_view_info {
    const char *name;          /**< "cmip6" */
    const char *template_text; /**< "{mip_era=CMIP6}/{activity_id}/…" */
    size_t levels;             /**< of the template, ≥ 1 */
    bool built_in;             /**< every site has it: the configuration does not state it */
} esdm_view_info;
/** @return false: no more. */
typedef bool (*esdm_view_info_visitor)(const esdm_view_info *info, void *user);
/** Visits the views of the site by name. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_view_list(esdm_session *session,
                                                    esdm_view_info_visitor visit, void *user,
                                                    esdm_error *err);

/** What lies directly below a place; borrowed during the call. */
typedef struct esdm_view_entry {
    const char *name;    /**< component of a path: an escaped value */
    uint64_t containers; /**< at or below it, ≥ 1 */
    bool is_last;        /**< it is at the last level, and can be opened */
} esdm_view_entry;
/** @return false: no more. */
typedef bool (*esdm_view_visitor)(const esdm_view_entry *entry, void *user);
/**
 * Visits what lies directly below a place of a view, by byte order.
 * @param place "cmip6:", "cmip6:/CMIP6/CMIP", with "esdm://" in front or not.
 * @return ESDM_ENOENT: no such view, or more levels than it has. A place at which nothing is has no
 *         entries, nor has one at the last level: see esdm_view_containers(). Any thread.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_view_level(esdm_session *session, const char *place,
                                                     esdm_view_visitor visit, void *user,
                                                     esdm_error *err);
/** Visits the containers at or below a place, by name. Errors are those of esdm_view_level(), and
 *  those of the visitor's own none: what is removed meanwhile is passed by. */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_view_containers(esdm_session *session, const char *place,
                                                          esdm_container_visitor visit, void *user,
                                                          esdm_error *err);
/**
 * The expression of esdm_find() that finds the containers at or below a place, to be joined with
 * others. An attribute of several values counts by each of them. @param ret_expression owned,
 * free(). @return ESDM_ENOTSUP: a text in the place is cut.
 */
ESDM_API ESDM_MUST_CHECK esdm_status esdm_view_expression(esdm_session *session, const char *place,
                                                          char **ret_expression, esdm_error *err);
/** Whether a name says a place of a view of the site; it need not be there. */
ESDM_API bool esdm_view_is_said(const esdm_session *session, const char *name);
/**
 * Writes a value as it stands in a path.
 * @param value NULL: missing.
 * @param buffer ESDM_VIEW_NAME_MAX + 1 bytes.
 */
#define ESDM_VIEW_NAME_MAX 120
ESDM_API ESDM_MUST_CHECK esdm_status esdm_view_name(const char *value, char *buffer,
                                                    esdm_error *err);

#ifdef __cplusplus
}
#endif
#endif
