/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDMNC_INTERNAL_H
#define ESDMNC_INTERNAL_H

/**
 * @file
 * The dispatcher: NetCDF calls on top of the public ESDM API.
 *
 * Every dispatch function `esdmnc_<name>` takes an esdmnc_id (libnetcdf copy and ncid) in place
 * of the ncid; table.c makes the thunks that add the copy's number. They return NetCDF codes.
 *
 * Threads: the table of open files is locked inside. One file may be used as esdm/container.h
 * says: reads and writes of data from many threads, structure from one at a time.
 */

#include "router/boundary.h"

#include <esdm/esdm.h>

#include <stdatomic.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <time.h>

/** libnetcdf copy in the upper half, ncid in the lower. */
typedef uint64_t esdmnc_id;

static inline esdmnc_id
esdmnc_id_make(int instance, int ncid)
{
    return ((uint64_t) (uint32_t) instance << 32) | (uint32_t) ncid;
}

static inline int
esdmnc_id_ncid(esdmnc_id id)
{
    return (int) (uint32_t) id;
}

static inline int
esdmnc_id_instance(esdmnc_id id)
{
    return (int) (id >> 32);
}

/** One axis of a variable, with what never changes copied out of the dimension. */
typedef struct esdmnc_axis {
    esdm_dimension *dimension; /* borrowed from the container */
    uint64_t length;           /* of a limited dimension */
    bool unlimited;
} esdmnc_axis;

/** nc_set_var_chunk_cache() */
typedef struct esdmnc_cache {
    size_t bytes;
    size_t slots;
    float preemption;
} esdmnc_cache;

#define ESDMNC_QUANTIZE_UNKNOWN INT64_MIN

/** A statement of accuracy that may belong to other numbers; doubt.c. */
typedef struct esdmnc_doubt esdmnc_doubt;

typedef struct esdmnc_var {
    esdm_dataset *dataset; /* borrowed from the container */
    nc_type type;
    size_t bytes; /* of an element in memory */
    uint32_t rank;
    bool created;                  /* define mode was left since it was defined: NC_ELATEDEF */
    bool stored;                   /* it was read from the store */
    bool nofill;                   /* netCDF-3 formats keep this per handle, netCDF-4 as a hint */
    bool has_cache;                /* `cache` is filled in */
    bool shape_stated;             /* `shape` was given in this session */
    bool collective;               /* nc_var_par_access() */
    bool restated;                 /* attributes of its accuracy changed: accuracy.c */
    bool withdrawn;                /* and some were removed */
    bool mode_of_filter;           /* the mode of its accuracy was asked for by a filter */
    uint32_t copied;               /* ESDM_ACCURACY_* that came with their numbers from a file */
    _Atomic(esdmnc_doubt *) doubt; /* owned; NULL: none */
    uint32_t borrowed;             /* ESDM_ACCURACY_* that were copied from other numbers */
    atomic_bool written;           /* NC_ELATEFILL */
    int endian;                    /* until the file is closed; later the hint tells */
    _Atomic(int64_t) quantize;     /* quantize.c */
    size_t *shape;                 /* chunk lengths stated in this session, owned; NULL: none */
    esdmnc_cache cache;
    esdmnc_axis axes[]; /* `rank` */
} esdmnc_var;

typedef struct esdmnc_group {
    esdm_group *group; /* borrowed from the container */
    esdmnc_var **vars; /* owned; index is the varid */
    size_t count;
    size_t capacity;
} esdmnc_group;

/** Whether records that are appended in a netCDF-3 format read as what `_FillValue` says. */
typedef enum esdmnc_record_fill {
    ESDMNC_RECORDS_UNKNOWN, /* to be looked up: attributes changed */
    ESDMNC_RECORDS_PLAIN,
    ESDMNC_RECORDS_WRITTEN, /* some must be written */
    ESDMNC_RECORDS_BAD      /* some attribute cannot be a fill value */
} esdmnc_record_fill;

/** Numbers of user-defined types. netCDF gives them in the order in which it meets the types: those
 *  of a file that is opened group by group, later ones as they are defined. */
typedef struct esdmnc_types {
    esdm_type *of_nc; /* owned; index is the nc_type less NC_FIRSTUSERTYPEID */
    nc_type *of_esdm; /* owned; index is the esdm_type less ESDM_TYPE_FIRST_USER */
    size_t count;
} esdmnc_types;

