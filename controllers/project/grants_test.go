package project

import (
	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
)

var _ = Describe("A grant", func() {
	DescribeTable("is read from its flag",
		func(parse func(string) (Grant, error), text string, want Grant, problem string) {
			got, err := parse(text)
			if problem != "" {
				Expect(err).To(MatchError(ContainSubstring(problem)))
				return
			}
			Expect(err).NotTo(HaveOccurred())
			Expect(got).To(Equal(want))
		},
		Entry("a bot, in any case", ParseAccountGrant, "shop=telegram:Ada_Books_Bot", Grant{"shop", "telegram:ada_books_bot"}, ""),
		Entry("a number of WhatsApp", ParseAccountGrant, "shop=whatsapp:007", Grant{"shop", "whatsapp:007"}, ""),
		Entry("an unknown messenger", ParseAccountGrant, "shop=signal:1", Grant{}, "want telegram:"),
		Entry("no bot", ParseAccountGrant, "shop=telegram:ada", Grant{}, "want telegram:"),
		Entry("no account", ParseAccountGrant, "shop", Grant{}, "want telegram:"),
		Entry("no namespace", ParseAccountGrant, "=telegram:ada_bot", Grant{}, "the name of a namespace"),
		Entry("a host, in any case, with the root's dot", ParseHostGrant, "shop=Verify.example.com.", Grant{"shop", "verify.example.com"}, ""),
		Entry("a host and all below", ParseHostGrant, "shop=*.example.com", Grant{"shop", "*.example.com"}, ""),
		Entry("a host with a port", ParseHostGrant, "shop=verify.example.com:443", Grant{}, "without a port"),
		Entry("every host", ParseHostGrant, "shop=*", Grant{"shop", "*"}, ""),
		Entry("a wildcard inside", ParseHostGrant, "shop=a.*.example.com", Grant{}, "a DNS name"),
		Entry("an invalid namespace", ParseHostGrant, "Shop=verify.example.com", Grant{}, "the name of a namespace"),
	)

	permissions := Permissions{
		AccountGrants: []Grant{{"shop", "telegram:ada_bot"}, {"staging", "telegram:ada_bot"}},
		HostGrants: []Grant{
			{"platform", "*.example.com"}, {"shop", "*.shop.example.com"}, {"shop", "both.example.com"}, {"staging", "both.example.com"},
			{"bank", "verify.example.org"}, {"shop", "*.short.example.com"}, {"bank", "a.short.example.com"},
		},
	}
	DescribeTable("of an account is for its namespaces alone",
		func(namespace, account string, want bool) {
			Expect(permissions.mayUseAccount(namespace, account)).To(Equal(want))
		},
		Entry("one of them", "shop", "telegram:ada_bot", true),
		Entry("the other", "staging", "telegram:ada_bot", true),
		Entry("another", "bank", "telegram:ada_bot", false),
		Entry("without a grant it is for all", "bank", "telegram:another_bot", true),
	)
	DescribeTable("of a host is for the namespaces of the most specific one",
		func(namespace, host string, want bool) {
			Expect(permissions.mayUseHost(namespace, host)).To(Equal(want))
		},
		Entry("below a wildcard", "platform", "verify.example.com", true),
		Entry("below the wildcard of another namespace", "shop", "verify.example.com", false),
		Entry("below the longer of two wildcards", "shop", "a.shop.example.com", true),
		Entry("below the shorter", "platform", "a.shop.example.com", false),
		Entry("far below", "shop", "a.b.shop.example.com", true),
		Entry("a wildcard below", "shop", "*.b.shop.example.com", true),
		Entry("the wildcard itself", "platform", "*.example.com", true),
		Entry("its name without the star is not below it", "bank", "example.com", true),
		Entry("a name that only ends alike", "bank", "badexample.com", true),
		Entry("one of two that share a host", "staging", "both.example.com", true),
		Entry("another", "bank", "both.example.com", false),
		Entry("a wildcard that includes a host of another namespace", "shop", "*.example.org", false),
		Entry("one of two with a name of one letter", "shop", "a.short.example.com", false),
		Entry("a wildcard that includes only its own host", "bank", "*.example.org", true),
		Entry("without a grant it is for all", "bank", "verify.example.net", true),
		Entry("every host includes those of other namespaces", "bank", "*", false),
	)
	It("of every host excludes the hosts that are granted to others by name", func() {
		all := Permissions{HostGrants: []Grant{{"platform", "*"}, {"shop", "a.example.com"}}}
		Expect(all.mayUseHost("platform", "*")).To(BeTrue())
		Expect(all.mayUseHost("shop", "*")).To(BeFalse())
		Expect(all.mayUseHost("shop", "b.example.com")).To(BeFalse())
		Expect(all.mayUseHost("shop", "a.example.com")).To(BeTrue())
		Expect(all.mayUseHost("platform", "a.example.com")).To(BeFalse())
	})

	It("to two namespaces lets them share", func() {
		Expect(permissions.shareHost("shop", "staging", "both.example.com")).To(BeTrue())
		Expect(permissions.shareHost("shop", "platform", "both.example.com")).To(BeFalse())
		Expect(permissions.shareHost("shop", "staging", "verify.example.net")).To(BeFalse())
	})
})
