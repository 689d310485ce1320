package doctor

import (
	"fmt"
	"net/http"
	"strings"
	"time"
)

// addressChecks are about spec.baseURL, as this machine sees it.
func addressChecks() []check {
	return []check{
		{
			name: "HostNotFound", problem: "the host of `spec.baseURL` is not in DNS",
			remedy: "create its DNS record, with the address that `kubectl -n NAMESPACE get ingress,service` shows, or correct `spec.baseURL`",
			find: onAddress(func(f *Facts, a *AddressFacts) []evidence {
				return when(a.HostMissing, "DNS has no record of "+f.Project.Spec.BaseHost())
			}),
		},
		{
			name: "AddressUnreachable", problem: "nothing answers at `spec.baseURL`",
			remedy: "look at `kubectl -n NAMESPACE get ingress,service,pods`, at the load balancer in front, and at firewalls; if only this " +
				"machine has no way there, run the doctor elsewhere or with `--probe=false`",
			find: onAddress(func(f *Facts, a *AddressFacts) []evidence {
				return when(a.Unreachable != "", f.Project.Spec.BaseURL+": "+a.Unreachable)
			}),
		},
		{
			name: "CertificateExpired", problem: "the certificate of `spec.baseURL` is not valid at this time",
			remedy: "renew it: with cert-manager look at `kubectl -n NAMESPACE describe certificate,certificaterequest,order`, else replace the " +
				"Secret of `spec.expose.ingress.tlsSecretName`",
			find: onAddress(findExpired),
		},
		{
			name: "CertificateOfOtherName", problem: "the certificate at `spec.baseURL` is for another name",
			remedy: "name the host in the certificate of `spec.expose.ingress.tlsSecretName`, or correct `spec.baseURL`; an ingress controller " +
				"shows its own certificate while that Secret is missing: `kubectl -n NAMESPACE get secrets`",
			find: onAddress(func(_ *Facts, a *AddressFacts) []evidence {
				c := a.Certificate
				return when(c != nil && c.OtherName, describeNames(c))
			}),
		},
		{
			name: "CertificateNotTrusted", problem: "the certificate of `spec.baseURL` is signed by an authority that browsers and messengers do not know",
			remedy: "use one of a public authority, with the certificates between, in `spec.expose.ingress.tlsSecretName`",
			find: onAddress(func(_ *Facts, a *AddressFacts) []evidence {
				c := a.Certificate
				if c == nil || !c.Untrusted {
					return nil
				}
				return see("signed by " + c.Issuer)
			}),
		},
		{
			name: "PathNotForwarded", problem: "a path below `spec.baseURL` does not reach PhoneProof",
			remedy: "have the proxy forward the whole path of `spec.baseURL`, and `/hooks/whatsapp`, `/hooks/telegram`, `/api/verify/` and " +
				"`/openapi.json` below it; compare with `kubectl -n NAMESPACE get ingress -o yaml`",
			find: onAddress(findLostPaths),
		},
		{
			name: "LoginRequired", problem: "something in front of PhoneProof asks for a login or redirects, which messengers do not follow",
			remedy: "exempt the host of `spec.baseURL` from logins and redirects at the proxy; check with `curl -i BASEURL/hooks/whatsapp`, which " +
				"must answer 403 or 404 itself",
			find: onAddress(findLogins),
		},
		{
			name: "ProxyFails", problem: "a proxy in front of PhoneProof answers that it reaches no pod",
			remedy: "look at `kubectl -n NAMESPACE get endpointslices,pods -l phoneproof.dev/project`, and at NetworkPolicies between the proxy and the pods",
			find: onAddress(func(_ *Facts, a *AddressFacts) []evidence {
				return a.findForeign(func(n *Answer) bool { return n.Status >= http.StatusInternalServerError })
			}),
		},
		{
			name: "OtherServer", problem: "another server than PhoneProof answers at `spec.baseURL`",
			remedy: "point the DNS record and the ingress at this project's Service, or correct `spec.baseURL`: `kubectl -n NAMESPACE get ingress,service`",
			find: onAddress(func(_ *Facts, a *AddressFacts) []evidence {
				if a.Description == nil || a.Description.Ours || a.Root != nil && a.Root.Ours || a.Hook != nil && a.Hook.Ours {
					return nil
				}
				return a.findForeign(func(n *Answer) bool { return n == a.Description && isOtherServer(n.Status) })
			}),
		},
	}
}

