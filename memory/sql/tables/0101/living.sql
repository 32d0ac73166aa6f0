-- Which process is sending a reply, by the number under which it holds a lock as long as it lives.
ALTER TABLE outbox ADD COLUMN sender bigint;

