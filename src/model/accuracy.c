/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "model/accuracy.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/arguments.h"
#include "base/error.h"
#include "base/plain_locale.h"
#include "model/accuracy_quantities.h"
#include "model/accuracy_units.h"
#include "model/container.h"

#define NAME_BYTES  64
#define VALUE_BYTES 1024
#define DIGITS_MOST 17
#define BITS_MOST   53
#define NSB_MOST    51 /* of 52 bits a double loses nothing */
#define NSD_MOST    15
/* Two are what is meant where nothing is said: so the larger number is the stricter one. */
#define COMPONENTS_LEAST 2
#define COMPONENTS_MOST  3
/* Share of sum(|x|) by which "conserve=sum" lets a sum change. */
#define CONSERVED 1e-6

/* ---- the quantities ----------------------------------------------------------------------- */

#define AT(member) offsetof(esdm_accuracy, member)
const esdm__quantity esdm__quantities[ESDM__QUANTITIES] = {
    {"absolute_tolerance", "abs", ESDM_ACCURACY_ABSOLUTE_TOLERANCE, ESDM__TOLERANCE,
     AT(absolute_tolerance), 0, 0},
    {"relative_tolerance", "rel", ESDM_ACCURACY_RELATIVE_TOLERANCE, ESDM__SHARE,
     AT(relative_tolerance), 0, 0},
    {"relative_finest", "finest", ESDM_ACCURACY_RELATIVE_FINEST, ESDM__TOLERANCE,
     AT(relative_finest), 0, 0},
    {"significant_digits", "digits", ESDM_ACCURACY_SIGNIFICANT_DIGITS, ESDM__COUNT,
     AT(significant_digits), DIGITS_MOST, 0},
    {"significant_bits", "bits", ESDM_ACCURACY_SIGNIFICANT_BITS, ESDM__COUNT, AT(significant_bits),
     BITS_MOST, 0},
    {"conserve", NULL, ESDM_ACCURACY_CONSERVE, ESDM__CONSERVE, AT(conserve), 0, 0},
    {"lossless_up_to", NULL, ESDM_ACCURACY_LOSSLESS_UP_TO, ESDM__NUMBER, AT(lossless_up_to), 0, 0},
    {"lossless_from", NULL, ESDM_ACCURACY_LOSSLESS_FROM, ESDM__NUMBER, AT(lossless_from), 0, 0},
    {"exact_values", "exact", ESDM_ACCURACY_EXACT_VALUES, ESDM__NUMBERS, AT(exact_values), 0, 0},
    {"compression_speed", NULL, ESDM_ACCURACY_COMPRESSION_SPEED, ESDM__SPEED, AT(compression_speed),
     0, 0},
    {"decompression_speed", NULL, ESDM_ACCURACY_DECOMPRESSION_SPEED, ESDM__SPEED,
     AT(decompression_speed), 0, 0},
    {"mode", NULL, ESDM_ACCURACY_MODE, ESDM__MODE, AT(mode), 0, 0},
    {"range_tolerance", "range", ESDM_ACCURACY_RANGE_TOLERANCE, ESDM__SHARE, AT(range_tolerance), 0,
     0},
    {"std_tolerance", "std", ESDM_ACCURACY_STD_TOLERANCE, ESDM__SHARE, AT(std_tolerance), 0, 0},
    {"psnr", NULL, ESDM_ACCURACY_PSNR, ESDM__DECIBELS, AT(psnr), 0, 0},
    {"gradient_tolerance", "gradient", ESDM_ACCURACY_GRADIENT_TOLERANCE, ESDM__TOLERANCE,
     AT(gradient_tolerance), 0, 0},
    {"vector_tolerance", "vector", ESDM_ACCURACY_VECTOR_TOLERANCE, ESDM__TOLERANCE,
     AT(vector_tolerance), 0, 0},
    {"vector_components", "components", ESDM_ACCURACY_VECTOR_COMPONENTS, ESDM__COUNT,
     AT(vector_components), COMPONENTS_MOST, COMPONENTS_LEAST},
    {"mean_tolerance", "mean", ESDM_ACCURACY_MEAN_TOLERANCE, ESDM__TOLERANCE, AT(mean_tolerance), 0,
     0},
    {"regions", NULL, ESDM_ACCURACY_REGIONS, ESDM__REGIONS, AT(regions), 0, 0}, /* stands last */
};

