package notify

import (
	"fmt"
	"net/url"
	"slices"
	"strings"
	"time"
)

// Config is the notify section of the configuration. Secrets are named by file
// only. The caller decodes it strictly (unknown keys are errors) and knows the
// lines; Validate names fields.
type Config struct {
	Sinks  []SinkConfig `yaml:"sinks"`
	Routes []Route      `yaml:"routes"`
	Mutes  []Mute       `yaml:"mutes"`
	// MinConfidence is high, medium or low; empty means any.
	MinConfidence string      `yaml:"min_confidence"`
	Spool         SpoolConfig `yaml:"spool"`
}

// SpoolConfig bounds what waits for a sink.
type SpoolConfig struct {
	MaxNotices int           `yaml:"max_notices"` // 1000 when zero
	MaxAge     time.Duration `yaml:"max_age"`     // 72h when zero
}

// SinkConfig is one sink: a name and exactly one of the others.
type SinkConfig struct {
	Name         string              `yaml:"name"`
	SlackBot     *SlackBotConfig     `yaml:"slack_bot"`
	SlackWebhook *SlackWebhookConfig `yaml:"slack_webhook"`
	Webhook      *WebhookConfig      `yaml:"webhook"`
	Alertmanager *AlertmanagerConfig `yaml:"alertmanager"`
	File         *FileConfig         `yaml:"file"`
	Log          *LogConfig          `yaml:"log"`
}

// SlackBotConfig posts with a bot token (scope chat:write).
type SlackBotConfig struct {
	TokenFile  string   `yaml:"token_file"`
	Channel    string   `yaml:"channel"` // the id, as C0123456789
	APIURL     string   `yaml:"api_url"`
	AllowHosts []string `yaml:"allow_hosts"`
	AllowHTTP  bool     `yaml:"allow_http"`
}

// SlackWebhookConfig posts to an incoming webhook.
type SlackWebhookConfig struct {
	URLFile    string        `yaml:"url_file"`
	RollUp     time.Duration `yaml:"roll_up"`
	AllowHosts []string      `yaml:"allow_hosts"`
	AllowHTTP  bool          `yaml:"allow_http"`
}

// WebhookConfig posts the JSON document.
type WebhookConfig struct {
	URL        string   `yaml:"url"`
	URLFile    string   `yaml:"url_file"`
	KeyFile    string   `yaml:"key_file"`
	AllowHosts []string `yaml:"allow_hosts"`
	AllowHTTP  bool     `yaml:"allow_http"`
}

// AlertmanagerConfig posts alerts.
type AlertmanagerConfig struct {
	URL       string        `yaml:"url"`
	TokenFile string        `yaml:"token_file"`
	AllowHTTP bool          `yaml:"allow_http"`
	Keep      time.Duration `yaml:"keep"`
}

// FileConfig appends JSON lines.
type FileConfig struct {
	Path string `yaml:"path"`
}

// LogConfig writes to the program's own log. It has no settings.
type LogConfig struct{}

// FieldError is one problem of a configuration.
type FieldError struct {
	// Field is the path, as sinks[0].slack_bot.channel.
	Field  string
	Reason string
}

func (e *FieldError) Error() string { return e.Field + ": " + e.Reason }

// fields collects FieldErrors.
type fields struct{ problems }

func (f *fields) bad(field, format string, args ...any) {
	f.add(&FieldError{field, fmt.Sprintf(format, args...)})
}

