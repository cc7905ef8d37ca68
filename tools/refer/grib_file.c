/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Bytes of GRIB files, and of those on web servers, where each request costs a way there and
 * back: heads of messages that lie near are read by one request, data between them is passed over.
 */

#include <errno.h>
#include <string.h>
#include <unistd.h>

#include "refer/grib.h"
#include "refer/remote.h"

/* Messages up to that are read with all between their heads, several at once. */
#define NEAR_BYTES  UINT64_C(131072)
#define AHEAD_BYTES ((size_t) 1 << 20)
/* Heads of a message that is longer: a grid and the levels' coefficients, mostly. */
#define HEAD_BYTES ((size_t) 4096)

static bool
read_file(const gribs_file *f, uint64_t position, uint8_t *to, size_t bytes)
{
    while (bytes > 0) {
        ssize_t n = pread(f->fd, to, bytes, (off_t) position);
        if (n < 0 && errno == EINTR)
            continue;
        if (n <= 0)
            return false;
        to += n;
        position += (uint64_t) n;
        bytes -= (size_t) n;
    }
    return true;
}

static bool
ask(const gribs_file *f, uint64_t position, void *to, size_t bytes)
{
    return remote_read_range(f->remote, position, to, bytes);
}

bool
gribs_file_read(gribs_file *f, uint64_t position, void *to, size_t bytes, bool data)
{
    if (position > f->bytes || bytes > f->bytes - position)
        return false;
    if (f->remote == NULL)
        return read_file(f, position, to, bytes);
    if (data)
        return ask(f, position, to, bytes);
    if (position < f->window_at || position - f->window_at > f->window_bytes ||
        bytes > f->window_bytes - (position - f->window_at)) {
        size_t wanted = MAX(bytes, f->read_ahead > 0 ? f->read_ahead : HEAD_BYTES);
        wanted = (size_t) MIN(wanted, f->bytes - position);
        g_free(f->window);
        f->window = g_malloc(wanted);
        f->window_at = position;
        f->window_bytes = 0;
        if (!ask(f, position, f->window, wanted))
            return false;
        f->window_bytes = wanted;
    }
    memcpy(to, f->window + (position - f->window_at), bytes);
    return true;
}

void
gribs_file_expect(gribs_file *f, uint64_t message_bytes)
{
    f->read_ahead = message_bytes <= NEAR_BYTES ? AHEAD_BYTES : HEAD_BYTES;
}

void
gribs_file_clear(gribs_file *f)
{
    g_free(f->window);
    f->window = NULL;
    f->window_bytes = 0;
}
