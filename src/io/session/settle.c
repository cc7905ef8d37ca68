/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* What a session tells at its end of what it asked ahead. */
#include "io/session/readers.h"
#include "io/session/session.h"

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
    esdm__earlier_settle(session->earlier, session->monitor);
    esdm__readers_settle(session->readers, session->monitor);
}
