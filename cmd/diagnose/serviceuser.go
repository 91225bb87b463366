package main

import (
	"fmt"
	"io/fs"
	"os"
	"os/user"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"

	"golang.org/x/sys/unix"
)

// serviceGroups are those of the packaged unit. Its user is made anew at each
// start (DynamicUser), so it owns nothing.
var serviceGroups = [...]string{"adm", "systemd-journal"}

// hiddenHomes are what the unit's ProtectHome hides.
var hiddenHomes = [...]string{"/home", "/root", "/run/user"}

// serviceIDs gives the ids of the service's groups on this host.
func serviceIDs() map[uint32]bool {
	ids := map[uint32]bool{}
	for _, name := range serviceGroups {
		g, err := user.LookupGroup(name)
		if err != nil {
			continue // a host without it
		}
		if id, err := strconv.ParseUint(g.Gid, 10, 32); err == nil {
			ids[uint32(id)] = true
		}
	}
	return ids
}

// serviceCannot says why the packaged service's user cannot read a file, "" if
// it can. An ACL is not read but told of.
func serviceCannot(name string, groups map[uint32]bool) string {
	name, err := filepath.EvalSymlinks(name)
	if err != nil {
		return err.Error()
	}
	for _, home := range hiddenHomes {
		if strings.HasPrefix(name, home+"/") {
			return "the unit hides " + home + " (see dropins/home.conf)"
		}
	}
	for dir := filepath.Dir(name); ; dir = filepath.Dir(dir) {
		if why := barred(dir, 0o1, groups); why != "" {
			return why
		}
		if dir == filepath.Dir(dir) {
			break
		}
	}
	return barred(name, 0o4, groups)
}

// barred tells whether one file or folder lacks a right: 4 to read, 1 to pass.
func barred(name string, right fs.FileMode, groups map[uint32]bool) string {
	info, err := os.Stat(name)
	if err != nil {
		return err.Error()
	}
	mode := info.Mode().Perm()
	// The group's rights come before those of others, as the kernel has it.
	if st, ok := info.Sys().(*syscall.Stat_t); ok && groups[st.Gid] {
		mode >>= 3
	}
	if mode&right != 0 {
		return ""
	}
	what := map[fs.FileMode]string{0o4: "read", 0o1: "pass"}[right]
	if n, err := unix.Getxattr(name, "system.posix_acl_access", nil); err == nil && n > 0 {
		return fmt.Sprintf("only an ACL can let it %s %s", what, name)
	}
	return fmt.Sprintf("it may not %s %s (%s)", what, name, info.Mode())
}
