package v1alpha1

// Condition types of a VerificationProject. Ready, Reconciling, Stalled,
// Available and Shared are the operator's; the others are applied by the lease holder of
// serve. While they are current, SecretsReady, StorageReady and those of the messengers
// in use count for Ready.
const (
	// ConditionReady is True when the declared API works: pods answer, and every condition below that applies is True.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator or a rollout is on its way to the declared state. It is absent otherwise, as
	// kstatus wants it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will change without an edit of the project or what it names, or fixes what its pods fail at.
	// Absent otherwise.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True while at least one pod answers.
	ConditionAvailable = "Available"
	// ConditionSecretsReady is True when every referenced Secret key is readable and not empty.
	ConditionSecretsReady = "SecretsReady"
	// ConditionStorageReady is True when requests can be stored.
	ConditionStorageReady = "StorageReady"
	// ConditionWhatsAppReady is True when messages to the WhatsApp number reach this project. Absent without spec.whatsapp.
	ConditionWhatsAppReady = "WhatsAppReady"
	// ConditionTelegramReady is True when messages to the bot reach this project. Absent without spec.telegram.
	ConditionTelegramReady = "TelegramReady"
	// ConditionWebhookHealthy is False while the receiver refuses events. Not counted for Ready. Absent without spec.webhook.
	ConditionWebhookHealthy = "WebhookHealthy"
	// ConditionSilent is True when WhatsApp requests expire and no message has come for spec.whatsapp.silentAfter. Not counted for
	// Ready. Absent otherwise.
	ConditionSilent = "Silent"
	// ConditionSimulated is True when a credential begins with sim_, so that nothing this project says is true of a real phone. Absent
	// otherwise.
	ConditionSimulated = "Simulated"
	// ConditionShared is True while a project of another namespace names the same messenger account or answers to the same host name.
	// Not counted for Ready. Absent otherwise.
	ConditionShared = "Shared"
	// ConditionLimitsContradict is True when the project's own limits let its API keys fill its store although events are delivered. Not
	// counted for Ready. Absent otherwise.
	ConditionLimitsContradict = "LimitsContradict"
	// ConditionTestEventsOff is True when webhook.testURL is set and no secret signs the events of test keys, so none is sent. It never
	// makes a project not Ready. Absent otherwise.
	ConditionTestEventsOff = "TestEventsOff"
	// ConditionCodesReady is True when the template of spec.whatsapp.codes can be sent in all its languages. Not counted for Ready.
	// Absent without spec.whatsapp.codes.
	ConditionCodesReady = "CodesReady"
	// ConditionCodesLimited is True when an API key has used half of its share of maxPerDay of spec.whatsapp.codes or
	// spec.telegram.codes. Not counted for Ready. Absent otherwise.
	ConditionCodesLimited = "CodesLimited"
	// ConditionGatewayReady is True when Telegram's Gateway took the last code that the replica with the lease sent. Not counted for
	// Ready. Absent without spec.telegram.codes.
	ConditionGatewayReady = "GatewayReady"
)

// Condition types of a VerificationRequest. For tools that follow kstatus it also
// has Reconciling while it is pending, and Stalled when it expired or was refused
// for good.
const (
	// ConditionAccepted is False on a manual request that cannot be worked on; the reason says why. True once status.init is written.
	ConditionAccepted = "Accepted"
	// ConditionVerified is True when the number was verified, False when the request expired first, and Unknown until then.
	ConditionVerified = "Verified"
	// ConditionWebhookDelivered is True when the receiver took the event, False while it is due and when it was given up. Absent where
	// none is due.
	ConditionWebhookDelivered = "WebhookDelivered"
)

