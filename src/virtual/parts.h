/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_VIRTUAL_PARTS_H
#define ESDM_VIRTUAL_PARTS_H

/** @file What the files of this layer share; see virtual/virtual.h. */

#include <pthread.h>

#include "base/buffer.h"
#include "base/ids.h"
#include "cf/calendar.h"
#include "site/site.h"
#include "virtual/virtual.h"

/** Members of one virtual container. */
#define ESDM__MEMBERS_MOST 20000u
/** Members that stay open when nobody reads them. */
#define ESDM__MEMBERS_OPEN 256u

/* ---- ask.c -------------------------------------------------------------------------------- */

typedef enum esdm__overlap {
    ESDM__OVERLAP_EQUAL, /* values must be equal */
    ESDM__OVERLAP_FIRST, /* the member that begins first wins */
    ESDM__OVERLAP_NEWEST /* the one that was committed last wins */
} esdm__overlap_rule;

/** A member that stays as it was. */
typedef struct esdm__pin {
    uint64_t snapshot;
    char uuid[ESDM__UUID_BYTES];
} esdm__pin;

typedef struct esdm__question {
    char **names;    /* of containers, sorted, each once; owned */
    esdm__pin *pins; /* owned; of each name; NULL: the newest snapshots */
    size_t count;
    esdm__overlap_rule overlap;
    bool fill_gaps;
    char *ensemble; /* owned; the attribute that a dimension is made of; NULL: none */
    char *accuracy; /* owned; how accurately data are read; NULL: as they are stored */
    char *across;   /* owned; attributes in which members may differ (origins.c); NULL: none */
    bool parted;    /* these are an element of a new dimension */
    char **without; /* owned; names or patterns of containers that are left out */
    size_t nwithout;
    char *
        *within; /* owned; likewise, and folders: what is in none of them is left out; none: all */
    size_t nwithin;
    size_t nelsewhere;     /* found, and left out by `within` */
    const uint64_t *among; /* borrowed while it is asked; the store's numbers of the containers that
                              are looked at, where the store can; NULL: all */
    size_t namong;
} esdm__question;

/* ---- expression.c ------------------------------------------------------------------------- */

/** Whether a part of a query is an expression of esdm-find, rather than attribute=value. */
bool esdm__part_is_expression(const char *part);
/** Leaves out the names that the expression does not find. @param first there are none yet: all
 *  that it finds. @return as esdm_find(). */
esdm_status esdm__question_narrow(esdm_session *session, const char *expression, bool first,
                                  esdm__question *question, esdm_error *err);
/** Why a query finds nothing, as esdm-find tells it: the first name that nothing has. @param text
 *  of the query, in which the conditions' names lie. @param ret_text "": each is known. */
void esdm__question_why(const esdm_session *session, const char *text,
                        const esdm_meta_condition *conditions, size_t count,
                        const char *const *expressions, size_t nexpressions, char *ret_text,
                        size_t bytes);

/** @param pins NULL, or the text that esdm__pins_write() made: then nothing is asked for. */
esdm_status esdm__question_ask(esdm_session *session, const char *query, const char *pins,
                               esdm__question *ret, esdm_error *err);
/** The same of some containers, by the store's numbers; others may be found as well. Nothing is no
 *  error, and saved queries are not left out. */
esdm_status esdm__question_ask_among(esdm_session *session, const char *query,
                                     const uint64_t *among, size_t namong, esdm__question *ret,
                                     esdm_error *err);
void esdm__question_clear(esdm__question *question);
/** Names of containers that are saved queries, sorted. @param ret cleared by the caller. */
esdm_status esdm__question_saved(esdm_session *session, esdm__question *ret, esdm_error *err);

/* ---- saved.c ------------------------------------------------------------------------------ */

/** Hints of a container that is a saved query. */
#define ESDM__SAVED_QUERY "virtual.query"
#define ESDM__SAVED_PINS  "virtual.members"
/** What was looked at when it was saved: without it, members may come from different runs. */
#define ESDM__SAVED_CHECKED "virtual.checked"

