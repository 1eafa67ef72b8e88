// Command empty does nothing. It shows the minimum cost of starting a Go program.
package main

func main() {}
