/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Which process this is, and names of files by it. */
#include <errno.h>
#include <jansson.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "esdm/text.h"
#include "monitor/parts.h"

static int
rank_of_job(void)
{
    static const char *const variables[] = {"OMPI_COMM_WORLD_RANK", "PMIX_RANK", "PMI_RANK",
                                            "SLURM_PROCID", NULL};
    for (const char *const *name = variables; *name != NULL; name++) {
        const char *text = secure_getenv(*name);
        char *end = NULL;
        long value = text != NULL ? strtol(text, &end, 10) : -1;
        if (text != NULL && end != text && *end == '\0' && value >= 0 && value < INT32_MAX)
            return (int) value;
    }
    return -1;
}

static pthread_once_t first_ask = PTHREAD_ONCE_INIT;
static char own_run[64];

/* Numbers of processes come again, times do not. Kept, so that forked children have it, too. */
static void
name_own_run(void)
{
    struct timespec wall;
    (void) clock_gettime(CLOCK_REALTIME, &wall);
    (void) snprintf(own_run, sizeof own_run, "%d.%lld", (int) getpid(), (long long) wall.tv_sec);
}

/* What the processes of one run have in common: their batch job, what esdm-run or the user has
 * named it, else who started the ranks. Programs beside each other in a script are runs of their
 * own. */
static void
ask_job(esdm__who *who)
{
    static const char *const variables[] = {"SLURM_JOB_ID",   "PBS_JOBID", "LSB_JOBID",
                                            "PMIX_NAMESPACE", "ESDM_RUN",  NULL};
    const char *job = NULL;
    for (const char *const *name = variables; *name != NULL && job == NULL; name++)
        job = secure_getenv(*name);
    if (job != NULL && job[0] != '\0' && esdm_text_printable(job, who->job, sizeof who->job) != 0)
        return;
    (void) pthread_once(&first_ask, name_own_run);
    if (who->rank >= 0)
        (void) snprintf(who->job, sizeof who->job, "%s.%d", who->host, (int) getppid());
    else
        (void) snprintf(who->job, sizeof who->job, "%s.%s", who->host, own_run);
}

void
esdm__who_ask(esdm__who *ret_who)
{
    char name[200];
    struct timespec wall;
    *ret_who = (esdm__who){.pid = getpid(), .rank = rank_of_job()};
    if (gethostname(ret_who->host, sizeof ret_who->host - 1) != 0 || ret_who->host[0] == '\0' ||
        strchr(ret_who->host, '/') != NULL)
        (void) snprintf(ret_who->host, sizeof ret_who->host, "node");
    ask_job(ret_who);
    (void) esdm_text_printable(program_invocation_short_name, name, sizeof name);
    json_t *text = json_string(name);
    size_t bytes = text != NULL ? json_dumpb(text, ret_who->program, sizeof ret_who->program - 1,
                                             JSON_ENCODE_ANY)
                                : 0;
    if (bytes == 0 || bytes >= sizeof ret_who->program)
        (void) snprintf(ret_who->program, sizeof ret_who->program, "\"\"");
    json_decref(text);
    (void) clock_gettime(CLOCK_REALTIME, &wall);
    ret_who->realtime_ns = (uint64_t) wall.tv_sec * 1000000000u + (uint64_t) wall.tv_nsec;
    ret_who->monotonic_ns = esdm__monitor_now_ns();
}

char *
esdm__monitor_file(const char *pattern, const esdm__who *who)
{
    char *text = NULL;
    size_t bytes = 0;
    FILE *out = open_memstream(&text, &bytes);
    if (out == NULL)
        return NULL;
    char folder[PATH_MAX]; /* the program may go elsewhere */
    bool url = strstr(pattern, "://") != NULL;
    if (!url && pattern[0] != '/' && getcwd(folder, sizeof folder) != NULL)
        (void) fprintf(out, "%s/", folder);
    for (const char *at = pattern; *at != '\0'; at++) {
        char code = at[0] == '%' && !url ? at[1] : '\0';
        if (code == 'h')
            (void) fputs(who->host, out);
        else if (code == 'p')
            (void) fprintf(out, "%d", (int) who->pid);
        else if (code == 'r')
            (void) fprintf(out, "%d", who->rank >= 0 ? who->rank : 0);
        else
            (void) fputc(*at, out);
        at += code == 'h' || code == 'p' || code == 'r' || code == '%';
    }
    bool failed = ferror(out) != 0;
    if (fclose(out) != 0 || failed) {
        free(text);
        return NULL;
    }
    return text;
}
