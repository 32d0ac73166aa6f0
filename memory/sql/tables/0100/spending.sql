-- What models cost.

CREATE TABLE usage (
  id                bigint GENERATED ALWAYS AS IDENTITY PRIMARY KEY,
  agent_id          bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  turn_id           bigint,                      -- a number alone: the costs of a turn outlive it
  purpose           text NOT NULL,               -- chat, summary, filter
  model             text NOT NULL,
  prompt_tokens     integer NOT NULL,
  cached_tokens     integer NOT NULL,
  completion_tokens integer NOT NULL,
  at                timestamptz NOT NULL
);
CREATE INDEX ON usage (agent_id, at);
CALL protect('usage', 'agent');
GRANT SELECT, INSERT ON usage TO keepsake_bot;

-- What is spent of a day's budget, estimated before a model call and settled after it; micros are millionths of the price table's currency.
CREATE TABLE spending (
  agent_id bigint NOT NULL REFERENCES agents ON DELETE CASCADE,
  day      date NOT NULL,
  tokens   bigint NOT NULL DEFAULT 0,
  micros   bigint NOT NULL DEFAULT 0,
  told     boolean NOT NULL DEFAULT false,       -- the person heard that the day's budget is spent
  PRIMARY KEY (agent_id, day)
);
CALL protect('spending', 'agent');
GRANT SELECT ON spending TO keepsake_bot;

-- The same for the whole bot; outlives an erased person, and names none.
CREATE TABLE spending_total (
  day    date PRIMARY KEY,
  tokens bigint NOT NULL DEFAULT 0,
  micros bigint NOT NULL DEFAULT 0
);
