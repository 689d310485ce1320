package main

// chaosMutants break promises between correct parts of the system.
//
//nolint:gochecknoglobals // a table
var chaosMutants = []Mutant{
	{
		Name: "chaos-acknowledged-before-the-commit", Promise: "reliability.md 1: a 200 of init means that the request is stored",
		Symbol: "postgres.(*creationBatch).writeAdmitted", Old: "batch.Queue(sqlCommit)",
		New: "for _, call := range admitted {\n\t\tselect {\n\t\tcase call.done <- struct{}{}:\n\t\tdefault:\n\t\t}\n\t}\n" +
			"\tbatch.Queue(sqlCommit)",
		Suite: "chaos", Test: `^ *I1 `,
	},
	{
		Name: "chaos-every-fourth-event-twice", Promise: "reliability.md 3: repetitions need a fault",
		Symbol: "webhook.(*Sender).Send", Old: "return s.runAttempt(",
		New: "if e.id[4]%4 == 0 {\n\t\t_, _ = s.sendMessage(ctx, transport, d.timeout, " +
			"&message{url: u, header: headers, body: e.body.Reveal(), maySend: s.maySend})\n\t}\n\treturn s.runAttempt(",
		Suite: "chaos", Test: `^ *I5 `,
	},
	{
		Name: "chaos-sent-again-after-its-record", Promise: "reliability.md 4: nothing is sent after it was delivered",
		Symbol: "request.(*Controller).deliverEvent", Old: "return view{Request: r}, wait, err",
		New: "if err == nil && attempt.Delivered && item.ID[5]%10 == 0 {\n\t\tagain := context.WithoutCancel(ctx)\n" +
			"\t\ttime.AfterFunc(2*time.Second, func() { _, _ = c.Sender.Send(again, to, event) })\n\t}\n" +
			"\treturn view{Request: r}, wait, err",
		Suite: "chaos", Test: `^ *I6 `,
	},
	{
		Name: "chaos-number-of-a-neighbour", Promise: "design.md 3: actualPhoneNumber is the number the messenger reported",
		Symbol: "postgres.(*Store).updateAll", Old: "s.queueUpdate(batch, call)",
		New: "if first := calls[0].in.after.Actual; !first.IsZero() && call.in.before.Phase == verification.Pending &&\n" +
			"\t\t\t\t!call.in.after.Actual.IsZero() {\n\t\t\t\tcall.in.after.Actual = first\n\t\t\t}\n\t\t\ts.queueUpdate(batch, call)",
		Suite: "chaos", Test: `^ *I1p `,
	},
	{
		Name: "chaos-proof-lost-by-a-confirmation", Promise: "proof.md 13: what is proven is confirmed by its code",
		Symbol: "verification.(*Request).checkConfirmation", Old: "case !r.IsProven():", New: "case !r.IsProven() || r.ID[5] == 'a':",
		Suite: "chaos", Test: `^ *I10 `,
	},
	{
		Name: "chaos-message-verifies-at-level-session", Promise: "proof.md 13: VERIFIED only when the client redeems a code",
		Symbol: "verification.(*Request).acceptProof", Old: "if r.Terms.Level == LevelSession {",
		New: "if r.Terms.Level == LevelSession && r.ID[5] != 'a' {", Suite: "chaos", Test: `^ *I1p `,
	},
}
