/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * A server of the site's own ("directory"): where it listens, and who starts it. All that concerns
 * its processes and who may run them is done by the program esdm-postgres; here is what a client
 * needs to know.
 */

#include <dlfcn.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/error.h"
#include "base/json.h"
#include "link.h"

#define PROGRAM    "esdm-postgres"
#define MARK       "esdm-postgres.json"
#define FILE_BYTES 4096
#define SAID_BYTES 400

/* ---- files ---------------------------------------------------------------------------------- */

/* Reads a small file of the folder as a text without the end of its line. */
static esdm_status
read_file(const postgres__config *config, const char *name, char ret_text[FILE_BYTES],
          esdm_error *err)
{
    char path[PATH_MAX];
    ssize_t n = 0;
    (void) snprintf(path, sizeof path, "%s/%s", config->directory, name);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    if (fd >= 0)
        n = read(fd, ret_text, FILE_BYTES - 1);
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    if (fd < 0 || n < 0) {
        esdm_status status =
            esdm__error_set_errno(err, why, "%.150s: cannot read '%.200s'", config->path, path);
        return why == ENOENT ? ESDM_ENOENT : status;
    }
    ret_text[n] = '\0';
    ret_text[strcspn(ret_text, "\n")] = '\0';
    return ESDM_OK;
}

static esdm_status
parse_endpoint(const char *text, postgres__endpoint *ret_endpoint)
{
    json_t *root = esdm__json_read(text);
    const char *addresses = json_string_value(json_object_get(root, "addresses"));
    const char *host = json_string_value(json_object_get(root, "host"));
    json_int_t port = json_integer_value(json_object_get(root, "port"));
    bool good = addresses != NULL && strlen(addresses) < sizeof ret_endpoint->addresses &&
                port > 0 && port < 65536;
    if (good) {
        (void) snprintf(ret_endpoint->addresses, sizeof ret_endpoint->addresses, "%s", addresses);
        (void) snprintf(ret_endpoint->port, sizeof ret_endpoint->port, "%d", (int) port % 65536);
        (void) snprintf(ret_endpoint->node, sizeof ret_endpoint->node, "%.200s",
                        host != NULL ? host : "?");
    }
    json_decref(root);
    return good ? ESDM_OK : ESDM_ENOENT;
}

esdm_status
postgres__endpoint_read(const postgres__config *config, postgres__endpoint *ret_endpoint,
                        esdm_error *err)
{
    char text[FILE_BYTES];
    esdm_status status = read_file(config, "endpoint.json", text, err);
    if (status == ESDM_OK)
        status = parse_endpoint(text, ret_endpoint);
    if (status != ESDM_OK)
        return status;
    status = read_file(config, "password", text, err);
    if (status == ESDM_OK)
        (void) snprintf(ret_endpoint->password, sizeof ret_endpoint->password, "%.127s", text);
    explicit_bzero(text, sizeof text);
    (void) snprintf(ret_endpoint->certificate, sizeof ret_endpoint->certificate, "%s/server.crt",
                    config->directory);
    return status;
}

