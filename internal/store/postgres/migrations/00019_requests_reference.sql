-- +goose NO TRANSACTION
-- +goose Up
-- The reference of client_data once more, for an index. Requests of the version before have none here, so they are not found by it.
ALTER TABLE phoneproof_requests ADD COLUMN IF NOT EXISTS reference text NOT NULL DEFAULT '';
