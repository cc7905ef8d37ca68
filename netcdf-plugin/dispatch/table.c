/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The dispatch tables: one per libnetcdf copy, because two copies hand out the same ncids. */

#include "internal.h"

#include "calls.h"
#include "esdm/float_env.h"

#if ESDMNC_INSTANCES_MAX != 8
#error "add or remove an inclusion of thunks.h below"
#endif

#define INSTANCE 0
#include "thunks.h"
#define INSTANCE 1
#include "thunks.h"
#define INSTANCE 2
#include "thunks.h"
#define INSTANCE 3
#include "thunks.h"
#define INSTANCE 4
#include "thunks.h"
#define INSTANCE 5
#include "thunks.h"
#define INSTANCE 6
#include "thunks.h"
#define INSTANCE 7
#include "thunks.h"

const NC_Dispatch *
esdmnc_dispatch_table(int instance)
{
    static const NC_Dispatch *const tables[ESDMNC_INSTANCES_MAX] = {
        &table_0_dispatch, &table_1_dispatch, &table_2_dispatch, &table_3_dispatch,
        &table_4_dispatch, &table_5_dispatch, &table_6_dispatch, &table_7_dispatch};
    if (instance < 0 || instance >= ESDMNC_INSTANCES_MAX)
        return NULL;
    return tables[instance];
}
