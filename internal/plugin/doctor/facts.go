package doctor

import (
	"time"

	appsv1 "k8s.io/api/apps/v1"
	corev1 "k8s.io/api/core/v1"
	networkingv1 "k8s.io/api/networking/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/internal/settings"

	"github.com/phoneproof/phoneproof/internal/plugin"
)

// Facts are what the checks judge. Checks read nothing else, so each can be tested by plain values.
type Facts struct {
	// Project is the project as the API server has it. Required.
	Project *verifyv1.VerificationProject
	// Now is the time of this machine.
	Now time.Time
	// Docs is where findings lead.
	Docs plugin.Docs
	// Settle is how long the operator may take to act on a change, and a pod to become ready.
	Settle time.Duration

	// ServerOffset is how far this machine's clock is ahead of the API server's, and PodOffset how far that of the pod with the
	// project's lease is.
	ServerOffset, PodOffset Known[time.Duration]

	// Deployment is the project's; nil if there is none.
	Deployment Known[*appsv1.Deployment]
	Pods       Known[[]corev1.Pod]
	Quotas     Known[[]corev1.ResourceQuota]
	Ranges     Known[[]corev1.LimitRange]
	Policies   Known[[]networkingv1.NetworkPolicy]
	// Operators are the operator's Deployments.
	Operators Known[[]appsv1.Deployment]
	// OperatorPods are their pods.
	OperatorPods Known[[]corev1.Pod]
	// Projects is known if those to examine could be listed.
	Projects Known[struct{}]
	// Refused is what the operators cannot read, or not before a restart, in words.
	Refused Known[[]string]
	// MissingRoles are those that pods are to be bound to, in words.
	MissingRoles Known[[]string]
	// MissingFields are fields of the CRDs that this version knows and the cluster does not.
	MissingFields Known[[]string]

	Secrets Known[SecretFacts]
	// Callbacks are counts of up to maxPods ready pods.
	Callbacks Known[CallbackCounts]
	Address   Known[AddressFacts]
	// Asked are the conditions by the platforms' own answers, for --ask-platforms.
	Asked Known[AskedFacts]
}

// Known is a fact that was read, or why it was not. Its zero value is one that nothing was asked about.
type Known[T any] struct {
	Value T
	// Read is set if Value was read.
	Read bool
	// Why is why it was not read, such as "needs get secrets in shop"; empty if it was, or if it does not apply.
	Why string
}

// knownValue returns a fact that was read.
func knownValue[T any](value T) Known[T] { return Known[T]{Value: value, Read: true} }

// SecretFacts describe the contents of the project's Secrets without any of them.
type SecretFacts struct {
	// Problems are why secrets cannot be used, by the rules of the servers.
	Problems []settings.Problem
	// Blanks are the keys whose value begins or ends with a blank, or ends with more than one newline.
	Blanks []settings.SecretField
}

// CallbackCounts are the posts at /hooks/whatsapp since the pods began, the verifications by WhatsApp that these started, and the last
// balance at Telegram's Gateway.
type CallbackCounts struct {
	// Accepted posts were signed with the app secret, and Refused ones with another. Posts without a signature are neither.
	Accepted, Refused float64
	Started           float64
	// Balance is in US dollars, as it was at BalanceAt; that is zero if no pod knows one.
	Balance   float64
	BalanceAt time.Time
}

// AddressFacts are what this machine found at spec.baseURL.
type AddressFacts struct {
	// HostMissing is set if DNS has no such name.
	HostMissing bool
	// Unreachable is why no connection was made, in a word; empty if one was.
	Unreachable string
	// Certificate is what was shown; nil over http, and if there was no TLS.
	Certificate *CertificateFacts
	// Description, Hook and Root are the answers at BASEURL/openapi.json, at the callback of a messenger, and at /openapi.json of the
	// host itself if baseURL has a path; nil if they were not asked for.
	Description, Hook, Root *Answer
	// HookPath is the path of the callback below baseURL.
	HookPath string
}

// CertificateFacts judge a certificate by this machine's trust and clock.
type CertificateFacts struct {
	// NotBefore and NotAfter are its validity.
	NotBefore, NotAfter time.Time
	// OtherName is set if it is not for the host of spec.baseURL, and Names are whom it is for.
	OtherName bool
	Names     []string
	// Untrusted is set if no authority that this machine knows signed it, or the certificates between are not sent along.
	Untrusted bool
	Issuer    string
}

// isGood reports whether a client would accept the certificate at that time.
func (c *CertificateFacts) isGood(now time.Time) bool {
	return c == nil || !c.OtherName && !c.Untrusted && !now.Before(c.NotBefore) && !now.After(c.NotAfter)
}

// Answer is an answer to an HTTP request, without its body.
type Answer struct {
	// Status is 0 if there was no answer.
	Status int
	// Ours is set if PhoneProof answered.
	Ours bool
	// Location is the host that it redirects to, as text of a stranger.
	Location string
}

// AskedFacts are what the platforms answered.
type AskedFacts struct {
	// Conditions are WhatsAppReady, CodesReady and TelegramReady by the platforms' state of now.
	Conditions []metav1.Condition
	// OtherAppSecret is set if Meta reports that the app secret is another app's.
	OtherAppSecret bool
}
