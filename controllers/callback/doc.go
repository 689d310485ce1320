// Package callback keeps a project's callbacks registered with the messengers' platforms, and reports their state.
//
//	settings ------------------> plan -----------.
//	the platform --------------> platformState ---+--> decideStep --> register, remove or nothing --.
//	status: the last callback --> memory ---------'                                                 +--> condition, next check
//	WhatsApp: the business account --> subscription --> decideSubscription --> subscribe or nothing -'
//	WhatsApp: the template of codes --> judgeTemplate --> condition CodesReady
//
// There is one Controller for each messenger and each term of a lease. It checks when the settings change, a minute after it
// changed something, several times an hour, and with a growing delay while there is a problem; never before the platform allows
// it. Codes reads the template of a project that has codes sent, several times an hour, too.
//
// Invariants:
//   - A foreign callback is neither replaced nor removed unless the project sets takeOver. Ours are the one for the project's
//     present address, and those that we registered before, as stored in the status.
//   - A callback is stored after the platform took it, so that every callback in the status really was ours.
//   - Telegram's updates are polled only with a token that is known to be the bot's, while no webhook is set, and
//     updates that wait at Telegram are never dropped.
//   - If the messenger is removed from the project, or the project is deleted, while there is a leader, our own callback
//     is removed. A suspended project keeps it: messages wait at the platform.
//   - A subscription is never ended: other numbers of the business account need it too. One that cannot be checked makes no
//     project unready.
//   - Messages of conditions are constant for the same cause, and contain no token, number, time, id or address, except those of
//     the command that subscribes the app.
package callback

// Needed to store the callback in the project's status.
// +kubebuilder:rbac:groups=phoneproof.dev,resources=verificationprojects/status,verbs=patch
