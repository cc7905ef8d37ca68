/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TOOLS_COMMON_H
#define ESDM_TOOLS_COMMON_H

/**
 * @file
 * What the command-line tools share. One thread at a time; everything ends with the process.
 */

#include <glib.h>
#include <jansson.h>
#include <stdatomic.h>
#include <stdbool.h>

#include "common/json_read.h"
#include "esdm/esdm.h"
#include "esdm/upkeep.h"

/** Exit statuses of all tools; the help text lists them. */
typedef enum tool_exit {
    TOOL_OK = 0,
    TOOL_FAILED = 1,
    TOOL_USAGE = 2,
    TOOL_NOT_FOUND = 3,
    TOOL_REFUSED = 4,
    TOOL_DAMAGED = 5
} tool_exit;

/** The exit status that tells of a library status. */
tool_exit tool_exit_of(esdm_status status);

/** "NAME: text" on standard error. */
void tool_error(const char *format, ...) G_GNUC_PRINTF(1, 2);
/** The same for a library error; returns its exit status. */
tool_exit tool_fail(esdm_status status, const esdm_error *err);
/** Fills an error as the library does; returns the status. @param err may be NULL. */
esdm_status tool_error_set(esdm_error *err, esdm_status status, const char *format, ...)
    G_GNUC_PRINTF(3, 4);

/* ---- options (common/options.c) ----------------------------------------------------------- */

/** A tool's help text. Static. */
typedef struct tool_help {
    const char *name;        /**< "esdm-ls" */
    const char *arguments;   /**< after "[OPTION…]": "[PREFIX…]" */
    const char *description; /**< paragraphs, each line at most 79 columns */
    const char *statuses;    /**< exit statuses; NULL: those of all tools */
    const char *examples;    /**< lines */
    const char *see_also;    /**< "esdm-stat, esdm-find" */
} tool_help;

/** Options that all tools know. */
typedef struct tool_globals {
    const char *name;
    const char *examples; /**< of its help; NULL before tool_parse() */
    char *config;         /**< --config, NULL: search */
    gboolean json;
} tool_globals;
extern tool_globals tool;

/**
 * Parses the command line. --help and --version end the process with status 0, a wrong option
 * with TOOL_USAGE. What remains is in argv[1 … argc-1].
 * @param entries the tool's own options; terminated by {NULL}.
 */
void tool_parse(const tool_help *help, const GOptionEntry *entries, int *argc, char ***argv);
/** "0.1.0" */
const char *tool_version(void);
/** Message, a hint at --help, and TOOL_USAGE. */
tool_exit tool_usage(const char *format, ...) G_GNUC_PRINTF(1, 2);

/** One line on standard error when opening the session made the default site; none with --json. */
void tool_tell_made(const esdm_session *session);
/** One line on standard error when former containers were freed to make room. */
void tool_tell_relieved(const esdm_session *session);
/** Opens the site; prints the error. Only those that write make the default site.
 *  @param ret_session owned. */
tool_exit tool_session(bool read_only, esdm_session **ret_session);
/** The same for what changes containers that are there: it makes no site. TOOL_NOT_FOUND, with a
 * line on standard error: nobody has used the default site yet. */
tool_exit tool_session_made(bool read_only, esdm_session **ret_session);
/** Whether nobody has used the default site yet, and no other is configured; says so. */
bool tool_no_site(void);
/** For reading. NULL, with a line on standard error: nobody has used the default site yet. */
tool_exit tool_session_if_made(esdm_session **ret_session);
/** Before a question for times, boxes or values: widens what the index has of saved virtual
 *  containers (esdm_virtual_follow()), where some wait for it and this user may. */
void tool_follow(esdm_session *session);

/* ---- chance ------------------------------------------------------------------------------- */

/** Numbers that look random and are the same everywhere: a state goes to the next one, each of
 *  which is a hash of it (SplitMix64's finaliser; Steele, Lea, Flood 2014). */
static inline uint64_t
tool_scramble(uint64_t x)
{
    x += UINT64_C(0x9e3779b97f4a7c15);
    x = (x ^ (x >> 30)) * UINT64_C(0xbf58476d1ce4e5b9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94d049bb133111eb);
    return x ^ (x >> 31);
}
/** 0 ... 1, without 1, from a scrambled number. */
static inline double
tool_unit(uint64_t scrambled)
{
    return (double) (scrambled >> 11) * 0x1p-53;
}

