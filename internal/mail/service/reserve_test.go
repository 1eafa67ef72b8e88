package service

import (
	"bufio"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"runtime"
	"strings"
	"testing"
	"time"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/mailtest"
	"cairn/internal/mail/reservations"
	"cairn/internal/store/storetest"
)

// desk is a yard with a repository and two agents.
type desk struct {
	*yard
	root string
	key  string
}

func newDesk(t testing.TB) *desk {
	t.Helper()
	y := newYard(t, mail.Config{})
	root := y.mkdir(y.path("app"))
	y.write(filepath.Join(root, ".git", "HEAD"), "ref: refs/heads/main\n")
	y.mkdir(filepath.Join(root, ".git", "objects"))
	y.mkdir(filepath.Join(root, ".git", "refs"))
	d := &desk{y, root, root}
	d.register(d.key, "GreenLake")
	d.register(d.key, "BlueDog")
	return d
}

func (d *desk) reserve(agent string, paths ...string) reservations.GrantedReservations {
	d.Helper()
	return d.reserveAs(reservations.ReserveArgs{AgentName: agent, Paths: paths})
}

func (d *desk) reserveAs(a reservations.ReserveArgs) reservations.GrantedReservations {
	d.Helper()
	a.ProjectKey = d.key
	return mailtest.Must(d.FileReservationPaths(d.Context(), mail.Caller{}, a))(d)
}

func (d *desk) refused(what string, a reservations.ReserveArgs, code string, details ...string) {
	d.Helper()
	a.ProjectKey = d.key
	before := d.changes()
	_, err := d.FileReservationPaths(d.Context(), mail.Caller{}, a)
	wantError(d, what, err, code, details...)
	mailtest.Want(d, "changes upon "+what, d.changes()-before, 0)
}

// patterns returns the granted patterns, in order.
func patterns(g reservations.GrantedReservations) string {
	all := []string{}
	for _, x := range g.Granted {
		all = append(all, x.PathPattern)
	}
	return strings.Join(all, " ")
}

// holders formats a call's conflicts as path<holder:pattern.
func holders(g reservations.GrantedReservations) string {
	all := []string{}
	for _, c := range g.Conflicts {
		for _, h := range c.Holders {
			all = append(all, c.Path+"<"+h.Agent+":"+h.PathPattern)
		}
	}
	return strings.Join(all, " ")
}

func i64(n int64) *int64 { return &n }

func TestPathByPathWhatIsFreeIsGrantedAndTheRestReportedWithEveryHolder(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.register(d.key, "RedFox")
	first := d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{"src/**", "./docs//a.md/", `win\b.go`, "docs/a.md"}, Reason: "line\none"})
	mailtest.Want(t, "granted", patterns(first), "src/** docs/a.md win/b.go")
	mailtest.Want(t, "conflicts", holders(first), "")
	mailtest.Want(t, "reason", first.Granted[0].Reason, "line one")
	d.reserveAs(reservations.ReserveArgs{AgentName: "RedFox", Paths: []string{"src/x/*.go"}, Advisory: true})

	second := d.reserve("BlueDog", "src/x/a.go", "free.go", "win", "docs/b.md", " src ")
	mailtest.Want(t, "granted", patterns(second), "free.go docs/b.md")
	mailtest.Want(t, "conflicts", holders(second), "src/x/a.go<GreenLake:src/** src/x/a.go<RedFox:src/x/*.go win<GreenLake:win/b.go src<GreenLake:src/** src<RedFox:src/x/*.go")
	mailtest.WantFields(t, "answer", second, "granted", "conflicts")
	mailtest.WantFields(t, "grant", second.Granted[0], "id", "path_pattern", "exclusive", "reason", "expires_ts")
	mailtest.WantFields(t, "conflict", second.Conflicts[0], "path", "holders")
	mailtest.WantFields(t, "holder", second.Conflicts[0].Holders[0], "agent", "path_pattern", "exclusive", "expires_ts")
	mailtest.Want(t, "own reservations never conflict", holders(d.reserve("GreenLake", "src/**", "src/x/b.go")), "src/**<RedFox:src/x/*.go src/x/b.go<RedFox:src/x/*.go")
	d.rebuilt()
}

