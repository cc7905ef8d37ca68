/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-merge: what a branch changed, made to its container. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/common.h"
#include "esdm/branch.h"
#include "esdm/usertypes.h"

static const tool_help help = {
    .name = "esdm-merge",
    .arguments = "NAME BRANCH",
    .description =
        "Makes the changes of a branch to its container, as one commit. The branch stays, and\n"
        "may be merged again later. Changes are those since the branch began, or was merged.\n"
        "A branch that began with another one is merged into that, NAME@branch:OTHER, or into the\n"
        "container.\n"
        "\n"
        "Values that the branch has written are referred to by the container, none is copied.\n"
        "Where both have written since, values are compared bit by bit: an element is in\n"
        "conflict when both differ from what was before, and from each other. Attributes, names,\n"
        "dimensions, groups and variables are merged one by one; of the attribute 'history' both\n"
        "additions are kept.\n"
        "\n"
        "Conflicts are listed, as boxes of indices and coordinates, and nothing is merged, unless\n"
        "--ours or --theirs decides them. Exit status 1 then.",
    .examples = "  esdm-merge --dry-run run1.nc fix/units\n"
                "  esdm-merge run1.nc fix/units\n"
                "  esdm-merge --theirs run1.nc fix/units\n"
                "  esdm-merge run1.nc@branch:fix/units fix/names\n"
                "  esdm-merge --pick @9 run1.nc fix/units\n",
    .see_also = "esdm-branch, esdm-diff, esdm-log",
};

static gboolean ours, theirs, dry_run;
static char *pick, *message;

static const GOptionEntry entries[] = {
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Look for conflicts, and change nothing",
     NULL},
    {"ours", 0, 0, G_OPTION_ARG_NONE, &ours, "In conflicts the container stays as it is", NULL},
    {"theirs", 0, 0, G_OPTION_ARG_NONE, &theirs, "In conflicts the branch wins", NULL},
    {"pick", 0, 0, G_OPTION_ARG_STRING, &pick, "Only what this snapshot of the branch has changed",
     "@N"},
    {"message", 'm', 0, G_OPTION_ARG_STRING, &message, "Text that is kept with the commit", "TEXT"},
    {0},
};

/* ---- conflicts ----------------------------------------------------------------------------- */

typedef struct listing {
    esdm_container *branch; /* for coordinates */
    json_t *list;
    guint count;
} listing;

static esdm_dataset *
find_dataset(esdm_container *container, const char *path)
{
    g_auto(GStrv) parts = g_strsplit(path, "/", -1);
    const esdm_group *group = esdm_container_root(container);
    guint last = g_strv_length(parts);
    if (last == 0)
        return NULL;
    last--;
    for (guint i = 0; i < last && group != NULL; i++) {
        if (parts[i][0] != '\0')
            group = esdm_group_find(group, parts[i]);
    }
    return group != NULL ? esdm_group_dataset_find(group, parts[last]) : NULL;
}

/* The coordinate variable of a dimension; NULL: there is none of numbers. */
static esdm_dataset *
coordinate_of(const esdm_dimension *dimension)
{
    esdm_dataset *found =
        esdm_group_dataset_find(esdm_dimension_group(dimension), esdm_dimension_name(dimension));
    return found != NULL && esdm_dataset_rank(found) == 1 &&
                   esdm_dataset_dimension(found, 0) == dimension &&
                   esdm_dataset_type(found) < ESDM_TYPE_FIRST_USER &&
                   esdm_dataset_type(found) != ESDM_TYPE_CHAR &&
                   esdm_dataset_type(found) != ESDM_TYPE_STRING
               ? found
               : NULL;
}

static bool
coordinate_at(esdm_dataset *coordinate, uint64_t index, double *ret)
{
    static const uint64_t one = 1;
    esdm_dataspace space;
    esdm_error err;
    return index < esdm_dimension_length(esdm_dataset_dimension(coordinate, 0)) &&
           esdm_dataspace_init(&space, 1, &index, &one, &err) == ESDM_OK &&
           esdm_read(coordinate, &space, ESDM_TYPE_FLOAT64, ret, NULL, &err) == ESDM_OK;
}

