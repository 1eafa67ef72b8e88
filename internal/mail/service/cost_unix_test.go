//go:build unix

package service

import (
	"context"
	"fmt"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/project"
)

// BenchmarkCrowd reports the CPU time of calls by 200 concurrent callers. On a shared machine CPU
// time is more meaningful than elapsed time.
func BenchmarkCrowd(b *testing.B) {
	s := newStreet(b, mail.Config{})
	c := mail.Caller{Owner: true, Place: project.Location{Home: s.home}, Ancestors: []project.Process{}}
	root := s.path("crowd")
	s.write(s.path("crowd", ".git", "config"), "[core]\n\tbare = false\n")
	s.write(s.path("crowd", ".git", "HEAD"), "ref: refs/heads/main\n")
	names := make([]string, 20)
	for i := range names {
		names[i] = mailtest.Must(s.RegisterAgent(b.Context(), c, agents.RegisterArgs{ProjectKey: root, Program: "p", Model: "m"}))(b).Name
	}
	body := strings.Repeat("the build failed when we ran the tests again ", 12)
	for _, kind := range []struct {
		name string
		call func(ctx context.Context, n int) error
	}{
		{"send", func(ctx context.Context, n int) error {
			_, err := s.SendMessage(ctx, c, messages.SendArgs{
				ProjectKey: root, SenderName: names[n%20], To: []string{names[(n*7+1)%20]}, Subject: "step", Body: body,
				ThreadID: fmt.Sprint("T-", n%200), AckRequired: true,
			})
			return err
		}},
		{"inbox", func(ctx context.Context, n int) error {
			_, err := s.FetchInbox(ctx, c, messages.InboxArgs{ProjectKey: root, AgentName: names[n%20]})
			return err
		}},
		{"reserve", func(ctx context.Context, n int) error {
			_, err := s.FileReservationPaths(ctx, c, reservations.ReserveArgs{
				ProjectKey: root, AgentName: names[n%20], Paths: []string{fmt.Sprintf("src/pkg%d/f%d.go", n%40, n%100), fmt.Sprintf("docs/%d/*.md", n%300)},
			})
			return err
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			ctx, cancel := context.WithTimeout(b.Context(), time.Hour) // server calls have a timeout too
			defer cancel()
			const callers = 200
			before := cpuTime(b)
			var next atomic.Int64
			var all sync.WaitGroup
			for range callers {
				all.Go(func() {
					for n := int(next.Add(1)); n <= b.N && !b.Failed(); n = int(next.Add(1)) {
						if err := kind.call(ctx, n); err != nil {
							b.Error(err)
						}
					}
				})
			}
			all.Wait()
			b.ReportMetric(float64((cpuTime(b)-before).Microseconds())/float64(b.N), "cpu-µs/op")
		})
	}
}

// cpuTime returns the user and system CPU time of this process.
func cpuTime(tb testing.TB) time.Duration {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		tb.Fatal(err)
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano())
}
