/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Files that all ranks open by MPI get the hints that the user states, else those that earlier runs
 * speak for (watch/hints.h), where the program states none of that name. The first rank reads them
 * and tells the others: hints that differ between ranks would be an error.
 *
 * Telling is a collective call, so all ranks have to come here: those of an Open MPI job of one
 * program, else those of which each esdm-run has left a mark on this node.
 */
#include <stdlib.h>
#include <sys/syscall.h>

#include "watch/hints.h"
#include "watch/history.h"
#include "watch/mpi.h"

#define NO_INFO    0x1c000000 /* handles of MPICH: MPI_INFO_NULL, … */
#define ALL_RANKS  0x44000000 /* … MPI_COMM_WORLD, … */
#define BYTE       0x4c00010d /* … MPI_BYTE */
#define CONGRUENT  1          /* MPI_CONGRUENT, of both; MPI_IDENT is 0 */
#define RANKS_MOST 65536
#define VALUE      128

static char place[4096];              /* of the record; "": what earlier runs did does not count */
static char stated[WATCH_HINTS_TEXT]; /* by the user: lines KEY=VALUE; "": none */
static char marks[4096];              /* begin of the marks' names; "": none are needed */
static int ranks_of_job;

static void __attribute__((constructor)) hints_begin(void)
{
    const char *path = secure_getenv("ESDM_WATCH_HINTS");
    const char *own = secure_getenv("ESDM_WATCH_STATED");
    const char *with = secure_getenv("ESDM_WATCH_MARKS");
    const char *ranks = secure_getenv("ESDM_WATCH_RANKS");
    if (with == NULL || ranks == NULL || strlen(with) >= sizeof marks)
        return;
    ranks_of_job = atoi(ranks);
    (void) snprintf(marks, sizeof marks, "%s", with);
    if (path != NULL && path[0] == '/' && strlen(path) < sizeof place)
        (void) snprintf(place, sizeof place, "%s", path);
    if (own != NULL && strlen(own) < sizeof stated)
        (void) snprintf(stated, sizeof stated, "%s", own);
}

/* ---- what is asked of MPI -------------------------------------------------------------------- */

/* A handle of Open MPI is the address of a variable, of which a program may have the copy that
 * counts. */
static intptr_t
handle(const char *open_mpi, intptr_t mpich)
{
    watch_nc_cache cache = {0};
    const void *found = dlsym(RTLD_DEFAULT, open_mpi);
    if (found == NULL)
        found = watch__nc_real(&cache, open_mpi, watch__here.mpi_caller);
    return found != NULL ? (intptr_t) found : mpich;
}

bool
watch__mpi_is_no_info(MPI_Info info)
{
    static watch_nc_cache cache;
    const char name[] = "ompi_mpi_info_null";
    const void *library = watch__nc_real(&cache, name, watch__here.mpi_caller);
    if (library == NULL)
        return (int) info == NO_INFO;
    return info == 0 || (const void *) info == library ||
           (const void *) info == dlsym(RTLD_DEFAULT, name);
}

void
watch__mpi_full_path(const char *path, char *ret, size_t bytes)
{
    const char *colon = strchr(path, ':');
    const char *slash = strchr(path, '/');
    if (colon != NULL && colon > path + 1 && (slash == NULL || colon < slash))
        path = colon + 1;
    char *real = realpath(path, NULL);
    if (real != NULL) {
        (void) snprintf(ret, bytes, "%s", real);
        free(real);
        return;
    }
    const char *last = strrchr(path, '/');
    char folder[4096] = ".";
    if (last != NULL && (size_t) (last - path) < sizeof folder)
        (void) snprintf(folder, sizeof folder, "%.*s", last == path ? 1 : (int) (last - path),
                        path);
    real = realpath(folder, NULL);
    if (real != NULL)
        (void) snprintf(ret, bytes, "%s/%s", real, last != NULL ? last + 1 : path);
    else
        (void) snprintf(ret, bytes, "%s", path);
    free(real);
}

/* ---- who takes part ---------------------------------------------------------------------------
 */

static bool
all_have_marks(void)
{
    static atomic_int known = -1;
    int good = atomic_load_explicit(&known, memory_order_relaxed);
    if (good >= 0)
        return good != 0;
    good = 1;
    for (int i = 0; marks[0] != '\0' && i < ranks_of_job && good != 0; i++) {
        char path[sizeof marks + 32];
        (void) snprintf(path, sizeof path, "%s%d.hints", marks, i);
        good = syscall(SYS_faccessat, AT_FDCWD, path, F_OK) == 0;
    }
    atomic_store_explicit(&known, good, memory_order_relaxed);
    return good != 0;
}

