package notify

import (
	"fmt"
	"io"
	"os"
	"strings"
)

// maxSecretBytes bounds what is read from a secret's file; tokens, hook URLs
// and keys are far shorter.
const maxSecretBytes = 4 << 10

// credentialsVar is the directory where systemd puts LoadCredential= files.
const credentialsVar = "$CREDENTIALS_DIRECTORY"

// secretFile is a secret that exists only in a file. It is read at each use, so
// that a rotation needs no restart, and is never kept.
type secretFile struct {
	path   string
	getenv func(string) string
}

// read returns the secret without surrounding white space. Its errors name the
// file and never its content.
func (f secretFile) read() (string, error) {
	file, err := os.Open(f.resolve())
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	defer file.Close()
	raw, err := io.ReadAll(io.LimitReader(file, maxSecretBytes+1))
	if err != nil {
		return "", fmt.Errorf("read secret: %w", err)
	}
	if len(raw) > maxSecretBytes {
		return "", fmt.Errorf("read secret: %s: longer than %d bytes", f.path, maxSecretBytes)
	}
	s := strings.TrimSpace(string(raw))
	if s == "" {
		return "", fmt.Errorf("read secret: %s: empty", f.path)
	}
	if strings.ContainsFunc(s, func(r rune) bool { return r <= ' ' || r == 0x7f }) {
		return "", fmt.Errorf("read secret: %s: more than one word", f.path)
	}
	return s, nil
}

func (f secretFile) resolve() string {
	rest, ok := strings.CutPrefix(f.path, credentialsVar+"/")
	if !ok || f.getenv == nil {
		return f.path
	}
	return f.getenv(strings.TrimPrefix(credentialsVar, "$")) + "/" + rest
}
