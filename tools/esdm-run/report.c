/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * --report: the program runs as a child with libesdm-watch.so preloaded; what that leaves is
 * explained when the program has ended. Ranks that are started one esdm-run each write to one
 * folder, and the esdm-run of rank 0 explains all of them.
 */
#include "esdm-run/esdm-run.h"
#include "watch/ranks.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#define PREFIX       "esdm-run-"
#define BEGUN        ".begun"
#define DONE         ".done"
#define MARK_SUFFIX  ".hints" /* as in watch/hints.c */
#define RANKS_MS     60000    /* that rank 0 waits for the others to end … */
#define LATE_MS      5000     /* … for those that no esdm-run has begun yet, on this node … */
#define FAR_MS       20000    /* … and on others, whose files may be seen late */
#define STEP_MS      50
#define SHARED       "job-"
#define JOIN_MS      100 /* that a rank begins before the first one */
#define JOIN_STEP_MS 5
#define LOOK_MS      700   /* of programs that end before nobody asks */
#define LIGHT_MS     2000  /* that nobody who asked for no report waits longer than */
#define LOOKER_MS    30000 /* that it may take to write a trace */
#define OLD_S        60

/* ---- ranks ---------------------------------------------------------------------------------- */

static const char *
first_set(const char *const *names)
{
    for (; *names != NULL; names++) {
        const char *text = getenv(*names);
        if (text != NULL && text[0] != '\0')
            return text;
    }
    return NULL;
}

bool
report_is_light(const report_options *o)
{
    return o->unusual && !o->report && o->records == NULL && !o->read_ahead && !o->mpi_hints &&
           o->stated[0] == '\0';
}

/* Beside every program, no esdm-run waits for others: that of the first rank makes a folder, and
 * looks.
 */
static void
find_job(report_run *r, bool light)
{
    static const char *const here[] = {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", NULL};
    static const char *const job[] = {"PMIX_NAMESPACE", "SLURM_STEP_ID", "PMI_JOBID", NULL};
    int ranks = ranks_all() > 1 ? ranks_all() : 1;
    int on_node = ranks_number(here, "SLURM_STEP_TASKS_PER_NODE");
    r->rank = ranks > 1 && ranks_own() > 0 ? ranks_own() : 0;
    r->on_node = on_node > 0 ? on_node : ranks;
    r->ranks = light ? 1 : ranks;
    r->local = light || r->on_node >= ranks;
    const char *name = first_set(job);
    const char *slurm = getenv("SLURM_JOB_ID");
    char clean[64] = "";
    for (size_t i = 0; name != NULL && name[i] != '\0' && i < sizeof clean - 1; i++)
        clean[i] = name[i] == '/' || name[i] == '.' ? '_' : name[i];
    if (name != NULL)
        (void) snprintf(r->job, sizeof r->job, "%s-%s", slurm != NULL ? slurm : "", clean);
    else
        (void) snprintf(r->job, sizeof r->job, "p%d", (int) getppid());
    r->shared = light && ranks > 1;
}

/* ---- the folder ----------------------------------------------------------------------------- */

static void
remove_folder(const char *path)
{
    DIR *dir = opendir(path);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        if (strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0)
            (void) unlinkat(dirfd(dir), entry->d_name, 0);
    }
    if (dir != NULL)
        (void) closedir(dir);
    (void) rmdir(path);
}

/* What an esdm-run left that was killed: memory of the node, otherwise for ever. */
static void
remove_old(const char *base)
{
    DIR *dir = opendir(base);
    const struct dirent *entry;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        char path[PATH_MAX];
        struct stat st;
        char *end = NULL;
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        long pid = strtol(entry->d_name + sizeof PREFIX - 1, &end, 10);
        if (pid <= 0 || *end != '-' || kill((pid_t) pid, 0) == 0 || errno != ESRCH)
            continue;
        (void) snprintf(path, sizeof path, "%s/%s", base, entry->d_name);
        if (lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
            st.st_mtime + OLD_S < time(NULL)) /* before that finish() may be at work */
            remove_folder(path);
    }
    if (dir != NULL)
        (void) closedir(dir);
}

static bool
is_ours(const char *path)
{
    struct stat st;
    return lstat(path, &st) == 0 && S_ISDIR(st.st_mode) && st.st_uid == geteuid() &&
           (st.st_mode & 077) == 0;
}

