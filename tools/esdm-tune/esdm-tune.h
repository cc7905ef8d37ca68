/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_TUNE_H
#define ESDM_TUNE_H

/**
 * @file
 * What the files of this tool share: parameters of a site, trials with them, and a model of the
 * time that a run takes. One thread; what is made stays until the end, unless said.
 */

#include "common/common.h"

#define TUNE_PARAMETERS 28u
#define TUNE_VALUES     12u

/* ---- what can be set (space.c) ------------------------------------------------------------- */

/** One member of the site configuration, or an option of esdm-run. */
typedef struct tune_parameter {
    const char *name;    /* "fragment" */
    const char *section; /* where it stands: "engine", "netcdf"; "targets": of each one on S3;
                          * "policies": of all containers; "esdm-run": an option; "hints": a hint
                          * for files by MPI, which is an option, too */
    const char *key;     /* its name there */
    bool category;       /* values have no order */
    guint count;
    char *texts[TUNE_VALUES]; /* "4M" */
    json_t *json[TUNE_VALUES];
    double x[TUNE_VALUES];        /* the number, of codecs 0 */
    double position[TUNE_VALUES]; /* its logarithm between -1, the least, and 1; of codecs 0 */
    guint current;                /* what the site has today */
    bool has_record;              /* of an earlier run, by which this one acts */
} tune_parameter;

/** Of each parameter the number of its value. */
typedef struct tune_setting {
    guint8 value[TUNE_PARAMETERS];
} tune_setting;

/** How a program is run. */
typedef struct tune_way {
    json_t *config;                      /* of the site; owned */
    char *options[TUNE_PARAMETERS + 1u]; /* of esdm-run, up to a NULL; owned */
} tune_way;

typedef struct tune_workload tune_workload;

typedef struct tune_space {
    json_t *config;      /* of the site, as it is */
    double memory_bytes; /* of it */
    guint count;
    tune_parameter parameters[TUNE_PARAMETERS];
} tune_space;

/**
 * @param config of the site; borrowed until the end.
 * @param wishes "fragment=1M,4M" or "fragment": these parameters alone, with these values; NULL:
 *        all. */
tool_exit tune_space_init(tune_space *space, json_t *config, char **wishes);
/** Whether more of it takes more memory, so that the least of those that are as fast is best. */
bool tune_is_memory(const tune_parameter *parameter);
/** Whether these parameters change anything for what is run; says why not. */
tool_exit tune_space_fits(const tune_space *space, const tune_workload *workload);
/** How many runs a setting needs before it is measured, as it acts by what earlier runs did; these
 *  are asked for once. */
guint tune_space_runs_before(tune_space *space, const tune_setting *setting);
/** Whether sites take it: fragments and what is gathered must fit into memory. */
bool tune_space_can_be(const tune_space *space, const tune_setting *setting);
/** How many settings there are. */
guint64 tune_space_size(const tune_space *space);
/** Of the number of a setting. */
tune_setting tune_space_at(const tune_space *space, guint64 number);
tune_setting tune_space_current(const tune_space *space);
bool tune_setting_equal(const tune_space *space, const tune_setting *a, const tune_setting *b);
/** The configuration with that setting; what is as today stays as it is. A new reference. */
json_t *tune_space_config(const tune_space *space, const tune_setting *setting);
/** That configuration, and options of esdm-run. */
tune_way tune_space_way(const tune_space *space, const tune_setting *setting);
void tune_way_clear(tune_way *way);
/** The value of a parameter, such as 4194304; NAN: it is not part of the space. */
double tune_space_number(const tune_space *space, const tune_setting *setting, const char *name);
const char *tune_space_text(const tune_space *space, const tune_setting *setting, const char *name);
/** "fragment 16M, threads 4": what is other than today; "as it is". Owned. */
char *tune_setting_text(const tune_space *space, const tune_setting *setting);

