/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-diff: in what two containers, snapshots or NetCDF files differ. */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "esdm-diff/esdm-diff.h"

static const tool_help help = {
    .name = "esdm-diff",
    .arguments = "A B",
    .description =
        "Tells in what two containers differ: dimensions, variables, attributes, and of values\n"
        "how many, where, and by how much in the variable's units. A and B are containers\n"
        "(NAME, esdm://NAME), snapshots (NAME@7, NAME@-1, NAME@2026-11-20), or NetCDF files.\n"
        "\n"
        "Of two snapshots of a container only those fragments are read that differ. Values\n"
        "are compared as numbers: the types may differ, NaN equals NaN. Where a dimension has\n"
        "become longer, what both have is compared. The order of variables and attributes\n"
        "does not count.\n"
        "\n"
        "--erratum writes a short record of the changes, to be published with them.",
    .statuses = "  0  no difference\n"
                "  1  some difference\n"
                "  2  wrong usage, or the two could not be compared\n"
                "  3  one of them does not exist\n"
                "  5  data are damaged\n",
    .examples = "  esdm-diff run1.nc@-1 run1.nc          what the newest commit changed\n"
                "  esdm-diff -i history reference.nc esdm://run1.nc\n"
                "  esdm-diff --erratum erratum.txt run1.nc@tag:v1 run1.nc\n"
                "  esdm-diff -q a.nc b.nc && echo equal\n",
    .see_also = "esdm-log, esdm-cp",
};

cp_options cp_wants; /* of the parts of esdm-cp that read */

static gboolean quiet, structure_only;
static char *erratum;         /* file */
static GString *erratum_body; /* with --erratum */
static char **ignored;

static const GOptionEntry entries[] = {
    {"quiet", 'q', 0, G_OPTION_ARG_NONE, &quiet, "Say nothing, the exit status tells", NULL},
    {"header", 'H', 0, G_OPTION_ARG_NONE, &structure_only, "Do not compare values", NULL},
    {"ignore", 'i', 0, G_OPTION_ARG_STRING_ARRAY, &ignored,
     "Ignore attributes of this name (several times)", "NAME"},
    {"erratum", 'e', 0, G_OPTION_ARG_FILENAME, &erratum,
     "Write a short record of what changed, with coordinates; -: to standard output", "FILE"},
    {0},
};

static guint found;        /* differences */
static guint64 bytes_read; /* of values of one side */
static json_t *lines;      /* with --json: what print() was given */
static json_t *values_told;

static void print(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void
print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    found++;
    if (erratum_body != NULL) {
        g_autofree char *line = tool_printable(text);
        g_string_append_printf(erratum_body, "- %s\n", line);
    }
    if (erratum != NULL && g_str_equal(erratum, "-"))
        return;
    if (tool.json) {
        tool_json_append(lines, tool_json_text(text));
    } else if (!quiet) {
        g_autofree char *printable = tool_printable(text);
        (void) printf("%s\n", printable);
    }
}

/* ---- structure ---------------------------------------------------------------------------- */

static bool
is_ignored(const char *name)
{
    return ignored != NULL && g_strv_contains((const char *const *) ignored, name);
}

static char *
value_text(const cp_attribute *attribute)
{
    json_t *value =
        attribute->type->path == NULL
            ? tool_json_values(attribute->type->atomic, attribute->count, attribute->values)
            : NULL;
    char *dumped = value != NULL ? json_dumps(value, JSON_COMPACT | JSON_ENCODE_ANY) : NULL;
    char *text = g_strdup(dumped != NULL ? dumped : "another value");
    free(dumped);
    json_decref(value);
    return text;
}

#define SHOWN_BYTES 57u
#define SHOWN_AHEAD 20u /* of what is the same in both */

/* Where the character of UTF-8 begins. */
static size_t
at_character(const char *text, size_t at)
{
    while (at > 0 && ((unsigned char) text[at] & 0xc0u) == 0x80u)
        at--;
    return at;
}

/* Bytes that both begin with. */
static size_t
same_bytes(const char *a, const char *b)
{
    size_t n = 0;
    while (a[n] != '\0' && a[n] == b[n])
        n++;
    return n;
}