typedef struct esdmnc_file {
    int instance;
    int ncid; /* of the root group */
    esdm_container *container;
    char *name;          /* owned; normalised container name */
    uint64_t generation; /* esdmnc_session_generation() when opened: differs after a fork */
    uint64_t snapshot;   /* at opening or refresh */
    uint64_t opened_ns;  /* since 1970-01-01 UTC */
    int format;          /* NC_FORMAT_CLASSIC … NC_FORMAT_64BIT_DATA as the user asked */
    int mode;            /* nc_inq_format_extended()'s mode */
    int fill_mode;       /* NC_FILL or NC_NOFILL */
    esdmnc_cache cache;  /* of chunked variables when the file was opened */
    _Atomic(uint64_t)
        *lengths; /* owned; of unlimited dimensions as last told, by their ids (chunks.c) */
    size_t length_count;
    uint64_t variables_begin; /* in the CDF-1 file that this would be */
    uint64_t records_begin;
    bool writable;
    bool is_new;    /* made by nc_create(), define mode never ended well */
    bool published; /* some of it is committed */
    bool refused;   /* definitions did not end well: an accuracy makes no sense */
    bool shared;    /* opened for reading while this process writes it: the writer's container */
    atomic_bool transient; /* NC_DISKLESS without NC_PERSIST: closing drops all changes */
    /* Readers of this process are not shown it: it will not be committed. Its own thread and those
     * that look for a writer set and read both. */
    atomic_bool hidden;
    bool commit_failed;                      /* the last time it was tried */
    bool settled_told;                       /* that ranks stated attributes differently */
    bool collective;                         /* nc_var_par_access() of a netCDF-3 format */
    _Atomic(esdmnc_record_fill) record_fill; /* found by the first thread that appends */
    atomic_bool indef;
    esdmnc_group **groups; /* owned; index is the group id */
    size_t group_count;
    size_t group_capacity;
    esdmnc_types types;        /* user-defined ones */
    struct esdmnc_room *rooms; /* owned; name_room.c */
    size_t room_count;
    bool postponed;            /* ending.c: closed, and not committed yet */
    int exception;             /* the key of what unwound the stack then; 0: none */
    int opening;               /* number among what a Python program opened for writing; 0: none */
    struct esdmnc_file *next;  /* list of all open files, under the table's lock */
    struct esdmnc_file **link; /* what points to it in that list; NULL: it is in none */
} esdmnc_file;

/** What nc__enddef() is to leave free, in bytes, and where parts are to begin. A container has no
 *  such layout, but a file may become too large by it. */
typedef struct esdmnc_padding {
    size_t header_free;
    size_t variable_align;
    size_t variable_free;
    size_t record_align;
} esdmnc_padding;

/* Formats: 1, 2 and 5 follow the rules of netCDF-3, 4 (netCDF-4 classic model) its data model. */
static inline bool
esdmnc_is_nc3(const esdmnc_file *file)
{
    return file->format != NC_FORMAT_NETCDF4 && file->format != NC_FORMAT_NETCDF4_CLASSIC;
}

static inline bool
esdmnc_is_classic(const esdmnc_file *file)
{
    return file->format != NC_FORMAT_NETCDF4;
}

/* ---- table.c, files.c: open files ---------------------------------------------------------- */

/** The file and group of an id; NC_EBADID when either does not exist. Reopens a file that was
 *  opened for reading before a fork(). */
int esdmnc_find(esdmnc_id id, esdmnc_file **ret_file, esdmnc_group **ret_group);
/** The same of a file that was opened in this process; NULL: there is none. */
esdmnc_file *esdmnc_find_current(esdmnc_id id, const esdmnc_group **ret_group);
/** The same and the variable: NC_ENOTVAR, or NC_EGLOBAL for NC_GLOBAL in a netCDF-3 format. */
int esdmnc_find_var(esdmnc_id id, int varid, esdmnc_file **ret_file, esdmnc_group **ret_group,
                    esdmnc_var **ret_var);
/** Makes a file known under its instance and ncid. The table owns it from then on. */
int esdmnc_files_add(esdmnc_file *file);
/** Takes it out again; the caller owns it. NULL when it is not there. */
esdmnc_file *esdmnc_files_remove(esdmnc_id id);
/** Whether a writable file of this process and that name is open. */
bool esdmnc_files_writing(const char *name);
/** The NC_FORMAT_* that a container was made as. */
int esdmnc_hinted_format(const esdm_container *container);
/** The container that esdmnc_format() has opened last, when it has that name and stands there
 * still, at its newest snapshot; owned by the caller. NULL: none. */
