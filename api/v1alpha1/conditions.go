package v1alpha1

// Condition types of a VerificationProject. Ready, Reconciling, Stalled,
// Available and Shared are the operator's; the others are applied by the lease holder of
// serve. While they are current, SecretsReady, StorageReady and those of the messengers
// in use count for Ready.
const (
	// ConditionReady is True when the declared API works: pods answer, and every
	// condition below that applies is True.
	ConditionReady = "Ready"
	// ConditionReconciling is True while the operator or a rollout is on its way
	// to the declared state. It is absent otherwise, as kstatus wants it.
	ConditionReconciling = "Reconciling"
	// ConditionStalled is True when nothing will change without an edit of
	// the project or what it names, or fixes what its pods fail at. It is absent
	// otherwise.
	ConditionStalled = "Stalled"
	// ConditionAvailable is True while at least one pod answers.
	ConditionAvailable = "Available"
	// ConditionSecretsReady is True when every referenced Secret key is
	// readable and not empty.
	ConditionSecretsReady = "SecretsReady"
	// ConditionStorageReady is True when requests can be stored.
	ConditionStorageReady = "StorageReady"
	// ConditionWhatsAppReady is True when messages to the WhatsApp number reach
	// this project. Absent without spec.whatsapp.
	ConditionWhatsAppReady = "WhatsAppReady"
	// ConditionTelegramReady is True when messages to the bot reach this
	// project. Absent without spec.telegram.
	ConditionTelegramReady = "TelegramReady"
	// ConditionWebhookHealthy is False while the receiver refuses events. It
	// never makes a project not Ready. Absent without spec.webhook.
	ConditionWebhookHealthy = "WebhookHealthy"
	// ConditionSilent is True when WhatsApp requests expire and no message has
	// come for spec.whatsapp.silentAfter. It never makes a project not Ready.
	// Absent otherwise.
	ConditionSilent = "Silent"
	// ConditionSimulated is True when a credential begins with sim_, so that
	// nothing this project says is true of a real phone. Absent otherwise.
	ConditionSimulated = "Simulated"
	// ConditionShared is True while a project of another namespace names the
	// same messenger account or answers to the same host name. It never makes a
	// project not Ready. Absent otherwise.
	ConditionShared = "Shared"
	// ConditionLimitsContradict is True when the project's own limits let its
	// API keys fill its store although events are delivered. It never makes a
	// project not Ready. Absent otherwise.
	ConditionLimitsContradict = "LimitsContradict"
	// ConditionTestEventsOff is True when webhook.testURL is set and no secret
	// signs the events of test keys, so none is sent. It never makes a project
	// not Ready. Absent otherwise.
	ConditionTestEventsOff = "TestEventsOff"
	// ConditionCodesReady is True when the template of spec.whatsapp.codes can be
	// sent in all its languages. It never makes a project not Ready. Absent
	// without spec.whatsapp.codes.
	ConditionCodesReady = "CodesReady"
	// ConditionCodesLimited is True when an API key has used half of its share of
	// spec.whatsapp.codes.maxPerDay. It never makes a project not Ready. Absent
	// otherwise.
	ConditionCodesLimited = "CodesLimited"
)

// Condition types of a VerificationRequest. For tools that follow kstatus it also
// has Reconciling while it is pending, and Stalled when it expired or was refused
// for good.
const (
	// ConditionAccepted is False on a manual request that cannot be
	// worked on; the reason says why. True once status.init is written.
	ConditionAccepted = "Accepted"
	// ConditionVerified is True when the number was verified, False when the
	// request expired first, and Unknown until then.
	ConditionVerified = "Verified"
	// ConditionWebhookDelivered is True when the receiver took the event, False
	// while it is due and when it was given up. Absent where none is due.
	ConditionWebhookDelivered = "WebhookDelivered"
)