/* Whether the communicator has all ranks of the job, and they all come here: the same on all. */
static bool
are_all_here(MPI_Comm comm, int *ret_rank)
{
    int (*size)(MPI_Comm, int *) = ASK("PMPI_Comm_size", MPI_Comm, int *);
    int (*rank)(MPI_Comm, int *) = ASK("PMPI_Comm_rank", MPI_Comm, int *);
    int (*compare)(MPI_Comm, MPI_Comm, int *) = ASK("PMPI_Comm_compare", MPI_Comm, MPI_Comm, int *);
    int ranks = 0;
    int like = -1;
    if (size == NULL || rank == NULL || compare == NULL || ranks_of_job < 2 ||
        ranks_of_job > RANKS_MOST || size(comm, &ranks) != 0 || ranks != ranks_of_job ||
        compare(comm, handle("ompi_mpi_comm_world", ALL_RANKS), &like) != 0)
        return false;
    return like >= 0 && like <= CONGRUENT && rank(comm, ret_rank) == 0 && all_have_marks();
}

/* ---- what the first rank knows ----------------------------------------------------------------
 */

/* A file of ours that nobody else can change. NULL: there is none. Owned. */
static char *
load(uint64_t *ret_files)
{
    struct stat st;
    char *bytes = NULL;
    int fd = (int) syscall(SYS_openat, AT_FDCWD, place,
                           O_RDONLY | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, 0);
    if (fd >= 0 && fstat(fd, &st) == 0 && S_ISREG(st.st_mode) && st.st_uid == geteuid() &&
        (st.st_mode & 022) == 0 && (size_t) st.st_size >= sizeof(watch_hints_head) &&
        (size_t) st.st_size <= WATCH_HINTS_BYTES)
        bytes = malloc((size_t) st.st_size);
    if (bytes != NULL && syscall(SYS_pread64, fd, bytes, (size_t) st.st_size, 0L) == st.st_size) {
        const watch_hints_head *head = (const void *) bytes;
        *ret_files = head->files;
        if (head->magic == WATCH_HINTS_MAGIC && head->files <= WATCH_HINTS_FILES &&
            (size_t) st.st_size == sizeof *head + head->files * sizeof(watch_hints_file)) {
            (void) syscall(SYS_close, fd);
            return bytes;
        }
    }
    if (fd >= 0)
        (void) syscall(SYS_close, fd);
    free(bytes);
    return NULL;
}

static bool
is_for(const watch_hints_file *file, const char *program, const char *name)
{
    return file->ranks == (uint32_t) ranks_of_job &&
           memchr(file->name, '\0', sizeof file->name) != NULL &&
           memchr(file->give, '\0', sizeof file->give) != NULL &&
           strncmp(file->program, program, sizeof file->program - 1) == 0 &&
           watch_history_alike(file->name, name);
}

static bool
is_stated(MPI_Info info, const char *key)
{
    int (*get)(MPI_Info, const char *, int, char *, int *) =
        ASK("PMPI_Info_get", MPI_Info, const char *, int, char *, int *);
    char value[VALUE] = "";
    int found = 0;
    return !watch__mpi_is_no_info(info) &&
           (get == NULL || get(info, key, VALUE - 1, value, &found) != 0 || found);
}

/* The next line "KEY=VALUE" of a text, in parts, whose key any MPI can be asked for. */
static const char *
next_hint(const char *text, char *key, char *value)
{
    size_t length = strcspn(text, "\n");
    size_t name = strcspn(text, "=\n");
    while (name > WATCH_HINT_KEY && text[length] == '\n') {
        text += length + 1;
        length = strcspn(text, "\n");
        name = strcspn(text, "=\n");
    }
    if (name == 0 || name > WATCH_HINT_KEY || name >= length || length - name > VALUE)
        return NULL;
    (void) snprintf(key, VALUE, "%.*s", (int) name, text);
    (void) snprintf(value, VALUE, "%.*s", (int) (length - name - 1), text + name + 1);
    return text + length + (text[length] == '\n');
}