struct esdm__members;
/** One line for each member: snapshot, UUID, name. */
void esdm__pins_write(const struct esdm__members *members, esdm__buffer *text);
/** ESDM_ECORRUPT: that is no such text. */
esdm_status esdm__pins_read(const char *text, esdm__question *question, esdm_error *err);

/* ---- hull.c ------------------------------------------------------------------------------- */

/**
 * Enters times, box, levels and values of all members of a saved query into the index, as its own,
 * unless those that are there are of these members. Nothing where the index cannot be written to.
 * @param whole what the query opened. @param record of the saved query, which is at `snapshot`.
 * @param pinned members may be at older snapshots, which the index does not know.
 * @param again also where they are there. @param ret_stored others may have widened what was there
 *        by members that the whole has not: whoever asks then widens it by what is found by now.
 * @return ESDM_ECONFLICT: there is a newer snapshot.
 */
esdm_status esdm__hull_keep(const esdm_container *whole, uint64_t record, uint64_t snapshot,
                            bool pinned, bool again, bool *ret_stored, esdm_error *err);

struct esdm__virtual_member;
/**
 * Widens what the index has of a saved query by some of its members, at their newest snapshots,
 * unless it is of exactly these.
 * @param saved its record. @param ret_all nothing is done: all members have to be looked at.
 * @return ESDM_ECONFLICT: it was saved anew.
 */
esdm_status esdm__hull_widen(esdm_session *session, const char *name,
                             const esdm_meta_container *saved,
                             const struct esdm__virtual_member *members, size_t nmembers,
                             bool *ret_all, esdm_error *err);

/* ---- open.c ------------------------------------------------------------------------------- */

/** Opens what a question found. @param name of the handle. */
esdm_status esdm__virtual_open_question(esdm_session *session, const char *name,
                                        const esdm__question *question,
                                        esdm_container **ret_container, esdm_error *err);
/** As esdm__virtual_stat(). */
esdm_status esdm__virtual_stat_question(const esdm_session *session, const esdm__question *question,
                                        esdm_meta_container *ret_record, esdm_error *err);

/** The same of several, and of one that gets a new dimension. */
esdm_status esdm__virtual_open_joined(esdm_session *session, const char *name,
                                      const esdm__question *question,
                                      esdm_container **ret_container, esdm_error *err);

/* ---- bundles.c ---------------------------------------------------------------------------- */

/** Containers that have the same value of an attribute: they are put together first. */
typedef struct esdm__bundle {
    char *label; /* owned; the value as a text */
    double number;
    bool is_number;
    esdm__question question;
} esdm__bundle;

typedef struct esdm__bundles {
    esdm__bundle *items; /* owned; in the order of their values, each once */
    size_t count;
    char axis[ESDM_NAME_MAX + 1]; /* of rows of tiles: the dimension along which they follow */
} esdm__bundles;

/**
 * Sorts the containers of a question by the values of its attribute `ensemble`: numbers by size,
 * texts so that r2 is before r10. @param ret esdm__bundles_clear().
 * @return ESDM_EINVAL naming a container that has no value, or several.
 */
esdm_status esdm__bundles_by_label(esdm_session *session, const esdm__question *question,
                                   esdm__bundles *ret, esdm_error *err);
/** Opens container i of a question, as it is pinned or as it is now. */
esdm_status esdm__question_open(esdm_session *session, const esdm__question *question, size_t i,
                                esdm_container **ret, esdm_error *err);
/** The question for some of the containers. @param chosen `count` of them.
 *  @param ret empty; esdm__question_clear(), also after a failure. */
esdm_status esdm__question_part(const esdm__question *question, const size_t *chosen, size_t count,
                                esdm__question *ret, esdm_error *err);
/** Containers that differ along two dimensions or more: those with the same coordinates of one are
 * a row. @param ret as it was, without items, when they do not. tiles.c */
esdm_status esdm__bundles_by_tile(esdm_session *session, const esdm__question *question,
                                  esdm__bundles *ret, esdm_error *err);
