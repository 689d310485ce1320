package project

import (
	"regexp"

	corev1 "k8s.io/api/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
	"github.com/phoneproof/phoneproof/internal/leader"
)

// APIPort returns the port at which a pod serves the API of a project; 0 if it does not. Pods of a pool may have been started before the
// project joined, and do not serve it while it is suspended.
func APIPort(p *verifyv1.VerificationProject, pod *corev1.Pod) int {
	if p.Spec.Server.Pool == "" {
		return PortAPI
	}
	if p.Suspended() {
		return 0
	}
	for i := range pod.Spec.Containers {
		if port := render.ReadMemberPorts(pod.Spec.Containers[i].Args)[p.Name]; port != 0 {
			return int(port)
		}
	}
	return 0
}

// LeaseName returns the name of the lease of the pods that serve a project.
func LeaseName(p *verifyv1.VerificationProject) string {
	if pool := p.Spec.Server.Pool; pool != "" {
		return leader.PoolLease(pool)
	}
	return leader.ProjectLease(p.Name)
}

// loggedProject finds the project that a line of a log names, in either format. Other quoted texts are matched so that nothing is found
// within them.
var loggedProject = regexp.MustCompile(`"project":"([^"]*)"|"(?:[^"\\]|\\.)*"|(?:^| )project=([^ ]+)`)

// ConcernsProject reports whether a line of the log of a project's pods is about the project, or about all projects of the pod.
func ConcernsProject(p *verifyv1.VerificationProject, line string) bool {
	if p.Spec.Server.Pool == "" {
		return true
	}
	for _, found := range loggedProject.FindAllStringSubmatch(line, -1) {
		if name := found[1] + found[2]; name != "" {
			return name == p.Namespace+"/"+p.Name
		}
	}
	return true
}
