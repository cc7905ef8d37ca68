/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_OVERRIDES_H
#define ESDMNC_OVERRIDES_H

/** @file What functions need that stand in libnetcdf's place: who calls, and whose ncid it is. */

#include "router/router.h"

/** Whether the ncid is one of our containers in that libnetcdf. */
static inline bool
owns(const esdmnc__library *library, int ncid)
{
    const esdmnc__core *core = esdmnc__core_if_loaded();
    return core && library && core->owns(library->api.instance, ncid);
}

#define CALLER() esdmnc__library_for(__builtin_return_address(0))
#define CALL_REAL(library, name, ...)                                                              \
    ({                                                                                             \
        __typeof__(&name) real_ = esdmnc__real(library, ESDMNC_FN_##name);                         \
        real_ ? real_(__VA_ARGS__) : NC_ENOTBUILT;                                                 \
    })

#endif
