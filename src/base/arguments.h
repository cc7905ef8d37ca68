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

#endif
