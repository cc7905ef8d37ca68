/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "esdm-stat/esdm-stat.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const tool_help help = {
    .name = "esdm-stat",
    .arguments = "CONTAINER…",
    .description =
        "Shows containers: size and snapshots, then the structure in the manner of\n"
        "ncdump -h, shortened, and for each dataset how many bytes in how many fragments\n"
        "lie on which target. A name in time (NAME@7, NAME@-1, NAME@2026-11-20T12:00,\n"
        "NAME@tag:TAG) shows that snapshot, also of what was replaced or removed since.\n"
        "\n"
        "--fragments adds a line for each fragment: first index and size along the\n"
        "dimensions, bytes as written and as stored, target, pack and position, codec.\n"
        "\n"
        "--explain tells for each variable, or the one of CONTAINER/VARIABLE, what lies on\n"
        "which target, how long that was predicted to take and took, why it is there, and\n"
        "why not on the others; with --fragments for every fragment, which has the part of\n"
        "its pack's seconds that it has of its bytes. Predictions need a site that was\n"
        "measured (esdm-mkfs --calibrate). Writers tell when they close a container, and\n"
        "every minute.\n"
        "\n"
        "--accuracy adds what is stated of a dataset's accuracy (esdm/accuracy.h), the\n"
        "bounds that its fragments were held to, the largest error and the change of the\n"
        "mean, as they were measured when the fragments were written.\n"
        "\n"
        "--statistics adds minimum, maximum, mean and the number of missing values (NaN,\n"
        "the fill value, missing_value) of each dataset, as stored: scale_factor and\n"
        "add_offset are not applied. Nothing is read for that: they are noted when data are\n"
        "written. Where newer data hide a part of older ones they are bounds, and what\n"
        "earlier versions wrote has none; --exact reads such values.\n"
        "\n"
        "--digest prints a line for each container instead: what its snapshot contains, as\n"
        "a text to be cited. The same structure, attributes and values give the same text,\n"
        "wherever and however they are stored, also on other sites (esdm/digest.h has the\n"
        "form). The first time all values are read; --exact reads them again. With --each\n"
        "there is a line for each variable, too.",
    .examples = "  esdm-stat experiment/run1.nc\n"
                "  esdm-stat -a --snapshot 3 experiment/run1.nc\n"
                "  esdm-stat --explain experiment/run1.nc/ocean/tos\n"
                "  esdm-stat --digest run1.nc@7 esdm://copy/of/run1.nc\n"
                "  esdm-stat --fragments --json run1.nc | jq '.containers[0].root.datasets'\n",
    .see_also = "esdm-ls, esdm-find, esdm-cp",
};

stat_options stat_wants;
static gint64 wanted_snapshot;

static const GOptionEntry entries[] = {
    {"attributes", 'a', 0, G_OPTION_ARG_NONE, &stat_wants.attributes, "Show all attributes", NULL},
    {"fragments", 'f', 0, G_OPTION_ARG_NONE, &stat_wants.fragments, "Show every fragment", NULL},
    {"explain", 'e', 0, G_OPTION_ARG_NONE, &stat_wants.explain,
     "Tell why data lie where they lie; takes CONTAINER/VARIABLE, too", NULL},
    {"summary", 's', 0, G_OPTION_ARG_NONE, &stat_wants.summary,
     "Leave out where the data of each dataset lies", NULL},
    {"accuracy", 0, 0, G_OPTION_ARG_NONE, &stat_wants.accuracy,
     "What is stated of each dataset's accuracy, and what became of its numbers", NULL},
    {"statistics", 0, 0, G_OPTION_ARG_NONE, &stat_wants.statistics,
     "Minimum, maximum, mean and missing values of each dataset", NULL},
    {"exact", 0, 0, G_OPTION_ARG_NONE, &stat_wants.exact,
     "With --statistics: read what is not known exactly; with --digest: read all", NULL},
    {"digest", 0, 0, G_OPTION_ARG_NONE, &stat_wants.digest,
     "Print a digest of the contents, and nothing else", NULL},
    {"each", 0, 0, G_OPTION_ARG_NONE, &stat_wants.each, "With --digest: of each variable, too",
     NULL},
    {"bytes", 'b', 0, G_OPTION_ARG_NONE, &stat_wants.exact_bytes, "Sizes in bytes", NULL},
    {"snapshot", 0, 0, G_OPTION_ARG_INT64, &wanted_snapshot, "Show an old snapshot", "NUMBER"},
    {0},
};

