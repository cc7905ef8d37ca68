/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_RECIPE_H
#define ESDM_RECIPE_H

/**
 * @file
 * What the files of this tool share. A recipe is a JSON object, kept as the hint RECIPE_HINT of the
 * container that it makes:
 *
 *     {"version": 1, "program": ["ncra", "esdm://in.nc", "esdm://out.nc"], "directory":
 * "/home/ada", "environment": {"PATH": "…"}, "recorded": "2026-03-01T12:00:05Z", "seconds": 1.2,
 *      "inputs": [{"container": "in.nc", "as": "in.nc@7", "digest": "esdm1:…"},
 *                 {"file": "/usr/bin/ncra", "bytes": 1, "sha256": "…"}],
 *      "files_written": [], "output": "out.nc", "digest": "esdm1:…",
 *      "ignored_attributes": ["history"],
 *      "tolerances": ["tas: abs=0.01 K"],
 *      "accepted": [{"digest": "esdm1:…", "when": "…", "machine": "…", "differences": [
 *          {"variable": "/tas", "different": 1, "beyond": 0, "largest": 1e-6}]}],
 *      "restored": {…}}
 *
 * A program that runs in an image has version 2, which older ESDM refuses, and
 *
 *      "image": {"folder": "/images/cdo", "bytes": 1, "sha256": "…"}, "visible": ["/data/grid.txt"]
 *
 * "accepted" are recomputations whose values were all compared with the recorded ones, and are
 * within the tolerances; "restored" is the one whose values the container has now.
 *
 * One thread; what is made stays until the end, unless said.
 */

#include "common/common.h"
#include "esdm/digest.h"

#define RECIPE_HINT "recipe"
/** Versions of its form: of programs of this machine, and of those in images. */
#define RECIPE_VERSION       1
#define RECIPE_VERSION_IMAGE 2

/** A run that was recorded, or is run again. */
typedef struct recipe_run {
    char *folder;      /* owned; temporary, with what the run leaves */
    char *log;         /* what it said last; owned */
    gint64 started_us; /* since 1970 */
    double seconds;
    int status; /* exit status; -1: ended by a signal, or by its limits */
} recipe_run;

/** An image that a program runs in, and what is visible there. All borrowed. */
typedef struct recipe_box {
    const json_t *image;      /* of recipe_image() */
    const char *directory;    /* in which it runs */
    bool writes_there;        /* it may write to that */
    const char *config;       /* of the site; NULL: none */
    const GPtrArray *visible; /* more files and folders, to be read; NULL: none */
    const json_t *inputs;     /* files are to be read; NULL: none */
    const GPtrArray *folders; /* what it may write to */
} recipe_box;

/** Limits of a run. */
typedef struct recipe_limits {
    double seconds;           /* 0: none */
    const GPtrArray *folders; /* what it may write to; NULL: all */
    const recipe_box *box; /* it runs in this image, which bounds what it writes to; NULL: none */
} recipe_limits;

/* ---- run.c ---------------------------------------------------------------------------------- */

/** A folder of its own for one run. */
tool_exit recipe_folder(recipe_run *run);
/**
 * Runs a program under esdm-run.
 * @param environment of the program; NULL-terminated "NAME=VALUE". @param directory NULL: this one.
 * @param records also leave records of files in the folder.
 * @param shows what it says goes to the terminal. */
tool_exit recipe_execute(recipe_run *run, char **program, char **environment, const char *directory,
                         bool records, bool shows, recipe_limits limits);
void recipe_run_clear(recipe_run *run);

/* ---- sandbox.c ------------------------------------------------------------------------------ */

/** What a recipe may write to: the site's directories, the folder of the run, some devices.
 *  @param ret_folders owned. */
tool_exit recipe_sandbox(const recipe_run *run, GPtrArray **ret_folders);
/** Whether the kernel can hold programs to that. */
bool recipe_sandbox_exists(void);
/** This process, and all that it becomes and starts, writes to nothing else from now on; where the
 *  kernel cannot do that, nothing happens. false: it failed; errno tells. */
