/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-merge: what a branch changed, made to its container, and the other way. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/common.h"
#include "esdm/branch.h"
#include "esdm/usertypes.h"

#define BRANCH_MARK "@branch:"

static const tool_help help = {
    .name = "esdm-merge",
    .arguments = "NAME BRANCH",
    .description =
        "Makes the changes of a branch to its container, as one commit. The branch stays, and\n"
        "may be merged again later. Changes are those since the branch began, or was merged.\n"
        "It is merged into any other branch of the container, NAME@branch:OTHER, in the same way.\n"
        "--into BRANCH NAME is the other way: the branch catches up with what NAME has got since,\n"
        "the container or any other branch of it, NAME@branch:OTHER.\n"
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
                "  esdm-merge --into fix/units run1.nc\n"
                "  esdm-merge --pick @9 run1.nc fix/units\n"
                "  esdm-merge --pick @6..@9 run1.nc fix/units\n",
    .see_also = "esdm-branch, esdm-diff, esdm-log",
};

static gboolean ours, theirs, dry_run;
static char *into, *pick, *message;
static struct {
    uint64_t after, last;
} picked; /* 0: none */

static const GOptionEntry entries[] = {
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Look for conflicts, and change nothing",
     NULL},
    {"into", 'i', 0, G_OPTION_ARG_STRING, &into, "The branch gets what NAME has changed", "BRANCH"},
    {"ours", 0, 0, G_OPTION_ARG_NONE, &ours, "In conflicts what gets the changes stays as it is",
     NULL},
    {"theirs", 0, 0, G_OPTION_ARG_NONE, &theirs, "In conflicts what is merged wins", NULL},
    {"pick", 0, 0, G_OPTION_ARG_STRING, &pick,
     "Only what this snapshot has changed, or those after @A up to @B", "@N or @A..@B"},
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

/* The two lines. */
typedef struct sides {
    const char *ours; /* gets the changes */
    const char *theirs;
    const char *branch; /* name of theirs among the branches; NULL: it is the container */
} sides;

/* ---- result -------------------------------------------------------------------------------- */

static void
tell_text(const sides *s, const esdm_merge_result *r)
{
    g_autofree char *printable = tool_printable(s->ours);
    g_autofree char *of = tool_printable(s->branch != NULL ? s->branch : s->theirs);
    const char *what = s->branch != NULL ? "branch " : "";
    g_autofree char *referenced = tool_bytes(r->referenced_bytes);
    g_autofree char *rewritten = tool_bytes(r->rewritten_bytes);
    if (r->snapshot == 0 && (!dry_run || (r->fragments == 0 && r->objects == 0))) {
        (void) printf("%s has all of %s'%s'\n", printable, what, of);
        return;
    }
    (void) printf("%s: %s %s'%s'@%" G_GUINT64_FORMAT ": %" G_GUINT64_FORMAT
                  " fragments (%s) are referred to, %s %s stored anew, %" G_GUINT64_FORMAT
                  " objects changed",
                  printable, dry_run ? "would merge" : "merged", what, of, (guint64) r->theirs,
                  (guint64) r->fragments, referenced, rewritten,
                  r->rewritten_bytes == 0 ? "is" : "are", (guint64) r->objects);
    if (r->snapshot != 0)
        (void) printf("; snapshot %" G_GUINT64_FORMAT, (guint64) r->snapshot);
    (void) printf("\n");
}

static void
tell_json(const sides *s, const esdm_merge_result *r, bool merged, json_t *conflicts)
{
    json_t *object = json_object();
    tool_json_set(object, "name", tool_json_text(s->ours));
    tool_json_set(object, "branch", s->branch != NULL ? tool_json_text(s->branch) : json_null());
    tool_json_set(object, "from", tool_json_text(s->theirs));
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
run(esdm_session *session, const sides *s)
{
    esdm_error err = {0}, ignored;
    esdm_merge_result result = {0};
    listing l = {.list = json_array()};
    const esdm_merge_options options = {.prefer = ours     ? ESDM_MERGE_OURS
                                                  : theirs ? ESDM_MERGE_THEIRS
                                                           : ESDM_MERGE_REFUSE,
                                        .dry_run = dry_run,
                                        .pick = picked.last,
                                        .pick_after = picked.after,
                                        .message = message,
                                        .report = show,
                                        .user = &l};
    if (esdm_container_open(session, s->theirs, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &l.branch,
                            &ignored) != ESDM_OK)
        l.branch = NULL;
    esdm_status status = esdm_merge(session, s->ours, s->branch, &options, &result, &err);
    esdm_container_discard(l.branch);
    bool refused = status == ESDM_ECONFLICT && result.open_conflicts > 0;
    if (status == ESDM_OK || refused) {
        if (tool.json)
            tell_json(s, &result, status == ESDM_OK, json_incref(l.list));
        else if (status == ESDM_OK)
            tell_text(s, &result);
    }
    json_decref(l.list);
    if (refused) {
        tool_error("%s; --ours or --theirs decides what can be decided", err.message);
        return TOOL_FAILED;
    }
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* ---- arguments ------------------------------------------------------------------------------ */

/* "@N" or "@A..@B". */
static bool
parse_pick(const char *text)
{
    g_autoptr(GRegex) form = g_regex_new("^(?:@(\\d{1,10})\\.\\.)?@(\\d{1,10})$", 0, 0, NULL);
    g_autoptr(GMatchInfo) match = NULL;
    if (!g_regex_match(form, text, 0, &match))
        return false;
    g_autofree char *after = g_match_info_fetch(match, 1);
    g_autofree char *last = g_match_info_fetch(match, 2);
    picked.after = g_ascii_strtoull(after, NULL, 10);
    picked.last = g_ascii_strtoull(last, NULL, 10);
    return picked.last > picked.after && (after[0] == '\0' || picked.after > 0);
}

static char *
full_name(const char *name, const char *branch)
{
    const char *mark = strstr(name, BRANCH_MARK);
    g_autofree char *base = g_strndup(name, mark != NULL ? (gsize) (mark - name) : strlen(name));
    return branch != NULL ? g_strconcat(base, BRANCH_MARK, branch, NULL) : g_strdup(base);
}

/* Of one argument with --into, else of two. */
static tool_exit
run_sides(esdm_session *session, char **arguments)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    esdm_status status = tool_container_name(session, arguments[0], name, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    const char *mark = strstr(name, BRANCH_MARK);
    const char *branch = into == NULL   ? arguments[1]
                         : mark != NULL ? mark + sizeof BRANCH_MARK - 1
                                        : NULL;
    g_autofree char *to = into == NULL ? g_strdup(name) : full_name(name, into);
    g_autofree char *from = full_name(name, branch);
    const sides s = {.ours = to, .theirs = from, .branch = branch};
    return run(session, &s);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc != (into != NULL ? 2 : 3))
        return tool_usage(into != NULL ? "of what is the branch to get the changes?"
                                       : "which container, and which of its branches?");
    if (ours && theirs)
        return tool_usage("--ours and --theirs exclude each other");
    if (pick != NULL && !parse_pick(pick))
        return tool_usage(
            "--pick takes a snapshot, as in @9, or a range, as in @6..@9: those after "
            "@6 up to @9");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(false, &session);
    if (result != TOOL_OK)
        return result;
    result = run_sides(session, argv + 1);
    esdm_session_close(session);
    return tool_finish(result);
}
