/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Values that are written in the place of those of the program, which a trace does not have. */
#include "esdm-replay/esdm-replay.h"

#include <math.h>
#include <string.h>

#define PATTERN (UINT64_C(1) << 20) /* elements; codecs do not see further back than some */
#define TYPES   (ESDM_TYPE_STRING + 1)

typedef struct pattern {
    void *elements;
    guint64 count;
} pattern;

struct replay_values {
    pattern made[TYPES];
    GHashTable *given; /* pattern by "TYPE PATH" */
};

/* Smooth, with noise in the last bits, as fields of models are. */
static double
smooth(guint64 i)
{
    return 280 + 20 * sin((double) i * 1e-3) + 0.01 * tool_unit(tool_scramble(i));
}

static const char *const texts[] = {"station", "north", "", "a longer text, as titles are"};

static void
make_element(esdm_type type, void *elements, guint64 i)
{
    double value = smooth(i);
    switch (type) {
    case ESDM_TYPE_CHAR:
        ((char *) elements)[i] = (char) ('a' + i % 23);
        break;
    case ESDM_TYPE_INT8:
        ((gint8 *) elements)[i] = (gint8) ((int) value % 100);
        break;
    case ESDM_TYPE_UINT8:
        ((guint8 *) elements)[i] = (guint8) ((int) value % 200);
        break;
    case ESDM_TYPE_INT16:
        ((gint16 *) elements)[i] = (gint16) (value * 100);
        break;
    case ESDM_TYPE_UINT16:
        ((guint16 *) elements)[i] = (guint16) (value * 100);
        break;
    case ESDM_TYPE_INT32:
        ((gint32 *) elements)[i] = (gint32) (value * 1e4);
        break;
    case ESDM_TYPE_UINT32:
        ((guint32 *) elements)[i] = (guint32) (value * 1e4);
        break;
    case ESDM_TYPE_INT64:
        ((gint64 *) elements)[i] = (gint64) (value * 1e4);
        break;
    case ESDM_TYPE_UINT64:
        ((guint64 *) elements)[i] = (guint64) (value * 1e4);
        break;
    case ESDM_TYPE_FLOAT32:
        ((float *) elements)[i] = (float) value;
        break;
    case ESDM_TYPE_FLOAT64:
        ((double *) elements)[i] = value;
        break;
    default:
        ((const char **) elements)[i] = texts[i % G_N_ELEMENTS(texts)];
        break;
    }
}

static void
make_pattern(pattern *p, esdm_type type)
{
    if (p->elements != NULL)
        return;
    p->elements = g_malloc_n(PATTERN, esdm_type_size(type));
    p->count = PATTERN;
    for (guint64 i = 0; i < PATTERN; i++)
        make_element(type, p->elements, i);
}

/* ---- of a container -------------------------------------------------------------------------- */

static char *
key_of(const replay_dataset *dataset, esdm_type memory)
{
    return g_strdup_printf("%d %s", (int) memory, dataset->path);
}

/* As much from the beginning as a pattern has, in whole rows. */
static esdm_status
read_some(esdm_dataset *dataset, esdm_type memory, pattern *ret, esdm_error *err)
{
    uint64_t offset[ESDM_MAX_RANK] = {0};
    uint64_t size[ESDM_MAX_RANK];
    guint64 left = PATTERN;
    esdm_dataspace space;
    for (guint i = esdm_dataset_rank(dataset); i > 0; i--) {
        size[i - 1] = MIN(esdm_dimension_length(esdm_dataset_dimension(dataset, i - 1)), left);
        left = size[i - 1] > 0 ? MAX(left / size[i - 1], 1) : 1;
    }
    esdm_status st = esdm_dataspace_init(&space, esdm_dataset_rank(dataset), offset, size, err);
    guint64 count = st == ESDM_OK ? esdm_dataspace_elements(&space) : 0;
    if (count == 0)
        return st;
    void *elements = g_malloc0_n(count, esdm_type_size(memory));
    st = esdm_read(dataset, &space, memory, elements, NULL, err);
    if (st == ESDM_OK)
        *ret = (pattern){elements, count};
    else
        g_free(elements);
    return st;
}

