/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* esdm-log: the snapshots of a container, and what changed from one to the next. */
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm-log/esdm-log.h"
#include "esdm/branch.h"
#include "esdm/history.h"

static const tool_help help = {
    .name = "esdm-log",
    .arguments = "NAME[@TIME]…",
    .description =
        "Shows the history of containers, the newest snapshot first: when it was made, by\n"
        "whom, and what it changed. Each snapshot can be read by its name, by any program:\n"
        "esdm://NAME@7, the one before the newest as NAME@-1, and what was the newest at a\n"
        "time as NAME@2026-11-20T12:00 (UTC), one with a tag (esdm-tag) as NAME@tag:TAG.\n"
        "Branches (esdm-branch) are named beside the snapshot that they began with; their\n"
        "own history is that of NAME@branch:BRANCH, and --line goes on with what they began with.\n"
        "\n"
        "How many snapshots are kept the site says (\"history\"). Containers that had the name\n"
        "before follow, as long as the site keeps them (esdm-restore brings them back). A name\n"
        "in time shows the history until then, also of what was replaced or removed since.",
    .examples = "  esdm-log run1.nc\n"
                "  esdm-log --brief experiment/run1.nc\n"
                "  esdm-log --line run1.nc@branch:fix/names\n"
                "  esdm-log run1.nc@2026-11-20T12:00     what it was then, whatever became of it\n"
                "  esdm-run ncdump -v tas esdm://run1.nc@-1\n",
    .see_also = "esdm-tag, esdm-stat, esdm-restore, esdm-ls --replaced",
};

static gboolean brief, whole_line;

static const GOptionEntry entries[] = {
    {"brief", 'b', 0, G_OPTION_ARG_NONE, &brief, "One line for each snapshot", NULL},
    {"line", 'l', 0, G_OPTION_ARG_NONE, &whole_line,
     "Go on with what a branch began with, back to its container", NULL},
    {0},
};

typedef struct step {
    guint64 snapshot;
    guint64 time_ns;
    char *writer;
    char *message;
    GPtrArray *tags;     /* texts */
    GPtrArray *branches; /* that begin with it */
} step;

static void
free_step(gpointer data)
{
    step *one = data;
    g_free(one->writer);
    g_free(one->message);
    g_ptr_array_unref(one->tags);
    g_ptr_array_unref(one->branches);
    g_free(one);
}

static bool
note(const esdm_snapshot_info *info, void *user)
{
    step *one = g_new0(step, 1);
    one->snapshot = info->snapshot;
    one->time_ns = info->time_ns;
    one->writer = g_strdup(info->writer);
    one->message = g_strdup(info->message);
    one->tags = g_ptr_array_new_with_free_func(g_free);
    one->branches = g_ptr_array_new_with_free_func(g_free);
    g_ptr_array_add(user, one);
    return true;
}

/* Of a name in time: of the container that it says, which may be a former one. */
static bool
note_any_tag(const esdm_tag_info *info, void *user)
{
    const GPtrArray *steps = user;
    for (guint i = 0; i < steps->len; i++) {
        const step *one = g_ptr_array_index(steps, i);
        if (one->snapshot == info->snapshot)
            g_ptr_array_add(one->tags, g_strdup(info->tag));
    }
    return true;
}

/* Branches that begin with a container, or with a branch of it. */
typedef struct beginning {
    const char *name;
    const GPtrArray *steps;
} beginning;

static bool
note_tag(const esdm_tag_info *info, void *user)
{
    return info->former_ns != 0 || note_any_tag(info, user);
}

/* Those of a container that began with another branch are found in the log of that. */
static bool
note_branch(const esdm_branch_info *info, void *user)
{
    const beginning *b = user;
    const GPtrArray *steps = b->steps;
    if (!g_str_equal(info->parent, b->name))
        return true;
    for (guint i = 0; i < steps->len; i++) {
        const step *one = g_ptr_array_index(steps, i);
        if (one->snapshot == info->from)
            g_ptr_array_add(one->branches, g_strdup(info->branch));
    }
    return true;
}

/* ---- showing ------------------------------------------------------------------------------ */

/* What was asked for. */
typedef struct said {
    const char *name; /* of the container, or what says a snapshot of it */
    bool in_time;     /* it is that */
    bool is_former;   /* of a container that was replaced or removed */
    tool_former former;
} said;

static char *
base_of(const said *s)
{
    const char *at = s->in_time ? strrchr(s->name, '@') : NULL;
    return g_strndup(s->name, at != NULL ? (gsize) (at - s->name) : strlen(s->name));
}

