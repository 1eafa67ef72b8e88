package web

import (
	"context"
	"errors"
	"net/http"
	"slices"
	"strings"

	"cairn/internal/fault"
	"cairn/internal/mail"
	"cairn/internal/mail/reservations"
	"cairn/internal/mail/service"
)

// releasePage asks the user to confirm the release of an agent's reservation.
type releasePage struct {
	Key     string
	One     reservations.ListedReservation
	Reason  string
	Problem string
}

// release shows the form that releases a reservation, or releases it. It is idempotent.
func (s *Site) release(r *http.Request, v Visitor, at place) (Response, error) {
	if r.Method != http.MethodPost {
		return s.releaseForm(r, v, at, "")
	}
	id, err := number("reservation", at.id)
	if err != nil {
		return Response{}, err
	}
	reason := strings.TrimSpace(r.PostForm.Get("reason"))
	if reason == "" {
		a, err := s.releaseForm(r, v, at, "Enter a reason. The holder reads it.")
		return a, errors.Join(err, fault.New(fault.Invalid, "invalid_argument", "the reason is missing"))
	}
	err = s.mail.Write(r.Context(), ownerCaller(), func(ctx context.Context, o *service.Mail, c mail.Caller) error {
		_, err := o.ForceReleaseFileReservation(ctx, c, reservations.ForceArgs{ProjectKey: at.key, AgentName: mail.Overseer, ID: id, Note: reason})
		return err
	})
	return Response{To: "/reservations"}, err
}

func (s *Site) releaseForm(r *http.Request, v Visitor, at place, problem string) (Response, error) {
	id, err := number("reservation", at.id)
	if err != nil {
		return Response{}, err
	}
	list, err := ask(r.Context(), s, func(ctx context.Context, o *service.Mail, c mail.Caller) ([]reservations.ListedReservation, error) {
		return o.FileReservations(ctx, c, at.key, false)
	})
	if err != nil {
		return Response{}, err
	}
	i := slices.IndexFunc(list, func(one reservations.ListedReservation) bool { return one.ID == id })
	if i < 0 {
		return Response{}, fault.Newf(fault.NotFound, "not_found", "reservation %d has ended or never existed", id).WithHint("the page Reservations lists those that are active")
	}
	return s.form("release", "End a reservation", v, releasePage{at.key, list[i], r.PostForm.Get("reason"), problem})
}

func (s *Site) staleRelease(r *http.Request, v Visitor, at place) (Response, error) {
	return s.releaseForm(r, v, at, "Nothing was ended, because the form is older than your sign-in. Send it again.")
}
