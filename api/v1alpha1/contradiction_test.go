package v1alpha1_test

import (
	"context"
	"strings"
	"testing"

	. "github.com/onsi/ginkgo/v2"
	. "github.com/onsi/gomega"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"
	"k8s.io/apimachinery/pkg/types"
	"sigs.k8s.io/controller-runtime/pkg/client"

	"github.com/phoneproof/phoneproof/api/v1alpha1"
)

func TestLimitsContradiction(t *testing.T) {
	for name, c := range map[string]struct {
		keys        int
		rate        *v1alpha1.Rate
		maxStored   int32
		storage     v1alpha1.StorageType
		contradicts bool
	}{
		"the former default":               {1, &v1alpha1.Rate{Requests: 600, Period: "1m"}, 1500, v1alpha1.StorageKubernetes, true},
		"the former default in a database": {1, &v1alpha1.Rate{Requests: 600, Period: "1m"}, 1500, v1alpha1.StoragePostgreSQL, false},
		"as many as fit":                   {1, &v1alpha1.Rate{Requests: 100, Period: "1m"}, 1500, v1alpha1.StorageKubernetes, false},
		"one more":                         {1, &v1alpha1.Rate{Requests: 101, Period: "1m"}, 1500, v1alpha1.StorageKubernetes, true},
		"a window begun counts whole":      {1, &v1alpha1.Rate{Requests: 751, Period: "14m"}, 1500, v1alpha1.StorageKubernetes, true},
		"a period longer than they stay":   {1, &v1alpha1.Rate{Requests: 1500, Period: "1h"}, 1500, v1alpha1.StorageKubernetes, false},
		"more than there is room for":      {1, &v1alpha1.Rate{Requests: 1501, Period: "1h"}, 1500, v1alpha1.StorageKubernetes, true},
		"two keys that leak together":      {2, &v1alpha1.Rate{Requests: 751, Period: "15m"}, 1500, v1alpha1.StorageKubernetes, true},
		"two keys that share the room":     {2, &v1alpha1.Rate{Requests: 750, Period: "15m"}, 1500, v1alpha1.StorageKubernetes, false},
		"no key that may start requests":   {0, &v1alpha1.Rate{Requests: 600, Period: "1m"}, 1500, v1alpha1.StorageKubernetes, false},
		"more keys than there is room for": {4, nil, 3, v1alpha1.StorageKubernetes, true},
		"as many keys":                     {3, nil, 3, v1alpha1.StorageKubernetes, false},
		"no number overflows":              {31, &v1alpha1.Rate{Requests: 1_000_000, Period: "1s"}, 10_000, v1alpha1.StorageKubernetes, true},
	} {
		t.Run(name, func(t *testing.T) {
			p := &v1alpha1.VerificationProject{Spec: v1alpha1.VerificationProjectSpec{
				APIKeys: keysFor(c.keys), RateLimit: v1alpha1.RateLimit{PerKey: c.rate},
				Request: v1alpha1.RequestSettings{MaxStored: &c.maxStored}, Storage: v1alpha1.Storage{Type: c.storage},
			}}
			contradicts := []bool{p.Spec.LimitsContradiction() != "", p.LimitsCommand() != ""}
			NewWithT(t).Expect(contradicts).To(HaveEach(c.contradicts))
		})
	}
	codes := v1alpha1.VerificationProjectSpec{APIKeys: keysFor(1), RateLimit: v1alpha1.RateLimit{PerKey: &v1alpha1.Rate{Requests: 801, Period: "15m"}},
		WhatsApp: &v1alpha1.WhatsApp{Codes: &v1alpha1.Codes{MaxPerDay: 700}}}
	NewWithT(t).Expect(codes.LimitsContradiction()).To(ContainSubstring("request.maxStored without the maxPerDay of codes is 800"))
	codes.RateLimit.PerKey.Requests = 800
	NewWithT(t).Expect(codes.LimitsContradiction()).To(BeEmpty())
	codes.RateLimit.PerKey = nil
	NewWithT(t).Expect(codes.EffectivePerKey().Requests).To(BeEquivalentTo(400), "half of the room for links")
	s := v1alpha1.VerificationProjectSpec{APIKeys: keysFor(2), RateLimit: v1alpha1.RateLimit{PerKey: &v1alpha1.Rate{Requests: 600, Period: "1m"}}}
	NewWithT(t).Expect(s.LimitsContradiction()).To(And(
		HavePrefix("rateLimit.perKey lets the 2 API keys together start 18000 requests in 15m"), ContainSubstring("maxStored is 1500")))
}

// Each command works at the API server as printed, except that kubectl is the pinned one.
var _ = DescribeTable("The command of a contradiction ends it", func(ctx context.Context, keys int, maxStored int32, rate *v1alpha1.Rate) {
	p := &v1alpha1.VerificationProject{
		ObjectMeta: metav1.ObjectMeta{Namespace: newNamespace(ctx), Name: "shop"},
		Spec: v1alpha1.VerificationProjectSpec{
			APIKeys:   keysFor(keys),
			Telegram:  &v1alpha1.Telegram{BotUsername: "hello_world_bot", BotTokenSecretRef: v1alpha1.SecretKeyRef{Name: "shop", Key: "token"}},
			Request:   v1alpha1.RequestSettings{MaxStored: &maxStored},
			RateLimit: v1alpha1.RateLimit{PerKey: rate},
		},
	}
	Expect(api.Create(ctx, p)).To(Succeed())
	Expect(p.Spec.LimitsContradiction()).NotTo(BeEmpty())
	command, patch, found := strings.Cut(p.LimitsCommand(), " -p ")
	Expect(found).To(BeTrue())
	Expect(command).To(Equal("kubectl --namespace " + p.Namespace + " patch verificationproject shop --type=json"))
	Expect(api.Patch(ctx, p, client.RawPatch(types.JSONPatchType, []byte(strings.Trim(patch, "'"))))).To(Succeed())
	Expect(p.Spec.LimitsContradiction()).To(BeEmpty())
	Expect(p.LimitsCommand()).To(BeEmpty())
},
	Entry("where the limit is too high", 1, int32(1500), &v1alpha1.Rate{Requests: 600, Period: "1m"}),
	Entry("where it is too high for three keys", 3, int32(1500), &v1alpha1.Rate{Requests: 750, Period: "15m"}),
	Entry("where there are more keys than requests", 5, int32(4), nil),
	Entry("where both is so", 5, int32(4), &v1alpha1.Rate{Requests: 1, Period: "15m"}),
)