static char *
units_of(esdm_dataset *coordinate)
{
    esdm_attribute units;
    return esdm_attribute_find(esdm_dataset_attributes(coordinate), "units", &units, NULL) &&
                   units.type == ESDM_TYPE_CHAR
               ? g_strndup(units.values, units.count)
               : g_strdup("");
}

static void
append_axis(const esdm_dimension *dimension, uint64_t first, uint64_t last, GString *text,
            json_t *axes)
{
    esdm_dataset *coordinate = coordinate_of(dimension);
    double from, to;
    bool known = coordinate != NULL && coordinate_at(coordinate, first, &from) &&
                 coordinate_at(coordinate, last, &to);
    json_t *axis = json_object();
    tool_json_set(axis, "dimension", tool_json_text(esdm_dimension_name(dimension)));
    if (known) {
        g_autofree char *units = units_of(coordinate);
        g_string_append_printf(text, "%s%s %.10g", text->len > 0 ? ", " : "",
                               esdm_dimension_name(dimension), from);
        if (last > first)
            g_string_append_printf(text, " to %.10g", to);
        if (units[0] != '\0')
            g_string_append_printf(text, " %s", units);
        tool_json_set(axis, "from", json_real(from));
        tool_json_set(axis, "to", json_real(to));
        tool_json_set(axis, "units", tool_json_text(units));
    }
    tool_json_append(axes, axis);
}

static void
show_values(const listing *l, const esdm_merge_conflict *c, GString *line, json_t *object)
{
    esdm_dataset *dataset = l->branch != NULL ? find_dataset(l->branch, c->object) : NULL;
    g_autoptr(GString) where = g_string_new(NULL);
    json_t *offset = json_array(), *size = json_array(), *axes = json_array();
    g_string_append(line, " [");
    for (uint32_t d = 0; d < c->rank; d++) {
        g_string_append_printf(line, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "",
                               (guint64) c->offset[d]);
        if (c->size[d] > 1)
            g_string_append_printf(line, ":%" G_GUINT64_FORMAT,
                                   (guint64) (c->offset[d] + c->size[d]));
        tool_json_append(offset, tool_json_u64(c->offset[d]));
        tool_json_append(size, tool_json_u64(c->size[d]));
        if (dataset != NULL && esdm_dataset_rank(dataset) == c->rank)
            append_axis(esdm_dataset_dimension(dataset, d), c->offset[d],
                        c->offset[d] + c->size[d] - 1, where, axes);
    }
    g_string_append(line, "]");
    if (where->len > 0)
        g_string_append_printf(line, "  %s", where->str);
    tool_json_set(object, "offset", offset);
    tool_json_set(object, "size", size);
    tool_json_set(object, "coordinates", axes);
}

static void
show(const esdm_merge_conflict *c, void *user)
{
    listing *l = user;
    g_autoptr(GString) line = g_string_new(NULL);
    json_t *object = json_object();
    l->count++;
    g_string_append_printf(line, "conflict: %s of %s", c->what, c->object);
    tool_json_set(object, "object", tool_json_text(c->object));
    tool_json_set(object, "what", json_string(c->what));
    if (c->attribute != NULL) {
        g_string_append_printf(line, ": %s", c->attribute);
        tool_json_set(object, "attribute", tool_json_text(c->attribute));
    }
    if (strcmp(c->what, "values") == 0)
        show_values(l, c, line, object);
    tool_json_set(object, "decided",
                  c->decided ? json_string(ours ? "ours" : "theirs") : json_null());
    if (c->decided)
        g_string_append_printf(line, "  (%s)", ours ? "ours stays" : "theirs wins");
    if (tool.json) {
        tool_json_append(l->list, object);
        return;
    }
    json_decref(object);
    g_autofree char *printable = tool_printable(line->str);
    (void) printf("%s\n", printable);
}

/* ---- result -------------------------------------------------------------------------------- */

