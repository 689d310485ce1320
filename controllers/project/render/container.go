package render

import (
	"math"
	"slices"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"
)

const (
	containerName = "server"

	// Names and numbers of the ports.
	apiPort          = "http"
	apiPortNumber    = 8080
	healthPort       = "health" // probes and metrics
	healthPortNumber = 8081
)

func (w *workload) newContainer(o Options) *corev1ac.ContainerApplyConfiguration {
	resources := w.server.EffectiveResources()
	container := corev1ac.Container().
		WithName(containerName).
		WithImage(o.Image).
		WithArgs(w.listArguments(o)...).
		WithEnv(
			corev1ac.EnvVar().WithName("GOMEMLIMIT").WithValue(strconv.FormatInt(memoryTarget(resources.Limits.Memory()), 10)),
			// Addresses that webhooks must not reach, of every address family of the node.
			corev1ac.EnvVar().WithName("HOST_IPS").WithValueFrom(corev1ac.EnvVarSource().
				WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("status.hostIPs"))),
		).
		WithPorts(w.listPorts()...).
		WithResources(corev1ac.ResourceRequirements().WithRequests(resources.Requests).WithLimits(resources.Limits)).
		WithSecurityContext(corev1ac.SecurityContext().
			WithAllowPrivilegeEscalation(false).
			WithReadOnlyRootFilesystem(true).
			WithCapabilities(corev1ac.Capabilities().WithDrop("ALL"))).
		// Only readiness depends on anything outside the process: a restart repairs no store.
		WithStartupProbe(newProbe("/livez").WithPeriodSeconds(1).WithTimeoutSeconds(5).WithFailureThreshold(60)).
		WithLivenessProbe(newProbe("/livez").WithPeriodSeconds(10).WithTimeoutSeconds(5).WithFailureThreshold(3)).
		WithReadinessProbe(newProbe("/readyz").WithPeriodSeconds(5).WithTimeoutSeconds(3).WithFailureThreshold(2)).
		WithLifecycle(corev1ac.Lifecycle().WithPreStop(corev1ac.LifecycleHandler().
			WithSleep(corev1ac.SleepAction().WithSeconds(stopDelay)))).
		WithVolumeMounts(corev1ac.VolumeMount().WithName(secretsVolumeName).WithMountPath(secretsDir).WithReadOnly(true))
	for _, l := range w.logos {
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(l.volume).WithMountPath(l.dir).WithReadOnly(true))
	}
	if o.PullPolicy != "" {
		container.WithImagePullPolicy(o.PullPolicy)
	}
	return container
}

// listPorts returns the ports of the container: those of the APIs, and that of probes and metrics.
func (w *workload) listPorts() []*corev1ac.ContainerPortApplyConfiguration {
	var ports []*corev1ac.ContainerPortApplyConfiguration
	for _, p := range append(slices.Clone(w.ports), port{healthPort, healthPortNumber}) {
		ports = append(ports, corev1ac.ContainerPort().WithName(p.name).WithContainerPort(p.number).WithProtocol(corev1.ProtocolTCP))
	}
	return ports
}

func newProbe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(healthPort)))
}

// memoryTarget returns the soft limit of Go's garbage collector, in bytes: nine tenths of the limit, because not all memory is Go's.
func memoryTarget(limit *resource.Quantity) int64 {
	return int64(math.Floor(limit.AsApproximateFloat64() * 0.9))
}
