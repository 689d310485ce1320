package controlplane

import (
	"bytes"
	"os"
	"path/filepath"
)

// FindAPIServer lets tests end the API server without telling envtest.
func (c *ControlPlane) FindAPIServer() (*os.Process, error) { return c.apiServer() }

// Dir returns the folder that the arguments of all servers name.
func (c *ControlPlane) Dir() string { return c.dir }

// CountServers returns how many running processes have a control plane's folder in their arguments.
func CountServers(dir string) (count int, err error) {
	files, err := filepath.Glob("/proc/[0-9]*/cmdline")
	if err != nil {
		return 0, err
	}
	for _, file := range files {
		if arguments, err := os.ReadFile(file); err == nil && bytes.Contains(arguments, []byte(dir+"/")) {
			count++
		}
	}
	return count, nil
}
