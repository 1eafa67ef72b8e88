package settings

import (
	"cmp"
	"errors"
	"fmt"
	"path/filepath"
	"time"

	"github.com/bmatcuk/doublestar/v4"

	"cairn/internal/cputime"
	"cairn/internal/fault"
	"cairn/internal/harness/harnesses"
	"cairn/internal/observation"
	"cairn/internal/observation/assist"
	"cairn/internal/redact"
	"cairn/internal/tomlfile"
)

// Code is the code of an error in the settings. Nothing is recorded then, because the
// settings may contain redaction patterns or exclusions.
const Code = tomlfile.Code

// Settings are the settings of a process. Its own fields are the keys of observations,
// which a repository's .cairn.toml can make stricter.
type Settings struct {
	Filter struct {
		Level         string   `toml:"level"`
		ExtraPatterns []string `toml:"extra_patterns"`
		Allow         []string `toml:"allow"`
	} `toml:"filter"`
	Dedup struct {
		WindowSeconds *int `toml:"window_seconds"`
	} `toml:"dedup"`
	Capture struct {
		Exclude []string               `toml:"exclude"`
		Off     bool                   `toml:"off"`
		Output  observation.OutputMode `toml:"output"`
	} `toml:"capture"`
	Context Context `toml:"context"`
	Assist  struct {
		Off   bool `toml:"off"`
		MaxMS *int `toml:"max_ms"` // CPU time per event; only in the user's file

		MaxWallMS *int `toml:"max_wall_ms"` // clock time per event; only in the user's file
	} `toml:"assist"`
	Retention   Retention `toml:"retention"`
	MaxDBSizeMB int64     `toml:"max_db_size_mb"`

	KeyFile string  `toml:"-"` // the user's store.key_file, unchanged
	Records Records `toml:"-"`
	Work    Work    `toml:"-"`
}

// Records are the keys of records, only in the user's file.
type Records struct {
	StaleAfter *int `toml:"stale_after"` // ticks
	MaxDepth   *int `toml:"max_depth"`   // levels
}

// maxRecordDepth is the upper limit of records.max_depth.
const maxRecordDepth = 256

func (s *Records) validate(path string) error {
	if n := s.StaleAfter; n != nil && *n < 1 {
		return keyFault(nil, path, "records.stale_after", "records.stale_after must be 1 or more")
	}
	if n := s.MaxDepth; n != nil && (*n < 1 || *n > maxRecordDepth) {
		return keyFault(nil, path, "records.max_depth", fmt.Sprintf("records.max_depth must be from 1 to %d", maxRecordDepth))
	}
	return nil
}

// Context are the keys of the context of a session.
type Context struct {
	LocalLimit           *int  `toml:"local_limit"`
	CrossLimit           *int  `toml:"cross_limit"`
	MaxTokens            int   `toml:"max_tokens"`
	SuppressCrossProject bool  `toml:"suppress_cross_project"`
	Fold                 *bool `toml:"fold"` // default true
	Off                  bool  `toml:"off"`
}

// userFile is config.toml. The keys of a part are under its name, common keys are under
// store. key_file may also be at the top.
type userFile struct {
	Observations Settings     `toml:"observations"`
	Records      Records      `toml:"records"`
	Mail         Mail         `toml:"mail"`
	Memory       Memory       `toml:"memory"`
	Hub          Hub          `toml:"hub"`
	Reservations Reservations `toml:"reservations"`
	Guard        Guard        `toml:"guard"`
	MCP          MCP          `toml:"mcp"`
	HTTP         HTTP         `toml:"http"`
	Archive      Archive      `toml:"archive"`
	Disk         Disk         `toml:"disk"`
	DB           DB           `toml:"db"`
	KeyFile      string       `toml:"key_file"`
	Store        struct {
		KeyFile string `toml:"key_file"`
	} `toml:"store"`
}

// Check returns the first invalid key of a part that this package does not know, nil if
// there is none.
type Check func(*Work) *KeyError