static esdm_status
take(replay_values *values, esdm_container *container, const replay_operation *o, esdm_error *err)
{
    char *key = key_of(o->dataset, o->memory);
    esdm_dataset *dataset = replay_find(container, o->dataset->path);
    bool text = o->memory == ESDM_TYPE_CHAR || o->memory == ESDM_TYPE_STRING;
    if (dataset == NULL || g_hash_table_contains(values->given, key) ||
        (text ? esdm_dataset_type(dataset) != o->memory
              : esdm_type_name(esdm_dataset_type(dataset)) == NULL ||
                    esdm_dataset_type(dataset) == ESDM_TYPE_CHAR ||
                    esdm_dataset_type(dataset) == ESDM_TYPE_STRING)) {
        g_free(key);
        return ESDM_OK;
    }
    pattern *p = g_new0(pattern, 1);
    esdm_status st = read_some(dataset, o->memory, p, err);
    if (st == ESDM_OK && p->count > 0)
        g_hash_table_insert(values->given, key, p);
    else
        g_free(key);
    return st;
}

static tool_exit
take_all(replay_values *values, const replay_load *load, esdm_session *session, const char *data)
{
    esdm_error err = {0};
    esdm_container *container = NULL;
    esdm_status st =
        esdm_container_open(session, data, ESDM_OPEN_READ, ESDM_SNAPSHOT_LATEST, &container, &err);
    for (guint k = 0; k < load->processes->len && st == ESDM_OK; k++) {
        const replay_process *p = load->processes->pdata[k];
        for (guint i = 0; i < p->operations->len && st == ESDM_OK; i++) {
            const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
            if (o->dataset != NULL)
                st = take(values, container, o, &err);
        }
    }
    esdm_container_discard(container);
    if (st == ESDM_OK && g_hash_table_size(values->given) == 0) {
        tool_error("--data: %s has none of the variables of the record", data);
        return TOOL_NOT_FOUND;
    }
    return st == ESDM_OK ? TOOL_OK : tool_fail(st, &err);
}

/* ---- all ------------------------------------------------------------------------------------- */

tool_exit
replay_values_new(const replay_load *load, esdm_session *session, const char *data,
                  replay_values **ret)
{
    replay_values *values = g_new0(replay_values, 1);
    values->given = g_hash_table_new(g_str_hash, g_str_equal);
    for (guint k = 0; k < load->processes->len; k++) {
        const replay_process *p = load->processes->pdata[k];
        for (guint i = 0; i < p->operations->len; i++) {
            const replay_operation *o = &g_array_index(p->operations, replay_operation, i);
            if (o->kind == REPLAY_WRITE)
                make_pattern(&values->made[o->memory], o->memory);
        }
    }
    for (guint k = 0; k < load->files->len; k++) {
        const replay_file *file = load->files->pdata[k];
        for (guint i = 0; i < file->inputs->len; i++) {
            const replay_dataset *d = file->inputs->pdata[i];
            if (d->is_read && d->type != ESDM_TYPE_NONE)
                make_pattern(&values->made[d->type], d->type);
        }
    }
    *ret = values;
    return data != NULL ? take_all(values, load, session, data) : TOOL_OK;
}

void
replay_values_fill(const replay_values *values, const replay_dataset *dataset, esdm_type memory,
                   void *buffer, guint64 count, guint64 seed)
{
    g_autofree char *key = key_of(dataset, memory);
    const pattern *given = g_hash_table_lookup(values->given, key);
    const pattern *p = given != NULL ? given : &values->made[memory];
    gsize bytes = esdm_type_size(memory);
    for (guint64 done = 0; done < count;) {
        guint64 from = (seed + done) % p->count;
        guint64 n = MIN(p->count - from, count - done);
        memcpy((char *) buffer + done * bytes, (const char *) p->elements + from * bytes,
               (gsize) n * bytes);
        done += n;
    }
}
