package service

import (
	"context"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/reservations"
	"cairn/internal/project"
)

// A macro runs several tools in one transaction (mail §5).

// ProjectShort is a project in the results of macros.
type ProjectShort struct {
	ID       int64     `json:"id"`
	Slug     string    `json:"slug"`
	HumanKey string    `json:"human_key"`
	Created  mail.Time `json:"created_at"`

	ProductID string `json:"-"` // the project id that all parts of cairn share
}

// GrantedPaths is GrantedReservations without warnings.
type GrantedPaths struct {
	Granted   []reservations.Grant    `json:"granted"`
	Conflicts []reservations.Conflict `json:"conflicts"`
}

// StartArgs are the arguments of macro_start_session. The Caller contains the session_id.
type StartArgs struct {
	HumanKey        string   `arg:"human_key,required,or=project_key" about:"Absolute path of the repository." lean:"The repository's absolute path."` // or another form of project_key
	Program         string   `arg:"program,required"`
	Model           string   `arg:"model,required"`
	TaskDescription string   `arg:"task_description,default="`
	AgentName       string   `arg:"agent_name" about:"Your earlier name, or the name you want. Omitted: one is generated." lean:""`
	Paths           []string `arg:"file_reservation_paths" about:"What to reserve at once. Paths or globs relative to the repository's root: * and ? stay inside a segment, ** is any depth, a folder covers what is below it." lean:"To reserve."`
	Reason          string   `arg:"file_reservation_reason,default=macro-session" about:"What you are doing there."`
	TTLSeconds      *int64   `arg:"file_reservation_ttl_seconds,default=3600,min=60,max=604800" about:"Seconds until the reservation expires."`
	InboxLimit      *int     `arg:"inbox_limit,default=10,min=1,max=1000"`
}

// Started is the result of macro_start_session. Its lists are never nil.
type Started struct {
	Project      ProjectShort      `json:"project"`
	Agent        agents.Registered `json:"agent"` // with its token if one was issued
	Reservations GrantedPaths      `json:"file_reservations"`
	Inbox        []messages.Item   `json:"inbox"`
}

// MacroStartSession creates or finds a project, registers an agent, reserves files and fetches the
// agent's mail, in one transaction. Paths that other agents hold are reported as conflicts, not as
// an error. A repeated call registers a named agent again and reserves the paths again.
//
// Errors: those of EnsureProject, RegisterAgent, FileReservationPaths and FetchInbox, for the
// parts that the arguments request.
func (o *Mail) MacroStartSession(ctx context.Context, c mail.Caller, a StartArgs) (out Started, err error) {
	p, err := agents.NewRegistration(o.Kernel, c, agents.RegisterArgs{Program: a.Program, Model: a.Model, Name: a.AgentName, TaskDescription: a.TaskDescription})
	if err != nil {
		return out, mail.Fault(err)
	}
	mail.Default(&a.Reason, "macro-session")
	mail.Default(&a.InboxLimit, new(10))
	t, relative, err := reservations.ResolveTarget(ctx, o.Kernel, c, a.HumanKey, a.Paths)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) (err error) {
		out.Project = short(s.Project)
		if out.Agent, err = agents.Register(ctx, s, p, false); err != nil {
			return err
		}
		out.Reservations = GrantedPaths{[]reservations.Grant{}, []reservations.Conflict{}}
		if len(a.Paths) > 0 {
			g, err := reservations.Reserve(ctx, s, reservations.ReserveArgs{Paths: a.Paths, TTLSeconds: a.TTLSeconds, Reason: a.Reason}, reservations.ReservedByMacro, relative)
			if err != nil {
				return err
			}
			out.Reservations = GrantedPaths{g.Granted, g.Conflicts}
		}
		out.Inbox, err = messages.ReadInbox(ctx, s, s.Me, messages.InboxArgs{Limit: a.InboxLimit})
		return err
	})
	if fault.HasCode(err, mail.CodeNotFound) && !project.IsAbsolute(t.Key) {
		_, err = mail.Identify(t.Key, c.Place.Home, "") // the error of a key that is not a valid path
	}
	return out, mail.Fault(err)
}

// CycleArgs are the arguments of macro_file_reservation_cycle.
type CycleArgs struct {
	ProjectKey  string   `arg:"project_key,required"`
	AgentName   string   `arg:"agent_name,required"`
	Paths       []string `arg:"paths,required"`
	TTLSeconds  *int64   `arg:"ttl_seconds,default=3600,min=60,max=604800" about:"Seconds until the reservation expires."`
	Shared      bool     `arg:"exclusive,not" about:"false: others may also reserve the path, but not exclusively."`
	Reason      string   `arg:"reason,default=macro-file_reservation" about:"What you are doing there."`
	AutoRelease bool     `arg:"auto_release" about:"Release what this call was granted."`
}

// Cycled is the result of macro_file_reservation_cycle.
type Cycled struct {
	Reservations GrantedPaths                       `json:"file_reservations"`
	Released     *reservations.ReleasedReservations `json:"released"` // nil without AutoRelease
}

// MacroFileReservationCycle reserves files and, with AutoRelease, releases exactly the
// reservations that it was granted.
//
// Errors: those of FileReservationPaths.
func (o *Mail) MacroFileReservationCycle(ctx context.Context, c mail.Caller, a CycleArgs) (out Cycled, err error) {
	mail.Default(&a.Reason, "macro-file_reservation")
	t, relative, err := reservations.ResolveTarget(ctx, o.Kernel, c, a.ProjectKey, a.Paths)
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteTo(ctx, c, t, func(ctx context.Context, s *mail.CallTx) error {
		if _, err := s.ActAs(ctx, a.AgentName); err != nil {
			return err
		}
		g, err := reservations.Reserve(ctx, s, reservations.ReserveArgs{Paths: a.Paths, TTLSeconds: a.TTLSeconds, Shared: a.Shared, Reason: a.Reason}, reservations.ReservedByMacro, relative)
		if err != nil {
			return err
		}
		out.Reservations = GrantedPaths{g.Granted, g.Conflicts}
		if !a.AutoRelease {
			return nil
		}
		ids := []int64{-1} // never empty, because an empty list selects all
		for _, x := range g.Granted {
			ids = append(ids, x.ID)
		}
		own, err := reservations.Selected(ctx, s, nil, ids, nil)
		if err != nil {
			return err
		}
		released, err := reservations.Release(ctx, s, own, reservations.ReleasedByOwner)
		out.Released = &released
		return err
	})
	return out, err
}
