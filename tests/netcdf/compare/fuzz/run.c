/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Runs a sequence on both sides in lock step. */

#include "../compare.h"

#include "fuzz.h"

#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

report *fuzz_shared;

/* ---- what call functions use ---------------------------------------------------------------- */

void
say(context *c, const char *format, ...)
{
    va_list args;
    if (c->side == ESDM)
        return; /* it says the same */
    va_start(args, format);
    vsnprintf(c->out->text, sizeof c->out->text, format, args);
    va_end(args);
}

void
out_bytes(context *c, const void *bytes, size_t count)
{
    size_t room = OUTCOME_MAX - c->out->bytes;
    count = count < room ? count : room;
    memcpy(c->out->data + c->out->bytes, bytes, count);
    c->out->bytes += count;
}

void
out_int(context *c, long long value)
{
    out_bytes(c, &value, sizeof value);
}

void
out_text(context *c, const char *text)
{
    out_bytes(c, text, strlen(text) + 1);
}

int
skip(context *c)
{
    c->out->skipped = true;
    return NC_NOERR;
}

bool
is_netcdf3(const fuzz_state *state)
{
    return state->format != NC_FORMAT_NETCDF4 && state->format != NC_FORMAT_NETCDF4_CLASSIC;
}

bool
is_decomposed(const context *c, short name)
{
    return !is_netcdf3(c->state) && strcmp(fuzz_name(name), "a\xcc\x88") == 0 &&
           left_out("netcdf4-names-not-normalised");
}

bool
is_large_unsigned(const context *c, nc_type from, nc_type to)
{
    return !is_netcdf3(c->state) && (from == NC_FLOAT || from == NC_DOUBLE) && to == NC_UINT64 &&
           left_out("netcdf4-large-unsigned");
}

bool
may_rename(context *c, const char *old_name, const char *new_name)
{
    if (c->side == ESDM || !c->handle->open || !is_netcdf3(c->state))
        return true;
    fuzz_file *file = &c->state->files[c->handle->file];
    if (file->loose_names && strlen(new_name) > strlen(old_name) &&
        left_out("netcdf3-room-of-names"))
        return false;
    file->loose_names |= strlen(new_name) < strlen(old_name);
    return true;
}

/* ---- groups --------------------------------------------------------------------------------- */

static int
list_groups(int ncid, int *list, int count)
{
    int below[100];
    int number = 0;
    if (count < GROUPS)
        list[count++] = ncid;
    if (nc_inq_grps(ncid, &number, NULL) != NC_NOERR || number > 100 ||
        nc_inq_grps(ncid, &number, below) != NC_NOERR)
        return count;
    for (int i = 0; i < number; i++)
        count = list_groups(below[i], list, count);
    return count;
}

/* The ncid of a handle's group; one that does not exist gives the root's. */
static int
group_ncid(const fuzz_handle *handle, int side, int group)
{
    int list[GROUPS];
    int ncid = handle->ncid[side];
    if (!handle->open || group == 0)
        return ncid;
    int count = list_groups(ncid, list, 0);
    return group < count ? list[group] : ncid;
}

static bool
group_has(int ncid, bool vars, const char *a, const char *b)
{
    char name[NC_MAX_NAME + 1];
    int ids[300];
    int count = 0;
    if (vars)
        (void) nc_inq_varids(ncid, &count, NULL);
    else
        (void) nc_inq_dimids(ncid, &count, NULL, 0);
    if (count > 300)
        return true;
    (void) (vars ? nc_inq_varids(ncid, &count, ids) : nc_inq_dimids(ncid, &count, ids, 0));
    for (int i = 0; i < count; i++) {
        if ((vars ? nc_inq_varname(ncid, ids[i], name) : nc_inq_dimname(ncid, ids[i], name)) != 0)
            continue;
        if (strcmp(name, a) == 0 || strcmp(name, b) == 0)
            return true;
    }
    return false;
}

static bool
file_has(const context *c, bool vars, const char *a, const char *b)
{
    int list[GROUPS];
    int count = list_groups(c->handle->ncid[c->side], list, 0);
    for (int i = 0; i < count; i++)
        if (group_has(list[i], vars, a, b))
            return true;
    return false;
}

