/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_HIDDEN_NAMES_H
#define ESDM_BASE_HIDDEN_NAMES_H

/** @file Names of containers that queries pass by. */

#include <stdbool.h>
#include <stddef.h>
#include <string.h>

#include "esdm/session.h"

/** What stands before the name of a branch: NAME@branch:BRANCH. */
#define ESDM__BRANCH_MARK "@branch:"

/** The branch in the name of a container that is one; NULL: it is none. @param ret_bytes length of
 *  the name of the container that it is a branch of; may be NULL. */
const char *esdm__name_branch(const char *name, size_t *ret_bytes);

/** What stands behind the name of a container in that of what has its variables in a second shape:
 *  NAME@shapes. */
#define ESDM__SHAPES_MARK "@shapes"
/** Whether a container has another one's variables in a second shape. @param ret_bytes length of
 *  that one's name; may be NULL. */
static inline bool
esdm__name_is_shapes(const char *name, size_t *ret_bytes)
{
    size_t bytes = strlen(name);
    const size_t mark = sizeof ESDM__SHAPES_MARK - 1;
    if (bytes <= mark || strcmp(name + bytes - mark, ESDM__SHAPES_MARK) != 0)
        return false;
    if (ret_bytes != NULL)
        *ret_bytes = bytes - mark;
    return true;
}

/** Whether a name of the store is one of the engine's own. */
static inline bool
esdm__name_is_own(const char *stored)
{
    return stored[0] == '/';
}
/** Whether programs of ESDM keep it for the time of their run (ESDM_SCRATCH_FOLDER). */
static inline bool
esdm__name_is_scratch(const char *stored)
{
    return strncmp(stored, ESDM_SCRATCH_FOLDER "/", sizeof ESDM_SCRATCH_FOLDER) == 0;
}
/** Whether it is of what is not whole yet (ESDM_UNFINISHED_COPY). */
static inline bool
esdm__name_is_unfinished(const char *stored)
{
    const char *slash = strrchr(stored, '/');
    return strncmp(slash != NULL ? slash + 1 : stored, ESDM_UNFINISHED_COPY,
                   sizeof ESDM_UNFINISHED_COPY - 1) == 0;
}
/** Whether queries pass a name of the store by: the engine's own, second shapes, and branches,
 * which would be found beside what they are branches of. */
static inline bool
esdm__name_is_hidden(const char *stored)
{
    return esdm__name_is_own(stored) || esdm__name_branch(stored, NULL) != NULL ||
           esdm__name_is_scratch(stored) || esdm__name_is_unfinished(stored) ||
           esdm__name_is_shapes(stored, NULL);
}

#endif