static const char *
folder_base(const report_run *r, char *here, size_t bytes)
{
    if (!r->local) /* a folder that all nodes see */
        return getcwd(here, bytes) != NULL ? here : "/tmp";
    if (access("/dev/shm", W_OK | X_OK) == 0)
        return "/dev/shm";
    const char *temporary = getenv("TMPDIR");
    return temporary != NULL && temporary[0] == '/' ? temporary : "/tmp";
}

/* Named by its esdm-run, so that remove_old() knows whose it is, and by the job. */
static bool
make_shared(report_run *r, const char *base)
{
    (void) snprintf(r->folder, sizeof r->folder, "%s/" PREFIX "%d-" SHARED "%s", base,
                    (int) getpid(), r->job);
    return mkdir(r->folder, 0700) == 0;
}

static bool
make_folder(report_run *r)
{
    char here[REPORT_FOLDER - 256];
    const char *base = folder_base(r, here, sizeof here);
    remove_old(base);
    if (r->ranks > 1) {
        (void) snprintf(r->folder, sizeof r->folder, "%s/" PREFIX "job-%u-%s", base,
                        (unsigned) geteuid(), r->job);
        return (mkdir(r->folder, 0700) == 0 || errno == EEXIST) && is_ours(r->folder);
    }
    if (r->shared && make_shared(r, base))
        return true;
    (void) snprintf(r->folder, sizeof r->folder, "%s/" PREFIX "%d-XXXXXX", base, (int) getpid());
    return mkdtemp(r->folder) != NULL;
}

/* That of the first rank, which is running. */
static bool
find_shared(report_run *r)
{
    char here[REPORT_FOLDER - 256];
    const char *base = folder_base(r, here, sizeof here);
    DIR *dir = opendir(base);
    const struct dirent *entry;
    bool found = false;
    while (dir != NULL && !found && (entry = readdir(dir)) != NULL) {
        char *end = NULL;
        if (strncmp(entry->d_name, PREFIX, sizeof PREFIX - 1) != 0)
            continue;
        long pid = strtol(entry->d_name + sizeof PREFIX - 1, &end, 10);
        if (pid <= 0 || strncmp(end, "-" SHARED, sizeof SHARED) != 0 ||
            strcmp(end + sizeof SHARED, r->job) != 0)
            continue;
        (void) snprintf(r->folder, sizeof r->folder, "%s/%s", base, entry->d_name);
        found = kill((pid_t) pid, 0) == 0 && is_ours(r->folder);
    }
    if (dir != NULL)
        (void) closedir(dir);
    return found;
}

static bool
use_folder(report_run *r, const char *stated)
{
    if (mkdir(stated, 0777) != 0 && errno != EEXIST)
        return false;
    char *real = realpath(stated, NULL);
    bool good = real != NULL && strlen(real) < 200 && access(real, W_OK | X_OK) == 0;
    if (good)
        (void) snprintf(r->folder, sizeof r->folder, "%s", real);
    free(real);
    r->keep = true;
    return good;
}

/* Rank 0 learns from an empty file that this rank has begun, or is done. */
static void
note_rank(const report_run *r, const char *suffix)
{
    char path[PATH_MAX];
    (void) snprintf(path, sizeof path, "%s/%s.%d%s", r->folder, r->job, r->rank, suffix);
    int fd = open(path, O_WRONLY | O_CREAT | O_CLOEXEC, 0600);
    if (fd >= 0)
        (void) close(fd);
}

/* ---- the program ---------------------------------------------------------------------------- */

/* The run's name in databases, of what no batch system names; all ranks have one. */
static bool
name_run(const report_run *r)
{
    char host[128] = "";
    char name[280];
    (void) gethostname(host, sizeof host - 1);
    if (r->ranks > 1)
        (void) snprintf(name, sizeof name, "%s.%s", host, r->job);
    else
        (void) snprintf(name, sizeof name, "%s.%d.%lld", host, (int) getpid(),
                        (long long) time(NULL));
    return setenv("ESDM_RUN", name, 0) == 0;
}

/* Where the user has ESDM's own counters put, when that is a database: "stats:DATABASE" of
 * $ESDM_MONITOR, as DATABASE#RUN. URLs may have passwords: not among arguments. */