bool
file_has_dim(const context *c, const char *a, const char *b)
{
    return file_has(c, false, a, b);
}

bool
file_has_var(const context *c, const char *a, const char *b)
{
    return file_has(c, true, a, b);
}

static bool
group_repeats_dim(int ncid, int dimid)
{
    int vars = 0;
    (void) nc_inq_nvars(ncid, &vars);
    for (int v = 0; v < vars; v++) {
        int dims[NC_MAX_VAR_DIMS];
        int rank = 0;
        int uses = 0;
        if (nc_inq_varndims(ncid, v, &rank) != NC_NOERR ||
            nc_inq_vardimid(ncid, v, dims) != NC_NOERR)
            continue;
        for (int i = 0; i < rank; i++)
            uses += dims[i] == dimid;
        if (uses > 1)
            return true;
    }
    return false;
}

bool
file_repeats_dim(const context *c, int dimid)
{
    int list[GROUPS];
    int count = list_groups(c->handle->ncid[c->side], list, 0);
    for (int i = 0; i < count; i++)
        if (group_repeats_dim(list[i], dimid))
            return true;
    return false;
}

bool
group_has_group(const context *c)
{
    int id;
    nc_type type = NC_NAT;
    const char *name = fuzz_name(c->op->name);
    return nc_inq_grp_ncid(c->ncid, name, &id) == NC_NOERR ||
           (nc_inq_typeid(c->ncid, name, &type) == NC_NOERR && type > NC_STRING);
}

/* ---- making ops ----------------------------------------------------------------------------- */

static void
look(generator *g, const fuzz_state *state, op *o)
{
    const fuzz_handle *handle = &state->handles[o->handle];
    int list[GROUPS];
    o->group = 0;
    if (handle->open && state->format == NC_FORMAT_NETCDF4 && one_in(g, 2))
        o->group = (short) pick(g, (unsigned) list_groups(handle->ncid[STOCK], list, 0));
    g->ncid = group_ncid(handle, STOCK, o->group);
    g->dims = g->vars = g->global_atts = 0;
    if (handle->open)
        (void) nc_inq(g->ncid, &g->dims, &g->vars, &g->global_atts, NULL);
}

static void
make_op(generator *g, const fuzz_state *state, op *o)
{
    *o = (op){.handle = 0};
    bool enhanced =
        state->format == NC_FORMAT_NETCDF4 || state->format == NC_FORMAT_NETCDF4_CLASSIC;
    /* Mostly an open handle, mostly the first one. */
    for (int tries = 0; tries < 4; tries++) {
        o->handle = (short) (one_in(g, 3) ? pick(g, HANDLES) : 0);
        if (state->handles[o->handle].open)
            break;
    }
    look(g, state, o);
    bool any_open = false;
    for (int i = 0; i < HANDLES; i++)
        any_open |= state->handles[i].open;
    do
        o->kind = (short) fuzz_kind_pick(g, enhanced);
    while (!any_open && fuzz_kind(o->kind)->call != kinds_files[0].call &&
           fuzz_kind(o->kind)->call != kinds_files[1].call && !one_in(g, 50));
    fuzz_kind(o->kind)->make(g, o);
}

/* ---- comparing ------------------------------------------------------------------------------ */

static void append(report *r, const char *format, ...) __attribute__((format(printf, 2, 3)));
static void
append(report *r, const char *format, ...)
{
    va_list args;
    size_t used = strlen(r->difference);
    va_start(args, format);
    vsnprintf(r->difference + used, sizeof r->difference - used, format, args);
    va_end(args);
}

static void
append_bytes(report *r, const char *side, const outcome *o)
{
    append(r, "  %s (%zu bytes):", side, o->bytes);
    for (size_t i = 0; i < o->bytes && i < 400; i++)
        append(r, "%s%02x", i % 8 == 0 ? " " : "", o->data[i]);
    append(r, "\n");
}

static bool
same_outcome(report *r, const outcome *out)
{
    const outcome *s = &out[STOCK];
    const outcome *e = &out[ESDM];
    r->rc[STOCK] = s->rc;
    r->rc[ESDM] = e->rc;
    if (s->rc != e->rc) {
        r->stock_failed |= s->rc == NC_EHDFERR;
        append(r, "  stock %d (%s), esdm %d (%s)\n", s->rc, nc_strerror(s->rc), e->rc,
               nc_strerror(e->rc));
        return false;
    }
    if (s->bytes == e->bytes && memcmp(s->data, e->data, s->bytes) == 0)
        return true;
    append(r, "  results, both with %d:\n", s->rc);
    append_bytes(r, "stock", s);
    append_bytes(r, "esdm ", e);
    return false;
}

