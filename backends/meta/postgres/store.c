/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Opening and closing stores; running statements over lost connections. */

#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/error.h"
#include "base/ids.h"
#include "postgres.h"

/* Servers know jsonpath from then on. */
#define FIRST_WITH_PATHS 120000
/* And rows by a range of ctid. */
#define FIRST_WITH_PLACES 140000
#define MILLISECOND_NS    UINT64_C(1000000)
#define SECOND_NS         UINT64_C(1000000000)

/* Nobody is there when a store is opened: a wrong name rather than a restart. */
#define OPEN_PATIENCE_NS (2 * SECOND_NS)
/* Attempts at a transaction that others got in the way of. */
#define CONFLICT_ATTEMPTS 50
/* A connection that was made to ask for the id of a site is kept that long for open(). */
#define PARKED_NS (10 * SECOND_NS)
/* And how long it need not look once more at what it has just been told. */
#define ANSWER_KEPT_NS (SECOND_NS / 10)
/* After so long the server has written its log: three times the largest "wal_writer_delay". */
#define FLUSHED_NS (30 * SECOND_NS)
/* The server keeps tokens for an hour. */
#define TOKENS_KEPT_NS (3000 * SECOND_NS)

/* ---- patience ------------------------------------------------------------------------------- */

bool
postgres__try_again(postgres__patience *patience, uint64_t limit_ns, postgres__failure failure)
{
    uint64_t now_ns = esdm__now_ns();
    if (patience->until_ns == 0)
        patience->until_ns = now_ns + limit_ns;
    patience->attempts++;
    if (failure == POSTGRES__REFUSED || now_ns >= patience->until_ns ||
        (failure == POSTGRES__RETRY && patience->attempts > CONFLICT_ATTEMPTS))
        return false;
    /* 5 ms, 10 ms, ... 1.28 s, and up to as much again by chance: many wait for the same server. */
    unsigned step = patience->attempts < 9 ? patience->attempts - 1 : 8;
    uint64_t nap_ns = (5 * MILLISECOND_NS) << (failure == POSTGRES__RETRY ? 0 : step);
    nap_ns += (now_ns ^ (uint64_t) getpid() * UINT64_C(0x9E3779B97F4A7C15)) % nap_ns;
    if (nap_ns > patience->until_ns - now_ns)
        nap_ns = patience->until_ns - now_ns;
    struct timespec nap = {.tv_sec = (time_t) (nap_ns / SECOND_NS),
                           .tv_nsec = (long) (nap_ns % SECOND_NS)};
    (void) nanosleep(&nap, NULL);
    return true;
}

/* ---- connecting ----------------------------------------------------------------------------- */

static esdm_status
check_row(const postgres__store *store, const char *key, const char *value, const char *note,
          esdm_error *err)
{
    const char *label = store->config->label;
    if (strcmp(key, "format") == 0 && atoll(value) > POSTGRES__FORMAT)
        return esdm__error_set(err, ESDM_ENOTSUP,
                               "metadata store '%.200s' has format %.20s, newer than the %d that "
                               "this version of ESDM knows; use a newer ESDM",
                               label, value, POSTGRES__FORMAT);
    if (strcmp(key, "target") == 0 && strcmp(value, store->config->name) != 0)
        return esdm__error_set(
            err, ESDM_EINVAL,
            "%.150s: metadata store '%.150s' was made as \"%.60s\", not \"%.60s\"",
            store->config->path, label, value, store->config->name);
    esdm_meta_state state = (esdm_meta_state) atoi(value);
    if (strcmp(key, "state") == 0 && !store->any_state && !store->config->migrating &&
        (state == ESDM_META_ARRIVING || state == ESDM_META_LEFT))
        return esdm__error_set(err, ESDM_ENOTSUP, "metadata store '%.150s' %s", label, note);
    return ESDM_OK;
}

