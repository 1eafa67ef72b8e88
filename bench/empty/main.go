// Command empty does nothing: the least that starting a Go program costs.
package main

func main() {}
