/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* `esdm ls …` runs `esdm-ls …`: from the folder of this program, else from $PATH. */

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "common/common.h"

typedef struct subcommand {
    const char *name;
    const char *summary;
} subcommand;

static const subcommand subcommands[] = {
    {"mkfs", "make, check or remove a site"},
    {"postgres", "look after a site's own PostgreSQL server"},
    {"run", "run a program with NetCDF paths such as esdm://run1.nc"},
    {"ls", "list containers"},
    {"stat", "show structure, fragments and snapshots of containers"},
    {"diff", "tell in what two containers, snapshots or files differ"},
    {"log", "show the history of containers"},
    {"recipe", "record how containers are made, and make them again"},
    {"tag", "give snapshots names, which keep them"},
    {"seal", "end all changes of a container, with a signed digest"},
    {"mv", "give containers other names"},
    {"ln", "give a query a name: a virtual container"},
    {"attr", "show and change attributes"},
    {"branch", "make, list and remove branches of containers"},
    {"merge", "make the changes of a branch to its container"},
    {"dedup", "let containers share fragments that are equal"},
    {"find", "find containers and datasets by their attributes"},
    {"reduce", "print sums, means, minima and maxima of a variable"},
    {"cp", "copy between NetCDF files and containers"},
    {"ref", "make containers that refer to files, which stay where they are"},
    {"rm", "remove containers"},
    {"restore", "bring back containers that were replaced or removed"},
    {"fsck", "check what a site holds, and mend it"},
    {"compact", "store small or badly shaped fragments anew"},
    {"mount", "show containers as files in a folder"},
    {"serve", "show containers in a browser"},
    {"explain", "tell where a program's time went"},
    {"tune", "find settings of a site with which programs are faster"},
    {"replay", "do again what a recorded program did, and measure it"},
    {"advise", "tell what compression would make of data that exist"},
    {"cost", "tell what computing, storing and archiving cost over years"},
    {"pattern", "make synthetic variables for tests and benchmarks"},
    {"drain", "bring node-local data to targets that all nodes see"},
    {"gc", "remove what nobody can reach any more"},
};

static void
print_help(FILE *out)
{
    (void) fprintf(out,
                   "Usage:\n"
                   "  esdm COMMAND [ARGUMENT…]     run a command\n"
                   "  esdm help [COMMAND]          explain a command\n"
                   "  esdm --version               print the version\n"
                   "\n"
                   "ESDM keeps NetCDF data in fragments on the storage targets of a site, with\n"
                   "its metadata in a database, and publishes every change as a whole.\n"
                   "\n"
                   "Commands:\n");
    for (size_t i = 0; i < G_N_ELEMENTS(subcommands); i++)
        (void) fprintf(out, "  %-8s %s\n", subcommands[i].name, subcommands[i].summary);
    (void) fprintf(out, "\n"
                        "Examples:\n"
                        "  esdm mkfs site.json                      make the site of site.json\n"
                        "  esdm cp tas.nc esdm://cmip6/tas.nc       copy a file into a container\n"
                        "  esdm run ncdump -h esdm://cmip6/tas.nc   let a program read it\n"
                        "  esdm help cp                             explain esdm-cp\n"
                        "\n"
                        "Each command is also a program of its own: \"esdm ls\" runs esdm-ls.\n"
                        "Exit status: that of the command; 2 when there is no such command.\n");
}

static bool
is_subcommand(const char *name)
{
    for (size_t i = 0; i < G_N_ELEMENTS(subcommands); i++) {
        if (g_str_equal(subcommands[i].name, name))
            return true;
    }
    return false;
}

/* The folder of this program; owned; NULL when the system does not tell. */
static char *
own_folder(void)
{
    char path[PATH_MAX];
    ssize_t bytes = readlink("/proc/self/exe", path, sizeof path - 1);
    if (bytes <= 0)
        return NULL;
    path[bytes] = '\0';
    return g_path_get_dirname(path);
}

/* Returns only on failure. */
static tool_exit
run(const char *name, char **argv)
{
    g_autofree char *program = g_strdup_printf("esdm-%s", name);
    g_autofree char *folder = own_folder();
    argv[0] = program;
    if (folder != NULL) {
        g_autofree char *path = g_build_filename(folder, program, NULL);
        (void) execv(path, argv);
    }
    (void) execvp(program, argv);
    if (errno == ENOENT && !is_subcommand(name))
        return tool_usage("there is no command '%s'", name);
    tool_error("cannot run %s: %s", program, g_strerror(errno));
    return TOOL_FAILED;
}

int
main(int argc, char **argv)
{
    if (argc < 2) {
        print_help(stderr);
        return TOOL_USAGE;
    }
    const char *name = argv[1];
    bool is_help = g_str_equal(name, "help");
    if (g_str_equal(name, "--help") || g_str_equal(name, "-h") || (is_help && argc == 2)) {
        print_help(stdout);
        return tool_finish(TOOL_OK);
    }
    if (g_str_equal(name, "--version") || g_str_equal(name, "version")) {
        (void) printf("esdm (ESDM) %s\n", tool_version());
        return tool_finish(TOOL_OK);
    }
    if (is_help) {
        char *help_argv[] = {NULL, (char *) "--help", NULL};
        return run(argv[2], help_argv);
    }
    if (name[0] == '-' || strchr(name, '/') != NULL)
        return tool_usage("there is no command '%s'", name);
    return run(name, argv + 1);
}