static char *
size_text(uint64_t bytes)
{
    return stat_wants.exact_bytes ? g_strdup_printf("%" G_GUINT64_FORMAT " B", (guint64) bytes)
                                  : tool_bytes(bytes);
}

/* Prints with control characters made visible. */
static void print(const char *format, ...) G_GNUC_PRINTF(1, 2);

static void
print(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *printable = tool_printable(text);
    (void) fputs(printable, stdout);
}

/* ---- datasets ----------------------------------------------------------------------------- */

static gboolean
append_target(gpointer key, gpointer value, gpointer user)
{
    const stat_target *target = value;
    g_autofree char *size = size_text(target->stored_bytes);
    guint packs = g_hash_table_size(target->packs);
    g_string_append_printf(user, "; %s: %s in %" G_GUINT64_FORMAT, (const char *) key, size,
                           (guint64) target->fragments);
    if (packs > 0)
        g_string_append_printf(user, " (%u pack%s)", packs, packs == 1 ? "" : "s");
    return FALSE;
}

static gboolean
append_codec(gpointer key, gpointer value, gpointer user)
{
    (void) value;
    GString *out = user;
    g_string_append_printf(out, "%s%s", out->len > 0 ? ", " : "", (const char *) key);
    return FALSE;
}

static void
print_fragment(const stat_fragment *fragment, const char *indent)
{
    g_autofree char *offset = stat_shape_text(fragment->offset, fragment->rank);
    g_autofree char *size = stat_shape_text(fragment->size, fragment->rank);
    g_autofree char *raw = size_text(fragment->raw_bytes);
    g_autofree char *stored = size_text(fragment->stored_bytes);
    g_strdelimit(offset, "x", ',');
    print("%s    [%s] %s", indent, offset, fragment->rank > 0 ? size : "scalar");
    if (fragment->strided) {
        g_autofree char *stride = stat_shape_text(fragment->stride, fragment->rank);
        print(" every %s", stride);
    }
    print("  %s, stored %s  %s", raw, stored, fragment->target);
    if (fragment->pack[0] != '\0')
        print(" %s @%" G_GUINT64_FORMAT, fragment->pack, (guint64) fragment->position);
    print("  %s\n", fragment->codec);
}

static void
print_storage(const stat_storage *storage, const char *indent)
{
    if (storage->fragments == 0) {
        print("%s    no data\n", indent);
        return;
    }
    g_autofree char *raw = size_text(storage->raw_bytes);
    g_autofree char *stored = size_text(storage->stored_bytes);
    g_autoptr(GString) targets = g_string_new(NULL);
    g_autoptr(GString) codecs = g_string_new(NULL);
    g_tree_foreach(storage->targets, append_target, targets);
    g_tree_foreach(storage->codecs, append_codec, codecs);
    print("%s    %s, stored %s; fragments: %" G_GUINT64_FORMAT "%s; codec: %s\n", indent, raw,
          stored, (guint64) storage->fragments, targets->str, codecs->str);
    if (storage->shared > 0) {
        g_autofree char *shared = size_text(storage->shared_bytes);
        print("%s    %" G_GUINT64_FORMAT " of them (%s) in packs of other containers\n", indent,
              (guint64) storage->shared, shared);
    }
    for (guint i = 0; i < storage->list->len; i++)
        print_fragment(g_ptr_array_index(storage->list, i), indent);
}

