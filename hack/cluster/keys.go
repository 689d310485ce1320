package main

import (
	"crypto"
	"crypto/ecdsa"
	"crypto/elliptic"
	"crypto/rand"
	"crypto/x509"
	"crypto/x509/pkix"
	"encoding/pem"
	"fmt"
	"math/big"
	"net"
	"os"
	"path/filepath"
	"time"

	"k8s.io/client-go/tools/clientcmd"
	"k8s.io/client-go/tools/clientcmd/api"
)

// validity is long, because a temporary cluster has no rotation.
const validity = 10 * 365 * 24 * time.Hour

// identity is a certificate of the cluster's own CA, for a user with groups, and for a server if it has addresses.
type identity struct {
	file  string
	user  string
	group string
	names []string
	ips   []string
}

var identities = []identity{
	{file: "etcd", user: "etcd", ips: []string{"127.0.0.1"}},
	{file: "apiserver", user: "kube-apiserver", ips: []string{nodeIP, serviceIP, "127.0.0.1"}, names: []string{
		"localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc", "kubernetes.default.svc." + clusterDomain,
	}},
	{file: "kubelet-server", user: "system:node:" + nodeName, group: "system:nodes", ips: []string{nodeIP}, names: []string{nodeName}},
	{file: "kubelet", user: "system:node:" + nodeName, group: "system:nodes"},
	{file: "admin", user: "admin", group: "system:masters"},
	{file: "controller-manager", user: "system:kube-controller-manager"},
	{file: "scheduler", user: "system:kube-scheduler"},
	{file: "kube-proxy", user: "system:kube-proxy"},
	{file: "coredns", user: "system:coredns"},
}

func certFile(name string) string       { return statePath("keys", name+".crt") }
func keyFile(name string) string        { return statePath("keys", name+".key") }
func kubeconfigFile(name string) string { return statePath("keys", name+".kubeconfig") }

// writeKeys creates the CA, every identity and the key that signs service account tokens. An existing set is kept: the CA's
// certificate is written last, so that it marks a complete set.
func writeKeys() error {
	if _, err := os.Stat(certFile("ca")); err == nil {
		return nil
	}
	caKey, err := writeKey("ca")
	if err != nil {
		return err
	}
	ca := &x509.Certificate{
		Subject:               pkix.Name{CommonName: "phoneproof-cluster"},
		BasicConstraintsValid: true,
		IsCA:                  true,
		KeyUsage:              x509.KeyUsageCertSign | x509.KeyUsageDigitalSignature,
	}
	der, err := signCertificate(ca, ca, caKey.Public(), caKey)
	if err != nil {
		return fmt.Errorf("sign CA: %w", err)
	}
	if ca, err = x509.ParseCertificate(der); err != nil {
		return fmt.Errorf("read CA: %w", err)
	}
	for _, id := range identities {
		if err := id.writeFiles(ca, caKey); err != nil {
			return fmt.Errorf("create keys of %s: %w", id.file, err)
		}
	}
	serviceAccounts, err := writeKey("service-accounts")
	if err != nil {
		return err
	}
	public, err := x509.MarshalPKIXPublicKey(serviceAccounts.Public())
	if err != nil {
		return fmt.Errorf("create service account key: %w", err)
	}
	if err := writePEM(certFile("service-accounts"), "PUBLIC KEY", public); err != nil {
		return err
	}
	return writePEM(certFile("ca"), "CERTIFICATE", der)
}

func (id identity) writeFiles(ca *x509.Certificate, caKey crypto.Signer) error {
	key, err := writeKey(id.file)
	if err != nil {
		return err
	}
	template := &x509.Certificate{
		Subject:     pkix.Name{CommonName: id.user},
		DNSNames:    id.names,
		KeyUsage:    x509.KeyUsageDigitalSignature,
		ExtKeyUsage: []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth},
	}
	if id.group != "" {
		template.Subject.Organization = []string{id.group}
	}
	for _, ip := range id.ips {
		template.IPAddresses = append(template.IPAddresses, net.ParseIP(ip))
		template.ExtKeyUsage = []x509.ExtKeyUsage{x509.ExtKeyUsageClientAuth, x509.ExtKeyUsageServerAuth}
	}
	der, err := signCertificate(template, ca, key.Public(), caKey)
	if err != nil {
		return fmt.Errorf("sign certificate: %w", err)
	}
	return writePEM(certFile(id.file), "CERTIFICATE", der)
}

func signCertificate(template, parent *x509.Certificate, public crypto.PublicKey, key crypto.Signer) ([]byte, error) {
	serial, err := rand.Int(rand.Reader, new(big.Int).Lsh(big.NewInt(1), 120))
	if err != nil {
		return nil, err
	}
	template.SerialNumber = serial
	template.NotBefore = time.Now().Add(-time.Hour) // tolerates a clock that steps back
	template.NotAfter = time.Now().Add(validity)
	return x509.CreateCertificate(rand.Reader, template, parent, public, key)
}

func writeKey(name string) (crypto.Signer, error) {
	key, err := ecdsa.GenerateKey(elliptic.P256(), rand.Reader)
	if err != nil {
		return nil, fmt.Errorf("create key of %s: %w", name, err)
	}
	der, err := x509.MarshalPKCS8PrivateKey(key)
	if err != nil {
		return nil, fmt.Errorf("create key of %s: %w", name, err)
	}
	return key, writePEM(keyFile(name), "PRIVATE KEY", der)
}

func writePEM(file, kind string, der []byte) error {
	return os.WriteFile(file, pem.EncodeToMemory(&pem.Block{Type: kind, Bytes: der}), 0o600)
}

// writeKubeconfig writes a self-contained file with the credentials of an identity.
func writeKubeconfig(file, identity string) error {
	var pems [3][]byte
	for i, source := range []string{certFile("ca"), certFile(identity), keyFile(identity)} {
		content, err := os.ReadFile(source) //nolint:gosec // one of the files above
		if err != nil {
			return fmt.Errorf("write kubeconfig of %s: %w", identity, err)
		}
		pems[i] = content
	}
	if err := os.MkdirAll(filepath.Dir(file), 0o750); err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", identity, err)
	}
	const name = "phoneproof"
	err := clientcmd.WriteToFile(api.Config{
		Clusters:       map[string]*api.Cluster{name: {Server: apiServer, CertificateAuthorityData: pems[0]}},
		AuthInfos:      map[string]*api.AuthInfo{identity: {ClientCertificateData: pems[1], ClientKeyData: pems[2]}},
		Contexts:       map[string]*api.Context{name: {Cluster: name, AuthInfo: identity}},
		CurrentContext: name,
	}, file)
	if err != nil {
		return fmt.Errorf("write kubeconfig of %s: %w", identity, err)
	}
	return nil
}
