/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/former.h"
#include "io/session/journaling.h"
#include "io/session/stub_files.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/ids.h"
#include "base/text.h"

#define SECOND_NS UINT64_C(1000000000)
/* Replacements and removals in one session between two looks at what is kept. */
#define SWEEP_EVERY 64
/* Former containers of files that may have been moved are kept for long, and each look at one asks
 * the store: so many at a time do for those that a session looks at by the way. */
#define LOOKS 128
/* What is freed at once, at least, when nothing more can be stored. */
#define RELIEF_BYTES (UINT64_C(256) << 20)

/* ---- tags --------------------------------------------------------------------------------- */

static bool
note_tag(const esdm_meta_tag *tag, void *user)
{
    static const char holds[] = "esdm:holds:"; /* what a branch needs for its merges */
    bool own =
        strncmp(tag->name, "esdm:", 5) == 0 && strncmp(tag->name, holds, sizeof holds - 1) != 0;
    *(bool *) user = !own;
    return own;
}

static bool
note_any_tag(const esdm_meta_tag *tag, void *user)
{
    (void) tag;
    *(bool *) user = true;
    return false;
}

/* Whether somebody gave one of its snapshots a name, or a branch needs one: then it stays. When
 * that cannot be told, too.
 * @param note whether those of the engine count (esdm/sys/meta_store.h). */
static bool
has_tags(const esdm_session *session, uint64_t record, esdm_meta_tag_visitor note)
{
    bool has = false;
    esdm_error ignored;
    return session->meta->tag_list != NULL &&
           (session->meta->tag_list(session->store, record, note, &has, &ignored) != ESDM_OK ||
            has);
}

static bool
name_has_tags(const esdm_session *session, const char *name)
{
    esdm_meta_container record;
    esdm_error ignored;
    return session->meta->container_find(session->store, name, &record, &ignored) == ESDM_OK &&
           has_tags(session, record.container, note_any_tag);
}

/* ---- names -------------------------------------------------------------------------------- */

static const char prefix[] = ESDM__FORMER_PREFIX "/";

bool
esdm__former_parse(const char *stored, esdm__former *ret_former)
{
    const char *name = stored + sizeof prefix - 1;
    if (strncmp(stored, prefix, sizeof prefix - 1) != 0)
        return false;
    const char *end = strstr(name, "//"); /* no name has that in it */
    esdm__former former = {.removed = false};
    char why = 0;
    int used = 0;
    if (end == NULL || end == name || (size_t) (end - name) >= sizeof former.name ||
        sscanf(end, "//%20" SCNu64 "-%8[0-9a-f]-%c%n", &former.time_ns, former.id, &why, &used) !=
            3 ||
        end[used] != '\0' || strlen(former.id) != sizeof former.id - 1)
        return false;
    memcpy(former.name, name, (size_t) (end - name));
    former.removed = why == 'd';
    *ret_former = former;
    return true;
}

void
esdm__former_tell(const char *stored, char *text, size_t bytes)
{
    esdm__former former;
    if (esdm__former_parse(stored, &former))
        (void) snprintf(text, bytes, "%s (former, %s)", former.name, former.id);
    else
        (void) snprintf(text, bytes, "%s", stored);
}

const char *
esdm__former_name(const esdm_session *session, const char *name, bool removed, char *stored)
{
    char id[ESDM__UUID_BYTES];
    if (esdm__name_is_shapes(name, NULL)) /* it can be made again */
        return NULL;
    if (session->site->replaced.keep_s == 0 && !name_has_tags(session, name))
        return NULL;
    esdm__uuid_new(id);
    const char *end = stored + ESDM__FORMER_NAME_BYTES;
    char *at = esdm__text_put(esdm__text_put(stored, end, prefix), end, name);
    at = esdm__text_number(esdm__text_put(at, end, "//"), end, esdm__now_ns(), 10, 20);
    at = esdm__text_part(esdm__text_put(at, end, "-"), end, id, 8);
    (void) esdm__text_put(at, end, removed ? "-d" : "-r");
    return stored;
}

/* ---- lists -------------------------------------------------------------------------------- */

