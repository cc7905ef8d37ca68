/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Regions in which numbers are to be more accurate: as text, and together. */

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/error.h"
#include "model/accuracy.h"
#include "model/accuracy_quantities.h"
#include "model/accuracy_units.h"

#define TEXT_BYTES 1024
/* What a region can state. */
#define STATED                                                                                     \
    (ESDM__TOLERANCES | (uint32_t) ESDM_ACCURACY_RELATIVE_FINEST |                                 \
     (uint32_t) ESDM_ACCURACY_VECTOR_COMPONENTS | (uint32_t) ESDM_ACCURACY_MEAN_TOLERANCE)
/* Of which it states one, at least. */
#define ENOUGH (ESDM__TOLERANCES | (uint32_t) ESDM_ACCURACY_MEAN_TOLERANCE)

/* ---- a region as a statement ---------------------------------------------------------------- */

/* A region has the tolerances of an accuracy, under the same names. */
#define COPY_TOLERANCES(to, from)                                                                  \
    do {                                                                                           \
        (to)->stated = (from)->stated;                                                             \
        (to)->absolute_tolerance = (from)->absolute_tolerance;                                     \
        (to)->relative_tolerance = (from)->relative_tolerance;                                     \
        (to)->relative_finest = (from)->relative_finest;                                           \
        (to)->range_tolerance = (from)->range_tolerance;                                           \
        (to)->std_tolerance = (from)->std_tolerance;                                               \
        (to)->psnr = (from)->psnr;                                                                 \
        (to)->significant_digits = (from)->significant_digits;                                     \
        (to)->significant_bits = (from)->significant_bits;                                         \
        (to)->gradient_tolerance = (from)->gradient_tolerance;                                     \
        (to)->vector_tolerance = (from)->vector_tolerance;                                         \
        (to)->vector_components = (from)->vector_components;                                       \
        (to)->mean_tolerance = (from)->mean_tolerance;                                             \
    } while (0)

void
esdm__region_accuracy(const esdm_accuracy_region *region, esdm_accuracy *ret)
{
    esdm_accuracy_init(ret);
    COPY_TOLERANCES(ret, region);
}

/* ---- the same place in other numbers -------------------------------------------------------- */

/* To a billionth: what other numbers of the same place differ by is rounding. */
static double
rounded(double value)
{
    return round(value * 1e9) / 1e9 + 0.0; /* and no -0 */
}

/* What its levels are in the units that others may have stated them in. */
static void
usual_levels(esdm_accuracy_region *r)
{
    static const char *const usual[] = {"Pa", "m"};
    char why[200];
    double factor = 1;
    for (size_t i = 0; i < sizeof usual / sizeof *usual && r->level_units[0] != '\0'; i++) {
        if (!esdm__units_factor(r->level_units, usual[i], false, &factor, why, sizeof why))
            continue;
        r->level_low = rounded(r->level_low * factor);
        r->level_high = rounded(r->level_high * factor);
        strcpy(r->level_units, usual[i]);
        return;
    }
}

/* West from -180 to below 180; a whole circle begins there. */
static void
usual_box(esdm_accuracy_region *r)
{
    const double width = fmin(rounded(r->east - r->west), 360);
    double west = rounded(r->west - 360 * floor((r->west + 180) / 360));
    if (width >= 360 || west >= 180)
        west = -180;
    r->west = west;
    r->east = rounded(west + width);
}

/* As all write it that mean the same points. */
static esdm_accuracy_region
usual_place(const esdm_accuracy_region *region)
{
    esdm_accuracy_region r = *region;
    if ((r.within & ESDM_REGION_BOX) != 0)
        usual_box(&r);
    if ((r.within & ESDM_REGION_LEVELS) != 0)
        usual_levels(&r);
    return r;
}

/* Whether both are of the same points. */
static bool
same_place(const esdm_accuracy_region *one, const esdm_accuracy_region *other)
{
    if (one->within != other->within)
        return false;
    const esdm_accuracy_region a = usual_place(one);
    const esdm_accuracy_region b = usual_place(other);
    return a.west == b.west && a.south == b.south && a.east == b.east && a.north == b.north &&
           a.level_low == b.level_low && a.level_high == b.level_high &&
           strcmp(a.level_units, b.level_units) == 0 && a.mask_low == b.mask_low &&
           a.mask_high == b.mask_high && strcmp(a.mask, b.mask) == 0;
}

