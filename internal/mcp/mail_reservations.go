package mcp

import (
	"context"

	"cairn/internal/guard"
	"cairn/internal/mail"
)

func (t *mailTools) reservationTools() []Tool {
	return []Tool{
		{
			Name: "file_reservation_paths", Words: "lock claim lease reserve hold edit file", Lean: true, Result: gives[mail.GrantedReservations](),
			Description: "Reserve files or globs before you edit them, so that other agents keep away. Each path is granted, or named in conflicts with its holders: " +
				"then work on something else, or write to the holder.",
			Brief: "Reserve files or globs before you edit them; heed conflicts.",
			Params: params(
				keyParam(), agentParam(), reserved("paths", "What to reserve, at most 200.").lean(""), lifetime("ttl_seconds", 3600),
				setting("exclusive", "false: others may reserve the same, not exclusively."),
				flag("advisory", "Granted in spite of conflicts, which are told all the same; no guard refuses edits because of it."),
				may("reason", "What you do there, for whoever meets the reservation.").by("").lean(""), once(), token(),
			),
			Call: writes(t, (*mail.Service).FileReservationPaths, func(a Args) mail.ReserveArgs {
				return mail.ReserveArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), TTLSeconds: a.Int64("ttl_seconds"),
					Shared: a.IsFalse("exclusive"), Advisory: a.Bool("advisory"), Reason: a.String("reason"), IdempotencyKey: a.String("idempotency_key"),
				}
			}),
		},
		{
			Name: "check_file_reservation_conflicts", Words: "lock locked who holds owner reserved file", ReadOnly: true, Result: gives[mail.Checked](),
			Description: "Look up who has reserved paths, without reserving them. free lists the paths that nobody holds, conflicts the others with their holders.",
			Params: params(
				keyParam(), reserved("paths", "What to look up, at most 200."), may("agent_name", "Your own name: your reservations do not count as conflicts."),
				setting("exclusive", "false: only exclusive reservations count as conflicts."),
			),
			Call: reads(t, (*mail.Service).CheckFileReservationConflicts, func(a Args) mail.CheckArgs {
				return mail.CheckArgs{
					ProjectKey: a.String("project_key"), Paths: a.Strings("paths"), AgentName: a.String("agent_name"), Shared: a.IsFalse("exclusive"),
				}
			}),
		},
		{
			Name: "release_file_reservations", Words: "unlock lock free reserve", Lean: true, Result: gives[mail.ReleasedReservations](),
			Description: "Release reservations of yours as soon as you are done: those with these paths and ids, or all of them if you name neither.",
			Brief:       "Release reservations when done: these paths, or all of yours.",
			Params: params(
				keyParam(), agentParam(), may("paths", "Patterns as they were reserved.").of(Strings).lean(""),
				may("file_reservation_ids", "Ids from granted.").of(Integers), token(),
			),
			Call: writes(t, (*mail.Service).ReleaseFileReservations, func(a Args) mail.ReleaseArgs {
				return mail.ReleaseArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), IDs: a.Integers("file_reservation_ids"),
				}
			}),
		},
		{
			Name: "renew_file_reservations", Words: "extend lock", Result: gives[mail.Renewed](),
			Description: "Keep reservations of yours for longer: those with these paths and ids, or all of them if you name neither.",
			Params: params(
				keyParam(), agentParam(), may("paths", "Patterns as they were reserved.").of(Strings), may("file_reservation_ids", "Ids from granted.").of(Integers),
				count("extend_seconds", 1800, "Seconds to add.").least(60), may("until_ts", "A time (ISO 8601) until which to keep them, instead of extend_seconds."),
				once(), token(),
			),
			Call: writes(t, (*mail.Service).RenewFileReservations, func(a Args) mail.RenewArgs {
				return mail.RenewArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), IDs: a.Integers("file_reservation_ids"),
					ExtendSeconds: a.Int64("extend_seconds"), Until: a.String("until_ts"), IdempotencyKey: a.String("idempotency_key"),
				}
			}),
		},
		{
			Name: "force_release_file_reservation", Words: "unlock break steal lock", Result: gives[mail.ForceReleased](),
			Description: "Release another agent's stale or expired reservation. A live one is refused (RESERVATION_ACTIVE): then write to its holder.",
			Params: params(
				keyParam(), agentParam(), must("file_reservation_id", "The reservation: id of a holder that check_file_reservation_conflicts tells.").of(Integer),
				setting("notify_previous", "Whether the holder gets a message about it."), may("note", "What the message says besides.").by(""), token(),
			),
			Call: writes(t, (*mail.Service).ForceReleaseFileReservation, func(a Args) mail.ForceArgs {
				return mail.ForceArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), ID: *a.Int64("file_reservation_id"),
					Quiet: a.IsFalse("notify_previous"), Note: a.String("note"),
				}
			}),
		},
	}
}

// guardTools touch the hooks of a repository, and no store.
func (t *mailTools) guardTools() []Tool {
	return []Tool{
		{
			Name: "install_precommit_guard", Result: gives[guard.Installed](),
			Description: "Install a pre-commit hook into a repository that stops commits of files which another agent has reserved. Hooks that are there keep working.",
			Params:      params(keyParam(), repositoryParam()),
			Call: func(ctx context.Context, a Args) (any, error) {
				return t.mail.Cairn().Guard().Install(ctx, guard.Args{Project: a.String("project_key"), Repository: a.String("code_repo_path")})
			},
		},
		{
			Name: "uninstall_precommit_guard", Result: gives[guard.Removed](),
			Description: "Remove the pre-commit hook that install_precommit_guard installed. Other hooks stay as they were.",
			Params:      params(repositoryParam()),
			Call: func(ctx context.Context, a Args) (any, error) {
				return t.mail.Cairn().Guard().Uninstall(ctx, guard.Args{Repository: a.String("code_repo_path")})
			},
		},
	}
}

