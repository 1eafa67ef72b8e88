package mailcmd

import (
	"io"

	"cairn/internal/cli/command"
	"cairn/internal/mail"
)

// pastOf returns a function that returns a result from the past and notes its moment.
func pastOf[T any](past mail.Past[T], err error) func(f *command.Printer) (any, error) {
	return func(f *command.Printer) (any, error) {
		if err == nil {
			f.NoteMoment(past.At)
		}
		return past, err
	}
}

// nowOrThen prints a result with the same function, whether it is current or from the
// past.
func nowOrThen[T any](text func(io.Writer, T) error) func(io.Writer, any) error {
	return func(w io.Writer, v any) error {
		if past, ok := v.(mail.Past[T]); ok {
			return text(w, past.Result)
		}
		return text(w, v.(T))
	}
}
