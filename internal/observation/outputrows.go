package observation

// Statements of outputs.
