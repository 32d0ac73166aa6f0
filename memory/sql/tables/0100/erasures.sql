-- What is kept of people who were erased: nothing that names them. The bot's role may touch none of it.

-- Keyed hashes of the event keys of an erased person, for a week, so that a late redelivery brings nobody back.
CREATE TABLE erased_events (
  hash  bytea PRIMARY KEY,
  until timestamptz NOT NULL
);

-- Keyed hashes of their accounts: so that a restored backup has the erasure applied again, and so that nobody quotes them for a week.
CREATE TABLE erased_people (
  hash bytea PRIMARY KEY,
  at   timestamptz NOT NULL                      -- by this server's clock, as `identities.created_at`
);

-- What proves an erasure, without content.
CREATE TABLE erasures (
  id     bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  at     timestamptz NOT NULL,
  actor  text NOT NULL CHECK (actor IN ('person', 'admin', 'operator', 'system')),
  counts jsonb NOT NULL
);
