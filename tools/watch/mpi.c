/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Files by MPI: who shares them, with which hints, and what calls moved. Linked with no MPI; what
 * has to be asked is asked of the caller's own library, by the names that begin with "P" and that
 * work alike in all.
 *
 * Both MPI_File_write() and PMPI_File_write() are observed, as Fortran's functions of Open MPI call
 * the second ones and those of MPICH the first; what one calls in the other is not counted again.
 */
#include <stdlib.h>

#include "watch/mpi.h"

#define FILES       1024u
#define ATTEMPTS    64
#define SEQUENTIAL  256 /* MPI_MODE_SEQUENTIAL, of both: there is no place to ask for */
#define IGNORED     1   /* MPI_STATUS_IGNORE of MPICH; Open MPI's is NULL */
#define ERR_OTHER   15
#define KEY_BYTES   256 /* at least MPI_MAX_INFO_KEY + 1, of both */
#define VALUE_BYTES 128
#define HINTS_BYTES (WATCH_NAME - 1u)

/* ---- what is asked of MPI -------------------------------------------------------------------- */

static int
number_of_ranks(MPI_Comm comm, int *ret_rank)
{
    int (*size)(MPI_Comm, int *) = ASK("PMPI_Comm_size", MPI_Comm, int *);
    int (*rank)(MPI_Comm, int *) = ASK("PMPI_Comm_rank", MPI_Comm, int *);
    int ranks = 0;
    *ret_rank = 0;
    if (size == NULL || rank == NULL || size(comm, &ranks) != 0 || rank(comm, ret_rank) != 0)
        return 1;
    return ranks;
}

static int64_t
type_bytes(MPI_Datatype type)
{
    int (*size)(MPI_Datatype, MPI_Count *) = ASK("PMPI_Type_size_x", MPI_Datatype, MPI_Count *);
    MPI_Count bytes = 0;
    return size != NULL && size(type, &bytes) == 0 && bytes > 0 ? bytes : 0;
}

/* Whether copies of the type follow each other with room between them, or have some inside. */
static bool
has_gaps(MPI_Datatype type)
{
    int (*ask)(MPI_Datatype, MPI_Count *, MPI_Count *) =
        ASK("PMPI_Type_get_extent_x", MPI_Datatype, MPI_Count *, MPI_Count *);
    MPI_Count from = 0;
    MPI_Count extent = 0;
    return ask != NULL && ask(type, &from, &extent) == 0 && extent != type_bytes(type);
}

/* ---- files ----------------------------------------------------------------------------------- */

typedef struct mpi_file {
    MPI_File file;
    uint32_t entry; /* 0: free */
    bool sequential;
    bool viewed; /* has a view of its own */
    bool gaps;
} mpi_file;

static mpi_file files[FILES];
static atomic_flag files_used = ATOMIC_FLAG_INIT;

/* As variables[] in watch/netcdf.c. */
static bool
take_files(void)
{
    for (int i = 0; i < ATTEMPTS; i++) {
        if (!atomic_flag_test_and_set_explicit(&files_used, memory_order_acquire))
            return true;
    }
    return false;
}

static void
give_files(void)
{
    atomic_flag_clear_explicit(&files_used, memory_order_release);
}

static mpi_file *
place_of(MPI_File file, bool fresh)
{
    uint64_t hash = (uint64_t) (uintptr_t) file * 11400714819323198485u >> 40;
    for (unsigned i = 0; i < 16; i++) {
        mpi_file *f = &files[(hash + i) % FILES];
        if (f->entry != 0 ? f->file == file : fresh)
            return f;
    }
    return NULL;
}

/* A copy of what is known; false: nothing. */
static bool
find_file(MPI_File file, mpi_file *ret)
{
    if (!take_files())
        return false;
    const mpi_file *found = place_of(file, false);
    if (found != NULL)
        *ret = *found;
    give_files();
    return found != NULL;
}

static void
set_file(const mpi_file *file)
{
    if (!take_files())
        return;
    mpi_file *place = place_of(file->file, false);
    place = place != NULL ? place : place_of(file->file, true);
    if (place != NULL)
        *place = *file;
    give_files();
}

static uint32_t
entry_named(const char *name, bool *ret_fresh)
{
    uint32_t number = watch__entry_find(WATCH_MPI_FILE, name, ret_fresh);
    if (*ret_fresh)
        watch__entry_ready(number, WATCH_MPI_FILE);
    return number;
}

static uint32_t
entry_of(MPI_File file, mpi_file *ret)
{
    bool fresh;
    *ret = (mpi_file){0};
    return find_file(file, ret) ? ret->entry : entry_named("(files that were open before)", &fresh);
}

/* ---- hints ----------------------------------------------------------------------------------- */

