/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Goes through all sources: once for what there is to know, once to measure what is proposed. */

#include "esdm-advise/propose.h"

#include "esdm-advise/apart.h"

#include <math.h>
#include <string.h>
#include <sys/mman.h>

#define TENTH             0.1 /* of the spread, that an error may be at most */
#define LEAST_KEPT        1   /* bits of the mantissa: fewer are not proposed */
#define LEAST_INFORMATION 0.1 /* bits a number: of less, neighbours tell too little to go by */

/* What a turn does with each block that is looked at. */
typedef struct turn {
    propose_study *study;
    advise_lab *lab; /* NULL: the first turn */
    tool_progress progress;
    guint done;
} turn;

/* A block of a source. */
typedef struct piece {
    const cp_end *end;
    const cp_dataset *dataset;
    const cp_slab *slab;
    void *values;     /* owned */
    double *numbers;  /* owned */
    uint8_t *is_data; /* owned */
} piece;

static void
piece_clear(piece *p)
{
    g_free(p->values);
    g_free(p->numbers);
    g_free(p->is_data);
}

/* ---- variables ---------------------------------------------------------------------------- */

static void
free_variable(gpointer data)
{
    propose_variable *v = data;
    for (int i = 0; i < PROPOSE_REASONS; i++)
        g_free(v->results[i].accuracy);
    g_array_unref(v->spreads);
    g_free(v->firsts);
    g_free(v->sums);
    g_free(v->squares);
    g_free(v->units);
    g_free(v->name);
    g_free(v);
}

static char *
units_of(const cp_dataset *dataset)
{
    const cp_attribute *units = cp_attribute_find(dataset->attributes, "units");
    if (units == NULL || units->type != cp_type_atomic(ESDM_TYPE_CHAR))
        return NULL;
    return g_strndup(units->values, units->count);
}

/* That of a dataset; NULL: it is of no type that has a mantissa, describes others, or has another
 * type than in a source before. */
static propose_variable *
variable_of(propose_study *study, const cp_dataset *dataset)
{
    esdm_type type = dataset->type->atomic;
    if ((type != ESDM_TYPE_FLOAT32 && type != ESDM_TYPE_FLOAT64) || dataset->auxiliary ||
        cp_dataset_elements(dataset) == 0)
        return NULL;
    for (guint i = 0; i < study->variables->len; i++) {
        propose_variable *v = g_ptr_array_index(study->variables, i);
        if (!g_str_equal(v->name, dataset->name))
            continue;
        v->mixed = v->mixed || v->type != type;
        return v->type == type ? v : NULL;
    }
    propose_variable *v = g_new0(propose_variable, 1);
    v->name = g_strdup(dataset->name);
    v->units = units_of(dataset);
    v->type = type;
    v->pairs.bits = type == ESDM_TYPE_FLOAT32 ? 32 : 64;
    v->spreads = g_array_new(FALSE, FALSE, sizeof(double));
    g_ptr_array_add(study->variables, v);
    return v;
}

/* The fastest axis that has more than one point. */
static uint64_t
row_of(const cp_slab *slab)
{
    for (uint32_t i = slab->rank; i-- > 0;)
        if (slab->size[i] > 1)
            return slab->size[i];
    return 1;
}

/* The axis before it. */
static uint64_t
plane_of(const cp_slab *slab)
{
    bool found = false;
    for (uint32_t i = slab->rank; i-- > 0;) {
        if (slab->size[i] > 1 && found)
            return slab->size[i];
        found = found || slab->size[i] > 1;
    }
    return 1;
}

/* ---- measuring ---------------------------------------------------------------------------- */

static esdm_status
measure(const turn *t, propose_variable *v, const piece *p, esdm_error *err)
{
    esdm_status status = ESDM_OK;
    for (int i = 0; i < PROPOSE_REASONS && status == ESDM_OK; i++) {
        propose_result *result = &v->results[i];
        if (result->accuracy == NULL)
            continue;
        uint64_t bytes = p->slab->elements * p->dataset->type->bytes, stored;
        g_autofree void *after = g_malloc0(bytes);
        status = advise_store_block(t->lab, result->accuracy, p->dataset, p->slab, p->values, after,
                                    &stored, err);
        if (status != ESDM_OK)
            break;
        g_autofree double *numbers = advise_doubles(v->type, after, p->slab->elements);
        propose_block block = {.before = p->numbers,
                               .after = numbers,
                               .is_data = p->is_data,
                               .row = row_of(p->slab),
                               .plane = plane_of(p->slab)};
        block.rows = p->slab->elements / block.row;
        result->raw_bytes += bytes;
        result->stored_bytes += stored;
        propose_evidence_add(&result->evidence, &block);
    }
    return status;
}

/* ---- blocks ------------------------------------------------------------------------------- */

