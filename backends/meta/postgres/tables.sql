-- SPDX-License-Identifier: LGPL-3.0-or-later
-- Tables of the metadata store "postgres" since format 1; README.md says what they hold. added.sql
-- has those of later formats.
-- {S} is the quoted name of the schema, {K} a number made from it. Run in one transaction.

CREATE TABLE {S}.store(
    key text PRIMARY KEY,
    value text NOT NULL);

CREATE SEQUENCE {S}.container_number AS bigint MAXVALUE 2147483647;

CREATE TABLE {S}.container(
    container bigint PRIMARY KEY,
    name text COLLATE "C" UNIQUE,
    uuid text NOT NULL,
    snapshot bigint NOT NULL,
    structure bigint NOT NULL,
    document_at bigint NOT NULL,
    next_page bigint NOT NULL,
    created_ns bigint NOT NULL,
    modified_ns bigint NOT NULL,
    raw_bytes bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    fragments bigint NOT NULL,
    datasets bigint NOT NULL) WITH (fillfactor = 70);
CREATE INDEX container_garbage ON {S}.container(container) WHERE name IS NULL;

CREATE TABLE {S}.snapshot(
    container bigint NOT NULL,
    snapshot bigint NOT NULL,
    parent bigint NOT NULL,
    structure bigint NOT NULL,
    document_at bigint NOT NULL,
    time_ns bigint NOT NULL,
    pruned boolean NOT NULL,
    writer text NOT NULL,
    message text NOT NULL,
    dimensions bigint[],
    lengths numeric[],
    document text,
    PRIMARY KEY(container, snapshot));

CREATE TABLE {S}.page(
    page bigint PRIMARY KEY,
    container bigint NOT NULL,
    dataset bigint NOT NULL,
    records bigint NOT NULL,
    level bigint NOT NULL,
    absolute boolean NOT NULL,
    added bigint NOT NULL,
    removed bigint NOT NULL,
    raw_bytes bigint NOT NULL,
    stored_bytes bigint NOT NULL,
    box bytea NOT NULL,
    data bytea NOT NULL);
-- Pages are encoded already: trying to compress them costs time.
ALTER TABLE {S}.page ALTER COLUMN data SET STORAGE EXTERNAL;
CREATE INDEX page_dataset ON {S}.page(container, dataset);
CREATE INDEX page_removed ON {S}.page(container) WHERE removed <> 0;

CREATE TABLE {S}.object(
    container bigint NOT NULL,
    dataset bigint NOT NULL,
    path text COLLATE "C",
    attributes jsonb NOT NULL,
    PRIMARY KEY(container, dataset));
-- A query reads the list of what is not yet in an index from end to end: it is kept short. Containers and datasets
-- have an index each, as most questions find few of the one kind or of the other (views.sql has both for older stores).
CREATE INDEX object_global ON {S}.object USING gin(attributes jsonb_path_ops)
    WITH (gin_pending_list_limit = 64) WHERE dataset = 0;
CREATE INDEX object_dataset ON {S}.object USING gin(attributes jsonb_path_ops)
    WITH (gin_pending_list_limit = 64) WHERE dataset <> 0;

CREATE TABLE {S}.token(
    token uuid PRIMARY KEY,
    time_ns bigint NOT NULL,
    result bigint[] NOT NULL);
CREATE INDEX token_time ON {S}.token(time_ns);