// Reasons of Ready, Reconciling, Stalled and Available.
const (
	// ReasonReady goes with Ready=True: all is as declared.
	ReasonReady = "Ready"
	// ReasonSuspended goes with Ready=False, Available=False and Accepted=False: spec.suspend is true, so there are no pods. To fix it,
	// set it to false.
	ReasonSuspended = "Suspended"
	// ReasonProgressing goes with Reconciling=True and Ready=False: children are made, or pods are replaced. The message says where
	// waiting does not help, such as a Deployment that was paused.
	ReasonProgressing = "Progressing"
	// ReasonRolloutQueued goes with Reconciling=True: an upgrade of the operator rolls other projects first.
	ReasonRolloutQueued = "RolloutQueued"
	// ReasonRolloutStuck goes with Stalled=True and Ready=False: the new pods did not become ready in ten minutes; the former ones are
	// kept. To fix it, look at the new pods and their events. It goes by itself once they are ready.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonPodsUnavailable goes with Available=False and Ready=False: no pod answers. To fix it, look at the Deployment's pods and
	// events.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonPodsAvailable goes with Available=True: at least one pod answers.
	ReasonPodsAvailable = "PodsAvailable"
	// ReasonPodsRefused goes with Reconciling=True and Ready=False: the API server refuses to create pods, by a quota, a limit range or
	// a policy, in the words of the message. Ready stays True while pods of the present template answer; after ten minutes below the
	// wanted number it is Stalled, too. To fix it, change what the words name, or spec.server.resources.
	ReasonPodsRefused = "PodsRefused"
	// ReasonNotPermitted goes with Stalled=True: a field asks for what the cluster's administrator has not allowed, or has granted to
	// another namespace; the message names field and flag. Nothing new is applied. If another namespace has the account, the Deployment
	// is deleted. To fix it, change the field, or ask for the flag.
	ReasonNotPermitted = "NotPermitted"
	// ReasonAccountInUse goes with Stalled=True: another project of this namespace has had the same phoneNumberID or botUsername in its
	// spec for longer. The project is not started; a Deployment that runs goes on. To fix it, use another account, or remove it from the
	// other project.
	ReasonAccountInUse = "AccountInUse"
	// ReasonHostInUse goes with Stalled=True: another project already answers to a host name of this one, in its Ingress, HTTPRoute or
	// annotations. This one runs without that host. To fix it, use another host, remove it from the other project, or ask for
	// --grant-host. It ends within about a minute once the host is free.
	ReasonHostInUse = "HostInUse"
	// ReasonConflict goes with Stalled=True: an object with the name of a child exists and is not ours. It is left alone, and the other
	// children are applied. To fix it, delete or rename that object.
	ReasonConflict = "Conflict"
	// ReasonChildRejected goes with Stalled=True: the API server refused a child, as invalid, by a policy or a quota, or because no
	// address is left for its Service; the message names object and field. The others are applied, and this one is tried again after ten
	// minutes. To fix it, change the field of the project that it came from.
	ReasonChildRejected = "ChildRejected"
	// ReasonGatewayAPIMissing goes with Ready=False: expose.httpRoute is set and the cluster has no HTTPRoute that the operator can
	// read: its log says why. To fix it, install the Gateway API, or use expose.ingress.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
	// ReasonInvalidSpec goes with Stalled=True: the spec was stored before a rule existed; the message names the field. Nothing new is
	// applied. To fix it, edit the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotReported goes with Ready=Unknown: no running pod has reported on the present spec. If it stays, no pod holds the
	// project's lease, or it cannot write the status. To fix it, read the pods' logs.
	ReasonNotReported = "NotReported"
)

// Reasons of Shared.
const (
	// ReasonAccountShared goes with Shared=True: a project of another namespace names the same messenger account. Neither is stopped;
	// the messenger decides whose callback is registered. To fix it, ask the cluster's administrator for --grant-account.
	ReasonAccountShared = "AccountShared"
	// ReasonHostShared goes with Shared=True: a project of another namespace answers to the same host name. To fix it, ask for
	// --grant-host.
	ReasonHostShared = "HostShared"
)

// Reasons of SecretsReady.
const (
	// ReasonSecretsRead goes with SecretsReady=True: every referenced Secret can be used.
	ReasonSecretsRead = "SecretsRead"
	// ReasonSecretMissing goes with SecretsReady=False: a Secret, or the key in it, is not there; the message names field, Secret and
	// key. To fix it, create it. The kubelet brings it into the running pods within two minutes.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretInvalid goes with SecretsReady=False: a value is empty, a placeholder (REPLACE-...), used twice, one of the simulator
	// in an account that is not, or not in its form: an API key has 32 characters or more, a webhook secret 24 bytes or more, after
	// whsec_ as base64, an app secret 32 hexadecimal digits. To fix it, put the right value in.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonAwaitingRollout goes with SecretsReady=Unknown and WebhookHealthy=Unknown: this pod was started before the reference was
	// added, so it cannot see the file. To fix it, wait for the rollout; if it does not end, look at the Deployment.
	ReasonAwaitingRollout = "AwaitingRollout"
)