typedef struct item {
    char *stored; /* owned */
    char uuid[ESDM_META_UUID_BYTES];
    uint64_t record;
    uint64_t time_ns;
    uint64_t bytes;
} item;

typedef struct list {
    const char *name; /* of one container alone; NULL: all */
    item *items;
    size_t count;
    size_t capacity;
    uint64_t bytes;
    bool failed;
} list;

static bool
note_item(const char *stored, const esdm_meta_container *record, void *user)
{
    list *all = user;
    esdm__former former;
    if (!esdm__former_parse(stored, &former) ||
        (all->name != NULL && strcmp(former.name, all->name) != 0))
        return true;
    if (all->count == all->capacity) {
        size_t capacity = all->capacity > 0 ? 2 * all->capacity : 64;
        item *grown = realloc(all->items, capacity * sizeof *grown);
        all->failed = grown == NULL;
        if (grown == NULL)
            return false;
        all->items = grown;
        all->capacity = capacity;
    }
    char *copy = strdup(stored);
    all->failed = copy == NULL;
    if (copy == NULL)
        return false;
    item *one = &all->items[all->count++];
    *one = (item){.stored = copy,
                  .record = record->container,
                  .time_ns = former.time_ns,
                  .bytes = record->stored_bytes};
    memcpy(one->uuid, record->uuid, sizeof one->uuid);
    all->bytes += record->stored_bytes;
    return true;
}

static int
by_time(const void *a, const void *b)
{
    const item *x = a;
    const item *y = b;
    return (x->time_ns > y->time_ns) - (x->time_ns < y->time_ns);
}

static void
clear_list(list *all)
{
    for (size_t i = 0; i < all->count; i++)
        free(all->items[i].stored);
    free(all->items);
}

/* Oldest first. */
static esdm_status
load_list(const esdm_session *session, const char *name, list *ret_list, esdm_error *err)
{
    char below[ESDM__FORMER_NAME_BYTES];
    *ret_list = (list){.name = name};
    (void) snprintf(below, sizeof below, "%s%s", prefix, name != NULL ? name : "");
    esdm_status status = session->meta->container_list(
        session->store, name != NULL ? below : ESDM__FORMER_PREFIX, note_item, ret_list, err);
    if (status == ESDM_OK && ret_list->failed)
        status = esdm__error_nomem(err, ret_list->count * sizeof(item), "former containers");
    if (status == ESDM_OK && ret_list->count > 0)
        qsort(ret_list->items, ret_list->count, sizeof(item), by_time);
    if (status != ESDM_OK)
        clear_list(ret_list);
    return status;
}

/* ---- freeing ------------------------------------------------------------------------------ */

/* Bytes that the site's share of the free space allows; UINT64_MAX where no target tells it. */
static uint64_t
allowed_bytes(esdm_session *session)
{
    uint64_t free_bytes = 0;
    bool known = false;
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        esdm_target_usage usage = {0};
        if (atomic_load(&target->state) != ESDM__TARGET_OPEN || target->plugin->space == NULL ||
            target->plugin->space(target->handle, &usage, NULL) != ESDM_OK ||
            usage.total_bytes == 0)
            continue;
        known = true;
        free_bytes += usage.free_bytes;
    }
    return known ? (uint64_t) ((double) free_bytes * session->site->replaced.share) : UINT64_MAX;
}

bool
esdm__former_fits(esdm_session *session, const char *name)
{
    esdm_meta_container record;
    esdm_error ignored;
    if (session->meta->container_find(session->store, name, &record, &ignored) != ESDM_OK ||
        has_tags(session, record.container, note_any_tag))
        return true;
    const esdm__site_replaced *limits = &session->site->replaced;
    return limits->keep_s > 0 && limits->containers > 0 &&
           record.stored_bytes <= allowed_bytes(session);
}

static bool
can_note(const esdm_session *session)
{
    return !session->read_only && session->meta->is_writable(session->store);
}

/* It becomes garbage, which is collected when nobody reads it any more. */
static bool
free_item(esdm_session *session, const item *one, esdm__former_sum *freed)
{
    uint64_t container = 0;
    if (esdm__named_remove(session, one->stored, &container, NULL) != ESDM_OK)
        return false;
    freed->containers++;
    freed->bytes += one->bytes;
    return true;
}

