/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Starting the server when nobody runs it, and stopping it. */

#include <errno.h>
#include <fcntl.h>
#include <libpq-fe.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "esdm-postgres/private.h"

#define NAP_US 50000

/* ---- looking -------------------------------------------------------------------------------- */

static bool
answers(const private_endpoint *endpoint)
{
    g_autofree char *port = g_strdup_printf("%d", (int) endpoint->port);
    const char *keywords[] = {"host", "port", "connect_timeout", NULL};
    const char *values[] = {endpoint->addresses, port, "3", NULL};
    return PQpingParams(keywords, values, 0) == PQPING_OK;
}

/* ---- the keeper in the background ----------------------------------------------------------- */

static void
tell(esdm_status status, const char *text, void *user)
{
    int *pipe_end = user;
    g_autofree char *line = g_strdup_printf("%d %s", (int) status, text != NULL ? text : "");
    if (*pipe_end >= 0) {
        if (write(*pipe_end, line, strlen(line)) < 0)
            (void) 0; /* nobody waits any more */
        (void) close(*pipe_end);
    }
    *pipe_end = -1;
}

/* What was meant for the program that was first would end the server of all. */
static void
raise_limits(void)
{
    static const int limits[] = {RLIMIT_AS, RLIMIT_CPU, RLIMIT_DATA, RLIMIT_FSIZE, RLIMIT_NOFILE};
    for (gsize i = 0; i < G_N_ELEMENTS(limits); i++) {
        struct rlimit limit;
        if (getrlimit(limits[i], &limit) != 0)
            continue;
        limit.rlim_cur = limit.rlim_max;
        (void) setrlimit(limits[i], &limit);
    }
}

/* Away from the program that was first: its terminal, its files, its folder. */
static void
detach(const private_server *server, int *pipe_end)
{
    g_autofree char *path = private_path(server, "log/keeper.log");
    int nothing = open("/dev/null", O_RDWR);
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND, 0600);
    int own = fcntl(*pipe_end, F_DUPFD_CLOEXEC, 100);
    (void) dup2(nothing, STDIN_FILENO);
    (void) dup2(nothing, STDOUT_FILENO);
    (void) dup2(log >= 0 ? log : nothing, STDERR_FILENO);
    struct rlimit limit = {.rlim_cur = 1024};
    (void) getrlimit(RLIMIT_NOFILE, &limit);
    for (int fd = 3; fd < (int) MIN(limit.rlim_cur, 65536); fd++) {
        if (fd != own)
            (void) close(fd);
    }
    *pipe_end = own;
    raise_limits();
    (void) umask(077);
    (void) chdir("/");
    const char *const *variables = (const char *const *) g_get_environ();
    for (; *variables != NULL; variables++) {
        g_autofree char *name = g_strndup(*variables, strcspn(*variables, "="));
        if (g_str_has_prefix(name, "PG") || g_str_equal(name, "LD_PRELOAD"))
            g_unsetenv(name);
    }
}

/* @return what the keeper says: the status, and a text. */
static esdm_status
start_keeper(private_server *server, guint64 after, esdm_error *err)
{
    int ends[2];
    char said[600];
    if (pipe(ends) != 0)
        return tool_error_set(err, ESDM_EIO, "cannot start the server: %s", g_strerror(errno));
    pid_t pid = fork();
    if (pid == 0) {
        (void) close(ends[0]);
        (void) setsid();
        if (fork() != 0)
            _exit(0);
        detach(server, &ends[1]);
        _exit(private_keep(server, after, tell, &ends[1]));
    }
    (void) close(ends[1]);
    gsize bytes = 0;
    ssize_t n = pid > 0 ? 1 : 0;
    while (n > 0 && bytes < sizeof said - 1) {
        n = read(ends[0], said + bytes, sizeof said - 1 - bytes);
        if (n < 0 && errno == EINTR)
            n = 1;
        else
            bytes += n > 0 ? (gsize) n : 0;
    }
    said[bytes] = '\0';
    (void) close(ends[0]);
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    char *text = strchr(said, ' ');
    if (text == NULL)
        return tool_error_set(err, ESDM_EIO,
                              "the process that keeps the server has ended; see %s/log/keeper.log",
                              server->folder);
    esdm_status status = (esdm_status) atoi(said);
    return status == ESDM_OK ? ESDM_OK : tool_error_set(err, status, "%s", text + 1);
}