esdm_container *esdmnc_parked_take(const char *name);
/** Gives it up: before anything is changed, and before the session goes. */
void esdmnc_parked_drop(void);
/** Says, once in the program, that what stands under the name will not be kept when it is replaced.
 */
void esdmnc_warn_unkept(esdm_session *session, const char *name);
/** The container of a file that this process writes under that name; borrowed. NULL: none. */
esdm_container *esdmnc_files_writer(const char *name);
/** Whether an open file uses the container. */
bool esdmnc_files_use(const esdm_container *container);
/** Whether another open file has the same container. */
bool esdmnc_files_share(const esdmnc_file *with);
/* The parts of it, for ending.c. The lock guards the list; `until` NULL waits for ever. */
bool esdmnc_files_lock(const struct timespec *until);
void esdmnc_files_unlock(void);
/** With the lock held, as those below. */
esdmnc_file *esdmnc_files_first(void);
bool esdmnc_files_in_use(const esdm_container *container);
/** Its ncid may be given to another file. */
void esdmnc_files_free_slot(const esdmnc_file *file);
/** The caller owns it then. */
void esdmnc_files_take_out(esdmnc_file *file);
/** Makes the table usable in the child of a fork(). */
void esdmnc_files_forked(void);

/* ---- ending.c ------------------------------------------------------------------------------- */

/** Commits every file that is still open for writing; called once at exit, with its status. */
void esdmnc_files_exit(int status, void *unused);
/** The same for parallel files, when MPI ends: later ranks cannot talk any more. */
void esdmnc_files_finalize(void);
/** Python is about to close what is open. @param reason the exception that ends the program, or "".
 *  @param by_signal it will then die by a signal: esdmnc_files_exit() does not come. */
void esdmnc_files_ending(const char *reason, bool by_signal);
/** Takes a file over that is closed, if it is not to be committed now. @param key what
 *  esdmnc_python_closing() gave. */
bool esdmnc_postpone(esdmnc_file *file, int key);
/* What this process has read, before it replaces it (seen.c). */

/** At opening a container that is there, and after each commit. */
void esdmnc_seen_note(const esdmnc_file *file);
/** The process itself removes or replaces what has the name. */
void esdmnc_seen_forget(const char *name);
/** @param uuid room for 33 bytes. @return false: it has read nothing of this name. */
bool esdmnc_seen_find(const char *name, char *uuid, uint64_t *ret_snapshot);
/** After a commit of what another process may rename: notes for that one what this one has read. */
void esdmnc_seen_hand_on(const esdmnc_file *file);
/** In a forked child. */
void esdmnc_seen_forked(void);

/** Commits what was postponed under a key, all of it when that is negative, or drops it and says
 * why on stderr. */
void esdmnc_postponed_settle(int key, bool complete, const char *reason);
/** What opened a file of a Python program, as its number `opening`, has failed. Says so.
 *  @param drops nothing more of it is committed; else only what its close will do is said. */
void esdmnc_files_abandon(int opening, const char *reason, bool drops);
/** A container of this name was created: this process is shown it from now on. What it created so
 *  before, and has not committed, would replace it when it is closed: given up, and told. */
void esdmnc_files_supersede(const char *name);
/** Gives a file that is being opened for writing the container that was postponed under its name.
 */
void esdmnc_postponed_resume(esdmnc_file *file);
/** Commits what was postponed under a name. */
void esdmnc_postponed_commit(const char *name);
/** Drops it; whether there was some. */
bool esdmnc_postponed_drop(const char *name);

/* ---- missing.c ------------------------------------------------------------------------------ */

/** A program asked whether this container exists; it does not. */
void esdmnc_missing_note(const char *name);
/** It makes what it asked for. */
void esdmnc_missing_forget(void);
/** Tells what was perhaps meant by a name that is not there. */
void esdmnc_missing_tell(esdm_session *session, const char *name);
/** There is not even a site: nothing was written, or ESDM_CONFIG was forgotten. */
void esdmnc_missing_site(void);
/** Tells that, once. */
void esdmnc_missing_tell_site(void);
/** At the end: the same for what a program that failed asked for last. */
void esdmnc_missing_ending(int status);

