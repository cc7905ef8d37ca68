/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A dispatcher without libesdm, for the tests of the router: its containers are empty datasets,
 * each an empty file in $FAKE_CORE_STORE (slashes become '%'), and every call is appended as a line
 * to $FAKE_CORE_LOG.
 */
#include "fake_core.h"

#include "router/boundary.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#define SLOTS 64

typedef struct slot {
    bool open;
    bool created;
    int mode;
    char path[PATH_MAX];
} slot;

static slot slots[ESDMNC_INSTANCES_MAX][SLOTS];
static NC_Dispatch tables[ESDMNC_INSTANCES_MAX];

void
fake_record(const char *format, ...)
{
    const char *log = getenv("FAKE_CORE_LOG");
    FILE *file = log ? fopen(log, "a") : NULL;
    if (file) {
        va_list args;
        va_start(args, format);
        (void) vfprintf(file, format, args);
        va_end(args);
        (void) fputc('\n', file);
        (void) fclose(file);
    }
}

static void
file_of(const char *container, char *path)
{
    const char *store = getenv("FAKE_CORE_STORE");
    int n = snprintf(path, PATH_MAX, "%s/", store ? store : "/nonexistent");
    for (; *container && n < PATH_MAX - 1; container++) {
        path[n++] = (char) (*container == '/' ? '%' : *container);
    }
    path[n] = '\0';
}

static slot *
slot_of(int instance, int ncid)
{
    int number = ncid >> 16;
    if (number <= 0 || number >= SLOTS) {
        abort(); /* no test opens so many */
    }
    return &slots[instance][number];
}

static int
fake_create(int instance, const char *path, int mode, const void *ranks, int ncid)
{
    slot *s = slot_of(instance, ncid);
    struct stat st;
    fake_record("create %d '%s' 0x%x%s", instance, path, (unsigned) mode, ranks ? " parallel" : "");
    file_of(path, s->path);
    if ((mode & NC_NOCLOBBER) && stat(s->path, &st) == 0) {
        return NC_EEXIST;
    }
    int fd = open(s->path, O_WRONLY | O_CREAT, 0666);
    if (fd < 0) {
        return errno;
    }
    (void) close(fd);
    s->open = true;
    s->created = true;
    s->mode = mode;
    return NC_NOERR;
}

static int
fake_open(int instance, const char *path, int mode, const void *ranks, int ncid)
{
    slot *s = slot_of(instance, ncid);
    struct stat st;
    fake_record("open %d '%s' 0x%x%s", instance, path, (unsigned) mode, ranks ? " parallel" : "");
    file_of(path, s->path);
    if (stat(s->path, &st) != 0) {
        return errno;
    }
    s->open = true;
    s->created = false;
    s->mode = mode;
    return NC_NOERR;
}

static int
fake_close(int instance, int ncid, bool aborting)
{
    slot *s = slot_of(instance, ncid);
    fake_record("%s %d", aborting ? "abort" : "close", instance);
    s->open = false;
    if (aborting && s->created) {
        (void) unlink(s->path);
    }
    return NC_NOERR;
}

#define THUNKS(i)                                                                                  \
    static int create_##i(const char *path, int mode, size_t initial, int pe, size_t *hint,        \
                          void *parameters, const struct NC_Dispatch *table, int ncid)             \
    {                                                                                              \
        (void) initial, (void) pe, (void) hint, (void) table;                                      \
        return fake_create(i, path, mode, parameters, ncid);                                       \
    }                                                                                              \
    static int open_##i(const char *path, int mode, int pe, size_t *hint, void *parameters,        \
                        const struct NC_Dispatch *table, int ncid)                                 \
    {                                                                                              \
        (void) pe, (void) hint, (void) table;                                                      \
        return fake_open(i, path, mode, parameters, ncid);                                         \
    }                                                                                              \
    static int close_##i(int ncid, void *parameters)                                               \
    {                                                                                              \
        (void) parameters;                                                                         \
        return fake_close(i, ncid, false);                                                         \
    }                                                                                              \
    static int abort_##i(int ncid)                                                                 \
    {                                                                                              \
        return fake_close(i, ncid, true);                                                          \
    }

