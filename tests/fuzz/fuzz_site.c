/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* The site configuration: any text either loads or gives an error with a message. */

#include <stdlib.h>
#include <string.h>

#include "site/site.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes);

int
LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    char *text = malloc(bytes + 1);
    if (text == NULL)
        return 0;
    memcpy(text, data, bytes);
    text[bytes] = '\0';

    esdm__site *site = NULL;
    esdm_error err = {0};
    esdm_status status = esdm__site_load(text, NULL, &site, &err);
    if (status == ESDM_OK) {
        if (site == NULL || site->ntargets == 0 || site->engine.memory_bytes == 0)
            abort();
        for (size_t i = 0; i < site->ntargets; i++) {
            esdm_plugin_config config;
            esdm__site_plugin_config(site, &site->targets[i], &config);
            if (config.json == NULL || config.site_id == NULL)
                abort();
        }
    } else if (site != NULL || err.status != status || err.message[0] == '\0') {
        abort();
    }
    esdm__site_free(site);
    free(text);
    return 0;
}
