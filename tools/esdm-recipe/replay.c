/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Runs a recipe again, apart from everything else, and compares what it makes. */
#include "common/scratch.h"
#include "esdm-recipe/esdm-recipe.h"

#include <glib/gstdio.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "esdm/digest.h"

/* A run may take that many times as long as the recorded one, and some seconds. */
#define LIMIT_TIMES  20
#define LIMIT_MORE_S 60
/* Recomputations that are kept in a recipe, the newest ones. */
#define ACCEPTED_MOST 16

json_t *
recipe_of(esdm_session *session, const char *name, tool_exit *ret_exit)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err);
    *ret_exit = st == ESDM_OK       ? TOOL_OK
                : st == ESDM_ENOENT ? tool_absent(session, name)
                                    : tool_fail(st, &err);
    if (st != ESDM_OK)
        return NULL;
    const char *text = esdm_container_hint(container, RECIPE_HINT);
    json_t *recipe = text != NULL ? tool_json_read(text, -1, 0, NULL) : NULL;
    json_int_t version = json_integer_value(json_object_get(recipe, "version"));
    if (text == NULL) {
        tool_error("'%s' has no recipe: 'esdm-recipe record -- PROGRAM …' makes one", name);
        *ret_exit = TOOL_NOT_FOUND;
    } else if ((version != RECIPE_VERSION && version != RECIPE_VERSION_IMAGE) ||
               !json_is_array(json_object_get(recipe, "program")) ||
               !json_is_string(json_object_get(recipe, "output")) ||
               !json_is_string(json_object_get(recipe, "digest"))) {
        tool_error("the recipe of '%s' is damaged, or of a newer ESDM", name);
        *ret_exit = TOOL_DAMAGED;
        json_decref(recipe);
        recipe = NULL;
    }
    esdm_container_discard(container);
    return recipe;
}

tool_exit
recipe_keep(esdm_session *session, const char *name, const json_t *recipe)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    g_autofree char *text = json_dumps(recipe, JSON_COMPACT);
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &container, &err);
    if (st == ESDM_OK)
        st = esdm_container_set_hint(container, RECIPE_HINT, text, &err);
    if (st == ESDM_OK)
        st = esdm_container_commit(container, "esdm-recipe: recorded", &err);
    if (container != NULL)
        esdm_container_discard(container);
    return st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
}

/* ---- recomputations that count ----------------------------------------------------------------
 */

json_t *
recipe_accepted(const json_t *recipe, const char *digest)
{
    size_t i;
    json_t *one;
    json_array_foreach(json_object_get(recipe, "accepted"), i, one)
    {
        if (g_strcmp0(json_string_value(json_object_get(one, "digest")), digest) == 0)
            return one;
    }
    return NULL;
}

bool
recipe_knows(const json_t *recipe, const char *digest)
{
    return g_strcmp0(digest, json_string_value(json_object_get(recipe, "digest"))) == 0 ||
           recipe_accepted(recipe, digest) != NULL;
}

tool_exit
recipe_accept(esdm_session *session, const char *name, json_t *recipe, const recipe_replay *r)
{
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *when = g_date_time_format_iso8601(now);
    json_t *list = json_object_get(recipe, "accepted");
    json_t *one = json_object();
    if (list == NULL) {
        list = json_array();
        tool_json_set(recipe, "accepted", list);
    }
    tool_json_set(one, "digest", tool_json_text(r->digest));
    tool_json_set(one, "when", tool_json_text(when));
    tool_json_set(one, "machine", tool_json_text(g_get_host_name()));
    tool_json_set(one, "differences", json_incref(r->differences));
    tool_json_append(list, one);
    while (json_array_size(list) > ACCEPTED_MOST)
        (void) json_array_remove(list, 0);
    return recipe_keep(session, name, recipe);
}

/* ---- running -------------------------------------------------------------------------------- */

/* How targets and stores are reached: of whoever runs the recipe, and in none. */
static const char *const own_variables[] = {"AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY",
                                            "AWS_SESSION_TOKEN", "PGPASSWORD",
                                            "PGPASSFILE",        NULL};

char *
recipe_site(void)
{
    char *found = NULL;
    if (tool.config == NULL && esdm_site_find(&found, NULL) != ESDM_OK)
        return NULL;
    const char *path = tool.config != NULL ? tool.config : found;
    char *absolute = path != NULL ? g_canonicalize_filename(path, NULL) : NULL;
    free(found);
    return absolute;
}

