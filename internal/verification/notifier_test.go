package verification_test

import (
	"testing"

	. "github.com/onsi/gomega"

	"github.com/phoneproof/phoneproof/internal/verification"
)

func TestNotifier_coalescesAndEnds(t *testing.T) {
	g := NewWithT(t)
	var notifier verification.Notifier
	changes, cancel := notifier.Subscribe("a")
	other, cancelOther := notifier.Subscribe("a")
	defer cancelOther()
	notifier.Notify("b")
	g.Expect(changes).NotTo(Receive())
	notifier.Notify("a")
	notifier.Notify("a")
	g.Expect(changes).To(Receive())
	g.Expect(changes).NotTo(Receive())
	g.Expect(other).To(Receive())
	cancel()
	cancel()
	notifier.Notify("a")
	g.Expect(changes).NotTo(Receive())
	g.Expect(other).To(Receive())
}
