/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_BASE_ARGUMENTS_H
#define ESDM_BASE_ARGUMENTS_H

/** @file Arguments of public functions. */

#include "base/error.h"

/** First in a public function that returns a status: ends it with ESDM_EINVAL, which names the
 *  argument, when that is NULL. Others return NULL, 0 or false then. */
#define ESDM__NEED(err, argument)                                                                  \
    do {                                                                                           \
        if ((argument) == NULL)                                                                    \
            return esdm__error_set((err), ESDM_EINVAL, "%s: %s is NULL", __func__, #argument);     \
    } while (0)

/** The same for an array of so many pointers, none of which may be NULL; of none it may be NULL. */
#define ESDM__NEED_ALL(err, array, count)                                                          \
    do {                                                                                           \
        if ((count) > 0)                                                                           \
            ESDM__NEED(err, array);                                                                \
        for (size_t i = 0; i < (count); i++)                                                       \
            ESDM__NEED(err, array[i]);                                                             \
    } while (0)

#endif
