/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_QUERY_VIEW_H
#define ESDM_QUERY_VIEW_H

/**
 * @file
 * Views: containers browsed by their attributes, as folders that a template names.
 *
 *     path      = view ":" { "/" component }               ("cmip6:/CMIP6/CMIP/MPI-M")
 *     component = value of the level's attribute, escaped  | "_missing_" (there is none)
 *                 | "_empty_" (an empty text)
 *
 * Escapes: a byte that would mean something in a path ('/', '%', '?', '@', '#', controls, '\\'),
 * one that is no UTF-8, a leading or trailing blank, the dots of "." and "..", and the first byte
 * of a value that looks like one of the two words are written "%2F". Elements of an attribute are
 * joined by ", ". What is then longer than ESDM__VIEW_COMPONENT_MOST is cut, and ends in "%~" and
 * the hash of all of it. So a component is of one value, and of no other.
 *
 * A container is in a view when it has the attribute of the first level, and the values that the
 * template states; saved queries are in none: what they find is. Only containers' own (global)
 * attributes count.
 */

#include "base/buffer.h"
#include "esdm/sys/meta_store.h"
#include "site/site.h"

#define ESDM__VIEW_MISSING        "_missing_"
#define ESDM__VIEW_EMPTY          "_empty_"
#define ESDM__VIEW_COMPONENT_MOST 120u

/** A place in a view. */
typedef struct esdm__view_path {
    const esdm__site_view *view;                    /**< borrowed */
    const char *components[ESDM__VIEW_LEVELS_MOST]; /**< borrowed from `text` */
    size_t depth;                                   /**< 0: the top; view->nlevels: containers */
    char *text;                                     /**< owned */
} esdm__view_path;

/** Writes the component of a value; NULL: it is missing. Ends with NUL. */
void esdm__view_component(const char *value, esdm__buffer *out);
/**
 * The value of a component. @param ret_value owned; NULL: missing.
 * @return false: it is cut, or none at all, and *ret_value is untouched; or out of memory.
 */
bool esdm__view_value(const char *component, char **ret_value);

/** Whether a name says a view of the site, which need not have such a place. */
bool esdm__view_is_said(const esdm__site *site, const char *name);
/** ESDM_EACCES: nobody can write to a view. @return that. */
esdm_status esdm__view_refuse(const char *name, esdm_error *err);
/**
 * Takes a name apart. Components are brought to the form that esdm__view_component() writes.
 * @param ret_path owned; esdm__view_path_clear(). @return ESDM_ENOENT: there is no such view, or
 * the path is longer than its levels.
 */
esdm_status esdm__view_path_parse(const esdm__site *site, const char *name,
                                  esdm__view_path *ret_path, esdm_error *err);
void esdm__view_path_clear(esdm__view_path *path);

/** Writes the expression of esdm_find() that finds what is at or below a place; ends with NUL.
 *  @return ESDM_ENOTSUP: a component is cut. */
esdm_status esdm__view_expression(const esdm__view_path *path, esdm__buffer *out, esdm_error *err);

/** @param component borrowed. @return false to stop. */
typedef bool (*esdm__view_visitor)(const char *component, uint64_t containers, void *user);
/** What lies directly below a place: components with how many containers are below each, by bytes.
 *  @param path above the last level. */
esdm_status esdm__view_level_list(const esdm_meta_plugin *meta, void *store,
                                  const esdm__view_path *path, esdm__view_visitor visit, void *user,
                                  esdm_error *err);
/** Containers at or below a place, by name. @return false to stop. */
esdm_status esdm__view_containers(const esdm_meta_plugin *meta, void *store,
                                  const esdm__view_path *path, esdm_meta_name_visitor visit,
                                  void *user, esdm_error *err);

#endif
