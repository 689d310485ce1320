-- +goose NO TRANSACTION
-- +goose Up
CREATE TABLE IF NOT EXISTS phoneproof_bindings (
    project    text NOT NULL,
    binding    text NOT NULL,
    request_id text NOT NULL,
    PRIMARY KEY (project, binding)
);
