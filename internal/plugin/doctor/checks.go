package doctor

import "slices"

// installationChecks are those that need no project.
func installationChecks() []check { return append(clockChecks()[:1], operatorChecks()...) }

// allChecks returns the checks in the order of the report: from the address that users come by, over secrets and pods, to what the
// conditions say.
func allChecks() []check {
	return slices.Concat(addressChecks(), clockChecks(), secretChecks(), operatorChecks(), podChecks(), policyChecks(),
		platformChecks(), codeChecks(), conditionChecks())
}