static void
set_statistics(void)
{
    static const char *const runs[] = {"SLURM_JOB_ID",   "PBS_JOBID", "LSB_JOBID",
                                       "PMIX_NAMESPACE", "ESDM_RUN",  NULL};
    char source[PATH_MAX];
    const char *monitor = getenv("ESDM_MONITOR");
    const char *at = monitor;
    while (at != NULL && strncmp(at, "stats:", 6) != 0) {
        at = strchr(at, ',');
        at = at != NULL ? at + 1 : NULL;
    }
    const char *run = first_set(runs);
    if (at == NULL || run == NULL)
        return;
    at += 6;
    size_t length = strcspn(at, ",");
    int n = snprintf(source, sizeof source, "%.*s#%s", (int) length, at, run);
    if (n > 0 && (size_t) n < sizeof source)
        (void) setenv("ESDM_EXPLAIN_STATISTICS", source, 1);
}

static void
mark_of(const report_run *r, int rank, char *ret, size_t room)
{
    if (rank < 0)
        (void) snprintf(ret, room, "%s/%s.", r->folder, r->job);
    else
        (void) snprintf(ret, room, "%s/%s.%d" MARK_SUFFIX, r->folder, r->job, rank);
}

/* What libesdm-watch.so needs to give hints, which all ranks have to do together: each has a mark
 * in this node's folder, or on several nodes there is one program in the job, which Open MPI says.
 */
static bool
set_hints(const report_run *r, const report_options *o)
{
    char marks[PATH_MAX] = "";
    char number[16];
    const char *programs = getenv("OMPI_NUM_APP_CTX");
    bool one = programs != NULL && strcmp(programs, "1") == 0;
    if (o->hints == NULL && o->stated[0] == '\0')
        return true;
    if (r->ranks < 2 || (!one && !r->local)) {
        if (r->rank == 0 && !o->quiet)
            (void) fprintf(stderr, "esdm-run: %s: no hints are given: %s\n",
                           o->hints != NULL ? "--mpi-hints" : "--mpi-hint",
                           r->ranks < 2 ? "this is one process; start each rank so: mpirun -n 4 "
                                          "esdm-run --mpi-hints PROGRAM"
                                        : "with this MPI the ranks have to be on one node");
        return true;
    }
    if (r->local) {
        mark_of(r, r->rank, marks, sizeof marks);
        int fd = open(marks, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW, 0600);
        if (fd < 0)
            return false;
        (void) close(fd);
        mark_of(r, -1, marks, sizeof marks);
    }
    (void) snprintf(number, sizeof number, "%d", r->ranks);
    return (o->hints == NULL || setenv("ESDM_WATCH_HINTS", o->hints, 1) == 0) &&
           (o->stated[0] == '\0' || setenv("ESDM_WATCH_STATED", o->stated, 1) == 0) &&
           setenv("ESDM_WATCH_MARKS", marks, 1) == 0 && setenv("ESDM_WATCH_RANKS", number, 1) == 0;
}

static bool
set_environment(const report_run *r, const report_options *o)
{
    char stats[PATH_MAX];
    int n = snprintf(stats, sizeof stats, "stats:%s/%%h.%%p.stats.json", r->folder);
    if (r->keep) /* for esdm-replay */
        (void) snprintf(stats + n, sizeof stats - (size_t) n, ",trace:%s/%%h.%%p.trace.jsonl",
                        r->folder);
    bool light = report_is_light(o);
    bool plain = !light && strpbrk(r->folder, ",%") == NULL && getenv("ESDM_MONITOR") == NULL;
    if (light ? setenv("ESDM_WATCH_RING", "1", 1) != 0 : unsetenv("ESDM_WATCH_RING") != 0)
        return false;
    return setenv("ESDM_WATCH", r->folder, 1) == 0 &&
           (!r->keep || setenv("ESDM_WATCH_BOXES", "1", 1) == 0) &&
           (!plain || setenv("ESDM_MONITOR", stats, 1) == 0) &&
           (o->history == NULL || setenv("ESDM_WATCH_HISTORY", o->history, 1) == 0) &&
           (!o->read_ahead || setenv("ESDM_WATCH_AHEAD", "1", 1) == 0) && set_hints(r, o);
}

/* This process becomes the program, which is watched where the first rank, which may begin a moment
 * later, is on this node: there it is one of so many, in the usual order. */
static bool
join_first(report_run *r, const report_options *o, const char **ret_why)
{
    bool found = find_shared(r);
    for (int waited = 0; !found && r->rank < r->on_node && waited < JOIN_MS;
         waited += JOIN_STEP_MS) {
        const struct timespec step = {.tv_nsec = JOIN_STEP_MS * 1000000};
        (void) nanosleep(&step, NULL);
        found = find_shared(r);
    }
    *ret_why = found ? "out of memory" : "the job's first rank is not, or is on another node";
    r->in_program = found;
    return found && set_environment(r, o);
}

