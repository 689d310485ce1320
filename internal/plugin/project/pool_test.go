package project

import (
	"testing"

	. "github.com/onsi/gomega"
	corev1 "k8s.io/api/core/v1"
	metav1 "k8s.io/apimachinery/pkg/apis/meta/v1"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func newMember(pool string) *verifyv1.VerificationProject {
	p := &verifyv1.VerificationProject{ObjectMeta: metav1.ObjectMeta{Namespace: "shops", Name: "books"}}
	p.Spec.Server.Pool = pool
	return p
}

func TestAPIPort(t *testing.T) {
	for name, tc := range map[string]struct {
		pool string
		args []string
		want int
	}{
		"of its own":         {"", []string{"serve", "--project=shops/books"}, 8080},
		"a member":           {"small", []string{"serve", "--member=name=toys,address=:9000", "--member=name=books,address=:9001,store=postgresql"}, 9001},
		"not a member yet":   {"small", []string{"serve", "--member=name=toys,address=:9000", "--member=name=books-2,address=:9001"}, 0},
		"an unreadable port": {"small", []string{"serve", "--member=name=books,address=:x"}, 0},
		"no members":         {"small", []string{"serve", "--project=shops/books"}, 0},
	} {
		pod := &corev1.Pod{Spec: corev1.PodSpec{Containers: []corev1.Container{{Name: "mesh"}, {Name: "server", Args: tc.args}}}}
		NewWithT(t).Expect(APIPort(newMember(tc.pool), pod)).To(Equal(tc.want), name)
	}
}

func TestConcernsProject(t *testing.T) {
	for line, want := range map[string]bool{
		"": true, "panic: x": true, `{"msg":"lease lost"}`: true, `level=WARN msg="lease lost"`: true,
		`{"msg":"serving","project":"shops/books"}`:                          true,
		`{"msg":"serving","project":"shops/toys"}`:                           false,
		`{"msg":"serving","project":"shops/books-2"}`:                        false,
		`{"msg":"serving","project":"other/books"}`:                          false,
		`{"msg":"serving","project":"shops/toys","error":"cut`:               false,
		`{"msg":"\"project\":\"shops/books\"","project":"shops/toys"}`:       false,
		`{"msg":"project","error":"\"project\":\"shops/toys\""}`:             true,
		`level=INFO msg=serving project=shops/books store=kubernetes`:        true,
		`level=INFO msg=serving project=shops/toys`:                          false,
		`level=INFO msg="x \" project=shops/books y" project=shops/toys`:     false,
		`level=INFO msg="x \" project=shops/toys y" project=shops/books x=1`: true,
	} {
		NewWithT(t).Expect(ConcernsProject(newMember("small"), line)).To(Equal(want), line)
		NewWithT(t).Expect(ConcernsProject(newMember(""), line)).To(BeTrue(), line)
	}
}