/** Order of doubles, for g_array_sort() and qsort(). */
gint tool_by_number(gconstpointer a, gconstpointer b);

/* ---- containers --------------------------------------------------------------------------- */

/** A container on the command line: what follows "esdm:". "esdm://" is left to the library. */
const char *tool_container(const char *argument);
/** Normalises it. Containers of routed folders are called as the paths of their files, at first:
 * the path of a file that stands for another one is ESDM_EINVAL, with the name to say. */
esdm_status tool_normalise(const char *argument, char ret_name[ESDM_CONTAINER_NAME_MAX + 1],
                           esdm_error *err);
/** "There is no container", and what there is instead when some lie below the name. */
tool_exit tool_absent(esdm_session *session, const char *name);

/** A container that was replaced or removed since. */
typedef struct tool_former {
    char base[ESDM_CONTAINER_NAME_MAX + 1]; /* its name */
    char id[16];                            /* for esdm-restore --id */
    uint64_t time_ns;                       /* when it lost the name */
    bool removed;                           /* else it was replaced */
} tool_former;
/** Whether a name in time says such a one (common/former.c). */
bool tool_former_of(esdm_session *session, const char *name, tool_former *ret_former);
/** Whether a container is called exactly so. */
bool tool_is_container(esdm_session *session, const char *name);

/** Who made the newest commit of a container; owned, NULL: not known. */
char *tool_owner(esdm_session *session, const char *name);

/** Names on the command line as the catalogue has them; owned. NULL, and *ret_exit, when one is
 *  wrong. */
GPtrArray *tool_names(int argc, char **argv, tool_exit *ret_exit);

/* ---- tags and branches (common/marks.c) ------------------------------------------------------ */

/** What a tool of these does. `list` is what --json prints. */
typedef struct tool_marks {
    tool_exit (*list_all)(esdm_session *session, const char *prefix, json_t *list);
    tool_exit (*list)(esdm_session *session, const char *container, json_t *list);
    tool_exit (*change)(esdm_session *session, const char *container, const char *mark,
                        json_t *list);
} tool_marks;
/** Lists those of all containers below argv[1], or of argv[1]; else changes each that is named from
 *  argv[2] on. @return the first failure. */
tool_exit tool_marks_run(const tool_marks *marks, esdm_session *session, int argc, char **argv,
                         bool all, json_t *list);

/* ---- names (common/names.c) --------------------------------------------------------------- */

/** How much a word looks like one that is known: more for those that are nearer; 0: not at all. */
guint tool_likeness(const char *word, const char *known);
/** Splits 'NAME: QUANTITIES' of --accuracy at the first colon. false: it is not of that form, or
 *  one of both is empty. @param ret_pattern owned. @param ret_text borrowed from the option. */
bool tool_wish_split(const char *option, char **ret_pattern, const char **ret_text);

/* ---- stubs (common/stub.c) ---------------------------------------------------------------- */

/** A stub is no larger (netcdf-plugin/router/stub.c). */
#define TOOL_STUB_BYTES 8192
/** Names of containers in the bytes of what is, or looks like, a stub. @param visit owns them.
 *  @return how many. */
size_t tool_stub_names(const unsigned char *bytes, size_t size,
                       void (*visit)(char *name, void *user), void *user);
/** The name that a file tells which stands for a container: owned; NULL when it is no such file.
 *  Another container may have it now: tool_stub_container(). */
char *tool_stub(const char *path);
/** The same of a copy of such a file alone: NULL for the original, too. */
char *tool_stub_copy(const char *path);
/** The same of the original alone, wherever it was moved: NULL for copies of it, too.
 *  @param ret_number which one it is; 0: it does not tell. */
char *tool_stub_original(const char *path, guint64 *ret_number);
/** The container that a file stands for, as programs see it. Of a copy of a stub that is the one it
 *  was copied for: a former one, with a line on standard error, where it was replaced since.
 *  @param ret_name what opens it; owned; NULL, with ESDM_OK: it is no such file. ESDM_ENOENT: the
 *  former one is not kept. */
esdm_status tool_stub_container(esdm_session *session, const char *path, char **ret_name,
                                esdm_error *err);
/** The container that an argument names, as the catalogue has it: a name, esdm:NAME, or a file that
 *  stands for one (tool_stub_container()). */
