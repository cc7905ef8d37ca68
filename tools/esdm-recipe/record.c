/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Runs a program, and notes what it reads and makes. */
#include "esdm-recipe/esdm-recipe.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/digest.h"

/* What decides what programs compute; values of the others are theirs alone. */
static const char *const usual_variables[] = {"PATH",
                                              "HOME",
                                              "LANG",
                                              "LC_ALL",
                                              "TZ",
                                              "OMP_NUM_THREADS",
                                              "PYTHONPATH",
                                              "LD_LIBRARY_PATH",
                                              "ESDM_NC_ROUTE",
                                              "ESDM_PLUGIN_PATH",
                                              NULL};
/* Global attributes that tell when a program ran (NCO's, and those of ACDD). */
static const char *const never_compared[] = {
    "history", "history_of_appended_files", "date_created", "date_modified", "creation_date", NULL};

/* Names with numbers or texts, in the order in which they came. */
typedef struct containers {
    GHashTable *read;    /* name → snapshot, as text */
    GHashTable *written; /* the same */
} containers;

/* ---- containers ----------------------------------------------------------------------------- */

static void
note_read(containers *c, const char *name, const char *snapshot)
{
    if (!g_hash_table_contains(c->written, name) && !g_hash_table_contains(c->read, name))
        g_hash_table_insert(c->read, g_strdup(name), g_strdup(snapshot));
}

static void
note_line(containers *c, char **parts)
{
    const char *what = parts[0];
    if (g_str_equal(what, "read") || g_str_equal(what, "open")) {
        note_read(c, parts[1], parts[2]);
    } else if (g_str_equal(what, "write")) {
        g_hash_table_replace(c->written, g_strdup(parts[1]), g_strdup(parts[2]));
    } else if (g_str_equal(what, "remove")) {
        (void) g_hash_table_remove(c->written, parts[1]);
    } else if (g_str_equal(what, "rename")) {
        if (g_hash_table_remove(c->written, parts[1]))
            g_hash_table_replace(c->written, g_strdup(parts[2]), g_strdup("0"));
    }
}

static tool_exit
load_containers(containers *c, const char *path)
{
    g_autofree char *text = NULL;
    g_autoptr(GError) error = NULL;
    if (!g_file_get_contents(path, &text, NULL, &error)) {
        tool_error("%s", error->message);
        return TOOL_FAILED;
    }
    c->read = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    c->written = g_hash_table_new_full(g_str_hash, g_str_equal, g_free, g_free);
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) parts = g_strsplit(*line, "\t", 3);
        if (g_strv_length(parts) == 3)
            note_line(c, parts);
    }
    return TOOL_OK;
}

static GList *
sorted_names(GHashTable *table)
{
    return g_list_sort(g_hash_table_get_keys(table), (GCompareFunc) strcmp);
}

static bool
is_version(esdm_session *session, const char *name, const char *uuid, uint64_t snapshot)
{
    esdm_container *container = NULL;
    if (esdm_container_open(session, name, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                            NULL) != ESDM_OK)
        return false;
    bool same = g_strcmp0(esdm_container_uuid(container), uuid) == 0 &&
                esdm_container_snapshot(container) == snapshot;
    esdm_container_discard(container);
    return same;
}

/* The name under which a version can be read now: another container may have its own since. */
static char *
name_of_version(esdm_session *session, const char *name, char **version)
{
    uint64_t snapshot = g_ascii_strtoull(version[0], NULL, 10);
    gint64 seconds = g_ascii_strtoll(version[2], NULL, 10);
    const char *fraction = strchr(version[2], '.');
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc(seconds);
    g_autofree char *text = g_date_time_format(time, "%Y-%m-%dT%H:%M:%S");
    char *found[] = {g_strdup(name), g_strdup_printf("%s@%s", name, version[0]),
                     g_strdup_printf("%s@%s%sZ", name, text, fraction != NULL ? fraction : "")};
    char *result = NULL;
    for (gsize i = 0; i < G_N_ELEMENTS(found); i++) {
        /* A snapshot's own name comes before that of the newest, which does not stay. */
        gsize k = (i + 1) % G_N_ELEMENTS(found);
        if (result == NULL && is_version(session, found[k], version[1], snapshot))
            result = g_strdup(found[k]);
    }
    for (gsize i = 0; i < G_N_ELEMENTS(found); i++)
        g_free(found[i]);
    return result;
}

static tool_exit
add_container(esdm_session *session, const char *name, const char *text, json_t *inputs)
{
    char digest[ESDM_DIGEST_BYTES];
    g_auto(GStrv) version = g_strsplit(text, " ", 3);
    bool says = strchr(name, '@') != NULL || name[0] == '?' || g_strv_length(version) != 3;
    g_autofree char *then = says ? g_strdup(name) : name_of_version(session, name, version);
    if (then == NULL) {
        tool_error("the program changed or replaced its input '%s', and the snapshot %s that it "
                   "read is not kept: the run cannot be repeated (\"history\" of the site)",
                   name, version[0]);
        return TOOL_REFUSED;
    }
    tool_exit result = recipe_digest(session, then, digest);
    if (result != TOOL_OK)
        return result;
    json_t *object = json_object();
    tool_json_set(object, "container", tool_json_text(name));
    tool_json_set(object, "as", tool_json_text(then));
    tool_json_set(object, "digest", tool_json_text(digest));
    tool_json_append(inputs, object);
    return TOOL_OK;
}

