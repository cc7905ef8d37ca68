/* SPDX-License-Identifier: LGPL-3.0-or-later */

/**
 * @file
 * The configuration: where the server is, which schema. Nothing of it stands in messages but host,
 * port, database and schema: libpq's own words about a wrong connection string could show a
 * password.
 */

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/auxv.h>
#include <unistd.h>

#include "base/checksum.h"
#include "base/error.h"
#include "base/json.h"
#include "link.h"

#define DEFAULT_PATIENCE_S 30
#define MOVING_PATIENCE_S  120
#define MAX_PATIENCE_S     600
#define SECOND_NS          UINT64_C(1000000000)

/* ---- keywords ------------------------------------------------------------------------------- */

static bool
add(postgres__config *config, const char *keyword, const char *value)
{
    char *copy = strdup(value);
    if (copy == NULL)
        return false;
    config->keywords[config->nkeywords] = keyword;
    config->values[config->nkeywords++] = copy;
    return true;
}

static const char *
option_value(const PQconninfoOption *options, const char *keyword)
{
    for (; options != NULL && options->keyword != NULL; options++) {
        if (strcmp(options->keyword, keyword) == 0 && options->val != NULL)
            return options->val;
    }
    return NULL;
}

/* What a connection string may override, unless the environment says otherwise. */
static bool
add_defaults(postgres__config *config)
{
    static const struct {
        const char *keyword, *value, *variable;
    } defaults[] = {
        {"fallback_application_name", "esdm", NULL},
        {"connect_timeout", "10", "PGCONNECT_TIMEOUT"},
        {"keepalives_idle", "20", NULL},
        {"keepalives_interval", "5", NULL},
        {"keepalives_count", "3", NULL},
        {"tcp_user_timeout", "20000", NULL},
    };
    bool good = true;
    for (size_t i = 0; i < sizeof defaults / sizeof defaults[0]; i++) {
        const char *variable = defaults[i].variable;
        if (variable == NULL || getenv(variable) == NULL)
            good = good && add(config, defaults[i].keyword, defaults[i].value);
    }
    return good;
}

/* Pins are locks on the primary; a standby does not give them. "read-write" also passes by a
 * primary that an administrator has made read-only. */
static bool
add_fixed(postgres__config *config, const PQconninfoOption *options)
{
    const char *wanted = option_value(options, "target_session_attrs");
    return add(config, "client_encoding", "UTF8") &&
           add(config, "target_session_attrs", wanted != NULL ? wanted : "primary");
}

/* ---- connection string ---------------------------------------------------------------------- */

static bool
is_uri(const char *text)
{
    return strncmp(text, "postgresql://", 13) == 0 || strncmp(text, "postgres://", 11) == 0;
}

/* A password with an '@' that is not escaped would be taken for a part of the host's name, and
 * stand in messages. */
static bool
has_stray_at(const char *uri)
{
    const char *authority = strstr(uri, "://") + 3;
    size_t bytes = strcspn(authority, "/?");
    const char *first = memchr(authority, '@', bytes);
    return first != NULL &&
           memchr(first + 1, '@', bytes - (size_t) (first + 1 - authority)) != NULL;
}

static esdm_status
check_connection(const esdm__json_node *node, const char *text, PQconninfoOption **ret_options,
                 esdm_error *err)
{
    char *why = NULL; /* not shown: it may quote a password */
    if (is_uri(text) && has_stray_at(text))
        return esdm__json_error(node, err,
                                "there is more than one '@' before the first '/'; write the one "
                                "that belongs to the user or password as %%40");
    *ret_options = PQconninfoParse(text, &why);
    PQfreemem(why);
    if (*ret_options == NULL)
        return esdm__json_error(node, err,
                                "this is no connection string of PostgreSQL: write "
                                "\"host=... dbname=... user=...\" or \"postgresql://...\", with "
                                "keywords that the installed libpq knows");
    const char *wanted = option_value(*ret_options, "target_session_attrs");
    if (wanted != NULL && strcmp(wanted, "primary") != 0 && strcmp(wanted, "read-write") != 0)
        return esdm__json_error(node, err,
                                "target_session_attrs=%.30s: the primary is needed, also for "
                                "reading; write read-write or primary, or leave it out",
                                wanted);
    return ESDM_OK;
}

/* ---- label ---------------------------------------------------------------------------------- */

static const char *
value_of(const postgres__config *config, const PQconninfoOption *options, const char *keyword,
         const char *variable)
{
    const char *value = NULL;
    for (size_t i = 0; i < config->nkeywords; i++) {
        if (strcmp(config->keywords[i], keyword) == 0 && strchr(config->values[i], '=') == NULL &&
            !is_uri(config->values[i]))
            value = config->values[i];
    }
    if (value == NULL)
        value = option_value(options, keyword);
    return value != NULL ? value : getenv(variable);
}

