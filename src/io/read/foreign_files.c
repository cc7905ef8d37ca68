/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Files that references point into, kept open: at most FILES_MOST, least recently used ones go. */

#include "io/read/foreign.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/uio.h>
#include <unistd.h>

#include "base/descriptor.h"
#include "base/error.h"
#include "esdm/reference.h"
#include "io/read/foreign_urls.h"
#include "io/session/held_files.h"
#include "io/session/references.h"

#define FILES_MOST 64u
/* What is longer is read with one call, see begin_long(). */
#define LONG_BYTES ((size_t) 4 << 20)
/* What is shorter and not in memory is read in pieces of that size. */
#define PIECE_BYTES ((size_t) 256 << 10)

struct esdm__file {
    char *location;
    int fd;
    unsigned users;
    uint64_t used; /* when, by the clock of the list */
    bool listed;
    esdm_session *session; /* borrowed; of an object at a URL, which has no descriptor; or NULL */
    esdm_source_state was; /* of such a one */
};

typedef struct files {
    esdm__source_state base;
    pthread_mutex_t lock; /* guards all below, `users`, `used` and `listed`; a leaf lock */
    esdm__file *list[FILES_MOST];
    uint64_t clock;
} files;

static void
file_free(esdm__file *file)
{
    if (file == NULL)
        return;
    if (file->fd >= 0)
        (void) esdm__descriptor_close(file->fd);
    free(file->location);
    free(file);
}

static void
files_free(esdm__source_state *state)
{
    files *f = (files *) state;
    for (size_t i = 0; i < FILES_MOST; i++)
        file_free(f->list[i]);
    (void) pthread_mutex_destroy(&f->lock);
    free(f);
}

static files *
files_of(esdm_session *session)
{
    _Atomic(esdm__source_state *) *slot = &session->sources[ESDM__KIND_FOREIGN];
    esdm__source_state *state = atomic_load(slot);
    if (state != NULL)
        return (files *) state;
    files *f = calloc(1, sizeof *f);
    if (f == NULL)
        return NULL;
    f->base.free = files_free;
    (void) pthread_mutex_init(&f->lock, NULL);
    if (atomic_compare_exchange_strong(slot, &state, &f->base))
        return f;
    files_free(&f->base);
    return (files *) state;
}

/* ---- what it was -------------------------------------------------------------------------- */

static int64_t
nanoseconds(struct timespec t)
{
    return (int64_t) t.tv_sec * 1000000000 + t.tv_nsec;
}

esdm_status
esdm__file_check(const esdm__file *file, const esdm__foreign *foreign, bool *ret_certain,
                 esdm_error *err)
{
    struct stat is;
    char identity[64];
    if (file->session != NULL) { /* each request sees to that */
        *ret_certain = true;
        return ESDM_OK;
    }
    if (fstat(file->fd, &is) != 0)
        return esdm__error_set_errno(err, errno, "file '%s'", file->location);
    if (foreign->bytes != UINT64_MAX && (uint64_t) is.st_size != foreign->bytes)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "file '%s' was changed: it has %" PRIu64 " bytes and had %" PRIu64
                               "; refer to it again (esdm-ref)",
                               file->location, (uint64_t) is.st_size, foreign->bytes);
    *ret_certain = true;
    if (esdm__held_is(foreign->location))
        return ESDM_OK;
    if (foreign->mtime_ns != INT64_MIN && nanoseconds(is.st_mtim) != foreign->mtime_ns)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "file '%s' was changed: its time of modification is another one; "
                               "refer to it again (esdm-ref)",
                               file->location);
    (void) snprintf(identity, sizeof identity, "%" PRIu64 ":%" PRId64, (uint64_t) is.st_ino,
                    nanoseconds(is.st_ctim));
    *ret_certain = strcmp(identity, foreign->identity) == 0;
    return ESDM_OK;
}

/* ---- open files --------------------------------------------------------------------------- */

