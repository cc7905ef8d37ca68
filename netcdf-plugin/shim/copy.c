/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * cp(1). Scripts and NCO (ncks -A, ncatted, ncap2 …) copy a data set by starting cp. Copying bytes
 * would copy a stub, so a cp that is given an `esdm:` path becomes esdm-cp before it starts: that
 * one copies containers and NetCDF files in every direction.
 *
 * The copy of a stub that NCO is going to write to (`a.nc.pid1.ncks.tmp`) in a routed folder
 * becomes a container with a stub of its own. Other copies of stubs stay what they are.
 */
#include "shim/shim.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/wait.h>
#include <unistd.h>

/** Options of cp that ask for nothing that a copied container could miss. */
static bool
is_harmless(const char *option)
{
    static const char *const words[] = {
        "--archive",     "--force",   "--recursive", "--preserve", "--no-dereference",
        "--dereference", "--reflink", "--sparse",    "--verbose",  "--no-target-directory"};
    if (option[1] != '-') {
        return option[1 + strspn(option + 1, "afprRPLHdTv")] == '\0';
    }
    size_t length = strcspn(option, "=");
    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        if (strlen(words[i]) == length && memcmp(words[i], option, length) == 0) {
            return true;
        }
    }
    return false;
}

/** The `esdm:` path in an operand, or NULL. */
static const char *
operand_path(const char *operand)
{
    return esdmnc__path_prefixed(operand);
}

/** Finds the two operands of `cp SOURCE TARGET`. */
static bool
find_operands(int argc, char **argv, const char *operands[2])
{
    int count = 0;
    bool options = true;
    for (int i = 1; i < argc; i++) {
        if (options && strcmp(argv[i], "--") == 0) {
            options = false;
        } else if (options && argv[i][0] == '-' && argv[i][1]) {
            if (!is_harmless(argv[i])) {
                return false;
            }
        } else if (count == 2) {
            return false;
        } else {
            operands[count++] = argv[i];
        }
    }
    return count == 2;
}

/** A target that is a folder gets the name of the source. */
static const char *
target_file(const char *source, const char *target, char *buffer, size_t size)
{
    struct stat st;
    const char *slash = strrchr(source, '/');
    if (operand_path(target) || stat(target, &st) != 0 || !S_ISDIR(st.st_mode)) {
        return target;
    }
    int n = snprintf(buffer, size, "%s/%s", target, slash ? slash + 1 : source);
    return n > 0 && (size_t) n < size ? buffer : target;
}

/** Whether NCO has started this cp, which is going to write to the copy (habits.c). */
static bool
is_of_nco(char **environment)
{
    bool found = false;
    for (char **one = environment; one && *one && !found; one++) {
        found = strcmp(*one, SHIM_COPIES "=1") == 0;
    }
    return found;
}

/** The container that the copy of a stub becomes: that of the stub which it replaces, or what the
 *  route of its path says. NC_NOERR; ENOENT: it becomes a plain file. */
static int
container_of_copy(const char *target, char *container)
{
    esdmnc__target there;
    int status = esdmnc__path_target(target, 0, &there);
    if (status == NC_NOERR) {
        (void) snprintf(container, ESDMNC_NAME_MAX + 1, "%s", there.container);
    }
    return status;
}

/* `environ` need not be set up yet when a sanitizer is loaded first; so it is handed down. */
static void
become_esdm_cp(const char *source, const char *target, char **environment)
{
    Dl_info self;
    char path[PATH_MAX];
    char *const argv[] = {(char *) "esdm-cp",
                          (char *) "--force",
                          (char *) "--quiet",
                          (char *) "--",
                          (char *) source,
                          (char *) target,
                          NULL};
    /* Installed in lib or lib/MULTIARCH beside bin; in a build tree beside tools. */
    static const char *const places[] = {"esdm-cp", "../bin/esdm-cp", "../../bin/esdm-cp",
                                         "../tools/esdm-cp"};
    if (dladdr(&places, &self) && self.dli_fname) {
        const char *slash = strrchr(self.dli_fname, '/');
        int folder = slash ? (int) (slash - self.dli_fname + 1) : 0;
        for (size_t i = 0; i < sizeof(places) / sizeof(places[0]); i++) {
            int n = snprintf(path, sizeof(path), "%.*s%s", folder, self.dli_fname, places[i]);
            if (n > 0 && (size_t) n < sizeof(path)) {
                (void) execve(path, argv, environment);
            }
        }
    }
    (void) execvpe(argv[0], argv, environment);
    esdmnc_debug("cannot start esdm-cp in place of cp: %s", strerror(errno));
}

