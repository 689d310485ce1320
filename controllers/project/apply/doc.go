// Package apply makes the objects of a project match what render returns, by server-side apply with one field owner, and deletes
// those that are no longer wanted.
//
// Invariants: only objects whose controller is the project, by UID, are changed or deleted. An object of another owner under a
// child's name is a conflict and stays unchanged, even if it appears at the moment in which the child is created. A child that
// already matches costs no write. A number of pods that an autoscaler chose is never overwritten.
package apply
