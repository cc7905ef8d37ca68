/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * The dispatch table that each libnetcdf gets: the dispatcher's, with create, open, close, sync and
 * abort going through here, so that the dispatcher sees container names and decided modes only.
 */
#include "router/router.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

__thread esdmnc__pending esdmnc__pending_call;

#define FORMAT_BITS (NC_NETCDF4 | NC_64BIT_OFFSET | NC_64BIT_DATA)
#define UDF_BITS    (NC_UDF0 | NC_UDF1)
/** Files are stamped by the clock of their server. */
#define CLOCK_SKEW_NS UINT64_C(2000000000)

int
esdmnc__open_mode_check(int mode)
{
    bool mapped = (mode & NC_MMAP) != 0;
    if ((mode & NC_DISKLESS) && (mapped || (mode & NC_INMEMORY))) {
        return NC_EDISKLESS;
    }
    if (mapped && (mode & NC_INMEMORY)) {
        return NC_EINMEMORY;
    }
    return mapped && (mode & NC_NETCDF4) ? NC_EINVAL : NC_NOERR;
}

int
esdmnc__create_mode_check(int mode)
{
    int format = mode & FORMAT_BITS;
    if (format & (format - 1)) {
        return NC_EINVAL;
    }
    return esdmnc__open_mode_check(mode);
}

/** Format bits for a create that states none, as NC_infermodel would set them. */
static int
default_format_bits(const esdmnc__library *library)
{
    int format = 0;
    __typeof__(&nc_set_default_format) set = library->real[ESDMNC_FN_nc_set_default_format];
    if (library->api.get_default_format) {
        format = library->api.get_default_format();
    } else if (set && set(NC_FORMAT_CLASSIC, &format) == NC_NOERR) {
        (void) set(format, NULL); /* asking means setting here */
    }
    switch (format) {
    case NC_FORMAT_64BIT_OFFSET:
        return NC_64BIT_OFFSET;
    case NC_FORMAT_64BIT_DATA:
        return NC_64BIT_DATA;
    case NC_FORMAT_NETCDF4:
        return NC_NETCDF4;
    case NC_FORMAT_NETCDF4_CLASSIC:
        return NC_NETCDF4 | NC_CLASSIC_MODEL;
    default:
        return 0;
    }
}

/* ---- the wrappers --------------------------------------------------------------------------- */

/** The ranks of a call: of a parallel one that came by us, or by libnetcdf alone (`structure`).
 *  @param ret_owned whether they are to be closed. */
static int
ranks_of_call(const esdmnc__library *library, void *structure, esdmnc_ranks **ret_ranks,
              bool *ret_owned)
{
    const esdmnc__core *core = esdmnc__core_get();
    const esdmnc_parallel parallel = {ESDMNC_COMM_STRUCTURE, (intptr_t) structure};
    *ret_ranks = esdmnc__pending_call.ranks;
    *ret_owned = structure && !*ret_ranks;
    if (!*ret_owned) {
        return NC_NOERR;
    }
    int status = core ? core->ranks_open(&library->api, &parallel, ret_ranks) : NC_ENOTBUILT;
    *ret_owned = status == NC_NOERR;
    return status;
}

static bool
leads(const esdmnc_ranks *ranks)
{
    return !ranks || esdmnc__core_get()->ranks_number(ranks) == 0;
}

static int
agree(esdmnc_ranks *ranks, int status)
{
    return ranks ? esdmnc__core_get()->ranks_agree(ranks, status) : status;
}

/** Where a create goes: rank 0 decides. */
static int
find_target(esdmnc_ranks *ranks, const char *path, int cmode, esdmnc__target *ret)
{
    struct {
        int status;
        esdmnc__target target;
    } found = {.status = NC_NOERR};
    if (leads(ranks)) {
        found.status = esdmnc__path_target(path, cmode, &found.target);
        if (found.status == NC_EMAXNAME) {
            esdmnc__tell("a container's name has at most %d bytes: '%s'", ESDMNC_NAME_MAX, path);
        }
    }
    if (ranks) {
        int status = esdmnc__core_get()->ranks_share(ranks, &found, sizeof(found));
        if (status != NC_NOERR) {
            return status;
        }
    }
    *ret = found.target;
    return found.status;
}

