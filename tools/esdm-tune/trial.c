/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* One run of a kernel or a program with a configuration of its own. */
#include "esdm-tune/esdm-tune.h"

#include <errno.h>
#include <fcntl.h>
#include <glib/gstdio.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define POLL_US    2000
#define TAIL_BYTES 1500
#define SAID_BYTES (1u << 20) /* of a replay, whose report is JSON */
#define PATIENCE_S 20 /* for a program that was asked to end, and removes what it has made */

static volatile sig_atomic_t stopped;

static void
on_signal(int signal_number)
{
    (void) signal_number;
    stopped = 1;
}

bool
tune_stopped(void)
{
    return stopped != 0;
}

void
tune_catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void) sigemptyset(&action.sa_mask);
    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
}

/* ---- the configuration ---------------------------------------------------------------------- */

/* Beside that of the site, as its folders may be relative to it. */
static tool_exit
write_config(tune_workload *w, const json_t *config)
{
    if (w->trial_path == NULL) {
        g_autofree char *folder = g_path_get_dirname(w->config_path);
        w->trial_path = g_strdup_printf("%s/.esdm-tune.%d.json", folder, (int) getpid());
    }
    (void) g_unlink(w->trial_path);
    int fd = open(w->trial_path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    FILE *file = fd >= 0 ? fdopen(fd, "w") : NULL;
    bool good = file != NULL && json_dumpf(config, file, JSON_INDENT(2)) == 0;
    int why = errno;
    if (file != NULL && fclose(file) != 0)
        good = false;
    if (good)
        return TOOL_OK;
    tool_error("%s: %s. Trials have their configuration beside that of the site, as folders may be "
               "relative to it: copy the configuration to a folder of your own, with absolute "
               "paths, and name it with --config",
               w->trial_path, g_strerror(why));
    return TOOL_FAILED;
}

void
tune_workload_clear(tune_workload *w)
{
    if (w->trial_path != NULL)
        (void) g_unlink(w->trial_path);
    g_clear_pointer(&w->trial_path, g_free);
}

/* ---- the process ---------------------------------------------------------------------------- */

static bool
is_esdm_run(const char *argument)
{
    g_autofree char *base = g_path_get_basename(argument);
    return g_str_equal(base, "esdm-run");
}

guint
tune_run_inside(const tune_workload *w)
{
    for (guint i = 1; w->program[0] != NULL && w->program[i] != NULL; i++)
        if (is_esdm_run(w->program[i]))
            return i;
    return 0;
}

static void
add_options(GPtrArray *list, char *const *options)
{
    for (; *options != NULL; options++)
        g_ptr_array_add(list, g_strdup(*options));
}

/* The program's own words; options stand behind the esdm-run that is among them. */
static void
add_program(GPtrArray *list, const tune_workload *w, char *const *options)
{
    guint inside = tune_run_inside(w);
    bool own = inside > 0 || is_esdm_run(w->program[0]);
    for (guint i = 0; w->program[i] != NULL; i++) {
        g_ptr_array_add(list, g_strdup(w->program[i]));
        if (own && i == inside)
            add_options(list, options);
    }
}

GPtrArray *
tune_command(const tune_workload *w, char *const *options)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    if (tune_run_inside(w) == 0 && !is_esdm_run(w->program[0])) {
        g_ptr_array_add(list, g_strdup("esdm-run"));
        add_options(list, options);
    }
    add_program(list, w, options);
    return list;
}

/* Programs understand esdm:// names when esdm-run starts them. */
static GPtrArray *
arguments_of(const tune_workload *w, char *const *options)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    if (w->kernel != NULL) {
        g_ptr_array_add(list, g_strdup("/proc/self/exe"));
        g_ptr_array_add(list, g_strdup("--run-kernel"));
        g_ptr_array_add(list, g_strdup(w->kernel));
        g_ptr_array_add(list, g_strdup_printf("--size=%" G_GUINT64_FORMAT, w->kernel_bytes));
        g_ptr_array_add(list, g_strdup_printf("--phase=%s", w->phase));
    } else if (w->records != NULL) {
        g_ptr_array_add(list, tool_beside("esdm-replay"));
        g_ptr_array_add(list, g_strdup("--json"));
        g_ptr_array_add(list, g_strdup("--"));
        for (char **record = w->records; *record != NULL; record++)
            g_ptr_array_add(list, g_strdup(*record));
    } else {
        if (!is_esdm_run(w->program[0])) {
            g_ptr_array_add(list, tool_beside("esdm-run"));
            if (tune_run_inside(w) == 0)
                add_options(list, options);
        }
        add_program(list, w, options);
    }
    g_ptr_array_add(list, NULL);
    return list;
}