static esdm_status
open_file(esdm_session *session, const char *location, esdm__file **ret_file, esdm_error *err)
{
    if (strcmp(location, ESDM_RECIPE_LOCATION) == 0)
        return esdm__error_set(err, ESDM_ECONFLICT,
                               "its values were dropped, as they can be computed again: "
                               "esdm-recipe restore NAME");
    esdm__file *file = calloc(1, sizeof *file);
    if (file == NULL || (file->location = strdup(location)) == NULL) {
        free(file);
        return esdm__error_nomem(err, strlen(location), "the name of a file");
    }
    file->fd = -1;
    esdm_status status = esdm__held_is(location)
                             ? esdm__held_open(session, location, &file->fd, err)
                             : esdm__reference_open(session, location, &file->fd, err);
    if (status == ESDM_OK)
        *ret_file = file;
    else
        file_free(file);
    return status;
}

static esdm__file *
find(files *f, const char *location)
{
    for (size_t i = 0; i < FILES_MOST; i++) {
        if (f->list[i] == NULL || strcmp(f->list[i]->location, location) != 0)
            continue;
        f->list[i]->users++;
        f->list[i]->used = ++f->clock;
        return f->list[i];
    }
    return NULL;
}

/* Makes room in the list; @return what went, to be freed without the lock. */
static esdm__file *
enter(files *f, esdm__file *file)
{
    size_t place = FILES_MOST;
    for (size_t i = 0; i < FILES_MOST; i++) {
        if (f->list[i] == NULL) {
            place = i;
            break;
        }
        if (f->list[i]->users == 0 &&
            (place == FILES_MOST || f->list[i]->used < f->list[place]->used))
            place = i;
    }
    if (place == FILES_MOST)
        return NULL; /* all are in use: it is closed when it is given back */
    esdm__file *gone = f->list[place];
    f->list[place] = file;
    file->listed = true;
    file->used = ++f->clock;
    return gone;
}

static void
take_out(files *f, esdm__file *file)
{
    for (size_t i = 0; i < FILES_MOST; i++) {
        if (f->list[i] == file)
            f->list[i] = NULL;
    }
    file->listed = false;
}

void
esdm__file_put(esdm_session *session, esdm__file *file)
{
    files *f = files_of(session);
    if (file->session != NULL) {
        file_free(file);
        return;
    }
    (void) pthread_mutex_lock(&f->lock);
    bool gone = --file->users == 0 && !file->listed;
    (void) pthread_mutex_unlock(&f->lock);
    if (gone)
        file_free(file);
}

/* One that is open and not what is wanted may have got a new file under its name. */
static void
forget(esdm_session *session, esdm__file *file)
{
    files *f = files_of(session);
    (void) pthread_mutex_lock(&f->lock);
    take_out(f, file);
    (void) pthread_mutex_unlock(&f->lock);
    esdm__file_put(session, file);
}

/* An object at a URL is not opened: each request says which one it is about. */
static esdm_status
get_url(esdm_session *session, const esdm__foreign *foreign, esdm__file **ret_file,
        bool *ret_certain, esdm_error *err)
{
    esdm__file *file = calloc(1, sizeof *file);
    if (file == NULL || (file->location = strdup(foreign->location)) == NULL) {
        free(file);
        return esdm__error_nomem(err, strlen(foreign->location), "a URL");
    }
    file->fd = -1;
    file->session = session;
    file->was = (esdm_source_state){.bytes = foreign->bytes, .modified_ns = foreign->mtime_ns};
    if (strlen(foreign->identity) >= sizeof file->was.identity) {
        file_free(file);
        return esdm__error_set(err, ESDM_ECORRUPT, "the identity of '%s' is too long",
                               foreign->location);
    }
    (void) snprintf(file->was.identity, sizeof file->was.identity, "%s", foreign->identity);
    *ret_file = file;
    *ret_certain = true;
    return ESDM_OK;
}

esdm_status
esdm__file_look(const esdm__file *file, esdm_error *err)
{
    esdm_source_state is;
    if (file->session == NULL)
        return ESDM_OK;
    esdm_status status = esdm__url_stat(file->session, file->location, &is, err);
    if (status != ESDM_OK)
        return status;
    if (is.bytes == file->was.bytes && is.modified_ns == file->was.modified_ns &&
        strcmp(is.identity, file->was.identity) == 0)
        return ESDM_OK;
    return esdm__error_set(err, ESDM_ECONFLICT, "'%s' was changed; refer to it again (esdm-ref)",
                           file->location);
}