static int
create_container(esdmnc__library *library, esdmnc_ranks *ranks, const char *path, int cmode,
                 int ncid)
{
    esdmnc__target target;
    int status = find_target(ranks, path, cmode, &target);
    if (status != NC_NOERR) {
        return status;
    }
    esdmnc_new_stub stub = {.version = target.version, .folder = target.folder};
    status = library->core_table->create(target.container, cmode, target.number, 0, &stub.version,
                                         ranks, &library->table, ncid);
    if (status == NC_NOERR && target.write_stub) {
        status =
            agree(ranks, leads(ranks) ? esdmnc__stub_write(path, target.container, target.number,
                                                           target.version, ESDMNC_SITE_NONE)
                                      : NC_NOERR);
        if (status != NC_NOERR) {
            (void) library->core_table->abort(ncid);
        }
    }
    if (status == NC_NOERR) {
        esdmnc__creation_add(library->api.instance, ncid, true, target.write_stub && leads(ranks),
                             leads(ranks) && !esdmnc__path_prefixed(path) ? path : "",
                             target.container);
        if (leads(ranks) && !target.write_stub && target.version != 0) {
            esdmnc__creation_version(library->api.instance, ncid, target.number, target.version);
        }
    }
    esdmnc_debug("create %s as '%s': %d", path, target.container, status);
    return status;
}

static int
wrapped_create(int instance, const char *path, int cmode, void *parameters, int ncid)
{
    esdmnc__library *library = esdmnc__library_at(instance);
    esdmnc__pending *pending = &esdmnc__pending_call;
    esdmnc_ranks *ranks = NULL;
    bool owned = false;
    if (pending->path) { /* second layer: libnetcdf saw a changed path and mode */
        path = pending->path;
        cmode = pending->mode;
    }
    int status = ranks_of_call(library, parameters, &ranks, &owned);
    if (status != NC_NOERR) {
        return status;
    }
    cmode &= ~UDF_BITS;
    if (!(cmode & (FORMAT_BITS | NC_CLASSIC_MODEL))) {
        cmode |= default_format_bits(library);
    }
    status = esdmnc__create_mode_check(cmode);
    if (status == NC_NOERR) {
        status = esdmnc__rc_mode_check(library, path, NC_WRITE);
    }
    status = agree(ranks, status);
    if (status == NC_NOERR) {
        status = create_container(library, ranks, path, cmode, ncid);
    }
    if (owned) {
        esdmnc__core_get()->ranks_close(ranks);
    }
    return status;
}

/** The container to open for a path, by name or by stub. */
static int
open_name(const char *path, int mode, char *container, esdmnc__stub *ret_stub)
{
    const char *prefixed = esdmnc__path_prefixed(path);
    if (prefixed) {
        return esdmnc__path_container(prefixed, container, ESDMNC_NAME_MAX + 1);
    }
    int status = esdmnc__stub_read(path, ret_stub);
    if (status == NC_NOERR && (mode & NC_WRITE) && !ret_stub->is_original) {
        esdmnc__tell("'%s' is a copy of the stub of '%s': writing through it would change the "
                     "original, which may lie elsewhere. To write to a container of its own: "
                     "esdm-cp 'esdm://%s' esdm://NEW; to the original: by its path, or as "
                     "'esdm://%s'. A copy that nobody needs may be removed, it holds no data",
                     path, ret_stub->container, ret_stub->container, ret_stub->container);
        status = NC_EPERM;
    }
    if (status == NC_NOERR) {
        esdmnc__text_copy(container, ret_stub->container);
    }
    return status;
}

/** The same, as rank 0 sees it. @param ret_stub without a container when it is not by a stub. */
static int
find_name(esdmnc_ranks *ranks, const char *path, int mode, char *container, esdmnc__stub *ret_stub)
{
    struct {
        int status;
        esdmnc__stub stub;
        char container[ESDMNC_NAME_MAX + 1];
    } found = {.status = NC_NOERR};
    if (!ranks) {
        return open_name(path, mode, container, ret_stub);
    }
    if (leads(ranks)) {
        found.status = open_name(path, mode, found.container, &found.stub);
    }
    int status = esdmnc__core_get()->ranks_share(ranks, &found, sizeof(found));
    esdmnc__text_copy(container, found.container);
    *ret_stub = found.stub;
    return status == NC_NOERR ? found.status : status;
}

/** Whether what the stub stands for was written on another site than this process has open. */
static bool
is_elsewhere(const esdmnc__stub *stub)
{
    char site[ESDMNC_SITE_BYTES] = "";
    if (!stub->site[0] || strcmp(stub->site, ESDMNC_SITE_NONE) == 0) {
        return false;
    }
    esdmnc__core_get()->site(site);
    return site[0] && strcmp(stub->site, site) != 0;
}