static void
print_attributes(const esdm_container *container, const char *owner, esdm_attributes *attributes,
                 const char *indent)
{
    esdm_attribute attribute;
    for (size_t i = 0; esdm_attribute_at(attributes, i, &attribute); i++) {
        g_autofree char *values =
            stat_values_text(container, attribute.type, attribute.count, attribute.values);
        print("%s    %s:%s = %s\n", indent, owner, attribute.name, values);
    }
}

static void
print_declaration(esdm_dataset *dataset, const char *indent)
{
    uint32_t rank = esdm_dataset_rank(dataset);
    g_autoptr(GString) names = g_string_new(NULL);
    uint64_t shape[ESDM_MAX_RANK];
    for (uint32_t i = 0; i < rank; i++) {
        const esdm_dimension *dimension = esdm_dataset_dimension(dataset, i);
        shape[i] = esdm_dimension_length(dimension);
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "", esdm_dimension_name(dimension));
    }
    const esdm_container *container = esdm_group_container(esdm_dataset_group(dataset));
    print("%s  %s %s", indent, stat_type_name(container, esdm_dataset_type(dataset)),
          esdm_dataset_name(dataset));
    if (rank > 0) {
        g_autofree char *lengths = stat_shape_text(shape, rank);
        print("(%s)  %s", names->str, lengths);
    }
    if (esdm_dataset_chunk(dataset) != NULL && rank > 0) {
        g_autofree char *chunk = stat_shape_text(esdm_dataset_chunk(dataset), rank);
        print("  chunk %s", chunk);
    }
    print("\n");
}

static esdm_status
print_accuracy(esdm_dataset *dataset, const char *indent, esdm_error *err)
{
    g_autofree char *stated = stat_accuracy_text(dataset);
    g_autofree char *origin = stat_accuracy_origin(dataset);
    g_autofree char *report = NULL;
    esdm_status status = stat_accuracy_report(dataset, indent, &report, err);
    if (status != ESDM_OK)
        return status;
    if (stated != NULL || origin != NULL)
        print("%s    accuracy: %s%s%s%s\n", indent, stated != NULL ? stated : "",
              stated != NULL ? " (" : "", origin != NULL ? origin : "", stated != NULL ? ")" : "");
    print("%s", report);
    return ESDM_OK;
}

static esdm_status
print_statistics(esdm_dataset *dataset, const char *indent, esdm_error *err)
{
    g_autofree char *text = NULL;
    esdm_status status = stat_statistics_text(dataset, &text, err);
    if (text != NULL)
        print("%s    values: %s\n", indent, text);
    return status;
}

static esdm_status
print_dataset(esdm_dataset *dataset, const char *indent, esdm_error *err)
{
    print_declaration(dataset, indent);
    if (stat_wants.attributes)
        print_attributes(esdm_group_container(esdm_dataset_group(dataset)),
                         esdm_dataset_name(dataset), esdm_dataset_attributes(dataset), indent);
    esdm_status status = ESDM_OK;
    if (stat_wants.statistics || stat_wants.exact)
        status = print_statistics(dataset, indent, err);
    if (stat_wants.summary || status != ESDM_OK)
        return status;
    stat_storage storage;
    status = stat_storage_read(dataset, &storage, err);
    if (status == ESDM_OK)
        print_storage(&storage, indent);
    stat_storage_clear(&storage);
    return status == ESDM_OK && stat_wants.accuracy ? print_accuracy(dataset, indent, err) : status;
}

/* ---- groups ------------------------------------------------------------------------------- */

