package controlplane

import "os"

// FindAPIServer lets tests end the API server without telling envtest.
func (c *ControlPlane) FindAPIServer() (*os.Process, error) { return c.apiServer() }