/* Waits; ends it after the limit, or when somebody wants the search to end. */
static int
wait_for(pid_t pid, const tune_workload *w, gint64 started, bool *ret_ended)
{
    int status = 0;
    double asked_s = 0;
    *ret_ended = false;
    while (waitpid(pid, &status, WNOHANG) == 0) {
        double s = (double) (g_get_monotonic_time() - started) / 1e6;
        if (!*ret_ended && (stopped || (w->limit_s > 0 && s > w->limit_s))) {
            *ret_ended = true;
            asked_s = s;
            (void) kill(pid, SIGTERM);
        }
        if (*ret_ended && s > asked_s + PATIENCE_S)
            (void) kill(pid, SIGKILL);
        g_usleep(POLL_US);
    }
    return status;
}

static pid_t
start(const tune_workload *w, char **arguments, int output)
{
    pid_t pid = fork();
    if (pid != 0)
        return pid;
    (void) setenv("ESDM_CONFIG", w->trial_path, 1);
    int null = open("/dev/null", O_RDWR);
    (void) dup2(null, 0);
    (void) dup2(w->kernel != NULL || w->records != NULL ? output : null, 1);
    (void) dup2(output, 2);
    (void) signal(SIGINT, SIG_DFL);
    (void) signal(SIGTERM, SIG_DFL);
    (void) execvp(arguments[0], arguments);
    (void) fprintf(stderr, "%s: %s\n", arguments[0], strerror(errno));
    _exit(127);
}

static double
kernel_seconds(const char *output)
{
    const char *line = strstr(output, "\"seconds\":");
    return line != NULL ? g_ascii_strtod(line + strlen("\"seconds\":"), NULL) : INFINITY;
}

/* That the calls took: making inputs and values is no load. */
static double
replay_seconds(const char *output)
{
    const char *begin = strstr(output, "{\n");
    json_t *report = begin != NULL ? tool_json_read(begin, -1, JSON_DISABLE_EOF_CHECK, NULL) : NULL;
    const json_t *seconds = json_object_get(report, "call_seconds");
    double value = json_is_number(seconds) ? json_number_value(seconds) : INFINITY;
    json_decref(report);
    return value;
}

static const char *
name_of(const tune_workload *w)
{
    return w->kernel != NULL ? w->kernel : w->records != NULL ? "esdm-replay" : w->program[0];
}

tool_exit
tune_run(tune_workload *w, const tune_way *way, bool may_fail, double *ret_s)
{
    bool ended = false;
    *ret_s = INFINITY;
    tool_exit result = write_config(w, way->config);
    if (result != TOOL_OK)
        return result;
    int output = memfd_create("esdm-tune", MFD_CLOEXEC);
    if (output < 0) {
        tool_error("cannot keep what programs say: %s", g_strerror(errno));
        return TOOL_FAILED;
    }
    g_autoptr(GPtrArray) arguments = arguments_of(w, way->options);
    gint64 started = g_get_monotonic_time();
    pid_t pid = start(w, (char **) arguments->pdata, output);
    int status = pid > 0 ? wait_for(pid, w, started, &ended) : -1;
    double seconds = (double) (g_get_monotonic_time() - started) / 1e6;
    /* The standard output of kernels, and what programs say on the standard error. */
    g_autofree char *said = tool_tail(output, w->records != NULL ? SAID_BYTES : TAIL_BYTES);
    (void) close(output);
    if (pid > 0 && !ended && WIFEXITED(status) && WEXITSTATUS(status) == 0) {
        *ret_s = w->kernel != NULL    ? kernel_seconds(said)
                 : w->records != NULL ? replay_seconds(said)
                                      : seconds;
        return TOOL_OK;
    }
    if (stopped)
        return TOOL_OK;
    if (may_fail)
        return TOOL_OK;
    if (pid > 0 && WIFEXITED(status))
        tool_error("%s ended with status %d%s%s", name_of(w), WEXITSTATUS(status),
                   *said != '\0' ? ":\n" : "", said);
    else
        tool_error("%s %s", name_of(w), ended ? "took too long" : "was ended by a signal");
    return TOOL_FAILED;
}