static void
tell_text(const char *name, const char *branch, const esdm_merge_result *r)
{
    g_autofree char *printable = tool_printable(name);
    g_autofree char *of = tool_printable(branch);
    g_autofree char *referenced = tool_bytes(r->referenced_bytes);
    g_autofree char *rewritten = tool_bytes(r->rewritten_bytes);
    if (r->base == r->theirs || (r->snapshot == 0 && !dry_run)) {
        (void) printf("%s has all of branch '%s'\n", printable, of);
        return;
    }
    (void) printf("%s: %s branch '%s'@%" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                  " fragments (%s) are referred to, %s %s stored anew, %" G_GUINT64_FORMAT
                  " objects changed",
                  printable, dry_run ? "would merge" : "merged", of, (guint64) r->theirs,
                  (guint64) r->fragments, referenced, rewritten,
                  r->rewritten_bytes == 0 ? "is" : "are", (guint64) r->objects);
    if (r->snapshot != 0)
        (void) printf("; snapshot %" G_GUINT64_FORMAT, (guint64) r->snapshot);
    (void) printf("\n");
}

static void
tell_json(const char *name, const char *branch, const esdm_merge_result *r, bool merged,
          json_t *conflicts)
{
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(name));
    tool_json_set(object, "branch", tool_json_text(branch));
    tool_json_set(object, "merged", json_boolean(merged && r->snapshot != 0));
    tool_json_set(object, "dry_run", json_boolean(dry_run));
    tool_json_set(object, "base", tool_json_u64(r->base));
    tool_json_set(object, "theirs", tool_json_u64(r->theirs));
    tool_json_set(object, "snapshot", r->snapshot != 0 ? tool_json_u64(r->snapshot) : json_null());
    tool_json_set(object, "objects", tool_json_u64(r->objects));
    tool_json_set(object, "fragments", tool_json_u64(r->fragments));
    tool_json_set(object, "referenced_bytes", tool_json_u64(r->referenced_bytes));
    tool_json_set(object, "rewritten_bytes", tool_json_u64(r->rewritten_bytes));
    tool_json_set(object, "conflict_elements", tool_json_u64(r->conflict_elements));
    tool_json_set(object, "open_conflicts", tool_json_u64(r->open_conflicts));
    tool_json_set(object, "conflicts", conflicts);
    tool_json_print(object);
}

static tool_exit
run(esdm_session *session, const char *argument, const char *branch)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0}, ignored;
    esdm_merge_result result = {0};
    listing l = {.list = json_array()};
    const esdm_merge_options options = {.prefer = ours     ? ESDM_MERGE_OURS
                                                  : theirs ? ESDM_MERGE_THEIRS
                                                           : ESDM_MERGE_REFUSE,
                                        .dry_run = dry_run,
                                        .pick =
                                            pick != NULL ? g_ascii_strtoull(pick + 1, NULL, 10) : 0,
                                        .message = message,
                                        .report = show,
                                        .user = &l};
    esdm_status status = tool_container_name(argument, name, &err);
    if (status == ESDM_OK) {
        const char *mark = strstr(name, "@branch:");
        g_autofree char *base =
            g_strndup(name, mark != NULL ? (gsize) (mark - name) : strlen(name));
        g_autofree char *full = g_strconcat(base, "@branch:", branch, NULL);
        if (esdm_container_open(session, full, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &l.branch,
                                &ignored) != ESDM_OK)
            l.branch = NULL;
        status = esdm_merge(session, name, branch, &options, &result, &err);
    }
    esdm_container_discard(l.branch);
    bool refused = status == ESDM_ECONFLICT && result.open_conflicts > 0;
    if (status == ESDM_OK || refused) {
        if (tool.json)
            tell_json(name, branch, &result, status == ESDM_OK, json_incref(l.list));
        else if (status == ESDM_OK)
            tell_text(name, branch, &result);
    }
    json_decref(l.list);
    if (refused) {
        tool_error("%s; --ours or --theirs decides what can be decided", err.message);
        return TOOL_FAILED;
    }
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

static bool
is_snapshot(const char *text)
{
    return text[0] == '@' && text[1] != '\0' &&
           strspn(text + 1, "0123456789") == strlen(text + 1) && strlen(text) < 12;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 3)
        return tool_usage("which container, and which of its branches?");
    if (ours && theirs)
        return tool_usage("--ours and --theirs exclude each other");
    if (pick != NULL && !is_snapshot(pick))
        return tool_usage("--pick takes a snapshot of the branch, as in @9");
    esdm_session *session = NULL;
    tool_exit result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    result = run(session, argv[1], argv[2]);
    esdm_session_close(session);
    return tool_finish(result);
}
