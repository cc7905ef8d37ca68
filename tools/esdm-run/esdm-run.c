/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * esdm-run: starts a program so that its NetCDF calls reach ESDM. All it does is to put
 * libesdm-netcdf.so into LD_PRELOAD; the work lies in finding out beforehand why that would have no
 * effect, since the dynamic linker itself keeps silent or the program fails on a path it does not
 * know.
 */
#include <ctype.h>
#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <getopt.h>
#include <limits.h>
#include <spawn.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <sys/xattr.h>
#include <unistd.h>

#include "esdm-run/esdm-run.h"
#include "esdm/text.h"

#define LIBRARY     "libesdm-netcdf.so"
#define EXIT_OWN    125 /* as env(1): esdm-run itself failed */
#define EXIT_CANNOT 126
#define EXIT_ABSENT 127

typedef struct options {
    const char *site;
    bool strict;
    bool quiet;
    bool verbose;
    bool dry_run;
    bool print_rc;
    bool record;
    report_options watch;
} options;

__attribute__((format(printf, 1, 2))) static void
say(const char *format, ...)
{
    va_list args;
    char text[2 * PATH_MAX];
    char printable[2 * PATH_MAX];
    va_start(args, format);
    (void) vsnprintf(text, sizeof text, format, args);
    va_end(args);
    (void) esdm_text_printable(text, printable, sizeof printable);
    (void) fprintf(stderr, "esdm-run: %s\n", printable);
}

/* ---- finding things ---------------------------------------------------------------------------
 */

/** Looks `name` up as execvp() does. @return 0, or the exit status after a message. */
static int
find_program(const char *name, char *path, size_t size)
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
    say("'%s': %s", name, folder ? "is a folder" : seen ? "not executable" : "no such program");
    return seen || folder ? EXIT_CANNOT : EXIT_ABSENT;
}

/** Beside this program, in the library folder next to it, or where it was installed. */
static bool
find_library(char *path, size_t size)
{
    char self[PATH_MAX];
    char candidate[PATH_MAX + 64];
    ssize_t n = readlink("/proc/self/exe", self, sizeof(self) - 1);
    self[n > 0 ? n : 0] = '\0';
    char *slash = strrchr(self, '/');
    if (slash) {
        *slash = '\0';
    }
    static const char *const places[] = {"%s/" LIBRARY, "%s/../" ESDM_LIBDIR "/" LIBRARY,
                                         "%s/../netcdf-plugin/" LIBRARY, "%s/../lib/" LIBRARY};
    for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wformat-nonliteral"
        (void) snprintf(candidate, sizeof(candidate), places[i], self);
#pragma GCC diagnostic pop
        char resolved[PATH_MAX];
        if (slash && realpath(candidate, resolved) && strlen(resolved) < size) {
            memcpy(path, resolved, strlen(resolved) + 1);
            return true;
        }
    }
    if (access(ESDM_FULL_LIBDIR "/" LIBRARY, R_OK) == 0 &&
        sizeof(ESDM_FULL_LIBDIR "/" LIBRARY) <= size) {
        memcpy(path, ESDM_FULL_LIBDIR "/" LIBRARY, sizeof(ESDM_FULL_LIBDIR "/" LIBRARY));
        return true;
    }
    say("cannot find " LIBRARY " beside '%s' or in '%s': is ESDM installed completely?", self,
        ESDM_FULL_LIBDIR);
    return false;
}

/* ---- looking into the program -----------------------------------------------------------------
 */

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
examine_binary(const char *path, const options *opt)
{
    const char *reason = privileges_of(path);
    image im;
    bool mapped = image_map(path, &im);
    if (!reason && mapped) {
        reason = reason_against(&im);
    }
    int status = 0;
    bool wants_to_know = opt->strict || !opt->quiet;
    if (!reason && mapped && wants_to_know && !loads_later(path) &&
        !image_names(&im, "libnetcdf", true) && !linker_lists_netcdf(path)) {
        if (image_names(&im, "nc_open", false) && image_names(&im, "NC_infermodel", false)) {
            reason = "has the NetCDF library linked into itself; relink it with a shared one";
        } else if (opt->strict) {
            reason = "does not link the NetCDF library (--strict)";
        } else if (!opt->quiet) {
            say("warning: '%s' does not link the NetCDF library; ESDM has an effect only if it "
                "loads that later or starts programs that use it",
                path);
        }
    }
    if (reason) {
        say("cannot hook '%s': it %s", path, reason);
        status = EXIT_CANNOT;
    }
    if (mapped) {
        (void) munmap((void *) im.bytes, im.size);
    }
    return status;
}

