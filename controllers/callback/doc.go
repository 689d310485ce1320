// Package callback keeps a project's callbacks registered with the messengers' platforms, and says how that stands.
//
//	settings ------------------> plan --.
//	the platform --------------> seen ---+--> decide --> register, remove or nothing --> condition, when to look again
//	status: the last callback --> memory '
//
// There is one Controller for each messenger, made anew for each term of a lease. It looks when the settings change, a
// minute after it changed something, several times an hour, and more and more seldom while something is wrong; never
// before the platform says it may.
//
// Invariants:
//   - A callback that somebody else registered is neither replaced nor removed unless the project says takeOver. Ours are
//     the one that the project's address makes now, and those that were registered by us as status remembers.
//   - A callback is remembered once the platform took it, so that what status says was ours really was.
//   - Telegram's updates are fetched only with a token that is known to be the bot's, while no webhook is set, and
//     nothing that waits at Telegram is ever dropped.
//   - Where the messenger is taken out of the project, or the project is deleted, while somebody leads, our own callback
//     is removed. A suspended project keeps it: messages wait at the platform.
//   - Messages of conditions are the same each time for the same cause, and hold no token, number, id, address or time.
package callback

// What remembering a callback in the project's status takes.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects/status,verbs=patch
