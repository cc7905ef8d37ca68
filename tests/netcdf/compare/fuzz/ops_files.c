/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Opening, closing and modes. */

#include "../compare.h"

#include "fuzz.h"

#include <string.h>

static bool
is_open(const fuzz_state *state, int file)
{
    for (int i = 0; i < HANDLES; i++)
        if (state->handles[i].open && state->handles[i].file == file)
            return true;
    return false;
}

/* Several may read, one may write. */
static bool
is_written(const fuzz_state *state, int file)
{
    for (int i = 0; i < HANDLES; i++)
        if (state->handles[i].open && state->handles[i].writable && state->handles[i].file == file)
            return true;
    return false;
}

static void
opened(context *c, int rc, int ncid, int file, int mode, bool writable)
{
    c->handle->ncid[c->side] = rc == NC_NOERR ? ncid : CLOSED;
    if (c->side == ESDM || rc != NC_NOERR) {
        c->handle->open = rc == NC_NOERR;
        c->handle->file = file;
        c->handle->shared = (mode & NC_SHARE) != 0;
        c->handle->writable = writable;
        c->handle->kept = c->handle->defined = c->handle->reopened = false;
        c->handle->grown = c->handle->removed = c->handle->rewritten = false;
    }
}

static void
left_define(context *c, int rc)
{
    /* What failed may have left variables without fill values. */
    if (rc == NC_EBADTYPE && c->handle->open)
        c->state->files[c->handle->file].loose_data = true;
    if (rc != NC_NOERR)
        return;
    c->handle->defined = c->handle->removed = c->handle->rewritten = false;
    c->handle->kept = true;
}

static void
closed(context *c)
{
    c->handle->ncid[c->side] = CLOSED;
    if (c->side == ESDM)
        c->handle->open = false;
}

static void
make_create(generator *g, op *o)
{
    o->argument[0] = (int) pick(g, FILES);
    o->argument[1] = one_in(g, 4) ? NC_NOCLOBBER : 0;
    o->argument[1] |= one_in(g, 6) ? NC_SHARE : 0;
}

static int
call_create(context *c)
{
    int file = c->op->argument[0];
    int mode = c->state->mode | c->op->argument[1];
    int ncid = CLOSED;
    if (c->side == STOCK && (c->handle->open || is_open(c->state, file)))
        return skip(c);
    say(c, "nc_create(path%d, w->mode | %#x, &ncid)", file, (unsigned) c->op->argument[1]);
    int rc = nc_create(c->state->files[file].path[c->side], mode, &ncid);
    opened(c, rc, ncid, file, mode, true);
    if (rc == NC_NOERR) {
        fuzz_file *f = &c->state->files[file];
        f->loose_data = f->loose_order = f->loose_names = false;
    }
    return rc;
}

static void
make_open(generator *g, op *o)
{
    o->argument[0] = (int) pick(g, FILES);
    o->argument[1] = one_in(g, 3) ? NC_NOWRITE : NC_WRITE;
    o->argument[1] |= one_in(g, 6) ? NC_SHARE : 0;
}

static int
call_open(context *c)
{
    int file = c->op->argument[0];
    int ncid = CLOSED;
    bool writing = (c->op->argument[1] & NC_WRITE) != 0;
    if (c->side == STOCK &&
        (c->handle->open || (writing ? is_open(c->state, file) : is_written(c->state, file))))
        return skip(c);
    say(c, "nc_open(path%d, %#x, &ncid)", file, (unsigned) c->op->argument[1]);
    int rc = nc_open(c->state->files[file].path[c->side], c->op->argument[1], &ncid);
    opened(c, rc, ncid, file, c->op->argument[1], (c->op->argument[1] & NC_WRITE) != 0);
    c->handle->kept = c->handle->reopened = true;
    return rc;
}

static void
make_nothing(generator *g, op *o)
{
    o->argument[0] = (int) pick(g, 4);
}

static int
call_close(context *c)
{
    say(c, "nc_close($)");
    int rc = nc_close(c->handle->ncid[c->side]);
    left_define(c, rc);
    closed(c); /* netCDF-3 frees it when it fails, and keeps the ncid */
    return rc;
}

static int
call_abort(context *c)
{
    if (c->side == STOCK && c->handle->grown && !c->handle->shared && is_netcdf3(c->state) &&
        left_out("netcdf3-abort-forgets"))
        return skip(c);
    if (c->side == STOCK && c->handle->removed && !is_netcdf3(c->state) &&
        left_out("netcdf4-abort"))
        return skip(c);
    say(c, "nc_abort($)");
    int rc = nc_abort(c->handle->ncid[c->side]);
    closed(c); /* also when it fails */
    return rc;
}

