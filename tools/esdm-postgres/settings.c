/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The settings of a server, and the user that it belongs to. */

#include "esdm-postgres/private.h"

#include <errno.h>
#include <fcntl.h>
#include <grp.h>
#include <pwd.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#define FORMAT        1
#define TEXT_MAX      65536
#define CONNECTIONS   300
#define IDLE_S        300
#define LEASE_S       30
#define LONGEST_S     (INT64_C(365) * 86400)
#define MOST_SESSIONS 10000

void
private_server_clear(private_server *server)
{
    g_free(server->folder);
    g_free(server->version);
    g_free(server->binaries);
    g_free(server->address);
    *server = (private_server){0};
}

char *
private_path(const private_server *server, const char *name)
{
    return g_build_filename(server->folder, name, NULL);
}

gint64
private_now_us(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_BOOTTIME, &now);
    return (gint64) now.tv_sec * G_USEC_PER_SEC + now.tv_nsec / 1000;
}

/* ---- files ---------------------------------------------------------------------------------- */

static esdm_status
write_all(int fd, const char *text, const char *path, esdm_error *err)
{
    gsize bytes = strlen(text), done = 0;
    while (done < bytes) {
        ssize_t n = write(fd, text + done, bytes - done);
        if (n < 0 && errno != EINTR)
            return tool_error_set(err, ESDM_EIO, "cannot write '%s': %s", path, g_strerror(errno));
        done += n > 0 ? (gsize) n : 0;
    }
    if (fsync(fd) != 0)
        return tool_error_set(err, ESDM_EIO, "cannot write '%s': %s", path, g_strerror(errno));
    return ESDM_OK;
}

esdm_status
private_write(const char *path, const char *text, mode_t mode, esdm_error *err)
{
    g_autofree char *host = g_strdup(g_get_host_name());
    g_autofree char *begun =
        g_strdup_printf("%s.%s.%d.%p.new", path, host, (int) getpid(), (void *) g_thread_self());
    int fd = open(begun, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, mode);
    if (fd < 0)
        return tool_error_set(err, ESDM_EIO, "cannot write '%s': %s", path, g_strerror(errno));
    esdm_status status = write_all(fd, text, path, err);
    (void) fchmod(fd, mode);
    if (close(fd) != 0 && status == ESDM_OK)
        status = tool_error_set(err, ESDM_EIO, "cannot write '%s': %s", path, g_strerror(errno));
    if (status == ESDM_OK && rename(begun, path) != 0)
        status = tool_error_set(err, ESDM_EIO, "cannot write '%s': %s", path, g_strerror(errno));
    if (status != ESDM_OK)
        (void) unlink(begun);
    return status;
}

esdm_status
private_read(const char *path, char **ret_text, esdm_error *err)
{
    g_autofree char *text = g_malloc(TEXT_MAX + 1);
    gsize bytes = 0;
    ssize_t n = 1;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd < 0)
        return tool_error_set(err, errno == ENOENT ? ESDM_ENOENT : ESDM_EIO, "cannot read '%s': %s",
                              path, g_strerror(errno));
    while (bytes < TEXT_MAX && n > 0) {
        n = read(fd, text + bytes, TEXT_MAX - bytes);
        bytes += n > 0 ? (gsize) n : 0;
    }
    int why = errno;
    (void) close(fd);
    if (n < 0)
        return tool_error_set(err, ESDM_EIO, "cannot read '%s': %s", path, g_strerror(why));
    text[bytes] = '\0';
    *ret_text = g_strdup(g_strchomp(text));
    return ESDM_OK;
}

/* ---- settings ------------------------------------------------------------------------------- */

static esdm_status
take_number(const json_t *root, const char *path, const char *key, gint64 least, gint64 most,
            gint64 *number, esdm_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL)
        return ESDM_OK;
    if (!json_is_integer(value) || json_integer_value(value) < least ||
        json_integer_value(value) > most)
        return tool_error_set(err, ESDM_EINVAL, "%s: \"%s\" must be a number, %lld ... %lld", path,
                              key, (long long) least, (long long) most);
    *number = json_integer_value(value);
    return ESDM_OK;
}

static esdm_status
take_text(const json_t *root, const char *path, const char *key, char **text, esdm_error *err)
{
    const json_t *value = json_object_get(root, key);
    if (value == NULL)
        return ESDM_OK;
    if (!json_is_string(value) || json_string_value(value)[0] == '\0')
        return tool_error_set(err, ESDM_EINVAL, "%s: \"%s\" must be a text", path, key);
    g_free(*text);
    *text = g_strdup(json_string_value(value));
    return ESDM_OK;
}

static esdm_status
check_keys(const json_t *root, const char *path, esdm_error *err)
{
    static const char *const known[] = {"format", "postgres", "binaries",    "address", "port",
                                        "idle",   "lease",    "connections", NULL};
    const char *key;
    json_t *value;
    json_object_foreach((json_t *) root, key, value)
    {
        if (!g_strv_contains(known, key))
            return tool_error_set(err, ESDM_EINVAL,
                                  "%s: unknown key \"%s\"; there are binaries, address, port, "
                                  "idle, lease and connections",
                                  path, key);
    }
    return ESDM_OK;
}

