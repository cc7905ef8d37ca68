/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * "netcdf": {"chunk_cache": …, "chunk_steps": …} of the site become $ESDM_NC_CHUNK_CACHE and
 * $ESDM_NC_CHUNK_STEPS, which libesdm-netcdf.so gives to the netCDF library (router/chunk_cache.c,
 * chunk_shape.c). A plain program has no site: so that it starts as quickly as before, this looks
 * for the two numbers alone, and loads no library for them.
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

/* ---- both ------------------------------------------------------------------------------------ */

/* "32", 32: a number of its own. 0: it is none. */
static uint64_t
count_of(const char *at)
{
    char *end = NULL;
    bool quoted = *at == '"';
    unsigned long long count =
        isdigit((unsigned char) at[quoted]) ? strtoull(at + quoted, &end, 10) : 0;
    bool ended = end != NULL && (quoted ? *end == '"' : strchr(",} \t\r\n", *end) != NULL);
    return ended && count <= INT_MAX ? count : 0;
}

typedef struct setting {
    const char *variable;
    const char *key;
    uint64_t (*value_of)(const char *at);
    const char *expected;
} setting;

static const setting settings[] = {
    {"ESDM_NC_CHUNK_CACHE", "chunk_cache", size_of, "a size such as 256M"},
    {"ESDM_NC_CHUNK_STEPS", "chunk_steps", count_of, "a number of records such as 32"}};
#define SETTINGS (sizeof settings / sizeof *settings)

/* @param text of the site's configuration; "": there is none. */
static bool
set_one(const setting *s, const char *text)
{
    char number[24];
    const char *stated = getenv(s->variable);
    uint64_t value = 0;
    if (stated != NULL) {
        char copy[64];
        (void) snprintf(copy, sizeof copy, "\"%s\"", stated);
        value = s->value_of(copy);
        if (value == 0 && stated[0] != '\0')
            run_say("%s is '%s': expected %s", s->variable, stated, s->expected);
    } else {
        const char *at = member(member(skip_space(text), "netcdf"), s->key);
        value = at != NULL ? s->value_of(at) : 0;
    }
    if (value == 0)
        return stated == NULL || unsetenv(s->variable) == 0;
    (void) snprintf(number, sizeof number, "%llu", (unsigned long long) value);
    return setenv(s->variable, number, 1) == 0;
}

bool
chunk_cache_set(void)
{
    bool good = true;
    bool all_stated = true;
    for (size_t i = 0; i < SETTINGS; i++)
        all_stated = all_stated && getenv(settings[i].variable) != NULL;
    char *text = all_stated ? NULL : malloc(FILE_MOST);
    if (text != NULL)
        read_site(text);
    for (size_t i = 0; i < SETTINGS; i++)
        good = set_one(&settings[i], text != NULL ? text : "") && good;
    free(text);
    return good;
}
