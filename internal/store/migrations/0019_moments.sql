-- A moment of the past is found in the index alone: it has the time of each change.
DROP INDEX changes_of_stream;
CREATE INDEX changes_of_stream ON changes (stream, seq, at) WHERE doc IS NOT NULL;
