/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Options that all tools have, their help, and sessions. */

#include "common/common.h"

#include <locale.h>
#include <stdarg.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "esdm/virtual.h"

tool_globals tool = {.name = "esdm"};

static const char exit_statuses[] =
    "  0  everything was done\n"
    "  1  something failed; a message on standard error says what\n"
    "  2  the command line is wrong\n"
    "  3  a container, object, file or site does not exist, or nothing matched\n"
    "  4  refused: something exists that would be replaced or destroyed\n"
    "  5  stored data is damaged, or a verification found a difference\n";

static const char site_text[] =
    "Site configuration:\n"
    "  --config FILE, else the file that the environment variable ESDM_CONFIG names,\n"
    "  ./esdm.json, $XDG_CONFIG_HOME/esdm/site.json (~/.config/esdm/site.json),\n"
    "  /etc/esdm/site.json, else the default site in $XDG_DATA_HOME/esdm\n"
    "  (~/.local/share/esdm), which is made at first use.\n";

const char *
tool_version(void)
{
    return ESDM_VERSION;
}

static gboolean
print_version(const gchar *option, const gchar *value, gpointer data, GError **error)
{
    (void) option;
    (void) value;
    (void) data;
    (void) error;
    (void) printf("%s (ESDM) %s\n", tool.name, tool_version());
    exit(tool_finish(TOOL_OK));
}

static char *
closing_text(const tool_help *help)
{
    return g_strdup_printf("%s\nExit status:\n%s\nExamples:\n%s\nSee also: %s", site_text,
                           help->statuses != NULL ? help->statuses : exit_statuses, help->examples,
                           help->see_also);
}

/* GLib wants "-j 4"; people also write "-j4". */
static void
split_short_values(const GOptionEntry *entries, int argc, char **argv)
{
    for (int i = 1; i < argc && !g_str_equal(argv[i], "--"); i++) {
        if (argv[i][0] != '-' || argv[i][1] == '-' || argv[i][1] == '\0' || argv[i][2] == '\0')
            continue;
        for (const GOptionEntry *entry = entries; entry->long_name != NULL; entry++) {
            if (entry->short_name != argv[i][1] || entry->arg == G_OPTION_ARG_NONE)
                continue;
            g_autofree char *whole = g_strdup_printf("--%s=%s", entry->long_name, argv[i] + 2);
            argv[i] = (char *) g_intern_string(whole); /* stays until the end */
        }
    }
}

void
tool_parse(const tool_help *help, const GOptionEntry *entries, int *argc, char ***argv)
{
    const GOptionEntry common[] = {
        {"config", 0, 0, G_OPTION_ARG_FILENAME, &tool.config, "Site configuration", "FILE"},
        {"json", 0, 0, G_OPTION_ARG_NONE, &tool.json, "Print JSON for programs", NULL},
        {"version", 0, G_OPTION_FLAG_NO_ARG, G_OPTION_ARG_CALLBACK, (gpointer) print_version,
         "Print the version and exit", NULL},
        {0},
    };
    tool.name = help->name;
    tool.examples = help->examples;
    (void) setlocale(LC_ALL, "");
    (void) setlocale(LC_NUMERIC, "C"); /* output that programs read */
    g_set_prgname(help->name);
    g_autoptr(GOptionContext) context = g_option_context_new(help->arguments);
    g_autofree char *closing = closing_text(help);
    g_option_context_set_summary(context, help->description);
    g_option_context_set_description(context, closing);
    g_option_context_add_main_entries(context, entries, NULL);
    g_option_context_add_main_entries(context, common, NULL);
    g_autoptr(GError) error = NULL;
    split_short_values(entries, *argc, *argv);
    tool_output_start();
    if (!g_option_context_parse(context, argc, argv, &error))
        exit(tool_usage("%s", error->message));
    /* "--" stays in argv when an argument behind it begins with '-'. */
    for (int i = 1; i < *argc; i++) {
        if (g_str_equal((*argv)[i], "--")) {
            for (int j = i; j < *argc; j++)
                (*argv)[j] = (*argv)[j + 1];
            (*argc)--;
            break;
        }
    }
}

/* The first example of the help that is of the tool itself, without what is said about it behind
 * two blanks. */