/* ---- replaced.c ----------------------------------------------------------------------------- */

/** Remembers the name of a container that a Python program created and committed. */
void esdmnc_replaced_note(const esdmnc_file *file);
/** At the end of a program that failed, with the table's lock held: tells which containers it had
 *  replaced before, and how they come back. */
void esdmnc_replaced_tell(const char *failure);

/* ---- python.c ------------------------------------------------------------------------------- */

/** An exception that watch.py could not look at. */
#define ESDMNC_KEY_UNKNOWN INT32_MAX
/** Before a file is opened for writing: its number. 0 where no Python runs. */
int esdmnc_python_opening(void);
/** Before a file is opened for reading; without locks, as the other two. */
void esdmnc_python_reading(void);

/* ---- recipe.c: runs that are recorded, and run again ------------------------------------------
 */

typedef enum esdmnc_purpose { ESDMNC_TO_READ, ESDMNC_TO_WRITE, ESDMNC_TO_MAKE } esdmnc_purpose;
/** The container that stands for this one in a run that is run again; else `container` itself.
 *  @param buffer ESDM_CONTAINER_NAME_MAX + 1 bytes, which the result may be. */
const char *esdmnc_recipe_name(const char *container, esdmnc_purpose purpose, char *buffer);
/** Notes what becomes of a container, in a run that is recorded. */
void esdmnc_recipe_note(const char *what, const char *name, const char *rest);
/** The same with its snapshot. */
void esdmnc_recipe_note_file(const char *what, const esdmnc_file *file);
/** The key of the exception that unwinds the stack while the file is closed; 0: none does. Call it
 *  without locks: it waits for Python's. */
int esdmnc_python_closing(int opening);

/* ---- files.c: one file ---------------------------------------------------------------------- */

/** Allocates a file without container; NULL when out of memory. */
esdmnc_file *esdmnc_file_new(esdmnc_id id, const char *name);
/** Frees it; the container must be closed. NULL is accepted. */
void esdmnc_file_free(esdmnc_file *file);
/** Frees groups and vars, which point into the container. */
void esdmnc_file_forget(esdmnc_file *file);
/** Brings groups and vars up to the container's structure; existing entries stay valid. */
int esdmnc_file_index(esdmnc_file *file);
/** Takes what the container has no more out of the files that use it. */
void esdmnc_files_trim(const esdm_container *container);
/** Marks all variables as created; `written` too when set. */
void esdmnc_file_settle(esdmnc_file *file, bool written);
/** The same for variables that were read from the store. */
void esdmnc_file_settle_stored(esdmnc_file *file);
/** Opens the container of a file again in a child process. */
int esdmnc_file_revive(esdmnc_file *file);
/** Opens the container of a file once more, for reading; on parallel files collective. NC_ECANTREAD
 *  when it is another one by now. */
int esdmnc_open_again(const esdmnc_file *file, uint64_t snapshot, esdm_container **ret_container);

/* ---- session.c ----------------------------------------------------------------------------- */

/** The session of this process, opened at first use; borrowed. `writing` fails with EACCES when
 *  the site can only be read. */
int esdmnc_session(bool writing, esdm_session **ret_session);
/** Collective: opens the sessions of ranks that have none, with one connection to the metadata
 * store for all. The same code on all ranks. */
int esdmnc_session_of_ranks(esdmnc_ranks *ranks);
/** The one that is open; NULL when there is none, or another thread is at it. Never waits. */
esdm_session *esdmnc_session_now(void);
/** At exit: stores what the session knows about the site. */
void esdmnc_session_settle(void);
/** Counts fork()s: a file with another value belongs to an ancestor of this process. */
uint64_t esdmnc_session_generation(void);

/* ---- errors.c ------------------------------------------------------------------------------ */

/** One line on stderr, safe for terminals. Keeps errno. */
void esdmnc_say(const char *format, ...) __attribute__((format(printf, 1, 2)));

/**
 * NetCDF's code for an ESDM failure; `what` and `name` say what was tried ("open", "run1.nc").
 * The text goes to stderr with ESDM_DEBUG set; for failing storage, damaged data and conflicts
 * (EIO, ENOSPC, ECORRUPT, ECONFLICT), which a NetCDF code alone cannot describe, the first 20 texts
 * go there in every case.
 */