// Reasons of Ready, Reconciling, Stalled and Available.
const (
	// ReasonReady goes with Ready=True: all is as declared.
	ReasonReady = "Ready"
	// ReasonSuspended goes with Ready=False, and with Accepted=False on a
	// manual request: spec.suspend is true. To fix it, set suspend to
	// false.
	ReasonSuspended = "Suspended"
	// ReasonProgressing goes with Reconciling=True and Ready=False while
	// children are being made or pods are rolled. Wait.
	ReasonProgressing = "Progressing"
	// ReasonRolloutQueued goes with Reconciling=True while an operator upgrade
	// rolls other projects first. Wait.
	ReasonRolloutQueued = "RolloutQueued"
	// ReasonRolloutStuck goes with Stalled=True and Ready=False: the new pods did
	// not become ready in ten minutes; the former ones are kept. To fix it, look
	// at the new pods and their events. It goes by itself once they are ready.
	ReasonRolloutStuck = "RolloutStuck"
	// ReasonPodsUnavailable goes with Available=False and Ready=False: no pod
	// answers. To fix it, look at the Deployment's pods and events.
	ReasonPodsUnavailable = "PodsUnavailable"
	// ReasonPodsAvailable goes with Available=True.
	ReasonPodsAvailable = "PodsAvailable"
	// ReasonPodsRefused goes with Reconciling=True, after ten minutes with
	// Stalled=True, and with Ready: the API server refuses to create pods, by a
	// quota, a limit range or a policy. The message has its words. To fix it,
	// change what they name, or spec.server.resources.
	ReasonPodsRefused = "PodsRefused"
	// ReasonNotPermitted goes with Stalled=True: a field asks for something
	// that the cluster's administrator has not allowed. The message names field
	// and operator flag. To fix it, change the field, or ask for the flag.
	ReasonNotPermitted = "NotPermitted"
	// ReasonAccountInUse goes with Stalled=True: another project of this
	// namespace has had the same phoneNumberID or botUsername in its spec for
	// longer. The project is not started; a Deployment that runs goes on. To fix
	// it, use another account, or remove it from the other project.
	ReasonAccountInUse = "AccountInUse"
	// ReasonHostInUse goes with Stalled=True: another project already answers to
	// a host name of this one's Ingress or HTTPRoute. The project runs without
	// that host. To fix it, use another host, or ask the cluster's administrator
	// to grant it.
	ReasonHostInUse = "HostInUse"
	// ReasonConflict goes with Stalled=True: an object with the name of one of
	// our children exists and is not ours. It is left untouched. To fix it,
	// delete or rename that object.
	ReasonConflict = "Conflict"
	// ReasonChildRejected goes with Stalled=True: the API server refused a
	// child object as invalid. The message names the object and its field. To
	// fix it, change the field of the project that it came from.
	ReasonChildRejected = "ChildRejected"
	// ReasonGatewayAPIMissing goes with Ready=False: expose.httpRoute is set and
	// the cluster has no HTTPRoute. To fix it, install the Gateway API, or use
	// expose.ingress.
	ReasonGatewayAPIMissing = "GatewayAPIMissing"
	// ReasonInvalidSpec goes with Stalled=True: the spec passed the API server
	// and is refused all the same, for example because it was stored before a
	// rule existed. The message names the field. To fix it, edit the field.
	ReasonInvalidSpec = "InvalidSpec"
	// ReasonNotReported goes with the status Unknown: no running pod has
	// reported on the present spec yet. Wait.
	ReasonNotReported = "NotReported"
)

// Reasons of Shared.
const (
	// ReasonAccountShared: a project of another namespace names the same
	// messenger account. Neither is stopped; the messenger decides whose callback
	// is registered. To fix it, ask the cluster's administrator to grant the
	// account to one namespace.
	ReasonAccountShared = "AccountShared"
	// ReasonHostShared: a project of another namespace also answers to a host
	// name of this one. To fix it, ask the cluster's administrator to grant the
	// host to one namespace.
	ReasonHostShared = "HostShared"
)

// Reasons of SecretsReady.
const (
	// ReasonSecretsRead goes with SecretsReady=True.
	ReasonSecretsRead = "SecretsRead"
	// ReasonSecretMissing: a Secret, or the key in it, is not there. The message
	// names both. To fix it, create the Secret with that key.
	ReasonSecretMissing = "SecretMissing"
	// ReasonSecretInvalid: a value is empty, a placeholder of the samples
	// (REPLACE-...), too short, too long, or not in the form of its kind: a webhook
	// secret has 24 bytes or more, after whsec_ as base64, an app secret 32
	// hexadecimal digits. The message names Secret and key and never the value. To fix it, put the right value in.
	ReasonSecretInvalid = "SecretInvalid"
	// ReasonAwaitingRollout: this pod was started before the reference was
	// added, so it cannot see the file. Pods with it are being rolled out. Wait.
	ReasonAwaitingRollout = "AwaitingRollout"
)

// Reasons of StorageReady.
const (
	// ReasonStorageReachable goes with StorageReady=True.
	ReasonStorageReachable = "StorageReachable"
	// ReasonStorageUnreachable: the store does not answer. To fix it, look at
	// the database, its address in the Secret, and the network between.
	ReasonStorageUnreachable = "StorageUnreachable"
	// ReasonStorageRejected: the store answers and does not serve us: wrong
	// password, no right to create tables, a read-only server, or
	// synchronous_commit=off. The message says which.
	ReasonStorageRejected = "StorageRejected"
	// ReasonStorageFull: maxStored requests are stored and none may be deleted
	// yet; init answers 429. To fix it, raise request.maxStored, repair the
	// webhook's receiver, or move to PostgreSQL.
	ReasonStorageFull = "StorageFull"
)