/** Sorts the containers by the data variables that they have. @param ret as it was, without items,
 *  when all have the same ones, or two have some in common but not all. */
esdm_status esdm__bundles_by_variable(esdm_session *session, const esdm__question *question,
                                      esdm__bundles *ret, esdm_error *err);
void esdm__bundles_clear(esdm__bundles *bundles);

/* ---- members.c ---------------------------------------------------------------------------- */

typedef struct esdm__virtual_member {
    char *name;  /* owned; of several in one a text that tells people which */
    bool joined; /* several, put together: `open` as long as the whole is */
    uint64_t record;
    uint64_t snapshot;
    char uuid[ESDM__UUID_BYTES];
    uint64_t modified_ns;
    bool pinned;
    esdm_container *open; /* NULL: not now; this and the next two under the members' lock */
    uint32_t users;
    uint64_t used; /* when, by a counter */
} esdm__virtual_member;

typedef struct esdm__members {
    esdm_session *session; /* borrowed */
    esdm__virtual_member *items;
    size_t count;
    char *accuracy;       /* owned; set before others know the members, as in the question */
    pthread_mutex_t lock; /* a leaf lock; not held while a container is opened */
    size_t open;
    uint64_t clock;
} esdm__members;

/** ESDM_ECORRUPT: the container is gone, or another one has its name now. */
esdm_status esdm__pin_lost(const char *name, const esdm__pin *pin, esdm_error *err);
/** Finds and pins the newest snapshots. The members must be cleared also on failure.
 *  @param bundles of the question, one for each member; NULL: each container is one. */
esdm_status esdm__members_init(esdm__members *members, esdm_session *session,
                               const esdm__question *question, const esdm__bundles *bundles,
                               esdm_error *err);
/** The newest snapshots, by the catalogue alone: members are opened when they are used. As many as
 * can be open at once are pinned, others when they are used first. */
esdm_status esdm__members_expect(esdm__members *members, esdm_session *session,
                                 const esdm__question *question, esdm_error *err);
/** Visits the containers that data come from, those of members that are several in one too.
 *  Return false to stop. */
bool esdm__members_visit(const esdm__members *members,
                         bool (*visit)(const esdm__virtual_member *member, void *user), void *user);
void esdm__members_clear(esdm__members *members);
/** What the catalogue has of a container, at its newest snapshot. @param member its name is set. */
esdm_status esdm__member_find(const esdm_session *session, esdm__virtual_member *member,
                              esdm_error *err);
/** The open container of a member, until it is released; for any thread. */
esdm_status esdm__member_use(esdm__members *members, size_t i, esdm_container **ret,
                             esdm_error *err);
void esdm__member_release(esdm__members *members, size_t i);

/* ---- maps.c ------------------------------------------------------------------------------- */

#define ESDM__MARKS_MOST 8u

/** How the numbers of a dataset are to be understood. */
typedef struct esdm__meaning {
    esdm_type type;
    bool packed;
    esdm_type unpacked; /* type of scale_factor and add_offset, else `type` */
    double scale;
    double offset;
    uint32_t nmarks; /* numbers that stand for missing values, as stored, rising */
    double marks[ESDM__MARKS_MOST];
    double fill;   /* of these the one that holes get */
    bool has_fill; /* an attribute says so */
    bool is_time;  /* units are "UNIT since DATE" */
    esdm__time_units time;
    char time_text[128]; /* units and calendar as they were written */
} esdm__meaning;

/** From a member's numbers to those of the whole. */
typedef struct esdm__map {
    esdm__meaning from;
    bool times;  /* re-express in the units of the whole */
    bool unpack; /* from.scale, from.offset */
    bool marks;  /* missing values become the fill value of the whole */
} esdm__map;