esdm_status tool_container_name(esdm_session *session, const char *argument,
                                char ret_name[ESDM_CONTAINER_NAME_MAX + 1], esdm_error *err);
/** Whether somebody has written to a container after a time, beside what upkeep commits
 * (esdm-compact and the like, which leave its values as they are). */
typedef enum tool_written {
    TOOL_WRITTEN_NOT,     /**< nobody has, or the container cannot be read */
    TOOL_WRITTEN_PERHAPS, /**< upkeep has; what was before that is not kept any more */
    TOOL_WRITTEN_YES
} tool_written;
/** @param since_ns, ret_written_ns since 1970-01-01 UTC; the latter of the newest such snapshot. */
tool_written tool_written_since(esdm_session *session, const char *name, uint64_t since_ns,
                                uint64_t *ret_written_ns);
/** Which container a stub stands for, and the path at which it was made. false: it is no stub, or
 *  does not tell; `*ret_path` may be set then. Both owned. @param ret_number 0: it has none. */
bool tool_stub_origin(const unsigned char *bytes, size_t size, char **ret_container,
                      char **ret_path, guint64 *ret_number);

/* ---- output (common.c, common/json.c) ----------------------------------------------------- */

/** "12h" in seconds; without a letter they are. false: not such a text. */
bool tool_age(const char *text, uint64_t *ret_seconds);
/** "1.5 MiB"; owned, g_free(). */
char *tool_bytes(uint64_t bytes);
/** "500MB", "2 TB", "1.5GiB", "4096": k, M, G, T, P for thousands, Ki, Mi, Gi, Ti, Pi for 1024;
 * with or without a B. @return false: it is no size, or 0. */
bool tool_parse_bytes(const char *text, uint64_t *ret_bytes);
/** "2026-03-01 12:00:05" in local time; owned. */
char *tool_time(uint64_t time_ns);
/** "2026-03-01T12:00:05.123456789Z"; owned. */
char *tool_time_iso(uint64_t time_ns);
/** The text with control characters as \x.., so that names cannot garble a terminal; owned. */
char *tool_printable(const char *text);
/** As text of HTML and SVG; what is no UTF-8 is replaced. Owned, g_free(). */
char *tool_html(const char *text);
/** From here on all that is printed on stdout is printable, but JSON (common/output.c). Called by
 *  tool_parse(). */
void tool_output_start(void);
/** The tool prints names that end with NUL, byte by byte. */
void tool_output_exact(void);
/** Writes many bytes behind what was printed, without looking at them: graphic ASCII characters and
 *  ends of lines. One thread at a time, which may be another one each time. @return whether it
 * could; if not, tool_finish() says so. */
bool tool_output_plain(const char *text, size_t bytes);
/** errno of a tool_output_plain() that failed; 0: none did. */
int tool_output_failed(void);
/** Asks on the terminal; false without one. Only "y" and "yes" agree. */
bool tool_confirm(const char *question);
/** Whether questions can be asked. */
bool tool_can_ask(void);
/** Flushes standard output; a failure (full disk) becomes TOOL_FAILED. */
tool_exit tool_finish(tool_exit status);

/** Like json_pack() and the setters, but a failure (no memory) ends the process. Steals `value`. */
void tool_json_set(json_t *object, const char *key, json_t *value);
void tool_json_append(json_t *array, json_t *value);
/** A JSON string; bytes that are not UTF-8 become U+FFFD. */
json_t *tool_json_text(const char *text);
/** Above INT64_MAX a text. */
json_t *tool_json_u64(uint64_t value);
/** Prints and frees it. */
void tool_json_print(json_t *root);
/** With --json prints an object that has the list as its one member. Frees it. */
void tool_json_print_list(const char *key, json_t *list);
/** `count` values of an attribute: texts for char, numbers or texts in a list otherwise. */
json_t *tool_json_values(esdm_type type, uint64_t count, const void *values);

/* ---- folders (common/folder.c) -------------------------------------------------------------- */

/** The order of texts by their bytes, for g_ptr_array_sort(). */
gint tool_by_text(gconstpointer a, gconstpointer b);
/** Names of what lies in a folder, in this order, which is the same each time; owned.
 *  NULL: it cannot be read. */
GPtrArray *tool_folder_names(const char *folder, GError **error);

/* ---- records of programs (common/records.c) -------------------------------------------------- */

/** Lines of JSON of a file, or of a database as in esdm_records_read(); owned. NULL: they cannot be
 *  read, which was told; `ret_exit` is then what the tool ends with. */