static bool
same_region(const esdm_accuracy_region *a, const esdm_accuracy_region *b)
{
    esdm_accuracy x, y;
    esdm__region_accuracy(a, &x);
    esdm__region_accuracy(b, &y);
    return esdm__accuracy_equal(&x, &y) && same_place(a, b);
}

bool
esdm__regions_equal(const esdm_accuracy *a, const esdm_accuracy *b)
{
    bool same = a->region_count == b->region_count;
    for (uint32_t i = 0; i < a->region_count && same; i++)
        same = same_region(&a->regions[i], &b->regions[i]);
    return same;
}

static esdm_status
add(esdm_accuracy *into, const esdm_accuracy_region *region, esdm_error *err)
{
    uint32_t at = 0;
    while (at < into->region_count && !same_place(&into->regions[at], region))
        at++;
    if (at == ESDM_ACCURACY_REGIONS_MAX)
        return esdm__error_set(err, ESDM_EINVAL, "regions: at most %d are possible",
                               ESDM_ACCURACY_REGIONS_MAX);
    if (at == into->region_count) {
        into->regions[into->region_count++] = *region;
        return ESDM_OK;
    }
    esdm_accuracy both, other;
    esdm__region_accuracy(&into->regions[at], &both);
    esdm__region_accuracy(region, &other);
    esdm_status st = esdm__accuracy_join_statement(&both, &other, err);
    if (st == ESDM_OK)
        COPY_TOLERANCES(&into->regions[at], &both);
    return st;
}

esdm_status
esdm__regions_join(esdm_accuracy *into, const esdm_accuracy *other, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    if ((into->stated & ESDM_ACCURACY_REGIONS) == 0)
        into->region_count = 0;
    for (uint32_t i = 0; i < other->region_count && st == ESDM_OK; i++)
        st = add(into, &other->regions[i], err);
    return st;
}

/* ---- reading -------------------------------------------------------------------------------- */

static const char *
skip_blanks(const char *text)
{
    return text + strspn(text, " \t\n");
}

/* What follows "NAME", blanks and "="; NULL: it is something else. */
static const char *
after(const char *text, const char *name)
{
    size_t bytes = strlen(name);
    if (strncmp(text, name, bytes) != 0)
        return NULL;
    text = skip_blanks(text + bytes);
    return *text == '=' ? text + 1 : NULL;
}

bool
esdm__region_begins(const char *text)
{
    text = skip_blanks(text);
    return after(text, "box") != NULL || after(text, "level") != NULL ||
           after(text, "mask") != NULL || after(text, "regions") != NULL;
}

static esdm_status
wrong(const char *region, const char *what, esdm_error *err)
{
    return esdm__error_set(err, ESDM_EINVAL, "region '%.100s': %s", region, what);
}

static bool
read_number(const char **text, double *ret)
{
    char *end;
    *ret = strtod(*text, &end);
    bool is = end != *text && isfinite(*ret);
    *text = skip_blanks(end);
    return is;
}

static esdm_status
read_box(esdm_accuracy_region *region, const char *text, const char *all, esdm_error *err)
{
    double *const sides[] = {&region->west, &region->south, &region->east, &region->north};
    for (size_t i = 0; i < 4; i++) {
        if (!read_number(&text, sides[i]) || *text != (i < 3 ? ',' : '\0'))
            return wrong(all,
                         "expected box=WEST,SOUTH,EAST,NORTH in degrees, such as "
                         "box=-10,35,30,60",
                         err);
        text += i < 3;
    }
    if (fabs(region->west) > 720 || fabs(region->east) > 720)
        return wrong(all, "longitudes are degrees from -720 to 720", err);
    if (region->south < -90 || region->north > 90 || region->south > region->north)
        return wrong(all, "latitudes are degrees from -90 to 90, the southern one first", err);
    if (region->east < region->west)
        region->east += 360 * ceil((region->west - region->east) / 360);
    region->within |= ESDM_REGION_BOX;
    return ESDM_OK;
}

