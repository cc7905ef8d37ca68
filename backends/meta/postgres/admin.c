/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file mkfs, check and removal. */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "base/place.h"
#include "postgres.h"
#include "postgres_sql.h"

#define OLDEST_SERVER 120000

/* What stands at the place of the store. */
typedef struct site_state {
    bool schema;   /* it exists */
    bool store;    /* a table `store` is in it */
    bool may_make; /* this user may make what is missing */
    bool ours;     /* the store has our site's id and name */
    char foreign[128];
    char site[64];
    char target[64];
    esdm_meta_state state;
    char note[ESDM_META_NOTE_BYTES];
} site_state;

/* ---- looking -------------------------------------------------------------------------------- */

static void
copy_column(const PGresult *result, int row, int column, char *to, size_t bytes)
{
    (void) snprintf(to, bytes, "%s", postgres__text(result, row, column));
}

/* NULL when the server can be used. */
static const char *
server_problem(const postgres__link *link)
{
    const char *encoding = PQparameterStatus(link->conn, "server_encoding");
    if (PQserverVersion(link->conn) < OLDEST_SERVER)
        return "ESDM needs PostgreSQL 12 or newer";
    if (encoding == NULL || strcmp(encoding, "UTF8") != 0)
        return "the database's encoding must be UTF8; make one with createdb -E UTF8 -T template0";
    return NULL;
}

static esdm_status
read_site(postgres__link *link, const esdm_plugin_config *config, site_state *state,
          esdm_error *err)
{
    PGresult *result = NULL;
    postgres__failure failure;
    esdm_status status =
        postgres__link_query(link,
                             "SELECT (SELECT value FROM {S}.store WHERE key = 'site'), "
                             "(SELECT value FROM {S}.store WHERE key = 'target'), "
                             "(SELECT value::bigint FROM {S}.store WHERE key = 'state'), "
                             "(SELECT value FROM {S}.store WHERE key = 'note')",
                             NULL, &result, &failure, err);
    if (status != ESDM_OK)
        return status;
    copy_column(result, 0, 0, state->site, sizeof state->site);
    copy_column(result, 0, 1, state->target, sizeof state->target);
    state->state = (esdm_meta_state) postgres__u64(result, 0, 2);
    copy_column(result, 0, 3, state->note, sizeof state->note);
    PQclear(result);
    state->ours = config->site_id != NULL && config->site_id[0] != '\0' &&
                  strcmp(state->site, config->site_id) == 0 &&
                  strcmp(state->target, config->name) == 0;
    return ESDM_OK;
}

static esdm_status
look_at_schema(postgres__link *link, const esdm_plugin_config *config, site_state *ret_state,
               esdm_error *err)
{
    static const char question[] =
        "SELECT n.oid IS NOT NULL, to_regclass('{S}.store') IS NOT NULL, "
        "CASE WHEN n.oid IS NULL THEN has_database_privilege(current_database(), 'CREATE') "
        "ELSE has_schema_privilege(n.oid, 'CREATE') END, "
        "coalesce((SELECT c.relname FROM pg_class c WHERE c.relnamespace = n.oid LIMIT 1), "
        "(SELECT p.proname FROM pg_proc p WHERE p.pronamespace = n.oid LIMIT 1), "
        "(SELECT t.typname FROM pg_type t WHERE t.typnamespace = n.oid LIMIT 1), '')::text "
        "FROM (SELECT 1) AS one LEFT JOIN pg_namespace n ON n.nspname = '{S}'";
    PGresult *result = NULL;
    postgres__failure failure;
    *ret_state = (site_state){.schema = false};
    const char *problem = server_problem(link);
    if (problem != NULL)
        return esdm__error_set(err, ESDM_ENOTSUP, "metadata store '%.200s': %s",
                               link->config->label, problem);
    esdm_status status = postgres__link_query(link, question, NULL, &result, &failure, err);
    if (status != ESDM_OK)
        return status;
    ret_state->schema = postgres__bool(result, 0, 0);
    ret_state->store = postgres__bool(result, 0, 1);
    ret_state->may_make = postgres__bool(result, 0, 2);
    copy_column(result, 0, 3, ret_state->foreign, sizeof ret_state->foreign);
    PQclear(result);
    return ret_state->store ? read_site(link, config, ret_state, err) : ESDM_OK;
}

