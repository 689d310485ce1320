package main

import "slices"

// allMutants returns the list. A mutant that is hard to notice belongs here as much as an easy one: what no test notices is a
// promise that nothing keeps.
func allMutants() []Mutant {
	return slices.Concat(domainMutants, phoneMutants, webhookMutants, telegramMutants, whatsappMutants, memoryMutants,
		postgresMutants, objectsMutants, loopMutants, wiringMutants, apiMutants, operatorMutants, chaosMutants)
}
