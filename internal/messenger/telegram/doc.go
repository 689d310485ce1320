// Package telegram speaks the Telegram Bot API: the link that a user taps, the updates that come in, the answers.
//
//	webhook (Hook) ----\                                    /-> prompt for the contact, before the update is acknowledged
//	                    >-- read --> judge --> domain, store -<
//	polling (Poller) --/                                    \-> reply, best effort, by Channel.Start
//
// A message of Telegram carries no number. So the code only binds its sender to the request, and the contact that
// the sender shares afterwards, by a button that sends their own, verifies it.
//
// Invariants:
//   - An update is acknowledged (2xx, or a higher offset) only once what it changes is stored, and the prompt it needs
//     is sent. All else is acknowledged, because redelivery would change nothing.
//   - A contact counts only if Telegram itself marks it as the sender's own, in a private chat with the bot.
//   - Nothing of an update, and no token, is ever in a log line, a metric or an error: not the text, the number, the name,
//     nor an id. Senders are known by a keyed hash.
//   - Credentials of the simulator go to the simulator and nowhere else, and no others go there.
//
// Facts about Telegram's server are from its public source, github.com/tdlib/telegram-bot-api at 01a3679, and
// in the Bot API's reference (10.1, as github.com/PaulSonOfLars/telegram-bot-api-spec at 160fd99 has it).
package telegram
