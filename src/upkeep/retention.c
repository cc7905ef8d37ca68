/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Which snapshots of a container go: those that neither their number, nor their age, nor a
 * tag keeps. Stores count; what is kept by its age is made a number here. */

#include "base/ids.h"
#include "io/session/former.h"
#include "upkeep/upkeep.h"

#define SECOND_NS UINT64_C(1000000000)

typedef struct young {
    uint64_t since_ns;
    uint64_t oldest; /* the oldest snapshot that is young enough */
    uint64_t newest;
} young;

static bool
look_at(uint64_t snapshot, uint64_t parent, uint64_t time_ns, const char *writer,
        const char *message, void *user)
{
    young *y = user;
    (void) parent, (void) writer, (void) message;
    if (y->oldest == 0 && time_ns >= y->since_ns)
        y->oldest = snapshot;
    y->newest = snapshot;
    return true;
}

esdm_status
esdm__upkeep_prune(const esdm_session *session, uint64_t record, const char *stored,
                   esdm_error *err)
{
    esdm__former former;
    const char *name = esdm__former_parse(stored, &former) ? former.name : stored;
    esdm__retention keep = esdm__site_retention(session->site, name);
    uint64_t now_ns = esdm__now_ns();
    uint64_t count = keep.count;
    if (keep.age_s > 0) {
        uint64_t age_ns = keep.age_s < now_ns / SECOND_NS ? keep.age_s * SECOND_NS : now_ns;
        young y = {.since_ns = now_ns - age_ns};
        esdm_status status = session->meta->snapshot_list(session->store, stored, look_at, &y, err);
        if (status != ESDM_OK)
            return status;
        if (y.oldest != 0 && y.newest - y.oldest + 1 > count)
            count = y.newest - y.oldest + 1;
    }
    return session->meta->prune(session->store, record,
                                count < UINT32_MAX ? (uint32_t) count : UINT32_MAX, err);
}
