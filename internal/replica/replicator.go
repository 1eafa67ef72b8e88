package replica

// requestsAtOnce bounds the pushes that are underway for one credential (memories §10.3).
const requestsAtOnce = 4
