-- +goose NO TRANSACTION
-- +goose Up
-- Subjects are many, and no deletion of a request leads to their admissions: they are swept by time.
CREATE INDEX IF NOT EXISTS phoneproof_group_admissions_until ON phoneproof_group_admissions (until, project);