func TestSharedReservationsStandBesideEachOtherButNotBesideExclusiveOnes(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{"a"}, Shared: true})
	shared := d.reserveAs(reservations.ReserveArgs{AgentName: "BlueDog", Paths: []string{"a/b"}, Shared: true})
	mailtest.Want(t, "beside a shared one", patterns(shared), "a/b")
	mailtest.Want(t, "it is shared", shared.Granted[0].Exclusive, false)
	mailtest.Want(t, "exclusive over shared", holders(d.reserve("BlueDog", "a/c")), "a/c<GreenLake:a")
	d.reserve("GreenLake", "x")
	mailtest.Want(t, "shared over exclusive", holders(d.reserveAs(reservations.ReserveArgs{AgentName: "BlueDog", Paths: []string{"x"}, Shared: true})), "x<GreenLake:x")
}

func TestAnAdvisoryReservationIsGrantedBesideOthersAndReportsThem(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reserve("GreenLake", "a.go")
	g := d.reserveAs(reservations.ReserveArgs{AgentName: "BlueDog", Paths: []string{"a.go"}, Advisory: true})
	mailtest.Want(t, "granted", patterns(g), "a.go")
	mailtest.Want(t, "reported", holders(g), "a.go<GreenLake:a.go")
	mailtest.Want(t, "it counts as a holder", holders(d.reserve("GreenLake", "*.go")), "*.go<BlueDog:a.go")
}

func TestLivesAreClampedToAMinuteAndSevenDays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	for seconds, clamped := range map[int64]time.Duration{
		-5: time.Minute, 0: time.Minute, 59: time.Minute, 61: 61 * time.Second, 1e12: 7 * 24 * time.Hour, 1 << 62: 7 * 24 * time.Hour,
	} {
		path := fmt.Sprint("f", seconds)
		g := d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{path}, TTLSeconds: i64(seconds)})
		var created mail.Time
		d.query(&created, `SELECT created_ts FROM mail_reservations WHERE path_pattern = ?`, path)
		mailtest.Want(t, path, time.Duration(g.Granted[0].Expires-created), clamped)
	}
	g := d.reserve("GreenLake", "usual")
	var created mail.Time
	d.query(&created, `SELECT created_ts FROM mail_reservations WHERE path_pattern = 'usual'`)
	mailtest.Want(t, "usual", time.Duration(g.Granted[0].Expires-created), time.Hour)
}

func TestBadPathsAreRefusedAndNothingOfTheCallIsStored(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	many := make([]string, 201)
	for i := range many {
		many[i] = fmt.Sprint("f", i)
	}
	for what, c := range map[string]struct {
		paths []string
		code  string
		text  string
	}{
		"none":            {nil, mail.CodeEmptyPaths, "paths list cannot be empty"},
		"an empty one":    {[]string{"a", ""}, mail.CodePath, `"field":"paths"`},
		"blanks":          {[]string{" \t"}, mail.CodePath, ""},
		"..":              {[]string{"a", "../b"}, mail.CodePath, `"provided":"../b"`},
		"outside":         {[]string{filepath.ToSlash(d.home)}, mail.CodePath, "outside"},
		"a NUL":           {[]string{"a\x00b"}, mail.CodePath, ""},
		"broken UTF-8":    {[]string{"a\xff"}, mail.CodePath, ""},
		"1,025 bytes":     {[]string{strings.Repeat("a", 1025)}, mail.CodePath, ""},
		"65 segments":     {[]string{strings.Repeat("a/", 64) + "a"}, mail.CodePath, ""},
		"201":             {many, mail.CodeInvalid, "200"},
		"a secret":        {[]string{"keys/AKIA" + "QQQQ" + strings.Repeat("Z", 3) + "7HJKLMNPB.txt"}, mail.CodePath, "secret"},
		"of another repo": {[]string{filepath.Join(filepath.Dir(d.root), "other", "x")}, mail.CodePath, "outside"},
	} {
		d.refused(what, reservations.ReserveArgs{AgentName: "GreenLake", Paths: c.paths}, c.code, c.text)
	}
	mailtest.Want(t, "200 paths", len(d.reserve("GreenLake", many[:200]...).Granted), 200)
	d.refused("an unknown agent", reservations.ReserveArgs{AgentName: "RedFox", Paths: []string{"z"}}, mail.CodeNotFound, "register_agent")
	d.refused("bad text", reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{"z"}, Reason: "\x00"}, mail.CodeInvalid)
	start := time.Now()
	d.reserve("GreenLake", strings.Repeat("*a", 150)+"/x")
	d.reserve("BlueDog", strings.Repeat("*a", 149)+"*b/x")
	if took := time.Since(start); took > 5*time.Second {
		t.Errorf("300 stars took %v", took)
	}
	full := d.with(mail.Config{DiskLevel: func() mail.DiskLevel { return mail.DiskFatal }})
	_, err := full.FileReservationPaths(t.Context(), mail.Caller{}, reservations.ReserveArgs{ProjectKey: d.key, AgentName: "GreenLake", Paths: []string{"q"}})
	wantError(t, "a full disk", err, mail.CodeDiskFull)
	mailtest.Must(full.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: "GreenLake"}))(t)
}

