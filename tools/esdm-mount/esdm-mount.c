/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers as files in a folder. */

#include "esdm-mount/esdm-mount.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/utsname.h>
#include <sys/vfs.h>
#include <time.h>
#include <unistd.h>

static const tool_help help = {
    .name = "esdm-mount",
    .arguments = "FOLDER",
    .description =
        "Shows the containers of the site as NetCDF files in FOLDER, for programs that know\n"
        "nothing of ESDM: statically linked ones, HDF5 tools, cp, rsync. The bytes are made\n"
        "when they are read; nothing is copied. Folders in names of containers are folders.\n"
        "\n"
        "A file shows the newest snapshot at the time when it is opened, and does not change\n"
        "while it is open. Older ones are files FOLDER/@snapshots/NAME/NUMBER.\n"
        "\n"
        "@views has the views of the site (esdm-ls --views) as folders, and what lies at\n"
        "their last levels as files: @views/cmip6/CMIP6/CMIP/….\n"
        "\n"
        "Nothing can be changed, unless --write is given. A file that is written then is\n"
        "made a container when it is closed, as by esdm-cp, and verified; close() fails when\n"
        "that does not succeed, and the file is there as NAME.failed, with the reason in\n"
        "NAME.failed.why. Until then it lies in the staging folder. Containers are replaced\n"
        "as a whole: they cannot be opened for changing parts. rm, mv and mkdir do what they\n"
        "do elsewhere; empty folders are kept in the staging folder alone.\n"
        "\n"
        "Files are netCDF-4 files. With --format classic, 64bit-offset or cdf5 they have\n"
        "that format; containers that it cannot hold cannot be opened then.\n"
        "\n"
        "The kernel keeps what was read. With --direct it does not keep files of 8 MiB and more\n"
        "whose values are stored without a codec on this machine, as their packs are kept: cp,\n"
        "rsync and whatever reads 256 KiB and more at a time are up to twice as fast, and more\n"
        "on a busy machine; tar, and what reads a few KiB at a time, is several times slower.\n"
        "Linux 6.6 or newer is needed, and who opens a file that another reads is not concerned.\n"
        "\n"
        "Only you can look into FOLDER, unless --allow-other is given: then all who can\n"
        "reach it read what you can read. \"fusermount3 -u FOLDER\" ends it, also while files\n"
        "are open with -z. Headers of files are kept in ~/.cache/esdm/vfile.",
    .examples = "  esdm-mount ~/esdm\n"
                "  ncdump -h ~/esdm/run1/ocean.nc\n"
                "  fusermount3 -u ~/esdm\n"
                "  esdm-mount --format 64bit-offset /mnt/classic\n"
                "  esdm-mount --direct /mnt/esdm && rsync -a /mnt/esdm/run1/ archive:run1\n",
    .see_also = "esdm-serve, esdm-cp, esdm-ls, fusermount3",
};

static gboolean foreground, allow_other, may_write, direct;
static char *format_text, *staging_text;

static const GOptionEntry entries[] = {
    {"format", 0, 0, G_OPTION_ARG_STRING, &format_text,
     "netcdf4 (default), classic, 64bit-offset or cdf5", "FORMAT"},
    {"allow-other", 0, 0, G_OPTION_ARG_NONE, &allow_other, "Let other users read, too", NULL},
    {"write", 'w', 0, G_OPTION_ARG_NONE, &may_write, "Let files be written, renamed and removed",
     NULL},
    {"direct", 0, 0, G_OPTION_ARG_NONE, &direct,
     "Read large files past the kernel's memory: faster by reads of 256 KiB and more", NULL},
    {"staging", 0, 0, G_OPTION_ARG_FILENAME, &staging_text,
     "Where files lie while they are written; ~/.local/share/esdm-staged", "FOLDER"},
    {"foreground", 'f', 0, G_OPTION_ARG_NONE, &foreground, "Stay; messages go to standard error",
     NULL},
    {0},
};

#ifndef FUSE_SUPER_MAGIC
#define FUSE_SUPER_MAGIC 0x65735546
#endif

/* So many files that nobody reads stay open. */
#define IDLE_FILES 16u

/* ---- the background ----------------------------------------------------------------------- */

/* The child goes on and tells the parent, which waits, when all is ready: a session does not
 * survive a fork. @return in the child; the parent ends with its exit status. */
static int
into_background(void)
{
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) != 0)
        return -1;
    pid_t child = fork();
    if (child > 0) {
        unsigned char status = TOOL_FAILED;
        (void) close(ends[1]);
        while (read(ends[0], &status, 1) < 0 && errno == EINTR)
            ;
        _exit(status);
    }
    (void) close(ends[0]);
    if (child == 0)
        (void) setsid();
    return ends[1];
}