THUNKS(0)
THUNKS(1)
THUNKS(2)
THUNKS(3)

const NC_Dispatch *
esdmnc_dispatch_table(int instance)
{
    static const struct {
        __typeof__(tables[0].create) create;
        __typeof__(tables[0].open) open;
        __typeof__(tables[0].close) close;
        __typeof__(tables[0].abort) abort;
    } entries[] = {{create_0, open_0, close_0, abort_0},
                   {create_1, open_1, close_1, abort_1},
                   {create_2, open_2, close_2, abort_2},
                   {create_3, open_3, close_3, abort_3}};
    if (instance < 0 || instance >= 4) {
        return NULL;
    }
    const esdmnc_library *library = esdmnc_library_get(instance);
    fake_record("table %d %s", instance, library ? library->path : "(none)");
    NC_Dispatch *table = &tables[instance];
    fake_table_fill(table);
    table->create = entries[instance].create;
    table->open = entries[instance].open;
    table->close = entries[instance].close;
    table->abort = entries[instance].abort;
    return table;
}

/* ---- the rest of the boundary ------------------------------------------------------------------
 */

int
esdmnc_owns(int instance, int ncid)
{
    int number = ncid >> 16;
    return number > 0 && number < SLOTS && slots[instance][number].open;
}

int
esdmnc_delete(const char *container)
{
    char path[PATH_MAX];
    file_of(container, path);
    fake_record("delete '%s'", container);
    return unlink(path) == 0 ? NC_NOERR : errno;
}

int
esdmnc_exists(const char *container, esdmnc_stat *ret)
{
    char path[PATH_MAX];
    struct stat st;
    file_of(container, path);
    if (stat(path, &st) != 0) {
        return errno;
    }
    *ret = (esdmnc_stat){.size_bytes = 12345,
                         .modified_ns = 1700000000000000005U,
                         .created_ns = 1600000000000000000U,
                         .id = st.st_ino};
    return NC_NOERR;
}

/* As the name says: "x.cdf5". */
int
esdmnc_format(const char *container)
{
    const char *dot = strrchr(container, '.');
    return dot == NULL                 ? NC_FORMAT_CLASSIC
           : strcmp(dot, ".nc4") == 0  ? NC_FORMAT_NETCDF4
           : strcmp(dot, ".cdf2") == 0 ? NC_FORMAT_64BIT_OFFSET
           : strcmp(dot, ".cdf5") == 0 ? NC_FORMAT_64BIT_DATA
                                       : NC_FORMAT_CLASSIC;
}

int
esdmnc_is_folder(const char *folder)
{
    char path[PATH_MAX];
    file_of(folder, path);
    char *base = strrchr(path, '/');
    *base++ = '\0';
    DIR *store = opendir(path);
    int found = 0;
    for (struct dirent *entry; store && !found && (entry = readdir(store));) {
        size_t length = strlen(base);
        found = strncmp(entry->d_name, base, length) == 0 && entry->d_name[length] == '%';
    }
    if (store) {
        (void) closedir(store);
    }
    return found;
}

int
esdmnc_rename(const char *from, const char *to)
{
    char source[PATH_MAX];
    char target[PATH_MAX];
    file_of(from, source);
    file_of(to, target);
    fake_record("rename '%s' '%s'", from, to);
    return rename(source, target) == 0 ? NC_NOERR : errno;
}

int
esdmnc_may_rename(const char *from, const char *to)
{
    (void) from, (void) to;
    return NC_NOERR;
}

/* Parallel calls: one rank, without MPI. The communicator is recorded. */
static int only_rank;

