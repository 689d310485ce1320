package render

import (
	"math"
	"strconv"

	corev1 "k8s.io/api/core/v1"
	"k8s.io/apimachinery/pkg/api/resource"
	"k8s.io/apimachinery/pkg/util/intstr"
	corev1ac "k8s.io/client-go/applyconfigurations/core/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

const (
	containerName = "server"

	// Names and numbers of the ports.
	apiPort          = "http"
	apiPortNumber    = 8080
	healthPort       = "health" // probes and metrics
	healthPortNumber = 8081
)

func newContainer(p *verifyv1.VerificationProject, o Options) *corev1ac.ContainerApplyConfiguration {
	resources := p.Spec.Server.EffectiveResources()
	container := corev1ac.Container().
		WithName(containerName).
		WithImage(o.Image).
		WithArgs(listArguments(p, o)...).
		WithEnv(
			corev1ac.EnvVar().WithName("GOMEMLIMIT").WithValue(memoryTarget(resources.Limits.Memory())),
			// Addresses that webhooks must not reach, of every address family of the node.
			corev1ac.EnvVar().WithName("HOST_IPS").WithValueFrom(corev1ac.EnvVarSource().
				WithFieldRef(corev1ac.ObjectFieldSelector().WithAPIVersion("v1").WithFieldPath("status.hostIPs"))),
		).
		WithPorts(newPort(apiPort, apiPortNumber), newPort(healthPort, healthPortNumber)).
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
	if logoRef(p) != nil {
		container.WithVolumeMounts(corev1ac.VolumeMount().WithName(logoVolumeName).WithMountPath(logoDir).WithReadOnly(true))
	}
	if o.PullPolicy != "" {
		container.WithImagePullPolicy(o.PullPolicy)
	}
	return container
}

func newPort(name string, number int32) *corev1ac.ContainerPortApplyConfiguration {
	return corev1ac.ContainerPort().WithName(name).WithContainerPort(number).WithProtocol(corev1.ProtocolTCP)
}

func newProbe(path string) *corev1ac.ProbeApplyConfiguration {
	return corev1ac.Probe().WithHTTPGet(corev1ac.HTTPGetAction().WithPath(path).WithPort(intstr.FromString(healthPort)))
}

// memoryTarget returns the soft limit of Go's garbage collector: nine tenths of the limit, because not all memory is Go's.
func memoryTarget(limit *resource.Quantity) string {
	return strconv.FormatInt(int64(math.Floor(limit.AsApproximateFloat64()*0.9)), 10)
}
