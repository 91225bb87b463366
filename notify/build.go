package notify

import (
	"fmt"
	"log/slog"
	"net/http"
	"time"

	"diagnose/matcher"
)

// BuildOptions is what sinks need beside their configuration. The zero value
// works, without threads in Slack.
type BuildOptions struct {
	Tool matcher.Tool
	// Render gives the whole diagnosis of a notice as plain text.
	Render func(Notice) string
	Logger *slog.Logger
	Now    func() time.Time
	// Getenv finds $CREDENTIALS_DIRECTORY; nil leaves that name as it is.
	Getenv func(string) string
	// Transport replaces the network, for tests.
	Transport http.RoundTripper
}

// Build makes the configured sinks. Call Validate first. A file sink reads its
// file, which can fail; all such failures come together.
func (c Config) Build(o BuildOptions) ([]Sink, error) {
	if o.Logger == nil {
		o.Logger = slog.New(slog.DiscardHandler)
	}
	var p problems
	var out []Sink
	for _, s := range c.Sinks {
		sink, err := s.build(o)
		if err != nil {
			p.add(fmt.Errorf("sink %s: %w", s.Name, err))
			continue
		}
		out = append(out, sink)
	}
	return out, p.err()
}

// Router is the routing of the configuration.
func (c Config) Router() *Router {
	return &Router{Routes: c.Routes, Mutes: c.Mutes, MinConfidence: c.MinConfidence}
}

func (s SinkConfig) build(o BuildOptions) (Sink, error) {
	switch {
	case s.SlackBot != nil:
		c := s.SlackBot
		return Sink{Notifier: NewSlackBot(SlackBotOptions{
			Name: s.Name, TokenFile: c.TokenFile, Channel: c.Channel, APIURL: c.APIURL,
			AllowHosts: c.AllowHosts, AllowHTTP: c.AllowHTTP,
			Tool: o.Tool, Render: o.Render, Now: o.Now, Getenv: o.Getenv, Transport: o.Transport,
		})}, nil
	case s.SlackWebhook != nil:
		c := s.SlackWebhook
		return Sink{Notifier: NewSlackWebhook(SlackWebhookOptions{
			Name: s.Name, URLFile: c.URLFile, RollUp: c.RollUp, AllowHosts: c.AllowHosts, AllowHTTP: c.AllowHTTP,
			Tool: o.Tool, Now: o.Now, Getenv: o.Getenv, Transport: o.Transport,
		})}, nil
	case s.Webhook != nil:
		c := s.Webhook
		return Sink{Notifier: NewWebhook(WebhookOptions{
			Name: s.Name, URL: c.URL, URLFile: c.URLFile, KeyFile: c.KeyFile,
			AllowHosts: c.AllowHosts, AllowHTTP: c.AllowHTTP,
			Tool: o.Tool, Now: o.Now, Getenv: o.Getenv, Transport: o.Transport,
		})}, nil
	case s.Alertmanager != nil:
		c := s.Alertmanager
		return Sink{Notifier: NewAlertmanager(AlertmanagerOptions{
			Name: s.Name, URL: c.URL, TokenFile: c.TokenFile, AllowHTTP: c.AllowHTTP, Keep: c.Keep,
			Now: o.Now, Getenv: o.Getenv, Transport: o.Transport,
		})}, nil
	case s.File != nil:
		f, err := NewFile(s.Name, s.File.Path)
		return Sink{Notifier: f, Every: -1}, err
	case s.Log != nil:
		return Sink{Notifier: NewLog(s.Name, o.Logger), Every: -1}, nil
	}
	return Sink{}, fmt.Errorf("no kind")
}

// CheckSecrets reads every secret's file once and reports those that cannot be
// used, as *FieldError. Their content is not kept.
func (c Config) CheckSecrets(getenv func(string) string) error {
	var f fields
	check := func(field, path string) {
		if path == "" {
			return
		}
		if _, err := (secretFile{path: path, getenv: getenv}).read(); err != nil {
			f.bad(field, "%v", err)
		}
	}
	for i, s := range c.Sinks {
		at := fmt.Sprintf("sinks[%d]", i)
		if s.SlackBot != nil {
			check(at+".slack_bot.token_file", s.SlackBot.TokenFile)
		}
		if s.SlackWebhook != nil {
			check(at+".slack_webhook.url_file", s.SlackWebhook.URLFile)
		}
		if s.Webhook != nil {
			check(at+".webhook.url_file", s.Webhook.URLFile)
			check(at+".webhook.key_file", s.Webhook.KeyFile)
		}
		if s.Alertmanager != nil {
			check(at+".alertmanager.token_file", s.Alertmanager.TokenFile)
		}
	}
	return f.err()
}