static char **
environment_of(const json_t *recipe, const recipe_run *run, const char *replay_path)
{
    const char *name;
    json_t *value;
    g_autofree char *scratch = g_build_filename(run->folder, "tmp", NULL);
    g_autofree char *site = recipe_site();
    char **list = g_environ_setenv(g_new0(char *, 1), "ESDM_MONITOR", "off", TRUE);
    (void) g_mkdir(scratch, 0700);
    json_object_foreach(json_object_get(recipe, "environment"), name, value)
    {
        if (json_is_string(value))
            list = g_environ_setenv(list, name, json_string_value(value), TRUE);
    }
    for (const char *const *own = own_variables; *own != NULL; own++) {
        if (g_getenv(*own) != NULL)
            list = g_environ_setenv(list, *own, g_getenv(*own), FALSE);
    }
    list = g_environ_setenv(list, "TMPDIR", scratch, TRUE);
    list = g_environ_setenv(list, "XDG_CACHE_HOME", scratch, TRUE);
    list = g_environ_setenv(list, "ESDM_NC_REPLAY", replay_path, TRUE);
    if (site != NULL)
        list = g_environ_setenv(list, "ESDM_CONFIG", site, TRUE);
    else /* the default site of whoever runs the recipe */
        list = g_environ_setenv(list, "XDG_DATA_HOME", g_get_user_data_dir(), TRUE);
    return list;
}

static char **
program_of(const json_t *recipe)
{
    size_t i;
    const json_t *word;
    GPtrArray *list = g_ptr_array_new();
    json_array_foreach(json_object_get(recipe, "program"), i, word)
        g_ptr_array_add(list, g_strdup(json_string_value(word)));
    g_ptr_array_add(list, NULL);
    return (char **) g_ptr_array_free(list, FALSE);
}

/* Texts are borrowed. */
static GPtrArray *
visible_of(const json_t *recipe)
{
    size_t i;
    const json_t *one;
    GPtrArray *list = g_ptr_array_new();
    json_array_foreach(json_object_get(recipe, "visible"), i, one)
    {
        if (json_is_string(one))
            g_ptr_array_add(list, (char *) json_string_value(one));
    }
    return list;
}

static tool_exit
execute(const json_t *recipe, const char *prefix, const char *pins, bool bounded,
        double *ret_seconds)
{
    recipe_run run;
    g_autoptr(GPtrArray) folders = NULL;
    bool in_image = json_object_get(recipe, "image") != NULL;
    tool_exit result = recipe_folder(&run);
    if (result != TOOL_OK)
        return result;
    g_autofree char *path = g_build_filename(run.folder, "replay", NULL);
    g_autofree char *text = g_strdup_printf("%s\n%s", prefix, pins);
    g_auto(GStrv) environment = environment_of(recipe, &run, path);
    g_auto(GStrv) program = program_of(recipe);
    if (!g_file_set_contents(path, text, -1, NULL) || program[0] == NULL)
        result = TOOL_FAILED;
    if (result == TOOL_OK)
        result = recipe_sandbox(&run, &folders);
    if (result == TOOL_OK && bounded && !in_image && !recipe_sandbox_exists())
        tool_error("note: this kernel has no Landlock: the program may write wherever you may");
    const json_t *image = json_object_get(recipe, "image");
    g_autofree char *site = recipe_site();
    g_autoptr(GPtrArray) visible = visible_of(recipe);
    const recipe_box box = {.image = image,
                            .directory = json_string_value(json_object_get(recipe, "directory")),
                            .writes_there = !bounded,
                            .config = site,
                            .visible = visible,
                            .inputs = json_object_get(recipe, "inputs"),
                            .folders = folders};
    const recipe_limits limits = {
        json_number_value(json_object_get(recipe, "seconds")) * LIMIT_TIMES + LIMIT_MORE_S,
        bounded ? folders : NULL, image != NULL ? &box : NULL};
    if (result == TOOL_OK)
        result = recipe_execute(&run, program, environment,
                                json_string_value(json_object_get(recipe, "directory")), false,
                                false, limits);
    *ret_seconds = run.seconds;
    if (result == TOOL_OK && run.status != 0) {
        tool_error("the recipe fails: %s ended with status %d%s%s", program[0], run.status,
                   run.log[0] != '\0' ? ":\n" : "", run.log);
        if (bounded && (in_image || recipe_sandbox_exists()))
            tool_error("note: it may write to the site and below $TMPDIR alone; --force runs it "
                       "without that");
        result = TOOL_FAILED;
    }
    recipe_run_clear(&run);
    return result;
}

/* Attributes that tell when and how a program ran are as they were. */
static esdm_status
copy_ignored(esdm_container *from, esdm_container *to, const json_t *recipe, esdm_error *err)
{
    size_t i;
    const json_t *name;
    esdm_attribute a;
    esdm_attributes *source = esdm_group_attributes(esdm_container_root(from));
    esdm_attributes *target = esdm_group_attributes(esdm_container_root(to));
    esdm_status st = ESDM_OK;
    json_array_foreach(json_object_get(recipe, "ignored_attributes"), i, name)
    {
        const char *text = json_string_value(name);
        if (st != ESDM_OK || text == NULL)
            continue;
        if (esdm_attribute_find(source, text, &a, NULL))
            st = esdm_attribute_set(target, text, a.type, a.count, a.values, err);
        else if (esdm_attribute_find(target, text, &a, NULL))
            st = esdm_attribute_remove(target, text, err);
    }
    return st;
}

