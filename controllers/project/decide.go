package project

import (
	"fmt"

	"k8s.io/apimachinery/pkg/util/validation/field"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

// action is what a decision does to the children.
type action int

const (
	// carryOut applies all that the project wants, and removes what it does not want any more.
	carryOut action = iota
	// keep leaves everything as it is: what runs goes on running.
	keep
	// stop removes what runs pods, and leaves the rest as it is.
	stop
)

// weight is what a blocker means for the project's conditions.
type weight int

const (
	// plain makes it not Ready, and that is all.
	plain weight = iota
	// stalls until somebody edits the project, or what it names.
	stalls
	// waits for something that comes by itself.
	waits
	// aside waits too, while the pods work as before.
	aside
)

// blocker is why a project is not as it declares, or not yet. The message is the same each time for the same cause.
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

// decide asks the rules in their order; the first that answers decides.
func decide(o *observed, permissions *Permissions) decision {
	for _, rule := range []func(*observed, *Permissions) *decision{
		suspended,         // nothing is to run: this works in every state of a project, as a brake must
		accountNotGranted, // the pods follow the spec, also one that is refused, so the administrator's word stops them
		invalidSpec,       // rendering it could do anything
		notPermitted,      // the administrator has the last word
		accountInUse,      // what does not run is not started; what runs goes on
	} {
		if d := rule(o, permissions); d != nil {
			return *d
		}
	}
	return decision{action: carryOut}
}

func suspended(o *observed, permissions *Permissions) *decision {
	if !o.project.Suspended() {
		return nil
	}
	d := decision{action: carryOut, blocker: &blocker{plain, verifyv1.ReasonSuspended, suspendedMessage}}
	if invalidSpec(o, permissions) != nil || notPermitted(o, permissions) != nil {
		d.action = stop
	}
	return &d
}

func invalidSpec(o *observed, _ *Permissions) *decision {
	errs := o.project.Validate()
	if len(errs) == 0 {
		return nil
	}
	return &decision{action: keep, blocker: &blocker{stalls, verifyv1.ReasonInvalidSpec, withoutValue(errs[0])}}
}

func notPermitted(o *observed, permissions *Permissions) *decision {
	text := permissions.refusal(&o.project.Spec)
	if text == "" {
		text = refuseHostAnnotations(o.project)
	}
	if text == "" {
		return nil
	}
	return &decision{action: keep, blocker: &blocker{stalls, verifyv1.ReasonNotPermitted, text}}
}

func accountNotGranted(o *observed, permissions *Permissions) *decision {
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

// accountInUse keeps a project from being started whose account another project of its namespace claimed before. That is no
// reason to stop one that runs: a claim can be forged by those who may edit the namespace.
func accountInUse(o *observed, _ *Permissions) *decision {
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

// withoutValue returns an error about a field without the value that it refuses, which may be a secret.
func withoutValue(err *field.Error) string {
	if err.Detail == "" {
		return fmt.Sprintf("%s: %s", err.Field, err.Type)
	}
	return fmt.Sprintf("%s: %s", err.Field, err.Detail)
}