/* The begin of a long text, or where it is another one. Owned. */
static char *
shown(const char *text, size_t same)
{
    size_t from = same > SHOWN_BYTES - SHOWN_AHEAD && strlen(text) > SHOWN_BYTES + 3
                      ? at_character(text, same - SHOWN_AHEAD)
                      : 0;
    const char *rest = text + from;
    bool whole = strlen(rest) <= SHOWN_BYTES + 3;
    size_t bytes = whole ? strlen(rest) : at_character(rest, SHOWN_BYTES);
    return g_strdup_printf("%s%.*s%s", from > 0 ? "…" : "", (int) bytes, rest, whole ? "" : "…");
}

static void
compare_attributes(const char *owner, const GPtrArray *a, const GPtrArray *b)
{
    uint64_t index;
    for (guint i = 0; i < a->len; i++) {
        const cp_attribute *x = g_ptr_array_index(a, i);
        const cp_attribute *y = cp_attribute_find(b, x->name);
        if (is_ignored(x->name))
            continue;
        g_autofree char *before = value_text(x);
        if (y == NULL) {
            g_autofree char *alone = shown(before, 0);
            print("attribute %s:%s = %s is missing in B", owner, x->name, alone);
        } else if (!cp_type_equal(x->type, y->type) || x->count != y->count ||
                   !cp_values_equal(x->type, y->type, x->count, x->values, y->values, &index)) {
            g_autofree char *after = value_text(y);
            size_t same = same_bytes(before, after);
            g_autofree char *of_a = shown(before, same);
            g_autofree char *of_b = shown(after, same);
            print("attribute %s:%s = %s in A, %s in B", owner, x->name, of_a, of_b);
        }
    }
    for (guint i = 0; i < b->len; i++) {
        const cp_attribute *y = g_ptr_array_index(b, i);
        if (is_ignored(y->name) || cp_attribute_find(a, y->name) != NULL)
            continue;
        g_autofree char *after = value_text(y);
        g_autofree char *alone = shown(after, 0);
        print("attribute %s:%s = %s is in B alone", owner, y->name, alone);
    }
}

static cp_dimension *
find_dimension(const cp_group *group, const char *name)
{
    for (guint i = 0; i < group->dimensions->len; i++) {
        cp_dimension *one = g_ptr_array_index(group->dimensions, i);
        if (g_str_equal(one->name, name))
            return one;
    }
    return NULL;
}

static void
compare_dimensions(const cp_group *a, const cp_group *b)
{
    for (guint i = 0; i < a->dimensions->len; i++) {
        const cp_dimension *x = g_ptr_array_index(a->dimensions, i);
        const cp_dimension *y = find_dimension(b, x->name);
        if (y == NULL)
            print("dimension %s/%s is missing in B", a->path, x->name);
        else if (x->length != y->length)
            print("dimension %s/%s = %" G_GUINT64_FORMAT " in A, %" G_GUINT64_FORMAT " in B",
                  a->path, x->name, (guint64) x->length, (guint64) y->length);
        else if (x->unlimited != y->unlimited)
            print("dimension %s/%s is %s in A, %s in B", a->path, x->name,
                  x->unlimited ? "unlimited" : "fixed", y->unlimited ? "unlimited" : "fixed");
    }
    for (guint i = 0; i < b->dimensions->len; i++) {
        const cp_dimension *y = g_ptr_array_index(b->dimensions, i);
        if (find_dimension(a, y->name) == NULL)
            print("dimension %s/%s is in B alone", b->path, y->name);
    }
}

static cp_group *
find_group(const cp_group *group, const char *name)
{
    for (guint i = 0; i < group->groups->len; i++) {
        cp_group *one = g_ptr_array_index(group->groups, i);
        if (g_str_equal(one->name, name))
            return one;
    }
    return NULL;
}

static void
compare_groups(const cp_group *a, const cp_group *b)
{
    compare_attributes(a->path[0] != '\0' ? a->path : "/", a->attributes, b->attributes);
    compare_dimensions(a, b);
    for (guint i = 0; i < a->groups->len; i++) {
        const cp_group *x = g_ptr_array_index(a->groups, i);
        const cp_group *y = find_group(b, x->name);
        if (y != NULL)
            compare_groups(x, y);
        else
            print("group %s is missing in B", x->path);
    }
    for (guint i = 0; i < b->groups->len; i++) {
        const cp_group *y = g_ptr_array_index(b->groups, i);
        if (find_group(a, y->name) == NULL)
            print("group %s is in B alone", y->path);
    }
}

/* ---- datasets ----------------------------------------------------------------------------- */

