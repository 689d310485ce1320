// Package whatsapp speaks the WhatsApp Business Platform (Cloud API): the link that a user taps and the text the user sends, the
// webhook that the message arrives by, the replies, and the few calls of the Graph API that we need.
//
//	POST /hooks/whatsapp -> body (bounded) -> signature over its bytes -> payload -> each message -> Service -> 200
//	                                                                                    |
//	                                                                                    '-> reply, best effort, later
//
// Invariants: nothing of a request is parsed before its signature was found good; what Meta signed but we cannot use is
// acknowledged, because it would only come again; an answer of 200 means that everything in the request that counts is
// stored; the number of a sender is what Meta says in messages[].from and nothing else, except for the answer to our own
// prompt, which is marked as the weaker proof that it is. No text, name, number or id of a user reaches a log, a metric or
// an error.
package whatsapp
