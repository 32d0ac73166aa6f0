-- What a platform said of people and replies: who cannot be reached, replies that grow while they are written, words that were edited
-- or deleted where somebody else quoted them, and how much was taken of whom.

-- Replies that grow ------------------------------------------------------------------------------------

-- 'streaming': begun on its platform while the model writes; its turn takes it over with the final text, or ends without it.
ALTER TABLE outbox DROP CONSTRAINT outbox_state_check;
ALTER TABLE outbox ADD CONSTRAINT outbox_state_check CHECK (state IN ('waiting', 'sending', 'sent', 'failed', 'withdrawn', 'streaming'));
ALTER TABLE outbox ADD COLUMN streamed boolean NOT NULL DEFAULT false;
DROP INDEX outbox_unsent;
CREATE INDEX outbox_unsent ON outbox (platform, channel, id) WHERE state IN ('waiting', 'sending', 'streaming');

-- Opens a growing reply. Nothing when something else of the agent's still has to go out in that channel first: order wins.
CREATE FUNCTION open_stream(p_agent bigint, p_place bigint, p_turn bigint, p_epoch bigint, p_body text, p_reply_to text, p_now timestamptz) RETURNS bigint
LANGUAGE plpgsql SECURITY DEFINER AS $$
DECLARE made bigint;
BEGIN
  PERFORM 1 FROM agents WHERE id = p_agent AND epoch = p_epoch FOR NO KEY UPDATE;
  IF NOT FOUND OR NOT EXISTS (SELECT 1 FROM turns WHERE id = p_turn AND agent_id = p_agent AND state = 'running' AND NOT cancel_requested) THEN RETURN NULL; END IF;
  IF EXISTS (SELECT 1 FROM outbox o JOIN places p ON p.platform = o.platform AND p.external_id = o.channel
             WHERE p.id = p_place AND o.agent_id = p_agent AND o.state IN ('waiting', 'sending')) THEN RETURN NULL; END IF;
  -- Under steps that no turn reaches, until the turn takes it over; the engine's own lines are -1 and -2.
  INSERT INTO outbox (agent_id, place_id, platform, channel, turn_id, step, part, body, reply_to, state, streamed, sending_since, attempts, created_at)
    SELECT p_agent, p_place, p.platform, p.external_id, p_turn, -3, (SELECT coalesce(max(part), -1) + 1 FROM outbox WHERE turn_id = p_turn AND step = -3),
      p_body, p_reply_to, 'streaming', true, p_now, 1, p_now FROM places p WHERE p.id = p_place RETURNING id INTO made;
  RETURN made;
END $$;

-- As before, and the growing replies whose turn is over without them: they are finished as they stand, with p_stopped behind.
DROP FUNCTION claim_outbox(text, text[], integer, timestamptz, timestamptz);
CREATE FUNCTION claim_outbox(p_platform text, p_channels text[], p_limit integer, p_now timestamptz, p_doubtful timestamptz, p_stopped text DEFAULT '')
RETURNS TABLE (outbox_id bigint, agent_id bigint, place_id bigint, doubtful boolean)
LANGUAGE sql SECURITY DEFINER AS $$
  WITH heads AS (
    SELECT DISTINCT ON (channel) o.id FROM outbox o
    WHERE platform = p_platform AND o.state IN ('waiting', 'sending', 'streaming') AND (p_channels IS NULL OR channel = ANY (p_channels))
      AND (o.state <> 'streaming' OR NOT EXISTS (SELECT 1 FROM turns t WHERE t.id = o.turn_id AND t.state = 'running'))
    ORDER BY channel, o.id),
  taken AS (
    SELECT o.id, o.state AS old_state FROM outbox o JOIN heads USING (id)
    WHERE (o.state = 'waiting' AND coalesce(o.not_before, p_now) <= p_now) OR o.state = 'streaming'
       OR (o.state = 'sending' AND (o.sending_since < p_doubtful OR o.not_before <= p_now))
    ORDER BY o.id LIMIT p_limit FOR UPDATE OF o SKIP LOCKED)
  UPDATE outbox o SET state = 'sending', sending_since = p_now, not_before = NULL, attempts = attempts + 1,
      body = CASE taken.old_state WHEN 'streaming' THEN body || p_stopped ELSE body END
    FROM taken WHERE o.id = taken.id
  RETURNING o.id, o.agent_id, o.place_id, taken.old_state IN ('sending', 'streaming')
