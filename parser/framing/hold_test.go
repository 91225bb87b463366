package framing

import (
	"bytes"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"pgregory.net/rapid"
)

const criTime = "2026-09-17T22:26:58.123456789Z"

func cri(stream, tag, text string) string { return criTime + " " + stream + " " + tag + " " + text }

// got is what the tests of joining look at.
type got struct {
	Text   string
	At     uint64
	Joined int
}

func summary(ins []Inner) []got {
	var out []got
	for _, in := range ins {
		out = append(out, got{string(in.Text), in.At, in.Joined})
	}
	return out
}

func TestJoin(t *testing.T) {
	for _, tt := range []struct {
		name string
		in   []string
		want []got
	}{
		{"cri", []string{cri("stdout", "P", "ab"), cri("stdout", "P", "cd"), cri("stdout", "F", "e")}, []got{{"abcde", 1, 3}}},
		{"cri_empty_end", []string{cri("stdout", "P", "ab"), cri("stdout", "F", "")}, []got{{"ab", 1, 2}}},
		{
			"cri_streams",
			[]string{cri("stdout", "P", "a"), cri("stderr", "F", "x"), cri("stderr", "P", "1"), cri("stdout", "F", "b"), cri("stderr", "F", "2")},
			[]got{{"x", 2, 1}, {"ab", 1, 2}, {"12", 3, 2}},
		},
		{"cri_unfinished", []string{cri("stdout", "P", "a"), cri("stderr", "P", "b")}, []got{{"a", 1, 1}, {"b", 2, 1}}},
		{"cri_plain_between", []string{cri("stdout", "P", "a"), "(W pid=1) x", cri("stdout", "F", "b")}, []got{{"(W pid=1) x", 2, 1}, {"ab", 1, 2}}},
		{"docker", []string{dockerLine("a", "stdout"), dockerLine("b", "stdout"), dockerLine("c\n", "stdout")}, []got{{"abc", 1, 3}}},
		{"docker_streams", []string{dockerLine("a", "stdout"), dockerLine("x\n", "stderr"), dockerLine("b\n", "stdout")}, []got{{"x", 2, 1}, {"ab", 1, 2}}},
		{"docker_unfinished", []string{dockerLine("x\n", "stdout"), dockerLine("a", "stdout"), dockerLine("b", "stdout")}, []got{{"x", 1, 1}, {"ab", 2, 2}}},
		{
			"docker_inner_lines",
			[]string{dockerLine("a", "stdout"), dockerLine("b\nc\nd", "stdout"), dockerLine("e\n", "stdout")},
			[]got{{"ab", 1, 2}, {"c", 2, 1}, {"de", 2, 2}},
		},
		{"compose_over_cri", []string{"v-1 | " + cri("stdout", "P", "a"), "v-1 | " + cri("stdout", "F", "b")}, []got{{"ab", 1, 2}}},
		{
			"docker_over_cri",
			[]string{dockerLine(cri("stdout", "P", "a")+"\n", "stdout"), dockerLine(cri("stdout", "F", "b")[:20], "stdout"), dockerLine(cri("stdout", "F", "b")[20:]+"\n", "stdout")},
			[]got{{"ab", 1, 2}},
		},
		{"docker_flushes_cri", []string{dockerLine(cri("stdout", "P", "a"), "stdout")}, []got{{"a", 1, 1}}},
		{
			"journald_line_max",
			[]string{`{"_PID":"7","MESSAGE":"ab","_LINE_BREAK":"line-max"}`, `{"_PID":"8","MESSAGE":"x"}`, `{"_PID":"7","MESSAGE":"cd"}`},
			[]got{{"x", 2, 1}, {"abcd", 1, 2}},
		},
		{
			"journald_docker",
			[]string{`{"_PID":"7","CONTAINER_NAME":"v","CONTAINER_PARTIAL_MESSAGE":"true","MESSAGE":"ab"}`, `{"_PID":"7","CONTAINER_NAME":"v","MESSAGE":"cd"}`},
			[]got{{"abcd", 1, 2}},
		},
		// An exporter that never ends its lines is found out by a second head, by
		// the number of pieces, or at the end.
		{
			"bare_head",
			[]string{dockerLine("(W pid=1) a", "stdout"), dockerLine("(W pid=1) b", "stdout"), dockerLine("Traceback", "stdout")},
			[]got{{"(W pid=1) a", 1, 1}, {"(W pid=1) b", 2, 1}, {"Traceback", 3, 1}},
		},
		{"bare_end", []string{dockerLine("a", "stdout"), dockerLine("b", "stdout")}, []got{{"a", 1, 1}, {"b", 2, 1}}},
		{
			"bare_many", strings.Split(strings.Repeat(dockerLine("a", "stdout")+"\n", 10)+dockerLine("z", "stdout"), "\n"),
			[]got{{"a", 1, 1}, {"a", 2, 1}, {"a", 3, 1}, {"a", 4, 1}, {"a", 5, 1}, {"a", 6, 1}, {"a", 7, 1}, {"a", 8, 1}, {"a", 9, 1}, {"a", 10, 1}, {"z", 11, 1}},
		},
	} {
		t.Run(tt.name, func(t *testing.T) {
			if diff := cmp.Diff(tt.want, summary(decode(tt.in...))); diff != "" {
				t.Errorf("(-want +got):\n%s", diff)
			}
		})
	}
}