bool recipe_sandbox_enter(const GPtrArray *folders);

/* ---- image.c -------------------------------------------------------------------------------- */

/** {"folder": …, "bytes": …, "sha256": …} of an unpacked root file system, {"file": …} of a packed
 *  one. The digest of a folder is of the names, kinds, rights and contents below it, but for what a
 *  run has of its own (/proc, /tmp). NULL: it cannot be one, which is told. A new reference. */
json_t *recipe_image(const char *path, tool_exit *ret_exit);
/** Borrowed; NULL: there is none. */
const char *recipe_image_path(const json_t *image);
/** Whether a folder at the top of an image is not the image's when it runs. */
bool recipe_image_is_own(const char *name);
/** Whether it is the root of this machine, which changes all the time. */
bool recipe_image_is_machine(const char *path);
/** Whether it is what it was; tells when not. */
tool_exit recipe_image_check(const json_t *image);

/* ---- box.c ---------------------------------------------------------------------------------- */

/** The words before the program.
 *  @param ret_arguments owned. @param ret_esdm_run how esdm-run is called inside; owned.
 *  @return TOOL_FAILED: nothing is installed that runs such images, which is told. */
tool_exit recipe_box_arguments(const recipe_box *box, GPtrArray **ret_arguments,
                               char **ret_esdm_run);

/* ---- record.c ------------------------------------------------------------------------------- */

/** What is recorded beside the program; each NULL where nothing is stated. */
typedef struct recipe_wishes {
    char **ignored;    /* names of attributes */
    char **variables;  /* of the environment, that count beside the usual ones */
    char **tolerances; /* NAME: QUANTITIES */
    char **visible;    /* files and folders that are visible in the image */
    const char *image; /* in which the program runs */
} recipe_wishes;

/** Runs and records a program. */
tool_exit recipe_record(char **program, const recipe_wishes *wishes);

/* ---- files.c -------------------------------------------------------------------------------- */

/** Adds a file to the inputs, with its hash. */
tool_exit recipe_add_file(json_t *inputs, const char *path);
/** The files of the records in a folder: those that were read become inputs. */
tool_exit recipe_add_files(const recipe_run *run, json_t *inputs, json_t *written);

/* ---- inputs.c ------------------------------------------------------------------------------- */

/** What a terminal shows while much is read for a digest. */
typedef struct recipe_hashing {
    const char *what; /* borrowed */
    guint64 bytes;    /* so far, of all files */
    tool_progress progress;
} recipe_hashing;
/** tool_progress_end() ends it. */
void recipe_hashing_begin(recipe_hashing *hashing, const char *what);
/** {"file": …, "bytes": …, "sha256": …}; NULL: it cannot be read, which is told.
 *  @param hashing NULL: nothing is shown. */
json_t *recipe_file(const char *path, recipe_hashing *hashing);
/** Digest of a container, "run.nc" or "run.nc@7". */
tool_exit recipe_digest(esdm_session *session, const char *name, char ret[ESDM_DIGEST_BYTES]);
/** Whether all inputs are what they were; tells those that are not.
 *  @param ret_pins receives lines for $ESDM_NC_REPLAY. */
tool_exit recipe_check_inputs(esdm_session *session, const json_t *recipe, GString *ret_pins);
/** Keeps the snapshots that values are computed from, by tags "recipe-…", which stay; tells what
 * cannot be kept. */
tool_exit recipe_hold_inputs(esdm_session *session, const json_t *recipe);

/* ---- replay.c ------------------------------------------------------------------------------- */

/** A recipe that was run again. */
typedef struct recipe_replay {
    char *prefix; /* below which what it made lies */
    char *made;   /* the container there that stands for the output */
    double seconds;
    bool same;           /* its digest is that of the recipe */
    bool accepted;       /* it is that of a recomputation whose values were compared before */
    bool within;         /* all values were compared now, and are within the tolerances */
    bool others_differ;  /* they would be, but for what has no tolerance */
    json_t *differences; /* owned; of variables that were compared; NULL: none were */
    char digest[ESDM_DIGEST_BYTES];
} recipe_replay;

