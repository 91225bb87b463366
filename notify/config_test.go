package notify

import (
	"bytes"
	"errors"
	"log/slog"
	"strings"
	"testing"
	"time"

	"go.yaml.in/yaml/v3"

	"diagnose/notify/slacktest"
)

const goodConfig = `
sinks:
  - name: oncall
    slack_bot: {token_file: $CREDENTIALS_DIRECTORY/slack, channel: C0123456789}
  - name: hook
    slack_webhook: {url_file: /etc/diagnose/hook, roll_up: 15m}
  - name: am
    alertmanager: {url: "http://127.0.0.1:9093", keep: 12h}
  - name: web
    webhook: {url: "https://hook.example/x", key_file: /etc/diagnose/key}
  - name: journal
    log: {}
routes:
  - match: {class: [nccl, "hardware"], host: ["gpu-*"]}
    sinks: [oncall]
    mentions: [S012ABC]
    min_confidence: high
mutes:
  - {days: [sat, sun], from: "22:00", to: "06:00", zone: Europe/Berlin, then: drop}
  - {since: 2026-12-24T00:00:00Z, until: 2026-12-27T00:00:00Z}
min_confidence: medium
spool: {max_notices: 500, max_age: 48h}
`

func decodeConfig(t *testing.T, s string) Config {
	t.Helper()
	d := yaml.NewDecoder(strings.NewReader(s))
	d.KnownFields(true)
	var c Config
	if err := d.Decode(&c); err != nil {
		t.Fatal(err)
	}
	return c
}

func TestConfigGood(t *testing.T) {
	c := decodeConfig(t, goodConfig)
	if err := c.Validate(); err != nil {
		t.Fatal(err)
	}
	if c.Sinks[1].SlackWebhook.RollUp != 15*time.Minute || c.Spool.MaxAge != 48*time.Hour || c.Mutes[1].Until.Day() != 27 {
		t.Errorf("%+v", c)
	}
	sinks, err := c.Build(BuildOptions{Logger: slog.New(slog.NewTextHandler(&bytes.Buffer{}, nil)), Transport: &slacktest.Server{}})
	if err != nil || len(sinks) != 5 {
		t.Fatalf("%d sinks, %v", len(sinks), err)
	}
	for i, s := range sinks {
		if s.Name() != c.Sinks[i].Name {
			t.Errorf("sink %d is %q", i, s.Name())
		}
	}
	if r := c.Router(); r.MinConfidence != "medium" || len(r.Routes) != 1 || len(r.Mutes) != 2 {
		t.Errorf("%+v", r)
	}
}

func TestConfigProblems(t *testing.T) {
	c := decodeConfig(t, `
sinks:
  - name: a
    slack_bot: {channel: "#general"}
  - name: a
    slack_webhook: {roll_up: -1s}
    file: {}
  - slack_webhook: {url_file: x}
  - name: none
    log: {}
  - name: "bad name"
  - name: am
    alertmanager: {url: "http://am.example:9093"}
  - name: web
    webhook: {url: "ftp://user:SECRET@x", url_file: y}
  - name: web2
    webhook: {url: "ftp://user:SECRET@x"}
routes:
  - sinks: [nobody, none]
    mentions: ["@maria"]
    min_confidence: sure
mutes:
  - {from: "25:00", to: "6"}
  - {}
  - {since: 2026-12-27T00:00:00Z, until: 2026-12-24T00:00:00Z, zone: Mars/Base, then: shout}
  - {days: [someday], from: "01:00", to: "02:00"}
min_confidence: x
spool: {max_notices: -1, max_age: -1h}
`)
	err := c.Validate()
	if err == nil {
		t.Fatal("no problem")
	}
	want := `sinks[0].slack_bot.token_file: is missing
sinks[0].slack_bot.channel: "#general" is not a channel's id, as C0123456789: a message can be updated only by id
sinks[1].name: "a" is used twice
sinks[1].slack_webhook.url_file: is missing
sinks[1].slack_webhook.roll_up: is negative
sinks[1].file.path: is missing
sinks[1]: needs exactly one of slack_bot, slack_webhook, webhook, alertmanager, file, log; it has 2
sinks[2].name: is missing
sinks[3].name: "none" is reserved
sinks[4].name: "bad name" may hold letters, digits, _ and - only, at most 64
sinks[4]: needs exactly one of slack_bot, slack_webhook, webhook, alertmanager, file, log; it has 0
sinks[5].alertmanager.url: http beyond this host needs allow_http: true
sinks[6].webhook: needs one of url and url_file
sinks[7].webhook.url: is neither https nor http
routes[0].sinks[0]: no sink "nobody"
routes[0].mentions[0]: "@maria" is no Slack id (U..., W..., S...) and none of here, channel, everyone
routes[0].min_confidence: "sure" is none of high, medium, low
mutes[0].from: "25:00" is not a time of day as in 22:30
mutes[0].to: "6" is not a time of day as in 22:30
mutes[1]: needs either since and until, or from and to
mutes[2].until: is not after since
mutes[2].zone: no time zone "Mars/Base"
mutes[2].then: "shout" is neither hold nor drop
mutes[3].days[0]: "someday" is none of mon to sun
min_confidence: "x" is none of high, medium, low
spool.max_notices: is negative
spool.max_age: is negative`
	if got := err.Error(); got != want {
		t.Errorf("want\n%s\ngot\n%s", want, got)
	}
	var field *FieldError
	if !errors.As(err, &field) || field.Field != "sinks[0].slack_bot.token_file" {
		t.Errorf("%v", field)
	}
	if strings.Contains(err.Error(), "SECRET") {
		t.Error("a URL's password is shown")
	}
}

func TestCheckSecrets(t *testing.T) {
	dir := t.TempDir()
	rewrite(t, dir+"/slack", "xoxb-1")
	c := decodeConfig(t, goodConfig)
	err := c.CheckSecrets(func(string) string { return dir })
	want := "sinks[1].slack_webhook.url_file: read secret: open /etc/diagnose/hook: no such file or directory\nsinks[3].webhook.key_file: read secret: open /etc/diagnose/key: no such file or directory"
	if err == nil || err.Error() != want {
		t.Errorf("want\n%s\ngot\n%v", want, err)
	}
}

func TestBuildCollectsProblems(t *testing.T) {
	dir := t.TempDir()
	c := Config{Sinks: []SinkConfig{{Name: "a", File: &FileConfig{Path: dir}}, {Name: "b", File: &FileConfig{Path: dir}}, {Name: "c", Log: &LogConfig{}}}}
	sinks, err := c.Build(BuildOptions{})
	if err == nil || strings.Count(err.Error(), "\n") != 1 || len(sinks) != 1 {
		t.Errorf("%d sinks, %v", len(sinks), err)
	}
}
