/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Sums of esdm-ls, in which counts once what containers share. */

#include "esdm-ls/esdm-ls.h"

static void
add_part(GArray *parts, const ls_entry *entry, guint group)
{
    const esdm_usage_part part = {.name = entry->name,
                                  .former = entry->id,
                                  .stored_bytes = entry->info.stored_bytes,
                                  .group = group};
    g_array_append_val(parts, part);
}

tool_exit
ls_count(esdm_session *session, const GPtrArray *entries, ls_total *ret_total)
{
    esdm_error err = {0};
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(esdm_usage_part));
    g_autofree esdm_usage *usages = g_new0(esdm_usage, entries->len + 1);
    *ret_total = (ls_total){.containers = 0};
    for (guint i = 0; i < entries->len; i++) {
        const ls_entry *entry = g_ptr_array_index(entries, i);
        ret_total->containers += entry->containers > 0 ? entry->containers : 1;
        ret_total->raw_bytes += entry->info.raw_bytes;
        ret_total->fragments += entry->info.fragments;
        for (guint k = 0; entry->members != NULL && k < entry->members->len; k++)
            add_part(parts, g_ptr_array_index(entry->members, k), i);
        if (entry->members == NULL && !entry->of_view)
            add_part(parts, entry, i);
    }
    if (session == NULL)
        return TOOL_OK;
    esdm_status status =
        esdm_usage_count(session, (const esdm_usage_part *) (const void *) parts->data, parts->len,
                         usages, entries->len, &ret_total->usage, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    for (guint i = 0; i < entries->len; i++) {
        ls_entry *entry = g_ptr_array_index(entries, i);
        entry->info.stored_bytes = usages[i].stored_bytes;
        entry->shared_bytes = usages[i].shared_bytes;
    }
    return TOOL_OK;
}