static void
tell_parent(int pipe_end, tool_exit result)
{
    unsigned char status = (unsigned char) result;
    if (pipe_end < 0)
        return;
    if (result == TOOL_OK) { /* messages go nowhere from now on */
        int null = open("/dev/null", O_RDWR | O_CLOEXEC);
        for (int i = 0; i < 3 && null >= 0; i++)
            (void) dup2(null, i);
    }
    (void) !write(pipe_end, &status, 1);
    (void) close(pipe_end);
}

/* ---- read-ahead --------------------------------------------------------------------------- */

/* The kernel reads 128 KiB ahead in such file systems; root may ask for more. */
static void
read_further_ahead(const char *folder)
{
    g_autofree char *text = NULL;
    if (!g_file_get_contents("/proc/self/mountinfo", &text, NULL, NULL))
        return;
    g_auto(GStrv) lines = g_strsplit(text, "\n", -1);
    for (char **line = lines; *line != NULL; line++) {
        g_auto(GStrv) words = g_strsplit(*line, " ", 6);
        if (g_strv_length(words) < 6 || !g_str_equal(words[4], folder))
            continue;
        g_autofree char *path = g_strdup_printf("/sys/class/bdi/%s/read_ahead_kb", words[2]);
        int fd = open(path, O_WRONLY | O_CLOEXEC);
        if (fd >= 0) {
            g_autofree char *kib = g_strdup_printf("%u", MOUNT_READ_AHEAD >> 10);
            (void) !write(fd, kib, strlen(kib));
            (void) close(fd);
        }
    }
}

/* Whether something is mounted there already, or the folder is not empty: what lies there would be
 * hidden, and of two mounts over each other fusermount3 -u takes one away. */
static bool
is_free(const char *folder)
{
    struct stat here;
    struct stat above;
    g_autofree char *parent = g_path_get_dirname(folder);
    struct statfs system;
    if (stat(folder, &here) == 0 && stat(parent, &above) == 0 && here.st_dev != above.st_dev &&
        statfs(folder, &system) == 0 && system.f_type == FUSE_SUPER_MAGIC) {
        tool_error("something is mounted on '%s' already: \"fusermount3 -u %s\" takes it away",
                   folder, folder);
        return false;
    }
    g_autoptr(GDir) dir = g_dir_open(folder, 0, NULL);
    if (dir == NULL || g_dir_read_name(dir) == NULL)
        return true;
    tool_error("'%s' is not empty: what lies there could not be reached; take an empty folder",
               folder);
    return false;
}

/* ---- mounting ----------------------------------------------------------------------------- */

static bool
is_usable(const char *folder)
{
    int fd =
        open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC); /* the kernel may still know its stat() */
    if (fd >= 0) {
        (void) close(fd);
        return true;
    }
    if (errno == ENOTCONN)
        tool_error("what was mounted on '%s' has ended: \"fusermount3 -u %s\" takes it away",
                   folder, folder);
    else
        tool_error("'%s' is no folder: make it first", folder);
    return false;
}

static struct fuse_session *
start(mount_state *state, const char *folder)
{
    g_autofree char *site =
        g_strdelimit(g_strdup(esdm_session_site_name(state->session)), ",\\", '_');
    g_autofree char *options =
        g_strdup_printf("%sfsname=esdm:%s,subtype=esdm,default_permissions,max_read=%u%s",
                        may_write ? "" : "ro,", site, 1u << 20, allow_other ? ",allow_other" : "");
    struct fuse_args args = FUSE_ARGS_INIT(0, NULL);
    (void) fuse_opt_add_arg(&args, "esdm-mount");
    (void) fuse_opt_add_arg(&args, "-o");
    (void) fuse_opt_add_arg(&args, options);
    struct fuse_session *fuse =
        fuse_session_new(&args, &mount_operations, sizeof mount_operations, state);
    fuse_opt_free_args(&args);
    if (fuse == NULL)
        return NULL;
    if (fuse_set_signal_handlers(fuse) == 0) {
        if (fuse_session_mount(fuse, folder) == 0)
            return fuse;
        fuse_remove_signal_handlers(fuse);
    }
    fuse_session_destroy(fuse);
    return NULL;
}

