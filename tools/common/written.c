/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Whether somebody has written to a container since, or upkeep alone. */

#include <string.h>

#include "common/common.h"

typedef struct history {
    uint64_t since_ns;
    uint64_t same; /* the newest snapshot that is known to have the values of that time; 0: none */
    tool_written written;
    uint64_t newest_ns; /* of those that say so */
} history;

/* What commits no other values, by its messages (src/upkeep, tools). */
static bool
is_upkeep(const char *message)
{
    static const char *const upkeep[] = {"esdm-compact", "esdm-ref --pin", "esdm-recipe drop",
                                         "esdm-recipe: recorded"};
    for (size_t i = 0; i < G_N_ELEMENTS(upkeep); i++) {
        if (g_str_has_prefix(message, upkeep[i]))
            return true;
    }
    return false;
}

static bool
note_snapshot(const esdm_snapshot_info *info, void *user)
{
    history *h = user;
    bool upkeep = is_upkeep(info->message);
    if (info->time_ns <= h->since_ns || (upkeep && h->same != 0 && info->parent == h->same)) {
        h->same = info->snapshot;
    } else if (!upkeep || h->written != TOOL_WRITTEN_YES) {
        h->written = upkeep ? TOOL_WRITTEN_PERHAPS : TOOL_WRITTEN_YES;
        h->newest_ns = info->time_ns;
    }
    return true;
}

tool_written
tool_written_since(esdm_session *session, const char *name, uint64_t since_ns,
                   uint64_t *ret_written_ns)
{
    history h = {.since_ns = since_ns, .written = TOOL_WRITTEN_NOT};
    esdm_container_info info;
    esdm_error ignored;
    *ret_written_ns = 0;
    if (esdm_container_stat(session, name, &info, &ignored) != ESDM_OK ||
        info.modified_ns <= since_ns)
        return TOOL_WRITTEN_NOT;
    if (esdm_container_snapshots(session, name, note_snapshot, &h, &ignored) != ESDM_OK)
        h = (history){.written = TOOL_WRITTEN_PERHAPS, .newest_ns = info.modified_ns};
    *ret_written_ns = h.newest_ns;
    return h.written;
}