/* Over which targets writes are split (space_split.c). */
#define TUNE_SPLIT_ALL "all"
/** What the site states: "all", "flash+disk". @param ret_text owned. */
tool_exit tune_split_stated(const json_t *config, char **ret_text);
/** What is tried where nobody says which; NULL-terminated, owned. */
char **tune_split_values(const json_t *config);
/** Whether a text names targets of the site, and enough of them for its copies. */
bool tune_split_is(const json_t *config, const char *text);
void tune_split_set(json_t *config, const char *text);

/* Hints for files by MPI (space_hints.c). */
#define TUNE_HINTS     "hints" /* their section */
#define TUNE_HINT_NONE "unset" /* as the MPI has it */
#define TUNE_HINT_ANY  "mpi:"  /* before the name of one that has no name here */
bool tune_hint_is(const tune_parameter *parameter);
/** Whether it is a number of bytes, for which "4M" may stand. */
bool tune_hint_is_size(const char *name);
/** What names and values of hints may have beside letters and digits. */
#define TUNE_HINT_OTHERS "_-.:*/+"
/** Whether a text can be the name of a hint, or a value of one of that name, as esdm-run has it. */
bool tune_hint_is_name(const char *text);
bool tune_hint_is_value(const char *name, const char *text);
/** "--mpi-hint=KEY=VALUE"; owned. */
char *tune_hint_option(const tune_parameter *parameter, guint value);
/** Whether a run takes all hints of the longest setting; says why not. */
tool_exit tune_hints_fit(const tune_space *space);

/* ---- what is run (trial.c, kernel.c) -------------------------------------------------------- */

struct tune_workload {
    const char *kernel;      /* or NULL: a program, or a replay */
    guint64 kernel_bytes;    /* of values */
    const char *phase;       /* of a kernel: "write", "read", "both" */
    char **program;          /* NULL-terminated */
    char **records;          /* of a replay, NULL-terminated; or NULL: a program, a kernel */
    const char *config_path; /* of the site */
    char *trial_path;        /* owned; where trials have their configuration */
    double limit_s;          /* a trial is ended then; 0: none */
};

/** Where the program's command has esdm-run itself, behind its first word; 0: nowhere. */
guint tune_run_inside(const tune_workload *workload);
/** The command of a program with options of esdm-run, for who wants to repeat it. */
GPtrArray *tune_command(const tune_workload *workload, char *const *options);
/** Runs it once. @param ret_s how long it took; INFINITY when it failed
 *  or took too long. @return TOOL_OK also when the program failed, if `may_fail`. */
tool_exit tune_run(tune_workload *workload, const tune_way *way, bool may_fail, double *ret_s);
/** Whether somebody wants the search to end (SIGINT, SIGTERM). */
bool tune_stopped(void);
void tune_catch_signals(void);
/** Removes what trials have left. */
void tune_workload_clear(tune_workload *workload);

/** In the process of a trial: does what a kernel does and prints its seconds. */
tool_exit kernel_run(const char *kernel, const char *phase, guint64 bytes);
bool kernel_is_known(const char *kernel);
/** "vpic, vorpal, gcrm" */
const char *kernel_names(void);

/* ---- the model (model.c) -------------------------------------------------------------------- */

#define MODEL_FEATURES 320u /* all parameters, codecs of all values */

/** Bayesian linear regression of the logarithm of seconds, beside each of some guesses of what the
 *  load and its targets are like. */
typedef struct tune_model {
    guint features;
    double precision[MODEL_FEATURES][MODEL_FEATURES]; /* inverse covariance, then its factor */
    guint guesses;
    double *weights; /* owned; of each guess its `features` */
    double *shares;  /* owned; how likely each guess is */
    double noise;    /* deviation of the logarithm between runs of one setting */
} tune_model;

typedef struct tune_trial {
    tune_setting setting;
    double seconds;   /* INFINITY: it failed */
    double predicted; /* before it was run; NAN: nothing was predicted */
    bool known;       /* it was not run again: the genetic search had */
} tune_trial;

/** @return logarithm of the seconds that theory expects of a setting, if this guess is right. */
typedef double (*tune_prior)(const tune_space *space, const tune_setting *setting, void *user,
                             guint guess);
typedef struct tune_expectation {
    tune_prior prior; /* NULL: there is no theory */
    void *user;
    guint guesses; /* how many there are; 0: there is nothing to guess */
} tune_expectation;

