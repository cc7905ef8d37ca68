/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* How often a file was opened and read: twice as many bytes as it has may be two openings that read
 * it once each, or one that came back to the same chunks. */
#include "esdm-explain/esdm-explain.h"

#include <string.h>

#define KNOWN_SHARE 0.9 /* of the bytes that were read: their calls were kept */
#define LITTLE      0.1 /* of what the largest one read: a look at the file's head */

/* A file in a process. Descriptors that are open at once share what is read. */
typedef struct opener {
    object *object;
    guint open;       /* descriptors, now */
    guint together;   /* most of them while something was read */
    guint64 bytes;    /* since none was open */
    GArray *openings; /* guint64: bytes of each that is over */
} opener;

static void
opener_free(gpointer data)
{
    opener *o = data;
    g_array_free(o->openings, TRUE);
    g_free(o);
}

static void
end_opening(opener *o)
{
    guint n = MAX(o->together, 1);
    guint64 each = o->bytes / n;
    for (guint i = 0; i < n && each > 0; i++)
        g_array_append_val(o->openings, each);
    o->object->openings_bytes += o->bytes;
    o->bytes = 0;
    o->together = 0;
}

static opener *
opener_of(GHashTable *openers, const call *c)
{
    char *key = g_strdup_printf("%p %p", (void *) c->object, (void *) c->process);
    opener *o = g_hash_table_lookup(openers, key);
    if (o != NULL) {
        g_free(key);
        return o;
    }
    o = g_new0(opener, 1);
    o->object = c->object;
    o->openings = g_array_new(FALSE, FALSE, sizeof(guint64));
    g_hash_table_insert(openers, key, o);
    return o;
}

static void
add_call(opener *o, const call *c)
{
    if (c->kind == WATCH_KIND_OPEN) {
        if (o->open == 0)
            end_opening(o);
        o->open++;
    } else if (c->kind == WATCH_KIND_READ) {
        o->bytes += c->bytes;
        o->together = MAX(o->together, o->open);
    } else if (o->open > 0 && strstr(call_name(c), "close") != NULL) {
        o->open--;
    }
}

/* What is little is measured by the largest one. */
static void
find_largest(gpointer unused, gpointer of, gpointer user)
{
    opener *o = of;
    (void) unused;
    (void) user;
    end_opening(o);
    for (guint i = 0; i < o->openings->len; i++)
        o->object->opening_bytes =
            MAX(o->object->opening_bytes, g_array_index(o->openings, guint64, i));
}

static void
count_large(gpointer unused, gpointer of, gpointer user)
{
    const opener *o = of;
    guint64 before = o->object->openings;
    double little = LITTLE * (double) o->object->opening_bytes;
    (void) unused;
    (void) user;
    for (guint i = 0; i < o->openings->len; i++)
        o->object->openings += (double) g_array_index(o->openings, guint64, i) > little;
    o->object->opening_processes += o->object->openings > before;
}

void
run_openings(run *r)
{
    if (r->engine) /* what targets are asked is not opened */
        return;
    g_autoptr(GHashTable) openers =
        g_hash_table_new_full(g_str_hash, g_str_equal, g_free, opener_free);
    for (guint i = 0; i < r->calls->len; i++) {
        const call *c = &g_array_index(r->calls, call, i);
        if (c->object->kind == WATCH_FILE && !c->failed)
            add_call(opener_of(openers, c), c);
    }
    g_hash_table_foreach(openers, find_largest, NULL);
    g_hash_table_foreach(openers, count_large, NULL);
    for (guint i = 0; i < r->objects->len; i++) {
        object *o = r->objects->pdata[i];
        if (o->kind == WATCH_FILE &&
            (double) o->openings_bytes < KNOWN_SHARE * (double) o->entry.read.bytes)
            o->openings = 0;
    }
}
