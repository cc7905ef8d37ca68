/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* From the JSON of a site configuration to esdm__site. schemas/site.schema.json says the same. */

#include "site/parts.h"

#include <ctype.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/cores.h"
#include "base/error.h"
#include "plugin/registry.h"

#define KIB            UINT64_C(1024)
#define MIB            (1024 * KIB)
#define GIB            (1024 * MIB)
#define MAX_THREADS    1024
#define SIEVE_MOST     (4 * MIB)
#define MAX_NAME_BYTES 63
#define MAX_ROUTES     1024

/* Keys of the plug-ins that ESDM brings along, and which of them are paths. Others read their
 * object themselves. */
typedef struct plugin_keys {
    esdm_plugin_kind kind;
    const char *name;
    const char *const *keys;
    const char *const *paths;
} plugin_keys;

static const char *const posix_keys[] = {"name", "plugin", "directory", NULL};
static const char *const mem_keys[] = {"name", "plugin", "capacity_bytes", NULL};
static const char *const sqlite_keys[] = {"plugin", "directory", NULL};
static const char *const postgres_keys[] = {"plugin",   "connection", "host",     "port",
                                            "database", "user",       "password", "schema",
                                            "timeout",  "directory",  NULL};
static const char *const s3_keys[] = {"name",
                                      "plugin",
                                      "bucket",
                                      "prefix",
                                      "endpoint",
                                      "region",
                                      "style",
                                      "ca_file",
                                      "access_key",
                                      "secret_key",
                                      "session_token",
                                      "profile",
                                      "credentials_file",
                                      "part",
                                      "object",
                                      "connections",
                                      "timeout",
                                      "sign_payload",
                                      "create_bucket",
                                      "hedge",
                                      NULL};
static const char *const directory_path[] = {"directory", NULL};
static const char *const s3_paths[] = {"ca_file", "credentials_file", NULL};
static const plugin_keys known_plugins[] = {
    {ESDM_PLUGIN_DATA, "posix", posix_keys, directory_path},
    {ESDM_PLUGIN_DATA, "kv", posix_keys, directory_path},
    {ESDM_PLUGIN_DATA, "mem", mem_keys, directory_path},
    {ESDM_PLUGIN_DATA, "s3", s3_keys, s3_paths},
    {ESDM_PLUGIN_META, "sqlite", sqlite_keys, directory_path},
    {ESDM_PLUGIN_META, "postgres", postgres_keys, directory_path},
};

static esdm_status
copy_text(const char *text, char **ret_copy, esdm_error *err)
{
    char *copy = strdup(text);
    if (copy == NULL)
        return esdm__error_nomem(err, strlen(text) + 1, "the site configuration");
    free(*ret_copy);
    *ret_copy = copy;
    return ESDM_OK;
}

/* ---- targets ------------------------------------------------------------------------------ */

static esdm_status
check_plugin(const esdm__json_node *node, esdm_plugin_kind kind, const char *name, esdm_error *err)
{
    const esdm_plugin *plugin = NULL;
    esdm_status status = esdm__plugin_find(kind, name, &plugin, err);
    if (status == ESDM_OK)
        return ESDM_OK;
    char path[256];
    esdm__json_path(node, path, sizeof path);
    if (status == ESDM_ENOENT)
        status = ESDM_EINVAL; /* the configuration is wrong, not absent */
    return esdm__error_prefix(err, status, "%s: %s", node->source, path);
}

/* NULL for a plug-in that reads its object itself. */
static const plugin_keys *
keys_of(esdm_plugin_kind kind, const char *plugin)
{
    for (size_t i = 0; i < sizeof known_plugins / sizeof known_plugins[0]; i++) {
        if (known_plugins[i].kind == kind && strcmp(known_plugins[i].name, plugin) == 0)
            return &known_plugins[i];
    }
    return NULL;
}

/* What every data target may state; its plug-in does not see it. */
static const char *const engine_keys[] = {"accessibility", "tier",     "cost",
                                          "reserve",       "retiring", NULL};

/* A copy of an object without those keys. @param ret_object json_decref(). */
static esdm_status
without_engine_keys(const esdm__json_node *node, json_t **ret_object, esdm_error *err)
{
    *ret_object = json_copy(node->value);
    if (*ret_object == NULL)
        return esdm__error_nomem(err, sizeof(json_t), "the site configuration");
    for (const char *const *key = engine_keys; *key != NULL; key++)
        (void) json_object_del(*ret_object, *key);
    return ESDM_OK;
}

