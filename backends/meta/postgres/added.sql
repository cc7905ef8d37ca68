-- SPDX-License-Identifier: LGPL-3.0-or-later
-- What format 2 added. Run in one transaction, by mkfs and by the first change of an older store, which may have it.

CREATE TABLE IF NOT EXISTS {S}.shared(
    uuid text NOT NULL,
    container bigint NOT NULL,
    PRIMARY KEY(uuid, container));
CREATE INDEX IF NOT EXISTS shared_container ON {S}.shared(container);

CREATE TABLE IF NOT EXISTS {S}.tag(
    container bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    snapshot bigint NOT NULL,
    created_ns bigint NOT NULL,
    author text NOT NULL,
    PRIMARY KEY(container, name));
CREATE INDEX IF NOT EXISTS tag_snapshot ON {S}.tag(container, snapshot);

CREATE TABLE IF NOT EXISTS {S}.extent(
    container bigint NOT NULL REFERENCES {S}.container ON DELETE CASCADE,
    dataset bigint NOT NULL,
    name text COLLATE "C" NOT NULL,
    value float8,
    text text COLLATE "C",
    how bigint NOT NULL,
    PRIMARY KEY(container, dataset, name));
CREATE INDEX IF NOT EXISTS extent_value ON {S}.extent(name, value, text, container, dataset);
