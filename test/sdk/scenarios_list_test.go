package sdk

import (
	"net/http"
	"net/url"
	"strconv"

	. "github.com/onsi/gomega"
)

// listScenarios are about pages.
var listScenarios = []scenario{
	{
		name:   "list goes through the pages, as far as it is read",
		mutant: mutant{"typescript", "cursor = nextCursor;", "cursor = undefined;"},
		play: func(p *play) {
			var ids []any
			for i := range 5 {
				ids = append([]any{p.start("+491511900030"+strconv.Itoa(i), object{"reference": p.name})["requestId"]}, ids...)
			}
			p.Expect(idsOf(p.list("list", object{"reference": p.name, "limit": 2}))).To(Equal(ids), "newest first")
			p.Expect(p.callsOf("requests")).To(HaveLen(3))
			p.reset()
			p.Expect(idsOf(p.list("list", object{"reference": p.name, "limit": 2, "max": 2}))).To(Equal(ids[:2]))
			p.Expect(p.callsOf("requests")).To(HaveLen(1), "no page that is not needed")
			p.Expect(p.list("list", object{"reference": p.name, "status": "VERIFIED"})).To(BeEmpty())
			p.Expect(p.list("list", object{"reference": p.name, "since": "2099-01-01T00:00:00Z"})).To(BeEmpty())
			p.Expect(p.fail("invalid_parameter", "list", object{"limit": 1000}).Field).To(Equal("limit"))
		},
	},
	{
		name:   "an empty page may have others behind it",
		mutant: mutant{"go", `cursor = p.NextCursor; cursor == ""`, `cursor = p.NextCursor; cursor == "" || len(p.Requests) == 0`},
		play: func(p *play) {
			id := p.start("+4915119000310", object{"reference": p.name + " & more"})["requestId"]
			p.next("requests", answer(200, "application/json", `{"requests":[],"nextCursor":"a+b/c="}`), withoutCursor)
			p.Expect(idsOf(p.list("list", object{"reference": p.name + " & more"}))).To(Equal([]any{id}))
			second, err := url.Parse(p.callsOf("requests")[1].target)
			p.Expect(err).NotTo(HaveOccurred())
			p.Expect(second.Query()).To(And(HaveKeyWithValue("cursor", []string{"a+b/c="}), HaveKeyWithValue("reference", []string{p.name + " & more"})))
		},
	},
	{
		name:   "find keeps the number out of the address",
		mutant: mutant{"python", `"POST", path, {**fields`, `"POST", path + _encode_query(fields), {**fields`},
		play: func(p *play) {
			number := p.newNumber()
			one, two, three := p.start(number, nil), p.start(number, nil), p.start(number, nil)
			found := p.list("find", object{"phoneNumber": number, "limit": 2})
			p.Expect(idsOf(found)).To(Equal([]any{three["requestId"], two["requestId"], one["requestId"]}))
			p.Expect(idsOf(p.list("find", object{"phoneNumber": number, "max": 1}))).To(HaveLen(1))
			for _, c := range p.callsOf("requests/find") {
				p.Expect(c.target).To(Equal("/api/verify/requests/find"))
			}
		},
	},
}

func idsOf(requests []object) (ids []any) {
	for _, r := range requests {
		ids = append(ids, r["requestId"])
	}
	return ids
}

// withoutCursor has the API answer the first page.
func withoutCursor(w http.ResponseWriter, r *http.Request, api http.Handler) {
	query := r.URL.Query()
	query.Del("cursor")
	r.URL.RawQuery = query.Encode()
	api.ServeHTTP(w, r)
}
