/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Creating and opening, and opening again. */

#include "storage.h"

#include "calls.h"
#include "esdm/digest.h"
#include "esdm/seal.h"

#include <errno.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

static const struct {
    int format;
    int mode;
    const char *hint;
} formats[] = {
    {NC_FORMAT_CLASSIC, 0, "classic"},
    {NC_FORMAT_64BIT_OFFSET, NC_64BIT_OFFSET, "64bit-offset"},
    {NC_FORMAT_64BIT_DATA, NC_64BIT_DATA, "cdf5"},
    {NC_FORMAT_NETCDF4, NC_NETCDF4, "netcdf4"},
    {NC_FORMAT_NETCDF4_CLASSIC, NC_NETCDF4 | NC_CLASSIC_MODEL, "netcdf4-classic"},
};
enum { FORMAT_COUNT = sizeof formats / sizeof formats[0] };

static int
format_of_mode(int mode)
{
    if ((mode & NC_NETCDF4) != 0)
        return (mode & NC_CLASSIC_MODEL) != 0 ? NC_FORMAT_NETCDF4_CLASSIC : NC_FORMAT_NETCDF4;
    if ((mode & NC_64BIT_DATA) != 0)
        return NC_FORMAT_64BIT_DATA;
    return (mode & NC_64BIT_OFFSET) != 0 ? NC_FORMAT_64BIT_OFFSET : NC_FORMAT_CLASSIC;
}

/* Containers that were not made through netCDF have no hint: the full model shows all of them. */
static int
format_of_hint(const char *hint)
{
    for (int i = 0; hint != NULL && i < FORMAT_COUNT; i++)
        if (strcmp(formats[i].hint, hint) == 0)
            return i;
    return 3;
}

int
esdmnc_hinted_format(const esdm_container *container)
{
    return formats[format_of_hint(esdm_container_hint(container, ESDMNC_HINT_FORMAT))].format;
}

static const char *
hint_of_format(int format)
{
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (formats[i].format == format)
            return formats[i].hint;
    return "netcdf4";
}

static uint64_t
now_ns(void)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_REALTIME, &now);
    return (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec;
}

/* Enters a freshly made file into the table, or takes it apart again. */
static int
finish_opening(esdmnc_file *file)
{
    file->writable = !file->shared && esdm_container_is_writable(file->container);
    if (!file->shared)
        esdm_container_set_conversion(file->container, esdmnc_conversion(file));
    file->published = !file->is_new;
    file->snapshot = esdm_container_snapshot(file->container);
    file->opened_ns = now_ns();
    esdmnc_cache_global(file, &file->cache);
    int rc = esdmnc_file_index(file);
    if (rc == NC_NOERR && !file->is_new) {
        esdmnc_file_settle_stored(file);
        rc = esdmnc_chunks_room(file);
    }
    if (!file->is_new && !file->shared)
        esdmnc_seen_note(file);
    if (file->writable && !file->is_new)
        esdm_container_mark(file->container);
    rc = esdmnc_agree(file, rc);
    if (rc == NC_NOERR)
        rc = esdmnc_agree(file, esdmnc_files_add(file));
    if (rc != NC_NOERR) {
        if (!file->shared)
            esdm_container_discard(file->container);
        esdmnc_file_free(file);
    } else if (!file->is_new && !file->shared) {
        esdmnc_recipe_note_file(file->writable ? "open" : "read", file);
    }
    return rc;
}

