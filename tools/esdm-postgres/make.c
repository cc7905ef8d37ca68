/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Making the data of a server, and removing them. */

#include "esdm-postgres/private.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#define MAKING "esdm-making"

/* ---- programs of PostgreSQL ----------------------------------------------------------------- */

/* "15" of "postgres (PostgreSQL) 15.4"; owned, NULL: it does not run. */
static char *
version_of(const char *folder)
{
    g_autofree char *program = g_build_filename(folder, "postgres", NULL);
    g_autofree char *initdb = g_build_filename(folder, "initdb", NULL);
    g_autofree char *out = NULL;
    char *argv[] = {program, (char *) "--version", NULL};
    if (!g_file_test(program, G_FILE_TEST_IS_EXECUTABLE) ||
        !g_file_test(initdb, G_FILE_TEST_IS_EXECUTABLE) ||
        !g_spawn_sync("/", argv, NULL, G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL, &out, NULL, NULL,
                      NULL) ||
        out == NULL)
        return NULL;
    const char *number = strpbrk(out, "0123456789");
    gsize digits = number != NULL ? strspn(number, "0123456789") : 0;
    return digits > 0 ? g_strndup(number, digits) : NULL;
}

static void
add_matching(GPtrArray *folders, const char *pattern_folder, const char *prefix, const char *behind)
{
    g_autoptr(GDir) dir = g_dir_open(pattern_folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        if (g_str_has_prefix(name, prefix))
            g_ptr_array_add(folders, g_build_filename(pattern_folder, name, behind, NULL));
    }
}

/* Where distributions have them, what pg_config says, and $PATH. */
static GPtrArray *
candidates(const private_server *server)
{
    GPtrArray *folders = g_ptr_array_new_with_free_func(g_free);
    if (server->binaries != NULL) {
        g_ptr_array_add(folders, g_strdup(server->binaries));
        return folders;
    }
    g_autofree char *on_path = g_find_program_in_path("postgres");
    if (on_path != NULL)
        g_ptr_array_add(folders, g_path_get_dirname(on_path));
    char *argv[] = {(char *) "pg_config", (char *) "--bindir", NULL};
    g_autofree char *out = NULL;
    if (g_spawn_sync("/", argv, NULL, G_SPAWN_SEARCH_PATH | G_SPAWN_STDERR_TO_DEV_NULL, NULL, NULL,
                     &out, NULL, NULL, NULL) &&
        out != NULL && out[0] == '/')
        g_ptr_array_add(folders, g_strdup(g_strchomp(out)));
    add_matching(folders, "/usr/lib/postgresql", "", "bin"); /* Debian */
    add_matching(folders, "/usr", "pgsql-", "bin");          /* packages of PostgreSQL for RHEL */
    return folders;
}

esdm_status
private_find_binaries(const private_server *server, char **ret_folder, char **ret_version,
                      esdm_error *err)
{
    g_autoptr(GPtrArray) folders = candidates(server);
    g_autofree char *best = NULL;
    g_autofree char *best_version = NULL;
    for (guint i = 0; i < folders->len; i++) {
        const char *folder = g_ptr_array_index(folders, i);
        char *version = version_of(folder);
        bool fits = version != NULL &&
                    (server->version == NULL || g_str_equal(version, server->version)) &&
                    (best == NULL || atoi(version) > atoi(best_version));
        if (!fits) {
            g_free(version);
            continue;
        }
        g_free(best);
        g_free(best_version);
        best = g_strdup(folder);
        best_version = version;
    }
    if (best == NULL) {
        const char *wanted = server->version != NULL ? server->version : "15";
        return tool_error_set(err, ESDM_ENOENT,
                              "PostgreSQL%s%s is not installed on this node%s%s: install it "
                              "(package postgresql-%s, or postgresql%s-server), or name the folder "
                              "of initdb and postgres: --binaries, or \"binaries\" in %s/%s",
                              server->version != NULL ? " " : "",
                              server->version != NULL ? server->version : "",
                              server->binaries != NULL ? " in " : "",
                              server->binaries != NULL ? server->binaries : "", wanted, wanted,
                              server->folder, PRIVATE_MARK);
    }
    if (server->version == NULL && atoi(best_version) < 13)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "PostgreSQL %s in '%s' is too old: 13 or newer is needed",
                              best_version, best);
    *ret_folder = g_steal_pointer(&best);
    *ret_version = g_steal_pointer(&best_version);
    return ESDM_OK;
}