static tool_exit
add_containers(esdm_session *session, const containers *c, json_t *inputs)
{
    g_autoptr(GList) names = sorted_names(c->read);
    tool_exit result = TOOL_OK;
    for (const GList *one = names; one != NULL && result == TOOL_OK; one = one->next)
        result = add_container(session, one->data, g_hash_table_lookup(c->read, one->data), inputs);
    return result;
}

/* ---- recipes -------------------------------------------------------------------------------- */

static json_t *
environment_json(char **variables)
{
    json_t *object = json_object();
    for (const char *const *name = usual_variables; *name != NULL; name++) {
        const char *value = g_getenv(*name);
        if (value != NULL)
            tool_json_set(object, *name, tool_json_text(value));
    }
    for (char **name = variables; name != NULL && *name != NULL; name++) {
        const char *value = g_getenv(*name);
        if (value != NULL)
            tool_json_set(object, *name, tool_json_text(value));
    }
    return object;
}

static json_t *
texts_json(char **texts)
{
    json_t *list = json_array();
    for (char **text = texts; text != NULL && *text != NULL; text++)
        tool_json_append(list, tool_json_text(*text));
    return list;
}

static json_t *
ignored_json(char **ignored)
{
    json_t *list = texts_json(ignored);
    for (const char *const *name = never_compared; *name != NULL; name++)
        tool_json_append(list, json_string(*name));
    return list;
}

static tool_exit
add_program(json_t *inputs, const char *program)
{
    g_autofree char *path = g_find_program_in_path(program);
    char *real = path != NULL ? realpath(path, NULL) : NULL;
    tool_exit result = real != NULL ? recipe_add_file(inputs, real) : TOOL_OK;
    free(real);
    return result;
}

/* Each tolerance is of some variable of what was made. */
static tool_exit
check_tolerances(esdm_session *session, const containers *c, const json_t *tolerances)
{
    g_autoptr(GList) names = sorted_names(c->written);
    size_t count = json_array_size(tolerances);
    g_autofree bool *used = g_new0(bool, count + 1);
    tool_exit result = TOOL_OK;
    for (const GList *one = names; one != NULL && result == TOOL_OK; one = one->next)
        result = recipe_tolerances_fit(session, one->data, tolerances, used);
    for (size_t i = 0; i < count && result == TOOL_OK; i++) {
        if (used[i])
            continue;
        tool_error("--tolerance '%s': nothing that was made has such a variable; nothing is "
                   "recorded",
                   json_string_value(json_array_get(tolerances, i)));
        result = TOOL_NOT_FOUND;
    }
    return result;
}

/* One for each container that was made. */
static tool_exit
keep_recipes(esdm_session *session, const containers *c, json_t *recipe)
{
    g_autoptr(GList) names = sorted_names(c->written);
    json_t *list = json_array();
    tool_exit result = TOOL_OK;
    for (const GList *one = names; one != NULL && result == TOOL_OK; one = one->next) {
        char digest[ESDM_DIGEST_BYTES];
        const char *name = one->data;
        result = recipe_digest(session, name, digest);
        if (result != TOOL_OK)
            break;
        tool_json_set(recipe, "output", tool_json_text(name));
        tool_json_set(recipe, "digest", tool_json_text(digest));
        result = recipe_keep(session, name, recipe);
        if (result == TOOL_OK && !tool.json)
            (void) printf("recorded: %s is made of %zu inputs (esdm-recipe show %s)\n", name,
                          json_array_size(json_object_get(recipe, "inputs")), name);
        tool_json_append(list, tool_json_text(name));
    }
    if (tool.json && result == TOOL_OK)
        tool_json_print_list("recorded", list);
    else
        json_decref(list);
    return result;
}

