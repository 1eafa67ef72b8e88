// Package reservations records which agent has reserved which files, so that agents do not edit
// the same file at the same time.
//
// A reservation has a path pattern and an expiry time. Reservations conflict if their patterns
// overlap and one of them is exclusive (mail §7). An expired reservation no longer blocks, even
// before the sweep marks it. A reservation is stale if its holder has shown no activity for a
// while. Another agent may then release it by force, and its holder is notified. Hooks call Guard
// before an edit and take a lease after it.
package reservations