// The joined line has the time of its first piece.
func TestJoinMeta(t *testing.T) {
	in := decode("2026-09-17T22:26:58Z stdout P a", "2026-09-17T22:26:59Z stdout F b")
	if want := (Meta{Time: "2026-09-17T22:26:58Z", Stream: "stdout"}); len(in) != 1 || in[0].Meta != want {
		t.Errorf("%+v, want one line with %+v", in, want)
	}
}

func TestHeld(t *testing.T) {
	d := NewDecoder(0)
	check := func(at uint64, ok bool) {
		t.Helper()
		if gotAt, gotOK := d.Held(); gotAt != at || gotOK != ok {
			t.Errorf("Held = %d, %v, want %d, %v", gotAt, gotOK, at, ok)
		}
	}
	check(0, false)
	d.Decode([]byte(cri("stdout", "P", "a")), 10)
	d.Decode([]byte(cri("stderr", "P", "b")), 20)
	check(10, true)
	d.Decode([]byte(cri("stdout", "F", "")), 30)
	check(20, true)
	d.Flush()
	check(0, false)
}

// The piece of an inner layer is as old as the outer line that it came in.
func TestHeldNested(t *testing.T) {
	d := NewDecoder(0)
	piece := cri("stdout", "P", "a")
	d.Decode([]byte(dockerLine("x\n", "stdout")), 99)
	d.Decode([]byte(dockerLine(piece[:9], "stdout")), 5)
	d.Decode([]byte(dockerLine("y", "stderr")), 3)
	d.Decode([]byte(dockerLine(piece[9:]+"\n", "stdout")), 7)
	if at, ok := d.Held(); at != 5 || !ok {
		t.Errorf("Held = %d, %v, want 5", at, ok)
	}
}

func TestJoinLimit(t *testing.T) {
	for _, pieces := range []int{1, 2, 3, 20, 501} {
		t.Run(fmt.Sprint(pieces), func(t *testing.T) {
			const limit = 1000
			d := NewDecoder(limit)
			var all []byte
			for i := range pieces {
				p := fmt.Appendf(nil, "<%d>%s", i, strings.Repeat("x", i%97))
				all = append(all, p...)
				if out := d.Decode([]byte(cri("stdout", "P", string(p))), uint64(i)); len(out) != 0 {
					t.Fatalf("a piece gave %q", texts(out))
				}
				if n := cap(d.holds[0].buf); n > 4*limit {
					t.Fatalf("%d bytes held", n)
				}
			}
			out := d.Decode([]byte(cri("stdout", "F", "end")), 99)
			all = append(all, "end"...)
			want, cut := all, 0
			if len(all) > limit {
				cut = len(all) - limit
				want = append(append([]byte{}, all[:limit/2]...), all[len(all)-limit/2:]...)
			}
			if len(out) != 1 || !bytes.Equal(out[0].Text, want) || out[0].Cut != int64(cut) || out[0].At != 0 || out[0].Joined != pieces+1 {
				t.Errorf("got %+v, want %q with %d cut", out, want, cut)
			}
		})
	}
}

// Unfinished lines are bounded in number; the oldest goes first.
func TestTooManyStreams(t *testing.T) {
	d := NewDecoder(0)
	var out []string
	for i := range maxHolds + 2 {
		out = append(out, texts(d.Decode(fmt.Appendf(nil, `{"_PID":"%d","MESSAGE":"m%d","_LINE_BREAK":"line-max"}`, i+1, i), 0))...)
	}
	if diff := cmp.Diff([]string{"m0", "m1"}, out); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
	if n := len(d.Flush()); n != maxHolds {
		t.Errorf("Flush gave %d lines, want %d", n, maxHolds)
	}
}

