-- +goose NO TRANSACTION
-- +goose Up
-- Replicas of the version before neither read nor write it.
ALTER TABLE phoneproof_requests ADD COLUMN IF NOT EXISTS extra_from timestamptz;