static int
prepare_alone(esdmnc_id id, const char *container, bool writing, esdm_session **ret_session,
              esdmnc_file **ret_file)
{
    char name[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_error err;
    if (esdm_container_normalise(container, name, &err) != ESDM_OK) {
        /* NC_EINVAL cannot say what is wrong with the name. */
        esdmnc_say("%s", err.message);
        return NC_EINVAL;
    }
    int rc = esdmnc_session(writing, ret_session);
    if (rc != NC_NOERR)
        return rc;
    if (writing)
        esdmnc_parked_drop();
    *ret_file = esdmnc_file_new(id, name);
    if (*ret_file == NULL)
        return NC_ENOMEM;
    if (writing)
        (*ret_file)->opening = esdmnc_python_opening();
    else
        esdmnc_python_reading();
    return NC_NOERR;
}

static int
prepare(esdmnc_id id, const char *container, bool writing, esdmnc_ranks *ranks,
        esdm_session **ret_session, esdmnc_file **ret_file)
{
    *ret_file = NULL;
    int rc = ranks != NULL ? esdmnc_session_of_ranks(ranks) : NC_NOERR;
    if (rc != NC_NOERR) /* on all ranks */
        return rc;
    rc = prepare_alone(id, container, writing, ret_session, ret_file);
    if (ranks != NULL)
        rc = esdmnc_ranks_agree(ranks, rc);
    if (rc == NC_NOERR && *ret_file == NULL)
        rc = NC_ENOMEM;
    if (rc != NC_NOERR)
        esdmnc_file_free(*ret_file);
    return rc;
}

static esdm_status
create_container(esdm_session *session, esdmnc_file *file, esdm_create_mode mode,
                 esdmnc_ranks *ranks, esdm_error *err)
{
    if (ranks != NULL)
        return esdm_container_create_collective(session, ranks, file->name, mode, &file->container,
                                                err);
    return esdm_container_create(session, file->name, mode, &file->container, err);
}

static esdm_status
open_container(esdm_session *session, esdmnc_file *file, bool writing, esdmnc_ranks *ranks,
               esdm_error *err)
{
    esdm_open_mode mode = writing ? ESDM_OPEN_WRITE : ESDM_OPEN_READ;
    if (ranks != NULL)
        return esdm_container_open_collective(session, ranks, file->name, mode,
                                              ESDM_SNAPSHOT_LATEST, &file->container, err);
    esdm_status status = ESDM_OK;
    file->container = writing ? NULL : esdmnc_parked_take(file->name);
    if (file->container == NULL)
        status = esdm_container_open(session, file->name, mode, ESDM_SNAPSHOT_LATEST,
                                     &file->container, err);
    esdm_attribute why;
    const char *wanted = secure_getenv("ESDM_NC_DIGEST");
    if (status == ESDM_OK && !writing &&
        esdm_attribute_find(esdm_group_attributes(esdm_container_root(file->container)),
                            ESDM_RETRACTED_ATTRIBUTE, &why, NULL))
        esdmnc_say("'%s' was retracted, and is not to be used any more: %.*s", file->name,
                   (int) why.count, (const char *) why.values);
    if (status == ESDM_OK && !writing && wanted != NULL && strcmp(wanted, "1") == 0)
        status = esdm_container_tell_digest(file->container, err);
    return status;
}

/* Why there is no new container: NetCDF's codes do not tell, but where the name itself is taken.
 * One rank tells it for all. */
static int
create_failed(const esdmnc_file *file, bool keep, const esdmnc_ranks *ranks, const esdm_error *err)
{
    bool taken = err->status == ESDM_EEXIST && keep && esdmnc_exists(file->name, NULL) == NC_NOERR;
    if (taken || (ranks != NULL && ranks->rank != 0))
        return esdmnc_error_quiet(err, "create", file->name);
    return err->status == ESDM_EEXIST ? esdmnc_error_loud(err, "create", file->name)
                                      : esdmnc_error_data(err, "create", file->name);
}

void
esdmnc_warn_unkept(esdm_session *session, const char *name)
{
    static atomic_bool told;
    if (atomic_load(&told) || esdm_former_would_be_kept(session, name) ||
        atomic_exchange(&told, true))
        return;
    esdmnc_say("what '%s' is now will not be kept for esdm-restore when it is replaced: the site "
               "keeps nothing (\"replaced\"), or a share of the free space, which is too little "
               "(told once)",
               name);
}

/* What tells the stub's folder from those of the same path on other nodes: all ranks note the same.
 * @return NC_NOERR, or what ranks fail to tell each other with. */
static int
place_of(const esdm_session *session, const char *folder, esdmnc_ranks *ranks,
         char place[ESDM_STUB_PLACE_BYTES])
{
    memset(place, 0, ESDM_STUB_PLACE_BYTES);
    if (ranks == NULL || ranks->rank == 0)
        esdm_stub_place(session, folder, place);
    return ranks != NULL ? esdmnc_ranks_share(ranks, place, ESDM_STUB_PLACE_BYTES) : NC_NOERR;
}

int
esdmnc_create(esdmnc_id id, const char *container, int mode, uint64_t stub_number,
              const esdmnc_new_stub *stub, esdmnc_ranks *ranks)
{
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    esdm_session *session;
    esdmnc_file *file;
    container = esdmnc_recipe_name(container, ESDMNC_TO_MAKE, buffer);
    int rc = prepare(id, container, true, ranks, &session, &file);
    if (rc != NC_NOERR)
        return rc;
    bool keep = (mode & NC_NOCLOBBER) != 0;
    if (keep && ranks == NULL && esdmnc_exists(file->name, NULL) == NC_NOERR) {
        esdmnc_file_free(file);
        return NC_EEXIST;
    }
    file->format = format_of_mode(mode);
    file->mode = mode & ~(NC_UDF0 | NC_UDF1);
    file->is_new = true;
    file->transient = (mode & (NC_DISKLESS | NC_MMAP)) != 0 && (mode & NC_PERSIST) == 0;
    atomic_store(&file->indef, true);
    (void) esdmnc_postponed_drop(file->name); /* the program tries again */
    esdm_error err;
    esdm_status st =
        create_container(session, file, keep ? ESDM_CREATE_NEW : ESDM_CREATE_REPLACE, ranks, &err);
    if (st != ESDM_OK) {
        rc = create_failed(file, keep, ranks, &err);
        esdmnc_file_free(file);
        return rc;
    }
    st = esdm_container_set_hint(file->container, ESDMNC_HINT_FORMAT, hint_of_format(file->format),
                                 &err);
    char place[ESDM_STUB_PLACE_BYTES];
    int shared = stub_number != 0 ? place_of(session, stub->folder, ranks, place) : NC_NOERR;
    if (st == ESDM_OK && stub_number != 0 && shared == NC_NOERR)
        st = esdm_container_set_stub(file->container, stub_number, stub->version, stub->folder,
                                     place, &err);
    rc = esdmnc_agree(file, st == ESDM_OK ? shared : esdmnc_error(&err, "create", file->name));
    if (rc != NC_NOERR) {
        esdm_container_discard(file->container);
        esdmnc_file_free(file);
        return rc;
    }
    if (!keep && (ranks == NULL || ranks->rank == 0) && !file->transient)
        esdmnc_warn_unkept(session, file->name);
    esdmnc_missing_forget();
    if (ranks == NULL && !file->transient)
        esdmnc_files_supersede(file->name);
    return finish_opening(file);
}

/* Whether a name that can be opened stands for more than one container: a place of a view, a query
 * with a name; or how accurately data are read was wrong. */
static bool
is_asked(const char *name)
{
    return strstr(name, "?accuracy=") != NULL || strstr(name, ":/") != NULL ||
           esdmnc_exists(name, NULL) == NC_NOERR;
}

/* Whether the message itself has the query. */
static bool
tells_query(const char *message, const char *name)
{
    size_t bytes = strlen(name);
    for (const char *at = strchr(message, '\''); at != NULL; at = strchr(at + 1, '\''))
        if (strncmp(at + 1, name, bytes) == 0 && at[1 + bytes] == '\'')
            return true;
    return false;
}

int
esdmnc_open(esdmnc_id id, const char *container, int mode, esdmnc_ranks *ranks)
{
    esdm_session *session;
    esdmnc_file *file;
    char buffer[ESDM_CONTAINER_NAME_MAX + 1];
    bool writing = (mode & NC_WRITE) != 0;
    container = esdmnc_recipe_name(container, writing ? ESDMNC_TO_WRITE : ESDMNC_TO_READ, buffer);
    int rc = prepare(id, container, writing, ranks, &session, &file);
    if (rc == ENOENT && !writing && ranks == NULL)
        esdmnc_missing_tell_site();
    if (rc != NC_NOERR)
        return rc;
    esdm_error err;
    esdm_status st = ESDM_OK;
    /* As in HDF5, a reader in the writer's own process sees what is not committed yet: ncap2 reads
     * the file that it creates. */
    if (ranks != NULL)
        esdmnc_postponed_commit(file->name);
    else if (writing)
        esdmnc_postponed_resume(file);
    bool resumed = file->container != NULL;
    /* As in HDF5, a reader in the writer's own process sees what is not committed yet: ncap2 reads
     * the file that it creates. */
    if (!writing && ranks == NULL)
        file->container = esdmnc_files_writer(file->name);
    file->shared = !resumed && file->container != NULL;
    if (file->container == NULL)
        st = open_container(session, file, writing, ranks, &err);
    if (st != ESDM_OK) {
        bool query = file->name[0] == '?';
        /* No code of NetCDF tells what does not fit. */
        bool asked = query || (st == ESDM_EINVAL && is_asked(file->name));
        if (asked && (ranks == NULL || ranks->rank == 0))
            rc = esdmnc_error_loud(&err, tells_query(err.message, file->name) ? NULL : "open",
                                   file->name);
        else
            rc = writing && st == ESDM_EACCES ? esdmnc_error_data(&err, "open", file->name)
                                              : esdmnc_error(&err, "open", file->name);
        if (query && st == ESDM_ENOENT)
            rc = ENOENT;
        if (st == ESDM_ENOENT && !query && !writing && (ranks == NULL || ranks->rank == 0))
            esdmnc_missing_tell(session, file->name);
        esdmnc_file_free(file);
        return rc;
    }
    int entry = format_of_hint(esdm_container_hint(file->container, ESDMNC_HINT_FORMAT));
    file->format = formats[entry].format;
    if ((mode & NC_MMAP) != 0 && !esdmnc_is_nc3(file)) { /* parallel calls do not come here */
        if (!file->shared)
            esdm_container_discard(file->container);
        esdmnc_file_free(file);
        return NC_EINVAL;
    }
    int format_bits = NC_NETCDF4 | NC_CLASSIC_MODEL | NC_64BIT_OFFSET | NC_64BIT_DATA;
    file->mode = mode & ~(NC_UDF0 | NC_UDF1 | format_bits);
    file->mode |= formats[entry].mode & ~NC_CLASSIC_MODEL; /* as netCDF-4 tells it */
    file->transient = writing && (mode & NC_DISKLESS) != 0 && (mode & NC_PERSIST) == 0;
    return finish_opening(file);
}

/* ---- after a fork --------------------------------------------------------------------------- */

/* Whether the container is still the one that was opened. Rank 0 looks for all. */
static int
check_same(esdm_session *session, const esdmnc_file *file)
{
    esdm_container_info info = {0};
    esdm_error err;
    const esdm_comm *comm = esdmnc_comm(file);
    int rc = NC_NOERR;
    if (comm == NULL || comm->rank == 0) {
        if (esdm_container_stat(session, file->name, &info, &err) != ESDM_OK)
            rc = esdmnc_error(&err, "open again", file->name);
        else if (info.created_ns > file->opened_ns)
            rc = NC_ECANTREAD;
    }
    rc = esdmnc_agree(file, rc);
    if (rc == NC_ECANTREAD)
        esdmnc_debug("'%s' was replaced since it was opened", file->name);
    return rc;
}

/* Opens the container for reading once more. NC_ECANTREAD when it is another one by now. */
int
esdmnc_open_again(const esdmnc_file *file, uint64_t snapshot, esdm_container **ret_container)
{
    esdm_session *session;
    esdm_error err;
    esdm_status st;
    esdm_comm *comm = esdmnc_comm(file);
    int rc = esdmnc_agree(file, esdmnc_session(false, &session));
    if (rc == NC_NOERR)
        rc = check_same(session, file);
    if (rc != NC_NOERR)
        return rc;
    if (comm != NULL)
        st = esdm_container_open_collective(session, comm, file->name, ESDM_OPEN_READ, snapshot,
                                            ret_container, &err);
    else
        st =
            esdm_container_open(session, file->name, ESDM_OPEN_READ, snapshot, ret_container, &err);
    return st == ESDM_OK ? NC_NOERR : esdmnc_error(&err, "open again", file->name);
}

static int
revive(esdmnc_file *file)
{
    esdm_container *container = NULL;
    if (file->writable) {
        esdmnc_debug("'%s' is being written by the parent process: open it again after fork()",
                     file->name);
        return NC_ECANTWRITE;
    }
    int rc = esdmnc_open_again(file, file->snapshot, &container);
    if (rc != NC_NOERR)
        return rc;
    /* The parent's handle cannot be closed here: its session died with the fork. */
    esdmnc_file_forget(file);
    file->container = container;
    file->shared = false;
    rc = esdmnc_file_index(file);
    if (rc == NC_NOERR) {
        esdmnc_file_settle_stored(file);
        file->generation = esdmnc_session_generation();
    }
    return rc;
}

int
esdmnc_file_revive(esdmnc_file *file)
{
    static pthread_mutex_t revive_lock = PTHREAD_MUTEX_INITIALIZER;
    int rc = NC_NOERR;
    pthread_mutex_lock(&revive_lock);
    if (file->generation != esdmnc_session_generation())
        rc = revive(file);
    pthread_mutex_unlock(&revive_lock);
    return rc;
}
