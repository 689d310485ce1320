// Package controllers holds what the control loops share. These are all loops of PhoneProof, by folder:
//
//	folder         loop           moves                              in       while
//	project        (operator)     projects, to running APIs          operator the operator's lease is held
//	request        lifecycle      stored requests, to their end      serve    the project's lease is held; on every replica
//	                                                                          if the store hands out claims (memory, PostgreSQL)
//	request        manual         those created with kubectl, until  serve    the project's lease is held, with the
//	                              they are like any other                     Kubernetes store
//	request        redelivery     the project's annotation           serve    the project's lease is held
//	callback       whatsapp,      the callbacks at the messengers,   serve    the project's lease is held; always, without
//	               telegram       and Telegram's updates                      a cluster
//	projectstatus  conditions     the project's status, as far as    serve    the project's lease is held
//	                              serve writes it
//
// A term of a lease begins with new controllers and ends with them, so none keeps what another leader may have changed.
package controllers
