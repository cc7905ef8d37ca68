/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "io/session/backups.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

#include "base/error.h"
#include "base/own_process.h"
#include "journal/backup.h"
#include "journal/put_back.h"
#include "site/catalogue.h"

/* A site without a backup gets its first one at once when it has a container that is older: what
 * wrote that may have had no journal. */
#define YOUNG_S 600

/* One for each session that has gone on for long. */
struct esdm__backup_thread {
    esdm_session *session;
    pid_t process;
    pthread_t thread;
    atomic_bool over;
};

static uint64_t
seconds_now(clockid_t clock)
{
    struct timespec now;
    (void) clock_gettime(clock, &now);
    return (uint64_t) now.tv_sec;
}

/* ---- whether it is time --------------------------------------------------------------------- */

static bool
note_old(const char *name, const esdm_meta_container *record, void *user)
{
    uint64_t *now_s = user;
    (void) name;
    if (record->created_ns / 1000000000u + YOUNG_S < *now_s)
        *now_s = 0;
    return *now_s != 0;
}

static bool
is_young(const esdm_session *session, uint64_t now_s)
{
    uint64_t left = now_s;
    return session->meta->container_list(session->store, NULL, note_old, &left, NULL) == ESDM_OK &&
           left != 0;
}

/* 0: there was none. */
static uint64_t
last_backup(const esdm_session *session)
{
    char *text = NULL;
    if (session->meta->fact_get(session->store, ESDM__FACT_BACKUP, &text, NULL) != ESDM_OK)
        return 0;
    uint64_t seconds = strtoull(text, NULL, 10);
    free(text);
    return seconds;
}

/* Others then know that somebody is about it. */
static bool
claim(const esdm_session *session, uint64_t seconds)
{
    char text[32];
    (void) snprintf(text, sizeof text, "%" PRIu64, seconds);
    return session->meta->fact_put(session->store, ESDM__FACT_BACKUP, seconds > 0 ? text : NULL,
                                   NULL) == ESDM_OK;
}

/* ---- making it ------------------------------------------------------------------------------ */

/* Those that all nodes share and that can be reached.
 * @param leaves targets that are left out; NULL: none is. @param ret_targets owned, free(). */
static esdm_status
list_targets(esdm_session *session, const bool *leaves, esdm__journal_target **ret_targets,
             size_t *ret_count, esdm_error *err)
{
    esdm__journal_target *targets = calloc(session->ntargets + 1, sizeof *targets);
    size_t count = 0;
    if (targets == NULL)
        return esdm__error_nomem(err, (session->ntargets + 1) * sizeof *targets, "a backup");
    for (size_t i = 0; i < session->ntargets; i++) {
        esdm__target *target = &session->targets[i];
        if (target->local || (target->plugin->flags & ESDM_DATA_VOLATILE) != 0 ||
            (leaves != NULL && (leaves[i] || target->retiring)) ||
            esdm__target_need(session, target, NULL) != ESDM_OK)
            continue;
        targets[count++] = (esdm__journal_target){
            .plugin = target->plugin, .handle = target->handle, .name = target->name};
    }
    *ret_targets = targets;
    *ret_count = count;
    return ESDM_OK;
}

/* @param leaves targets without one; NULL: all get one. */
static esdm_status
make_on(esdm_session *session, const bool *leaves, esdm_error *err)
{
    const esdm__catalogue catalogue = {.plugin = session->meta, .store = session->store};
    esdm__journal_target *targets = NULL;
    size_t count = 0;
    esdm_status status = list_targets(session, leaves, &targets, &count, err);
    if (status == ESDM_OK)
        status = esdm__backup_make(&catalogue, session->site->id, targets, count, NULL, err);
    free(targets);
    return status;
}

bool
esdm__backup_put_back(esdm_session *session, uint64_t *ret_from_ns)
{
    const esdm__catalogue catalogue = {.plugin = session->meta, .store = session->store};
    esdm__journal_target *targets = NULL;
    size_t count = 0;
    bool found = list_targets(session, NULL, &targets, &count, NULL) == ESDM_OK &&
                 esdm__put_back_look(&catalogue, targets, count, ret_from_ns);
    free(targets);
    return found;
}