/** The name of a container in an `esdm:` path. */
static const char *
container_of(const char *path, char *buffer)
{
    return operand_path(path) &&
                   esdmnc__path_container(path, buffer, ESDMNC_NAME_MAX + 1) == NC_NOERR
               ? buffer
               : NULL;
}

/** In a run that is recorded, or run again, other containers may be meant. The two paths stay valid
 *  until the process becomes esdm-cp. */
static void
tell_recipe(const char **source, const char **target, char **environment)
{
    static char names[2][ESDMNC_NAME_MAX + 1];
    static char paths[2][ESDMNC_NAME_MAX + 16];
    char buffers[2][ESDMNC_NAME_MAX + 1];
    bool wanted_here = false;
    for (char **one = environment; one && *one; one++) {
        wanted_here |=
            strncmp(*one, "ESDM_NC_RECORD=", 15) == 0 || strncmp(*one, "ESDM_NC_REPLAY=", 15) == 0;
    }
    const esdmnc__core *core = wanted_here ? esdmnc__core_get() : NULL;
    if (!core) {
        return;
    }
    core->recipe_copy(container_of(*source, buffers[0]), container_of(*target, buffers[1]),
                      names[0], names[1]);
    const char **both[2] = {source, target};
    for (int i = 0; i < 2; i++) {
        if (names[i][0]) {
            (void) snprintf(paths[i], sizeof(paths[i]), "esdm://%s", names[i]);
            *both[i] = paths[i];
        }
    }
}

/** Runs esdm-cp, and puts a stub at the target when it went well. A clone has the number of its
 *  original, and what was copied otherwise has none. @return the exit status of cp. */
static int
copy_to_container(const char *source, const esdmnc__stub *stub, const char *target,
                  const char *container, char **environment)
{
    char named[2][ESDMNC_NAME_MAX + 16];
    const char *from = named[0];
    const char *to = named[1];
    int status = 0;
    (void) snprintf(named[0], sizeof(named[0]), "esdm://%s", stub->container);
    (void) snprintf(named[1], sizeof(named[1]), "esdm://%s", container);
    tell_recipe(&from, &to, environment);
    pid_t child = fork();
    if (child == 0) {
        /* By its path a stub may mean a former container. */
        become_esdm_cp(from != named[0] ? from : source, to, environment);
        _exit(127);
    }
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR) {
    }
    if (child < 0 || !WIFEXITED(status) || WEXITSTATUS(status) != 0) {
        return 1;
    }
    int failed =
        esdmnc__stub_write(target, container, stub->number, stub->version, ESDMNC_SITE_NONE);
    if (failed != 0) {
        esdmnc__tell("cannot write '%s': %s", target, strerror(failed));
    }
    return failed != 0;
}

/** glibc hands constructors the arguments and the environment of the program. */
__attribute__((constructor)) static void
copy_start(int argc, char **argv, char **environment)
{
    const char *operands[2];
    char buffer[PATH_MAX];
    const char *slash = argc > 0 && argv && argv[0] ? strrchr(argv[0], '/') : NULL;
    const char *name = slash ? slash + 1 : argc > 0 && argv && argv[0] ? argv[0] : "";
    char container[ESDMNC_NAME_MAX + 1];
    esdmnc__stub stub;
    if (strcmp(name, "cp") != 0 || !find_operands(argc, argv, operands)) {
        return;
    }
    if (!operand_path(operands[0]) && !operand_path(operands[1]) && is_of_nco(environment) &&
        esdmnc__stub_read(operands[0], &stub) == NC_NOERR) {
        const char *target = target_file(operands[0], operands[1], buffer, sizeof(buffer));
        int status = container_of_copy(target, container);
        if (status == NC_NOERR) {
            _exit(copy_to_container(operands[0], &stub, target, container, environment));
        }
        if (status == ENOENT) {
            become_esdm_cp(operands[0], target, environment);
        }
        return; /* what is copied is the stub, which nobody can write to */
    }
    if (operand_path(operands[0]) || operand_path(operands[1])) {
        const char *source = operand_path(operands[0]);
        source = source ? source : operands[0];
        const char *target = target_file(operands[0], operands[1], buffer, sizeof(buffer));
        const char *prefixed = operand_path(target);
        target = prefixed ? prefixed : target;
        tell_recipe(&source, &target, environment);
        become_esdm_cp(source, target, environment);
    }
}
