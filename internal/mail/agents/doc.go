// Package agents registers the projects and agents of mail, and records which session acts
// as which agent.
//
// An agent belongs to a project and to a lineage: a harness in a checkout (amendments §B.7).
// A new session takes over the agents of its predecessor in the lineage, with their
// mail and reservations. A binding of a session to an agent is not a change of the log.
package agents