/* "asked cb_nodes=4": a line for each. What finds no room is left out. */
static void
add_hints(char *text, const char *how, MPI_Info info)
{
    int (*count)(MPI_Info, int *) = ASK("PMPI_Info_get_nkeys", MPI_Info, int *);
    int (*nth)(MPI_Info, int, char *) = ASK("PMPI_Info_get_nthkey", MPI_Info, int, char *);
    int (*get)(MPI_Info, const char *, int, char *, int *) =
        ASK("PMPI_Info_get", MPI_Info, const char *, int, char *, int *);
    int keys = 0;
    if (watch__mpi_is_no_info(info) || count == NULL || nth == NULL || get == NULL ||
        count(info, &keys) != 0)
        return;
    for (int i = 0; i < keys; i++) {
        char key[KEY_BYTES] = "";
        char value[VALUE_BYTES] = "";
        int found = 0;
        if (nth(info, i, key) != 0 || get(info, key, VALUE_BYTES - 1, value, &found) != 0 || !found)
            continue;
        for (char *c = value; *c != '\0'; c++)
            *c = *c == '\n' ? ' ' : *c;
        size_t length = strlen(text);
        size_t more = strlen(how) + strlen(key) + strlen(value) + 3;
        if (length + more < HINTS_BYTES)
            (void) snprintf(text + length, HINTS_BYTES - length, "\n%s %s=%s", how, key, value);
    }
}

/* What the program wants, and what the library made of it: of the first rank alone. */
static void
note_hints(uint32_t number, MPI_File file, MPI_Info asked, const char *chosen)
{
    int (*get)(MPI_File, MPI_Info *) = ASK("PMPI_File_get_info", MPI_File, MPI_Info *);
    int (*drop)(MPI_Info *) = ASK("PMPI_Info_free", MPI_Info *);
    char text[HINTS_BYTES + 1];
    bool fresh = false;
    MPI_Info used = 0;
    (void) snprintf(text, sizeof text, "%u", number);
    size_t empty = strlen(text);
    add_hints(text, "asked", asked);
    for (const char *at = chosen; *at != '\0'; at += strcspn(at, "\n") + 1) {
        size_t length = strlen(text);
        (void) snprintf(text + length, HINTS_BYTES - length, "\nchosen %.*s",
                        (int) strcspn(at, "\n"), at);
    }
    if (get != NULL && drop != NULL && get(file, &used) == 0) {
        add_hints(text, "used", used);
        if (!watch__mpi_is_no_info(used))
            (void) drop(&used);
    }
    if (strlen(text) == empty)
        return;
    uint32_t hints = watch__entry_find(WATCH_HINTS, text, &fresh);
    watch_entry *entry = fresh ? watch__entry(hints) : NULL;
    if (entry == NULL)
        return;
    entry->parent = number;
    watch__entry_ready(hints, WATCH_HINTS);
}

/* ---- begin and end of a call ------------------------------------------------------------------
 */

bool
watch__mpi_begin(watch_call *call, const void *caller)
{
    if (watch__here.mpi > 0 || !watch__begin(call))
        return false;
    watch__here.mpi = 1;
    watch__here.mpi_caller = caller;
    call->position = WATCH_NOWHERE;
    return true;
}

int
watch__mpi_absent(void)
{
    return ERR_OTHER;
}

static int
enter_library(void)
{
    watch__here.busy = true;
    watch__here.mpi = 0;
    return errno;
}

static void
leave_library(int saved)
{
    watch__here.busy = false;
    errno = saved;
}

static void
meta(const watch_call *call, watch_op op, uint32_t number, int result)
{
    watch_entry *entry = watch__entry(number);
    if (entry != NULL)
        watch__enter(call, op, number, WATCH_NOWHERE, 0, 0, result != 0, &entry->other);
}

/* ---- the calls --------------------------------------------------------------------------------
 */

static uint32_t
opened(MPI_Comm comm, const char *path, int mode, MPI_Info info, const char *chosen, MPI_File file)
{
    char name[4096];
    bool fresh;
    int rank;
    watch__mpi_full_path(path, name, sizeof name);
    uint32_t number = entry_named(name, &fresh);
    watch_entry *entry = watch__entry(number);
    int ranks = number_of_ranks(comm, &rank);
    if (entry != NULL && (uint32_t) ranks > entry->ranks)
        entry->ranks = (uint32_t) ranks;
    if (rank == 0)
        note_hints(number, file, info, chosen);
    set_file(&(mpi_file){.file = file, .entry = number, .sequential = (mode & SEQUENTIAL) != 0});
    return number;
}

void
watch__mpi_opened(watch_call *call, watch_op op, MPI_Comm comm, const char *path, int mode,
                  MPI_Info info, const watch_hints *hints, const MPI_File *file, int result)
{
    int saved = enter_library();
    meta(call, op, result == 0 ? opened(comm, path, mode, info, hints->text, *file) : WATCH_OTHERS,
         result);
    leave_library(saved);
}

/* Another file may get its handle when it is closed. */
void
watch__mpi_closing(watch_call *call, const MPI_File *file)
{
    mpi_file known;
    watch__here.busy = true;
    call->fd_entry = entry_of(*file, &known);
    if (known.entry != 0 && take_files()) {
        mpi_file *place = place_of(*file, false);
        if (place != NULL)
            place->entry = 0;
        give_files();
    }
    watch__here.busy = false;
}

