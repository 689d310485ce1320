-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS phoneproof_number_admissions (
    project text        NOT NULL,
    number  text        NOT NULL,
    place   bigint      NOT NULL,
    at      timestamptz NOT NULL,
    until   timestamptz NOT NULL,
    PRIMARY KEY (project, number, place)
);
