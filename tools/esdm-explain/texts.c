/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Numbers as people say them. */
#include "esdm-explain/esdm-explain.h"

#include <math.h>
#include <string.h>

#define NAME_MOST 44
#define STAND_IN  "memfd:esdm-stub"

char *
bytes_text(double bytes)
{
    static const char *const units[] = {"bytes", "kB", "MB", "GB", "TB", "PB"};
    guint unit = 0;
    while (bytes >= 999.5 && unit + 1 < G_N_ELEMENTS(units)) {
        bytes /= 1000;
        unit++;
    }
    if (unit == 0)
        return g_strdup_printf("%.0f %s", bytes, bytes == 1 ? "byte" : "bytes");
    return g_strdup_printf(bytes < 9.95 ? "%.1f %s" : "%.0f %s", bytes, units[unit]);
}

char *
time_text(double seconds)
{
    if (seconds >= 99.5)
        return g_strdup_printf("%.0f min %.0f s", floor(seconds / 60), fmod(seconds, 60));
    if (seconds >= 0.9995)
        return g_strdup_printf("%.1f s", seconds);
    if (seconds >= 0.9995e-3)
        return g_strdup_printf(seconds < 9.95e-3 ? "%.1f ms" : "%.0f ms", seconds * 1e3);
    if (seconds < 0.9995e-6)
        return g_strdup_printf("%.0f ns", seconds * 1e9);
    return g_strdup_printf(seconds < 9.95e-6 ? "%.1f µs" : "%.0f µs", seconds * 1e6);
}

char *
short_name(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL && slash[1] != '\0' ? slash + 1 : name;
    if (g_str_has_prefix(name, "esdm:"))
        last = name;
    glong length = g_utf8_strlen(last, -1);
    if (!g_utf8_validate(last, -1, NULL) || length <= NAME_MOST)
        return g_strdup(last);
    char *begin = g_utf8_substring(last, 0, NAME_MOST / 2);
    char *end = g_utf8_substring(last, length - NAME_MOST / 2 + 1, length);
    char *text = g_strconcat(begin, "…", end, NULL);
    g_free(begin);
    g_free(end);
    return text;
}

/* "0fd17d6a8628d848b7ad9172-c6edd4535c365eb7-1f": a container, a writer, a number; of ranks that
 * write together theirs lies before it ("-3-1f"). */
static bool
is_pack(const char *name)
{
    static const char hex[] = "0123456789abcdef";
    gsize container = strspn(name, hex);
    const char *writer = name + container + 1;
    gsize of_writer = name[container] == '-' ? strspn(writer, hex) : 0;
    if (container < 24 || of_writer < 8 || writer[of_writer] != '-')
        return false;
    const char *number = writer + of_writer + 1;
    gsize digits = strspn(number, hex);
    if (digits > 0 && number[digits] == '-') {
        number += digits + 1;
        digits = strspn(number, hex);
    }
    return digits > 0 && number[digits] == '\0';
}

bool
of_mpi(const char *name)
{
    static const char *const begins[] = {"initial-pmix_", "pmix-mca-",  "openmpi-mca-",   "smseg-",
                                         "smdataseg-",    "smlockseg-", "vader_segment.", NULL};
    const char *slash = strrchr(name, '/');
    for (guint i = 0; begins[i] != NULL; i++)
        if (g_str_has_prefix(slash != NULL ? slash + 1 : name, begins[i]))
            return true;
    return false;
}

const char *
of_esdm(const char *name)
{
    const char *slash = strrchr(name, '/');
    const char *last = slash != NULL ? slash + 1 : name;
    if (g_str_has_prefix(last, "catalogue.sqlite") || g_str_equal(last, "esdm-mark.json"))
        return "catalogue";
    if (g_str_has_prefix(last, STAND_IN)) /* what programs that look at files get of a container */
        return "stand-in for a file";
    return is_pack(last) ? "data" : NULL;
}

char *
pattern_text(const pattern *p)
{
    if (p->calls == 0)
        return g_strdup("-");
    if (p->calls <= 3)
        return g_strdup_printf("%" G_GUINT64_FORMAT " call%s", p->calls, p->calls > 1 ? "s" : "");
    double all = (double) p->calls;
    if ((double) p->following > 0.7 * all)
        return g_strdup("sequential");
    if ((double) p->strided > 0.5 * all && p->stride > 0) {
        char *size = bytes_text((double) p->typical_bytes);
        char *stride = bytes_text((double) p->stride);
        char *text = p->typical_bytes > 0 ? g_strdup_printf("strided: %s every %s", size, stride)
                                          : g_strdup_printf("strided: every %s", stride);
        g_free(size);
        g_free(stride);
        return text;
    }
    if ((double) (p->following + p->strided) > 0.6 * all)
        return g_strdup("sequential, with jumps");
    return g_strdup("random");
}
