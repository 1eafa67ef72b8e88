// Package measure counts how long things took, and how much of a limited resource is in
// use. Both cost a few atomic operations, so they run in every process; quantiles and
// levels are computed on request.
package measure
