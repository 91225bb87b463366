package notify

import (
	"bytes"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

const (
	// requestTimeout bounds one request with its answer.
	requestTimeout = 15 * time.Second
	// maxErrorBody is how much of a refusal is kept to explain it.
	maxErrorBody = 1 << 10
	// maxAnswer bounds the body of an accepted request; Slack repeats the
	// message in it.
	maxAnswer = 1 << 20
	// maxRetryAfter bounds what a sink can ask for.
	maxRetryAfter = 24 * time.Hour
)

// answerKind is what a sink's 2xx answer must look like to count as accepted. A
// captive portal or a proxy answers 200 with a page of its own.
type answerKind int

const (
	answerAny  answerKind = iota
	answerOK              // the two letters ok (Slack's incoming webhooks)
	answerJSON            // a JSON object (Slack's Web API)
)

// guard is a RoundTripper that lets requests out only to known hosts, follows
// nothing, bounds what is read, and turns every refusal into a *statusError
// while the body, which holds the reason, is still there.
type guard struct {
	base   http.RoundTripper
	hosts  []string // empty: any host
	http   bool     // plain http is allowed
	accept answerKind
}

// newClient gives the client for one sink. base is nil outside of tests.
func newClient(g guard) *http.Client {
	if g.base == nil {
		t := http.DefaultTransport.(*http.Transport).Clone()
		t.TLSClientConfig = &tls.Config{MinVersion: tls.VersionTLS12}
		t.TLSHandshakeTimeout = 5 * time.Second
		t.ResponseHeaderTimeout = requestTimeout
		t.MaxResponseHeaderBytes = 64 << 10
		// Incidents are rare: a kept connection would be dead at the next one.
		t.DisableKeepAlives = true
		g.base = t
	}
	return &http.Client{
		Transport:     &g,
		Timeout:       requestTimeout,
		CheckRedirect: func(*http.Request, []*http.Request) error { return http.ErrUseLastResponse },
	}
}

// statusError is an answer that is not an acceptance.
type statusError struct {
	code       int
	body       string
	retryAfter time.Duration
	why        string // set when the status was fine and the body was not
}

func (e *statusError) Error() string { return "status " + strconv.Itoa(e.code) }

// refusedError is a request that was not made.
type refusedError struct{ why string }

func (e *refusedError) Error() string { return e.why }

func (g *guard) RoundTrip(req *http.Request) (*http.Response, error) {
	if err := g.allowed(req.URL); err != nil {
		if req.Body != nil {
			_ = req.Body.Close()
		}
		return nil, err
	}
	resp, err := g.base.RoundTrip(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode/100 != 2 {
		// The status is the answer; a body that breaks off changes nothing.
		body, _ := io.ReadAll(io.LimitReader(resp.Body, maxErrorBody))
		return nil, &statusError{code: resp.StatusCode, body: string(body), retryAfter: retryAfter(resp.Header)}
	}
	body, err := io.ReadAll(io.LimitReader(resp.Body, maxAnswer+1))
	if err != nil {
		return nil, fmt.Errorf("read answer: %w", err)
	}
	if why := g.accept.check(body); why != "" {
		return nil, &statusError{code: resp.StatusCode, body: headBytes(string(body), maxErrorBody), why: why}
	}
	resp.Body = io.NopCloser(bytes.NewReader(body))
	return resp, nil
}

func (g *guard) allowed(u *url.URL) error {
	if u.Scheme != "https" && (u.Scheme != "http" || !g.http && !loopback(u.Hostname())) {
		return &refusedError{why: "only https is allowed"}
	}
	if len(g.hosts) > 0 && !slices.ContainsFunc(g.hosts, func(h string) bool { return strings.EqualFold(h, u.Hostname()) }) {
		return &refusedError{why: "the host of the URL is not an allowed one"}
	}
	return nil
}

func loopback(host string) bool {
	ip := net.ParseIP(host)
	return strings.EqualFold(host, "localhost") || ip != nil && ip.IsLoopback()
}

func (k answerKind) check(body []byte) string {
	switch trimmed := bytes.TrimSpace(body); {
	case len(body) > maxAnswer:
		return "the answer is too long"
	case k == answerOK && string(trimmed) != "ok":
		return "the answer is not ok"
	case k == answerJSON && !bytes.HasPrefix(trimmed, []byte("{")):
		return "the answer is not JSON"
	}
	return ""
}

// retryAfter reads seconds; Slack sends nothing else, and a date would need the
// other side's clock. Zero means that the header is missing or unusable.
func retryAfter(h http.Header) time.Duration {
	n, err := strconv.Atoi(strings.TrimSpace(h.Get("Retry-After")))
	if err != nil || n < 0 {
		return 0
	}
	return min(time.Duration(min(n, int(maxRetryAfter/time.Second)))*time.Second, maxRetryAfter)
}

// classify turns what an http client returned into an *Error without secrets.
// hide lists what must not be in the text, whatever it looks like.
func classify(sink string, err error, hide ...string) *Error {
	var (
		ours    *Error
		status  *statusError
		refused *refusedError
		dial    *net.OpError
		dns     *net.DNSError
		timeout interface{ Timeout() bool }
	)
	switch {
	case errors.As(err, &ours):
		return ours
	case errors.As(err, &refused):
		return &Error{Sink: sink, Reason: Misconfigured, Detail: refused.why}
	case errors.As(err, &status):
		return status.classify(sink, hide)
	}
	e := &Error{Sink: sink, Reason: Network, MaybeDelivered: true, Detail: conceal(inner(err).Error(), hide)}
	switch {
	case errors.As(err, &dns), errors.As(err, &dial) && dial.Op == "dial":
		e.MaybeDelivered = false
	case errors.Is(err, context.DeadlineExceeded), errors.As(err, &timeout) && timeout.Timeout():
		e.Reason, e.Detail = Timeout, "no answer in time"
	case errors.Is(err, context.Canceled):
		e.Detail = "cancelled"
	}
	return e
}

// inner strips the layers that name the URL.
func inner(err error) error {
	var u *url.Error
	for errors.As(err, &u) {
		err = u.Err
	}
	return err
}

func (e *statusError) classify(sink string, hide []string) *Error {
	out := &Error{Sink: sink, Code: strconv.Itoa(e.code), RetryAfter: e.retryAfter}
	word := strings.TrimSpace(e.body)
	if reason, known := slackReason(word); known {
		out.Code = word
		out.Reason = reason
	} else {
		out.Reason = statusReason(e.code)
		out.Detail = conceal(firstLine(e.body), hide)
	}
	switch {
	case e.why != "":
		// Accepted in form only: nobody knows what read the message.
		out.Reason, out.Detail, out.MaybeDelivered = Server, e.why, true
	case e.code/100 == 3:
		out.Detail = "redirects are not followed"
	case out.Reason == Server || out.Reason == Timeout:
		out.MaybeDelivered = true
	}
	return out
}

func statusReason(code int) Reason {
	switch {
	case code == http.StatusTooManyRequests:
		return RateLimited
	case code == http.StatusRequestTimeout:
		return Timeout
	case code == http.StatusUnauthorized, code == http.StatusForbidden, code == http.StatusProxyAuthRequired:
		return Auth
	case code == http.StatusNotFound, code == http.StatusGone, code == http.StatusMethodNotAllowed:
		return NotFound
	case code/100 == 4:
		return InvalidPayload
	case code/100 == 3:
		return Misconfigured
	}
	return Server
}

// conceal makes a foreign text fit for an error: one short line without secrets.
func conceal(text string, hide []string) string {
	text = clean(headBytes(text, maxErrorBody))
	for _, h := range hide {
		if len(h) >= 4 {
			text = strings.ReplaceAll(text, h, redacted)
		}
	}
	return cut(oneLine(scrub(text)), 200)
}

// urlSecrets lists the parts of a secret URL that must not be shown: all but
// scheme and host.
func urlSecrets(raw string) []string {
	u, err := url.Parse(raw)
	if err != nil {
		return []string{raw}
	}
	hide := []string{raw, u.RequestURI(), u.Path, u.RawQuery}
	if pw, ok := u.User.Password(); ok {
		hide = append(hide, u.User.String(), pw)
	}
	for part := range strings.FieldsFuncSeq(u.Path, func(r rune) bool { return r == '/' }) {
		if len(part) >= 6 {
			hide = append(hide, part)
		}
	}
	for _, vs := range u.Query() {
		hide = append(hide, vs...)
	}
	return hide
}
