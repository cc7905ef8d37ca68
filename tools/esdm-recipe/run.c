/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Programs under esdm-run, within limits. */
#include "esdm-recipe/esdm-recipe.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#define TAIL_BYTES 2000
#define POLL_US    5000
#define BEFORE_US  25000
#define MOST_OPEN  16

tool_exit
recipe_folder(recipe_run *run)
{
    GError *error = NULL;
    *run = (recipe_run){.status = -1};
    run->folder = g_dir_make_tmp("esdm-recipe-XXXXXX", &error);
    if (run->folder != NULL)
        return TOOL_OK;
    tool_error("%s", error->message);
    g_error_free(error);
    return TOOL_FAILED;
}

static int
remove_one(const char *path, const struct stat *st, int kind, struct FTW *at)
{
    (void) st;
    (void) kind;
    (void) at;
    (void) remove(path);
    return 0;
}

/* What the program has left running could lead us out of the folder meanwhile, so that is done
 * where nothing else can be written to; the folder itself is left. */
static void
remove_contents(char *folder)
{
    pid_t pid = fork();
    if (pid == 0) {
        g_autoptr(GPtrArray) folders = g_ptr_array_new();
        g_ptr_array_add(folders, folder);
        if (recipe_sandbox_enter(folders))
            (void) nftw(folder, remove_one, MOST_OPEN, FTW_DEPTH | FTW_PHYS);
        _exit(0);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        continue;
}

void
recipe_run_clear(recipe_run *run)
{
    if (run->folder != NULL) {
        remove_contents(run->folder);
        (void) rmdir(run->folder);
    }
    g_clear_pointer(&run->folder, g_free);
    g_clear_pointer(&run->log, g_free);
}

/* NULL: it cannot run so, which is told. */
static GPtrArray *
arguments_of(const recipe_run *run, char **program, bool records, const recipe_box *box)
{
    GPtrArray *list = NULL;
    char *esdm_run = NULL;
    if (box != NULL && recipe_box_arguments(box, &list, &esdm_run) != TOOL_OK)
        return NULL;
    if (list == NULL)
        list = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(list, esdm_run != NULL ? esdm_run : tool_beside("esdm-run"));
    g_ptr_array_add(list, g_strdup("--quiet"));
    if (records) {
        g_ptr_array_add(list, g_strdup("--records"));
        g_ptr_array_add(list, g_strdup(run->folder));
    }
    for (char **word = program; *word != NULL; word++)
        g_ptr_array_add(list, g_strdup(*word));
    g_ptr_array_add(list, NULL);
    return list;
}

static void
limit(int resource, double value)
{
    const struct rlimit most = {.rlim_cur = (rlim_t) value, .rlim_max = (rlim_t) value};
    (void) setrlimit(resource, &most);
}

/* In the child. Never returns. */
static void
become(char **arguments, char **environment, const char *directory, int log, recipe_limits limits)
{
    int null = open("/dev/null", O_RDWR);
    (void) setpgid(0, 0); /* so that all of it can be ended */
    (void) dup2(null, 0);
    if (log >= 0) {
        (void) dup2(log, 1);
        (void) dup2(log, 2);
    }
    if (limits.box == NULL && directory != NULL && chdir(directory) != 0) {
        (void) fprintf(stderr, "%s: %s\n", directory, strerror(errno));
        _exit(127);
    }
    if (limits.box == NULL && limits.folders != NULL && !recipe_sandbox_enter(limits.folders)) {
        (void) fprintf(stderr, "the kernel refuses to bound what the program writes to: %s\n",
                       strerror(errno));
        _exit(127);
    }
    limit(RLIMIT_CORE, 0);
    if (limits.seconds > 0)
        limit(RLIMIT_CPU, limits.seconds * (double) g_get_num_processors() + 1);
    (void) execve(arguments[0], arguments, environment);
    (void) fprintf(stderr, "%s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

static int
wait_for(pid_t pid, gint64 started, recipe_limits limits)
{
    int status = -1;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        double s = (double) (g_get_monotonic_time() - started) / 1e6;
        if (limits.seconds > 0 && s > limits.seconds)
            (void) kill(-pid, SIGKILL);
        g_usleep(POLL_US);
    }
    return status;
}

tool_exit
recipe_execute(recipe_run *run, char **program, char **environment, const char *directory,
               bool records, bool shows, recipe_limits limits)
{
    g_autoptr(GPtrArray) arguments = arguments_of(run, program, records, limits.box);
    if (arguments == NULL)
        return TOOL_FAILED;
    g_autofree char *path = g_build_filename(run->folder, "log", NULL);
    int log = shows ? -1 : open(path, O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0600);
    g_usleep(BEFORE_US); /* clocks of file systems are coarse */
    gint64 started = g_get_monotonic_time();
    run->started_us = g_get_real_time();
    if (strchr(arguments->pdata[0], '/') == NULL) {
        char *found = g_find_program_in_path(arguments->pdata[0]);
        if (found != NULL) {
            g_free(arguments->pdata[0]);
            arguments->pdata[0] = found;
        }
    }
    pid_t pid = fork();
    if (pid == 0)
        become((char **) arguments->pdata, environment, directory, log, limits);
    int status = pid > 0 ? wait_for(pid, started, limits) : -1;
    run->seconds = (double) (g_get_monotonic_time() - started) / 1e6;
    run->status = pid > 0 && WIFEXITED(status) ? WEXITSTATUS(status) : -1;
    run->log = log >= 0 ? tool_tail(log, TAIL_BYTES) : g_strdup("");
    if (log >= 0)
        (void) close(log);
    if (pid > 0)
        return TOOL_OK;
    tool_error("cannot start %s: %s", (char *) arguments->pdata[0], g_strerror(errno));
    return TOOL_FAILED;
}
