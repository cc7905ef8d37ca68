/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Runs the copies, several at once in processes of their own: libnetcdf does not bear threads, and
 * a session does not survive fork(). Processes take the next job from a counter they share. A
 * single file is read by a process of its own, too, as damage can crash the library that reads it,
 * or keep it busy for ever.
 */

#include "esdm-cp/esdm-cp.h"

#include <errno.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "refer/remote.h"

/* In memory that the processes share. */
typedef struct shared {
    atomic_uint next;
    atomic_uint finished;
    _Atomic uint64_t bytes_done;
    _Atomic uint64_t bytes_total;
    cp_result results[];
} shared;

typedef struct worker {
    const GPtrArray *jobs;
    shared *all;
    cp_result *result;       /* of the current job */
    tool_progress *progress; /* NULL: somebody else draws */
    uint64_t done, total;    /* of the current job, as added to the sums */
} worker;

static void
draw(const shared *all, guint jobs, tool_progress *progress)
{
    if (!progress->shown)
        return;
    uint64_t done = atomic_load(&all->bytes_done), total = atomic_load(&all->bytes_total);
    unsigned finished = atomic_load(&all->finished);
    double seconds = tool_progress_seconds(progress);
    double within = total > 0 ? (double) done / (double) total : 0;
    double share = jobs == 1 ? within : (double) finished / jobs;
    g_autofree char *size = tool_bytes(done);
    g_autofree char *speed = tool_bytes(seconds > 0 ? (uint64_t) ((double) done / seconds) : 0);
    g_autofree char *text =
        jobs == 1 ? g_strdup_printf("%s  %s/s", size, speed)
                  : g_strdup_printf("%u of %u  %s  %s/s", finished, jobs, size, speed);
    tool_progress_show(progress, share, text);
}

static void
count_bytes(uint64_t bytes_done, uint64_t bytes_total, void *user)
{
    worker *w = user;
    atomic_store(&w->result->moved_us, g_get_monotonic_time());
    atomic_fetch_add(&w->all->bytes_done, bytes_done - w->done);
    atomic_fetch_add(&w->all->bytes_total, bytes_total - w->total);
    w->done = bytes_done;
    w->total = bytes_total;
    if (w->progress != NULL)
        draw(w->all, w->jobs->len, w->progress);
}

static void
run_job(worker *w, guint index, esdm_session *session)
{
    const cp_job *job = g_ptr_array_index(w->jobs, index);
    cp_result *result = &w->all->results[index];
    esdm_error err = {0};
    w->done = w->total = 0;
    w->result = result;
    atomic_store(&result->moved_us, g_get_monotonic_time());
    result->process = (int) getpid();
    result->state = 1;
    cp_end_after_interrupt(cp_wants.timeout_s);
    result->status = cp_job_run(job, session, count_bytes, w, result, &err);
    cp_end_after_interrupt(0);
    g_strlcpy(result->message, err.message, sizeof result->message);
    result->state = 2;
    atomic_fetch_add(&w->all->finished, 1);
}

/* Takes jobs until there are none. */
static void
work(worker *w)
{
    esdm_session *session = NULL;
    esdm_error err = {0};
    esdm_session_options options = {.config_path = tool.config, .read_only = true};
    for (guint i = 0; i < w->jobs->len; i++) /* who only reads makes no default site */
        options.read_only &=
            cp_wants.dry_run || !((const cp_job *) g_ptr_array_index(w->jobs, i))->to_container;
    esdm_status status = esdm_session_open(&options, &session, &err);
    remote_use(session);
    if (status == ESDM_OK && !cp_wants.quiet)
        tool_tell_made(session);
    for (;;) {
        guint index = atomic_fetch_add(&w->all->next, 1);
        if (index >= w->jobs->len || cp_is_interrupted())
            break;
        if (status == ESDM_OK) {
            run_job(w, index, session);
            continue;
        }
        cp_result *result = &w->all->results[index];
        result->status = status;
        g_strlcpy(result->message, err.message, sizeof result->message);
        result->state = 2;
        atomic_fetch_add(&w->all->finished, 1);
    }
    if (session != NULL)
        tool_tell_relieved(session);
    esdm_session_close(session);
}

/* ---- processes ---------------------------------------------------------------------------- */

static pid_t
start_process(worker *w)
{
    pid_t parent = getpid();
    pid_t child = fork();
    if (child != 0)
        return child;
    /* When the parent is killed, nobody wants the copies any more. */
    (void) prctl(PR_SET_PDEATHSIG, SIGTERM);
    sigset_t none;
    (void) sigemptyset(&none);
    (void) sigprocmask(SIG_SETMASK, &none, NULL);
    if (getppid() == parent)
        work(w);
    (void) fflush(NULL);
    _exit(0);
}

static void
pass_on(const pid_t *children, guint count)
{
    for (guint i = 0; i < count; i++) {
        if (children[i] > 0)
            (void) kill(children[i], SIGTERM);
    }
}

