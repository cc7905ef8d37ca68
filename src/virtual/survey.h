/* SPDX-License-Identifier: LGPL-3.0-or-later */
#ifndef ESDM_VIRTUAL_SURVEY_H
#define ESDM_VIRTUAL_SURVEY_H

/** @file What looking at the members (survey.c) has found out, and how they are sorted along
 * dimensions by that (survey_axis.c). */

#include "virtual/parts.h"

/** What was found out about one member. */
typedef struct esdm__look {
    esdm__keys keys;   /* of the dimension in which it differs; no values: it differs in none */
    esdm__cells cells; /* of this one, where it is time */
    int dimension;     /* of the first member; -1: none */
    int second;        /* another one in which it differs; -1: none */
    char what[ESDM__WHAT_BYTES]; /* in what, there */
    int crossed;                 /* a second one in which it may differ; -1: none */
    esdm__keys cross;            /* of that one */
    bool compared;               /* with the reference */
    bool known;                  /* its origin is */
} esdm__look;

/** Of all members. */
typedef struct esdm__survey {
    esdm__virtual *whole;
    size_t first; /* the member that all are compared with: the reference */
    esdm_container *reference;
    esdm__keys *keys; /* of its dimensions */
    size_t ndimensions;
    esdm__look *looks;     /* by member */
    esdm__origin *origins; /* owned; by member: what it comes from */
    const char *axis;      /* NULL: not known yet */
    const char *rows;      /* of tiles: the name of the axis; else NULL */
    bool fills;            /* members may lack elements of one dimension beside the axis */
    pthread_mutex_t lock;  /* guards the datasets' meanings, and `differs` of the whole */
} esdm__survey;

/** Name of a dimension of the reference. */
const char *esdm__survey_dimension(const esdm__survey *s, size_t d);
/** Whether values of both may be compared: standard and proleptic calendars are looked at again for
 * each value (maps.c). */
bool esdm__calendars_agree(esdm__calendar a, esdm__calendar b);

/** The dimension along which members continue each other. ESDM_EINVAL: there are two, or none. */
esdm_status esdm__survey_choose_axis(const esdm__survey *s, int *ret_axis, esdm_error *err);
/** Sorts the members along it: whole->axis, with its gaps. ESDM_EINVAL: they do not join. */
esdm_status esdm__survey_sort_axis(esdm__survey *s, int axis, const esdm__question *question,
                                   esdm_error *err);
/** The same along a second dimension, if members differ along one: whole->cross. */
esdm_status esdm__survey_sort_cross(esdm__survey *s, esdm_error *err);

#endif
