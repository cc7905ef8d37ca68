/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_GC_SEARCH_H
#define ESDM_TOOLS_GC_SEARCH_H

/** @file The search for containers without stubs: what its files share. One thread. */

#include "esdm-gc/esdm-gc.h"

/** A folder that was looked through, and a NAME of its containers that was not asked for. */
typedef struct gc_other {
    char *folder;
    char *prefix;
} gc_other;

typedef struct gc_search {
    GHashTable *named;    /**< by stubs: container → itself */
    GHashTable *numbers;  /**< of stubs, as texts: number → itself */
    GHashTable *prefixes; /**< of containers made in `folder`: prefix → itself */
    const char *folder;   /**< NULL: prefixes are not looked for */
    GPtrArray *folders;   /**< real paths of those that were asked for */
    GPtrArray *wanted;    /**< and what their containers are called */
    GPtrArray *others;    /**< gc_other */
    GPtrArray *stubs;     /**< gc_stub: all in the folders that were asked for */
    GHashTable *living;   /**< names that stubs tell and containers have: name → itself */
    GHashTable *held;     /**< numbers of stubs that containers tell, as texts: number → itself */
    bool blind;           /**< some containers could not be opened */
    char *prefix;         /**< what the first containers that may go are called; owned */
    guint64 found;        /**< containers that belong to the folders, and that no stub names */
    guint64 newest_ns;    /**< what was changed later is left out */
    guint64 last_ns;      /**< the last change of the site that its catalogue knows */
    gc_found *result;
} gc_search;

/* ---- routes.c ----------------------------------------------------------------------------- */

/** What follows a name of which `above` is the beginning; NULL: it is not. */
const char *gc_below(const char *name, const char *above);
/** The entries of $ESDM_NC_ROUTE: FOLDER=NAME, or FOLDER alone. Owned. */
GStrv gc_routes(void);
/** What a route calls its containers; the entry is cut behind its folder. NULL: the folder's own
 *  path would be their name, and it is not there. Owned. */
char *gc_route_name(char *entry);
/** The folder as routes see it, and the name of its containers. A folder that is there has no name
 *  behind it, whatever it is called. NULL: no such folder. Both owned. */
char *gc_split(const char *argument, char **ret_prefix);

/* ---- gone.c ------------------------------------------------------------------------------- */

struct stat;
/** A file in a folder that was asked for, which may be a stub. */
void gc_note_stub(gc_search *s, const char *path, const unsigned char *bytes, size_t size,
                  const struct stat *is);
/** Finds the stubs whose containers are gone. After gc_find_candidates(). */
void gc_find_gone(gc_search *s, esdm_session *session);

/* ---- stubs.c ------------------------------------------------------------------------------ */

/** Looks at the stubs of containers called `prefix` in folders of other routes, too; `walked` has
 *  been looked through. */
tool_exit gc_walk_routes(gc_search *s, const char *walked, const char *prefix);
/** Looks at the stubs in a folder, and not below it. @return false: it cannot be looked at, or is
 *  not there, as what is not mounted on this node. */
bool gc_look_at_folder(gc_search *s, const char *folder);

/* ---- candidates.c ------------------------------------------------------------------------- */

/** The number of a stub as `numbers` and `held` have it. Owned. */
char *gc_number(guint64 number);
/** Finds the containers that may go: those that are called as wanted, and those whose stubs were
 *  made in the folders of the search, whatever they are called (esdm_container_stub_folder()). */
tool_exit gc_find_candidates(gc_search *s, esdm_session *session);

#endif
