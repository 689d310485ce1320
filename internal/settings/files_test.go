package settings

import (
	"context"
	"io/fs"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"

	. "github.com/onsi/gomega"

	verifyv1 "github.com/phoneproof/phoneproof/api/v1alpha1"
)

func readOne(dir, secret, key string) reading {
	r := ref(secret, key)
	return NewSecretFiles(dir).readAll(map[verifyv1.SecretKeyRef]struct{}{r: {}})[r]
}

func TestSecretFiles_layouts(t *testing.T) {
	for name, layOutFiles := range map[string]func(dir string){
		"created manually": func(dir string) { layOut(t, dir, map[string]string{"app": "A\n"}) },
		"all Secrets in one volume": func(dir string) {
			projectVolume(t, dir, "1", map[string]string{"shop/app": "A\n"})
		},
		"each Secret in its own volume": func(dir string) {
			projectVolume(t, filepath.Join(dir, "shop"), "1", map[string]string{"app": "A\n"})
		},
		"a link inside the folder": func(dir string) {
			layOut(t, dir, map[string]string{"real": "A\n"})
			NewWithT(t).Expect(os.Symlink("real", filepath.Join(dir, "shop", "app"))).To(Succeed())
		},
	} {
		t.Run(name, func(t *testing.T) {
			g := NewWithT(t)
			dir := t.TempDir()
			layOutFiles(dir)
			g.Expect(readOne(dir, "shop", "app")).To(Equal(reading{value: []byte("A"), newline: true}))
			g.Expect(readOne(dir, "shop", "other")).To(Equal(reading{reason: ReasonMissing}))
			g.Expect(readOne(dir, "other", "app")).To(Equal(reading{reason: ReasonMissing}))
		})
	}
}

func TestSecretFiles_refused(t *testing.T) {
	g := NewWithT(t)
	base := t.TempDir()
	dir := filepath.Join(base, "secrets")
	outside := filepath.Join(base, "outside")
	layOut(t, dir, map[string]string{"good": canary})
	g.Expect(os.WriteFile(outside, []byte(canary), 0o600)).To(Succeed())
	shop := filepath.Join(dir, "shop")
	for name, target := range map[string]string{
		"relative-escape": "../../outside", "absolute-escape": outside, "absolute-inside": filepath.Join(shop, "good"),
		"loop": "loop", "ping": "pong", "pong": "ping", "to-folder": ".", "dangling": "nothing",
	} {
		g.Expect(os.Symlink(target, filepath.Join(shop, name))).To(Succeed())
	}
	g.Expect(os.Mkdir(filepath.Join(shop, "folder"), 0o750)).To(Succeed())
	g.Expect(syscall.Mkfifo(filepath.Join(shop, "pipe"), 0o600)).To(Succeed())
	g.Expect(os.Symlink("..", filepath.Join(dir, "up"))).To(Succeed())

	for _, tc := range []struct {
		secret, key string
		want        Reason
	}{
		{"shop", "relative-escape", ReasonUnreadable},
		{"shop", "absolute-escape", ReasonUnreadable},
		{"shop", "absolute-inside", ReasonUnreadable},
		{"shop", "loop", ReasonUnreadable},
		{"shop", "ping", ReasonUnreadable},
		{"shop", "to-folder", ReasonUnreadable},
		{"shop", "folder", ReasonUnreadable},
		{"shop", "pipe", ReasonUnreadable},
		{"shop", "dangling", ReasonMissing},
		{"up", "outside", ReasonUnreadable},
		{"..", "outside", ReasonUnreadable},
		{"../secrets/shop", "good", ReasonUnreadable},
		{"shop", "../../outside", ReasonUnreadable},
		{"shop", "..data", ReasonUnreadable},
		{"shop", ".", ReasonUnreadable},
		{".", "good", ReasonUnreadable},
		{"", "good", ReasonUnreadable},
		{"shop", "", ReasonUnreadable},
		{"/etc", "passwd", ReasonUnreadable},
		{`shop\..`, "good", ReasonUnreadable},
		{"shop/good", "x", ReasonUnreadable},
		{"shop", "good\x00", ReasonUnreadable},
	} {
		g.Expect(readOne(dir, tc.secret, tc.key)).To(Equal(reading{reason: tc.want}), "%s, %s", tc.secret, tc.key)
	}
}

