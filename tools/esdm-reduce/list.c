/* SPDX-License-Identifier: LGPL-3.0-or-later */
/*
 * Millions of lines: each thread makes the text of the next piece of the list in memory of its own,
 * and writes it when the pieces before it are written. One thread makes text while another one
 * writes.
 */
#include "esdm-reduce/list.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "common/common.h"
#include "esdm-reduce/number_text.h"

enum {
    PIECE = 16384, /* lines */
    MOST_THREADS = 8,
    INDEX_BYTES = 21 /* of the longest one, with its blank */
};

typedef struct lines {
    const reduce_list *list;
    uint64_t pieces;
    GMutex lock; /* what follows */
    GCond turn;
    uint64_t begun;   /* pieces */
    uint64_t written; /* pieces */
    bool failed;
} lines;

/* The indices of a row, which is all but the last one. @return bytes. */
static size_t
row_text(const reduce_list *list, uint64_t row, char *ret)
{
    uint64_t index[ESDM_MAX_RANK] = {0};
    size_t bytes = 0;
    for (uint32_t k = list->rank > 0 ? list->rank - 1 : 0; k-- > 0; row /= list->shape[k])
        index[k] = row % list->shape[k];
    for (uint32_t k = 0; k + 1 < list->rank; k++) {
        bytes += whole_text(index[k], ret + bytes);
        ret[bytes++] = ' ';
    }
    return bytes;
}

/* @param ret room for the longest lines. @return bytes. */
static size_t
piece_text(const reduce_list *list, uint64_t from, uint64_t to, char *ret)
{
    char row[INDEX_BYTES * ESDM_MAX_RANK + NUMBER_TEXT_BYTES];
    uint64_t last = list->rank > 0 ? list->shape[list->rank - 1] : 1;
    uint64_t at = from % last;
    size_t row_bytes = row_text(list, from / last, row);
    char *end = ret;
    for (uint64_t i = from; i < to; i++, at++) {
        if (at == last) {
            at = 0;
            row_bytes = row_text(list, i / last, row);
        }
        memcpy(end, row, row_bytes);
        end += row_bytes;
        if (list->rank > 0) {
            end += whole_text(at, end);
            *end++ = ' ';
        }
        if (isnan(list->values[i]))
            *end++ = '-';
        else
            end += number_text(list->values[i], end);
        *end++ = '\n';
    }
    return (size_t) (end - ret);
}

/* @return false: there is none left, or nothing more can be written. */
static bool
begin_piece(lines *all, uint64_t *ret_piece)
{
    g_mutex_lock(&all->lock);
    bool begins = all->begun < all->pieces && !all->failed;
    if (begins)
        *ret_piece = all->begun++;
    g_mutex_unlock(&all->lock);
    return begins;
}

/* When it is its turn. */
static void
write_piece(lines *all, uint64_t piece, const char *text, size_t bytes)
{
    g_mutex_lock(&all->lock);
    while (all->written != piece)
        g_cond_wait(&all->turn, &all->lock);
    bool failed = all->failed;
    g_mutex_unlock(&all->lock);
    if (!failed)
        failed = !tool_output_plain(text, bytes);
    g_mutex_lock(&all->lock);
    all->failed = failed;
    all->written++;
    g_cond_broadcast(&all->turn);
    g_mutex_unlock(&all->lock);
}

static gpointer
print_pieces(gpointer user)
{
    lines *all = user;
    const reduce_list *list = all->list;
    uint64_t piece = 0;
    uint64_t most = list->count < PIECE ? list->count : PIECE;
    gsize line = (gsize) INDEX_BYTES * list->rank + NUMBER_TEXT_BYTES + 1;
    g_autofree char *text = g_malloc(most * line + 1);
    while (begin_piece(all, &piece)) {
        uint64_t from = piece * PIECE;
        uint64_t to = list->count - from > PIECE ? from + PIECE : list->count;
        write_piece(all, piece, text, piece_text(list, from, to, text));
    }
    return NULL;
}

void
list_print(const reduce_list *list)
{
    lines all = {.list = list, .pieces = list->count / PIECE + (list->count % PIECE != 0)};
    GThread *threads[MOST_THREADS] = {NULL};
    uint64_t most = MIN((uint64_t) MIN(g_get_num_processors(), MOST_THREADS), all.pieces);
    g_mutex_init(&all.lock);
    g_cond_init(&all.turn);
    for (uint64_t i = 1; i < most; i++) /* one that cannot be started is not needed */
        threads[i] = g_thread_try_new("esdm-list", print_pieces, &all, NULL);
    (void) print_pieces(&all);
    for (uint64_t i = 1; i < most; i++)
        if (threads[i] != NULL)
            (void) g_thread_join(threads[i]);
    g_cond_clear(&all.turn);
    g_mutex_clear(&all.lock);
}