/* ---- mkfs ----------------------------------------------------------------------------------- */

/* Refuses what is somebody else's. */
static esdm_status
check_vacant(const postgres__config *config, const site_state *state, esdm_error *err)
{
    if (state->store && !state->ours)
        return esdm__error_set(err, ESDM_EEXIST,
                               "%.100s: schema '%s' of '%.120s' is the metadata store \"%.40s\" of "
                               "another site (%.32s); name another \"schema\"",
                               config->path, config->schema, config->label, state->target,
                               state->site);
    if (state->store && !config->migrating &&
        (state->state == ESDM_META_ARRIVING || state->state == ESDM_META_LEFT))
        return esdm__error_set(err, ESDM_ENOTSUP, "metadata store '%.150s' %s", config->label,
                               state->note);
    if (!state->store && state->foreign[0] != '\0')
        return esdm__error_set(err, ESDM_EEXIST,
                               "%.100s: schema '%s' of '%.120s' is in use ('%.60s' is in it); name "
                               "another \"schema\"",
                               config->path, config->schema, config->label, state->foreign);
    if (!state->store && !state->may_make)
        return esdm__error_set(err, ESDM_EACCES,
                               "%.100s: this user may not make %s in '%.150s'; let the database's "
                               "owner GRANT CREATE",
                               config->path, state->schema ? "tables" : "a schema", config->label);
    return ESDM_OK;
}