func TestSecretFiles_file_where_a_folder_is_expected(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	g.Expect(os.WriteFile(filepath.Join(dir, "shop"), []byte("x"), 0o600)).To(Succeed())
	g.Expect(readOne(dir, "shop", "app").reason).To(Equal(ReasonMissing))
	g.Expect(readOne(filepath.Join(dir, "nothing"), "shop", "app").reason).To(Equal(ReasonMissing))
	g.Expect(readOne(filepath.Join(dir, "shop"), "shop", "app").reason).To(Equal(ReasonUnreadable))
}

func TestSecretFiles_reads_a_bounded_part(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	layOut(t, dir, map[string]string{"sparse": ""})
	g.Expect(os.Truncate(filepath.Join(dir, "shop", "sparse"), 1<<40)).To(Succeed())
	g.Expect(readOne(dir, "shop", "sparse")).To(Equal(reading{reason: ReasonTooLong}))
}

func TestClassifyError_separates_transient_errors(t *testing.T) {
	for name, tc := range map[string]struct {
		err     error
		reason  Reason
		unknown bool
	}{
		"not there":          {syscall.ENOENT, ReasonMissing, false},
		"no folder":          {syscall.ENOTDIR, ReasonMissing, false},
		"no permission":      {syscall.EACCES, ReasonUnreadable, false},
		"loop":               {syscall.ELOOP, ReasonUnreadable, false},
		"no descriptor left": {syscall.EMFILE, ReasonUnreadable, true},
		"broken disk":        {syscall.EIO, ReasonUnreadable, true},
		"server changed":     {syscall.ESTALE, ReasonUnreadable, true},
	} {
		t.Run(name, func(t *testing.T) {
			r := classifyError(&fs.PathError{Op: "open", Path: "x", Err: tc.err})
			NewWithT(t).Expect(r).To(Equal(reading{reason: tc.reason, unknown: tc.unknown}))
		})
	}
}

// TestSecretFiles_swap_is_no_deletion reads while a kubelet replaces the files as fast as it can. Without the second
// check, a read during a swap would find the old folder missing.
func TestSecretFiles_swap_is_no_deletion(t *testing.T) {
	g := NewWithT(t)
	dir := t.TempDir()
	projectVolume(t, dir, "first", map[string]string{"shop/a": "A", "shop/b": "B"})
	ctx, stop := context.WithCancel(t.Context())
	var writer sync.WaitGroup
	writer.Go(func() {
		for i := 0; ctx.Err() == nil; i++ {
			projectVolume(t, dir, strconv.Itoa(i), map[string]string{"shop/a": "A", "shop/b": "B"})
		}
	})
	defer writer.Wait()
	defer stop()
	refs := map[verifyv1.SecretKeyRef]struct{}{ref("shop", "a"): {}, ref("shop", "b"): {}}
	files := NewSecretFiles(dir)
	good := 0
	for range 500 {
		for key, want := range map[string]string{"a": "A", "b": "B"} {
			// A read that every swap interrupted must be reported as unknown.
			switch r := files.readAll(refs)[ref("shop", key)]; {
			case r.unknown:
			case string(r.value) == want:
				good++
			default:
				t.Fatalf("an existing secret has reason %s", r.reason)
			}
		}
	}
	g.Expect(good).To(BeNumerically(">", 0))
}

func BenchmarkSecretFilesRead(b *testing.B) {
	dir := b.TempDir()
	files := map[string]string{}
	refs := map[verifyv1.SecretKeyRef]struct{}{}
	for i := range 36 {
		name := "key" + strings.Repeat("x", i)
		files["shop/"+name] = apiKey("")
		refs[ref("shop", name)] = struct{}{}
	}
	projectVolume(b, dir, "1", files)
	reader := NewSecretFiles(dir)
	for b.Loop() {
		reader.readAll(refs)
	}
}
