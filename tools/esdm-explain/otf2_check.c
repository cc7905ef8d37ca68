/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Reads an archive of OTF2 back: its library does not tell of all that a full disk has not taken.
 */
#include "esdm-explain/esdm-explain.h"

#ifdef EXPLAIN_OTF2

#include <errno.h>
#include <otf2/otf2.h>
#include <sys/statvfs.h>

#define FULL_BYTES (UINT64_C(64) << 10)

typedef struct counted {
    OTF2_Reader *reader;
    guint64 locations;
    guint64 events; /* as definitions say */
    GArray *numbers;
} counted;

static OTF2_CallbackCode
take_location(void *user, OTF2_LocationRef self, OTF2_StringRef name, OTF2_LocationType type,
              uint64_t events, OTF2_LocationGroupRef group)
{
    counted *c = user;
    (void) name;
    (void) type;
    (void) group;
    c->locations++;
    c->events += events;
    g_array_append_val(c->numbers, self);
    return OTF2_Reader_SelectLocation(c->reader, self) == OTF2_SUCCESS ? OTF2_CALLBACK_SUCCESS
                                                                       : OTF2_CALLBACK_ERROR;
}

static bool
read_definitions(counted *c)
{
    uint64_t read = 0;
    OTF2_GlobalDefReader *defs = OTF2_Reader_GetGlobalDefReader(c->reader);
    OTF2_GlobalDefReaderCallbacks *calls = OTF2_GlobalDefReaderCallbacks_New();
    bool good =
        defs != NULL && calls != NULL &&
        OTF2_GlobalDefReaderCallbacks_SetLocationCallback(calls, take_location) == OTF2_SUCCESS &&
        OTF2_Reader_RegisterGlobalDefCallbacks(c->reader, defs, calls, c) == OTF2_SUCCESS &&
        OTF2_Reader_ReadAllGlobalDefinitions(c->reader, defs, &read) == OTF2_SUCCESS;
    if (calls != NULL)
        OTF2_GlobalDefReaderCallbacks_Delete(calls);
    return good;
}

/* How many events there are. */
static guint64
read_events(counted *c)
{
    guint64 sum = 0;
    bool good = OTF2_Reader_OpenEvtFiles(c->reader) == OTF2_SUCCESS;
    for (guint i = 0; i < c->numbers->len && good; i++) {
        uint64_t read = 0;
        OTF2_EvtReader *events =
            OTF2_Reader_GetEvtReader(c->reader, g_array_index(c->numbers, OTF2_LocationRef, i));
        good = events != NULL &&
               OTF2_Reader_ReadAllLocalEvents(c->reader, events, &read) == OTF2_SUCCESS;
        sum += read;
    }
    return sum;
}

bool
otf2_is_whole(const char *file, guint64 locations, guint64 events)
{
    counted c = {.reader = OTF2_Reader_Open(file),
                 .numbers = g_array_new(FALSE, FALSE, sizeof(OTF2_LocationRef))};
    bool good = c.reader != NULL &&
                OTF2_Reader_SetSerialCollectiveCallbacks(c.reader) == OTF2_SUCCESS &&
                read_definitions(&c) && c.locations == locations && c.events == events &&
                read_events(&c) == events;
    if (c.reader != NULL)
        (void) OTF2_Reader_Close(c.reader);
    g_array_free(c.numbers, TRUE);
    return good;
}

bool
otf2_disk_is_full(const char *folder)
{
    struct statvfs st;
    return statvfs(folder, &st) == 0 && (guint64) st.f_bavail * st.f_frsize < FULL_BYTES;
}

#endif
