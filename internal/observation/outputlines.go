package observation

// What a question is searched for in printed lines.
