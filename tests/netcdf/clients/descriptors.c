/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * A NetCDF program that does harm to descriptors which it never opened, then goes on with files of
 * its own and with its container. Usage: nc_descriptors HOW PATH FOLDER, HOW being one of
 *
 *   scribble   writes to all numbers up to 255
 *   close      closes all from 3 on, one after the other     closefrom, close_range: at once
 *   dup2       puts a file of its own in the place of each
 *   daemon     forks, and the child closes all and opens files of its own
 *   exec       starts a program that tells what it has inherited
 */
#include <netcdf.h>

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#define RECORDS 64
#define WIDTH   1000
#define FILES   40

static const char junk[] =
    "not what a catalogue begins with, nor goes on with, but what a program writes";

static void
check(int status, const char *what)
{
    if (status != NC_NOERR) {
        (void) fprintf(stderr, "%s: %s\n", what, nc_strerror(status));
        exit(2);
    }
}

static void
need(int good, const char *what)
{
    if (!good) {
        perror(what);
        exit(3);
    }
}

static int own[FILES];

static void
open_own(const char *folder)
{
    char path[4096];
    for (int i = 0; i < FILES; i++) {
        (void) snprintf(path, sizeof path, "%s/own.%d", folder, i);
        own[i] = open(path, O_RDWR | O_CREAT | O_TRUNC, 0666);
        need(own[i] >= 0, path);
        need(write(own[i], junk, sizeof junk) == (ssize_t) sizeof junk, path);
    }
}

/* Nobody else has written to them. */
static void
check_own(void)
{
    char found[sizeof junk + 1];
    for (int i = 0; i < FILES; i++) {
        need(lseek(own[i], 0, SEEK_SET) == 0, "lseek");
        if (read(own[i], found, sizeof found) != (ssize_t) sizeof junk ||
            memcmp(found, junk, sizeof junk) != 0) {
            (void) fprintf(stderr, "file %d of the program was written to\n", i);
            exit(4);
        }
    }
}

/* Some systems allow a million. */
static int
limit(void)
{
    long most = sysconf(_SC_OPEN_MAX);
    return most < 4096 ? (int) most : 4096;
}

static void
close_all(void)
{
    for (int fd = 3; fd < limit(); fd++)
        (void) close(fd);
}

static void
do_harm(const char *how, const char *folder)
{
    if (strcmp(how, "scribble") == 0) {
        for (int fd = 3; fd < 256; fd++) {
            if (write(fd, junk, sizeof junk) < 0)
                continue;
            (void) !pwrite(fd, junk, sizeof junk, 0);
        }
        return;
    }
    if (strcmp(how, "close") == 0)
        close_all();
    else if (strcmp(how, "closefrom") == 0)
        closefrom(3);
    else if (strcmp(how, "close_range") == 0)
        need(close_range(3, ~0U, 0) == 0, "close_range");
    if (strcmp(how, "dup2") == 0) {
        char path[4096];
        (void) snprintf(path, sizeof path, "%s/doubled", folder);
        int fd = open(path, O_RDWR | O_CREAT, 0666);
        for (int to = fd + 1; to < limit(); to++)
            (void) !(dup2(fd, to) == to && pwrite(to, junk, sizeof junk, 0) > 0);
        close_all();
    }
    open_own(folder);
}

static void
in_child(const char *how, const char *folder)
{
    pid_t child = fork();
    need(child >= 0, "fork");
    if (child == 0 && strcmp(how, "exec") == 0) {
        char program[] = "ls -l /proc/self/fd > \"$0\"/inherited";
        (void) execl("/bin/sh", "sh", "-c", program, folder, (char *) NULL);
        _exit(127);
    }
    if (child == 0) {
        close_all();
        need(fcntl(0, F_DUPFD, 3) == 3, "descriptors are left after all were closed");
        open_own(folder);
        check_own();
        _exit(0);
    }
    int status = 0;
    need(waitpid(child, &status, 0) == child && status == 0, "the child");
}

int
main(int argc, char **argv)
{
    if (argc != 4)
        return 1;
    const char *how = argv[1];
    int ncid, dims[2], var;
    float row[WIDTH];
    check(nc_create(argv[2], NC_NETCDF4, &ncid), "create");
    check(nc_def_dim(ncid, "t", NC_UNLIMITED, &dims[0]), "t");
    check(nc_def_dim(ncid, "x", WIDTH, &dims[1]), "x");
    check(nc_def_var(ncid, "v", NC_FLOAT, 2, dims, &var), "v");
    check(nc_enddef(ncid), "enddef");
    for (int t = 0; t < RECORDS; t++) {
        size_t start[2] = {(size_t) t, 0};
        size_t count[2] = {1, WIDTH};
        for (int x = 0; x < WIDTH; x++)
            row[x] = (float) (t * WIDTH + x);
        if (t == RECORDS / 2) { /* what holds it is open, and locked */
            check(nc_sync(ncid), "sync");
            if (strcmp(how, "daemon") == 0 || strcmp(how, "exec") == 0)
                in_child(how, argv[3]);
            else
                do_harm(how, argv[3]);
        }
        check(nc_put_vara_float(ncid, var, start, count, row), "put");
    }
    check(nc_close(ncid), "close");
    if (own[0] != 0)
        check_own();
    return 0;
}
