-- SPDX-License-Identifier: LGPL-3.0-or-later
-- What format 3 added. Run in one transaction, by mkfs and by the first change of an older store.
--
-- How far the times and the box of each object reach that has some of its own, for one index over both ends of all of
-- them: `span` is the box of times and latitudes, `lon` that of longitudes (and 0). An end that only the container has is
-- the container's. Beyond 1e9, and where there is one end alone, a range ends at 1e9; where there is none it lies at 2e9,
-- where no question looks. Triggers keep the rows, also for programs that know nothing of them.

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

-- The rows of some objects, none of those that have no end of their own: one question to the index for each.
CREATE OR REPLACE FUNCTION {S}.reach_of(p_container bigint[], p_dataset bigint[])
RETURNS TABLE(container bigint, dataset bigint, span box, lon box) LANGUAGE sql STABLE AS $body$
    SELECT o.container, o.dataset,
        box(point({S}.reach_end(e.t0, e.t1, -1e9), {S}.reach_end(e.a0, e.a1, -1e9)),
            point({S}.reach_end(e.t1, e.t0, 1e9), {S}.reach_end(e.a1, e.a0, 1e9))),
        box(point({S}.reach_end(e.o0, e.o1, -1e9), 0), point({S}.reach_end(e.o1, e.o0, 1e9), 0))
    FROM unnest(p_container, p_dataset) AS o(container, dataset)
    CROSS JOIN LATERAL (SELECT bool_or(x.dataset = o.dataset AND x.value IS NOT NULL) AS own,
            max(x.value) FILTER (WHERE x.name = '@time_min') AS t0,
            max(x.value) FILTER (WHERE x.name = '@time_max') AS t1,
            max(x.value) FILTER (WHERE x.name = '@lat_min') AS a0,
            max(x.value) FILTER (WHERE x.name = '@lat_max') AS a1,
            max(x.value) FILTER (WHERE x.name = '@lon_min') AS o0,
            max(x.value) FILTER (WHERE x.name = '@lon_max') AS o1
        FROM {S}.extent x WHERE x.container = o.container AND x.dataset IN (0, o.dataset)
            AND (x.dataset = o.dataset OR NOT EXISTS(SELECT FROM {S}.extent y WHERE y.container = o.container
                AND y.dataset = o.dataset AND y.name = x.name)) OFFSET 0) AS e
    WHERE e.own $body$;

CREATE OR REPLACE FUNCTION {S}.reach_follow() RETURNS trigger LANGUAGE plpgsql AS $body$
DECLARE
    v_container bigint[];
    v_dataset bigint[];
BEGIN
    SELECT array_agg(c.container), array_agg(c.dataset) INTO v_container, v_dataset
    FROM (SELECT DISTINCT x.container, x.dataset FROM changed x WHERE x.name IN
        ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max')) AS c;
    IF v_container IS NULL THEN
        RETURN NULL;
    END IF;
    IF 0 = ANY(v_dataset) THEN -- datasets of it that have some ends of their own
        SELECT array_agg(c.container), array_agg(c.dataset) INTO v_container, v_dataset
        FROM (SELECT u.container, u.dataset FROM unnest(v_container, v_dataset) AS u(container, dataset)
            UNION SELECT r.container, r.dataset FROM unnest(v_container, v_dataset) AS u(container, dataset)
            CROSS JOIN LATERAL (SELECT * FROM {S}.reach y WHERE y.container = u.container OFFSET 0) AS r
            WHERE u.dataset = 0) AS c;
    END IF;
    IF TG_OP <> 'INSERT' THEN
        DELETE FROM {S}.reach r USING unnest(v_container, v_dataset) AS u(container, dataset)
        WHERE r.container = u.container AND r.dataset = u.dataset
            AND NOT EXISTS(SELECT FROM {S}.reach_of(ARRAY[u.container], ARRAY[u.dataset]));
    END IF;
    -- "=" of boxes compares areas
    INSERT INTO {S}.reach AS r SELECT * FROM {S}.reach_of(v_container, v_dataset)
    ON CONFLICT (container, dataset) DO UPDATE SET span = excluded.span, lon = excluded.lon
    WHERE box_send(r.span) <> box_send(excluded.span) OR box_send(r.lon) <> box_send(excluded.lon);
    RETURN NULL;
END $body$;

-- All rows anew. Writers wait.
CREATE OR REPLACE FUNCTION {S}.reach_make() RETURNS void LANGUAGE plpgsql AS $body$
BEGIN
    LOCK TABLE {S}.extent IN SHARE ROW EXCLUSIVE MODE;
    TRUNCATE {S}.reach;
    DROP INDEX IF EXISTS {S}.reach_both;
    INSERT INTO {S}.reach SELECT r.* FROM (
        SELECT array_agg(d.container) AS containers, array_agg(d.dataset) AS datasets
        FROM (SELECT DISTINCT x.container, x.dataset FROM {S}.extent x WHERE x.value IS NOT NULL AND x.name IN
            ('@time_min', '@time_max', '@lat_min', '@lat_max', '@lon_min', '@lon_max')) AS d) AS a
    CROSS JOIN LATERAL {S}.reach_of(a.containers, a.datasets) AS r;
    CREATE INDEX reach_both ON {S}.reach USING gist(span, lon);
END $body$;
SELECT {S}.reach_make();

CREATE TRIGGER reach_insert AFTER INSERT ON {S}.extent REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {S}.reach_follow();
CREATE TRIGGER reach_update AFTER UPDATE ON {S}.extent REFERENCING NEW TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {S}.reach_follow();
CREATE TRIGGER reach_delete AFTER DELETE ON {S}.extent REFERENCING OLD TABLE AS changed
    FOR EACH STATEMENT EXECUTE FUNCTION {S}.reach_follow();
