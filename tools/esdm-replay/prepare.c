/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Before the replay: containers that the program found; after it: all of them go. */
#include "esdm-replay/esdm-replay.h"

#include <string.h>

#define SLAB_BYTES (UINT64_C(64) << 20)

/* What is written at once from a position on: whole in the fastest dimensions, as programs that
 * make such data do. @return elements. */
static guint64
next_slab(const replay_dataset *d, const uint64_t *at, uint64_t *ret_size)
{
    guint64 left = SLAB_BYTES / esdm_type_size(d->type);
    bool whole = true;
    guint64 count = 1;
    for (guint i = d->rank; i > 0; i--) {
        guint64 length = d->end[i - 1] - at[i - 1];
        bool begins = at[i - 1] == d->first[i - 1];
        ret_size[i - 1] = whole ? MIN(length, MAX(left, 1)) : 1;
        whole = whole && begins && ret_size[i - 1] == length;
        left /= ret_size[i - 1];
        count *= ret_size[i - 1];
    }
    return count;
}

/* Goes on behind a slab; false: all was written. */
static bool
advance(const replay_dataset *d, uint64_t *at, const uint64_t *size)
{
    for (guint i = d->rank; i > 0; i--) {
        at[i - 1] += size[i - 1];
        if (at[i - 1] < d->end[i - 1])
            return true;
        at[i - 1] = d->first[i - 1];
    }
    return false;
}

static esdm_status
fill_dataset(esdm_dataset *dataset, const replay_dataset *d, const replay_values *values,
             esdm_error *err)
{
    uint64_t at[ESDM_MAX_RANK];
    uint64_t size[ESDM_MAX_RANK];
    guint64 done = 0;
    esdm_status st = ESDM_OK;
    for (guint i = 0; i < d->rank; i++) {
        at[i] = d->first[i];
        if (d->end[i] <= d->first[i])
            return ESDM_OK;
    }
    g_autofree void *buffer = g_try_malloc(SLAB_BYTES);
    if (buffer == NULL)
        return tool_error_set(err, ESDM_ENOMEM, "no memory for values of inputs");
    do {
        esdm_dataspace space;
        guint64 count = next_slab(d, at, size);
        replay_values_fill(values, d, d->type, buffer, count, done);
        done += count;
        st = esdm_dataspace_init(&space, d->rank, at, size, err);
        if (st == ESDM_OK)
            st = esdm_write(dataset, &space, d->type, buffer, NULL, err);
    } while (st == ESDM_OK && !replay_stopped() && advance(d, at, size));
    return st;
}

static esdm_status
make_input(const replay_file *file, const char *name, const replay_values *values,
           esdm_session *session, esdm_error *err)
{
    esdm_container *container = NULL;
    esdm_status st = esdm_container_create(session, name, ESDM_CREATE_NEW, &container, err);
    if (st == ESDM_OK)
        st = replay_define(container, file->inputs, true, err);
    for (guint i = 0; i < file->inputs->len && st == ESDM_OK; i++) {
        const replay_dataset *d = file->inputs->pdata[i];
        if (d->is_read && d->type != ESDM_TYPE_NONE)
            st = fill_dataset(replay_find(container, d->path), d, values, err);
    }
    if (st == ESDM_OK && !replay_stopped())
        return esdm_container_close(container, err);
    esdm_container_discard(container);
    return st;
}

tool_exit
replay_prepare(const replay_load *load, const replay_options *options, const replay_values *values,
               esdm_session *session)
{
    esdm_error err = {0};
    for (guint k = 0; k < load->files->len && !replay_stopped(); k++) {
        const replay_file *file = load->files->pdata[k];
        g_autofree char *name = replay_name(options, file);
        esdm_status st = file->input ? make_input(file, name, values, session, &err) : ESDM_OK;
        if (st != ESDM_OK) {
            g_autofree char *shown = tool_printable(file->name);
            tool_error("the input in the place of '%s' cannot be made: %s", shown, err.message);
            return tool_exit_of(st);
        }
    }
    return TOOL_OK;
}

tool_exit
replay_remove(const replay_load *load, const replay_options *options)
{
    esdm_session *session = NULL;
    tool_exit result = tool_session(false, &session);
    if (result != TOOL_OK)
        return result;
    for (guint k = 0; k < load->files->len; k++) {
        esdm_error err = {0};
        g_autofree char *name = replay_name(options, load->files->pdata[k]);
        esdm_status st = esdm_container_erase(session, name, &err);
        if (st != ESDM_OK && st != ESDM_ENOENT)
            result = tool_fail(st, &err);
    }
    esdm_session_close(session);
    return result;
}