/* ---- running them --------------------------------------------------------------------------- */

/* Runs a program to its end, with `input` on its standard input. */
static esdm_status
run(const char *const *argv, const char *input, esdm_error *err)
{
    g_autofree char *name = g_path_get_basename(argv[0]);
    int in[2], out[2];
    if (pipe2(in, O_CLOEXEC) != 0)
        return tool_error_set(err, ESDM_EIO, "cannot run %s: %s", name, g_strerror(errno));
    if (pipe2(out, O_CLOEXEC) != 0) {
        (void) close(in[0]);
        (void) close(in[1]);
        return tool_error_set(err, ESDM_EIO, "cannot run %s: %s", name, g_strerror(errno));
    }
    g_autoptr(GError) why = NULL;
    GPid pid = 0;
    gboolean started = g_spawn_async_with_fds("/", (char **) argv, NULL, G_SPAWN_DO_NOT_REAP_CHILD,
                                              NULL, NULL, &pid, in[0], out[1], out[1], &why);
    (void) close(in[0]);
    (void) close(out[1]);
    /* What is asked of it is shorter than a pipe is. */
    if (started && input != NULL && write(in[1], input, strlen(input)) < 0)
        (void) 0; /* it has ended, and says why */
    (void) close(in[1]);
    GString *said = g_string_new(NULL);
    char piece[1024];
    ssize_t n = 0;
    while (started && ((n = read(out[0], piece, sizeof piece)) > 0 || (n < 0 && errno == EINTR)))
        g_string_append_len(said, piece, n > 0 ? n : 0);
    (void) close(out[0]);
    int status = -1;
    while (started && waitpid(pid, &status, 0) < 0 && errno == EINTR)
        continue;
    g_autofree char *text = g_string_free(said, FALSE);
    if (!started)
        return tool_error_set(err, ESDM_EIO, "cannot run %s: %s", name, why->message);
    if (status == 0 && strstr(text, "ERROR:") == NULL)
        return ESDM_OK;
    gsize bytes = strlen(g_strstrip(text));
    return tool_error_set(err, ESDM_EIO, "%s failed: %s", name,
                          bytes > 300 ? text + bytes - 300 : text);
}

/* ---- what is made --------------------------------------------------------------------------- */

static esdm_status
write_settings(const private_server *server, esdm_error *err)
{
    g_autofree char *path = private_path(server, "data/postgresql.conf");
    g_autofree char *before = NULL;
    g_autofree char *hba = private_path(server, "data/pg_hba.conf");
    esdm_status status = private_read(path, &before, err);
    if (status != ESDM_OK)
        return status;
    g_autofree char *text = g_strdup_printf(
        "%s\n"
        "# Of esdm-postgres. Addresses and port are given when the server is started.\n"
        "max_connections = %" G_GINT64_FORMAT "\n"
        "superuser_reserved_connections = 3\n"
        "max_locks_per_transaction = 256\n"
        "shared_buffers = 128MB\n"
        "max_wal_size = 1GB\n"
        "wal_level = minimal\n"
        "max_wal_senders = 0\n"
        "jit = off\n"
        "password_encryption = 'scram-sha-256'\n"
        "ssl = on\n"
        "ssl_cert_file = '../server.crt'\n"
        "ssl_key_file = '../server.key'\n"
        "tcp_keepalives_idle = 60\n"
        "tcp_keepalives_interval = 10\n"
        "tcp_keepalives_count = 3\n"
        "%s"
        "logging_collector = on\n"
        "log_directory = '../log'\n"
        "log_filename = 'server-%%a.log'\n"
        "log_truncate_on_rotation = on\n"
        "log_rotation_age = 1d\n"
        "log_rotation_size = 0\n",
        before, server->connections,
        atoi(server->version) >= 14 ? "client_connection_check_interval = 10s\n" : "");
    status = private_write(path, text, 0600, err);
    if (status == ESDM_OK)
        status = private_write(hba,
                               "# Of esdm-postgres: everybody with a password, encrypted.\n"
                               "hostssl all all 0.0.0.0/0 scram-sha-256\n"
                               "hostssl all all ::0/0 scram-sha-256\n",
                               0600, err);
    return status;
}

