package web

import (
	"context"
	"crypto/rand"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strconv"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/messages"
	"cairn/internal/mail/service"
)

// draft is the user's input in the form.
type draft struct {
	Key     string
	Project service.ProjectShort
	Agents  []service.AgentSummary
	To      []string
	Subject string
	Body    string
	Thread  string
	Ack     bool
	Once    string // id that makes sending the same form twice idempotent
	Problem string
	Hint    string
}

// Chosen reports whether an agent is a recipient.
func (d draft) Chosen(name string) bool { return slices.Contains(d.To, name) }

// overseer shows the form to write as HumanOverseer, or sends the message (mail §4).
func (s *Site) overseer(r *http.Request, v Visitor, at place) (Response, error) {
	desk, err := s.desk(r.Context(), at, 0, 1)
	if err != nil {
		return Response{}, err
	}
	d := draft{Key: at.key, Project: desk.Project, Agents: desk.Agents, Once: rand.Text()}
	if r.Method != http.MethodPost {
		q := r.URL.Query()
		d.To, d.Thread = q["to"], q.Get("thread")
		return s.form("overseer", "Write to agents", v, d)
	}
	d.read(r)
	id, err := s.send(r.Context(), d)
	if err == nil {
		return Response{To: under(d.Key, "mail", id)}, nil
	}
	f, ok := errors.AsType[*fault.Error](err)
	if !ok {
		return Response{}, err
	}
	d.Problem, d.Hint = f.Message, f.Hint
	a, perr := s.form("overseer", "Write to agents", v, d)
	if perr != nil {
		return Response{}, perr
	}
	return a, err
}

// read parses the submitted form. It converts CR LF, which forms use, to LF.
func (d *draft) read(r *http.Request) {
	f := r.PostForm
	d.To, d.Subject, d.Thread, d.Ack = f["to"], f.Get("subject"), f.Get("thread"), f.Get("ack") != ""
	d.Body = strings.ReplaceAll(f.Get("body"), "\r\n", "\n")
	if once := f.Get("once"); once != "" {
		d.Once = once
	}
}

// send sends the message to the agents and returns its id.
func (s *Site) send(ctx context.Context, d draft) (id string, err error) {
	args := messages.OverseerArgs{ProjectKey: d.Key, To: d.To, Subject: d.Subject, Body: d.Body, ThreadID: d.Thread, AckRequired: d.Ack}
	// A text that was edited after it was sent is a new message.
	text, err := json.Marshal([]any{d.Once, args})
	if err != nil {
		return "", err
	}
	sum := sha256.Sum256(text)
	args.IdempotencyKey = "form-" + hex.EncodeToString(sum[:])
	var sent messages.Sent
	err = s.mail.Write(ctx, ownerCaller(), func(ctx context.Context, o *service.Mail, c mail.Caller) (err error) {
		sent, err = o.Overseer(ctx, c, args)
		return err
	})
	if err != nil {
		return "", err
	}
	return strconv.FormatInt(sent.Deliveries[0].Payload.ID, 10), nil
}

// Stale shows the form again with the user's input, after it was submitted in an earlier
// login session.
func (s *Site) Stale(r *http.Request, v Visitor) (Response, error) {
	at, ok := find(r.URL.EscapedPath())
	if !ok || at.again == nil { // only user input is worth keeping
		return Response{}, nil
	}
	return at.again(s, r, v, at)
}

func (s *Site) staleMessage(r *http.Request, v Visitor, at place) (Response, error) {
	desk, err := s.desk(r.Context(), at, 0, 1)
	if err != nil {
		return Response{}, err
	}
	d := draft{Key: at.key, Project: desk.Project, Agents: desk.Agents, Once: rand.Text()}
	d.read(r)
	d.Problem, d.Hint = "Nothing was sent, because the form is older than your sign-in.", "Check it and send it again."
	return s.form("overseer", "Write to agents", v, d)
}
