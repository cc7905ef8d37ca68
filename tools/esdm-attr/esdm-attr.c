/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file esdm-attr: shows and changes attributes, of many containers at once. */

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "common/common.h"

static const tool_help help = {
    .name = "esdm-attr",
    .arguments = "CONTAINER…",
    .description =
        "Shows the global attributes of containers, or those of a variable, and changes\n"
        "them: --set and --remove may be given many times. Each container gets one commit\n"
        "with all changes; what is as it should be already gets none. With --where the\n"
        "containers are those that a query finds (see esdm-find).\n"
        "\n"
        "A value is text, unless --type says what it is: byte, short, int, int64, ubyte,\n"
        "ushort, uint, uint64, float or double, as numbers parted by commas. The snapshot\n"
        "before stays for a while (esdm-log, NAME@-1). A container that cannot be changed\n"
        "does not keep the others from being changed.",
    .examples =
        "  esdm-attr run1.nc                          global attributes\n"
        "  esdm-attr -V tas run1.nc                   those of the variable tas\n"
        "  esdm-attr --set 'title=Control run' --remove history run1.nc\n"
        "  esdm-attr -V tas --type float --set 'valid_range=150,350' run1.nc run2.nc\n"
        "  esdm-attr --where 'source_id = MPI-ESM1-2-LR' --set license=CC-BY-4.0 --dry-run\n",
    .see_also = "esdm-find, esdm-stat, esdm-log",
};

static char **sets, **removals, *where, *variable, *type_name, *message;
static gboolean dry_run;
static esdm_type type = ESDM_TYPE_CHAR;

static const GOptionEntry entries[] = {
    {"variable", 'V', 0, G_OPTION_ARG_STRING, &variable,
     "Attributes of this variable; one in a group: GROUP/NAME", "NAME"},
    {"set", 's', 0, G_OPTION_ARG_STRING_ARRAY, &sets, "Give an attribute a value", "NAME=VALUE"},
    {"type", 't', 0, G_OPTION_ARG_STRING, &type_name, "Type of the values of --set (default: char)",
     "TYPE"},
    {"remove", 'd', 0, G_OPTION_ARG_STRING_ARRAY, &removals, "Remove an attribute", "NAME"},
    {"where", 'w', 0, G_OPTION_ARG_STRING, &where, "The containers that a query finds",
     "EXPRESSION"},
    {"message", 'm', 0, G_OPTION_ARG_STRING, &message, "Message of the commits", "TEXT"},
    {"dry-run", 'n', 0, G_OPTION_ARG_NONE, &dry_run, "Print what would change, change nothing",
     NULL},
    {0},
};

/* One --set, as it is to be stored. */
typedef struct wanted {
    char *name;
    void *values; /* owned */
    uint64_t count;
} wanted;

static GArray *changes; /* of wanted */
static json_t *shown;   /* with --json */

/* ---- what is wanted ----------------------------------------------------------------------- */

static bool
parse_type(void)
{
    static const struct {
        const char *name;
        esdm_type type;
    } types[] = {
        {"char", ESDM_TYPE_CHAR},     {"byte", ESDM_TYPE_INT8},     {"short", ESDM_TYPE_INT16},
        {"int", ESDM_TYPE_INT32},     {"int64", ESDM_TYPE_INT64},   {"ubyte", ESDM_TYPE_UINT8},
        {"ushort", ESDM_TYPE_UINT16}, {"uint", ESDM_TYPE_UINT32},   {"uint64", ESDM_TYPE_UINT64},
        {"float", ESDM_TYPE_FLOAT32}, {"double", ESDM_TYPE_FLOAT64}};
    for (size_t i = 0; type_name != NULL && i < G_N_ELEMENTS(types); i++) {
        if (g_str_equal(type_name, types[i].name)) {
            type = types[i].type;
            return true;
        }
    }
    return type_name == NULL;
}

/* Numbers of any type: integers through 64 bits, so that none is rounded. */
static bool
parse_number(const char *text, void *element)
{
    char *end = NULL;
    uint64_t lost = 0;
    esdm_type from = ESDM_TYPE_FLOAT64;
    union {
        double f;
        gint64 i;
        guint64 u;
    } number;
    if (type != ESDM_TYPE_FLOAT32 && type != ESDM_TYPE_FLOAT64) {
        bool natural = type == ESDM_TYPE_UINT64;
        errno = 0;
        if (natural)
            number.u = g_ascii_strtoull(text, &end, 10);
        else
            number.i = g_ascii_strtoll(text, &end, 10);
        if (errno != 0 || (natural && strchr(text, '-') != NULL))
            return false;
        from = natural ? ESDM_TYPE_UINT64 : ESDM_TYPE_INT64;
    } else {
        number.f = g_ascii_strtod(text, &end);
    }
    return end != text && *end == '\0' &&
           esdm_convert(from, &number, type, element, 1, &lost, NULL) == ESDM_OK && lost == 0;
}

