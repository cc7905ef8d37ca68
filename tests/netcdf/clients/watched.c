/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Does with files and variables what is asked for, and nothing else, so that a report of it can be
 * compared. Stock libnetcdf alone.
 *
 *     watched read FILE COUNT BYTES STRIDE PAUSE_US   pread(); STRIDE 0: random
 *     watched stdio FILE                              fopen, fprintf, fseek, fread
 *     watched processes FILE                          fork, vfork, exec, closing all descriptors
 *     watched rank FILE                               writes and reads a variable of its own file
 *     watched synced FILE                             calls nc_sync() after each of 40 compressed
 * steps watched killed FILE                             reads, then kills itself
 */
#include <errno.h>
#include <fcntl.h>
#include <netcdf.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static void
need(int good, const char *what)
{
    if (good)
        return;
    perror(what);
    exit(1);
}

static void
nc(int status)
{
    if (status == NC_NOERR)
        return;
    (void) fprintf(stderr, "%s\n", nc_strerror(status));
    exit(1);
}

static void
spend_us(long us)
{
    struct timespec start;
    struct timespec now;
    (void) clock_gettime(CLOCK_MONOTONIC, &start);
    do
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
    while ((now.tv_sec - start.tv_sec) * 1000000 + (now.tv_nsec - start.tv_nsec) / 1000 < us);
}

/* Prints the seconds that the reads took. */
static void
read_pattern(const char *path, long count, long bytes, long stride, long pause_us)
{
    char *buffer = malloc((size_t) bytes);
    int fd = open(path, O_RDONLY);
    off_t size = lseek(fd, 0, SEEK_END);
    double seconds = 0;
    uint64_t chance = 88172645463325252u;
    uint64_t sum = 0;
    need(buffer != NULL && fd >= 0 && size > bytes, path);
    for (long i = 0; i < count; i++) {
        struct timespec start;
        struct timespec now;
        chance ^= chance << 13;
        chance ^= chance >> 7;
        chance ^= chance << 17;
        off_t at = stride > 0 ? i * stride % (size - bytes)
                              : (off_t) (chance % (uint64_t) (size - bytes) / 4096 * 4096);
        (void) clock_gettime(CLOCK_MONOTONIC, &start);
        need(pread(fd, buffer, (size_t) bytes, at) == bytes, "pread");
        (void) clock_gettime(CLOCK_MONOTONIC, &now);
        seconds +=
            (double) (now.tv_sec - start.tv_sec) + (double) (now.tv_nsec - start.tv_nsec) / 1e9;
        sum += (unsigned char) buffer[0] + (unsigned char) buffer[bytes - 1];
        spend_us(pause_us);
    }
    (void) printf("%.6f %lu\n", seconds, (unsigned long) sum);
    (void) close(fd);
    free(buffer);
}

static void
use_stdio(const char *path)
{
    char text[1000];
    FILE *file = fopen(path, "w+");
    need(file != NULL, path);
    (void) memset(text, 'x', sizeof text);
    need(fwrite(text, 100, 10, file) == 10, "fwrite");
    need(fprintf(file, "%05d\n", 7) == 6, "fprintf");
    need(fputs("abc\n", file) >= 0 && fseek(file, 1000, SEEK_SET) == 0, "fseek");
    need(fgets(text, sizeof text, file) != NULL && strcmp(text, "00007\n") == 0, "fgets");
    need(fread(text, 1, 4, file) == 4 && fclose(file) == 0, "fread");
}

static void
wait_for(pid_t pid)
{
    int status = 0;
    need(waitpid(pid, &status, 0) == pid && status == 0, "child");
}

