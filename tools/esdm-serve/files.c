/* SPDX-License-Identifier: LGPL-3.0-or-later */

/* Containers as NetCDF files. */

#include "esdm-serve/esdm-serve.h"

typedef struct reading {
    serve_state *state;
    vfile_shared *file;
} reading;

static esdm_status
read_file(void *user, uint64_t position, void *buffer, size_t bytes, size_t *ret_read,
          esdm_error *err)
{
    const reading *r = user;
    return esdm_vfile_pread(vfile_of(r->file), buffer, bytes, position, ret_read, err);
}

static void
end_reading(void *user)
{
    reading *r = user;
    vfile_pool_put(r->state->files, r->file);
    g_free(r);
}

serve_result
serve_file(serve_request *request)
{
    esdm_error err = {0};
    esdm_container_info info = {.snapshot = 0};
    serve_result result = MHD_NO;
    vfile_shared *file = NULL;
    uint64_t snapshot = 0;
    esdm_vfile_format format = ESDM_VFILE_NETCDF4;
    const char *format_text = serve_parameter(request, "format");
    if (format_text != NULL && !esdm_vfile_format_of(format_text, &format))
        return serve_error(request, MHD_HTTP_BAD_REQUEST,
                           "format is netcdf4, classic, 64bit-offset or cdf5");
    if (!serve_number(request, "snapshot", 0, &snapshot, &result))
        return result;
    esdm_status status = esdm_container_stat(request->state->session, request->rest, &info, &err);
    /* What a query joins has no snapshot of its own. */
    uint64_t time_ns = info.snapshot != 0 ? info.created_ns : info.modified_ns;
    if (status == ESDM_OK)
        status = vfile_pool_get(request->state->files, request->rest, time_ns,
                                snapshot != 0 ? snapshot : info.snapshot, format, &file, &err);
    uint64_t now = status == ESDM_OK && snapshot == 0
                       ? serve_now_if_saved(esdm_vfile_container(vfile_of(file)), &info)
                       : 0;
    if (now != 0) {
        vfile_pool_put(request->state->files, file);
        status = vfile_pool_get(request->state->files, request->rest, now, info.snapshot, format,
                                &file, &err);
    }
    if (status != ESDM_OK)
        return serve_failed(request, status, &err);
    const esdm_vfile *v = vfile_of(file);
    g_autofree char *tag = g_strdup_printf("\"%s-%" G_GUINT64_FORMAT "-%" G_GUINT64_FORMAT "-%d\"",
                                           esdm_vfile_uuid(v), (guint64) esdm_vfile_snapshot(v),
                                           (guint64) esdm_vfile_time(v), (int) format);
    reading *r = g_new0(reading, 1);
    *r = (reading){.state = request->state, .file = file};
    const serve_body body = {.size = esdm_vfile_size(v),
                             .type = "application/x-netcdf",
                             .tag = tag,
                             .read = read_file,
                             .done = end_reading,
                             .user = r};
    bool unchanged = false;
    result = serve_unchanged(request, &body, &unchanged);
    if (!unchanged)
        return serve_stream(request, &body);
    end_reading(r);
    return result;
}