/* How a snapshot can be read. Numbers are those of the container that has the name. */
static char *
name_of(const said *s, const step *one)
{
    g_autofree char *time = s->is_former ? tool_time_iso(one->time_ns) : NULL;
    g_autofree char *base = base_of(s);
    g_autofree char *name = time != NULL
                                ? g_strdup_printf("%s@%s", base, time)
                                : g_strdup_printf("%s@%" G_GUINT64_FORMAT, base, one->snapshot);
    return tool_printable(name);
}

static void
show_names(const char *what, const GPtrArray *names)
{
    for (guint i = 0; i < names->len; i++) {
        g_autofree char *name = tool_printable(g_ptr_array_index(names, i));
        (void) printf("%s%s%s%s", i == 0 ? "  " : ", ", i == 0 ? what : "", i == 0 ? ": " : "",
                      name);
    }
}

static json_t *
names_json(const GPtrArray *names)
{
    json_t *list = json_array();
    for (guint i = 0; i < names->len; i++)
        tool_json_append(list, tool_json_text(g_ptr_array_index(names, i)));
    return list;
}

static void
show_text(const said *s, const step *one, const GPtrArray *changes)
{
    g_autofree char *time = tool_time(one->time_ns);
    g_autofree char *printable = name_of(s, one);
    g_autofree char *writer = tool_printable(one->writer);
    g_autofree char *message = tool_printable(one->message);
    (void) printf("%s  %s  %s%s%s", printable, time, writer, message[0] != '\0' ? "  " : "",
                  message);
    show_names("tag", one->tags);
    show_names("branch", one->branches);
    (void) printf("\n");
    for (guint i = 0; changes != NULL && i < changes->len; i++) {
        g_autofree char *line = tool_printable(g_ptr_array_index(changes, i));
        (void) printf("    %s\n", line);
    }
}

static void
show_json(const said *s, const step *one, const GPtrArray *changes, json_t *list)
{
    g_autofree char *name = base_of(s);
    g_autofree char *lost = s->is_former ? tool_time_iso(s->former.time_ns) : NULL;
    json_t *object = json_object();
    g_autofree char *time = tool_time_iso(one->time_ns);
    tool_json_set(object, "name", tool_json_text(name));
    tool_json_set(object, "snapshot", tool_json_u64(one->snapshot));
    tool_json_set(object, "time", json_string(time));
    tool_json_set(object, "writer", tool_json_text(one->writer));
    tool_json_set(object, "message", tool_json_text(one->message));
    if (lost != NULL)
        tool_json_set(object, s->former.removed ? "removed" : "replaced", json_string(lost));
    tool_json_set(object, "tags", names_json(one->tags));
    tool_json_set(object, "branches", names_json(one->branches));
    json_t *lines = json_array();
    for (guint i = 0; changes != NULL && i < changes->len; i++)
        tool_json_append(lines, tool_json_text(g_ptr_array_index(changes, i)));
    if (changes != NULL)
        tool_json_set(object, "changes", lines);
    else
        json_decref(lines);
    tool_json_append(list, object);
}

/* Those that had the name before. */
static bool
show_former(const esdm_former_info *info, void *user)
{
    const said *s = user;
    const char *name = s->is_former ? s->former.base : s->name;
    if (!g_str_equal(info->container.name, name) || tool.json ||
        (s->is_former && info->time_ns >= s->former.time_ns))
        return true;
    g_autofree char *time = tool_time(info->time_ns);
    g_autofree char *until = tool_time_iso(info->time_ns - 1);
    g_autofree char *printable = tool_printable(name);
    (void) printf(
        "before that a container of the same name, %s at %s (esdm-log '%s@%s'; esdm-restore "
        "--id %s '%s')\n",
        info->removed ? "removed" : "replaced", time, printable, until, info->id, printable);
    return true;
}

/* ---- a container -------------------------------------------------------------------------- */

/* The newest first; the contents of two neighbours at a time. */
static tool_exit
log_snapshots(esdm_session *session, const said *s, const GPtrArray *steps, json_t *list)
{
    esdm_error err = {0};
    esdm_status status = ESDM_OK;
    log_contents *newer = NULL;
    for (guint i = steps->len; i-- > 0 && status == ESDM_OK;) {
        const step *one = g_ptr_array_index(steps, i);
        log_contents *older = NULL;
        g_autoptr(GPtrArray) changes = NULL;
        if (!brief && newer == NULL)
            status = log_contents_load(session, s->name, one->snapshot, &newer, &err);
        if (!brief && status == ESDM_OK && i > 0) {
            const step *before = g_ptr_array_index(steps, i - 1);
            status = log_contents_load(session, s->name, before->snapshot, &older, &err);
        }
        if (status == ESDM_OK && !brief)
            changes = log_contents_compare(older, newer, one->snapshot > 1 && i == 0);
        if (status == ESDM_OK && tool.json)
            show_json(s, one, changes, list);
        else if (status == ESDM_OK)
            show_text(s, one, changes);
        log_contents_free(newer);
        newer = older;
    }
    log_contents_free(newer);
    return status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
}

