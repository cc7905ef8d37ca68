/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file What esdm-stat tells, read from the API. */

#include "esdm-stat/esdm-stat.h"

#include <string.h>

/* ---- storage of a dataset ----------------------------------------------------------------- */

static int
compare_names(gconstpointer a, gconstpointer b, gpointer user)
{
    (void) user;
    return strcmp(a, b);
}

static void
free_target(gpointer data)
{
    stat_target *target = data;
    g_hash_table_unref(target->packs);
    g_free(target);
}

static void
free_fragment(gpointer data)
{
    stat_fragment *fragment = data;
    g_free(fragment->target);
    g_free(fragment->pack);
    g_free(fragment->codec);
    g_free(fragment);
}

static stat_target *
target_of(GTree *targets, const char *name)
{
    stat_target *target = g_tree_lookup(targets, name);
    if (target == NULL) {
        target = g_new0(stat_target, 1);
        target->packs = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, NULL);
        g_tree_insert(targets, g_strdup(name), target);
    }
    return target;
}

static void
count_codec(GTree *codecs, const char *name)
{
    uint64_t *count = g_tree_lookup(codecs, name);
    if (count == NULL) {
        count = g_new0(uint64_t, 1);
        g_tree_insert(codecs, g_strdup(name), count);
    }
    (*count)++;
}

static void
keep_fragment(GPtrArray *list, const esdm_fragment_info *info)
{
    stat_fragment *fragment = g_new0(stat_fragment, 1);
    fragment->rank = MIN(info->rank, ESDM_MAX_RANK);
    for (uint32_t i = 0; i < fragment->rank; i++) {
        fragment->offset[i] = info->offset[i];
        fragment->size[i] = info->size[i];
        fragment->stride[i] = info->stride != NULL ? info->stride[i] : 1;
    }
    fragment->strided = info->stride != NULL;
    fragment->raw_bytes = info->raw_bytes;
    fragment->stored_bytes = info->stored_bytes;
    fragment->position = info->position;
    fragment->target = g_strdup(info->target);
    fragment->pack = g_strdup(info->pack);
    fragment->codec = g_strdup(info->codec);
    g_ptr_array_add(list, fragment);
}

static bool
visit_fragment(const esdm_fragment_info *info, void *user)
{
    stat_storage *storage = user;
    storage->fragments++;
    storage->raw_bytes += info->raw_bytes;
    storage->stored_bytes += info->stored_bytes;
    if (info->pack[0] != '\0' && !g_str_has_prefix(info->pack, storage->uuid)) {
        storage->shared++;
        storage->shared_bytes += info->stored_bytes;
    }
    stat_target *target = target_of(storage->targets, info->target);
    target->fragments++;
    target->stored_bytes += info->stored_bytes;
    if (info->pack[0] != '\0' && !g_hash_table_contains(target->packs, info->pack))
        g_hash_table_add(target->packs, g_strdup(info->pack));
    count_codec(storage->codecs, info->codec);
    if (stat_wants.fragments)
        keep_fragment(storage->list, info);
    return true;
}

static gint
compare_fragments(gconstpointer a, gconstpointer b)
{
    const stat_fragment *left = *(const stat_fragment *const *) a;
    const stat_fragment *right = *(const stat_fragment *const *) b;
    for (uint32_t i = 0; i < MIN(left->rank, right->rank); i++) {
        if (left->offset[i] != right->offset[i])
            return left->offset[i] < right->offset[i] ? -1 : 1;
    }
    return 0;
}

esdm_status
stat_storage_read(esdm_dataset *dataset, stat_storage *ret_storage, esdm_error *err)
{
    *ret_storage = (stat_storage){
        .uuid = esdm_container_uuid(esdm_group_container(esdm_dataset_group(dataset))),
        .targets = g_tree_new_full(compare_names, NULL, g_free, free_target),
        .codecs = g_tree_new_full(compare_names, NULL, g_free, g_free),
        .list = g_ptr_array_new_with_free_func(free_fragment),
    };
    esdm_status status = esdm_dataset_fragments(dataset, visit_fragment, ret_storage, err);
    g_ptr_array_sort(ret_storage->list, compare_fragments);
    return status;
}