int esdmnc_error(const esdm_error *err, const char *what, const char *name);
/** The same, always printed: for a lost commit. @param what NULL: the message says all of it. */
int esdmnc_error_loud(const esdm_error *err, const char *what, const char *name);

/** esdmnc_error() for reading, writing and committing data: ENOENT, EACCES and ETIMEDOUT are a
 *  target's then, and printed as failing storage is. What is missing is NC_ETRUNC, not ENOENT. */
int esdmnc_error_data(const esdm_error *err, const char *what, const char *name);
/** esdmnc_error_data() of a read: a conflict is a source that was changed, NC_ECANTREAD. */
int esdmnc_error_read(const esdm_error *err, const char *name);

/** Why the site cannot be opened; printed once as long as it is the same, unless another rank does
 * (not `loud`). Under the session's lock. */
int esdmnc_error_site(const esdm_error *err, bool loud);
/** esdmnc_error(), printed with $ESDM_DEBUG alone. */
int esdmnc_error_quiet(const esdm_error *err, const char *what, const char *name);

/* ---- ranks.c ------------------------------------------------------------------------------- */

/** The ranks of a parallel file, borrowed; NULL: it is not one. */
static inline esdm_comm *
esdmnc_comm(const esdmnc_file *file)
{
    return file->container != NULL ? esdm_container_comm(file->container) : NULL;
}
/** Collective on parallel files, else nothing: NC_NOERR when all ranks have that, else what the
 *  lowest failing rank has. */
int esdmnc_agree(const esdmnc_file *file, int rc);
/** Collective on parallel files: whether it is so on any rank. NC_EMPI. */
int esdmnc_any(const esdmnc_file *file, bool mine, bool *ret_any);
/** esdmnc_error_loud() for what all ranks of a file get: one of them prints it. */
int esdmnc_error_of_all(const esdmnc_file *file, const esdm_error *err, const char *what);

/** Whether transfers of a variable are collective. */
static inline bool
esdmnc_is_collective(const esdmnc_file *file, const esdmnc_var *var)
{
    return var->collective || file->collective;
}
/** Whether this process ever had a parallel file. */
bool esdmnc_parallel_seen(void);

/* ---- names.c ------------------------------------------------------------------------------- */

#define ESDMNC_NAME_BYTES (NC_MAX_NAME + 1)
/** Checks netCDF's rules and writes the NFC form. `instance` is the libnetcdf copy that asks.
 *  NC_EBADNAME, NC_EMAXNAME, NC_EINVAL for NULL. */
int esdmnc_name_check(int instance, const char *name, char *ret_normalised);
/** Copies a name to a caller who has ESDMNC_NAME_BYTES, as netCDF asks for. */
void esdmnc_name_copy(const char *name, char *ret_name);
/** NFC alone, for looking names up: what cannot be a name gives NC_EBADNAME or NC_EMAXNAME. */
int esdmnc_name_normalise(int instance, const char *name, char *ret_normalised);

/* ---- name_room.c --------------------------------------------------------------------------- */

/** Whether a new name fits in data mode of the classic model. `owner` is the dimension, the
 * dataset, or the list of the attribute of that name (NULL for the others). */
bool esdmnc_room_suffices(const esdmnc_file *file, const void *owner, const char *attribute,
                          const char *old_name, const char *new_name);
/** To be called before the old name is gone. NC_ENOMEM. */
int esdmnc_room_renamed(esdmnc_file *file, const void *owner, bool is_attribute,
                        const char *old_name, const char *new_name);
/** The attribute was removed. */
void esdmnc_room_forget(esdmnc_file *file, const void *owner, const char *attribute);
/** Owners do not exist any more. */
void esdmnc_rooms_clear(esdmnc_file *file);

/* ---- file.c -------------------------------------------------------------------------------- */

/** Makes sure that structure may change: enters define mode, or NC_ENOTINDEFINE (classic model),
 *  NC_EPERM. */
int esdmnc_need_define(esdmnc_file *file);
/** Leaves define mode for data access: NC_EINDEFINE in the classic model. */
int esdmnc_need_data(esdmnc_file *file);
/** What nc_enddef() checks and does. */
int esdmnc_leave_define(esdmnc_file *file, const esdmnc_padding *padding);

/* ---- classic.c ----------------------------------------------------------------------------- */