static esdm_status
check_keys(const esdm__json_node *node, esdm_plugin_kind kind, const char *plugin, esdm_error *err)
{
    const plugin_keys *known = keys_of(kind, plugin);
    if (known == NULL)
        return ESDM_OK;
    if (kind != ESDM_PLUGIN_DATA)
        return esdm__json_known_keys(node, known->keys, err);
    const char *all[32];
    size_t count = 0;
    for (size_t i = 0; known->keys[i] != NULL; i++)
        all[count++] = known->keys[i];
    for (size_t i = 0; engine_keys[i] != NULL; i++)
        all[count++] = engine_keys[i];
    all[count] = NULL;
    return esdm__json_known_keys(node, all, err);
}

static bool
needs_directory(const char *plugin)
{
    return strcmp(plugin, "posix") == 0 || strcmp(plugin, "kv") == 0 ||
           strcmp(plugin, "sqlite") == 0;
}

static esdm_status
settle_path(const esdm__json_node *member, const esdm__site_folder *folder, json_t *object,
            esdm_error *err)
{
    char *path = NULL;
    esdm_status status = esdm__site_directory(member, folder, &path, err);
    if (status != ESDM_OK)
        return status;
    json_t *text = json_string(path);
    json_t *unchecked = text == NULL ? json_string_nocheck(path) : NULL;
    if (unchecked != NULL) /* a variable's value need not be UTF-8, JSON must be */
        status = esdm__json_error(member, err, "the path is not valid UTF-8");
    else if (json_object_set_new(object, member->key, text) != 0)
        status = esdm__error_nomem(err, strlen(path), "the site configuration");
    json_decref(unchecked);
    free(path);
    return status;
}

/* Replaces what people may write by what plug-ins read: absolute paths, sizes in bytes. */
static esdm_status
settle_values(const esdm__json_node *node, const esdm__site_folder *folder, esdm_plugin_kind kind,
              const char *plugin, json_t *object, esdm_error *err)
{
    esdm__json_node member;
    const plugin_keys *known = keys_of(kind, plugin);
    const char *const *paths = known != NULL ? known->paths : directory_path;
    for (; *paths != NULL; paths++) {
        if (!esdm__json_member(node, *paths, &member))
            continue;
        esdm_status status = settle_path(&member, folder, object, err);
        if (status != ESDM_OK)
            return status;
    }
    if (needs_directory(plugin) && !esdm__json_member(node, "directory", &member))
        return esdm__json_error(node, err, "the key \"directory\" is missing");
    if (esdm__json_member(node, "capacity_bytes", &member)) {
        uint64_t bytes = 0;
        esdm_status status = esdm__json_size(&member, 0, INT64_MAX, &bytes, err);
        if (status != ESDM_OK)
            return status;
        if (json_object_set_new(object, "capacity_bytes", json_integer((json_int_t) bytes)) != 0)
            return esdm__error_nomem(err, sizeof bytes, "the site configuration");
    }
    return ESDM_OK;
}

static esdm_status
store_json(const esdm__json_node *node, const esdm__site_folder *folder, esdm_plugin_kind kind,
           esdm__site_target *target, esdm_error *err)
{
    json_t *object = NULL;
    esdm_status status = without_engine_keys(node, &object, err);
    if (status != ESDM_OK)
        return status;
    status = settle_values(node, folder, kind, target->plugin, object, err);
    if (status == ESDM_OK) {
        target->json = json_dumps(object, JSON_COMPACT);
        if (target->json == NULL)
            status = esdm__error_nomem(err, sizeof *target, "the site configuration");
    }
    json_decref(object);
    return status;
}

/* The part that data targets and the metadata store have in common. */
static esdm_status
parse_plugin_object(const esdm__json_node *node, esdm_plugin_kind kind,
                    const esdm__site_folder *folder, esdm__site_target *target, esdm_error *err)
{
    esdm_status status = esdm__json_is_object(node, err);
    if (status != ESDM_OK)
        return status;
    char path[256];
    esdm__json_path(node, path, sizeof path);
    if (asprintf(&target->path, "%s: %s", node->source, path) < 0) {
        target->path = NULL;
        return esdm__error_nomem(err, sizeof path, "the site configuration");
    }
    esdm__json_node member;
    const char *plugin = NULL;
    if ((status = esdm__json_require(node, "plugin", &member, err)) != ESDM_OK ||
        (status = esdm__json_string(&member, &plugin, err)) != ESDM_OK ||
        (status = check_plugin(&member, kind, plugin, err)) != ESDM_OK ||
        (status = check_keys(node, kind, plugin, err)) != ESDM_OK ||
        (status = copy_text(plugin, &target->plugin, err)) != ESDM_OK)
        return status;
    return store_json(node, folder, kind, target, err);
}

