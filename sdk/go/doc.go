// Package phoneproof verifies phone numbers with a PhoneProof server.
//
//	client, err := phoneproof.New("https://verify.example.com", apiKey)
//	started, err := client.Start(ctx, phoneproof.StartParams{PhoneNumber: "+4915123456789"})
//	// Lead the user to started.PageURL or started.WALink.
//	status, err := client.Wait(ctx, started.RequestID)
//	if status.Status == phoneproof.Verified { ... }
//
// Client calls the API, Sessions keeps the rules of session proof, and Receiver takes webhooks. Failures of all three are an *Error, whose
// Code says what went wrong. Answers and events keep their JSON in Raw, with the fields that this version does not know.
package phoneproof

// Version is the version of this library. The header User-Agent has it.
const Version = "0.1.0"
