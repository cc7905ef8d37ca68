/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* Notes of merges as two that end at the same time make them: the plug-in of the metadata store is
 * asked itself, so that the older one can come last.
 *
 *     raise_tag PLUGIN.so SITE-ID CONFIGURATION CONTAINER NAME SNAPSHOT…
 *
 * Prints the status of each: 0, or what failed and its message.
 */
#include <dlfcn.h>
#include <stdio.h>
#include <stdlib.h>

#include "esdm/sys/meta_store.h"

static void
stop(const char *why)
{
    fprintf(stderr, "raise_tag: %s\n", why);
    exit(1);
}

static const esdm_meta_plugin *
load(const char *path)
{
    void *library = dlopen(path, RTLD_NOW);
    esdm_plugin_entry_fn entry = NULL;
    if (library == NULL)
        stop(dlerror());
    *(void **) &entry = dlsym(library, ESDM_PLUGIN_ENTRY);
    if (entry == NULL)
        stop(dlerror());
    return (const esdm_meta_plugin *) entry();
}

int
main(int argc, char **argv)
{
    if (argc < 7)
        stop("too few arguments");
    const esdm_meta_plugin *meta = load(argv[1]);
    const esdm_plugin_config config = {
        .name = "metadata", .json = argv[3], .path = "raise_tag", .site_id = argv[2]};
    esdm_error err = {0};
    void *store = NULL;
    if (meta->open(&config, false, &store, &err) != ESDM_OK)
        stop(err.message);
    for (int i = 6; i < argc; i++) {
        const esdm_meta_tag tag = {.name = argv[5],
                                   .snapshot = strtoull(argv[i], NULL, 10),
                                   .author = argv[i],
                                   .only_newer = true};
        esdm_status status = meta->tag_set(store, strtoull(argv[4], NULL, 10), &tag, true, &err);
        printf("%d%s%s\n", (int) status, status == ESDM_OK ? "" : " ",
               status == ESDM_OK ? "" : err.message);
    }
    meta->close(store);
    return 0;
}
