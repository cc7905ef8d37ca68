/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The processes of a server: starting them, and ending all of them. */

#include "esdm-postgres/processes.h"

#include <errno.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

/* Processes of a server that was killed end within seconds. */
#define LOCK_WAIT_S 5

/* ---- the lock ------------------------------------------------------------------------------- */

static bool
cannot_lock(int why)
{
    return why == ENOSYS || why == EOPNOTSUPP || why == ENOLCK || why == EINVAL;
}

esdm_status
processes_lock(const private_server *server, int *ret_fd, esdm_error *err)
{
    g_autofree char *path = private_path(server, "lock");
    gint64 wait_s = MAX(LOCK_WAIT_S, server->lease_s * 2 / 3);
    gint64 until_us = private_now_us() + wait_s * G_USEC_PER_SEC;
    int fd = open(path, O_RDWR | O_CREAT | O_CLOEXEC, 0600);
    if (fd < 0)
        return tool_error_set(err, ESDM_EIO, "cannot open '%s': %s", path, g_strerror(errno));
    while (flock(fd, LOCK_EX | LOCK_NB) != 0) {
        int why = errno;
        if (cannot_lock(why)) { /* the lease alone must do */
            (void) close(fd);
            *ret_fd = -1;
            return ESDM_OK;
        }
        if ((why != EWOULDBLOCK && why != EINTR) || private_now_us() > until_us) {
            (void) close(fd);
            return tool_error_set(err, ESDM_ETIMEDOUT,
                                  "processes of a server whose lease has run out still hold '%s': "
                                  "end them (fuser -v %s), on the node where they are",
                                  path, path);
        }
        g_usleep(50000);
    }
    *ret_fd = fd;
    return ESDM_OK;
}

/* ---- starting ------------------------------------------------------------------------------- */

/* A port that nobody uses at the moment; 0: none. */
static gint64
free_port(void)
{
    struct sockaddr_in any = {.sin_family = AF_INET};
    socklen_t bytes = sizeof any;
    int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (fd < 0)
        return 0;
    bool good = bind(fd, (const struct sockaddr *) &any, sizeof any) == 0 &&
                getsockname(fd, (struct sockaddr *) &any, &bytes) == 0;
    (void) close(fd);
    return good ? ntohs(any.sin_port) : 0;
}

/* In the child. What it inherits but for the lock is closed by exec(). */
static void
become(char *const *argv, pid_t keeper, int lock)
{
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    (void) prctl(PR_SET_PDEATHSIG, SIGQUIT);
    if (lock >= 0)
        (void) fcntl(lock, F_SETFD, 0); /* freed when the last process of the server has ended */
    if (getppid() == keeper)
        (void) execv(argv[0], argv);
    _exit(127);
}

esdm_status
processes_start(const private_server *server, const char *binaries, int lock, const char *addresses,
                gint64 *ret_port, pid_t *ret_pid, esdm_error *err)
{
    gint64 port = server->port > 0 ? server->port : free_port();
    g_autofree char *program = g_build_filename(binaries, "postgres", NULL);
    g_autofree char *data = private_path(server, "data");
    g_autofree char *port_text = g_strdup_printf("%d", (int) port);
    g_autofree char *listen = g_strdup_printf(
        "listen_addresses=%s%s", server->address != NULL ? "" : "127.0.0.1,", addresses);
    char *argv[] = {program,       (char *) "-D", data,
                    (char *) "-p", port_text,     (char *) "-c",
                    listen,        (char *) "-c", (char *) "unix_socket_directories=",
                    NULL};
    pid_t keeper = getpid();
    if (port == 0)
        return tool_error_set(err, ESDM_EIO, "no port is free");
    pid_t pid = fork();
    if (pid == 0)
        become(argv, keeper, lock);
    if (pid < 0)
        return tool_error_set(err, ESDM_ENOMEM, "cannot start '%s': %s", program,
                              g_strerror(errno));
    *ret_port = port;
    *ret_pid = pid;
    return ESDM_OK;
}

/* ---- ending --------------------------------------------------------------------------------- */

static gint64
parent_of(const char *pid)
{
    g_autofree char *path = g_strdup_printf("/proc/%s/stat", pid);
    g_autofree char *text = NULL;
    if (private_read(path, &text, NULL) != ESDM_OK)
        return 0;
    const char *at = strrchr(text, ')');
    return at != NULL && strlen(at) > 4 ? g_ascii_strtoll(at + 4, NULL, 10) : 0;
}

/* Kills the server, and what it has started; orphans among them are this process's children. */
static void
kill_children(pid_t postmaster)
{
    g_autoptr(GDir) dir = g_dir_open("/proc", 0, NULL);
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        gint64 pid = g_ascii_strtoll(name, NULL, 10);
        gint64 parent = pid > 1 ? parent_of(name) : 0;
        if (parent > 1 && (parent == postmaster || parent == getpid()))
            (void) kill((pid_t) pid, SIGKILL);
    }
}

void
processes_kill(pid_t postmaster)
{
    /* Stopped first, it starts no others meanwhile. */
    if (postmaster > 0)
        (void) kill(postmaster, SIGSTOP);
    for (;;) {
        kill_children(postmaster);
        pid_t gone = waitpid(-1, NULL, WNOHANG);
        if (gone < 0 && errno == ECHILD)
            return;
        if (gone == 0)
            g_usleep(10000);
        if (gone == postmaster)
            postmaster = -1;
    }
}

bool
processes_have_ended(pid_t postmaster)
{
    pid_t gone;
    bool ended = false;
    while ((gone = waitpid(-1, NULL, WNOHANG)) > 0)
        ended |= gone == postmaster;
    return ended || (gone < 0 && errno == ECHILD);
}

/* ---- what it said --------------------------------------------------------------------------- */

/* Of the newest log, its last lines. */
static char *
last_log(const private_server *server)
{
    g_autofree char *folder = private_path(server, "log");
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    struct timespec newest = {0};
    int chosen = -1;
    const char *name;
    while (dir != NULL && (name = g_dir_read_name(dir)) != NULL) {
        g_autofree char *path = g_build_filename(folder, name, NULL);
        struct stat info;
        int fd = open(path, O_RDONLY | O_CLOEXEC);
        bool newer =
            fd >= 0 && fstat(fd, &info) == 0 && info.st_size > 0 &&
            (info.st_mtim.tv_sec > newest.tv_sec ||
             (info.st_mtim.tv_sec == newest.tv_sec && info.st_mtim.tv_nsec >= newest.tv_nsec));
        if (newer) {
            newest = info.st_mtim;
            int other = chosen;
            chosen = fd;
            fd = other;
        }
        if (fd >= 0)
            (void) close(fd);
    }
    if (chosen < 0)
        return g_strdup("");
    char *text = tool_tail(chosen, 4096);
    (void) close(chosen);
    return text;
}

char *
processes_last_words(const private_server *server)
{
    g_autofree char *text = last_log(server);
    const char *fatal = g_strrstr(text, "FATAL:");
    return fatal != NULL ? g_strndup(fatal, strcspn(fatal, "\n")) : g_strdup("");
}
