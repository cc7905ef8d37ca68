/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Second routing layer, for a libnetcdf whose own calls do not reach our NC_infermodel (linked with
 * -Bsymbolic-functions): the public calls that take a path. The path is rewritten to `esdm:NAME`,
 * which libnetcdf does not take for a URL, and the mode asks for the user-defined format. Opens go
 * through nc_open_memio() with a stub as the memory, because libnetcdf would look into a file. What
 * the program asked for travels beside, in esdmnc__pending_call.
 *
 * nc__create() is left alone: nc_create() of every libnetcdf jumps to it through the PLT without
 * leaving a return address, so that of several copies the right one could not be told.
 */
#include "router/router.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/** Asks libnetcdf for a path that cannot exist and watches whether our NC_infermodel runs. */
bool
esdmnc__library_is_hooked(esdmnc__library *library)
{
    int known = __atomic_load_n(&library->hooked, __ATOMIC_RELAXED);
    if (known == ESDMNC_HOOK_UNKNOWN) {
        __typeof__(&nc_open) real = library->real[ESDMNC_FN_nc_open];
        esdmnc__pending before = esdmnc__pending_call;
        esdmnc__pending_call = (esdmnc__pending){.probing = true};
        int ncid;
        (void) real("/dev/null/esdm", NC_NOWRITE, &ncid);
        known = esdmnc__pending_call.reached ? ESDMNC_HOOK_WORKS : ESDMNC_HOOK_BYPASSED;
        esdmnc__pending_call = before;
        __atomic_store_n(&library->hooked, known, __ATOMIC_RELAXED);
        if (known == ESDMNC_HOOK_BYPASSED) {
            esdmnc_debug("%s binds its own symbols: routing its public calls", library->api.path);
        }
    }
    return known == ESDMNC_HOOK_WORKS;
}

/** Whether this call has to be rewritten. */
static bool
takes_over(esdmnc__library *library, const char *path, int mode, bool creating)
{
    return library && path && library->real[ESDMNC_FN_nc_open] &&
           !esdmnc__library_is_hooked(library) && !(mode & NC_INMEMORY) &&
           esdmnc__path_is_ours(path, creating);
}

static int
rewritten_path(const char *path, char *buffer, size_t size)
{
    const char *prefixed = esdmnc__path_prefixed(path);
    char container[ESDMNC_NAME_MAX + 1];
    if (prefixed) {
        int status = esdmnc__path_container(prefixed, container, sizeof(container));
        if (status != NC_NOERR) {
            return status;
        }
        path = container;
    }
    int n = snprintf(buffer, size, "%s%s", prefixed ? "esdm:" : "", path);
    return n > 0 && (size_t) n < size ? NC_NOERR : NC_EMAXNAME;
}

static int
create_behind(esdmnc__library *library, const char *path, int cmode, size_t initial_size,
              size_t *chunk_hint, int *ncidp)
{
    char name[NC_MAX_NAME * 17];
    __typeof__(&nc__create) real = library->real[ESDMNC_FN_nc__create];
    int status = esdmnc__create_mode_check(cmode);
    status = status == NC_NOERR ? esdmnc__library_serve(library) : status;
    status = status == NC_NOERR ? rewritten_path(path, name, sizeof(name)) : status;
    if (status != NC_NOERR) {
        return status;
    }
    esdmnc__pending before = esdmnc__pending_call;
    esdmnc__pending_call = (esdmnc__pending){.path = path, .mode = cmode, .ranks = before.ranks};
    status = real(name, library->mode_flag | NC_NETCDF4, initial_size, chunk_hint, ncidp);
    esdmnc__pending_call = before;
    return status;
}

static int
open_behind(esdmnc__library *library, const char *path, int mode, int *ncidp)
{
    char name[NC_MAX_NAME * 17];
    __typeof__(&nc_open_memio) real = library->real[ESDMNC_FN_nc_open_memio];
    int status = real ? esdmnc__open_mode_check(mode) : NC_ENOTBUILT;
    status = status == NC_NOERR ? esdmnc__library_serve(library) : status;
    status = status == NC_NOERR ? rewritten_path(path, name, sizeof(name)) : status;
    if (status != NC_NOERR) {
        return status;
    }
    char memory[512] = ESDMNC_STUB_MAGIC;
    NC_memio memio = {.size = sizeof(memory), .memory = memory, .flags = NC_MEMIO_LOCKED};
    esdmnc__pending before = esdmnc__pending_call;
    esdmnc__pending_call = (esdmnc__pending){.path = path, .mode = mode, .ranks = before.ranks};
    status = real(name, library->mode_flag | NC_NETCDF4, &memio, ncidp);
    esdmnc__pending_call = before;
    return status;
}

