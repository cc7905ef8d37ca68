-- SPDX-License-Identifier: LGPL-3.0-or-later
-- What format 3 added. Run in one transaction, by mkfs and by the first change of an older store.
--
-- How far the times and the box of each object reach that has some of its own, for one index over both ends of all of
-- them: `span` is the box of times and latitudes, `lon` that of longitudes (and 0). An end that only the container has is
-- the container's. Beyond 1e9, and where there is one end alone, a range ends at 1e9; where there is none it lies at 2e9,
-- where no question looks. Triggers keep the rows, also for programs that know nothing of them; marks.sql, which is run after
-- this, makes and changes them.

CREATE TABLE {S}.reach(
    container bigint NOT NULL,
    dataset bigint NOT NULL,
    span box NOT NULL,
    lon box NOT NULL,
    PRIMARY KEY(container, dataset));

-- An end: its value, that of the other end, and what it is where there is the other one alone.
CREATE OR REPLACE FUNCTION {S}.reach_end(p_value float8, p_other float8, p_none float8) RETURNS float8
LANGUAGE sql IMMUTABLE AS $body$
    SELECT CASE WHEN p_value IS NULL AND p_other IS NULL THEN 2e9
        ELSE least(greatest(coalesce(p_value, p_none), -1e9), 1e9) END $body$;

-- The row of an object, unless it has no end of its own.
CREATE OR REPLACE FUNCTION {S}.reach_of(p_container bigint, p_dataset bigint)
RETURNS TABLE(span box, lon box) LANGUAGE sql STABLE AS $body$
    SELECT box(point({S}.reach_end(e.t0, e.t1, -1e9), {S}.reach_end(e.a0, e.a1, -1e9)),
            point({S}.reach_end(e.t1, e.t0, 1e9), {S}.reach_end(e.a1, e.a0, 1e9))),
        box(point({S}.reach_end(e.o0, e.o1, -1e9), 0), point({S}.reach_end(e.o1, e.o0, 1e9), 0))
    FROM (SELECT bool_or(x.dataset = p_dataset AND x.value IS NOT NULL) AS own,
            max(x.value) FILTER (WHERE x.name = '@time_min') AS t0,
            max(x.value) FILTER (WHERE x.name = '@time_max') AS t1,
            max(x.value) FILTER (WHERE x.name = '@lat_min') AS a0,
            max(x.value) FILTER (WHERE x.name = '@lat_max') AS a1,
            max(x.value) FILTER (WHERE x.name = '@lon_min') AS o0,
            max(x.value) FILTER (WHERE x.name = '@lon_max') AS o1
        FROM {S}.extent x WHERE x.container = p_container AND x.dataset IN (0, p_dataset)
            AND x.name IN ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max')
            AND (x.dataset = p_dataset OR NOT EXISTS(SELECT FROM {S}.extent y WHERE y.container = p_container
                AND y.dataset = p_dataset AND y.name = x.name)) OFFSET 0) AS e
    WHERE e.own $body$;

-- After rows were added: all of a statement at once.
CREATE OR REPLACE FUNCTION {S}.reach_added() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    v_row record;
BEGIN
    FOR v_row IN SELECT DISTINCT x.container, x.dataset FROM added x WHERE x.name IN
            ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max') LOOP
        PERFORM {S}.reach_put(v_row.container, v_row.dataset);
    END LOOP;
    RETURN NULL;
END $body$;

CREATE OR REPLACE FUNCTION {S}.reach_changed() RETURNS trigger LANGUAGE plpgsql AS $body$
BEGIN
    PERFORM {S}.reach_put(OLD.container, OLD.dataset);
    RETURN NULL;
END $body$;

CREATE TRIGGER reach_added AFTER INSERT ON {S}.extent REFERENCING NEW TABLE AS added
    FOR EACH STATEMENT EXECUTE FUNCTION {S}.reach_added();
CREATE TRIGGER reach_changed AFTER UPDATE ON {S}.extent FOR EACH ROW
    WHEN (OLD.name IN ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max'))
    EXECUTE FUNCTION {S}.reach_changed();
CREATE TRIGGER reach_gone AFTER DELETE ON {S}.extent FOR EACH ROW
    WHEN (OLD.name IN ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max'))
    EXECUTE FUNCTION {S}.reach_changed();
