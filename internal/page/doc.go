// Package page serves the page that leads an end user from a link to a verified number: pageURL of init.
//
// A page is known by its ticket, which is the code of the request, encrypted. So any replica finds the request and the messenger
// links by it, and nothing is stored for it. The ticket in a chat is the id of the request, encrypted: it leads to no messenger. Who
// holds a ticket sees the state of the request and never the number.
package page