/* The superuser is for esdm-postgres alone, so that there is room for it when all others are taken.
 */
static esdm_status
make_roles(const char *postgres, const char *data, const char *password, esdm_error *err)
{
    const char *argv[] = {postgres, "--single", "-j", "-D", data, "postgres", NULL};
    g_autofree char *sql = g_strdup_printf("CREATE ROLE esdm LOGIN PASSWORD '%s';\n\n"
                                           "CREATE DATABASE esdm OWNER esdm;\n\n",
                                           password);
    return run(argv, sql, err);
}

static esdm_status
make_data(const private_server *server, const char *binaries, esdm_error *err)
{
    g_autofree char *initdb = g_build_filename(binaries, "initdb", NULL);
    g_autofree char *postgres = g_build_filename(binaries, "postgres", NULL);
    g_autofree char *data = private_path(server, "data");
    g_autofree char *log = private_path(server, "log");
    g_autofree char *admin = private_path(server, "admin-password");
    g_autofree char *own = private_path(server, "password");
    g_autofree char *pwfile = g_strconcat("--pwfile=", admin, NULL);
    g_autofree char *admin_password = private_secret();
    g_autofree char *password = private_secret();
    /* Nodes may have other versions of the C library, which sort otherwise: but not in "C". */
    const char *argv[] = {initdb, "-D",          data, "-U", "postgres",      "-E",
                          "UTF8", "--no-locale", "-k", "-A", "scram-sha-256", pwfile,
                          NULL};
    esdm_status status = private_write(admin, admin_password, 0600, err);
    if (status == ESDM_OK)
        status = private_write(own, password, 0600, err);
    if (status == ESDM_OK)
        status = private_make_certificate(server, err);
    if (status == ESDM_OK && mkdir(log, 0700) != 0)
        status = tool_error_set(err, ESDM_EIO, "cannot make '%s': %s", log, g_strerror(errno));
    if (status == ESDM_OK)
        status = run(argv, NULL, err);
    if (status == ESDM_OK)
        status = make_roles(postgres, data, password, err);
    return status == ESDM_OK ? write_settings(server, err) : status;
}

/* ---- the folder ----------------------------------------------------------------------------- */

static void
remove_tree(const char *path)
{
    struct stat info;
    if (lstat(path, &info) != 0)
        return;
    if (!S_ISDIR(info.st_mode)) {
        (void) unlink(path);
        return;
    }
    g_autoptr(GDir) dir = g_dir_open(path, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *inner = g_build_filename(path, name, NULL);
        remove_tree(inner);
    }
    (void) rmdir(path);
}

/* What else than ours is in the folder; owned, NULL: nothing. */
static char *
foreign_entry(const private_server *server)
{
    static const char *const ours[] = {
        "data", "log",           "lock",   "password", "server.crt", "server.key", "admin-password",
        MAKING, "endpoint.json", "runner", "stop",     PRIVATE_MARK, NULL};
    g_autoptr(GDir) dir = g_dir_open(server->folder, 0, NULL);
    g_autofree char *making = private_path(server, MAKING);
    g_autofree char *mark = private_path(server, PRIVATE_MARK);
    bool begun = access(making, F_OK) == 0 || access(mark, F_OK) == 0;
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        bool own = g_str_equal(name, "lock") ||
                   (begun && (g_strv_contains(ours, name) || g_str_has_prefix(name, "lease.") ||
                              g_str_has_prefix(name, "taking.") || g_str_has_suffix(name, ".new")));
        if (!own)
            return g_strdup(name);
    }
    return NULL;
}