char *tool_records_text(const char *source, tool_exit *ret_exit);

/* ---- runs of the site (common/runs.c) ---------------------------------------------------------
 */

/** What a run did, as the site keeps it. Its user says so: it need not be true. */
typedef struct tool_run {
    uint64_t user; /**< numeric id */
    gint64 started_ns;
    double seconds;
    const char *program; /**< borrowed from the line */
    json_t *line;        /**< "spans" is an array */
} tool_run;

typedef struct tool_moved {
    double bytes, seconds, count;
} tool_moved;

/** The middle one of some values, and the quarters below and above it. */
typedef struct tool_usual {
    guint count;
    double middle, low, high;
} tool_usual;

#define TOOL_RUNS_LEAST 5u /**< before something is called unusual */

/** Runs of a program (NULL: of all) by all users that may be read, in order of time; owned. Of each
 *  user the last 2,000, of all users 20,000, each one's share then being smaller.
 *  @param ret_exit NULL: nothing is told when there are none to be had, and a folder that does not
 *         answer is waited for 5 s, with a warning; else the exit status, and a folder of which
 *         nothing more has come for 10 s is an error.
 *  NULL: the site keeps none. */
GPtrArray *tool_runs(const char *program, tool_exit *ret_exit);
/** Whether tool_runs() has waited for the folder in vain. */
bool tool_runs_are_silent(void);
/** Of one kind ("fetch", "file-read", …), without what no storage can do. @param target NULL: of
 * all. */
tool_moved tool_run_moved(const tool_run *run, const char *kind, const char *target);
guint tool_run_users(const GPtrArray *runs);
/** @param values of double; sorted by this. */
tool_usual tool_usual_of(GArray *values);
/** Far from most of the earlier ones, of which there are enough, and by half at least. */
bool tool_is_unusual(const tool_usual *usual, double value);

/* ---- programs (common/program.c) ------------------------------------------------------------ */

/** The path of another tool, which lies beside this one, else its name alone; owned. */
char *tool_beside(const char *name);
/** The last `most` bytes of a file at the most, as a text; owned. */
char *tool_tail(int fd, gsize most);

/* ---- time limits (common/in_time.c) -------------------------------------------------------- */

/** Runs a function in a thread of its own, without signals, for so many seconds at most.
 *  @param free what `run` was given, by that thread, when it ends too late.
 *  @param progress of `data`; while it changes the time begins anew; NULL: it does not.
 *  @return true: it has ended, and `data` is the caller's. Without a thread it runs in line. */
bool tool_in_time(void (*run)(void *data), void *data, GDestroyNotify free, double seconds,
                  const atomic_uint *progress);

/* ---- progress (common/progress.c) --------------------------------------------------------- */

typedef struct tool_progress {
    bool shown;        /**< a terminal, and not switched off */
    gint64 started_us; /**< monotonic */
    gint64 drawn_us;
} tool_progress;

/** @param wanted false: never draws. */
void tool_progress_start(tool_progress *progress, bool wanted);
/** Draws at most ten times a second. @param share 0 … 1; negative: nobody knows, and
 * there is no bar. @param text behind the bar. */
void tool_progress_show(tool_progress *progress, double share, const char *text);
/** Takes the bar away. */
void tool_progress_end(tool_progress *progress);
double tool_progress_seconds(const tool_progress *progress);

/* ---- what upkeep tells (common/findings.c) ------------------------------------------------- */

/** The `user` of the options of esdm_fsck(), esdm_gc() and esdm_drain(), whose findings and
 * progress go to the two functions below. */
typedef struct tool_watch {
    json_t *findings; /**< owned, an array: with --json they are gathered, else printed */
    bool notes;       /**< print notes, too */
    tool_progress progress;
} tool_watch;
void tool_watch_start(tool_watch *watch, bool notes, bool progress);
/** @return the findings, owned by the caller. */
json_t *tool_watch_end(tool_watch *watch);
void tool_watch_finding(const esdm_finding *finding, void *watch);
void tool_watch_progress(double share, const char *container, void *watch);

/* ---- models (common/models.c) -------------------------------------------------------------- */

/** Prints for each target and direction that was measured which model placement goes by, and its
 *  error; with --json that is "models" of the object. */
void tool_models_tell(esdm_session *session, json_t *object);

#endif