void
stat_storage_clear(stat_storage *storage)
{
    g_tree_unref(storage->targets);
    g_tree_unref(storage->codecs);
    g_ptr_array_unref(storage->list);
}

/* ---- facts of the catalogue --------------------------------------------------------------- */

static void
free_snapshot(gpointer data)
{
    stat_snapshot *snapshot = data;
    g_free(snapshot->writer);
    g_free(snapshot->message);
    g_free(snapshot);
}

static bool
visit_snapshot(const esdm_snapshot_info *info, void *user)
{
    stat_snapshot *snapshot = g_new0(stat_snapshot, 1);
    snapshot->snapshot = info->snapshot;
    snapshot->parent = info->parent;
    snapshot->time_ns = info->time_ns;
    snapshot->writer = g_strdup(info->writer != NULL ? info->writer : "");
    snapshot->message = g_strdup(info->message != NULL ? info->message : "");
    g_ptr_array_add(user, snapshot);
    return true;
}

static void
free_former(gpointer data)
{
    stat_former *former = data;
    g_free(former->id);
    g_free(former);
}

typedef struct former_search {
    const char *name;
    GPtrArray *found;
} former_search;

/* Not what lies below. */
static bool
visit_former(const esdm_former_info *info, void *user)
{
    former_search *search = user;
    if (!g_str_equal(info->container.name, search->name))
        return true;
    stat_former *former = g_new0(stat_former, 1);
    former->id = g_strdup(info->id);
    former->removed = info->removed;
    former->time_ns = info->time_ns;
    former->until_ns = info->until_ns;
    former->stored_bytes = info->container.stored_bytes;
    g_ptr_array_add(search->found, former);
    return true;
}

static bool
visit_sharing(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

esdm_status
stat_facts_read(esdm_session *session, esdm_container *container, stat_facts *ret_facts,
                esdm_error *err)
{
    const char *name = esdm_container_name(container);
    *ret_facts = (stat_facts){.snapshots = g_ptr_array_new_with_free_func(free_snapshot),
                              .former = g_ptr_array_new_with_free_func(free_former),
                              .shares = g_ptr_array_new_with_free_func(g_free)};
    former_search search = {.name = name, .found = ret_facts->former};
    esdm_status status = esdm_container_stat(session, name, &ret_facts->info, err);
    ret_facts->is_former = status == ESDM_OK && tool_former_of(session, name, &ret_facts->lost);
    if (status == ESDM_OK && ret_facts->info.snapshot == 0)
        return ESDM_OK; /* several as one have no history of their own */
    if (status == ESDM_OK)
        status = esdm_container_snapshots(session, name, visit_snapshot, ret_facts->snapshots, err);
    if (status == ESDM_OK)
        status = esdm_former_list(session, name, visit_former, &search, err);
    if (status == ESDM_OK)
        status = esdm_container_write_history(container, &ret_facts->writes, err);
    /* of the name: of a moment of it there are the packs of now */
    if (status == ESDM_OK && strchr(name, '@') == NULL)
        status = esdm_container_shares(session, name, visit_sharing, ret_facts->shares, err);
    return status;
}

void
stat_facts_clear(stat_facts *facts)
{
    g_ptr_array_unref(facts->snapshots);
    g_ptr_array_unref(facts->former);
    g_ptr_array_unref(facts->shares);
}

/* ---- texts -------------------------------------------------------------------------------- */

char *
stat_shape_text(const uint64_t *shape, uint32_t rank)
{
    GString *text = g_string_new(NULL);
    for (uint32_t i = 0; i < rank; i++)
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i > 0 ? "x" : "", (guint64) shape[i]);
    return g_string_free(text, FALSE);
}
