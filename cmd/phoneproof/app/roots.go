package app

import (
	// The image holds this binary alone. Where no certificate authorities are installed, those of Mozilla are built in, as
	// of the module's version; a system's own are preferred.
	_ "golang.org/x/crypto/x509roots/fallback"
)