/* Other names of the significant bits, with the numbers that netCDF and CF have for them. */
static const esdm__quantity of_netcdf[] = {
    {"nsb", NULL, ESDM_ACCURACY_SIGNIFICANT_BITS, ESDM__NSB, AT(significant_bits), NSB_MOST, 0},
    {"nsd", NULL, ESDM_ACCURACY_SIGNIFICANT_BITS, ESDM__NSD, AT(significant_bits), NSD_MOST, 0},
};

static const char *const modes[] = {[ESDM_MODE_SPEED] = "speed",
                                    [ESDM_MODE_BALANCED] = "balanced",
                                    [ESDM_MODE_ARCHIVE] = "archive",
                                    [ESDM_MODE_ENERGY] = "energy",
                                    [ESDM_MODE_PROGRESSIVE] = "progressive",
                                    [ESDM_MODE_FAST] = "fast"};
static const char *const speed_units[] = {[ESDM_SPEED_BYTES] = "B/s",
                                          [ESDM_SPEED_NETWORK] = "network",
                                          [ESDM_SPEED_NODE_LOCAL] = "node-local",
                                          [ESDM_SPEED_SHARED] = "shared"};

void
esdm_accuracy_init(esdm_accuracy *accuracy)
{
    if (accuracy == NULL)
        return;
    memset(accuracy, 0, sizeof *accuracy);
}

/* ---- one value ---------------------------------------------------------------------------- */

/* What a value is read for. */
typedef struct value {
    const esdm__quantity *quantity;
    const char *text;
    const char *units; /* of the dataset, or NULL */
    bool stored;       /* by a version that had no upper limit of shares */
    esdm_error *err;
} value;

static esdm_status
wrong(const value *v, const char *what)
{
    return esdm__error_set(v->err, ESDM_EINVAL, "%s = '%.100s': %s", v->quantity->name, v->text,
                           what);
}

/* A finite number; *ret_rest is what follows it, without blanks. */
static esdm_status
read_number(const value *v, const char *text, double *ret_number, const char **ret_rest)
{
    char *end;
    double number = strtod(text, &end);
    if (end == text)
        return wrong(v, "expected a number");
    if (!isfinite(number))
        return wrong(v, "the number must be finite");
    *ret_number = number;
    *ret_rest = end + strspn(end, " \t");
    return ESDM_OK;
}

/* "1.1 hPa" is 110 Pa, not the next number to that: it is compared with what others state. */
static double
converted(double number, double factor)
{
    char text[32];
    if (factor == 1 || !isfinite(number * factor))
        return number * factor;
    (void) snprintf(text, sizeof text, "%.15g", number * factor);
    return strtod(text, NULL);
}

/* A number in the units of the dataset. */
static esdm_status
read_in_units(const value *v, bool negative, double *ret_number)
{
    double number = 0;
    double factor = 1;
    const char *rest = "";
    char why[200];
    esdm_status st = read_number(v, v->text, &number, &rest);
    if (st != ESDM_OK)
        return st;
    if (!esdm__units_factor(rest, v->units, !negative, &factor, why, sizeof why))
        return wrong(v, why);
    number = converted(number, factor);
    if (!isfinite(number))
        return wrong(v, "the number must be finite");
    if (number < 0 && !negative)
        return wrong(v, "a tolerance must not be negative");
    *ret_number = number;
    return ESDM_OK;
}

static esdm_status
read_share(const value *v, double *ret_number)
{
    double number = 0;
    const char *rest = "";
    esdm_status st = read_number(v, v->text, &number, &rest);
    if (st != ESDM_OK)
        return st;
    if (strcmp(rest, "%") == 0)
        number = converted(number, 0.01);
    else if (*rest != '\0')
        return wrong(v, "a relative quantity has no units but %");
    if (number < 0)
        return wrong(v, "a tolerance must not be negative");
    if (number >= 1 && !v->stored)
        return wrong(v, "a share of 1 (100 %) or more promises nothing: expected less, such as "
                        "0.001 or 0.1 %");
    *ret_number = number;
    return ESDM_OK;
}

