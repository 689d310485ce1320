// Package e2e tests PhoneProof from outside, on a real cluster with running pods: what the chart installs, how projects
// serve while pods, leaders, kubelet and API server restart, and what remains after a removal.
//
// `make e2e` creates the cluster, runs the specs and removes the cluster. The specs run in order, because each uses the cluster
// as the previous ones left it, and only with the build tag e2e, because no other test starts containers. They use the tools of
// a client, a user and an administrator (HTTP, kubectl, helm), and of the program's own packages only the API types.
package e2e
