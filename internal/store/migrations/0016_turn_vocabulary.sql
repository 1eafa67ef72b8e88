-- The words that the index of turns has, for those that are typed wrongly.
CREATE VIRTUAL TABLE turn_vocabulary USING fts5vocab (turn_words, row);