/** Whether what was made counts as the data. */
static inline bool
recipe_is_right(const recipe_replay *r)
{
    return r->same || r->accepted || r->within;
}

/** The configuration of this call's site, wherever the program runs. Owned; NULL: the embedded
 *  default. */
char *recipe_site(void);
/** Adds the name to a GPtrArray of texts: for esdm_container_list(). */
bool recipe_take_name(const esdm_container_info *info, void *user);
/** The recipe of a container; NULL: it has none, which is told. A new reference. */
json_t *recipe_of(esdm_session *session, const char *name, tool_exit *ret_exit);
/** Runs it again below a prefix. @param force also when it would write plain files. */
tool_exit recipe_run_again(esdm_session *session, const char *name, const json_t *recipe,
                           bool force, recipe_replay *ret);
/** Names what was made so that it is listed and stays: without the '.' before it. */
tool_exit recipe_replay_keep(esdm_session *session, recipe_replay *replay);
/** Removes what was made. */
void recipe_replay_clear(esdm_session *session, recipe_replay *replay);
/** Gives a container its recipe. */
tool_exit recipe_keep(esdm_session *session, const char *name, const json_t *recipe);

/** Whether a digest is the recorded one, or that of an accepted recomputation. */
bool recipe_knows(const json_t *recipe, const char *digest);
/** Notes a recomputation whose values were compared. */
tool_exit recipe_accept(esdm_session *session, const char *name, json_t *recipe,
                        const recipe_replay *replay);
/** The accepted recomputation of a digest; NULL: none. Borrowed. */
json_t *recipe_accepted(const json_t *recipe, const char *digest);

/* ---- tolerance.c ---------------------------------------------------------------------------- */

/** Whether one of --tolerance is wrong, which is told. */
bool recipe_tolerances_wrong(char **options);
/** Whether they can hold for the variables of a container; what cannot is told.
 *  @param used set to true for those that a variable matches. */
tool_exit recipe_tolerances_fit(esdm_session *session, const char *name, const json_t *tolerances,
                                bool *used);
/** Compares all values that have a tolerance with those of the container, and all else bit for bit:
 *  fills in `within`, `others_differ` and `differences`. */
tool_exit recipe_compare_values(esdm_session *session, const char *name, const json_t *recipe,
                                recipe_replay *replay);

/* ---- propose.c ------------------------------------------------------------------------------ */

/** What things cost, in any currency. */
typedef struct recipe_prices {
    double years;    /* for which values are kept */
    double storage;  /* of a TB for a year */
    double compute;  /* of an hour */
    double readings; /* in all these years, of each container */
} recipe_prices;

/** Of keeping so many bytes. */
static inline double
recipe_keeping(const recipe_prices *prices, guint64 bytes)
{
    return (double) bytes / 1e12 * prices->storage * prices->years;
}

/** Of running a recipe once. */
static inline double
recipe_computing(const recipe_prices *prices, const json_t *recipe)
{
    return json_number_value(json_object_get(recipe, "seconds")) / 3600 * prices->compute;
}

/** Prints which containers are worth to be dropped, those that save most first. Never one and what
 *  it is computed from. @param names containers, and folders of them; empty: all of the site. */
tool_exit recipe_propose(esdm_session *session, GPtrArray *names, const recipe_prices *prices);

/* ---- drop.c --------------------------------------------------------------------------------- */

/** Lets the values of large variables go; they must have been computed again before. */
tool_exit recipe_drop_values(esdm_session *session, const char *name, guint64 *ret_bytes);
/** Whether it has values that recipe_drop_values() lets go; small variables, and texts, stay. */
tool_exit recipe_find_droppable(esdm_session *session, const char *name, bool *ret_some);
/** Whether values of the container were let go. */
bool recipe_is_dropped(esdm_session *session, const char *name);

#endif