static bool
make_label(postgres__config *config, const PQconninfoOption *options)
{
    if (config->directory != NULL) {
        int bytes = asprintf(&config->label, "PostgreSQL in %s, schema %s", config->directory,
                             config->schema);
        if (bytes < 0)
            config->label = NULL;
        return bytes >= 0;
    }
    const char *host = value_of(config, options, "host", "PGHOST");
    const char *port = value_of(config, options, "port", "PGPORT");
    const char *database = value_of(config, options, "dbname", "PGDATABASE");
    const char *service = value_of(config, options, "service", "PGSERVICE");
    const char *place = host != NULL ? host : service != NULL ? service : "(local)";
    int n = asprintf(&config->label, "%s%s%s%s%s schema %s", place, port != NULL ? ":" : "",
                     port != NULL ? port : "", database != NULL ? "/" : "",
                     database != NULL ? database : "", config->schema);
    if (n < 0)
        config->label = NULL;
    return n >= 0;
}

/* ---- the object ----------------------------------------------------------------------------- */

/* "schema": as PostgreSQL folds names that are not quoted, so that it can be typed anywhere. */
static esdm_status
read_schema(const esdm__json_node *root, postgres__config *config, esdm_error *err)
{
    static const char first[] = "abcdefghijklmnopqrstuvwxyz_";
    static const char later[] = "abcdefghijklmnopqrstuvwxyz_0123456789";
    esdm__json_node node;
    const char *name = "esdm";
    if (esdm__json_member(root, "schema", &node)) {
        esdm_status status = esdm__json_string(&node, &name, err);
        if (status != ESDM_OK)
            return status;
        if (strspn(name, first) == 0 || name[strspn(name, later)] != '\0' ||
            strlen(name) >= sizeof config->schema || strncmp(name, "pg_", 3) == 0)
            return esdm__json_error(&node, err,
                                    "the name of a schema has 1 ... %zu letters a ... z, digits "
                                    "and '_', begins with a letter, and not with \"pg_\"",
                                    sizeof config->schema - 1);
    }
    (void) snprintf(config->schema, sizeof config->schema, "%s", name);
    config->lock_space = (uint32_t) esdm__checksum(name, strlen(name)) & 0x3fffffffu;
    return ESDM_OK;
}

static esdm_status
read_texts(const esdm__json_node *root, postgres__config *config, PQconninfoOption **ret_options,
           esdm_error *err)
{
    static const struct {
        const char *key, *keyword;
    } texts[] = {{"connection", "dbname"},
                 {"host", "host"},
                 {"database", "dbname"},
                 {"user", "user"},
                 {"password", "password"}};
    for (size_t i = 0; i < sizeof texts / sizeof texts[0]; i++) {
        esdm__json_node node;
        const char *text = NULL;
        if (!esdm__json_member(root, texts[i].key, &node))
            continue;
        esdm_status status = esdm__json_string(&node, &text, err);
        if (status == ESDM_OK && i == 0)
            status = check_connection(&node, text, ret_options, err);
        if (status == ESDM_OK && i > 0 && text[0] == '\0')
            status = esdm__json_error(&node, err, "the text is empty; leave the key out");
        /* libpq takes a database's name with these for a connection string. */
        if (status == ESDM_OK && strcmp(texts[i].key, "database") == 0 &&
            (strchr(text, '=') != NULL || is_uri(text)))
            status = esdm__json_error(&node, err, "a connection string belongs to \"connection\"");
        if (status == ESDM_OK && !add(config, texts[i].keyword, text))
            status = esdm__error_nomem(err, strlen(text), "the configuration");
        if (status != ESDM_OK)
            return status;
    }
    return ESDM_OK;
}

static esdm_status
read_numbers(const esdm__json_node *root, postgres__config *config, esdm_error *err)
{
    esdm__json_node node;
    /* A server of the site's own that was lost with its node comes back on another one. */
    uint64_t number =
        esdm__json_member(root, "directory", &node) ? MOVING_PATIENCE_S : DEFAULT_PATIENCE_S;
    esdm_status status = ESDM_OK;
    if (esdm__json_member(root, "timeout", &node))
        status = esdm__json_u64(&node, 0, MAX_PATIENCE_S, &number, err);
    config->patience_ns = number * SECOND_NS;
    if (status == ESDM_OK && esdm__json_member(root, "port", &node)) {
        char text[8];
        status = esdm__json_u64(&node, 1, 65535, &number, err);
        (void) snprintf(text, sizeof text, "%u", (unsigned) number % 65536);
        if (status == ESDM_OK && !add(config, "port", text))
            status = esdm__error_nomem(err, sizeof text, "the configuration");
    }
    return status;
}