/* How many of the items have been kept for the usual time. */
static size_t
count_old(const list *all, uint64_t keep_s, uint64_t now_ns)
{
    size_t count = 0;
    while (count < all->count && all->items[count].time_ns < now_ns &&
           (now_ns - all->items[count].time_ns) / SECOND_NS >= keep_s)
        count++;
    return count;
}

/* @param looks at how many, of those that may stay in spite of their age. */
static esdm_status
sweep(esdm_session *session, bool every, size_t looks, bool dry_run, esdm__former_sum *ret_freed,
      esdm_error *err)
{
    list all;
    esdm__former_sum freed = {0};
    const esdm__site_replaced *limits = &session->site->replaced;
    uint64_t now_ns = esdm__now_ns();
    esdm_status status = load_list(session, NULL, &all, err);
    if (status != ESDM_OK)
        return status;
    uint64_t most = all.count > 0 && !every ? allowed_bytes(session) : 0;
    uint64_t left = all.bytes, count = all.count;
    size_t old = count_old(&all, limits->keep_s, now_ns);
    size_t first = old > looks ? (size_t) (now_ns / 1000 % old) : 0; /* in turn, by chance */
    for (size_t i = 0; i < all.count; i++) {
        const item *one = &all.items[i];
        bool fits = left <= most && count <= limits->containers;
        if (!every && i >= old && fits)
            break;
        if (!every && fits && (i + old - first) % old >= looks)
            continue;
        uint64_t until_ns =
            every ? 0 : esdm__stub_file_until(session, one->uuid, !dry_run && can_note(session));
        if (fits && until_ns > now_ns)
            continue;
        left -= one->bytes;
        count--;
        if (until_ns == UINT64_MAX || has_tags(session, one->record, note_tag))
            continue;
        if (!dry_run)
            (void) !free_item(session, one, &freed);
        else
            freed = (esdm__former_sum){freed.containers + 1, freed.bytes + one->bytes};
    }
    clear_list(&all);
    if (!dry_run)
        esdm__session_collect(session);
    if (ret_freed != NULL)
        *ret_freed = freed;
    return ESDM_OK;
}

esdm_status
esdm__former_sweep(esdm_session *session, bool every, bool dry_run, esdm__former_sum *ret_freed,
                   esdm_error *err)
{
    return sweep(session, every, SIZE_MAX, dry_run, ret_freed, err);
}

void
esdm__session_replaced(esdm_session *session)
{
    if (session->site->replaced.keep_s == 0)
        esdm__session_collect(session);
    else if (atomic_fetch_add(&session->replaced, 1u) % SWEEP_EVERY == 0)
        (void) !sweep(session, false, LOOKS, false, NULL, NULL);
}

bool
esdm__former_relieve(esdm_session *session)
{
    list all;
    esdm__former_sum freed = {0};
    if (session->read_only || !session->meta->is_writable(session->store) ||
        load_list(session, NULL, &all, NULL) != ESDM_OK)
        return false;
    bool any = false; /* other threads may have been faster */
    for (size_t i = 0; i < all.count && freed.bytes < RELIEF_BYTES; i++) {
        if (has_tags(session, all.items[i].record, note_tag) ||
            esdm__stub_file_until(session, all.items[i].uuid, false) == UINT64_MAX)
            continue;
        any = true;
        (void) !free_item(session, &all.items[i], &freed);
    }
    clear_list(&all);
    if (any)
        esdm__session_collect(session);
    atomic_fetch_add(&session->relieved_containers, freed.containers);
    atomic_fetch_add(&session->relieved_bytes, freed.bytes);
    return any;
}

esdm_status
esdm__former_forget(esdm_session *session, const char *name, esdm__former_sum *ret_freed,
                    esdm_error *err)
{
    list all;
    esdm__former_sum freed = {0};
    esdm_status status = load_list(session, name, &all, err);
    if (status != ESDM_OK)
        return status;
    for (size_t i = 0; i < all.count; i++)
        (void) !free_item(session, &all.items[i], &freed);
    clear_list(&all);
    *ret_freed = freed;
    return ESDM_OK;
}