static void
print_dimensions(const esdm_group *group, const char *indent)
{
    size_t count = esdm_group_dimension_count(group);
    if (count > 0)
        print("%sdimensions:\n", indent);
    for (size_t i = 0; i < count; i++) {
        const esdm_dimension *dimension = esdm_group_dimension_at(group, i);
        bool unlimited = esdm_dimension_is_unlimited(dimension);
        guint64 length = (guint64) esdm_dimension_length(dimension);
        print(unlimited ? "%s  %s = unlimited (%" G_GUINT64_FORMAT ")\n"
                        : "%s  %s = %" G_GUINT64_FORMAT "\n",
              indent, esdm_dimension_name(dimension), length);
    }
}

static void
print_types(const esdm_group *group, const char *indent)
{
    if (esdm_group_type_count(group) > 0)
        print("%stypes:\n", indent);
    for (size_t i = 0; i < esdm_group_type_count(group); i++) {
        g_autofree char *text =
            stat_type_text(esdm_group_container(group), esdm_group_type_at(group, i));
        print("%s  %s\n", indent, text);
    }
}

static esdm_status
print_group(esdm_group *group, const char *indent, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    print_types(group, indent);
    print_dimensions(group, indent);
    if (esdm_group_dataset_count(group) > 0)
        print("%sdatasets:\n", indent);
    for (size_t i = 0; i < esdm_group_dataset_count(group) && status == ESDM_OK; i++)
        status = print_dataset(esdm_group_dataset_at(group, i), indent, err);
    size_t attributes = esdm_attribute_count(esdm_group_attributes(group));
    if (attributes > 0 && stat_wants.attributes) {
        print("%sattributes:\n", indent);
        print_attributes(esdm_group_container(group), "", esdm_group_attributes(group), indent);
    } else if (attributes > 0) {
        print("%sattributes: %zu\n", indent, attributes);
    }
    g_autofree char *deeper = g_strconcat(indent, "  ", NULL);
    for (size_t i = 0; i < esdm_group_count(group) && status == ESDM_OK; i++) {
        esdm_group *child = esdm_group_at(group, i);
        print("%sgroup %s:\n", indent, esdm_group_name(child));
        status = print_group(child, deeper, err);
    }
    return status;
}

/* ---- containers --------------------------------------------------------------------------- */

/* Nothing for writes that went as planned. */
static void
print_writes(const esdm_write_counts *writes)
{
    if (writes->elsewhere > 0)
        print("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
              " fragments were written to another target than planned, which was full, failed or "
              "was not reached\n",
              (guint64) writes->elsewhere, (guint64) writes->fragments);
    if (writes->fewer_copies > 0)
        print("%" G_GUINT64_FORMAT " of %" G_GUINT64_FORMAT
              " fragments were written with fewer copies than asked for (esdm-fsck --repair makes "
              "the others)\n",
              (guint64) writes->fewer_copies, (guint64) writes->fragments);
}

/* One line: the history of a name goes on in other containers. */
static void
print_former(const char *name, const GPtrArray *formers)
{
    if (formers->len == 0)
        return;
    const stat_former *newest = g_ptr_array_index(formers, formers->len - 1);
    g_autofree char *time = tool_time(newest->time_ns);
    print("former containers of this name: %u, the newest %s %s (esdm-ls --replaced '%s')\n",
          formers->len, newest->removed ? "removed" : "replaced", time, name);
}

#define MOST_SHARING 5u

static void
print_shares(const GPtrArray *shares)
{
    if (shares->len == 0)
        return;
    g_autoptr(GString) names = g_string_new(NULL);
    for (guint i = 0; i < MIN(shares->len, MOST_SHARING); i++)
        g_string_append_printf(names, "%s%s", i > 0 ? ", " : "",
                               (const char *) g_ptr_array_index(shares, i));
    if (shares->len > MOST_SHARING)
        g_string_append_printf(names, " and %u others", shares->len - MOST_SHARING);
    print("shares what is stored with %s: it is freed when none of them needs it\n", names->str);
}

