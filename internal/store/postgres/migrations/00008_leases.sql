-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS phoneproof_leases (
    project text   NOT NULL,
    record  text   NOT NULL,
    version bigint NOT NULL,
    PRIMARY KEY (project)
);
