/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_IO_SESSION_FACT_NAME_H
#define ESDM_IO_SESSION_FACT_NAME_H

/**
 * @file
 * Facts of a container: "UUID/WHAT". They go with it.
 */

#include <stdio.h>

#include "esdm/sys/meta_types.h"

typedef struct esdm__fact_name {
    char text[ESDM_META_UUID_BYTES + sizeof "/restored"];
} esdm__fact_name;

/** @param what at most as long as "restored". */
static inline esdm__fact_name
esdm__fact_of(const char *uuid, const char *what)
{
    esdm__fact_name fact;
    (void) snprintf(fact.text, sizeof fact.text, "%s/%s", uuid, what);
    return fact;
}

#endif