static tool_exit
make_recipe(const recipe_run *run, char **program, const recipe_wishes *w, json_t *image,
            const char *notes)
{
    containers c = {NULL, NULL};
    esdm_session *session = NULL;
    g_autofree char *directory = g_get_current_dir();
    g_autoptr(GDateTime) now = g_date_time_new_now_utc();
    g_autofree char *when = g_date_time_format_iso8601(now);
    json_t *recipe = json_object();
    json_t *inputs = json_array();
    json_t *written = json_array();
    tool_json_set(recipe, "version",
                  json_integer(image != NULL ? RECIPE_VERSION_IMAGE : RECIPE_VERSION));
    tool_json_set(recipe, "program", texts_json(program));
    tool_json_set(recipe, "directory", tool_json_text(directory));
    tool_json_set(recipe, "environment", environment_json(w->variables));
    tool_json_set(recipe, "recorded", tool_json_text(when));
    tool_json_set(recipe, "seconds", json_real(run->seconds));
    tool_json_set(recipe, "inputs", inputs);
    tool_json_set(recipe, "files_written", written);
    tool_json_set(recipe, "ignored_attributes", ignored_json(w->ignored));
    if (w->tolerances != NULL)
        tool_json_set(recipe, "tolerances", texts_json(w->tolerances));
    if (image != NULL)
        tool_json_set(recipe, "image", json_incref(image));
    if (w->visible != NULL)
        tool_json_set(recipe, "visible", texts_json(w->visible));
    tool_exit result = load_containers(&c, notes);
    if (result == TOOL_OK && g_hash_table_size(c.written) == 0) {
        tool_error("the program has made no container: there is nothing to record");
        result = TOOL_NOT_FOUND;
    }
    if (result == TOOL_OK && image == NULL)
        result = add_program(inputs, program[0]);
    if (result == TOOL_OK)
        result = recipe_add_files(run, inputs, written);
    if (result == TOOL_OK)
        result = tool_session(false, &session);
    if (result == TOOL_OK)
        result = check_tolerances(session, &c, json_object_get(recipe, "tolerances"));
    if (result == TOOL_OK)
        result = add_containers(session, &c, inputs);
    if (result == TOOL_OK)
        result = keep_recipes(session, &c, recipe);
    esdm_session_close(session);
    json_decref(recipe);
    return result;
}

/* Paths as they are inside and outside; owned; NULL: one is not there, which is told. */
static char **
visible_paths(char **visible)
{
    GPtrArray *list = g_ptr_array_new_with_free_func(g_free);
    for (char **one = visible; one != NULL && *one != NULL; one++) {
        char *path = g_canonicalize_filename(*one, NULL);
        g_ptr_array_add(list, path);
        if (!g_file_test(path, G_FILE_TEST_EXISTS)) {
            tool_error("--visible '%s': there is no such file or folder", *one);
            g_ptr_array_unref(list);
            return NULL;
        }
    }
    g_ptr_array_add(list, NULL);
    return (char **) g_ptr_array_free(list, FALSE);
}

static tool_exit
record_in(recipe_run *run, char **program, char **environment, const recipe_wishes *wishes,
          json_t *image)
{
#ifdef RECIPE_WATCH
    const bool records = true;
#else
    const bool records = false;
#endif
    recipe_box box = {.image = image, .writes_there = true};
    recipe_limits limits = {.box = image != NULL ? &box : NULL};
    g_autoptr(GPtrArray) folders = NULL;
    g_autoptr(GPtrArray) visible = g_ptr_array_new();
    g_autofree char *directory = g_get_current_dir();
    g_autofree char *config = recipe_site();
    tool_exit result = image != NULL ? recipe_sandbox(run, &folders) : TOOL_OK;
    for (char **one = wishes->visible; one != NULL && *one != NULL; one++)
        g_ptr_array_add(visible, *one);
    box.directory = directory;
    box.config = config;
    box.visible = visible;
    box.folders = folders;
    return result == TOOL_OK
               ? recipe_execute(run, program, environment, NULL, records, true, limits)
               : result;
}

static tool_exit
record(recipe_run *run, char **program, const recipe_wishes *wishes, json_t *image)
{
    tool_exit result = TOOL_OK;
    g_autofree char *notes = g_build_filename(run->folder, "containers", NULL);
    g_auto(GStrv) environment = g_environ_setenv(g_get_environ(), "ESDM_NC_RECORD", notes, TRUE);
    g_autofree char *config = recipe_site();
    if (!g_file_set_contents(notes, "", 0, NULL))
        result = TOOL_FAILED;
    if (config != NULL && (tool.config != NULL || image != NULL))
        environment = g_environ_setenv(environment, "ESDM_CONFIG", config, TRUE);
    if (result == TOOL_OK)
        result = record_in(run, program, environment, wishes, image);
    if (result == TOOL_OK && run->status != 0) {
        tool_error("%s ended with status %d: nothing is recorded", program[0], run->status);
        result = TOOL_FAILED;
    }
    return result == TOOL_OK ? make_recipe(run, program, wishes, image, notes) : result;
}

tool_exit
recipe_record(char **program, const recipe_wishes *wishes)
{
    recipe_run run;
    tool_exit result = TOOL_OK;
    recipe_wishes w = *wishes;
    g_auto(GStrv) visible = wishes->visible != NULL ? visible_paths(wishes->visible) : NULL;
    if (wishes->visible != NULL && visible == NULL)
        return TOOL_NOT_FOUND;
    w.visible = visible;
    if (wishes->image != NULL && recipe_image_is_machine(wishes->image))
        return tool_usage("image '%s': it is the root of this machine, which changes all the time: "
                          "name a root file system in a folder of its own, or a .sif file",
                          wishes->image);
    json_t *image = wishes->image != NULL ? recipe_image(wishes->image, &result) : NULL;
    if (result == TOOL_OK)
        result = recipe_folder(&run);
    if (result == TOOL_OK) {
        result = record(&run, program, &w, image);
        recipe_run_clear(&run);
    }
    json_decref(image);
    return result;
}