static const cp_dataset *
find_dataset(const cp_model *model, const char *path)
{
    for (guint i = 0; i < model->datasets->len; i++) {
        const cp_dataset *one = g_ptr_array_index(model->datasets, i);
        if (g_str_equal(one->path, path))
            return one;
    }
    return NULL;
}

char *
diff_units(const cp_dataset *dataset)
{
    const cp_attribute *units = cp_attribute_find(dataset->attributes, "units");
    if (units == NULL || units->type->path != NULL || units->type->atomic != ESDM_TYPE_CHAR)
        return g_strdup("");
    return g_strdup_printf(" %.*s", (int) units->count, (const char *) units->values);
}

static char *
box_text(uint32_t rank, const diff_values *v)
{
    GString *text = g_string_new("[");
    for (uint32_t d = 0; d < rank; d++) {
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, d > 0 ? ", " : "", v->first[d]);
        if (v->last[d] > v->first[d])
            g_string_append_printf(text, ":%" G_GUINT64_FORMAT, v->last[d] + 1);
    }
    return g_string_free(g_string_append_c(text, ']'), FALSE);
}

static void
tell_json(const cp_dataset *x, const diff_values *v)
{
    json_t *object = json_object();
    json_t *box = json_array();
    for (uint32_t d = 0; d < x->rank; d++)
        tool_json_append(
            box, json_pack("[I, I]", (json_int_t) v->first[d], (json_int_t) v->last[d] + 1));
    tool_json_set(object, "variable", tool_json_text(x->path));
    tool_json_set(object, "compared", tool_json_u64(v->compared));
    tool_json_set(object, "different", tool_json_u64(v->different));
    if (v->numbers) {
        tool_json_set(object, "largest_difference",
                      isfinite(v->absolute) ? json_real(v->absolute) : json_null());
        tool_json_set(object, "largest_relative_difference",
                      isfinite(v->relative) ? json_real(v->relative) : json_null());
    }
    tool_json_set(object, "box", box);
    tool_json_set(object, "read_bytes", tool_json_u64(v->read_bytes));
    tool_json_append(values_told, object);
}

static void
tell_values(const cp_dataset *x, const diff_values *v)
{
    g_autofree char *units = diff_units(x);
    g_autofree char *box = box_text(x->rank, v);
    g_autofree char *size =
        !v->numbers ? g_strdup("")
        : !isfinite(v->absolute)
            ? g_strdup(", some are NaN or infinite on one side alone")
            : g_strdup_printf(", by up to %.6g%s (%.3g %%)", v->absolute, units, 100 * v->relative);
    if (tool.json)
        tell_json(x, v);
    print("values of %s: %" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT " differ%s, within %s",
          x->path, v->different, v->compared, size, box);
}

static esdm_status
compare_dataset(const cp_end *a, const cp_model *model, const cp_dataset *x, const cp_end *b,
                const cp_dataset *y, esdm_error *err)
{
    diff_values v;
    compare_attributes(x->path, x->attributes, y->attributes);
    if (!cp_type_equal(x->type, y->type))
        print("variable %s is %s in A, %s in B", x->path, cp_type_name(x->type),
              cp_type_name(y->type));
    bool same_axes = x->rank == y->rank;
    for (uint32_t d = 0; same_axes && d < x->rank; d++)
        same_axes = g_str_equal(x->dimensions[d]->name, y->dimensions[d]->name);
    if (!same_axes) {
        print("variable %s has other dimensions; its values are not compared", x->path);
        return ESDM_OK;
    }
    bool comparable =
        cp_type_equal(x->type, y->type) ||
        (x->type->path == NULL && y->type->path == NULL &&
         (x->type->atomic == ESDM_TYPE_STRING) == (y->type->atomic == ESDM_TYPE_STRING) &&
         (x->type->atomic == ESDM_TYPE_CHAR) == (y->type->atomic == ESDM_TYPE_CHAR));
    if (structure_only || !comparable)
        return ESDM_OK;
    esdm_status status = diff_values_compare(a, x, b, y, &v, err);
    bytes_read += v.read_bytes;
    if (status != ESDM_OK || v.different == 0)
        return status;
    tell_values(x, &v);
    if (erratum_body != NULL) {
        g_autofree char *where = diff_where(a, model, x, &v);
        g_autofree char *line = tool_printable(where);
        g_string_append_printf(erratum_body, "  at %s\n", line);
    }
    return ESDM_OK;
}