/** Reads the attributes of a dataset. ESDM_EINVAL: units or calendar cannot be understood. */
esdm_status esdm__meaning_of(const esdm_dataset *dataset, esdm__meaning *ret, esdm_error *err);
bool esdm__meaning_is_number(esdm_type type);
/** Whether a stored number stands for a missing value. */
bool esdm__meaning_is_missing(const esdm__meaning *m, double value);
/** The smallest type that holds all values of both; ESDM_TYPE_NONE: there is none. */
esdm_type esdm__type_of_both(esdm_type a, esdm_type b);
/** Values of the whole from those of a member, in place, `count` of them.
 *  @param ret_at set to the first that cannot be expressed when false is returned. */
bool esdm__map_apply(const esdm__map *map, const esdm__meaning *whole, double *values, size_t count,
                     size_t *ret_at);

/* ---- coordinates.c ------------------------------------------------------------------------ */

/** Elements that no member has. */
#define ESDM__NO_MEMBER SIZE_MAX
/** Most of them that are made. */
#define ESDM__FILLED_MOST 20000000u

/** Consecutive elements of one member that follow each other in the whole. */
typedef struct esdm__run {
    uint64_t start; /* in the whole */
    uint64_t count;
    size_t member;
    uint64_t first; /* in the member; of no member: in `filled` */
} esdm__run;

/** An element of the whole that a second member has too. */
typedef struct esdm__twice {
    uint64_t at; /* in the whole */
    size_t member;
    uint64_t index;
} esdm__twice;

typedef struct esdm__axis {
    char name[ESDM_NAME_MAX + 1]; /* of the dimension and its coordinate */
    size_t first;                 /* the member with the smallest coordinate */
    uint64_t length;
    esdm__run *runs; /* owned */
    size_t nruns;
    esdm__twice *twice; /* owned; what was left out */
    size_t ntwice;
    size_t nwithin; /* of these the member had the same value before itself */
    size_t ngaps;
    esdm__buffer told; /* lines: gaps */
    double *filled;    /* owned; keys (esdm__keys) of elements that no member has */
    size_t nfilled;
    double *bounds;                      /* of these, two each; within the memory of `filled` */
    char bounds_name[ESDM_NAME_MAX + 1]; /* of the dataset that has them; "": none */
} esdm__axis;

/** Values of a coordinate that can be compared: those of times are milliseconds. */
typedef struct esdm__keys {
    double *values; /* owned; NULL: there is no such coordinate */
    uint64_t count;
    double spacing; /* least distance of neighbours; 0 of times */
    bool is_time;
    esdm__calendar calendar;
} esdm__keys;

/** Sorts the elements of all members. @param keys of each member, along the axis. */
esdm_status esdm__axis_sort(const esdm__members *members, esdm__overlap_rule rule,
                            const esdm__keys *keys, esdm__axis *axis, esdm_error *err);
void esdm__axis_clear(esdm__axis *axis);
/** The run that holds element `at` of the whole. */
const esdm__run *esdm__axis_run(const esdm__axis *axis, uint64_t at);
/** Of a coordinate, which may be a scalar. @param dataset NULL, or what is no coordinate: no keys.
 *  @param ret esdm__keys_clear(). */
esdm_status esdm__keys_of(esdm_dataset *dataset, esdm__keys *ret, esdm_error *err);
void esdm__keys_clear(esdm__keys *keys);
/** Bytes of a text that says in what two coordinates differ. */
#define ESDM__WHAT_BYTES 200
/** @param ret_flipped they are not the same, but in opposite order. @param what set if not the
 * same.
 */
void esdm__keys_compare(const esdm__keys *a, const esdm__keys *b, const char *name, bool *ret_same,
                        bool *ret_flipped, char what[ESDM__WHAT_BYTES]);
/** Whether a dataset is the coordinate of its one dimension. */
bool esdm__is_coordinate(const esdm_dataset *dataset);
/** Selects all elements of a dataset. */
esdm_status esdm__space_of_all(const esdm_dataset *dataset, esdm_dataspace *ret, esdm_error *err);
/** Room for all values of a dataset as doubles, and the selection of them. @param ret owned,
 *  free(). */
esdm_status esdm__values_room(const esdm_dataset *dataset, esdm_dataspace *ret_space, double **ret,
                              uint64_t *ret_count, esdm_error *err);
