-- +goose NO TRANSACTION
-- +goose Up
-- The default is for the inserts of the version before, which do not name the column.
ALTER TABLE phoneproof_requests ADD COLUMN IF NOT EXISTS earlier_attempts text NOT NULL DEFAULT '';