// Reasons of StorageReady.
const (
	// ReasonStorageReachable goes with StorageReady=True: requests can be stored. If the message reports an unencrypted connection, take
	// sslmode disable, allow or prefer out of the URI.
	ReasonStorageReachable = "StorageReachable"
	// ReasonStorageUnreachable goes with StorageReady=False: the store does not answer in time, so clients get 503; the message says
	// how. To fix it, look at the database, its address in the Secret and the network, or at the API server.
	ReasonStorageUnreachable = "StorageUnreachable"
	// ReasonStorageRejected goes with StorageReady=False: the database answers and does not serve us: password, rights, a read-only
	// server, synchronous_commit=off, or local beside a synchronous standby. To fix it, correct what the message names.
	ReasonStorageRejected = "StorageRejected"
	// ReasonStorageFull goes with StorageReady=False: request.maxStored requests are stored and none may be deleted yet, so init answers
	// 429 too_many_stored. To fix it, repair the webhook's receiver, raise request.maxStored, shorten request.retention, or move to
	// PostgreSQL.
	ReasonStorageFull = "StorageFull"
)

// Reasons of WhatsAppReady and TelegramReady.
const (
	// ReasonRegistered goes with WhatsAppReady=True and TelegramReady=True: the messenger delivers to this project.
	ReasonRegistered = "Registered"
	// ReasonPolling goes with TelegramReady=True: one pod fetches the messages from Telegram.
	ReasonPolling = "Polling"
	// ReasonRegistrationByHand goes with WhatsAppReady=True and TelegramReady=True: registerWebhook is false: the callback is yours, and
	// is not checked. The subscription of the app is.
	ReasonRegistrationByHand = "RegistrationByHand"
	// ReasonRegistering goes with WhatsAppReady=Unknown and TelegramReady=Unknown: the messenger is being asked, or for less than a
	// minute other pods fetch the bot's messages.
	ReasonRegistering = "Registering"
	// ReasonCallbackTaken goes with WhatsAppReady=False and TelegramReady=False: another program's callback is registered, or another
	// program fetches this bot's messages. To fix it, remove that one, or set takeOver: true.
	ReasonCallbackTaken = "CallbackTaken"
	// ReasonCallbackUnreachable goes with WhatsAppReady=False and TelegramReady=False: the messenger cannot reach spec.baseURL; the
	// message has what it was answered. To fix it, look at DNS and certificate, which take a while after the start. 404: the ingress
	// leads elsewhere; 503: see StorageReady; 401: a proxy asks for a password.
	ReasonCallbackUnreachable = "CallbackUnreachable"
	// ReasonNotSubscribed goes with WhatsAppReady=False: the Meta app is not subscribed to the WhatsApp Business account, so no message
	// arrives. To fix it, type the command of the message, or set registerWebhook: true; where it is set, the access token lacks
	// whatsapp_business_management.
	ReasonNotSubscribed = "NotSubscribed"
	// ReasonCredentialsRejected goes with WhatsAppReady=False, TelegramReady=False, CodesReady=False and GatewayReady=False: the
	// messenger refuses the token. To fix it, put a valid one into the Secret.
	ReasonCredentialsRejected = "CredentialsRejected"
	// ReasonAccountMismatch goes with WhatsAppReady=False, TelegramReady=False and CodesReady=False: the token is another account's than
	// phoneNumberID or botUsername names, or the WhatsApp Business account does not have the number. To fix it, compare with the Meta
	// dashboard or BotFather, and correct one of the two.
	ReasonAccountMismatch = "AccountMismatch"
	// ReasonPlatformUnreachable goes with WhatsAppReady=False and TelegramReady=False: the messenger does not answer, or something else
	// does in its place. To fix it, wait, or look at network policy and proxy (HTTPS_PROXY is honoured).
	ReasonPlatformUnreachable = "PlatformUnreachable"
	// ReasonPlatformFailing goes with WhatsAppReady=False and TelegramReady=False: the messenger, or a proxy in front of it, answers
	// with a failure such as 500, asks to wait, or refuses the call. To fix it, wait, or look at its status page and the proxies
	// between.
	ReasonPlatformFailing = "PlatformFailing"
	// ReasonSecretsNotReady goes with WhatsAppReady=False, TelegramReady=False, CodesReady=False, GatewayReady=False and
	// Accepted=False: the account's secrets cannot be read. To fix it, see SecretsReady.
	ReasonSecretsNotReady = "SecretsNotReady"
)

