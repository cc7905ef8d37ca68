/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * esdm-run: starts a program so that its NetCDF calls reach ESDM. All it does is to put
 * libesdm-netcdf.so into LD_PRELOAD; the work lies in finding out beforehand why that would have no
 * effect, since the dynamic linker itself keeps silent or the program fails on a path it does not
 * know.
 */
#include <errno.h>
#include <getopt.h>
#include <limits.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "esdm-run/esdm-run.h"
#include "esdm/text.h"
#include "watch/hints.h"
#include "watch/ranks.h"

#define LIBRARY  "libesdm-netcdf.so"
#define EXIT_OWN 125 /* as env(1): esdm-run itself failed */

typedef struct options {
    const char *site;
    const char *image;
    bool strict;
    bool quiet;
    bool verbose;
    bool dry_run;
    bool print_rc;
    bool record;
    report_options watch;
} options;

void
run_say(const char *format, ...)
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
    run_say("cannot find " LIBRARY " beside '%s' or in '%s': is ESDM installed completely?", self,
            ESDM_FULL_LIBDIR);
    return false;
}

/* ---- starting ---------------------------------------------------------------------------------
 */

static bool
set_preload(const char *library)
{
    if (strpbrk(library, ": ")) {
        run_say(
            "'%s': LD_PRELOAD cannot name a path with a colon or a space; install ESDM elsewhere",
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
        run_say("site configuration '%s': %s", site, strerror(errno));
        return false;
    }
    return setenv("ESDM_CONFIG", path, 1) == 0;
}

static bool
is_watched(const options *opt)
{
    return opt->watch.report || opt->watch.records || opt->watch.read_ahead ||
           opt->watch.mpi_hints || opt->watch.stated[0] || opt->watch.unusual;
}

/** Preloads libesdm-watch.so, which lies beside `library`. */
static bool
add_watch(const char *library, bool quiet)
{
    char path[PATH_MAX];
    const char *slash = strrchr(library, '/');
    (void) snprintf(path, sizeof(path), "%.*s/libesdm-watch.so",
                    slash ? (int) (slash - library) : 1, slash ? library : ".");
    if (access(path, R_OK) != 0) {
        if (quiet)
            return false;
        run_say("'%s': %s; this ESDM was built without it (python3 was not there)", path,
                strerror(errno));
        return false;
    }
    return set_preload(path);
}

/** Whether to look beside this program for what is unusual: nothing fails for that. */
static bool
may_look(const char *library, bool verbose)
{
    const char *why = NULL;
    if (getenv("ESDM_WATCH") != NULL && getenv("ESDM_WATCH_RING") == NULL)
        why = "an esdm-run around this one watches it";
    else if (!look_is_wanted())
        why = "the site keeps no runs, or has no rule for files";
    else if (!add_watch(library, true))
        why = "there is no libesdm-watch.so";
    if (why != NULL && verbose)
        run_say("the program is not watched: %s", why);
    return why == NULL;
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
    opt->watch.arguments = arguments;
    bool light = report_is_light(&opt->watch);
    bool begun = report_begin(&run, &opt->watch, &why);
    *ret_in_program = begun ? run.in_program : light;
    if (!begun && light) {
        if (opt->verbose && run.folder[0])
            run_say("the program is not watched: folder for records '%s': %s", run.folder, why);
        else if (opt->verbose)
            run_say("the program is not watched: %s", why);
        return 0;
    }
    if (!begun) {
        run_say("folder for records '%s': %s", run.folder[0] ? run.folder : opt->watch.records,
                why);
        return EXIT_OWN;
    }
    int status = run.in_program ? 0 : report_end(&run, &opt->watch);
    opt->watch.history = NULL;
    opt->watch.hints = NULL;
    return status;
}

/** "KEY=VALUE". false: it is none, or there are too many. */
static bool
add_hint(report_options *watch, const char *text)
{
    size_t length = strlen(watch->stated);
    size_t room = sizeof watch->stated - length;
    const char *equals = strchr(text, '=');
    if (!equals || equals == text || !equals[1] || strchr(text, '\n') ||
        strlen(text) > WATCH_HINT_BYTES) {
        run_say("--mpi-hint: expected KEY=VALUE such as striping_factor=4, not '%s'", text);
        return false;
    }
    if ((size_t) (equals - text) > WATCH_HINT_KEY) {
        run_say("--mpi-hint: expected a KEY of up to %u bytes, not '%.*s'", WATCH_HINT_KEY,
                (int) (equals - text), text);
        return false;
    }
    if (strlen(text) + 2 > room) {
        run_say("--mpi-hint: more than %u bytes of hints", WATCH_HINTS_TEXT - 1);
        return false;
    }
    (void) snprintf(watch->stated + length, room, "%s\n", text);
    return true;
}

/** @return index of PROGRAM in argv, or -1 with *ret_exit set. */
static int
parse(int argc, char **argv, options *ret, int *ret_exit)
{
    static const struct option longs[] = {{"config", required_argument, NULL, 's'},
                                          {"site", required_argument, NULL, 's'},
                                          {"strict", no_argument, NULL, 'S'},
                                          {"quiet", no_argument, NULL, 'q'},
                                          {"verbose", no_argument, NULL, 'v'},
                                          {"dry-run", no_argument, NULL, 'n'},
                                          {"print-rc", no_argument, NULL, 'R'},
                                          {"help", no_argument, NULL, 'h'},
                                          {"report", optional_argument, NULL, 'P'},
                                          {"json", no_argument, NULL, 'J'},
                                          {"records", required_argument, NULL, 'D'},
                                          {"read-ahead", no_argument, NULL, 'A'},
                                          {"unusual", no_argument, NULL, 'U'},
                                          {"mpi-hints", no_argument, NULL, 'M'},
                                          {"record", no_argument, NULL, 'C'},
                                          {"image", required_argument, NULL, 'I'},
                                          {"mpi-hint", required_argument, NULL, 'H'},
                                          {"version", no_argument, NULL, 'V'},
                                          {NULL, 0, NULL, 0}};
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
        case 'U':
            ret->watch.unusual = true;
            break;
        case 'M':
            ret->watch.mpi_hints = true;
            break;
        case 'H':
            if (!add_hint(&ret->watch, optarg))
                return -1;
            break;
        case 'C':
            ret->record = true;
            break;
        case 'I':
            ret->image = optarg;
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
    const char *always = getenv("ESDM_RUN_UNUSUAL");
    if (always != NULL && strcmp(always, "on") == 0 && !ret->record && !ret->dry_run)
        ret->watch.unusual = true;
    if (ret->record && (is_watched(ret) || ret->dry_run)) {
        run_say("--record goes neither with --dry-run nor with what watches the program\n"
                "Try 'esdm-run --help'.");
        return -1;
    }
    if (ret->image && !ret->record) {
        run_say("--image goes with --record\nTry 'esdm-run --help'.");
        return -1;
    }
    if (optind >= argc && !ret->print_rc) {
        run_say("no program given\nTry 'esdm-run --help'.");
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
    status = 0;
    if (!opt.image)
        status = program_find(argv[first], program, sizeof(program));
    if (!opt.image && status == 0)
        status = program_examine(program, opt.strict, opt.quiet);
    if (status != 0) {
        return status;
    }
    if (opt.record) {
        if (!opt.site || set_site(opt.site)) {
            run_say("cannot start esdm-recipe: %s",
                    strerror(record_run(argc - first, argv + first, opt.image)));
        }
        return EXIT_OWN;
    }
    bool in_program = false;
    if (opt.site && !set_site(opt.site)) {
        return EXIT_OWN;
    }
    if (report_is_light(&opt.watch) && !opt.dry_run) {
        opt.watch.unusual = may_look(library, opt.verbose);
    }
    if ((is_watched(&opt) && !add_watch(library, false)) || !set_preload(library) ||
        !chunk_cache_set() || (opt.verbose && setenv("ESDM_DEBUG", "1", 1) != 0)) {
        return EXIT_OWN;
    }
    if (is_watched(&opt) && !opt.dry_run) {
        status = watch(&opt, program, argv + first, &in_program);
        if (!in_program) {
            return status;
        }
    }
    if (opt.verbose) {
        run_say("starting '%s' with LD_PRELOAD=%s", program, getenv("LD_PRELOAD"));
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
    run_say("cannot run '%s': %s", program, strerror(error));
    return error == ENOENT ? EXIT_ABSENT : EXIT_CANNOT;
}
