package doctor

import "slices"

// allChecks returns the checks in the order of the report: from the address that users come by, over secrets and pods, to what the
// conditions say.
func allChecks() []check {
	return slices.Concat(addressChecks(), clockChecks(), secretChecks(), operatorChecks(), podChecks(), policyChecks(),
		platformChecks(), conditionChecks())
}