func repositoryParam() Param { return must("code_repo_path", "Absolute path of the repository.") }

func (t *mailTools) macroTools() []Tool {
	return []Tool{
		{
			Name: "macro_start_session", Words: "register begin start join", Lean: true, Result: gives[mail.Started](),
			Description: "Begin work among other agents, in one call: make the project, get a name, reserve files and read your mail. Act under the returned agent's name from then on.",
			Brief:       "Begin work among other agents: get your name, reserve files, see your mail.",
			Params: params(
				must("human_key", "Absolute path of the repository.").or("project_key").lean("The repository's absolute path."), program(), model(),
				may("task_description", "What you work on, for the other agents.").by(""),
				may("agent_name", "The name you had before, or want. Omitted: one is generated.").lean(""),
				reserved("file_reservation_paths", "What to reserve at once.").optional().lean("To reserve."),
				may("file_reservation_reason", "What you do there.").by("macro-session"), lifetime("file_reservation_ttl_seconds", 3600),
				listLimit("inbox_limit", 10, "How many messages of the inbox are returned."),
				may("session_id", "The session that the name is bound to. Only for callers whose session cairn cannot find out."), token(),
			),
			Call: writes(t, (*mail.Service).MacroStartSession, func(a Args) mail.StartArgs {
				return mail.StartArgs{
					HumanKey: a.String("human_key"), Program: a.String("program"), Model: a.String("model"), TaskDescription: a.String("task_description"),
					AgentName: a.String("agent_name"), Paths: a.Strings("file_reservation_paths"), Reason: a.String("file_reservation_reason"),
					TTLSeconds: a.Int64("file_reservation_ttl_seconds"), InboxLimit: a.Int("inbox_limit"),
				}
			}),
		},
		{
			Name: "macro_prepare_thread", Result: gives[mail.PreparedThread](),
			Description: "Join a discussion, in one call: get a name, a summary of the thread and your mail.",
			Params: params(
				keyParam(), must("thread_id", "The thread to join."), program(), model(),
				may("agent_name", "The name you had before, or want. Omitted: one is generated."), may("task_description", "What you work on, for the other agents.").by(""),
				setting("register_if_missing", "Register the agent if it does not exist."), setting("include_examples", "With the first three messages of the thread."),
				listLimit("inbox_limit", 10, "How many messages of the inbox are returned."), flag("include_inbox_bodies", "With their bodies."), token(),
			),
			Call: writes(t, (*mail.Service).MacroPrepareThread, func(a Args) mail.PrepareThreadArgs {
				return mail.PrepareThreadArgs{
					ProjectKey: a.String("project_key"), ThreadID: a.String("thread_id"), Program: a.String("program"), Model: a.String("model"),
					AgentName: a.String("agent_name"), TaskDescription: a.String("task_description"), NoRegister: a.IsFalse("register_if_missing"),
					NoExamples: a.IsFalse("include_examples"), InboxLimit: a.Int("inbox_limit"), IncludeBodies: a.Bool("include_inbox_bodies"),
				}
			}),
		},
		{
			Name: "macro_file_reservation_cycle", Result: gives[mail.Cycled](),
			Description: "Reserve files, and with auto_release release what was granted at once: a test of whether the files are free now.",
			Params: params(
				keyParam(), agentParam(), reserved("paths", "What to reserve, at most 200."), lifetime("ttl_seconds", 3600),
				setting("exclusive", "false: others may reserve the same, not exclusively."), may("reason", "What you do there.").by("macro-file_reservation"),
				flag("auto_release", "Release what this call was granted."), token(),
			),
			Call: writes(t, (*mail.Service).MacroFileReservationCycle, func(a Args) mail.CycleArgs {
				return mail.CycleArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), TTLSeconds: a.Int64("ttl_seconds"),
					Shared: a.IsFalse("exclusive"), Reason: a.String("reason"), AutoRelease: a.Bool("auto_release"),
				}
			}),
		},
		{
			Name: "macro_contact_handshake", Result: gives[mail.Handshake](),
			Description: "Ask an agent for permission to write to it and send a first message, in one call. The message is sent only if the permission stands at once.",
			Params: and(params(
				keyParam(), must("requester", "Who asks: your own name.").or("agent_name"), must("target", "Whom it wants to write to.").or("to_agent"),
				otherProject("to_project", "that agent"), may("reason", "Why, for the message that asks.").by(""), approval(7*24*3600),
				flag("auto_accept", "Accept for the target too, where its policy is open or auto."),
				may("welcome_subject", "Subject of the first message."), may("welcome_body", "The first message, in Markdown. Without it and a subject none is sent."),
				may("thread_id", "The thread of the first message."),
			), and(requester(), token())...),
			Call: writes(t, (*mail.Service).MacroContactHandshake, func(a Args) mail.HandshakeArgs {
				return mail.HandshakeArgs{
					ProjectKey: a.String("project_key"), Requester: a.String("requester"), Target: a.String("target"), ToProject: a.String("to_project"),
					Reason: a.String("reason"), TTLSeconds: a.Int64("ttl_seconds"), AutoAccept: a.Bool("auto_accept"),
					WelcomeSubject: a.Text("welcome_subject"), WelcomeBody: a.Text("welcome_body"), ThreadID: a.String("thread_id"),
					NoRegister: a.IsFalse("register_if_missing"), Program: a.String("program"), Model: a.String("model"),
					TaskDescription: a.String("task_description"),
				}
			}),
		},
	}
}
