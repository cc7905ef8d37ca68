/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * What esdm-recipe needs of programs.
 *
 * Recording ($ESDM_NC_RECORD names a file): which containers a program reads, at which snapshot,
 * and which it makes, renames and removes. One line each: a word, the name, a tab, a number or
 * another name. Lines are appended whole, so all processes of a run share the file.
 *
 * Running again ($ESDM_NC_REPLAY names a file): what the program makes goes below a scratch prefix,
 * the first line of the file; what the recorded run read, one line each (name, tab, the name with
 * its snapshot), is read as it was then; nothing else is there. So a program that is run again
 * neither sees nor changes what others do.
 */
#include "storage.h"

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "calls.h"

#define LINE_BYTES (2 * ESDM_CONTAINER_NAME_MAX + 64)

typedef struct pin {
    char *name;
    char *as;
} pin;

/* Read once, by the first that asks. */
static struct {
    const char *record; /* NULL: nothing is recorded */
    char *scratch;      /* NULL: nothing is run again */
    pin *pins;
    size_t count;
    bool failed; /* the file cannot be read */
} recipe;
static pthread_once_t once = PTHREAD_ONCE_INIT;

static void
add_pin(char *line)
{
    char *tab = strchr(line, '\t');
    pin *longer = realloc(recipe.pins, (recipe.count + 1) * sizeof *longer);
    if (longer != NULL)
        recipe.pins = longer;
    if (tab == NULL || longer == NULL) {
        recipe.failed = true;
        return;
    }
    *tab = '\0';
    longer[recipe.count] = (pin){strdup(line), strdup(tab + 1)};
    if (longer[recipe.count].name == NULL || longer[recipe.count].as == NULL)
        recipe.failed = true;
    else
        recipe.count++;
}

static void
load(void)
{
    const char *record = secure_getenv("ESDM_NC_RECORD");
    const char *path = secure_getenv("ESDM_NC_REPLAY");
    char line[LINE_BYTES];
    recipe.record = record != NULL && record[0] != '\0' ? record : NULL;
    if (path == NULL || path[0] == '\0')
        return;
    FILE *file = fopen(path, "re");
    while (file != NULL && fgets(line, sizeof line, file) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        if (recipe.scratch == NULL)
            recipe.scratch = strdup(line);
        else
            add_pin(line);
    }
    if (file != NULL)
        (void) fclose(file);
    recipe.failed |= recipe.scratch == NULL || recipe.scratch[0] == '\0';
    if (recipe.failed)
        esdmnc_say("$ESDM_NC_REPLAY: '%s' cannot be read: no container is opened or made", path);
}

/* ---- recording ------------------------------------------------------------------------------ */

void
esdmnc_recipe_note(const char *what, const char *name, const char *rest)
{
    char line[LINE_BYTES];
    (void) pthread_once(&once, load);
    if (recipe.record == NULL || strpbrk(name, "\t\n") != NULL)
        return;
    int bytes = snprintf(line, sizeof line, "%s\t%s\t%s\n", what, name, rest);
    int fd = open(recipe.record, O_WRONLY | O_APPEND | O_CLOEXEC);
    if (fd < 0 || bytes < 0 || (size_t) bytes >= sizeof line ||
        write(fd, line, (size_t) bytes) != bytes)
        esdmnc_say("cannot note in '%s' what becomes of '%s'", recipe.record, name);
    if (fd >= 0)
        (void) close(fd);
}

/* Number, identity and time: a container that takes its name may have a snapshot of that number. */
static void
note_version(const char *what, const char *name, const esdm_container *container)
{
    char version[96];
    struct timespec now;
    (void) clock_gettime(CLOCK_REALTIME, &now);
    (void) snprintf(version, sizeof version, "%" PRIu64 " %s %lld.%09ld",
                    esdm_container_snapshot(container), esdm_container_uuid(container),
                    (long long) now.tv_sec, now.tv_nsec);
    esdmnc_recipe_note(what, name, version);
}

void
esdmnc_recipe_note_file(const char *what, const esdmnc_file *file)
{
    const esdm_comm *comm = esdmnc_comm(file);
    (void) pthread_once(&once, load);
    if (recipe.record != NULL && (comm == NULL || comm->rank == 0))
        note_version(what, file->name, file->container);
}

/* ---- running again -------------------------------------------------------------------------- */

static const char *
pinned(const char *name)
{
    for (size_t i = 0; i < recipe.count; i++)
        if (strcmp(recipe.pins[i].name, name) == 0)
            return recipe.pins[i].as;
    return NULL;
}

static bool
is_below_scratch(const char *name)
{
    size_t bytes = strlen(recipe.scratch);
    return strncmp(name, recipe.scratch, bytes) == 0 && name[bytes] == '/';
}

static bool
is_there(const char *name)
{
    esdm_session *session;
    esdm_container_info info;
    esdm_error err;
    return esdmnc_files_writing(name) ||
           (esdmnc_session(false, &session) == NC_NOERR &&
            esdm_container_stat(session, name, &info, &err) == ESDM_OK);
}

/* The name below the prefix. false: it is too long. */
static bool
scratch_name(const char *name, char *ret)
{
    int bytes = snprintf(ret, ESDM_CONTAINER_NAME_MAX + 1, "%s/%s", recipe.scratch, name);
    return bytes > 0 && bytes <= ESDM_CONTAINER_NAME_MAX;
}

const char *
esdmnc_recipe_name(const char *container, esdmnc_purpose purpose, char *buffer)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err;
    (void) pthread_once(&once, load);
    if (recipe.failed)
        return "";
    if (recipe.scratch == NULL || esdm_container_normalise(container, name, &err) != ESDM_OK ||
        is_below_scratch(name) || !scratch_name(name, buffer))
        return container;
    const char *as = pinned(name);
    if (purpose == ESDMNC_TO_MAKE || as == NULL || is_there(buffer))
        return buffer;
    if (purpose == ESDMNC_TO_READ)
        return as;
    /* It is written to: what it was becomes the beginning of a container of its own. */
    esdm_session *session;
    if (esdmnc_session(true, &session) == NC_NOERR &&
        esdm_container_clone(session, as, buffer, false, &err) != ESDM_OK)
        esdmnc_say("'%s' cannot be cloned to be written to: %s", as, err.message);
    return buffer;
}

void
esdmnc_recipe_copy(const char *from, const char *to, char *ret_from, char *ret_to)
{
    esdm_session *session;
    esdm_container *container;
    esdm_error err;
    if (from != NULL) {
        char buffer[ESDM_CONTAINER_NAME_MAX + 1];
        (void) snprintf(ret_from, sizeof buffer, "%s",
                        esdmnc_recipe_name(from, ESDMNC_TO_READ, buffer));
        if (recipe.record != NULL && esdmnc_session(false, &session) == NC_NOERR &&
            esdm_container_open(session, ret_from, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container,
                                &err) == ESDM_OK) {
            note_version("read", ret_from, container);
            esdm_container_discard(container);
        }
    }
    if (to != NULL) {
        char buffer[ESDM_CONTAINER_NAME_MAX + 1];
        (void) snprintf(ret_to, sizeof buffer, "%s",
                        esdmnc_recipe_name(to, ESDMNC_TO_MAKE, buffer));
        esdmnc_recipe_note("write", ret_to, "0");
    }
}
