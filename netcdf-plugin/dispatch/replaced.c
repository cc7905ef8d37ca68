/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What a Python program replaced before it failed. xarray with dask.distributed closes a container
 * when it has its structure, and other processes fill it in: when one of them fails, the container
 * of before has lost its name already. That cannot be undone behind the program's back, as closed
 * files may well be complete; but it must not go by in silence.
 */

#include "internal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* So many names are remembered; a program that makes more tells of these. */
#define NAMES_MOST 256

typedef struct entry {
    char *name;
    uint64_t generation;
    uint64_t since_ns;
} entry;

/* Under the lock of the table of files. */
static entry entries[NAMES_MOST];
static size_t count;

void
esdmnc_replaced_note(const esdmnc_file *file)
{
    if (file->opening == 0)
        return; /* no Python */
    (void) esdmnc_files_lock(NULL);
    size_t i = 0;
    while (i < count &&
           (strcmp(entries[i].name, file->name) != 0 || entries[i].generation != file->generation))
        i++;
    if (i == count && count < NAMES_MOST && (entries[i].name = strdup(file->name)) != NULL) {
        entries[i].generation = file->generation;
        entries[i].since_ns = file->opened_ns;
        count++;
    }
    esdmnc_files_unlock();
}

typedef struct search {
    const entry *entry;
    bool found;
    char id[16]; /* of the first one: later ones are the program's own */
} search;

static bool
look(const esdm_former_info *info, void *user)
{
    search *s = user;
    if (info->removed || info->time_ns < s->entry->since_ns ||
        strcmp(info->container.name, s->entry->name) != 0)
        return true;
    s->found = true;
    (void) snprintf(s->id, sizeof s->id, "%s", info->id);
    return false;
}

void
esdmnc_replaced_tell(const char *failure)
{
    esdm_session *session = esdmnc_session_now();
    const char *first = NULL;
    char id[16] = "";
    size_t replaced = 0;
    for (size_t i = 0; session != NULL && i < count; i++) {
        search s = {.entry = &entries[i]};
        if (entries[i].generation != esdmnc_session_generation() ||
            esdm_former_list(session, entries[i].name, look, &s, NULL) != ESDM_OK || !s.found)
            continue;
        if (replaced++ == 0) {
            first = entries[i].name;
            (void) snprintf(id, sizeof id, "%s", s.id);
        }
    }
    if (replaced == 1)
        esdmnc_say("the program failed (%s) after it had replaced '%s': esdm-restore --id %s '%s' "
                   "brings back what stood there before",
                   failure, first, id, first);
    else if (replaced > 1)
        esdmnc_say("the program failed (%s) after it had replaced '%s' and %zu more: esdm-restore "
                   "brings back what stood there before (esdm-ls --replaced shows it)",
                   failure, first, replaced - 1);
}