static esdm_status
look_at_block(turn *t, propose_variable *v, const cp_end *end, const cp_dataset *dataset,
              const cp_slab *slab, esdm_error *err)
{
    piece p = {.end = end, .dataset = dataset, .slab = slab};
    p.values = g_malloc0(slab->elements * dataset->type->bytes);
    esdm_status status = cp_read(end, dataset, slab, p.values, err);
    advise_apart_alive();
    if (status == ESDM_OK) {
        p.numbers = advise_doubles(v->type, p.values, slab->elements);
        p.is_data = advise_is_data(dataset, p.values, p.numbers, slab->elements);
        if (t->lab != NULL)
            status = measure(t, v, &p, err);
        else
            propose_pairs_add(&v->pairs, p.values, p.is_data, slab->elements, row_of(slab));
    }
    piece_clear(&p);
    return status;
}

/* The block in the middle, of a member. */
static esdm_status
look_at_member(const turn *t, propose_variable *v, const cp_end *end, const cp_dataset *dataset,
               esdm_error *err)
{
    cp_slab slab;
    cp_slab_init_of(&slab, dataset, t->study->advise->block_bytes);
    uint64_t blocks = 0, k = 0;
    while (cp_slab_next(&slab))
        blocks++;
    cp_slab_init_of(&slab, dataset, t->study->advise->block_bytes);
    while (k++ <= blocks / 2 && cp_slab_next(&slab))
        continue;
    g_autofree void *values = g_malloc0(slab.elements * dataset->type->bytes);
    esdm_status status = cp_read(end, dataset, &slab, values, err);
    if (status != ESDM_OK)
        return status;
    g_autofree double *numbers = advise_doubles(v->type, values, slab.elements);
    g_autofree uint8_t *is_data = advise_is_data(dataset, values, numbers, slab.elements);
    propose_member_add(v, numbers, is_data, slab.elements);
    return ESDM_OK;
}

/* Blocks are counted over all sources; every so manieth is looked at. */
static esdm_status
look_at(turn *t, const cp_end *end, const cp_dataset *dataset, esdm_error *err)
{
    propose_study *study = t->study;
    propose_variable *v = variable_of(study, dataset);
    if (v == NULL)
        return ESDM_OK;
    const double *all = g_hash_table_lookup(study->advise->blocks_of, dataset->name);
    uint64_t each = (uint64_t) ceil((all != NULL ? *all : 1) / PROPOSE_BLOCKS);
    esdm_status status = ESDM_OK;
    cp_slab slab;
    cp_slab_init_of(&slab, dataset, study->advise->block_bytes);
    while (status == ESDM_OK && cp_slab_next(&slab)) {
        if (v->seen++ % each == each / 2)
            status = look_at_block(t, v, end, dataset, &slab, err);
    }
    uint32_t axis = propose_member_axis(study, dataset);
    if (t->lab == NULL && status == ESDM_OK && axis < dataset->rank)
        status = propose_spread_add(end, dataset, axis, study->advise->block_bytes, v, err);
    if (t->lab == NULL && status == ESDM_OK && study->options.members)
        status = look_at_member(t, v, end, dataset, err);
    return status;
}

static guint
look_at_all(turn *t)
{
    guint failed = 0;
    const GPtrArray *sources = t->study->advise->sources;
    for (guint i = 0; i < t->study->variables->len; i++)
        ((propose_variable *) g_ptr_array_index(t->study->variables, i))->seen = 0;
    for (guint i = 0; i < sources->len; i++) {
        const advise_source *source = g_ptr_array_index(sources, i);
        cp_end end;
        g_autoptr(cp_model) model = NULL;
        esdm_error err = {0};
        t->study->told->in_hand = i;
        esdm_status status = advise_open_source(source, t->study->session, &end, &model, &err);
        advise_lab *names = t->lab;
        if (status == ESDM_OK && names == NULL)
            status = advise_lab_open(&names, &err);
        if (status == ESDM_OK)
            status = advise_find_auxiliary(names, model, &err);
        for (guint k = 0; status == ESDM_OK && k < model->datasets->len; k++)
            status = look_at(t, &end, g_ptr_array_index(model->datasets, k), &err);
        if (t->lab == NULL)
            advise_lab_close(names);
        cp_close(&end);
        if (status != ESDM_OK) {
            tool_error("%s: %s", source->name, err.message);
            t->study->told->failed[i] = true;
            failed++;
        }
        tool_progress_show(&t->progress, (double) ++t->done / (2 * sources->len), source->name);
    }
    return failed;
}

/* ---- proposing ---------------------------------------------------------------------------- */

/* Two digits, not more than the number. */
static double
rounded_down(double x)
{
    double unit = pow(10, floor(log10(x)) - 1);
    return floor(x / unit * (1 + 1e-12)) * unit;
}

