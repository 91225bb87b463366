package main

import (
	"encoding/json"
	"fmt"
	"path"
	"slices"
	"strings"

	"diagnose/notify"
	"diagnose/report"
)

// checkWords refuses a route or a mute that nothing can match: a word that the
// contract does not have would send a notice to nobody, without a sign.
func (c config) checkWords(found *problems) {
	for i, r := range c.Notify.Routes {
		checkMatch(found, fmt.Sprintf("notify.routes[%d].match", i), r.Match)
	}
	for i, m := range c.Notify.Mutes {
		checkMatch(found, fmt.Sprintf("notify.mutes[%d].match", i), m.Match)
	}
}

func checkMatch(found *problems, at string, m notify.Match) {
	for _, one := range []struct {
		name  string
		given []string
		known []string
	}{
		{"family", m.Family, contractWords("$defs", "family")},
		{"class", m.Class, contractWords("$defs", "class")},
		{"phase", m.Phase, contractWords("$defs", "incident", "properties", "phase")},
	} {
		for i, word := range one.given {
			fits := func(known string) bool {
				ok, err := path.Match(strings.NewReplacer("?", `\?`, "[", `\[`).Replace(strings.ToLower(word)), known)
				return ok && err == nil
			}
			if slices.ContainsFunc(one.known, fits) {
				continue
			}
			known := "there are " + strings.Join(one.known, ", ")
			if one.name == "class" { // they are many
				known = `"diagnose catalog list" shows them`
			}
			found.bad(fmt.Sprintf("%s.%s[%d]", at, one.name, i), "no %s %q; %s", one.name, word, known)
		}
	}
}

// contractWords gives the words that the schema allows at a place.
func contractWords(place ...string) []string {
	var node map[string]json.RawMessage
	at := json.RawMessage(report.Schema())
	for _, key := range append(place, "enum") {
		node = nil
		if json.Unmarshal(at, &node) != nil {
			return nil // TestContractWords
		}
		at = node[key]
	}
	var words []string
	_ = json.Unmarshal(at, &words) // TestContractWords
	return words
}
