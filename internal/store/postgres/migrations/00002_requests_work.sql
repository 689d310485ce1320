-- +goose NO TRANSACTION
-- +goose Up
-- What needs a step is one range of this index per kind of work, however many requests are finished. It does not begin
-- with the project: a planner without statistics would take it for look-ups by (project, id).
CREATE INDEX IF NOT EXISTS phoneproof_requests_work ON phoneproof_requests (work, project, since);