static bool
parse_set(const char *text)
{
    const char *equal = strchr(text, '=');
    if (equal == NULL || equal == text)
        return false;
    wanted w = {.name = g_strndup(text, (gsize) (equal - text))};
    if (type == ESDM_TYPE_CHAR) {
        w.values = g_strdup(equal + 1);
        w.count = strlen(equal + 1);
        g_array_append_val(changes, w);
        return true;
    }
    g_auto(GStrv) parts = g_strsplit(equal + 1, ",", -1);
    size_t size = esdm_type_size(type);
    w.count = g_strv_length(parts);
    w.values = g_malloc0(size * w.count + 1);
    g_array_append_val(changes, w);
    for (guint i = 0; parts[i] != NULL; i++) {
        if (!parse_number(g_strstrip(parts[i]), (char *) w.values + i * size))
            return false;
    }
    return w.count > 0;
}

/* ---- one container ------------------------------------------------------------------------ */

/* NULL, with a message: there is no such variable. */
static esdm_attributes *
attributes_of(esdm_container *container, const char *name)
{
    esdm_group *group = esdm_container_root(container);
    if (variable == NULL)
        return esdm_group_attributes(group);
    g_auto(GStrv) parts = g_strsplit(variable[0] == '/' ? variable + 1 : variable, "/", -1);
    guint last = g_strv_length(parts);
    for (guint i = 0; i + 1 < last && group != NULL; i++)
        group = esdm_group_find(group, parts[i]);
    esdm_dataset *dataset =
        group != NULL && last > 0 ? esdm_group_dataset_find(group, parts[last - 1]) : NULL;
    if (dataset != NULL)
        return esdm_dataset_attributes(dataset);
    g_autofree char *printable = tool_printable(name);
    tool_error("container '%s' has no variable '%s'", printable, variable);
    return NULL;
}

static void
show(const char *name, const esdm_attributes *list)
{
    esdm_attribute a;
    json_t *object = json_object();
    g_autofree char *printable = tool_printable(name);
    if (!tool.json)
        (void) printf("%s%s%s\n", printable, variable != NULL ? ":" : "",
                      variable != NULL ? variable : "");
    for (size_t i = 0; esdm_attribute_at(list, i, &a); i++) {
        json_t *value = tool_json_values(a.type, a.count, a.values);
        if (tool.json) {
            tool_json_set(object, a.name, value);
            continue;
        }
        g_autofree char *attribute = tool_printable(a.name);
        char *text = json_dumps(value, JSON_ENCODE_ANY | JSON_REAL_PRECISION(9));
        (void) printf("    %s = %s\n", attribute, text != NULL ? text : "?");
        free(text);
        json_decref(value);
    }
    if (tool.json)
        tool_json_set(shown, name, object);
    else
        json_decref(object);
}

static bool
is_so(const esdm_attributes *list, const wanted *w)
{
    esdm_attribute a;
    size_t size = type == ESDM_TYPE_CHAR ? 1 : esdm_type_size(type);
    return esdm_attribute_find(list, w->name, &a, NULL) && a.type == type && a.count == w->count &&
           (w->count == 0 || memcmp(a.values, w->values, w->count * size) == 0);
}

static void
tell(json_t *list, const char *name, const char *what, const char *attribute)
{
    if (tool.json) {
        tool_json_append(list, tool_json_text(attribute));
        return;
    }
    g_autofree char *line =
        g_strdup_printf("%s%s%s: %s%s %s", name, variable != NULL ? ":" : "",
                        variable != NULL ? variable : "", dry_run ? "would " : "", what, attribute);
    g_autofree char *printable = tool_printable(line);
    (void) printf("%s\n", printable);
}

