// Package gitops says for tests how an object looks to the tools that wait for it: to kstatus, and to Flux and Argo CD with
// the health checks of docs/gitops.md, word for word.
package gitops