static esdm_status
read_decibels(const value *v, double *ret_number)
{
    double number = 0;
    const char *rest = "";
    esdm_status st = read_number(v, v->text, &number, &rest);
    if (st != ESDM_OK)
        return st;
    if (*rest != '\0' && strcmp(rest, "dB") != 0)
        return wrong(v, "its unit is dB");
    if (!(number > 0 && number <= ESDM__DECIBELS_MOST))
        return wrong(v, "expected more than 0 dB, and at most 300 dB");
    *ret_number = number;
    return ESDM_OK;
}

static esdm_status
read_conserve(const value *v, double *ret_number)
{
    if (strcmp(v->text, "sum") != 0 && strcmp(v->text, "mean") != 0)
        return read_share(v, ret_number);
    *ret_number = CONSERVED;
    return ESDM_OK;
}

static esdm_status
read_count(const value *v, uint32_t *ret_count)
{
    double number = 0;
    const char *rest;
    char what[64];
    const uint32_t fewest = v->quantity->least > 0 ? v->quantity->least : 1;
    esdm_status st = read_number(v, v->text, &number, &rest);
    if (st != ESDM_OK)
        return st;
    if (*rest == '\0' && number >= fewest && number <= v->quantity->most &&
        number == floor(number)) {
        *ret_count = (uint32_t) number;
        return ESDM_OK;
    }
    (void) snprintf(what, sizeof what, "expected a whole number from %" PRIu32 " to %" PRIu32,
                    fewest, v->quantity->most);
    return wrong(v, what);
}

/* Numbers of netCDF as the fewest significant bits, 2^-bits of |x|, that are at every x within half
 * a unit of the place that netCDF keeps: of the last explicit bit 2^-(n + 1) times the power of two
 * below |x|, which is more than |x| / 2; of the last digit 10^(1 - n) / 2 times the power of ten.
 */
static esdm_status
read_places(const value *v, uint32_t *ret_bits)
{
    uint32_t count = 0;
    esdm_status st = read_count(v, &count);
    if (st != ESDM_OK)
        return st;
    *ret_bits = v->quantity->kind == ESDM__NSB ? count + 2 : (uint32_t) ceil(count * log2(10)) + 1;
    return ESDM_OK;
}

static esdm_status
read_numbers(const value *v, esdm_accuracy *a)
{
    uint32_t count = 0;
    const char *text = v->text;
    do {
        if (count == ESDM_ACCURACY_EXACT_MAX)
            return wrong(v, "at most 16 exact values are possible");
        esdm_status st = read_number(v, text, &a->exact_values[count], &text);
        if (st != ESDM_OK)
            return st;
        count++;
    } while (*text != '\0');
    a->exact_count = count;
    return ESDM_OK;
}

/* Bytes per second of "B/s", "MiB/s", …; 0: it is no such unit. */
static double
bytes_of(const char *unit)
{
    static const struct {
        const char *name;
        double bytes;
    } units[] = {{"B/s", 1},        {"kB/s", 1e3},     {"MB/s", 1e6},     {"GB/s", 1e9},
                 {"KiB/s", 0x1p10}, {"MiB/s", 0x1p20}, {"GiB/s", 0x1p30}, {"TiB/s", 0x1p40}};
    for (size_t i = 0; i < sizeof units / sizeof units[0]; i++)
        if (strcmp(unit, units[i].name) == 0)
            return units[i].bytes;
    return 0;
}

static esdm_status
read_speed(const value *v, esdm_speed *ret_speed)
{
    esdm_speed speed = {0};
    const char *rest;
    esdm_status st = read_number(v, v->text, &speed.value, &rest);
    if (st != ESDM_OK)
        return st;
    if (!(speed.value > 0))
        return wrong(v, "a speed must be positive");
    if (bytes_of(rest) > 0) {
        speed.value *= bytes_of(rest);
        speed.unit = ESDM_SPEED_BYTES;
    }
    for (int unit = ESDM_SPEED_NETWORK; unit <= ESDM_SPEED_SHARED; unit++)
        if (strcmp(rest, speed_units[unit]) == 0)
            speed.unit = (esdm_speed_unit) unit;
    if (speed.unit == 0)
        return wrong(v, "expected a speed such as '200 MiB/s', '1.5 GiB/s', '0.5 network', "
                        "'2 node-local' or '1 shared'");
    *ret_speed = speed;
    return ESDM_OK;
}

