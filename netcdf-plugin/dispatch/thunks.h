/* SPDX-License-Identifier: LGPL-3.0-or-later */
/* One set of thunks and one table for libnetcdf copy INSTANCE; included once per copy by table.c,
 * so there is no include guard. */

#define PASTE_(a, b, c) a##b##_##c
#define PASTE(a, b, c)  PASTE_(a, b, c)
#define THUNK(name)     PASTE(thunk_, INSTANCE, name)

static int
THUNK(create)(const char *path, int mode, size_t stub_number, int base_pe, size_t *chunk_hint,
              void *parameters, const NC_Dispatch *table, int ncid)
{
    (void) base_pe, (void) table;
    ESDM_FLOAT_ENV_OWN;
    return esdmnc_create(esdmnc_id_make(INSTANCE, ncid), path, mode, stub_number,
                         (const esdmnc_new_stub *) (const void *) chunk_hint, parameters);
}

static int
THUNK(open)(const char *path, int mode, int base_pe, size_t *chunk_hint, void *parameters,
            const NC_Dispatch *table, int ncid)
{
    (void) base_pe, (void) chunk_hint, (void) table;
    ESDM_FLOAT_ENV_OWN;
    return esdmnc_open(esdmnc_id_make(INSTANCE, ncid), path, mode, parameters);
}

static int
THUNK(put_vara)(int ncid, int v, const size_t *s, const size_t *c, const void *d, nc_type t)
{
    esdmnc_id id = esdmnc_id_make(INSTANCE, ncid);
    if (esdmnc_put_next(id, v, s, c, d, t))
        return NC_NOERR;
    ESDM_FLOAT_ENV_OWN;
    return esdmnc_put_vara(id, v, s, c, d, t);
}

/* `arguments` is a list with a leading comma. NOLINTBEGIN(bugprone-macro-parentheses) */
#define DEFINE(name, parameters, arguments)                                                        \
    static int THUNK(name)(int ncid parameters)                                                    \
    {                                                                                              \
        ESDM_FLOAT_ENV_OWN;                                                                        \
        return esdmnc_##name(esdmnc_id_make(INSTANCE, ncid) arguments);                            \
    }
ESDMNC_CALLS(DEFINE)
/* NOLINTEND(bugprone-macro-parentheses) */
#undef DEFINE

#define ENTER(name, parameters, arguments) .name = THUNK(name),
static const NC_Dispatch PASTE(table_, INSTANCE,
                               dispatch) = {.model = ESDMNC_FORMATX,
                                            .dispatch_version = NC_DISPATCH_VERSION,
                                            .create = THUNK(create),
                                            .open = THUNK(open),
                                            .put_vara = THUNK(put_vara),
                                            ESDMNC_CALLS(ENTER)};
#undef ENTER

#undef THUNK
#undef PASTE
#undef PASTE_
#undef INSTANCE
