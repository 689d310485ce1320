package main

import "slices"

// allMutants returns the list. It has mutants that are hard to notice as well as easy ones: a promise that no test
// checks is not kept.
func allMutants() []Mutant {
	return slices.Concat(domainMutants, phoneMutants, webhookMutants, telegramMutants, whatsappMutants, whatsappAccountMutants, textsMutants,
		memoryMutants, postgresMutants, objectsMutants, sessionMutants, loopMutants, wiringMutants, apiMutants, requestMutants, pageMutants,
		operatorMutants, chaosMutants, testKeyMutants, pluginMutants)
}