/* What the store says about itself, and whether this user may write. */
static esdm_status
read_answer(postgres__store *store, const PGresult *result, esdm_error *err)
{
    char id[ESDM_META_UUID_BYTES] = "";
    bool has_format = false;
    bool leaving = false;
    esdm_status status = ESDM_OK;
    for (int row = 0; row < PQntuples(result) && status == ESDM_OK; row++) {
        const char *key = postgres__text(result, row, 0);
        const char *value = postgres__text(result, row, 1);
        status = check_row(store, key, value, postgres__text(result, row, 3), err);
        leaving |= strcmp(key, "state") == 0 && strcmp(value, "0") != 0;
        if (strcmp(key, "format") == 0) {
            has_format = true;
            store->format = strtoull(value, NULL, 10);
        }
        if (strcmp(key, "site") == 0 && strlen(value) == sizeof id - 1)
            memcpy(id, value, sizeof id);
        store->writable = !store->read_only && postgres__bool(result, row, 2);
        store->link.replicated = postgres__bool(result, row, 4);
        store->owned = postgres__bool(result, row, 5);
        store->has_extents = postgres__bool(result, row, store->writable ? 6 : 7);
        store->has_reach = postgres__bool(result, row, 8);
        store->has_facets = postgres__bool(result, row, 9);
        store->has_marks = store->has_reach && postgres__bool(result, row, 10);
        store->has_paths = PQserverVersion(store->link.conn) >= FIRST_WITH_PATHS;
        store->has_places = PQserverVersion(store->link.conn) >= FIRST_WITH_PLACES;
    }
    if (status != ESDM_OK)
        return status;
    store->writable = store->writable && (!leaving || store->config->migrating);
    if (!has_format || id[0] == '\0')
        return esdm__error_set(err, ESDM_ECORRUPT,
                               "metadata store '%.200s' does not tell its format and site",
                               store->config->label);
    if (store->site_id[0] != '\0' && strcmp(store->site_id, id) != 0)
        return esdm__error_set(err, ESDM_EIO,
                               "metadata store '%.200s' was replaced by that of another site",
                               store->config->label);
    memcpy(store->site_id, id, sizeof id);
    return ESDM_OK;
}

/* Asks for it. The answer to who wants the site's id is kept for the open() that comes next. */
static esdm_status
look(postgres__store *store, postgres__failure *ret_failure, esdm_error *err)
{
    static const char question[] =
        "SELECT s.key, s.value, has_table_privilege('{S}.container', 'INSERT') "
        "AND has_table_privilege('{S}.snapshot', 'INSERT') "
        "AND has_sequence_privilege('{S}.container_number', 'USAGE') "
        "AND current_setting('transaction_read_only') = 'off', "
        "(SELECT n.value FROM {S}.store n WHERE n.key = 'note'), "
        "current_setting('synchronous_standby_names') <> '', "
        "(SELECT pg_has_role(c.relowner, 'USAGE') AND has_schema_privilege(c.relnamespace, "
        "'CREATE') FROM pg_class c WHERE c.oid = '{S}.container'::regclass), "
        "coalesce(has_table_privilege(to_regclass('{S}.extent'), 'INSERT'), false), "
        "coalesce(has_table_privilege(to_regclass('{S}.extent'), 'SELECT'), false), "
        "coalesce(has_table_privilege(to_regclass('{S}.reach'), 'SELECT'), false), "
        "coalesce(has_table_privilege(to_regclass('{S}.facet_delta'), 'SELECT'), false), "
        "coalesce((SELECT m.value FROM {S}.store m WHERE m.key = 'marks') = "
        "hashtextextended('esdm', 0)::text, false) "
        "FROM {S}.store s";
    PGresult *result = NULL;
    PQclear(store->answer);
    store->answer = NULL;
    esdm_status status =
        postgres__link_query(&store->link, question, NULL, &result, ret_failure, err);
    if (status != ESDM_OK)
        return status;
    *ret_failure = POSTGRES__REFUSED;
    status = read_answer(store, result, err);
    if (status == ESDM_OK && store->any_state) {
        store->answer = result;
        store->answered_ns = esdm__now_ns();
    } else {
        PQclear(result);
    }
    return status;
}

/* The answer that was kept, if it is of just now: of a connection that is there. */
static bool
is_answered(const postgres__store *store)
{
    return store->answer != NULL && esdm__now_ns() - store->answered_ns < ANSWER_KEPT_NS;
}

