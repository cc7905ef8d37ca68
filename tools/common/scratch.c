/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "common/scratch.h"

#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "esdm/branch.h"

/* After that long a process elsewhere counts as gone: runs are bounded in time. */
#define WEEK_US (7 * G_TIME_SPAN_DAY)

/* Process numbers mean something on one node, until it is started again, and in one namespace. */
static guint32
where(void)
{
    g_autofree char *boot = NULL;
    g_autofree char *space = g_file_read_link("/proc/self/ns/pid", NULL);
    if (!g_file_get_contents("/proc/sys/kernel/random/boot_id", &boot, NULL, NULL))
        boot = NULL;
    g_autofree char *text = g_strdup_printf("%s %s %s", g_get_host_name(), boot != NULL ? boot : "",
                                            space != NULL ? space : "");
    return g_str_hash(text);
}

char *
tool_scratch_folder(void)
{
    return g_strdup_printf(ESDM_SCRATCH_FOLDER "/%08x.%d.%08x", where(), (int) getpid(),
                           g_random_int());
}

typedef struct sweep {
    guint32 here;
    GPtrArray *names; /* to be removed */
} sweep;

static bool
is_gone(const sweep *s, const esdm_container_info *info)
{
    unsigned node, pid, number;
    int end = 0;
    if (sscanf(info->name, ESDM_SCRATCH_FOLDER "/%8x.%u.%8x/%n", &node, &pid, &number, &end) != 3 ||
        end == 0 || pid == 0 || pid > G_MAXINT)
        return false; /* somebody else's */
    if (node == s->here)
        return kill((pid_t) pid, 0) != 0 && errno == ESRCH;
    return (gint64) (info->modified_ns / 1000) + WEEK_US < g_get_real_time();
}

static bool
note(const esdm_container_info *info, void *user)
{
    const sweep *s = user;
    if (is_gone(s, info))
        g_ptr_array_add(s->names, g_strdup(info->name));
    return true;
}

static void
remove_all(esdm_session *session, const GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        /* One of another user, or one that has a tag, stays, and stops nothing. */
        esdm_error why = {0};
        esdm_status one = esdm_container_erase(session, g_ptr_array_index(names, i), &why);
        if (one != ESDM_OK && one != ESDM_ENOENT) /* another one sweeps, too */
            tool_error("%s", why.message);
    }
}

esdm_status
tool_scratch_sweep(esdm_session *session, bool remove, guint *ret_count, esdm_error *err)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    sweep s = {.here = where(), .names = names};
    esdm_status status = esdm_container_list(session, ESDM_SCRATCH_FOLDER, note, &s, err);
    if (remove && status == ESDM_OK)
        remove_all(session, names);
    *ret_count = names->len;
    return status;
}

/* ---- what was not finished ------------------------------------------------------------------ */

typedef struct unfinished {
    uint64_t until_us; /* written to before */
    GPtrArray *names;
} unfinished;

static uint64_t
until_of(uint64_t age_s)
{
    uint64_t now_us = (uint64_t) g_get_real_time();
    return now_us - (age_s < now_us / G_USEC_PER_SEC ? age_s * G_USEC_PER_SEC : now_us);
}

static bool
note_unfinished(const esdm_container_info *info, void *user)
{
    const unfinished *u = user;
    if (info->modified_ns / 1000 <= u->until_us)
        g_ptr_array_add(u->names, g_strdup(info->name));
    return true;
}

/* "user@host:pid program" of the newest commit. */
static bool
note_writer(const esdm_snapshot_info *info, void *user)
{
    char **writer = user;
    g_free(*writer);
    *writer = g_strdup(info->writer);
    return true;
}

/* Whether its program has ended; of what was removed meanwhile it has not. */
static bool
is_ended(esdm_session *session, const char *name)
{
    g_autofree char *writer = NULL;
    esdm_error ignored;
    esdm_container_info info;
    if (esdm_container_snapshots(session, name, note_writer, &writer, &ignored) != ESDM_OK ||
        writer == NULL || esdm_container_stat(session, name, &info, &ignored) != ESDM_OK)
        return false;
    const char *at = strrchr(writer, '@');
    const char *colon = at != NULL ? strrchr(at, ':') : NULL;
    g_autofree char *host = colon != NULL ? g_strndup(at + 1, (gsize) (colon - at - 1)) : NULL;
    gint64 pid = colon != NULL ? g_ascii_strtoll(colon + 1, NULL, 10) : 0;
    if (host == NULL || !g_str_equal(host, g_get_host_name()) || pid <= 0 || pid > G_MAXINT)
        return (gint64) (info.modified_ns / 1000) + WEEK_US < g_get_real_time();
    return kill((pid_t) pid, 0) != 0 && errno == ESRCH;
}

esdm_status
tool_unfinished_sweep(esdm_session *session, uint64_t age_s, bool remove, guint *ret_count,
                      esdm_error *err)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    unfinished u = {.until_us = until_of(age_s), .names = names};
    esdm_status status =
        esdm_container_list(session, ESDM_UNFINISHED_COPY, note_unfinished, &u, err);
    for (guint i = names->len; i-- > 0 && status == ESDM_OK;) {
        if (!is_ended(session, g_ptr_array_index(names, i)))
            g_ptr_array_remove_index_fast(names, i);
    }
    if (remove && status == ESDM_OK)
        remove_all(session, names);
    *ret_count = names->len;
    return status;
}

/* What was to take the place of a branch. */
static bool
note_left(const esdm_container_info *info, void *user)
{
    const unfinished *u = user;
    bool elsewhere = false;
    uint64_t until_us = u->until_us;
    if (!esdm_container_name_is_left(info->name, &elsewhere))
        return true;
    if (elsewhere)
        until_us = MIN(until_us, (uint64_t) (g_get_real_time() - WEEK_US));
    if (info->modified_ns / 1000 <= until_us)
        g_ptr_array_add(u->names, g_strdup(info->name));
    return true;
}

esdm_status
tool_left_sweep(esdm_session *session, uint64_t age_s, bool remove, guint *ret_count,
                esdm_error *err)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    unfinished u = {.until_us = until_of(age_s), .names = names};
    esdm_status status = esdm_container_list(session, NULL, note_left, &u, err);
    if (remove && status == ESDM_OK)
        remove_all(session, names);
    *ret_count = names->len;
    return status;
}

static bool
note_gather(const char *name, void *user)
{
    g_ptr_array_add(user, g_strdup(name));
    return true;
}

esdm_status
tool_gathers_sweep(esdm_session *session, uint64_t age_s, bool remove, guint *ret_count,
                   esdm_error *err)
{
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_status status = esdm_gather_left(session, NULL, age_s, note_gather, names, err);
    for (guint i = 0; remove && status == ESDM_OK && i < names->len; i++) {
        esdm_error why = {0};
        esdm_status one = esdm_container_remove(session, g_ptr_array_index(names, i), &why);
        if (one != ESDM_OK && one != ESDM_ENOENT)
            tool_error("%s", why.message);
    }
    *ret_count = names->len;
    return status;
}
