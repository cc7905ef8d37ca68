/* SPDX-License-Identifier: LGPL-3.0-or-later */
/** @file Which datasets describe others: as CF's conventions tell them, and as the structure is
 * now.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "esdm/accuracy.h"
#include "model/undo.h"

#define OK(call) assert_int_equal((call), ESDM_OK)

typedef struct fixture {
    esdm_container *container;
    esdm_dimension *dims[2]; /* y, x */
} fixture;

static int
set_up(void **state)
{
    fixture *f = calloc(1, sizeof *f);
    assert_non_null(f);
    f->container = esdm__container_new("test/auxiliary.nc");
    assert_non_null(f->container);
    esdm_group *root = esdm_container_root(f->container);
    OK(esdm_dimension_create(root, "y", 10, &f->dims[0], NULL));
    OK(esdm_dimension_create(root, "x", 20, &f->dims[1], NULL));
    *state = f;
    return 0;
}

static int
tear_down(void **state)
{
    fixture *f = *state;
    esdm__container_free(f->container);
    free(f);
    return 0;
}

static void
set(esdm_dataset *dataset, const char *name, const char *value)
{
    OK(esdm_attribute_set(esdm_dataset_attributes(dataset), name, ESDM_TYPE_CHAR, strlen(value),
                          value, NULL));
}

/* With an attribute; NULL: none. */
static esdm_dataset *
create(fixture *f, const char *name, uint32_t rank, const char *attribute, const char *value)
{
    esdm_dataset *dataset;
    OK(esdm_dataset_create(esdm_container_root(f->container), name, ESDM_TYPE_FLOAT32, rank,
                           f->dims, &dataset, NULL));
    if (attribute != NULL)
        set(dataset, attribute, value);
    return dataset;
}

static bool
is_auxiliary(const esdm_dataset *dataset)
{
    return esdm_dataset_is_auxiliary(dataset, NULL);
}

static void
test_auxiliary__tells_by_itself(void **state)
{
    static const struct {
        const char *name;
        uint32_t rank;
        const char *attribute, *value;
        const char *kind; /* NULL: data */
    } cases[] = {
        {"y", 1, NULL, NULL, "a coordinate"},
        {"x", 2, NULL, NULL, "a coordinate"},
        {"stamp", 1, "units", "days since 1850-01-01", "a time"},
        {"lat", 2, "units", "degrees_north", "a coordinate"},
        {"lon", 2, "standard_name", "longitude", "a coordinate"},
        {"plev", 1, "axis", "Z", "a coordinate"},
        {"depth", 1, "positive", "down", "a coordinate"},
        {"height", 0, NULL, NULL, "a scalar"},
        {"crs", 0, "grid_mapping_name", "mercator", "a grid mapping"},
        {"mask", 2, "flag_masks", "1", "flags"},
        {"qc", 2, "standard_name", "air_temperature status_flag", "flags"},
        {"qf", 2, "standard_name", "sea_water_temperature_quality_flag", "flags"},
        {"basin", 2, "standard_name", "region", "flags"},
        {"land", 2, "standard_name", "land_binary_mask", "flags"},
        {"nobs", 2, "standard_name", "air_temperature number_of_observations", "flags"},
        {"error", 2, "standard_name", "air_temperature standard_error", NULL},
        {"share", 2, "standard_name", "region_area_fraction", NULL},
        {"hyam", 1, NULL, NULL, "a coordinate"},
        {"HYBI", 1, NULL, NULL, "a coordinate"},
        {"gw", 1, NULL, NULL, "a coordinate"},
        {"b", 1, "long_name", "vertical coordinate formula term: b(k)", "a coordinate"},
        {"a_bnds", 2, "long_name", "vertical coordinate Formula Term: a(k+1/2)", "a coordinate"},
        {"c", 1, "long_name", "hybrid A coefficient at layer midpoints", "a coordinate"},
        {"wgt", 1, "long_name", "Gauss weights", "a coordinate"},
        {"zlev", 1, "formula_terms", "sigma: zlev ps: ps", "a coordinate"},
        {"latCell", 1, "units", "radians", "a coordinate"},
        {"clon", 1, "units", "radian", "a coordinate"},
        {"areacella", 2, "standard_name", "cell_area", "a coordinate"},
        {"x_bnds", 2, NULL, NULL, "bounds"},
        {"bounds_lat", 2, NULL, NULL, NULL}, /* of what has more dimensions */
        {"lat1", 1, "units", "degrees_north", "a coordinate"},
        {"lat1_vertices", 2, NULL, NULL, "bounds"},
        {"tas_bounds", 2, NULL, NULL, NULL},
        {"hybm", 2, NULL, NULL, NULL}, /* a field */
        {"direction", 1, "units", "radians", NULL},
        {"a", 1, NULL, NULL, NULL},
        {"flux", 2, "positive", "up", NULL},
        {"since", 2, "units", "K", NULL},
        {"tas", 2, "standard_name", "air_temperature", NULL},
        {"plain", 2, NULL, NULL, NULL},
    };
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        const char *kind = NULL;
        const esdm_dataset *dataset =
            create(*state, cases[i].name, cases[i].rank, cases[i].attribute, cases[i].value);
        if (esdm_dataset_is_auxiliary(dataset, &kind) != (cases[i].kind != NULL))
            fail_msg("%s", cases[i].name);
        if (kind != NULL)
            assert_string_equal(kind, cases[i].kind);
    }
    assert_false(esdm_dataset_is_auxiliary(NULL, NULL));
}

