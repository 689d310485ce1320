package docs

import (
	"go/ast"
	"go/parser"
	"go/token"
	"go/types"
	"os"
	"path/filepath"
	"regexp"
	"strings"
	"testing"

	. "github.com/onsi/gomega"
)

// roomFolders are the folders of the packages that the walks of docs/architecture.md name.
var roomFolders = map[string]string{
	"httpapi": "internal/httpapi", "verification": "internal/verification", "postgres": "internal/store/postgres",
	"whatsapp": "internal/messenger/whatsapp", "request": "controllers/request", "webhook": "internal/webhook",
	"kubernetes": "internal/store/kubernetes", "server": "internal/server",
}

var walkStep = regexp.MustCompile("(?m)^[0-9]+\\. `(\\w+)\\.([^`]+)`, `([^`]+)`")

// TestWalks_leadDownThroughTheRooms follows each walk of docs/architecture.md.
func TestWalks_leadDownThroughTheRooms(t *testing.T) {
	g := NewWithT(t)
	page, err := os.ReadFile("../../docs/architecture.md")
	g.Expect(err).NotTo(HaveOccurred())
	_, section, found := strings.Cut(string(page), "\n## One verification, file by file\n")
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
			room, function, file := step[1], step[2], step[3]
			g.Expect(roomFolders).To(HaveKey(room))
			g.Expect(declaredFunctions(t, filepath.Join("../..", roomFolders[room], file))).To(ContainElement(function), "in %s", file)
			if len(rooms) == 0 || rooms[len(rooms)-1] != room {
				g.Expect(rooms).NotTo(ContainElement(room), "a room is entered once")
				rooms = append(rooms, room)
			}
		}
		g.Expect(len(rooms)).To(BeNumerically(">=", 2), list)
	}
	g.Expect(walks).To(Equal(3))
}

// declaredFunctions returns the functions of a file, as "name", "Type.name" or "(*Type).name".
func declaredFunctions(t *testing.T, name string) []string {
	t.Helper()
	file, err := parser.ParseFile(token.NewFileSet(), name, nil, parser.SkipObjectResolution)
	NewWithT(t).Expect(err).NotTo(HaveOccurred())
	var names []string
	for _, declaration := range file.Decls {
		function, ok := declaration.(*ast.FuncDecl)
		switch {
		case !ok:
		case function.Recv == nil:
			names = append(names, function.Name.Name)
		default:
			receiver := types.ExprString(function.Recv.List[0].Type)
			if strings.HasPrefix(receiver, "*") {
				receiver = "(" + receiver + ")"
			}
			names = append(names, receiver+"."+function.Name.Name)
		}
	}
	return names
}
