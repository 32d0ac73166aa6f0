-- How text becomes words for searching: one function for rows and queries, so that both always agree.
-- Words are stemmed as English, which does other languages no harm; accents and widths are levelled. Scripts
-- written without spaces (Chinese, Japanese, Korean, Thai, Lao, Burmese, Khmer) are indexed by characters and pairs.
-- The fixed search_path lets a restored dump compute the generated columns, which a change has to compute again.

-- The text in the one form that is compared: lower case, compatibility forms and accents levelled, punctuation
-- beyond ASCII a space (PostgreSQL's parser may take it for letters) and every emoji a word of its own.
CREATE FUNCTION search_plain(value text) RETURNS text LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE
AS $$
  SELECT regexp_replace(
    regexp_replace(
      normalize(regexp_replace(normalize(lower(value), NFKD), '[\u0300-\u036f]', '', 'g'), NFC),
      '[\u0080-\u00bf\u2000-\u206f\u2e00-\u2e7f\u3000-\u3004\u3008-\u3020\u3030\u30fb\ufe00-\ufe0f\ufeff]', ' ', 'g'),
    '([\u2190-\u2bff\U0001f000-\U0001fbff])', ' \1 ', 'g')
$$;

-- The words of a text. Of an unspaced run a row keeps every character and every pair, a query only the pairs
-- (or the character that stands alone): a pair says more, and a single character must still be findable.
CREATE FUNCTION search_words(value text, for_row boolean) RETURNS text[]
LANGUAGE plpgsql IMMUTABLE STRICT PARALLEL SAFE SET search_path = keepsake, pg_temp
AS $$
DECLARE
  unspaced CONSTANT text := '\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005-\u3007\u3041-\u30fa\u30fc-\u30ff\u3400-\u4dbf\u4e00-\u9fff'
    '\uac00-\ud7af\uf900-\ufaff\U00020000-\U0003134f';
  plain CONSTANT text := search_plain(value);
  -- slashes, underscores and a hyphen before a digit join words that people search for apart
  spaced CONSTANT text := regexp_replace(regexp_replace(plain, '[' || unspaced || '/\\_]+', ' ', 'g'), '-(?=\d)', ' ', 'g');
  words text[] := tsvector_to_array(to_tsvector('pg_catalog.english', spaced));
  runs text;
BEGIN
  IF plain !~ ('[' || unspaced || ']') THEN
    RETURN words;
  END IF;
  runs := regexp_replace(plain, '[^' || unspaced || ']+', ' ', 'g');
  RETURN words
    || ARRAY(SELECT pair FROM regexp_split_to_table(regexp_replace(runs, '(\S\S)', '\1 ', 'g'), '\s+') pair WHERE length(pair) = 2)
    || ARRAY(SELECT pair FROM regexp_split_to_table(
               regexp_replace(regexp_replace(runs, '(^|\s)\S', '\1', 'g'), '(\S\S)', '\1 ', 'g'), '\s+') pair WHERE length(pair) = 2)
    || CASE WHEN for_row THEN regexp_split_to_array(regexp_replace(runs, '\s', '', 'g'), '')
            ELSE ARRAY(SELECT run FROM regexp_split_to_table(runs, '\s+') run WHERE length(run) = 1) END;
END $$;

-- What a row is found by: its author's name and the first 100,000 characters (a tsvector holds one megabyte).
CREATE FUNCTION search_vector(author text, content text) RETURNS tsvector
LANGUAGE sql IMMUTABLE STRICT PARALLEL SAFE SET search_path = keepsake, pg_temp
AS $$ SELECT array_to_tsvector(array_remove(search_words(left(author, 200) || ' ' || left(content, 100000), true), '')) $$;
