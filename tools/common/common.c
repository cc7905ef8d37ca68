/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "common/common.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

tool_exit
tool_exit_of(esdm_status status)
{
    switch (status) {
    case ESDM_OK:
        return TOOL_OK;
    case ESDM_ENOENT:
        return TOOL_NOT_FOUND;
    case ESDM_EEXIST:
        return TOOL_REFUSED;
    case ESDM_ECORRUPT:
        return TOOL_DAMAGED;
    default:
        return TOOL_FAILED;
    }
}

void
tool_error(const char *format, ...)
{
    va_list args;
    va_start(args, format);
    g_autofree char *text = g_strdup_vprintf(format, args);
    va_end(args);
    g_autofree char *printable = tool_printable(text);
    (void) fflush(stdout);
    (void) fprintf(stderr, "%s: %s\n", tool.name, printable);
}

tool_exit
tool_fail(esdm_status status, const esdm_error *err)
{
    tool_error("%s", err->message[0] != '\0' ? err->message : esdm_status_string(status));
    return tool_exit_of(status);
}

esdm_status
tool_error_set(esdm_error *err, esdm_status status, const char *format, ...)
{
    va_list args;
    if (err == NULL)
        return status;
    va_start(args, format);
    err->status = status;
    err->os_errno = 0;
    (void) vsnprintf(err->message, sizeof err->message, format, args);
    va_end(args);
    return status;
}

/* ---- containers --------------------------------------------------------------------------- */

const char *
tool_container(const char *argument)
{
    static const char folder[] = "esdm:/"; /* in letters of either case, as of any URL */
    if (g_str_has_prefix(argument, "esdm:") && !g_str_has_prefix(argument, "esdm://"))
        return argument + strlen("esdm:");
    if (g_ascii_strncasecmp(argument, folder, sizeof folder - 1) == 0 &&
        argument[sizeof folder - 1] != '/')
        return argument + strlen("esdm:");
    return argument;
}

static bool
count_container(const esdm_container_info *info, void *user)
{
    (void) info;
    (*(guint *) user)++;
    return true;
}

tool_exit
tool_absent(esdm_session *session, const char *name)
{
    guint below = 0;
    char hint[2 * ESDM_CONTAINER_NAME_MAX + 128];
    esdm_error err = {0};
    esdm_container_info info;
    if (strchr(name, '@') != NULL && /* a point of time: what is wrong with it is told */
        esdm_container_stat(session, name, &info, &err) != ESDM_OK &&
        strstr(err.message, "snapshot") != NULL) {
        tool_error("%s", err.message);
        return TOOL_NOT_FOUND;
    }
    esdm_container_suggest(session, name, hint, sizeof hint);
    if (esdm_container_list(session, name, count_container, &below, &err) == ESDM_OK && below > 0)
        tool_error("there is no container '%s', but %u below it: see esdm-ls '%s'", name, below,
                   name);
    else
        tool_error("there is no container '%s'%s%s", name, hint[0] != '\0' ? "; " : "", hint);
    return TOOL_NOT_FOUND;
}

/* "user@host:pid program" of the newest one. */
static bool
note_writer(const esdm_snapshot_info *info, void *user)
{
    char **owner = user;
    const char *at = strrchr(info->writer, '@');
    g_free(*owner);
    *owner =
        g_strndup(info->writer, at != NULL ? (gsize) (at - info->writer) : strlen(info->writer));
    return true;
}

char *
tool_owner(esdm_session *session, const char *name)
{
    char *owner = NULL;
    esdm_error ignored;
    if (esdm_container_snapshots(session, name, note_writer, &owner, &ignored) != ESDM_OK)
        g_clear_pointer(&owner, g_free); /* removed meanwhile */
    return owner;
}

/* ---- texts -------------------------------------------------------------------------------- */

gint
tool_by_number(gconstpointer a, gconstpointer b)
{
    double x = *(const double *) a;
    double y = *(const double *) b;
    return x < y ? -1 : x > y;
}

bool
tool_age(const char *text, uint64_t *ret_seconds)
{
    static const struct {
        char letter;
        uint64_t seconds;
    } units[] = {{'\0', 1}, {'s', 1}, {'m', 60}, {'h', 3600}, {'d', 86400}};
    char *end = NULL;
    guint64 number = g_ascii_strtoull(text, &end, 10);
    if (!g_ascii_isdigit(text[0]) || number > G_MAXUINT32)
        return false;
    for (size_t i = 0; i < G_N_ELEMENTS(units); i++) {
        if (end[0] == units[i].letter && (end[0] == '\0' || end[1] == '\0')) {
            *ret_seconds = number * units[i].seconds;
            return true;
        }
    }
    return false;
}