/* A name in time: what came later is left out. */
static esdm_status
cut(esdm_session *session, said *s, GPtrArray *steps, esdm_error *err)
{
    esdm_container_info info;
    esdm_status status = esdm_container_stat(session, s->name, &info, err);
    while (status == ESDM_OK && steps->len > 0 &&
           ((const step *) g_ptr_array_index(steps, steps->len - 1))->snapshot > info.snapshot)
        g_ptr_array_remove_index(steps, steps->len - 1);
    s->is_former = tool_former_of(session, s->name, &s->former);
    return status;
}

/* Whether no container is called so, but what stands before the '@'. */
static bool
is_in_time(esdm_session *session, const char *name)
{
    return strchr(name, '@') != NULL && !tool_is_container(session, name);
}

static tool_exit
log_argument(esdm_session *session, const char *argument, json_t *list)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err = {0};
    said s = {.name = name};
    g_autoptr(GPtrArray) steps = g_ptr_array_new_with_free_func(free_step);
    esdm_status status = tool_container_name(session, argument, name, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    status = esdm_container_snapshots(session, name, note, steps, &err);
    s.in_time = status == ESDM_OK && is_in_time(session, name);
    if (s.in_time)
        status = cut(session, &s, steps, &err);
    if (status == ESDM_OK)
        status =
            esdm_container_tags(session, name, s.in_time ? note_any_tag : note_tag, steps, &err);
    const beginning begun = {name, steps};
    if (status == ESDM_OK && !s.in_time)
        status = esdm_branch_list(session, name, note_branch, (void *) &begun, &err);
    if (status == ESDM_ENOENT)
        return tool_absent(session, name);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_exit result = log_snapshots(session, &s, steps, list);
    if (result == TOOL_OK && (!s.in_time || s.is_former))
        (void) !esdm_former_list(session, s.is_former ? s.former.base : name, show_former, &s,
                                 &err);
    return result;
}

/* ---- a line of commits --------------------------------------------------------------------- */

typedef struct ancestry {
    const char *branch; /* NAME@branch:BRANCH */
    char *before;       /* owned; the snapshot that it began with, as a name; NULL: not known */
} ancestry;

static bool
note_parent(const esdm_branch_info *info, void *user)
{
    ancestry *a = user;
    if (!g_str_equal(info->name, a->branch))
        return true;
    if (info->from != 0)
        a->before = g_strdup_printf("%s@%" G_GUINT64_FORMAT, info->parent, (guint64) info->from);
    return false;
}

/* The name of the branch, without a point of time behind it; NULL: it is none. */
static char *
branch_of(const char *name)
{
    const char *mark = strstr(name, "@branch:");
    const char *time = mark != NULL ? strchr(mark + 1, '@') : NULL;
    if (mark == NULL || mark == name)
        return NULL;
    return g_strndup(name, time != NULL ? (gsize) (time - name) : strlen(name));
}

static tool_exit
log_line(esdm_session *session, const char *argument, json_t *list)
{
    esdm_error err = {0};
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    tool_exit result = log_argument(session, argument, list);
    if (!whole_line || result != TOOL_OK ||
        tool_container_name(session, argument, name, &err) != ESDM_OK)
        return result;
    g_autofree char *branch = branch_of(name);
    if (branch == NULL)
        return result;
    g_autofree char *base = g_strndup(branch, (gsize) (strstr(branch, "@branch:") - branch));
    ancestry a = {.branch = branch};
    esdm_status status = esdm_branch_list(session, base, note_parent, &a, &err);
    g_autofree char *before = a.before;
    if (status != ESDM_OK && status != ESDM_ENOENT)
        return tool_fail(status, &err);
    if (before != NULL)
        return log_line(session, before, list);
    if (!tool.json)
        (void) printf("with what it began is not known any more\n");
    return result;
}

int
main(int argc, char **argv)
{
    tool_parse(&help, entries, &argc, &argv);
    if (argc < 2)
        return tool_usage("which containers?");
    esdm_session *session = NULL;
    tool_exit result = tool_session(true, &session);
    if (result != TOOL_OK)
        return result;
    json_t *list = json_array();
    for (int i = 1; i < argc; i++) {
        tool_exit one = log_line(session, argv[i], list);
        result = result == TOOL_OK ? one : result;
    }
    tool_json_print_list("snapshots", list);
    esdm_session_close(session);
    return tool_finish(result);
}