/* Lines are noted without the place in the source: it is compare.c anyway. */
static bool
same_journals(report *r, const journal *stock, const journal *esdm)
{
    size_t shown = 0;
    size_t count = stock->count > esdm->count ? stock->count : esdm->count;
    for (size_t i = 0; i < count && shown < 6; i++) {
        const char *s = i < stock->count ? stock->entries[i].text : "(nothing)";
        const char *e = i < esdm->count ? esdm->entries[i].text : "(nothing)";
        if (strcmp(s, e) == 0)
            continue;
        if (shown == 0 && i < stock->count)
            r->stock_failed |= stock->entries[i].is_call && stock->entries[i].rc == NC_EHDFERR;
        if (shown++ == 0)
            for (size_t k = i > 6 ? i - 6 : 0; k < i; k++)
                append(r, "         %s\n", stock->entries[k].text);
        append(r, "  stock: %s\n  esdm:  %s\n", s, e);
    }
    return shown == 0;
}

static bool
same_files(report *r, fuzz_state *state, int slot)
{
    journal journals[SIDES] = {{0}};
    const fuzz_handle *handle = &state->handles[slot];
    const fuzz_file *file = &state->files[handle->file];
    r->kind = -1;
    for (r->side = STOCK; r->side < SIDES; r->side++) {
        journal_select(&journals[r->side]);
        note_parts(!file->loose_data, !file->loose_order);
        note_file(handle->ncid[r->side]);
        journal_select(NULL);
    }
    bool same = same_journals(r, &journals[STOCK], &journals[ESDM]);
    if (!same)
        append(r, "  in the file of handle %d\n", slot);
    journal_clear(&journals[STOCK]);
    journal_clear(&journals[ESDM]);
    return same;
}

/* ---- running -------------------------------------------------------------------------------- */

static outcome outcomes[SIDES];

/* Define mode could not end, or not by far. */
static bool
cannot_create(int rc)
{
    return (rc == NC_EHDFERR || rc == NC_EFILTER) && left_out("netcdf4-failed-creation");
}

static bool
run_op(report *r, fuzz_state *state, const op *o, FILE *text)
{
    const kind *k = fuzz_kind(o->kind);
    fuzz_handle *handle = &state->handles[o->handle];
    r->kind = o->kind;
    outcomes[ESDM].skipped = false;
    for (r->side = STOCK; r->side < SIDES; r->side++) {
        outcome *out = &outcomes[r->side];
        if (out->data == NULL && (out->data = malloc(OUTCOME_MAX)) == NULL)
            abort();
        if (r->side == ESDM && outcomes[STOCK].skipped)
            return true;
        out->bytes = 0;
        out->skipped = false;
        context c = {.state = state,
                     .op = o,
                     .side = r->side,
                     .handle = handle,
                     .ncid = group_ncid(handle, r->side, o->group),
                     .out = out};
        if (r->side == STOCK)
            snprintf(out->text, sizeof out->text, "nc_%s(?)", k->name);
        out->rc = k->call(&c);
        if (r->side == STOCK && text != NULL && !out->skipped)
            fprintf(text, "    CALL(%s); /* handle %d group %d -> %d */\n", out->text, o->handle,
                    o->group, out->rc);
    }
    r->calls++;
    if (same_outcome(r, outcomes)) {
        r->stock_failed = handle->writable && strncmp(k->name, "def_var", 7) != 0 &&
                          cannot_create(outcomes[STOCK].rc);
        return !r->stock_failed;
    }
    append(r, "  %s on handle %d, group %d\n", outcomes[STOCK].text, o->handle, o->group);
    return false;
}

