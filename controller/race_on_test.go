//go:build race

package controller

// slow says by how much the race detector slows down what is timed.
const slow = 10