void
watch__mpi_closed(watch_call *call, watch_op op, int result)
{
    int saved = enter_library();
    meta(call, op, call->fd_entry, result);
    leave_library(saved);
}

void
watch__mpi_path(watch_call *call, watch_op op, int result)
{
    int saved = enter_library();
    meta(call, op, WATCH_OTHERS, result);
    leave_library(saved);
}

void
watch__mpi_viewed(watch_call *call, watch_op op, MPI_File file, MPI_Offset at, MPI_Datatype etype,
                  MPI_Datatype filetype, MPI_Info info, int result)
{
    int saved = enter_library();
    mpi_file known;
    uint32_t number = entry_of(file, &known);
    (void) info;
    if (result == 0 && known.entry != 0) {
        known.viewed = at != 0 || type_bytes(etype) != 1 || has_gaps(filetype);
        known.gaps = has_gaps(filetype);
        set_file(&known);
    }
    meta(call, op, number, result);
    leave_library(saved);
}

void
watch__mpi_meta(watch_call *call, watch_op op, MPI_File file, int result)
{
    int saved = enter_library();
    mpi_file known;
    meta(call, op, entry_of(file, &known), result);
    leave_library(saved);
}

/* Bytes from the begin of the file. Asked only where it cannot fail: an error would call the
 * program's handler. */
static uint64_t
place_in_file(MPI_File file, MPI_Offset at)
{
    int (*where)(MPI_File, MPI_Offset *) = ASK("PMPI_File_get_position", MPI_File, MPI_Offset *);
    int (*bytes)(MPI_File, MPI_Offset, MPI_Offset *) =
        ASK("PMPI_File_get_byte_offset", MPI_File, MPI_Offset, MPI_Offset *);
    mpi_file known;
    MPI_Offset place = at;
    if (at == WATCH_MPI_SHARED || at < WATCH_MPI_SHARED || !find_file(file, &known) ||
        known.sequential || where == NULL || bytes == NULL)
        return WATCH_NOWHERE;
    if (at == WATCH_MPI_OWN && where(file, &place) != 0)
        return WATCH_NOWHERE;
    if (known.viewed && bytes(file, place, &place) != 0)
        return WATCH_NOWHERE;
    return place >= 0 ? (uint64_t) place : WATCH_NOWHERE;
}

void
watch__mpi_moving(watch_call *call, MPI_File file, MPI_Offset at)
{
    watch__here.busy = true;
    call->position = place_in_file(file, at);
    watch__here.busy = false;
    call->start_ns = watch__now_ns();
}

MPI_Status *
watch__mpi_status(MPI_Status *status, watch_mpi_status *own)
{
    return status == NULL || (uintptr_t) status == IGNORED ? own : status;
}

/* Elements that a call has moved: fewer than wanted behind the end of a file. */
static int64_t
moved_elements(const MPI_Status *status, MPI_Datatype type, int64_t wanted)
{
    int (*get)(const MPI_Status *, MPI_Datatype, int *) =
        ASK("PMPI_Get_count", const MPI_Status *, MPI_Datatype, int *);
    int count = -1;
    if (status == NULL || get == NULL || get(status, type, &count) != 0 || count < 0 ||
        count > wanted)
        return wanted;
    return count;
}

static void
add(watch_counts *counts, const watch_call *call, uint64_t bytes)
{
    (void) __atomic_fetch_add(&counts->calls, 1, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&counts->bytes, bytes, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&counts->ns, call->ns, __ATOMIC_RELAXED);
    (void) __atomic_fetch_add(&counts->small, bytes < 65536, __ATOMIC_RELAXED);
}

void
watch__mpi_moved(watch_call *call, watch_op op, MPI_File file, bool writes, int64_t count,
                 MPI_Datatype type, const MPI_Status *status, unsigned flags, int result)
{
    int saved = enter_library();
    mpi_file known;
    uint32_t number = entry_of(file, &known);
    watch_entry *entry = watch__entry(number);
    /* MPI_DATATYPE_NULL is no type to ask about. */
    int64_t each = result == 0 && count > 0 ? type_bytes(type) : 0;
    uint64_t want = (uint64_t) (count > 0 ? count : 0) * (uint64_t) each;
    uint64_t bytes =
        each > 0 ? (uint64_t) moved_elements(status, type, count) * (uint64_t) each : 0;
    if (entry != NULL) {
        if (flags & WATCH_FLAG_TOGETHER)
            add(writes ? &entry->together_write : &entry->together_read, call, bytes);
        watch__here.flags = (uint16_t) (flags | (known.gaps ? WATCH_FLAG_GAPS : 0u));
        watch__enter(call, op, number, call->position, want, bytes, result != 0,
                     writes ? &entry->write : &entry->read);
    }
    leave_library(saved);
}
