package settings

// SimulatorPrefix begins every credential of the simulator, and no other. Those go to the simulator and nowhere else, and no
// others go there.
const SimulatorPrefix = "sim_"

// Simulated reports whether a credential is the simulator's.
func Simulated[T ~string | ~[]byte](credential T) bool {
	return len(credential) >= len(SimulatorPrefix) && string(credential[:len(SimulatorPrefix)]) == SimulatorPrefix
}