static void
start(fuzz_state *state, int format)
{
    *state = (fuzz_state){.format = format};
    for (int i = 0; i < FORMAT_COUNT; i++)
        if (compared_formats[i].format == format)
            state->mode = compared_formats[i].mode;
    for (int i = 0; i < FILES; i++) {
        fuzz_file *f = &state->files[i];
        snprintf(f->path[STOCK], sizeof f->path[STOCK], "%s/%d_%d.nc", getenv("NC_FUZZ_FOLDER"),
                 (int) getpid(), i);
        snprintf(f->path[ESDM], sizeof f->path[ESDM], "esdm://fuzz/%d_%d.nc", (int) getpid(), i);
        for (int s = 0; s < SIDES; s++)
            (void) nc_delete(f->path[s]);
    }
    for (int i = 0; i < HANDLES; i++)
        state->handles[i].ncid[STOCK] = state->handles[i].ncid[ESDM] = CLOSED;
}

/* Closes what is open and looks at the files once more. */
static bool
finish(report *r, fuzz_state *state)
{
    for (int i = 0; i < HANDLES; i++) {
        fuzz_handle *handle = &state->handles[i];
        int rc[SIDES];
        if (!handle->open)
            continue;
        for (r->side = STOCK; r->side < SIDES; r->side++)
            rc[r->side] = nc_close(handle->ncid[r->side]);
        handle->open = false;
        /* What failed may have left variables without fill values. */
        state->files[handle->file].loose_data |= rc[STOCK] == NC_EBADTYPE;
        r->stock_failed |= cannot_create(rc[STOCK]);
        if (r->stock_failed)
            return false;
        if (rc[STOCK] == rc[ESDM])
            continue;
        r->kind = -2;
        r->stock_failed |= rc[STOCK] == NC_EHDFERR;
        append(r, "  last nc_close() of handle %d: stock %d, esdm %d\n", i, rc[STOCK], rc[ESDM]);
        return false;
    }
    for (int i = 0; i < FILES; i++) {
        fuzz_handle *handle = &state->handles[0];
        int rc[SIDES];
        for (r->side = STOCK; r->side < SIDES; r->side++)
            rc[r->side] =
                nc_open(state->files[i].path[r->side], NC_NOWRITE, &handle->ncid[r->side]);
        r->kind = -3;
        if (rc[STOCK] != rc[ESDM]) {
            r->stock_failed |= rc[STOCK] == NC_EHDFERR;
            append(r, "  last nc_open() of file %d: stock %d, esdm %d\n", i, rc[STOCK], rc[ESDM]);
            return false;
        }
        if (rc[STOCK] != NC_NOERR)
            continue;
        handle->file = i;
        bool same = same_files(r, state, 0);
        for (r->side = STOCK; r->side < SIDES; r->side++)
            (void) nc_close(handle->ncid[r->side]);
        if (!same)
            return false;
    }
    return true;
}

/* What a failed sequence leaves open. */
static void
give_up(fuzz_state *state)
{
    for (int i = 0; i < HANDLES; i++)
        for (int s = 0; s < SIDES && state->handles[i].open; s++)
            (void) nc_abort(state->handles[i].ncid[s]);
}

static bool
run_all(report *r, fuzz_state *state, generator *g, int count, FILE *text)
{
    for (r->at = 0; r->at < count; r->at++) {
        op *o = &r->ops[r->at];
        if (g != NULL) {
            r->side = STOCK;
            r->kind = -4; /* inquiries */
            make_op(g, state, o);
            r->count = r->at + 1;
        }
        if (!run_op(r, state, o, text))
            return false;
        const fuzz_handle *handle = &state->handles[o->handle];
        if (o->data % 12 == 5 && handle->open && !same_files(r, state, o->handle))
            return false;
    }
    return true;
}

void
fuzz_run(report *r, int format, uint64_t seed, int count, FILE *text)
{
    fuzz_state state;
    generator g = {.seed = seed, .state = &state};
    r->difference[0] = '\0';
    r->verdict = SAME;
    r->stock_failed = false;
    start(&state, format);
    if (!run_all(r, &state, seed == 0 ? NULL : &g, count, text) || !finish(r, &state)) {
        /* Then nothing can be said about what the file is like. */
        r->failures += r->stock_failed;
        r->verdict = r->stock_failed ? SAME : DIFFERENT;
        give_up(&state);
    }
    for (int i = 0; i < FILES; i++)
        for (int s = 0; s < SIDES; s++)
            (void) nc_delete(state.files[i].path[s]);
}