/** All values of a dataset as doubles. @param ret owned, free(). */
esdm_status esdm__values_all(esdm_dataset *dataset, double **ret, uint64_t *ret_count,
                             esdm_error *err);
/** Whether two coordinate values are one: within a float32 ulp of the value (near 0: of the
 *  spacing), and within a thousandth of the spacing; 0: there is none. */
bool esdm__coordinate_same(double a, double b, double spacing);
/** Least distance of neighbours; 0 of fewer than two. */
double esdm__coordinate_spacing(const double *values, uint64_t count);

struct esdm__virtual;

/* ---- cross.c ------------------------------------------------------------------------------ */

/** Sorts the elements that members have along a second dimension. @param keys of all members;
 * changed where they are the same within the tolerance. */
esdm_status esdm__cross_make(struct esdm__virtual *whole, const char *name, esdm__keys *keys,
                             esdm_error *err);
void esdm__cross_clear(struct esdm__virtual *whole);

/* ---- gaps.c ------------------------------------------------------------------------------- */

/**
 * Finds where elements of the sorted axis are missing: where its step is constant, or so many
 * months of the calendar. @param keys of all members. @param fill makes these elements.
 * @return with `fill` ESDM_EINVAL: there is no such step.
 */
esdm_status esdm__gaps_find(esdm__members *members, const esdm__keys *keys, bool fill,
                            esdm__axis *axis, esdm_error *err);

/* ---- cells.c ------------------------------------------------------------------------------ */

/** What the steps of a member along time stand for. */
typedef struct esdm__cells {
    double *ends; /* owned; two each as keys have times, the lower first; NaN: not known; NULL: no
                     bounds */
    uint64_t count;
    double blur;   /* of the type, in milliseconds */
    double within; /* by how many the member's own cells overlap; INFINITY: a climatology */
} esdm__cells;

/** Whether a coordinate has bounds. */
bool esdm__has_cells(esdm_container *member, const char *axis);
/** @param ret esdm__cells_clear(); without `ends` when there are no bounds in time. */
esdm_status esdm__cells_of(esdm_container *member, const char *axis, esdm__cells *ret,
                           esdm_error *err);
void esdm__cells_clear(esdm__cells *cells);
/** The date of a time in milliseconds, as keys of coordinates have it; "?" where there is none. */
void esdm__ms_format(esdm__calendar calendar, double ms, char text[40]);
/** Finds two members with steps of which one lies over the other, and is not the same. @param keys
 *  of each member, as `cells`. @param ret_two, what set when `ret_over` is. */
esdm_status esdm__cells_check(size_t members, const esdm__keys *keys, const esdm__cells *cells,
                              bool *ret_over, size_t ret_two[2], char what[ESDM__WHAT_BYTES],
                              esdm_error *err);
/** Whether two texts of cell_methods say the same, in any order. */
bool esdm__same_methods(const char *one, const char *other);

/* ---- odd.c -------------------------------------------------------------------------------- */

struct esdm__virtual;

/** A text of the root group, owned, free(); NULL: there is none. */
char *esdm__global_text(esdm_container *container, const char *name);
/** Whether two texts of the attribute `frequency` say the same. */
bool esdm__same_frequency(const char *one, const char *other);
/** Whether the history of a member says that it was computed from another one. Any thread. */
bool esdm__member_is_made_of(struct esdm__virtual *whole, size_t result, size_t source);
/** Adds to a message about two members which one is the odd one, and what leaves it out; notes in
 *  `results` whether it was made of the other one. Any thread. @return ESDM_EINVAL */
esdm_status esdm__odd_one_out(struct esdm__virtual *whole, size_t one, size_t other,
                              esdm_error *err);

/** Puts advice behind a message that a name is put before, and cuts the message where both do not
 * fit. @param said the name. */
void esdm__error_advise(esdm_error *err, const char *said, const char *advice, size_t bytes);

/* ---- origins.c ---------------------------------------------------------------------------- */

