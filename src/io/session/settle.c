/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a session tells at its end of what it asked ahead, or twice. */
#include "io/session/readers.h"
#include "io/session/session.h"

static void
settle_second_requests(esdm_session *session)
{
    esdm__action action = {.kind = ESDM__ACTION_SECOND};
    for (size_t i = 0; i < session->ntargets && session->monitor != NULL; i++) {
        esdm__target *target = &session->targets[i];
        uint64_t sent = 0;
        uint64_t used = 0;
        if (target->plugin == NULL || target->plugin->second_requests == NULL ||
            atomic_load(&target->state) != ESDM__TARGET_OPEN ||
            atomic_exchange(&target->told, true))
            continue;
        target->plugin->second_requests(target->handle, &sent, &used);
        action.requests += sent;
        action.used += used;
    }
    if (action.requests > 0)
        esdm__monitor_action(session->monitor, &action);
}

void
esdm__session_settle_ahead(esdm_session *session)
{
    uint64_t requests = atomic_exchange(&session->stepped.requests, 0);
    if (requests > 0 && session->monitor != NULL) {
        const esdm__action action = {.kind = "read-ahead",
                                     .requests = requests,
                                     .used = atomic_load(&session->stepped.used),
                                     .bytes = atomic_load(&session->stepped.bytes),
                                     .gained_ns = atomic_load(&session->stepped.gained_ns)};
        esdm__monitor_action(session->monitor, &action);
    }
    settle_second_requests(session);
    esdm__earlier_settle(session->earlier, session->monitor);
    esdm__readers_settle(session->readers, session->monitor);
}
