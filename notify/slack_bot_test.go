package notify

import (
	"context"
	"encoding/json"
	"errors"
	"net/url"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"diagnose/matcher"
	"diagnose/notify/slacktest"
)

func TestBotPostsOnceAndThreadsTheWhole(t *testing.T) {
	f := &slacktest.Server{}
	bot := newTestBot(t, f)
	s := sendAll(t, bot, sampleNotice(EventOpened), nil)
	roots := f.Roots()
	if len(roots) != 1 {
		t.Fatalf("%d messages", len(roots))
	}
	replies := f.Replies(roots[0].TS)
	if len(replies) != 3 {
		t.Errorf("%d replies", len(replies))
	}
	for i, r := range replies {
		if want := "Diagnosis of 9f86d081884c, part "; !strings.HasPrefix(r.Text, want) || r.Broadcast {
			t.Errorf("reply %d: %q", i, r.Text)
		}
	}
	// The same notice again says nothing.
	before := len(f.Calls)
	sendAll(t, bot, sampleNotice(EventUpdated), s)
	if len(f.Calls) != before {
		t.Errorf("%d calls for no news", len(f.Calls)-before)
	}
	if len(f.Refusals) > 0 {
		t.Error(f.Refusals)
	}
}

func TestBotPreviewIsWhatIsSent(t *testing.T) {
	f := &slacktest.Server{}
	bot := newTestBot(t, f)
	raw, err := bot.Preview(sampleNotice(EventOpened))
	if err != nil {
		t.Fatal(err)
	}
	sendAll(t, bot, sampleNotice(EventOpened), nil)
	var want struct {
		Text   string
		Blocks any
	}
	var got any
	_ = json.Unmarshal(raw, &want)
	_ = json.Unmarshal([]byte(f.Messages[0].Blocks), &got)
	a, _ := json.Marshal(want.Blocks)
	b, _ := json.Marshal(got)
	if string(a) != string(b) || want.Text != f.Messages[0].Text {
		t.Errorf("preview\n%s\nsent\n%s", a, b)
	}
}

func TestBotTellsWhatFollows(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		bot := newTestBot(t, f)
		n := sampleNotice(EventOpened)
		n.Hints.Mentions = []string{"S0123", "not an id"}
		s := sendAll(t, bot, n, nil)
		root := f.Roots()[0]
		if len(f.Paged) != 1 || f.Paged[0] != "<!subteam^S0123>" {
			t.Errorf("first notice pages %q", f.Paged)
		}
		told := len(f.Replies(root.TS))

		// A repeat changes the count in the message and nothing else.
		time.Sleep(time.Minute)
		n.Event, n.Incident.Occurrences = EventUpdated, 2
		s = sendAll(t, bot, n, s)
		if root.Edits != 1 || !strings.Contains(root.Blocks, "2 occurrences") || len(f.Replies(root.TS)) != told {
			t.Errorf("repeat: %d edits, %d replies", root.Edits, len(f.Replies(root.TS)))
		}

		// A restart without the change, then a withdrawn advice, then recovery.
		time.Sleep(time.Minute)
		n.Event = EventFollowup
		n.Incident.Followup = &matcher.Followup{RestartedAt: ptr("14:10"), ChangesMissing: []string{"--max-num-batched-tokens 16384"}}
		s = sendAll(t, bot, n, s)
		if !strings.Contains(root.Blocks, "server is back, change not applied") || !strings.Contains(root.Blocks, "🟡") {
			t.Error("the message does not show the restart")
		}
		time.Sleep(time.Minute)
		n.Incident.Followup.Withdrawn = []string{"--max-num-batched-tokens 16384 was applied and it died again"}
		s = sendAll(t, bot, n, s)
		time.Sleep(time.Minute)
		n.Incident.Followup.HeldSince = ptr("15:10")
		sendAll(t, bot, n, s)

		replies := f.Replies(root.TS)[told:]
		var texts []string
		for _, r := range replies {
			texts = append(texts, r.Text)
		}
		want := []string{
			"Restarted (14:10). The advised change is not applied: --max-num-batched-tokens 16384. [9f86d081884c]",
			"Advice withdrawn: --max-num-batched-tokens 16384 was applied and it died again. [9f86d081884c]",
			"Recovered: it has held since 15:10. [9f86d081884c]",
		}
		if strings.Join(texts, "\n") != strings.Join(want, "\n") {
			t.Errorf("want\n%s\ngot\n%s", strings.Join(want, "\n"), strings.Join(texts, "\n"))
		}
		if replies[0].Broadcast || !replies[1].Broadcast || replies[2].Broadcast {
			t.Error("only the escalation goes to the channel")
		}
		if len(f.Paged) != 2 {
			t.Errorf("pages: %q", f.Paged)
		}
		if !strings.Contains(root.Blocks, "🟢") || len(f.Roots()) != 1 {
			t.Error("the message does not show the recovery")
		}
	})
}

func TestBotTellsAChangedAssessmentAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		bot := newTestBot(t, f)
		n := sampleNotice(EventOpened)
		s := sendAll(t, bot, n, nil)
		time.Sleep(time.Minute)
		n.Event, n.Incident.Verdict.Class = EventUpdated, "fragmentation"
		sendAll(t, bot, n, s)
		root := f.Roots()[0]
		if len(f.Replies(root.TS)) != 6 || root.Edits != 1 || !strings.Contains(root.Blocks, "fragmentation") {
			t.Errorf("%d replies, %d edits", len(f.Replies(root.TS)), root.Edits)
		}
	})
}

func TestBotBoundsUpdates(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		bot := newTestBot(t, f)
		n := sampleNotice(EventOpened)
		s := sendAll(t, bot, n, nil)
		n.Event, n.Incident.Occurrences = EventUpdated, 2
		_, retry, err := bot.Send(context.Background(), n, s)
		var later *Later
		if !errors.As(err, &later) || !retry || !later.Until.Equal(time.Now().Add(5*time.Second)) {
			t.Errorf("%v %v", retry, err)
		}
		if f.Count("chat.update") != 0 {
			t.Error("updated at once")
		}
	})
}

func TestBotPostsAfresh(t *testing.T) {
	for _, word := range []string{"message_not_found", "channel_not_found", "cant_update_message", "edit_window_closed", "msg_too_long"} {
		t.Run(word, func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				f := &slacktest.Server{}
				bot := newTestBot(t, f)
				n := sampleNotice(EventOpened)
				n.Hints.Mentions = []string{"here"}
				s := sendAll(t, bot, n, nil)
				time.Sleep(time.Minute)
				once := true
				f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
					if c.Method == "chat.update" && once {
						once = false
						return &slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"` + word + `"}`}
					}
					return nil
				})
				n.Event, n.Incident.Occurrences = EventUpdated, 2
				s = sendAll(t, bot, n, s)
				roots := f.Roots()
				if len(roots) != 2 || len(f.Replies(roots[1].TS)) != 3 {
					t.Fatalf("%d messages", len(roots))
				}
				if len(f.Paged) != 1 {
					t.Errorf("the second copy pages again: %q", f.Paged)
				}
				time.Sleep(time.Minute)
				n.Incident.Occurrences = 3
				sendAll(t, bot, n, s)
				if roots[1].Edits != 1 || roots[0].Edits != 0 {
					t.Error("the new message is not the one that is updated")
				}
			})
		})
	}
}

func TestBotNoticesADeletedMessageByItsThread(t *testing.T) {
	f := &slacktest.Server{}
	bot := newTestBot(t, f)
	f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
		if c.N == 1 { // the first reply
			f.Delete(f.Roots()[0].TS)
		}
		return nil
	})
	sendAll(t, bot, sampleNotice(EventOpened), nil)
	roots := f.Roots() // the stray reply and the fresh message
	if len(roots) != 2 || len(f.Replies(roots[1].TS)) != 3 {
		t.Errorf("%d messages", len(roots))
	}
}

func TestBotStopsPostingAfresh(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		f := &slacktest.Server{}
		bot := newTestBot(t, f)
		f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
			if c.Form.Get("thread_ts") != "" || c.Method == "chat.update" {
				return &slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"cannot_reply_to_message"}`}
			}
			return nil
		})
		n := sampleNotice(EventOpened)
		s := sendAll(t, bot, n, nil)
		if got := len(f.Roots()); got != 1+maxAfresh {
			t.Errorf("%d copies", got)
		}
		time.Sleep(time.Minute)
		n.Event = EventFollowup
		n.Incident.Followup = &matcher.Followup{Withdrawn: []string{"x"}}
		sendAll(t, bot, n, s)
		if got := len(f.Roots()); got != 2+maxAfresh {
			t.Errorf("the escalation is not told: %d", got)
		}
	})
}

