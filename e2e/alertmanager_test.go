package e2e

import (
	"bufio"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
)

// startAlertmanager runs a real one without peers, in a directory of its own,
// and gives its root URL.
func startAlertmanager(t *testing.T) string {
	t.Helper()
	path := need(t, "prometheus-alertmanager")
	dir := t.TempDir()
	write(t, filepath.Join(dir, "config.yml"), "route: {receiver: nobody}\nreceivers: [{name: nobody}]\n")
	addr := freePort(t)
	out, err := os.Create(filepath.Join(dir, "out"))
	if err != nil {
		t.Fatal(err)
	}
	cmd := exec.Command(path, "--config.file="+filepath.Join(dir, "config.yml"), "--storage.path="+filepath.Join(dir, "data"),
		"--web.listen-address="+addr, "--cluster.listen-address=")
	cmd.Dir, cmd.Stdout, cmd.Stderr = dir, out, out
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill() // it may have ended
		_ = cmd.Wait()         // killed: the status says no more
		_ = out.Close()
		if t.Failed() {
			text, _ := os.ReadFile(out.Name())
			t.Logf("alertmanager: %s", text)
		}
	})
	url := "http://" + addr
	eventually(t, "Alertmanager is ready", func() bool {
		resp, err := http.Get(url + "/-/ready")
		if err != nil {
			return false
		}
		resp.Body.Close()
		return resp.StatusCode == http.StatusOK
	})
	return url
}

// gotAlert is an alert as Alertmanager gives it back (api/v2/openapi.yaml).
type gotAlert struct {
	Fingerprint string            `json:"fingerprint"`
	Labels      map[string]string `json:"labels"`
	Annotations map[string]string `json:"annotations"`
	StartsAt    string            `json:"startsAt"`
	Status      struct {
		State string `json:"state"`
	} `json:"status"`
}

func alerts(t *testing.T, url string) []gotAlert {
	t.Helper()
	var list []gotAlert
	if err := json.Unmarshal([]byte(get(t, url+"/api/v2/alerts")), &list); err != nil {
		t.Fatal(err)
	}
	return list
}

// received counts the alerts that came in with a status, through both versions
// of the API.
func received(t *testing.T, url, status string) int {
	t.Helper()
	sum := 0
	for lines := bufio.NewScanner(strings.NewReader(get(t, url+"/metrics"))); lines.Scan(); {
		if line := lines.Text(); strings.HasPrefix(line, "alertmanager_alerts_received_total{") && strings.Contains(line, strconv.Quote(status)) {
			n, err := strconv.Atoi(line[strings.LastIndexByte(line, ' ')+1:])
			if err != nil {
				t.Fatal(err)
			}
			sum += n
		}
	}
	return sum
}

func get(t *testing.T, url string) string {
	t.Helper()
	resp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		t.Fatal(err)
	}
	return string(body)
}

// TestAlertmanager follows one incident through a real Alertmanager: it becomes
// an alert, news of it does not make a second one, and the return of the server
// resolves it.
func TestAlertmanager(t *testing.T) {
	url := startAlertmanager(t)
	d := newDaemon(t, fmt.Sprintf("  sinks: [{name: am, alertmanager: {url: %q}}]\n", url))
	s := newServer(t, 4100)
	log := d.path("logs/vllm.log")
	write(t, log, s.start)
	d.start()

	appendTo(t, log, s.crash)
	eventually(t, "one alert", func() bool { return len(alerts(t, url)) == 1 })
	first := alerts(t, url)[0]
	for name, want := range map[string]string{
		"alertname": "DiagnoseIncident", "class": "workspace", "family": "workspace_driven",
		"model": "glm-dsa-mini", "host": "node17", "severity": "critical",
	} {
		if got := first.Labels[name]; got != want {
			t.Errorf("label %s is %q, want %q", name, got, want)
		}
	}
	if len(first.Labels["incident"]) != 12 || first.Status.State != "active" {
		t.Errorf("incident %q, state %q", first.Labels["incident"], first.Status.State)
	}
	for name, want := range map[string]string{
		"summary": "8.00 GiB", "remedies": "--max-num-batched-tokens 16384", "do_not": "--gpu-memory-utilization", "root": "vllm.log:209 ",
	} {
		if !strings.Contains(first.Annotations[name], want) {
			t.Errorf("annotation %s is %q, without %q", name, first.Annotations[name], want)
		}
	}

	// What clients see afterwards is news of the same incident.
	was := received(t, url, "firing")
	for range 3 {
		appendTo(t, log, `(APIServer pid=4100) INFO:     127.0.0.1:59178 - "POST /v1/completions HTTP/1.1" 500 Internal Server Error`+"\n")
	}
	eventually(t, "the news reaches Alertmanager", func() bool { return received(t, url, "firing") > was })
	if list := alerts(t, url); len(list) != 1 || list[0].Fingerprint != first.Fingerprint || list[0].StartsAt != first.StartsAt {
		t.Errorf("%d alerts: %+v", len(list), list)
	}
	// A settled record is no recovery.
	eventually(t, "the record is closed", func() bool { return strings.Contains(d.said(), `"event":"closed"`) })
	if n := received(t, url, "resolved"); n != 0 || len(alerts(t, url)) != 1 {
		t.Errorf("resolved %d times while the server is down", n)
	}

	appendTo(t, log, s.restarted(t, "max_num_batched_tokens", "16384", "kv_cache_memory_bytes", "131425999257"))
	eventually(t, "the alert is resolved", func() bool { return len(alerts(t, url)) == 0 })
	if n := received(t, url, "resolved"); n == 0 {
		t.Error("the alert went away without being resolved")
	}
	d.stop()
	if t.Failed() {
		t.Log(d.said())
	}
}