/* Without those that the program states. */
static void
add_unstated(char *text, const char *give, MPI_Info info)
{
    char key[VALUE];
    char value[VALUE];
    for (const char *at = next_hint(give, key, value); at != NULL; at = next_hint(at, key, value)) {
        size_t length = strlen(text);
        if (!is_stated(info, key))
            (void) snprintf(text + length, WATCH_HINTS_TEXT - length, "%s=%s\n", key, value);
    }
}

static void
look_up(const char *path, MPI_Info info, char *text)
{
    char name[8200];
    char exe[4096] = "";
    uint64_t count = 0;
    /* Whoever has set these has chosen, and what is stated is not to be learned from. */
    add_unstated(text, stated, info);
    if (stated[0] != '\0')
        return;
    if (getenv("ROMIO_HINTS") != NULL || getenv("MPICH_MPIIO_HINTS") != NULL)
        return;
    (void) syscall(SYS_readlinkat, AT_FDCWD, "/proc/self/exe", exe, sizeof exe - 1);
    const char *slash = strrchr(exe, '/');
    char *bytes = load(&count);
    watch__mpi_full_path(path, name, sizeof name);
    size_t length = strlen(name);
    const char *end = length < WATCH_NAME ? name : name + length - (WATCH_NAME - 1);
    const watch_hints_file *files =
        bytes != NULL ? (const void *) (bytes + sizeof(watch_hints_head)) : NULL;
    for (uint64_t i = 0; i < count && bytes != NULL; i++) {
        if (!is_for(&files[i], slash != NULL ? slash + 1 : exe, end))
            continue;
        add_unstated(text, files[i].give, info);
        break;
    }
    free(bytes);
}

/* ---- the hints --------------------------------------------------------------------------------
 */

static void
add_to_info(watch_hints *h)
{
    int (*copy)(MPI_Info, MPI_Info *) = ASK("PMPI_Info_dup", MPI_Info, MPI_Info *);
    int (*make)(MPI_Info *) = ASK("PMPI_Info_create", MPI_Info *);
    int (*set)(MPI_Info, const char *, const char *) =
        ASK("PMPI_Info_set", MPI_Info, const char *, const char *);
    MPI_Info info = 0;
    char key[VALUE];
    char value[VALUE];
    if (copy == NULL || make == NULL || set == NULL ||
        (watch__mpi_is_no_info(h->info) ? make(&info) : copy(h->info, &info)) != 0) {
        h->text[0] = '\0';
        return;
    }
    for (const char *at = next_hint(h->text, key, value); at != NULL;
         at = next_hint(at, key, value)) {
        if (!is_stated(info, key))
            (void) set(info, key, value);
    }
    h->info = info;
    h->own = true;
}

static void
choose(watch_hints *h, MPI_Comm comm, const char *path)
{
    int (*tell)(void *, int, MPI_Datatype, int, MPI_Comm) =
        ASK("PMPI_Bcast", void *, int, MPI_Datatype, int, MPI_Comm);
    int rank = 0;
    if (tell == NULL || !are_all_here(comm, &rank))
        return;
    if (rank == 0)
        look_up(path, h->info, h->text);
    if (tell(h->text, WATCH_HINTS_TEXT, handle("ompi_mpi_byte", BYTE), 0, comm) != 0)
        h->text[0] = '\0';
    h->text[WATCH_HINTS_TEXT - 1] = '\0';
    if (h->text[0] != '\0')
        add_to_info(h);
}

void
watch__hints_choose(watch_hints *ret, MPI_Comm comm, const char *path, MPI_Info info,
                    const void *caller)
{
    *ret = (watch_hints){.info = info, .outer = !watch__here.opening};
    watch__here.opening = true;
    if ((place[0] == '\0' && stated[0] == '\0') || !ret->outer || watch__here.busy)
        return;
    int saved = errno;
    const void *outer = watch__here.mpi_caller;
    watch__here.busy = true;
    watch__here.mpi_caller = caller;
    choose(ret, comm, path);
    watch__here.mpi_caller = outer;
    watch__here.busy = false;
    errno = saved;
}

void
watch__hints_drop(watch_hints *hints)
{
    int saved = errno;
    bool busy = watch__here.busy;
    if (hints->outer)
        watch__here.opening = false;
    if (!hints->own)
        return;
    int (*drop)(MPI_Info *) = ASK("PMPI_Info_free", MPI_Info *);
    watch__here.busy = true;
    if (drop != NULL)
        (void) drop(&hints->info);
    watch__here.busy = busy;
    errno = saved;
}
