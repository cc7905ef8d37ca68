/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Programs that choose by the bytes of a file what they do with it.
 *
 * A program that links libnetcdf and opens a stub for reading, not for writing, gets the bytes of a
 * stub that begins like a file of the container's format, as for `esdm:` paths: cdo chooses the
 * format of its output so. Others (cp, tar, editors) see the stub that lies there.
 *
 * What opens an `esdm:` path without linking libnetcdf (Python's modules load it later) gets a
 * classic one in place of HDF5: a reader of HDF5 files (pyfive, and with it cfdm) would take that
 * for a file without variables, and go on with nothing. Of this it says that it is no such file.
 *
 * cdo takes every path with `://` for a classic file without looking; `esdm:NAME` means the same
 * container, and cdo looks. So its arguments lose the slashes.
 *
 * NCO has cp copy the files that it is going to write to: copy.c is told so.
 */
#include "shim/shim.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/mman.h>
#include <unistd.h>

#define SCHEME     "esdm://"
#define SCHEME_LEN 7

/** Whether the program itself links libnetcdf. Set once, before main(). */
static bool links_netcdf;

/** Takes the slashes off in place: an argument must not become longer. What is left behind its end
 * is shown by /proc/self/cmdline: nothing. */
static void
strip_slashes(char *argument)
{
    if (strncmp(argument, SCHEME, SCHEME_LEN) == 0) {
        const char *name = argument + SCHEME_LEN;
        name += strspn(name, "/");
        size_t length = strlen(name), rest = (size_t) (name - (argument + SCHEME_LEN - 2));
        memmove(argument + SCHEME_LEN - 2, name, length);
        memset(argument + SCHEME_LEN - 2 + length, 0, rest);
    }
}

/** glibc hands constructors the arguments of the program. */
__attribute__((constructor)) static void
habits_start(int argc, char **argv)
{
    links_netcdf = dlsym(RTLD_DEFAULT, "nc_inq_libvers") != NULL;
    if (dlsym(RTLD_DEFAULT, "nco_fl_cp") != NULL) {
        (void) setenv(SHIM_COPIES, "1", 1);
    }
    if (argc < 1 || !argv || !argv[0]) {
        return;
    }
    const char *slash = strrchr(argv[0], '/');
    if (strcmp(slash ? slash + 1 : argv[0], "cdo") == 0) {
        for (int i = 1; i < argc; i++) {
            strip_slashes(argv[i]);
        }
    }
}

int
shim_stub_descriptor(const char *container, bool close_on_exec)
{
    unsigned char bytes[ESDMNC_STUB_MAX];
    const esdmnc__core *core = esdmnc__core_get();
    int format = core ? core->format(container) : NC_FORMAT_CLASSIC;
    if (!links_netcdf && (format == NC_FORMAT_NETCDF4 || format == NC_FORMAT_NETCDF4_CLASSIC)) {
        format = NC_FORMAT_CLASSIC;
    }
    size_t length = esdmnc__stub_bytes(container, format, bytes, sizeof(bytes));
    if (length == 0) {
        return shim_return(ENAMETOOLONG);
    }
    int fd = memfd_create("esdm-stub", MFD_ALLOW_SEALING | (close_on_exec ? MFD_CLOEXEC : 0));
    /* Nothing that is written there would reach the container: sealed, it fails. */
    if (fd >= 0 && (pwrite(fd, bytes, length, 0) != (ssize_t) length ||
                    fcntl(fd, F_ADD_SEALS, F_SEAL_WRITE | F_SEAL_GROW | F_SEAL_SHRINK) != 0)) {
        int error = errno;
        (void) close(fd);
        return shim_return(error ? error : EIO);
    }
    return fd;
}

int
shim_stub_shown(int fd, bool close_on_exec)
{
    unsigned char bytes[ESDMNC_STUB_MAX];
    struct stat st;
    esdmnc__stub stub;
    if (fd < 0 || !links_netcdf) {
        return -1;
    }
    int saved = errno;
    int shown = -1;
    if (fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_size >= ESDMNC_STUB_MAGIC_LEN &&
        st.st_size <= ESDMNC_STUB_MAX) {
        ssize_t n = pread(fd, bytes, sizeof(bytes), 0);
        if (n > 0 && esdmnc__stub_parse(bytes, (size_t) n, &stub) == NC_NOERR) {
            shown = shim_stub_descriptor(stub.container, close_on_exec);
        }
    }
    errno = saved;
    return shown;
}
