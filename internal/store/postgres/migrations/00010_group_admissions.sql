-- +goose NO TRANSACTION
-- +goose Up
-- What counts for a prefix of numbers or a subject. A replica of the version before counts nothing here.
CREATE TABLE IF NOT EXISTS phoneproof_group_admissions (
    project text        NOT NULL,
    name    text        NOT NULL,
    place   bigint      NOT NULL,
    at      timestamptz NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (project, name, place)
);