static esdm_status
read_levels(esdm_accuracy_region *region, const char *text, const char *all, esdm_error *err)
{
    char first[64];
    double from = 0, to = 0;
    const char *dots = strstr(text, ".."); /* the first of which would be taken for a decimal one */
    const char *rest = first;
    bool right = true;
    if (dots != NULL) {
        right = (size_t) (dots - text) < sizeof first;
        (void) snprintf(first, sizeof first, "%.*s", (int) (dots - text), text);
        right = right && read_number(&rest, &from) && *rest == '\0';
        text = dots + 2;
    }
    right = right && read_number(&text, &to);
    if (right && dots == NULL)
        from = to;
    if (!right || strpbrk(text, "=.,<>") != NULL)
        return wrong(all, "expected level=FROM..TO and units, such as level=1000..500 hPa", err);
    if (strlen(text) >= sizeof region->level_units)
        return wrong(all, "the units of its levels are too long", err);
    strcpy(region->level_units, text);
    region->level_low = fmin(from, to);
    region->level_high = fmax(from, to);
    region->within |= ESDM_REGION_LEVELS;
    return ESDM_OK;
}

/* "sftlf>=50" */
static esdm_status
read_mask(esdm_accuracy_region *region, const char *text, const char *all, esdm_error *err)
{
    text = skip_blanks(text);
    const size_t bytes = strcspn(text, "<>= \t\n");
    const char *sign = skip_blanks(text + bytes);
    const char *number = sign + strspn(sign, "<>=");
    double value = 0;
    bool right = bytes > 0 && *sign != '\0' && number - sign <= 2;
    right = right && (number - sign == 1 || sign[1] == '=') && read_number(&number, &value) &&
            *number == '\0';
    if (!right)
        return wrong(all, "expected mask=VARIABLE>=NUMBER (or <=, =), such as mask=sftlf>=50", err);
    if (bytes >= sizeof region->mask)
        return wrong(all, "the name of its mask is too long", err);
    memcpy(region->mask, text, bytes);
    region->mask_low = *sign == '<' ? -(double) INFINITY : value;
    region->mask_high = *sign == '>' ? (double) INFINITY : value;
    region->within |= ESDM_REGION_MASK;
    return ESDM_OK;
}

/* Cuts blanks away at the end. */
static void
trim(char *text)
{
    size_t bytes = strlen(text);
    while (bytes > 0 && strchr(" \t\n", text[bytes - 1]) != NULL)
        bytes--;
    text[bytes] = '\0';
}

/* "box=…", "level=…" or "mask=…" */
static esdm_status
read_condition(esdm_accuracy_region *region, char *text, const char *all, esdm_error *err)
{
    trim(text);
    text = (char *) (uintptr_t) skip_blanks(text);
    const char *box = after(text, "box");
    const char *levels = after(text, "level");
    const char *mask = after(text, "mask");
    if (box != NULL && (region->within & ESDM_REGION_BOX) == 0)
        return read_box(region, box, all, err);
    if (levels != NULL && (region->within & ESDM_REGION_LEVELS) == 0)
        return read_levels(region, levels, all, err);
    if (mask != NULL && (region->within & ESDM_REGION_MASK) == 0)
        return read_mask(region, mask, all, err);
    if (box != NULL || levels != NULL || mask != NULL)
        return wrong(all, "it has two boxes, ranges of levels or masks: make two regions of it",
                     err);
    return wrong(all, "expected box=WEST,SOUTH,EAST,NORTH, level=FROM..TO or mask=VARIABLE>=NUMBER",
                 err);
}

/* "box=… & level=…" */
static esdm_status
read_place(esdm_accuracy_region *region, char *text, const char *all, esdm_error *err)
{
    esdm_status st = ESDM_OK;
    for (char *next = text; next != NULL && st == ESDM_OK;) {
        char *condition = next;
        next = strchr(condition, '&');
        if (next != NULL)
            *next++ = '\0';
        st = read_condition(region, condition, all, err);
    }
    return st;
}

