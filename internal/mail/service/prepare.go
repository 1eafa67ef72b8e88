package service

import (
	"context"
	"strings"

	"cairn/internal/mail"
	"cairn/internal/mail/agents"
	"cairn/internal/mail/messages"
)

// PrepareThreadArgs are the arguments of macro_prepare_thread.
type PrepareThreadArgs struct {
	ProjectKey      string `arg:"project_key,required"`
	ThreadID        string `arg:"thread_id,required" about:"The thread to join."`
	Program         string `arg:"program,required"`
	Model           string `arg:"model,required"`
	AgentName       string `arg:"agent_name" about:"Your earlier name, or the name you want. Omitted: one is generated."`
	TaskDescription string `arg:"task_description,default="` // of an agent that the call registers
	NoRegister      bool   `arg:"register_if_missing,not" about:"Register the agent if it does not exist."`
	NoExamples      bool   `arg:"include_examples,not" about:"Include the first three messages of the thread."`
	InboxLimit      *int   `arg:"inbox_limit,default=10,min=1,max=1000"`
	IncludeBodies   bool   `arg:"include_inbox_bodies" about:"Include the bodies."`
}

// PreparedThread is the result of macro_prepare_thread.
type PreparedThread struct {
	Project ProjectShort     `json:"project"`
	Agent   agents.AgentInfo `json:"agent"`
	Thread  ThreadState      `json:"thread"`
	Inbox   []messages.Item  `json:"inbox"`
}

// ThreadState is the state of a thread, for an agent that continues it.
type ThreadState struct {
	ThreadID string             `json:"thread_id"`
	Summary  messages.Summary   `json:"summary"`
	Examples []messages.Example `json:"examples"` // the first three messages, or empty
	Total    int                `json:"total_messages"`
}

// MacroPrepareThread prepares an agent to continue a thread, which may be new. It registers the
// agent if it does not exist, and returns the thread's summary and the agent's inbox.
//
// Errors: those of RegisterAgent, of acting as the agent and of FetchInbox; INVALID_THREAD_ID;
// MISSING_FIELD without a thread.
func (o *Mail) MacroPrepareThread(ctx context.Context, c mail.Caller, a PrepareThreadArgs) (out PreparedThread, err error) {
	id, err := mail.ThreadID(a.ThreadID)
	if err == nil && id == nil {
		err = mail.MissingField("thread_id", "name the thread to prepare")
	}
	if err != nil {
		return out, mail.Fault(err)
	}
	n, err := mail.CheckLimit(a.InboxLimit, 10)
	if err != nil {
		return out, mail.Fault(err)
	}
	p, err := agents.NewRegistration(o.Kernel, c, agents.RegisterArgs{Name: a.AgentName, Program: a.Program, Model: a.Model, TaskDescription: a.TaskDescription})
	if err != nil {
		return out, mail.Fault(err)
	}
	err = o.WriteIn(ctx, c, a.ProjectKey, func(ctx context.Context, s *mail.CallTx) error {
		me, err := presentOr(ctx, s, a.AgentName, p, a.NoRegister)
		if err != nil {
			return err
		}
		t, err := messages.ReadThread(ctx, s, *id, messages.PerSummary, !a.NoExamples)
		if err != nil {
			return err
		}
		out = PreparedThread{short(s.Project), agents.Info(me), ThreadState{*id, t.Summary, *t.Examples, t.Summary.TotalMessages}, nil}
		out.Inbox, err = messages.ReadInbox(ctx, s, me, messages.InboxArgs{Limit: &n, IncludeBodies: a.IncludeBodies})
		return err
	})
	return out, err
}

// presentOr returns the agent with a name. It registers a missing agent, unless only is set.
func presentOr(ctx context.Context, s *mail.CallTx, name string, p agents.Registration, only bool) (*mail.Agent, error) {
	name = strings.TrimSpace(name)
	if name != "" {
		known, err := mail.AgentByName(ctx, s.Tx, s.Project.ID, name)
		if err != nil {
			return nil, err
		}
		if known != nil || only {
			return s.ActAs(ctx, name)
		}
	} else if only {
		return nil, mail.MissingField("agent_name", "name the agent, or let it be registered")
	}
	if _, err := agents.Register(ctx, s, p, false); err != nil {
		return nil, err
	}
	return s.Me, nil
}
