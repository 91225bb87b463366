package notify

import (
	"crypto/sha256"
	"encoding/hex"
)

// digest is a short fingerprint for comparing texts with what was sent before.
func digest(s string) string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:8])
}