static tool_exit
serve(mount_state *state, const char *folder, int pipe_end)
{
    struct fuse_session *fuse = start(state, folder);
    if (fuse == NULL) {
        tool_error("cannot mount on '%s': is /dev/fuse there, and may you use it?", folder);
        return TOOL_FAILED;
    }
    read_further_ahead(folder);
    tell_parent(pipe_end, TOOL_OK);
    struct fuse_loop_config *config = fuse_loop_cfg_create();
    fuse_loop_cfg_set_clone_fd(config, 1);
    fuse_loop_cfg_set_idle_threads(config, 10);
    fuse_loop_cfg_set_max_threads(config, 16);
    int ended = fuse_session_loop_mt(fuse, config);
    fuse_loop_cfg_destroy(config);
    fuse_session_unmount(fuse);
    fuse_remove_signal_handlers(fuse);
    fuse_session_destroy(fuse);
    return ended < 0 ? TOOL_FAILED : TOOL_OK;
}

static tool_exit
make_staging(mount_state *state)
{
    if (!may_write)
        return TOOL_OK;
    /* Sites have their own: what did not become a container belongs to one. */
    g_autofree char *name = g_strcanon(g_strdup(esdm_session_site_name(state->session)),
                                       G_CSET_a_2_z G_CSET_A_2_Z G_CSET_DIGITS "-_.", '_');
    state->staging = staging_text != NULL
                         ? g_canonicalize_filename(staging_text, NULL)
                         : g_build_filename(g_get_user_data_dir(), "esdm-staged", name, NULL);
    if (g_mkdir_with_parents(state->staging, 0700) == 0)
        return TOOL_OK;
    tool_error("cannot make the staging folder '%s': %s", state->staging, g_strerror(errno));
    return TOOL_FAILED;
}

static bool
note_directory(const char *directory, void *user)
{
    return *(bool *) user = directory != NULL;
}

/* Whether --direct can do what it says: all of the site lies in directories, and the kernel knows
 * how to map files that are read so. */
static bool
can_read_directly(void)
{
    esdm_error err = {0};
    bool local = true;
    struct utsname kernel;
    int major = 0;
    int minor = 0;
    const esdm_site_options options = {.config_path = tool.config};
    if (uname(&kernel) == 0 && sscanf(kernel.release, "%d.%d", &major, &minor) == 2 &&
        major * 1000 + minor < 6006) {
        tool_error("--direct needs Linux 6.6 or newer; this is %s", kernel.release);
        return false;
    }
    esdm_status status = esdm_site_directories(&options, note_directory, &local, &err);
    if (status != ESDM_OK)
        tool_error("%s", err.message);
    else if (!local)
        tool_error(
            "--direct: this site keeps data or its catalogue on other machines, and what comes "
            "from there the kernel has to keep; leave the option out");
    return status == ESDM_OK && local;
}

static tool_exit
mount_all(const char *folder, esdm_vfile_format format, int pipe_end)
{
    struct timespec now;
    (void) clock_gettime(CLOCK_REALTIME, &now);
    mount_state state = {.format = format,
                         .uid = geteuid(),
                         .gid = getegid(),
                         .direct = direct,
                         .mounted_ns =
                             (uint64_t) now.tv_sec * 1000000000u + (uint64_t) now.tv_nsec};
    tool_exit result = tool_session(!may_write, &state.session);
    if (result != TOOL_OK)
        return result;
    if (allow_other)
        esdm_session_serve_others(state.session);
    result = make_staging(&state);
    if (result == TOOL_OK) {
        state.files = vfile_pool_new(state.session, IDLE_FILES);
        mount_nodes_init();
        mount_ahead_init();
        result = serve(&state, folder, pipe_end);
        mount_close_all(&state);
        mount_ahead_clear();
        mount_nodes_clear();
        vfile_pool_free(state.files);
    }
    g_free(state.staging);
    esdm_session_close(state.session);
    return result;
}

int
main(int argc, char **argv)
{
    esdm_vfile_format format = ESDM_VFILE_NETCDF4;
    tool_parse(&help, entries, &argc, &argv);
    if (argc != 2)
        return tool_usage("in which folder?");
    if (format_text != NULL && !esdm_vfile_format_of(format_text, &format))
        return tool_usage("--format: netcdf4, classic, 64bit-offset or cdf5, not '%s'",
                          format_text);
    if (!is_usable(argv[1]))
        return TOOL_NOT_FOUND;
    g_autofree char *folder = realpath(argv[1], NULL);
    if (folder == NULL) {
        tool_error("'%s': %s", argv[1], g_strerror(errno));
        return TOOL_FAILED;
    }
    if (!is_free(folder) || (direct && !can_read_directly()))
        return TOOL_REFUSED;
    int pipe_end = foreground ? -1 : into_background();
    tool_exit result = mount_all(folder, format, pipe_end);
    if (result != TOOL_OK)
        tell_parent(pipe_end, result);
    return result;
}