static esdm_status
compare(const cp_end *a, const cp_model *x, const cp_end *b, const cp_model *y, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    compare_groups(x->root, y->root);
    for (guint i = 0; i < x->datasets->len && status == ESDM_OK && !(quiet && found > 0); i++) {
        const cp_dataset *one = g_ptr_array_index(x->datasets, i);
        const cp_dataset *other = find_dataset(y, one->path);
        if (other == NULL)
            print("variable %s is missing in B", one->path);
        else
            status = compare_dataset(a, x, one, b, other, err);
    }
    for (guint i = 0; i < y->datasets->len && status == ESDM_OK; i++) {
        const cp_dataset *one = g_ptr_array_index(y->datasets, i);
        if (find_dataset(x, one->path) == NULL)
            print("variable %s is in B alone", one->path);
    }
    return status;
}

/* ---- the two ------------------------------------------------------------------------------ */

/* esdm://NAME and stubs are containers, other files that exist are files, the rest are names. */
static esdm_status
open_end(esdm_session *session, const char *argument, cp_end *end, cp_model **ret_model,
         esdm_error *err)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    g_autofree char *stub = NULL;
    esdm_status status = tool_stub_container(session, argument, &stub, err);
    if (status != ESDM_OK)
        return status;
    if (stub == NULL && !g_file_test(argument, G_FILE_TEST_EXISTS) &&
        (g_path_is_absolute(argument) || g_str_has_prefix(argument, "./") ||
         g_str_has_prefix(argument, "../"))) {
        *err = (esdm_error){.status = ESDM_ENOENT};
        (void) g_snprintf(err->message, sizeof err->message,
                          "there is no file '%s'; a container is written esdm://NAME", argument);
        return ESDM_ENOENT;
    }
    *end = (cp_end){.ncid = -1, .session = session};
    end->is_container = stub != NULL || g_str_has_prefix(argument, "esdm:") ||
                        !g_file_test(argument, G_FILE_TEST_EXISTS);
    if (!end->is_container) {
        end->name = g_strdup(argument);
        return cp_netcdf_open(end, ret_model, err);
    }
    status = esdm_container_normalise(stub != NULL ? stub : tool_container(argument), name, err);
    if (status != ESDM_OK)
        return status;
    end->name = g_strdup(name);
    return cp_container_open(end, ret_model, err);
}

static tool_exit
run(esdm_session *session, char **argv)
{
    cp_end ends[2] = {{.ncid = -1}, {.ncid = -1}};
    cp_model *models[2] = {NULL, NULL};
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    tool_exit result = TOOL_OK;
    for (int i = 0; i < 2 && status == ESDM_OK; i++)
        status = open_end(session, argv[1 + i], &ends[i], &models[i], &err);
    if (status == ESDM_OK)
        status = compare(&ends[0], models[0], &ends[1], models[1], &err);
    if (status == ESDM_OK && erratum != NULL)
        status = diff_erratum_write(erratum, ends, argv + 1, erratum_body, &err);
    if (status != ESDM_OK) {
        result = tool_fail(status, &err);
        result = result == TOOL_FAILED ? TOOL_USAGE : result;
    }
    for (int i = 0; i < 2; i++) {
        cp_close(&ends[i]);
        cp_model_free(models[i]);
        g_free(ends[i].name);
    }
    return result;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 3)
        return tool_usage("which two are to be compared?");
    esdm_session *session = NULL;
    tool_exit result = tool_session(true, &session);
    if (result != TOOL_OK)
        return result == TOOL_FAILED ? TOOL_USAGE : (int) result;
    erratum_body = erratum != NULL ? g_string_new(NULL) : NULL;
    lines = json_array();
    values_told = json_array();
    cp_tell_crashes(TOOL_USAGE); /* as other errors: 1 says that they differ */
    result = run(session, argv);
    if (tool.json && result == TOOL_OK) {
        json_t *root = json_object();
        tool_json_set(root, "equal", json_boolean(found == 0));
        tool_json_set(root, "differences", lines);
        tool_json_set(root, "values", values_told);
        tool_json_set(root, "read_bytes", tool_json_u64(bytes_read));
        tool_json_print(root);
    } else {
        json_decref(lines);
        json_decref(values_told);
    }
    if (erratum_body != NULL)
        (void) g_string_free(erratum_body, TRUE);
    esdm_session_close(session);
    result = tool_finish(result);
    return result != TOOL_OK ? (int) result : found > 0 ? 1 : 0;
}