static void
print_example(void)
{
    g_auto(GStrv) lines = g_strsplit(tool.examples, "\n", -1);
    g_autofree char *own = g_strdup_printf("%s ", tool.name);
    for (char **line = lines; *line != NULL; line++) {
        char *text = g_strstrip(*line);
        char *remark = strstr(text, "  ");
        if (!g_str_has_prefix(text, own) || g_str_has_suffix(text, "\\"))
            continue;
        if (remark != NULL)
            *remark = '\0';
        (void) fprintf(stderr, "Example: %s\n", text);
        return;
    }
}

tool_exit
tool_usage(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    tool_error("%s", text);
    if (g_str_has_suffix(text, "?") && tool.examples != NULL)
        print_example();
    (void) fprintf(stderr, "Try '%s --help'.\n", tool.name);
    return TOOL_USAGE;
}

/* Whether no configuration exists, so that the default site serves. */
static bool
is_default_site(void)
{
    char *path = NULL;
    if (tool.config != NULL || esdm_site_find(&path, NULL) != ESDM_OK)
        return false;
    bool none = path == NULL;
    free(path);
    return none;
}

/* Whether nothing of the default site is there: a damaged one is another matter. */
static bool
is_virgin(void)
{
    /* GLib knows more places than ESDM does. */
    if (g_getenv("HOME") == NULL && g_getenv("XDG_DATA_HOME") == NULL)
        return false;
    g_autofree char *folder = g_build_filename(g_get_user_data_dir(), "esdm", NULL);
    return !g_file_test(folder, G_FILE_TEST_EXISTS);
}

void
tool_tell_made(const esdm_session *session)
{
    static atomic_flag warned = ATOMIC_FLAG_INIT;
    const char *folder = esdm_session_made_site(session);
    const char *warning = esdm_session_warning(session);
    if (warning != NULL && !atomic_flag_test_and_set(&warned)) {
        g_autofree char *text = tool_printable(warning);
        (void) fprintf(stderr, "esdm: warning: %s\n", text);
    }
    if (folder == NULL || tool.json)
        return;
    g_autofree char *printable = tool_printable(folder);
    (void) fprintf(stderr, "esdm: made the default site in %s\n", printable);
}

void
tool_tell_relieved(const esdm_session *session)
{
    uint64_t containers = 0;
    uint64_t bytes = 0;
    esdm_session_relieved(session, &containers, &bytes);
    g_autofree char *text = tool_bytes(bytes);
    if (containers > 0)
        tool_error("storage was full: %" G_GUINT64_FORMAT " container%s that had been replaced or "
                   "removed %s freed for good (%s)",
                   (guint64) containers, containers == 1 ? "" : "s",
                   containers == 1 ? "was" : "were", text);
}

bool
tool_no_site(void)
{
    if (!is_default_site() || !is_virgin())
        return false;
    tool_error("there is no site yet: the default one is made when something is first written; "
               "one that others have made is named by ESDM_CONFIG");
    return true;
}

tool_exit
tool_session_made(bool read_only, esdm_session **ret_session)
{
    if (!read_only && tool_no_site())
        return TOOL_NOT_FOUND;
    return tool_session(read_only, ret_session);
}

tool_exit
tool_session(bool read_only, esdm_session **ret_session)
{
    tool_exit result = read_only ? tool_session_if_made(ret_session) : TOOL_OK;
    if (read_only && result == TOOL_OK && *ret_session == NULL)
        return TOOL_NOT_FOUND;
    if (read_only)
        return result;
    esdm_session_options options = {.config_path = tool.config};
    esdm_error err = {0};
    esdm_status status = esdm_session_open(&options, ret_session, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    tool_tell_made(*ret_session);
    return TOOL_OK;
}

void
tool_follow(esdm_session *session)
{
    esdm_session_options options = {.config_path = tool.config};
    esdm_session *writer = NULL;
    bool waits = false;
    if (esdm_virtual_follow(session, &waits, NULL) == ESDM_OK && waits &&
        esdm_session_open(&options, &writer, NULL) == ESDM_OK)
        (void) !esdm_virtual_follow(writer, &waits, NULL);
    esdm_session_close(writer);
}

tool_exit
tool_session_if_made(esdm_session **ret_session)
{
    esdm_session_options options = {.config_path = tool.config, .read_only = true};
    esdm_error err = {0};
    *ret_session = NULL;
    esdm_status status = esdm_session_open(&options, ret_session, &err);
    if (status == ESDM_OK) {
        tool_tell_made(*ret_session);
        return TOOL_OK;
    }
    return status == ESDM_ENOENT && tool_no_site() ? TOOL_OK : tool_fail(status, &err);
}
