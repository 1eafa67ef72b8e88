-- Damage that no page shows: a flipped bit in the text of an observation.

-- A CRC-32 of what the row says, as a signed number. It is NULL in a row of an older
-- store until a server or a sweep computes it.
ALTER TABLE observation_rows ADD COLUMN checksum INTEGER;