// Reasons of WebhookHealthy, Silent, Simulated, LimitsContradict and TestEventsOff.
const (
	// ReasonNoFailures goes with WebhookHealthy=True: the receiver takes events, as far as is known.
	ReasonNoFailures = "NoFailures"
	// ReasonReceiverFailing goes with WebhookHealthy=False: three attempts in a row failed; the message has one word for it, such as
	// http_500 or timeout. To fix it, repair the receiver. Events wait, and are sent again.
	ReasonReceiverFailing = "ReceiverFailing"
	// ReasonAddressRefused goes with WebhookHealthy=False: the host of webhook.url does not exist, or leads to an address that the
	// administrator has not allowed, or the URL is plain http to a public address, or has a port of the cluster's own. To fix it, check
	// the host's name; for a private address ask for --webhook-allow; else use https, or another port.
	ReasonAddressRefused = "AddressRefused"
	// ReasonSigningSecretMissing goes with WebhookHealthy=False: webhook.secretRef is set and cannot be used. Events wait, unsent and
	// without using an attempt. To fix it, see SecretsReady.
	ReasonSigningSecretMissing = "SigningSecretMissing"
	// ReasonNoMessages goes with Silent=True: three or more WhatsApp requests expired since the last message with a code, and none came
	// for whatsapp.silentAfter. To fix it, look at subscription, callback and app secret, as the runbook says. It ends by itself when a
	// message comes.
	ReasonNoMessages = "NoMessages"
	// ReasonSimulatorCredentials goes with Simulated=True: credentials begin with sim_: they go to the simulator. To fix it, replace
	// them.
	ReasonSimulatorCredentials = "SimulatorCredentials"
	// ReasonKeysFillStore goes with LimitsContradict=True: rateLimit.perKey lets the API keys together start more requests than
	// request.maxStored before the first of them makes room. To fix it, run the command of the message, lower rateLimit.perKey, raise
	// request.maxStored, or use PostgreSQL.
	ReasonKeysFillStore = "KeysFillStore"
	// ReasonTestSecretUnset goes with TestEventsOff=True: webhook.testURL is set without testSecretRef, so no event of a test key is
	// sent. To fix it, name a secret there that signs no real events, or remove testURL.
	ReasonTestSecretUnset = "TestSecretUnset"
)

// Reasons of CodesReady, CodesLimited and GatewayReady. CodesReady also has CredentialsRejected,
// AccountMismatch and SecretsNotReady, GatewayReady CredentialsRejected and SecretsNotReady.
const (
	// ReasonTemplateReady goes with CodesReady=True: the template can be sent in all its languages.
	ReasonTemplateReady = "TemplateReady"
	// ReasonTemplateMissing goes with CodesReady=False: the WhatsApp Business account has no template of that name. To fix it, create
	// the template, or correct templateName.
	ReasonTemplateMissing = "TemplateMissing"
	// ReasonTemplateNotApproved goes with CodesReady=False: Meta has not approved the template, or paused or disabled it, in a language;
	// the message names it. To fix it, look at the template in the WhatsApp Manager.
	ReasonTemplateNotApproved = "TemplateNotApproved"
	// ReasonTemplateWrongCategory goes with CodesReady=False: the template is not of category AUTHENTICATION. To fix it, create one that
	// is.
	ReasonTemplateWrongCategory = "TemplateWrongCategory"
	// ReasonTemplateLanguageMissing goes with CodesReady=False: the template lacks one of languages; the message names it. To fix it,
	// add the language to the template, or remove it from languages.
	ReasonTemplateLanguageMissing = "TemplateLanguageMissing"
	// ReasonTemplateWithoutButton goes with CodesReady=False: the template has no copy-code button. To fix it, create one that has.
	ReasonTemplateWithoutButton = "TemplateWithoutButton"
	// ReasonTemplateTTLTooLong goes with CodesReady=False: Meta may deliver the template after the request has ended. To fix it, lower
	// message_send_ttl_seconds of the template, or raise request.ttl.
	ReasonTemplateTTLTooLong = "TemplateTTLTooLong"
	// ReasonTemplateQualityLow goes with CodesReady=False: users block or report the template, and Meta may pause it. To fix it, have
	// codes sent only to users who ask for them.
	ReasonTemplateQualityLow = "TemplateQualityLow"
	// ReasonTemplateUnchecked goes with CodesReady=Unknown: the template cannot be read; the message says why. Codes are sent all the
	// same. To fix it, set businessAccountID, or give the access token whatsapp_business_management.
	ReasonTemplateUnchecked = "TemplateUnchecked"
	// ReasonCodesHalfUsed goes with CodesLimited=True: an API key, which the message names, has used half of its share of maxPerDay
	// within 24 hours. At its end init answers 429 codes_limited for codes, and links go on. To fix it, find out who starts the
	// requests, replace a leaked key, or raise maxPerDay.
	ReasonCodesHalfUsed = "CodesHalfUsed"
	// ReasonGatewayTakesCodes goes with GatewayReady=True: Telegram's Gateway took the last code.
	ReasonGatewayTakesCodes = "GatewayTakesCodes"
	// ReasonBalanceEmpty goes with GatewayReady=False: the balance at Telegram's Gateway does not pay for a code. To fix it, add funds at
	// gateway.telegram.org. It ends with the next code that is taken.
	ReasonBalanceEmpty = "BalanceEmpty"
	// ReasonSenderRejected goes with GatewayReady=False: senderUsername is no verified channel of the Gateway account's owner. To fix
	// it, name one that is, or remove it.
	ReasonSenderRejected = "SenderRejected"
	// ReasonGatewayUnchecked goes with GatewayReady=Unknown: no code was sent yet with the present token and sender by the replica with
	// the lease, since it began. Codes are sent all the same.
	ReasonGatewayUnchecked = "GatewayUnchecked"
)

