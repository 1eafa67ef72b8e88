package servecmd

import (
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"cairn/internal/cli/command"
	"cairn/internal/httpapi"
)

func tokenCommand(p *command.Process) *cobra.Command {
	cmd := &cobra.Command{
		Use:   "token",
		Short: "Create, list and revoke tokens for the memories of serve --http",
		Long: `token manages tokens that give other users access to the memories of cairn serve --http,
over /v1 and MCP. The level read allows reading, write also creating and changing, and
admin everything. Observations, records and mail require the owner's token, which cairn
http-token prints.`,
		Example: "  cairn token create --level write --name laptop --expires 720h\n  cairn token list\n  cairn token revoke 0f3a9c1d2e4b",
		Args:    command.NoArgs,
		RunE:    func(cmd *cobra.Command, _ []string) error { return cmd.Help() },
	}
	cmd.AddCommand(tokenCreateCommand(p), tokenListCommand(p), tokenRevokeCommand(p))
	return cmd
}

// newToken is the result of token create.
type newToken struct {
	httpapi.Token
	Secret string `json:"token"`
}

func tokenCreateCommand(p *command.Process) *cobra.Command {
	var a httpapi.TokenArgs
	var asJSON bool
	cmd := &cobra.Command{
		Use:   "create",
		Short: "Create a token and print it, once",
		Long: `create creates a token and prints it. Only its SHA-256 is stored, so it cannot be shown
again. Running servers accept the token immediately.`,
		Example: "  cairn token create --level read --name dashboard\n  cairn token create --level write --expires 24h",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.Config(cmd)
			if err != nil {
				return err
			}
			t, secret, err := httpapi.CreateToken(config.Dir, a, time.Now())
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, newToken{t, secret})
			}
			_, err = fmt.Fprintln(p.Out, secret)
			return err
		},
	}
	cmd.Flags().StringVar(&a.Level, "level", "admin", "the level: read, write or admin")
	cmd.Flags().StringVar(&a.Name, "name", "", "a name that identifies the token in the list")
	cmd.Flags().StringVar(&a.UserID, "user", "", "the local user of memories (default: the device's own)")
	cmd.Flags().DurationVar(&a.Expires, "expires", 0, "time until the token expires, such as 24h (default: never)")
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON, with its id")
	return cmd
}

func tokenListCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "list", Short: "List the tokens, oldest first",
		Example: "  cairn token list\n  cairn token list --json",
		Args:    command.NoArgs,
		RunE: func(cmd *cobra.Command, _ []string) error {
			config, err := p.Config(cmd)
			if err != nil {
				return err
			}
			tokens, err := httpapi.Tokens(config.Dir)
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, map[string]any{"tokens": tokens, "count": len(tokens)})
			}
			for _, t := range tokens {
				if _, err := fmt.Fprintln(p.Out, listedToken(t, time.Now())); err != nil {
					return err
				}
			}
			return nil
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}

// listedToken formats a token for people.
func listedToken(t httpapi.Token, now time.Time) string {
	line := fmt.Sprintf("%s  %-5s  made %s", t.ID, t.Level, t.Created.Format(time.DateOnly))
	switch {
	case !t.Revoked.IsZero():
		line += ", revoked " + t.Revoked.Format(time.DateOnly)
	case !t.Expires.IsZero() && !now.Before(t.Expires):
		line += ", expired " + t.Expires.Format(time.DateOnly)
	case !t.Expires.IsZero():
		line += ", good until " + t.Expires.Format("2006-01-02 15:04")
	}
	if t.UserID != "" {
		line += ", user " + t.UserID
	}
	if t.Name != "" {
		line += "  " + command.Printable(t.Name)
	}
	return line
}

func tokenRevokeCommand(p *command.Process) *cobra.Command {
	var asJSON bool
	cmd := &cobra.Command{
		Use: "revoke ID", Short: "Revoke a token immediately",
		Long: `revoke makes a token invalid permanently. ID is the token's id or its beginning. Running
servers reject the token from their next request.`,
		Example: "  cairn token revoke 0f3a9c1d2e4b",
		Args:    command.ExactArgs(1, "a token's id, which `cairn token list` prints"),
		RunE: func(cmd *cobra.Command, args []string) error {
			config, err := p.Config(cmd)
			if err != nil {
				return err
			}
			t, err := httpapi.RevokeToken(config.Dir, args[0], time.Now())
			if err != nil {
				return err
			}
			if asJSON {
				return command.PrintJSON(p.Out, t)
			}
			_, err = fmt.Fprintln(p.Out, "revoked "+t.ID)
			return err
		},
	}
	cmd.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	return cmd
}
