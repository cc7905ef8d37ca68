/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Several questions of one state of the store. */

#include "query/query.h"

/* States of a store that are begun, where they are lost. */
#define STATES_MOST 3

esdm_status
esdm__query_of_one_state(const esdm_meta_plugin *meta, void *store, esdm__query_asking ask,
                         void (*forget)(void *user), void *user, esdm_error *err)
{
    if (meta->hold == NULL)
        return ask(user, err);
    for (unsigned attempt = 1;; attempt++) {
        esdm_error why = {0};
        esdm_status status = meta->hold(store, err);
        if (status != ESDM_OK)
            return status;
        status = ask(user, &why);
        bool whole = meta->release(store);
        if (status != ESDM_OK && err != NULL)
            *err = why;
        if (status == ESDM_OK || whole || attempt == STATES_MOST)
            return status;
        forget(user);
    }
}