/* Within the first change, which itself needs nothing new: a failure is not told. */
static void
upgrade(postgres__store *store)
{
    postgres__failure ignored;
    if (store->format >= POSTGRES__FORMAT || !store->owned || store->link.conn == NULL)
        return;
    esdm_status status = postgres__upgrade(&store->link, NULL);
    store->owned = false; /* not once more over this connection */
    if ((status == ESDM_OK || status == ESDM_EEXIST) && store->link.conn != NULL)
        (void) !look(store, &ignored, NULL);
}

esdm_status
postgres__check_format(const postgres__store *store, esdm_error *err)
{
    if (store->format >= POSTGRES__FORMAT_SHARED)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ENOTSUP,
                           "metadata store '%.200s' has format %llu, which has no clones and tags; "
                           "the first change that the owner of its tables makes upgrades it",
                           store->config->label, (unsigned long long) store->format);
}

/* A server that crashed may have forgotten the last commits that did not wait for its disk. It
 * forgets them in their order, from the end: so the last one tells whether all are there. Numbers
 * that this handle knows would then be given again, to something else: it must not be used any
 * more. */
static esdm_status
check_flushed(postgres__store *store, postgres__failure *ret_failure, esdm_error *err)
{
    postgres__params params = {0};
    PGresult *result = NULL;
    if (store->unflushed[0] == '\0' || esdm__now_ns() - store->unflushed_ns > TOKENS_KEPT_NS)
        return ESDM_OK;
    postgres__put_string(&params, store->unflushed);
    esdm_status status =
        postgres__link_run(&store->link, POSTGRES__HAPPENED, &params, &result, ret_failure, err);
    postgres__params_clear(&params);
    bool there = status == ESDM_OK && PQntuples(result) == 1 && postgres__bool(result, 0, 0);
    PQclear(result);
    if (status != ESDM_OK || there)
        return status;
    *ret_failure = POSTGRES__REFUSED;
    return esdm__error_set(err, ESDM_EIO,
                           "metadata store '%.200s': the server crashed, and has lost the last "
                           "commits of this program, as durability \"process\" allows (\"system\" "
                           "does not); start the program again and write what is missing",
                           store->config->label);
}

esdm_status
postgres__connect(postgres__store *store, postgres__failure *ret_failure, esdm_error *err)
{
    if (store->link.conn != NULL)
        return ESDM_OK;
    esdm_status status = postgres__link_open(&store->link, store->config, ret_failure, err);
    if (status == ESDM_OK)
        status = look(store, ret_failure, err);
    if (status == ESDM_OK)
        status = check_flushed(store, ret_failure, err);
    if (status == ESDM_OK)
        status = postgres__pins_renew(store, ret_failure, err);
    if (status != ESDM_OK)
        postgres__link_close(&store->link);
    return status;
}

/* ---- running -------------------------------------------------------------------------------- */

static esdm_status
attempt(postgres__store *store, postgres__statement id, const char *sql, postgres__params *params,
        PGresult **ret_result, postgres__failure *ret_failure, esdm_error *err)
{
    esdm_status status = postgres__connect(store, ret_failure, err);
    if (status != ESDM_OK)
        return status;
    if (sql != NULL)
        status = postgres__link_query(&store->link, sql, params, ret_result, ret_failure, err);
    else
        status = postgres__link_run(&store->link, id, params, ret_result, ret_failure, err);
    if (status != ESDM_OK && *ret_failure == POSTGRES__LOST)
        postgres__params_repeat(params);
    return status;
}

/* Whether this thread holds the store (postgres__hold()). */
static bool
held_here(postgres__store *store)
{
    return atomic_load(&store->holder) == (uintptr_t) pthread_self();
}

/* Within the transaction that is held: there is one attempt. */
static esdm_status
run_held(postgres__store *store, postgres__statement id, const char *sql, postgres__params *params,
         PGresult **ret_result, esdm_error *err)
{
    postgres__failure failure = POSTGRES__LOST;
    esdm_status status = ESDM_EIO;
    if (store->link.conn == NULL || store->lost)
        (void) esdm__error_set(err, status, "metadata store '%.200s': the connection was lost",
                               store->config->label);
    else
        status = attempt(store, id, sql, params, ret_result, &failure, err);
    store->lost |= status != ESDM_OK && failure != POSTGRES__REFUSED;
    return status;
}