/** Whether this site's container was committed since the stub got the time of its own commit: its
 *  program could not change the stub then, or was killed before it did. */
static bool
is_newer_here(const char *path, const char *container)
{
    struct stat file;
    esdmnc_stat here;
    return stat(path, &file) == 0 && esdmnc__core_get()->exists(container, &here) == NC_NOERR &&
           here.modified_ns >
               (uint64_t) file.st_mtim.tv_sec * 1000000000U + (uint64_t) file.st_mtim.tv_nsec;
}

/** Whether what was opened is what the stub was made for. The original stands for what was written
 *  anew in its place, too: it is renewed after the commit, and a former container may have been
 *  brought back. @param anew it was written anew on another site. ENOENT: it is not. */
static int
check_number(int instance, int ncid, const esdmnc__stub *stub, bool anew)
{
    uint64_t version = 0;
    uint64_t number = stub->number ? esdmnc__core_get()->stub_number(instance, ncid, &version) : 0;
    bool same = number == 0 || (number == stub->number &&
                                ((stub->is_original && !anew) || version == stub->version));
    return same ? NC_NOERR : ENOENT;
}

/** This site has a container of the name; whoever has two sites must know which one is read. */
static void
tell_elsewhere(const char *path, const char *container, int mode, int status)
{
    static int told; /* one line is enough for all files of a folder */
    if (status != NC_NOERR) {
        esdmnc__tell("'%s' stands for a container of another site: a program wrote it there, with "
                     "another configuration (ESDM_CONFIG, ./esdm.json; \"esdm-ls --json\" tells "
                     "which one is used). This site has another one under that name: "
                     "'esdm://%s'",
                     path, container);
    } else if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        esdmnc__tell("'%s' was written on another site, with another configuration (ESDM_CONFIG, "
                     "./esdm.json; \"esdm-ls --json\" tells which one is used): this %s what this "
                     "site has under that name, 'esdm://%s'",
                     path, mode & NC_WRITE ? "writes to" : "reads", container);
    }
}

/** Opens, for reading, the former container that a stub was made for. ENOENT after a message. */
static int
open_former(esdmnc__library *library, esdmnc_ranks *ranks, const char *path, int mode,
            const esdmnc__stub *stub, int ncid)
{
    static int told; /* one line is enough for all files of a backup */
    struct {
        int status;
        char name[ESDMNC_NAME_MAX + 1];
    } found = {.status = ENOENT};
    const esdmnc__core *core = esdmnc__core_get();
    if (leads(ranks) && !(mode & NC_WRITE)) {
        found.status = core->numbered(stub->container, stub->number, stub->version, found.name,
                                      sizeof(found.name));
    }
    int status = ranks ? core->ranks_share(ranks, &found, sizeof(found)) : NC_NOERR;
    status = status == NC_NOERR ? found.status : status;
    if (status == NC_NOERR) {
        status = library->core_table->open(found.name, mode, 0, NULL, ranks, &library->table, ncid);
    }
    if (status != NC_NOERR && leads(ranks)) {
        esdmnc__tell("'%s' stands for an earlier container of the name '%s', which another one has "
                     "replaced since then%s",
                     path, stub->container,
                     mode & NC_WRITE ? ": it cannot be written to"
                                     : ": esdm-ls --replaced shows whether it is kept, "
                                       "esdm-restore --as brings it back beside");
    } else if (leads(ranks)) {
        char whole[PATH_MAX];
        bool held = realpath(path, whole) && core->stub_file(found.name, whole) == NC_NOERR;
        if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
            esdmnc__tell("'%s' stands for a container that was replaced since then: this reads "
                         "the former one, which is kept %s; to keep it: esdm-cp 'esdm://%s' "
                         "plain.nc",
                         path, held ? "as long as this file lies there" : "for a while only",
                         found.name);
        }
    }
    return status == NC_NOERR ? NC_NOERR : ENOENT;
}

/** A copy is read as what its container is now: who kept the file as it was then must know. */
static void
tell_changed(const char *path, const esdmnc__stub *stub)
{
    static int told;
    esdmnc_stat now;
    if (stub->copied_ns == 0 || esdmnc__core_get()->exists(stub->container, &now) != NC_NOERR ||
        now.modified_ns <= stub->copied_ns + CLOCK_SKEW_NS ||
        __atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        return;
    }
    esdmnc__tell("'%s' is a copy of the file that stands for '%s', which has a newer snapshot "
                 "than the copy: this reads what it is now (copies of such files hold no data; "
                 "esdm-cp makes some that do, esdm-tag keeps a state, esdm-log tells what was "
                 "changed)",
                 path, stub->container);
}

