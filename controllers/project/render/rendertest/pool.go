package rendertest

import (
	"k8s.io/apimachinery/pkg/types"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
	"github.com/phoneproof/phoneproof/controllers/project/render"
)

// Pool returns a pool of three projects: one has PostgreSQL, and one a logo. Its pods have all that a pod can have.
func Pool() render.Pool {
	pool := render.Pool{Name: "small", LastPort: 9004}
	for i, name := range []string{"shop", "books", "bikes"} {
		p, o := Project(), Options()
		p.Name, p.UID = name, types.UID(string(UID[:len(UID)-1])+string(rune('1'+i)))
		switch name {
		case "books":
			usePostgreSQL(p, &o)
		case "bikes":
			p.Spec.BaseURL = "https://bikes.example.com"
			p.Spec.Page = &verifyv1.Page{LogoRef: &verifyv1.ConfigMapKeyRef{Name: "bikes-page", Key: "logo.png"}}
		}
		useAutoscaling(p, &o)
		useNetworkPolicy(p, &o)
		p.Spec.Server.PodDisruptionBudget = &verifyv1.PodDisruptionBudget{}
		p.Spec.Server.Pool = pool.Name
		p.Default()
		pool.Members = append(pool.Members, render.Member{Project: p, Port: int32(9004 - i)})
	}
	return pool
}