/* Names stand in messages, in fragment records and in reports. */
static esdm_status
check_name(const esdm__json_node *node, const char *name, esdm_error *err)
{
    size_t bytes = strlen(name);
    for (size_t i = 0; i < bytes; i++) {
        char c = name[i];
        if (!isascii(c) || (!isalnum((unsigned char) c) && strchr("._-", c) == NULL))
            bytes = 0;
    }
    if (bytes == 0 || bytes > MAX_NAME_BYTES)
        return esdm__json_error(node, err, "a name has 1 ... %d letters, digits, '.', '_' and '-'",
                                MAX_NAME_BYTES);
    return ESDM_OK;
}

static esdm_status
parse_accessibility(const esdm__json_node *node, esdm__site_target *target, esdm_error *err)
{
    static const char *const choices[] = {"global", "local", NULL};
    esdm__json_node member;
    size_t choice = 0;
    if (!esdm__json_member(node, "accessibility", &member))
        return ESDM_OK;
    esdm_status status = esdm__json_choice(&member, choices, &choice, err);
    target->local = choice == 1;
    return status;
}

static esdm_status
parse_target(const esdm__json_node *node, const esdm__site_folder *folder, esdm__site *site,
             esdm_error *err)
{
    esdm_status status = esdm__json_is_object(node, err);
    esdm__json_node member;
    const char *name = NULL;
    if (status != ESDM_OK || (status = esdm__json_require(node, "name", &member, err)) != ESDM_OK ||
        (status = esdm__json_string(&member, &name, err)) != ESDM_OK ||
        (status = check_name(&member, name, err)) != ESDM_OK)
        return status;
    for (size_t i = 0; i < site->ntargets; i++) {
        const char *taken = site->targets[i].name;
        if (taken != NULL && strcmp(taken, name) == 0)
            return esdm__json_error(&member, err, "targets[%zu] is called \"%s\" already", i, name);
    }
    esdm__site_target *target = &site->targets[site->ntargets];
    site->ntargets++; /* from here on the site frees it */
    status = copy_text(name, &target->name, err);
    if (status == ESDM_OK)
        status = parse_accessibility(node, target, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_target_keys(node, target, err);
    if (status != ESDM_OK)
        return status;
    return parse_plugin_object(node, ESDM_PLUGIN_DATA, folder, target, err);
}

static esdm_status
parse_targets(const esdm__json_node *root, const esdm__site_folder *folder, esdm__site *site,
              esdm_error *err)
{
    esdm__json_node list;
    esdm_status status = esdm__json_require(root, "targets", &list, err);
    if (status != ESDM_OK || (status = esdm__json_is_array(&list, err)) != ESDM_OK)
        return status;
    size_t count = json_array_size(list.value);
    if (count == 0 || count > ESDM__SITE_TARGETS_MAX)
        return esdm__json_error(&list, err, "a site needs 1 ... %d targets",
                                ESDM__SITE_TARGETS_MAX);
    site->targets = calloc(count, sizeof *site->targets);
    if (site->targets == NULL)
        return esdm__error_nomem(err, count * sizeof *site->targets, "targets");
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node node = esdm__json_element(&list, i);
        status = parse_target(&node, folder, site, err);
    }
    return status;
}

static esdm_status
parse_metadata(const esdm__json_node *root, const esdm__site_folder *folder, esdm__site *site,
               esdm_error *err)
{
    esdm__json_node node;
    esdm_status status = esdm__json_require(root, "metadata", &node, err);
    if (status == ESDM_OK)
        status = copy_text("metadata", &site->metadata.name, err);
    if (status != ESDM_OK)
        return status;
    return parse_plugin_object(&node, ESDM_PLUGIN_META, folder, &site->metadata, err);
}

/* ---- site, engine, policies --------------------------------------------------------------- */

