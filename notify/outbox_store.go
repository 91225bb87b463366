package notify

import (
	"encoding/json"
	"errors"
	"fmt"
	"runtime/debug"
	"slices"
	"time"

	bolt "go.etcd.io/bbolt"
)

// The outbox's two top-level buckets. Each holds one bucket a sink, keyed by
// incident id: what waits, and what the sink remembers.
const (
	bucketQueue = "notify/queue"
	bucketState = "notify/state"
)

// maxStates bounds the memories of one sink.
const maxStates = 10000

// item is what waits for one sink about one incident.
type item struct {
	// Seq tells whether a newer notice came while this one was being sent.
	Seq    uint64 `json:"seq"`
	Notice Notice `json:"notice"`
	// Since is when the oldest news in it was queued, Queued the newest.
	Since  time.Time `json:"since"`
	Queued time.Time `json:"queued"`
	// NotBefore holds it back: muted, rolled up, or refused before.
	NotBefore time.Time `json:"not_before,omitzero"`
	// Planned marks a wait on purpose, which is no delay.
	Planned  bool `json:"planned,omitempty"`
	Refusals int  `json:"refusals,omitempty"`
	Steps    int  `json:"steps,omitempty"`
}

// remembered is a sink's memory of one incident.
type remembered struct {
	State   State     `json:"state"`
	Updated time.Time `json:"updated"`
}

// queued is an item on its way to a sender.
type queued struct {
	to   *sender
	item item
}

// store is the outbox on disk. Entries that cannot be read are skipped: a
// damaged one must not stop the others.
type store struct{ db *bolt.DB }

// update and view turn what bbolt panics over, and a fault in the mapped file,
// into an error: a queue that breaks must not end the following.
func (s store) update(f func(*bolt.Tx) error) (err error) {
	defer caught(&err)()
	return s.db.Update(f)
}

func (s store) view(f func(*bolt.Tx) error) (err error) {
	defer caught(&err)()
	return s.db.View(f)
}

func caught(err *error) func() {
	before := debug.SetPanicOnFault(true)
	return func() {
		debug.SetPanicOnFault(before)
		if p := recover(); p != nil {
			*err = fmt.Errorf("the queue is damaged: %v", p)
		}
	}
}

// verify reads everything once, so that damage shows at the start, where the
// file can still be replaced.
func (s store) verify() error {
	var walk func(b *bolt.Bucket) error
	walk = func(b *bolt.Bucket) error {
		return b.ForEach(func(k, v []byte) error {
			if v == nil {
				return walk(b.Bucket(k))
			}
			return nil
		})
	}
	return s.view(func(tx *bolt.Tx) error {
		return tx.ForEach(func(_ []byte, b *bolt.Bucket) error { return walk(b) })
	})
}

func (s store) put(list []queued) error {
	return s.update(func(tx *bolt.Tx) error {
		for _, q := range list {
			if err := putJSON(tx, bucketQueue, q.to.name, q.item.Notice.Incident.ID, q.item); err != nil {
				return err
			}
		}
		return nil
	})
}

// load gives the items that wait for a sink, without their notices.
func (s store) load(sink string) (map[string]item, error) {
	items := map[string]item{}
	err := s.view(func(tx *bolt.Tx) error {
		b := sub(tx, bucketQueue, sink)
		if b == nil {
			return nil
		}
		return b.ForEach(func(k, v []byte) error {
			var it item
			if json.Unmarshal(v, &it) == nil {
				it.Notice = Notice{Event: it.Notice.Event}
				items[string(k)] = it
			}
			return nil
		})
	})
	return items, err
}

// get gives one item with its notice, and the sink's memory of the incident.
func (s store) get(sink, id string) (it item, st State, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		if b := sub(tx, bucketQueue, sink); b != nil {
			if raw := b.Get([]byte(id)); raw != nil {
				if err := json.Unmarshal(raw, &it); err != nil {
					return fmt.Errorf("read notice %s: %w", id, err)
				}
				var r remembered
				if b := sub(tx, bucketState, sink); b != nil {
					_ = json.Unmarshal(b.Get([]byte(id)), &r) // none or damaged: as if never told
				}
				st = slices.Clone(r.State)
				return nil
			}
		}
		return errGone
	})
	return it, st, err
}

var errGone = errors.New("notice is gone")

