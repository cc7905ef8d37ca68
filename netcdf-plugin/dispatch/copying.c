/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Whether this process is a program that hands numbers on as they are. Attributes that it copies
 * belong to the same numbers in its output. Of all others that is not known: they may compute.
 */

#include "storage.h"

#include <ctype.h>
#include <fcntl.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define COMMAND_BYTES 65536

static bool
is_in(const char *word, size_t bytes, const char *const *list)
{
    for (; *list != NULL; list++)
        if (strlen(*list) == bytes && strncmp(word, *list, bytes) == 0)
            return true;
    return false;
}

/* ---- cdo ------------------------------------------------------------------------------------ */

/* Operators that choose fields, join files or change what describes them. */
static const char *const copying_operators[] = {
    "copy",        "cat",          "clone",      "merge",        "mergetime",    "duplicate",
    "replace",     "select",       "delete",     "selall",       "selparam",     "delparam",
    "selcode",     "delcode",      "selname",    "delname",      "selvar",       "selstdname",
    "sellevel",    "sellevidx",    "selgrid",    "selzaxis",     "selzaxisname", "selltype",
    "seltimestep", "seltime",      "selhour",    "selday",       "selmon",       "selmonth",
    "selyear",     "selseason",    "selseas",    "seldate",      "selsmon",      "sellonlatbox",
    "selindexbox", "splitcode",    "splitparam", "splitname",    "splitlevel",   "splitgrid",
    "splitzaxis",  "splittabnum",  "splithour",  "splitday",     "splitmon",     "splitseas",
    "splityear",   "splityearmon", "splitsel",   "splitdate",    "chname",       "setname",
    "chcode",      "chparam",      "setcode",    "settaxis",     "setdate",      "settime",
    "setreftime",  "setcalendar",  "shifttime",  "setattribute", "setgrid",      "setgridtype",
    "setzaxis",    "showname",     "sinfo",      "sinfon",       "infon",        "info",
    NULL};

/* Options of one letter whose value is a word of its own. */
#define OPTIONS_WITH_VALUE "bfgikmPtz"

/* What an argument is: "-selname,tas" and "selname,tas" are operators. */
static bool
is_operator(const char *word)
{
    const char *name = word + (*word == '-');
    size_t bytes = strcspn(name, ",");
    if (bytes < 3 || !isalpha((unsigned char) *name))
        return false;
    for (size_t i = 0; i < bytes; i++)
        if (!isalnum((unsigned char) name[i]) && name[i] != '_')
            return false;
    return true;
}

static bool
copies_cdo(const char *word)
{
    const char *name = word + (*word == '-');
    return is_in(name, strcspn(name, ","), copying_operators);
}

/* Every operator must be one of those; what is not understood is no copy. */
static bool
is_cdo_copy(const char *words, size_t bytes)
{
    bool first = true; /* the operator that needs no '-' has not come */
    for (const char *word = words; word < words + bytes; word += strlen(word) + 1) {
        bool option = word[0] == '-' && (word[1] == '-' || !is_operator(word));
        if (option) {
            bool has_value =
                word[1] != '\0' && word[2] == '\0' && strchr(OPTIONS_WITH_VALUE, word[1]) != NULL;
            if (has_value && word + strlen(word) + 1 < words + bytes)
                word += strlen(word) + 1;
        } else if (first || word[0] == '-') {
            if (!copies_cdo(word))
                return false;
            first = false;
        }
    }
    return !first;
}

/* ---- all programs --------------------------------------------------------------------------- */

/* `words`: the arguments, each with its NUL. */
static bool
is_copy(const char *words, size_t bytes)
{
    static const char *const programs[] = {"nccopy",   "ncks",  "ncrcat", "ncatted",
                                           "ncrename", "ncgen", NULL};
    const char *slash = strrchr(words, '/');
    const char *program = slash != NULL ? slash + 1 : words;
    const char *rest = words + strlen(words) + 1;
    size_t rest_bytes = bytes - (size_t) (rest - words);
    if (strcmp(program, "cdo") == 0)
        return is_cdo_copy(rest, rest_bytes);
    if (!is_in(program, strlen(program), programs))
        return false;
    for (const char *word = rest; word < rest + rest_bytes; word += strlen(word) + 1)
        if (strncmp(word, "--rgr", 5) == 0 || strncmp(word, "--map", 5) == 0)
            return false; /* ncks calls another program's regridding */
    return true;
}

static bool copies;

static void
find_out(void)
{
    static char words[COMMAND_BYTES];
    int fd = open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
    ssize_t bytes = fd >= 0 ? read(fd, words, sizeof words - 1) : 0;
    if (fd >= 0)
        (void) close(fd);
    /* A command that does not fit is not known to the end. */
    copies = bytes > 1 && bytes < (ssize_t) sizeof words - 1 && is_copy(words, (size_t) bytes);
}

bool
esdmnc_program_copies(void)
{
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    (void) pthread_once(&once, find_out);
    return copies;
}
