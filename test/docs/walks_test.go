package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// roomFolders are the folders of the packages that the walks of docs/architecture.md name.
var roomFolders = map[string]string{
	"httpapi": "internal/httpapi", "verification": "internal/verification", "postgres": "internal/store/postgres",
	"whatsapp": "internal/messenger/whatsapp", "request": "controllers/request", "webhook": "internal/webhook",
}

var walkStep = regexp.MustCompile("(?m)^[0-9]+\\. `(\\w+)\\.([^`]+)`")

// TestWalks_leadDownThroughTheRooms follows each walk of docs/architecture.md.
func TestWalks_leadDownThroughTheRooms(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/architecture.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(page), "\n## Three walks\n")
	g.Expect(found).To(BeTrue())
	section, _, _ = strings.Cut(section, "\n## ")
	walks := 0
	for list := range strings.SplitSeq(section, "\n\n") {
		steps := walkStep.FindAllStringSubmatch(list, -1)
		if steps == nil {
			continue
		}
		walks++
		var rooms []string
		for _, step := range steps {
			room, function := step[1], step[2]
			g.Expect(roomFolders).To(HaveKey(room))
			g.Expect(declaredFunctions(t, roomFolders[room])).To(ContainElement(function), "in %s", roomFolders[room])
			if len(rooms) == 0 || rooms[len(rooms)-1] != room {
				g.Expect(rooms).NotTo(ContainElement(room), "a room is entered once")
				rooms = append(rooms, room)
			}
		}
		g.Expect(len(rooms)).To(BeNumerically(">=", 2), list)
	}
	g.Expect(walks).To(Equal(3))
}

// declaredFunctions returns the functions of a folder, as "name" or "(*Type).name".
func declaredFunctions(t *testing.T, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("../..", folder, "*.go"))
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, name := range files {
		if strings.HasSuffix(name, "_test.go") {
			continue
		}
		file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
		NewWithT(t).Expect(err).NotTo(HaveOccurred())
		for _, declaration := range file.Decls {
			function, ok := declaration.(*ast.FuncDecl)
			if !ok {
				continue
			}
			receiver := ""
			if function.Recv != nil {
				if pointer, ok := function.Recv.List[0].Type.(*ast.StarExpr); ok {
					if named, ok := pointer.X.(*ast.Ident); ok {
						receiver = "(*" + named.Name + ")."
					}
				}
			}
			names = append(names, receiver+function.Name.Name)
		}
	}
	slices.Sort(names)
	return names
}