func TestAbsolutePathsAreTakenFromTheWorktreeThatTheyAreInAndWideOnesAreNamed(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	root := y.repo("app")
	y.git(root, "worktree", "add", "-q", "-b", "side", y.path("side"))
	y.register(root, "GreenLake")
	y.register(root, "BlueDog")
	d := &desk{y, root, root}
	slug := y.ensure(root).Slug
	g := d.reserve("GreenLake", filepath.Join(root, "a.go"), filepath.Join(y.path("side"), "src", "**"))
	mailtest.Want(t, "granted", patterns(g), "a.go src/**")
	mailtest.Want(t, "warnings", len(g.Warnings), 2)
	d.key = slug // the key is no longer the project's path
	g = d.reserve("BlueDog", filepath.Join(y.path("side"), "a.go"), filepath.Join(root, "src", "x.go"))
	mailtest.Want(t, "worktrees do not matter", holders(g), filepath.Join(y.path("side"), "a.go")+"<GreenLake:a.go "+filepath.Join(root, "src", "x.go")+"<GreenLake:src/**")
	mailtest.Must(y.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: slug, AgentName: "GreenLake"}))(t)
	for _, wide := range []string{"*", "**", "**/*", "**/**", ".", root} {
		g := d.reserve("GreenLake", wide)
		if len(g.Granted) != 1 || len(g.Warnings) != 1 {
			t.Errorf("%s: %+v", wide, g)
		}
	}
	folder := y.mkdir(y.path("plain", "sub"))
	y.register(y.path("plain"), "RedFox")
	link := y.path("link")
	if err := os.Symlink(y.path("plain"), link); err != nil && runtime.GOOS != "windows" {
		t.Fatal(err)
	}
	d.key = y.path("plain")
	mailtest.Want(t, "in a folder", patterns(d.reserve("RedFox", filepath.Join(folder, "*.go"), filepath.Join(link, "x"), d.key+"/y")), "sub/*.go x y")
	d.refused("beside it", reservations.ReserveArgs{AgentName: "RedFox", Paths: []string{y.path("plainer", "x")}}, mail.CodePath)
}

func TestCaseCountsUnlessTheRepositoryFoldsIt(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reserve("GreenLake", "Src/A.go", "tool://Build")
	mailtest.Want(t, "case counts", patterns(d.reserve("BlueDog", "src/a.go")), "src/a.go")
	d.write(filepath.Join(d.root, ".git", "config"), "[core]\n\tignorecase = true\n")
	mailtest.Want(t, "it does not", holders(d.reserve("BlueDog", "SRC/*.GO")), "SRC/*.GO<GreenLake:Src/A.go")
	mailtest.Want(t, "names are exact", patterns(d.reserve("BlueDog", "tool://build", "tool:")), "tool://build tool:")
	mailtest.Want(t, "and meet themselves", holders(d.reserve("BlueDog", "tool://Build")), "tool://Build<GreenLake:tool://Build")
}