esdm_status
postgres__server_made(const postgres__config *config, esdm_error *err)
{
    char text[FILE_BYTES];
    esdm_error why = {0};
    esdm_status status = read_file(config, MARK, text, &why);
    if (status == ESDM_ENOENT)
        return esdm__error_set(err, status,
                               "%.150s: there is no PostgreSQL server in '%.200s'; run esdm-mkfs",
                               config->path, config->directory);
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

/* ---- the program that runs it --------------------------------------------------------------- */

/* Beside the tools, where this plug-in was built or installed; else it is looked for in $PATH. */
static void
find_program(char ret_path[PATH_MAX])
{
    static const char *const folders[] = {ESDM_TOOLS_BUILT, ESDM_TOOLS_INSTALLED};
    static const char here = 0;
    Dl_info found;
    (void) snprintf(ret_path, PATH_MAX, PROGRAM);
    if (dladdr(&here, &found) == 0 || found.dli_fname == NULL)
        return;
    const char *slash = strrchr(found.dli_fname, '/');
    for (size_t i = 0; i < sizeof folders / sizeof folders[0] && slash != NULL; i++) {
        char path[PATH_MAX];
        int n = snprintf(path, sizeof path, "%.*s/%s/" PROGRAM, (int) (slash - found.dli_fname),
                         found.dli_fname, folders[i]);
        if (n > 0 && n < (int) sizeof path && access(path, X_OK) == 0) {
            memcpy(ret_path, path, (size_t) n + 1);
            return;
        }
    }
}

/* The environment without what is preloaded into this program. @param ret_all owned, free(). */
static esdm_status
environment(char ***ret_all, esdm_error *err)
{
    size_t count = 0, kept = 0;
    while (environ != NULL && environ[count] != NULL)
        count++;
    char **all = calloc(count + 1, sizeof *all);
    if (all == NULL)
        return esdm__error_nomem(err, (count + 1) * sizeof *all, "an environment");
    for (size_t i = 0; i < count; i++) {
        if (strncmp(environ[i], "LD_PRELOAD=", 11) != 0)
            all[kept++] = environ[i];
    }
    *ret_all = all;
    return ESDM_OK;
}

/* Its output goes to the pipe; signals are as at the start of a program. */
static int
spawn(const char *program, char *const *argv, char *const *variables, int output, pid_t *ret_pid)
{
    posix_spawn_file_actions_t files;
    posix_spawnattr_t attributes;
    sigset_t none, all;
    (void) sigemptyset(&none);
    (void) sigfillset(&all);
    int failed = posix_spawn_file_actions_init(&files);
    if (failed != 0)
        return failed;
    failed = posix_spawnattr_init(&attributes);
    if (failed != 0) {
        (void) posix_spawn_file_actions_destroy(&files);
        return failed;
    }
    failed = posix_spawn_file_actions_addopen(&files, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&files, output, STDOUT_FILENO);
    if (failed == 0)
        failed = posix_spawn_file_actions_adddup2(&files, output, STDERR_FILENO);
    (void) posix_spawnattr_setsigmask(&attributes, &none);
    (void) posix_spawnattr_setsigdefault(&attributes, &all);
    (void) posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    if (failed == 0)
        failed = posix_spawnp(ret_pid, program, &files, &attributes, argv, variables);
    (void) posix_spawnattr_destroy(&attributes);
    (void) posix_spawn_file_actions_destroy(&files);
    return failed;
}

/* What it says, up to its end; what does not fit is dropped. */
static void
listen_to(int fd, char ret_said[SAID_BYTES])
{
    size_t bytes = 0;
    char rest[256];
    for (;;) {
        bool room = bytes < SAID_BYTES - 1;
        ssize_t n =
            read(fd, room ? ret_said + bytes : rest, room ? SAID_BYTES - 1 - bytes : sizeof rest);
        if (n == 0 || (n < 0 && errno != EINTR))
            break;
        bytes += room && n > 0 ? (size_t) n : 0;
    }
    ret_said[bytes] = '\0';
    ret_said[strcspn(ret_said, "\n")] = '\0';
}

/* From the exit status of a tool. */
static esdm_status
status_of(int exit_status)
{
    int code = WIFEXITED(exit_status) ? WEXITSTATUS(exit_status) : -1;
    if (code == 0)
        return ESDM_OK;
    return code == 3 ? ESDM_ENOENT : code == 4 ? ESDM_EACCES : ESDM_EIO;
}

esdm_status
postgres__server_tell(const postgres__config *config, const char *action, bool dry_run,
                      esdm_error *err)
{
    char program[PATH_MAX];
    char said[SAID_BYTES];
    char **variables = NULL;
    char *const argv[] = {(char *) PROGRAM, (char *) action, config->directory,
                          dry_run ? (char *) "--dry-run" : NULL, NULL};
    int ends[2];
    pid_t pid = -1;
    if (getauxval(AT_SECURE) != 0)
        return esdm__error_set(err, ESDM_EACCES,
                               "%.150s: the PostgreSQL server in '%.200s' is not running, and a "
                               "program that runs with the rights of another user starts none",
                               config->path, config->directory);
    esdm_status status = environment(&variables, err);
    if (status != ESDM_OK)
        return status;
    if (pipe2(ends, O_CLOEXEC) != 0) {
        free(variables);
        return esdm__error_set_errno(err, errno, "%.150s: no pipe", config->path);
    }
    find_program(program);
    int failed = spawn(program, argv, variables, ends[1], &pid);
    free(variables);
    (void) close(ends[1]);
    if (failed == 0)
        listen_to(ends[0], said);
    (void) close(ends[0]);
    if (failed != 0)
        return esdm__error_set(err, ESDM_EIO,
                               "%.150s: cannot run %s, which looks after the PostgreSQL server in "
                               "'%.150s': %s; it belongs to the tools of ESDM",
                               config->path, PROGRAM, config->directory, strerror(failed));
    int exit_status = 0;
    pid_t gone;
    while ((gone = waitpid(pid, &exit_status, 0)) < 0 && errno == EINTR)
        continue;
    /* A program may have waited for it, or ignore its children: then what it said tells. */
    status = gone == pid ? status_of(exit_status) : said[0] == '\0' ? ESDM_OK : ESDM_EIO;
    if (status == ESDM_OK)
        return status;
    return esdm__error_set(err, status, "%.150s: %s", config->path,
                           said[0] != '\0' ? said : PROGRAM " was killed");
}
