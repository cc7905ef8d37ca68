/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-compact: stores anew what lies in many small or badly shaped fragments. */

#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm/shapes.h"
#include "esdm/upkeep.h"

static const tool_help help = {
    .name = "esdm-compact",
    .arguments = "CONTAINER…",
    .description =
        "Stores parts of containers anew that lie in many more fragments than they would if\n"
        "they were written now: after many small or overlapping writes, or when fragments\n"
        "cut the chunks of a variable. --chunk states other chunks before that, and\n"
        "--for-readers those with which the programs would need least that have read such\n"
        "containers: time series, maps or both, as the site has recorded it. With --dry-run\n"
        "it prints the command for a second shape, too, where the site allows two; variables\n"
        "that have a second shape are left as they are.\n"
        "\n"
        "Programs may go on reading and writing: what they write is never hidden. No value\n"
        "changes. Each step (--step, 4 GiB) makes a snapshot; older ones have the fragments\n"
        "that they had, as long as the site keeps them (\"history\"), and until then their\n"
        "space, too. What was interrupted is done by the next call.\n"
        "\n"
        "Packs of which at most half is needed any more, as the rest was written over, are\n"
        "emptied then, and removed; not where clones or branches share them.\n"
        "\n"
        "Where the site allows two shapes (\"shapes\": 2), --second-shape stores variables\n"
        "once more, for maps, for time series or in chunks that are stated, beside what\n"
        "there is; who reads takes what costs less. What is written later is read from the\n"
        "first shape until the next call of esdm-compact, which brings the second one up to\n"
        "date. --one-shape removes it.\n"
        "\n"
        "Variables with rounded numbers (accuracy) stay as they are: they would be rounded\n"
        "again. Sealed containers (esdm-seal) are not changed at all.",
    .examples = "  esdm-compact --dry-run run1.nc\n"
                "  esdm-compact --speed 100M run1.nc\n"
                "  esdm-compact --chunk tas=365,10,10 run1.nc     for time series\n"
                "  esdm-compact --second-shape series run1.nc     and maps as they are\n"
                "  esdm-compact --second-shape tas=365,10,10 run1.nc\n"
                "  esdm-compact --for-readers --dry-run run1.nc   what readers would need\n",
    .see_also = "esdm-stat --fragments, esdm-drain, esdm-gc",
};

#define WHY_BYTES 400

static gboolean dry_run, quiet, for_readers, one_shape;
static char *speed_text, *step_text;
static char **chunks, **seconds;
static esdm_shape_wish *wishes_of_seconds; /* as many as `seconds` */
static uint64_t speed, step;

static const GOptionEntry entries[] = {
    {"chunk", 'c', 0, G_OPTION_ARG_STRING_ARRAY, &chunks,
     "State chunks of a variable (its path or name) first; several are possible", "VARIABLE=N,N…"},
    {"for-readers", 'r', 0, G_OPTION_ARG_NONE, &for_readers,
     "State chunks that recorded reads want, where they want others", NULL},
    {"second-shape", '2', 0, G_OPTION_ARG_STRING_ARRAY, &seconds,
     "Store variables (all, or one) once more: maps, series, or chunks; several are possible",
     "[VARIABLE=]SHAPE"},
    {"one-shape", '1', 0, G_OPTION_ARG_NONE, &one_shape, "Remove the second shape", NULL},
    {"speed", 0, 0, G_OPTION_ARG_STRING, &speed_text,
     "Bytes of values per second at most (100M, 64MiB)", "BYTES"},
    {"step", 0, 0, G_OPTION_ARG_STRING, &step_text,
     "Bytes of values between two commits (1G, 512MiB)", "BYTES"},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Tell what would be stored anew", NULL},
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "Print problems alone", NULL},
    {0},
};

/* ---- chunks -------------------------------------------------------------------------------- */

static esdm_dataset *
find_dataset(esdm_container *container, const char *path)
{
    esdm_group *group = esdm_container_root(container);
    g_auto(GStrv) parts = g_strsplit(path[0] == '/' ? path + 1 : path, "/", -1);
    for (guint i = 0; parts[i] != NULL && group != NULL; i++) {
        if (parts[i + 1] == NULL)
            return esdm_group_dataset_find(group, parts[i]);
        group = esdm_group_find(group, parts[i]);
    }
    return NULL;
}

