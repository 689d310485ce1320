// Package gitops returns for tests the health of an object as the tools that wait for it compute it: kstatus, and Flux and
// Argo CD with exactly the health checks of docs/gitops.md.
package gitops