/** Attributes that tell what a container comes from. */
#define ESDM__ORIGIN_WORDS 24u
/** In which of these the members of the whole differ. */
#define ESDM__ACROSS_ATTRIBUTE "esdm_across"
#define ESDM__ACROSS_BYTES     (512u + ESDM__SITE_EQUAL_MOST * (ESDM__SITE_EQUAL_BYTES + 1u))

typedef struct esdm__origin {
    /* owned; NULL: it does not say; then those that the site adds */
    char *values[ESDM__ORIGIN_WORDS + ESDM__SITE_EQUAL_MOST];
    char *experiment; /* owned; NULL likewise */
    char *frequency;
    char *across; /* owned; of several in one: attributes in which these differ; NULL: none */
} esdm__origin;

/** @param ret esdm__origin_clear(). What there is no memory for is left out. */
void esdm__origin_of(esdm_container *container, esdm__origin *ret);
/** The same of one that others add variables to: these may be of other tables and grids, and
 *  what has no times is the same for all members of an ensemble. */
void esdm__origin_of_variables(esdm_container *container, esdm__origin *ret);
void esdm__origin_clear(esdm__origin *origin);
/** Whether a list of attributes can be one of "&across=". */
esdm_status esdm__across_check(const esdm__site *site, const char *list, esdm_error *err);
/**
 * Whether all members come from the same model, member, table and grid, as far as they say so;
 * those of a new dimension may differ in what it is made of, and what goes with it. Fills in
 * `across` of the whole. @param origins by member.
 * @return ESDM_EINVAL naming the first two that do not, and what can be done.
 */
esdm_status esdm__origins_check(struct esdm__virtual *whole, const esdm__question *question,
                                const esdm__origin *origins, esdm_error *err);

/* ---- survey.c ----------------------------------------------------------------------------- */

/** Dimensions of a container that are looked at: those behind are compared by their lengths. */
#define ESDM__DIMENSIONS_MOST 64u

/**
 * Opens each member, finds the dimension that they continue each other along, compares all else
 * with the first member, and notes what their numbers mean. Members are looked at by several
 * threads. Fills in `axis`, `datasets`, `flips` and `differs` of the whole.
 */
esdm_status esdm__virtual_survey(struct esdm__virtual *whole, const esdm__question *question,
                                 const esdm__bundles *bundles, esdm_error *err);

/* ---- compare.c ---------------------------------------------------------------------------- */

/** Two members that are compared. */
typedef struct esdm__pair {
    const char *axis;  /* name of the joined dimension; NULL: all is to be equal */
    const char *cross; /* name of a dimension that members have other parts of; NULL: none */
    const struct esdm__joined *stacked; /* of a new dimension: what is along it; else NULL */
    const char *one;                    /* names */
    const char *other;
    esdm_container *a;
    esdm_container *b;
    uint64_t flips; /* bit d: the other has dimension d of the first in reversed order */
} esdm__pair;

/** Whether an attribute of another one in its group says that it is bounds. */
bool esdm__is_bounds(const esdm_dataset *dataset);
/** Of one dataset of `a`, which `b` must have. */
esdm_status esdm__pair_compare_dataset(const esdm__pair *pair, esdm_dataset *x, esdm_error *err);
/** ESDM_EINVAL or ESDM_ENOTSUP naming both members, and in what they do not fit. */
esdm_status esdm__pair_compare(const esdm__pair *pair, esdm_error *err);

/* ---- stack.c ------------------------------------------------------------------------------- */

/** The axis of a new dimension that is called like the attribute. */
esdm_status esdm__stack_axis(struct esdm__virtual *whole, const char *attribute,
                             esdm_container *first, esdm_error *err);
/** Whether it is no coordinate, no bounds, and describes nothing else. */
bool esdm__is_data(const esdm_dataset *dataset);
/** Marks what gets the new dimension: all but coordinates, bounds and what describes others. */
void esdm__stack_choose(struct esdm__virtual *whole, esdm_container *first);
/** Adds the dimension and its coordinate to the structure of the first member. */
esdm_status esdm__stack_build(struct esdm__virtual *whole, const esdm__bundles *bundles,
                              esdm_container *container, esdm_error *err);

