package settings

import "testing"

func TestSimulated(t *testing.T) {
	for credential, want := range map[string]bool{
		"": false, "sim": false, "sim_": true, "sim_4915112345678": true, "SIM_1": false, "x_sim_1": false, "5021:AAH": false,
	} {
		if Simulated(credential) != want || Simulated([]byte(credential)) != want {
			t.Errorf("Simulated(%q) = %t, want %t", credential, !want, want)
		}
	}
}