static int
call_sync(context *c)
{
    say(c, "nc_sync($)");
    int rc = nc_sync(c->ncid);
    if (rc == NC_NOERR && c->side == ESDM)
        c->handle->grown = false;
    left_define(c, rc);
    return rc;
}

static int
call_redef(context *c)
{
    say(c, "nc_redef($)");
    int rc = nc_redef(c->ncid);
    return rc;
}

static int
call_enddef(context *c)
{
    say(c, "nc_enddef($)");
    int rc = nc_enddef(c->ncid);
    left_define(c, rc);
    return rc;
}

static int
call__enddef(context *c)
{
    say(c, "nc__enddef($, 100, 8, 0, 4)");
    int rc = nc__enddef(c->ncid, 100, 8, 0, 4);
    left_define(c, rc);
    return rc;
}

static void
make_set_fill(generator *g, op *o)
{
    static const int modes[] = {NC_FILL, NC_FILL, NC_FILL, NC_NOFILL, 7};
    o->argument[0] = modes[pick(g, 5)];
}

static int
call_set_fill(context *c)
{
    int old = -1;
    say(c, "nc_set_fill($, %#x, &old)", (unsigned) c->op->argument[0]);
    int rc = nc_set_fill(c->ncid, c->op->argument[0], &old);
    if (rc == NC_NOERR)
        out_int(c, old);
    if (rc == NC_NOERR && c->op->argument[0] == NC_NOFILL && c->handle->open)
        c->state->files[c->handle->file].loose_data = true;
    return rc;
}

static int
call_inq_format(context *c)
{
    int format = -1;
    int mode = -1;
    say(c, "nc_inq_format($, &format)");
    int rc = nc_inq_format(c->ncid, &format);
    if (rc == NC_NOERR)
        out_int(c, format);
    if (rc == NC_NOERR)
        rc = nc_inq_format_extended(c->ncid, NULL, &mode);
    if (rc == NC_NOERR)
        out_int(c, mode);
    return rc;
}

/* A second handle on the file, whose state is read after the first one is synchronised. */
static int
call_peek(context *c)
{
    int ncid = CLOSED;
    journal lines = {0};
    if (c->side == STOCK && !c->handle->open)
        return skip(c);
    say(c, "nc_sync($); nc_open(path%d, %#x, &second)", c->handle->file,
        (unsigned) c->op->argument[1]);
    int rc = nc_sync(c->handle->ncid[c->side]);
    left_define(c, rc);
    if (rc != NC_NOERR)
        return rc;
    if (c->side == ESDM)
        c->handle->grown = false;
    const fuzz_file *file = &c->state->files[c->handle->file];
    rc = nc_open(file->path[c->side], c->op->argument[1], &ncid);
    if (rc != NC_NOERR)
        return rc;
    journal_select(&lines);
    note_parts(!file->loose_data, !file->loose_order);
    note_file(ncid);
    journal_select(NULL);
    bool failed = false;
    for (size_t i = 0; i < lines.count; i++) {
        out_text(c, lines.entries[i].text);
        failed |= lines.entries[i].is_call && lines.entries[i].rc == NC_EHDFERR;
    }
    journal_clear(&lines);
    rc = nc_close(ncid);
    return failed ? NC_EHDFERR : rc;
}

static void
make_peek(generator *g, op *o)
{
    o->argument[1] = one_in(g, 2) ? NC_NOWRITE : NC_NOWRITE | NC_SHARE;
}

static int
call_delete(context *c)
{
    int file = c->op->argument[0] % FILES;
    if (c->side == STOCK && is_open(c->state, file))
        return skip(c);
    say(c, "nc_delete(path%d)", file);
    return nc_delete(c->state->files[file].path[c->side]);
}

const kind kinds_files[] = {{"create", 20, false, make_create, call_create},
                            {"open", 20, false, make_open, call_open},
                            {"close", 12, false, make_nothing, call_close},
                            {"abort", 3, false, make_nothing, call_abort},
                            {"sync", 8, false, make_nothing, call_sync},
                            {"redef", 14, false, make_nothing, call_redef},
                            {"enddef", 16, false, make_nothing, call_enddef},
                            {"_enddef", 2, false, make_nothing, call__enddef},
                            {"set_fill", 3, false, make_set_fill, call_set_fill},
                            {"inq_format", 2, false, make_nothing, call_inq_format},
                            {"peek", 4, false, make_peek, call_peek},
                            {"delete", 1, false, make_nothing, call_delete},
                            {0}};