/* ---- filled.c ------------------------------------------------------------------------------- */

/** What a dataset has where no member has elements: coordinate and bounds have values, others need
 *  a fill value. Changes type and attributes of the dataset where that is needed. */
esdm_status esdm__filled_prepare(const struct esdm__virtual *whole, esdm_dataset *dataset,
                                 struct esdm__joined *joined, esdm_error *err);
/** @param piece selection of it: along `axis` indices into `filled`; with memory strides. */
esdm_status esdm__filled_read(const struct esdm__virtual *whole, const esdm_dataset *dataset,
                              uint32_t axis, const esdm_dataspace *piece, esdm_type memory_type,
                              void *buffer, uint64_t *ret_out_of_range, esdm_error *err);

struct esdm__joined;

/* ---- merge.c ------------------------------------------------------------------------------- */

/** Copies dimensions and datasets of the root group that `to` lacks. @param joined of each dataset
 * of `from`, which are left out where it says so; or NULL. */
esdm_status esdm__virtual_add_variables(esdm_container *from, const struct esdm__joined *joined,
                                        esdm_container *to, esdm_error *err);
/** Puts the variables of all members into one empty container.
 *  @return ESDM_EINVAL: what two of them have in common is not equal, or they come from different
 *  runs. */
esdm_status esdm__virtual_merge(struct esdm__virtual *whole, const esdm__question *question,
                                esdm_container *container, esdm_error *err);

/* ---- remembered.c --------------------------------------------------------------------------- */

/** Opens what a question finds from what is kept about these very snapshots.
 *  @param container empty. @return false: nothing is kept; `whole` is empty, and `container` may
 * not be: then it cannot be used. */
bool esdm__remembered_open(struct esdm__virtual *whole, const esdm__question *question,
                           esdm_container *container);
/** Keeps what was found out, where the catalogue can be written to. Best effort. */
void esdm__remembered_keep(const struct esdm__virtual *whole, const esdm__question *question,
                           const esdm_container *container);

/* ---- structure.c, differences.c, overlap.c, read.c
 * ---------------------------------------------------------- */

/** Of one dataset of the whole, by its index in the container. */
typedef struct esdm__joined {
    int axis; /* that is joined; -1: none, the data are those of `source` */
    size_t source;
    int cross; /* its axis along `cross` of the whole; -1: none */
    esdm__meaning whole;
    esdm__meaning *meanings; /* owned; those of the members, each once */
    size_t nmeanings;
    uint32_t *which;  /* owned; by member: its meaning */
    esdm__map **maps; /* owned; by meaning; NULL, or an entry NULL: bits pass */
    bool stacked;     /* gets the new dimension */
    bool left_out;    /* bounds that not all members have */
    void *values;     /* owned; of the coordinate of a new dimension, in its type; else NULL */
} esdm__joined;

/** What the container keeps (esdm_container.provided). */
typedef struct esdm__virtual {
    const char *said; /* borrowed from the container: what it was opened by */
    bool results;     /* a member was found to be computed from another one (odd.c); atomic */
    esdm__members members;
    esdm__axis axis;
    bool stacks;            /* the axis is a new dimension, with one element for each member */
    esdm__axis cross;       /* another dimension that members have other parts of; "": none */
    esdm__axis *crossed;    /* owned; by member: `cross` as it has it */
    bool has_holes;         /* some member lacks elements of `cross` */
    esdm__joined *datasets; /* owned; as many as the container has */
    size_t ndatasets;
    uint64_t *flips;      /* owned; by member: which dimensions it has in reversed order */
    esdm__buffer differs; /* lines: attributes that differ between members */
    char across[ESDM__ACROSS_BYTES]; /* of these, those that tell other runs; see origins.c */
} esdm__virtual;

