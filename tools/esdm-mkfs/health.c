/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The numbers of esdm-mkfs --check --json: for those who watch many sites. */

#include <string.h>

#include "esdm-mkfs/esdm-mkfs.h"
#include "esdm/upkeep.h"

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
    uint64_t stored_bytes; /* what several share once */
    uint64_t shared_bytes; /* of these: others refer to them, too */
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
    GArray *infos;      /* of esdm_container_info, beside the names */
    GPtrArray *ids;     /* of former containers, whose names and infos are the last ones */
    GPtrArray *sums_of; /* sums of its user, beside the names */
    GArray *ages_of;    /* numbers of ages, likewise */
    uint64_t fragments;
    uint64_t datasets;
    uint64_t now_ns;
} holdings;

static void
add(sums *to, const esdm_container_info *info)
{
    to->containers++;
    to->raw_bytes += info->raw_bytes;
}

static bool
visit(const esdm_container_info *info, void *user)
{
    holdings *h = user;
    uint64_t age_ns = info->modified_ns < h->now_ns ? h->now_ns - info->modified_ns : 0;
    guint i = 0;
    while (i + 1 < G_N_ELEMENTS(ages) && age_ns >= ages[i].days * DAY_NS)
        i++;
    add(&h->by_age[i], info);
    add(&h->all, info);
    h->fragments += info->fragments;
    h->datasets += info->datasets;
    g_ptr_array_add(h->names, g_strdup(info->name));
    g_array_append_val(h->infos, *info);
    g_array_append_val(h->ages_of, i);
    return true;
}

static bool
visit_former(const esdm_former_info *info, void *user)
{
    holdings *h = user;
    add(&h->former, &info->container);
    g_ptr_array_add(h->names, g_strdup(info->container.name));
    g_ptr_array_add(h->ids, g_strdup(info->id));
    g_array_append_val(h->infos, info->container);
    return true;
}

static void
add_users(esdm_session *session, holdings *h)
{
    for (guint i = 0; i < h->all.containers; i++) {
        g_autofree char *owner = tool_owner(session, g_ptr_array_index(h->names, i));
        const char *name = owner != NULL ? owner : "";
        sums *sum = g_tree_lookup(h->users, name);
        if (sum == NULL) {
            sum = g_new0(sums, 1);
            g_tree_insert(h->users, g_strdup(name), sum);
        }
        add(sum, &g_array_index(h->infos, esdm_container_info, i));
        g_ptr_array_add(h->sums_of, sum);
    }
}

/* ---- what they store ---------------------------------------------------------------------- */

/* Adds what some containers store to the sums of their groups.
 * @param groups sums of each container; all of a group are the same. */
static esdm_status
count_stored(esdm_session *session, const holdings *h, guint from, const GPtrArray *groups,
             sums *total, esdm_error *err)
{
    g_autoptr(GArray) parts = g_array_new(FALSE, FALSE, sizeof(esdm_usage_part));
    g_autoptr(GHashTable) numbers = g_hash_table_new(NULL, NULL);
    g_autoptr(GPtrArray) different = g_ptr_array_new();
    for (guint i = 0; i < groups->len; i++) {
        sums *group = g_ptr_array_index(groups, i);
        if (!g_hash_table_contains(numbers, group)) {
            g_hash_table_insert(numbers, group, GUINT_TO_POINTER(different->len));
            g_ptr_array_add(different, group);
        }
        bool former = from + i >= h->all.containers;
        const esdm_usage_part part = {
            .name = g_ptr_array_index(h->names, from + i),
            .former = former ? g_ptr_array_index(h->ids, from + i - h->all.containers) : NULL,
            .stored_bytes = g_array_index(h->infos, esdm_container_info, from + i).stored_bytes,
            .group = GPOINTER_TO_UINT(g_hash_table_lookup(numbers, group))};
        g_array_append_val(parts, part);
    }
    esdm_usage all;
    g_autofree esdm_usage *usages = g_new0(esdm_usage, different->len + 1);
    esdm_status status =
        esdm_usage_count(session, (const esdm_usage_part *) (const void *) parts->data, parts->len,
                         usages, different->len, &all, err);
    for (guint i = 0; i < different->len && status == ESDM_OK; i++) {
        sums *group = g_ptr_array_index(different, i);
        group->stored_bytes = usages[i].stored_bytes;
        group->shared_bytes = usages[i].shared_bytes;
    }
    if (status == ESDM_OK && total != NULL) {
        total->stored_bytes = all.stored_bytes;
        total->shared_bytes = all.shared_bytes;
    }
    return status;
}

static esdm_status
count_all_stored(esdm_session *session, holdings *h, esdm_error *err)
{
    g_autoptr(GPtrArray) by_age = g_ptr_array_new();
    g_autoptr(GPtrArray) formers = g_ptr_array_new();
    for (guint i = 0; i < h->ages_of->len; i++)
        g_ptr_array_add(by_age, &h->by_age[g_array_index(h->ages_of, guint, i)]);
    for (guint i = 0; i < h->ids->len; i++)
        g_ptr_array_add(formers, &h->former);
    esdm_status status = count_stored(session, h, 0, h->sums_of, &h->all, err);
    if (status == ESDM_OK)
        status = count_stored(session, h, 0, by_age, NULL, err);
    if (status == ESDM_OK)
        status = count_stored(session, h, (guint) h->all.containers, formers, NULL, err);
    return status;
}

/* ---- JSON --------------------------------------------------------------------------------- */

static void
set_sums(json_t *object, const sums *sum)
{
    tool_json_set(object, "containers", tool_json_u64(sum->containers));
    tool_json_set(object, "raw_bytes", tool_json_u64(sum->raw_bytes));
    tool_json_set(object, "stored_bytes", tool_json_u64(sum->stored_bytes));
    tool_json_set(object, "shared_bytes", tool_json_u64(sum->shared_bytes));
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
                  .infos = g_array_new(FALSE, FALSE, sizeof(esdm_container_info)),
                  .ids = g_ptr_array_new_with_free_func(g_free),
                  .sums_of = g_ptr_array_new(),
                  .ages_of = g_array_new(FALSE, FALSE, sizeof(guint))};
    esdm_status status = esdm_session_open(&reading, &session, err);
    if (status == ESDM_OK)
        status = esdm_container_list(session, NULL, visit, &h, err);
    if (status == ESDM_OK)
        status = esdm_former_list(session, NULL, visit_former, &h, err);
    if (status == ESDM_OK) {
        add_users(session, &h);
        status = count_all_stored(session, &h, err);
    }
    if (status == ESDM_OK) {
        json_t *users = json_array();
        json_t *former = json_object();
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
    g_ptr_array_unref(h.ids);
    g_ptr_array_unref(h.sums_of);
    g_array_unref(h.ages_of);
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