static esdm_status
run(postgres__store *store, postgres__statement id, const char *sql, postgres__params *params,
    PGresult **ret_result, esdm_error *err)
{
    postgres__patience patience = {0};
    if (held_here(store))
        return run_held(store, id, sql, params, ret_result, err);
    for (;;) {
        esdm_error why = {0};
        postgres__failure failure = POSTGRES__LOST;
        esdm_status status = attempt(store, id, sql, params, ret_result, &failure, &why);
        if (status == ESDM_OK)
            return ESDM_OK;
        if (!postgres__try_again(&patience, store->config->patience_ns, failure)) {
            if (err != NULL)
                *err = why;
            return status;
        }
    }
}

esdm_status
postgres__run(postgres__store *store, postgres__statement id, postgres__params *params,
              PGresult **ret_result, esdm_error *err)
{
    return run(store, id, NULL, params, ret_result, err);
}

esdm_status
postgres__query(postgres__store *store, const char *sql, postgres__params *params,
                PGresult **ret_result, esdm_error *err)
{
    return run(store, POSTGRES__STATEMENTS, sql, params, ret_result, err);
}

/* ---- entering ------------------------------------------------------------------------------- */

/* Looks once more over the connection that is there, or connects. */
static esdm_status
attach_once(postgres__store *store, postgres__failure *ret_failure, esdm_error *err)
{
    if (store->link.conn != NULL) {
        bool known = is_answered(store);
        if (known)
            *ret_failure = POSTGRES__REFUSED;
        esdm_status status =
            known ? read_answer(store, store->answer, err) : look(store, ret_failure, err);
        if (status == ESDM_OK || *ret_failure == POSTGRES__REFUSED)
            return status;
        postgres__link_close(&store->link);
    }
    return postgres__connect(store, ret_failure, err);
}

/* The first connection of a store, or of its user. */
static esdm_status
attach_patiently(postgres__store *store, esdm_error *err)
{
    postgres__patience patience = {0};
    for (;;) {
        esdm_error why = {0};
        postgres__failure failure = POSTGRES__LOST;
        esdm_status status = attach_once(store, &failure, &why);
        if (status == ESDM_OK)
            return ESDM_OK;
        /* Who answers that he is busy or starting will be there soon. */
        uint64_t limit_ns = store->config->patience_ns;
        if (failure == POSTGRES__LOST && why.os_errno != 0 && limit_ns > OPEN_PATIENCE_NS)
            limit_ns = OPEN_PATIENCE_NS;
        if (!postgres__try_again(&patience, limit_ns, failure)) {
            if (err != NULL)
                *err = why;
            return status;
        }
    }
}

esdm_status
postgres__enter_known(postgres__store *store, esdm_error *err)
{
    if (store->pid != getpid())
        return esdm__error_set(err, ESDM_EINVAL,
                               "metadata store '%.200s' was opened before fork(); open it again in "
                               "the child",
                               store->config->label);
    if (!held_here(store))
        (void) pthread_mutex_lock(&store->mutex);
    return ESDM_OK;
}

esdm_status
postgres__enter(postgres__store *store, esdm_error *err)
{
    esdm_status status = postgres__enter_known(store, err);
    if (status != ESDM_OK || !store->unseen)
        return status;
    status = attach_patiently(store, err);
    store->unseen = status != ESDM_OK;
    if (status != ESDM_OK)
        postgres__leave(store);
    return status;
}