/** Follows `#!` lines to the program that will run. */
static int
examine(const char *path, const options *opt, int depth)
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
        return examine_binary(path, opt);
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
    int status = find_program(word, found, sizeof(found));
    if (status != 0) {
        say("it is the interpreter named in the first line of '%s'", path);
        return status;
    }
    return examine(found, opt, depth + 1);
}

/* ---- starting ---------------------------------------------------------------------------------
 */

static bool
set_preload(const char *library)
{
    if (strpbrk(library, ": ")) {
        say("'%s': LD_PRELOAD cannot name a path with a colon or a space; install ESDM elsewhere",
            library);
        return false;
    }
    return preload_add(library);
}

static bool
set_site(const char *site)
{
    char path[PATH_MAX];
    if (!realpath(site, path) || access(path, R_OK) != 0) {
        say("site configuration '%s': %s", site, strerror(errno));
        return false;
    }
    return setenv("ESDM_CONFIG", path, 1) == 0;
}

static bool
is_watched(const options *opt)
{
    return opt->watch.report || opt->watch.records || opt->watch.read_ahead || opt->watch.mpi_hints;
}

/** Preloads libesdm-watch.so, which lies beside `library`. */
static bool
add_watch(const char *library)
{
    char path[PATH_MAX];
    const char *slash = strrchr(library, '/');
    (void) snprintf(path, sizeof(path), "%.*s/libesdm-watch.so",
                    slash ? (int) (slash - library) : 1, slash ? library : ".");
    if (access(path, R_OK) != 0) {
        say("'%s': %s; this ESDM was built without it (python3 was not there)", path,
            strerror(errno));
        return false;
    }
    return set_preload(path);
}

/** Runs what follows in a child. @return in the parent, the program's exit status. */
static int
watch(options *opt, const char *program, char *const *arguments, bool *ret_in_program)
{
    char history[PATH_MAX];
    char hints[PATH_MAX];
    report_run run = {0};
    const char *why = NULL;
    if (opt->watch.read_ahead &&
        history_place(program, arguments, "history", history, sizeof(history)))
        opt->watch.history = history;
    if (opt->watch.mpi_hints && history_place(program, arguments, "hints", hints, sizeof(hints)))
        opt->watch.hints = hints;
    opt->watch.quiet = opt->quiet;
    bool begun = report_begin(&run, &opt->watch, &why);
    *ret_in_program = begun && run.in_program;
    if (!begun) {
        say("folder for records '%s': %s", run.folder[0] ? run.folder : opt->watch.records, why);
        return EXIT_OWN;
    }
    int status = run.in_program ? 0 : report_end(&run, &opt->watch);
    opt->watch.history = NULL;
    opt->watch.hints = NULL;
    return status;
}

