/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* --fit SIZE: esdm-advise proposes accuracies from samples, the copies are made, and what they take
 * is looked up; as long as that is too much they are made again with less. */

#include "esdm-cp/esdm-cp.h"

#include <stdio.h>
#include <string.h>

/* Times that copies are made. */
#define ROUNDS 4
/* What is asked for less in the next round than the last one was off. */
#define CAREFUL 0.98
/* With less than this share of the size numbers could be more accurate. */
#define ENOUGH 0.9

/* ---- the proposal ------------------------------------------------------------------------- */

/* What esdm-advise prints; owned; NULL after an error that was told. */
static json_t *
ask(char **sources, int count, uint64_t bytes)
{
    g_autoptr(GPtrArray) list = g_ptr_array_new_with_free_func(g_free);
    g_autofree char *out = NULL;
    g_autoptr(GError) problem = NULL;
    int status = 0;
    g_ptr_array_add(list, tool_beside("esdm-advise"));
    g_ptr_array_add(list, g_strdup("--json"));
    g_ptr_array_add(list, g_strdup_printf("--fit=%" G_GUINT64_FORMAT, (guint64) bytes));
    if (tool.config != NULL)
        g_ptr_array_add(list, g_strdup_printf("--config=%s", tool.config));
    if (cp_wants.timeout_s > 0)
        g_ptr_array_add(list, g_strdup_printf("--timeout=%g", cp_wants.timeout_s));
    g_ptr_array_add(list, g_strdup("--"));
    for (int i = 0; i < count; i++)
        g_ptr_array_add(list, g_strdup(sources[i]));
    g_ptr_array_add(list, NULL);
    if (!g_spawn_sync(NULL, (char **) list->pdata, NULL,
                      G_SPAWN_SEARCH_PATH | G_SPAWN_CHILD_INHERITS_STDIN, NULL, NULL, &out, NULL,
                      &status, &problem)) {
        tool_error("--fit: cannot start %s: %s", (char *) list->pdata[0], problem->message);
        return NULL;
    }
    if (!g_spawn_check_wait_status(status, NULL))
        return NULL; /* it said why */
    json_t *told = tool_json_read(out, -1, 0, NULL);
    if (told == NULL)
        tool_error("--fit: esdm-advise does not tell what it found");
    return told;
}

/* Makes what it says the accuracies of the copies. Without loss is what stands for all.
 * @return whether something is rounded. */
static bool
take(const json_t *told)
{
    size_t i;
    json_t *one;
    GPtrArray *list = g_ptr_array_new();
    g_ptr_array_add(list, g_strdup("*: mode=archive"));
    json_array_foreach(json_object_get(json_object_get(told, "fit"), "variables"), i, one)
    {
        const char *name = json_string_value(json_object_get(one, "name"));
        const char *accuracy = json_string_value(json_object_get(one, "accuracy"));
        if (name == NULL || accuracy == NULL || !json_is_true(json_object_get(one, "rounded")) ||
            strpbrk(name, ":*?") != NULL)
            continue;
        g_ptr_array_add(list, g_strdup_printf("%s: %s", name, accuracy));
    }
    g_ptr_array_add(list, NULL);
    g_strfreev(cp_wants.accuracy);
    const bool rounds = list->len > 2;
    cp_wants.accuracy = (char **) g_ptr_array_free(list, FALSE);
    return rounds;
}

/* ---- what came out ------------------------------------------------------------------------ */

/* Adds the stored bytes of variables up, by name. */
static bool
add_bytes(const esdm_fragment_info *info, void *user)
{
    *(uint64_t *) user += info->stored_bytes;
    return true;
}

static esdm_status
count_group(esdm_group *group, GHashTable *bytes, uint64_t *total, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (size_t i = 0; i < esdm_group_dataset_count(group) && status == ESDM_OK; i++) {
        esdm_dataset *dataset = esdm_group_dataset_at(group, i);
        uint64_t own = 0;
        status = esdm_dataset_fragments(dataset, add_bytes, &own, err);
        uint64_t *sum = g_hash_table_lookup(bytes, esdm_dataset_name(dataset));
        if (sum == NULL) {
            sum = g_new0(uint64_t, 1);
            g_hash_table_insert(bytes, g_strdup(esdm_dataset_name(dataset)), sum);
        }
        *sum += own;
        *total += own;
    }
    for (size_t i = 0; i < esdm_group_count(group) && status == ESDM_OK; i++)
        status = count_group(esdm_group_at(group, i), bytes, total, err);
    return status;
}

