// {{head}}.
//
// It tells cairn what happens in OpenCode and puts what cairn says into the conversation.
// Whatever fails here is silent and stops nothing; only an edit of a file that another
// agent holds is refused, where cairn's guard is set to block.
import { spawn, spawnSync } from "node:child_process"

const program = {{program}}
const assist = {{assist}}
const patience = 3000 // ms that a call of cairn may take
const enough = 3 // calls in a row that ran out of time, after which cairn is left alone
let late = 0
const longest = 1 << 20 // characters that are passed on of one text

const short = (text) => (typeof text === "string" && text.length > longest ? text.slice(0, longest / 2) + text.slice(-longest / 2) : text)

const argsFor = (event) =>
  ["record", "--from", "opencode"].concat(assist && (event === "UserPromptSubmit" || event === "PreToolUse") ? ["--assist"] : [])

const parsed = (said) => {
  try {
    return JSON.parse(said) || {}
  } catch {
    return {}
  }
}

// record hands one event to cairn and resolves to what it says; it never rejects.
const record = (payload) =>
  new Promise((resolve) => {
    let said = ""
    let timer
    const end = () => {
      clearTimeout(timer)
      resolve(parsed(said))
    }
    if (late >= enough) return end()
    try {
      const child = spawn(program, argsFor(payload.hook_event_name), { stdio: ["pipe", "pipe", "ignore"], cwd: payload.cwd, windowsHide: true })
      timer = setTimeout(() => {
        late++
        try {
          child.kill("SIGKILL")
        } catch {}
        end()
      }, patience)
      child.on("error", end)
      child.on("close", (code) => {
        if (code !== null) late = 0
        end()
      })
      child.stdout.on("data", (data) => (said += data))
      child.stdout.on("error", () => {})
      child.stdin.on("error", () => {})
      child.stdin.end(JSON.stringify(payload))
    } catch {
      end()
    }
  })

// calm makes a hook that cannot fail.
const calm = (hook) => async (input, output) => {
  try {
    return await hook(input, output)
  } catch {}
}

export const Cairn = async ({ directory }) => {
  const parents = new Map() // session of a subagent -> session
  const folders = new Map() // session -> its folder
  const fresh = new Set() // sessions that were created here
  const begun = new Set()
  const words = new Map() // session -> the agent's latest text
  const waiting = new Map() // session -> text that its model has not been told yet
  const hints = new Map() // call -> text that comes with its result
  const refused = new Set() // calls that the guard has refused
  const done = new Set() // calls that are recorded
  let last = Promise.resolve() // events are recorded one after the other

  const rootOf = (id) => {
    for (let i = 0; parents.has(id) && i < 100; i++) id = parents.get(id)
    return id
  }
  const tell = (hook_event_name, session, rest) => {
    const root = rootOf(session)
    const payload = { hook_event_name, session_id: root, cwd: folders.get(session) || directory, ...rest }
    if (root !== session) payload.agent_id = session
    const answer = last.then(() => record(payload))
    last = answer
    return answer
  }
  const begin = async (session, source) => {
    begun.add(session)
    const { additionalContext } = await tell("SessionStart", session, { source })
    return additionalContext || ""
  }
  const know = (info) => {
    if (!info || !info.id) return
    if (info.parentID) parents.set(info.id, info.parentID)
    if (info.directory) folders.set(info.id, info.directory)
  }

  const events = {
    "session.created": async ({ info }) => {
      know(info)
      if (info && !info.parentID) fresh.add(info.id)
    },
    "session.updated": async ({ info }) => know(info),
    "session.compacted": async ({ sessionID }) => {
      if (rootOf(sessionID) === sessionID) waiting.set(sessionID, await begin(sessionID, "compact"))
    },
    "session.idle": async ({ sessionID }) => {
      const text = words.get(sessionID)
      words.delete(sessionID)
      if (begun.has(rootOf(sessionID))) await tell(rootOf(sessionID) === sessionID ? "Stop" : "SubagentStop", sessionID, { last_assistant_message: text || "" })
    },
    "message.part.updated": async ({ part }) => {
      if (!part || part.type !== "tool" || !part.state || part.state.status !== "error") return
      if (done.has(part.callID) || refused.has(part.callID)) return
      done.add(part.callID)
      await tell("PostToolUseFailure", part.sessionID, {
        tool_name: part.tool, tool_use_id: part.callID, tool_input: part.state.input, error: short(part.state.error),
      })
    },
  }

  return {
    event: calm(async ({ event }) => {
      if (event && Object.hasOwn(events, event.type)) await events[event.type](event.properties || {})
    }),

    "chat.message": calm(async ({ sessionID }, { message, parts }) => {
      if (rootOf(sessionID) !== sessionID) return
      let text = waiting.get(sessionID) || ""
      waiting.delete(sessionID)
      if (!begun.has(sessionID)) text += await begin(sessionID, fresh.has(sessionID) ? "startup" : "resume")
      const prompt = parts.filter((p) => p.type === "text" && !p.synthetic && !p.ignored).map((p) => p.text).join("\n")
      const said = await tell("UserPromptSubmit", sessionID, { prompt: short(prompt), prompt_id: message.id })
      text = [text, said.additionalContext].filter(Boolean).join("\n\n")
      if (text) {
        const id = "prt_" + Date.now().toString(16).padStart(12, "0") + "cairn" + Math.random().toString(36).slice(2, 11).padEnd(9, "0")
        parts.push({ id, sessionID, messageID: message.id, type: "text", text, synthetic: true })
      }
    }),

    "experimental.chat.system.transform": calm(async ({ sessionID }, { system }) => {
      const text = sessionID && waiting.get(sessionID)
      if (text) system.push(text)
    }),

    "tool.execute.before": async ({ tool, sessionID, callID }, { args }) => {
      let answer = {}
      try {
        answer = await tell("PreToolUse", sessionID, { tool_name: tool, tool_use_id: callID, tool_input: args })
      } catch {}
      if (answer.permissionDecision === "deny") {
        refused.add(callID)
        throw new Error("Refused by cairn: " + answer.permissionDecisionReason)
      }
      if (answer.additionalContext) hints.set(callID, answer.additionalContext)
    },

    "tool.execute.after": calm(async ({ tool, sessionID, callID, args }, output) => {
      done.add(callID)
      const texts = Array.isArray(output.content) ? output.content.filter((c) => c.type === "text").map((c) => c.text) : []
      const { exit, exists, sessionId } = output.metadata || {}
      const said = await tell("PostToolUse", sessionID, {
        tool_name: tool, tool_use_id: callID, tool_input: args,
        tool_response: { output: short(output.output ?? texts.join("\n")), exit, exists, sessionId, isError: output.isError },
      })
      const text = [hints.get(callID), said.additionalContext].filter(Boolean).join("\n\n")
      hints.delete(callID)
      if (!text) return
      if (Array.isArray(output.content)) output.content.push({ type: "text", text })
      else output.output = (output.output || "") + "\n\n" + text
    }),

    "experimental.text.complete": calm(async ({ sessionID }, { text }) => {
      if (text && text.trim()) words.set(sessionID, short(text))
    }),

    dispose: calm(async () => {
      await last
      for (const session of begun) {
        spawnSync(program, argsFor("SessionEnd"), {
          input: JSON.stringify({ hook_event_name: "SessionEnd", session_id: session, cwd: folders.get(session) || directory, reason: "exit" }),
          timeout: 1000, stdio: ["pipe", "ignore", "ignore"], windowsHide: true,
        })
      }
      begun.clear()
    }),
  }
}