/* A damaged file can crash the library that reads it. @return whether a job was lost so */
static bool
note_crash(const worker *w, pid_t child, int status)
{
    int signal = WIFSIGNALED(status) ? WTERMSIG(status) : 0;
    bool crashed = signal == SIGSEGV || signal == SIGABRT || signal == SIGBUS || signal == 0;
    g_autofree char *how = signal != 0 ? g_strdup_printf("signal %d: %s", signal, strsignal(signal))
                                       : g_strdup_printf("exit status %d", WEXITSTATUS(status));
    bool found = false;
    for (guint i = 0; i < w->jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(w->jobs, i);
        cp_result *result = &w->all->results[i];
        if (result->state != 1 || result->process != (int) child)
            continue;
        bool made = result->status == ESDM_OK && result->datasets > 0;
        result->status = result->given_up ? ESDM_ETIMEDOUT : ESDM_EIO;
        if (result->given_up)
            (void) g_snprintf(
                result->message, sizeof result->message,
                "%s: nothing of it was read or stored for %g s (--timeout), so it was "
                "given up; is the file damaged? \"ncdump\" may tell",
                job->source, cp_wants.timeout_s);
        else
            (void) g_snprintf(
                result->message, sizeof result->message, "%s: %s (%s)%s", job->source,
                made ? "all of it was stored, but the process that did so died at its end"
                     : "the process that copied it died",
                how, crashed ? "; is the file damaged? \"ncdump -h\" may tell" : "");
        result->state = 2;
        atomic_fetch_add(&w->all->finished, 1);
        found = true;
    }
    return found;
}

/* A process ended. @return one that goes on in its place, where jobs are left; 0: none. */
static pid_t
replace_process(worker *w, pid_t child, int status)
{
    if (status == 0 || cp_is_interrupted() || !note_crash(w, child, status))
        return 0;
    pid_t next = atomic_load(&w->all->next) < w->jobs->len ? start_process(w) : 0;
    return next > 0 ? next : 0;
}

/* Ends processes whose job does not get on: a library that reads a damaged file may never return.
 */
static void
give_up(const worker *w)
{
    gint64 now_us = g_get_monotonic_time();
    if (cp_wants.timeout_s <= 0)
        return;
    for (guint i = 0; i < w->jobs->len; i++) {
        cp_result *result = &w->all->results[i];
        double still_s = (double) (now_us - atomic_load(&result->moved_us)) / 1e6;
        if (result->state != 1 || result->given_up || still_s < cp_wants.timeout_s)
            continue;
        result->given_up = true;
        (void) kill(result->process,
                    SIGKILL); /* its parent is this process, which has not waited */
    }
}

/* Waits for all children, drawing meanwhile. SIGCHLD is blocked and only wakes this up. */
static void
wait_for(pid_t *children, guint count, worker *w, tool_progress *progress)
{
    sigset_t child_ended;
    bool passed_on = false;
    int status = 0;
    (void) sigemptyset(&child_ended);
    (void) sigaddset(&child_ended, SIGCHLD);
    for (guint left = count; left > 0;) {
        for (guint i = 0; i < count; i++) {
            if (children[i] > 0 && waitpid(children[i], &status, WNOHANG) == children[i]) {
                children[i] = replace_process(w, children[i], status);
                left -= children[i] == 0;
            }
        }
        draw(w->all, w->jobs->len, progress);
        give_up(w);
        if (cp_is_interrupted() && !passed_on) {
            pass_on(children, count);
            passed_on = true;
        }
        const struct timespec tenth = {.tv_nsec = 100000000};
        if (left > 0)
            (void) sigtimedwait(&child_ended, NULL, &tenth);
    }
}

static void
run_processes(worker *w, guint count, tool_progress *progress)
{
    g_autofree pid_t *children = g_new0(pid_t, count);
    sigset_t child_ended;
    guint started = 0;
    (void) sigemptyset(&child_ended);
    (void) sigaddset(&child_ended, SIGCHLD);
    (void) sigprocmask(SIG_BLOCK, &child_ended, NULL);
    (void) fflush(NULL);
    while (started < count) {
        pid_t child = start_process(w);
        if (child < 0)
            break;
        children[started++] = child;
    }
    if (started == 0)
        work(w); /* no process to be had: do it here */
    wait_for(children, started, w, progress);
}

/* What a process that died, or an interrupt, left undone. */
static void
settle_results(cp_result *results, const GPtrArray *jobs)
{
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        if (results[i].state == 2)
            continue;
        bool stopped = cp_is_interrupted();
        results[i].status = stopped ? ESDM_ECANCELED : ESDM_EIO;
        (void) g_snprintf(results[i].message, sizeof results[i].message, "%s: %s", job->source,
                          stopped                 ? "interrupted"
                          : results[i].state == 1 ? "the process that copied it died"
                                                  : "not copied: no process was left to do it");
    }
}

/* Whether a library reads what somebody else has made: damage there must not end this process, too,
 * which is to tell whose it was. */
static bool
reads_files(const GPtrArray *jobs)
{
    for (guint i = 0; i < jobs->len; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        if (!job->from_container && !job->pin_only)
            return true;
    }
    return false;
}

void
cp_run(const GPtrArray *jobs, cp_result **ret_results)
{
    size_t bytes = sizeof(shared) + jobs->len * sizeof(cp_result);
    shared *all = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (all == MAP_FAILED) {
        tool_error("no memory for %u copies: %s", jobs->len, g_strerror(errno));
        exit(TOOL_FAILED);
    }
    guint count = cp_wants.jobs > 0 ? (guint) cp_wants.jobs : g_get_num_processors();
    tool_progress progress;
    tool_progress_start(&progress, !cp_wants.quiet && !tool.json);
    cp_catch_interrupts();
    worker w = {.jobs = jobs, .all = all};
    if (MIN(count, jobs->len) > 1 || reads_files(jobs) || cp_wants.timeout_s > 0) {
        run_processes(&w, MIN(count, jobs->len), &progress);
    } else {
        w.progress = &progress;
        work(&w);
    }
    tool_progress_end(&progress);
    settle_results(all->results, jobs);
    *ret_results = all->results;
}