/** The stub is there, and its container is not. */
static void
tell_missing(const char *path, const char *container, const esdmnc__stub *stub)
{
    char site[ESDMNC_SITE_BYTES];
    const char *why = " (any more): esdm-ls --replaced shows whether it is kept, esdm-restore "
                      "brings it back";
    esdmnc__core_get()->site(site);
    if (strcmp(stub->site, ESDMNC_SITE_NONE) == 0) {
        why = ": the program that created it still runs, or was ended before it had closed or "
              "synced it; run it again";
    } else if (stub->site[0] && site[0] && strcmp(stub->site, site) != 0) {
        why = " on this site: it was made on another one, with another configuration (ESDM_CONFIG, "
              "./esdm.json; \"esdm-ls --json\" tells which one is used)";
    }
    esdmnc__tell("'%s' stands for the container '%s', which does not exist%s", path, container,
                 why);
}

static void
tell_annotated(const char *path, const char *container)
{
    static int told;
    if (!__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        esdmnc__tell("attributes were added to '%s' by a program that was started without "
                     "esdm-run: they are in this file, and not in the container '%s' for which it "
                     "stands; do that again with esdm-run, or esdm-attr",
                     path, container);
    }
}

static int
open_container(esdmnc__library *library, esdmnc_ranks *ranks, const char *path, int mode,
               const NC_memio *memory, int ncid)
{
    char container[ESDMNC_NAME_MAX + 1];
    esdmnc__stub stub = {0};
    int status = NC_NOERR;
    if (!memory) {
        status = find_name(ranks, path, mode, container, &stub);
    } else if (!esdmnc__memory_stub(memory, &stub)) {
        status = NC_EINMEMORY;
    } else { /* a copy, which may have been read long ago */
        esdmnc__text_copy(container, stub.container);
    }
    if (status != NC_NOERR) {
        return status;
    }
    bool by_stub = stub.container[0] && stub.is_original;
    status = library->core_table->open(container, mode, 0, NULL, ranks, &library->table, ncid);
    char routed[ESDMNC_NAME_MAX + 1];
    if (status == ENOENT && by_stub &&
        esdmnc__route_container(path, routed, sizeof(routed)) == NC_NOERR &&
        strcmp(routed, container) != 0) {
        /* A rename was cut off after the container had moved (moves.c). */
        esdmnc__text_copy(container, routed);
        status = library->core_table->open(container, mode, 0, NULL, ranks, &library->table, ncid);
    }
    if (status == ENOENT && by_stub && leads(ranks)) {
        tell_missing(path, container, &stub);
    }
    if (status == NC_NOERR && stub.container[0]) {
        bool elsewhere = is_elsewhere(&stub) && !esdmnc__creation_is_made(container);
        status = check_number(library->api.instance, ncid, &stub,
                              elsewhere && !is_newer_here(path, container));
        if (elsewhere && leads(ranks)) {
            tell_elsewhere(path, container, mode, status);
        }
        if (status != NC_NOERR) {
            (void) library->core_table->close(ncid, NULL);
            status = elsewhere ? ENOENT : open_former(library, ranks, path, mode, &stub, ncid);
        } else if (!by_stub && leads(ranks)) {
            tell_changed(path, &stub);
        } else if ((mode & NC_WRITE) && by_stub && leads(ranks)) {
            esdmnc__creation_add(library->api.instance, ncid, false, false, path, container);
        }
    }
    if (status == NC_NOERR && stub.annotated && leads(ranks)) {
        tell_annotated(path, container);
    }
    esdmnc_debug("open %s as '%s': %d", path, container, status);
    return status;
}

