// Package whatsapp speaks the WhatsApp Business Platform (Cloud API): the link that a user taps and the text he sends.
package whatsapp