static tool_exit
state_chunk(esdm_container *container, const char *stated)
{
    esdm_error err = {0};
    uint64_t shape[ESDM_MAX_RANK] = {0};
    const char *equals = strrchr(stated, '=');
    g_autofree char *path = equals != NULL ? g_strndup(stated, (gsize) (equals - stated)) : NULL;
    esdm_dataset *dataset = path != NULL ? find_dataset(container, path) : NULL;
    if (path == NULL)
        return tool_usage("--chunk: expected VARIABLE=N,N…, not '%s'", stated);
    if (dataset == NULL) {
        tool_error("container '%s' has no variable '%s'", esdm_container_name(container), path);
        return TOOL_NOT_FOUND;
    }
    g_auto(GStrv) numbers = g_strsplit(equals + 1, ",", -1);
    guint count = g_strv_length(numbers);
    for (guint i = 0; i < count && i < ESDM_MAX_RANK; i++) {
        char *end = NULL;
        shape[i] = g_ascii_strtoull(numbers[i], &end, 10);
        if (end == numbers[i] || *end != '\0' || shape[i] == 0)
            count = G_MAXUINT;
    }
    if (count != esdm_dataset_rank(dataset))
        return tool_usage("--chunk: variable '%s' has %u dimensions, '%s' are other numbers", path,
                          esdm_dataset_rank(dataset), equals + 1);
    esdm_status status = esdm_dataset_set_chunk(dataset, shape, &err);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* Whether --chunk states chunks of it. */
static bool
is_stated(esdm_container *container, const esdm_dataset *dataset)
{
    for (char **one = chunks; one != NULL && *one != NULL; one++) {
        g_autofree char *path = g_strndup(*one, strcspn(*one, "="));
        if (find_dataset(container, path) == dataset)
            return true;
    }
    return false;
}

/* What a second shape with those chunks would take; 0: the site allows none, or it cannot be. */
static uint64_t
second_of(esdm_session *session, const char *name, const char *path, const esdm_dataset *dataset,
          const uint64_t *chunk)
{
    esdm_error ignored = {0};
    esdm_shapes_result result = {0};
    esdm_shape_wish wish = {
        .variable = path, .shape = ESDM_SHAPE_CHUNK, .rank = esdm_dataset_rank(dataset)};
    const esdm_shapes_options options = {.wishes = &wish, .nwishes = 1, .dry_run = true};
    memcpy(wish.chunk, chunk, wish.rank * sizeof *chunk);
    return esdm_shapes_update(session, name, &options, &result, &ignored) == ESDM_OK ? result.bytes
                                                                                     : 0;
}

/* @param second bytes of a second shape; 0: it is not proposed. */
static void
tell_wish(const char *name, const char *path, const esdm_dataset *dataset, const uint64_t *chunk,
          const char *why, uint64_t second, json_t *list)
{
    g_autoptr(GString) shape = g_string_new(NULL);
    json_t *numbers = json_array();
    for (uint32_t d = 0; d < esdm_dataset_rank(dataset); d++) {
        g_string_append_printf(shape, "%s%" G_GUINT64_FORMAT, d > 0 ? "," : "", (guint64) chunk[d]);
        tool_json_append(numbers, tool_json_u64(chunk[d]));
    }
    json_t *object = json_object();
    tool_json_set(object, "variable", tool_json_text(path));
    tool_json_set(object, "chunk", numbers);
    tool_json_set(object, "why", tool_json_text(why));
    if (second > 0)
        tool_json_set(object, "second_shape_bytes", tool_json_u64(second));
    tool_json_append(list, object);
    if (tool.json || quiet)
        return;
    g_autofree char *printable = tool_printable(path);
    (void) printf("%s: %s chunks %s, %s\n", printable, dry_run ? "would get" : "gets", shape->str,
                  why);
    if (second == 0)
        return;
    g_autofree char *wish = g_strdup_printf("%s=%s", path, shape->str);
    g_autofree char *quoted_wish = g_shell_quote(wish);
    g_autofree char *quoted_name = g_shell_quote(name);
    g_autofree char *command = g_strdup_printf("--second-shape %s %s", quoted_wish, quoted_name);
    g_autofree char *shown = tool_printable(command);
    g_autofree char *bytes = tool_bytes(second);
    (void) printf("%s: or, for %s more, both: esdm-compact %s\n", printable, bytes, shown);
}

typedef struct second_search {
    const char *path;
    bool found;
} second_search;

static bool
note_second(const esdm_shape_info *info, void *user)
{
    second_search *s = user;
    s->found = g_str_equal(info->variable, s->path);
    return !s->found;
}

/* Whoever wants other chunks than it has reads those of its second shape. */
static tool_exit
has_second(esdm_container *container, const char *path, bool *ret)
{
    esdm_error err = {0};
    second_search s = {.path = path};
    esdm_status status = esdm_shapes_visit(container, note_second, &s, NULL, &err);
    *ret = s.found;
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    g_autofree char *printable = tool_printable(path);
    if (s.found && !tool.json && !quiet)
        (void) printf("%s: has a second shape for others (--second-shape states another one)\n",
                      printable);
    return TOOL_OK;
}

static tool_exit
state_wish(esdm_session *session, esdm_container *container, esdm_dataset *dataset,
           const char *above, json_t *wishes)
{
    uint64_t chunk[ESDM_MAX_RANK];
    char why[WHY_BYTES] = "";
    esdm_error err = {0};
    bool has = false;
    uint64_t second = 0;
    if (is_stated(container, dataset))
        return TOOL_OK;
    esdm_status status = esdm_dataset_chunk_for_readers(dataset, chunk, why, sizeof why, &err);
    if (status == ESDM_ENOENT)
        return TOOL_OK;
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    const char *name = esdm_container_name(container);
    g_autofree char *path = g_strdup_printf("%s/%s", above, esdm_dataset_name(dataset));
    tool_exit result = has_second(container, path, &has);
    if (result != TOOL_OK || has)
        return result;
    if (dry_run)
        second = second_of(session, name, path, dataset, chunk);
    else
        status = esdm_dataset_set_chunk(dataset, chunk, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tell_wish(name, path, dataset, chunk, why, second, wishes);
    return TOOL_OK;
}

/* @param wishes gets what was stated. */
static tool_exit
state_wishes(esdm_session *session, esdm_container *container, esdm_group *group, const char *path,
             json_t *wishes)
{
    tool_exit result = TOOL_OK;
    for (size_t i = 0; i < esdm_group_dataset_count(group) && result == TOOL_OK; i++)
        result = state_wish(session, container, esdm_group_dataset_at(group, i), path, wishes);
    for (size_t i = 0; i < esdm_group_count(group) && result == TOOL_OK; i++) {
        esdm_group *child = esdm_group_at(group, i);
        g_autofree char *below = g_strdup_printf("%s/%s", path, esdm_group_name(child));
        result = state_wishes(session, container, child, below, wishes);
    }
    return result;
}

static tool_exit
state_chunks(esdm_session *session, const char *name, json_t *wishes)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    esdm_open_mode mode = dry_run ? ESDM_OPEN_READ : ESDM_OPEN_WRITE;
    esdm_status status =
        esdm_container_open(session, name, mode, ESDM_SNAPSHOT_LATEST, &container, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = TOOL_OK;
    for (char **one = chunks; one != NULL && *one != NULL && result == TOOL_OK; one++)
        result = state_chunk(container, *one);
    if (result == TOOL_OK && for_readers)
        result = state_wishes(session, container, esdm_container_root(container), "", wishes);
    bool changed = chunks != NULL || json_array_size(wishes) > 0;
    if (result != TOOL_OK || dry_run || !changed) {
        esdm_container_discard(container);
        return result;
    }
    status = esdm_container_commit(container, "esdm-compact: chunks", &err);
    esdm_container_discard(container);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* ---- second shapes ------------------------------------------------------------------------- */

static bool
parse_shape(const char *text, esdm_shape_wish *wish)
{
    g_auto(GStrv) numbers = g_strsplit(text, ",", -1);
    if (g_str_equal(text, "maps") || g_str_equal(text, "series")) {
        wish->shape = text[0] == 'm' ? ESDM_SHAPE_MAPS : ESDM_SHAPE_SERIES;
        return true;
    }
    wish->shape = ESDM_SHAPE_CHUNK;
    for (guint i = 0; numbers[i] != NULL; i++) {
        guint64 number;
        if (i == ESDM_MAX_RANK ||
            !g_ascii_string_to_unsigned(numbers[i], 10, 1, G_MAXUINT64, &number, NULL))
            return false;
        wish->chunk[i] = number;
        wish->rank = i + 1;
    }
    return wish->rank > 0 && wish->variable != NULL;
}

static tool_exit
parse_seconds(void)
{
    guint count = seconds != NULL ? g_strv_length(seconds) : 0;
    wishes_of_seconds = g_new0(esdm_shape_wish, count + 1);
    for (guint i = 0; i < count; i++) {
        char *equals = strrchr(seconds[i], '=');
        if (equals != NULL) {
            *equals = '\0';
            wishes_of_seconds[i].variable = seconds[i];
        }
        const char *shape = equals != NULL ? equals + 1 : seconds[i];
        if (!parse_shape(shape, &wishes_of_seconds[i]))
            return tool_usage("--second-shape: expected maps, series, VARIABLE=maps, "
                              "VARIABLE=series or VARIABLE=N,N…, not '%s%s%s'",
                              equals != NULL ? seconds[i] : "", equals != NULL ? "=" : "", shape);
    }
    return TOOL_OK;
}

static void
report_left(const esdm_finding *finding, void *user)
{
    (void) user;
    g_autofree char *printable = tool_printable(finding->dataset);
    if (!quiet && !tool.json)
        (void) printf("%s: no second shape: %s\n", printable, finding->what);
}

static tool_exit
remove_second(esdm_session *session, const char *name, json_t *object)
{
    uint64_t bytes = 0;
    esdm_error err = {0};
    esdm_status status = esdm_shapes_remove(session, name, &bytes, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    g_autofree char *text = tool_bytes(bytes);
    g_autofree char *printable = tool_printable(name);
    tool_json_set(object, "removed_bytes", tool_json_u64(bytes));
    if (!quiet && !tool.json)
        (void) printf("%s: second shape removed (%s)\n", printable, text);
    return TOOL_OK;
}

static tool_exit
update_second(esdm_session *session, const char *name, json_t *object)
{
    esdm_error err = {0};
    esdm_shapes_result result = {0};
    const esdm_shapes_options options = {.wishes = wishes_of_seconds,
                                         .nwishes = seconds != NULL ? g_strv_length(seconds) : 0,
                                         .dry_run = dry_run,
                                         .bytes_per_s = speed,
                                         .step_bytes = step,
                                         .report = report_left};
    esdm_status status = esdm_shapes_update(session, name, &options, &result, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_json_set(object, "variables", tool_json_u64(result.variables));
    tool_json_set(object, "bytes", tool_json_u64(result.bytes));
    tool_json_set(object, "commits", tool_json_u64(result.commits));
    tool_json_set(object, "left", tool_json_u64(result.left));
    if (quiet || tool.json || (result.variables == 0 && seconds == NULL))
        return TOOL_OK;
    g_autofree char *bytes = tool_bytes(result.bytes);
    g_autofree char *printable = tool_printable(name);
    (void) printf("%s: %" G_GUINT64_FORMAT " variable%s in a second shape, %s %s\n", printable,
                  (guint64) result.variables, result.variables == 1 ? "" : "s", bytes,
                  dry_run ? "would be stored for it" : "stored for it");
    return TOOL_OK;
}

/* @param ret_object what is told of it; a new reference. */
static tool_exit
care_for_second(esdm_session *session, const char *name, json_t **ret_object)
{
    *ret_object = json_object();
    return one_shape ? remove_second(session, name, *ret_object)
                     : update_second(session, name, *ret_object);
}

/* ---- compacting ---------------------------------------------------------------------------- */

static void
tell(const char *name, const esdm_compact_result *result, json_t *wishes, json_t *second,
     json_t *list)
{
    if (tool.json) {
        json_t *object = json_object();
        tool_json_set(object, "name", tool_json_text(name));
        tool_json_set(object, "fragments", tool_json_u64(result->fragments));
        tool_json_set(object, "bytes", tool_json_u64(result->bytes));
        tool_json_set(object, "commits", tool_json_u64(result->commits));
        tool_json_set(object, "conflicts", tool_json_u64(result->conflicts));
        tool_json_set(object, "rounded", tool_json_u64(result->rounded));
        tool_json_set(object, "moved_bytes", tool_json_u64(result->moved_bytes));
        if (for_readers)
            tool_json_set(object, "for_readers", json_incref(wishes));
        tool_json_set(object, "second_shape", json_incref(second));
        tool_json_append(list, object);
        return;
    }
    if (quiet)
        return;
    g_autofree char *bytes = tool_bytes(result->bytes);
    g_autofree char *printable = tool_printable(name);
    (void) printf("%s: %s %" G_GUINT64_FORMAT " fragment%s anew (%s)", printable,
                  dry_run ? "would store" : "stored", (guint64) result->fragments,
                  result->fragments == 1 ? "" : "s", bytes);
    if (result->rounded > 0)
        (void) printf("; %" G_GUINT64_FORMAT " variable%s with rounded numbers left as they are",
                      (guint64) result->rounded, result->rounded == 1 ? "" : "s");
    if (result->moved_bytes > 0) {
        g_autofree char *moved = tool_bytes(result->moved_bytes);
        (void) printf("; %s %s out of packs of which little is needed",
                      dry_run ? "would move" : "moved", moved);
    }
    (void) printf("\n");
}

static void
report(const esdm_finding *finding, void *user)
{
    (void) user;
    g_autofree char *printable = tool_printable(finding->container);
    if (finding->kind != ESDM_FINDING_NOTE)
        tool_error("%s: %s: %s", printable, finding->what, finding->remedy);
    else if (!quiet && !tool.json && finding->dataset == NULL)
        (void) printf("%s: %s\n", printable, finding->what);
}

static tool_exit
compact(esdm_session *session, const char *name, json_t *list)
{
    esdm_error err = {0};
    esdm_compact_result result;
    const esdm_compact_options options = {
        .dry_run = dry_run, .bytes_per_s = speed, .step_bytes = step, .report = report};
    json_t *wishes = json_array();
    tool_exit done = chunks != NULL || for_readers ? state_chunks(session, name, wishes) : TOOL_OK;
    esdm_status status =
        done == TOOL_OK ? esdm_compact(session, name, &options, &result, &err) : ESDM_OK;
    if (status != ESDM_OK)
        done = tool_fail(status, &err);
    json_t *second = NULL;
    if (done == TOOL_OK)
        done = care_for_second(session, name, &second);
    if (done == TOOL_OK)
        tell(name, &result, wishes, second, list);
    json_decref(second);
    json_decref(wishes);
    return done;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2)
        return tool_usage("which containers?");
    if (speed_text != NULL && !tool_parse_bytes(speed_text, &speed))
        return tool_usage("--speed: expected a number such as 100M, not '%s'", speed_text);
    if (step_text != NULL && !tool_parse_bytes(step_text, &step))
        return tool_usage("--step: expected a number such as 4G, not '%s'", step_text);
    if (chunks != NULL && dry_run)
        return tool_usage("--chunk changes the container: not with --dry-run");
    if (one_shape && (seconds != NULL || dry_run))
        return tool_usage("--one-shape: not with --%s", dry_run ? "dry-run" : "second-shape");
    esdm_session *session = NULL;
    tool_exit result = parse_seconds();
    if (result == TOOL_OK)
        result = tool_session_made(dry_run, &session);
    if (result != TOOL_OK)
        return result;
    json_t *list = json_array();
    for (int i = 1; i < argc; i++) {
        char name[ESDM_CONTAINER_NAME_MAX + 1];
        esdm_error err = {0};
        esdm_status status = tool_container_name(session, argv[i], name, &err);
        tool_exit one = status == ESDM_OK ? compact(session, name, list) : tool_fail(status, &err);
        result = result == TOOL_OK ? one : result;
    }
    tool_json_print_list("containers", list);
    esdm_session_close(session);
    g_free(wishes_of_seconds);
    return tool_finish(result);
}
