// A consume-transform-produce loop that uses franz-go.
//
// Its session sends the offsets and ends the transaction in one call. The options and events are those of the copier
// with librdkafka.
package main

import (
	"context"
	"encoding/json"
	"flag"
	"fmt"
	"math/rand/v2"
	"net"
	"os"
	"sync"
	"time"

	"github.com/twmb/franz-go/pkg/kgo"
	"github.com/twmb/franz-go/pkg/kmsg"
)

const (
	abortProbability = 0.25
	backoff          = 200 * time.Millisecond
	dialLimit        = 20 * time.Second
)

// Reports each stage of a transaction, on one line.
type reporter struct {
	mutex  sync.Mutex
	copied int
}

func (r *reporter) report(stage string) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	line, _ := json.Marshal(map[string]any{"stage": stage, "totalProcessed": r.copied})
	fmt.Println(string(line))
}

func (r *reporter) add(records int) {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	r.copied += records
}

// OnBrokerRead is called after each response.
func (r *reporter) OnBrokerRead(_ kgo.BrokerMetadata, key int16, _ int, _, _ time.Duration, err error) {
	if key == kmsg.TxnOffsetCommit.Int16() && err == nil {
		r.report("OffsetsSent")
	}
}

func main() {
	brokers := flag.String("broker-list", "", "")
	input := flag.String("input-topic", "", "")
	output := flag.String("output-topic", "", "")
	group := flag.String("consumer-group", "", "")
	transactionalID := flag.String("transactional-id", "", "")
	size := flag.Int("transaction-size", 0, "")
	protocol := flag.String("group-protocol", "classic", "")
	flag.Parse()

	progress := &reporter{}
	options := []kgo.Opt{
		kgo.SeedBrokers(*brokers),
		kgo.ConsumerGroup(*group),
		kgo.ConsumeTopics(*input),
		kgo.ConsumeResetOffset(kgo.NewOffset().AtStart()),
		kgo.FetchIsolationLevel(kgo.ReadCommitted()),
		kgo.TransactionalID(*transactionalID),
		kgo.DefaultProduceTopic(*output),
		kgo.RecordPartitioner(kgo.ManualPartitioner()),
		kgo.WithLogger(kgo.BasicLogger(os.Stdout, kgo.LogLevelWarn, nil)),
		kgo.WithHooks(progress),
		kgo.Dialer(dial),
	}
	if *protocol == "consumer" {
		options = append(options, kgo.ServerSideBalancer())
	}
	for {
		// After an error, only a new session knows which offsets are committed.
		fmt.Println(run(options, *size, progress))
		time.Sleep(backoff)
	}
}

// Connects as soon as somebody listens. To a client with one address, a refused connection is the end of a session.
func dial(ctx context.Context, network, address string) (net.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, dialLimit)
	defer cancel()
	for {
		connection, err := (&net.Dialer{}).DialContext(ctx, network, address)
		if err == nil {
			return connection, nil
		}
		select {
		case <-ctx.Done():
			return nil, err
		case <-time.After(backoff):
		}
	}
}

// Copies records until an error.
func run(options []kgo.Opt, size int, progress *reporter) error {
	session, err := kgo.NewGroupTransactSession(options...)
	if err != nil {
		return err
	}
	defer session.CloseAllowingRebalance()
	// Ends what an earlier session has left open: until then, the group's offsets are not stable.
	if _, _, err := session.Client().ProducerID(context.Background()); err != nil {
		return err
	}
	for {
		if records := session.PollRecords(context.Background(), size).Records(); len(records) > 0 {
			if err := transact(session, records, progress); err != nil {
				return err
			}
		}
	}
}

func transact(session *kgo.GroupTransactSession, records []*kgo.Record, progress *reporter) error {
	if err := session.Begin(); err != nil {
		return err
	}
	progress.report("Begun")
	failed := make(chan error, len(records))
	for _, record := range records {
		copied := &kgo.Record{Key: record.Key, Value: record.Value, Partition: record.Partition}
		session.Produce(context.Background(), copied, func(_ *kgo.Record, err error) { failed <- err })
	}
	progress.report("Produced")
	commit := kgo.TransactionEndTry(rand.Float64() >= abortProbability)
	for range records {
		if err := <-failed; err != nil {
			fmt.Println(err)
			commit = kgo.TryAbort
		}
	}
	committed, err := session.End(context.Background(), commit)
	if err != nil {
		return err
	}
	if committed {
		progress.add(len(records))
		progress.report("Committed")
	} else {
		progress.report("Aborted")
	}
	return nil
}