static esdm_status
read_mode(const value *v, esdm_accuracy_mode *ret_mode)
{
    for (int mode = ESDM_MODE_SPEED; mode <= ESDM_MODE_FAST; mode++) {
        if (strcmp(v->text, modes[mode]) == 0) {
            *ret_mode = (esdm_accuracy_mode) mode;
            return ESDM_OK;
        }
    }
    return wrong(v, "expected speed, fast, balanced, archive, energy or progressive");
}

static esdm_status
read_value(const value *v, esdm_accuracy *a)
{
    void *member = (char *) a + v->quantity->offset;
    switch (v->quantity->kind) {
    case ESDM__TOLERANCE:
        return read_in_units(v, false, member);
    case ESDM__SHARE:
        return read_share(v, member);
    case ESDM__COUNT:
        return read_count(v, member);
    case ESDM__NSB:
    case ESDM__NSD:
        return read_places(v, member);
    case ESDM__CONSERVE:
        return read_conserve(v, member);
    case ESDM__NUMBER:
        return read_in_units(v, true, member);
    case ESDM__NUMBERS:
        return read_numbers(v, a);
    case ESDM__SPEED:
        return read_speed(v, member);
    case ESDM__DECIBELS:
        return read_decibels(v, member);
    case ESDM__REGIONS:
        return esdm__regions_read(
            a, v->text, &(esdm__accuracy_reading){.units = v->units, .stored = v->stored}, v->err);
    default:
        return read_mode(v, member);
    }
}

static const esdm__quantity *
find_quantity(const char *name)
{
    for (size_t i = 0; i < ESDM__QUANTITIES; i++)
        if (strcmp(name, esdm__quantities[i].name) == 0 ||
            (esdm__quantities[i].short_name != NULL &&
             strcmp(name, esdm__quantities[i].short_name) == 0))
            return &esdm__quantities[i];
    for (size_t i = 0; i < sizeof of_netcdf / sizeof *of_netcdf; i++)
        if (strcmp(name, of_netcdf[i].name) == 0)
            return &of_netcdf[i];
    return NULL;
}

/* In the C locale, whatever the program's is. */
static esdm_status
set_plainly(esdm_accuracy *accuracy, const char *name, const char *text, const char *units,
            bool stored, esdm_error *err)
{
    const esdm__quantity *q = find_quantity(name);
    if (q == NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "there is no quantity '%.60s'; known are abs (0.01 K), rel, finest, "
                               "digits, bits, nsd, nsb, range, std, mean, psnr, gradient, vector, "
                               "components, exact, conserve, lossless_up_to, lossless_from, "
                               "compression_speed, decompression_speed, mode, regions (box=…: …, "
                               "level=…: …)",
                               name);
    char trimmed[VALUE_BYTES];
    text += strspn(text, " \t\n");
    size_t length = strlen(text);
    while (length > 0 && strchr(" \t\n", text[length - 1]) != NULL)
        length--;
    if (length >= sizeof trimmed)
        return esdm__error_set(err, ESDM_EINVAL, "%s: a value of %zu bytes is too long", q->name,
                               length);
    memcpy(trimmed, text, length);
    trimmed[length] = '\0';
    esdm_accuracy changed = *accuracy;
    const value v = {.quantity = q, .text = trimmed, .units = units, .stored = stored, .err = err};
    esdm_status st = read_value(&v, &changed);
    if (st != ESDM_OK)
        return st;
    changed.stated |= q->flag;
    *accuracy = changed;
    return ESDM_OK;
}

static esdm_status
set_quantity(esdm_accuracy *accuracy, const char *name, const char *text, const char *units,
             bool stored, esdm_error *err)
{
    esdm__plain_locale locale;
    esdm_status st = esdm__plain_locale_enter(&locale, err);
    if (st != ESDM_OK)
        return st;
    st = set_plainly(accuracy, name, text, units, stored, err);
    esdm__plain_locale_leave(&locale);
    return st;
}

