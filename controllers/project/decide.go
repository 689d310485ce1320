package project

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// action is what a decision does to the children.
type action int

const (
	// carryOut applies all that the project wants, and deletes what it no longer wants.
	carryOut action = iota
	// keep changes nothing: running pods go on running.
	keep
	// stop deletes the Deployment, and leaves the rest unchanged.
	stop
)

// weight is the effect of a blocker on the project's conditions.
type weight int

const (
	// plain makes it not Ready, without other conditions.
	plain weight = iota
	// stalls until the project, or an object that it names, is edited.
	stalls
	// waits for an event that comes by itself.
	waits
	// aside waits too, while the pods work as before.
	aside
)

// blocker is why a project differs from its spec. The message is constant for the same cause.
type blocker struct {
	weight  weight
	reason  string
	message string
}

// decision is what to do with a project.
type decision struct {
	action  action
	blocker *blocker // nil if there is none
}

// decideAction applies the rules in their order; the first that returns a decision counts.
func decideAction(o *observed, permissions *Permissions) decision {
	for _, rule := range []func(*observed, *Permissions) *decision{
		checkSuspended,    // no pod may run: this works in every state of a project, because it is the emergency brake
		checkAccountGrant, // the pods follow the spec, even a refused one, so a grant to another namespace stops them
		checkSpec,         // rendering it could do anything
		checkPermissions,  // the administrator decides
		checkAccountClaim, // what does not run is not started; what runs goes on
	} {
		if d := rule(o, permissions); d != nil {
			return *d
		}
	}
	return decision{action: carryOut}
}

func checkSuspended(o *observed, permissions *Permissions) *decision {
	if !o.project.Suspended() {
		return nil
	}
	d := decision{action: carryOut, blocker: &blocker{plain, verifyv1.ReasonSuspended, suspendedMessage}}
	if checkSpec(o, permissions) != nil || checkPermissions(o, permissions) != nil {
		d.action = stop
	}
	return &d
}

func checkSpec(o *observed, _ *Permissions) *decision {
	errs := o.project.Validate()
	if len(errs) == 0 {
		return nil
	}
	return &decision{action: keep, blocker: &blocker{stalls, verifyv1.ReasonInvalidSpec, withoutValue(errs[0])}}
}

func checkPermissions(o *observed, permissions *Permissions) *decision {
	text := permissions.findRefusal(&o.project.Spec)
	if text == "" {
		text = refuseHostAnnotations(o.project)
	}
	if text == "" {
		return nil
	}
	return &decision{action: keep, blocker: &blocker{stalls, verifyv1.ReasonNotPermitted, text}}
}

func checkAccountGrant(o *observed, permissions *Permissions) *decision {
	for i := range o.accounts {
		name := o.accounts[i].name
		if !permissions.mayUseAccount(o.project.Namespace, name) {
			message := accountField(name) + ": the account is granted to another namespace by the cluster's administrator " +
				"(operator flag " + accountGrantFlag + ")"
			return &decision{action: stop, blocker: &blocker{stalls, verifyv1.ReasonNotPermitted, message}}
		}
	}
	return nil
}

// checkAccountClaim prevents the start of a project whose account another project of its namespace claimed before. It does not stop a
// running one, because editors of the namespace can forge a claim.
func checkAccountClaim(o *observed, _ *Permissions) *decision {
	for i := range o.accounts {
		account := &o.accounts[i]
		if account.holder != nil {
			message := accountField(account.name) + " belongs to the project " + account.holder.Name +
				", which has named it for longer; use another account, or remove it from that project"
			return &decision{action: keep, blocker: &blocker{stalls, verifyv1.ReasonAccountInUse, message}}
		}
	}
	return nil
}

// withoutValue returns an error about a field without the refused value, which may be a secret.
func withoutValue(err *field.Error) string {
	if err.Detail == "" {
		return fmt.Sprintf("%s: %s", err.Field, err.Type)
	}
	return fmt.Sprintf("%s: %s", err.Field, err.Detail)
}
