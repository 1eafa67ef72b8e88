package mcp

import (
	"context"
	"reflect"

	"cairn/internal/guard"
	"cairn/internal/mail/service"
)

func (t *mailTools) reservationTools() []Tool {
	return []Tool{
		mailTool(t, anAgent{}, Tool{
			Name: "file_reservation_paths", Words: "lock claim lease reserve hold edit file", Lean: true,
			Description: "Reserve files or globs before you edit them, so that other agents keep away. Each path is granted, or named in conflicts with its holders: " +
				"then work on something else, or write to the holder.",
			Brief: "Reserve files or globs before you edit them; heed conflicts.",
		}, (*service.Mail).FileReservationPaths),
		mailTool(t, nobody{}, Tool{
			Name: "check_file_reservation_conflicts", Words: "lock locked who holds owner reserved file", ReadOnly: true,
			Description: "Look up who has reserved paths, without reserving them. free lists the paths that nobody holds, conflicts the others with their holders.",
		}, (*service.Mail).CheckFileReservationConflicts),
		mailTool(t, anAgent{}, Tool{
			Name: "release_file_reservations", Words: "unlock lock free reserve", Lean: true,
			Description: "Release reservations of yours as soon as you are done: those with these paths and ids, or all of them if you name neither.",
			Brief:       "Release reservations when done: these paths, or all of yours.",
		}, (*service.Mail).ReleaseFileReservations),
		mailTool(t, anAgent{}, Tool{
			Name: "renew_file_reservations", Words: "extend lock",
			Description: "Keep reservations of yours for longer: those with these paths and ids, or all of them if you name neither.",
		}, (*service.Mail).RenewFileReservations),
		mailTool(t, anAgent{}, Tool{
			Name: "force_release_file_reservation", Words: "unlock break steal lock",
			Description: "Release another agent's stale or expired reservation. A live one is refused (RESERVATION_ACTIVE): then write to its holder.",
		}, (*service.Mail).ForceReleaseFileReservation),
	}
}

type repositoryArgs struct {
	Path string `arg:"code_repo_path,required"`
}

// guardTools touch the hooks of a repository, and no store.
func (t *mailTools) guardTools() []Tool {
	return []Tool{
		argumentsTool(Tool{
			Name: "install_precommit_guard", common: reflect.TypeFor[nobody](),
			Description: "Install a pre-commit hook into a repository that stops commits of files which another agent has reserved. Hooks that are there keep working.",
		}, func(ctx context.Context, a guard.Args) (guard.Installed, error) {
			return t.mail.Cairn().Guard().Install(ctx, a)
		}),
		argumentsTool(Tool{
			Name: "uninstall_precommit_guard", common: reflect.TypeFor[nobody](),
			Description: "Remove the pre-commit hook that install_precommit_guard installed. Other hooks stay as they were.",
		}, func(ctx context.Context, a repositoryArgs) (guard.Removed, error) {
			return t.mail.Cairn().Guard().Uninstall(ctx, guard.Args{Repository: a.Path})
		}),
	}
}

func (t *mailTools) macroTools() []Tool {
	return []Tool{
		mailTool(t, newAgent{}, Tool{
			Name: "macro_start_session", Words: "register begin start join", Lean: true,
			Description: "Begin work among other agents, in one call: make the project, get a name, reserve files and read your mail. Act under the returned agent's name from then on.",
			Brief:       "Begin work among other agents: get your name, reserve files, see your mail.",
		}, (*service.Mail).MacroStartSession),
		mailTool(t, anAgent{}, Tool{
			Name:        "macro_prepare_thread",
			Description: "Join a discussion, in one call: get a name, a summary of the thread and your mail.",
		}, (*service.Mail).MacroPrepareThread),
		mailTool(t, anAgent{}, Tool{
			Name:        "macro_file_reservation_cycle",
			Description: "Reserve files, and with auto_release release what was granted at once: a test of whether the files are free now.",
		}, (*service.Mail).MacroFileReservationCycle),
		mailTool(t, anAgent{}, Tool{
			Name:        "macro_contact_handshake",
			Description: "Ask an agent for permission to write to it and send a first message, in one call. The message is sent only if the permission stands at once.",
		}, (*service.Mail).MacroContactHandshake),
	}
}
