package notify

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/matcher"
)

// fakeAlertmanager keeps alerts by their labels, as Alertmanager does.
type fakeAlertmanager struct {
	t      *testing.T
	alerts map[string]alert
	posts  int
}

func (f *fakeAlertmanager) RoundTrip(r *http.Request) (*http.Response, error) {
	if r.URL.Path != "/am/api/v2/alerts" || r.Method != http.MethodPost {
		f.t.Errorf("%s %s", r.Method, r.URL)
	}
	var list []alert
	if err := json.NewDecoder(r.Body).Decode(&list); err != nil {
		f.t.Error(err)
	}
	f.posts++
	for _, a := range list {
		if a.StartsAt.After(a.EndsAt) || a.StartsAt.IsZero() || a.Labels["alertname"] == "" {
			f.t.Errorf("Alertmanager would refuse %+v", a)
		}
		key, _ := json.Marshal(a.Labels)
		f.alerts[string(key)] = a
	}
	return &http.Response{StatusCode: 200, Header: http.Header{}, Body: http.NoBody, Request: r}, nil
}

func (f *fakeAlertmanager) firing() []alert {
	var out []alert
	for _, a := range f.alerts {
		if a.EndsAt.After(time.Now()) {
			out = append(out, a)
		}
	}
	return out
}

func TestAlertmanagerLife(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &fakeAlertmanager{t: t, alerts: map[string]alert{}}
		am := NewAlertmanager(AlertmanagerOptions{Name: "am", URL: "https://x.example/am/", Transport: f})
		n := sampleNotice(EventOpened)
		n.Time = time.Now()
		n.Incident.Time.First = nil
		start := time.Now()
		s := sendAll(t, am, n, nil)
		if got := f.firing(); len(got) != 1 || !got[0].StartsAt.Equal(start) || !got[0].EndsAt.Equal(start.Add(24*time.Hour)) {
			t.Fatalf("%+v", got)
		}
		want := map[string]string{
			"alertname": "DiagnoseIncident", "class": "workspace", "family": "workspace_driven", "model": "GLM-5.2-FP8",
			"host": "node17", "severity": "critical", "incident": "9f86d081884c",
		}
		got := f.firing()[0]
		for k, v := range want {
			if got.Labels[k] != v {
				t.Errorf("label %s: want %q, got %q", k, v, got.Labels[k])
			}
		}
		if len(got.Labels) != len(want) {
			t.Errorf("labels %v", got.Labels)
		}
		if !strings.Contains(got.Annotations["remedies"], "--max-num-batched-tokens 16384") || !strings.Contains(got.Annotations["root"], "vllm.log:812") {
			t.Errorf("annotations %v", got.Annotations)
		}

		// A repeat is the same alert, for longer.
		time.Sleep(20 * time.Hour)
		n.Event, n.Incident.Occurrences, n.Time = EventUpdated, 2, time.Now()
		s = sendAll(t, am, n, s)
		time.Sleep(20 * time.Hour)
		if got := f.firing(); len(got) != 1 || !got[0].StartsAt.Equal(start) {
			t.Errorf("after the repeat: %+v", got)
		}

		// Another class is another alert; the old one ends.
		n.Incident.Verdict.Class = "fragmentation"
		s = sendAll(t, am, n, s)
		time.Sleep(time.Second)
		if got := f.firing(); len(got) != 1 || got[0].Labels["class"] != "fragmentation" {
			t.Errorf("after the change: %+v", got)
		}

		// The server is back: nobody is needed, also when old news comes late.
		n.Event, n.Incident.Followup = EventFollowup, &matcher.Followup{RestartedAt: ptr("x")}
		s = sendAll(t, am, n, s)
		n.Event = EventUpdated
		s = sendAll(t, am, n, s)
		time.Sleep(time.Second)
		if got := f.firing(); len(got) != 0 {
			t.Errorf("after the restart: %+v", got)
		}

		// The advice is withdrawn: somebody is. Then it has held.
		n.Event, n.Incident.Followup.Withdrawn = EventFollowup, []string{"z"}
		s = sendAll(t, am, n, s)
		if len(f.firing()) != 1 {
			t.Error("a withdrawn advice fires nothing")
		}
		n.Incident.Followup.HeldSince = ptr("y")
		s = sendAll(t, am, n, s)
		time.Sleep(time.Second)
		if got := f.firing(); len(got) != 0 {
			t.Errorf("after the recovery: %+v", got)
		}

		// It recurs: the same alert fires again.
		n.Event, n.Incident.Followup, n.Incident.Occurrences = EventUpdated, nil, 3
		s = sendAll(t, am, n, s)
		if len(f.firing()) != 1 || len(f.alerts) != 2 {
			t.Errorf("%d firing of %d", len(f.firing()), len(f.alerts))
		}
		n.Event = EventClosed
		sendAll(t, am, n, s)
		time.Sleep(time.Second)
		if len(f.firing()) != 0 {
			t.Error("not closed")
		}
	})
}

func TestAlertmanagerStart(t *testing.T) {
	now := sampleTime
	for _, c := range []struct {
		name  string
		first *string
		at    time.Time
		want  time.Time
	}{
		{"from the log", ptr("2026-11-30T14:01:58Z"), now, now.Add(-2 * time.Second)},
		{"from the notice", nil, now.Add(-time.Minute), now.Add(-time.Minute)},
		{"a clock ahead", ptr("2026-11-30T18:00:00Z"), now, now},
		{"no time", ptr("11-30 14:01:58"), time.Time{}, now},
	} {
		t.Run(c.name, func(t *testing.T) {
			n := sampleNotice(EventOpened)
			n.Time, n.Incident.Time.First = c.at, c.first
			if got := alertStart(n, alertState{}, now); !got.Equal(c.want) {
				t.Errorf("want %v, got %v", c.want, got)
			}
		})
	}
}
