-- Installations of the Slack app: secrets of workspaces, no personal data. The bot's role may touch neither table: it asks by the functions, one
-- installation at a time.

CREATE TABLE slack_installations (
  enterprise_id text NOT NULL,                   -- '' outside Enterprise Grid
  team_id       text NOT NULL,                   -- '' for a whole organisation
  secret        text NOT NULL,
  PRIMARY KEY (enterprise_id, team_id)
);
CREATE TABLE slack_states (
  state       bytea PRIMARY KEY,                 -- a hash
  valid_until timestamptz NOT NULL
);
