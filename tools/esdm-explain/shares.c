/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Where the time of a run went: shares of it, for the text and for the page. */
#include "esdm-explain/esdm-explain.h"

/* A program that waited as long, and for such a share of the run, is told so. */
#define WAITING_S     0.5
#define WAITING_SHARE 0.2
/* What closing files takes is told then. */
#define CLOSING_S     0.05
#define CLOSING_SHARE 0.3

/* Whether NetCDF calls moved data of containers, and of files; how many bytes of these were
 * compressed, by direction. */
typedef struct library_use {
    bool own, stock;
    guint64 inflated, deflated;
} library_use;

static library_use
use_of(const run *r)
{
    library_use use = {.own = false};
    for (guint i = 0; i < r->objects->len; i++) {
        const object *o = r->objects->pdata[i];
        if (o->kind != WATCH_VARIABLE || o->entry.read.calls + o->entry.write.calls == 0)
            continue;
        bool own = g_str_has_prefix(o->name, "esdm:");
        use.own = use.own || own;
        use.stock = use.stock || !own;
        if (!own && o->entry.deflate >= 0) {
            use.inflated += o->entry.read.bytes;
            use.deflated += o->entry.write.bytes;
        }
    }
    return use;
}

/* Whose time NetCDF calls are, by where their variables lie, and what it is spent on. */
static const char *
library_words(const run *r)
{
    library_use use = use_of(r);
    if (r->engine)
        return "ESDM: codecs, conversion, copies";
    if (use.own)
        return use.stock ? "NetCDF library and ESDM: codecs, copies, commits"
                         : "ESDM: codecs, conversion, copies, commits";
    if (!use.stock) /* of no variable a value was moved */
        return "NetCDF library: opening files, and what they say of themselves";
    if (use.inflated > 0 && use.deflated > 0)
        return "NetCDF library: (de)compression, conversion, copies";
    return use.inflated > 0   ? "NetCDF library: decompression, conversion, copies"
           : use.deflated > 0 ? "NetCDF library: compression, conversion, copies"
                              : "NetCDF library: conversion, copies";
}

static double
own_seconds(const run *r)
{
    double calls =
        seconds_of(r->read_ns + r->write_ns + r->sync_ns + r->meta_ns + r->library_ns + r->mpi_ns);
    return MAX(run_seconds(r) - calls, 0);
}

/* What is too little for a line is left out. */
static void
add(const run *r, time_share *shares, guint *count, const char *what, double seconds)
{
    if (seconds >= 1e-3 || seconds >= 0.005 * run_seconds(r))
        shares[(*count)++] = (time_share){what, seconds};
}

guint
time_shares(const run *r, time_share ret_shares[TIME_SHARES])
{
    bool of_esdm = r->engine;
    guint n = 0;
    add(r, ret_shares, &n, of_esdm ? "reading from targets" : "reading files",
        seconds_of(r->read_ns));
    add(r, ret_shares, &n, of_esdm ? "writing to targets" : "writing files",
        seconds_of(r->write_ns));
    add(r, ret_shares, &n, of_esdm ? "commits" : "waiting until data were stored (sync)",
        seconds_of(r->sync_ns));
    add(r, ret_shares, &n,
        of_esdm ? "opening and closing containers" : "opening, closing and looking for files",
        seconds_of(r->meta_ns));
    add(r, ret_shares, &n, "MPI: ranks wait and hand each other data", seconds_of(r->mpi_ns));
    add(r, ret_shares, &n, library_words(r), seconds_of(r->library_ns));
    if (r->processes->len == 1)
        add(r, ret_shares, &n, "the program itself", own_seconds(r));
    return n;
}

double
time_of_shares(const run *r)
{
    return run_seconds(r) * MAX(r->ranks, 1);
}

/* Chunks that the library's cache still holds are compressed and written when a file is closed:
 * that is what writing took, and no call that wrote tells it. */
char *
closing_text(const run *r)
{
    double seconds = seconds_of(r->closing_ns);
    library_use use = use_of(r);
    if (r->engine || use.own || use.deflated == 0 || seconds < CLOSING_S ||
        seconds < CLOSING_SHARE * seconds_of(r->library_ns))
        return NULL;
    g_autofree char *time = time_text(seconds);
    return g_strdup_printf("Of the NetCDF library's time %s was closing files (nc_close): what "
                           "its cache of chunks still held was compressed then.",
                           time);
}

const char *
time_shares_of_all(const run *r)
{
    if (r->ranks > 1)
        return " (of all ranks together, and as shares of the time of all)";
    return r->processes->len > 1 || r->ranks > 1 ? " (of all processes and threads together)" : "";
}

/* The library's time is work, too, unless it is ESDM's, which waits for other threads and storage.
 */
char *
waiting_text(const run *r)
{
    bool counted = !r->engine && !use_of(r).own && r->library_ns > 0;
    double waited = own_seconds(r) + (counted ? seconds_of(r->library_ns) : 0) - r->cpu_most_s;
    if (r->processes->len != 1 || waited < WAITING_S || waited < WAITING_SHARE * run_seconds(r))
        return NULL;
    g_autofree char *cpu = time_text(r->cpu_most_s);
    g_autofree char *rest = time_text(waited);
    return g_strdup_printf("The program had processors for %s in all: in at least %s of its own "
                           "time%s it waited, for processors that others used, for other programs, "
                           "or on purpose.",
                           cpu, rest, counted ? " and the library's" : "");
}