$$;

-- The only process there is has just begun: whatever is marked as being sent was left so by a dead one, and is looked up at once.
CREATE FUNCTION doubt_sending(p_now timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH left_behind AS (UPDATE outbox SET not_before = p_now WHERE state = 'sending' RETURNING 1) SELECT count(*) FROM left_behind
$$;

-- People who cannot be written to ----------------------------------------------------------------------

-- Under which names the person of an agent is met in a direct message: who wrote there, or as long as nobody did all of that platform's.
CREATE FUNCTION met_at(p_agent bigint, p_place bigint) RETURNS TABLE (platform text, realm text, user_id text, unreachable_since timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH own AS (
    SELECT i.* FROM identities i JOIN places p ON p.platform = i.platform AND p.realm = i.realm
    WHERE p.id = p_place AND p.kind = 'direct' AND (i.merged_into = p_agent OR (i.agent_id = p_agent AND i.merged_into IS NULL))),
  wrote AS (
    SELECT o.* FROM own o WHERE (SELECT count(*) FROM own) > 1 AND EXISTS (
      SELECT 1 FROM messages m JOIN conversations c ON c.id = m.conversation_id
      WHERE c.agent_id = p_agent AND c.place_id = p_place AND m.author_id = o.platform || ':' || o.realm || ':' || o.user_id))
  SELECT platform, realm, user_id, unreachable_since FROM wrote
  UNION ALL SELECT platform, realm, user_id, unreachable_since FROM own WHERE NOT EXISTS (SELECT FROM wrote)
$$;

-- A platform refuses to deliver to the person themselves; cleared by agent_of when they write again. Returns how many accounts that are.
CREATE FUNCTION mark_unreachable(p_agent bigint, p_place bigint, p_now timestamptz) RETURNS bigint
LANGUAGE sql SECURITY DEFINER AS $$
  WITH marked AS (
    UPDATE identities i SET unreachable_since = p_now FROM met_at(p_agent, p_place) m
    WHERE i.platform = m.platform AND i.realm = m.realm AND i.user_id = m.user_id AND i.unreachable_since IS NULL RETURNING 1)
  SELECT count(*) FROM marked
$$;

-- Asked before every message, so it looks at the few first.
CREATE INDEX identities_unreachable ON identities (agent_id) WHERE unreachable_since IS NOT NULL;
CREATE FUNCTION unreachable_at(p_agent bigint, p_place bigint) RETURNS boolean
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT EXISTS (SELECT 1 FROM identities WHERE unreachable_since IS NOT NULL AND (agent_id = p_agent OR merged_into = p_agent))
     AND coalesce((SELECT bool_and(unreachable_since IS NOT NULL) FROM met_at(p_agent, p_place)), false)
$$;

-- For the operator's list of people.
CREATE FUNCTION unreachable_people() RETURNS TABLE (platform text, realm text, user_id text, unreachable_since timestamptz)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT platform, realm, user_id, unreachable_since FROM identities WHERE unreachable_since IS NOT NULL
$$;

-- How much was taken of whom ---------------------------------------------------------------------------

CREATE INDEX events_by_time ON events (agent_id, created_at);

-- How many events of a kind came in of a person since a time, in one channel or (null) anywhere on that platform.
CREATE FUNCTION taken_of(p_platform text, p_realm text, p_user text, p_kind text, p_since timestamptz, p_external text) RETURNS bigint
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT count(*) FROM events e JOIN places p ON p.id = e.place_id
  WHERE e.agent_id = known_agent(p_platform, p_realm, p_user) AND e.created_at >= p_since AND e.kind = p_kind AND e.source = p_platform
    AND p.realm = p_realm AND (p_external IS NULL OR p.external_id = p_external)
$$;

-- True once a day and person, who may have been told by the token budget just as well: both mean that it is enough for today.
CREATE FUNCTION tell_today(p_platform text, p_realm text, p_user text, p_day date) RETURNS boolean
LANGUAGE sql SECURITY DEFINER AS $$
  WITH told AS (
    INSERT INTO spending (agent_id, day, told) SELECT a, p_day, true FROM known_agent(p_platform, p_realm, p_user) a WHERE a IS NOT NULL
    ON CONFLICT (agent_id, day) DO UPDATE SET told = true WHERE NOT spending.told RETURNING 1)
  SELECT EXISTS (SELECT FROM told)
$$;

-- Whether somebody's coming online is an event: they said yes to being spoken to first, can be reached, and did not come online since
-- p_since, in whatever guild or process that was seen.
CREATE FUNCTION wants_login(p_platform text, p_realm text, p_user text, p_since timestamptz) RETURNS boolean
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT EXISTS (
    SELECT 1 FROM identities i JOIN speaking s ON s.agent_id = coalesce(i.merged_into, i.agent_id)
    WHERE i.platform = p_platform AND i.realm = p_realm AND i.user_id = p_user AND s.openers = 'yes' AND i.unreachable_since IS NULL
      AND NOT EXISTS (SELECT 1 FROM events e WHERE e.agent_id = s.agent_id AND e.kind = 'login' AND e.created_at > p_since))
$$;

-- Words that are quoted elsewhere ----------------------------------------------------------------------

-- A quote's platform_id is `channel/message`: it is no message of the place that it is quoted in.
CREATE INDEX messages_quoted ON messages (platform_id COLLATE "C") WHERE kind = 'quote' AND platform_id IS NOT NULL;

-- Where messages of a platform stand as quotes: in messages, and in events that wait or died.
CREATE FUNCTION locate_quotes(p_platform text, p_realm text, p_origins text[])
RETURNS TABLE (agent_id bigint, place_id bigint, event_id bigint, message_id bigint)
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  SELECT m.agent_id, m.place_id, m.event_id, m.id FROM messages m JOIN places p ON p.id = m.place_id
    WHERE m.kind = 'quote' AND m.platform_id COLLATE "C" = ANY (p_origins) AND p.platform = p_platform AND p.realm = p_realm
  UNION ALL
  SELECT e.agent_id, e.place_id, e.id, NULL::bigint FROM events e JOIN places p ON p.id = e.place_id
    WHERE e.status IN (0, 2) AND p.platform = p_platform AND p.realm = p_realm AND jsonb_typeof(e.payload->'quotes') = 'array'
      AND EXISTS (SELECT 1 FROM jsonb_array_elements(e.payload->'quotes') q WHERE q->>'origin' = ANY (p_origins))
  ORDER BY 1, 4
$$;

-- The newest messages of a channel that stand anywhere as messages, as quotes or in events that wait; ids alone.
CREATE FUNCTION kept_messages(p_platform text, p_realm text, p_external text, p_limit integer) RETURNS SETOF text
LANGUAGE sql SECURITY DEFINER STABLE AS $$
  WITH here AS (SELECT id FROM places WHERE platform = p_platform AND realm = p_realm AND external_id = p_external),
  found AS (
    SELECT m.platform_id AS id FROM messages m JOIN here ON m.place_id = here.id WHERE m.platform_id IS NOT NULL AND m.kind <> 'quote'
    UNION
    SELECT e.payload->>'message_id' FROM events e JOIN here ON e.place_id = here.id WHERE e.status IN (0, 2) AND e.payload->>'message_id' IS NOT NULL
    UNION
    SELECT substr(m.platform_id, length(p_external) + 2) FROM messages m JOIN places p ON p.id = m.place_id
      WHERE m.kind = 'quote' AND p.platform = p_platform AND p.realm = p_realm
        AND m.platform_id COLLATE "C" >= p_external || '/' AND m.platform_id COLLATE "C" < p_external || '0')
  SELECT id FROM found ORDER BY length(id) DESC, id COLLATE "C" DESC LIMIT p_limit
$$;

-- Pictures ---------------------------------------------------------------------------------------------

-- What was shown to the model in its turn is kept no longer than that: not by any way in which an event ends or is forgotten.
CREATE FUNCTION drop_images() RETURNS trigger LANGUAGE plpgsql AS $$
BEGIN
  new.payload := new.payload - 'images';
  RETURN new;
END $$;
CREATE TRIGGER drop_images BEFORE UPDATE ON events
  FOR EACH ROW WHEN (new.payload ? 'images' AND (new.status IN (1, 3) OR new.payload ? 'forgotten')) EXECUTE FUNCTION drop_images();