/** @return index of PROGRAM in argv, or -1 with *ret_exit set. */
static int
parse(int argc, char **argv, options *ret, int *ret_exit)
{
    static const struct option longs[] = {
        {"config", required_argument, NULL, 's'},  {"site", required_argument, NULL, 's'},
        {"strict", no_argument, NULL, 'S'},        {"quiet", no_argument, NULL, 'q'},
        {"verbose", no_argument, NULL, 'v'},       {"dry-run", no_argument, NULL, 'n'},
        {"print-rc", no_argument, NULL, 'R'},      {"help", no_argument, NULL, 'h'},
        {"report", optional_argument, NULL, 'P'},  {"json", no_argument, NULL, 'J'},
        {"records", required_argument, NULL, 'D'}, {"read-ahead", no_argument, NULL, 'A'},
        {"mpi-hints", no_argument, NULL, 'M'},     {"record", no_argument, NULL, 'C'},
        {"version", no_argument, NULL, 'V'},       {NULL, 0, NULL, 0}};
    int c;
    *ret_exit = EXIT_OWN;
    while ((c = getopt_long(argc, argv, "+s:SqvnhV", longs, NULL)) != -1) {
        switch (c) {
        case 's':
            ret->site = optarg;
            break;
        case 'S':
            ret->strict = true;
            break;
        case 'q':
            ret->quiet = true;
            break;
        case 'v':
            ret->verbose = true;
            break;
        case 'n':
            ret->dry_run = true;
            break;
        case 'R':
            ret->print_rc = true;
            break;
        case 'P':
            ret->watch.report = true;
            ret->watch.page = optarg;
            break;
        case 'J':
            ret->watch.json = true;
            break;
        case 'D':
            ret->watch.records = optarg;
            break;
        case 'A':
            ret->watch.read_ahead = true;
            break;
        case 'M':
            ret->watch.mpi_hints = true;
            break;
        case 'C':
            ret->record = true;
            break;
        case 'h':
            *ret_exit = fputs(run_help, stdout) == EOF || fflush(stdout) != 0 ? EXIT_OWN : 0;
            return -1;
        case 'V':
            *ret_exit = puts("esdm-run (ESDM) " ESDM_VERSION) == EOF ? EXIT_OWN : 0;
            return -1;
        default:
            (void) fputs("Try 'esdm-run --help'.\n", stderr);
            return -1;
        }
    }
    if (ret->record && (is_watched(ret) || ret->dry_run)) {
        say("--record goes neither with --dry-run nor with what watches the program\n"
            "Try 'esdm-run --help'.");
        return -1;
    }
    if (optind >= argc && !ret->print_rc) {
        say("no program given\nTry 'esdm-run --help'.");
        return -1;
    }
    return optind;
}

/** Lines for an RC file of libnetcdf. @return exit status. */
static int
print_rc(const char *library)
{
    int n = printf("# netCDF-C 4.10 and newer read ESDM's stub files so, without esdm-run.\n"
                   "NETCDF.UDF0.LIBRARY=%s\n"
                   "NETCDF.UDF0.INIT=esdmnc_init\n",
                   library);
    return n < 0 || fflush(stdout) != 0 ? EXIT_OWN : 0;
}

int
main(int argc, char **argv)
{
    options opt = {0};
    int status;
    int first = parse(argc, argv, &opt, &status);
    if (first < 0) {
        return status;
    }
    char library[PATH_MAX];
    char program[PATH_MAX];
    if (!find_library(library, sizeof(library))) {
        return EXIT_OWN;
    }
    if (opt.print_rc) {
        return print_rc(library);
    }
    status = find_program(argv[first], program, sizeof(program));
    status = status == 0 ? examine(program, &opt, 0) : status;
    if (status != 0) {
        return status;
    }
    if (opt.record) {
        if (!opt.site || set_site(opt.site)) {
            say("cannot start esdm-recipe: %s", strerror(record_run(argc - first, argv + first)));
        }
        return EXIT_OWN;
    }
    bool in_program = false;
    if ((opt.site && !set_site(opt.site)) || (is_watched(&opt) && !add_watch(library)) ||
        !set_preload(library) || (opt.verbose && setenv("ESDM_DEBUG", "1", 1) != 0)) {
        return EXIT_OWN;
    }
    if (is_watched(&opt) && !opt.dry_run) {
        status = watch(&opt, program, argv + first, &in_program);
        if (!in_program) {
            return status;
        }
    }
    if (opt.verbose) {
        say("starting '%s' with LD_PRELOAD=%s", program, getenv("LD_PRELOAD"));
    }
    if (opt.dry_run) {
        return puts(getenv("LD_PRELOAD")) == EOF ? EXIT_OWN : 0;
    }
    (void) execv(program, argv + first);
    int error = errno;
    if (error == ENOEXEC) { /* a script without a first line: as execvp() does */
        argv[first] = program;
        char **shell = calloc((size_t) (argc - first) + 2, sizeof(*shell));
        if (shell) {
            shell[0] = (char *) "/bin/sh";
            memcpy(shell + 1, argv + first, (size_t) (argc - first) * sizeof(*shell));
            (void) execv(shell[0], shell);
            free(shell);
        }
    }
    say("cannot run '%s': %s", program, strerror(error));
    return error == ENOENT ? EXIT_ABSENT : EXIT_CANNOT;
}