// settle writes, in one transaction, a sink's memory and what is left of the
// item with this seq; a nil left means nothing. When a newer notice came
// meanwhile, that one stays, and is returned.
func (s store) settle(sink, id string, seq uint64, st State, left *item, now time.Time) (stays *item, err error) {
	err = s.update(func(tx *bolt.Tx) error {
		stays = left
		if st != nil {
			if err := putJSON(tx, bucketState, sink, id, remembered{st, now}); err != nil {
				return err
			}
		}
		b := sub(tx, bucketQueue, sink)
		if b == nil {
			return nil
		}
		var onDisk item
		if raw := b.Get([]byte(id)); json.Unmarshal(raw, &onDisk) == nil && onDisk.Seq != seq {
			if left == nil {
				onDisk.Since = onDisk.Queued // only what is new in it still waits
			}
			stays = &onDisk
		}
		if stays == nil {
			return b.Delete([]byte(id))
		}
		return putJSON(tx, bucketQueue, sink, id, stays)
	})
	return stays, err
}

// knows tells whether a sink remembers an incident.
func (s store) knows(sink, id string) (known bool, err error) {
	err = s.view(func(tx *bolt.Tx) error {
		b := sub(tx, bucketState, sink)
		known = b != nil && b.Get([]byte(id)) != nil
		return nil
	})
	return known, err
}

// prune drops memories older than states, what waits since before queue for a
// sink that is not configured any more, and what cannot be read.
func (s store) prune(sinks []string, states, queue time.Time) error {
	return s.update(func(tx *bolt.Tx) error {
		for _, name := range []string{bucketQueue, bucketState} {
			if _, err := tx.CreateBucketIfNotExists([]byte(name)); err != nil {
				return err
			}
		}
		err := eachSink(tx, bucketState, func(_ string, b *bolt.Bucket) error {
			return pruneStates(b, states)
		})
		if err != nil {
			return err
		}
		return eachSink(tx, bucketQueue, func(sink string, b *bolt.Bucket) error {
			return deleteIf(b, func(v []byte) bool {
				var it item
				damaged := json.Unmarshal(v, &it) != nil
				return damaged || !slices.Contains(sinks, sink) && it.Since.Before(queue)
			})
		})
	})
}

// pruneStates drops what is too old, and the oldest beyond maxStates.
func pruneStates(b *bolt.Bucket, before time.Time) error {
	var ages []time.Time
	updated := func(v []byte) time.Time {
		var r remembered
		_ = json.Unmarshal(v, &r) // damaged: the zero time, the oldest of all
		return r.Updated
	}
	err := b.ForEach(func(_, v []byte) error {
		ages = append(ages, updated(v))
		return nil
	})
	if err != nil {
		return err
	}
	if extra := len(ages) - maxStates; extra > 0 {
		slices.SortFunc(ages, time.Time.Compare)
		if ages[extra].After(before) {
			before = ages[extra]
		}
	}
	return deleteIf(b, func(v []byte) bool { return updated(v).Before(before) })
}

// deleteIf collects first: a bucket must not change while it is walked.
func deleteIf(b *bolt.Bucket, gone func(v []byte) bool) error {
	var keys [][]byte
	err := b.ForEach(func(k, v []byte) error {
		if v != nil && gone(v) {
			keys = append(keys, slices.Clone(k))
		}
		return nil
	})
	if err != nil {
		return err
	}
	for _, k := range keys {
		if err := b.Delete(k); err != nil {
			return err
		}
	}
	return nil
}

func eachSink(tx *bolt.Tx, top string, f func(sink string, b *bolt.Bucket) error) error {
	root := tx.Bucket([]byte(top))
	return root.ForEachBucket(func(k []byte) error { return f(string(k), root.Bucket(k)) })
}

// sub is a sink's bucket, nil where there is none.
func sub(tx *bolt.Tx, top, sink string) *bolt.Bucket {
	b := tx.Bucket([]byte(top))
	if b == nil {
		return nil
	}
	return b.Bucket([]byte(sink))
}

func putJSON(tx *bolt.Tx, top, sink, id string, v any) error {
	raw, err := json.Marshal(v)
	if err != nil {
		return err
	}
	root, err := tx.CreateBucketIfNotExists([]byte(top))
	if err != nil {
		return err
	}
	b, err := root.CreateBucketIfNotExists([]byte(sink))
	if err != nil {
		return err
	}
	return b.Put([]byte(id), raw)
}
