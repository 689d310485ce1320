package main

import (
	"testing"

	. "github.com/onsi/gomega"
)

func TestFindPlace(t *testing.T) {
	for want, stacks := range map[place][][]string{
		inKernel: {{
			"internal/runtime/syscall/linux.Syscall6", "syscall.RawSyscall6", "net.(*conn).Read",
			"github.com/phoneproof/phoneproof/internal/boundedhttp.(*conn).Read", "net/http.(*conn).serve",
		}, {"runtime.futex", "runtime.schedule", "runtime.mcall"}},
		inMemory: {
			{"runtime.memclrNoHeapPointers", "runtime.mallocgc", "github.com/phoneproof/phoneproof/internal/httpapi.(*API).ServeHTTP"},
			{"runtime.scanObject", "runtime.gcDrain", "runtime.gcBgMarkWorker"},
		},
		inPhoneProof: {{
			"regexp.(*machine).step", "github.com/nyaruka/phonenumbers.GetNumberType", "github.com/phoneproof/phoneproof/internal/phone.Parse",
			"net/http.(*conn).serve",
		}},
		inHTTP: {{"net/textproto.(*Reader).ReadMIMEHeader", "net/http.readRequest", "net/http.(*conn).serve"}},
		inPGX: {{
			"strconv.ParseInt", "github.com/jackc/pgx/v5/pgtype.scanPlan", "github.com/jackc/pgx/v5.(*baseRows).Scan",
			"github.com/phoneproof/phoneproof/internal/store/postgres.(*Store).readAll",
		}},
		inScheduler: {{"runtime.findRunnable", "runtime.schedule", "runtime.park_m", "runtime.mcall"}, nil},
	} {
		for _, stack := range stacks {
			NewWithT(t).Expect(findPlace(stack)).To(Equal(want), "%q", stack)
		}
	}
}