static void
remove_ours(const private_server *server)
{
    g_autoptr(GDir) dir = g_dir_open(server->folder, 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = private_path(server, name);
        if (!g_str_equal(name, MAKING) && !g_str_equal(name, "lock"))
            remove_tree(path);
    }
}

static esdm_status
lock_folder(const private_server *server, int *ret_fd, esdm_error *err)
{
    g_autofree char *path = private_path(server, "lock");
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return tool_error_set(err, ESDM_EACCES, "cannot write in '%s': %s", server->folder,
                              g_strerror(errno));
    while (flock(fd, LOCK_EX) != 0 && errno == EINTR)
        continue;
    *ret_fd = fd;
    return ESDM_OK;
}

static esdm_status
make_locked(private_server *server, const char *binaries, esdm_error *err)
{
    g_autofree char *making = private_path(server, MAKING);
    g_autofree char *mark = private_path(server, PRIVATE_MARK);
    g_autofree char *foreign = foreign_entry(server);
    if (access(mark, F_OK) == 0)
        return ESDM_OK; /* somebody was faster */
    if (foreign != NULL)
        return tool_error_set(err, ESDM_EEXIST,
                              "'%s' is not empty ('%s' is in it); name another "
                              "folder",
                              server->folder, foreign);
    esdm_status status = private_write(making, "", 0600, err);
    if (status == ESDM_OK) {
        remove_ours(server); /* of one that was interrupted */
        status = make_data(server, binaries, err);
    }
    if (status == ESDM_OK)
        status = private_save(server, err);
    if (status != ESDM_OK)
        remove_ours(server);
    (void) unlink(making);
    return status;
}

esdm_status
private_make(private_server *server, bool dry_run, esdm_error *err)
{
    g_autofree char *binaries = NULL;
    g_autofree char *mark = private_path(server, PRIVATE_MARK);
    int fd = -1;
    if (access(mark, F_OK) == 0)
        return private_load(server, err);
    esdm_status status = private_find_binaries(server, &binaries, &server->version, err);
    if (status != ESDM_OK)
        return status;
    g_autofree char *foreign = foreign_entry(server);
    if (foreign != NULL)
        return tool_error_set(err, ESDM_EEXIST,
                              "'%s' is not empty ('%s' is in it); name another folder",
                              server->folder, foreign);
    if (dry_run)
        return ESDM_OK;
    if (g_mkdir_with_parents(server->folder, 0700) != 0)
        return tool_error_set(err, ESDM_EACCES, "cannot make the folder '%s': %s", server->folder,
                              g_strerror(errno));
    status = lock_folder(server, &fd, err);
    if (status != ESDM_OK)
        return status;
    status = make_locked(server, binaries, err);
    (void) close(fd);
    return status;
}

esdm_status
private_remove(const private_server *server, esdm_error *err)
{
    g_autofree char *mark = private_path(server, PRIVATE_MARK);
    g_autofree char *making = private_path(server, MAKING);
    g_autofree char *lock = private_path(server, "lock");
    g_autofree char *foreign = foreign_entry(server);
    if (foreign != NULL)
        return tool_error_set(err, ESDM_EEXIST,
                              "nothing was removed: '%s' in '%s' is not of esdm-postgres", foreign,
                              server->folder);
    esdm_status status = private_write(making, "", 0600, err);
    if (status != ESDM_OK)
        return status;
    (void) unlink(mark); /* from here on there is no server, however far this gets */
    remove_ours(server);
    (void) unlink(making);
    (void) unlink(lock);
    (void) rmdir(server->folder); /* which another user may have made */
    return ESDM_OK;
}