bool
report_begin(report_run *r, const report_options *o, const char **ret_why)
{
    bool light = report_is_light(o);
    find_job(r, light);
    if (light && r->rank > 0)
        return join_first(r, o, ret_why);
    errno = 0;
    if (o->records != NULL ? !use_folder(r, o->records) : !make_folder(r)) {
        *ret_why = errno != 0 ? strerror(errno) : "it cannot be written";
        return false;
    }
    if (!light && !name_run(r)) {
        *ret_why = "out of memory";
        return false;
    }
    if (r->ranks > 1)
        note_rank(r, BEGUN);
    pid_t pid = (pid_t) signals_fork_program(o->arguments);
    if (pid < 0) {
        *ret_why = strerror(errno);
        if (light)
            remove_folder(r->folder);
        return false;
    }
    r->in_program = pid == 0;
    r->program = (int) pid;
    *ret_why = "out of memory";
    return !r->in_program || set_environment(r, o) || light;
}

/* Programs that end before are not looked at. */
static void
look_when_it_lasts(report_run *r, const report_options *o)
{
    int fd = r->rank == 0 ? (int) syscall(SYS_pidfd_open, (pid_t) r->program, 0) : -1;
    if (fd < 0)
        return;
    if (!look_wait(fd, LOOK_MS) && (report_is_light(o) || look_is_wanted()))
        look_begin(r, o);
    (void) close(fd);
}

/* A looker that ends before the program is no zombie beside it. */
static int
wait_for_program(report_run *r, const report_options *o)
{
    int status = 0;
    pid_t ended;
    look_when_it_lasts(r, o);
    while ((ended = waitpid(-1, &status, 0)) != (pid_t) r->program) {
        if (ended < 0 && errno != EINTR)
            break;
        if (ended > 0 && ended == (pid_t) r->looker)
            look_ended(r);
    }
    signals_program_ended();
    return status;
}

/* ---- the end -------------------------------------------------------------------------------- */

/* Of this job: an earlier one may have left records in the same folder. */
static int
count_ranks(const report_run *r, const char *suffix)
{
    DIR *dir = opendir(r->folder);
    const struct dirent *entry;
    size_t job = strlen(r->job);
    int count = 0;
    while (dir != NULL && (entry = readdir(dir)) != NULL) {
        const char *end = strstr(entry->d_name, suffix);
        count += strncmp(entry->d_name, r->job, job) == 0 && entry->d_name[job] == '.' &&
                 end != NULL && end[strlen(suffix)] == '\0';
    }
    if (dir != NULL)
        (void) closedir(dir);
    return count;
}

/* Waits for the others. Programs of a job may run without esdm-run: their ranks never begin. */
static void
wait_for_ranks(const report_run *r)
{
    int begun = 0, done = 0;
    for (int waited = 0; waited < RANKS_MS; waited += STEP_MS) {
        begun = count_ranks(r, BEGUN);
        done = count_ranks(r, DONE);
        if (done >= (waited < (r->local ? LATE_MS : FAR_MS) ? r->ranks : begun))
            break;
        (void) nanosleep(&(struct timespec){.tv_nsec = STEP_MS * 1000000}, NULL);
    }
    if (begun < r->ranks)
        (void) fprintf(stderr,
                       "esdm-run: the report has nothing of %d of %d ranks: no esdm-run "
                       "started them\n",
                       r->ranks - begun, r->ranks);
    if (done < begun)
        (void) fprintf(stderr, "esdm-run: the report lacks what %d of %d ranks did last\n",
                       begun - done, r->ranks);
}

/* Beside this program, else by $PATH. What it prints goes to standard error: standard output is
 * the program's. */
