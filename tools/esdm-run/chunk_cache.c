/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * "netcdf": {"chunk_cache": …} of the site becomes $ESDM_NC_CHUNK_CACHE, which libesdm-netcdf.so
 * gives to the netCDF library (router/chunk_cache.c). A plain program has no site: so that it
 * starts as quickly as before, this looks for the one number alone, and loads no library for it.
 */
#include <ctype.h>
#include <fcntl.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm-run/esdm-run.h"

#define VARIABLE  "ESDM_NC_CHUNK_CACHE"
#define FILE_MOST (1 << 20) /* a configuration that is longer is not read */

/* ---- one member of a JSON text --------------------------------------------------------------- */

static const char *
skip_space(const char *at)
{
    return at + strspn(at, " \t\r\n");
}

/* @param at behind the first quote. @return behind the last one, or the text's end. */
static const char *
end_of_string(const char *at)
{
    for (; *at != '\0' && *at != '"'; at++) {
        if (*at == '\\' && at[1] != '\0')
            at++;
    }
    return *at == '"' ? at + 1 : at;
}

/* The value of a member of the object that begins at `object`; NULL: there is none. */
static const char *
member(const char *object, const char *key)
{
    int depth = 0;
    if (object == NULL || *object != '{')
        return NULL;
    for (const char *at = object; *at != '\0';) {
        if (*at == '"') {
            const char *text = at + 1;
            at = end_of_string(text);
            size_t length = strlen(key);
            const char *colon = skip_space(at);
            if (depth == 1 && *colon == ':' && at - text == (ptrdiff_t) length + 1 &&
                strncmp(text, key, length) == 0)
                return skip_space(colon + 1);
            continue;
        }
        depth += *at == '{' || *at == '[';
        depth -= *at == '}' || *at == ']';
        if (depth == 0)
            return NULL;
        at++;
    }
    return NULL;
}

/* ---- sizes ----------------------------------------------------------------------------------- */

/* "256M", "256 MiB", 268435456; as in site configurations. 0: it is none. */
static uint64_t
size_of(const char *at)
{
    static const char units[] = "KMGT";
    bool quoted = *at == '"';
    char *end = NULL;
    at += quoted;
    uint64_t bytes = isdigit((unsigned char) *at) ? strtoull(at, &end, 10) : 0;
    if (bytes == 0)
        return 0;
    end += strspn(end, " ");
    const char *unit = *end != '\0' ? strchr(units, toupper((unsigned char) *end)) : NULL;
    if (unit != NULL) {
        bool thousands = end[1] == 'B'; /* "MB", but "M" and "MiB" */
        for (const char *u = units; u <= unit; u++) {
            if (bytes > UINT64_MAX / 1024)
                return 0;
            bytes *= thousands ? 1000 : 1024;
        }
        end += thousands ? 2 : strncmp(end + 1, "iB", 2) == 0 ? 3 : 1;
    }
    bool ended = quoted ? *end == '"' : strchr(",} \t\r\n", *end) != NULL;
    return ended ? bytes : 0;
}

/* ---- the site -------------------------------------------------------------------------------- */

/* A file that nobody named counts when nobody else can write to it. */
static bool
read_file(const char *path, bool named, char *text)
{
    struct stat st;
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
    bool good = fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size < FILE_MOST &&
                (named || ((st.st_uid == 0 || st.st_uid == geteuid()) && !(st.st_mode & 022)));
    ssize_t n = good ? read(fd, text, FILE_MOST - 1) : -1;
    if (fd >= 0)
        (void) close(fd);
    text[n > 0 ? n : 0] = '\0';
    return fd >= 0;
}

/* The first configuration that is there, as esdm_site_find() looks for it. */
static void
read_site(char *text)
{
    char path[PATH_MAX];
    const char *named = getenv("ESDM_CONFIG");
    const char *folder = getenv("XDG_CONFIG_HOME");
    const char *home = getenv("HOME");
    bool with_folder = folder != NULL && folder[0] == '/';
    text[0] = '\0';
    if (named != NULL && named[0] != '\0') {
        (void) read_file(named, true, text);
        return;
    }
    if (read_file("./esdm.json", false, text))
        return;
    if ((with_folder || (home != NULL && home[0] == '/')) &&
        snprintf(path, sizeof path, "%s%s", with_folder ? folder : home,
                 with_folder ? "/esdm/site.json" : "/.config/esdm/site.json") < PATH_MAX &&
        read_file(path, false, text))
        return;
    (void) read_file("/etc/esdm/site.json", false, text);
}

bool
chunk_cache_set(void)
{
    char number[24];
    const char *stated = getenv(VARIABLE);
    uint64_t bytes = 0;
    if (stated != NULL) {
        char copy[64];
        (void) snprintf(copy, sizeof copy, "\"%s\"", stated);
        bytes = size_of(copy);
        if (bytes == 0 && stated[0] != '\0')
            run_say(VARIABLE " is '%s': expected a size such as 256M", stated);
    } else {
        char *text = malloc(FILE_MOST);
        const char *value = NULL;
        if (text != NULL) {
            read_site(text);
            value = member(member(skip_space(text), "netcdf"), "chunk_cache");
        }
        bytes = value != NULL ? size_of(value) : 0;
        free(text);
    }
    if (bytes == 0)
        return stated == NULL || unsetenv(VARIABLE) == 0;
    (void) snprintf(number, sizeof number, "%llu", (unsigned long long) bytes);
    return setenv(VARIABLE, number, 1) == 0;
}
