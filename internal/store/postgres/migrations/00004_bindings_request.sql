-- +goose NO TRANSACTION
-- +goose Up
CREATE INDEX IF NOT EXISTS phoneproof_bindings_request ON phoneproof_bindings (request_id, project);