static esdm_status
parse_id(const esdm__json_node *node, char ret_id[ESDM__UUID_BYTES], esdm_error *err)
{
    const char *text = NULL;
    esdm_status status = esdm__json_string(node, &text, err);
    if (status != ESDM_OK)
        return status;
    if (strlen(text) != ESDM__UUID_BYTES - 1 ||
        strspn(text, "0123456789abcdef") != ESDM__UUID_BYTES - 1)
        return esdm__json_error(node, err, "an id has 32 digits 0 ... 9, a ... f");
    memcpy(ret_id, text, ESDM__UUID_BYTES);
    return ESDM_OK;
}

static esdm_status
parse_identity(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"name", "id", NULL};
    esdm__json_node node, member;
    const char *name = "default";
    bool has = esdm__json_member(root, "site", &node);
    esdm_status status = has ? esdm__json_known_keys(&node, keys, err) : ESDM_OK;
    if (status == ESDM_OK && has && esdm__json_member(&node, "name", &member)) {
        status = esdm__json_string(&member, &name, err);
        if (status == ESDM_OK)
            status = check_name(&member, name, err);
    }
    if (status == ESDM_OK)
        status = copy_text(name, &site->name, err);
    if (status == ESDM_OK && has && esdm__json_member(&node, "id", &member))
        status = parse_id(&member, site->stated_id, err);
    return status;
}

static esdm_status
parse_codec(const esdm__json_node *node, char **ret_chain, esdm_error *err)
{
    const char *chain = NULL;
    esdm_status status = esdm__json_string(node, &chain, err);
    for (const char *at = chain; status == ESDM_OK && at != NULL;) {
        size_t bytes = strcspn(at, "+");
        char name[MAX_NAME_BYTES + 1];
        if (bytes == 0 || bytes > MAX_NAME_BYTES)
            return esdm__json_error(node, err, "expected codec names joined by '+'");
        memcpy(name, at, bytes);
        name[bytes] = '\0';
        status = check_plugin(node, ESDM_PLUGIN_CODEC, name, err);
        at = at[bytes] == '+' ? at + bytes + 1 : NULL;
    }
    return status == ESDM_OK ? copy_text(chain, ret_chain, err) : status;
}

static esdm_status
optional_size(const esdm__json_node *object, const char *key, uint64_t min, uint64_t max,
              uint64_t *value, esdm_error *err)
{
    esdm__json_node member;
    if (!esdm__json_member(object, key, &member))
        return ESDM_OK;
    return esdm__json_size(&member, min, max, value, err);
}

/* A size, or the word for what holds where nothing is stated. */
static esdm_status
parse_size_or(const esdm__json_node *object, const char *key, const char *word, uint64_t min,
              uint64_t max, bool *ret_stated, uint64_t *ret_bytes, esdm_error *err)
{
    esdm__json_node member;
    const char *text = NULL;
    if (!esdm__json_member(object, key, &member))
        return ESDM_OK;
    if (json_is_string(member.value))
        text = json_string_value(member.value);
    if (text != NULL && strcmp(text, word) == 0)
        return ESDM_OK;
    if (text != NULL && !esdm__size_parse(text, ret_bytes))
        return esdm__json_error(&member, err, "expected a size such as \"1 MiB\", or \"%s\"", word);
    esdm_status status = esdm__json_size(&member, min, max, ret_bytes, err);
    *ret_stated = status == ESDM_OK;
    return status;
}

/* How much is written and read at once. */
static esdm_status
parse_requests(const esdm__json_node *node, esdm__site_engine *engine, esdm_error *err)
{
    bool gathers = false;
    esdm_status status = parse_size_or(node, "gather", "fragment", KIB, INT64_MAX, &gathers,
                                       &engine->gather_bytes, err);
    return status == ESDM_OK ? parse_size_or(node, "sieve", "model", 0, SIEVE_MOST,
                                             &engine->sieve_stated, &engine->sieve_bytes, err)
                             : status;
}