// Reasons of Accepted, Verified and WebhookDelivered on a VerificationRequest.
const (
	// ReasonAccepted goes with Accepted=True: text and link are in the status.
	ReasonAccepted = "Accepted"
	// ReasonMethodNotConfigured goes with Accepted=False and Stalled=True: the project does not have the messenger that method names. To
	// fix it, use the other one.
	ReasonMethodNotConfigured = "MethodNotConfigured"
	// ReasonPhoneNumberRefused goes with Accepted=False and Stalled=True: the number is impossible, premium-rate, not a person's, or the
	// project's own. To fix it, make a request with another number.
	ReasonPhoneNumberRefused = "PhoneNumberRefused"
	// ReasonRateLimited goes with Accepted=False and Reconciling=True: the number has used up rateLimit.perPhoneNumber, or its range
	// rateLimit.perPrefix, or its owner declined within assurance.declineCooldown. To fix it, try again later.
	ReasonRateLimited = "RateLimited"
	// ReasonTooManyStored goes with Accepted=False and Reconciling=True: request.maxStored requests are stored. To fix it, try again
	// later.
	ReasonTooManyStored = "TooManyStored"
	// ReasonMalformed goes with Accepted=False and Stalled=True: the object's content makes no sense, for example a status written by
	// another program. It is skipped. To fix it, delete it.
	ReasonMalformed = "Malformed"
	// ReasonPending goes with Verified=Unknown and Reconciling=True: the message has not come yet.
	ReasonPending = "Pending"
	// ReasonAwaitingConfirmation goes with Verified=Unknown and Reconciling=True: the number is proven, and the client is to redeem a
	// session code.
	ReasonAwaitingConfirmation = "AwaitingConfirmation"
	// ReasonNumberMatched goes with Verified=True: the messenger reported the sender's number, and it is the one to verify.
	ReasonNumberMatched = "NumberMatched"
	// ReasonEchoAnswered goes with Verified=True: the user answered a message to the claimed number, because their own is hidden.
	ReasonEchoAnswered = "EchoAnswered"
	// ReasonDeclined goes with Verified=False and Stalled=True: the owner of the number declined.
	ReasonDeclined = "Declined"
	// ReasonContactShared goes with Verified=True: the user shared their own contact, and it is the number to verify.
	ReasonContactShared = "ContactShared"
	// ReasonExpired goes with Verified=False and Stalled=True: the time ran out, or the request was canceled, or too many wrong session
	// codes were entered; the message says which.
	ReasonExpired = "Expired"
	// ReasonDelivered goes with WebhookDelivered=True: the receiver answered 2xx.
	ReasonDelivered = "Delivered"
	// ReasonDue goes with WebhookDelivered=False: the event is to be sent, first or again, at status.delivery.nextAttemptAt.
	ReasonDue = "Due"
	// ReasonGone goes with WebhookDelivered=False: the receiver answered 410, so this event is not sent again.
	ReasonGone = "Gone"
	// ReasonExhausted goes with WebhookDelivered=False: the last attempt of the schedule failed. To fix it, send it once more by kubectl
	// phoneproof redeliver.
	ReasonExhausted = "Exhausted"
)