static tool_exit
compare(esdm_session *session, const char *name, const json_t *recipe, recipe_replay *r)
{
    esdm_error err = {0};
    esdm_container *original = NULL;
    esdm_container *made = NULL;
    esdm_status st =
        esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &original, &err);
    if (st == ESDM_OK)
        st = esdm_container_open(session, r->made, ESDM_OPEN_WRITE, ESDM_SNAPSHOT_LATEST, &made,
                                 &err);
    if (st == ESDM_OK)
        st = copy_ignored(original, made, recipe, &err);
    if (st == ESDM_OK)
        st = esdm_container_commit(made, "esdm-recipe: attributes that are not compared", &err);
    if (st == ESDM_OK)
        st = esdm_container_digest(made, 0, r->digest, &err);
    if (made != NULL)
        esdm_container_discard(made);
    if (original != NULL)
        esdm_container_discard(original);
    if (st == ESDM_ENOENT && made == NULL) {
        tool_error("the recipe made no container '%s'",
                   json_string_value(json_object_get(recipe, "output")));
        return TOOL_FAILED;
    }
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    r->same = g_strcmp0(r->digest, json_string_value(json_object_get(recipe, "digest"))) == 0;
    r->accepted = !r->same && recipe_knows(recipe, r->digest);
    return TOOL_OK;
}

/* Only what was recorded is compared with: tolerances of tolerances would add up. */
static tool_exit
compare_values(esdm_session *session, const char *name, const json_t *recipe, recipe_replay *r)
{
    char digest[ESDM_DIGEST_BYTES];
    if (recipe_is_right(r) || json_array_size(json_object_get(recipe, "tolerances")) == 0 ||
        recipe_is_dropped(session, name))
        return TOOL_OK;
    tool_exit result = recipe_digest(session, name, digest);
    if (result != TOOL_OK ||
        g_strcmp0(digest, json_string_value(json_object_get(recipe, "digest"))) != 0)
        return result;
    return recipe_compare_values(session, name, recipe, r);
}

tool_exit
recipe_run_again(esdm_session *session, const char *name, const json_t *recipe, bool force,
                 recipe_replay *ret)
{
    g_autoptr(GString) pins = g_string_new(NULL);
    const json_t *written = json_object_get(recipe, "files_written");
    *ret = (recipe_replay){.same = false};
    if (json_array_size(written) > 0 && !force) {
        tool_error("the program also writes plain files, such as '%s', which would be written "
                   "again: --force runs it all the same",
                   json_string_value(json_array_get(written, 0)));
        return TOOL_REFUSED;
    }
    tool_exit result = recipe_check_inputs(session, recipe, pins);
    if (result != TOOL_OK)
        return result;
    esdm_error err = {0};
    guint left = 0;
    if (tool_scratch_sweep(session, true, &left, &err) != ESDM_OK)
        tool_error("what a recipe that was ended has left is not removed: %s", err.message);
    ret->prefix = tool_scratch_folder();
    ret->made =
        g_strdup_printf("%s/%s", ret->prefix, json_string_value(json_object_get(recipe, "output")));
    result = execute(recipe, ret->prefix, pins->str, !force, &ret->seconds);
    if (result == TOOL_OK)
        result = compare(session, name, recipe, ret);
    return result == TOOL_OK ? compare_values(session, name, recipe, ret) : result;
}

bool
recipe_take_name(const esdm_container_info *info, void *user)
{
    g_ptr_array_add(user, g_strdup(info->name));
    return true;
}

tool_exit
recipe_replay_keep(esdm_session *session, recipe_replay *r)
{
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_status st = esdm_container_list(session, r->prefix, recipe_take_name, names, &err);
    for (guint i = 0; i < names->len && st == ESDM_OK; i++) {
        const char *name = names->pdata[i];
        st = esdm_container_move(session, name, name + 1, false, &err);
    }
    if (st != ESDM_OK)
        return tool_fail(st, &err);
    memmove(r->prefix, r->prefix + 1, strlen(r->prefix));
    memmove(r->made, r->made + 1, strlen(r->made));
    return TOOL_OK;
}

void
recipe_replay_clear(esdm_session *session, recipe_replay *r)
{
    esdm_error err = {0};
    g_autoptr(GPtrArray) names = g_ptr_array_new_with_free_func(g_free);
    esdm_status st = r->prefix != NULL
                         ? esdm_container_list(session, r->prefix, recipe_take_name, names, &err)
                         : ESDM_OK;
    for (guint i = 0; i < names->len && st == ESDM_OK; i++)
        st = esdm_container_erase(session, names->pdata[i], &err);
    if (st != ESDM_OK)
        (void) tool_fail(st, &err);
    g_clear_pointer(&r->prefix, g_free);
    g_clear_pointer(&r->made, g_free);
    g_clear_pointer(&r->differences, json_decref);
}