static tool_exit
count(const GPtrArray *jobs, GHashTable *bytes, uint64_t *ret_total)
{
    esdm_session *session = NULL;
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    tool_exit result = tool_session(true, &session);
    if (result != TOOL_OK)
        return result;
    *ret_total = 0;
    for (guint i = 0; i < jobs->len && status == ESDM_OK; i++) {
        const cp_job *job = g_ptr_array_index(jobs, i);
        esdm_container *container = NULL;
        status = esdm_container_open(session, job->target, ESDM_OPEN_READ, 0, &container, &err);
        if (status == ESDM_OK)
            status = count_group(esdm_container_root(container), bytes, ret_total, &err);
        esdm_container_discard(container);
    }
    esdm_session_close(session);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static void
print(const json_t *told, GHashTable *bytes, uint64_t total, uint64_t wanted, int rounds)
{
    size_t i;
    json_t *one;
    json_t *variables = json_object_get(json_object_get(told, "fit"), "variables");
    json_array_foreach(variables, i, one)
    {
        const uint64_t *own =
            g_hash_table_lookup(bytes, json_string_value(json_object_get(one, "name")));
        tool_json_set(one, "bytes", tool_json_u64(own != NULL ? *own : 0));
    }
    if (tool.json) {
        json_t *root = json_object(), *fit = json_object();
        tool_json_set(fit, "wanted_bytes", tool_json_u64(wanted));
        tool_json_set(fit, "bytes", tool_json_u64(total));
        tool_json_set(fit, "rounds", tool_json_u64((uint64_t) rounds));
        tool_json_set(fit, "variables", json_incref(variables));
        tool_json_set(root, "fit", fit);
        tool_json_print(root);
        return;
    }
    if (cp_wants.quiet)
        return;
    g_autofree char *all = tool_bytes(total);
    g_autofree char *size = tool_bytes(wanted);
    json_array_foreach(variables, i, one)
    {
        g_autofree char *name = tool_printable(json_string_value(json_object_get(one, "name")));
        g_autofree char *own =
            tool_bytes((uint64_t) json_integer_value(json_object_get(one, "bytes")));
        (void) printf("%-20s %10s  %s\n", name, own,
                      json_string_value(json_object_get(one, "accuracy")));
    }
    (void) printf("%s of %s\n", all, size);
}

/* ---- the rounds --------------------------------------------------------------------------- */

const char *
cp_fit_wrong(const GPtrArray *jobs)
{
    if (cp_wants.fit == NULL)
        return NULL;
    if (cp_wants.accuracy != NULL || cp_wants.reference || cp_wants.dry_run ||
        cp_wants.reflink != CP_REFLINK_NEVER || cp_wants.skip_existing)
        return "--fit chooses the accuracy of copies: it goes without --accuracy, --reflink, "
               "--reference, --skip-existing and --dry-run (esdm-advise --fit only tells)";
    for (guint i = 0; i < jobs->len; i++)
        if (!((const cp_job *) g_ptr_array_index(jobs, i))->to_container)
            return "--fit is for containers (esdm://NAME)";
    return NULL;
}

tool_exit
cp_fit(char **sources, int nsources, const GPtrArray *jobs, tool_exit (*run)(const GPtrArray *jobs))
{
    uint64_t wanted = 0, total = 0;
    tool_exit result = TOOL_OK;
    if (!tool_parse_bytes(cp_wants.fit, &wanted))
        return tool_usage("--fit is '%s'; it takes a size such as 500MB, 2 TB or 1.5GiB",
                          cp_wants.fit);
    double asked = (double) wanted;
    double fits = 0; /* what was asked for when the copies fitted */
    for (int round = 1; round <= ROUNDS; round++) {
        asked = round == ROUNDS && fits > 0 ? fits : asked;
        g_autoptr(GHashTable) bytes =
            g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
        json_t *told = ask(sources, nsources, (uint64_t) asked);
        if (told == NULL)
            return TOOL_FAILED;
        const bool rounds = take(told);
        result = run(jobs);
        if (result == TOOL_OK)
            result = count(jobs, bytes, &total);
        const bool fit = result == TOOL_OK && total <= wanted;
        const bool done =
            fit && (!rounds || round + 1 >= ROUNDS || (double) total >= ENOUGH * (double) wanted);
        if (done)
            print(told, bytes, total, wanted, round);
        json_decref(told);
        if (result != TOOL_OK || done)
            return result;
        fits = fit ? asked : fits;
        asked *= (double) wanted / (double) total * CAREFUL;
        cp_wants.force = TRUE; /* what was just made */
    }
    g_autofree char *all = tool_bytes(total);
    tool_error("--fit %s: the copies take %s, also when they are made for the %dth time; they are "
               "there",
               cp_wants.fit, all, ROUNDS);
    return TOOL_FAILED;
}