func TestWhatHasExpiredBlocksNothingAndAClockSetBackRevivesNothing(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{"a"}, TTLSeconds: i64(60)})
	mailtest.Want(t, "active", holders(d.reserve("BlueDog", "a")), "a<GreenLake:a")
	d.clock.Move(time.Minute)
	mailtest.Want(t, "expired", patterns(d.reserve("BlueDog", "a")), "a")
	d.clock.Move(-time.Hour)
	mailtest.Want(t, "an hour back", holders(d.reserve("GreenLake", "a")), "a<BlueDog:a")
	mailtest.Want(t, "nothing is revived", patterns(d.reserve("BlueDog", "a")), "a")
	var ok bool
	d.query(&ok, `SELECT max(expires_ts) > (SELECT max(created_ts) FROM mail_reservations) AND
min(created_ts) = (SELECT created_ts FROM mail_reservations WHERE id = 1) FROM mail_reservations`)
	mailtest.Want(t, "times grow", ok, true)
}

func TestReleasingEndsWhatIsNamedOnceAndNothingOfOthers(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	release := func(agent string, paths []string, ids ...int64) int {
		t.Helper()
		out := mailtest.Must(d.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: agent, Paths: paths, IDs: ids}))(t)
		mailtest.WantFields(t, "answer", out, "released", "released_at")
		return out.Released
	}
	g := d.reserve("GreenLake", "a", "b", "c", "d")
	mailtest.Want(t, "by another", release("BlueDog", nil, g.Granted[0].ID), 0)
	mailtest.Want(t, "by path and number, each once", release("GreenLake", []string{"./a/", "x"}, g.Granted[0].ID, g.Granted[1].ID, 999, -1), 2)
	mailtest.Want(t, "again", release("GreenLake", []string{"a"}, g.Granted[1].ID), 0)
	mailtest.Want(t, "a path that does not equal any", release("GreenLake", []string{"**"}), 0)
	mailtest.Want(t, "all", release("GreenLake", []string{}), 2)
	mailtest.Want(t, "all again", release("GreenLake", nil), 0)
	mailtest.Want(t, "free", patterns(d.reserve("BlueDog", "a", "b", "c", "d")), "a b c d")
	var kinds string
	d.query(&kinds, `SELECT group_concat(DISTINCT ifnull(release_kind, '-')) FROM mail_reservations WHERE agent_id = 1`)
	mailtest.Want(t, "kind", kinds, "owner")
	_, err := d.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: "GreenLake", Paths: []string{".."}, IDs: nil})
	wantError(t, "a bad path", err, mail.CodePath)
	d.rebuilt()
}

