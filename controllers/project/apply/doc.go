// Package apply makes the objects of a project what render says they are, by server-side apply with one field owner, and
// deletes those that are no longer wanted.
//
// Invariants: only objects whose controller is the project, by UID, are changed or deleted; an object of another owner under
// a child's name is a conflict and stays as it is, even if it appears in the very moment in which the child is created. What
// already is as it should be costs no request that writes. A number of pods that an autoscaler chose is never overwritten.
package apply