static esdm_status
parse_engine_object(const esdm__json_node *node, esdm__site_engine *engine, esdm_error *err)
{
    static const char *const keys[] = {
        "threads", "memory", "fragment",     "pack",   "gather",           "sieve", "inline",
        "codec",   "drain",  "earlier_runs", "writes", "codec_on_request", NULL};
    esdm_status status = esdm__json_known_keys(node, keys, err);
    esdm__json_node member;
    uint64_t threads = 0;
    if (status == ESDM_OK && esdm__json_member(node, "threads", &member))
        status = esdm__json_u64(&member, 0, MAX_THREADS, &threads, err);
    if (threads > 0)
        engine->threads = (uint32_t) threads;
    if (status != ESDM_OK ||
        (status = optional_size(node, "memory", MIB, INT64_MAX, &engine->memory_bytes, err)) !=
            ESDM_OK ||
        (status = optional_size(node, "fragment", KIB, GIB, &engine->fragment_bytes, err)) !=
            ESDM_OK ||
        (status = optional_size(node, "pack", 4 * KIB, INT64_MAX, &engine->pack_bytes, err)) !=
            ESDM_OK ||
        (status = optional_size(node, "inline", 0, MIB, &engine->inline_bytes, err)) != ESDM_OK)
        return status;
    engine->fragment_stated = esdm__json_member(node, "fragment", &member);
    status = parse_requests(node, engine, err);
    if (status == ESDM_OK && esdm__json_member(node, "drain", &member)) {
        static const char *const choices[] = {"manual", "background", NULL};
        size_t choice = 0;
        status = esdm__json_choice(&member, choices, &choice, err);
        engine->drain_in_background = choice == 1;
    }
    if (status == ESDM_OK && esdm__json_member(node, "earlier_runs", &member)) {
        static const char *const choices[] = {"off", "prefetch", NULL};
        size_t choice = 0;
        status = esdm__json_choice(&member, choices, &choice, err);
        engine->earlier_runs = choice == 1;
    }
    if (status == ESDM_OK && esdm__json_member(node, "writes", &member)) {
        static const char *const choices[] = {"direct", "background", NULL};
        size_t choice = 0;
        status = esdm__json_choice(&member, choices, &choice, err);
        engine->writes_behind = choice == 1;
    }
    if (status == ESDM_OK && esdm__json_member(node, "codec", &member))
        status = parse_codec(&member, &engine->codec, err);
    if (status == ESDM_OK && esdm__json_member(node, "codec_on_request", &member))
        status = parse_codec(&member, &engine->codec_on_request, err);
    return status;
}

static esdm_status
parse_engine(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    esdm__site_engine *engine = &site->engine;
    engine->threads = esdm__usable_cores(MAX_THREADS);
    engine->memory_bytes = 256 * MIB;
    engine->fragment_bytes = 4 * MIB;
    engine->pack_bytes = GIB;
    engine->inline_bytes = KIB;
    engine->earlier_runs = true;
    esdm_status status = copy_text("none", &engine->codec, err);
    esdm__json_node node;
    if (status != ESDM_OK || !esdm__json_member(root, "engine", &node))
        return status;
    status = parse_engine_object(&node, engine, err);
    if (status == ESDM_OK && engine->fragment_bytes > engine->memory_bytes)
        return esdm__json_error(&node, err, "\"fragment\" is larger than \"memory\"");
    if (status == ESDM_OK && engine->gather_bytes > engine->memory_bytes / 4)
        return esdm__json_error(&node, err, "\"gather\" is larger than a quarter of \"memory\"");
    return status;
}

static esdm_status
parse_policies(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const durabilities[] = {"process", "system", NULL};
    static const char *const overlaps[] = {"error", "last", NULL};
    esdm_status status = ESDM_OK;
    esdm__json_node member;
    size_t choice = ESDM__DURABLE_PROCESS;
    size_t overlap = 0;
    uint64_t history = 1;
    if (esdm__json_member(root, "durability", &member))
        status = esdm__json_choice(&member, durabilities, &choice, err);
    if (status == ESDM_OK && esdm__json_member(root, "history", &member))
        status = esdm__json_u64(&member, 1, UINT32_MAX, &history, err);
    if (status == ESDM_OK && esdm__json_member(root, "history_age", &member))
        status = esdm__site_parse_duration(&member, &site->history_age_s, err);
    if (status == ESDM_OK && esdm__json_member(root, "overlap", &member))
        status = esdm__json_choice(&member, overlaps, &overlap, err);
    site->last_wins = overlap == 1;
    site->durability = choice == 1 ? ESDM__DURABLE_SYSTEM : ESDM__DURABLE_PROCESS;
    site->history = (uint32_t) history;
    return status;
}

