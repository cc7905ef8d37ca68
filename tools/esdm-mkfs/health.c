/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The numbers of esdm-mkfs --check --json: for those who watch many sites. */

#include <string.h>

#include "esdm-mkfs/esdm-mkfs.h"

#define DAY_NS G_GUINT64_CONSTANT(86400000000000)

static json_t *targets;  /* gathered by mkfs_health_part() */
static json_t *metadata; /* likewise */
static uint64_t problems;

void
mkfs_health_part(const esdm_part_health *part, void *user)
{
    (void) user;
    json_t *object = json_object();
    if (targets == NULL)
        targets = json_array();
    tool_json_set(object, "name", tool_json_text(part->name));
    tool_json_set(object, "plugin", tool_json_text(part->plugin));
    tool_json_set(object, "status",
                  json_string(part->status == ESDM_OK ? "ok" : esdm_status_string(part->status)));
    if (part->problem != NULL)
        tool_json_set(object, "message", tool_json_text(part->problem));
    problems += part->status != ESDM_OK;
    if (part->metadata) {
        json_decref(metadata);
        metadata = object;
        return;
    }
    tool_json_set(object, "packs", tool_json_u64(part->packs));
    tool_json_set(object, "used_bytes", tool_json_u64(part->used_bytes));
    bool known = part->total_bytes > 0;
    tool_json_set(object, "free_bytes", known ? tool_json_u64(part->free_bytes) : json_null());
    tool_json_set(object, "total_bytes", known ? tool_json_u64(part->total_bytes) : json_null());
    tool_json_append(targets, object);
}

/* ---- containers --------------------------------------------------------------------------- */

typedef struct sums {
    uint64_t containers;
    uint64_t raw_bytes;
    uint64_t stored_bytes;
} sums;

/* Since the last commit, in days; the last one has no limit. */
static const struct {
    const char *name;
    uint64_t days;
} ages[] = {{"day", 1}, {"week", 7}, {"month", 30}, {"year", 365}, {"older", G_MAXUINT64 / DAY_NS}};

typedef struct holdings {
    sums all;
    sums former;
    sums by_age[G_N_ELEMENTS(ages)];
    GTree *users; /* name → sums */
    GPtrArray *names;
    GArray *infos; /* of esdm_container_info, beside the names */
    uint64_t fragments;
    uint64_t datasets;
    uint64_t now_ns;
} holdings;

static void
add(sums *to, const esdm_container_info *info)
{
    to->containers++;
    to->raw_bytes += info->raw_bytes;
    to->stored_bytes += info->stored_bytes;
}

static bool
visit(const esdm_container_info *info, void *user)
{
    holdings *h = user;
    uint64_t age_ns = info->modified_ns < h->now_ns ? h->now_ns - info->modified_ns : 0;
    size_t i = 0;
    while (i + 1 < G_N_ELEMENTS(ages) && age_ns >= ages[i].days * DAY_NS)
        i++;
    add(&h->by_age[i], info);
    add(&h->all, info);
    h->fragments += info->fragments;
    h->datasets += info->datasets;
    g_ptr_array_add(h->names, g_strdup(info->name));
    g_array_append_val(h->infos, *info);
    return true;
}

static bool
visit_former(const esdm_former_info *info, void *user)
{
    add(&((holdings *) user)->former, &info->container);
    return true;
}

static void
add_users(esdm_session *session, holdings *h)
{
    for (guint i = 0; i < h->names->len; i++) {
        g_autofree char *owner = tool_owner(session, g_ptr_array_index(h->names, i));
        const char *name = owner != NULL ? owner : "";
        sums *sum = g_tree_lookup(h->users, name);
        if (sum == NULL) {
            sum = g_new0(sums, 1);
            g_tree_insert(h->users, g_strdup(name), sum);
        }
        add(sum, &g_array_index(h->infos, esdm_container_info, i));
    }
}

static void
set_sums(json_t *object, const sums *sum)
{
    tool_json_set(object, "containers", tool_json_u64(sum->containers));
    tool_json_set(object, "raw_bytes", tool_json_u64(sum->raw_bytes));
    tool_json_set(object, "stored_bytes", tool_json_u64(sum->stored_bytes));
}

static gboolean
add_user_json(gpointer name, gpointer sum, gpointer list)
{
    json_t *object = json_object();
    tool_json_set(object, "user", tool_json_text(name));
    set_sums(object, sum);
    tool_json_append(list, object);
    return FALSE;
}

static json_t *
ages_json(const holdings *h)
{
    json_t *list = json_array();
    for (size_t i = 0; i < G_N_ELEMENTS(ages); i++) {
        bool limited = i + 1 < G_N_ELEMENTS(ages);
        json_t *object = json_object();
        tool_json_set(object, "within", json_string(ages[i].name));
        tool_json_set(object, "days", limited ? tool_json_u64(ages[i].days) : json_null());
        set_sums(object, &h->by_age[i]);
        tool_json_append(list, object);
    }
    return list;
}

static gint
compare_names(gconstpointer a, gconstpointer b, gpointer user)
{
    (void) user;
    return strcmp(a, b);
}

/* *err when the catalogue cannot be read: then the part of it has told why already. */
static esdm_status
set_holdings(const esdm_site_options *options, json_t *root, esdm_error *err)
{
    esdm_session *session = NULL;
    const esdm_session_options reading = {.config_path = options->config_path, .read_only = true};
    holdings h = {.now_ns = (uint64_t) g_get_real_time() * 1000,
                  .users = g_tree_new_full(compare_names, NULL, g_free, g_free),
                  .names = g_ptr_array_new_with_free_func(g_free),
                  .infos = g_array_new(FALSE, FALSE, sizeof(esdm_container_info))};
    esdm_status status = esdm_session_open(&reading, &session, err);
    if (status == ESDM_OK)
        status = esdm_container_list(session, NULL, visit, &h, err);
    if (status == ESDM_OK)
        status = esdm_former_list(session, NULL, visit_former, &h, err);
    if (status == ESDM_OK) {
        json_t *users = json_array();
        json_t *former = json_object();
        add_users(session, &h);
        g_tree_foreach(h.users, add_user_json, users);
        set_sums(root, &h.all);
        set_sums(former, &h.former);
        tool_json_set(root, "fragments", tool_json_u64(h.fragments));
        tool_json_set(root, "datasets", tool_json_u64(h.datasets));
        tool_json_set(root, "replaced", former);
        tool_json_set(root, "users", users);
        tool_json_set(root, "ages", ages_json(&h));
    }
    esdm_session_close(session);
    g_tree_unref(h.users);
    g_ptr_array_unref(h.names);
    g_array_unref(h.infos);
    return status;
}

json_t *
mkfs_health_json(const esdm_site_options *options)
{
    json_t *root = json_object();
    esdm_error err = {0};
    esdm_status status = set_holdings(options, root, &err);
    if (status != ESDM_OK)
        tool_json_set(root, "message", tool_json_text(err.message));
    tool_json_set(root, "targets", targets != NULL ? targets : json_array());
    tool_json_set(root, "metadata", metadata != NULL ? metadata : json_null());
    tool_json_set(root, "errors", tool_json_u64(problems));
    targets = NULL;
    metadata = NULL;
    return root;
}