static esdm_status
enter_to_write(postgres__store *store, bool durable, bool upgrades, esdm_error *err)
{
    esdm_status status = postgres__enter(store, err);
    postgres__link *link = &store->link;
    /* A server of the site's own is a process among others, and may be killed like them. */
    bool relaxed = !durable && !link->replicated && store->config->directory == NULL;
    if (status == ESDM_OK && store->writable && upgrades)
        upgrade(store);
    if (status == ESDM_OK && store->writable && link->conn != NULL && link->relaxed != relaxed) {
        link->relaxed = relaxed;
        postgres__link_send(link, relaxed ? POSTGRES__RELAX : POSTGRES__STRICT,
                            &(postgres__params){0});
    }
    if (status != ESDM_OK || store->writable)
        return status;
    postgres__leave(store);
    return esdm__error_set(err, ESDM_EACCES, "metadata store '%.200s' is open for reading only",
                           store->config->label);
}

esdm_status
postgres__enter_commit(postgres__store *store, bool durable, esdm_error *err)
{
    return enter_to_write(store, durable, true, err);
}

esdm_status
postgres__enter_write(postgres__store *store, esdm_error *err)
{
    return enter_to_write(store, true, true, err);
}

esdm_status
postgres__enter_note(postgres__store *store, esdm_error *err)
{
    return enter_to_write(store, true, false, err);
}

/* What waits for the disk waits for all that came before. */
void
postgres__note_commit(postgres__store *store, const char token[ESDM_META_UUID_BYTES])
{
    store->unflushed[0] = '\0';
    store->unflushed_ns = esdm__now_ns();
    if (store->link.relaxed)
        memcpy(store->unflushed, token, sizeof store->unflushed);
}

void
postgres__leave(postgres__store *store)
{
    if (!held_here(store))
        (void) pthread_mutex_unlock(&store->mutex);
}

esdm_status
postgres__hold(void *self, esdm_error *err)
{
    postgres__store *store = self;
    PGresult *result = NULL;
    esdm_status status = postgres__enter(store, err);
    if (status != ESDM_OK)
        return status;
    store->lost = false;
    status = postgres__query(store, "BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY", NULL,
                             &result, err);
    PQclear(result);
    if (status == ESDM_OK)
        atomic_store(&store->holder, (uintptr_t) pthread_self());
    else
        postgres__leave(store);
    return status;
}

bool
postgres__release(void *self)
{
    postgres__store *store = self;
    postgres__failure ignored;
    bool lost = store->lost || store->link.conn == NULL;
    if (store->link.conn != NULL)
        (void) !postgres__link_run(&store->link, POSTGRES__ROLLBACK, NULL, NULL, &ignored, NULL);
    atomic_store(&store->holder, 0);
    postgres__leave(store);
    return !lost;
}

esdm_status
postgres__ask(postgres__store *store, postgres__statement id, postgres__params *params,
              PGresult **ret_result, esdm_error *err)
{
    esdm_status status = postgres__enter(store, err);
    if (status == ESDM_OK) {
        status = postgres__run(store, id, params, ret_result, err);
        postgres__leave(store);
    }
    postgres__params_clear(params);
    return status;
}

/* ---- opening -------------------------------------------------------------------------------- */

static esdm_status
new_store(const esdm_plugin_config *config, postgres__store **ret_store, esdm_error *err)
{
    postgres__config *parsed = NULL;
    esdm_status status = postgres__config_new(config, &parsed, err);
    if (status != ESDM_OK)
        return status;
    postgres__store *store = calloc(1, sizeof *store);
    char *json = strdup(config->json);
    if (store == NULL || json == NULL || pthread_mutex_init(&store->mutex, NULL) != 0) {
        free(store);
        free(json);
        postgres__config_free(parsed);
        return esdm__error_nomem(err, sizeof *store, "a metadata store");
    }
    store->config = parsed;
    store->json = json;
    store->pid = getpid();
    store->opened_ns = esdm__now_ns();
    store->link.config = parsed;
    postgres__enter_list(store);
    *ret_store = store;
    return ESDM_OK;
}

/* What a program that has ended was told as committed is on the disk: once a session, not a commit.
 * Later than that the server has done it by itself. */
static void
flush_commits(postgres__store *store)
{
    postgres__failure failure;
    postgres__params params = {0};
    if (store->unflushed[0] == '\0' || store->link.conn == NULL ||
        esdm__now_ns() - store->unflushed_ns > FLUSHED_NS)
        return;
    postgres__link_send(&store->link, POSTGRES__STRICT, &params);
    postgres__put_string(&params, store->unflushed);
    (void) !postgres__link_run(&store->link, POSTGRES__FLUSH, &params, NULL, &failure, NULL);
    postgres__params_clear(&params);
}