void tune_model_fit(tune_model *model, const tune_space *space, const GArray *trials,
                    const tune_expectation *expectation);
/** Logarithm of the seconds of a setting, and its deviation without noise. */
double tune_model_predict(const tune_model *model, const tune_space *space,
                          const tune_setting *setting, const tune_expectation *expectation,
                          double *ret_deviation);
/** How much below `best` (a logarithm) it is expected to be, when it is run. */
double tune_model_gain(const tune_model *model, const tune_space *space,
                       const tune_setting *setting, const tune_expectation *expectation,
                       double best);

/** What the measured model of the site lets expect of a kernel (prior.c). */
typedef struct tune_theory tune_theory;
/** @param bytes that the run stores; 0: not known. NULL: the site was never measured. */
tune_theory *tune_theory_new(esdm_session *session, double bytes, bool writes, bool reads);
double tune_theory_prior(const tune_space *space, const tune_setting *setting, void *theory,
                         guint guess);
/** The same where nobody knows how large requests are, nor, without a theory, what targets are
 *  like: many guesses, of which the trials tell the likely ones (guess.c).
 *  @param theory or NULL; stays. */
tune_expectation tune_expect(const tune_space *space, const tune_theory *theory);
/** Whether what is expected depends on this parameter. */
bool tune_expects(const tune_parameter *parameter);

/* ---- the search (search.c) ------------------------------------------------------------------ */

typedef struct tune_search {
    tune_space *space;
    tune_workload *workload;
    tune_expectation expectation;
    guint trials_most;
    guint pairs;
    double minutes; /* 0: no limit */
    bool exhaustive;
    bool quiet;
    guint genetic_most; /* trials of a genetic search before it; 0: none */
    guint64 seed;       /* of that */
    GArray *known;      /* tune_trial; what that has run; NULL: nothing */
    tune_setting genetic_best;
    double genetic_ratio; /* time of what the model found / of that; NAN: not tested */
    gint64 started_us;
    GArray *trials; /* tune_trial */
    tune_model model;
    tune_setting best;
    /* Both one after the other, again and again: seconds of today's setting and of the best. */
    GArray *before; /* double */
    GArray *after;
    double ratio; /* median of after / before; 1: nothing better was found */
    bool better;  /* in the paired test */
} tune_search;

tool_exit tune_search_run(tune_search *search);
/** Runs a setting, unless it is known, and enters it. @param predicted NAN: nothing was. */
tool_exit tune_search_trial(tune_search *search, const tune_setting *setting, double predicted);
/** Whether it can be run, and was not. */
bool tune_search_can_run(const tune_search *search, const tune_setting *setting);
bool tune_search_has_time(const tune_search *search);

/* A genetic search for comparison (genetic.c): before the other one, then between both results,
 * then what it tells. */
tool_exit tune_genetic_run(tune_search *search);
tool_exit tune_genetic_compare(tune_search *search);
void tune_genetic_report(const tune_search *search);
json_t *tune_genetic_json(const tune_search *search);
/** Runs two settings in turn. @return TOOL_FAILED when a program failed. */
tool_exit tune_compare(tune_workload *workload, const tune_way *one, const tune_way *other,
                       guint pairs, bool quiet, GArray *ret_one, GArray *ret_other,
                       double *ret_ratio, bool *ret_better);

/** Learns from records and tells what; NULL-terminated (learn.c). */
tool_exit tune_learn(char **paths);
/** Teaches the site what requests in traces took, and tells what came of it (learn_site.c). */
tool_exit tune_learn_site(char **paths);
/** Tells which of several ways to take when, from a table (learn/learn.h). */
tool_exit tune_learn_choices(const char *path, guint choices, guint depth);

/** Compares runs of the site's programs before and after a change (look_back.c), and tells.
 *  TOOL_NOT_FOUND: too few of them. */
tool_exit tune_look_back(gint64 changed_ns, bool *ret_slower);

void tune_report(const tune_search *search);
json_t *tune_report_json(const tune_search *search);

#endif
