-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS phoneproof_keys (
    project text        NOT NULL,
    name    text        NOT NULL,
    total   bigint      NOT NULL,
    last_at timestamptz NOT NULL,
    PRIMARY KEY (project, name)
);
