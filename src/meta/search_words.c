/* SPDX-License-Identifier: LGPL-3.0-or-later */
#include "meta/search_words.h"

#include <stdint.h>

static bool
is_letter(char c)
{
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
           (uint8_t) c >= 0x80;
}

/* The next word of two letters at least; its length, 0 at the end. */
static size_t
next_word(const char *text, size_t bytes, size_t *at)
{
    size_t start = *at;
    for (;;) {
        while (start < bytes && !is_letter(text[start]))
            start++;
        size_t end = start;
        while (end < bytes && is_letter(text[end]))
            end++;
        *at = start;
        if (start == bytes || end - start >= 2)
            return end - start;
        start = end;
    }
}

void
esdm__search_words(const char *text, size_t bytes, esdm__search_word_visitor visit, void *user)
{
    char word[ESDM__SEARCH_WORD_BYTES];
    size_t at = 0;
    size_t length = next_word(text, bytes, &at);
    bool more = true;
    while (length > 0 && more) {
        size_t kept = length < sizeof word ? length : sizeof word;
        while (kept < length && kept > 0 && ((uint8_t) text[at + kept] & 0xc0) == 0x80)
            kept--; /* no half sequence */
        for (size_t i = 0; i < kept; i++)
            word[i] = (char) (text[at + i] >= 'A' && text[at + i] <= 'Z' ? text[at + i] + 32
                                                                         : text[at + i]);
        at += length;
        length = next_word(text, bytes, &at);
        more = visit(word, kept, length == 0, user);
    }
}