// A big buffer is given back.
func TestBuffersShrink(t *testing.T) {
	d := NewDecoder(0)
	big := strings.Repeat("x", 3*keepBytes)
	d.Decode([]byte(dockerLine(big+"\\", "stdout")), 0)
	d.Decode([]byte(dockerLine("\n", "stdout")), 0)
	d.Decode([]byte("x"), 0)
	if cap(d.arena) > keepBytes || len(d.spent) > 0 {
		t.Errorf("arena %d bytes, %d spent", cap(d.arena), len(d.spent))
	}
	for _, h := range d.free {
		if cap(h.buf) > keepBytes {
			t.Errorf("%d bytes kept", cap(h.buf))
		}
	}
}

// Any lines, in either runtime's wrapper, on both streams, split at the
// runtime's size or anywhere, come back whole and with their own marks.
func TestSplitAnywhere(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		docker := rapid.Bool().Draw(t, "docker")
		size := rapid.SampledFrom([]int{1, 7, 64, dockerPiece}).Draw(t, "size")
		gen := rapid.Custom(func(t *rapid.T) string {
			s := rapid.SampledFrom([]string{"", "(W pid=1) ", "\x1b[31m", "  ", "\r", "\xff\xfe", "☃"}).Draw(t, "start") +
				rapid.StringMatching(`[ -~\t\r]{0,40}`).Draw(t, "text")
			if rapid.IntRange(0, 7).Draw(t, "long") == 0 {
				s += strings.Repeat(`lo"ng\ `, rapid.IntRange(1, 3*dockerPiece/7).Draw(t, "times"))
			}
			return s
		})
		d := NewDecoder(0)
		if docker && size < dockerPiece {
			// It is known by now that the source ends its lines.
			d.Decode([]byte(dockerLine("\n", "stdout")), 0)
		}
		type result struct {
			text, stream string
			at           uint64
			joined       int
		}
		queues := map[string][]string{}
		for _, stream := range []string{"stdout", "stderr"} {
			queues[stream] = rapid.SliceOfN(gen, 0, 4).Draw(t, stream)
		}
		var want, have []result
		collect := func(ins []Inner) {
			for _, in := range ins {
				have = append(have, result{string(in.Text), in.Meta.Stream, in.At, in.Joined})
			}
		}
		pieces := map[string][]string{}
		for stream, lines := range queues {
			for _, l := range lines {
				for _, p := range split(l, size) {
					pieces[stream] = append(pieces[stream], wrapPiece(docker, stream, p.text, p.last))
				}
			}
		}
		// Feed the pieces of both streams in any order; note what should end.
		left := map[string]int{}
		begun := map[string]uint64{}
		at := uint64(0)
		for len(pieces["stdout"])+len(pieces["stderr"]) > 0 {
			stream := rapid.SampledFrom([]string{"stdout", "stderr"}).Draw(t, "next")
			if len(pieces[stream]) == 0 {
				continue
			}
			at++
			l := queues[stream][0]
			if left[stream] == 0 {
				left[stream] = len(split(l, size))
				begun[stream] = at
			}
			collect(d.Decode([]byte(pieces[stream][0]), at))
			pieces[stream] = pieces[stream][1:]
			if left[stream]--; left[stream] == 0 {
				queues[stream] = queues[stream][1:]
				// A line may itself look wrapped; then it is to be unwrapped alike.
				inner := NewDecoder(0).Decode([]byte(l), 0)
				want = append(want, result{string(inner[0].Text), stream, begun[stream], len(split(l, size))})
			}
		}
		collect(d.Flush())
		if diff := cmp.Diff(want, have, cmp.AllowUnexported(result{})); diff != "" {
			t.Fatalf("(-want +got):\n%s", diff)
		}
	})
}

type splitPiece struct {
	text string
	last bool
}

func split(l string, size int) (out []splitPiece) {
	// Small sizes are for the order of pieces, not for their number.
	size = max(size, len(l)/50)
	for len(l) > size {
		out = append(out, splitPiece{l[:size], false})
		l = l[size:]
	}
	return append(out, splitPiece{l, true})
}

func wrapPiece(docker bool, stream, text string, last bool) string {
	switch {
	case docker && last:
		return dockerLine(text+"\n", stream)
	case docker:
		return dockerLine(text, stream)
	case last:
		return cri(stream, "F", text)
	}
	return cri(stream, "P", text)
}