int
esdm__file_descriptor(const esdm__file *file)
{
    return file->fd;
}

bool
esdm__file_is_remote(const esdm__file *file)
{
    return file->session != NULL;
}

esdm_status
esdm__file_get(esdm_session *session, const esdm__foreign *foreign, esdm__file **ret_file,
               bool *ret_certain, esdm_error *err)
{
    files *f = files_of(session);
    if (f == NULL)
        return esdm__error_nomem(err, sizeof *f, "the list of files");
    if (esdm__site_is_url(foreign->location))
        return get_url(session, foreign, ret_file, ret_certain, err);
    (void) pthread_mutex_lock(&f->lock);
    esdm__file *file = find(f, foreign->location);
    (void) pthread_mutex_unlock(&f->lock);
    if (file != NULL) {
        if (esdm__file_check(file, foreign, ret_certain, NULL) == ESDM_OK && *ret_certain) {
            *ret_file = file;
            return ESDM_OK;
        }
        forget(session, file);
    }
    esdm_status status = open_file(session, foreign->location, &file, err);
    if (status != ESDM_OK)
        return status;
    status = esdm__file_check(file, foreign, ret_certain, err);
    if (status != ESDM_OK) {
        file_free(file);
        return status;
    }
    file->users = 1;
    (void) pthread_mutex_lock(&f->lock);
    esdm__file *gone = enter(f, file);
    (void) pthread_mutex_unlock(&f->lock);
    file_free(gone);
    *ret_file = file;
    return ESDM_OK;
}

/* What the system has in its memory is read with one call. 0 or less: nothing was. */
static ssize_t
read_cached(int fd, void *to, size_t bytes, uint64_t position)
{
    struct iovec range = {to, bytes};
    return preadv2(fd, &range, 1, (off_t) position, RWF_NOWAIT);
}

bool
esdm__file_is_cached(const esdm__file *file, uint64_t position)
{
    uint8_t byte;
    if (file->session != NULL)
        return true; /* several requests are better than one after the other */
    return read_cached(file->fd, &byte, 1, position) == 1;
}

/* Before a long call. The kernel takes what begins anywhere in a file for a single read, and what
 * goes on at the next page for the beginning of many: from there on it reads ahead in growing steps
 * and pages, which the long call finds under way. Where the long call is the first one the steps
 * are long at once, of single pages and not aligned; where it is the second one, too. Calls that
 * grow let the disk wait while the kernel makes the caller's memory. What fails here fails again.
 */
static void
begin_long(const esdm__file *file, uint64_t position)
{
    uint8_t byte;
    uint64_t page_bytes = (uint64_t) sysconf(_SC_PAGESIZE);
    for (uint64_t page = 0; page < 2; page++)
        if (pread(file->fd, &byte, 1, (off_t) (position + page * page_bytes)) < 0)
            return;
}

esdm_status
esdm__file_read(esdm__file *file, uint64_t position, void *data, size_t bytes, esdm_error *err)
{
    uint8_t *to = data;
    if (file->session != NULL)
        return esdm__url_read(file->session, file->location, &file->was, position, data, bytes,
                              err);
    bool is_long = bytes > LONG_BYTES;
    bool in_memory = !is_long && bytes > PIECE_BYTES; /* the system has it, as far as is known */
    size_t most = is_long ? bytes : PIECE_BYTES;
    if (is_long)
        begin_long(file, position);
    while (bytes > 0) {
        ssize_t n = in_memory ? read_cached(file->fd, to, bytes, position) : 0;
        in_memory = n > 0;
        if (n <= 0)
            n = pread(file->fd, to, bytes < most ? bytes : most, (off_t) position);
        if (n < 0 && errno == EINTR)
            continue;
        if (n < 0)
            return esdm__error_set_errno(err, errno, "file '%s'", file->location);
        if (n == 0)
            return esdm__error_set(err, ESDM_ECONFLICT,
                                   "file '%s' was cut off: it ends before byte %" PRIu64,
                                   file->location, position + bytes);
        to += n;
        position += (uint64_t) n;
        bytes -= (size_t) n;
    }
    return ESDM_OK;
}
