/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Who may run the server: numbered leases on a file system that nodes share. */

#include "esdm-postgres/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* Old leases stay for a while: who has listed the folder long ago must not get an old number. */
#define KEPT 200

void
private_lease_clear(private_lease *lease)
{
    g_free(lease->host);
    g_free(lease->boot);
    g_free(lease->space);
    *lease = (private_lease){0};
}

/* ---- this process --------------------------------------------------------------------------- */

static char *
boot_id(void)
{
    char *text = NULL;
    if (private_read("/proc/sys/kernel/random/boot_id", &text, NULL) != ESDM_OK)
        text = g_strdup("");
    return text;
}

static char *
process_space(void)
{
    char *link = g_file_read_link("/proc/self/ns/pid", NULL);
    return link != NULL ? link : g_strdup("");
}

static char *
host_name(void)
{
    char name[256] = "";
    (void) gethostname(name, sizeof name - 1);
    return g_strdup(name);
}

/* When a process began, in ticks since the boot; 0: there is none. One that is dead and that its
 * parent has not asked for counts as gone. */
static guint64
start_of(gint64 pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%" G_GINT64_FORMAT "/stat", pid);
    g_autofree char *text = NULL;
    if (private_read(path, &text, NULL) != ESDM_OK)
        return 0;
    const char *at = strrchr(text, ')'); /* the name may have anything in it */
    if (at == NULL || at[1] != ' ' || at[2] == 'Z' || at[2] == 'X')
        return 0;
    g_auto(GStrv) fields = g_strsplit(at + 2, " ", 0);
    return g_strv_length(fields) > 19 ? g_ascii_strtoull(fields[19], NULL, 10) : 0;
}

/* ---- files ---------------------------------------------------------------------------------- */

static char *
lease_path(const private_server *server, guint64 number)
{
    return g_strdup_printf("%s/lease.%" G_GUINT64_FORMAT, server->folder, number);
}

static esdm_status
newest_number(const private_server *server, guint64 *ret_number, esdm_error *err)
{
    g_autoptr(GError) why = NULL;
    g_autoptr(GDir) dir = g_dir_open(server->folder, 0, &why);
    const char *name;
    *ret_number = 0;
    if (dir == NULL)
        return tool_error_set(err, ESDM_EIO, "cannot list '%s': %s", server->folder, why->message);
    while ((name = g_dir_read_name(dir)) != NULL) {
        char *end = NULL;
        guint64 number =
            g_str_has_prefix(name, "lease.") ? g_ascii_strtoull(name + 6, &end, 10) : 0;
        if (number > *ret_number && *end == '\0')
            *ret_number = number;
    }
    return ESDM_OK;
}

static char *
lease_text(const private_lease *lease)
{
    json_t *root = json_object();
    tool_json_set(root, "host", tool_json_text(lease->host));
    tool_json_set(root, "boot", tool_json_text(lease->boot));
    tool_json_set(root, "space", tool_json_text(lease->space));
    tool_json_set(root, "pid", json_integer(lease->pid));
    tool_json_set(root, "started", json_integer((json_int_t) lease->started));
    tool_json_set(root, "beat", json_integer((json_int_t) lease->beat));
    tool_json_set(root, "released", json_boolean(lease->released));
    char *text = json_dumps(root, JSON_COMPACT);
    char *line = g_strconcat(text, "\n", NULL);
    free(text);
    json_decref(root);
    return line;
}

static char *
member(const json_t *root, const char *key)
{
    const char *text = json_string_value(json_object_get(root, key));
    return g_strdup(text != NULL ? text : "");
}

esdm_status
private_lease_newest(const private_server *server, private_lease *ret_lease, esdm_error *err)
{
    private_lease_clear(ret_lease);
    esdm_status status = newest_number(server, &ret_lease->number, err);
    if (status != ESDM_OK || ret_lease->number == 0)
        return status;
    g_autofree char *path = lease_path(server, ret_lease->number);
    g_autofree char *text = NULL;
    status = private_read(path, &text, err);
    if (status != ESDM_OK)
        return status;
    /* What cannot be parsed (a file system that lost its end) is held by nobody who is known: it
     * has no heartbeat, and is free after its time. */
    json_t *root = tool_json_read(text, -1, 0, NULL);
    ret_lease->host = member(root, "host");
    ret_lease->boot = member(root, "boot");
    ret_lease->space = member(root, "space");
    ret_lease->pid = json_integer_value(json_object_get(root, "pid"));
    ret_lease->started = (guint64) json_integer_value(json_object_get(root, "started"));
    ret_lease->beat = (guint64) json_integer_value(json_object_get(root, "beat"));
    ret_lease->released = json_is_true(json_object_get(root, "released"));
    json_decref(root);
    return ESDM_OK;
}

