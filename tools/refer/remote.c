/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * Objects on web servers. libnetcdf knows paths alone, so it is given that of a file with the first
 * bytes of HDF5; when it has HDF5 open it, H5Fopen() of this program takes a file driver that reads
 * the object (refer/hdf5.c). Of netCDF classic the file has the whole header. Blocks that were read
 * stay in memory: what libnetcdf has read is looked at again.
 */

#include "refer/remote.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define BLOCK_BYTES UINT64_C(131072)
#define BLOCKS_MOST 4096u

static esdm_session *session;
static remote_object *current;
static esdm_error failure;
static bool failed;
static char *stub; /* path */

void
remote_use(esdm_session *with)
{
    session = with;
}

esdm_session *
remote_session(void)
{
    return session;
}

static void
forget(void)
{
    if (current != NULL) {
        g_hash_table_unref(current->blocks);
        g_free(current->url);
        g_free(current);
    }
    current = NULL;
    failed = false;
}

esdm_status
remote_open(const char *url, remote_object **ret, esdm_error *err)
{
    if (current != NULL && g_str_equal(current->url, url)) {
        *ret = current;
        return ESDM_OK;
    }
    esdm_remote_state state;
    forget();
    esdm_status status = esdm_remote_stat(session, url, &state, err);
    if (status != ESDM_OK)
        return status;
    current = g_new0(remote_object, 1);
    current->url = g_strdup(url);
    current->state = state;
    current->blocks = g_hash_table_new_full(g_int64_hash, g_int64_equal, g_free, g_free);
    *ret = current;
    return ESDM_OK;
}

static bool
ask(const remote_object *object, uint64_t position, void *to, size_t bytes)
{
    esdm_error err = {0};
    if (esdm_remote_read(session, object->url, &object->state, position, to, bytes, &err) ==
        ESDM_OK)
        return true;
    if (!failed)
        failure = err;
    failed = true;
    return false;
}

static void
keep(remote_object *object, uint64_t number, uint8_t *block)
{
    gint64 key = (gint64) number;
    if (g_hash_table_size(object->blocks) >= BLOCKS_MOST)
        g_hash_table_remove_all(object->blocks);
    g_hash_table_insert(object->blocks, g_memdup2(&key, sizeof key), block);
}

/* A long header, which is looked at twice. It ends with a block, or with the object. */
static void
keep_beginning(remote_object *object, const uint8_t *data, size_t bytes)
{
    for (uint64_t at = 0; at < bytes; at += BLOCK_BYTES) {
        uint8_t *block = g_malloc0(BLOCK_BYTES);
        memcpy(block, data + at, (size_t) MIN(BLOCK_BYTES, bytes - at));
        keep(object, at / BLOCK_BYTES, block);
    }
}

static bool
has_all(const remote_object *object, uint64_t position, size_t bytes)
{
    uint64_t end = (position + bytes - 1) / BLOCK_BYTES;
    bool all = true;
    for (uint64_t i = position / BLOCK_BYTES; i <= end && all; i++) {
        gint64 key = (gint64) i;
        all = g_hash_table_contains(object->blocks, &key);
    }
    return all;
}

static const uint8_t *
block_of(remote_object *object, uint64_t number)
{
    gint64 key = (gint64) number;
    uint8_t *block = g_hash_table_lookup(object->blocks, &key);
    if (block != NULL)
        return block;
    uint64_t position = number * BLOCK_BYTES;
    block = g_malloc0(BLOCK_BYTES);
    if (!ask(object, position, block, (size_t) MIN(BLOCK_BYTES, object->state.bytes - position))) {
        g_free(block);
        return NULL;
    }
    keep(object, number, block);
    return block;
}

bool
remote_read(remote_object *object, uint64_t position, void *to, size_t bytes)
{
    uint8_t *at = to;
    uint64_t all = object->state.bytes;
    size_t there = position >= all ? 0 : (size_t) MIN(bytes, all - position);
    memset(at + there, 0, bytes - there);
    if (there > 4 * BLOCK_BYTES && !has_all(object, position, there)) {
        if (!ask(object, position, at, there))
            return false;
        if (position == 0 && there <= 64 * BLOCK_BYTES) /* else values: not needed twice */
            keep_beginning(object, at, there);
        return true;
    }
    while (there > 0) {
        uint64_t within = position % BLOCK_BYTES;
        size_t n = (size_t) MIN(there, BLOCK_BYTES - within);
        const uint8_t *block = block_of(object, position / BLOCK_BYTES);
        if (block == NULL)
            return false;
        memcpy(at, block + within, n);
        at += n;
        position += n;
        there -= n;
    }
    return true;
}

bool
remote_read_range(remote_object *object, uint64_t position, void *to, size_t bytes)
{
    return ask(object, position, to, bytes);
}

const esdm_error *
remote_failure(void)
{
    return failed ? &failure : NULL;
}

static const char hdf5_magic[8] = "\211HDF\r\n\032\n";

esdm_status
remote_kind_of(const char *url, remote_kind *ret_kind, esdm_error *err)
{
    remote_object *object = NULL;
    char head[sizeof hdf5_magic];
    esdm_status status = remote_open(url, &object, err);
    if (status != ESDM_OK)
        return status;
    if (!remote_read(object, 0, head, sizeof head)) {
        *err = failure;
        return failure.status;
    }
    if (memcmp(head, hdf5_magic, sizeof head) == 0)
        *ret_kind = REMOTE_HDF5;
    else if (memcmp(head, "CDF", 3) == 0 && (head[3] == 1 || head[3] == 2 || head[3] == 5))
        *ret_kind = REMOTE_CLASSIC;
    else if (memcmp(head, "GRIB", 4) == 0)
        *ret_kind = REMOTE_GRIB;
    else
        return tool_error_set(err, ESDM_ENOTSUP,
                              "'%s' is no netCDF and no GRIB file, and no Zarr store with "
                              "consolidated metadata: nothing else can be referred to on a web "
                              "server",
                              url);
    return ESDM_OK;
}

static bool
write_all(int fd, const uint8_t *data, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = write(fd, data, bytes);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        data += n;
        bytes -= (size_t) n;
    }
    return true;
}

esdm_status
remote_stand_in(const void *data, size_t bytes, uint64_t all, const char **ret_path,
                esdm_error *err)
{
    g_autoptr(GError) error = NULL;
    int fd = -1;
    if (stub != NULL)
        (void) unlink(stub);
    g_clear_pointer(&stub, g_free);
    fd = g_file_open_tmp("esdm-ref-XXXXXX.nc", &stub, &error);
    /* What follows takes no room. */
    bool written =
        fd >= 0 && write_all(fd, data, bytes) && (all == bytes || ftruncate(fd, (off_t) all) == 0);
    int why = errno;
    if (fd >= 0)
        (void) close(fd);
    if (!written)
        return tool_error_set(err, ESDM_EIO, "no temporary file: %s",
                              error != NULL ? error->message : g_strerror(why));
    *ret_path = stub;
    return ESDM_OK;
}

esdm_status
remote_path(const char **ret_path, esdm_error *err)
{
    return remote_stand_in(hdf5_magic, sizeof hdf5_magic, sizeof hdf5_magic, ret_path, err);
}

void
remote_end(void)
{
    forget();
    if (stub != NULL)
        (void) unlink(stub);
    g_clear_pointer(&stub, g_free);
}