/** Types the format can hold: NC_EBADTYPE or NC_ESTRICTNC3. */
int esdmnc_classic_type(const esdmnc_file *file, nc_type type);
/** Largest length of a limited dimension in the format: NC_EDIMSIZE. */
int esdmnc_classic_length(const esdmnc_file *file, size_t length);
/** CDF-1/2/5 limits on the sizes of variables: NC_EVARSIZE. */
int esdmnc_classic_sizes(esdmnc_file *file, const esdmnc_padding *padding);
/** NC_EVARSIZE when a variable of a CDF-1 file would begin beyond 2 GiB. */
int esdmnc_classic_layout(esdmnc_file *file, const esdmnc_padding *padding);
/** Whether it grows along the record dimension. */
bool esdmnc_classic_is_record(const esdmnc_var *var);
/** Bytes of the variable in a file, or of one record of it; UINT64_MAX when that overflows. */
uint64_t esdmnc_classic_bytes(const esdmnc_var *var);

/* ---- types.c, usertypes.c, values.c --------------------------------------------------------- */

static inline bool
esdmnc_type_is_atomic(nc_type type)
{
    return type >= NC_BYTE && type <= NC_STRING;
}

static inline bool
esdmnc_type_is_number(nc_type type)
{
    return esdmnc_type_is_atomic(type) && type != NC_CHAR && type != NC_STRING;
}

static inline bool
esdmnc_type_is_text(nc_type type)
{
    return type == NC_CHAR || type == NC_STRING;
}

/** The type to hand to ESDM as memory type: NetCDF's old bytes are neither signed nor unsigned. */
nc_type esdmnc_memory_type(const esdmnc_file *file, nc_type file_type, nc_type memory_type);

/** The rules of the file's format. */
esdm_conversion esdmnc_conversion(const esdmnc_file *file);
/** ESDM's number of a type; ESDM_TYPE_NONE when there is no such type in the file. */
esdm_type esdmnc_type_to_esdm(const esdmnc_file *file, nc_type type);
nc_type esdmnc_type_from_esdm(const esdmnc_file *file, esdm_type type);
/** Bytes of an element in memory; 0 for an unknown type. */
size_t esdmnc_type_bytes(const esdmnc_file *file, nc_type type);
/** Brings the numbers up to the container's types; those that were given stay. */
int esdmnc_types_index(esdmnc_file *file);
/** Whether elements hold neither texts nor arrays. NC_EBADTYPE for unknown types. */
int esdmnc_type_is_fixed(const esdmnc_file *file, nc_type type, bool *ret_is_fixed);
/** What nc_enddef() asks of types. */
int esdmnc_types_complete(const esdmnc_file *file);

/* ---- groups.c, vars.c ---------------------------------------------------------------------- */

/** NC_ENAMEINUSE when a group, variable or type of that (normalised) name is in the group. */
int esdmnc_name_free(const esdm_group *group, const char *name);

/* ---- file.c: hints of a container (those of variables are in storage.h) -----------------------
 */

#define ESDMNC_HINT_FORMAT "netcdf.format" /* "netcdf4", "classic", … */

/* ---- fill_records.c: netCDF-3 --------------------------------------------------------------- */

/** NC_EBADTYPE when define mode cannot end because of a `_FillValue`. */
int esdmnc_fill_check(const esdmnc_file *file);
/** Gives new variables the fill value that their attribute states; when define mode ends. */
int esdmnc_fill_settle(const esdmnc_file *file);
/** Fills records `from` … `to`-1 of all variables before one of them is written; NC_EBADTYPE. */
int esdmnc_fill_records(esdmnc_file *file, uint64_t from, uint64_t to);

/* ---- atts.c, att_fill.c, att_hidden.c ------------------------------------------------------ */

/** An attribute that netCDF-4 files have without listing it (`_IsNetcdf4`). */
typedef struct esdmnc_hidden {
    nc_type type;
    size_t count;
    const void *values;
} esdmnc_hidden;
bool esdmnc_hidden_find(const esdmnc_file *file, const esdmnc_group *group, int varid,
                        const char *name, esdmnc_hidden *ret);
/** NC_ENAMEINUSE for names that netCDF-4 keeps for itself. */
int esdmnc_hidden_check(const esdmnc_file *file, const esdmnc_group *group, int varid,
                        const char *name);

#endif