func TestRenewingExtendsFromTheEndNeverShortensAndIsCutToSevenDays(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	renew := func(a reservations.RenewArgs) reservations.Renewed {
		t.Helper()
		a.ProjectKey, a.AgentName = d.key, "GreenLake"
		out := mailtest.Must(d.RenewFileReservations(t.Context(), mail.Caller{}, a))(t)
		mailtest.WantFields(t, "answer", out, "renewed", "file_reservations")
		return out
	}
	g := d.reserve("GreenLake", "a", "b")
	end := g.Granted[0].Expires
	out := renew(reservations.RenewArgs{Paths: []string{"a"}})
	mailtest.Want(t, "count", out.Renewed, 1)
	mailtest.Want(t, "usual", out.Reservations[0], reservations.Renewal{ID: g.Granted[0].ID, PathPattern: "a", Old: end, New: end + 1800e9})
	out = renew(reservations.RenewArgs{IDs: []int64{g.Granted[0].ID}, ExtendSeconds: i64(-7)})
	mailtest.Want(t, "at least a minute", out.Reservations[0].New, end+1860e9)
	out = renew(reservations.RenewArgs{Paths: []string{"a"}, Until: (end + 60e9).String()})
	mailtest.Want(t, "never shorter", out.Reservations[0].New, end+1860e9)
	key := reservations.RenewArgs{Paths: []string{"b"}, IdempotencyKey: "k1"}
	first, again := renew(key), renew(key)
	mailtest.Want(t, "repeated under a key", fmt.Sprint(again), fmt.Sprint(first))
	until := reservations.RenewArgs{Paths: []string{"b"}, Until: (end + 7200e9).String()}
	mailtest.Want(t, "until", renew(until).Reservations[0].New, end+7200e9)
	changes := d.changes()
	mailtest.Want(t, "until again", renew(until).Reservations[0].New, end+7200e9)
	mailtest.Want(t, "writes nothing", d.changes(), changes)
	out = renew(reservations.RenewArgs{Paths: []string{"b"}, ExtendSeconds: i64(1 << 60)})
	var active mail.Time
	d.query(&active, `SELECT max(last_active_ts) FROM mail_agents`)
	mailtest.Want(t, "seven days from now", time.Duration(out.Reservations[0].New-active), 7*24*time.Hour)
	mailtest.Want(t, "all", renew(reservations.RenewArgs{}).Renewed, 2)
	var renewals int
	d.query(&renewals, `SELECT renewals FROM mail_reservations WHERE path_pattern = 'a'`)
	mailtest.Want(t, "renewals", renewals, 3)
	_, err := d.RenewFileReservations(t.Context(), mail.Caller{}, reservations.RenewArgs{ProjectKey: d.key, AgentName: "GreenLake", Until: "soon"})
	wantError(t, "no time", err, mail.CodeTimestamp, "Invalid until_ts format: 'soon'.")
	mailtest.Want(t, "of another", mailtest.Must(d.RenewFileReservations(t.Context(), mail.Caller{}, reservations.RenewArgs{ProjectKey: d.key, AgentName: "BlueDog", IDs: []int64{1, 2}}))(t).Renewed, 0)
	d.rebuilt()
}

func TestWhatHasExpiredIsRenewedOnlyIfNobodyHoldsItNow(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	renew := func(paths ...string) string {
		t.Helper()
		out := mailtest.Must(d.RenewFileReservations(t.Context(), mail.Caller{}, reservations.RenewArgs{ProjectKey: d.key, AgentName: "GreenLake", Paths: paths}))(t)
		return fmt.Sprint(out.Renewed)
	}
	d.reserveAs(reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{"a/b", "c"}, TTLSeconds: i64(60)})
	d.clock.Move(2 * time.Minute)
	d.reserve("BlueDog", "a")
	mailtest.Want(t, "held by another, and free", renew("a/b", "c"), "1")
	mailtest.Must(d.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: "GreenLake"}))(t)
	mailtest.Want(t, "released is never revived", renew("c"), "0")
	mailtest.Must(d.ReleaseFileReservations(t.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: "BlueDog"}))(t)
	mailtest.Want(t, "free again", renew("a/b"), "1")
	mailtest.Want(t, "it holds", holders(d.reserve("BlueDog", "a")), "a<GreenLake:a/b")
}

func TestAReservationWithAnIdempotencyKeyIsMadeOnce(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	a := reservations.ReserveArgs{AgentName: "GreenLake", Paths: []string{"a", "."}, IdempotencyKey: "k:1"}
	first := d.reserveAs(a)
	changes := d.changes()
	a.Paths = []string{"./a", "."}
	again := d.reserveAs(a)
	same := func(v any) string { b, _ := json.Marshal(v); return string(b) }
	mailtest.Want(t, "answer", same(again), same(first))
	mailtest.Want(t, "changes", d.changes(), changes)
	a.Paths = []string{"b"}
	d.refused("another path", a, mail.CodeIdempotency, "first_used_ts")
	a.IdempotencyKey = ""
	mailtest.Want(t, "without it", d.reserveAs(a).Granted[0].ID, first.Granted[1].ID+1)
}