// Reasons of WhatsAppReady and TelegramReady.
const (
	// ReasonRegistered goes with status True: the messenger delivers to us.
	ReasonRegistered = "Registered"
	// ReasonPolling goes with TelegramReady=True: one pod asks Telegram.
	ReasonPolling = "Polling"
	// ReasonRegistrationByHand goes with status True: registerWebhook is false,
	// so the callback is yours to register and is not checked. The subscription
	// is, as far as the access token allows.
	ReasonRegistrationByHand = "RegistrationByHand"
	// ReasonRegistering: our callback is being registered. Wait.
	ReasonRegistering = "Registering"
	// ReasonCallbackTaken: another program's callback is registered and takeOver
	// is not true. To fix it, remove that callback, or set takeOver.
	ReasonCallbackTaken = "CallbackTaken"
	// ReasonCallbackUnreachable: the messenger could not reach our callback. To
	// fix it, look at baseURL, DNS, certificate and ingress.
	ReasonCallbackUnreachable = "CallbackUnreachable"
	// ReasonNotSubscribed goes with WhatsAppReady=False: the Meta app is not
	// subscribed to the WhatsApp Business account, so no message arrives. The
	// message has the command that subscribes it. To fix it, run that, or set
	// registerWebhook to true.
	ReasonNotSubscribed = "NotSubscribed"
	// ReasonCredentialsRejected: the messenger refuses the token. To fix it,
	// put a valid token into the Secret.
	ReasonCredentialsRejected = "CredentialsRejected"
	// ReasonAccountMismatch: the token belongs to another account than
	// phoneNumberID or botUsername names, or the WhatsApp Business account does
	// not have the number. To fix it, correct one of the two.
	ReasonAccountMismatch = "AccountMismatch"
	// ReasonPlatformUnreachable: the messenger does not answer. Wait, or look at
	// what the pods may reach.
	ReasonPlatformUnreachable = "PlatformUnreachable"
	// ReasonPlatformFailing: the messenger, or a proxy in front of it, answers
	// with a failure such as 500, or it asks to wait, or refuses a call. Wait, or
	// look at its status page.
	ReasonPlatformFailing = "PlatformFailing"
	// ReasonSecretsNotReady: the account's secrets cannot be read yet; see the
	// condition SecretsReady. It also goes with Accepted=False on a manual
	// request.
	ReasonSecretsNotReady = "SecretsNotReady"
)

// Reasons of WebhookHealthy, Silent, Simulated, LimitsContradict and TestEventsOff.
const (
	// ReasonNoFailures goes with WebhookHealthy=True.
	ReasonNoFailures = "NoFailures"
	// ReasonReceiverFailing: the last attempts failed; events wait and are sent
	// again. To fix it, look at the receiver.
	ReasonReceiverFailing = "ReceiverFailing"
	// ReasonAddressRefused: webhook.url leads to an address that the cluster's
	// administrator has not allowed, or is plain http to a public one, or has a
	// port of the cluster's own. To fix it, ask for --webhook-allow for the
	// private address, or else use https or another port.
	ReasonAddressRefused = "AddressRefused"
	// ReasonSigningSecretMissing: webhook.secretRef is set and cannot be read;
	// events wait, unsent and without using an attempt.
	ReasonSigningSecretMissing = "SigningSecretMissing"
	// ReasonNoMessages goes with Silent=True: WhatsApp requests began and expired,
	// and no message of a user came. To fix it, look at the app's subscription, at
	// the callback and at the app secret. It goes by itself when a message comes,
	// or when no request has expired lately.
	ReasonNoMessages = "NoMessages"
	// ReasonSimulatorCredentials goes with Simulated=True. To fix it, replace
	// the credentials that begin with sim_.
	ReasonSimulatorCredentials = "SimulatorCredentials"
	// ReasonKeysFillStore goes with LimitsContradict=True: rateLimit.perKey lets
	// the API keys together start more requests than request.maxStored before the
	// first of them makes room; the message has both numbers, and the command that
	// removes the limit. To fix it, run that, lower rateLimit.perKey, raise
	// request.maxStored, or use PostgreSQL.
	ReasonKeysFillStore = "KeysFillStore"
	// ReasonTestSecretUnset goes with TestEventsOff=True: webhook.testURL is set
	// without testSecretRef. To fix it, name a secret there that signs no real
	// events ("phoneproof keygen --webhook" makes one), or remove testURL.
	ReasonTestSecretUnset = "TestSecretUnset"
)