esdm_status
esdm_accuracy_set(esdm_accuracy *accuracy, const char *name, const char *text, const char *units,
                  esdm_error *err)
{
    ESDM__NEED(err, accuracy);
    ESDM__NEED(err, name);
    ESDM__NEED(err, text);
    return set_quantity(accuracy, name, text, units, false, err);
}

uint32_t
esdm__accuracy_flag(const char *name)
{
    const esdm__quantity *q = find_quantity(name);
    return q != NULL ? q->flag : 0;
}

/* ---- several ------------------------------------------------------------------------------ */

/* One "name=value" of `bytes`. */
static esdm_status
set_item(esdm_accuracy *accuracy, const char *item, size_t bytes, const char *units, bool stored,
         esdm_error *err)
{
    char name[NAME_BYTES];
    char text[VALUE_BYTES];
    const char *equals = memchr(item, '=', bytes);
    if (equals == NULL)
        return esdm__error_set(err, ESDM_EINVAL,
                               "'%.*s': expected NAME=VALUE, such as abs=0.01 or mode=archive "
                               "(several exact values are divided by blanks: exact=250 300%s)",
                               (int) (bytes < 100 ? bytes : 100), item,
                               bytes > 0 && item[0] >= '0' && item[0] <= '9'
                                   ? "; numbers have a point, no comma: 0.01"
                                   : "");
    size_t name_bytes = (size_t) (equals - item);
    size_t text_bytes = bytes - name_bytes - 1;
    while (name_bytes > 0 && (item[name_bytes - 1] == ' ' || item[name_bytes - 1] == '\t'))
        name_bytes--;
    if (name_bytes >= sizeof name || text_bytes >= sizeof text)
        return esdm__error_set(err, ESDM_EINVAL, "'%.60s…' is too long", item);
    memcpy(name, item, name_bytes);
    name[name_bytes] = '\0';
    memcpy(text, equals + 1, text_bytes);
    text[text_bytes] = '\0';
    return set_quantity(accuracy, name, text, units, stored, err);
}

size_t
esdm__accuracy_part(const char *text)
{
    return strcspn(text, esdm__region_begins(text) ? ";" : ";,");
}

/* A part, which is a quantity or a region, as a statement of its own. */
static esdm_status
read_part(esdm_accuracy *one, const char *text, size_t bytes, const esdm__accuracy_reading *how,
          esdm_error *err)
{
    char region[VALUE_BYTES];
    if (!esdm__region_begins(text))
        return set_item(one, text, bytes, how->units, how->stored, err);
    if (how->inner)
        return esdm__error_set(err, ESDM_EINVAL,
                               "there are no regions within regions; where both "
                               "hold is said with '&': box=… & level=…: …");
    if (bytes >= sizeof region)
        return esdm__error_set(err, ESDM_EINVAL, "'%.60s…' is too long", text);
    memcpy(region, text, bytes);
    region[bytes] = '\0';
    return set_quantity(one, "regions", region, how->units, how->stored, err);
}

esdm_status
esdm__accuracy_read_parts(esdm_accuracy *into, const char *text, const esdm__accuracy_reading *how,
                          esdm_error *err)
{
    esdm_status st = ESDM_OK;
    while (st == ESDM_OK && *text != '\0') {
        text += strspn(text, " \t\n;,");
        size_t bytes = esdm__accuracy_part(text);
        esdm_accuracy one = {0};
        if (bytes > 0)
            st = read_part(&one, text, bytes, how, err);
        if (st == ESDM_OK)
            st = esdm__accuracy_join(into, &one, err);
        text += bytes;
    }
    return st;
}