int
esdmnc_ranks_open(const esdmnc_library *library, const esdmnc_parallel *parallel,
                  esdmnc_ranks **ret_ranks)
{
    (void) library;
    if (getenv("FAKE_CORE_NO_MPI") != NULL)
        return NC_ENOPAR;
    fake_record("ranks %d %d", (int) parallel->kind, (int) parallel->comm);
    *ret_ranks = (esdmnc_ranks *) &only_rank;
    return NC_NOERR;
}

int
esdmnc_ranks_number(const esdmnc_ranks *ranks)
{
    (void) ranks;
    return 0;
}

int
esdmnc_ranks_agree(esdmnc_ranks *ranks, int status)
{
    (void) ranks;
    return status;
}

int
esdmnc_ranks_share(esdmnc_ranks *ranks, void *data, size_t bytes)
{
    (void) ranks, (void) data, (void) bytes;
    return NC_NOERR;
}

void
esdmnc_ranks_close(esdmnc_ranks *ranks)
{
    (void) ranks;
}

void
esdmnc_recipe_copy(const char *from, const char *to, char *ret_from, char *ret_to)
{
    (void) from;
    (void) to;
    (void) ret_from;
    (void) ret_to;
}

/* One route: $FAKE_CORE_ROUTE. */
void
esdmnc_site(char *ret_id)
{
    (void) snprintf(ret_id, ESDMNC_SITE_BYTES, "0123456789abcdef0123456789abcdef");
}

uint64_t
esdmnc_stub_number(int instance, int ncid, uint64_t *ret_version)
{
    (void) instance, (void) ncid;
    *ret_version = 0;
    return 0;
}

int
esdmnc_numbered(const char *container, uint64_t number, uint64_t version, char *ret_name,
                size_t size)
{
    (void) container, (void) number, (void) version, (void) ret_name, (void) size;
    return ENOENT;
}

int
esdmnc_stub_file(const char *container, const char *path)
{
    (void) container, (void) path;
    return ENOENT;
}

const char *
esdmnc_route(size_t index)
{
    return index == 0 ? getenv("FAKE_CORE_ROUTE") : NULL;
}

/* One user-defined type: number 40, whose elements hold a text. */
enum { TEXT_TYPE = 40 };

int
esdmnc_values_size(int instance, int ncid, nc_type type, size_t *ret_bytes, int *ret_is_fixed)
{
    (void) instance;
    (void) ncid;
    if (type != TEXT_TYPE) {
        return NC_EBADTYPE;
    }
    *ret_bytes = sizeof(char *);
    *ret_is_fixed = 0;
    return NC_NOERR;
}

int
esdmnc_values_reclaim(int instance, int ncid, nc_type type, void *memory, size_t count)
{
    (void) instance;
    (void) ncid;
    char **texts = memory;
    if (type != TEXT_TYPE) {
        return NC_EBADTYPE;
    }
    for (size_t i = 0; i < count; i++) {
        free(texts[i]);
        texts[i] = NULL;
    }
    return NC_NOERR;
}

int
esdmnc_values_copy(int instance, int ncid, nc_type type, const void *memory, size_t count,
                   void *copy)
{
    (void) instance;
    (void) ncid;
    if (type != TEXT_TYPE) {
        return NC_EBADTYPE;
    }
    for (size_t i = 0; i < count; i++) {
        ((char **) copy)[i] = strdup(((char *const *) memory)[i]);
    }
    return NC_NOERR;
}

/* It keeps no descriptors open. */

bool
esdmnc_descriptor_is_kept(int fd)
{
    (void) fd;
    return false;
}

int
esdmnc_descriptor_opened(int fd)
{
    return fd;
}

unsigned
esdmnc_descriptor_limit(void)
{
    return 0;
}

bool
esdmnc_records_write(const char *path, char *ret_why, size_t bytes)
{
    (void) snprintf(ret_why, bytes, "no records for '%s'", path);
    return false;
}
