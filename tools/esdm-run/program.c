/* SPDX-License-Identifier: LGPL-3.0-or-later */

/** @file Finds the program that is to be started, and why its NetCDF calls would not reach ESDM: it
 * runs with privileges, is for another machine, has the NetCDF library linked into itself. */

#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <spawn.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "esdm-run/esdm-run.h"

int
program_find(const char *name, char *path, size_t size)
{
    const char *list = strchr(name, '/') ? "" : getenv("PATH");
    bool seen = false, folder = false;
    list = list ? list : "/usr/local/bin:/bin:/usr/bin";
    for (const char *entry = list;; entry++) {
        size_t length = strcspn(entry, ":");
        const char *join = length > 0 ? "/" : "";
        int n = snprintf(path, size, "%.*s%s%s", (int) length, entry, join, name);
        struct stat st;
        if (n > 0 && (size_t) n < size && stat(path, &st) == 0) {
            if (S_ISDIR(st.st_mode)) {
                folder = !*list;
            } else if (access(path, X_OK) == 0) {
                return 0;
            } else {
                seen = true;
            }
        }
        entry += length;
        if (!*entry) {
            break;
        }
    }
    run_say("'%s': %s", name, folder ? "is a folder" : seen ? "not executable" : "no such program");
    return seen || folder ? EXIT_CANNOT : EXIT_ABSENT;
}

typedef struct image {
    const unsigned char *bytes;
    size_t size;
} image;

static bool
image_map(const char *path, image *ret)
{
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    struct stat st;
    void *bytes = MAP_FAILED;
    if (fd >= 0 && fstat(fd, &st) == 0 && st.st_size > 0) {
        bytes = mmap(NULL, (size_t) st.st_size, PROT_READ, MAP_PRIVATE, fd, 0);
    }
    if (fd >= 0) {
        (void) close(fd);
    }
    if (bytes == MAP_FAILED) {
        return false;
    }
    *ret = (image){bytes, (size_t) st.st_size};
    return true;
}

/** `count` items of `size` bytes at `offset`, or NULL when the file is too short. */
static const void *
image_at(const image *im, uint64_t offset, uint64_t size, uint64_t count)
{
    if (offset > im->size || (size && count > (im->size - offset) / size)) {
        return NULL;
    }
    return im->bytes + offset;
}

/** The machine that this program itself runs on, from its own header. */
static int
own_machine(void)
{
    image self;
    int machine = EM_NONE;
    if (image_map("/proc/self/exe", &self)) {
        const Elf64_Ehdr *header = image_at(&self, 0, sizeof(*header), 1);
        machine = header ? header->e_machine : EM_NONE;
        (void) munmap((void *) self.bytes, self.size);
    }
    return machine;
}

/** Whether a section of strings of the program (names of symbols and of libraries) has `name` or,
 *  with `prefix`, a string beginning so. */
static bool
image_names(const image *im, const char *name, bool prefix)
{
    const Elf64_Ehdr *header = image_at(im, 0, sizeof(*header), 1);
    const Elf64_Shdr *sections =
        header ? image_at(im, header->e_shoff, sizeof(*sections), header->e_shnum) : NULL;
    size_t length = strlen(name) + (prefix ? 0 : 1);
    for (int i = 0; sections && i < header->e_shnum; i++) {
        const Elf64_Shdr *section = &sections[i];
        const char *text = section->sh_type == SHT_STRTAB
                               ? image_at(im, section->sh_offset, 1, section->sh_size)
                               : NULL;
        const char *end = text ? text + section->sh_size : NULL;
        for (const char *at = text; at && (size_t) (end - at) >= length;) {
            if (memcmp(at, name, length) == 0) {
                return true;
            }
            at = memchr(at, '\0', (size_t) (end - at));
            at = at ? at + 1 : NULL;
        }
    }
    return false;
}

/** NULL, or why the dynamic linker will not preload anything into this program. */
static const char *
reason_against(const image *im)
{
    const Elf64_Ehdr *header = image_at(im, 0, sizeof(*header), 1);
    if (!header || memcmp(header->e_ident, ELFMAG, SELFMAG) != 0) {
        return NULL; /* no ELF file: the kernel will say what it is */
    }
    if (header->e_ident[EI_CLASS] != ELFCLASS64) {
        return "is a 32-bit program; ESDM's plug-in is 64-bit";
    }
    if (header->e_machine != own_machine()) {
        return "was built for another kind of machine";
    }
    const Elf64_Phdr *headers = image_at(im, header->e_phoff, sizeof(*headers), header->e_phnum);
    for (int i = 0; headers && i < header->e_phnum; i++) {
        if (headers[i].p_type == PT_INTERP) {
            return NULL;
        }
    }
    return "is statically linked; relink it with a shared NetCDF library";
}

static const char *
privileges_of(const char *path)
{
    struct stat st;
    char value[256];
    if (geteuid() == 0 || stat(path, &st) != 0) {
        return NULL; /* root gains nothing from such a file */
    }
    if ((st.st_mode & S_ISUID) && st.st_uid != geteuid()) {
        return "is setuid; the system preloads nothing into programs that gain privileges";
    }
    if ((st.st_mode & S_ISGID) && (st.st_mode & S_IXGRP) && st.st_gid != getegid()) {
        return "is setgid; the system preloads nothing into programs that gain privileges";
    }
    if (getxattr(path, "security.capability", value, sizeof(value)) > 0) {
        return "has file capabilities; the system preloads nothing into programs that gain "
               "privileges";
    }
    return NULL;
}