static esdm_status
take_settings(private_server *server, const json_t *root, const char *path, esdm_error *err)
{
    gint64 format = FORMAT;
    esdm_status status = take_number(root, path, "format", 1, G_MAXINT32, &format, err);
    if (status == ESDM_OK && format > FORMAT)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "%s has format %d, newer than the %d that this version of ESDM "
                              "knows; use a newer ESDM",
                              path, (int) format, FORMAT);
    if (status == ESDM_OK)
        status = check_keys(root, path, err);
    if (status == ESDM_OK)
        status = take_text(root, path, "postgres", &server->version, err);
    if (status == ESDM_OK)
        status = take_text(root, path, "binaries", &server->binaries, err);
    if (status == ESDM_OK)
        status = take_text(root, path, "address", &server->address, err);
    if (status == ESDM_OK)
        status = take_number(root, path, "port", 1, 65535, &server->port, err);
    if (status == ESDM_OK)
        status = take_number(root, path, "idle", 1, LONGEST_S, &server->idle_s, err);
    if (status == ESDM_OK)
        status = take_number(root, path, "lease", 3, 3600, &server->lease_s, err);
    if (status == ESDM_OK)
        status =
            take_number(root, path, "connections", 10, MOST_SESSIONS, &server->connections, err);
    if (status == ESDM_OK && server->version == NULL)
        status = tool_error_set(err, ESDM_EINVAL, "%s: \"postgres\" must be the version", path);
    return status;
}

esdm_status
private_load(private_server *server, esdm_error *err)
{
    g_autofree char *path = private_path(server, PRIVATE_MARK);
    g_autofree char *text = NULL;
    json_error_t where;
    server->idle_s = server->idle_s > 0 ? server->idle_s : IDLE_S;
    server->lease_s = server->lease_s > 0 ? server->lease_s : LEASE_S;
    server->connections = server->connections > 0 ? server->connections : CONNECTIONS;
    esdm_status status = private_read(path, &text, err);
    if (status == ESDM_ENOENT)
        return tool_error_set(err, status,
                              "there is no PostgreSQL server in '%s'; esdm-postgres --make, or "
                              "esdm-mkfs, makes one",
                              server->folder);
    if (status != ESDM_OK)
        return status;
    json_t *root = tool_json_read(text, -1, 0, &where);
    if (!json_is_object(root)) {
        json_decref(root);
        return tool_error_set(err, ESDM_EINVAL, "%s: line %d: %s", path, where.line, where.text);
    }
    status = take_settings(server, root, path, err);
    json_decref(root);
    return status;
}

esdm_status
private_save(const private_server *server, esdm_error *err)
{
    g_autofree char *path = private_path(server, PRIVATE_MARK);
    json_t *root = json_object();
    tool_json_set(root, "format", json_integer(FORMAT));
    tool_json_set(root, "postgres", json_string(server->version));
    if (server->binaries != NULL)
        tool_json_set(root, "binaries", json_string(server->binaries));
    if (server->address != NULL)
        tool_json_set(root, "address", json_string(server->address));
    if (server->port > 0)
        tool_json_set(root, "port", json_integer(server->port));
    tool_json_set(root, "idle", json_integer(server->idle_s));
    tool_json_set(root, "lease", json_integer(server->lease_s));
    tool_json_set(root, "connections", json_integer(server->connections));
    char *text = json_dumps(root, JSON_INDENT(4));
    json_decref(root);
    g_autofree char *line = g_strconcat(text, "\n", NULL);
    free(text);
    return private_write(path, line, 0600, err);
}

/* ---- the owner ------------------------------------------------------------------------------ */

static esdm_status
refuse_root(const private_server *server, esdm_error *err)
{
    return tool_error_set(err, ESDM_EACCES,
                          "PostgreSQL does not run as root, and '%s' belongs to no other user: run "
                          "this as the user whose server it will be, or make the folder for one "
                          "first: install -d -m 700 -o USER %s",
                          server->folder, server->folder);
}

static esdm_status
change_user(const private_server *server, uid_t uid, gid_t gid, esdm_error *err)
{
    const struct passwd *user = getpwuid(uid);
    int failed = user != NULL ? initgroups(user->pw_name, user->pw_gid) : setgroups(0, NULL);
    if (user != NULL)
        gid = user->pw_gid;
    if (failed != 0 || setresgid(gid, gid, gid) != 0 || setresuid(uid, uid, uid) != 0)
        return tool_error_set(err, ESDM_EACCES, "cannot become the owner of '%s': %s",
                              server->folder, g_strerror(errno));
    (void) g_setenv("HOME", user != NULL ? user->pw_dir : "/", TRUE);
    return ESDM_OK;
}

esdm_status
private_become_owner(const private_server *server, bool making, esdm_error *err)
{
    struct stat info;
    if (stat(server->folder, &info) != 0) {
        if (errno != ENOENT || !making)
            return tool_error_set(err, errno == ENOENT ? ESDM_ENOENT : ESDM_EACCES,
                                  "cannot look at the folder '%s': %s", server->folder,
                                  g_strerror(errno));
        return geteuid() == 0 ? refuse_root(server, err) : ESDM_OK;
    }
    if (!S_ISDIR(info.st_mode))
        return tool_error_set(err, ESDM_EINVAL, "'%s' is no folder", server->folder);
    if (geteuid() == 0)
        return info.st_uid == 0 ? refuse_root(server, err)
                                : change_user(server, info.st_uid, info.st_gid, err);
    if (info.st_uid == geteuid())
        return ESDM_OK;
    const struct passwd *user = getpwuid(info.st_uid);
    g_autofree char *number = g_strdup_printf("%u", (unsigned) info.st_uid);
    return tool_error_set(err, ESDM_EACCES,
                          "the server in '%s' belongs to user %s, who alone may run it; a program "
                          "of that user starts it",
                          server->folder, user != NULL ? user->pw_name : number);
}