static void
print_lost(const tool_former *lost)
{
    g_autofree char *time = tool_time(lost->time_ns);
    print("of the container that was %s %s (esdm-restore --id %s '%s' brings it back)\n",
          lost->removed ? "removed" : "replaced", time, lost->id, lost->base);
}

/* How it is made again (esdm-recipe). */
static void
print_recipe(esdm_container *container)
{
    size_t i;
    const json_t *one;
    g_autoptr(GString) program = g_string_new(NULL);
    json_t *recipe = stat_recipe(container);
    if (recipe == NULL)
        return;
    json_array_foreach(json_object_get(recipe, "program"), i, one)
        g_string_append_printf(program, "%s%s", i > 0 ? " " : "", json_string_value(one));
    print("recipe: %s\n", program->str);
    json_array_foreach(json_object_get(recipe, "tolerances"), i, one)
        print("  within the tolerance %s\n", json_string_value(one));
    size_t others = (size_t) json_integer_value(json_object_get(recipe, "accepted"));
    if (others > 0)
        print("  %zu other result%s compared with the recorded one, and within tolerances\n",
              others, others == 1 ? " was" : "s were");
    const json_t *restored = json_object_get(recipe, "restored");
    if (json_is_object(restored))
        print("  values were computed again, within tolerances (esdm-recipe show tells of %s)\n",
              json_string_value(json_object_get(restored, "digest")));
    json_decref(recipe);
}

static void
print_facts(esdm_container *container, const stat_facts *facts)
{
    const esdm_container_info *info = &facts->info;
    g_autofree char *created = tool_time(info->created_ns);
    g_autofree char *modified = tool_time(info->modified_ns);
    g_autofree char *raw = size_text(info->raw_bytes);
    g_autofree char *stored = size_text(info->stored_bytes);
    const char *format = esdm_container_hint(container, "netcdf.format");
    print("esdm://%s\n", esdm_container_name(container));
    if (facts->is_former)
        print_lost(&facts->lost);
    print("created %s, modified %s%s%s\n", created, modified,
          format != NULL ? ", NetCDF format " : "", format != NULL ? format : "");
    print("%s, stored %s, %" G_GUINT64_FORMAT " fragment%s, %u dataset%s\n", raw, stored,
          (guint64) info->fragments, info->fragments == 1 ? "" : "s", info->datasets,
          info->datasets == 1 ? "" : "s");
    print_writes(&facts->writes);
    print_shares(facts->shares);
    print_recipe(container);
    print("snapshots:\n");
    for (guint i = 0; i < facts->snapshots->len; i++) {
        const stat_snapshot *snapshot = g_ptr_array_index(facts->snapshots, i);
        g_autofree char *time = tool_time(snapshot->time_ns);
        bool shown = snapshot->snapshot == esdm_container_snapshot(container);
        print("%s%" G_GUINT64_FORMAT "  %s  %s%s%s\n", shown ? "* " : "  ",
              (guint64) snapshot->snapshot, time, snapshot->writer,
              snapshot->message[0] != '\0' ? "  " : "", snapshot->message);
    }
    print_former(esdm_container_name(container), facts->former);
}

static esdm_status
show_text(esdm_container *container, const stat_facts *facts, esdm_error *err)
{
    char *shapes = NULL;
    print_facts(container, facts);
    esdm_status status = stat_shapes_text(container, &shapes, err);
    if (status != ESDM_OK)
        return status;
    print("%s", shapes);
    g_free(shapes);
    return print_group(esdm_container_root(container), "", err);
}

static esdm_status
show_json(esdm_container *container, const stat_facts *facts, json_t *list, esdm_error *err)
{
    esdm_error failure = {0};
    json_t *object = stat_json(container, facts, &failure);
    if (object == NULL) {
        *err = failure;
        return failure.status;
    }
    tool_json_append(list, object);
    return ESDM_OK;
}

static bool
note_snapshot(const esdm_snapshot_info *info, void *user)
{
    g_array_append_val((GArray *) user, info->snapshot);
    return true;
}