// Read reads the user's config.toml, and the .cairn.toml at a repository's root unless root
// is "". Missing files mean defaults. check may be nil. Errors: Code (Invalid), with the
// line of the key.
func Read(dataDir, root string, check Check) (Settings, error) {
	var user userFile
	if err := tomlfile.Read(filepath.Join(dataDir, "config.toml"), &user); err != nil {
		return Settings{}, err
	}
	s := user.Observations
	s.KeyFile = cmp.Or(user.Store.KeyFile, user.KeyFile)
	s.Records = user.Records
	s.Work = Work{
		user.Mail, user.Reservations, user.Guard, user.MCP, user.HTTP, user.Archive, user.Disk, user.DB, user.Memory, user.Hub,
	}
	userPath := filepath.Join(dataDir, "config.toml")
	if err := s.Records.validate(userPath); err != nil {
		return s, err
	}
	if wrong := s.Work.check(check); wrong != nil {
		return s, keyFault(nil, userPath, wrong.Key, wrong.Error())
	}
	if err := s.validate(userPath); err != nil || root == "" {
		return s, err
	}
	var repo Settings
	path := filepath.Join(root, ".cairn.toml")
	if err := tomlfile.Read(path, &repo); err != nil {
		return Settings{}, err
	}
	s.tighten(repo)
	return s, s.validate(path)
}

// Unknown lists the keys of the user's config.toml that cairn does not know.
func Unknown(dataDir string) ([]tomlfile.UnknownKey, error) {
	return tomlfile.Unknown(filepath.Join(dataDir, "config.toml"), &userFile{})
}

// keyFault returns the error for a key of a settings file; key may be "". It reads the
// file again to find the line of the key.
func keyFault(err error, path, key, why string) error {
	if line := tomlfile.LineOf(path, key); line > 0 {
		why = fmt.Sprintf("line %d: %s", line, why)
	}
	return tomlfile.Fault(err, path, why)
}

// tighten applies the settings of a repository: more patterns, more exclusions, a smaller
// context. A repository cannot weaken a setting.
func (s *Settings) tighten(repo Settings) {
	s.Filter.ExtraPatterns = append(s.Filter.ExtraPatterns, repo.Filter.ExtraPatterns...)
	s.Capture.Exclude = append(s.Capture.Exclude, repo.Capture.Exclude...)
	s.Capture.Off = s.Capture.Off || repo.Capture.Off
	if repo.Capture.Output.IsValid() { // validate rejects other values
		s.Capture.Output = s.Capture.Output.Stricter(repo.Capture.Output)
	} else {
		s.Capture.Output = repo.Capture.Output
	}
	c, r := &s.Context, repo.Context
	usual, recovery := observation.DefaultLimits(false), observation.DefaultLimits(true)
	c.LocalLimit = smaller(c.LocalLimit, r.LocalLimit, *usual.Local, *recovery.Local)
	c.CrossLimit = smaller(c.CrossLimit, r.CrossLimit, *usual.Cross, *recovery.Cross)
	if r.MaxTokens > 0 {
		var own *int
		if c.MaxTokens > 0 {
			own = &c.MaxTokens
		}
		if m := smaller(own, &r.MaxTokens, usual.MaxTokens, recovery.MaxTokens); m != nil {
			c.MaxTokens = *m
		}
	}
	c.SuppressCrossProject = c.SuppressCrossProject || r.SuppressCrossProject
	if r.Fold != nil && *r.Fold {
		c.Fold = r.Fold
	}
	c.Off = c.Off || r.Off
	s.Assist.Off = s.Assist.Off || repo.Assist.Off
}

// smaller returns the smaller of the user's and the repository's limit. Without a user's limit
// it uses the default: recovery for a session that recovers, else usual. A configured limit is
// never raised to recovery.
func smaller(user, repo *int, usual, recovery int) *int {
	switch {
	case repo == nil:
		return user
	case user != nil:
		return new(min(*user, *repo))
	case *repo >= recovery:
		return nil
	}
	return new(min(*repo, usual))
}