// Reasons of CodesReady and CodesLimited. CodesReady also has CredentialsRejected,
// AccountMismatch and SecretsNotReady.
const (
	// ReasonTemplateReady goes with CodesReady=True.
	ReasonTemplateReady = "TemplateReady"
	// ReasonTemplateMissing: the WhatsApp Business account has no template of that
	// name. To fix it, create the template, or correct templateName.
	ReasonTemplateMissing = "TemplateMissing"
	// ReasonTemplateNotApproved: Meta has not approved the template, or paused or
	// disabled it, in a language; the message names it. To fix it, look at the
	// template in the WhatsApp Manager.
	ReasonTemplateNotApproved = "TemplateNotApproved"
	// ReasonTemplateWrongCategory: the template is not of category AUTHENTICATION.
	// To fix it, create one that is.
	ReasonTemplateWrongCategory = "TemplateWrongCategory"
	// ReasonTemplateLanguageMissing: the template lacks one of languages; the
	// message names it. To fix it, add the language to the template, or remove it
	// from languages.
	ReasonTemplateLanguageMissing = "TemplateLanguageMissing"
	// ReasonTemplateWithoutButton: the template has no copy-code button. To fix it,
	// create one that has.
	ReasonTemplateWithoutButton = "TemplateWithoutButton"
	// ReasonTemplateTTLTooLong: Meta may deliver the template after the request has
	// ended. To fix it, lower message_send_ttl_seconds of the template, or raise
	// request.ttl.
	ReasonTemplateTTLTooLong = "TemplateTTLTooLong"
	// ReasonTemplateQualityLow: users block or report the template, and Meta may
	// pause it. To fix it, have codes sent only to users who ask for them.
	ReasonTemplateQualityLow = "TemplateQualityLow"
	// ReasonTemplateUnchecked goes with CodesReady=Unknown: the template cannot be
	// read; the message says why. Codes are sent all the same. To fix it, set
	// businessAccountID, or give the access token whatsapp_business_management.
	ReasonTemplateUnchecked = "TemplateUnchecked"
	// ReasonCodesHalfUsed goes with CodesLimited=True; the message names the API
	// key. To fix it, find out who starts the requests, or raise maxPerDay. It goes
	// by itself when fewer codes are sent.
	ReasonCodesHalfUsed = "CodesHalfUsed"
)

// Reasons of Accepted, Verified and WebhookDelivered on a VerificationRequest.
const (
	// ReasonAccepted goes with Accepted=True: text and link are in the status.
	ReasonAccepted = "Accepted"
	// ReasonMethodNotConfigured: the project does not have the messenger that
	// method names. To fix it, use the other one.
	ReasonMethodNotConfigured = "MethodNotConfigured"
	// ReasonPhoneNumberRefused: the number is impossible, premium-rate or not a
	// person's. To fix it, make a request with another number.
	ReasonPhoneNumberRefused = "PhoneNumberRefused"
	// ReasonRateLimited: the number has used up rateLimit.perPhoneNumber, or its
	// range rateLimit.perPrefix, or its owner declined within
	// assurance.declineCooldown; the message says which. Try again later.
	ReasonRateLimited = "RateLimited"
	// ReasonTooManyStored: maxStored requests are stored. Try again later.
	ReasonTooManyStored = "TooManyStored"
	// ReasonMalformed: the object's content makes no sense, for example a status
	// written by another program. It is skipped. To fix it, delete it.
	ReasonMalformed = "Malformed"
	// ReasonPending goes with Verified=Unknown and Reconciling=True: the message
	// has not come yet.
	ReasonPending = "Pending"
	// ReasonAwaitingConfirmation goes with Verified=Unknown and Reconciling=True:
	// the number is proven, and the client is to redeem a session code.
	ReasonAwaitingConfirmation = "AwaitingConfirmation"
	// ReasonNumberMatched goes with Verified=True: the messenger reported the
	// sender's number, and it is the one to verify.
	ReasonNumberMatched = "NumberMatched"
	// ReasonEchoAnswered goes with Verified=True: the user answered a message to
	// the claimed number, because their own is hidden.
	ReasonEchoAnswered = "EchoAnswered"
	// ReasonDeclined goes with Verified=False and Stalled=True: the owner of the
	// number declined.
	ReasonDeclined = "Declined"
	// ReasonContactShared goes with Verified=True: the user shared their own
	// contact, and it is the number to verify.
	ReasonContactShared = "ContactShared"
	// ReasonExpired goes with Verified=False and Stalled=True: the time ran out,
	// or the request ended before; the message says why.
	ReasonExpired = "Expired"
	// ReasonDelivered goes with WebhookDelivered=True: the receiver answered 2xx.
	ReasonDelivered = "Delivered"
	// ReasonDue goes with WebhookDelivered=False: the event is to be sent, first
	// or again, at status.delivery.nextAttemptAt.
	ReasonDue = "Due"
	// ReasonGone goes with WebhookDelivered=False: the receiver answered 410, so
	// this event is not sent again.
	ReasonGone = "Gone"
	// ReasonExhausted goes with WebhookDelivered=False: the last attempt of the
	// schedule failed. To send it once more, use the annotation
	// phoneproof.dev/redeliver on the project.
	ReasonExhausted = "Exhausted"
)