/* Which snapshots there are instead of the one that was asked for. */
tool_exit
stat_no_snapshot(esdm_session *session, const char *name, const esdm_error *why)
{
    g_autoptr(GArray) numbers = g_array_new(FALSE, FALSE, sizeof(uint64_t));
    g_autoptr(GString) text = g_string_new(NULL);
    esdm_error err = {0};
    (void) !esdm_container_snapshots(session, name, note_snapshot, numbers, &err);
    const guint most = 6; /* then only the first and the last ones */
    for (guint i = 0; i < numbers->len; i++) {
        if (numbers->len > most && i == 2) {
            g_string_append(text, ", …");
            i = numbers->len - 3;
        }
        g_string_append_printf(text, "%s%" G_GUINT64_FORMAT, i > 0 ? ", " : "",
                               (guint64) g_array_index(numbers, uint64_t, i));
    }
    if (numbers->len == 0)
        return tool_fail(ESDM_ENOENT, why);
    tool_error("container '%s' has no snapshot %" G_GINT64_FORMAT "; there %s %s", name,
               wanted_snapshot, numbers->len == 1 ? "is only" : "are", text->str);
    return TOOL_NOT_FOUND;
}

static tool_exit
show(esdm_session *session, const char *argument, json_t *list)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    stat_facts facts;
    esdm_container *container = NULL;
    esdm_status status = esdm_container_normalise(tool_container(argument), name, &err);
    bool is_path = argument[0] == '/' && g_file_test(argument, G_FILE_TEST_IS_REGULAR);
    if (status == ESDM_OK && !is_path) /* a container may be called as the path of a file */
        status = esdm_container_open(session, name, ESDM_OPEN_READ, (uint64_t) wanted_snapshot,
                                     &container, &err);
    g_autofree char *stub = NULL;
    esdm_error why = {0};
    esdm_status means =
        container == NULL ? tool_stub_container(session, argument, &stub, &why) : ESDM_OK;
    if (is_path && means == ESDM_OK && stub == NULL && status == ESDM_OK)
        status = esdm_container_open(session, name, ESDM_OPEN_READ, (uint64_t) wanted_snapshot,
                                     &container, &err);
    if (means != ESDM_OK)
        return tool_fail(means, &why);
    if (stub != NULL) {
        g_autofree char *target = g_strconcat("esdm://", stub, NULL); /* no path */
        return show(session, target, list);
    }
    if (status == ESDM_ENOENT)
        return wanted_snapshot == 0 ? tool_absent(session, name)
                                    : stat_no_snapshot(session, name, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    if (stat_wants.digest) {
        status = stat_digest(container, name, list, &err);
        esdm_container_discard(container);
        return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    }
    status = stat_facts_read(session, container, &facts, &err);
    if (status == ESDM_OK)
        status = tool.json ? show_json(container, &facts, list, &err)
                           : show_text(container, &facts, &err);
    stat_facts_clear(&facts);
    esdm_container_discard(container);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2)
        return tool_usage("which containers?");
    if (wanted_snapshot < 0)
        return tool_usage("snapshots are numbered from 1");
    if (stat_wants.each && !stat_wants.digest)
        return tool_usage("--each goes with --digest");
    esdm_session *session = NULL;
    tool_exit result = tool_session_made(!stat_wants.digest, &session); /* digests are noted */
    if (result != TOOL_OK)
        return result;
    json_t *list = json_array();
    for (int i = 1; i < argc; i++) {
        if (i > 1 && !tool.json && !stat_wants.digest)
            (void) printf("\n");
        tool_exit one = stat_wants.explain
                            ? stat_explain(session, argv[i], (uint64_t) wanted_snapshot, list)
                            : show(session, argv[i], list);
        result = result == TOOL_OK ? one : result;
    }
    tool_json_print_list("containers", list);
    esdm_session_close(session);
    return tool_finish(result);
}