static bool
make(esdm_session *session)
{
    uint64_t start_ns = esdm__now_ns();
    bool made = make_on(session, NULL, NULL) == ESDM_OK;
    char *lacks = NULL;
    if (made && session->meta->fact_get(session->store, ESDM__FACT_JOURNAL_LACKS, &lacks, NULL) ==
                    ESDM_OK) {
        /* This backup has it, unless it came while that was made. */
        if (strtoull(lacks, NULL, 10) < start_ns)
            (void) !session->meta->fact_put(session->store, ESDM__FACT_JOURNAL_LACKS, NULL, NULL);
        free(lacks);
        atomic_store(&session->journal_lacks, false);
    }
    return made;
}

static bool
can_hold_backups(const esdm_session *session)
{
    for (size_t i = 0; i < session->ntargets; i++) {
        if (!session->targets[i].local &&
            (session->targets[i].plugin->flags & ESDM_DATA_VOLATILE) == 0)
            return true;
    }
    return false;
}

static void
make_if_due(esdm_session *session, bool now)
{
    uint64_t now_s = seconds_now(CLOCK_REALTIME);
    if (session->site->backup_s == 0 || session->meta->fact_get == NULL ||
        session->meta->fact_put == NULL || !session->meta->is_writable(session->store) ||
        !can_hold_backups(session))
        return;
    uint64_t last_s = last_backup(session);
    if (last_s == 0 && !now && session->site->journal && is_young(session, now_s)) {
        const esdm__catalogue catalogue = {.plugin = session->meta, .store = session->store};
        (void) !esdm__put_back_know(&catalogue, now_s * UINT64_C(1000000000), NULL);
        (void) claim(session,
                     now_s); /* the first one is due later: until then there is a journal */
        return;
    }
    if (!now && last_s <= now_s && now_s - last_s < session->site->backup_s)
        return;
    uint64_t from_ns;
    (void) esdm__backup_put_back(session, &from_ns); /* the claim would hide it */
    if (claim(session, now_s) && !make(session))
        (void) claim(session, last_s);
}

/* ---- when ----------------------------------------------------------------------------------- */

static void *
work(void *argument)
{
    struct esdm__backup_thread *thread = argument;
    make_if_due(thread->session, false);
    atomic_store(&thread->over, true);
    return NULL;
}

static void
join(esdm_session *session)
{
    struct esdm__backup_thread *thread = session->backup;
    session->backup = NULL;
    if (thread != NULL && thread->process == esdm__own_pid())
        (void) pthread_join(thread->thread, NULL);
    free(thread);
}

void
esdm__backup_later(esdm_session *session)
{
    uint64_t every = session->site->backup_s;
    uint64_t now_s = seconds_now(CLOCK_MONOTONIC_COARSE);
    uint64_t due_s = atomic_load(&session->backup_due_s);
    if (every == 0 || (due_s != 0 && now_s < due_s) ||
        !atomic_compare_exchange_strong(&session->backup_due_s, &due_s, now_s + every) ||
        due_s == 0) /* the first commit: a short session looks when it ends */
        return;
    (void) pthread_mutex_lock(&session->writer_lock);
    if (session->backup != NULL && session->backup->process == esdm__own_pid() &&
        atomic_load(&session->backup->over))
        join(session);
    struct esdm__backup_thread *thread = session->backup == NULL ? calloc(1, sizeof *thread) : NULL;
    if (thread != NULL) {
        thread->session = session;
        thread->process = esdm__own_pid();
        session->backup = thread;
        if (pthread_create(&thread->thread, NULL, work, thread) != 0) {
            session->backup = NULL;
            free(thread);
        }
    }
    (void) pthread_mutex_unlock(&session->writer_lock);
}

void
esdm__backup_end(esdm_session *session, bool now)
{
    join(session);
    if (atomic_load(&session->changed))
        make_if_due(session, now);
}

esdm_status
esdm__backup_elsewhere(esdm_session *session, const bool *leaves, esdm_error *err)
{
    if (session->site->backup_s == 0 && !session->site->journal)
        return ESDM_OK;
    return make_on(session, leaves, err);
}
