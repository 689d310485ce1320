// Package telegram speaks the Telegram Bot API: the link that a user taps and the text that his client sends for it.
package telegram