static void
explain(const report_run *r, const report_options *o)
{
    char program[PATH_MAX] = "";
    ssize_t n = readlink("/proc/self/exe", program, sizeof program - 32);
    char *slash = n > 0 ? strrchr(program, '/') : NULL;
    const char *argv[16] = {"esdm-explain"};
    int argc = 1;
    if (o->json)
        argv[argc++] = "--json";
    if (o->page != NULL) {
        argv[argc++] = "--page";
        argv[argc++] = o->page;
    }
    if (o->history != NULL) {
        argv[argc++] = "--history";
        argv[argc++] = o->history;
    }
    if (o->hints != NULL && r->ranks > 1) {
        argv[argc++] = "--mpi-hints";
        argv[argc++] = o->hints;
    }
    argv[argc++] = "--note-run";
    if (!o->report)
        argv[argc++] = "--quiet";
    argv[argc] = r->folder;
    (void) fflush(NULL);
    pid_t pid = fork();
    if (pid == 0) {
        (void) dup2(STDERR_FILENO, STDOUT_FILENO);
        (void) unsetenv("LD_PRELOAD"); /* as for who looks (look.c) */
        set_statistics();
        if (slash != NULL) {
            (void) snprintf(slash + 1, 20, "esdm-explain");
            (void) execv(program, (char *const *) (uintptr_t) argv);
        }
        (void) execvp("esdm-explain", (char *const *) (uintptr_t) argv);
        (void) fprintf(stderr, "esdm-run: esdm-explain: %s\n", strerror(errno));
        _exit(1);
    }
    while (pid > 0 && waitpid(pid, NULL, 0) < 0 && errno == EINTR)
        ;
}

/* What goes on keeps nobody waiting who reads what the program says, or for a lock. */
static void
let_go(int fd)
{
    int none = open("/dev/null", O_RDWR | O_CLOEXEC);
    if (none >= 0)
        (void) dup2(none, fd);
    if (none >= 0)
        (void) close(none);
}

_Noreturn static void
finish_in_child(report_run *r, const report_options *o)
{
    report_ignore_signals();
    let_go(STDIN_FILENO);
    let_go(STDOUT_FILENO);
    if (r->looker != 0) {
        (void) close(r->ends_one);
        r->ends_one = -1;
        if (r->looker_fd > STDERR_FILENO + 1)
            r->looker_fd = dup2(r->looker_fd, STDERR_FILENO + 1);
    }
    report_close_from(STDERR_FILENO + (r->looker != 0 ? 2 : 1));
    if (r->looker != 0 && !look_wait(r->looker_fd, LIGHT_MS))
        let_go(STDERR_FILENO);
    look_end(r, LOOKER_MS);
    explain(r, o);
    remove_folder(r->folder);
    _exit(0);
}

/* Where nobody asked for a report: in a process of its own, which may go on. */
static void
finish(report_run *r, const report_options *o)
{
    (void) fflush(NULL);
    pid_t pid = fork();
    if (pid == 0)
        finish_in_child(r, o);
    if (r->looker != 0)
        (void) close(r->ends_one);
    int fd = pid > 0 ? (int) syscall(SYS_pidfd_open, pid, 0) : -1;
    if (fd >= 0)
        (void) look_wait(fd, LIGHT_MS);
    if (pid < 0)
        remove_folder(r->folder);
}

static void
explain_all(report_run *r, const report_options *o)
{
    look_end(r, LOOKER_MS);
    if (r->ranks > 1)
        note_rank(r, DONE);
    if (r->ranks > 1 && r->rank == 0)
        wait_for_ranks(r);
    if (r->rank == 0 && (o->report || o->unusual || o->history != NULL || o->hints != NULL))
        explain(r, o);
    if ((o->hints != NULL || o->stated[0] != '\0') && r->keep) {
        char mark[PATH_MAX];
        mark_of(r, r->rank, mark, sizeof mark);
        (void) unlink(mark);
    }
    if ((r->rank == 0 || r->ranks == 1) && !r->keep)
        remove_folder(r->folder);
}

int
report_end(report_run *r, const report_options *o)
{
    int status = wait_for_program(r, o);
    if (WIFSIGNALED(status) && (o->report || (o->records != NULL && !o->quiet)))
        (void) fprintf(stderr, "esdm-run: the program was ended by signal %d (%s)%s\n",
                       WTERMSIG(status), strsignal(WTERMSIG(status)),
                       o->report ? "; until then it did this:" : "");
    else if (WEXITSTATUS(status) != 0 && o->report && r->rank == 0)
        (void) fprintf(stderr, "esdm-run: the program ended with exit status %d; it did this:\n",
                       WEXITSTATUS(status));
    if (report_is_light(o))
        finish(r, o);
    else
        explain_all(r, o);
    if (WIFSIGNALED(status)) {
        sigset_t one;
        (void) prctl(PR_SET_DUMPABLE, 0); /* the program's core file stays */
        (void) signal(WTERMSIG(status), SIG_DFL);
        (void) sigemptyset(&one);
        (void) sigaddset(&one, WTERMSIG(status));
        (void) sigprocmask(SIG_UNBLOCK, &one, NULL);
        (void) raise(WTERMSIG(status));
        return 128 + WTERMSIG(status);
    }
    return WEXITSTATUS(status);
}