char *
tool_bytes(uint64_t bytes)
{
    static const char *const units[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    double value = (double) bytes;
    size_t unit = 0;
    /* 1023.95 would be shown as "1024.0". */
    while (value >= (unit == 0 ? 1024 : 1023.95) && unit + 1 < G_N_ELEMENTS(units)) {
        value /= 1024;
        unit++;
    }
    return g_strdup_printf(unit == 0 ? "%.0f %s" : "%.1f %s", value, units[unit]);
}

bool
tool_parse_bytes(const char *text, uint64_t *ret_bytes)
{
    static const char prefixes[] = "kMGTP";
    char *end = NULL;
    double bytes = g_ascii_strtod(text, &end);
    if (end == text)
        return false;
    end += strspn(end, " ");
    const char *prefix = *end != '\0' ? strchr(*end == 'K' ? "K" : prefixes, *end) : NULL;
    if (prefix != NULL) {
        const bool binary = end[1] == 'i';
        for (long i = *end == 'K' ? 0 : prefix - prefixes; i >= 0; i--)
            bytes *= binary ? 1024 : 1000;
        end += binary ? 2 : 1;
    }
    end += *end == 'B';
    if (*end != '\0' || !(bytes >= 1 && bytes < 0x1p63))
        return false;
    *ret_bytes = (uint64_t) bytes;
    return true;
}

char *
tool_time(uint64_t time_ns)
{
    g_autoptr(GDateTime) time =
        g_date_time_new_from_unix_local((gint64) (time_ns / G_GUINT64_CONSTANT(1000000000)));
    return time != NULL ? g_date_time_format(time, "%Y-%m-%d %H:%M:%S") : g_strdup("?");
}

char *
tool_time_iso(uint64_t time_ns)
{
    const uint64_t second = G_GUINT64_CONSTANT(1000000000);
    g_autoptr(GDateTime) time = g_date_time_new_from_unix_utc((gint64) (time_ns / second));
    if (time == NULL)
        return g_strdup("?");
    g_autofree char *whole = g_date_time_format(time, "%Y-%m-%dT%H:%M:%S");
    return g_strdup_printf("%s.%09" G_GUINT64_FORMAT "Z", whole, (guint64) (time_ns % second));
}

char *
tool_printable(const char *text)
{
    size_t bytes = esdm_text_printable(text, NULL, 0) + 1;
    char *printable = g_malloc(bytes);
    (void) esdm_text_printable(text, printable, bytes);
    return printable;
}

/* ---- the terminal ------------------------------------------------------------------------- */

bool
tool_can_ask(void)
{
    return isatty(STDIN_FILENO) && isatty(STDERR_FILENO);
}

bool
tool_confirm(const char *question)
{
    if (!tool_can_ask())
        return false;
    (void) fflush(stdout);
    g_autofree char *printable = tool_printable(question);
    (void) fprintf(stderr, "%s [y/N] ", printable);
    (void) fflush(stderr);
    char answer[16] = "";
    if (fgets(answer, sizeof answer, stdin) == NULL)
        return false;
    g_strstrip(answer);
    return g_ascii_strcasecmp(answer, "y") == 0 || g_ascii_strcasecmp(answer, "yes") == 0;
}

tool_exit
tool_finish(tool_exit status)
{
    if (fflush(stdout) == 0 && !ferror(stdout) && tool_output_failed() == 0)
        return status;
    if (tool_output_failed() != 0)
        errno = tool_output_failed();
    tool_error("cannot write the output: %s", g_strerror(errno));
    return status != TOOL_OK ? status : TOOL_FAILED;
}

GPtrArray *
tool_names(int argc, char **argv, tool_exit *ret_exit)
{
    GPtrArray *names = g_ptr_array_new_with_free_func(g_free);
    for (int i = 1; i < argc; i++) {
        char name[ESDM_CONTAINER_NAME_MAX + 1];
        esdm_error err = {0};
        esdm_status status = tool_normalise(argv[i], name, &err);
        if (status != ESDM_OK) {
            *ret_exit = tool_usage("%s", err.message);
            g_ptr_array_unref(names);
            return NULL;
        }
        g_ptr_array_add(names, g_strdup(name));
    }
    return names;
}
