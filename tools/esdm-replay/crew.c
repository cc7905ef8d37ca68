/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* The processes of the replay: started together, waited for, and what they measured. */
#include "esdm-replay/esdm-replay.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#define PROCESSES_MOST 4096u
#define WAIT_US        1000

static volatile sig_atomic_t signalled;

static void
on_signal(int number)
{
    (void) number;
    signalled = 1;
}

bool
replay_stopped(void)
{
    return signalled != 0;
}

static void
catch_signals(void)
{
    struct sigaction action = {.sa_handler = on_signal};
    (void) sigemptyset(&action.sa_mask);
    (void) sigaction(SIGINT, &action, NULL);
    (void) sigaction(SIGTERM, &action, NULL);
    (void) sigaction(SIGHUP, &action, NULL);
}

static void *
shared_memory(gsize bytes)
{
    void *memory =
        mmap(NULL, MAX(bytes, 1), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

/* ---- processes ------------------------------------------------------------------------------- */

typedef struct crew {
    replay_shared *shared;
    replay_progress *progress;
    guint64 **ns; /* of each process */
    replay_meeting **meetings;
    pid_t *pids;
    guint count;
    guint left; /* that run */
    tool_exit result;
} crew;

static bool
crew_new(crew *c, const replay_load *load)
{
    *c = (crew){.count = load->processes->len};
    c->shared = shared_memory(sizeof *c->shared);
    c->progress = shared_memory(c->count * sizeof *c->progress);
    c->pids = g_new0(pid_t, c->count);
    c->ns = g_new0(guint64 *, c->count);
    bool good = c->shared != NULL && c->progress != NULL;
    for (guint i = 0; i < c->count && good; i++) {
        const replay_process *p = load->processes->pdata[i];
        c->ns[i] = shared_memory(p->operations->len * sizeof(guint64));
        good = c->ns[i] != NULL;
    }
    c->meetings = g_new0(replay_meeting *, load->meetings->len + 1);
    for (guint i = 0; i < load->meetings->len && good; i++) {
        guint ranks = g_array_index(load->meetings, guint, i);
        c->meetings[i] = shared_memory(replay_meeting_bytes(ranks));
        good = c->meetings[i] != NULL;
        if (good)
            replay_meeting_init(c->meetings[i], ranks, c->shared);
    }
    if (good)
        c->shared->working = (int) c->count;
    return good;
}

static void
note_end(crew *c, pid_t pid, int status)
{
    for (guint i = 0; i < c->count; i++) {
        if (c->pids[i] != pid)
            continue;
        c->pids[i] = 0;
        c->left--;
        if (WIFEXITED(status) && WEXITSTATUS(status) == 0)
            continue;
        c->result = TOOL_FAILED;
        __atomic_store_n(&c->shared->stop, 1, __ATOMIC_SEQ_CST);
        if (WIFSIGNALED(status))
            tool_error("process %u of the replay was ended by signal %d (%s)", i, WTERMSIG(status),
                       strsignal(WTERMSIG(status)));
    }
}

/* Waits until `most` processes are left; or, with `ready`, until all are ready. */
static void
wait_for(crew *c, guint most, bool ready)
{
    while (c->left > most || ready) {
        int status = 0;
        pid_t pid = waitpid(-1, &status, WNOHANG);
        if (pid > 0)
            note_end(c, pid, status);
        if (signalled)
            __atomic_store_n(&c->shared->stop, 1, __ATOMIC_SEQ_CST);
        if (ready && ((guint) __atomic_load_n(&c->shared->ready, __ATOMIC_SEQ_CST) == c->count ||
                      c->left == 0 || __atomic_load_n(&c->shared->stop, __ATOMIC_SEQ_CST) != 0))
            return;
        if (pid <= 0)
            g_usleep(WAIT_US);
    }
}

static void
start(crew *c, replay_player *player, guint number)
{
    pid_t pid = fork();
    if (pid == 0) {
        player->number = number;
        player->process = player->load->processes->pdata[number];
        player->ns = c->ns[number];
        _exit(replay_play(player));
    }
    if (pid < 0) {
        tool_error("a process of the replay cannot be started: %s", g_strerror(errno));
        c->result = TOOL_FAILED;
        __atomic_store_n(&c->shared->stop, 1, __ATOMIC_SEQ_CST);
        return;
    }
    c->pids[number] = pid;
    c->left++;
}

static tool_exit
play(crew *c, const replay_load *load, const replay_options *options, const replay_values *values)
{
    replay_player player = {.load = load,
                            .options = options,
                            .values = values,
                            .shared = c->shared,
                            .all = c->progress,
                            .meetings = c->meetings};
    for (guint i = 0; i < c->count && c->result == TOOL_OK; i++)
        start(c, &player, i);
    wait_for(c, c->count, true);
    __atomic_store_n(&c->shared->go, 1, __ATOMIC_SEQ_CST);
    wait_for(c, 0, false);
    if (c->shared->failed != 0)
        tool_error("the replay failed: %s", c->shared->why);
    else if (signalled)
        tool_error("the replay was interrupted");
    return signalled || c->shared->failed != 0 ? TOOL_FAILED : c->result;
}

/* ---- what was measured ----------------------------------------------------------------------- */

static void
add_up(const crew *c, const replay_load *load, replay_result *ret)
{
    guint64 first = G_MAXUINT64;
    guint64 last = 0;
    guint64 recorded_first = G_MAXUINT64;
    guint64 recorded_last = 0;
    for (guint k = 0; k < c->count; k++) {
        const replay_process *p = load->processes->pdata[k];
        double recorded = 0;
        for (guint i = 0; i < p->operations->len; i++) {
            const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
            replay_sum *sum = &ret->sums[o->kind];
            sum->calls++;
            sum->bytes += o->bytes;
            sum->seconds += (double) c->ns[k][i] / 1e9;
            sum->recorded += (double) o->ns / 1e9;
            recorded += (double) o->ns / 1e9;
        }
        first = MIN(first, c->progress[k].start_ns);
        last = MAX(last, c->progress[k].end_ns);
        recorded_first = MIN(recorded_first, p->start_ns);
        recorded_last = MAX(recorded_last, p->end_ns);
        ret->recorded_calls = MAX(ret->recorded_calls, recorded);
    }
    ret->seconds = (double) (last - first) / 1e9;
    ret->recorded = (double) (recorded_last - recorded_first) / 1e9;
}

static tool_exit
prepare(const replay_load *load, const replay_options *options, replay_values **ret_values,
        double *ret_s)
{
    esdm_session *session = NULL;
    gint64 started = g_get_monotonic_time();
    tool_exit result = tool_session(false, &session);
    if (result == TOOL_OK)
        result = replay_values_new(load, session, options->data, ret_values);
    if (result == TOOL_OK)
        result = replay_prepare(load, options, *ret_values, session);
    esdm_session_close(session);
    *ret_s = (double) (g_get_monotonic_time() - started) / 1e6;
    return result;
}

tool_exit
replay_run(const replay_load *load, const replay_options *options, replay_result *ret)
{
    crew c;
    replay_values *values = NULL;
    *ret = (replay_result){0};
    if (load->processes->len > PROCESSES_MOST)
        return tool_usage("the records are of %u processes; a replay has up to %u",
                          load->processes->len, PROCESSES_MOST);
    catch_signals();
    if (!crew_new(&c, load)) {
        tool_error("no memory for the processes of the replay");
        return TOOL_FAILED;
    }
    /* The session ends before processes are started: a fork has no threads. */
    tool_exit result = prepare(load, options, &values, &ret->prepare_s);
    if (result == TOOL_OK && signalled)
        result = TOOL_FAILED;
    if (result == TOOL_OK)
        result = play(&c, load, options, values);
    if (result == TOOL_OK)
        add_up(&c, load, ret);
    tool_exit removed = options->keep ? TOOL_OK : replay_remove(load, options);
    return result == TOOL_OK ? removed : result;
}
