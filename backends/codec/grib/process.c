/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Programs that run ecCodes for this process: started when they are needed, kept for the
 *  next message, given up when they have ended. */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "grib.h"

/* One that waits for a message. After fork() it is the parent's. */
typedef struct program {
    int fd;
    pid_t owner;
} program;

#define WAITING_MOST 4u

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER; /* a leaf; guards: */
static program waiting[WAITING_MOST];
static unsigned waiting_count;

/* ---- what is said --------------------------------------------------------------------------- */

bool
grib__send(int fd, const void *data, size_t bytes)
{
    for (const char *at = data; bytes > 0;) {
        ssize_t n = send(fd, at, bytes, MSG_NOSIGNAL);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t) n;
    }
    return true;
}

bool
grib__receive(int fd, void *to, size_t bytes)
{
    for (char *at = to; bytes > 0;) {
        ssize_t n = recv(fd, at, bytes, 0);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        at += n;
        bytes -= (size_t) n;
    }
    return true;
}

/* @return false: the program has ended. */
static bool
exchange(int fd, const grib__question *question, const void *message, void *to,
         grib__answer *answer)
{
    if (!grib__send(fd, question, sizeof *question) ||
        !grib__send(fd, message, (size_t) question->message_bytes) ||
        !grib__receive(fd, answer, sizeof *answer))
        return false;
    answer->text[GRIB_TEXT_BYTES - 1] = '\0';
    return answer->status != ESDM_OK ||
           grib__receive(fd, to, (size_t) (question->values * question->element_bytes));
}

/* ---- its start ------------------------------------------------------------------------------ */

/* The plug-in, and the program beside it. */
static esdm_status
find(char ret_plugin[PATH_MAX], char ret_program[PATH_MAX], esdm_error *err)
{
#ifdef GRIB_FOLDER /* of tests that have no plug-in */
    const char *file = GRIB_FOLDER "/esdm-codec-grib.so";
#else
    static const char here = 0;
    Dl_info found;
    const char *file = dladdr(&here, &found) != 0 ? found.dli_fname : NULL;
#endif
    const char *slash = file != NULL ? strrchr(file, '/') : NULL;
    int folder = slash != NULL ? (int) (slash - file) : 0;
    if (slash == NULL || snprintf(ret_plugin, PATH_MAX, "%s", file) >= PATH_MAX ||
        snprintf(ret_program, PATH_MAX, "%.*s/" GRIB_PROGRAM, folder, file) >= PATH_MAX)
        return esdm__error_set(err, ESDM_ENOTSUP, "grib: the folder of the plug-in is not known");
    return ESDM_OK;
}

/* The environment without what is preloaded into this process. */
static char **
environment(void)
{
    size_t count = 0, kept = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **all = calloc(count + 1, sizeof *all);
    for (size_t i = 0; all != NULL && i < count; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            all[kept++] = environ[i];
    }
    return all;
}

/* With its end of the socket for input, and without our output. @return an errno. */
static int
spawn(char *path, char *plugin, int theirs, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    char **variables = environment();
    (void) sigemptyset(&none);
    (void) sigfillset(&all);
    int failed = variables == NULL ? ENOMEM : posix_spawn_file_actions_init(&files);
    if (failed == 0) {
        failed = posix_spawnattr_init(&attributes);
        if (failed == 0) {
            failed = posix_spawn_file_actions_adddup2(&files, theirs, STDIN_FILENO);
            for (int fd = STDOUT_FILENO; fd <= STDERR_FILENO && failed == 0; fd++)
                failed = posix_spawn_file_actions_addopen(&files, fd, "/dev/null", O_WRONLY, 0);
            (void) posix_spawnattr_setsigmask(&attributes, &none);
            (void) posix_spawnattr_setsigdefault(&attributes, &all);
            (void) posix_spawnattr_setflags(&attributes,
                                            POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
            if (failed == 0)
                failed = posix_spawn(ret_pid, path, &files, &attributes,
                                     (char *[]){path, plugin, NULL}, variables);
            (void) posix_spawnattr_destroy(&attributes);
        }
        (void) posix_spawn_file_actions_destroy(&files);
    }
    free(variables);
    return failed;
}

static esdm_status
start(program *ret, esdm_error *err)
{
    char plugin[PATH_MAX], path[PATH_MAX];
    int ends[2];
    uint64_t hello = 0;
    pid_t pid = 0;
    esdm_status status = find(plugin, path, err);
    if (status != ESDM_OK)
        return status;
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0)
        return esdm__error_set_errno(err, errno, "grib: a socket for " GRIB_PROGRAM);
    int failed = spawn(path, plugin, ends[1], &pid);
    (void) close(ends[1]);
    /* It ends at once: what goes on is a child of it, and none of ours that we had to wait for. */
    while (failed == 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    if (failed == 0 && grib__receive(ends[0], &hello, sizeof hello) && hello == GRIB_HELLO) {
        *ret = (program){.fd = esdm__descriptor_keep(ends[0]), .owner = getpid()};
        return ESDM_OK;
    }
    (void) close(ends[0]);
    return esdm__error_set(
        err, ESDM_ENOTSUP, "grib: the program %.300s, which decodes messages, does not start: %s",
        path, failed != 0 ? strerror(failed) : "it says nothing, or is of another version");
}

/* ---- one for each message that is decoded ---------------------------------------------------- */

static bool
take(program *ret)
{
    bool found = false;
    (void) pthread_mutex_lock(&lock);
    while (waiting_count > 0 && !found) {
        *ret = waiting[--waiting_count];
        found = ret->owner == getpid();
        if (!found)
            (void) esdm__descriptor_close(ret->fd);
    }
    (void) pthread_mutex_unlock(&lock);
    return found;
}

static void
give_back(const program *p)
{
    (void) pthread_mutex_lock(&lock);
    bool room = waiting_count < WAITING_MOST;
    if (room)
        waiting[waiting_count++] = *p;
    (void) pthread_mutex_unlock(&lock);
    if (!room)
        (void) esdm__descriptor_close(p->fd);
}

esdm_status
grib__ask(const grib__question *question, const void *message, void *to, esdm_error *err)
{
    grib__answer answer;
    program p;
    bool answered = false;
    if (take(&p)) {
        answered = exchange(p.fd, question, message, to, &answer);
        if (!answered)
            (void) esdm__descriptor_close(p.fd);
    }
    if (!answered) { /* others may have ended one that waited; a new one tells whose fault it is */
        esdm_status status = start(&p, err);
        if (status != ESDM_OK)
            return status;
        answered = exchange(p.fd, question, message, to, &answer);
    }
    if (answered && answer.status == ESDM_OK) {
        give_back(&p);
        return ESDM_OK;
    }
    (void) esdm__descriptor_close(p.fd); /* it ends */
    if (!answered)
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "grib: ecCodes ended over the message, which is damaged");
    return esdm__error_set(err, (esdm_status) answer.status, "%s", answer.text);
}
