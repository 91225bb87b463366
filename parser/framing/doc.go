// Package framing takes off what wrappers put around a log line and joins the
// lines that they split: docker json-file, CRI, docker compose, journald,
// syslog, kubectl, time stamps (docker -t, ts of moreutils, Lemonade), and the
// JSON of collectors and exports (fluent-bit, fluentd, Vector, Filebeat, Loki,
// Google Cloud). It also removes terminal colour.
//
// A Decoder takes physical lines and gives inner lines, as the process wrote
// them. It looks at each line anew, so one file may mix wrappers, and only at
// the first bytes: what merely appears later in a line is never read as a
// wrapper. Layers are taken off repeatedly, at most four. A line that fits no
// form exactly comes back unchanged, the same bytes, not a copy.
//
// NUL bytes at the start of a line, the hole that copytruncate leaves, go too.
//
// A piece that its wrapper marks as unfinished is held per stream until its
// end. An inner line therefore can come after lines that began later; its At
// is that of its first piece. Held tells a reader how far it may forget.
//
// What can be lost or wrong:
//   - of a joined line longer than the limit the middle is dropped and counted
//     in Cut; of one object with more than 4096 inner lines the middle lines;
//   - a line that a container's death left unfinished is joined with the next
//     of its stream, for docker's file does not tell that another life began;
//   - pieces of unfinished lines over 16 streams: the oldest is given out as it
//     is;
//   - the names of compose, stern and kubetail are believed where a line of an
//     engine follows, and from then on for every line with the same name. A
//     raw line before the first such line keeps its prefix;
//   - a date without a zone is any logger's too. It is taken off in front of a
//     head of vLLM, and in front of anything else once such heads stood behind
//     it three times with no line without it between; a raw line before that
//     keeps it, and a line without it ends the belief;
//   - an object of a collector is known by what only a collector writes, and it
//     must have no key of an application's own. Where just a time, and perhaps
//     a host, stands beside the text, it is read from the third head in a row
//     on, so the first two stay objects. A program that logs nothing else than
//     a time and its client's words, three heads of vLLM in a row, is believed;
//   - "docker logs -t" repeats its time in the middle of a line over 16 KiB,
//     and journald in its short form breaks a line over 48 KiB without a mark:
//     neither can be told from text, so neither is joined;
//   - objects of an exporter that borrows docker's form without ever ending its
//     "log" in "\n" are taken for whole lines once that shows, at the second
//     record's head or the ninth piece; until then they are held;
//   - lines wrapped by a terminal's width are left to the grammar of the
//     message, which takes any white space.
//
// The package does no I/O and reads no clock. A Decoder is for one source and
// one goroutine.
package framing
