package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

func TestServiceCannot(t *testing.T) {
	top, err := os.MkdirTemp("/tmp", "service-") // /tmp may be passed by everybody
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { os.RemoveAll(top) })
	dir := filepath.Join(top, "logs")
	log := filepath.Join(dir, "vllm.log")
	if err := os.Mkdir(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(log, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	mine := map[uint32]bool{uint32(os.Getgid()): true}
	for _, c := range []struct {
		top, dir, log os.FileMode
		groups        map[uint32]bool
		want          string
	}{
		{0o755, 0o755, 0o644, nil, ""},
		{0o711, 0o711, 0o644, nil, ""},
		{0o700, 0o755, 0o644, nil, "it may not pass " + top + " (drwx------)"},
		{0o755, 0o750, 0o644, nil, "it may not pass " + dir + " (drwxr-x---)"},
		{0o755, 0o755, 0o640, nil, "it may not read " + log + " (-rw-r-----)"},
		{0o755, 0o750, 0o640, mine, ""},
		{0o755, 0o755, 0o604, mine, "it may not read " + log + " (-rw----r--)"},
	} {
		for name, mode := range map[string]os.FileMode{top: c.top, dir: c.dir, log: c.log} {
			if err := os.Chmod(name, mode); err != nil {
				t.Fatal(err)
			}
		}
		if got := serviceCannot(log, c.groups); got != c.want {
			t.Errorf("%o %o %o: %q, expected %q", c.top, c.dir, c.log, got, c.want)
		}
	}
	if got := serviceCannot("/root/x", nil); !strings.Contains(got, "/root") {
		t.Errorf("a home: %q", got)
	}
	if err := os.Chmod(log, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(log, filepath.Join(top, "link")); err != nil {
		t.Fatal(err)
	}
	if got := serviceCannot(filepath.Join(top, "link"), nil); got == "" {
		t.Error("a link hides its target's mode")
	}
}