static esdm_status
parse_netcdf(const esdm__json_node *root, const esdm__site_folder *folder, esdm__site *site,
             esdm_error *err)
{
    static const char *const keys[] = {"routes", "accuracy_attributes", "chunk_cache",
                                       "chunk_steps", NULL};
    static const char *const policies[] = {"keep", "remove", NULL};
    esdm__json_node node, list;
    if (!esdm__json_member(root, "netcdf", &node))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&node, keys, err);
    size_t policy = 0;
    if (status == ESDM_OK && esdm__json_member(&node, "accuracy_attributes", &list))
        status = esdm__json_choice(&list, policies, &policy, err);
    site->removes_accuracy = policy == 1;
    uint64_t chunk_cache = 0; /* of plain files: esdm-run is who reads it */
    if (status == ESDM_OK)
        status = optional_size(&node, "chunk_cache", MIB, 1024 * GIB, &chunk_cache, err);
    uint64_t steps = 0; /* so this one */
    if (status == ESDM_OK && esdm__json_member(&node, "chunk_steps", &list))
        status = esdm__json_u64(&list, 1, INT32_MAX, &steps, err);
    size_t count = 0;
    if (status == ESDM_OK)
        status = esdm__json_list(&node, "routes", MAX_ROUTES, &list, &count, err);
    if (status != ESDM_OK || count == 0)
        return status;
    site->routes = calloc(count, sizeof *site->routes);
    if (site->routes == NULL)
        return esdm__error_nomem(err, count * sizeof *site->routes, "routes");
    for (size_t i = 0; i < count && status == ESDM_OK; i++) {
        esdm__json_node route = esdm__json_element(&list, i);
        status = esdm__site_directory(&route, folder, &site->routes[i], err);
        site->nroutes += status == ESDM_OK;
    }
    return status;
}

static esdm_status
parse_ranks(const esdm__json_node *root, esdm__site *site, esdm_error *err)
{
    static const char *const keys[] = {"io", "timeout", NULL};
    esdm__json_node ranks, member;
    uint64_t io = 0;
    uint64_t timeout_s = 600;
    if (!esdm__json_member(root, "ranks", &ranks))
        return ESDM_OK;
    esdm_status status = esdm__json_known_keys(&ranks, keys, err);
    if (status == ESDM_OK && esdm__json_member(&ranks, "io", &member))
        status = esdm__json_u64(&member, 0, INT32_MAX, &io, err);
    if (status == ESDM_OK && esdm__json_member(&ranks, "timeout", &member))
        status = esdm__json_u64(&member, 1, 86400, &timeout_s, err);
    site->ranks.io = (uint32_t) io;
    site->ranks.timeout_s = (uint32_t) timeout_s;
    return status;
}

esdm_status
esdm__site_parse(json_t *document, const esdm__site_folder *folder, esdm__site *site,
                 esdm_error *err)
{
    static const char *const keys[] = {
        "site",    "targets",  "metadata", "engine",     "durability", "history", "history_age",
        "dedup",   "copies",   "prefer",   "policies",   "accuracy",   "speeds",  "netcdf",
        "overlap", "replaced", "backup",   "references", "monitor",    "views",   "ranks",
        "shapes",  "join",     "$schema",  NULL};
    esdm__json_node root = esdm__json_root(document, site->source);
    esdm_status status = esdm__json_known_keys(&root, keys, err);
    if (status != ESDM_OK || (status = parse_identity(&root, site, err)) != ESDM_OK ||
        (status = parse_targets(&root, folder, site, err)) != ESDM_OK ||
        (status = parse_metadata(&root, folder, site, err)) != ESDM_OK ||
        (status = esdm__site_check_directories(site, err)) != ESDM_OK ||
        (status = parse_engine(&root, site, err)) != ESDM_OK ||
        (status = parse_policies(&root, site, err)) != ESDM_OK ||
        (status = parse_ranks(&root, site, err)) != ESDM_OK ||
        (status = esdm__site_parse_replaced(&root, site, err)) != ESDM_OK ||
        (status = esdm__site_parse_policies(&root, site, err)) != ESDM_OK)
        return status;
    status = parse_netcdf(&root, folder, site, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_backup(&root, site, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_references(&root, folder, site, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_views(&root, site, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_join(&root, site, err);
    if (status == ESDM_OK)
        status = esdm__site_parse_monitor(&root, folder, site, err);
    return status == ESDM_OK ? esdm__site_parse_accuracy(&root, site, err) : status;
}
