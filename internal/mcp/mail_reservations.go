package mcp

import (
	"context"
	"reflect"

	"cairn/internal/guard"
	"cairn/internal/mail"
)

func (t *mailTools) reservationTools() []Tool {
	return []Tool{
		mailTool(t, actor{}, Tool{
			Name: "file_reservation_paths", Words: "lock claim lease reserve hold edit file", Lean: true,
			Description: "Reserve files or globs before you edit them, so that other agents do not edit them. Each path is granted, or listed in conflicts with its holders: " +
				"then work on something else, or write to the holder.",
			Brief: "Reserve files or globs before you edit them; heed conflicts.",
		}, (*mail.Service).FileReservationPaths),
		mailTool(t, noActor{}, Tool{
			Name: "check_file_reservation_conflicts", Words: "lock locked who holds owner reserved file", ReadOnly: true,
			Description: "Check who has reserved paths, without reserving them. free lists the paths without a holder, conflicts the others with their holders.",
		}, (*mail.Service).CheckFileReservationConflicts),
		mailTool(t, actor{}, Tool{
			Name: "release_file_reservations", Words: "unlock lock free reserve", Lean: true,
			Description: "Release your reservations as soon as you are done: the given paths and ids, or all of yours if you give neither.",
			Brief:       "Release reservations when done: these paths, or all of yours.",
		}, (*mail.Service).ReleaseFileReservations),
		mailTool(t, actor{}, Tool{
			Name: "renew_file_reservations", Words: "extend lock",
			Description: "Extend your reservations: the given paths and ids, or all of yours if you give neither.",
		}, (*mail.Service).RenewFileReservations),
		mailTool(t, actor{}, Tool{
			Name: "force_release_file_reservation", Words: "unlock break steal lock",
			Description: "Release another agent's stale or expired reservation. An active one is refused (RESERVATION_ACTIVE): then write to its holder.",
		}, (*mail.Service).ForceReleaseFileReservation),
	}
}

type repositoryArgs struct {
	Path string `arg:"code_repo_path,required"`
}

// guardTools change the hooks of a repository and do not use the store.
func (t *mailTools) guardTools() []Tool {
	return []Tool{
		argumentsTool(Tool{
			Name: "install_precommit_guard", common: reflect.TypeFor[noActor](),
			Description: "Install a pre-commit hook into a repository that blocks commits of files which another agent has reserved. Existing hooks keep working.",
		}, func(ctx context.Context, a guard.Args) (guard.Installed, error) {
			return t.mail.Cairn().Guard().Install(ctx, a)
		}),
		argumentsTool(Tool{
			Name: "uninstall_precommit_guard", common: reflect.TypeFor[noActor](),
			Description: "Remove the pre-commit hook that install_precommit_guard installed. Other hooks stay unchanged.",
		}, func(ctx context.Context, a repositoryArgs) (guard.Removed, error) {
			return t.mail.Cairn().Guard().Uninstall(ctx, guard.Args{Repository: a.Path})
		}),
	}
}

func (t *mailTools) macroTools() []Tool {
	return []Tool{
		mailTool(t, namedActor{}, Tool{
			Name: "macro_start_session", Words: "register begin start join", Lean: true,
			Description: "Begin work with other agents, in one call: create the project, get a name, reserve files and read your mail. Act under the returned agent's name from then on.",
			Brief:       "Begin work with other agents: get your name, reserve files, see your mail.",
		}, (*mail.Service).MacroStartSession),
		mailTool(t, actor{}, Tool{
			Name:        "macro_prepare_thread",
			Description: "Join a discussion, in one call: get a name, a summary of the thread and your mail.",
		}, (*mail.Service).MacroPrepareThread),
		mailTool(t, actor{}, Tool{
			Name:        "macro_file_reservation_cycle",
			Description: "Reserve files. With auto_release they are released immediately: a test of whether the files are free now.",
		}, (*mail.Service).MacroFileReservationCycle),
		mailTool(t, actor{}, Tool{
			Name:        "macro_contact_handshake",
			Description: "Request permission to write to an agent and send a first message, in one call. The message is sent only if permission is given immediately.",
		}, (*mail.Service).MacroContactHandshake),
	}
}
