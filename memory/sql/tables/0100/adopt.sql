-- What a database at 0013 has beyond 0100. Functions are none of it: whatever no table needs is dropped with the others.
DROP INDEX IF EXISTS identities_merged_into_idx1;  -- a second one, the same as identities_merged_into_idx