/* "abs=0.01 K, rel=1 %" */
static esdm_status
read_tolerances(esdm_accuracy_region *region, const char *text, const char *all,
                const esdm__accuracy_reading *how, esdm_error *err)
{
    esdm_accuracy stated = {0};
    esdm_error why = {0};
    const esdm__accuracy_reading inner = {
        .units = how->units, .stored = how->stored, .inner = true};
    esdm_status st = esdm__accuracy_read_parts(&stated, text, &inner, &why);
    if (st != ESDM_OK)
        return esdm__error_set(err, st, "region '%.100s': %s", all, why.message);
    if ((stated.stated & ~STATED) != 0)
        return wrong(all,
                     "a region states tolerances alone (abs, rel, finest, digits, bits, "
                     "range, std, psnr, gradient, vector, components, mean); all else holds "
                     "everywhere",
                     err);
    if ((stated.stated & ENOUGH) == 0)
        return wrong(all, "it states nothing: expected a tolerance, such as abs=0.01", err);
    COPY_TOLERANCES(region, &stated);
    return ESDM_OK;
}

static esdm_status
read_region(esdm_accuracy *into, const char *text, size_t bytes, const esdm__accuracy_reading *how,
            esdm_error *err)
{
    char all[TEXT_BYTES], place[TEXT_BYTES];
    esdm_accuracy_region region;
    memset(&region, 0, sizeof region);
    if (bytes >= sizeof all)
        return esdm__error_set(err, ESDM_EINVAL, "region '%.60s…' is too long", text);
    memcpy(all, text, bytes);
    all[bytes] = '\0';
    trim(all);
    const char *colon = strchr(all, ':');
    if (colon == NULL)
        return wrong(all, "expected WHERE: TOLERANCES, such as box=-10,35,30,60: abs=0.01", err);
    memcpy(place, all, (size_t) (colon - all));
    place[colon - all] = '\0';
    esdm_status st = read_place(&region, place, all, err);
    if (st == ESDM_OK)
        st = read_tolerances(&region, colon + 1, all, how, err);
    return st == ESDM_OK ? add(into, &region, err) : st;
}

esdm_status
esdm__regions_read(esdm_accuracy *accuracy, const char *text, const esdm__accuracy_reading *how,
                   esdm_error *err)
{
    esdm_status st = ESDM_OK;
    accuracy->region_count = 0;
    memset(accuracy->regions, 0, sizeof accuracy->regions);
    while (st == ESDM_OK) {
        text += strspn(text, " \t\n;");
        size_t bytes = strcspn(text, ";");
        const char *inner = after(text, "regions");
        if (bytes == 0)
            break;
        const char *from = inner != NULL ? skip_blanks(inner) : text;
        st = read_region(accuracy, from, (size_t) (text + bytes - from), how, err);
        text += bytes;
    }
    if (st == ESDM_OK && accuracy->region_count == 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "regions: expected box=…: …, level=…: … or mask=…: …");
    return st;
}

/* ---- printing ------------------------------------------------------------------------------- */

static void
put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

static void
put_mask(esdm__buffer *out, const esdm_accuracy_region *r)
{
    const bool from = isfinite(r->mask_low), to = isfinite(r->mask_high);
    put_text(out, "mask=");
    put_text(out, r->mask);
    put_text(out, from && to ? "=" : from ? ">=" : "<=");
    esdm__accuracy_put_number(out, from ? r->mask_low : r->mask_high);
}

static void
put_region(esdm__buffer *out, const esdm_accuracy_region *r)
{
    const double sides[] = {r->west, r->south, r->east, r->north};
    esdm_accuracy stated;
    for (size_t i = 0; i < 4 && (r->within & ESDM_REGION_BOX) != 0; i++) {
        put_text(out, i == 0 ? "box=" : ",");
        esdm__accuracy_put_number(out, sides[i]);
    }
    if ((r->within & ESDM_REGION_LEVELS) != 0) {
        put_text(out, (r->within & ESDM_REGION_BOX) != 0 ? " & " : "");
        put_text(out, "level=");
        esdm__accuracy_put_number(out, r->level_low);
        if (r->level_high > r->level_low) {
            put_text(out, "..");
            esdm__accuracy_put_number(out, r->level_high);
        }
        put_text(out, r->level_units[0] != '\0' ? " " : "");
        put_text(out, r->level_units);
    }
    if ((r->within & ESDM_REGION_MASK) != 0) {
        put_text(out, r->within != ESDM_REGION_MASK ? " & " : "");
        put_mask(out, r);
    }
    put_text(out, ": ");
    esdm__region_accuracy(r, &stated);
    esdm__accuracy_put_apart(out, &stated, ", ");
}

