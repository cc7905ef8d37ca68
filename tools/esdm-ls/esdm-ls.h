/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_LS_H
#define ESDM_TOOLS_LS_H

/** @file What esdm-ls gathers and shows. One thread. */

#include "common/common.h"
#include "esdm/upkeep.h"

/** A line of the list: a container, a former one, or a folder with what lies in it. */
typedef struct ls_entry {
    char *name;               /**< owned; of a folder with '/' behind it */
    char *id;                 /**< owned; of a former container, else NULL */
    char *owner;              /**< owned; who committed last, NULL: not asked for, or not known */
    uint64_t containers;      /**< in a folder; else 0 */
    bool of_view;             /**< a place of a view, at which `containers` lie */
    bool removed;             /**< former: removed; else replaced */
    uint64_t time_ns;         /**< former: when */
    uint64_t until_ns;        /**< former: how long it is kept */
    esdm_container_info info; /**< `name` is not to be used */
    uint64_t shared_bytes;    /**< of those stored, others refer to them, too; ls_count() */
    GPtrArray *members;       /**< owned; in a folder: its containers, as ls_entry; else NULL */
} ls_entry;

typedef struct ls_wants {
    gboolean facts;       /**< --long */
    gboolean exact_bytes; /**< --bytes */
    gboolean zero;        /**< --null */
    gboolean replaced;    /**< --replaced */
    gboolean tree;        /**< --tree */
    gboolean views;       /**< --views */
    gboolean reverse;     /**< --reverse */
    char *sort;           /**< --sort */
    int depth;            /**< --depth; 0: no limit */
} ls_wants;
extern ls_wants ls;

/** What all of the list store together, and what several of them share. */
typedef struct ls_total {
    uint64_t containers;
    uint64_t raw_bytes;
    uint64_t fragments;
    esdm_usage usage;
} ls_total;

/** NULL: a wrong word. */
GCompareFunc ls_order(const char *word);
void ls_entry_free(gpointer entry);
/** Puts what lies deeper than --depth below `prefix` (NULL: the site) from index `from` on
 * together.
 *  @param entries of ls_entry, sorted by name. */
void ls_fold(GPtrArray *entries, guint from, const char *prefix);
/** Adds a container to a folder. @param entry owned by the folder from then on. */
void ls_join(ls_entry *folder, ls_entry *entry);
/** Sums up; what several containers share counts once, in each folder and in the total. */
tool_exit ls_count(esdm_session *session, const GPtrArray *entries, ls_total *ret_total);
void ls_print(const GPtrArray *entries, const ls_total *total);
/** Names as a tree of folders. @param entries sorted by name. */
void ls_print_tree(const GPtrArray *entries);
json_t *ls_json(const GPtrArray *entries, const ls_total *total);

/* ---- views (views.c) ---------------------------------------------------------------------- */

/** Prints the views of the site. */
tool_exit ls_show_views(esdm_session *session);
/** Appends what lies at a place of a view: the level below it, the containers at the last one. */
tool_exit ls_list_view(esdm_session *session, const char *argument, GPtrArray *all);

#endif