/* ---- whose it is ---------------------------------------------------------------------------- */

bool
private_lease_is_here(const private_lease *lease)
{
    g_autofree char *host = host_name();
    g_autofree char *boot = boot_id();
    g_autofree char *space = process_space();
    return lease->number > 0 && boot[0] != '\0' && space[0] != '\0' &&
           g_str_equal(lease->host, host) && g_str_equal(lease->boot, boot) &&
           g_str_equal(lease->space, space);
}

char *
private_lease_place(const private_lease *lease)
{
    return g_strjoin(" ", lease->host, lease->boot, lease->space, NULL);
}

bool
private_lease_is_free(const private_server *server, const private_lease *lease,
                      private_watch *watch)
{
    if (lease->number == 0 || lease->released)
        return true;
    if (private_lease_is_here(lease))
        return start_of(lease->pid) != lease->started;
    gint64 now_us = private_now_us();
    if (watch->number != lease->number || watch->beat != lease->beat || watch->since_us == 0)
        *watch = (private_watch){lease->number, lease->beat, now_us};
    return now_us - watch->since_us > server->lease_s * G_USEC_PER_SEC;
}

/* ---- taking --------------------------------------------------------------------------------- */

/* link() is atomic on all file systems; over NFS its answer may be lost, but not the link. */
static esdm_status
link_exclusively(const char *from, const char *to, esdm_error *err)
{
    struct stat info;
    int failed = link(from, to);
    int why = errno;
    if (failed == 0 || (stat(from, &info) == 0 && info.st_nlink == 2))
        return ESDM_OK;
    if (why == EEXIST)
        return tool_error_set(err, ESDM_EEXIST, "somebody else starts the server");
    return tool_error_set(err, ESDM_EIO, "cannot make '%s': %s", to, g_strerror(why));
}

static void
forget_old(const private_server *server, guint64 number)
{
    for (guint64 i = number > KEPT ? number - KEPT : 0; i > 0; i--) {
        g_autofree char *path = lease_path(server, i);
        if (unlink(path) != 0)
            return;
    }
}

esdm_status
private_lease_take(const private_server *server, guint64 after, private_lease *ret_lease,
                   esdm_error *err)
{
    guint64 newest = 0;
    private_lease_clear(ret_lease);
    *ret_lease = (private_lease){.number = after + 1,
                                 .host = host_name(),
                                 .boot = boot_id(),
                                 .space = process_space(),
                                 .pid = getpid(),
                                 .started = start_of(getpid()),
                                 .beat = 1};
    g_autofree char *path = lease_path(server, ret_lease->number);
    g_autofree char *begun =
        g_strdup_printf("%s/taking.%s.%d", server->folder, ret_lease->host, (int) getpid());
    g_autofree char *text = lease_text(ret_lease);
    esdm_status status = private_write(begun, text, 0600, err);
    if (status != ESDM_OK)
        return status;
    status = link_exclusively(begun, path, err);
    (void) unlink(begun);
    if (status == ESDM_OK)
        status = newest_number(server, &newest, err);
    if (status == ESDM_OK && newest != ret_lease->number) {
        (void) unlink(path);
        status = tool_error_set(err, ESDM_EEXIST, "somebody else starts the server");
    }
    if (status == ESDM_OK)
        forget_old(server, ret_lease->number);
    return status;
}

esdm_status
private_lease_beat(const private_server *server, private_lease *lease, esdm_error *err)
{
    g_autofree char *next = lease_path(server, lease->number + 1);
    g_autofree char *path = lease_path(server, lease->number);
    if (access(next, F_OK) == 0)
        return tool_error_set(err, ESDM_ECONFLICT, "another node has taken the server over");
    lease->beat++;
    g_autofree char *text = lease_text(lease);
    return private_write(path, text, 0600, err);
}

void
private_lease_release(const private_server *server, private_lease *lease)
{
    lease->released = true;
    (void) private_lease_beat(server, lease, NULL);
}