/* ---- waiting -------------------------------------------------------------------------------- */

static void
tell_nobody(esdm_status status, const char *text, void *user)
{
    esdm_error *err = user;
    if (status != ESDM_OK)
        (void) tool_error_set(err, status, "%s", text);
}

static esdm_status
run_it(private_server *server, guint64 after, bool foreground, esdm_error *err)
{
    if (!foreground)
        return start_keeper(server, after, err);
    esdm_error why = {0};
    (void) private_keep(server, after, tell_nobody, &why); /* returns on failure alone */
    *err = why;
    return why.status;
}

static esdm_status
waited_in_vain(const private_server *server, const private_lease *lease,
               const private_endpoint *endpoint, esdm_error *err)
{
    if (endpoint->lease == lease->number && lease->number > 0)
        return tool_error_set(err, ESDM_ETIMEDOUT,
                              "the server in '%s' runs on node %s (%s port %d), which does not "
                              "answer from here; if it can be reached at another address, name "
                              "that as \"address\" in its %s",
                              server->folder, lease->host, endpoint->addresses,
                              (int) endpoint->port, PRIVATE_MARK);
    return tool_error_set(err, ESDM_ETIMEDOUT,
                          "process %d of node %s has the server in '%s', and does not become "
                          "ready; see the folder log there, or end that process",
                          (int) lease->pid, lease->host, server->folder);
}

esdm_status
private_ensure(private_server *server, gint64 wait_s, bool foreground, esdm_error *err)
{
    gint64 until_us = private_now_us() + wait_s * G_USEC_PER_SEC;
    private_watch watch = {0};
    for (;;) {
        g_auto(private_lease) lease = {0};
        g_auto(private_endpoint) endpoint = {0};
        esdm_status status = private_lease_newest(server, &lease, err);
        if (status != ESDM_OK)
            return status;
        if (private_lease_is_free(server, &lease, &watch)) {
            status = run_it(server, lease.number, foreground, err);
            if (status != ESDM_EEXIST)
                return status;
        } else if (!foreground && private_endpoint_read(server, &endpoint, NULL) == ESDM_OK &&
                   endpoint.lease == lease.number && answers(&endpoint)) {
            return ESDM_OK;
        }
        if (private_now_us() > until_us)
            return waited_in_vain(server, &lease, &endpoint, err);
        g_usleep(NAP_US);
    }
}

esdm_status
private_stop(const private_server *server, gint64 wait_s, esdm_error *err)
{
    gint64 until_us = private_now_us() + wait_s * G_USEC_PER_SEC;
    g_autofree char *path = private_path(server, "stop");
    private_watch watch = {0};
    for (bool asked = false;;) {
        g_auto(private_lease) lease = {0};
        esdm_status status = private_lease_newest(server, &lease, err);
        if (status != ESDM_OK || private_lease_is_free(server, &lease, &watch)) {
            (void) unlink(path);
            return status;
        }
        if (!asked) {
            g_autofree char *text = g_strdup_printf("%" G_GUINT64_FORMAT "\n", lease.number);
            status = private_write(path, text, 0600, err);
            if (status != ESDM_OK)
                return status;
            asked = true;
        }
        if (private_now_us() > until_us)
            return tool_error_set(err, ESDM_ETIMEDOUT,
                                  "process %d of node %s does not stop the server in '%s'",
                                  (int) lease.pid, lease.host, server->folder);
        g_usleep(NAP_US);
    }
}