static bool
is_plain(const char *text, size_t min, size_t max)
{
    static const char plain[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-";
    size_t bytes = strlen(text);
    return bytes >= min && bytes <= max && strspn(text, plain) == bytes;
}

/* All statements of mkfs. @param ret_script owned, free(). */
static esdm_status
make_script(const esdm_plugin_config *config, const site_state *state, char **ret_script,
            esdm_error *err)
{
    if (config->site_id == NULL || !is_plain(config->site_id, 32, 32) ||
        !is_plain(config->name, 1, 63))
        return esdm__error_set(err, ESDM_EINVAL, "%.200s: a store needs a name and a site",
                               config->path);
    int n =
        asprintf(ret_script,
                 "SELECT pg_advisory_xact_lock({K}, 1);\n"
                 "CREATE SCHEMA IF NOT EXISTS {S};\n%s%s%s%s%s%s"
                 "INSERT INTO {S}.store(key, value) VALUES ('format', '%d'), ('site', '%s'), "
                 "('target', '%s'), ('state', '0'), ('schema', '%s');\n",
                 postgres__tables_sql, postgres__added_sql, postgres__reach_sql,
                 postgres__marks_sql, postgres__functions_sql, postgres__names_sql,
                 POSTGRES__FORMAT, config->site_id, config->name, state->schema ? "found" : "made");
    if (n < 0)
        return esdm__error_nomem(err, sizeof postgres__functions_sql, "the statements of mkfs");
    return ESDM_OK;
}

static esdm_status
make_tables(postgres__link *link, const esdm_plugin_config *config, site_state *state,
            esdm_error *err)
{
    char *script = NULL;
    esdm_error why = {0};
    esdm_status status = make_script(config, state, &script, &why);
    if (status == ESDM_OK) {
        status = postgres__link_script(link, script, &why);
        free(script);
        /* Somebody else may have been faster. */
        if (status != ESDM_OK && link->conn != NULL &&
            look_at_schema(link, config, state, NULL) == ESDM_OK && state->store)
            status = check_vacant(link->config, state, &why);
    }
    if (status != ESDM_OK && err != NULL)
        *err = why;
    return status;
}

static esdm_status
connect_for(const esdm_plugin_config *config, postgres__config **ret_config, postgres__link *link,
            esdm_error *err)
{
    postgres__failure failure;
    esdm_status status = ESDM_OK;
    if (*ret_config == NULL)
        status = postgres__config_new(config, ret_config, err);
    if (status != ESDM_OK)
        return status;
    status = postgres__link_open(link, *ret_config, &failure, err);
    if (status != ESDM_OK) {
        postgres__config_free(*ret_config);
        *ret_config = NULL;
    }
    return status;
}

/* The site's own server. @param ret_made whether it is there now. */
static esdm_status
make_server(const postgres__config *config, bool dry_run, bool *ret_made,
            esdm_plugin_reporter report, void *user, esdm_error *err)
{
    esdm_status status = postgres__server_made(config, err);
    if (status != ESDM_ENOENT)
        return status;
    status = postgres__server_tell(config, "--make", dry_run, err);
    if (status == ESDM_OK)
        esdm__report(report, user, "make a PostgreSQL server in %s", config->directory);
    *ret_made = !dry_run;
    return status;
}

esdm_status
postgres__make(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
               void *user, esdm_error *err)
{
    postgres__config *parsed = NULL;
    postgres__link link = {0};
    site_state state = {0};
    bool made = true;
    esdm_status status = postgres__config_new(config, &parsed, err);
    if (status == ESDM_OK && parsed->directory != NULL)
        status = make_server(parsed, dry_run, &made, report, user, err);
    if (status != ESDM_OK || !made) {
        postgres__config_free(parsed);
        return status;
    }
    status = connect_for(config, &parsed, &link, err);
    if (status != ESDM_OK)
        return status;
    status = look_at_schema(&link, config, &state, err);
    if (status == ESDM_OK)
        status = check_vacant(parsed, &state, err);
    bool absent = !state.store;
    if (status == ESDM_OK && absent && !dry_run)
        status = make_tables(&link, config, &state, err);
    if (status == ESDM_OK && absent)
        esdm__report(report, user, "make tables and functions in %s", parsed->label);
    postgres__link_close(&link);
    postgres__config_free(parsed);
    return status;
}

esdm_status
postgres__upgrade(postgres__link *link, esdm_error *err)
{
    char *script = NULL;
    if (asprintf(&script, "%s%s%s%s%s%s%s", postgres__upgrade_sql, postgres__added_sql,
                 postgres__reach_sql, postgres__marks_sql, postgres__functions_sql,
                 postgres__names_sql, postgres__rights_sql) < 0)
        return esdm__error_nomem(err, sizeof postgres__functions_sql, "the statements of mkfs");
    esdm_status status = postgres__link_script(link, script, err);
    free(script);
    return status;
}

/* ---- check ---------------------------------------------------------------------------------- */

static void
add_finding(esdm__findings *all, esdm_status status, const postgres__store *store, const char *text)
{
    esdm_error problem;
    (void) !esdm__error_set(&problem, status, "%.150s: metadata store '%.150s': %s",
                            store->config->path, store->config->label, text);
    esdm__findings_add(all, &problem);
}

/* Containers whose newest snapshot or its document is not there. */
static void
check_containers(postgres__store *store, esdm__findings *all)
{
    static const char question[] =
        "SELECT count(*), min(c.name) FROM {S}.container c LEFT JOIN {S}.snapshot s "
        "ON s.container = c.container AND s.snapshot = c.snapshot AND NOT s.pruned "
        "LEFT JOIN {S}.snapshot d ON d.container = c.container AND d.snapshot = s.document_at "
        "WHERE c.name IS NOT NULL AND d.document IS NULL";
    PGresult *result = NULL;
    esdm_error problem = {0};
    esdm_status status = postgres__query(store, question, NULL, &result, &problem);
    if (status != ESDM_OK) {
        esdm__findings_add(all, &problem);
    } else if (postgres__u64(result, 0, 0) > 0) {
        char text[200];
        (void) snprintf(text, sizeof text,
                        "%llu containers have lost their structure, '%.100s' "
                        "among them",
                        (unsigned long long) postgres__u64(result, 0, 0),
                        postgres__text(result, 0, 1));
        add_finding(all, ESDM_ECORRUPT, store, text);
    }
    PQclear(result);
}

static void
note_server(const postgres__store *store, const esdm__findings *all)
{
    postgres__endpoint endpoint;
    if (store->config->directory == NULL ||
        postgres__endpoint_read(store->config, &endpoint, NULL) != ESDM_OK)
        return;
    explicit_bzero(endpoint.password, sizeof endpoint.password);
    esdm__report(all->report, all->user, "%s: the server in %s runs on node %s, %s port %s",
                 store->config->path, store->config->directory, endpoint.node, endpoint.addresses,
                 endpoint.port);
}

static void
note_settings(postgres__store *store, const esdm__findings *all)
{
    PGresult *result = NULL;
    if (postgres__query(store,
                        "SELECT current_setting('fsync'), current_setting('full_page_writes')",
                        NULL, &result, NULL) != ESDM_OK)
        return;
    if (strcmp(postgres__text(result, 0, 0), "on") != 0 ||
        strcmp(postgres__text(result, 0, 1), "on") != 0)
        esdm__report(all->report, all->user,
                     "%s: note: the server runs with fsync or full_page_writes off: a power loss "
                     "can destroy the catalogue",
                     store->config->path);
    PQclear(result);
}

esdm_status
postgres__check(const esdm_plugin_config *config, esdm_plugin_reporter report, void *user,
                esdm_error *err)
{
    esdm__findings all = {.report = report, .user = user, .status = ESDM_OK};
    esdm_error problem = {0};
    void *opened = NULL;
    if (postgres__open(config, false, &opened, &problem) != ESDM_OK) {
        esdm__findings_add(&all, &problem);
    } else {
        postgres__store *store = opened;
        if (!store->writable)
            add_finding(&all, ESDM_EACCES, store,
                        "no permission to write; this user can at most read");
        check_containers(store, &all);
        note_settings(store, &all);
        note_server(store, &all);
        postgres__close(store);
    }
    if (all.status != ESDM_OK && err != NULL)
        *err = all.first;
    return all.status;
}

/* ---- remove --------------------------------------------------------------------------------- */

static esdm_status
check_owner(postgres__store *store, esdm_error *err)
{
    PGresult *result = NULL;
    esdm_status status = postgres__query(store,
                                         "SELECT pg_has_role(c.relowner, 'USAGE') FROM pg_class c "
                                         "WHERE c.oid = '{S}.container'::regclass",
                                         NULL, &result, err);
    if (status == ESDM_OK && !postgres__bool(result, 0, 0))
        status = esdm__error_set(err, ESDM_EACCES,
                                 "%.150s: metadata store '%.150s' can be removed by its owner only",
                                 store->config->path, store->config->label);
    PQclear(result);
    return status;
}

/* Whether anything else is in the site's own server: another site, or tables of the user's. */
static esdm_status
find_others(postgres__store *store, bool *ret_others, esdm_error *err)
{
    static const char question[] =
        "SELECT count(*) FROM pg_class c JOIN pg_namespace n ON n.oid = c.relnamespace "
        "WHERE n.nspname NOT IN ('{S}', 'pg_catalog', 'information_schema') "
        "AND n.nspname !~ '^pg_(toast|temp)'";
    PGresult *result = NULL;
    esdm_status status = postgres__query(store, question, NULL, &result, err);
    if (status == ESDM_OK)
        *ret_others = postgres__u64(result, 0, 0) > 0;
    PQclear(result);
    return status;
}

esdm_status
postgres__remove(const esdm_plugin_config *config, bool dry_run, esdm_plugin_reporter report,
                 void *user, esdm_error *err)
{
    void *opened = NULL;
    esdm_status status = postgres__open(config, true, &opened, err);
    if (status != ESDM_OK)
        return status;
    postgres__store *store = opened;
    status = check_owner(store, err);
    if (status == ESDM_OK)
        esdm__report(report, user, "remove the tables and functions in %s", store->config->label);
    bool shared = true;
    if (status == ESDM_OK && store->config->directory != NULL)
        status = find_others(store, &shared, err);
    if (status == ESDM_OK && !shared)
        esdm__report(report, user, "remove the PostgreSQL server in %s", store->config->directory);
    if (status == ESDM_OK && !dry_run)
        status = postgres__link_script(&store->link, postgres__remove_sql, err);
    if (status == ESDM_OK && !dry_run && !shared) {
        postgres__link_close(&store->link);
        status = postgres__server_tell(store->config, "--remove", false, err);
    }
    postgres__close(store);
    return status;
}