func TestBotFallsBackToPlainText(t *testing.T) {
	f := &slacktest.Server{}
	bot := newTestBot(t, f)
	f.SetFault(func(c *slacktest.Call) *slacktest.Fault {
		if b := c.Form.Get("blocks"); b != "" && b != "[]" {
			return &slacktest.Fault{Status: 200, Body: `{"ok":false,"error":"invalid_blocks","response_metadata":{"messages":["[ERROR] odd"]}}`}
		}
		return nil
	})
	sendAll(t, bot, sampleNotice(EventOpened), nil)
	roots := f.Roots()
	if len(roots) != 1 || !strings.Contains(roots[0].Text, "9f86d081884c") {
		t.Fatalf("%d messages", len(roots))
	}
	if replies := f.Replies(roots[0].TS); len(replies) != 3 || !strings.Contains(replies[0].Text, "a line of the whole diagnosis") {
		t.Errorf("%d replies", len(replies))
	}
}

func TestBotReadsItsTokenAtEachSend(t *testing.T) {
	f := &slacktest.Server{}
	path := secretPath(t, "xoxb-old-token-1")
	bot := newTestBot(t, f, func(o *SlackBotOptions) { o.TokenFile = path })
	_, retry, err := bot.Send(context.Background(), sampleNotice(EventOpened), nil)
	var e *Error
	if !errors.As(err, &e) || e.Reason != Auth || e.Code != "invalid_auth" || retry {
		t.Fatalf("%v %v", retry, err)
	}
	rewrite(t, path, slacktest.Token)
	sendAll(t, bot, sampleNotice(EventOpened), nil)
	if len(f.Roots()) != 1 {
		t.Error("the new token is not used")
	}
}

func TestBotSurvivesADamagedMemory(t *testing.T) {
	f := &slacktest.Server{}
	sendAll(t, newTestBot(t, f), sampleNotice(EventOpened), State(`{"ts":17,"chan`))
	if len(f.Roots()) != 1 {
		t.Error("not posted")
	}
}

func TestBotTest(t *testing.T) {
	f := &slacktest.Server{}
	answer, err := Test(context.Background(), newTestBot(t, f), sampleTool, sampleTime)
	if err != nil || answer != "accepted: channel C0123456, ts 1700000000.000001" {
		t.Errorf("%q %v", answer, err)
	}
	if len(f.Messages) != 1 || !strings.HasPrefix(f.Messages[0].Text, "Test: ") {
		t.Error("not one message that says that it is a test")
	}
}

func TestBotWantsATS(t *testing.T) {
	for _, body := range []string{`{"ok":true}`, `{"ok":false}`, `{}`} {
		f := &slacktest.Server{Fault: func(*slacktest.Call) *slacktest.Fault { return &slacktest.Fault{Status: 200, Body: body} }}
		_, retry, err := newTestBot(t, f).Send(context.Background(), sampleNotice(EventOpened), nil)
		var e *Error
		if !errors.As(err, &e) || e.Reason != Server || !retry {
			t.Errorf("%s: %v %v", body, retry, err)
		}
	}
}

func TestBotSendsNoUnfurls(t *testing.T) {
	f := &slacktest.Server{}
	sendAll(t, newTestBot(t, f), sampleNotice(EventOpened), nil)
	for _, c := range f.Calls {
		if c.Form.Get("unfurl_links") != "false" || c.Form.Get("unfurl_media") != "false" || c.Form.Get("link_names") == "1" {
			t.Errorf("%v", url.Values{"unfurl_links": c.Form["unfurl_links"]})
		}
	}
}