func (s *Settings) validate(path string) error {
	for _, glob := range s.Capture.Exclude {
		if !doublestar.ValidatePattern(filepath.ToSlash(glob)) {
			return keyFault(doublestar.ErrBadPattern, path, "capture.exclude", fmt.Sprintf("capture.exclude: %q is not a valid glob", glob))
		}
	}
	if !s.Capture.Output.IsValid() {
		return keyFault(nil, path, "capture.output", `capture.output must be "digest", "errors" or "off"`)
	}
	if w := s.Dedup.WindowSeconds; w != nil && *w < 0 {
		return keyFault(nil, path, "dedup.window_seconds", "dedup.window_seconds must not be negative")
	}
	if ms := s.Assist.MaxMS; ms != nil && *ms < 0 {
		return keyFault(nil, path, "assist.max_ms", "assist.max_ms must not be negative")
	}
	if ms := s.Assist.MaxWallMS; ms != nil && *ms < 1 {
		return keyFault(nil, path, "assist.max_wall_ms", "assist.max_wall_ms must be 1 or more")
	}
	if s.Context.MaxTokens < 0 {
		return keyFault(nil, path, "context.max_tokens", "context.max_tokens must not be negative")
	}
	if s.MaxDBSizeMB < 0 {
		return keyFault(nil, path, "max_db_size_mb", "max_db_size_mb must not be negative")
	}
	_, err := s.Retention.retention()
	if err == nil {
		_, err = s.Retention.outputDays()
	}
	if wrong, ok := errors.AsType[KeyError](err); ok {
		return keyFault(nil, path, wrong.Key, wrong.Error())
	}
	return err
}

// KeyError describes an invalid key of the settings.
type KeyError struct{ Key, Why string }

func (e KeyError) Error() string { return e.Key + " " + e.Why }

// FilterFault returns the error for an invalid redaction filter, with its file: the user's
// settings, or those at a repository's root.
func FilterFault(err error, dataDir, root string) error {
	key := "filter.extra_patterns"
	if fault.HasCode(err, "invalid_level") {
		key = "filter.level"
	}
	path := filepath.Join(dataDir, "config.toml")
	var repo Settings
	if root == "" || tomlfile.Read(filepath.Join(root, ".cairn.toml"), &repo) != nil {
		return keyFault(err, path, key, fault.As(err).Message)
	}
	if user, uerr := Read(dataDir, "", nil); uerr == nil {
		if _, uerr = user.filter(); uerr == nil {
			path = filepath.Join(root, ".cairn.toml")
			_, err = repo.filter()
		}
	}
	return keyFault(err, path, key, fault.As(err).Message)
}

func (s *Settings) filter() (*redact.Filter, error) {
	return redact.New(redact.Options{
		Level: redact.Level(s.Filter.Level), ExtraPatterns: s.Filter.ExtraPatterns, Allow: s.Filter.Allow,
	})
}

// Excludes reports whether a working directory is excluded from recording. The globs match
// the folder itself and everything below it.
func (s *Settings) Excludes(cwd string) bool {
	if s.Capture.Off {
		return true
	}
	dir := filepath.ToSlash(cwd)
	for _, glob := range s.Capture.Exclude {
		glob = filepath.ToSlash(glob)
		for _, g := range []string{glob, glob + "/**"} {
			if ok, err := doublestar.Match(g, dir); ok && err == nil {
				return true
			}
		}
	}
	return false
}

// ObservationConfig returns the settings of the observations part. Errors: those of the
// redaction filter; see FilterFault.
func (s *Settings) ObservationConfig(home string) (observation.Config, error) {
	filter, err := s.filter()
	if err != nil {
		return observation.Config{}, err
	}
	retention, err := s.Retention.retention()
	if err != nil {
		return observation.Config{}, err
	}
	outputDays, err := s.Retention.outputDays()
	if err != nil {
		return observation.Config{}, err
	}
	window := observation.DefaultDedupWindow
	if w := s.Dedup.WindowSeconds; w != nil {
		window = time.Duration(*w) * time.Second
	}
	help := assist.DefaultTime
	if ms := s.Assist.MaxMS; ms != nil {
		help = time.Duration(*ms) * time.Millisecond
	}
	if s.Assist.Off {
		help = 0
	}
	wall := max(assist.DefaultWall, help)
	if ms := s.Assist.MaxWallMS; ms != nil {
		wall = time.Duration(*ms) * time.Millisecond
	}
	return observation.Config{
		Filter: filter, Home: home, DedupWindow: window, AssistTime: help, AssistWall: wall, Worked: cputime.Spent,
		Retention: retention, MaxBytes: s.MaxDBSizeMB << 20, Output: s.Capture.Output, OutputDays: outputDays, Unnamed: harnesses.UnnamedHarnesses(),
		Limits: observation.Limits{
			Local: s.Context.LocalLimit, Cross: s.Context.CrossLimit, MaxTokens: s.Context.MaxTokens,
			SuppressCross: s.Context.SuppressCrossProject, Plain: s.Context.Fold != nil && !*s.Context.Fold, Off: s.Context.Off,
		},
	}, nil
}
