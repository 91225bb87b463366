package tailer

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"
	"testing/iotest"

	"github.com/klauspost/compress/gzip"
	"github.com/klauspost/compress/zstd"
)

func gz(t testing.TB, data []byte) []byte {
	t.Helper()
	var b bytes.Buffer
	w := gzip.NewWriter(&b)
	if _, err := w.Write(data); err != nil {
		t.Fatal(err)
	}
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

func zst(t testing.TB, data []byte, opts ...zstd.EOption) []byte {
	t.Helper()
	w, err := zstd.NewWriter(nil, opts...)
	if err != nil {
		t.Fatal(err)
	}
	defer w.Close()
	return w.EncodeAll(data, nil)
}

// sampleText is a text that does not compress away, so that it fills many blocks.
func sampleText(size int) []byte {
	b := make([]byte, 0, size+64)
	for x := uint32(1); len(b) < size; {
		for range 60 {
			x = x*1664525 + 1013904223
			b = append(b, 'a'+byte(x>>24)%26)
		}
		b = append(b, '\n')
	}
	return b
}

func fileWith(t testing.TB, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func mustOpen(t testing.TB, name string, stdin io.Reader) *Source {
	t.Helper()
	s, err := Open(name, stdin)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func TestOpen(t *testing.T) {
	text := sampleText(140 << 10)
	skippable := []byte("\x50\x2a\x4d\x18\x04\x00\x00\x00abcd")
	tests := []struct {
		name        string
		data, want  []byte
		compression string
	}{
		{"plain.log", text, text, ""},
		{"empty.log", nil, nil, ""},
		{"one byte", []byte("x"), []byte("x"), ""},
		{"plain, named.gz", text, text, ""},
		{"gz, named.log", gz(t, text), text, "gzip"},
		{"gz of nothing", gz(t, nil), nil, "gzip"},
		{"gz of two members", append(gz(t, text), gz(t, []byte("more\n"))...), append(bytes.Clone(text), "more\n"...), "gzip"},
		{"zst", zst(t, text), text, "zstd"},
		{"zst of two frames", append(zst(t, text), zst(t, []byte("more\n"))...), append(bytes.Clone(text), "more\n"...), "zstd"},
		{"zst behind a skippable frame", append(skippable, zst(t, text)...), text, "zstd"},
		{"two bytes of the gzip magic", []byte("\x1f\x8b"), []byte("\x1f\x8b"), ""},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			path := fileWith(t, tt.name, tt.data)
			for name, s := range map[string]*Source{
				"file":  mustOpen(t, path, nil),
				"stdin": mustOpen(t, "-", bytes.NewReader(tt.data)),
				"bytes": mustOpen(t, "-", iotest.OneByteReader(bytes.NewReader(tt.data))),
			} {
				got, err := io.ReadAll(s)
				if err != nil || !bytes.Equal(got, tt.want) {
					t.Errorf("%s: %d bytes, %v; want %d", name, len(got), err, len(tt.want))
				}
				if s.Compression != tt.compression {
					t.Errorf("%s: compression %q, want %q", name, s.Compression, tt.compression)
				}
				if s.Progress() != int64(len(tt.data)) {
					t.Errorf("%s: progress %d of %d", name, s.Progress(), len(tt.data))
				}
				if size := int64(len(tt.data)); name == "file" && s.Size != size || name != "file" && s.Size != -1 {
					t.Errorf("%s: size %d", name, s.Size)
				}
			}
		})
	}
}

func TestOpenStdinFile(t *testing.T) {
	f, err := os.Open(fileWith(t, "x", []byte("a\n")))
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	s := mustOpen(t, "-", f)
	if s.Size != 2 {
		t.Errorf("size %d", s.Size)
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
	if _, err := f.Stat(); err != nil {
		t.Errorf("standard input was closed: %v", err)
	}
}

func TestOpenErrors(t *testing.T) {
	t.Chdir(t.TempDir())
	for name, data := range map[string]string{
		"a.xz":   "\xfd7zXZ\x00\x00\x04rest of it",
		"a.bz2":  "BZh91AY&SYrest of it",
		"a.lz4":  "\x04\x22\x4d\x18rest of it",
		"secret": "x",
	} {
		if err := os.WriteFile(name, []byte(data), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	if err := os.Chmod("secret", 0); err != nil {
		t.Fatal(err)
	}
	tests := []struct {
		name, text string
		is         error
	}{
		{"missing", "open missing: no such file or directory", fs.ErrNotExist},
		{".", "open .: is a directory", syscall.EISDIR},
		{"secret", "open secret: permission denied", fs.ErrPermission},
		{"a.xz", "open a.xz: xz: compression is not supported", ErrUnsupported},
		{"a.bz2", "open a.bz2: bzip2: compression is not supported", ErrUnsupported},
		{"a.lz4", "open a.lz4: lz4: compression is not supported", ErrUnsupported},
		{"-", "open standard input: there is none", nil},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			if tt.name == "secret" && os.Getuid() == 0 {
				t.Skip("root may read everything")
			}
			s, err := Open(tt.name, nil)
			if err == nil {
				s.Close()
				t.Fatal("no error")
			}
			if err.Error() != tt.text || tt.is != nil && !errors.Is(err, tt.is) {
				t.Errorf("got %q, want %q", err, tt.text)
			}
		})
	}
}

// Wherever a compressed file ends, what comes out is a prefix of the text, then
// ErrTruncated.
func TestTruncated(t *testing.T) {
	text := sampleText(600 << 10)
	for name, data := range map[string][]byte{"gzip": gz(t, text), "zstd": zst(t, text)} {
		t.Run(name, func(t *testing.T) {
			most := 0
			for cut := 4; cut < len(data); cut += 1 + len(data)/29 {
				for _, at := range []int{cut, len(data) - cut%9 - 1} {
					s := mustOpen(t, "-", bytes.NewReader(data[:at]))
					got, err := io.ReadAll(s)
					if !errors.Is(err, ErrTruncated) || errors.Is(err, io.EOF) {
						t.Fatalf("cut at %d of %d: %v", at, len(data), err)
					}
					if !bytes.HasPrefix(text, got) {
						t.Fatalf("cut at %d: what came is not the text", at)
					}
					most = max(most, len(got))
				}
			}
			if most < len(text)-256<<10 {
				t.Errorf("at most %d bytes of %d came", most, len(text))
			}
		})
	}
}

func TestDamaged(t *testing.T) {
	text := sampleText(600 << 10)
	flip := func(data []byte, at int) []byte {
		data = bytes.Clone(data)
		data[at] ^= 0xff
		return data
	}
	z, g := zst(t, text), gz(t, text)
	tests := []struct {
		name string
		data []byte
		is   error
	}{
		{"zst in the middle", flip(z, len(z)/2), ErrCorrupt},
		{"zst checksum", flip(z, len(z)-1), ErrCorrupt},
		{"zst window of 128 MiB", []byte("\x28\xb5\x2f\xfd\x00\x88\x01\x00\x00"), ErrUnsupported},
		{"gz in the middle", flip(g, len(g)/2), ErrCorrupt},
		{"gz checksum", flip(g, len(g)-5), ErrCorrupt},
		{"gz header", flip(g, 3), ErrCorrupt},
		{"gz, then something else", append(bytes.Clone(g), "plain text, not a member"...), ErrCorrupt},
		{"zst, then something else", append(bytes.Clone(z), "plain text, not a frame"...), ErrCorrupt},
		{"gz magic only", g[:3], ErrTruncated},
	}
	for _, tt := range tests {
		t.Run(tt.name, func(t *testing.T) {
			s := mustOpen(t, "-", bytes.NewReader(tt.data))
			got, err := io.ReadAll(s)
			if !errors.Is(err, tt.is) {
				t.Errorf("got %v after %d bytes, want %v", err, len(got), tt.is)
			}
			if _, again := s.Read(make([]byte, 8)); !errors.Is(again, tt.is) {
				t.Errorf("the error did not stay: %v", again)
			}
		})
	}
}

// Decoders say "unexpected EOF" of a damaged block too. That is no truncation:
// the file goes on behind it.
func TestDamageIsNotTruncation(t *testing.T) {
	var text bytes.Buffer
	for i := range 9000 {
		fmt.Fprintf(&text, "INFO 11-30 14:03:%02d [loggers.py:%d] Engine %03d: %d tokens/s\n", i%60, i%977, i%8, i*7919%10007)
	}
	data := append(zst(t, text.Bytes()), zst(t, sampleText(200<<10))...)
	damaged := 0
	for at := 4; at < 64; at++ {
		bad := bytes.Clone(data)
		bad[at] ^= 1
		_, err := io.ReadAll(mustOpen(t, "-", bytes.NewReader(bad)))
		if errors.Is(err, ErrTruncated) {
			t.Errorf("byte %d: %v", at, err)
		}
		if err != nil && strings.HasSuffix(err.Error(), "unexpected EOF") {
			damaged++
		}
	}
	if damaged == 0 {
		t.Error("no case of it: the test proves nothing")
	}
}

func TestDamagedText(t *testing.T) {
	s := mustOpen(t, "-", bytes.NewReader(append(gz(t, []byte("a\n")), "garbage that is no header"...)))
	var got []collected
	_, _, err := Read(t.Context(), s, ReadOptions{Final: true}, collectInto(&got))
	const want = "-: gzip: compressed data is corrupt at decompressed byte 2: gzip: invalid header"
	if err == nil || err.Error() != want || len(got) != 1 {
		t.Errorf("got %v, %v\nwant %s", got, err, want)
	}
}

// An error of the disk is not taken for damage of the data.
func TestDiskError(t *testing.T) {
	text := sampleText(600 << 10)
	for name, data := range map[string][]byte{"plain": text, "gzip": gz(t, text), "zstd": zst(t, text)} {
		t.Run(name, func(t *testing.T) {
			in := io.MultiReader(bytes.NewReader(data[:len(data)/2]), iotest.ErrReader(syscall.EIO))
			_, err := io.ReadAll(mustOpen(t, "-", in))
			if !errors.Is(err, syscall.EIO) || errors.Is(err, ErrCorrupt) || errors.Is(err, ErrTruncated) {
				t.Errorf("got %v", err)
			}
		})
	}
}

func TestSkipTo(t *testing.T) {
	text := sampleText(300 << 10)
	const at = 200_000
	for name, data := range map[string][]byte{"plain": text, "gzip": gz(t, text), "zstd": zst(t, text)} {
		t.Run(name, func(t *testing.T) {
			s := mustOpen(t, fileWith(t, "x", data), nil)
			if _, ok := s.ReaderAt(); ok != (name == "plain") {
				t.Errorf("ReaderAt: %v", ok)
			}
			if err := s.SkipTo(at); err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(s)
			if err != nil || !bytes.Equal(got, text[at:]) {
				t.Errorf("%d bytes, %v", len(got), err)
			}
			if s.Progress() != s.Size {
				t.Errorf("progress %d of %d", s.Progress(), s.Size)
			}
			if err := s.SkipTo(1 << 30); !errors.Is(err, io.ErrUnexpectedEOF) || !strings.HasPrefix(err.Error(), "skip ") {
				t.Errorf("beyond the end: %v", err)
			}
			if err := s.SkipTo(0); (err == nil) != (name == "plain") {
				t.Errorf("backwards: %v", err)
			}
		})
	}
}

func TestReadAfterClose(t *testing.T) {
	for name, data := range map[string][]byte{"plain": []byte("a\n"), "zstd": zst(t, []byte("a\n"))} {
		s := mustOpen(t, fileWith(t, name, data), nil)
		if err := s.Close(); err != nil {
			t.Fatal(err)
		}
		if _, err := s.Read(make([]byte, 8)); !errors.Is(err, fs.ErrClosed) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// A file as hostile as can be is read to an end or to an error.
func FuzzOpen(f *testing.F) {
	f.Add([]byte("plain\n"))
	f.Add(gz(f, []byte("a\nb\n")))
	f.Add(zst(f, []byte("a\nb\n")))
	f.Add([]byte("\x50\x2a\x4d\x18\xff\xff\xff\xff"))
	f.Fuzz(func(t *testing.T, data []byte) {
		s, err := Open("-", bytes.NewReader(data))
		if err != nil {
			if !errors.Is(err, ErrUnsupported) {
				t.Fatal(err)
			}
			return
		}
		defer s.Close()
		n, err := io.Copy(io.Discard, io.LimitReader(s, 8<<20))
		if s.Compression == "" && (err != nil || n != int64(len(data))) {
			t.Fatalf("%d of %d plain bytes: %v", n, len(data), err)
		}
		if err != nil && !errors.Is(err, ErrTruncated) && !errors.Is(err, ErrCorrupt) && !errors.Is(err, ErrUnsupported) {
			t.Fatalf("unclassified: %v", err)
		}
	})
}
