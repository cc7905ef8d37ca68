/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* esdm-ref --pin: containers keep what their files had. */

#include "esdm-cp/esdm-cp.h"

#include <string.h>

typedef struct file_sums {
    uint64_t bytes, shared; /* of values; those that share its blocks */
} file_sums;

static void
count_file(const char *location, uint64_t bytes, bool shared, void *user)
{
    GHashTable *files = user;
    file_sums *sums = g_hash_table_lookup(files, location);
    if (sums == NULL) {
        sums = g_new0(file_sums, 1);
        g_hash_table_insert(files, g_strdup(location), sums);
    }
    sums->bytes += bytes;
    sums->shared += shared ? bytes : 0;
}

/* "cloned, 10 MiB", "copied into ESDM, 10 MiB", or both. Owned. */
static char *
describe(uint64_t bytes, uint64_t shared)
{
    g_autofree char *all = tool_bytes(bytes);
    g_autofree char *cloned = tool_bytes(shared);
    g_autofree char *copied = tool_bytes(bytes - shared);
    if (shared == 0)
        return g_strdup_printf("copied into ESDM, %s", all);
    return shared == bytes
               ? g_strdup_printf("cloned, %s", all)
               : g_strdup_printf("cloned, %s, and copied into ESDM, %s", cloned, copied);
}

static gint
by_text(gconstpointer a, gconstpointer b)
{
    return strcmp(a, b);
}

static void
print_files(GHashTable *files)
{
    GList *names = g_list_sort(g_hash_table_get_keys(files), by_text);
    for (GList *name = names; name != NULL; name = name->next) {
        g_autofree char *shown = tool_printable(name->data);
        const file_sums *sums = g_hash_table_lookup(files, name->data);
        g_autofree char *how = describe(sums->bytes, sums->shared);
        (void) printf("%s: %s\n", shown, how);
    }
    g_list_free(names);
}

esdm_status
cp_pin(esdm_session *session, const char *name, cp_result *result, esdm_error *err)
{
    g_autoptr(GHashTable) files = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    const esdm_pin_options options = {
        .file = count_file, .user = files, .copies = cp_wants.no_reflink};
    esdm_pin_result pinned = {0};
    esdm_status status = esdm_pin(session, name, &options, &pinned, err);
    if (status != ESDM_OK)
        return status;
    result->pinned = true;
    result->pinned_files = g_hash_table_size(files);
    result->pinned_bytes = pinned.bytes;
    result->pinned_shared = pinned.shared_bytes;
    if (cp_wants.verbose && !tool.json)
        print_files(files);
    return ESDM_OK;
}

json_t *
cp_pin_json(const cp_result *result)
{
    json_t *object = json_object();
    tool_json_set(object, "way",
                  json_string(result->pinned_shared == 0                      ? "copy"
                              : result->pinned_shared == result->pinned_bytes ? "reflink"
                                                                              : "both"));
    tool_json_set(object, "files", tool_json_u64(result->pinned_files));
    tool_json_set(object, "bytes", tool_json_u64(result->pinned_bytes));
    tool_json_set(object, "shared_bytes", tool_json_u64(result->pinned_shared));
    return object;
}

void
cp_pin_print(const cp_job *job, const cp_result *result)
{
    g_autofree char *name = tool_printable(job->target);
    g_autofree char *how = describe(result->pinned_bytes, result->pinned_shared);
    if (!result->pinned || result->status != ESDM_OK || cp_wants.quiet)
        return;
    if (result->pinned_files == 0)
        (void) printf("esdm://%s: needs no file\n", name);
    else
        (void) printf("esdm://%s: %" G_GUINT64_FORMAT " file%s %s\n", name,
                      (guint64) result->pinned_files, result->pinned_files == 1 ? "" : "s", how);
}

/* ---- which containers ----------------------------------------------------------------------- */

bool
cp_pin_only(char **arguments, int count)
{
    for (int i = 0; i < count; i++) {
        if (!g_str_has_prefix(arguments[i], "esdm:"))
            return false;
    }
    return cp_wants.pin && count > 0;
}

static bool
add_job(const esdm_container_info *info, void *user)
{
    GPtrArray *jobs = user;
    cp_job *job = g_new0(cp_job, 1);
    job->source = g_strdup(info->name);
    job->target = g_strdup(info->name);
    job->from_container = job->to_container = job->pin_only = true;
    g_ptr_array_add(jobs, job);
    return true;
}

static tool_exit
add_name(esdm_session *session, const char *argument, GPtrArray *jobs)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1] = "";
    const char *rest = tool_container(argument);
    esdm_error err = {0};
    guint before = jobs->len;
    esdm_status status = ESDM_OK;
    if (rest[strspn(rest, "/")] != '\0')
        status = esdm_container_normalise(rest, name, &err);
    if (status == ESDM_OK)
        status = esdm_container_list(session, name[0] != '\0' ? name : NULL, add_job, jobs, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    return jobs->len > before ? TOOL_OK : tool_absent(session, name);
}

tool_exit
cp_pin_plan(char **arguments, int count, GPtrArray *jobs)
{
    esdm_session *session = NULL;
    tool_exit result = tool_session(true, &session);
    for (int i = 0; i < count && result == TOOL_OK; i++)
        result = add_name(session, arguments[i], jobs);
    esdm_session_close(session);
    return result;
}