static void
test_auxiliary__others_name_it(void **state)
{
    static const char *const attributes[][3] = {
        {"coordinates", "  first\tnamed ", "long_name"},
        {"bounds", "named", "title"},
        {"cell_measures", "area: named", "standard_name"},
        {"formula_terms", "a: ap b: /group/named", "comment"},
        {"face_node_connectivity", "named", "connectivity"},
        {"borders", "named", "border"},
        {"grid_mapping", "named", "grid"},
    };
    const esdm_dataset *named = create(*state, "named", 1, NULL, NULL);
    esdm_dataset *other = create(*state, "other", 2, NULL, NULL);
    for (size_t i = 0; i < sizeof attributes / sizeof attributes[0]; i++) {
        esdm_attributes *list = esdm_dataset_attributes(other);
        set(other, attributes[i][2], "named");
        assert_false(is_auxiliary(named));
        set(other, attributes[i][0], attributes[i][1]);
        assert_true(is_auxiliary(named));
        assert_int_equal(is_auxiliary(other), strcmp(attributes[i][0], "bounds") == 0 ||
                                                  strcmp(attributes[i][0], "formula_terms") == 0);
        OK(esdm_attribute_remove(list, attributes[i][0], NULL));
        assert_false(is_auxiliary(named));
    }
}

static void
test_auxiliary__integers_that_are_not_packed(void **state)
{
    fixture *f = *state;
    static const esdm_type types[] = {ESDM_TYPE_INT8,  ESDM_TYPE_UINT16, ESDM_TYPE_INT32,
                                      ESDM_TYPE_INT64, ESDM_TYPE_UINT64, ESDM_TYPE_FLOAT64};
    for (size_t i = 0; i < sizeof types / sizeof types[0]; i++) {
        char name[16];
        esdm_dataset *dataset;
        (void) snprintf(name, sizeof name, "date%zu", i);
        OK(esdm_dataset_create(esdm_container_root(f->container), name, types[i], 2, f->dims,
                               &dataset, NULL));
        assert_int_equal(is_auxiliary(dataset), types[i] != ESDM_TYPE_FLOAT64);
        set(dataset, "units", "K");
        assert_int_equal(is_auxiliary(dataset), types[i] != ESDM_TYPE_FLOAT64);
        double factor = 0.1;
        OK(esdm_attribute_set(esdm_dataset_attributes(dataset), "scale_factor", ESDM_TYPE_FLOAT64,
                              1, &factor, NULL));
        assert_false(is_auxiliary(dataset));
    }
}

static void
test_auxiliary__formula_of_levels(void **state)
{
    const esdm_dataset *named = create(*state, "coefficient", 1, NULL, NULL);
    create(*state, "wind", 2, "formula", "sqrt coefficient");
    assert_false(is_auxiliary(named));
    create(*state, "lev", 1, "formula", "coefficient hybm (mlev=coefficient+hybm*aps)");
    assert_true(is_auxiliary(named));
}

static void
test_auxiliary__follows_the_structure(void **state)
{
    fixture *f = *state;
    esdm_group *root = esdm_container_root(f->container);
    esdm_group *group;
    esdm_dataset *data;
    OK(esdm_group_create(root, "group", &group, NULL));
    OK(esdm_dataset_create(group, "data", ESDM_TYPE_FLOAT32, 2, f->dims, &data, NULL));
    set(data, "coordinates", "lat lon");
    esdm_dataset *lat = create(f, "lat", 2, NULL, NULL);
    assert_true(is_auxiliary(lat)); /* named from a group below */
    OK(esdm_dataset_rename(lat, "latitude_of_it", NULL));
    assert_false(is_auxiliary(lat));
    esdm_container_mark(f->container);
    set(data, "bounds", "latitude_of_it");
    assert_true(is_auxiliary(lat));
    esdm__undo_revert(f->container);
    assert_false(is_auxiliary(lat));
    OK(esdm_attribute_set(esdm_group_attributes(root), "title", ESDM_TYPE_CHAR, 14,
                          "latitude_of_it", NULL));
    assert_false(is_auxiliary(lat));
    OK(esdm_attribute_set(esdm_group_attributes(root), "coordinates", ESDM_TYPE_CHAR, 14,
                          "latitude_of_it", NULL));
    assert_true(is_auxiliary(lat));
}

static void
test_pattern__is_literal_without_wildcards(void **state)
{
    (void) state;
    assert_true(esdm_accuracy_pattern_is_literal("time"));
    assert_true(esdm_accuracy_pattern_is_literal("/group/time"));
    assert_false(esdm_accuracy_pattern_is_literal("tim?"));
    assert_false(esdm_accuracy_pattern_is_literal("[t]ime"));
    assert_false(esdm_accuracy_pattern_is_literal("*"));
    assert_false(esdm_accuracy_pattern_is_literal(NULL));
}

int
main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_auxiliary__tells_by_itself, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_auxiliary__others_name_it, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_auxiliary__integers_that_are_not_packed, set_up,
                                        tear_down),
        cmocka_unit_test_setup_teardown(test_auxiliary__formula_of_levels, set_up, tear_down),
        cmocka_unit_test_setup_teardown(test_auxiliary__follows_the_structure, set_up, tear_down),
        cmocka_unit_test(test_pattern__is_literal_without_wildcards),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