// reserveOnce runs in a child process and reserves a path when it is signalled. Half of the
// processes reserve a folder, the others a file in it.
func reserveOnce(ctx context.Context, o *Mail, name string) error {
	in := bufio.NewReader(os.Stdin)
	storetest.Tell("ready")
	storetest.Hear(in)
	path, agent, _ := strings.Cut(name, "=")
	out, err := o.FileReservationPaths(ctx, mail.Caller{}, reservations.ReserveArgs{ProjectKey: childProject, AgentName: agent, Paths: []string{path}})
	if err == nil {
		storetest.Tell(fmt.Sprint(len(out.Granted), " granted ", len(out.Conflicts), " in conflict"))
	}
	return err
}

func TestOfProcessesThatReserveOverlappingPathsAtOnceExactlyOneIsGranted(t *testing.T) {
	t.Parallel()
	y := newYard(t, mail.Config{})
	names := []string{"GreenLake", "BlueDog", "RedFox", "GrayOwl"}
	for _, name := range names {
		y.register(childProject, name)
	}
	for round := range 3 {
		var all []*storetest.Process
		for i, name := range names {
			p := child(t, y, "reserve", fmt.Sprintf("r%d/%s=%s", round, []string{"**", "b.go"}[i%2], name))
			p.Expect(t, "ready")
			all = append(all, p)
		}
		for _, p := range all {
			p.Send("go")
		}
		got := map[string]int{}
		for _, p := range all {
			lines, err := p.Wait(t)
			if err != nil || len(lines) != 1 {
				t.Fatalf("%q, %v", lines, err)
			}
			got[lines[0]]++
		}
		mailtest.Want(t, fmt.Sprint("round ", round), fmt.Sprint(got), "map[0 granted 1 in conflict:3 1 granted 0 in conflict:1]")
	}
	y.rebuilt()
}

func TestGoroutinesThatReserveOverlappingPathsAtOnceGetOneGrant(t *testing.T) {
	t.Parallel()
	d := newDesk(t)
	const n = 20
	for i := range n {
		d.register(d.key, "GreenFox"+fmt.Sprint(i))
	}
	var names []string
	for _, a := range mailtest.Must(d.ListAgents(t.Context(), mail.Caller{}, agents.ListAgentsArgs{ProjectKey: d.key}))(t) {
		names = append(names, a.Name)
	}
	results := make(chan reservations.GrantedReservations, len(names))
	errs := make(chan error, len(names))
	for i, name := range names {
		go func() {
			out, err := d.FileReservationPaths(t.Context(), mail.Caller{}, reservations.ReserveArgs{ProjectKey: d.key, AgentName: name, Paths: []string{fmt.Sprintf("a/%d*/**", i%3), "a/*/x"}})
			results <- out
			errs <- err
		}()
	}
	granted := 0
	for range names {
		if err := <-errs; err != nil {
			t.Error(fault.As(err))
		}
		for _, g := range (<-results).Granted {
			if g.PathPattern == "a/*/x" {
				granted++
			}
		}
	}
	mailtest.Want(t, "granted", granted, 1)
	d.rebuilt()
}

// BenchmarkReserve reports the cost of reserving 20 paths with 10,000 active reservations (mail
// §11: at most 10 ms, p99).
func BenchmarkReserve(b *testing.B) {
	d := newDesk(b)
	d.crowd(10_000)
	var all []time.Duration
	for i := 0; b.Loop(); i++ {
		paths := make([]string, 20)
		for j := range paths {
			paths[j] = fmt.Sprintf("new/pkg%d/f%d.go", i, j)
		}
		paths[7], paths[13] = fmt.Sprintf("src/pkg%d/**/*.go", i%100), fmt.Sprintf("src/pkg%d/f7.go", i%100)
		start := time.Now()
		d.reserve("GreenLake", paths...)
		all = append(all, time.Since(start))
		b.StopTimer()
		mailtest.Must(d.ReleaseFileReservations(b.Context(), mail.Caller{}, reservations.ReleaseArgs{ProjectKey: d.key, AgentName: "GreenLake"}))(b)
		b.StartTimer()
	}
	report(b, all)
}