// onAddress makes a check of what was found at the address.
func onAddress(find func(*Facts, *AddressFacts) []evidence) func(*Facts) []evidence {
	return func(f *Facts) []evidence {
		if !f.Address.Read {
			return nil
		}
		return find(f, &f.Address.Value)
	}
}

// when returns one piece of evidence if the condition holds.
func when(holds bool, text string) []evidence {
	if !holds {
		return nil
	}
	return see(text)
}

func findExpired(f *Facts, a *AddressFacts) []evidence {
	c := a.Certificate
	switch {
	case c == nil:
		return nil
	case f.Now.After(c.NotAfter):
		return see("it ended at " + c.NotAfter.UTC().Format(time.RFC3339))
	case f.Now.Before(c.NotBefore):
		return see("it begins at " + c.NotBefore.UTC().Format(time.RFC3339))
	default:
		return nil
	}
}

func describeNames(c *CertificateFacts) string {
	if c == nil || len(c.Names) == 0 {
		return "it names no host"
	}
	const most = 5
	return "it is for " + strings.Join(c.Names[:min(most, len(c.Names))], ", ")
}

// probe is an answer and where it came from.
type probe struct {
	path   string
	answer *Answer
}

// probes returns the answers below baseURL that were asked for.
func (a *AddressFacts) probes() []probe {
	var all []probe
	for _, p := range []probe{{pathDescription, a.Description}, {a.HookPath, a.Hook}} {
		if p.answer != nil && p.answer.Status != 0 {
			all = append(all, p)
		}
	}
	return all
}

// findForeign returns the first answer below baseURL that is not PhoneProof's and matches.
func (a *AddressFacts) findForeign(matches func(*Answer) bool) []evidence {
	for _, p := range a.probes() {
		if !p.answer.Ours && matches(p.answer) {
			return see(fmt.Sprintf("BASEURL%s answers %d", p.path, p.answer.Status))
		}
	}
	return nil
}

// findLostPaths returns the paths that lead elsewhere although PhoneProof is at the host, or that a prefix hides.
func findLostPaths(f *Facts, a *AddressFacts) []evidence {
	reached := a.Root != nil && a.Root.Ours
	for _, p := range a.probes() {
		reached = reached || p.answer.Ours
	}
	var lost []evidence
	for _, p := range a.probes() {
		if !p.answer.Ours && p.answer.Status == http.StatusNotFound && (reached || f.Project.Spec.BasePath() != "") {
			lost = append(lost, evidence{text: fmt.Sprintf("BASEURL%s answers 404, and not by PhoneProof", p.path)})
		}
	}
	return lost
}

// findLogins returns the first answer that wants the client to go elsewhere or to log in.
func findLogins(_ *Facts, a *AddressFacts) []evidence {
	for _, p := range a.probes() {
		n := p.answer
		switch {
		case n.Ours:
		case n.Status >= 300 && n.Status < 400 && n.Location != "":
			return see(fmt.Sprintf("BASEURL%s redirects (%d) to %s", p.path, n.Status, n.Location))
		case n.Status >= 300 && n.Status < 400, n.Status == http.StatusUnauthorized, n.Status == http.StatusProxyAuthRequired,
			n.Status == http.StatusForbidden:
			return see(fmt.Sprintf("BASEURL%s answers %d, and not by PhoneProof", p.path, n.Status))
		}
	}
	return nil
}

// isOtherServer reports whether a status is not one that another check explains.
func isOtherServer(status int) bool {
	switch status {
	case http.StatusUnauthorized, http.StatusForbidden, http.StatusProxyAuthRequired:
		return false
	default:
		return status < 300 || status >= 400 && status < 500
	}
}