/** Programs that load the NetCDF library later or start others that do, and those that handle
 *  files, as which containers show. */
static bool
loads_later(const char *path)
{
    static const char *const names[] = {
        "python",  "pypy",   "R",         "Rscript", "julia",   "perl",    "ruby",    "node",
        "sh",      "bash",   "dash",      "zsh",     "ksh",     "fish",    "csh",     "tcsh",
        "env",     "mpirun", "mpiexec",   "srun",    "orterun", "prterun", "time",    "nice",
        "timeout", "xargs",  "make",      "ncl",     "octave",  "matlab",  "java",    "gdb",
        "strace",  "ltrace", "valgrind",  "nohup",   "taskset", "numactl", "busybox", "setpriv",
        "su",      "sudo",   "snakemake", "cp",      "mv",      "rm",      "ls",      "stat",
        "test",    "chmod",  "mkdir"};
    const char *file = strrchr(path, '/');
    file = file ? file + 1 : path;
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
        size_t length = strlen(names[i]);
        if (strncmp(file, names[i], length) == 0 && !isalpha((unsigned char) file[length])) {
            return true;
        }
    }
    return false;
}

/** Lets the dynamic linker list what it would load, without starting the program. */
static bool
linker_lists_netcdf(const char *path)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0) {
        return true; /* cannot tell */
    }
    pid_t child = fork();
    if (child == 0) {
        char *const argv[] = {(char *) path, NULL};
        (void) dup2(ends[1], STDOUT_FILENO);
        (void) dup2(ends[1], STDERR_FILENO);
        (void) setenv("LD_TRACE_LOADED_OBJECTS", "1", 1);
        (void) unsetenv("LD_PRELOAD");
        (void) execv(path, argv);
        _exit(EXIT_ABSENT);
    }
    (void) close(ends[1]);
    FILE *list = child > 0 ? fdopen(ends[0], "r") : NULL;
    bool found = child < 0;
    char line[PATH_MAX + 256];
    while (list && fgets(line, sizeof(line), list)) {
        found = found || strstr(line, "libnetcdf");
    }
    if (list) {
        (void) fclose(list);
    } else {
        (void) close(ends[0]);
    }
    if (child > 0) {
        (void) waitpid(child, NULL, 0);
    }
    return found;
}

/** Examines an ELF program. @return 0 or the exit status after a message. */
static int
examine_binary(const char *path, bool strict, bool quiet)
{
    const char *reason = privileges_of(path);
    image im;
    bool mapped = image_map(path, &im);
    if (!reason && mapped) {
        reason = reason_against(&im);
    }
    int status = 0;
    bool wants_to_know = strict || !quiet;
    if (!reason && mapped && wants_to_know && !loads_later(path) &&
        !image_names(&im, "libnetcdf", true) && !linker_lists_netcdf(path)) {
        if (image_names(&im, "nc_open", false) && image_names(&im, "NC_infermodel", false)) {
            reason = "has the NetCDF library linked into itself; relink it with a shared one";
        } else if (strict) {
            reason = "does not link the NetCDF library (--strict)";
        } else if (!quiet) {
            run_say("warning: '%s' does not link the NetCDF library; ESDM has an effect only if it "
                    "loads that later or starts programs that use it",
                    path);
        }
    }
    if (reason) {
        run_say("cannot hook '%s': it %s", path, reason);
        status = EXIT_CANNOT;
    }
    if (mapped) {
        (void) munmap((void *) im.bytes, im.size);
    }
    return status;
}

/** @param depth `#!` lines that led here. */
static int
examine(const char *path, bool strict, bool quiet, int depth)
{
    image im;
    char line[PATH_MAX] = "";
    if (!image_map(path, &im)) {
        return 0; /* executable but not readable: start it and see */
    }
    if (im.size > 2 && im.bytes[0] == '#' && im.bytes[1] == '!') {
        const unsigned char *end = memchr(im.bytes, '\n', im.size);
        size_t length = end ? (size_t) (end - im.bytes) : im.size;
        length = length < sizeof(line) ? length : sizeof(line) - 1;
        memcpy(line, im.bytes + 2, length - 2);
        line[length - 2] = '\0';
    }
    (void) munmap((void *) im.bytes, im.size);
    if (!line[0]) {
        return examine_binary(path, strict, quiet);
    }
    char *save = NULL;
    char *word = strtok_r(line, " \t\r", &save);
    char found[PATH_MAX];
    if (word && strcmp(word, "/usr/bin/env") == 0) {
        do {
            word = strtok_r(NULL, " \t\r", &save);
        } while (word && (word[0] == '-' || strchr(word, '=')));
    }
    if (!word || depth >= 4) {
        return 0;
    }
    int status = program_find(word, found, sizeof(found));
    if (status != 0) {
        run_say("it is the interpreter named in the first line of '%s'", path);
        return status;
    }
    return examine(found, strict, quiet, depth + 1);
}

int
program_examine(const char *path, bool strict, bool quiet)
{
    return examine(path, strict, quiet, 0);
}