/** All but the memory of `whole` itself, which is then empty. */
void esdm__virtual_clear(esdm__virtual *whole);
void esdm__virtual_free(void *provided);
/** Of a dataset of the whole. */
const esdm__joined *esdm__joined_of(const esdm__virtual *whole, const esdm_dataset *dataset);
void esdm__joined_clear(esdm__virtual *whole);
/** Appends lines: attributes that both have, with other values. */
void esdm__note_differences(esdm_container *first, esdm_container *other, esdm__buffer *text);
/** Makes `to`, which is empty, like `from`: objects, attributes, lengths of unlimited dimensions.
 */
esdm_status esdm__virtual_copy_structure(esdm_container *from, esdm_container *to, esdm_error *err);
/** Gives a dataset the type and the fill value that `meaning` says. @param unpacked it was packed.
 */
esdm_status esdm__joined_retype(esdm_dataset *dataset, const esdm__meaning *meaning, bool unpacked,
                                esdm_error *err);
/** Removes an attribute that may be there. */
void esdm__virtual_forget(esdm_dataset *dataset, const char *name);
/** Tells of bounds that not all members have. */
void esdm__note_left_out(const char *name, esdm__buffer *text);
/** Attributes of the whole: how many members there are, in what they differ, gaps. */
esdm_status esdm__virtual_note(esdm__virtual *whole, esdm_container *container, esdm_error *err);
/** Makes structure and maps. @param container empty handle that owns `whole` already. */
esdm_status esdm__virtual_build(esdm__virtual *whole, const esdm__bundles *bundles,
                                esdm_container *container, esdm_error *err);
/** ESDM_EINVAL when members have different values for the same coordinate. @param within of one
 *  member alone, which has it twice. */
esdm_status esdm__virtual_overlap(esdm__virtual *whole, bool within, esdm_container *container,
                                  esdm_error *err);
/**
 * Which axis of `x` each axis of `y` is, by the names of the dimensions. `y` may have them in
 * another order, and lack the joined one, of which it then has one element.
 * @return false: it has others.
 */
bool esdm__member_axes(const esdm_dataset *x, const esdm_dataset *y, const char *axis,
                       uint32_t *ret_axes);
/** What is selected of `x`, in `y`. @param ret_first what its first element in memory is, counted
 * in elements from the first one of `space`. */
esdm_status esdm__member_turn(const esdm_dataset *x, const esdm_dataset *y, const char *axis,
                              uint64_t flips, const esdm_dataspace *space, esdm_dataspace *ret,
                              int64_t *ret_first, esdm_error *err);
/** Reads from `y` what is selected of `x`, whose axes may be ordered otherwise in `y`; along the
 *  joined axis the indices are those of `y`. Otherwise as esdm__io_read().
 *  @param flips dimensions of the container of `x` that `y` has in reversed order. */
esdm_status esdm__member_read(const esdm_dataset *x, esdm_dataset *y, const char *axis,
                              uint64_t flips, const esdm_dataspace *space, esdm_type memory_type,
                              void *buffer, uint64_t *ret_out_of_range, esdm_error *err);
/** As esdm_read() of one member's part, in the numbers of the whole; `space` in the member. */
esdm_status esdm__virtual_read_member(esdm__virtual *whole, const esdm_dataset *dataset,
                                      size_t member, const esdm_dataspace *space,
                                      esdm_type memory_type, void *buffer,
                                      uint64_t *ret_out_of_range, esdm_error *err);
esdm_status esdm__virtual_read(esdm_dataset *dataset, const esdm_dataspace *space,
                               esdm_type memory_type, void *buffer, uint64_t *ret_out_of_range,
                               esdm_error *err);

/** The dataset of a member that has the path of another one's; NULL: there is none. */
esdm_dataset *esdm__member_same(esdm_container *member, const esdm_dataset *dataset);
/** The dataset of that name in the root group; NULL: there is none. */
esdm_dataset *esdm__member_dataset(esdm_container *member, const char *name);
/** Axis of `dataset` along the dimension of that name; -1: it has none. */
int esdm__dataset_axis(const esdm_dataset *dataset, const char *dimension);

#endif
