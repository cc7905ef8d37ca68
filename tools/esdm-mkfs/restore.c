/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-mkfs --restore: what was found and what is missing. */

#include <stdio.h>

#include "esdm-mkfs/esdm-mkfs.h"

bool
mkfs_restored_all(const esdm_restore_result *result)
{
    return result->lost == 0 && result->incomplete == 0 && result->targets_absent == 0;
}

json_t *
mkfs_restore_json(const esdm_restore_result *result)
{
    json_t *root = json_object();
    if (result->from_backup) {
        g_autofree char *when = tool_time(result->backup_ns);
        tool_json_set(root, "backup", json_string(when));
    } else {
        tool_json_set(root, "backup", json_null());
    }
    const struct {
        const char *key;
        uint64_t value;
    } numbers[] = {
        {"containers", result->containers},
        {"restored", result->restored},
        {"commits", result->commits},
        {"lost", result->lost},
        {"incomplete", result->incomplete},
        {"damaged_bytes", result->damaged_bytes},
        {"targets_absent", result->targets_absent},
    };
    for (size_t i = 0; i < G_N_ELEMENTS(numbers); i++)
        tool_json_set(root, numbers[i].key, json_integer((json_int_t) numbers[i].value));
    return root;
}

void
mkfs_restore_report(const esdm_restore_result *result, bool dry_run)
{
    (void) printf("%s %" G_GUINT64_FORMAT " container%s; %" G_GUINT64_FORMAT
                  " %s the journals, with %" G_GUINT64_FORMAT " commit%s\n",
                  dry_run ? "the catalogue has" : "the site has", (guint64) result->containers,
                  result->containers == 1 ? "" : "s", (guint64) result->restored,
                  dry_run ? "would be changed by" : "came from, or were changed by",
                  (guint64) result->commits, result->commits == 1 ? "" : "s");
    if (result->lost > 0)
        (void) printf("%" G_GUINT64_FORMAT " could not be brought back\n", (guint64) result->lost);
    if (result->incomplete > 0)
        (void) printf("%" G_GUINT64_FORMAT " lack something; run esdm-fsck\n",
                      (guint64) result->incomplete);
    if (result->targets_absent > 0)
        (void) printf("%" G_GUINT64_FORMAT " target%s could not be looked at: bring %s back and "
                      "call esdm-mkfs --restore again\n",
                      (guint64) result->targets_absent, result->targets_absent == 1 ? "" : "s",
                      result->targets_absent == 1 ? "it" : "them");
}