static void
use_processes(const char *path)
{
    char byte;
    int fd = open(path, O_RDONLY);
    need(fd >= 0 && pread(fd, &byte, 1, 0) == 1, path);
    pid_t pid = vfork();
    if (pid == 0) { /* closes what it has, as programs do before exec() */
        (void) close(fd);
        (void) execl("/bin/sh", "sh", "-c", "exec cat \"$0\" > /dev/null", path, (char *) NULL);
        _exit(127);
    }
    wait_for(pid);
    need(pread(fd, &byte, 1, 1) == 1, "pread after vfork"); /* it is still open here */
    pid = fork();
    if (pid == 0) {
        for (int i = 3; i < 256; i++)
            (void) close(i);
        int again = open(path, O_RDONLY);
        for (int i = 0; i < 10; i++)
            need(read(again, &byte, 1) == 1, "read in the child");
        _exit(0);
    }
    wait_for(pid);
    need(pread(fd, &byte, 1, 2) == 1 && close(fd) == 0, "pread after fork");
    errno = 0;
    need(open("/does/not/exist", O_RDONLY) < 0 && errno == ENOENT, "errno");
}

static void
use_netcdf(const char *path)
{
    enum { STEPS = 50, WIDTH = 1000 };
    static float values[WIDTH];
    const char *rank = getenv("OMPI_COMM_WORLD_RANK");
    char own[4096];
    int ncid;
    int dims[2];
    int var;
    (void) snprintf(own, sizeof own, "%s.%s", path, rank != NULL ? rank : "0");
    nc(nc_create(own, NC_NETCDF4 | NC_CLOBBER, &ncid));
    nc(nc_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    nc(nc_def_dim(ncid, "x", WIDTH, &dims[1]));
    nc(nc_def_var(ncid, "tas", NC_FLOAT, 2, dims, &var));
    nc(nc_enddef(ncid));
    for (size_t t = 0; t < STEPS; t++)
        nc(nc_put_vara_float(ncid, var, (size_t[]){t, 0}, (size_t[]){1, WIDTH}, values));
    nc(nc_close(ncid));
    nc(nc_open(own, NC_NOWRITE, &ncid));
    nc(nc_inq_varid(ncid, "tas", &var));
    for (size_t t = 0; t < STEPS; t++)
        nc(nc_get_var1_float(ncid, var, (size_t[]){t, 1}, values));
    nc(nc_close(ncid));
}

static void
use_sync(const char *path)
{
    enum { STEPS = 40, WIDTH = 200000 };
    static float values[WIDTH];
    int ncid;
    int dims[2];
    int var;
    nc(nc_create(path, NC_NETCDF4 | NC_CLOBBER, &ncid));
    nc(nc_def_dim(ncid, "time", NC_UNLIMITED, &dims[0]));
    nc(nc_def_dim(ncid, "x", WIDTH, &dims[1]));
    nc(nc_def_var(ncid, "tas", NC_FLOAT, 2, dims, &var));
    nc(nc_def_var_deflate(ncid, var, 1, 1, 9));
    for (size_t t = 0; t < STEPS; t++) {
        for (size_t i = 0; i < WIDTH; i++)
            values[i] = (float) ((i * 7919 + t) % 1000);
        nc(nc_put_vara_float(ncid, var, (size_t[]){t, 0}, (size_t[]){1, WIDTH}, values));
        nc(nc_sync(ncid));
    }
    nc(nc_close(ncid));
}

int
main(int argc, char **argv)
{
    const char *what = argc > 2 ? argv[1] : "";
    if (strcmp(what, "read") == 0 && argc == 7)
        read_pattern(argv[2], atol(argv[3]), atol(argv[4]), atol(argv[5]), atol(argv[6]));
    else if (strcmp(what, "stdio") == 0)
        use_stdio(argv[2]);
    else if (strcmp(what, "processes") == 0)
        use_processes(argv[2]);
    else if (strcmp(what, "rank") == 0)
        use_netcdf(argv[2]);
    else if (strcmp(what, "synced") == 0)
        use_sync(argv[2]);
    else if (strcmp(what, "killed") == 0) {
        read_pattern(argv[2], 100, 1000, 5000, 0);
        (void) raise(SIGKILL);
    } else
        return 2;
    return 0;
}