void
esdm__regions_put(esdm__buffer *out, const esdm_accuracy *accuracy)
{
    for (uint32_t i = 0; i < accuracy->region_count; i++) {
        put_text(out, i > 0 ? "; " : "");
        put_region(out, &accuracy->regions[i]);
    }
}

/* ---- checks --------------------------------------------------------------------------------- */

static bool
place_is_right(const esdm_accuracy_region *r)
{
    const uint32_t known = (uint32_t) ESDM_REGION_BOX | ESDM_REGION_LEVELS | ESDM_REGION_MASK;
    bool right = r->within != 0 && (r->within & ~known) == 0;
    if ((r->within & ESDM_REGION_BOX) != 0)
        right = right && fabs(r->west) <= 720 && r->east >= r->west && r->east <= 1440 &&
                r->south >= -90 && r->south <= r->north && r->north <= 90;
    if ((r->within & ESDM_REGION_LEVELS) != 0)
        right = right && isfinite(r->level_low) && isfinite(r->level_high) &&
                r->level_low <= r->level_high &&
                memchr(r->level_units, '\0', sizeof r->level_units) != NULL;
    if ((r->within & ESDM_REGION_MASK) != 0)
        right = right && memchr(r->mask, '\0', sizeof r->mask) != NULL && r->mask[0] != '\0' &&
                r->mask_low <= r->mask_high && (isfinite(r->mask_low) || isfinite(r->mask_high)) &&
                !(isfinite(r->mask_low) && isfinite(r->mask_high) && r->mask_low < r->mask_high);
    return right;
}

esdm_status
esdm__regions_check(const esdm_accuracy *accuracy, bool stored, esdm_error *err)
{
    if ((accuracy->stated & ESDM__TOLERANCES) == 0)
        return esdm__error_set(err, ESDM_EINVAL,
                               "regions are stated, but nothing that numbers elsewhere may be off "
                               "by: state a tolerance for all before them, as in 'abs=0.5; "
                               "box=-10,35,30,60: abs=0.01'");
    for (uint32_t i = 0; i < accuracy->region_count; i++) {
        const esdm_accuracy_region *r = &accuracy->regions[i];
        esdm_accuracy stated;
        esdm__region_accuracy(r, &stated);
        if (!place_is_right(r) || (r->stated & ~STATED) != 0 || (r->stated & ENOUGH) == 0)
            return esdm__error_set(err, ESDM_EINVAL, "regions[%u] is out of range", i);
        esdm_status st = esdm__accuracy_check(&stated, stored, err);
        if (st != ESDM_OK)
            return esdm__error_prefix(err, st, "regions[%u]", i);
    }
    return ESDM_OK;
}

/* Whether each tolerance of the region is stated for all, and not looser there. */
static bool
adds_nothing(const esdm_accuracy *all, const esdm_accuracy_region *region)
{
    esdm_accuracy stated, both = *all;
    both.stated &= ~(uint32_t) ESDM_ACCURACY_REGIONS;
    const esdm_accuracy before = both;
    esdm__region_accuracy(region, &stated);
    return (region->stated & ~all->stated) == 0 &&
           esdm__accuracy_join_statement(&both, &stated, NULL) == ESDM_OK &&
           esdm__accuracy_equal(&both, &before);
}

esdm_status
esdm__regions_check_use(const esdm_accuracy *accuracy, esdm_error *err)
{
    for (uint32_t i = 0; i < accuracy->region_count; i++)
        if (adds_nothing(accuracy, &accuracy->regions[i]))
            return esdm__error_set(err, ESDM_EINVAL,
                                   "region %u is not more accurate than what is stated for all, "
                                   "which holds there too: state the loose tolerance for all and "
                                   "the strict one of the region",
                                   i + 1);
    return ESDM_OK;
}