#define CALLER() esdmnc__library_for(__builtin_return_address(0))
/* The real function; a program that defines nc_* itself and has no libnetcdf ends in ENOTBUILT. */
#define CALL_REAL(library, name, ...)                                                              \
    ({                                                                                             \
        __typeof__(&name) real_ = esdmnc__real(library, ESDMNC_FN_##name);                         \
        real_ ? real_(__VA_ARGS__) : NC_ENOTBUILT;                                                 \
    })

ESDMNC_EXPORT int
nc_create(const char *path, int cmode, int *ncidp)
{
    esdmnc__library *library = CALLER();
    if (takes_over(library, path, cmode, true)) {
        return create_behind(library, path, cmode, NC_SIZEHINT_DEFAULT, NULL, ncidp);
    }
    return CALL_REAL(library, nc_create, path, cmode, ncidp);
}

ESDMNC_EXPORT int
nc__create_mp(const char *path, int cmode, size_t initialsz, int basepe, size_t *chunksizehintp,
              int *ncidp)
{
    esdmnc__library *library = CALLER();
    if (takes_over(library, path, cmode, true)) {
        return create_behind(library, path, cmode, initialsz, chunksizehintp, ncidp);
    }
    return CALL_REAL(library, nc__create_mp, path, cmode, initialsz, basepe, chunksizehintp, ncidp);
}

/** Programs that take `esdm:NAME` for a path put their folder before it. */
static int
tell_below_folder(int status, const char *path)
{
    static int told;
    const char *at = status == ENOENT && path ? strstr(path, "/esdm:") : NULL;
    if (at && !__atomic_exchange_n(&told, 1, __ATOMIC_RELAXED)) {
        at += strlen("/esdm:");
        esdmnc__tell("'%s' is no container, but a path below a folder: write esdm://%s", path,
                     at + strspn(at, "/"));
    }
    return status;
}

ESDMNC_EXPORT int
nc_open(const char *path, int mode, int *ncidp)
{
    esdmnc__library *library = CALLER();
    if (takes_over(library, path, mode, false)) {
        return open_behind(library, path, mode, ncidp);
    }
    return tell_below_folder(CALL_REAL(library, nc_open, path, mode, ncidp), path);
}

ESDMNC_EXPORT int
nc__open(const char *path, int mode, size_t *chunksizehintp, int *ncidp)
{
    esdmnc__library *library = CALLER();
    if (takes_over(library, path, mode, false)) {
        return open_behind(library, path, mode, ncidp);
    }
    return CALL_REAL(library, nc__open, path, mode, chunksizehintp, ncidp);
}

ESDMNC_EXPORT int
nc__open_mp(const char *path, int mode, int basepe, size_t *chunksizehintp, int *ncidp)
{
    esdmnc__library *library = CALLER();
    if (takes_over(library, path, mode, false)) {
        return open_behind(library, path, mode, ncidp);
    }
    return CALL_REAL(library, nc__open_mp, path, mode, basepe, chunksizehintp, ncidp);
}

/** Bytes of a stub in memory, for a libnetcdf that would not ask us about them. */
static int
memory_mode(esdmnc__library *library, const NC_memio *memory, int *mode)
{
    if (!library || !library->real[ESDMNC_FN_nc_open] || !esdmnc__memory_stub(memory, NULL) ||
        esdmnc__library_is_hooked(library)) {
        return NC_NOERR;
    }
    int status = esdmnc__library_serve(library);
    *mode |= status == NC_NOERR ? library->mode_flag | NC_NETCDF4 : 0;
    return status;
}

ESDMNC_EXPORT int
nc_open_mem(const char *path, int mode, size_t size, void *memory, int *ncidp)
{
    esdmnc__library *library = CALLER();
    const NC_memio image = {.size = size, .memory = memory};
    int status = memory_mode(library, &image, &mode);
    return status != NC_NOERR ? status
                              : CALL_REAL(library, nc_open_mem, path, mode, size, memory, ncidp);
}

ESDMNC_EXPORT int
nc_open_memio(const char *path, int mode, NC_memio *memory, int *ncidp)
{
    esdmnc__library *library = CALLER();
    int status = memory_mode(library, memory, &mode);
    return status != NC_NOERR ? status
                              : CALL_REAL(library, nc_open_memio, path, mode, memory, ncidp);
}

/* ---- for parallel calls --------------------------------------------------------------------- */

int
esdmnc__create_ours(esdmnc__library *library, const char *path, int cmode, int *ncidp)
{
    if (!esdmnc__library_is_hooked(library)) {
        return create_behind(library, path, cmode, NC_SIZEHINT_DEFAULT, NULL, ncidp);
    }
    return CALL_REAL(library, nc_create, path, cmode, ncidp);
}

int
esdmnc__open_ours(esdmnc__library *library, const char *path, int mode, int *ncidp)
{
    if (!esdmnc__library_is_hooked(library)) {
        return open_behind(library, path, mode, ncidp);
    }
    return CALL_REAL(library, nc_open, path, mode, ncidp);
}
