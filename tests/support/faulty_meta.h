/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TESTS_SUPPORT_FAULTY_META_H
#define ESDM_TESTS_SUPPORT_FAULTY_META_H

/**
 * @file
 * Metadata store "faulty": the store "sqlite", or the one of the plug-in that
 * $ESDM_FAULTY_META_STORE names, with faults at chosen operations, as servers have them. Loaded as
 * `esdm-meta-faulty.so` ($ESDM_PLUGIN_PATH), armed by $ESDM_FAULTY_META, read when a store is
 * opened first:
 *
 *     OPERATION:NTH+COUNT:ACTION[,…]       commit:3+1:unknown,lives:1+0:lie
 *
 * Action "run" runs the shell command $ESDM_FAULTY_META_RUN and then does what was asked for: what
 * another program does in between. Of remove, move, pin, begin, open, ask, page, put and relocate;
 * of lives and commit after it was asked, or done.
 *
 * A test that links libesdm finds the function below by dlsym() in the loaded object.
 * Threads: locked inside.
 */

#include "esdm/sys/meta_store.h"

typedef enum esdm_faulty_meta_op {
    ESDM_FAULTY_COMMIT,
    ESDM_FAULTY_RELOCATE,
    ESDM_FAULTY_LIVES,
    ESDM_FAULTY_CHECK,
    ESDM_FAULTY_RECORDS, /**< lists of all records */
    ESDM_FAULTY_NAME_REMOVE,
    ESDM_FAULTY_NAME_MOVE,
    ESDM_FAULTY_PIN,
    ESDM_FAULTY_BEGIN,
    ESDM_FAULTY_SNAPSHOT, /**< "open": of a snapshot */
    ESDM_FAULTY_ASK,      /**< all that asks for containers and tags, or gives a tag, also "open" */
    ESDM_FAULTY_PAGE,     /**< loads of index pages */
    ESDM_FAULTY_NAMES,    /**< "names": lists of containers, which are "ask", too */
    ESDM_FAULTY_PUT,      /**< entries of the index that replace all of a container */
    ESDM_FAULTY_META_OPS
} esdm_faulty_meta_op;

typedef enum esdm_faulty_meta_action {
    ESDM_FAULTY_META_NONE,
    ESDM_FAULTY_META_FAIL,    /**< nothing is done, ESDM_EIO is returned */
    ESDM_FAULTY_META_REFUSE,  /**< nothing is done, ESDM_ECONFLICT is returned */
    ESDM_FAULTY_META_UNKNOWN, /**< it is done, ESDM_EIO is returned: the answer got lost */
    ESDM_FAULTY_META_LIE,     /**< a writer is said to be dead, or to have seemed dead; ESDM_OK */
    ESDM_FAULTY_META_RUN      /**< see above */
} esdm_faulty_meta_action;

/** From the `nth` operation of this kind on (1: the next one) `count` are hit (0: all that follow).
 *  One fault for each kind; arming again replaces it. */
ESDM_API void esdm_faulty_meta_arm(esdm_faulty_meta_op op, uint64_t nth, uint64_t count,
                                   esdm_faulty_meta_action action);

/** Operations of this kind so far. */
ESDM_API uint64_t esdm_faulty_meta_calls(esdm_faulty_meta_op op);

#endif
