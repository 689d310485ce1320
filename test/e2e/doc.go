// Package e2e tests PhoneProof from outside, on a real cluster with running pods: what the chart installs, how projects
// serve while pods, leaders, kubelet and API server come and go, and what remains when things are removed.
//
// `make e2e` makes the cluster, runs the specs and takes the cluster away. They run in order, because each finds the cluster
// as those before left it, and only with the build tag e2e: no other test starts containers. They use what a client, a user
// and an administrator have (HTTP, kubectl, helm), and none of the program's own packages but the API types.
package e2e
