-- An endpoint's content filter refuses these words: no model is shown them any more. Their person sees, corrects and forgets them as ever.
ALTER TABLE messages ADD COLUMN withheld boolean NOT NULL DEFAULT false;
ALTER TABLE working_context ADD COLUMN withheld boolean NOT NULL DEFAULT false;

-- Other words may pass: however a text is changed (by a correction, an edit on its platform, an undo), it is tried again.
CREATE FUNCTION try_again() RETURNS trigger
LANGUAGE plpgsql AS $$
BEGIN
  NEW.withheld := false;
  RETURN NEW;
END $$;
CREATE TRIGGER withheld_no_more BEFORE UPDATE OF content ON messages
  FOR EACH ROW WHEN (OLD.withheld AND OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION try_again();
CREATE TRIGGER withheld_no_more BEFORE UPDATE OF content ON working_context
  FOR EACH ROW WHEN (OLD.withheld AND OLD.content IS DISTINCT FROM NEW.content) EXECUTE FUNCTION try_again();