// Validate returns all problems, one a line, each a *FieldError. It opens no
// file: CheckSecrets does.
func (c Config) Validate() error {
	var f fields
	var names []string
	for i, s := range c.Sinks {
		at := fmt.Sprintf("sinks[%d]", i)
		switch {
		case s.Name == "":
			f.bad(at+".name", "is missing")
		case s.Name == noSinks:
			f.bad(at+".name", "%q is reserved", noSinks)
		case len(s.Name) > 64 || strings.Trim(s.Name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_-") != "":
			f.bad(at+".name", "%q may hold letters, digits, _ and - only, at most 64", cut(s.Name, 80))
		case slices.Contains(names, s.Name):
			f.bad(at+".name", "%q is used twice", s.Name)
		}
		names = append(names, s.Name)
		s.validate(&f, at)
	}
	for i, r := range c.Routes {
		r.validate(&f, fmt.Sprintf("routes[%d]", i), names)
	}
	for i, m := range c.Mutes {
		m.validate(&f, fmt.Sprintf("mutes[%d]", i))
	}
	checkConfidence(&f, "min_confidence", c.MinConfidence)
	if c.Spool.MaxNotices < 0 {
		f.bad("spool.max_notices", "is negative")
	}
	notNegative(&f, "spool.max_age", c.Spool.MaxAge)
	return f.err()
}

func (s SinkConfig) validate(f *fields, at string) {
	kinds := 0
	if c := s.SlackBot; c != nil {
		kinds++
		required(f, at+".slack_bot.token_file", c.TokenFile)
		if required(f, at+".slack_bot.channel", c.Channel) && !slackChannel(c.Channel) {
			f.bad(at+".slack_bot.channel", "%q is not a channel's id, as C0123456789: a message can be updated only by id", cut(c.Channel, 80))
		}
		if c.APIURL != "" {
			checkURL(f, at+".slack_bot.api_url", c.APIURL, c.AllowHTTP)
		}
	}
	if c := s.SlackWebhook; c != nil {
		kinds++
		required(f, at+".slack_webhook.url_file", c.URLFile)
		notNegative(f, at+".slack_webhook.roll_up", c.RollUp)
	}
	if c := s.Webhook; c != nil {
		kinds++
		switch {
		case c.URL == "" && c.URLFile == "", c.URL != "" && c.URLFile != "":
			f.bad(at+".webhook", "needs one of url and url_file")
		case c.URL != "":
			checkURL(f, at+".webhook.url", c.URL, c.AllowHTTP)
		}
	}
	if c := s.Alertmanager; c != nil {
		kinds++
		if required(f, at+".alertmanager.url", c.URL) {
			checkURL(f, at+".alertmanager.url", c.URL, c.AllowHTTP)
		}
		notNegative(f, at+".alertmanager.keep", c.Keep)
	}
	if c := s.File; c != nil {
		kinds++
		required(f, at+".file.path", c.Path)
	}
	if s.Log != nil {
		kinds++
	}
	if kinds != 1 {
		f.bad(at, "needs exactly one of slack_bot, slack_webhook, webhook, alertmanager, file, log; it has %d", kinds)
	}
}

func (r Route) validate(f *fields, at string, names []string) {
	for i, s := range r.Sinks {
		if !slices.Contains(names, s) && s != noSinks {
			f.bad(fmt.Sprintf("%s.sinks[%d]", at, i), "no sink %q", cut(s, 80))
		}
	}
	for i, id := range r.Mentions {
		if slackMention(id) == "" {
			f.bad(fmt.Sprintf("%s.mentions[%d]", at, i), "%q is no Slack id (U..., W..., S...) and none of here, channel, everyone", cut(id, 80))
		}
	}
	checkConfidence(f, at+".min_confidence", r.MinConfidence)
}

func (m Mute) validate(f *fields, at string) {
	once := !m.Since.IsZero() || !m.Until.IsZero()
	weekly := m.From != "" || m.To != "" || len(m.Days) > 0
	switch {
	case once == weekly:
		f.bad(at, "needs either since and until, or from and to")
	case once && !m.Since.Before(m.Until):
		f.bad(at+".until", "is not after since")
	case weekly:
		if _, err := clockTime(m.From); err != nil {
			f.bad(at+".from", "%v", err)
		}
		if _, err := clockTime(m.To); err != nil {
			f.bad(at+".to", "%v", err)
		}
	}
	for i, d := range m.Days {
		if !slices.Contains([]string{"mon", "tue", "wed", "thu", "fri", "sat", "sun"}, strings.ToLower(d)) {
			f.bad(fmt.Sprintf("%s.days[%d]", at, i), "%q is none of mon to sun", cut(d, 20))
		}
	}
	if _, err := time.LoadLocation(m.Zone); err != nil {
		f.bad(at+".zone", "no time zone %q", cut(m.Zone, 80))
	}
	if m.Then != "" && m.Then != MuteHold && m.Then != MuteDrop {
		f.bad(at+".then", "%q is neither hold nor drop", cut(m.Then, 20))
	}
}

func required(f *fields, field, value string) bool {
	if value == "" {
		f.bad(field, "is missing")
	}
	return value != ""
}

func notNegative(f *fields, field string, d time.Duration) {
	if d < 0 {
		f.bad(field, "is negative")
	}
}

func checkConfidence(f *fields, field, value string) {
	if value != "" && confidenceRank(value) < 0 {
		f.bad(field, "%q is none of high, medium, low", cut(value, 20))
	}
}

// checkURL does not repeat the URL, which may hold credentials.
func checkURL(f *fields, field, raw string, plainHTTP bool) {
	u, err := url.Parse(raw)
	switch {
	case err != nil || u.Host == "":
		f.bad(field, "is not an absolute URL")
	case u.Scheme == "http" && !plainHTTP && !loopback(u.Hostname()):
		f.bad(field, "http beyond this host needs allow_http: true")
	case u.Scheme != "https" && u.Scheme != "http":
		f.bad(field, "is neither https nor http")
	}
}

// slackChannel tells whether s is the id of a channel, a private channel or a
// conversation (C, G, D).
func slackChannel(s string) bool {
	return len(s) >= 3 && len(s) <= 32 && strings.ContainsRune("CGD", rune(s[0])) &&
		strings.Trim(s, "ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789") == ""
}
