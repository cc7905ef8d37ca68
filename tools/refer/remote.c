/* SPDX-License-Identifier: LGPL-3.0-or-later */

/*
 * Objects on web servers. libnetcdf knows paths alone, so it is given that of a file with the first
 * bytes of HDF5; when it has HDF5 open it, H5Fopen() of this program takes a file driver that reads
 * the object (refer/hdf5.c). Blocks that were read stay in memory: what libnetcdf has read is
 * looked at again.
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
    if (g_hash_table_size(object->blocks) >= BLOCKS_MOST)
        g_hash_table_remove_all(object->blocks);
    g_hash_table_insert(object->blocks, g_memdup2(&key, sizeof key), block);
    return block;
}

bool
remote_read(remote_object *object, uint64_t position, void *to, size_t bytes)
{
    uint8_t *at = to;
    uint64_t all = object->state.bytes;
    size_t there = position >= all ? 0 : (size_t) MIN(bytes, all - position);
    memset(at + there, 0, bytes - there);
    if (there > 4 * BLOCK_BYTES) /* values: they are not needed twice */
        return ask(object, position, at, there);
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

const esdm_error *
remote_failure(void)
{
    return failed ? &failure : NULL;
}

esdm_status
remote_path(const char *url, const char **ret_path, esdm_error *err)
{
    static const char magic[8] = "\211HDF\r\n\032\n";
    remote_object *object = NULL;
    char head[sizeof magic];
    esdm_status status = remote_open(url, &object, err);
    if (status != ESDM_OK)
        return status;
    if (!remote_read(object, 0, head, sizeof head)) {
        *err = failure;
        return failure.status;
    }
    if (memcmp(head, magic, sizeof magic) != 0)
        return tool_error_set(err, ESDM_ENOTSUP,
                              "'%s' is no HDF5 file and no Zarr store with consolidated metadata: "
                              "nothing else can be referred to on a web server",
                              url);
    if (stub == NULL) {
        g_autoptr(GError) error = NULL;
        int fd = g_file_open_tmp("esdm-ref-XXXXXX.nc", &stub, &error);
        bool written = fd >= 0 && write(fd, magic, sizeof magic) == (ssize_t) sizeof magic;
        if (fd >= 0)
            (void) close(fd);
        if (!written)
            return tool_error_set(err, ESDM_EIO, "no temporary file: %s",
                                  error != NULL ? error->message : g_strerror(errno));
    }
    *ret_path = stub;
    return ESDM_OK;
}

void
remote_end(void)
{
    forget();
    if (stub != NULL)
        (void) unlink(stub);
    g_clear_pointer(&stub, g_free);
}