static void
propose(const propose_study *study, propose_variable *v)
{
    propose_information_of(&v->pairs, study->options.share, &v->information);
    propose_spread_end(v);
    v->results[PROPOSE_NOTHING].accuracy = g_strdup("mode=balanced");
    if (v->information.total >= LEAST_INFORMATION) {
        /* As a share: rounding to the bits that are kept is off by at most that of a number. */
        uint32_t bits = MAX(v->information.kept, LEAST_KEPT) + 1;
        v->results[PROPOSE_INFORMATION].accuracy = g_strdup_printf("bits=%u", bits);
        v->chosen = PROPOSE_INFORMATION;
    }
    if (v->spread > 0) {
        char text[32];
        (void) g_ascii_formatd(text, sizeof text, "%.3g", rounded_down(TENTH * v->spread));
        v->results[PROPOSE_ENSEMBLE].accuracy = g_strdup_printf("abs=%s", text);
        v->chosen = PROPOSE_ENSEMBLE;
    }
}

char *
propose_why(const propose_study *study, const propose_variable *v, propose_reason reason)
{
    const propose_information *info = &v->information;
    if (reason == PROPOSE_INFORMATION)
        return g_strdup_printf(
            "%g %% of the real information, %.2f bits a number, lies in %u of %u "
            "bits of the mantissa",
            100 * study->options.share, info->total, info->kept,
            v->type == ESDM_TYPE_FLOAT32 ? 23u : 52u);
    if (reason == PROPOSE_ENSEMBLE)
        return g_strdup_printf("a tenth of the spread of %" G_GUINT64_FORMAT
                               " members, which is above %.3g at nine of ten points",
                               v->members, v->spread);
    return g_strdup("neighbouring numbers have nothing in common, or next to nothing");
}

/* In the process that reads. */
static tool_exit
propose_all(void *user)
{
    propose_study *study = user;
    const propose_options *options = &study->options;
    esdm_error err = {0};
    turn t = {.study = study};
    esdm_status status =
        advise_apart_session(advise_has_containers(study->advise), &study->session, &err);
    if (status != ESDM_OK)
        return tool_fail(status, &err);
    study->variables = g_ptr_array_new_with_free_func(free_variable);
    tool_progress_start(&t.progress, options->progress);
    guint failed = look_at_all(&t);
    for (guint i = 0; i < study->variables->len; i++)
        propose(study, g_ptr_array_index(study->variables, i));
    status = advise_lab_open(&t.lab, &err);
    guint failed_then = status == ESDM_OK ? look_at_all(&t) : 0;
    failed = MAX(failed, failed_then) + study->lost;
    tool_progress_end(&t.progress);
    advise_lab_close(t.lab);
    tool_exit result = status == ESDM_OK ? TOOL_OK : tool_fail(status, &err);
    if (result == TOOL_OK && study->variables->len == 0) {
        tool_error("there are no variables of floating-point numbers that may be rounded");
        result = TOOL_FAILED;
    }
    if (result == TOOL_OK && tool.json)
        propose_print_json(study);
    else if (result == TOOL_OK)
        propose_print(study);
    if (result == TOOL_OK && options->page != NULL)
        result = propose_page(study, options->page);
    for (guint i = 0; i < study->variables->len; i++) {
        const propose_variable *v = g_ptr_array_index(study->variables, i);
        if (v->mixed)
            tool_error("'%s' has numbers of several types: those of the first are looked at",
                       v->name);
    }
    g_ptr_array_unref(study->variables);
    esdm_session_close(study->session);
    return failed > 0 && result == TOOL_OK ? TOOL_FAILED : result;
}

static const char *
in_hand(void *user)
{
    const propose_study *study = user;
    return ((advise_source *) g_ptr_array_index(study->advise->sources, study->told->in_hand))
        ->name;
}

/* What was lost, and what had an error before that, is left out at the next time. */
static void
leave_out(propose_study *study)
{
    study->told->failed[study->told->in_hand] = true;
    for (guint i = study->advise->sources->len; i-- > 0;) {
        if (study->told->failed[i]) {
            advise_leave_out(study->advise, i);
            study->lost++;
        }
        study->told->failed[i] = false;
    }
}

tool_exit
advise_propose(advise_study *advise, const propose_options *options)
{
    propose_study study = {.advise = advise, .options = *options};
    size_t bytes = sizeof *study.told + advise->sources->len * sizeof(bool);
    tool_exit result = TOOL_FAILED;
    study.told = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (study.told == MAP_FAILED) {
        tool_error("no memory for %u sources", advise->sources->len);
        return TOOL_FAILED;
    }
    while (!advise_apart_whole(propose_all, &study, in_hand, &result) && advise->sources->len > 0)
        leave_out(&study);
    (void) munmap(study.told, bytes);
    return result;
}