static esdm_status
parse(esdm_accuracy *accuracy, const char *text, const char *units, bool stored, esdm_error *err)
{
    esdm_accuracy changed = *accuracy;
    esdm_accuracy whole = {0};
    const esdm__accuracy_reading how = {.units = units, .stored = stored};
    esdm_status st = esdm__accuracy_read_parts(&whole, text, &how, err);
    /* Without units nothing tells which of '0.5 K' and '1 mK' is stricter. */
    if (st == ESDM_OK && !stored && units != esdm__units_any)
        st = esdm__regions_check_use(&whole, err);
    if (st == ESDM_OK)
        st = esdm__accuracy_join_statement(&changed, &whole, err);
    if (st == ESDM_OK)
        st = esdm__accuracy_check(&changed, stored, err);
    if (st == ESDM_OK)
        *accuracy = changed;
    return st;
}

esdm_status
esdm_accuracy_parse(esdm_accuracy *accuracy, const char *text, const char *units, esdm_error *err)
{
    ESDM__NEED(err, accuracy);
    ESDM__NEED(err, text);
    return parse(accuracy, text, units, false, err);
}

esdm_status
esdm__accuracy_parse_stored(esdm_accuracy *accuracy, const char *text, esdm_error *err)
{
    return parse(accuracy, text, NULL, true, err);
}

void
esdm__accuracy_put_number(esdm__buffer *out, double number)
{
    char text[32];
    for (int digits = 15; digits <= 17; digits++) {
        (void) snprintf(text, sizeof text, "%.*g", digits, number);
        if (strtod(text, NULL) == number)
            break;
    }
    esdm__buffer_put(out, text, strlen(text));
}

static void
put_text(esdm__buffer *out, const char *text)
{
    esdm__buffer_put(out, text, strlen(text));
}

static void
put_value(esdm__buffer *out, const esdm__quantity *q, const esdm_accuracy *a)
{
    const void *member = (const char *) a + q->offset;
    const esdm_speed *speed = member;
    switch (q->kind) {
    case ESDM__COUNT:
        esdm__accuracy_put_number(out, *(const uint32_t *) member);
        break;
    case ESDM__NUMBERS:
        for (uint32_t i = 0; i < a->exact_count; i++) {
            if (i > 0)
                put_text(out, " ");
            esdm__accuracy_put_number(out, a->exact_values[i]);
        }
        break;
    case ESDM__SPEED:
        esdm__accuracy_put_number(out, speed->value);
        put_text(out, " ");
        put_text(out, speed_units[speed->unit]);
        break;
    case ESDM__MODE:
        put_text(out, modes[a->mode]);
        break;
    default:
        esdm__accuracy_put_number(out, *(const double *) member);
    }
}

void
esdm__accuracy_put_apart(esdm__buffer *out, const esdm_accuracy *accuracy, const char *between)
{
    bool first = true;
    for (size_t i = 0; i < ESDM__QUANTITIES; i++) {
        if ((accuracy->stated & esdm__quantities[i].flag) == 0)
            continue;
        if (!first)
            put_text(out, between);
        first = false;
        if (esdm__quantities[i].kind == ESDM__REGIONS) {
            esdm__regions_put(out, accuracy);
            continue;
        }
        put_text(out, esdm__quantities[i].name);
        put_text(out, "=");
        put_value(out, &esdm__quantities[i], accuracy);
    }
}

void
esdm__accuracy_put(esdm__buffer *out, const esdm_accuracy *accuracy)
{
    esdm__accuracy_put_apart(out, accuracy, "; ");
}

esdm_status
esdm_accuracy_print(const esdm_accuracy *accuracy, char **ret_text, esdm_error *err)
{
    ESDM__NEED(err, accuracy);
    ESDM__NEED(err, ret_text);
    esdm_status st = esdm__accuracy_check(accuracy, true, err);
    if (st != ESDM_OK)
        return st;
    esdm__plain_locale locale;
    st = esdm__plain_locale_enter(&locale, err);
    if (st != ESDM_OK)
        return st;
    esdm__buffer out;
    esdm__buffer_init(&out);
    esdm__accuracy_put(&out, accuracy);
    esdm__buffer_put_u8(&out, '\0');
    esdm__plain_locale_leave(&locale);
    if (out.failed) {
        esdm__buffer_clear(&out);
        return esdm__error_nomem(err, 0, "the text of an accuracy");
    }
    size_t bytes;
    *ret_text = (char *) esdm__buffer_steal(&out, &bytes);
    return ESDM_OK;
}