/* Makes the changes that are not so already. @param list of what was changed. */
static esdm_status
change(esdm_attributes *list, json_t *told, const char *name, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    json_t *set = json_array(), *gone = json_array();
    for (guint i = 0; i < changes->len && status == ESDM_OK; i++) {
        const wanted *w = &g_array_index(changes, wanted, i);
        if (is_so(list, w))
            continue;
        tell(set, name, "set", w->name);
        if (!dry_run)
            status = esdm_attribute_set(list, w->name, type, w->count, w->values, err);
    }
    for (guint i = 0; removals != NULL && removals[i] != NULL && status == ESDM_OK; i++) {
        if (!esdm_attribute_find(list, removals[i], NULL, NULL))
            continue;
        tell(gone, name, "remove", removals[i]);
        if (!dry_run)
            status = esdm_attribute_remove(list, removals[i], err);
    }
    tool_json_set(told, "set", set);
    tool_json_set(told, "removed", gone);
    return status;
}

static tool_exit
visit_container(esdm_session *session, const char *name)
{
    esdm_container *container = NULL;
    esdm_error err = {0};
    bool changing = changes->len > 0 || removals != NULL;
    esdm_status status =
        esdm_container_open(session, name, changing && !dry_run ? ESDM_OPEN_WRITE : ESDM_OPEN_READ,
                            ESDM_SNAPSHOT_LATEST, &container, &err);
    if (status == ESDM_ENOENT && strpbrk(name, "=<>~") != NULL) {
        g_autofree char *printable = tool_printable(name);
        tool_error("there is no container '%s'; what a query finds is meant by --where '%s'",
                   printable, printable);
        return TOOL_NOT_FOUND;
    }
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    esdm_attributes *list = attributes_of(container, name);
    if (list == NULL || !changing) {
        if (list != NULL)
            show(name, list);
        esdm_container_discard(container);
        return list == NULL ? TOOL_NOT_FOUND : TOOL_OK;
    }
    json_t *told = json_object();
    status = change(list, told, name, &err);
    if (status == ESDM_OK && !dry_run)
        status = esdm_container_commit(container, message != NULL ? message : "esdm-attr", &err);
    esdm_container_discard(container);
    if (tool.json && status == ESDM_OK)
        tool_json_set(shown, name, told);
    else
        json_decref(told);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* ---- which containers --------------------------------------------------------------------- */

static bool
note_match(const esdm_match *match, void *user)
{
    GPtrArray *names = user;
    /* Matches come by name. */
    if (names->len == 0 || !g_str_equal(g_ptr_array_index(names, names->len - 1), match->container))
        g_ptr_array_add(names, g_strdup(match->container));
    return true;
}

static tool_exit
select_names(esdm_session *session, int argc, char **argv, GPtrArray **ret_names)
{
    esdm_error err = {0};
    tool_exit result = TOOL_OK;
    *ret_names = tool_names(argc, argv, &result);
    if (*ret_names == NULL || where == NULL)
        return result;
    esdm_status status = esdm_find(session, where, note_match, *ret_names, &err);
    if (status == ESDM_EINVAL)
        return tool_usage("%s", err.message);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    return (*ret_names)->len > 0 ? TOOL_OK : TOOL_NOT_FOUND;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if ((argc < 2) == (where == NULL))
        return tool_usage("containers by their names, or by --where");
    if (!parse_type())
        return tool_usage("--type: there is no type '%s'", type_name);
    changes = g_array_new(FALSE, TRUE, sizeof(wanted));
    for (guint i = 0; sets != NULL && sets[i] != NULL; i++) {
        if (!parse_set(sets[i]))
            return tool_usage("--set: '%s' is not NAME=VALUE with a value of type %s", sets[i],
                              type_name != NULL ? type_name : "char");
    }
    esdm_session *session = NULL;
    g_autoptr(GPtrArray) names = NULL;
    bool changing = changes->len > 0 || removals != NULL;
    tool_exit result = tool_session_made(!changing || dry_run, &session);
    if (result != TOOL_OK)
        return result;
    shown = json_object();
    result = select_names(session, argc, argv, &names);
    for (guint i = 0; result != TOOL_USAGE && names != NULL && i < names->len; i++) {
        tool_exit one = visit_container(session, g_ptr_array_index(names, i));
        result = result == TOOL_OK ? one : result;
    }
    if (tool.json && result != TOOL_USAGE)
        tool_json_print(shown);
    else
        json_decref(shown);
    for (guint i = 0; i < changes->len; i++) {
        g_free(g_array_index(changes, wanted, i).name);
        g_free(g_array_index(changes, wanted, i).values);
    }
    (void) g_array_free(changes, TRUE);
    esdm_session_close(session);
    return tool_finish(result);
}
