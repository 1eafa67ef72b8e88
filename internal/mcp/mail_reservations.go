package mcp

import (
	"cairn/internal/mail"
)

func (t *mailTools) reservationTools() []Tool {
	return []Tool{
		{
			Name: "file_reservation_paths", Description: "Reserve files or globs before editing; heed conflicts.",
			Params: and(params(keyParam(), agentParam(), mustBe("paths", Strings), told("exclusive", Boolean), told("reason", String)),
				untold(Integer, "ttl_seconds"), untold(Boolean, "advisory"), untold(String, "idempotency_key"), acting()),
			Call: writes(t, (*mail.Office).FileReservationPaths, func(a Args) mail.ReserveArgs {
				return mail.ReserveArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), TTLSeconds: a.Int64("ttl_seconds"),
					Shared: a.IsFalse("exclusive"), Advisory: a.Bool("advisory"), Reason: a.String("reason"), IdempotencyKey: a.String("idempotency_key"),
				}
			}),
		},
		{
			Name: "check_file_reservation_conflicts", ReadOnly: true, Description: "Who holds files.",
			Params: and(params(keyParam(), mustBe("paths", Strings), told("agent_name", String)), untold(Boolean, "exclusive")),
			Call: reads(t, (*mail.Office).CheckFileReservationConflicts, func(a Args) mail.CheckArgs {
				return mail.CheckArgs{
					ProjectKey: a.String("project_key"), Paths: a.Strings("paths"), AgentName: a.String("agent_name"), Shared: a.IsFalse("exclusive"),
				}
			}),
		},
		{
			Name: "release_file_reservations", Description: "Release these, or all of yours.",
			Params: and(params(keyParam(), agentParam(), told("paths", Strings)), untold(Integers, "file_reservation_ids"), acting()),
			Call: writes(t, (*mail.Office).ReleaseFileReservations, func(a Args) mail.ReleaseArgs {
				return mail.ReleaseArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), IDs: a.Integers("file_reservation_ids"),
				}
			}),
		},
		{
			Name: "renew_file_reservations", Description: "Keep them longer.",
			Params: and(params(keyParam(), agentParam(), told("extend_seconds", Integer)),
				untold(Strings, "paths"), untold(Integers, "file_reservation_ids"), untold(String, "until_ts", "idempotency_key"), acting()),
			Call: writes(t, (*mail.Office).RenewFileReservations, func(a Args) mail.RenewArgs {
				return mail.RenewArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), IDs: a.Integers("file_reservation_ids"),
					ExtendSeconds: a.Int64("extend_seconds"), Until: a.String("until_ts"), IdempotencyKey: a.String("idempotency_key"),
				}
			}),
		},
		{
			Name: "force_release_file_reservation", Description: "End another's stale one.",
			Params: and(params(keyParam(), agentParam(), mustBe("file_reservation_id", Integer)),
				untold(Boolean, "notify_previous"), untold(String, "note"), acting()),
			Call: writes(t, (*mail.Office).ForceReleaseFileReservation, func(a Args) mail.ForceArgs {
				return mail.ForceArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), ID: *a.Int64("file_reservation_id"),
					Quiet: a.IsFalse("notify_previous"), Note: a.String("note"),
				}
			}),
		},
	}
}

func (t *mailTools) macroTools() []Tool {
	return []Tool{
		{
			Name: "macro_start_session", Description: "Start here: project, agent, reservations, inbox.",
			Params: and(params(
				must("human_key").or("project_key"), must("program"), must("model"), told("agent_name", String),
				told("file_reservation_paths", Strings),
			), untold(String, "task_description", "file_reservation_reason", "session_id"), untold(Integer, "file_reservation_ttl_seconds", "inbox_limit"), acting()),
			Call: writes(t, (*mail.Office).MacroStartSession, func(a Args) mail.StartArgs {
				return mail.StartArgs{
					HumanKey: a.String("human_key"), Program: a.String("program"), Model: a.String("model"), TaskDescription: a.String("task_description"),
					AgentName: a.String("agent_name"), Paths: a.Strings("file_reservation_paths"), Reason: a.String("file_reservation_reason"),
					TTLSeconds: a.Int64("file_reservation_ttl_seconds"), InboxLimit: a.Int("inbox_limit"),
				}
			}),
		},
		{
			Name: "macro_prepare_thread", Description: "Join a thread.",
			Params: and(params(keyParam(), must("thread_id"), must("program"), must("model"), told("agent_name", String)),
				untold(String, "task_description"), untold(Boolean, "register_if_missing", "include_examples", "include_inbox_bodies"),
				untold(Integer, "inbox_limit"), acting()),
			Call: writes(t, (*mail.Office).MacroPrepareThread, func(a Args) mail.PrepareThreadArgs {
				return mail.PrepareThreadArgs{
					ProjectKey: a.String("project_key"), ThreadID: a.String("thread_id"), Program: a.String("program"), Model: a.String("model"),
					AgentName: a.String("agent_name"), TaskDescription: a.String("task_description"), NoRegister: a.IsFalse("register_if_missing"),
					NoExamples: a.IsFalse("include_examples"), InboxLimit: a.Int("inbox_limit"), IncludeBodies: a.Bool("include_inbox_bodies"),
				}
			}),
		},
		{
			Name: "macro_file_reservation_cycle", Description: "Reserve; auto_release at once.",
			Params: and(params(keyParam(), agentParam(), mustBe("paths", Strings), told("auto_release", Boolean)),
				untold(Integer, "ttl_seconds"), untold(Boolean, "exclusive"), untold(String, "reason"), acting()),
			Call: writes(t, (*mail.Office).MacroFileReservationCycle, func(a Args) mail.CycleArgs {
				return mail.CycleArgs{
					ProjectKey: a.String("project_key"), AgentName: a.String("agent_name"), Paths: a.Strings("paths"), TTLSeconds: a.Int64("ttl_seconds"),
					Shared: a.IsFalse("exclusive"), Reason: a.String("reason"), AutoRelease: a.Bool("auto_release"),
				}
			}),
		},
		{
			Name: "macro_contact_handshake", Description: "Ask leave and write first.",
			Params: and(params(
				keyParam(), must("requester").or("agent_name"), must("target").or("to_agent"), told("welcome_body", String),
			), untold(String, "welcome_subject", "reason", "thread_id", "to_project", "program", "model", "task_description"), untold(Integer, "ttl_seconds"),
				untold(Boolean, "auto_accept", "register_if_missing"), acting()),
			Call: writes(t, (*mail.Office).MacroContactHandshake, func(a Args) mail.HandshakeArgs {
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
