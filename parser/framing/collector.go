package framing

import "bytes"

// collected is what is looked for in one JSON line of a collector or of an
// export from a store.
type collected struct {
	line, body, payload value

	atTime, date, timestamp, ts value

	kubernetes, labels, resource     value
	source, logtag, agent, logName   value
	insertID, containerID, container value
	// foreign is set where a key is none that a collector adds: the record is
	// an application's own, and its text may be a client's.
	foreign bool
	// common is set where a key is a collector's that applications use too.
	common bool
}

func (c *collected) field(key []byte) *value {
	switch string(key) {
	case "line":
		return &c.line
	case "message":
		return &c.body
	case "textPayload":
		return &c.payload
	case "@timestamp":
		return &c.atTime
	case "date":
		return &c.date
	case "timestamp":
		return &c.timestamp
	case "ts":
		return &c.ts
	case "kubernetes":
		return &c.kubernetes
	case "labels":
		return &c.labels
	case "resource":
		return &c.resource
	case "source_type":
		return &c.source
	case "_p", "logtag":
		return &c.logtag
	case "agent":
		return &c.agent
	case "logName":
		return &c.logName
	case "insertId":
		return &c.insertID
	case "container_id":
		return &c.containerID
	case "container_name":
		return &c.container
	}
	return nil
}

// note keeps what a key says, and whether it is one that a collector adds:
// fluent-bit's kubernetes filter and tail input, fluentd's docker driver,
// Vector's sources kubernetes_logs, docker_logs and file, Filebeat, Grafana's
// and Google Cloud's exports.
func (c *collected) note(key []byte, v value) {
	if to := c.field(key); to != nil {
		*to = v
		return
	}
	switch string(key) {
	case "log", "stream", "time", "tag", "source", "cluster", "file", "filename", "offset", "host", "hostname",
		"source_id", "timestamp_end", "@version":
	case "image", "label", "container_created_at", "@metadata", "input", "ecs", "event", "container", "tags",
		"fields", "id", "tsNs", "detected_level", "severity", "receiveTimestamp":
		c.common = true
	default:
		c.foreign = true
	}
}

// collected tells which key holds the text, and whether something stands beside it
// that only a collector writes. ok is false for any other object.
func (o *object) collected() (text value, name string, sure, ok bool) {
	c := &o.c
	if c.foreign {
		return text, "", false, false
	}
	for _, v := range []value{c.kubernetes, c.labels, c.resource, c.agent} {
		if v.kind != 0 && v.kind != 'o' {
			return text, "", false, false
		}
	}
	timed := c.when(o).kind != 0
	std := string(o.stream.raw) == "stdout" || string(o.stream.raw) == "stderr"
	pod := c.kubernetes.kind == 'o' || c.logtag.kind == 's' || c.containerID.kind == 's' || std
	n := 0
	if o.log.kind == 's' && timed {
		text, name, sure = o.log, "log", pod
		n++
	}
	if c.line.kind == 's' && timed {
		text, name, sure = c.line, "line", c.labels.kind == 'o'
		n++
	}
	if c.body.kind == 's' && timed {
		text, name, sure = c.body, "message", pod || c.source.kind == 's' || c.agent.kind == 'o'
		n++
	}
	if c.payload.kind == 's' && timed {
		text, name, sure = c.payload, "textPayload", c.insertID.kind == 's' || c.logName.kind == 's' || c.resource.kind == 'o'
		n++
	}
	return text, name, sure, n == 1 && (sure || !c.common)
}

// when gives the time of an object, a string or a number.
func (c *collected) when(o *object) value {
	for _, v := range []value{c.atTime, c.timestamp, c.date, c.ts, o.time} {
		if v.kind == 's' || v.kind == 'n' {
			return v
		}
	}
	return value{}
}

// peelCollected takes off the JSON of a collector. Where nothing but a time
// stands beside the text, many programs write the same, so it is believed only
// once every line of the source had that form and heads of vLLM.
func (d *Decoder) peelCollected(o *object, m *Meta) (layer, bool) {
	v, name, sure, ok := o.collected()
	if !ok {
		return layer{}, false
	}
	from := len(d.arena)
	d.arena = appendText(d.arena, v)
	text := bytes.TrimSuffix(d.arena[from:], []byte(newline))
	if !sure && !d.steady.takesLate(form{text: name}, text) {
		d.arena = d.arena[:from]
		return layer{}, false
	}
	d.setStream(m, o.stream.raw)
	switch when := o.c.when(o); when.kind {
	case 's':
		if s, ok := scanStamp(when.raw); ok && s.zoned && s.n == len(when.raw) {
			setTime(m, when.raw)
		}
	case 'n':
		if m.Time == "" {
			m.Time = epochTime(when.raw)
		}
	}
	d.setName(&m.Container, o.c.container.raw)
	for _, v := range []value{o.c.kubernetes, o.c.labels, o.c.resource} {
		d.setPlace(m, v, 1)
	}
	return layer{kind: CollectorJSON, text: text, splits: true, partial: string(o.c.logtag.raw) == "P", formed: !sure}, true
}

// setPlace reads the names in an object of labels, and in its own "labels".
func (d *Decoder) setPlace(m *Meta, v value, deeper int) {
	if v.kind != 'o' {
		return
	}
	f := fields{b: v.raw}
	for {
		key, v, ok := f.next()
		if !ok {
			return
		}
		if v.kind == 'o' && deeper > 0 && string(key) == "labels" {
			d.setPlace(m, v, deeper-1)
		}
		if v.kind != 's' {
			continue
		}
		switch string(key) {
		case "pod", "pod_name":
			d.setName(&m.Pod, v.raw)
		case "namespace", "namespace_name", "pod_namespace":
			d.setName(&m.Namespace, v.raw)
		case "container", "container_name":
			d.setName(&m.Container, v.raw)
		}
	}
}

// epochTime turns seconds since 1970 with a fraction, as fluent-bit prints
// them, into RFC 3339.
func epochTime(b []byte) string {
	sec, frac, _ := bytes.Cut(b, []byte("."))
	if len(sec) != 10 {
		return ""
	}
	micros := append(append(make([]byte, 0, 16), sec...), frac[:min(len(frac), 6)]...)
	for len(micros) < 16 {
		micros = append(micros, '0')
	}
	return microTime(micros)
}