static int
wrapped_open(int instance, const char *path, int mode, void *parameters, int ncid)
{
    esdmnc__library *library = esdmnc__library_at(instance);
    esdmnc__pending *pending = &esdmnc__pending_call;
    const NC_memio *memory = NULL;
    esdmnc_ranks *ranks = NULL;
    bool owned = false;
    if (pending->path) {
        path = pending->path;
        mode = pending->mode;
        parameters = NULL;
    } else if (mode & NC_INMEMORY) {
        memory = parameters;
        parameters = NULL;
    }
    int status = ranks_of_call(library, parameters, &ranks, &owned);
    if (status != NC_NOERR) {
        return status;
    }
    status = esdmnc__open_mode_check(mode);
    if (status == NC_NOERR) {
        status = esdmnc__rc_mode_check(library, path, mode);
    }
    mode &= ~(UDF_BITS | NC_INMEMORY);
    mode |= memory ? NC_DISKLESS : 0; /* changes are dropped */
    status = agree(ranks, status);
    if (status == NC_NOERR) {
        status = open_container(library, ranks, path, mode, memory, ncid);
    }
    if (status == NC_NOERR) {
        status = esdmnc__rc_types_check(library, path, ncid);
        if (status == NC_NOERR && memory) {
            status = esdmnc__memory_opened(instance, ncid, memory);
        }
        status = agree(ranks, status);
        if (status != NC_NOERR) {
            (void) library->core_table->close(ncid, NULL);
        }
    }
    if (owned) {
        esdmnc__core_get()->ranks_close(ranks);
    }
    return status;
}

static int
wrapped_close(int instance, int ncid, void *parameters)
{
    int status = esdmnc__library_at(instance)->core_table->close(ncid, parameters);
    if (status == NC_NOERR) {
        esdmnc__creation_closed(instance, ncid);
        esdmnc__memory_closed(instance, ncid, parameters);
    }
    return status;
}

static int
wrapped_sync(int instance, int ncid)
{
    int status = esdmnc__library_at(instance)->core_table->sync(ncid);
    if (status == NC_NOERR) {
        esdmnc__creation_synced(instance, ncid);
    }
    return status;
}

static int
wrapped_abort(int instance, int ncid)
{
    int status = esdmnc__library_at(instance)->core_table->abort(ncid);
    esdmnc__creation_aborted(instance, ncid);
    esdmnc__memory_closed(instance, ncid, NULL);
    return status;
}

/* One set of entry points per libnetcdf: close and abort get nothing but an ncid. */
#define THUNKS(i)                                                                                  \
    static int create_##i(const char *path, int cmode, size_t initial_size, int base_pe,           \
                          size_t *chunk_hint, void *parameters, const struct NC_Dispatch *table,   \
                          int ncid)                                                                \
    {                                                                                              \
        (void) initial_size, (void) base_pe, (void) chunk_hint, (void) table;                      \
        return wrapped_create(i, path, cmode, parameters, ncid);                                   \
    }                                                                                              \
    static int open_##i(const char *path, int mode, int base_pe, size_t *chunk_hint,               \
                        void *parameters, const struct NC_Dispatch *table, int ncid)               \
    {                                                                                              \
        (void) base_pe, (void) chunk_hint, (void) table;                                           \
        return wrapped_open(i, path, mode, parameters, ncid);                                      \
    }                                                                                              \
    static int close_##i(int ncid, void *parameters)                                               \
    {                                                                                              \
        return wrapped_close(i, ncid, parameters);                                                 \
    }                                                                                              \
    static int sync_##i(int ncid)                                                                  \
    {                                                                                              \
        return wrapped_sync(i, ncid);                                                              \
    }                                                                                              \
    static int abort_##i(int ncid)                                                                 \
    {                                                                                              \
        return wrapped_abort(i, ncid);                                                             \
    }

THUNKS(0)
THUNKS(1)
THUNKS(2)
THUNKS(3)
THUNKS(4)
THUNKS(5)
THUNKS(6)
THUNKS(7)

static const struct entry_points {
    __typeof__(((NC_Dispatch *) 0)->create) create;
    __typeof__(((NC_Dispatch *) 0)->open) open;
    __typeof__(((NC_Dispatch *) 0)->close) close;
    __typeof__(((NC_Dispatch *) 0)->sync) sync;
    __typeof__(((NC_Dispatch *) 0)->abort) abort;
} entry_points[ESDMNC_INSTANCES_MAX] = {
#define ENTRY(i)                                                                                   \
    {                                                                                              \
        create_##i, open_##i, close_##i, sync_##i, abort_##i                                       \
    }
    ENTRY(0), ENTRY(1), ENTRY(2), ENTRY(3), ENTRY(4), ENTRY(5), ENTRY(6), ENTRY(7),
};

void
esdmnc__table_wrap(esdmnc__library *library)
{
    const struct entry_points *own = &entry_points[library->api.instance];
    library->table = *library->core_table;
    library->table.create = own->create;
    library->table.open = own->open;
    library->table.close = own->close;
    library->table.sync = own->sync;
    library->table.abort = own->abort;
}