void
postgres__close(void *self)
{
    postgres__store *store = self;
    if (store == NULL || store->pid != getpid()) /* a child leaves its parent's as it is */
        return;
    flush_commits(store);
    PQclear(store->answer);
    postgres__leave_list(store);
    postgres__link_close(&store->link);
    postgres__pins_clear(&store->pins);
    while (store->doubts != NULL) {
        postgres__doubt *doubt = store->doubts;
        store->doubts = doubt->next;
        free(doubt->name);
        free(doubt);
    }
    (void) pthread_mutex_destroy(&store->mutex);
    postgres__config_free(store->config);
    explicit_bzero(store->json, strlen(store->json));
    free(store->json);
    free(store);
}

/* One store that was opened to ask for the site's id, for the open() that comes next. */
static _Atomic(postgres__store *) parked;

/* NULL when there is none that fits. */
static postgres__store *
take_parked(const esdm_plugin_config *config)
{
    postgres__store *store = atomic_exchange(&parked, NULL);
    if (store == NULL)
        return NULL;
    if (store->pid == getpid() && config->json != NULL && config->name != NULL &&
        !config->migrating && strcmp(store->json, config->json) == 0 &&
        strcmp(store->config->name, config->name) == 0 &&
        esdm__now_ns() - store->opened_ns < PARKED_NS)
        return store;
    postgres__close(store);
    return NULL;
}

esdm_status
postgres__attach(const esdm_plugin_config *config, bool read_only, bool any_state,
                 postgres__store **ret_store, esdm_error *err)
{
    postgres__store *store = take_parked(config);
    esdm_status status = store == NULL ? new_store(config, &store, err) : ESDM_OK;
    if (status != ESDM_OK)
        return status;
    store->read_only = read_only;
    store->any_state = any_state;
    store->site_id[0] = '\0';
    status = attach_patiently(store, err);
    if (status == ESDM_OK)
        *ret_store = store;
    else
        postgres__close(store);
    return status;
}

/* Without a connection: until there is one, the store is taken for what it mostly is. */
static esdm_status
open_later(const esdm_plugin_config *config, bool read_only, void **ret_store, esdm_error *err)
{
    postgres__store *store = NULL;
    esdm_status status = new_store(config, &store, err);
    if (status != ESDM_OK)
        return status;
    (void) snprintf(store->site_id, sizeof store->site_id, "%s", config->site_id);
    store->read_only = read_only;
    store->writable = !read_only;
    store->unseen = true;
    *ret_store = store;
    return ESDM_OK;
}

esdm_status
postgres__open(const esdm_plugin_config *config, bool read_only, void **ret_store, esdm_error *err)
{
    postgres__store *store = NULL;
    if (config->later && config->site_id != NULL)
        return open_later(config, read_only, ret_store, err);
    esdm_status status = postgres__attach(config, read_only, false, &store, err);
    if (status != ESDM_OK)
        return status;
    if (config->site_id == NULL || strcmp(store->site_id, config->site_id) != 0) {
        status = esdm__error_set(err, ESDM_EINVAL,
                                 "%.150s: metadata store '%.150s' belongs to another site (%s)",
                                 store->config->path, store->config->label, store->site_id);
        postgres__close(store);
        return status;
    }
    *ret_store = store;
    return ESDM_OK;
}

esdm_status
postgres__site_id(const esdm_plugin_config *config, char ret_id[ESDM_META_UUID_BYTES],
                  esdm_error *err)
{
    postgres__store *store = NULL;
    esdm_status status = postgres__attach(config, true, true, &store, err);
    if (status != ESDM_OK)
        return status;
    memcpy(ret_id, store->site_id, ESDM_META_UUID_BYTES);
    store->opened_ns = esdm__now_ns();
    postgres__close(config->migrating ? store : atomic_exchange(&parked, store));
    return ESDM_OK;
}