/* "directory": a server of the site's own, which says itself where it is. */
static esdm_status
read_directory(const esdm__json_node *root, postgres__config *config, esdm_error *err)
{
    static const char *const others[] = {"connection", "host", "port",
                                         "database",   "user", "password"};
    esdm__json_node node;
    const char *text = NULL;
    if (!esdm__json_member(root, "directory", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_string(&node, &text, err);
    if (status == ESDM_OK && text[0] != '/')
        status = esdm__json_error(&node, err, "the folder must begin with '/'");
    for (size_t i = 0; i < sizeof others / sizeof others[0] && status == ESDM_OK; i++) {
        if (esdm__json_member(root, others[i], &node))
            status = esdm__json_error(&node, err,
                                      "this belongs to a server that somebody else runs; one with "
                                      "a \"directory\" is the site's own, and has its settings "
                                      "there, in esdm-postgres.json");
    }
    if (status != ESDM_OK)
        return status;
    config->directory = strdup(text);
    return config->directory != NULL ? ESDM_OK
                                     : esdm__error_nomem(err, strlen(text), "the configuration");
}

/* libpq takes servers, users and files from the environment, which a setuid program must not. */
static esdm_status
check_environment(const esdm__json_node *root, esdm_error *err)
{
    if (getauxval(AT_SECURE) == 0)
        return ESDM_OK;
    for (char **at = environ; at != NULL && *at != NULL; at++) {
        if (strncmp(*at, "PG", 2) == 0)
            return esdm__json_error(root, err,
                                    "this program runs with the rights of another user; it takes "
                                    "no environment variable %.*s: unset it",
                                    (int) strcspn(*at, "="), *at);
    }
    return ESDM_OK;
}

static esdm_status
read_object(const esdm__json_node *root, postgres__config *config, esdm_error *err)
{
    static const char *const keys[] = {"name",   "plugin",   "connection", "host",
                                       "port",   "database", "user",       "password",
                                       "schema", "timeout",  "directory",  NULL};
    PQconninfoOption *options = NULL;
    esdm_status status = esdm__json_is_object(root, err);
    if (status == ESDM_OK)
        status = esdm__json_known_keys(root, keys, err);
    if (status == ESDM_OK)
        status = check_environment(root, err);
    if (status == ESDM_OK)
        status = read_schema(root, config, err);
    if (status == ESDM_OK && !add_defaults(config))
        status = esdm__error_nomem(err, sizeof *config, "the configuration");
    if (status == ESDM_OK)
        status = read_texts(root, config, &options, err);
    if (status == ESDM_OK)
        status = read_numbers(root, config, err);
    if (status == ESDM_OK)
        status = read_directory(root, config, err);
    if (status == ESDM_OK && !(add_fixed(config, options) && make_label(config, options)))
        status = esdm__error_nomem(err, sizeof *config, "the configuration");
    PQconninfoFree(options);
    return status;
}

esdm_status
postgres__config_new(const esdm_plugin_config *given, postgres__config **ret_config,
                     esdm_error *err)
{
    json_t *options = NULL;
    if (given->json == NULL || given->name == NULL)
        return esdm__error_set(err, ESDM_EINVAL, "postgres: a store needs a name and an object");
    const char *path = given->path != NULL ? given->path : given->name;
    postgres__config *config = calloc(1, sizeof *config);
    if (config == NULL)
        return esdm__error_nomem(err, sizeof *config, "the configuration");
    esdm_status status = esdm__json_parse(given->json, strlen(given->json), path, &options, err);
    if (status == ESDM_OK) {
        esdm__json_node root = esdm__json_root(options, path);
        status = read_object(&root, config, err);
        json_decref(options);
    }
    config->migrating = given->migrating;
    config->path = strdup(path);
    config->name = strdup(given->name);
    if (status == ESDM_OK && (config->path == NULL || config->name == NULL))
        status = esdm__error_nomem(err, strlen(path), "the configuration");
    if (status != ESDM_OK) {
        postgres__config_free(config);
        return status;
    }
    *ret_config = config;
    return ESDM_OK;
}

void
postgres__config_free(postgres__config *config)
{
    if (config == NULL)
        return;
    for (size_t i = 0; i < config->nkeywords; i++) {
        explicit_bzero(config->values[i], strlen(config->values[i]));
        free(config->values[i]);
    }
    free(config->directory);
    free(config->path);
    free(config->label);
    free(config->name);
    free(config);
}

/* ---- placeholders --------------------------------------------------------------------------- */

esdm_status
postgres__expand(const postgres__config *config, const char *text, char **ret_text, esdm_error *err)
{
    esdm__buffer buffer;
    esdm__buffer_init(&buffer);
    while (*text != '\0') {
        char number[16];
        if (strncmp(text, "{S}", 3) == 0) {
            esdm__buffer_put(&buffer, config->schema, strlen(config->schema));
            text += 3;
        } else if (strncmp(text, "{K}", 3) == 0) {
            int n = snprintf(number, sizeof number, "%u", config->lock_space);
            esdm__buffer_put(&buffer, number, (size_t) n);
            text += 3;
        } else if (strncmp(text, "{F}", 3) == 0) {
            int n = snprintf(number, sizeof number, "%d", POSTGRES__FORMAT);
            esdm__buffer_put(&buffer, number, (size_t) n);
            text += 3;
        } else {
            size_t bytes = strcspn(text + 1, "{") + 1;
            esdm__buffer_put(&buffer, text, bytes);
            text += bytes;
        }
    }
    esdm__buffer_put_u8(&buffer, 0);
    if (buffer.failed) {
        esdm__buffer_clear(&buffer);
        return esdm__error_nomem(err, buffer.bytes, "a statement");
    }
    size_t bytes = 0;
    *ret_text = (char *) esdm__buffer_steal(&buffer, &bytes);
    return ESDM_OK;
}
