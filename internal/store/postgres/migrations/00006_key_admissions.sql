-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS phoneproof_key_admissions (
    project text        NOT NULL,
    name    text        NOT NULL,
    at      timestamptz NOT NULL,
    total   bigint      NOT NULL,
    n       bigint      NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (project, name, at)
);
